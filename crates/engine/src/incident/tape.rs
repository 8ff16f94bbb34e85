//! What takes a turn's steps down while it runs. One lock that nobody else wants, no I/O, and room that is drawn in blocks;
//! a turn that outgrows its bounds runs on, and its trace says where it breaks off.

use super::effect::{AttemptEndFacts, Done};
use super::event::{Occurrence, Piece};
use super::fault::FaultFacts;
use super::ring::Ring;
use super::settled::{
    AttemptClosing, AttemptSeen, CheckInFacts, DeliveryClosing, HoldDeed, Holding, JudgedFacts, Judgement, Ruled,
    TurnClosing,
};
use super::trace::{AttemptStep, Cut, CutBy, FORMAT, Head, HoldStep, MachineStep, Pieces, State, Step, Trace, What};
use crate::conversations::Desk;
use crate::machine::{Effect, Event, Machine};
use parking_lot::Mutex;
use std::fmt;
use std::sync::{Arc, Weak};
use tokio::time::Instant;
use turnkeep_base::receipt::Level;
use turnkeep_base::{Fault, TurnId};
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::{AccountKey, Judged};
use turnkeep_policy::conversations::again::{Arrival, EndKind};
use turnkeep_policy::conversations::hold::HoldState;
use turnkeep_policy::conversations::{CheckIn, LeaseEnd, Loan};
use turnkeep_policy::settle::{
    AttemptEffects, AttemptFacts, DeliveryEffects, DeliveryFacts, TurnEffects, TurnFacts as ClosingFacts,
};

/// Gaps between pieces that are kept of one turn.
const GAPS: usize = 2_048;
/// Bytes of room that are drawn at once.
const BLOCK: usize = 4 << 10;
/// Accounts that a head names; a turn has no more dispatches than this by default.
const ACCOUNTS: usize = 32;

/// A turn's tape.
pub struct Tape {
    turn: TurnId,
    /// What the gateway's moments count from.
    origin: Instant,
    /// When the turn began, in us after that.
    began_us: u64,
    key: [u8; 32],
    ring: Weak<Ring>,
    taken: Mutex<Taken>,
}

struct Taken {
    head: Head,
    state: State,
    steps: Vec<Step>,
    cut: Option<Cut>,
    /// Bytes that the steps take.
    bytes: usize,
    /// Bytes of room that were drawn for them.
    drawn: usize,
    gaps: usize,
    /// How the lease ended that has just ended.
    ended: Option<EndKind>,
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tape").field("turn", &self.turn).finish_non_exhaustive()
    }
}

/// Microseconds between.
fn micros(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_micros()).unwrap_or(u64::MAX)
}

impl Tape {
    /// A tape of a turn that begins now. `head.clock_us` is filled in here. `key` is that of the gateway's hashes.
    pub(super) fn begin(turn: TurnId, origin: Instant, key: [u8; 32], head: Head, ring: Weak<Ring>) -> Self {
        let began_us = micros(origin, Instant::now());
        let head = Head { clock_us: began_us % 1_000, ..head };
        let taken = Taken {
            bytes: head_bytes(&head),
            head,
            state: State::Running,
            steps: Vec::new(),
            cut: None,
            drawn: 0,
            gaps: 0,
            ended: None,
        };
        Tape { turn, origin, began_us, key, ring, taken: Mutex::new(taken) }
    }

    /// Whose it is.
    pub fn turn(&self) -> TurnId {
        self.turn
    }

    /// When the turn began, by the machine's clock.
    fn began(&self) -> Moment {
        Moment(self.began_us / 1_000)
    }

    fn us(&self) -> u64 {
        micros(self.origin, Instant::now()).saturating_sub(self.began_us)
    }

    /// Gives the machine an event, at this moment, and takes both sides down.
    pub fn feed(&self, machine: &mut Machine, event: Event, effects: &mut Vec<Effect>) {
        let now_us = micros(self.origin, Instant::now());
        let (now, us) = (Moment(now_us / 1_000), now_us.saturating_sub(self.began_us));
        let event_seen = Occurrence::of(&event, self.began(), &self.key);
        let before = effects.len();
        machine.on(event, now, effects);
        let new = effects.get(before..).unwrap_or_default();
        let mut taken = self.taken.lock();
        if let (Occurrence::Read(piece), [Effect::ReadOn]) = (&event_seen, new) {
            return self.piece(&mut taken, us, *piece);
        }
        if taken.cut.is_some() {
            return;
        }
        let done = new.iter().map(|effect| Done::of(effect, machine, self.began(), &self.key)).collect();
        self.put(&mut taken, us, What::Machine(Box::new(MachineStep { event: event_seen, done })));
    }

    /// One piece more: the run of its like grows, or another one begins.
    fn piece(&self, taken: &mut Taken, us: u64, piece: Piece) {
        if taken.cut.is_some() {
            return;
        }
        if let Some(Step { what: What::Pieces(run), .. }) = taken.steps.last_mut()
            && run.each == piece
        {
            let gap = u32::try_from(us.saturating_sub(run.last_us)).unwrap_or(u32::MAX);
            run.count = run.count.saturating_add(1);
            run.last_us = us;
            if taken.gaps < GAPS && run.gaps.len() as u64 + 2 == run.count {
                let before = run.gaps.capacity();
                run.gaps.push(gap);
                let grown = (run.gaps.capacity() - before) * 4;
                taken.gaps += 1;
                self.draw(taken, us, grown);
            }
            return;
        }
        let run = Pieces { each: piece, count: 1, gaps: Vec::new(), last_us: us };
        self.put(taken, us, What::Pieces(Box::new(run)));
    }

    fn put(&self, taken: &mut Taken, us: u64, what: What) {
        if taken.cut.is_some() {
            return;
        }
        let Some(ring) = self.ring.upgrade() else { return };
        if taken.steps.len() >= ring.bounds().steps {
            taken.cut = Some(Cut { us, by: CutBy::Steps });
            return;
        }
        let step = Step { us, what };
        if self.draw_from(&ring, taken, us, step.bytes()) {
            taken.steps.push(step);
        }
    }

    fn draw(&self, taken: &mut Taken, us: u64, bytes: usize) {
        if let Some(ring) = self.ring.upgrade() {
            let _cut_otherwise = self.draw_from(&ring, taken, us, bytes);
        }
    }

    /// Room for so many bytes more; where there is none the tape ends.
    fn draw_from(&self, ring: &Ring, taken: &mut Taken, us: u64, bytes: usize) -> bool {
        let bytes = taken.bytes.saturating_add(bytes);
        if bytes > ring.bounds().turn_bytes {
            taken.cut = Some(Cut { us, by: CutBy::Bytes });
            return false;
        }
        if bytes > taken.drawn {
            let more = (bytes - taken.drawn).max(BLOCK);
            if !ring.draw(more) {
                taken.cut = Some(Cut { us, by: CutBy::Room });
                return false;
            }
            taken.drawn += more;
        }
        taken.bytes = bytes;
        true
    }

    fn note(&self, what: What) {
        let us = self.us();
        self.put(&mut self.taken.lock(), us, what);
    }

    /// The account of a slot, by name.
    pub(crate) fn name(&self, account: AccountKey, name: impl fmt::Display) {
        let accounts = &mut self.taken.lock().head.accounts;
        if accounts.len() < ACCOUNTS {
            accounts.entry(account.0).or_insert_with(|| name.to_string());
        }
    }

    /// What was done with a conversation, and where it led.
    pub(crate) fn held(&self, deed: HoldDeed, state: HoldState) {
        let us = self.us();
        let mut taken = self.taken.lock();
        let left = Holding { state, end: taken.ended.take() };
        self.put(&mut taken, us, What::Hold(Box::new(HoldStep { deed, left })));
    }

    /// The facts of a fault, for a deed.
    pub(crate) fn facts(&self, fault: &Fault) -> Box<FaultFacts> {
        Box::new(FaultFacts::of(fault, &self.key))
    }

    /// The facts of an attempt's end, for a deed.
    pub(crate) fn end_facts(&self, end: &crate::machine::AttemptEnd) -> AttemptEndFacts {
        AttemptEndFacts::of(end, &self.key)
    }

    fn checked_in(&self, arrival: Arrival, became: turnkeep_policy::conversations::CheckedIn) {
        let us = self.us();
        let mut taken = self.taken.lock();
        taken.ended = Some(arrival.end);
        self.put(&mut taken, us, What::CheckIn(CheckInFacts { arrival, became }));
    }

    /// An attempt's closing.
    pub(crate) fn attempt(&self, facts: &AttemptFacts<'_>, effects: &AttemptEffects) {
        let (facts, closing) = (AttemptSeen::of(facts, &self.key), AttemptClosing::of(effects));
        self.note(What::Attempt(Box::new(AttemptStep { facts, closing })));
    }

    /// An account's judgement.
    pub(crate) fn judged(&self, account: AccountKey, fault: &Fault, judged: &mut Judged) {
        let grounds = judged.grounds.take();
        let at = grounds.as_ref().map_or(Moment(0), |grounds| grounds.at);
        let applied = judged.applied.iter().map(|applied| Ruled::of(applied, at)).collect();
        self.note(What::Judged(Box::new(JudgedFacts {
            account,
            fault: FaultFacts::of(fault, &self.key),
            grounds,
            judgement: Judgement { applied, shell_charge: judged.charge.is_some() },
            burst: judged.burst,
        })));
    }

    /// The turn's closing.
    pub(crate) fn closed(&self, facts: &ClosingFacts, effects: &TurnEffects) {
        self.note(What::Turn(TurnClosing { facts: *facts, effects: *effects }));
    }

    /// The delivery's closing.
    pub(crate) fn delivered(&self, receipt: Option<Level>, facts: &DeliveryFacts, effects: &DeliveryEffects) {
        let receipt = receipt.map(Into::into);
        self.note(What::Delivery(DeliveryClosing { receipt, facts: *facts, effects: *effects }));
    }

    /// The turn's loop has panicked: what follows is decided outside of it.
    pub(crate) fn panicked(&self) {
        let us = self.us();
        self.taken.lock().cut.get_or_insert(Cut { us, by: CutBy::Panic });
    }

    /// The turn is over.
    pub(super) fn end(&self) {
        self.taken.lock().state = State::Ended;
    }

    /// What has been taken down so far.
    pub fn trace(&self) -> Trace {
        let taken = self.taken.lock();
        Trace {
            format: FORMAT.into(),
            head: taken.head.clone(),
            state: taken.state,
            cut: taken.cut,
            steps: taken.steps.clone(),
        }
    }
}

fn head_bytes(head: &Head) -> usize {
    let routes: usize = head.routes.iter().map(|route| route.upstream.len() + route.model.len() + 128).sum();
    size_of::<Tape>() + size_of::<Taken>() + head.model.len() + head.caller.len() + 256 + routes
}

impl Drop for Tape {
    fn drop(&mut self) {
        if let Some(ring) = self.ring.upgrade() {
            ring.give_back(self.taken.get_mut().drawn);
        }
    }
}

/// The desk, as the leases of one turn see it: their ends are taken down on their way.
pub(crate) struct TapedDesk {
    pub(crate) desk: Arc<Desk>,
    pub(crate) tape: Arc<Tape>,
}

impl CheckIn for TapedDesk {
    fn check_in(&self, loan: Loan, end: LeaseEnd) {
        let (arrival, became) = self.desk.check_in_telling(loan, end);
        self.tape.checked_in(arrival, became);
    }
}
