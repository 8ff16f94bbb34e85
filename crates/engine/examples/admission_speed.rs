//! What a slot costs: `acquire` and the lease's end over the real `Admission`, 1 000 accounts of one upstream, 64 tasks
//! contending on two worker threads. `taskset -c 0,1 cargo run --release -p turnkeep-engine --example admission_speed`.
//!
//! A task takes a slot, lets the others run while it holds it, and gives it back; a sample is the time of the taking and
//! of the giving back, waits for the lock included, the time between left out. Each line is one case: its median and its
//! 99th percentile in nanoseconds. The goal is a median under 2 000.

#![allow(clippy::print_stdout)] // its output is what it is for

mod pool;

use pool::{ACCOUNTS, admission, print, routes, wanted};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use turnkeep_engine::admission::{Admission, SlotLease};
use turnkeep_engine::route::Route;
use turnkeep_policy::Tuning;
use turnkeep_policy::accounts::{AccountKey, AccountSpec, Unavailable};

const TASKS: u64 = 64;
const WORKERS: usize = 2;
/// Pairs of each task; the first tenth is not counted.
const PAIRS: usize = 4000;

/// With limits per minute of its own.
fn limited(account: &mut AccountSpec, requests: u32) {
    account.requests_per_minute = Some(requests);
    account.tokens_per_minute = Some(100_000_000);
}

/// How an attempt ends.
#[derive(Clone, Copy)]
enum End {
    /// The lease is dropped.
    Dropped,
    /// The turn completed.
    Success,
}

async fn one_task(
    admission: Arc<Admission>,
    routes: Arc<[Route]>,
    number: u64,
    end: End,
) -> Result<Vec<u64>, Unavailable> {
    let caller = format!("caller-{}", number % 8);
    let deadline = Instant::now() + Duration::from_secs(600);
    let mut samples = Vec::with_capacity(PAIRS);
    for n in 0..PAIRS as u64 {
        let began = std::time::Instant::now();
        let wanted = wanted(&routes, number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(n << 20), None);
        let mut lease = admission.acquire(wanted, &caller, deadline).await?;
        let taken = began.elapsed();
        lease.sent();
        tokio::task::yield_now().await;
        let began = std::time::Instant::now();
        match end {
            End::Dropped => drop(lease),
            End::Success => lease.succeed(Some(400)),
        }
        samples.push((taken + began.elapsed()).as_nanos() as u64);
    }
    Ok(samples)
}

async fn case(name: &str, admission: &Arc<Admission>, end: End) -> Result<(), Box<dyn std::error::Error>> {
    let routes = routes();
    let tasks: Vec<_> =
        (0..TASKS).map(|number| tokio::spawn(one_task(admission.clone(), routes.clone(), number, end))).collect();
    let mut samples = Vec::with_capacity(TASKS as usize * PAIRS);
    for task in tasks {
        samples.extend(task.await?.map_err(|why| format!("{name}: no slot, {why:?}"))?.split_off(PAIRS / 10));
    }
    print(name, samples);
    Ok(())
}

async fn all() -> Result<(), Box<dyn std::error::Error>> {
    let plain = admission(Tuning::default(), |_, _| {});
    case("a slot taken and given back", &plain, End::Dropped).await?;
    case("the same, the turn having succeeded", &plain, End::Success).await?;
    let with_limits = admission(Tuning::default(), |_, account| limited(account, 1_000_000_000));
    case("every account with limits of its own per minute", &with_limits, End::Success).await?;

    // One request a minute each, and that one is spent.
    let half = admission(Tuning::default(), |n, account| limited(account, if n % 2 == 0 { 1 } else { 1_000_000_000 }));
    let (routes, deadline) = (routes(), Instant::now() + Duration::from_secs(60));
    for n in (0..ACCOUNTS).filter(|n| n % 2 == 0) {
        let lease: Result<SlotLease, _> =
            half.acquire(wanted(&routes, 0, Some(AccountKey(n))), "caller", deadline).await;
        lease.map_err(|why| format!("account {n}: {why:?}"))?.sent();
    }
    case("half of the accounts at their own limit", &half, End::Success).await
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
    runtime.block_on(async { tokio::spawn(async { all().await.map_err(|error| error.to_string()) }).await })??;
    Ok(())
}
