//! What must occur somewhere in the corpus, so that no run passes by never getting there.

use crate::client::Outcome;
use crate::gateway::Running;
use crate::reply::End;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use turnkeep_policy::accounts::Status;

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
    /// A conversation was put back as it was.
    Restored,
    /// A conversation was gone on with.
    Advanced,
    /// A conversation was dropped.
    Dropped,
    /// An account was put out of service.
    Errored,
    /// An account was suspended.
    Suspended,
    /// An account that was put out of service came back.
    CameBack,
    /// An endpoint was ejected.
    BreakerOpen,
    /// A client waited for an account.
    Queued,
    /// A turn found no account at all.
    PoolExhausted,
    /// The gateway crashed while an attempt was open.
    CrashWithAttempt,
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
    pub const ALL: [Mark; 22] = [
        Mark::Failover,
        Mark::CutMidStream,
        Mark::ReceiptWithheld,
        Mark::Receipt,
        Mark::Restored,
        Mark::Advanced,
        Mark::Dropped,
        Mark::Errored,
        Mark::Suspended,
        Mark::CameBack,
        Mark::BreakerOpen,
        Mark::Queued,
        Mark::PoolExhausted,
        Mark::CrashWithAttempt,
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
    errored: Mutex<BTreeSet<String>>,
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
    pub fn step(&self, running: &Running) {
        let engine = running.gateway.engine();
        let (tally, kept) = (&engine.tally, &engine.conversations);
        self.set(Mark::Failover, tally.failover_hops.get() > 0);
        self.set(Mark::Receipt, tally.delivered.get() > 0);
        self.set(Mark::ReceiptWithheld, tally.undelivered.get() > 0);
        self.set(Mark::Restored, kept.restored.get() > 0);
        self.set(Mark::Advanced, kept.advanced.get() > 0);
        self.set(Mark::Dropped, kept.dropped.get() > 0);
        self.set(Mark::Queued, engine.admission.waiting() > 0);
        self.set(Mark::PoolExhausted, tally.pool_exhausted.get() > 0);
        self.set(Mark::HeldServed, engine.kept.held_served.get() > 0);
        self.set(Mark::Joined, engine.kept.joins.get() > 0);
        self.set(Mark::Echo, engine.bonds.echoes.get() > 0);
        self.set(Mark::Corroborated, tally.corroborated.get() > 0);
        self.set(Mark::Replay, tally.transient_replays.get() > 0);
        self.set(Mark::BreakerOpen, engine.admission.upstreams().iter().any(|one| one.ejected_until.is_some()));
        for account in engine.admission.snapshots() {
            let id = account.id.to_string();
            match account.standing.status() {
                Status::Errored { .. } => {
                    self.set(Mark::Errored, true);
                    self.errored.lock().insert(id);
                }
                Status::Suspended { .. } => self.set(Mark::Suspended, true),
                Status::Active => {
                    let came_back = self.errored.lock().remove(&id);
                    self.set(Mark::CameBack, came_back);
                }
                Status::Disabled => {}
            }
        }
    }

    /// A crash is about to happen.
    pub fn crash(&self, running: &Running) {
        self.set(Mark::CrashWithAttempt, under_way(running));
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
        self.set(Mark::SlowReader, outcome.read_whole && outcome.took.as_secs() > 60);
    }
}

fn under_way(running: &Running) -> bool {
    running.gateway.engine().admission.snapshots().iter().any(|account| account.in_flight > 0)
}
