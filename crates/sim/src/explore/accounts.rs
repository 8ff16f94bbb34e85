//! Two accounts of one upstream with a slot and a half each, their attempts, their faults, and time.

use super::Machine;
use std::collections::BTreeMap;
use std::time::Duration;
use turnkeep_base::{AccountId, Declared, Evidence, Fault, FaultKind, Fingerprint, Phase};
use turnkeep_policy::accounts::{
    AccountKey, AccountSpec, Bearing, Candidate, Need, Pool, Scope, Snapshot, Status, Taken, Tier, UpstreamSpec,
};
use turnkeep_policy::glob::Globs;
use turnkeep_policy::{Moment, Tuning};

/// What can happen. Attempts are told by their age: 0 is the oldest that is open.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A turn asks for a slot.
    Take,
    /// An attempt completes.
    Succeed(usize),
    /// An attempt fails with this fault.
    Fail(usize, FaultKind),
    /// The client of an attempt leaves.
    Leave(usize),
    /// The first account's credential is rejected by so many attempts, one after the other.
    Rejected(usize),
    /// Time passes, in seconds.
    Wait(u64),
    /// The operator takes the first account out, or brings it back.
    Switch(bool),
    /// The first account has another secret.
    Rotate,
    /// The process ends and another one begins with what was written down.
    Restart,
}

/// The machine.
pub struct Accounts {
    pool: Pool,
    now: Moment,
    open: Vec<Open>,
    /// Rejections in a row of the credential that is current, and suspensions that were named, by account.
    rejected: BTreeMap<u32, Vec<Moment>>,
    suspended: BTreeMap<u32, u32>,
    /// The ends of cooldowns, as they were last seen.
    cooling: BTreeMap<(u32, Scope), Moment>,
}

/// An attempt that is open.
struct Open {
    taken: Taken,
    /// The account has been switched since, or has another secret: as a try it is nobody's any more.
    stale: bool,
    /// The account's epoch when it began.
    epoch: u64,
}

impl Open {
    fn is_try(&self) -> bool {
        self.taken.trial() && !self.stale
    }
}

fn need<'a>(routes: &'a [Candidate<'a>]) -> Need<'a> {
    Need {
        routes,
        from_route: 0,
        larger: false,
        tried: &[],
        only: None,
        preferred: &[],
        tie: 0,
        tokens: 1,
        retry: false,
    }
}

/// Two faults in a row set the endpoint aside.
fn tuning() -> Tuning {
    Tuning { breaker_faults: 2, ..Tuning::default() }
}

const MODEL: &str = "m";
const SLOTS: u32 = 2;
/// Attempts that are open at once.
const OPEN: usize = 3;

impl Default for Accounts {
    fn default() -> Self {
        let mut pool = Pool::new(tuning());
        let spec = |name: &str| AccountSpec {
            id: AccountId { upstream: "u".into(), account: name.into() },
            max_in_flight: SLOTS,
            models: Globs::default(),
            has_secret: true,
            enabled: true,
            limit_group: None,
            requests_per_minute: None,
            tokens_per_minute: None,
            generation: 1,
            place: Fingerprint([0; 16]),
        };
        let upstream = UpstreamSpec { name: "u".into(), egress: "direct".into() };
        let routes = vec![("u".into(), MODEL.into())];
        pool.reconfigure(Moment(0), tuning(), vec![upstream], vec![spec("a"), spec("b")], routes);
        Accounts {
            pool,
            now: Moment(0),
            open: Vec::new(),
            rejected: BTreeMap::new(),
            suspended: BTreeMap::new(),
            cooling: BTreeMap::new(),
        }
    }
}

impl Machine for Accounts {
    type Event = Event;
    const EVENTS: &'static [Event] = &[
        Event::Take,
        Event::Succeed(0),
        Event::Succeed(1),
        Event::Fail(0, FaultKind::CredentialRejected),
        Event::Fail(1, FaultKind::CredentialRejected),
        Event::Fail(0, FaultKind::AccountSuspended),
        Event::Fail(0, FaultKind::RateLimited),
        Event::Fail(1, FaultKind::RateLimited),
        Event::Fail(0, FaultKind::UpstreamUnavailable),
        Event::Fail(0, FaultKind::Unclassified),
        Event::Leave(0),
        Event::Leave(1),
        Event::Rejected(2),
        Event::Rejected(3),
        Event::Wait(20),
        Event::Wait(16 * 60),
        Event::Switch(false),
        Event::Switch(true),
        Event::Rotate,
        Event::Restart,
    ];

    fn happen(&mut self, event: Event) -> Option<Result<(), String>> {
        match event {
            Event::Take => self.take()?,
            Event::Succeed(at) => {
                let open = self.leave(at)?;
                let (trial, epoch, mut taken) = (open.is_try(), open.epoch, open.taken);
                let account = taken.account();
                // What an account's attempt says that has been suspended since says nothing any more, of its endpoint neither.
                let of_now = self.pool.snapshot(account).is_some_and(|snapshot| snapshot.epoch == epoch);
                let errored = self.is_errored(account);
                self.pool.succeed(self.now, &mut taken, None);
                let current = taken.generation() == self.generation(account);
                self.pool.release(self.now, taken, true);
                if (!errored || trial) && current {
                    self.rejected.insert(account.0, Vec::new());
                }
                let out = self.pool.upstreams(self.now).iter().any(|upstream| upstream.ejected_until.is_some());
                if of_now && out {
                    return Some(Err("invariant 12: the endpoint is set aside, and it has just served".to_owned()));
                }
                if errored && !trial && !self.is_errored(account) {
                    return Some(Err(format!(
                        "invariant 3: {account:?} was brought back by an attempt that was no try"
                    )));
                }
            }
            Event::Fail(at, kind) => {
                let mut taken = self.leave(at)?.taken;
                let account = taken.account().0;
                let wait = Duration::from_secs(if at == 0 { 60 } else { 10 });
                let limited = Declared { wait: Some(wait), ..Declared::default() };
                let declared = if kind == FaultKind::RateLimited { limited } else { Declared::default() };
                let fault = Fault::new(kind, Phase::Answered, Evidence::default()).declaring(declared);
                let charged = kind == FaultKind::CredentialRejected || kind == FaultKind::AccountSuspended;
                if charged && taken.generation() == self.generation(taken.account()) {
                    self.rejected.entry(account).or_default().push(self.now);
                }
                if kind == FaultKind::AccountSuspended {
                    *self.suspended.entry(account).or_default() += 1;
                }
                let _judged = self.pool.judge(self.now, &mut taken, &fault, Bearing::Full);
                self.pool.release(self.now, taken, true);
            }
            Event::Rejected(times) => {
                for _ in 0..times {
                    self.take_of(Some(AccountKey(0)))?;
                    let newest = self.open.len() - 1;
                    if self.open.get(newest)?.taken.account() != AccountKey(0) {
                        return None;
                    }
                    if let Err(what) = self.happen(Event::Fail(newest, FaultKind::CredentialRejected))? {
                        return Some(Err(what));
                    }
                }
            }
            Event::Leave(at) => {
                let taken = self.leave(at)?.taken;
                self.pool.release(self.now, taken, true);
            }
            Event::Wait(seconds) => self.now = self.now.after(Duration::from_secs(seconds)),
            Event::Switch(enabled) => {
                let id = AccountId { upstream: "u".into(), account: "a".into() };
                let status = |pool: &Pool| pool.snapshot(AccountKey(0)).map(|one| one.standing.status().clone());
                let before = status(&self.pool);
                self.pool.set_enabled(self.now, &id, enabled);
                // A clean sheet, but only where something is switched.
                if before != status(&self.pool) {
                    self.rejected.insert(0, Vec::new());
                    self.make_stale();
                }
            }
            Event::Rotate => {
                let id = AccountId { upstream: "u".into(), account: "a".into() };
                let generation = self.generation(AccountKey(0)) + 1;
                self.pool.set_secret(self.now, &id, true, generation);
                self.make_stale();
            }
            Event::Restart => {
                let saved: Vec<_> = [AccountKey(0), AccountKey(1)]
                    .into_iter()
                    .filter_map(|key| self.pool.snapshot(key))
                    .map(|one| (one.id.clone(), one.saved(self.now), one.generation))
                    .collect();
                let used = |pool: &Pool| {
                    let all = [AccountKey(0), AccountKey(1)].into_iter().filter_map(|key| pool.snapshot(key));
                    all.map(|one| one.standing.budget_used(self.now)).collect::<Vec<_>>()
                };
                let before = used(&self.pool);
                self.open.clear();
                self.pool = Accounts::default().pool;
                for (id, saved, generation) in saved {
                    self.pool.set_secret(self.now, &id, true, generation);
                    self.pool.restore(self.now, &id, saved);
                }
                let after = used(&self.pool);
                if before != after {
                    return Some(Err(format!(
                        "invariant 13: of budgets {before:?} was used, and after a restart {after:?}"
                    )));
                }
            }
        }
        Some(self.look())
    }

    fn looks(&self) -> String {
        // Relative to now, and without the numbers of attempts: what goes on alike looks alike.
        let mut out = String::new();
        for key in [AccountKey(0), AccountKey(1)] {
            let Some(snapshot) = self.pool.snapshot(key) else { continue };
            let saved = snapshot.saved(self.now);
            let trial = snapshot.standing.in_trial();
            let samples = snapshot.standing.recent_samples(self.now);
            out += &format!("{:?} {:?} {trial} {samples} {} ", saved.status, saved.budget, snapshot.in_flight);
            out += &format!("{:?} {:?} {} ", saved.cooldowns, saved.suspension_named, saved.episode);
        }
        for open in &self.open {
            let Open { taken, stale, epoch } = open;
            let of_now = self.pool.snapshot(taken.account()).is_some_and(|snapshot| snapshot.epoch == *epoch);
            let current = taken.generation() == self.generation(taken.account());
            out += &format!("{:?} {} {} {current} {stale} {of_now} ", taken.account(), taken.trial(), taken.probe());
        }
        for upstream in self.pool.upstreams(self.now) {
            let until = upstream.ejected_until.map(|until| self.now.until(until));
            out += &format!("{} {until:?} {} {:?}", upstream.faults_in_a_row, upstream.ejections, upstream.closed);
        }
        let ages = |all: &Vec<Moment>| all.iter().map(|at| self.now.since(*at)).collect::<Vec<_>>();
        let rejected: Vec<_> = self.rejected.values().map(ages).collect();
        out + &format!("{rejected:?} {:?}", self.suspended)
    }
}

impl Accounts {
    fn take(&mut self) -> Option<()> {
        if self.open.len() >= OPEN {
            return None;
        }
        // Who gets none has asked all the same.
        let _ = self.take_of(None);
        Some(())
    }

    /// `None`: it got no slot.
    fn take_of(&mut self, only: Option<AccountKey>) -> Option<()> {
        if self.open.len() >= OPEN {
            return None;
        }
        let routes = [Candidate { upstream: "u", model: MODEL, tier: Tier::Own }];
        let need = Need { only, ..need(&routes) };
        let pick = self.pool.pick(self.now, &need).ok()?;
        let taken = self.pool.take(self.now, &pick, &need);
        let epoch = self.pool.snapshot(taken.account())?.epoch;
        self.open.push(Open { taken, stale: false, epoch });
        Some(())
    }

    /// A slot is given if and only if what everybody can see of the accounts says so.
    fn admits_as_it_looks(&self) -> Result<(), String> {
        let routes = [Candidate { upstream: "u", model: MODEL, tier: Tier::Own }];
        let picked = self.pool.clone().pick(self.now, &need(&routes));
        let closed = self.pool.upstreams(self.now).iter().any(|upstream| !upstream.closed.is_empty());
        let free = |snapshot: &Snapshot| {
            let cools = snapshot.standing.cooldowns().running(self.now).next().is_some();
            snapshot.in_flight < SLOTS && !cools && !closed
        };
        let all: Vec<Snapshot> =
            [AccountKey(0), AccountKey(1)].into_iter().filter_map(|key| self.pool.snapshot(key)).collect();
        let serves = |snapshot: &&Snapshot| free(snapshot) && matches!(snapshot.standing.status(), Status::Active);
        let may_be_tried = |snapshot: &&Snapshot| match snapshot.standing.status() {
            Status::Errored { retry_at, .. } => {
                free(snapshot) && *retry_at <= self.now && !snapshot.standing.in_trial()
            }
            Status::Active | Status::Suspended { .. } | Status::Disabled => false,
        };
        let (serve, tried) = (all.iter().any(|one| serves(&one)), all.iter().any(|one| may_be_tried(&one)));
        match picked {
            Ok(pick) if !all.iter().any(|one| one.key == pick.account && (serves(&one) || may_be_tried(&one))) => {
                Err(format!("invariant 14: {:?} is picked, and can neither serve nor be tried", pick.account))
            }
            Err(why) if serve || tried => {
                Err(format!("invariant 14: nobody is picked ({why:?}), and somebody could serve"))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// What is open of the first account was begun when it was another.
    fn make_stale(&mut self) {
        let its = self.open.iter_mut().filter(|open| open.taken.account() == AccountKey(0));
        its.for_each(|open| open.stale = true);
    }

    fn leave(&mut self, at: usize) -> Option<Open> {
        (at < self.open.len()).then(|| self.open.remove(at))
    }

    /// With nothing under way, after a day everybody serves who was not taken out.
    fn serves_in_time(&self) -> Result<(), String> {
        if !self.open.is_empty() {
            return Ok(());
        }
        let later = self.now.after(Duration::from_secs(26 * 60 * 60));
        for key in [AccountKey(0), AccountKey(1)] {
            let Some(snapshot) = self.pool.snapshot(key) else { continue };
            if matches!(snapshot.standing.status(), Status::Suspended { .. } | Status::Disabled) {
                continue;
            }
            let routes = [Candidate { upstream: "u", model: MODEL, tier: Tier::Own }];
            if let Err(why) = self.pool.clone().pick(later, &Need { only: Some(key), ..need(&routes) }) {
                return Err(format!("invariant 12: after a day {key:?} does not serve: {why:?}"));
            }
        }
        Ok(())
    }

    fn generation(&self, key: AccountKey) -> u64 {
        self.pool.snapshot(key).map_or(0, |one| one.generation)
    }

    fn is_errored(&self, key: AccountKey) -> bool {
        let snapshot = self.pool.snapshot(key);
        snapshot.is_some_and(|snapshot| matches!(snapshot.standing.status(), Status::Errored { .. }))
    }

    /// What must hold in every state.
    fn look(&mut self) -> Result<(), String> {
        let mut in_flight = 0;
        for key in [AccountKey(0), AccountKey(1)] {
            let Some(snapshot) = self.pool.snapshot(key) else { continue };
            in_flight += snapshot.in_flight;
            let its = self.open.iter().filter(|open| open.taken.account() == key);
            if its.clone().count() != snapshot.in_flight as usize || snapshot.in_flight > SLOTS {
                return Err(format!("invariant 1: {key:?} has {} in flight", snapshot.in_flight));
            }
            if its.filter(|open| open.is_try()).count() > 1 {
                return Err(format!("invariant 3: {key:?} has two tries at once"));
            }
            let all = self.rejected.entry(key.0).or_default();
            let window = tuning().budget_window;
            let (rejected, recent) = (all.len(), all.iter().filter(|at| self.now.since(**at) < window).count());
            match snapshot.standing.status() {
                Status::Errored { .. } if rejected < 3 => {
                    return Err(format!("invariant 3: {key:?} is errored after {rejected} rejections"));
                }
                Status::Suspended { .. } if self.suspended.get(&key.0).copied().unwrap_or_default() < 2 => {
                    return Err(format!("invariant 3: {key:?} is suspended at the first word"));
                }
                Status::Active if recent >= 3 => {
                    return Err(format!("invariant 3: {key:?} serves after {recent} rejections"));
                }
                Status::Active | Status::Errored { .. } | Status::Suspended { .. } | Status::Disabled => {}
            }
            for (scope, cooldown) in snapshot.standing.cooldowns().running(self.now) {
                let before = self.cooling.insert((key.0, scope.clone()), cooldown.until);
                if before.is_some_and(|before| before > cooldown.until) {
                    return Err(format!("invariant 12: the cooldown of {key:?} for {scope:?} has become shorter"));
                }
                if *scope == Scope::Account && cooldown.cause != FaultKind::RateLimited {
                    return Err(format!("invariant 2: {key:?} cools down as a whole for {}", cooldown.cause.name()));
                }
            }
        }
        for ((key, scope), until) in self.cooling.iter().filter(|(_, until)| **until > self.now) {
            let runs = self.pool.snapshot(AccountKey(*key)).is_some_and(|snapshot| {
                snapshot
                    .standing
                    .cooldowns()
                    .running(self.now)
                    .any(|(other, one)| other == scope && one.until >= *until)
            });
            if !runs {
                return Err(format!("invariant 13: the cooldown of account {key} for {scope:?} has ended too early"));
            }
        }
        self.admits_as_it_looks()?;
        self.serves_in_time()?;
        if u64::from(in_flight) != self.pool.in_flight() {
            return Err(format!("invariant 1: {in_flight} in flight, and the pool says {}", self.pool.in_flight()));
        }
        Ok(())
    }
}
