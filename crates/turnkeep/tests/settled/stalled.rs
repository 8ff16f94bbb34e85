//! Clients that do not read, and clients that are still there when the gateway is to stop.
//!
//! How long a client may be slow is no key of the configuration: that it is let go after its minute is shown with time
//! that is the test's own (the engine's tests); here is what happens until then.

use crate::support::binary;
use crate::support::client::{Client, turn_bytes};
use crate::support::dialects::{CHAT, assert_broke_off, assert_refused, letter, saying};
use crate::support::world::{Plan, lab_of_each, ledger, over_each};
use crate::support::*;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::process::Child;

/// One word of these answers, and how many there are: far more than all sockets on the way can hold.
const WORD: usize = 16 << 10;
const WORDS: u32 = 2_000;

fn pid(child: &Child) -> i32 {
    i32::try_from(child.id().expect("it runs")).unwrap()
}

/// Bytes of the process's own memory that are in use.
fn resident(child: &Child) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid(child))).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

async fn asking_and_not_reading(pair: Pair, addr: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    let mut client = socket.connect(addr).await.unwrap();
    let headers = [("connection", "close")];
    client.write_all(&turn_bytes(pair, &headers, saying(pair, "go").to_string().as_bytes())).await.unwrap();
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_stops_the_upstream_and_costs_little_memory() {
    // One of them translated. A Responses stream says all of its text again in one event, and no event may be so long. One
    // after the other: what each costs is its process's own memory.
    for pair in [
        CHAT,
        Pair { client: Dialect::Messages, ..CHAT },
        Pair { client: Dialect::Gemini, upstream: Dialect::Messages, stream: true },
    ] {
        let text = Some(format!("{} ", "x".repeat(WORD - 1)).repeat(WORDS as usize));
        let gate_at = Some(Point::AfterWords(WORDS - 10));
        let lab = lab([Rule { text, gate: Some("near its end".into()), gate_at, ..Rule::default() }]).await;
        lab.release("near its end");
        let folder = tempfile::tempdir().unwrap();
        let (child, addr) = binary::serve(&Plan::over([Up::at(pair.upstream, &lab)]), folder.path(), None).await;
        let mut clients = Vec::new();
        let mut grown = Vec::new();
        for _ in 0..4 {
            let before = resident(&child);
            clients.push(asking_and_not_reading(pair, addr).await);
            soon(lab.wait_for_requests(clients.len())).await;
            // That nothing more happens takes its time to be seen; all of it would be there in a tenth of that.
            let all = tokio::time::timeout(Duration::from_secs(1), lab.wait_at_gate("near its end", 1)).await;
            assert!(all.is_err(), "{pair:?}: the upstream could write all of it");
            grown.push(resident(&child).saturating_sub(before) >> 10);
        }
        assert_eq!(lab.in_flight(), clients.len(), "{pair:?}: and has not given up");
        // The allocator keeps what it had for the passing of some megabytes; the four answers are 128 MiB.
        assert!(grown.iter().sum::<usize>() < 72 << 10, "{pair:?}: {grown:?} KiB");
        let mut client = clients.swap_remove(0);
        // Read, it goes on to its end.
        let mut reply = Vec::new();
        soon(client.read_to_end(&mut reply)).await.unwrap();
        assert!(reply.len() > WORD * WORDS as usize && reply.ends_with(b"0\r\n\r\n"), "{} bytes", reply.len());
        // The lab learns of it in its own time.
        let mut looks = tokio::time::interval(Duration::from_millis(5));
        soon(async {
            while lab.in_flight() != clients.len() {
                looks.tick().await;
            }
        })
        .await;
        assert_eq!(lab.aborted(), 0, "{pair:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_told_to_stop_ends_what_outlasts_the_grace_as_its_dialect_does_and_closes_every_entry() {
    let text = Some("one two three".into());
    let at = Some(Point::AfterWords(2));
    let held = Rule { text, gate: Some("held".into()), ..Rule::default() };
    let script = || Script::of([Rule { stream: Some(true), gate_at: at, ..held.clone() }, held.clone()]);
    let labs = lab_of_each(script).await;
    let mut plan = over_each(&labs, |up| up.slots(64));
    plan.server = "shutdown_grace = \"300ms\"".into();
    let folder = tempfile::tempdir().unwrap();
    let (mut child, addr) = binary::serve(&plan, folder.path(), None).await;
    let mut clients = Vec::new();
    for pair in pairs() {
        let mut body = saying(pair, "Hello there");
        body["model"] = letter(pair.upstream).into();
        let mut client = Client::tcp(addr).await;
        client.ask_with(pair, &[], body.to_string().as_bytes()).await;
        if pair.stream {
            client.until("two ").await;
        }
        clients.push((pair, client));
    }
    for lab in &labs {
        soon(lab.wait_at_gate("held", 8)).await;
    }
    let id = rustix::process::Pid::from_raw(pid(&child)).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    for (pair, mut client) in clients {
        let reply = client.reply().await;
        let message = match pair.stream {
            true => assert_broke_off(pair, &reply, "one two "),
            false => assert_refused(pair, &reply, 503),
        };
        assert!(message.contains("shutting down"), "{pair:?}: {message}");
    }
    assert!(soon(child.wait()).await.unwrap().success(), "it ends in order");
    for lab in &labs {
        soon(lab.wait_aborted(8)).await;
    }
    let entries = ledger(folder.path()).await;
    assert_eq!(entries.len(), pairs().len());
    for entry in &entries {
        let closed = entry.closed.as_ref().expect("no entry is left open");
        assert_eq!((closed.outcome.as_str(), closed.exact), ("interrupted", false), "{entry:?}");
    }
}
