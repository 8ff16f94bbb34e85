//! The index gives the same answer as asking every account, whatever has happened.

use super::super::judged::{Bearing, Taken};
use super::super::spec::{AccountSpec, UpstreamSpec};
use super::preferred::LEAN;
use super::*;
use crate::glob::Globs;
use crate::tuning::Tuning;
use proptest::prelude::*;
use std::time::Duration;
use turnkeep_base::{AccountId, Declared, Evidence, Fault, FaultKind, Fingerprint, LimitScope, Phase, Window};

/// By asking every account.
struct Scan<'a>(&'a Pool);

impl Scan<'_> {
    fn asked(&self, upstream: usize, need: &Need<'_>) -> Vec<AccountKey> {
        let all = self.0.accounts.iter().enumerate().map(|(at, account)| (AccountKey(at as u32), account));
        all.filter(|(key, account)| {
            account.upstream == upstream && need.only.map_or(!need.tried.contains(key), |only| only == *key)
        })
        .map(|(key, _)| key)
        .collect()
    }
}

impl Look for Scan<'_> {
    fn find(&self, now: Moment, upstream: usize, model: &str, need: &Need<'_>) -> Option<(AccountKey, bool)> {
        let (mut best, mut trial) = (None, None);
        let mut ready = Vec::new();
        for key in self.asked(upstream, need) {
            let account = &self.0.accounts[key.0 as usize];
            match account.eligible(now, model, need.tokens) {
                Eligible::Yes { trial: false } => {
                    ready.push((key, account.load()));
                    let rank = account.rank(now, key).for_tie(need.tie);
                    if best.is_none_or(|other| rank < other) {
                        best = Some(rank);
                    }
                }
                Eligible::Yes { trial: true } => {
                    let super::super::standing::Status::Errored { retry_at, .. } = *account.standing.status() else {
                        panic!("only an errored account is tried")
                    };
                    trial = Some(trial.unwrap_or((retry_at, key)).min((retry_at, key)));
                }
                Eligible::Busy
                | Eligible::Rate(_)
                | Eligible::Cooling(_)
                | Eligible::Errored(_)
                | Eligible::NotEntitled
                | Eligible::Out => {}
            }
        }
        let served = prefer(need, best.map(|(_, _, key)| key), trial.map(|(_, key)| key))?;
        if served.1 || need.only.is_some() {
            return Some(served);
        }
        let least = ready.iter().map(|(_, load)| *load).min().unwrap();
        let close = |&&key: &&AccountKey| ready.iter().any(|&(other, load)| other == key && load - least <= 250_000);
        Some((need.preferred.iter().find(close).copied().unwrap_or(served.0), false))
    }

    fn see(&self, now: Moment, upstream: usize, model: &str, need: &Need<'_>, seen: &mut Seen) {
        for key in self.asked(upstream, need) {
            seen.add(self.0.accounts[key.0 as usize].eligible(now, model, need.tokens));
        }
    }
}

const MODELS: [&str; 3] = ["m", "n", "x-1"];
const UPSTREAMS: [&str; 2] = ["u", "v"];

fn spec(n: usize, shape: u8) -> AccountSpec {
    let models = match shape % 4 {
        0 | 1 => vec![],
        2 => vec!["m".into(), "n".into()],
        _ => vec!["x-*".into()],
    };
    AccountSpec {
        id: AccountId { upstream: UPSTREAMS[n % 2].into(), account: n.to_string().into() },
        max_in_flight: 1 + u32::from(shape % 3),
        models: Globs::new(models),
        has_secret: shape % 16 != 15,
        enabled: shape % 32 != 30,
        limit_group: (shape.is_multiple_of(5)).then(|| "g".into()),
        requests_per_minute: (shape % 3 == 1).then_some(3),
        tokens_per_minute: (shape % 4 == 1).then_some(1000),
        generation: u64::from(shape) / 64,
        place: Fingerprint([0; 16]),
    }
}

fn configure(pool: &mut Pool, now: Moment, shapes: &[u8]) {
    let upstreams = UPSTREAMS.map(|name| UpstreamSpec { name: name.into(), egress: "direct".into() }).to_vec();
    let accounts = shapes.iter().enumerate().filter(|(_, shape)| **shape < 240).map(|(n, &shape)| spec(n, shape));
    let routes = vec![("u".into(), "m".into()), ("v".into(), "n".into())];
    pool.reconfigure(now, Tuning::default(), upstreams, accounts.collect(), routes);
}

#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Take { shape: u8, tie: u64, tokens: u64 },
    End { which: usize, how: u8, wait: u64 },
    Reconfigure(Vec<u8>),
    Switch { which: usize, on: bool },
    Secret { which: usize, has: bool, generation: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => prop_oneof![0..3_000u64, 0..100_000u64, 0..4_000_000u64].prop_map(Step::Pass),
        8 => (any::<u8>(), any::<u64>(), 0..1500u64).prop_map(|(shape, tie, tokens)| Step::Take { shape, tie, tokens }),
        8 => (any::<usize>(), any::<u8>(), 0..100u64).prop_map(|(which, how, wait)| Step::End { which, how, wait }),
        1 => shapes().prop_map(Step::Reconfigure),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(which, on)| Step::Switch { which, on }),
        1 => (any::<usize>(), any::<bool>(), 0..9u64)
            .prop_map(|(which, has, generation)| Step::Secret { which, has: has || generation > 2, generation }),
    ];
    prop::collection::vec(step, 1..80)
}

fn shapes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 8..14)
}

fn candidates(shape: u8) -> Vec<Candidate<'static>> {
    let tier = |bit: u8| if shape & bit == 0 { Tier::Own } else { Tier::Fallback };
    vec![
        Candidate {
            upstream: UPSTREAMS[usize::from(shape & 1)],
            model: MODELS[usize::from(shape % 3)],
            tier: Tier::Own,
        },
        Candidate { upstream: "v", model: MODELS[usize::from(shape / 3 % 3)], tier: tier(2) },
        Candidate { upstream: "u", model: "m", tier: tier(4) },
        Candidate { upstream: "v", model: "n", tier: Tier::Larger },
    ]
}

fn kind(how: u8) -> FaultKind {
    const KINDS: [FaultKind; 9] = [
        FaultKind::CredentialRejected,
        FaultKind::CredentialRejected,
        FaultKind::RateLimited,
        FaultKind::ModelOverloaded,
        FaultKind::ModelNotEntitled,
        FaultKind::UpstreamInternal,
        FaultKind::ConnectRefused,
        FaultKind::AccountSuspended,
        FaultKind::RequestInvalid,
    ];
    KINDS[usize::from(how) % KINDS.len()]
}

fn end(pool: &mut Pool, now: Moment, mut taken: Taken, how: u8, wait: u64) {
    match how {
        0..=59 => {
            pool.succeed(now, &mut taken, (how.is_multiple_of(2)).then_some(wait * 20));
        }
        60..=79 => {}
        _ => {
            let status = if how.is_multiple_of(7) { 403 } else { 500 };
            let evidence = Evidence::default().with_status(status);
            let window = Window { scope: LimitScope::Requests, wait: Duration::from_secs(wait) };
            let declared = Declared {
                wait: (wait.is_multiple_of(3)).then_some(Duration::from_secs(wait)),
                windows: if wait.is_multiple_of(5) { vec![window] } else { vec![] },
                names_model: wait.is_multiple_of(2),
            };
            let fault = Fault::new(kind(how), Phase::Answered, evidence).declaring(declared);
            let bearing = if how.is_multiple_of(11) { Bearing::DeclaredOnly } else { Bearing::Full };
            let charge = pool.judge(now, &mut taken, &fault, bearing).charge;
            if let Some(charge) = charge
                && wait.is_multiple_of(2)
            {
                pool.take_back(now, charge);
            }
        }
    }
    pool.release(now, taken, !how.is_multiple_of(5));
}

fn agree(pool: &mut Pool, now: Moment, need: &Need<'_>) -> Result<(), TestCaseError> {
    let picked = pool.pick(now, need);
    let scanned = pool.decide(now, need, &Scan(pool)).map(|pick| pool.compare(now, need, pick));
    prop_assert_eq!(picked, scanned, "{:?}", need);
    prop_assert_eq!(picked, pool.pick(now, need), "asked twice");
    let plain = pool.pick(now, &Need { preferred: &[], ..*need });
    prop_assert!(plain.is_err() || plain.is_ok_and(|plain| !plain.preferred && !plain.spilled));
    let but_for_the_account = |of: Result<Pick, Unavailable>| {
        of.map(|pick| Pick { account: AccountKey(0), preferred: false, spilled: false, ..pick })
    };
    prop_assert_eq!(but_for_the_account(picked), but_for_the_account(plain), "a preference changes the account only");
    if let (Ok(picked), Ok(plain)) = (picked, plain) {
        let account = |key: AccountKey| pool.account(key).unwrap();
        let model = need.routes[picked.route].model;
        prop_assert_eq!(account(picked.account).upstream, account(plain.account).upstream);
        prop_assert_eq!(
            account(picked.account).eligible(now, model, need.tokens),
            Eligible::Yes { trial: plain.trial }
        );
        prop_assert!(need.only.is_some() || !need.tried.contains(&picked.account));
        prop_assert!(picked.account == plain.account || picked.preferred);
        prop_assert!(!(picked.preferred && picked.spilled));
        prop_assert!(plain.trial || account(picked.account).load() <= account(plain.account).load() + LEAN);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_index_gives_the_answer_of_asking_every_account(first in shapes(), steps in steps(), tie: u64) {
        let mut pool = Pool::new(Tuning::default());
        let mut now = Moment(1);
        configure(&mut pool, now, &first);
        let mut live: Vec<Taken> = Vec::new();
        for step in steps {
            match step {
                Step::Pass(ms) => now = Moment(now.0 + ms),
                Step::Take { shape, tie, tokens } => {
                    let routes = candidates(shape);
                    let tried = [AccountKey(u32::from(shape) % 14)];
                    let preferred = [AccountKey(u32::from(shape) / 3 % 15), AccountKey(tie as u32 % 14)];
                    let need = Need {
                        routes: &routes,
                        from_route: usize::from(shape.is_multiple_of(7)),
                        larger: shape.is_multiple_of(13),
                        tried: if shape.is_multiple_of(2) { &tried } else { &[] },
                        only: (shape.is_multiple_of(11)).then_some(AccountKey(u32::from(shape) % 12)),
                        preferred: if shape.is_multiple_of(4) { &[] } else { &preferred },
                        tie,
                        tokens,
                        retry: shape.is_multiple_of(3),
                    };
                    agree(&mut pool, now, &need)?;
                    if let Ok(pick) = pool.pick(now, &need) {
                        live.push(pool.take(now, &pick, &need));
                        let taken = pool.account(pick.account).unwrap();
                        prop_assert!(taken.in_flight <= taken.spec.max_in_flight);
                    }
                }
                Step::End { which, how, wait } if !live.is_empty() => {
                    let taken = live.swap_remove(which % live.len());
                    end(&mut pool, now, taken, how, wait);
                }
                Step::End { .. } => {}
                Step::Reconfigure(shapes) => configure(&mut pool, now, &shapes),
                Step::Switch { which, on } => {
                    let id = pool.accounts[which % pool.accounts.len()].spec.id.clone();
                    pool.set_enabled(now, &id, on);
                }
                Step::Secret { which, has, generation } => {
                    let id = pool.accounts[which % pool.accounts.len()].spec.id.clone();
                    pool.set_secret(now, &id, has, generation);
                }
            }
            for model in MODELS {
                let routes = [
                    Candidate { upstream: "u", model, tier: Tier::Own },
                    Candidate { upstream: "v", model, tier: Tier::Own },
                ];
                let need = Need { routes: &routes, from_route: 0, larger: false, tried: &[], only: None, preferred: &[], tie, tokens: 1, retry: false };
                agree(&mut pool, now, &need)?;
                agree(&mut pool, now, &Need { from_route: 1, ..need })?;
                let preferred = [AccountKey(tie as u32 % 14), AccountKey(3)];
                agree(&mut pool, now, &Need { preferred: &preferred, ..need })?;
                agree(&mut pool, now, &Need { tokens: 900, tried: &[AccountKey(0), AccountKey(1)], ..need })?;
            }
        }
        prop_assert_eq!(pool.in_flight(), live.len() as u64);
        for taken in live {
            pool.release(now, taken, true);
        }
        prop_assert_eq!(pool.in_flight(), 0);
        prop_assert!(pool.accounts.iter().all(|account| account.in_flight == 0));
    }
}
