//! What keeping an incident trace costs a turn: the machine alone and with its tape, over a turn of 8 steps and over its
//! pieces. `cargo run --release -p turnkeep-engine --example incident_speed`.

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant as Wall};
use tokio::time::Instant;
use turnkeep_base::TurnId;
use turnkeep_dialect::reply::Progress;
use turnkeep_engine::incident::ring::{Bounds, Ring};
use turnkeep_engine::incident::trace::Head;
use turnkeep_engine::machine::{Event, Machine, TurnFacts};
use turnkeep_engine::route::{Clocks, Rules};
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::AccountKey;

const TURNS: u64 = 100_000;
const PIECES: u64 = 5_000_000;

fn facts() -> TurnFacts {
    TurnFacts {
        streamed: true,
        total: Duration::from_secs(600),
        total_set_by_caller: false,
        routes: 1,
        first_fallback: None,
        larger: false,
        rules: Rules::default(),
    }
}

fn head(turn: TurnId) -> Head {
    Head {
        turn: turn.to_string(),
        build: "0.1.0".into(),
        config: Some("blake3:0123456789abcdef0123456789abcdef".into()),
        began_ms: 0,
        caller: "caller".into(),
        model: "a-model-of-usual-length".into(),
        dialect: "chat".into(),
        routes: Vec::new(),
        accounts: BTreeMap::new(),
        clock_us: 0,
        facts: facts(),
        jitter: 1,
    }
}

fn piece(progress: Progress) -> Event {
    Event::Read { content: true, progress, alive: false }
}

fn events() -> [Event; 8] {
    let slot = Event::Slot { account: AccountKey(0), route: 0, clocks: Clocks::default(), replay_safe: true };
    [
        Event::Begin,
        Event::NotKept,
        slot,
        Event::Recorded,
        Event::Answering,
        piece(Progress::Open),
        piece(Progress::Open),
        piece(Progress::Done),
    ]
}

/// Nanoseconds for each of so many.
fn each(count: u64, run: impl FnOnce()) -> f64 {
    let began = Wall::now();
    run();
    began.elapsed().as_nanos() as f64 / count as f64
}

fn main() {
    let ring = Ring::new(Bounds::default());
    let origin = Instant::now();
    // As the loop does without a tape: it asks for the time before each event.
    let now = || Moment(u64::try_from(Instant::now().duration_since(origin).as_millis()).unwrap_or(u64::MAX));
    let bare = each(TURNS, || {
        for _ in 0..TURNS {
            let mut machine = Machine::new(facts(), 1);
            let mut effects = Vec::new();
            for event in events() {
                machine.on(event, now(), &mut effects);
                black_box(&mut effects).clear();
            }
        }
    });
    let taped = each(TURNS, || {
        for number in 0..TURNS {
            let turn = TurnId::new(number, 0);
            let tape = ring.begin(turn, origin, [0; 32], head(turn));
            let mut machine = Machine::new(facts(), 1);
            let mut effects = Vec::new();
            for event in events() {
                tape.feed(&mut machine, event, &mut effects);
                black_box(&mut effects).clear();
            }
            ring.end(&tape);
        }
    });
    println!("a turn of 8 events: {bare:.0} ns bare, {taped:.0} ns with its tape");
    let (running, ended) = ring.len();
    println!("kept: {running} running, {ended} ended, {} KiB", ring.drawn() >> 10);

    let begin = |ring: &Arc<Ring>| {
        let turn = TurnId::new(u64::MAX, 1);
        ring.begin(turn, origin, [0; 32], head(turn))
    };
    let answering = |feed: &mut dyn FnMut(Event)| events().into_iter().take(6).for_each(feed);
    let mut machine = Machine::new(facts(), 1);
    let mut effects = Vec::new();
    answering(&mut |event| machine.on(event, now(), &mut effects));
    let bare = each(PIECES, || {
        for _ in 0..PIECES {
            machine.on(piece(Progress::Open), now(), &mut effects);
            black_box(&mut effects).clear();
        }
    });
    let tape = begin(&ring);
    let mut machine = Machine::new(facts(), 1);
    answering(&mut |event| tape.feed(&mut machine, event, &mut effects));
    effects.clear();
    let taped = each(PIECES, || {
        for _ in 0..PIECES {
            tape.feed(&mut machine, piece(Progress::Open), &mut effects);
            black_box(&mut effects).clear();
        }
    });
    println!("a piece of an answer: {bare:.1} ns bare, {taped:.1} ns with its tape");
}
