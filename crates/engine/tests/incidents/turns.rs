//! Turns of a machine over a clock that stands still unless a test moves it.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use turnkeep_base::{Evidence, Fault, FaultKind, LimitScope, Phase, TurnId, Window};
use turnkeep_dialect::reply::Progress;
use turnkeep_engine::incident::ring::{Bounds, Ring};
use turnkeep_engine::incident::tape::Tape;
use turnkeep_engine::incident::trace::Head;
use turnkeep_engine::machine::{Event, Machine, TurnFacts};
use turnkeep_engine::route::{Clocks, Rules};
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::{AccountKey, Unavailable};

/// What a test does next.
#[derive(Clone, Debug)]
pub enum Act {
    /// Time passes.
    Wait(Duration),
    /// The machine's next timer fires, when it is due.
    Fire,
    /// Something happens.
    Happen(Happening),
}

/// An event that can be made again: the machine's own cannot be copied.
#[derive(Clone, Debug)]
pub enum Happening {
    NotKept,
    Slot(u32, usize),
    NoSlot(Unavailable),
    Uncarriable,
    Recorded,
    NotRecorded,
    Answering,
    Fault(Fault),
    Refused(Fault),
    Read(bool, Progress, bool),
    Blocked,
    Unblocked,
    Gone(Option<Duration>),
    Enough,
    TooSlow,
    Shutdown,
}

impl Happening {
    pub fn event(&self) -> Event {
        match self.clone() {
            Happening::NotKept => Event::NotKept,
            Happening::Slot(account, route) => {
                let clocks = Clocks { between: Duration::from_secs(7), ..Clocks::default() };
                Event::Slot { account: AccountKey(account), route, clocks, replay_safe: account != 3 }
            }
            Happening::NoSlot(unavailable) => Event::NoSlot(unavailable),
            Happening::Uncarriable => Event::Uncarriable,
            Happening::Recorded => Event::Recorded,
            Happening::NotRecorded => Event::NotRecorded,
            Happening::Answering => Event::Answering,
            Happening::Fault(fault) => Event::Fault(fault),
            Happening::Refused(fault) => Event::Refused(fault),
            Happening::Read(content, progress, alive) => Event::Read { content, progress, alive },
            Happening::Blocked => Event::Blocked,
            Happening::Unblocked => Event::Unblocked,
            Happening::Gone(finish) => Event::ClientGone { finish },
            Happening::Enough => Event::Enough,
            Happening::TooSlow => Event::TooSlow,
            Happening::Shutdown => Event::Shutdown,
        }
    }
}

pub fn facts(streamed: bool) -> TurnFacts {
    TurnFacts {
        streamed,
        total: Duration::from_secs(60),
        total_set_by_caller: false,
        routes: 3,
        first_fallback: Some(2),
        larger: true,
        rules: Rules::default(),
    }
}

pub fn head(facts: TurnFacts, jitter: u64) -> Head {
    Head {
        turn: id(1).to_string(),
        build: "0.1.0".into(),
        config: None,
        began_ms: 5,
        caller: "tester".into(),
        model: "m".into(),
        dialect: "chat".into(),
        routes: Vec::new(),
        accounts: BTreeMap::new(),
        clock_us: 0,
        facts,
        jitter,
    }
}

pub fn id(number: u64) -> TurnId {
    TurnId::new(number, 0)
}

/// A turn with its tape.
pub struct Turn {
    pub tape: Arc<Tape>,
    pub machine: Machine,
    origin: Instant,
}

impl Turn {
    pub fn begin(ring: &Arc<Ring>, number: u64, facts: TurnFacts, origin: Instant) -> Turn {
        let head = Head { turn: id(number).to_string(), ..head(facts, 77) };
        let tape = ring.begin(id(number), origin, [3; 32], head);
        let mut turn = Turn { tape, machine: Machine::new(facts, 77), origin };
        turn.feed(Event::Begin);
        turn
    }

    pub fn feed(&mut self, event: Event) {
        self.tape.feed(&mut self.machine, event, &mut Vec::new());
    }

    pub fn happens(&mut self, happenings: impl IntoIterator<Item = Happening>) {
        happenings.into_iter().for_each(|happening| self.feed(happening.event()));
    }

    pub async fn act(&mut self, act: &Act) {
        match act {
            Act::Wait(time) => tokio::time::advance(*time).await,
            Act::Fire => {
                let Some((at, timer)) = self.machine.next_timer() else { return };
                let due = self.origin + Duration::from_millis(at.0);
                tokio::time::advance(due.saturating_duration_since(Instant::now())).await;
                self.feed(Event::Timer(timer));
            }
            Act::Happen(happening) => self.feed(happening.event()),
        }
    }
}

/// A ring with the usual bounds.
pub fn ring() -> Arc<Ring> {
    Ring::new(Bounds::default())
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0u64..5_000).prop_map(Duration::from_micros),
        (0u64..90_000).prop_map(Duration::from_millis),
        (0u64..3_000_000_000).prop_map(Duration::from_nanos),
    ]
}

pub fn fault() -> impl Strategy<Value = Fault> {
    let kind = (0..FaultKind::ALL.len()).prop_map(|at| FaultKind::ALL[at]);
    let phase = prop_oneof![Just(Phase::Unsent), Just(Phase::MaybeSent), Just(Phase::Answered)];
    let status = prop::option::of(prop_oneof![Just(400u16), Just(403), Just(429), Just(503)]);
    let code = prop::option::of(prop_oneof![Just("slow_down"), Just("two words"), Just("general_error")]);
    let words = prop_oneof![Just(""), Just("Not from here 12"), Just("not from HERE 13"), Just("no")];
    let scope = prop_oneof![Just(LimitScope::Account), Just(LimitScope::Quota), Just(LimitScope::Model)];
    let windows = prop::collection::vec((scope, duration()).prop_map(|(scope, wait)| Window { scope, wait }), 0..3);
    (kind, phase, status, code, words, prop::option::of(duration()), windows, any::<bool>()).prop_map(
        |(kind, phase, status, code, words, wait, windows, long)| {
            let mut evidence = Evidence::text(words);
            evidence.status = status;
            evidence.code = code.map(str::to_owned);
            let mut fault = Fault::new(kind, phase, evidence).wait(wait);
            fault.declared.windows = windows;
            fault.context_too_long = long;
            fault
        },
    )
}

fn unavailable() -> impl Strategy<Value = Unavailable> {
    let at = (0u64..1 << 40).prop_map(Moment);
    prop_oneof![
        at.clone().prop_map(|retry_at| Unavailable::AllCooling { retry_at }),
        prop::option::of(at.clone()).prop_map(|retry_at| Unavailable::AllBusy { retry_at }),
        at.clone().prop_map(|retry_at| Unavailable::AllErrored { retry_at }),
        at.prop_map(|retry_at| Unavailable::EgressClosed { retry_at }),
        Just(Unavailable::RetriesSpent),
        Just(Unavailable::NoneEntitled),
        Just(Unavailable::NoAccounts),
        Just(Unavailable::QueueFull),
        Just(Unavailable::DeadlinePassed),
    ]
}

/// Anything that may happen to a turn, lawful or not: the machine takes it all.
pub fn act() -> impl Strategy<Value = Act> {
    let progress = prop_oneof![4 => Just(Progress::Open), 1 => Just(Progress::Finishing), 1 => Just(Progress::Done)];
    let happening = prop_oneof![
        2 => Just(Happening::NotKept),
        6 => (0u32..4, 0usize..3).prop_map(|(account, route)| Happening::Slot(account, route)),
        2 => unavailable().prop_map(Happening::NoSlot),
        1 => Just(Happening::Uncarriable),
        6 => Just(Happening::Recorded),
        1 => Just(Happening::NotRecorded),
        4 => Just(Happening::Answering),
        6 => fault().prop_map(Happening::Fault),
        2 => fault().prop_map(Happening::Refused),
        9 => (any::<bool>(), progress, any::<bool>()).prop_map(|(c, p, a)| Happening::Read(c, p, a)),
        2 => Just(Happening::Blocked),
        2 => Just(Happening::Unblocked),
        1 => prop::option::of(duration()).prop_map(Happening::Gone),
        1 => Just(Happening::Enough),
        1 => Just(Happening::TooSlow),
        1 => Just(Happening::Shutdown),
    ];
    prop_oneof![3 => duration().prop_map(Act::Wait), 2 => Just(Act::Fire), 9 => happening.prop_map(Act::Happen)]
}

/// A runtime whose clock a test moves.
pub fn still() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}
