//! What leads a caller's next turn to the account that served the last one: affinity by what is asked, continuity by the
//! history, and the replies whose arrival only that next turn may prove.
//!
//! Written only with a receipt. Which of these an attempt heeds is admission's to decide: they are wishes.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use turnkeep_base::{AccountId, Fingerprint, Receipt, TurnId};
use turnkeep_policy::Moment;
use turnkeep_policy::affinity::{self, Affinities};
use turnkeep_policy::continuity::{self, Continuity, Owner};

use crate::tally::Counter;

/// Replies whose receipt is open and that an echo could prove.
const OPEN_REPLIES: usize = 10_000;
/// How long a turn waits for the delivery that it proves to be closed.
const ECHO_WAIT: Duration = Duration::from_secs(1);

/// A reply whose receipt is open.
#[derive(Debug)]
struct OpenReply {
    turn: TurnId,
    prove: oneshot::Sender<Receipt>,
    closed: watch::Receiver<bool>,
    number: u64,
}

type OpenReplies = BTreeMap<(Arc<str>, Fingerprint), OpenReply>;

/// All bonds of one gateway.
#[derive(Debug)]
pub struct Bonds {
    affinities: Mutex<Affinities>,
    continuity: Mutex<Continuity>,
    open: Mutex<(OpenReplies, u64)>,
    /// Bindings made, moved or confirmed.
    pub binds: Counter,
    /// Attempts that went where a binding led.
    pub hits: Counter,
    /// Histories committed.
    pub commits: Counter,
    /// Receipts that a later turn gave.
    pub echoes: Counter,
}

impl Default for Bonds {
    fn default() -> Self {
        Bonds {
            affinities: Mutex::new(Affinities::new(affinity::ENTRIES)),
            continuity: Mutex::new(Continuity::new(continuity::ENTRIES)),
            open: Mutex::default(),
            binds: Counter::default(),
            hits: Counter::default(),
            commits: Counter::default(),
            echoes: Counter::default(),
        }
    }
}

/// The delivery's end of an open reply. Dropped, the turn that proves it goes on.
#[derive(Debug)]
pub(crate) struct AwaitedEcho {
    pub(crate) proven: oneshot::Receiver<Receipt>,
    _closed: watch::Sender<bool>,
    place: (Arc<str>, Fingerprint),
    number: u64,
}

impl Bonds {
    /// The account that is bound to what is asked; the binding's end moves on.
    pub(crate) fn bound(&self, now: Moment, key: &Fingerprint) -> Option<AccountId> {
        self.affinities.lock().find(now, key).cloned()
    }

    /// The account that holds the history.
    pub(crate) fn owner(&self, now: Moment, history: &Fingerprint) -> Option<AccountId> {
        self.continuity.lock().find(now, history).map(|owner| owner.account.clone())
    }

    /// Binds what was asked to the account that answered. It takes the reply's receipt.
    pub(crate) fn bind(&self, _: &Receipt, now: Moment, key: Fingerprint, account: AccountId) {
        self.affinities.lock().bind(now, key, account, affinity::TTL);
        self.binds.add();
    }

    /// Commits the history with the answer. It takes the reply's receipt.
    pub(crate) fn commit(&self, receipt: &Receipt, now: Moment, history: Fingerprint, account: AccountId) {
        self.continuity.lock().commit(receipt, now, history, Owner { account, session: None });
        self.commits.add();
    }

    /// Bindings and histories that are kept now.
    pub fn sizes(&self, now: Moment) -> (usize, usize) {
        (self.affinities.lock().len(now), self.continuity.lock().len(now))
    }

    /// Somebody waits for an echo of this caller.
    pub(crate) fn awaits(&self, caller: &Arc<str>) -> bool {
        let open = self.open.lock();
        open.0.range((caller.clone(), Fingerprint([0; 16]))..).next().is_some_and(|((whose, _), _)| whose == caller)
    }

    /// Waits for an echo of the history with our answer. `None` when too many wait.
    pub(crate) fn await_echo(&self, turn: TurnId, caller: Arc<str>, history: Fingerprint) -> Option<AwaitedEcho> {
        let (prove, proven) = oneshot::channel();
        let (closing, closed) = watch::channel(false);
        let mut open = self.open.lock();
        if open.0.len() >= OPEN_REPLIES {
            return None;
        }
        open.1 += 1;
        let (place, number) = ((caller, history), open.1);
        open.0.insert(place.clone(), OpenReply { turn, prove, closed, number });
        Some(AwaitedEcho { proven, _closed: closing, place, number })
    }

    /// The delivery is closed, and its place is free.
    pub(crate) fn give_up(&self, awaited: &AwaitedEcho) {
        let mut open = self.open.lock();
        if open.0.get(&awaited.place).is_some_and(|reply| reply.number == awaited.number) {
            open.0.remove(&awaited.place);
        }
    }

    /// A turn of this caller holds these histories: replies among them whose receipt is open have arrived. Waits, not for
    /// long, until they are closed.
    pub(crate) async fn prove(
        &self,
        caller: &Arc<str>,
        histories: &[Fingerprint],
        receipt: impl Fn(TurnId) -> Receipt,
    ) {
        let found: Vec<OpenReply> = {
            let mut open = self.open.lock();
            histories.iter().filter_map(|history| open.0.remove(&(caller.clone(), *history))).collect()
        };
        for reply in found {
            let mut closed = reply.closed;
            if reply.prove.send(receipt(reply.turn)).is_ok() {
                self.echoes.add();
                // The other end drops its sender when the delivery is closed.
                let _ = tokio::time::timeout(ECHO_WAIT, closed.changed()).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_base::receipt::{Level, Mint};

    fn receipt(turn: TurnId) -> Receipt {
        Mint::for_the_wiring().receipt(turn, Level::Echoed)
    }

    #[tokio::test]
    async fn a_turn_that_holds_our_answer_is_the_receipt_of_the_one_before_and_waits_for_its_closing() {
        let bonds = Arc::new(Bonds::default());
        let (ann, history): (Arc<str>, _) = ("ann".into(), Fingerprint([3; 16]));
        let turn = TurnId::new(1, 1);
        let mut awaited = bonds.await_echo(turn, ann.clone(), history).unwrap();
        assert!(bonds.awaits(&ann) && !bonds.awaits(&"bob".into()));
        let proving = tokio::spawn({
            let bonds = bonds.clone();
            let ann = ann.clone();
            async move { bonds.prove(&ann, &[Fingerprint([4; 16]), history], receipt).await }
        });
        let proof = (&mut awaited.proven).await.unwrap();
        assert_eq!((proof.turn(), proof.level()), (turn, Level::Echoed));
        assert!(!proving.is_finished(), "the closing comes first");
        bonds.give_up(&awaited);
        drop(awaited);
        proving.await.unwrap();
        assert_eq!((bonds.echoes.get(), bonds.awaits(&ann)), (1, false));
    }

    #[tokio::test]
    async fn another_callers_history_proves_nothing() {
        let bonds = Bonds::default();
        let history = Fingerprint([3; 16]);
        let mut awaited = bonds.await_echo(TurnId::new(1, 1), "ann".into(), history).unwrap();
        bonds.prove(&"bob".into(), &[history], receipt).await;
        assert!(awaited.proven.try_recv().is_err());
        bonds.give_up(&awaited);
        assert!(!bonds.awaits(&"ann".into()));
    }
}
