//! Prints what an attempt costs in the ledger: CPU time of the whole process for one open and close, and how long
//! an open waits, at several numbers of tasks. `cargo run --release -p turnkeep-store --example ledger_speed`.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic, reason = "a measurement for a terminal")]

use std::sync::Arc;
use std::time::{Duration, Instant};
use turnkeep_base::{AccountId, AttemptId, Dialect, TurnId, Usage};
use turnkeep_engine::ports::{AttemptClosed, AttemptOpened, AttemptOutcome, WallClock};
use turnkeep_store::{Ledger, Role, SqliteStore, Store, StoreOptions, SystemClock};

const PAIRS: usize = 100_000;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    println!("tasks   pairs/s   CPU/pair   open p50   open p99   open max");
    for tasks in [1, 8, 64, 512] {
        measure(tasks).await;
    }
}

async fn measure(tasks: usize) {
    let folder = tempfile::tempdir().unwrap();
    let options = StoreOptions { role: Role::Gateway, master_key: None, clock: Arc::new(SystemClock) };
    let store = Arc::new(SqliteStore::open(&folder.path().join("speed.db"), options).unwrap());
    let (began, cpu) = (Instant::now(), cpu_time());
    let running: Vec<_> =
        (0..tasks).map(|task| tokio::spawn(run(store.clone(), task as u128, PAIRS / tasks))).collect();
    let mut waits = Vec::with_capacity(PAIRS);
    for task in running {
        waits.extend(task.await.unwrap());
    }
    store.flush().await.unwrap();
    let (wall, cpu) = (began.elapsed(), cpu_time().saturating_sub(cpu));
    waits.sort_unstable();
    let pairs = waits.len();
    println!(
        "{tasks:>5} {:>9.0} {:>10.1?} {:>10.1?} {:>10.1?} {:>10.1?}",
        pairs as f64 / wall.as_secs_f64(),
        cpu / u32::try_from(pairs).unwrap(),
        waits[pairs / 2],
        waits[pairs * 99 / 100],
        waits[pairs - 1],
    );
    store.shutdown().await.unwrap();
}

async fn run(store: Arc<SqliteStore>, task: u128, pairs: usize) -> Vec<Duration> {
    let account = AccountId { upstream: "anthropic".into(), account: "team-a".into() };
    let (caller, model) = (Arc::<str>::from("laptop"), Arc::<str>::from("claude-sonnet-4-5"));
    let mut waits = Vec::with_capacity(pairs);
    for pair in 0..pairs {
        let now = SystemClock.unix_ms();
        let attempt = AttemptId { turn: TurnId::new(now, task << 64 | pair as u128), number: 1 };
        let entry = AttemptOpened {
            attempt,
            caller: caller.clone(),
            account: account.clone(),
            model: model.clone(),
            upstream_model: model.clone(),
            dialect: Dialect::Messages,
            opened_ms: now,
            estimated_input: 12_345,
            estimated_output: 0,
            estimated_cost: Some(37_035_000),
            labels: "{}".into(),
            conversation: None,
        };
        let began = Instant::now();
        store.open(entry).await.unwrap();
        waits.push(began.elapsed());
        let usage = Usage { input: 12_000, cache_read: 9_000, output: 400, ..Usage::default() };
        let end = AttemptClosed {
            attempt,
            outcome: AttemptOutcome::Completed,
            usage,
            exact: true,
            cost: Some(44_700_000),
            closed_ms: now + 9,
        };
        store.close(end).await.unwrap();
    }
    waits
}

/// User and system time of this process, from the kernel's own account of it.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}
