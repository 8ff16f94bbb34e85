//! The turn machine: what happened and when go in, what to do comes out. It decides every order that matters (when an
//! attempt is closed, when the turn is, when a byte may be written) and does nothing itself.
//!
//! It knows no dialect, no socket and no account by name. The drive loop performs its effects and feeds it events.

use crate::ending::STORE_UNAVAILABLE;
use crate::timers::{Timer, Timers};
use std::time::Duration;
use turnkeep_base::limit::AFTER_FINISH_WAIT;
use turnkeep_base::{Clock, ClockKind, Evidence, Fault, FaultKind, Phase};
use turnkeep_dialect::reply::Progress;
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::{AccountKey, Unavailable};

pub mod corroborate;
mod failing;

use crate::route::{Clocks, Rules};
use corroborate::{Corroboration, Likeness};

/// How long a client may leave its buffer full, all together.
const SLOW_READER: Duration = Duration::from_secs(60);

/// How often it is seen whether a client takes enough.
pub(crate) const PACE: Duration = Duration::from_secs(60);

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// The turn begins.
    Begin,
    /// No answer is kept for it, and no other turn will have it.
    NotKept,
    /// An answer that was made before is at hand.
    Kept,
    /// Its idempotency key is another request's; the drive loop holds the error.
    KeyReused,
    /// A slot was taken on this account, over the route of this index.
    Slot {
        /// The account.
        account: AccountKey,
        /// The route's index.
        route: usize,
        /// The route's clocks.
        clocks: Clocks,
        /// Sending the turn again does nothing twice there.
        replay_safe: bool,
    },
    /// Nobody serves.
    NoSlot(Unavailable),
    /// The request cannot be written for the picked route; nothing was sent.
    Uncarriable,
    /// The ledger entry is written.
    Recorded,
    /// It could not be written.
    NotRecorded,
    /// The upstream answers, with a success status.
    Answering,
    /// The attempt failed.
    Fault(Fault),
    /// The upstream has refused the attempt, and certainly not begun with it.
    Refused(Fault),
    /// Some of the answer was read.
    Read {
        /// It contained something the model made.
        content: bool,
        /// How far the answer has come.
        progress: Progress,
        /// The upstream is at work, though nothing of it is shown.
        alive: bool,
    },
    /// The client's buffer is full.
    Blocked,
    /// It has room again.
    Unblocked,
    /// A timer fired.
    Timer(Timer),
    /// The client has left. With a time the attempt under way may go on for so long, without a reader.
    ClientGone {
        /// For how long, by the upstream's policy; `None`: it is cancelled.
        finish: Option<Duration>,
    },
    /// An attempt that goes on without a reader has made as much as it may.
    Enough,
    /// The client takes less than it must.
    TooSlow,
    /// The gateway stops.
    Shutdown,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptEnd {
    /// The answer was complete.
    Completed,
    /// Cut short on our side.
    Interrupted,
    /// Failed.
    Failed(Fault),
    /// It never began: no ledger entry, nothing to judge.
    Unsent,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEnd {
    /// The upstream's turn completed.
    Completed,
    /// The client left, or the gateway stopped.
    Interrupted,
    /// No attempt succeeded, or an answer broke after it had begun.
    Failed(Ending),
}

/// What the client is told at the end of a failed turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// A fault of an attempt, or of the turn.
    Fault(Fault),
    /// Admission refused it.
    Unavailable(Unavailable),
    /// The request cannot be carried to any route; the drive loop holds the error.
    Uncarriable,
    /// The gateway stops.
    Shutdown,
}

/// What to do. Effects are performed in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Look for an answer that is kept, or will be.
    LookUp,
    /// Ask for a slot, as [`Machine::wanted`] says.
    Acquire,
    /// Write the request for the picked route and open its ledger entry.
    Record,
    /// Send it.
    Dispatch,
    /// Read on. The first one after an answer's head starts its body.
    ReadOn,
    /// Write the headers now, the answer still to come.
    OpenHeaders,
    /// Write a sign of life.
    Heartbeat,
    /// Write what was held back: the answer has begun.
    Commit,
    /// The wait for usage is over.
    Settle,
    /// The attempt goes on without a reader.
    GoOnAlone,
    /// See whether the client has taken enough since the last time.
    MeasurePace,
    /// Drop the exchange with the upstream.
    Cancel,
    /// Close the attempt.
    CloseAttempt(AttemptEnd),
    /// Take back what this turn has charged for answers like this one.
    TakeBack(Likeness),
    /// Close the turn.
    CloseTurn(TurnEnd),
    /// Write the end of the answer.
    WriteTerminal,
    /// Write the answer that was kept.
    WriteKept,
    /// Write the error: as a status and a body, or in band when headers are out.
    WriteError(Ending),
    /// Nothing more will come.
    End,
    /// Nothing more will come, and what is not read is thrown away: the client reads too slowly, or is gone.
    Abort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    LookingUp,
    Acquiring,
    Recording,
    Dispatched,
    Answering,
    BackingOff,
    Ended,
}

/// How far the client's side is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Downstream {
    /// Nothing was written.
    Untouched,
    /// Headers and signs of life are out.
    Opened,
    /// Something the model made is out.
    Touched,
}

/// What the machine must know of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnFacts {
    /// The client wants a stream.
    pub streamed: bool,
    /// The turn's whole time.
    #[serde(with = "turnkeep_policy::span")]
    pub total: Duration,
    /// The caller chose it.
    pub total_set_by_caller: bool,
    /// How many routes there are, those to larger models left out; these come last.
    pub routes: usize,
    /// The first of them that leads to another model, if there is one: a fallback.
    pub first_fallback: Option<usize>,
    /// There are routes to models with a larger window.
    pub larger: bool,
    /// The numbers of retries and of an open stream.
    pub rules: Rules,
}

/// The machine of one turn.
#[derive(Debug)]
pub struct Machine {
    facts: TurnFacts,
    stage: Stage,
    downstream: Downstream,
    timers: Timers,
    clocks: Clocks,
    /// Sending the turn again does nothing twice at the upstream that is asked.
    replay_safe: bool,
    from_route: usize,
    route: usize,
    first_route: Option<usize>,
    account: Option<AccountKey>,
    tried: Vec<AccountKey>,
    only: Option<AccountKey>,
    larger: bool,
    retry: bool,
    corroboration: Corroboration,
    counted: u8,
    dispatches: u8,
    backoffs: u32,
    once: Vec<FaultKind>,
    replayed_same: bool,
    last: Option<Fault>,
    blocked_since: Option<Moment>,
    blocked_before: Duration,
    replays: u32,
    hops: u32,
    quota_hops: u32,
    jitter: u64,
    /// The client has left at this point, and the attempt goes on.
    alone: Option<Downstream>,
}

/// What the machine wants of admission.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedSlot {
    /// Routes before this one are out.
    pub from_route: usize,
    /// Accounts that were tried.
    pub tried: Vec<AccountKey>,
    /// Only this one.
    pub only: Option<AccountKey>,
    /// Only models with a larger window.
    pub larger: bool,
    /// It is a counted retry.
    pub retry: bool,
}

impl Machine {
    /// A machine; `jitter` is randomness for the backoffs.
    pub fn new(facts: TurnFacts, jitter: u64) -> Self {
        Machine {
            facts,
            stage: Stage::Idle,
            downstream: Downstream::Untouched,
            timers: Timers::default(),
            clocks: Clocks::default(),
            replay_safe: true,
            from_route: 0,
            route: 0,
            first_route: None,
            account: None,
            tried: Vec::new(),
            only: None,
            larger: false,
            retry: false,
            corroboration: Corroboration::default(),
            counted: 0,
            dispatches: 0,
            backoffs: 0,
            once: Vec::new(),
            replayed_same: false,
            last: None,
            blocked_since: None,
            blocked_before: Duration::ZERO,
            replays: 0,
            hops: 0,
            quota_hops: 0,
            jitter,
            alone: None,
        }
    }

    /// The next timer.
    pub fn next_timer(&self) -> Option<(Moment, Timer)> {
        self.timers.next()
    }

    /// What is left of the turn's time, by the clock that bounds it now.
    pub fn time_left(&self, now: Moment) -> Duration {
        let end = self.timers.at(Timer::Total).or_else(|| self.timers.at(Timer::MaxTurn));
        end.map_or(self.facts.total, |end| now.until(end))
    }

    /// How far the client's side is committed.
    pub fn downstream(&self) -> Downstream {
        self.downstream
    }

    /// Something the model made had gone to the client before it left.
    pub fn committed(&self) -> bool {
        self.alone.unwrap_or(self.downstream) == Downstream::Touched
    }

    /// The attempt under way has no reader any more.
    pub fn is_alone(&self) -> bool {
        self.alone.is_some() && self.stage != Stage::Ended
    }

    /// The turn goes on without its ledger entry.
    pub fn serves_unrecorded(&self) -> bool {
        self.facts.rules.serve_unrecorded
    }

    /// Dispatches so far.
    pub fn dispatches(&self) -> u8 {
        self.dispatches
    }

    /// The turn is over.
    pub fn ended(&self) -> bool {
        self.stage == Stage::Ended
    }

    /// What is wanted of admission now.
    pub fn wanted(&self) -> WantedSlot {
        WantedSlot {
            from_route: self.from_route,
            tried: self.tried.clone(),
            only: self.only,
            larger: self.larger,
            retry: self.retry,
        }
    }

    /// Repeats on the same account, and attempts on another one than before.
    pub fn replays_and_hops(&self) -> (u32, u32) {
        (self.replays, self.hops)
    }

    /// Of the attempts on another account, those that a used-up quota led to.
    pub fn quota_hops(&self) -> u32 {
        self.quota_hops
    }

    /// The fault of the latest failed attempt.
    pub fn last_fault(&self) -> Option<&Fault> {
        self.last.as_ref()
    }

    /// Takes an event; appends what is to be done.
    pub fn on(&mut self, event: Event, now: Moment, out: &mut Vec<Effect>) {
        if self.stage == Stage::Ended {
            return;
        }
        match event {
            Event::Begin => self.begin(now, out),
            Event::NotKept => self.acquire(out),
            Event::Kept => {
                self.downstream = Downstream::Touched;
                self.end(TurnEnd::Completed, out);
                out.push(Effect::WriteKept);
                out.push(Effect::End);
            }
            Event::KeyReused => self.fail(Ending::Uncarriable, out),
            Event::Slot { account, route, clocks, replay_safe } => {
                self.replay_safe = replay_safe;
                self.slot(account, route, clocks, out);
            }
            Event::NoSlot(unavailable) => self.no_slot(unavailable, now, out),
            Event::Uncarriable => self.uncarriable(out),
            Event::Recorded => self.recorded(now, out),
            Event::NotRecorded if self.facts.rules.serve_unrecorded => self.recorded(now, out),
            Event::NotRecorded => {
                let evidence =
                    Evidence::text(format!("{STORE_UNAVAILABLE}: the usage ledger could not be written in time"));
                let fault = Fault::new(FaultKind::GatewayExhausted, Phase::Unsent, evidence);
                out.push(Effect::CloseAttempt(AttemptEnd::Unsent));
                self.fail(Ending::Fault(fault), out);
            }
            Event::Answering => {
                self.stage = Stage::Answering;
                out.push(Effect::ReadOn);
            }
            Event::Fault(fault) => self.fault(fault, false, now, out),
            Event::Refused(fault) => self.fault(fault, true, now, out),
            Event::Read { content, progress, alive } => {
                if alive && self.timers.is_set(Timer::FirstContent) {
                    self.timers.set(Timer::FirstContent, now.after(self.clocks.first_content));
                }
                self.read(content, progress, now, out);
            }
            Event::Blocked => {
                self.blocked_since = Some(now);
                self.timers.clear(Timer::Between);
                self.timers.set(Timer::SlowReader, now.after(SLOW_READER.saturating_sub(self.blocked_before)));
            }
            Event::Unblocked => {
                self.blocked_before += self.blocked_since.take().map_or(Duration::ZERO, |then| now.since(then));
                self.timers.clear(Timer::SlowReader);
                if self.stage == Stage::Answering {
                    self.timers.set(Timer::Between, now.after(self.clocks.between));
                }
            }
            Event::Timer(timer) => self.timer(timer, now, out),
            Event::ClientGone { finish } => self.client_gone(finish, now, out),
            Event::Enough | Event::TooSlow => self.left(out),
            Event::Shutdown => {
                self.drop_attempt(out);
                self.end(TurnEnd::Interrupted, out);
                out.push(Effect::WriteError(Ending::Shutdown));
                out.push(Effect::End);
            }
        }
    }

    fn begin(&mut self, now: Moment, out: &mut Vec<Effect>) {
        self.timers.set(Timer::Total, now.after(self.facts.total));
        if self.facts.streamed {
            self.timers.set(Timer::OpenAfter, now.after(self.facts.rules.open_after));
        }
        self.stage = Stage::LookingUp;
        out.push(Effect::LookUp);
    }

    /// The client has left. An attempt that is under way may go on where its upstream's policy says so; anything else ends.
    fn client_gone(&mut self, finish: Option<Duration>, now: Moment, out: &mut Vec<Effect>) {
        let under_way = matches!(self.stage, Stage::Dispatched | Stage::Answering);
        match finish {
            Some(time) if under_way && self.alone.is_none() => {
                self.alone = Some(self.downstream);
                for timer in [Timer::OpenAfter, Timer::Heartbeat, Timer::SlowReader, Timer::Pace] {
                    self.timers.clear(timer);
                }
                self.timers.set(Timer::Finish, now.after(time));
                out.push(Effect::GoOnAlone);
                if self.blocked_since.take().is_some() {
                    self.timers.set(Timer::Between, now.after(self.clocks.between));
                    out.push(Effect::ReadOn);
                }
            }
            Some(_) | None => self.left(out),
        }
    }

    fn acquire(&mut self, out: &mut Vec<Effect>) {
        self.stage = Stage::Acquiring;
        out.push(Effect::Acquire);
    }

    fn slot(&mut self, account: AccountKey, route: usize, clocks: Clocks, out: &mut Vec<Effect>) {
        if self.dispatches > 0 {
            if self.account == Some(account) {
                self.replays += 1;
            } else {
                self.hops += 1;
                if self.last.as_ref().is_some_and(|fault| fault.kind == FaultKind::QuotaExhausted) {
                    self.quota_hops += 1;
                }
            }
        }
        self.stage = Stage::Recording;
        self.account = Some(account);
        self.route = route;
        self.first_route = self.first_route.or(Some(route));
        self.clocks = clocks;
        self.only = None;
        out.push(Effect::Record);
    }

    fn recorded(&mut self, now: Moment, out: &mut Vec<Effect>) {
        self.stage = Stage::Dispatched;
        self.dispatches = self.dispatches.saturating_add(1);
        if self.facts.streamed {
            self.timers.set(Timer::FirstContent, now.after(self.clocks.first_content));
        }
        out.push(Effect::Dispatch);
    }

    fn read(&mut self, content: bool, progress: Progress, now: Moment, out: &mut Vec<Effect>) {
        if content && self.downstream != Downstream::Touched && self.facts.streamed {
            self.downstream = Downstream::Touched;
            self.timers.clear(Timer::Total);
            self.timers.clear(Timer::FirstContent);
            self.timers.clear(Timer::OpenAfter);
            self.timers.set(Timer::MaxTurn, now.after(self.clocks.max_turn));
            if self.alone.is_none() {
                self.timers.set(Timer::Pace, now.after(PACE));
            }
            out.push(Effect::Commit);
        }
        if self.downstream == Downstream::Touched {
            self.timers.set(Timer::Between, now.after(self.clocks.between));
            if self.alone.is_none() {
                self.timers.set(Timer::Heartbeat, now.after(self.facts.rules.heartbeat));
            }
        }
        match progress {
            Progress::Open => out.push(Effect::ReadOn),
            Progress::Finishing => {
                if !self.timers.is_set(Timer::AfterFinish) {
                    self.timers.set(Timer::AfterFinish, now.after(AFTER_FINISH_WAIT));
                }
                out.push(Effect::ReadOn);
            }
            Progress::Done => {
                self.downstream = Downstream::Touched;
                out.push(Effect::CloseAttempt(AttemptEnd::Completed));
                self.end(TurnEnd::Completed, out);
                out.push(Effect::WriteTerminal);
                out.push(Effect::End);
            }
        }
    }

    fn timer(&mut self, timer: Timer, now: Moment, out: &mut Vec<Effect>) {
        self.timers.clear(timer);
        let phase = match self.stage {
            Stage::Answering => Phase::Answered,
            Stage::Dispatched => Phase::MaybeSent,
            Stage::Idle | Stage::LookingUp | Stage::Acquiring | Stage::Recording | Stage::BackingOff | Stage::Ended => {
                Phase::Unsent
            }
        };
        let attempting = phase != Phase::Unsent;
        let clock = |kind, set_by_caller| Clock { kind, set_by_caller };
        match timer {
            Timer::Total => {
                let clock = clock(ClockKind::Total, self.facts.total_set_by_caller);
                let fault = Fault::clock(FaultKind::DeadlineExceeded, phase, clock);
                match self.stage {
                    Stage::LookingUp | Stage::Acquiring if self.last.is_none() => {
                        self.fail(Ending::Unavailable(Unavailable::DeadlinePassed), out);
                    }
                    Stage::Recording => {
                        out.push(Effect::CloseAttempt(AttemptEnd::Unsent));
                        self.fail(Ending::Fault(fault), out);
                    }
                    Stage::Idle
                    | Stage::LookingUp
                    | Stage::Acquiring
                    | Stage::BackingOff
                    | Stage::Dispatched
                    | Stage::Answering
                    | Stage::Ended => self.fault(fault, false, now, out),
                }
            }
            Timer::MaxTurn if attempting => {
                self.fault(
                    Fault::clock(FaultKind::DeadlineExceeded, phase, clock(ClockKind::MaxTurn, false)),
                    false,
                    now,
                    out,
                );
            }
            Timer::FirstContent if attempting => {
                let clock = clock(ClockKind::FirstContent, false);
                self.fault(Fault::clock(FaultKind::UpstreamStalled, phase, clock), false, now, out);
            }
            Timer::Between if turnkeep_base::seeded::is("no-clock-between") => {}
            Timer::Between if attempting => {
                let clock = clock(ClockKind::Between, false);
                self.fault(Fault::clock(FaultKind::UpstreamStalled, phase, clock), false, now, out);
            }
            Timer::OpenAfter => {
                self.downstream = self.downstream.max(Downstream::Opened);
                self.timers.set(Timer::Heartbeat, now.after(self.facts.rules.heartbeat));
                out.push(Effect::OpenHeaders);
                out.push(Effect::Heartbeat);
            }
            Timer::Heartbeat => {
                self.timers.set(Timer::Heartbeat, now.after(self.facts.rules.heartbeat));
                out.push(Effect::Heartbeat);
            }
            Timer::Backoff => self.acquire(out),
            Timer::AfterFinish => out.push(Effect::Settle),
            Timer::SlowReader | Timer::Finish => self.left(out),
            Timer::Pace => {
                self.timers.set(Timer::Pace, now.after(PACE));
                out.push(Effect::MeasurePace);
            }
            Timer::MaxTurn | Timer::FirstContent | Timer::Between => {}
        }
    }

    /// The client has left: the exchange is cancelled, the attempt closed without a judgement.
    fn left(&mut self, out: &mut Vec<Effect>) {
        self.drop_attempt(out);
        self.end(TurnEnd::Interrupted, out);
        out.push(Effect::Abort);
    }

    fn drop_attempt(&mut self, out: &mut Vec<Effect>) {
        match self.stage {
            Stage::Dispatched | Stage::Answering => {
                out.push(Effect::Cancel);
                out.push(Effect::CloseAttempt(AttemptEnd::Interrupted));
            }
            Stage::Recording => out.push(Effect::CloseAttempt(AttemptEnd::Unsent)),
            Stage::Idle | Stage::LookingUp | Stage::Acquiring | Stage::BackingOff | Stage::Ended => {}
        }
    }
}

#[cfg(test)]
mod tests;
