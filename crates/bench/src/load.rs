//! The load generator. Closed loops (each of `c` connections sends its next request when the last is answered) measure
//! CPU per turn and the peak; open loops (arrivals at a fixed rate, whatever the answers do) measure latency from the
//! moment each request was *due*, so a stall is charged to every request that it delayed (no coordinated omission).
//! Everything is bounded in count and time, and aimed at one address.

use crate::answers::{EVENTS, MARK};
use crate::h1::Conn;
use crate::request::{Ask, Template};
use anyhow::{Context, Result, bail};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;

/// A request unanswered for this long ends the run it is part of.
const PATIENCE: Duration = Duration::from_secs(30);
/// The first failures kept for the report, and how much of each.
const KEPT_FAILURES: usize = 3;
const KEPT_BYTES: usize = 300;

/// What one load run did.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Requests answered as they should be (streams: with every event and the right end).
    pub done: u64,
    /// Requests that were not.
    pub failed: u64,
    /// The first few failures' own words.
    pub failures: Vec<String>,
    /// From the first send to the last answer, seconds.
    pub seconds: f64,
    /// Median latency in milliseconds (open loop: since due; streams: to first content).
    pub p50_ms: f64,
    /// 99th percentile of the same.
    pub p99_ms: f64,
}

impl Outcome {
    /// Answers per second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.done as f64 / self.seconds } else { 0.0 }
    }
}

struct Tally {
    latency: Histogram<u64>,
    done: u64,
    failed: u64,
    failures: Vec<String>,
    begun: Instant,
    ended: Instant,
}

impl Tally {
    fn new() -> Result<Self> {
        let now = Instant::now();
        let latency = Histogram::new_with_bounds(1_000, 120_000_000_000, 3)?;
        Ok(Self { latency, done: 0, failed: 0, failures: Vec::new(), begun: now, ended: now })
    }

    fn good(&mut self, took: Duration) {
        self.done += 1;
        self.ended = Instant::now();
        // Saturates at the histogram's bounds.
        self.latency.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    fn bad(&mut self, why: String) {
        self.failed += 1;
        if self.failures.len() < KEPT_FAILURES {
            self.failures.push(why);
        }
    }

    fn outcome(self) -> Outcome {
        let ms = |q| self.latency.value_at_quantile(q) as f64 / 1e6;
        Outcome {
            done: self.done,
            failed: self.failed,
            seconds: (self.ended - self.begun).as_secs_f64(),
            p50_ms: ms(0.5),
            p99_ms: ms(0.99),
            failures: self.failures,
        }
    }
}

/// One client: a connection (made on first use and after each failure) and its own copy of the request.
struct Client {
    id: u64,
    target: SocketAddr,
    conn: Option<Conn>,
    template: Template,
    turn: u64,
    stream: bool,
    expect: Expect,
    /// Bytes that the kernel may take for it unread; as it likes unless set.
    unread: Option<u32>,
}

/// What counts as answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// 200, with all of the stub's content.
    Content,
    /// A refusal for want of an account: 429 or 503.
    Refusal,
}

/// What a good answer showed.
struct Answer {
    first_content: Instant,
}

impl Client {
    async fn conn(&mut self) -> Result<&mut Conn> {
        if self.conn.is_none() {
            let stream = match self.unread {
                None => TcpStream::connect(self.target).await?,
                Some(unread) => {
                    let socket = TcpSocket::new_v4()?;
                    socket.set_recv_buffer_size(unread)?;
                    socket.connect(self.target).await?
                }
            };
            self.conn = Some(Conn::new(stream)?);
        }
        self.conn.as_mut().context("no connection")
    }

    /// One request and its whole answer; a failure drops the connection.
    async fn turn(&mut self) -> Result<Answer> {
        let result = self.exchange().await;
        if result.is_err() {
            self.conn = None;
        }
        result
    }

    async fn exchange(&mut self) -> Result<Answer> {
        self.conn().await?;
        self.turn += 1;
        let request = self.template.number(self.id, self.turn);
        let conn = self.conn.as_mut().context("no connection")?;
        conn.write(request).await?;
        let head = conn.head().await?.context("closed before the answer")?;
        let mut seen = Seen::default();
        conn.body(&head, |piece| {
            seen.take(piece, self.stream);
            true
        })
        .await?;
        if head.close {
            self.conn = None;
        }
        match (self.expect, head.status) {
            (Expect::Refusal, 429 | 503) => Ok(Answer { first_content: Instant::now() }),
            (Expect::Refusal, status) => bail!("status {status} to a turn that all upstreams refuse"),
            (Expect::Content, status) => seen.verdict(status, self.stream),
        }
    }

    /// Sends and reads until first content, leaving the stream open.
    async fn open(&mut self) -> Result<Answer> {
        self.conn().await?;
        let request = self.template.number(self.id, 1);
        let conn = self.conn.as_mut().context("no connection")?;
        conn.write(request).await?;
        let head = conn.head().await?.context("closed before the answer")?;
        let mut seen = Seen::default();
        let ended = conn
            .body(&head, |piece| {
                seen.take(piece, true);
                seen.first_content.is_none()
            })
            .await?;
        conn.shrink();
        match seen.first_content {
            Some(first_content) if !ended => Ok(Answer { first_content }),
            Some(_) | None => bail!("status {}: {}", head.status, String::from_utf8_lossy(&seen.start)),
        }
    }
}

/// What is remembered of a body while it passes by.
#[derive(Default)]
struct Seen {
    start: Vec<u8>,
    tail: Vec<u8>,
    contents: usize,
    first_content: Option<Instant>,
}

impl Seen {
    fn take(&mut self, piece: &[u8], stream: bool) {
        if self.start.len() < KEPT_BYTES {
            self.start.extend_from_slice(&piece[..piece.len().min(KEPT_BYTES - self.start.len())]);
        }
        if !stream {
            return;
        }
        // A mark cut in two by a read goes uncounted unless looked for across the seam.
        let seam = self.tail.last() == MARK.first() && piece.first() == MARK.get(1);
        let found = memchr::memmem::find_iter(piece, MARK).count() + usize::from(seam);
        if found > 0 && self.first_content.is_none() {
            self.first_content = Some(Instant::now());
        }
        self.contents += found;
        if piece.len() >= KEPT_BYTES {
            self.tail.clear();
        } else if self.tail.len() > KEPT_BYTES {
            self.tail.drain(..self.tail.len() - KEPT_BYTES);
        }
        self.tail.extend_from_slice(&piece[piece.len().saturating_sub(KEPT_BYTES)..]);
    }

    fn verdict(self, status: u16, stream: bool) -> Result<Answer> {
        let has = |part: &[u8], what: &[u8]| memchr::memmem::find(part, what).is_some();
        if status != 200 {
            bail!("status {status}: {}", String::from_utf8_lossy(&self.start));
        }
        if !stream {
            // Only the answer's start is kept, and the stub's content is within it in every dialect.
            let whole = has(&self.start, MARK);
            return if whole {
                Ok(Answer { first_content: Instant::now() })
            } else {
                bail!("an answer without content")
            };
        }
        if self.contents != EVENTS || !(has(&self.tail, b"[DONE]") || has(&self.tail, b"message_stop")) {
            let tail = String::from_utf8_lossy(&self.tail);
            bail!("a stream with {} of {EVENTS} contents, ending: {tail}", self.contents);
        }
        Ok(Answer { first_content: self.first_content.context("no content")? })
    }
}

fn clients(target: SocketAddr, ask: &Ask, count: usize, expect: Expect) -> Result<Vec<Client>> {
    // Two runs against one peer must not repeat each other's requests, so client numbers start where the clock says.
    let base = std::time::SystemTime::UNIX_EPOCH.elapsed()?.as_millis() as u64;
    let template = Template::new(ask)?;
    let client = |n| Client {
        id: base.wrapping_mul(7) + n,
        target,
        conn: None,
        template: template.clone(),
        turn: 0,
        stream: ask.stream,
        expect,
        unread: None,
    };
    Ok((0..count as u64).map(client).collect())
}

/// Closed loop: `connections` clients, until `most` requests were sent or `time` has passed. Latency is from send to the
/// whole answer; for streams, to first content.
pub async fn closed(target: SocketAddr, ask: &Ask, connections: usize, most: u64, time: Duration) -> Result<Outcome> {
    closed_loop(clients(target, ask, connections, Expect::Content)?, most, time).await
}

/// The closed loop over turns that every upstream refuses; an answer is the gateway's refusal.
pub async fn refused(target: SocketAddr, ask: &Ask, connections: usize, time: Duration) -> Result<Outcome> {
    closed_loop(clients(target, ask, connections, Expect::Refusal)?, u64::MAX, time).await
}

async fn closed_loop(clients: Vec<Client>, most: u64, time: Duration) -> Result<Outcome> {
    let tally = RefCell::new(Tally::new()?);
    let sent = Cell::new(0u64);
    let until = Instant::now() + time;
    let work = |mut client: Client| {
        let (tally, sent) = (&tally, &sent);
        async move {
            while sent.get() < most && Instant::now() < until {
                sent.set(sent.get() + 1);
                let begun = Instant::now();
                let answer = client.turn().await;
                let mut tally = tally.borrow_mut();
                match answer {
                    Ok(answer) if client.stream => tally.good(answer.first_content - begun),
                    Ok(_) => tally.good(begun.elapsed()),
                    Err(error) => tally.bad(format!("{error:#}")),
                }
            }
        }
    };
    let all: FuturesUnordered<_> = clients.into_iter().map(work).collect();
    within(time + PATIENCE, all.for_each(|()| async {}), &tally).await;
    Ok(tally.into_inner().outcome())
}

/// Open loop: `rate` requests a second for `time` over `connections` clients. A request is due at its place in the
/// schedule and waits for a free client if there is none; its latency counts from when it was due.
pub async fn open(target: SocketAddr, ask: &Ask, connections: usize, rate: f64, time: Duration) -> Result<Outcome> {
    if rate.is_nan() || rate <= 0.0 {
        bail!("the rate must be positive");
    }
    let total = (rate * time.as_secs_f64()) as u64;
    let tally = RefCell::new(Tally::new()?);
    let taken = Cell::new(0u64);
    let due = Arc::new(Semaphore::new(0));
    let mut ready = clients(target, ask, connections, Expect::Content)?;
    for client in &mut ready {
        client.conn().await?;
    }
    let begun = Instant::now();
    let pacer = {
        let due = Arc::clone(&due);
        std::thread::Builder::new()
            .name("pacer".to_owned())
            .spawn(move || pace(&due, begun, rate, total, connections))?
    };
    let work = |mut client: Client| {
        let (tally, taken, due) = (&tally, &taken, &due);
        async move {
            while let Ok(permit) = due.acquire().await {
                permit.forget();
                let n = taken.get();
                if n >= total {
                    return;
                }
                taken.set(n + 1);
                let due = begun + Duration::from_secs_f64(n as f64 / rate);
                let answer = client.turn().await;
                let mut tally = tally.borrow_mut();
                match answer {
                    Ok(answer) if client.stream => tally.good(answer.first_content - due),
                    Ok(_) => tally.good(due.elapsed()),
                    Err(error) => tally.bad(format!("{error:#}")),
                }
            }
        }
    };
    let all: FuturesUnordered<_> = ready.into_iter().map(work).collect();
    within(time + PATIENCE, all.for_each(|()| async {}), &tally).await;
    due.close();
    // The pacer ends by itself at the end of the schedule; a panic in it would have lost requests.
    if tokio::task::spawn_blocking(move || pacer.join().is_err()).await? {
        bail!("the pacer failed");
    }
    Ok(tally.into_inner().outcome())
}

/// Lets requests go as they fall due. On a thread of its own because timers of the runtime tick in milliseconds.
fn pace(due: &Semaphore, begun: Instant, rate: f64, total: u64, connections: usize) {
    let mut issued = 0u64;
    while issued < total && !due.is_closed() {
        let now = ((begun.elapsed().as_secs_f64() * rate) as u64 + 1).min(total);
        if now > issued {
            due.add_permits((now - issued) as usize);
            issued = now;
        }
        let next = begun + Duration::from_secs_f64(issued as f64 / rate);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    // One more each, so that every client sees the end.
    due.add_permits(connections);
}

async fn within(limit: Duration, all: impl Future<Output = ()>, tally: &RefCell<Tally>) {
    if tokio::time::timeout(limit, all).await.is_err() {
        tally.borrow_mut().bad(format!("requests still unanswered after {} s were given up", limit.as_secs()));
    }
}

/// Streams that stay open until this is dropped.
pub struct Held {
    clients: Vec<Client>,
}

impl Held {
    /// How many are open.
    pub fn len(&self) -> usize {
        self.clients.len()
    }

    /// Each reads at most so many bytes, if there are any. Returns how many streams still stand.
    pub fn sip(&mut self, most: usize) -> usize {
        self.clients
            .iter_mut()
            .filter_map(|client| client.conn.as_mut())
            .filter_map(|conn| conn.sip(most).then_some(()))
            .count()
    }
}

/// Opens `count` streams, a few dozen at a time, and returns when each has brought its first content or failed.
pub async fn hold(target: SocketAddr, ask: &Ask, count: usize) -> Result<(Outcome, Held)> {
    hold_clients(clients(target, ask, count, Expect::Content)?).await
}

/// The same, by clients for whom the kernel takes little that they have not read.
pub async fn hold_slowly(target: SocketAddr, ask: &Ask, count: usize) -> Result<(Outcome, Held)> {
    const UNREAD: u32 = 4 << 10;
    let mut clients = clients(target, ask, count, Expect::Content)?;
    clients.iter_mut().for_each(|client| client.unread = Some(UNREAD));
    hold_clients(clients).await
}

async fn hold_clients(clients: Vec<Client>) -> Result<(Outcome, Held)> {
    const AT_ONCE: usize = 64;
    let mut tally = Tally::new()?;
    let mut open = Vec::with_capacity(clients.len());
    let opened = futures_util::stream::iter(clients).map(|mut client| async move {
        let begun = Instant::now();
        let answer = tokio::time::timeout(PATIENCE, client.open()).await;
        (client, begun, answer)
    });
    let mut opened = std::pin::pin!(opened.buffer_unordered(AT_ONCE));
    while let Some((client, begun, answer)) = opened.next().await {
        match answer {
            Ok(Ok(answer)) => {
                tally.good(answer.first_content - begun);
                open.push(client);
            }
            Ok(Err(error)) => tally.bad(format!("{error:#}")),
            Err(_) => tally.bad("no first content in time".to_owned()),
        }
        if tally.failed > 100 {
            break;
        }
    }
    Ok((tally.outcome(), Held { clients: open }))
}

/// `count` streams at once, each to its end: how long first content takes when many arrive together.
pub async fn burst(target: SocketAddr, ask: &Ask, count: usize) -> Result<Outcome> {
    closed(target, ask, count, count as u64, PATIENCE).await
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
