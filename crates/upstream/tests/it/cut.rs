//! Turns that are cut short after so many polls, those of the send and those of the answer counted together.

use crate::polls::Polls;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use turnkeep_dialect::event::{Delta, Event};
use turnkeep_engine::ports::{Happening, NativeAnswer, SendFault};
use turnkeep_policy::conversations::Conversation;

/// What there was of a turn before it was dropped.
#[derive(Debug, Default)]
pub struct Cut {
    pub happenings: usize,
    pub text: String,
    /// Its end was told before.
    pub whole: bool,
    pub conversation: Option<Conversation>,
}

/// Polls a turn until it has had its polls, or so many things have happened, and drops it. No conversation may be given
/// before its end.
pub async fn cut(
    mut sending: BoxFuture<'_, Result<Box<dyn NativeAnswer>, SendFault>>,
    mut polls: Polls,
    enough: usize,
) -> Cut {
    let mut cut = Cut::default();
    let Some(sent) = polls.ready(|cx| sending.poll_unpin(cx)).await else { return cut };
    let mut answer = sent.unwrap_or_else(|failed| panic!("{failed:?}"));
    while cut.happenings < enough {
        let Some(next) = polls.ready(|cx| answer.poll_next(cx)).await else { break };
        cut.happenings += 1;
        match next.unwrap().unwrap_or_else(|fault| panic!("{fault}")) {
            Happening::Event(Event::End) => {
                cut.whole = true;
                cut.conversation = answer.conversation();
                break;
            }
            Happening::Event(Event::Delta { delta: Delta::Text(text), .. }) => {
                cut.text.push_str(&text);
                assert_eq!(answer.conversation(), None, "not before its end");
            }
            Happening::Event(_) | Happening::Alive | Happening::Units(_) => {
                assert_eq!(answer.conversation(), None, "not before its end");
            }
        }
    }
    cut
}

/// What must happen soon.
pub async fn soon<T>(what: &str, happens: impl Future<Output = T>) -> T {
    let happened = tokio::time::timeout(Duration::from_secs(10), happens).await;
    happened.unwrap_or_else(|_| panic!("it does not happen: {what}"))
}

/// A connection of the test's own, made now and served to its end: a server takes connections in the order in which they
/// were made, so it has taken all that were made before.
pub async fn taken_all_before(server: SocketAddr) {
    let mut last = TcpStream::connect(server).await.unwrap();
    last.write_all(b"GET /last HTTP/1.1\r\nhost: lab\r\nconnection: close\r\n\r\n").await.unwrap();
    last.read_to_end(&mut Vec::new()).await.unwrap();
}
