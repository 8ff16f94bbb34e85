//! Random turns through a gateway that is killed again and again: each attempt has one entry, which agrees with the
//! upstream's own meter, and what was spent agrees with the entries after every restart.
//!
//! The suite runs a tenth. `make attempts` runs all ten thousand by setting `TURNKEEP_RANDOM_TURNS`; another
//! `TURNKEEP_RANDOM_SEED` draws other turns.

use crate::chance::Chance;
use crate::meter::{PRICE, Seen, Sums};
use crate::random_turns::{ACCOUNTS, Drawn, Went, number_in, script, take};
use crate::support::binary;
use crate::support::client::{Client, request_bytes};
use crate::support::dialects::letter;
use crate::support::world::{Plan, database, lab_of_each, over_each};
use crate::support::*;
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::process::Child;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use turnkeep_base::AttemptId;
use turnkeep_lab::{Lab, Recorded};
use turnkeep_store::{LedgerEntry, Role, SqliteStore, Store, StoreOptions, SystemClock, UsageBy};

/// How often the gateway is killed.
const KILLS: u64 = 12;
/// Turns that run at once.
const AT_ONCE: u64 = 24;
/// A key with a budget that is never reached, so that what it has spent is counted in memory, too.
const SECRET: &str = "a-key-that-is-counted";

fn asked_for(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

/// One upstream of each dialect, each at its lab; a model's first letter decides.
fn plan(labs: &[Lab; 4]) -> Plan {
    let up = |up: Up| {
        let lines = format!("models = [\"{}*\"]", letter(up.dialect));
        up.accounts(&ACCOUNTS).slots(64).each(&lines)
    };
    let plan = over_each(labs, up);
    let routes =
        "routes = [{ upstream = \"up0\" }, { upstream = \"up1\" }, { upstream = \"up2\" }, { upstream = \"up3\" }]";
    let plan = plan.models(&format!("[[models]]\nname = \"*\"\n{routes}\n{PRICE}\n")).tuning(
        "retry_share = 1.0\nretries_per_second = 1000.0\nbackoff = \"1ms\"\nlongest_backoff = \"1ms\"\n\
         overload_cooldown = \"100ms\"\nbreaker_faults = 1000",
    );
    let budget = "budget = { tokens = 1000000000, per = \"month\" }";
    Plan { more: format!("[[keys]]\nname = \"counted\"\nsecret = {SECRET:?}\n{budget}\n"), ..plan }
}

fn store(folder: &Path) -> SqliteStore {
    let options = StoreOptions { role: Role::Tool, master_key: None, clock: Arc::new(SystemClock) };
    SqliteStore::open(&database(folder), options).unwrap()
}

async fn entries(folder: &Path) -> Vec<LedgerEntry> {
    store(folder).ledger_entries(1_000_000).await.unwrap()
}

/// What the ledger, the spending by day and the gateway's own count say was spent.
async fn spending_agrees(folder: &Path, addr: SocketAddr) {
    let store = store(folder);
    let entries = store.ledger_entries(1_000_000).await.unwrap();
    assert!(entries.iter().all(|entry| entry.closed.is_some()), "what was open at the kill was closed at the start");
    let closed = || entries.iter().filter_map(|entry| entry.closed.as_ref());
    let sums: (u64, u64) =
        (closed().map(|end| end.usage.total()).sum(), closed().map(|end| end.cost.expect("a price")).sum());
    let rows = store.usage(0, vec![UsageBy::Caller]).await.unwrap();
    let usage: (u64, u64) = (rows.iter().map(|row| row.usage.total()).sum(), rows.iter().map(|row| row.cost).sum());
    assert_eq!(usage, sums, "`turnkeep usage` adds up the entries");
    assert_eq!(rows.iter().map(|row| row.attempts).sum::<u64>(), entries.len() as u64);
    let spent = store.spent(0).await.unwrap();
    let spent: (u64, u64) = (spent.iter().map(|day| day.tokens).sum(), spent.iter().map(|day| day.nano_usd).sum());
    assert_eq!(spent, sums, "what was spent by day is what the entries say");
    let mut client = Client::tcp(addr).await;
    client.write(&request_bytes("GET", "/dashboard/api/connect-metrics", &[], b"")).await;
    let counters = client.reply().await.json();
    let counted = counters["callers"].as_array().unwrap().iter().find(|caller| caller["name"] == "counted");
    let counted = counted.map_or(0, |caller| caller["spent"]["tokens"].as_u64().unwrap());
    assert_eq!(counted, sums.0, "a restart forgets nothing of a budget: {counters:#}");
}

/// Takes turns until `end`, many at once, and kills the gateway in the middle of the last of them.
async fn until_killed(
    child: &mut Child,
    addr: SocketAddr,
    (seed, end): (u64, u64),
    next: &Arc<AtomicU64>,
    kill_at: Option<u64>,
) -> Vec<(Drawn, Went)> {
    let taken = Arc::new(Notify::new());
    let mut workers = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (next, taken) = (next.clone(), taken.clone());
        workers.spawn(async move {
            let mut mine = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= end {
                    return mine;
                }
                if Some(number) == kill_at {
                    taken.notify_one();
                }
                let drawn = Drawn::new(seed, number);
                let went = take(&drawn, addr, &format!("Bearer {SECRET}")).await;
                mine.push((drawn, went));
            }
        });
    }
    if kill_at.is_some() {
        soon(taken.notified()).await;
        tokio::time::sleep(Duration::from_micros(Chance::of(seed, end).below(20_000))).await;
        child.kill().await.unwrap();
    }
    workers.join_all().await.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_attempt_has_one_entry_that_agrees_with_the_upstreams_own_meter_wherever_the_gateway_is_killed() {
    let turns = asked_for("TURNKEEP_RANDOM_TURNS", 1_000);
    let seed = asked_for("TURNKEEP_RANDOM_SEED", 1);
    let labs = lab_of_each(script).await;
    let plan = plan(&labs);
    let folder = tempfile::tempdir().unwrap();
    let (next, mut cut, mut took) = (Arc::new(AtomicU64::new(0)), BTreeSet::new(), Vec::new());
    for round in 0..=KILLS {
        let (mut child, addr) = binary::serve(&plan, folder.path(), None).await;
        spending_agrees(folder.path(), addr).await;
        let end = turns * (round + 1) / (KILLS + 1);
        next.store(turns * round / (KILLS + 1), Ordering::Relaxed);
        let kill_at = (round < KILLS).then(|| end - 1 - Chance::of(seed, round).below(AT_ONCE / 2));
        took.extend(until_killed(&mut child, addr, (seed, end), &next, kill_at).await);
        if kill_at.is_none() {
            let id = rustix::process::Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
            rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
            assert!(soon(child.wait()).await.unwrap().success(), "it stops in order");
        }
        soon(join_all(labs.iter().map(Lab::wait_idle))).await;
        let open: Vec<AttemptId> =
            entries(folder.path()).await.iter().filter(|entry| entry.closed.is_none()).map(|e| e.attempt).collect();
        assert!(kill_at.is_some() || open.is_empty(), "an orderly end leaves nothing open: {open:?}");
        cut.extend(open);
    }

    let requests: Vec<Recorded> = labs.iter().flat_map(Lab::requests).collect();
    let entries = entries(folder.path()).await;
    let mut requests_of = BTreeMap::<u64, Vec<&Recorded>>::new();
    for request in &requests {
        requests_of.entry(number_in(request.header("traceparent").unwrap())).or_default().push(request);
    }
    let mut entries_of = BTreeMap::<&str, Vec<&LedgerEntry>>::new();
    for entry in &entries {
        entries_of.entry(&entry.model).or_default().push(entry);
    }
    let mut sums = Sums::default();
    for (drawn, went) in &took {
        let requests = requests_of.remove(&drawn.number).unwrap_or_default();
        let mut entries = entries_of.remove(&*drawn.model()).unwrap_or_default();
        entries.sort_by_key(|entry| entry.attempt);
        Seen { drawn, went: *went, requests, entries, cut: &cut }.settle(&mut sums);
    }
    assert!(requests_of.is_empty() && entries_of.is_empty(), "nobody asked for these: {requests_of:?} {entries_of:?}");
    let went = |what: Went| took.iter().filter(|(_, went)| *went == what).count();
    let told = [went(Went::Told(200)), went(Went::Left), went(Went::Broken)];
    println!(
        "{turns} turns (seed {seed}): {} requests, {} entries, {sums:?}; 200, left, broken: {told:?}",
        requests.len(),
        entries.len()
    );
    // Every way was gone.
    assert!(sums.exact > turns / 4 && sums.refused > turns / 100 && sums.estimated > turns / 20, "{sums:?}");
    assert!(sums.cut >= KILLS && told[2] >= KILLS as usize, "each kill met turns: {sums:?} {told:?}");
}
