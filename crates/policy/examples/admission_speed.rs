//! Prints what a pick, its take and its release cost, in nanoseconds, with 1 000 accounts of one upstream:
//! `cargo run --release -p turnkeep-policy --example admission_speed`.
//!
//! Each figure is the median over many batches; the slots of 500 attempts are held all the while. Beside the plain case
//! stand the costly ones: half of the accounts cool for the model that is asked for, every account is busy, every
//! account has limits per minute, and a storm in which each attempt is refused with a 429.

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::{Duration, Instant};
use turnkeep_base::{AccountId, Declared, Evidence, Fault, FaultKind, Fingerprint, LimitScope, Phase, Window};
use turnkeep_policy::accounts::{AccountSpec, Bearing, Candidate, Need, Pool, Taken, Tier, UpstreamSpec};
use turnkeep_policy::glob::Globs;
use turnkeep_policy::{Moment, Tuning};

const ACCOUNTS: u32 = 1000;
const HELD: usize = 500;
const BATCHES: usize = 400;
const PER_BATCH: u32 = 250;

fn pool(slots: u32, limited: bool) -> Pool {
    let upstream: Arc<str> = "u".into();
    let accounts = (0..ACCOUNTS).map(|n| AccountSpec {
        id: AccountId { upstream: upstream.clone(), account: format!("account-{n}").into() },
        max_in_flight: slots,
        models: Globs::default(),
        has_secret: true,
        enabled: true,
        limit_group: None,
        requests_per_minute: limited.then_some(1_000_000),
        tokens_per_minute: limited.then_some(100_000_000),
        generation: 0,
        place: Fingerprint([0; 16]),
    });
    let mut pool = Pool::new(Tuning::default());
    let upstreams = vec![UpstreamSpec { name: upstream.clone(), egress: "direct".into() }];
    pool.reconfigure(Moment(0), Tuning::default(), upstreams, accounts.collect(), vec![(upstream, "m".into())]);
    pool
}

fn need<'a>(routes: &'a [Candidate<'a>], tie: u64) -> Need<'a> {
    Need {
        routes,
        from_route: 0,
        larger: false,
        tried: &[],
        only: None,
        preferred: &[],
        tie,
        tokens: 500,
        retry: false,
    }
}

/// The median time of one call of `step`, which gets a moment and a number.
fn median(mut step: impl FnMut(Moment, u64)) -> u64 {
    let mut count = 0;
    let mut batches: Vec<u64> = (0..BATCHES)
        .map(|_| {
            let began = Instant::now();
            for _ in 0..PER_BATCH {
                count += 1;
                step(Moment(1000 + count / 20), count);
            }
            (began.elapsed() / PER_BATCH).as_nanos() as u64
        })
        .collect();
    batches.sort_unstable();
    batches[BATCHES / 2]
}

fn main() {
    let routes = [Candidate { upstream: "u", model: "m", tier: Tier::Own }];
    let hold = |pool: &mut Pool, slots: usize| -> Vec<Taken> {
        let take = |n: usize| {
            let need = need(&routes, n as u64);
            pool.pick(Moment(0), &need).ok().map(|pick| pool.take(Moment(0), &pick, &need))
        };
        (0..slots).map_while(take).collect()
    };
    let cycle = |pool: &mut Pool, now: Moment, n: u64| {
        let need = need(&routes, n);
        if let Ok(pick) = pool.pick(now, &need) {
            let taken = pool.take(now, &pick, &need);
            pool.release(now, taken, true);
        }
    };

    let mut plain = pool(8, false);
    let held = hold(&mut plain, HELD);
    println!("pick + take + release: {} ns", median(|now, n| cycle(&mut plain, now, n)));
    println!(
        "the same with the turn's success: {} ns",
        median(|now, n| {
            let need = need(&routes, n);
            if let Ok(pick) = plain.pick(now, &need) {
                let mut taken = plain.take(now, &pick, &need);
                plain.succeed(now, &mut taken, Some(400));
                plain.release(now, taken, true);
            }
        })
    );
    drop(held);

    let mut limited = pool(8, true);
    let held = hold(&mut limited, HELD);
    println!("every account with limits per minute: {} ns", median(|now, n| cycle(&mut limited, now, n)));
    drop(held);

    let mut cooling = pool(8, false);
    let overloaded = Fault::new(FaultKind::ModelOverloaded, Phase::Answered, Evidence::default())
        .wait(Some(Duration::from_secs(3600)));
    for mut taken in hold(&mut cooling, HELD) {
        cooling.judge(Moment(0), &mut taken, &overloaded, Bearing::Full);
        cooling.release(Moment(0), taken, true);
    }
    println!("half of them cooling for the model: {} ns", median(|now, n| cycle(&mut cooling, now, n)));

    let mut busy = pool(1, false);
    let held = hold(&mut busy, ACCOUNTS as usize);
    println!("all of them busy, the answer only: {} ns", median(|now, n| cycle(&mut busy, now, n)));
    drop(held);

    let mut storm = pool(8, false);
    let window = Window { scope: LimitScope::Account, wait: Duration::from_millis(20) };
    let declared = Declared { windows: vec![window], ..Declared::default() };
    let limit = Fault::new(FaultKind::RateLimited, Phase::Answered, Evidence::default()).declaring(declared);
    let mut refused = 0u64;
    let storm_ns = median(|now, n| {
        let need = need(&routes, n);
        if let Ok(pick) = storm.pick(now, &need) {
            let mut taken = storm.take(now, &pick, &need);
            storm.judge(now, &mut taken, &limit, Bearing::Full);
            storm.release(now, taken, true);
            refused += 1;
        }
    });
    println!("each attempt refused with a 429, or none let through: {storm_ns} ns ({refused} refused)");
}
