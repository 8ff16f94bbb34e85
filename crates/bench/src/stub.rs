//! The instant upstream: answers at once in the two dialects, so that what is left in a measurement is the gateway.
//! The model's name chooses the behaviour, because gateways do not forward unknown headers: `instant`;
//! `paced-10ms` (a pause of that length before each content event but the first); `hold` (the first content event,
//! then silence until the client leaves, at most [`HOLD`]); `full` (all content at once, then silence); `flood` (content
//! without end, as fast as it is taken); and those of [`crate::refusal`], each of which refuses every
//! attempt with a 429. `GET /refused` tells how many were. It checks nothing: a broken request gets the same answer.

use crate::answers::{Answers, Dialect, EVENTS, answers, json};
use crate::h1::Conn;
use crate::refusal::{self, Refusal};
use bytes::Bytes;
use memchr::memmem;
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};

/// The longest a `hold` stream stays open.
pub const HOLD: Duration = Duration::from_secs(120);

/// Above any burst of connections the bench makes; the system's own cap (somaxconn) may be lower.
const BACKLOG: u32 = 8192;

struct Canned {
    chat: Answers,
    messages: Answers,
    health: Bytes,
    missing: Bytes,
    refusals: Vec<(Refusal, Bytes)>,
    refused: Cell<u64>,
}

/// What one request asks for.
struct Ask {
    dialect: Dialect,
    stream: bool,
    usage: bool,
    mode: Mode,
}

enum Mode {
    Instant,
    Paced(Duration),
    Hold,
    Full,
    Flood,
    Refuse(Refusal),
}

/// A listener with a backlog fit for thousands of connections at once.
pub fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

/// Serves until the future is dropped. Must run inside a `LocalSet`: connections are tasks of this thread.
pub async fn serve(listener: TcpListener) -> io::Result<()> {
    let canned = Rc::new(Canned {
        chat: answers(Dialect::Chat),
        messages: answers(Dialect::Messages),
        health: json("200 OK", r#"{"object":"list","data":[{"id":"instant","object":"model"}]}"#),
        missing: json("404 Not Found", r#"{"error":{"message":"the stub has no such route","type":"not_found"}}"#),
        refusals: Refusal::ALL.into_iter().map(|refusal| (refusal, refusal.answer())).collect(),
        refused: Cell::new(0),
    });
    loop {
        let (stream, _) = listener.accept().await?;
        let canned = Rc::clone(&canned);
        tokio::task::spawn_local(async move {
            // A peer that hangs up is part of the measurement, not an error to report.
            if let Ok(conn) = Conn::new(stream) {
                let _ = connection(conn, &canned).await;
            }
        });
    }
}

async fn connection(mut conn: Conn, canned: &Canned) -> io::Result<()> {
    let mut body = Vec::new();
    while let Some(head) = conn.head().await? {
        let line = conn.head_bytes(&head);
        let is_post = line.starts_with(b"POST ");
        let path = line.split(|b| *b == b' ').nth(1).unwrap_or_default();
        let dialect = match path {
            p if p.ends_with(b"/chat/completions") => Some(Dialect::Chat),
            p if p.ends_with(b"/messages") => Some(Dialect::Messages),
            _ => None,
        };
        let is_count = path == refusal::COUNT_PATH.as_bytes();
        body.clear();
        let collect = |piece: &[u8]| {
            body.extend_from_slice(piece);
            true
        };
        conn.body(&head, collect).await?;
        match (is_post, dialect) {
            (true, Some(dialect)) => {
                let ask = ask(dialect, &body);
                if !answer(&mut conn, canned, &ask).await? {
                    return Ok(());
                }
            }
            (false, _) if is_count => conn.write(&json("200 OK", &canned.refused.get().to_string())).await?,
            (false, _) => conn.write(&canned.health).await?,
            (true, None) => conn.write(&canned.missing).await?,
        }
        if head.close {
            return Ok(());
        }
    }
    Ok(())
}

fn ask(dialect: Dialect, body: &[u8]) -> Ask {
    let model = memmem::find(body, b"\"model\":").map(|at| body[at + 8..].trim_ascii_start()).unwrap_or_default();
    let model = model.strip_prefix(b"\"").unwrap_or_default();
    let model = memchr::memchr(b'"', model).map_or(model, |end| &model[..end]);
    let refusal = Refusal::ALL.into_iter().find(|refusal| refusal.model().as_bytes() == model);
    let mode = if let Some(refusal) = refusal {
        Mode::Refuse(refusal)
    } else if model == b"hold" {
        Mode::Hold
    } else if model == b"full" {
        Mode::Full
    } else if model == b"flood" {
        Mode::Flood
    } else if let Some(pace) = model.strip_prefix(b"paced-").and_then(|p| p.strip_suffix(b"ms")) {
        let millis = std::str::from_utf8(pace).ok().and_then(|p| p.parse().ok()).unwrap_or(10);
        Mode::Paced(Duration::from_millis(millis))
    } else {
        Mode::Instant
    };
    Ask { dialect, stream: has_true(body, b"\"stream\":"), usage: has_true(body, b"\"include_usage\":"), mode }
}

/// Whether `key` (with its colon) is followed by `true`, with or without space between.
fn has_true(body: &[u8], key: &[u8]) -> bool {
    memmem::find(body, key).is_some_and(|at| body[at + key.len()..].trim_ascii_start().starts_with(b"true"))
}

/// Writes the answer; false when the connection is spent.
async fn answer(conn: &mut Conn, canned: &Canned, ask: &Ask) -> io::Result<bool> {
    let a = match ask.dialect {
        Dialect::Chat => &canned.chat,
        Dialect::Messages => &canned.messages,
    };
    if let Mode::Refuse(refusal) = ask.mode {
        canned.refused.set(canned.refused.get() + 1);
        for (_, answer) in canned.refusals.iter().filter(|(of, _)| *of == refusal) {
            conn.write(answer).await?;
        }
        return Ok(true);
    }
    if !ask.stream {
        conn.write(&a.whole).await?;
        return Ok(true);
    }
    conn.write(&a.opening).await?;
    for event in 0..EVENTS {
        conn.write(&a.content).await?;
        match ask.mode {
            // Lets the other streams take their turn, so that events arrive one by one and interleaved.
            Mode::Instant => tokio::task::yield_now().await,
            Mode::Paced(pace) if event + 1 < EVENTS => tokio::time::sleep(pace).await,
            Mode::Paced(_) | Mode::Refuse(_) => {}
            Mode::Hold => return held(conn).await,
            Mode::Full if event + 1 == EVENTS => return held(conn).await,
            Mode::Full => {}
            Mode::Flood => {
                // Until the other side has had enough of it.
                while tokio::time::timeout(HOLD, conn.write(&a.content)).await.is_ok_and(|wrote| wrote.is_ok()) {
                    tokio::task::yield_now().await;
                }
                return Ok(false);
            }
        }
    }
    conn.write(if ask.usage { &a.closing_with_usage } else { &a.closing }).await?;
    Ok(true)
}

/// Keeps a stream open; nothing follows on its connection.
async fn held(conn: &mut Conn) -> io::Result<bool> {
    conn.shrink();
    let _ = tokio::time::timeout(HOLD, conn.closed()).await;
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_name_and_the_stream_flag_choose_the_behaviour() {
        let plain = ask(Dialect::Chat, br#"{"model":"instant","messages":[{"content":"say \"stream\":true"}]}"#);
        assert!(!plain.stream && matches!(plain.mode, Mode::Instant));
        let paced =
            ask(Dialect::Chat, br#"{"stream": true,"model": "paced-25ms","stream_options":{"include_usage":true}}"#);
        assert!(paced.stream && paced.usage);
        assert!(matches!(paced.mode, Mode::Paced(d) if d == Duration::from_millis(25)));
        assert!(matches!(ask(Dialect::Messages, br#"{"model":"hold"}"#).mode, Mode::Hold));
        let refused = ask(Dialect::Chat, br#"{"model":"refused-soon","stream":true}"#);
        assert!(matches!(refused.mode, Mode::Refuse(Refusal::Soon)));
    }
}
