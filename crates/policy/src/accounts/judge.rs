//! What the end of an attempt does, to its account and to its upstream. The blame table says what a fault means; this file
//! finds whom it concerns.

use super::egress::Group;
use super::judged::{Applied, Bearing, ChargeRef, Judged, Taken};
use super::pool::Pool;
use super::standing::Attempt;
use crate::moment::Moment;
use turnkeep_base::verdict::verdict;
use turnkeep_base::{Fault, FaultKind, Health, Origin};

impl Pool {
    /// The attempt ended with a fault: what the blame table says happens to its account and its upstream. At most once
    /// for each slot; frees the try.
    pub fn judge(&mut self, now: Moment, taken: &mut Taken, fault: &Fault, bearing: Bearing) -> Judged {
        let now = self.upkeep(now);
        if std::mem::replace(&mut taken.ended, true) {
            return Judged::recorded("the attempt had ended already");
        }
        self.end_probe(taken);
        if !self.is_current(taken) {
            return Judged::recorded("the account has been removed or suspended since");
        }
        let burst = self.judge_upstream(now, taken, fault, bearing);
        let last_one = (verdict(fault).charge.is_some() || fault.is_shell())
            && bearing == Bearing::Full
            && self.is_last_one(now, taken.account, &taken.model);
        let Some(account) = self.accounts.get_mut(taken.account.0 as usize) else { return Judged::default() };
        let attempt =
            Attempt { id: taken.id, model: &taken.model, current_secret: taken.generation >= account.spec.generation };
        let before = account.standing.status().clone();
        let grounds = account.standing.grounds(now, &self.tuning, attempt, bearing, last_one);
        let outcome = account.standing.judge(now, &self.tuning, fault, attempt, bearing, last_one);
        let lasting = |applied: &Applied| match applied {
            Applied::Budget { .. } | Applied::Errored { .. } | Applied::Suspended | Applied::Cooled { .. } => true,
            Applied::Recorded(_) | Applied::Sample | Applied::Misconfigured => false,
        };
        let changed = *account.standing.status() != before || outcome.applied.iter().any(lasting);
        let epoch = account.epoch;
        if outcome.applied.contains(&Applied::Suspended) {
            account.epoch += 1;
            self.epoch_changes += 1;
        }
        self.refile(now, taken.account);
        let charge = outcome.shell_charge.then_some(ChargeRef { account: taken.account, epoch, id: taken.id });
        Judged { applied: outcome.applied, charge, changed, burst, grounds: Some(Box::new(grounds)) }
    }

    /// The endpoint's breaker and the address' bursts. True when the fault closed the address for the model.
    fn judge_upstream(&mut self, now: Moment, taken: &Taken, fault: &Fault, bearing: Bearing) -> bool {
        let group = self.account(taken.account).map(|account| match &account.spec.limit_group {
            Some(group) => Group::Shared(group.clone()),
            None => Group::Own(taken.account.0),
        });
        let (Some(upstream), Some(group)) = (self.upstreams.get_mut(taken.upstream), group) else { return false };
        if bearing == Bearing::Full {
            let verdict = verdict(fault);
            let answered = fault.evidence.status.is_some();
            match (verdict.health, verdict.origin) {
                (Health::Upstream, _) => {
                    upstream.breaker.fault(now, &self.tuning);
                    self.ever_ejected |= upstream.breaker.is_open();
                }
                // A reply that speaks of the account, the model or the request: the endpoint itself is there.
                (Health::Model, _) | (Health::None, Origin::Account | Origin::Request) if answered => {
                    upstream.breaker.success();
                }
                (Health::Model | Health::None, _) => {}
            }
        }
        fault.kind == FaultKind::RateLimited
            && !fault.declared.explains()
            && upstream.bursts.limited(now, &self.tuning, &taken.model, group)
    }

    /// The upstream completed a turn, which cost so many tokens if that is known. True when something that outlives the
    /// process has changed.
    pub fn succeed(&mut self, now: Moment, taken: &mut Taken, tokens: Option<u64>) -> bool {
        let now = self.upkeep(now);
        if std::mem::replace(&mut taken.ended, true) {
            return false;
        }
        self.end_probe(taken);
        if !self.is_current(taken) {
            return false;
        }
        if let Some(upstream) = self.upstreams.get_mut(taken.upstream) {
            upstream.breaker.success();
            upstream.bursts.success(&taken.model);
        }
        self.true_up(now, taken, tokens);
        let Some(account) = self.accounts.get_mut(taken.account.0 as usize) else { return false };
        let attempt =
            Attempt { id: taken.id, model: &taken.model, current_secret: taken.generation >= account.spec.generation };
        let changed = account.standing.succeed(now, attempt);
        self.refile(now, taken.account);
        changed
    }

    /// The answer has begun: the provider has taken the credential. A try of an errored account has passed, however its
    /// stream ends. True when that changes what outlives the process.
    pub fn prove(&mut self, now: Moment, taken: &Taken) -> bool {
        let now = self.upkeep(now);
        if !taken.trial || taken.ended || !self.is_current(taken) {
            return false;
        }
        let Some(account) = self.accounts.get_mut(taken.account.0 as usize) else { return false };
        let attempt =
            Attempt { id: taken.id, model: &taken.model, current_secret: taken.generation >= account.spec.generation };
        let changed = account.standing.succeed(now, attempt);
        self.refile(now, taken.account);
        changed
    }

    /// The attempt cost so many tokens, if that is known: the account's own rate is put right, however it ended.
    pub fn true_up(&mut self, now: Moment, taken: &mut Taken, tokens: Option<u64>) {
        let Some(account) = self.accounts.get_mut(taken.account.0 as usize) else { return };
        if let (Some(rate), Some(drawn), Some(tokens)) = (account.tokens.as_mut(), taken.tokens, tokens) {
            taken.tokens = Some(rate.true_up(now, drawn, tokens));
        }
    }

    /// Corroboration convicted the request: takes this one charge back, and the episode that it alone opened. False when
    /// neither is there any more.
    pub fn take_back(&mut self, now: Moment, charge: ChargeRef) -> bool {
        let now = self.upkeep(now);
        let Some(account) = self.accounts.get_mut(charge.account.0 as usize) else { return false };
        let undone = account.epoch == charge.epoch && account.standing.take_back(now, &self.tuning, charge.id);
        self.refile(now, charge.account);
        undone
    }

    fn is_current(&self, taken: &Taken) -> bool {
        self.account(taken.account).is_some_and(|account| account.epoch == taken.epoch)
    }
}
