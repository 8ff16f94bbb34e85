//! A turn whose way is drawn: which dialects, streamed or not, which accounts fail it and how, and when its client leaves.
//!
//! Its number is its model's name, which the gateway passes on and the ledger names, and stands in its `traceparent`, which
//! crosses to the upstream and is there even where the body has not arrived whole. So an entry and a request that the lab
//! saw are known to be the same turn's without the gateway's help.

use crate::chance::Chance;
use crate::support::client::turn_bytes;
use crate::support::dialects::{letter, saying};
use crate::support::*;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The accounts at each upstream.
pub const ACCOUNTS: [&str; 3] = ["a", "b", "c"];

/// Which faults a turn may meet, by the word in its request that an account takes for it.
const FAULTS: [&str; 10] = ["reset", "close", "cutoff", "torn", "e500", "e529", "e400", "noend", "badjson", "errorin"];

/// A fault after which the upstream goes on to its end all the same: its meter runs, but nobody can read the answer.
pub fn breaks_the_answer(word: &str) -> bool {
    word == "badjson"
}

fn fault(word: &str) -> Rule {
    let error = |status| ErrorSpec { status: Some(status), ..ErrorSpec::default() };
    let of = |fault| Rule { fault: Some(fault), ..Rule::default() };
    let refused = |status| Rule { error: Some(error(status)), ..Rule::default() };
    match word {
        "reset" => of(Fault::ResetBeforeReply),
        "close" => of(Fault::CloseBeforeReply),
        "cutoff" => of(Fault::CloseMidStream),
        "torn" => of(Fault::ResetMidStream),
        "e500" => refused(500),
        "e529" => refused(529),
        "e400" => refused(400),
        "noend" => of(Fault::NoTerminal),
        "badjson" => of(Fault::BadJson),
        "errorin" => of(Fault::ErrorInStream),
        other => panic!("no fault: {other}"),
    }
}

/// What a lab does with such turns.
pub fn script() -> Script {
    let mut rules = Vec::new();
    for word in FAULTS {
        for name in ACCOUNTS {
            let body_contains = Some(format!("{word}-{name}"));
            rules.push(Rule { account: Some(format!("secret-{name}")), body_contains, ..fault(word) });
        }
    }
    let text = |count| Some((1..=count).map(|n| format!("w{n} ")).collect::<String>());
    rules.push(Rule { body_contains: Some("slowly".into()), word_delay_ms: 2, text: text(20), ..Rule::default() });
    rules.push(Rule { body_contains: Some("late".into()), before_headers_delay_ms: 8, ..Rule::default() });
    rules.push(Rule { body_contains: Some("long".into()), text: text(60), ..Rule::default() });
    Script::of(rules)
}

/// When a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    Never,
    /// So long after its request has been sent.
    After(Duration),
    /// When it has read so many bytes of the reply.
    HavingRead(usize),
}

/// A turn as it was drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    pub number: u64,
    pub pair: Pair,
    /// The faults it meets: `word-account`.
    pub faults: Vec<String>,
    pub leaves: Leaves,
    pub how: Leave,
    words: String,
}

impl Drawn {
    pub fn new(seed: u64, number: u64) -> Drawn {
        let mut chance = Chance::of(seed, number);
        let (client, upstream) = (chance.one(&Dialect::ALL), chance.one(&Dialect::ALL));
        let pair = Pair { client, upstream, stream: chance.percent(60) };
        let mut faults = Vec::new();
        if chance.percent(40) {
            let word = chance.one(&FAULTS);
            // Mostly the others answer; now and then every account fails.
            let failing = chance.one(&[1, 1, 2, 2, 3]);
            let first = chance.below(3);
            let names = (first..first + failing).map(|at| ACCOUNTS[usize::try_from(at % 3).unwrap()]);
            faults.extend(names.map(|name| format!("{word}-{name}")));
        }
        let leaves = match chance.below(10) {
            0 => Leaves::After(Duration::ZERO),
            1 | 2 => Leaves::After(Duration::from_micros(chance.below(20_000))),
            3 => Leaves::HavingRead(usize::try_from(chance.below(4_000)).unwrap()),
            _ => Leaves::Never,
        };
        let pace = chance.one(&["", "slowly", "late", "long"]);
        let filler = "and ".repeat(usize::try_from(chance.below(40)).unwrap());
        let words = format!("Turn {number}: {} {pace} {filler}", faults.join(" "));
        Drawn { number, pair, faults, leaves, how: chance.one(&Leave::BOTH), words }
    }

    /// The model's name: its first letter decides the upstream.
    pub fn model(&self) -> String {
        format!("{}{:06}", letter(self.pair.upstream), self.number)
    }

    fn bytes(&self, bearer: &str) -> Vec<u8> {
        let mut body = saying(self.pair, &self.words);
        body["model"] = self.model().into();
        let trace = format!("00-{:032x}-00000000000000ff-01", self.number);
        let headers = [("authorization", bearer), ("traceparent", &*trace), ("connection", "close")];
        turn_bytes(self.pair, &headers, body.to_string().as_bytes())
    }
}

/// The turn's number in a `traceparent`.
pub fn number_in(trace: &str) -> u64 {
    u64::from_str_radix(trace.split('-').nth(1).unwrap(), 16).unwrap()
}

/// How a turn went for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// Its reply, of this status, was read to its end.
    Told(u16),
    /// The client left.
    Left,
    /// The connection broke before the reply's end: the gateway was killed.
    Broken,
}

/// Asks for the turn.
pub async fn take(drawn: &Drawn, addr: SocketAddr, bearer: &str) -> Went {
    let Ok(mut tcp) = TcpStream::connect(addr).await else { return Went::Broken };
    let (mut reply, mut chunk) = (Vec::new(), [0; 8 << 10]);
    let talk = async {
        if tcp.write_all(&drawn.bytes(bearer)).await.is_err() {
            return Went::Broken;
        }
        if let Leaves::After(time) = drawn.leaves {
            tokio::time::sleep(time).await;
            return Went::Left;
        }
        loop {
            if matches!(drawn.leaves, Leaves::HavingRead(bytes) if reply.len() >= bytes) {
                return Went::Left;
            }
            match tcp.read(&mut chunk).await {
                Ok(read @ 1..) => reply.extend_from_slice(&chunk[..read]),
                Ok(0) | Err(_) => break,
            }
        }
        told(&reply)
    };
    let went = tokio::time::timeout(crate::support::world::BOUND, talk).await.expect("a turn ends");
    if went == Went::Left && drawn.how == Leave::Reset {
        let _ = socket2::SockRef::from(&tcp).set_linger(Some(Duration::ZERO));
    }
    went
}

/// Whether a reply is whole as HTTP says it.
fn told(reply: &[u8]) -> Went {
    let text = String::from_utf8_lossy(reply);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return Went::Broken };
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let whole = match length {
        Some(length) => body.len() == length.parse::<usize>().unwrap(),
        None => body.ends_with("0\r\n\r\n"),
    };
    if whole { Went::Told(status) } else { Went::Broken }
}
