//! A client of a run: it asks, turn by turn, behaves as the plan has it, and writes down what it was told.

use crate::ask::{self, Exchange};
use crate::clock::Clock;
use crate::gateway::key;
use crate::net::Net;
use crate::pipe::Befalls;
use crate::plan::{Client, Talk, Turn};
use crate::reply::{End, Told};
use crate::trace::Trace;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// No reply may take longer: the longest turn, and what comes on top.
const LONGEST: Duration = Duration::from_secs(2 * 60 * 60);

/// Reads of a slow client that it waits before.
const SLOW_READS: u32 = 60;

/// What became of one request of a client.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub talk: usize,
    pub turn: usize,
    pub caller: u8,
    pub asked: String,
    /// The gateway's id of the turn, and its status, once the reply's head has come.
    pub head: Option<(String, u16)>,
    /// What `x-turnkeep-cache` said.
    pub cache: String,
    /// Its reply was cut off by a reset at a byte that it has.
    pub resets: bool,
    /// The client leaves after a time, whatever it has.
    pub leaves: bool,
    /// The client stays to the end, and no gateway went away meanwhile.
    pub stays: bool,
    /// Its connection was lost when a gateway went away, or never made.
    pub refused: bool,
    /// The questions of the history that it sent.
    pub history: Vec<String>,
    pub text: String,
    pub end: End,
    /// The client has read the reply to its end.
    pub read_whole: bool,
    pub illegal: Option<String>,
    pub took: Duration,
    pub began: Instant,
}

/// The clients of a run, and what became of them.
pub struct Clients {
    pub net: Arc<Net>,
    pub clock: Arc<Clock>,
    pub trace: Arc<Trace>,
    pub outcomes: Mutex<Vec<Outcome>>,
}

/// The question of a turn: no other turn's holds its first word.
pub fn question(talk: usize, turn: usize, caller: u8, words: u16) -> String {
    let mut text = format!("q{talk}x{turn}x of c{caller}:");
    match words {
        0 => text.push_str(" nobody answers this"),
        1..200 => (0..words).for_each(|word| text.push_str(&format!(" w{word}"))),
        200..1000 => text.push_str(" tell 300 words"),
        _ => text.push_str(" tell 2000 words"),
    }
    text
}

impl Clients {
    /// Goes through a talk.
    pub async fn go(self: Arc<Self>, number: usize, talk: Talk) {
        let mut before: Vec<Exchange> = Vec::new();
        for (at, turn) in talk.turns.iter().enumerate() {
            let wait = turn.at_ms.saturating_sub(self.clock.elapsed_ms());
            sleep(Duration::from_millis(wait)).await;
            let asked = question(number, at, talk.caller, turn.words);
            let ask = || self.clone().ask(number, at, &talk, turn, &before, &asked);
            let outcome = match turn.client {
                Client::Twice => {
                    let (first, _second) = tokio::join!(biased; ask(), ask());
                    first
                }
                Client::Returns(_) => {
                    let first = ask().await;
                    if first.read_whole {
                        first
                    } else {
                        sleep(Duration::from_secs(2)).await;
                        let again = Turn { client: Client::Stays, ..turn.clone() };
                        self.clone().ask(number, at, &talk, &again, &before, &asked).await
                    }
                }
                Client::Again => {
                    let first = ask().await;
                    sleep(Duration::from_secs(1)).await;
                    let _again = ask().await;
                    first
                }
                Client::Stays | Client::LeavesAfter(_) | Client::ResetsAt(_) | Client::Slow(_) => ask().await,
            };
            if let (End::Finished(_), true) = (&outcome.end, outcome.read_whole) {
                before.push(Exchange { asked, answered: outcome.text });
            }
        }
    }

    async fn ask(
        self: Arc<Self>,
        number: usize,
        at: usize,
        talk: &Talk,
        turn: &Turn,
        before: &[Exchange],
        asked: &str,
    ) -> Outcome {
        let begun = Instant::now();
        let mut outcome = Outcome {
            talk: number,
            turn: at,
            caller: talk.caller,
            asked: asked.to_owned(),
            head: None,
            cache: String::new(),
            resets: matches!(turn.client, Client::ResetsAt(_)),
            leaves: matches!(turn.client, Client::LeavesAfter(_) | Client::Returns(_)),
            stays: false,
            refused: false,
            history: before.iter().map(|exchange| exchange.asked.clone()).collect(),
            text: String::new(),
            end: End::Open,
            read_whole: false,
            illegal: None,
            took: Duration::ZERO,
            began: begun,
        };
        let mut told = Told::of(talk.dialect);
        self.trace.note(format_args!("client {number}.{at} asks {}", talk.model));
        let exchange = self.exchange(talk, turn, before, asked, &mut outcome, &mut told);
        let ended = match turn.client {
            Client::LeavesAfter(ms) | Client::Returns(ms) => timeout(Duration::from_millis(ms), exchange).await.ok(),
            Client::Stays | Client::ResetsAt(_) | Client::Slow(_) | Client::Twice | Client::Again => {
                timeout(LONGEST, exchange).await.ok()
            }
        };
        outcome.read_whole = matches!(ended, Some(true));
        outcome.took = begun.elapsed();
        outcome.refused = self.net.ended_since(begun);
        // Who reads too slowly is taken for gone.
        let patient = !outcome.leaves && !outcome.resets && !matches!(turn.client, Client::Slow(_));
        outcome.stays = patient && !outcome.refused;
        (outcome.end, outcome.illegal, outcome.text) = (told.end(), told.illegal.take(), told.text);
        self.trace.note(format_args!(
            "client {number}.{at} is told {} bytes, {:?}, whole {}",
            outcome.text.len(),
            outcome.end,
            outcome.read_whole
        ));
        self.outcomes.lock().push(outcome.clone());
        outcome
    }

    /// True: the reply was read to its end.
    async fn exchange(
        &self,
        talk: &Talk,
        turn: &Turn,
        before: &[Exchange],
        asked: &str,
        outcome: &mut Outcome,
        told: &mut Told,
    ) -> bool {
        let back = match turn.client {
            Client::ResetsAt(bytes) => Some(Befalls::Reset(bytes)),
            Client::Stays
            | Client::LeavesAfter(_)
            | Client::Returns(_)
            | Client::Slow(_)
            | Client::Twice
            | Client::Again => None,
        };
        let Some((link, resets)) = self.net.client(back) else { return false };
        outcome.resets |= resets;
        let Ok((mut sender, connection)) = http1::handshake(TokioIo::new(link)).await else { return false };
        // It ends with this function: a client that leaves takes its connection along.
        let mut serving = tokio::task::JoinSet::new();
        serving.spawn(connection);
        let (path, body) = ask::request(talk.dialect, &talk.model, talk.stream, before, asked);
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header("host", "gateway.sim")
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", key(talk.caller)));
        if let Some(idempotency) = turn.idempotency {
            request = request
                .header("idempotency-key", format!("i{idempotency}-{}", asked.split(' ').next().unwrap_or_default()));
        }
        let Ok(request) = request.body(Full::new(Bytes::from(body.to_string()))) else { return false };
        let Ok(reply) = sender.send_request(request).await else { return false };
        let header = |name: &str| reply.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let status = reply.status().as_u16();
        outcome.head = Some((header("x-turnkeep-turn").to_owned(), status));
        outcome.cache = header("x-turnkeep-cache").to_owned();
        let streams = header("content-type").starts_with("text/event-stream");
        let mut body = reply.into_body();
        let (mut whole, mut reads) = (Vec::new(), 0);
        loop {
            if let Client::Slow(ms) = turn.client
                && reads < SLOW_READS
            {
                reads += 1;
                sleep(Duration::from_millis(ms)).await;
            }
            match body.frame().await {
                Some(Ok(frame)) => {
                    let bytes = frame.into_data().unwrap_or_default();
                    if streams { told.take(&bytes) } else { whole.extend_from_slice(&bytes) }
                }
                Some(Err(_)) => return false,
                None => break,
            }
        }
        if streams {
            told.close()
        } else {
            told.whole(status, &whole)
        }
        true
    }
}
