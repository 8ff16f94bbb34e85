//! What the configuration, the operator and the store say to the pool. What is under way, and what is known of an account,
//! survives all of it.

use super::breaker::Breaker;
use super::egress::Bursts;
use super::eligible::Account;
use super::pool::{Pool, Upstream};
use super::ready::{Index, spread};
use super::retry_budget::RetryBudget;
use super::spec::{AccountKey, AccountSpec, UpstreamSpec};
use super::standing::{Saved, Standing};
use crate::moment::Moment;
use crate::rate::rate_of;
use crate::tuning::Tuning;
use std::collections::BTreeSet;
use std::sync::Arc;
use turnkeep_base::AccountId;

/// Removed accounts that are remembered; the first removed gives way.
const REMOVED: usize = 1024;

impl Pool {
    /// Adds, changes and removes as the new sets say. Standing, cooldowns, slots in use and limiters survive by id. A
    /// removed account stays known, takes no new attempt, and its epoch rises, as does that of one at another place. A
    /// raised generation of an errored account lets it be tried at once. `routes` are the configured (upstream, model) pairs.
    pub fn reconfigure(
        &mut self,
        now: Moment,
        tuning: Tuning,
        upstreams: Vec<UpstreamSpec>,
        accounts: Vec<AccountSpec>,
        routes: Vec<(Arc<str>, Arc<str>)>,
    ) {
        let now = self.upkeep(now);
        self.tuning = tuning;
        self.routes = routes;
        self.wakes.clear();
        for upstream in &mut self.upstreams {
            upstream.configured = false;
            upstream.models.clear();
            upstream.index = Index::default();
        }
        for spec in upstreams {
            let at = self.upstream(&spec.name);
            let upstream = &mut self.upstreams[at];
            upstream.configured = true;
            if upstream.egress != spec.egress {
                upstream.egress = spec.egress;
                upstream.bursts = Bursts::default();
            }
        }
        let mut gone: BTreeSet<AccountKey> = self.by_id.values().copied().collect();
        for spec in accounts {
            gone.remove(&self.configure(now, spec));
        }
        for key in gone {
            self.uses += 1;
            let removed = self.uses;
            if let Some(account) = self.accounts.get_mut(key.0 as usize)
                && account.removed.is_none()
            {
                account.removed = Some(removed);
                account.epoch += 1;
                self.epoch_changes += 1;
                account.standing.abandon_try();
            }
        }
        self.forget();
        for at in 0..self.accounts.len() {
            let account = &mut self.accounts[at];
            account.filed = None;
            account.wake = None;
            account.standing.retune(&self.tuning);
            if account.removed.is_none() {
                let lists = &mut self.upstreams[account.upstream].models;
                let known = lists.iter().position(|globs| *globs == account.spec.models);
                account.models = known.unwrap_or_else(|| {
                    lists.push(account.spec.models.clone());
                    lists.len() - 1
                }) as u32;
            }
            self.refile(now, AccountKey(at as u32));
        }
    }

    /// The place of the upstream of this name, made if there is none.
    fn upstream(&mut self, name: &Arc<str>) -> usize {
        if let Some(&at) = self.upstream_by_name.get(name) {
            return at;
        }
        let at = self.upstreams.len();
        self.upstreams.push(Upstream {
            name: name.clone(),
            egress: "direct".into(),
            models: Vec::new(),
            index: Index::default(),
            bursts: Bursts::default(),
            breaker: Breaker::default(),
            retries: RetryBudget::default(),
            configured: true,
        });
        self.upstream_by_name.insert(name.clone(), at);
        at
    }

    /// Adds an account, or changes the one of this id.
    fn configure(&mut self, now: Moment, spec: AccountSpec) -> AccountKey {
        let upstream = self.upstream(&spec.id.upstream);
        if let Some(&key) = self.by_id.get(&spec.id)
            && let Some(account) = self.accounts.get_mut(key.0 as usize)
        {
            account.removed = None;
            // What was begun at one place is not gone on with at another, nor is what happened there judged here.
            if spec.place != account.spec.place {
                account.epoch += 1;
                self.epoch_changes += 1;
                account.standing.abandon_try();
            }
            if spec.generation > account.spec.generation {
                account.standing.new_secret(now);
            }
            // The operator's switch holds until the configuration says something else than it did before.
            if spec.enabled != account.spec.enabled {
                account.standing.set_enabled(now, spec.enabled);
            }
            rate_of(&mut account.requests, spec.requests_per_minute);
            rate_of(&mut account.tokens, spec.tokens_per_minute);
            let generation = spec.generation.max(account.spec.generation);
            account.spec = AccountSpec { generation, ..spec };
            return key;
        }
        let key = self.free.pop().unwrap_or(AccountKey(self.accounts.len() as u32));
        let mut standing = Standing::new(&self.tuning);
        if !spec.enabled {
            standing.set_enabled(now, false);
        }
        let (mut requests, mut tokens) = (None, None);
        rate_of(&mut requests, spec.requests_per_minute);
        rate_of(&mut tokens, spec.tokens_per_minute);
        self.by_id.insert(spec.id.clone(), key);
        let mut account = Account {
            spec,
            upstream,
            models: 0,
            standing,
            in_flight: 0,
            last_used: 0,
            spread: spread(u64::from(key.0)),
            requests,
            tokens,
            epoch: 0,
            removed: None,
            filed: None,
            wake: None,
        };
        match self.accounts.get_mut(key.0 as usize) {
            Some(place) => {
                account.epoch = place.epoch + 1;
                *place = account;
            }
            None => self.accounts.push(account),
        }
        key
    }

    /// Forgets the first removed accounts beyond the bound, once their slots are back.
    fn forget(&mut self) {
        let idle = self.by_id.values().filter_map(|&key| {
            let account = self.account(key)?;
            account.removed.filter(|_| account.in_flight == 0).map(|removed| (removed, key))
        });
        let mut idle: Vec<_> = idle.collect();
        idle.sort_unstable();
        let beyond = idle.len().saturating_sub(REMOVED);
        for &(_, key) in idle.iter().take(beyond) {
            if let Some(account) = self.accounts.get(key.0 as usize) {
                self.by_id.remove(&account.spec.id);
                self.free.push(key);
            }
        }
    }

    /// The account's secret has changed, or is there or gone. A raised generation of an errored account lets it be tried
    /// at once. False when there is none of that name.
    pub fn set_secret(&mut self, now: Moment, id: &AccountId, has_secret: bool, generation: u64) -> bool {
        let now = self.upkeep(now);
        let Some(key) = self.key_of(id) else { return false };
        if let Some(account) = self.accounts.get_mut(key.0 as usize) {
            account.spec.has_secret = has_secret;
            if generation > account.spec.generation {
                account.spec.generation = generation;
                account.standing.new_secret(now);
            }
        }
        self.refile(now, key);
        true
    }

    /// The operator takes an account out, or brings it back with a clean sheet. False when there is none of that name.
    pub fn set_enabled(&mut self, now: Moment, id: &AccountId, enabled: bool) -> bool {
        let now = self.upkeep(now);
        let Some(key) = self.key_of(id) else { return false };
        if let Some(account) = self.accounts.get_mut(key.0 as usize) {
            account.standing.set_enabled(now, enabled);
        }
        self.refile(now, key);
        true
    }

    /// Puts back what was written down of an account. One that the configuration disables stays so.
    pub fn restore(&mut self, now: Moment, id: &AccountId, saved: Saved) -> bool {
        let now = self.upkeep(now);
        let Some(key) = self.key_of(id) else { return false };
        if let Some(account) = self.accounts.get_mut(key.0 as usize) {
            account.standing.restore(now, &self.tuning, saved);
            if !account.spec.enabled {
                account.standing.set_enabled(now, false);
            }
        }
        self.refile(now, key);
        true
    }
}
