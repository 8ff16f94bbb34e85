//! What must occur somewhere in the corpus, so that no run passes by never getting there.

use crate::client::Outcome;
use crate::gateway::Running;
use crate::reply::End;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use turnkeep_base::{AccountId, FaultKind};
use turnkeep_policy::accounts::{Snapshot, Status};
use turnkeep_policy::conversations::{CountedEnd, Handling};

/// Something that occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// A turn went on to another account.
    Failover,
    /// A stream that had begun broke off, and the client was told.
    CutMidStream,
    /// A client read no whole reply of a turn that completed.
    ReceiptWithheld,
    /// A reply arrived and was known to.
    Receipt,
    /// A conversation that turns change was put back: nothing of the turn had reached it.
    Restored,
    /// It was gone on with.
    Advanced,
    /// Its turn was cut short, and it was dropped.
    Interrupted,
    /// It was spoilt, and dropped.
    Dead,
    /// Its upstream did not know it any more.
    Gone,
    /// A branch that no turn changes was put back.
    BranchRestored,
    /// A branch was gone on with.
    BranchAdvanced,
    /// A turn on a branch was cut short.
    BranchInterrupted,
    /// The upstream of a branch did not know it any more.
    BranchGone,
    /// An account was put out of service.
    Errored,
    /// An account was suspended.
    Suspended,
    /// An account that was put out of service came back.
    CameBack,
    /// The try of an account that was out of service succeeded.
    TrySucceeded,
    /// It failed.
    TryFailed,
    /// It ended without saying anything of the account.
    TryFreed,
    /// An endpoint was ejected.
    BreakerOpen,
    /// An ejected endpoint was probed, and serves again.
    BreakerClosed,
    /// Accounts that share no limit were limited at once.
    EgressBurst,
    /// A client waited for an account.
    Queued,
    /// A turn found no account at all.
    PoolExhausted,
    /// A turn found no place to wait.
    QueueFull,
    /// An answer was not read on until its client had taken more of it.
    Paused,
    /// The gateway crashed while an attempt was open.
    CrashWithAttempt,
    /// A gateway began with attempts of the life before that had no end.
    RestartWithAttempt,
    /// A configuration was taken up while turns ran.
    ReloadUnderLoad,
    /// The gateway was told to end while turns ran.
    DrainWithTurns,
    /// An answer was held, and served to the client that came back.
    HeldServed,
    /// A turn joined another's.
    Joined,
    /// A later turn proved that a reply had arrived.
    Echo,
    /// Another account's refusal took a charge back.
    Corroborated,
    /// The same account was asked once more.
    Replay,
    /// A client read so slowly that its turn was held up.
    SlowReader,
}

impl Mark {
    /// All of them.
    pub const ALL: [Mark; 36] = [
        Mark::Failover,
        Mark::CutMidStream,
        Mark::ReceiptWithheld,
        Mark::Receipt,
        Mark::Restored,
        Mark::Advanced,
        Mark::Interrupted,
        Mark::Dead,
        Mark::Gone,
        Mark::BranchRestored,
        Mark::BranchAdvanced,
        Mark::BranchInterrupted,
        Mark::BranchGone,
        Mark::Errored,
        Mark::Suspended,
        Mark::CameBack,
        Mark::TrySucceeded,
        Mark::TryFailed,
        Mark::TryFreed,
        Mark::BreakerOpen,
        Mark::BreakerClosed,
        Mark::EgressBurst,
        Mark::Queued,
        Mark::PoolExhausted,
        Mark::QueueFull,
        Mark::Paused,
        Mark::CrashWithAttempt,
        Mark::RestartWithAttempt,
        Mark::ReloadUnderLoad,
        Mark::DrainWithTurns,
        Mark::HeldServed,
        Mark::Joined,
        Mark::Echo,
        Mark::Corroborated,
        Mark::Replay,
        Mark::SlowReader,
    ];
}

/// The marks of a run so far.
#[derive(Debug, Default)]
pub struct Marks {
    all: Mutex<BTreeSet<Mark>>,
    errored: Mutex<BTreeSet<AccountId>>,
    ejected: Mutex<BTreeSet<String>>,
}

/// What says that a lease has come to this end; `None`: no lease of this handling does.
fn of_cell(handling: Handling, end: CountedEnd) -> Option<Mark> {
    match (handling, end) {
        (Handling::Mutable, CountedEnd::Restored) => Some(Mark::Restored),
        (Handling::Mutable, CountedEnd::Advanced) => Some(Mark::Advanced),
        (Handling::Mutable, CountedEnd::Interrupted) => Some(Mark::Interrupted),
        (Handling::Mutable, CountedEnd::Dead) => Some(Mark::Dead),
        (Handling::Mutable, CountedEnd::Gone) => Some(Mark::Gone),
        (Handling::Immutable, CountedEnd::Restored) => Some(Mark::BranchRestored),
        (Handling::Immutable, CountedEnd::Advanced) => Some(Mark::BranchAdvanced),
        (Handling::Immutable, CountedEnd::Interrupted) => Some(Mark::BranchInterrupted),
        (Handling::Immutable, CountedEnd::Gone) => Some(Mark::BranchGone),
        // A branch that is still known is not spoilt by what befell a turn on it.
        (Handling::Immutable, CountedEnd::Dead) => None,
    }
}

impl Marks {
    fn set(&self, mark: Mark, so: bool) {
        if so {
            self.all.lock().insert(mark);
        }
    }

    /// All that have occurred.
    pub fn all(&self) -> BTreeSet<Mark> {
        self.all.lock().clone()
    }

    /// After a step.
    pub fn step(&self, running: &Running, accounts: &[Snapshot]) {
        let engine = running.gateway.engine();
        let (tally, kept) = (&engine.tally, &engine.conversations);
        self.set(Mark::Failover, tally.failover_hops.get() > 0);
        self.set(Mark::Receipt, tally.delivered.get() > 0);
        self.set(Mark::ReceiptWithheld, tally.undelivered.get() > 0);
        for (handling, end, count) in kept.ends.all() {
            of_cell(handling, end).into_iter().for_each(|mark| self.set(mark, count > 0));
        }
        self.set(Mark::Paused, tally.paused_for_client.get() > 0);
        self.set(Mark::EgressBurst, tally.faults(FaultKind::EgressThrottled) > 0);
        self.set(Mark::Queued, engine.admission.waiting() > 0);
        self.set(Mark::PoolExhausted, tally.pool_exhausted.get() > 0);
        self.set(Mark::HeldServed, engine.kept.held_served.get() > 0);
        self.set(Mark::Joined, engine.kept.joins.get() > 0);
        self.set(Mark::Echo, engine.bonds.echoes.get() > 0);
        self.set(Mark::Corroborated, tally.corroborated.get() > 0);
        self.set(Mark::Replay, tally.transient_replays.get() > 0);
        for upstream in engine.admission.upstreams() {
            let mut ejected = self.ejected.lock();
            if upstream.ejected_until.is_some() {
                self.set(Mark::BreakerOpen, true);
                ejected.insert(upstream.name.to_string());
            } else {
                self.set(Mark::BreakerClosed, ejected.remove(&*upstream.name));
            }
        }
        let mut errored = self.errored.lock();
        for account in accounts {
            match account.standing.status() {
                Status::Errored { .. } => {
                    self.set(Mark::Errored, true);
                    errored.insert(account.id.clone());
                }
                Status::Suspended { .. } => self.set(Mark::Suspended, true),
                Status::Active => self.set(Mark::CameBack, errored.remove(&account.id)),
                Status::Disabled => {}
            }
        }
    }

    /// A crash is about to happen.
    pub fn crash(&self, running: &Running) {
        self.set(Mark::CrashWithAttempt, under_way(running));
    }

    /// The next life of the gateway has begun.
    pub fn begins(&self, running: &Running) {
        self.set(Mark::RestartWithAttempt, running.recovered() > 0);
        // How a life knew its endpoints ends with it.
        self.ejected.lock().clear();
    }

    /// How tries of accounts have ended.
    pub fn tries(&self, tries: &BTreeSet<Mark>) {
        self.all.lock().extend(tries);
    }

    /// The gateway is about to be told to end.
    pub fn drain(&self, running: &Running) {
        self.set(Mark::DrainWithTurns, under_way(running));
    }

    /// Another configuration is about to be taken up.
    pub fn reload(&self, running: &Running) {
        self.set(Mark::ReloadUnderLoad, under_way(running));
    }

    /// What a client was told.
    pub fn told(&self, outcome: &Outcome) {
        let broke = matches!(outcome.end, End::Error(_)) && !outcome.text.is_empty();
        self.set(Mark::CutMidStream, broke);
        self.set(
            Mark::QueueFull,
            matches!(&outcome.end, End::Error(what) if what.contains("too many turns are waiting")),
        );
        self.set(Mark::SlowReader, outcome.read_whole && outcome.took.as_secs() > 60);
    }
}

fn under_way(running: &Running) -> bool {
    running.gateway.engine().admission.snapshots().iter().any(|account| account.in_flight > 0)
}
