//! A pool of accounts with short names, and what happens to it.

#![allow(dead_code, clippy::panic)]

use proptest::prelude::*;
use std::time::Duration;
use turnkeep_base::{AccountId, Declared, Evidence, Fault, FaultKind, Fingerprint, Phase};
use turnkeep_policy::accounts::{
    AccountKey, AccountSpec, Bearing, Candidate, Judged, Need, Pick, Pool, Snapshot, Taken, Tier, Unavailable,
    UpstreamSpec,
};
use turnkeep_policy::glob::Globs;
use turnkeep_policy::{Moment, Tuning};

pub const HOUR: u64 = 3_600_000;

pub fn account(upstream: &str, n: u32) -> AccountSpec {
    AccountSpec {
        id: AccountId { upstream: upstream.into(), account: n.to_string().into() },
        max_in_flight: 1000,
        models: Globs::default(),
        has_secret: true,
        enabled: true,
        limit_group: None,
        requests_per_minute: None,
        tokens_per_minute: None,
        generation: 0,
        place: Fingerprint([0; 16]),
    }
}

pub fn fault(kind: FaultKind) -> Fault {
    Fault::new(kind, Phase::Answered, Evidence::default())
}

pub fn own<'a>(upstream: &'a str, model: &'a str) -> Candidate<'a> {
    Candidate { upstream, model, tier: Tier::Own }
}

pub fn need<'a>(routes: &'a [Candidate<'a>]) -> Need<'a> {
    Need {
        routes,
        from_route: 0,
        larger: false,
        tried: &[],
        only: None,
        preferred: &[],
        tie: 0,
        tokens: 0,
        retry: false,
    }
}

pub const UM: &[Candidate<'static>] = &[Candidate { upstream: "u", model: "m", tier: Tier::Own }];

/// A pool and its time.
pub struct World {
    pub pool: Pool,
    pub now: Moment,
}

impl World {
    pub fn new(accounts: Vec<AccountSpec>) -> World {
        World::routed(accounts, &[("u", "m")])
    }

    pub fn routed(accounts: Vec<AccountSpec>, routes: &[(&str, &str)]) -> World {
        let mut world = World { pool: Pool::new(Tuning::default()), now: Moment(1000) };
        world.reconfigure_routed(accounts, routes);
        world
    }

    pub fn of(count: u32) -> World {
        World::new((0..count).map(|n| account("u", n)).collect())
    }

    /// A new pool at this moment, with so many accounts.
    pub fn begin_anew(&mut self, now: Moment, count: u32) {
        self.now = now;
        self.pool = Pool::new(Tuning::default());
        self.reconfigure((0..count).map(|n| account("u", n)).collect());
    }

    pub fn reconfigure(&mut self, accounts: Vec<AccountSpec>) {
        self.reconfigure_routed(accounts, &[("u", "m")]);
    }

    pub fn reconfigure_routed(&mut self, accounts: Vec<AccountSpec>, routes: &[(&str, &str)]) {
        let upstreams = ["u", "v"].map(|name| UpstreamSpec { name: name.into(), egress: "direct".into() });
        let routes = routes.iter().map(|(upstream, model)| ((*upstream).into(), (*model).into()));
        self.pool.reconfigure(self.now, Tuning::default(), upstreams.to_vec(), accounts, routes.collect());
    }

    pub fn pass(&mut self, time: Duration) {
        self.now = self.now.after(time);
    }

    pub fn pick(&mut self, need: &Need<'_>) -> Result<Pick, Unavailable> {
        self.pool.pick(self.now, need)
    }

    pub fn take(&mut self, need: &Need<'_>) -> Result<Taken, Unavailable> {
        let pick = self.pick(need)?;
        Ok(self.pool.take(self.now, &pick, need))
    }

    /// Takes a slot of this account.
    pub fn take_of(&mut self, key: AccountKey) -> Taken {
        let need = Need { only: Some(key), ..need(UM) };
        self.take(&need).unwrap_or_else(|why| panic!("account {key:?} does not serve: {why:?}"))
    }

    pub fn judge(&mut self, mut taken: Taken, fault: &Fault) -> Judged {
        let judged = self.pool.judge(self.now, &mut taken, fault, Bearing::Full);
        self.pool.release(self.now, taken, true);
        judged
    }

    pub fn succeed(&mut self, mut taken: Taken) {
        self.pool.succeed(self.now, &mut taken, None);
        self.pool.release(self.now, taken, true);
    }

    /// One whole attempt on this account that ends with this fault.
    pub fn fail(&mut self, key: AccountKey, fault: &Fault) -> Judged {
        let taken = self.take_of(key);
        self.judge(taken, fault)
    }

    /// The same for whoever serves this model of `u`.
    pub fn fail_on(&mut self, model: &str, fault: &Fault) -> Judged {
        let routes = [own("u", model)];
        let taken = self.take(&need(&routes)).unwrap_or_else(|why| panic!("nobody serves {model}: {why:?}"));
        self.judge(taken, fault)
    }

    /// Three refused attempts that were under way at once: the account is errored by them.
    pub fn evict(&mut self, key: AccountKey) {
        let taken: Vec<Taken> = (0..3).map(|_| self.take_of(key)).collect();
        for taken in taken {
            self.judge(taken, &fault(FaultKind::CredentialRejected));
        }
        assert_ne!(self.status(key), "active");
    }

    pub fn snapshot(&self, key: AccountKey) -> Snapshot {
        self.pool.snapshot(key).unwrap_or_else(|| panic!("no account {key:?}"))
    }

    pub fn status(&self, key: AccountKey) -> &'static str {
        self.snapshot(key).standing.status().name()
    }

    pub fn key(&self, upstream: &str, n: u32) -> AccountKey {
        self.pool.key_of(&account(upstream, n).id).unwrap_or_else(|| panic!("no account {upstream}/{n}"))
    }
}

pub fn declared() -> impl Strategy<Value = Declared> {
    use turnkeep_base::{LimitScope, Window};
    let scope = prop_oneof![
        Just(LimitScope::Account),
        Just(LimitScope::Requests),
        Just(LimitScope::Quota),
        Just(LimitScope::Model)
    ];
    let seconds = prop_oneof![4 => 0..100u64, 1 => 0..50_000u64, 1 => Just(u64::MAX / 1000)];
    let wait = seconds.prop_map(Duration::from_secs);
    let window = (scope, wait.clone()).prop_map(|(scope, wait)| Window { scope, wait });
    (prop::option::of(wait), prop::collection::vec(window, 0..3), any::<bool>())
        .prop_map(|(wait, windows, names_model)| Declared { wait, windows, names_model })
}

/// Any fault of these kinds; status 0 stands for none.
pub fn faults(kinds: Vec<FaultKind>, statuses: &'static [u16]) -> impl Strategy<Value = Fault> {
    let parts = (prop::sample::select(kinds), prop::sample::select(statuses), declared());
    parts.prop_map(|(kind, status, declared)| {
        let evidence = Evidence { status: (status > 0).then_some(status), ..Evidence::default() };
        Fault::new(kind, Phase::Answered, evidence).declaring(declared)
    })
}

/// What may happen to a pool of few accounts.
#[derive(Clone, Debug)]
pub enum Event {
    Pass(Duration),
    Begin { account: u32 },
    End { which: usize, how: End },
}

#[derive(Clone, Debug)]
pub enum End {
    Success,
    Fault(Fault, bool),
    Unjudged,
}

pub fn events(fault: impl Strategy<Value = Fault> + 'static, success: u32) -> impl Strategy<Value = Vec<Event>> {
    let how = prop_oneof![
        success => Just(End::Success),
        8 => (fault, prop::bool::weighted(0.9)).prop_map(|(fault, full)| End::Fault(fault, full)),
        1 => Just(End::Unjudged),
    ];
    let pass = prop_oneof![0..10_000u64, 0..4_000_000u64].prop_map(|ms| Event::Pass(Duration::from_millis(ms)));
    let event = prop_oneof![
        2 => pass,
        6 => (0..6u32).prop_map(|account| Event::Begin { account }),
        6 => (any::<usize>(), how).prop_map(|(which, how)| Event::End { which, how }),
    ];
    prop::collection::vec(event, 1..120)
}

/// A run of events over a world, attempt by attempt.
pub struct Run {
    pub world: World,
    pub live: Vec<Taken>,
}

impl Run {
    pub fn new(world: World) -> Run {
        Run { world, live: Vec::new() }
    }

    pub fn step(&mut self, event: &Event) {
        let _what_a_judgement_did = self.step_judging(event);
    }

    /// The same; gives the fault of an attempt that was judged, and what its judgement did.
    pub fn step_judging<'a>(&mut self, event: &'a Event) -> Option<(&'a Fault, Judged)> {
        let mut judged = None;
        let World { pool, now } = &mut self.world;
        match event {
            Event::Pass(time) => *now = now.after(*time),
            Event::Begin { account } => {
                let need = Need { only: Some(AccountKey(*account)), ..need(UM) };
                if let Ok(pick) = pool.pick(*now, &need) {
                    self.live.push(pool.take(*now, &pick, &need));
                }
            }
            Event::End { .. } if self.live.is_empty() => {}
            Event::End { which, how } => {
                let mut taken = self.live.swap_remove(which % self.live.len());
                match how {
                    End::Success => {
                        pool.succeed(*now, &mut taken, None);
                    }
                    End::Fault(fault, full) => {
                        let bearing = if *full { Bearing::Full } else { Bearing::DeclaredOnly };
                        judged = Some((fault, pool.judge(*now, &mut taken, fault, bearing)));
                    }
                    End::Unjudged => {}
                }
                pool.release(*now, taken, true);
            }
        }
        judged
    }
}
