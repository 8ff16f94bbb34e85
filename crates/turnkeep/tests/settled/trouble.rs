//! The store in trouble under a gateway that runs: another process has locked its file, or the file may not grow. What is
//! refused and what goes on, what probes and counters say, and that it is over when the trouble is, without a restart.

use crate::support::client::{Client, request_bytes};
use crate::support::dialects::{CHAT, assert_refused, assert_said, letter};
use crate::support::world::{BOUND, Plan, database, lab_of_each, over_each};
use crate::support::*;
use futures_util::future::join_all;
use rusqlite::Connection;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use turnkeep_lab::Lab;

const USAGE: UsageSpec =
    UsageSpec { prompt: Some(31), completion: Some(7), cached: None, cache_write: None, reasoning: None };

fn counted() -> Rule {
    Rule { text: Some("one two three".into()), usage: USAGE, ..Rule::default() }
}

/// One model for each kind of upstream.
fn plan(labs: &[Lab; 4], on_failure: &str) -> Plan {
    let mut plan = over_each(labs, |up| up);
    plan.store = format!("on_failure = {on_failure:?}");
    plan
}

async fn four_labs() -> [Lab; 4] {
    lab_of_each(|| Script::of([counted()])).await
}

/// A turn of each kind, all at once.
async fn turns(addr: SocketAddr) -> Vec<(Pair, Reply)> {
    join_all(pairs().into_iter().map(|pair| async move {
        let mut body = request(pair);
        body["model"] = letter(pair.upstream).into();
        let mut client = Client::tcp(addr).await;
        client.ask_with(pair, &[], body.to_string().as_bytes()).await;
        (pair, client.reply().await)
    }))
    .await
}

async fn get(addr: SocketAddr, path: &str) -> Reply {
    let mut client = Client::tcp(addr).await;
    client.write(&request_bytes("GET", path, &[], b"")).await;
    client.reply().await
}

async fn until_ready(addr: SocketAddr) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let end = tokio::time::Instant::now() + BOUND;
    while get(addr, "/readyz").await.status != 200 {
        looks.tick().await;
        assert!(tokio::time::Instant::now() < end, "readiness comes back");
    }
}

/// Every turn is refused in its dialect, and readiness says why.
async fn refuses(addr: SocketAddr) {
    for (pair, reply) in turns(addr).await {
        assert_refused(pair, &reply, 503);
        assert!(reply.text().contains("store_unavailable"), "{pair:?} {}", reply.text());
    }
    let ready = get(addr, "/readyz").await;
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains("the store cannot write"), "{}", ready.text());
}

async fn serves(addr: SocketAddr) {
    for (pair, reply) in turns(addr).await {
        assert_said(pair, &reply, "one two three");
    }
}

/// Takes the file for itself, as a careless program does.
fn locked(world: &World) -> Connection {
    let outside = Connection::open(database(world.folder())).unwrap();
    outside.busy_timeout(BOUND).unwrap();
    outside.execute_batch("BEGIN EXCLUSIVE").unwrap();
    outside
}

fn requests(labs: &[Lab; 4]) -> usize {
    labs.iter().map(|lab| lab.requests().len()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_store_refuses_turns_before_anything_is_sent_and_serves_again_by_itself() {
    let labs = four_labs().await;
    let world = World::of(&plan(&labs, "refuse")).await;
    serves(world.addr()).await;
    until_ready(world.addr()).await;
    let outside = locked(&world);
    refuses(world.addr()).await;
    assert_eq!(requests(&labs), 32, "nothing was sent");
    let counters = world.until_at_rest().await;
    assert_eq!(counters["unrecorded_turns"], 0);
    outside.execute_batch("ROLLBACK").unwrap();
    until_ready(world.addr()).await;
    serves(world.addr()).await;
    let counters = world.until_at_rest().await;
    assert_eq!((&counters["ledger_lost"], counters["config"]["reloads"].as_u64()), (&0.into(), Some(0)));
    let sent = |entry: &&turnkeep_store::LedgerEntry| entry.closed.as_ref().unwrap().outcome == "completed";
    let entries = world.into_ledger().await;
    assert_eq!(entries.iter().filter(sent).count(), 64);
    for entry in entries.iter().filter(|entry| !sent(entry)) {
        let closed = entry.closed.as_ref().unwrap();
        assert_eq!((closed.exact, closed.usage.total()), (true, 0), "what was not sent costs nothing: {entry:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_serves_on_writes_what_it_could_not_when_the_store_is_back() {
    let labs = four_labs().await;
    let world = World::of(&plan(&labs, "serve")).await;
    let outside = locked(&world);
    serves(world.addr()).await;
    let ready = get(world.addr(), "/readyz").await;
    assert_eq!((ready.status, ready.text().contains("the store cannot write")), (503, true), "{}", ready.text());
    let counters = world.until("all told", |counters| counters["unrecorded_turns"] == 32).await;
    assert_eq!((&counters["ledger_lost"], requests(&labs)), (&0.into(), 32));
    let written: i64 = outside.query_row("SELECT count(*) FROM ledger", [], |row| row.get(0)).unwrap();
    assert_eq!(written, 0, "nothing can be written yet");
    outside.execute_batch("ROLLBACK").unwrap();
    until_ready(world.addr()).await;
    serves(world.addr()).await;
    let counters = world.until_at_rest().await;
    assert_eq!((&counters["unrecorded_turns"], &counters["ledger_lost"]), (&32.into(), &0.into()));
    let entries = world.into_ledger().await;
    assert_eq!(entries.len(), 64, "each once");
    for entry in entries {
        let closed = entry.closed.as_ref().unwrap();
        let tokens = (closed.outcome.as_str(), closed.exact, closed.usage.input, closed.usage.output);
        assert_eq!(tokens, ("completed", true, 31, 7), "{entry:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_end_falls_into_the_trouble_gets_it_when_the_store_is_back() {
    let gate_at = Some(Point::AfterWords(2));
    for on_failure in ["refuse", "serve"] {
        let lab = lab([Rule { gate: Some("held".into()), gate_at, ..counted() }]).await;
        let mut plan = Plan::over([Up::at(CHAT.upstream, &lab)]);
        plan.store = format!("on_failure = {on_failure:?}");
        let world = World::of(&plan).await;
        let mut client = world.client().await;
        client.ask(CHAT).await;
        client.until("two ").await;
        let outside = locked(&world);
        lab.release("held");
        assert_said(CHAT, &client.reply().await, "one two three");
        world.until_at_rest().await;
        outside.execute_batch("ROLLBACK").unwrap();
        until_ready(world.addr()).await;
        let counters: Value = world.until_at_rest().await;
        assert_eq!((&counters["unrecorded_turns"], &counters["ledger_lost"]), (&0.into(), &0.into()));
        let entries = world.into_ledger().await;
        let closed = entries[0].closed.as_ref().unwrap();
        assert_eq!((entries.len(), closed.outcome.as_str(), closed.exact), (1, "completed", true), "{on_failure}");
    }
}

/// The binary as a process that is told of a file's limit by an error, and not by a signal that ends it.
async fn served(plan: &Plan, folder: &Path) -> (Child, SocketAddr) {
    let file = folder.join("turnkeep.toml");
    std::fs::write(&file, plan.toml(folder)).unwrap();
    let mut child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_turnkeep"), "serve", "--config"])
        .arg(&file)
        .env("TURNKEEP_EGRESS", "loopback")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut line = String::new();
    soon(BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line)).await.unwrap();
    let addr = line.trim().strip_prefix("listening on http://").expect(&line).parse().unwrap();
    (child, addr)
}

/// A limit on the size of files stands in for a full disk: writes beyond it fail, and raised it is over.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_may_not_grow_refuses_turns_and_serves_again_by_itself() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let labs = four_labs().await;
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&labs, "refuse");
    let (child, addr) = served(&plan, folder.path()).await;
    serves(addr).await;
    let id = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap());
    let limit = |size| prlimit(id, Resource::Fsize, Rlimit { current: size, maximum: None }).unwrap();
    limit(Some(0));
    refuses(addr).await;
    assert_eq!(requests(&labs), 32, "nothing was sent");
    limit(None);
    until_ready(addr).await;
    serves(addr).await;
    assert_eq!(requests(&labs), 64);
}
