//! How accounts must stand, told from what was opened, closed and noted of them alone: a model of its own, which shares no
//! line with the gateway's.

use super::Watch;
use crate::marks::Mark;
use crate::store::{Event, Seen};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;
use turnkeep_base::limit::{QUOTA_COOLDOWN, RATE_COOLDOWN};
use turnkeep_base::verdict::row;
use turnkeep_base::{AccountId, AttemptId, FaultKind, Next, Origin};
use turnkeep_engine::ports::{AttemptOutcome, FaultRecord};
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::{Scope, Snapshot, Status};

/// Rejections of a credential within this time, without a success between, that put an account out of service.
const BUDGET: usize = 3;
const BUDGET_WINDOW: Duration = Duration::from_secs(30 * 60);
/// How long a configuration may take until it is taken up.
const TAKES_UP: Duration = Duration::from_secs(1);
/// How soon an entry is written.
const WRITTEN_WITHIN: Duration = Duration::from_millis(100);
/// How soon a change of an account's standing is written down.
pub const SAVED_WITHIN: Duration = Duration::from_secs(1);
/// What a declared wait may be short of, for clocks that round.
const ROUNDING: Duration = Duration::from_millis(1100);

#[derive(Debug)]
struct Limited {
    since: Instant,
    until: Instant,
    why: String,
    /// The wall clock was set since: how much of it is left after a restart is not known.
    jumped: bool,
}

#[derive(Debug, Default)]
struct Account {
    /// Rejections since the last success.
    rejected: Vec<Instant>,
    suspended: u64,
    /// Faults of the account's own, by kind.
    own: BTreeMap<String, u64>,
    /// Until when it declared that it takes nothing, and for what.
    limited: Option<Limited>,
    errored: bool,
    /// Attempts that were opened while it was errored, since it is; and those of them that are open.
    tried: BTreeSet<AttemptId>,
    trying: BTreeSet<AttemptId>,
    /// When it was last taken away: what its attempts say that were open then is nobody's.
    removed: Option<Instant>,
    /// Somebody has changed it from outside since it was errored.
    touched: bool,
    /// When it last got another secret, or was taken away.
    replaced: Option<Instant>,
    /// When something last happened to it that changes how it stands.
    changed: Option<Instant>,
}

/// All accounts, as far as what was seen has been gone through.
#[derive(Debug, Default)]
pub struct Accounts {
    known: usize,
    accounts: BTreeMap<AccountId, Account>,
    of: BTreeMap<AttemptId, (AccountId, Instant)>,
    /// How tries of accounts that were out of service have ended.
    tries: BTreeSet<Mark>,
    /// The wall clock was set at some moment.
    jumped: bool,
}

impl Accounts {
    /// Goes through what has been seen since.
    pub fn take(&mut self, seen: &Seen, watch: &Watch) {
        for (at, event) in seen.since(self.known) {
            match event {
                Event::Opened(attempt, id) => self.opened(*at, *attempt, id, watch),
                Event::Closed(close) => {
                    let of = self.of.get(&close.attempt);
                    if let Some((account, opened)) = of.and_then(|(id, at)| Some((self.accounts.get_mut(id)?, at))) {
                        // What another secret has done says nothing of this one.
                        let current = account.replaced.is_none_or(|replaced| *opened > replaced + TAKES_UP);
                        account.changed = Some(*at);
                        if account.trying.remove(&close.attempt) {
                            self.tries.insert(match close.outcome {
                                AttemptOutcome::Completed => Mark::TrySucceeded,
                                AttemptOutcome::Failed(_) => Mark::TryFailed,
                                AttemptOutcome::Interrupted => Mark::TryFreed,
                            });
                        }
                        if close.outcome == AttemptOutcome::Completed && !account.errored && current {
                            account.rejected.clear();
                            account.touched = false;
                        }
                    }
                }
                Event::Fault(record) => self.fault(*at, record),
                Event::Again(_) | Event::Opens(_) | Event::GoesOn(_) => {}
                Event::Died | Event::Ended => {
                    let orderly = matches!(event, Event::Ended);
                    let written = |since: Instant| orderly || since + SAVED_WITHIN <= *at;
                    for account in self.accounts.values_mut() {
                        account.limited.take_if(|limited| limited.jumped || !written(limited.since));
                        // A success, or a fault, that was not written down has not happened for the next life.
                        account.touched |= account.changed.is_some_and(|changed| !written(changed));
                        account.trying.clear();
                    }
                }
                Event::Jumped => {
                    self.jumped = true;
                    self.accounts
                        .values_mut()
                        .filter_map(|account| account.limited.as_mut())
                        .for_each(|limited| limited.jumped = true);
                }
                Event::Rotated(id) | Event::Removed(id) => {
                    let account = self.accounts.entry(id.clone()).or_default();
                    if matches!(event, Event::Removed(_)) {
                        account.removed = Some(*at);
                    }
                    (account.touched, account.limited, account.changed) = (true, None, Some(*at));
                    account.replaced = Some(*at);
                    account.trying.clear();
                }
            }
        }
        self.known = seen.len();
    }

    fn opened(&mut self, at: Instant, attempt: AttemptId, id: &AccountId, watch: &Watch) {
        self.of.insert(attempt, (id.clone(), at));
        let account = self.accounts.entry(id.clone()).or_default();
        // One that was chosen before it was limited is opened when its entry is written.
        let early = |limited: &&Limited| limited.until > at + ROUNDING && at > limited.since + WRITTEN_WITHIN;
        if let Some(Limited { until, why, .. }) = account.limited.as_ref().filter(early) {
            let early = until.saturating_duration_since(at);
            watch.broken(12, format_args!("{id} was asked {early:?} before the end of its wait for {why}"));
        }
        if account.errored {
            account.tried.insert(attempt);
            account.trying.insert(attempt);
            if account.trying.len() > 1 {
                watch.broken(3, format_args!("{id} is errored and tried by {} attempts at once", account.trying.len()));
            }
        }
    }

    fn fault(&mut self, at: Instant, record: &FaultRecord) {
        let Some(id) = &record.account else { return };
        let account = self.accounts.entry(id.clone()).or_default();
        account.changed = Some(at);
        *account.own.entry(record.fault.clone()).or_default() += 1;
        if record.fault == FaultKind::CredentialRejected.name() {
            account.rejected.push(at);
        } else if record.fault == FaultKind::AccountSuspended.name() {
            account.suspended += 1;
            account.rejected.push(at);
        } else if record.fault == "corroborated" {
            // What it alone had begun has ended with it.
            account.rejected.pop();
            account.touched |= account.errored;
        }
        let opened = record.attempt.and_then(|attempt| self.of.get(&attempt)).map(|(_, at)| *at);
        if account.removed.is_some_and(|removed| opened.is_none_or(|opened| opened < removed + TAKES_UP)) {
            return;
        }
        let limits = [FaultKind::RateLimited, FaultKind::QuotaExhausted];
        if limits.iter().any(|kind| record.fault == kind.name()) {
            let usual = if record.fault == FaultKind::RateLimited.name() { RATE_COOLDOWN } else { QUOTA_COOLDOWN };
            let wait = record.wait_ms.map_or(usual, Duration::from_millis);
            let until = at + wait.min(Duration::from_secs(6 * 60 * 60));
            if account.limited.as_ref().is_none_or(|before| before.until < until) {
                account.limited = Some(Limited { since: at, until, why: record.fault.clone(), jumped: false });
            }
        }
    }

    /// How tries of accounts that were out of service have ended so far.
    pub fn tries(&self) -> BTreeSet<Mark> {
        self.tries.clone()
    }

    /// The wall clock was set at some moment.
    pub fn jumped(&self) -> bool {
        self.jumped
    }

    /// Nothing has changed how it stands since then.
    pub fn unchanged_since(&self, id: &AccountId, since: Instant) -> bool {
        self.accounts.get(id).is_none_or(|account| account.changed.is_none_or(|changed| changed < since))
    }

    /// How an account stands, and must.
    pub fn look(&mut self, snapshot: &Snapshot, now: Moment, at: Instant, watch: &Watch) {
        let id = &snapshot.id;
        let account = self.accounts.entry(id.clone()).or_default();
        let standing = &snapshot.standing;
        let recent = account.rejected.iter().filter(|&&one| at.saturating_duration_since(one) < BUDGET_WINDOW).count();
        let errored = matches!(standing.status(), Status::Errored { .. });
        match standing.status() {
            Status::Errored { .. } if !account.errored && account.rejected.len() < BUDGET && !account.touched => {
                watch.broken(3, format_args!("{id} is errored after {} rejections in a row", account.rejected.len()));
            }
            Status::Active if account.errored && account.tried.is_empty() && !account.touched => {
                watch.broken(3, format_args!("{id} was errored and serves again, and nobody has tried it"));
            }
            Status::Active if recent > BUDGET && !account.touched && !account.errored => {
                watch.broken(3, format_args!("{id} serves after {recent} rejections in a row"));
            }
            Status::Suspended { .. } if account.suspended < 2 => {
                watch.broken(3, format_args!("{id} is suspended, and that was said {} times", account.suspended));
            }
            Status::Active | Status::Errored { .. } | Status::Suspended { .. } | Status::Disabled => {}
        }
        if errored != account.errored {
            account.errored = errored;
            account.tried.clear();
            account.trying.clear();
            account.touched = false;
            account.rejected.clear();
        }
        let charged = account.rejected.len();
        if standing.budget_used(now) as usize > charged
            && !account.touched
            && matches!(standing.status(), Status::Active)
        {
            let used = standing.budget_used(now);
            watch.broken(
                6,
                format_args!("{id} has used {used} of its budget, of which {charged} since its last success"),
            );
        }
        let own = |kind: FaultKind| account.own.get(kind.name()).copied().unwrap_or_default();
        let used = standing.budget_used(now);
        if used > 0 && own(FaultKind::CredentialRejected) + own(FaultKind::AccountSuspended) == 0 {
            watch.broken(2, format_args!("{id} has used {used} of its budget, and no fault of its own"));
        }
        for (scope, cooldown) in standing.cooldowns().running(now) {
            if *scope == Scope::Account && row(cooldown.cause).origin != Origin::Account {
                watch.broken(2, format_args!("{id} cools down as a whole for {}", cooldown.cause.name()));
            }
            if own(cooldown.cause) == 0 {
                watch.broken(12, format_args!("{id} cools down for {}, which it never had", cooldown.cause.name()));
            }
        }
    }
}

/// An attempt that ended so counts against its turn's attempts, if it was sent.
pub fn counts(kind: FaultKind) -> bool {
    !matches!(row(kind).next, Next::ElsewhereFree | Next::SameFullHistory)
}
