//! Every account with its standing and its slots, and every upstream with its endpoint's health. Changed by what happens
//! to attempts and by the configuration; it reads no clock.

use super::breaker::Breaker;
use super::egress::Bursts;
use super::eligible::Account;
use super::judged::Taken;
use super::ready::Index;
use super::retry_budget::RetryBudget;
use super::spec::{AccountKey, Need, Pick};
use super::standing::Status;
use crate::glob::Globs;
use crate::moment::Moment;
use crate::rate::Rate;
use crate::tuning::Tuning;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use turnkeep_base::{AccountId, Fingerprint};

/// One upstream.
#[derive(Clone, Debug)]
pub(super) struct Upstream {
    pub(super) name: Arc<str>,
    pub(super) egress: Arc<str>,
    /// The different lists of models of its accounts.
    pub(super) models: Vec<Globs>,
    pub(super) index: Index,
    pub(super) bursts: Bursts,
    pub(super) breaker: Breaker,
    pub(super) retries: RetryBudget,
    /// It is in the configuration.
    pub(super) configured: bool,
}

impl Upstream {
    pub(super) fn allows(&self, models: u32, model: &str) -> bool {
        self.models.get(models as usize).is_some_and(|globs| globs.allow(model))
    }
}

/// All accounts.
#[derive(Clone, Debug)]
pub struct Pool {
    pub(super) tuning: Tuning,
    pub(super) accounts: Vec<Account>,
    pub(super) by_id: BTreeMap<AccountId, AccountKey>,
    pub(super) upstreams: Vec<Upstream>,
    pub(super) upstream_by_name: BTreeMap<Arc<str>, usize>,
    pub(super) routes: Vec<(Arc<str>, Arc<str>)>,
    /// Places of forgotten accounts.
    pub(super) free: Vec<AccountKey>,
    pub(super) wakes: BTreeSet<(Moment, AccountKey)>,
    clock: Moment,
    pub(super) uses: u64,
    pub(super) in_flight: u64,
    /// Some endpoint has been ejected at some time; spares the look-ups until then.
    pub(super) ever_ejected: bool,
    /// How often an epoch has risen.
    pub(super) epoch_changes: u64,
}

impl Pool {
    /// A pool without accounts.
    pub fn new(tuning: Tuning) -> Pool {
        Pool {
            tuning,
            accounts: Vec::new(),
            by_id: BTreeMap::new(),
            upstreams: Vec::new(),
            upstream_by_name: BTreeMap::new(),
            routes: Vec::new(),
            free: Vec::new(),
            wakes: BTreeSet::new(),
            clock: Moment(0),
            uses: 0,
            in_flight: 0,
            ever_ejected: false,
            epoch_changes: 0,
        }
    }

    /// Takes what a pick for this need found: the slot, a request and the estimated tokens of its own rate, a retry of
    /// the upstream's budget, the try, the probe.
    pub fn take(&mut self, now: Moment, pick: &Pick, need: &Need<'_>) -> Taken {
        let now = self.upkeep(now);
        self.uses += 1;
        let id = self.uses;
        let model = need.routes.get(pick.route).map_or("", |candidate| candidate.model);
        let mut taken = Taken {
            account: pick.account,
            upstream: usize::MAX,
            model: model.into(),
            id,
            trial: pick.trial,
            probe: pick.probe,
            generation: 0,
            epoch: 0,
            request: None,
            tokens: None,
            ended: false,
        };
        let Some(account) = self.accounts.get_mut(pick.account.0 as usize) else { return taken };
        account.in_flight += 1;
        self.in_flight += 1;
        account.last_used = id;
        taken.upstream = account.upstream;
        taken.generation = account.spec.generation;
        taken.epoch = account.epoch;
        taken.request = account.requests.as_mut().map(|rate| rate.draw(now, 1));
        taken.tokens = account.tokens.as_mut().map(|rate| rate.draw(now, need.tokens));
        if pick.trial {
            account.standing.begin_trial(id);
        }
        let upstream = &mut self.upstreams[account.upstream];
        if pick.probe {
            upstream.breaker.begin_probe(id);
        }
        if need.retry {
            upstream.retries.retry(now, &self.tuning);
        } else if need.tried.is_empty() && need.only.is_none() {
            upstream.retries.turn(now, &self.tuning);
        }
        self.refile(now, pick.account);
        taken
    }

    /// Gives a slot back: always, last. An attempt that was neither judged nor has succeeded frees its try. One that was
    /// not sent gets its request and its tokens back. True when something that outlives the process has changed.
    pub fn release(&mut self, now: Moment, taken: Taken, sent: bool) -> bool {
        let now = self.upkeep(now);
        self.end_probe(&taken);
        let Some(account) = self.accounts.get_mut(taken.account.0 as usize) else { return false };
        account.in_flight = account.in_flight.saturating_sub(1);
        self.in_flight = self.in_flight.saturating_sub(1);
        if !sent {
            let back = |rate: &mut Option<Rate>, drawn| {
                if let (Some(rate), Some(drawn)) = (rate, drawn) {
                    rate.give_back(now, drawn);
                }
            };
            back(&mut account.requests, taken.request);
            back(&mut account.tokens, taken.tokens);
        }
        let current = account.epoch == taken.epoch && !taken.ended;
        let changed = current && account.standing.end_unjudged(now, &self.tuning, taken.id);
        self.refile(now, taken.account);
        changed
    }

    pub(super) fn end_probe(&mut self, taken: &Taken) {
        if taken.probe
            && let Some(upstream) = self.upstreams.get_mut(taken.upstream)
        {
            upstream.breaker.end_probe(taken.id);
        }
    }

    /// Files everything anew whose time has come. Gives the time, which never goes back.
    pub(super) fn upkeep(&mut self, now: Moment) -> Moment {
        self.clock = self.clock.max(now);
        let now = self.clock;
        while let Some(&(at, key)) = self.wakes.first()
            && at <= now
        {
            self.wakes.pop_first();
            if let Some(account) = self.accounts.get_mut(key.0 as usize) {
                account.wake = None;
            }
            self.refile(now, key);
        }
        now
    }

    /// Files one account anew, after any change to it.
    pub(super) fn refile(&mut self, now: Moment, key: AccountKey) {
        let Some(account) = self.accounts.get_mut(key.0 as usize) else { return };
        let (filed, wake) = account.filing(now, key);
        if let Some(upstream) = self.upstreams.get_mut(account.upstream) {
            upstream.index.refile(key, account.filed.as_ref(), filed.as_ref());
        }
        account.filed = filed;
        if account.wake != wake {
            if let Some(at) = account.wake {
                self.wakes.remove(&(at, key));
            }
            if let Some(at) = wake {
                self.wakes.insert((at, key));
            }
            account.wake = wake;
        }
    }

    /// Whether some model, of the configured routes and the attempt's, has no other active account.
    pub(super) fn is_last_one(&self, now: Moment, key: AccountKey, model: &str) -> bool {
        let Some(this) = self.account(key) else { return false };
        let serves = |other: &Account, model: &str| {
            other.upstream == this.upstream
                && other.removed.is_none()
                && other.spec.has_secret
                && other.standing.status() == &Status::Active
                && other.spec.models.allow(model)
                && !other.standing.cooldowns().blocked(now, model)
        };
        let others = |model: &str| {
            let mut all = self.accounts.iter().enumerate();
            all.any(|(at, other)| at != key.0 as usize && serves(other, model))
        };
        let routed = self.routes.iter().filter(|(upstream, _)| *upstream == this.spec.id.upstream);
        let models = routed.map(|(_, model)| &**model).filter(|model| this.spec.models.allow(model));
        models.chain([model]).any(|model| !others(model))
    }

    pub(super) fn upstream_index(&self, name: &str) -> Option<usize> {
        self.upstream_by_name.get(name).copied()
    }

    pub(super) fn account(&self, key: AccountKey) -> Option<&Account> {
        self.accounts.get(key.0 as usize)
    }

    /// When the account's own rate allows so many tokens.
    pub(super) fn rate_at(&self, key: AccountKey, tokens: u64) -> Moment {
        self.account(key).map_or(Moment(0), |account| account.rate_at(tokens))
    }

    pub(super) fn fits(&self, now: Moment, key: AccountKey, tokens: u64) -> bool {
        self.rate_at(key, tokens) <= now
    }

    /// Attempts under way over all accounts, removed ones too.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// The account's identity.
    pub fn id(&self, key: AccountKey) -> Option<&AccountId> {
        self.account(key).map(|account| &account.spec.id)
    }

    /// The epoch of an account that is configured.
    pub fn epoch_of(&self, id: &AccountId) -> Option<u64> {
        self.account(self.key_of(id)?).map(|account| account.epoch)
    }

    /// The place of an account that is configured, and its epoch there.
    pub fn place_of(&self, id: &AccountId) -> Option<(Fingerprint, u64)> {
        self.account(self.key_of(id)?).map(|account| (account.spec.place, account.epoch))
    }

    /// The upstream of this name is set aside for its faults.
    pub fn is_ejected(&self, upstream: &str) -> bool {
        self.upstream_index(upstream).is_some_and(|at| self.upstreams[at].breaker.is_open())
    }

    /// How often any account's epoch has risen.
    pub fn epoch_changes(&self) -> u64 {
        self.epoch_changes
    }

    /// The provider has suspended the account of this identity.
    pub fn is_suspended(&self, id: &AccountId) -> bool {
        let account = self.key_of(id).and_then(|key| self.account(key));
        account.is_some_and(|account| matches!(account.standing.status(), Status::Suspended { .. }))
    }

    /// The account of this identity, also if its configuration is gone.
    pub fn key_of(&self, id: &AccountId) -> Option<AccountKey> {
        self.by_id.get(id).copied()
    }
}
