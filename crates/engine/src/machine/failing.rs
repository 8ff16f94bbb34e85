//! What the machine does when something fails: whether the turn goes on, where, and after which wait.

use super::{AttemptEnd, Downstream, Effect, Ending, Machine, Stage, TurnEnd};
use crate::timers::Timer;
use turnkeep_base::verdict::{counts, verdict};
use turnkeep_base::{Fault, FaultKind, Next, Origin, Phase, seeded};
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::Unavailable;

impl Machine {
    pub(super) fn no_slot(&mut self, unavailable: Unavailable, now: Moment, out: &mut Vec<Effect>) {
        let Some(last) = self.last.clone() else {
            return self.fail(Ending::Unavailable(unavailable), out);
        };
        // The replay on the same account cannot be had now: elsewhere.
        if self.only.take().is_some() {
            return self.acquire(out);
        }
        match unavailable {
            // The burst explains the rate limit that led here.
            Unavailable::EgressClosed { .. } if last.kind == FaultKind::RateLimited => {
                return self.fail(Ending::Unavailable(unavailable), out);
            }
            Unavailable::RetriesSpent => return self.fail(Ending::Fault(last), out),
            Unavailable::EgressClosed { .. }
            | Unavailable::AllCooling { .. }
            | Unavailable::AllBusy { .. }
            | Unavailable::AllErrored { .. }
            | Unavailable::NoneEntitled
            | Unavailable::NoAccounts
            | Unavailable::QueueFull
            | Unavailable::DeadlinePassed => {}
        }
        // The model's own routes have nobody left; a fallback may serve, the accounts that were tried too.
        if self.fall_back() {
            return self.acquire(out);
        }
        // Nobody else is left: the same account on a new connection, once, if it was the network.
        let network = verdict(&last).origin == Origin::Network;
        if network
            && !self.replayed_same
            && let Some(account) = self.account
        {
            self.replayed_same = true;
            self.tried.retain(|&tried| tried != account);
            return self.back_off(now);
        }
        self.fail(Ending::Fault(last), out);
    }

    pub(super) fn uncarriable(&mut self, out: &mut Vec<Effect>) {
        out.push(Effect::CloseAttempt(AttemptEnd::Unsent));
        if self.route.saturating_add(1) < self.facts.routes {
            self.from_route = self.route.saturating_add(1);
            return self.acquire(out);
        }
        match self.last.clone() {
            Some(last) => self.fail(Ending::Fault(last), out),
            None => self.fail(Ending::Uncarriable, out),
        }
    }

    /// An attempt, or the turn, has failed. `refused`: the upstream has certainly not begun with it.
    pub(super) fn fault(&mut self, mut fault: Fault, refused: bool, now: Moment, out: &mut Vec<Effect>) {
        // The model has finished every choice; what broke was the wait for usage.
        if self.timers.is_set(Timer::AfterFinish) && verdict(&fault).origin == Origin::Network {
            self.timers.clear(Timer::AfterFinish);
            out.push(Effect::Settle);
            return;
        }
        let mut convicted = false;
        // What may have begun is not sent again where that would do it twice.
        let may_go_on = refused || fault.phase == Phase::Unsent || self.replay_safe;
        if matches!(self.stage, Stage::Dispatched | Stage::Answering) {
            let said = self.account.and_then(|account| self.corroboration.note(account, &fault));
            convicted = said.is_some();
            if convicted {
                fault.kind = FaultKind::RequestInvalid;
            }
            out.push(Effect::Cancel);
            out.push(Effect::CloseAttempt(AttemptEnd::Failed(fault.clone())));
            out.extend(said.map(Effect::TakeBack));
        }
        if self.alone.is_some() {
            // Nobody waits for another try.
            self.end(TurnEnd::Interrupted, out);
            return out.push(Effect::Abort);
        }
        for timer in
            [Timer::FirstContent, Timer::Between, Timer::AfterFinish, Timer::Backoff, Timer::SlowReader, Timer::Pace]
        {
            self.timers.clear(timer);
        }
        self.blocked_since = None;
        let counted = counts(&fault);
        if counted {
            self.counted = self.counted.saturating_add(1);
        }
        // What the upstream cannot help (the request, the model's name) does not spend its share of retries.
        self.retry = counted && verdict(&fault).origin != Origin::Request;
        if let Some(account) = self.account
            && !self.tried.contains(&account)
        {
            self.tried.push(account);
        }
        let spent = !seeded::is("attempts-without-bound")
            && (self.counted >= self.facts.rules.attempts.max(1)
                || self.dispatches >= self.facts.rules.dispatches.max(1));
        let next = verdict(&fault).row.next;
        let once_more = may_go_on
            && match next {
                Next::ElsewhereOnce | Next::SameFullHistory => !self.once.contains(&fault.kind),
                Next::Elsewhere | Next::ElsewhereFree | Next::SameThenElsewhere | Next::NextRoute => true,
                Next::StopOrLarger => fault.context_too_long && self.facts.larger && !self.larger,
                Next::Stop | Next::NeverStarted => false,
            };
        self.once.push(fault.kind);
        // A later route's refusal of the request or the model does not hide the fault that led there. One that two
        // accounts agree on is no later route's own.
        let hides =
            matches!(fault.kind, FaultKind::RequestInvalid | FaultKind::ModelNotFound | FaultKind::ModelNotEntitled)
                && !convicted
                && self.first_route.is_some_and(|first| self.route > first);
        let shown = self.last.take().filter(|_| hides).unwrap_or_else(|| fault.clone());
        self.last = Some(shown.clone());
        // The model's own routes have failed: its fallbacks are what is left. What stops a turn stops it there, too.
        let goes_on = may_go_on
            && match next {
                Next::Elsewhere
                | Next::ElsewhereOnce
                | Next::ElsewhereFree
                | Next::SameThenElsewhere
                | Next::SameFullHistory
                | Next::NextRoute => true,
                Next::StopOrLarger | Next::Stop | Next::NeverStarted => false,
            };
        let failed = spent || !once_more;
        let touched = self.downstream == Downstream::Touched && !seeded::is("retry-after-touch");
        if !touched && goes_on && failed && self.fall_back() {
            return self.acquire(out);
        }
        if touched || spent || !once_more {
            return self.fail(Ending::Fault(shown), out);
        }
        match next {
            Next::NextRoute => {
                self.from_route = self.route.saturating_add(1);
                if self.from_route >= self.facts.routes {
                    return self.fail(Ending::Fault(shown), out);
                }
                self.acquire(out);
            }
            Next::StopOrLarger => {
                // The same account may serve the larger model.
                self.larger = true;
                self.tried.clear();
                self.acquire(out);
            }
            Next::SameThenElsewhere => {
                let short = fault.declared.longest().is_none_or(|wait| wait <= self.facts.rules.max_cooling_wait);
                if short && !self.replayed_same {
                    self.replayed_same = true;
                    self.only = self.account;
                }
                self.acquire(out);
            }
            Next::Elsewhere | Next::ElsewhereOnce => match verdict(&fault).origin {
                Origin::Network | Origin::Upstream | Origin::Unclassified => self.back_off(now),
                Origin::Account
                | Origin::Model
                | Origin::Request
                | Origin::Caller
                | Origin::Egress
                | Origin::Conversation
                | Origin::Gateway
                | Origin::Client => self.acquire(out),
            },
            Next::ElsewhereFree => self.acquire(out),
            Next::SameFullHistory => {
                // Where its slot was handed on meanwhile, it is waited for as any other's.
                let own = self.account;
                self.tried.retain(|&tried| Some(tried) != own);
                self.only = own;
                self.acquire(out);
            }
            Next::Stop | Next::NeverStarted => self.fail(Ending::Fault(shown), out),
        }
    }

    /// Goes on to the fallbacks, once, with one attempt kept for them. False when there are none, or the turn is there.
    fn fall_back(&mut self) -> bool {
        let Some(first) = self.facts.first_fallback else { return false };
        if self.from_route >= first || self.larger || self.dispatches >= self.facts.rules.dispatches.max(1) {
            return false;
        }
        self.from_route = first;
        // Other models of the accounts that were tried may serve.
        self.tried.clear();
        self.once.clear();
        self.only = None;
        self.counted = self.counted.min(self.facts.rules.attempts.max(1) - 1);
        true
    }

    fn back_off(&mut self, now: Moment) {
        let rules = self.facts.rules;
        let longest = rules.backoff.saturating_mul(1 << self.backoffs.min(16)).min(rules.longest_backoff);
        self.backoffs = self.backoffs.saturating_add(1);
        // Full jitter: any part of the longest wait, from the turn's own randomness.
        self.jitter = self.jitter.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let part = (self.jitter >> 33) as f64 / f64::from(u32::MAX >> 1);
        self.stage = Stage::BackingOff;
        self.timers.set(Timer::Backoff, now.after(longest.mul_f64(part.clamp(0.0, 1.0))));
    }

    pub(super) fn fail(&mut self, ending: Ending, out: &mut Vec<Effect>) {
        self.end(TurnEnd::Failed(ending.clone()), out);
        out.push(Effect::WriteError(ending));
        out.push(Effect::End);
    }

    pub(super) fn end(&mut self, end: TurnEnd, out: &mut Vec<Effect>) {
        self.timers.clear_all();
        self.stage = Stage::Ended;
        out.push(Effect::CloseTurn(end));
    }
}
