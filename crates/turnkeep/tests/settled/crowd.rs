//! Two thousand clients that vanish at once: within five seconds nothing of theirs is left in the gateway.

use crate::support::client::turn_bytes;
use crate::support::dialects::{letter, saying};
use crate::support::world::{lab_of_each, over_each};
use crate::support::*;
use futures_util::stream::{self, StreamExt};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use turnkeep_lab::Lab;

/// Where the numbers of each kind of client end.
const WHOLE: usize = 100;
const STUCK: usize = 200;
const HALF_WAY: usize = 1_200;
const WAITING: usize = 2_000;
/// Slots of the one account of each of the four upstreams: together as many as are stuck or half way.
const SLOTS: u32 = 275;
const SECRET: &str = "a-key-of-a-crowd";

/// What a client waits for before all vanish.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Its window is full and it reads nothing; the upstream has ended.
    Whole,
    /// The same, and the upstream is still at it.
    Stuck,
    /// It has read the first words of a stream that goes on.
    HalfWay,
    /// It has no slot.
    Waiting,
}

fn script() -> Script {
    let gate_at = Some(Point::AfterWords(2));
    let half = Rule { text: Some("one two three".into()), gate: Some("half".into()), gate_at, ..Rule::default() };
    // Far more than a window of some kilobytes.
    let text = Some(format!("{} ", "x".repeat(4_000)).repeat(40));
    let gate_at = Some(Point::BeforeTerminal);
    let stuck = Rule { text: text.clone(), gate: Some("stuck".into()), gate_at, ..Rule::default() };
    let of = |word: &str, rule| Rule { body_contains: Some(word.into()), ..rule };
    Script::of([of("half", half), of("stuck", stuck), of("whole", Rule { text, ..Rule::default() })])
}

async fn one(number: usize, addr: SocketAddr) -> (usize, TcpStream) {
    let kind = match number {
        ..WHOLE => Kind::Whole,
        WHOLE..STUCK => Kind::Stuck,
        STUCK..HALF_WAY => Kind::HalfWay,
        _ => Kind::Waiting,
    };
    let (client, upstream) = (Dialect::ALL[number / 4 % 4], Dialect::ALL[number % 4]);
    // What is not streamed has no half way, and waits for its slot just so.
    let stream = kind != Kind::Waiting || (number / 16).is_multiple_of(2);
    let pair = Pair { client, upstream, stream };
    let words = match kind {
        Kind::HalfWay => "half",
        Kind::Stuck => "stuck",
        Kind::Whole => "whole",
        Kind::Waiting => "never",
    };
    let mut body = saying(pair, &format!("{words} {number}"));
    body["model"] = letter(upstream).into();
    let bearer = format!("Bearer {SECRET}");
    let bytes = turn_bytes(pair, &[("authorization", &bearer)], body.to_string().as_bytes());
    let socket = TcpSocket::new_v4().unwrap();
    if matches!(kind, Kind::Whole | Kind::Stuck) {
        socket.set_recv_buffer_size(4 << 10).unwrap();
    }
    let mut tcp = soon(socket.connect(addr)).await.unwrap();
    tcp.write_all(&bytes).await.unwrap();
    if kind == Kind::HalfWay {
        let (mut read, mut chunk) = (Vec::new(), [0; 2_048]);
        while !String::from_utf8_lossy(&read).contains("two ") {
            let count = soon(tcp.read(&mut chunk)).await.unwrap();
            assert!(count > 0, "{}", String::from_utf8_lossy(&read));
            read.extend_from_slice(&chunk[..count]);
        }
    }
    (number, tcp)
}

async fn all(numbers: std::ops::Range<usize>, addr: SocketAddr) -> Vec<(usize, TcpStream)> {
    stream::iter(numbers).map(|number| one(number, addr)).buffer_unordered(64).collect().await
}

/// What is left of turns, by name; the names of what is 0 are left out.
fn left_over(counters: &Value, labs: &[Lab; 4]) -> Vec<(String, u64)> {
    let accounts = counters["accounts"].as_array().unwrap();
    let caller = counters["callers"].as_array().unwrap().iter().find(|caller| caller["name"] == "crowd").unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let all = [
        ("turns open", number(&counters["now"]["turns_open"])),
        ("recorded bytes", number(&counters["now"]["recorded_bytes"])),
        ("waiting", number(&counters["waiting"])),
        ("in flight", accounts.iter().map(|account| number(&account["in_flight"])).sum()),
        ("the caller's turns", number(&caller["in_flight"])),
        ("the caller's tokens set aside", number(&caller["reserved"]["tokens"])),
        ("the upstreams' calls", labs.iter().map(|lab| lab.in_flight() as u64).sum()),
    ];
    all.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_five_seconds_after_two_thousand_clients_have_vanished_at_once() {
    let labs = &lab_of_each(script).await;
    let mut plan = over_each(labs, |up| up.slots(SLOTS)).tuning("queue_places = 1000\nmax_queue_wait = \"10m\"");
    plan.unix_too = true;
    let limits = "max_in_flight = 5000\nbudget = { tokens = 1000000000, per = \"month\" }";
    plan.more = format!("[[keys]]\nname = \"crowd\"\nsecret = {SECRET:?}\n{limits}\n");
    // Its start raises this process's limit on open files; the crowd needs four of them for each client.
    let world = World::of(&plan).await;
    let mut clients = all(0..WHOLE, world.addr()).await;
    for lab in labs {
        soon(lab.wait_for_requests(WHOLE / 4)).await;
        soon(lab.wait_idle()).await;
    }
    world.until_at_rest().await;
    clients.extend(all(WHOLE..HALF_WAY, world.addr()).await);
    for lab in labs {
        soon(lab.wait_at_gate("stuck", (STUCK - WHOLE) / 4)).await;
    }
    clients.extend(all(HALF_WAY..WAITING, world.addr()).await);
    let counters = world.until("a full house", |counters| counters["waiting"] == WAITING - HALF_WAY).await;
    assert_eq!(clients.len(), 2_000);
    assert_eq!(counters["now"]["turns_open"], 2_000, "nobody has what it asked for: {counters:#}");
    assert!(counters["now"]["recorded_bytes"].as_u64().unwrap() > 1_000_000, "{counters:#}");
    assert_eq!(left_over(&counters, labs).len(), 7, "all of it is in use: {counters:#}");

    let vanished = Instant::now();
    let mut closing = Vec::new();
    // Who waits goes first: a slot that comes free on the way finds few to take it.
    for (number, tcp) in clients.into_iter().rev() {
        let socket = socket2::SockRef::from(&tcp);
        if number % 2 == 0 {
            socket.set_linger(Some(Duration::ZERO)).unwrap();
        } else if number >= WHOLE {
            // A FIN and no reset, whatever is unread. One that has been sent all of its reply may do that and still read:
            // of those, all go for good.
            socket.shutdown(std::net::Shutdown::Write).unwrap();
            closing.push(tcp);
        }
    }
    let counters = world.until("an empty house", |counters| left_over(counters, labs).is_empty()).await;
    let took = vanished.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}: {counters:#}");
    let ends = ["client_gone_before_answer", "client_gone_mid_answer", "undelivered", "delivered"];
    let ends = ends.map(|name| counters[name].as_u64().unwrap());
    assert_eq!(ends.iter().sum::<u64>(), 2_000, "each turn has one end: {counters:#}");
    drop(closing);
}
