//! Every account with its standing and its slots, and the one function that answers "who serves this attempt?".
//! Admission and selection are the same question: [`Pool::pick`] succeeds if and only if a turn would be admitted.

use super::standing::{Attempt, Standing, Status};
use crate::glob::Globs;
use crate::moment::Moment;
use turnkeep_base::{AccountId, Fault};

/// An account's place in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountKey(pub u32);

/// An account as configured.
#[derive(Clone, Debug)]
pub struct AccountSpec {
    /// Its identity.
    pub id: AccountId,
    /// The most attempts at once.
    pub max_in_flight: u32,
    /// The models it serves, by the upstream's names.
    pub models: Globs,
    /// Its secret was found.
    pub has_secret: bool,
    /// The operator has not taken it out.
    pub enabled: bool,
}

#[derive(Clone, Debug)]
struct Account {
    spec: AccountSpec,
    standing: Standing,
    in_flight: u32,
    last_used: u64,
}

/// One way to serve a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The upstream's name.
    pub upstream: &'a str,
    /// The model it is asked for.
    pub model: &'a str,
}

/// What an attempt needs.
#[derive(Clone, Copy, Debug)]
pub struct Need<'a> {
    /// The routes, in order of preference.
    pub routes: &'a [Candidate<'a>],
    /// Accounts that this turn has tried.
    pub tried: &'a [AccountKey],
    /// Only this account will do (a replay on the same one).
    pub only: Option<AccountKey>,
    /// Breaks ties, so that callers spread over equal accounts.
    pub tie: u64,
}

/// Who serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The route's index in the need.
    pub route: usize,
    /// The account.
    pub account: AccountKey,
    /// It is the single try of an errored account.
    pub trial: bool,
}

/// Why nobody serves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// Every candidate cools (or is errored, some cooling).
    AllCooling {
        /// The soonest end.
        retry_at: Moment,
    },
    /// Some candidate would serve but for its slots.
    AllBusy {
        /// When a cooling or errored candidate may serve, if there is one.
        retry_at: Option<Moment>,
    },
    /// Every candidate's credential was refused too often.
    AllErrored {
        /// The soonest try.
        retry_at: Moment,
    },
    /// No candidate's key may use the model.
    NoneEntitled,
    /// There is no candidate at all, or none that the operator lets serve.
    NoAccounts,
    /// Too many turns wait already.
    QueueFull,
    /// The turn's time was up before its turn came.
    DeadlinePassed,
}

/// An account as the operator sees it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its key.
    pub key: AccountKey,
    /// Its identity.
    pub id: AccountId,
    /// Its standing.
    pub standing: Standing,
    /// Attempts under way.
    pub in_flight: u32,
    /// The most at once.
    pub max_in_flight: u32,
    /// Its secret was found.
    pub has_secret: bool,
}

/// All accounts.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    accounts: Vec<Account>,
    uses: u64,
}

impl Pool {
    /// A pool of these accounts, in the order of the configuration.
    pub fn new(specs: Vec<AccountSpec>) -> Self {
        let accounts = specs
            .into_iter()
            .map(|spec| {
                let mut standing = Standing::default();
                if !spec.enabled {
                    standing.set_enabled(false);
                }
                Account { spec, standing, in_flight: 0, last_used: 0 }
            })
            .collect();
        Pool { accounts, uses: 0 }
    }

    /// Puts a persisted standing back; a disabled account stays so.
    pub fn restore(&mut self, id: &AccountId, standing: Standing) {
        if let Some(account) = self.accounts.iter_mut().find(|account| &account.spec.id == id)
            && account.spec.enabled
        {
            account.standing = standing;
        }
    }

    /// Who would serve, without taking the slot.
    pub fn pick(&self, now: Moment, need: &Need<'_>) -> Result<Pick, Unavailable> {
        let mut seen = Seen::default();
        for (route, candidate) in need.routes.iter().enumerate() {
            let mut best: Option<(Rank, Pick)> = None;
            for (at, account) in self.accounts.iter().enumerate() {
                let key = AccountKey(at as u32);
                let asked = need.only.map_or(!need.tried.contains(&key), |only| only == key);
                if !asked || &*account.spec.id.upstream != candidate.upstream {
                    continue;
                }
                let eligible = account.eligible(now, candidate.model);
                if let Eligible::Yes { trial } = eligible {
                    let pick = Pick { route, account: key, trial };
                    let rank = account.rank(now, trial, need.tie, key);
                    if best.is_none_or(|(other, _)| rank < other) {
                        best = Some((rank, pick));
                    }
                } else {
                    seen.add(eligible);
                }
            }
            if let Some((_, pick)) = best {
                return Ok(pick);
            }
        }
        Err(seen.verdict())
    }

    /// Takes a slot of a picked account.
    pub fn take(&mut self, pick: &Pick) {
        self.uses += 1;
        let used = self.uses;
        if let Some(account) = self.accounts.get_mut(pick.account.0 as usize) {
            account.in_flight += 1;
            account.last_used = used;
            if pick.trial {
                account.standing.begin_trial();
            }
        }
    }

    /// Gives a slot back.
    pub fn release(&mut self, key: AccountKey) {
        if let Some(account) = self.accounts.get_mut(key.0 as usize) {
            account.in_flight = account.in_flight.saturating_sub(1);
        }
    }

    /// Judges an attempt's fault.
    pub fn judge(&mut self, now: Moment, key: AccountKey, model: &str, trial: bool, fault: &Fault) {
        let last_one = self.is_last_one(key, model);
        if let Some(account) = self.accounts.get_mut(key.0 as usize) {
            account.standing.judge(now, fault, Attempt { model, trial, last_one });
        }
    }

    /// The upstream completed a turn.
    pub fn succeed(&mut self, key: AccountKey, model: &str, trial: bool) {
        if let Some(account) = self.accounts.get_mut(key.0 as usize) {
            account.standing.succeed(Attempt { model, trial, last_one: false });
        }
    }

    /// An attempt ended without a judgement.
    pub fn end_unjudged(&mut self, now: Moment, key: AccountKey, trial: bool) {
        if let Some(account) = self.accounts.get_mut(key.0 as usize) {
            account.standing.release_trial(now, trial);
        }
    }

    /// The operator takes an account out or brings it back. False when there is none of that name.
    pub fn set_enabled(&mut self, id: &AccountId, enabled: bool) -> bool {
        match self.accounts.iter_mut().find(|account| &account.spec.id == id) {
            Some(account) => {
                account.spec.enabled = enabled;
                account.standing.set_enabled(enabled);
                true
            }
            None => false,
        }
    }

    fn is_last_one(&self, key: AccountKey, model: &str) -> bool {
        let Some(this) = self.accounts.get(key.0 as usize) else { return false };
        !self.accounts.iter().enumerate().any(|(at, other)| {
            at != key.0 as usize
                && other.spec.id.upstream == this.spec.id.upstream
                && other.spec.models.allow(model)
                && other.standing.status() == &Status::Active
                && other.spec.has_secret
        })
    }

    /// The account's status.
    pub fn status(&self, key: AccountKey) -> Option<&Status> {
        self.accounts.get(key.0 as usize).map(|account| account.standing.status())
    }

    /// The account's identity.
    pub fn id(&self, key: AccountKey) -> Option<&AccountId> {
        self.accounts.get(key.0 as usize).map(|account| &account.spec.id)
    }

    /// Attempts under way over all accounts.
    pub fn in_flight(&self) -> u64 {
        self.accounts.iter().map(|account| u64::from(account.in_flight)).sum()
    }

    /// Whether any account could serve something, now or after a wait.
    pub fn has_usable(&self) -> bool {
        self.accounts.iter().any(|account| {
            account.spec.has_secret && matches!(account.standing.status(), Status::Active | Status::Errored { .. })
        })
    }

    /// One account as the operator sees it.
    pub fn snapshot(&self, key: AccountKey) -> Option<Snapshot> {
        self.accounts.get(key.0 as usize).map(|account| Snapshot {
            key,
            id: account.spec.id.clone(),
            standing: account.standing.clone(),
            in_flight: account.in_flight,
            max_in_flight: account.spec.max_in_flight,
            has_secret: account.spec.has_secret,
        })
    }

    /// All accounts as the operator sees them.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        (0..self.accounts.len()).filter_map(|at| self.snapshot(AccountKey(at as u32))).collect()
    }
}

/// Smaller is better: tried accounts last, then fewest in flight for the limit, fewest samples, least recently used.
type Rank = (bool, u64, usize, u64, u64);

enum Eligible {
    Yes { trial: bool },
    Busy,
    Cooling(Moment),
    Errored(Moment),
    NotEntitled,
    Out,
}

impl Account {
    fn eligible(&self, now: Moment, model: &str) -> Eligible {
        if !self.spec.has_secret {
            return Eligible::Out;
        }
        if !self.spec.models.allow(model) || self.standing.cooldowns().blocked(now, model) {
            return Eligible::NotEntitled;
        }
        let trial = match self.standing.status() {
            Status::Active => false,
            Status::Errored { retry_at, .. } if *retry_at > now => return Eligible::Errored(*retry_at),
            Status::Errored { .. } if self.standing.in_trial() => {
                return Eligible::Errored(now.after(std::time::Duration::from_secs(1)));
            }
            Status::Errored { .. } => true,
            Status::Suspended { .. } | Status::Disabled => return Eligible::Out,
        };
        if let Some(until) = self.standing.cooldowns().until(now, model) {
            return Eligible::Cooling(until);
        }
        if self.in_flight >= self.spec.max_in_flight {
            return Eligible::Busy;
        }
        Eligible::Yes { trial }
    }

    fn rank(&self, now: Moment, trial: bool, tie: u64, key: AccountKey) -> Rank {
        let load = u64::from(self.in_flight) * 1_000_000 / u64::from(self.spec.max_in_flight.max(1));
        let spread = (tie ^ u64::from(key.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (trial, load, self.standing.recent_samples(now), self.last_used, spread)
    }
}

#[derive(Default)]
struct Seen {
    busy: bool,
    cooling: Option<Moment>,
    errored: Option<Moment>,
    not_entitled: bool,
}

impl Seen {
    fn add(&mut self, eligible: Eligible) {
        let sooner = |old: Option<Moment>, new: Moment| Some(old.map_or(new, |old| old.min(new)));
        match eligible {
            Eligible::Yes { .. } | Eligible::Out => {}
            Eligible::Busy => self.busy = true,
            Eligible::Cooling(until) => self.cooling = sooner(self.cooling, until),
            Eligible::Errored(until) => self.errored = sooner(self.errored, until),
            Eligible::NotEntitled => self.not_entitled = true,
        }
    }

    fn verdict(self) -> Unavailable {
        match (self.busy, self.cooling, self.errored) {
            (true, cooling, errored) => Unavailable::AllBusy { retry_at: cooling.into_iter().chain(errored).min() },
            (false, Some(cooling), errored) => {
                Unavailable::AllCooling { retry_at: errored.map_or(cooling, |errored| errored.min(cooling)) }
            }
            (false, None, Some(retry_at)) => Unavailable::AllErrored { retry_at },
            (false, None, None) if self.not_entitled => Unavailable::NoneEntitled,
            (false, None, None) => Unavailable::NoAccounts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use turnkeep_base::{Evidence, FaultKind, Phase};

    fn pool(accounts: &[(&str, &str, u32)]) -> Pool {
        Pool::new(
            accounts
                .iter()
                .map(|(upstream, account, max)| AccountSpec {
                    id: AccountId { upstream: (*upstream).into(), account: (*account).into() },
                    max_in_flight: *max,
                    models: Globs::default(),
                    has_secret: true,
                    enabled: true,
                })
                .collect(),
        )
    }

    fn fault(kind: FaultKind) -> Fault {
        Fault::new(kind, Phase::Answered, Evidence::default())
    }

    const A: Candidate<'static> = Candidate { upstream: "a", model: "m" };
    const B: Candidate<'static> = Candidate { upstream: "b", model: "n" };

    fn need<'a>(routes: &'a [Candidate<'a>], tried: &'a [AccountKey]) -> Need<'a> {
        Need { routes, tried, only: None, tie: 0 }
    }

    #[test]
    fn turns_spread_over_equal_accounts_and_the_first_route_wins_while_it_can_serve() {
        let mut pool = pool(&[("a", "1", 2), ("a", "2", 2), ("b", "1", 2)]);
        let mut picks = Vec::new();
        for _ in 0..6 {
            let pick = pool.pick(Moment(0), &need(&[A, B], &[])).unwrap();
            pool.take(&pick);
            picks.push((pick.route, pick.account.0));
        }
        picks[..4].sort_unstable();
        assert_eq!(picks, [(0, 0), (0, 0), (0, 1), (0, 1), (1, 2), (1, 2)]);
        assert_eq!(pool.pick(Moment(0), &need(&[A, B], &[])), Err(Unavailable::AllBusy { retry_at: None }));
        pool.release(AccountKey(1));
        assert_eq!(pool.pick(Moment(0), &need(&[A, B], &[])).map(|pick| pick.account), Ok(AccountKey(1)));
    }

    #[test]
    fn what_nobody_can_serve_is_told_apart() {
        let mut pool = pool(&[("a", "1", 1), ("a", "2", 1)]);
        assert_eq!(pool.pick(Moment(0), &need(&[B], &[])), Err(Unavailable::NoAccounts));
        pool.judge(Moment(0), AccountKey(0), "m", false, &fault(FaultKind::RateLimited));
        pool.judge(
            Moment(0),
            AccountKey(1),
            "m",
            false,
            &fault(FaultKind::RateLimited).wait(Some(Duration::from_secs(9))),
        );
        let cooling = Unavailable::AllCooling { retry_at: Moment(9000) };
        assert_eq!(pool.pick(Moment(0), &need(&[A], &[])), Err(cooling));
        assert_eq!(pool.pick(Moment(9000), &need(&[A], &[])).map(|pick| pick.account), Ok(AccountKey(1)));
        for key in [AccountKey(0), AccountKey(1)] {
            pool.judge(Moment(20_000), key, "m", false, &fault(FaultKind::ModelNotEntitled));
        }
        assert_eq!(pool.pick(Moment(20_000), &need(&[A], &[])), Err(Unavailable::NoneEntitled));
    }

    #[test]
    fn an_errored_account_lets_one_turn_at_a_time_try_it_once_its_time_has_come() {
        let mut pool = pool(&[("a", "1", 4)]);
        for _ in 0..3 {
            pool.judge(Moment(0), AccountKey(0), "m", false, &fault(FaultKind::CredentialRejected));
        }
        let retry_at = Moment(60_000);
        assert_eq!(pool.pick(Moment(1), &need(&[A], &[])), Err(Unavailable::AllErrored { retry_at }));
        let pick = pool.pick(retry_at, &need(&[A], &[])).unwrap();
        assert!(pick.trial);
        pool.take(&pick);
        assert!(pool.pick(retry_at, &need(&[A], &[])).is_err());
        pool.succeed(AccountKey(0), "m", true);
        pool.release(AccountKey(0));
        assert_eq!(pool.pick(retry_at, &need(&[A], &[])).map(|pick| pick.trial), Ok(false));
    }

    #[test]
    fn a_tried_account_is_not_asked_again_unless_it_is_the_only_one_wanted() {
        let pool = pool(&[("a", "1", 4)]);
        assert_eq!(pool.pick(Moment(0), &need(&[A], &[AccountKey(0)])), Err(Unavailable::NoAccounts));
        let again = Need { only: Some(AccountKey(0)), ..need(&[A], &[AccountKey(0)]) };
        assert!(pool.pick(Moment(0), &again).is_ok());
    }
}
