//! What is kept is bounded by turns, steps and bytes, and what a bound has cut says so.

use crate::turns::Happening::*;
use crate::turns::*;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use turnkeep_base::{Evidence, Fault as Broken, FaultKind, Phase};
use turnkeep_dialect::reply::Progress;
use turnkeep_engine::incident::ring::{Bounds, Ring};
use turnkeep_engine::incident::{self, Cut, CutBy, State, Trace};

fn small(change: impl FnOnce(&mut Bounds)) -> Arc<Ring> {
    let mut bounds = Bounds::default();
    change(&mut bounds);
    Ring::new(bounds)
}

fn refused() -> Happening {
    Fault(Broken::new(FaultKind::RateLimited, Phase::Answered, Evidence::text("slow down").with_status(429)))
}

/// A turn with so many refusals.
fn turn(ring: &Arc<Ring>, number: u64, refusals: usize) -> Turn {
    let mut turn = Turn::begin(ring, number, facts(true), Instant::now());
    turn.happens([NotKept]);
    for account in 0..refusals {
        turn.happens([Slot(account as u32, 0), Recorded, refused()]);
    }
    turn
}

fn ended(ring: &Arc<Ring>, number: u64, refusals: usize) {
    ring.end(&turn(ring, number, refusals).tape);
}

#[test]
fn the_oldest_turn_that_has_ended_gives_way_and_one_that_runs_does_not() {
    let ring = small(|bounds| bounds.turns = 3);
    let running = turn(&ring, 1, 1);
    for number in 2..=6 {
        ended(&ring, number, 1);
    }
    assert_eq!(ring.len(), (1, 3));
    let kept: Vec<bool> = (1..=6).map(|number| ring.trace(id(number)).is_some()).collect();
    assert_eq!(kept, [true, false, false, true, true, true]);
    assert_eq!(ring.trace(id(1)).unwrap().state, State::Running);
    ring.end(&running.tape);
    assert_eq!(ring.trace(id(1)).unwrap().state, State::Ended);
    assert_eq!((ring.len(), ring.trace(id(4))), ((0, 3), None));
}

#[test]
fn an_end_that_is_told_twice_keeps_one_trace() {
    let ring = ring();
    let turn = turn(&ring, 1, 1);
    ring.end(&turn.tape);
    ring.end(&turn.tape);
    assert_eq!(ring.len(), (0, 1));
}

#[test]
fn all_turns_together_stay_within_their_bytes_and_give_them_back() {
    let ring = small(|bounds| bounds.bytes = 64 << 10);
    for number in 1..=200 {
        ended(&ring, number, 3);
        assert!(ring.drawn() <= 64 << 10, "{} bytes after {number} turns", ring.drawn());
    }
    let (_, kept) = ring.len();
    assert!((2..=64).contains(&kept), "{kept} are kept");
    assert!(ring.trace(id(200)).is_some() && ring.trace(id(1)).is_none());
    let weak = Arc::downgrade(&ring);
    drop(ring);
    assert!(weak.upgrade().is_none(), "the ring does not keep itself");
}

/// The cut of a trace, and that the rest of it runs again the same.
fn cut(trace: &Trace) -> Cut {
    let replayed = incident::replay(trace);
    assert_eq!((replayed.divergence(), replayed.cut), (None, trace.cut));
    trace.cut.expect("it is cut")
}

#[test]
fn where_only_running_turns_are_left_they_are_cut_and_run_on() {
    let ring = small(|bounds| bounds.bytes = 16 << 10);
    let turns: Vec<Turn> = (1..=8).map(|number| turn(&ring, number, 2)).collect();
    assert!(ring.drawn() <= 16 << 10);
    let by: Vec<_> = turns.iter().filter_map(|turn| turn.tape.trace().cut).collect();
    assert!(!by.is_empty() && by.iter().all(|cut| cut.by == CutBy::Room), "{by:?}");
    assert_eq!(turns[7].machine.dispatches(), 2, "the turn itself runs on");
}

#[test]
fn a_turn_of_too_many_steps_is_cut_and_says_so() {
    let ring = small(|bounds| bounds.steps = 5);
    let trace = turn(&ring, 1, 4).tape.trace();
    assert_eq!((trace.steps.len(), cut(&trace).by), (5, CutBy::Steps));
}

#[test]
fn a_turn_of_too_many_bytes_is_cut_and_says_so() {
    let ring = small(|bounds| bounds.turn_bytes = 6 << 10);
    let mut turn = turn(&ring, 1, 2);
    for _ in 0..40 {
        turn.happens([Slot(1, 0), Recorded, refused()]);
    }
    let trace = turn.tape.trace();
    assert_eq!(cut(&trace).by, CutBy::Bytes);
    assert!(ring.drawn() <= 10 << 10, "{}", ring.drawn());
}

#[test]
fn an_answer_of_a_hundred_thousand_pieces_takes_no_more_room_than_one_of_thousands() {
    still().block_on(async {
        let ring = ring();
        let mut turn = Turn::begin(&ring, 1, facts(true), Instant::now());
        turn.happens([NotKept, Slot(0, 0), Recorded, Answering]);
        for _ in 0..100_000 {
            tokio::time::advance(Duration::from_micros(10)).await;
            turn.happens([Read(true, Progress::Open, false)]);
        }
        let trace = turn.tape.trace();
        assert_eq!((trace.cut, trace.steps.len()), (None, 7));
        assert!(ring.drawn() < 20 << 10, "{}", ring.drawn());
        let replayed = incident::replay(&trace);
        assert_eq!((replayed.divergence(), replayed.lines.len()), (None, 7));
    });
}
