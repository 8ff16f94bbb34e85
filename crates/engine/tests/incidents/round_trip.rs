//! Whatever happens to a turn reads back from its trace as it was, and runs again the same.

use crate::turns::*;
use proptest::prelude::*;
use std::time::Duration;
use tokio::time::Instant;
use turnkeep_base::{Evidence, Fault, FaultKind, Phase};
use turnkeep_dialect::reply::Progress;
use turnkeep_engine::incident::{self, Trace, What};

/// The trace of a turn to which all this happens.
fn traced(acts: &[Act], streamed: bool, late: Duration) -> Trace {
    still().block_on(async {
        let (ring, origin) = (ring(), Instant::now());
        tokio::time::advance(late).await;
        let mut turn = Turn::begin(&ring, 1, facts(streamed), origin);
        for act in acts {
            turn.act(act).await;
        }
        let trace = ring.trace(id(1)).unwrap();
        ring.end(&turn.tape);
        trace
    })
}

fn same(trace: &Trace) {
    let text = serde_json::to_vec_pretty(trace).unwrap();
    let read = incident::read(&text).unwrap();
    assert_eq!(read, *trace);
    let replayed = incident::replay(&read);
    assert_eq!(replayed.divergence(), None, "{}", String::from_utf8_lossy(&text));
    assert_eq!((replayed.lines.len(), replayed.cut), (trace.steps.len(), None));
}

proptest! {
    #[test]
    fn any_turn_reads_back_as_it_was_and_runs_again_the_same(
        acts in prop::collection::vec(act(), 0..60),
        streamed: bool,
        late in 0u64..5_000_000,
    ) {
        same(&traced(&acts, streamed, Duration::from_micros(late)));
    }

    #[test]
    fn a_decision_that_is_taken_away_is_where_the_replay_stops(
        acts in prop::collection::vec(act(), 1..40),
        pick: prop::sample::Index,
    ) {
        let mut trace = traced(&acts, true, Duration::ZERO);
        let decided: Vec<usize> = trace
            .steps
            .iter()
            .enumerate()
            .filter(|(_, step)| matches!(&step.what, What::Machine(step) if !step.done.is_empty()))
            .map(|(at, _)| at)
            .collect();
        let at = decided[pick.index(decided.len())];
        let What::Machine(step) = &mut trace.steps[at].what else { panic!("chosen as one") };
        step.done.pop();
        let replayed = incident::replay(&trace);
        let (number, line) = replayed.divergence().expect("it is another decision");
        prop_assert_eq!((number, line.us), (at + 1, trace.steps[at].us));
    }
}

/// A turn whose answer comes in a thousand pieces, with one sign of life among them.
fn long() -> Trace {
    use Happening::*;
    let mut acts: Vec<Act> =
        [NotKept, Slot(0, 0), Recorded, Answering, Read(true, Progress::Open, false)].map(Act::Happen).into();
    for piece in 0..1_000 {
        acts.push(Act::Wait(Duration::from_micros(900 + piece)));
        acts.push(Act::Happen(Read(true, Progress::Open, piece == 500)));
    }
    acts.push(Act::Fire);
    traced(&acts, true, Duration::ZERO)
}

#[test]
fn pieces_of_an_answer_that_are_alike_are_one_step_with_all_their_times() {
    let trace = long();
    let runs: Vec<_> = trace
        .steps
        .iter()
        .filter_map(|step| if let What::Pieces(run) = &step.what { Some((step.us, &**run)) } else { None })
        .collect();
    assert_eq!(runs.iter().map(|(_, run)| run.count).collect::<Vec<_>>(), [500, 1, 499]);
    let (began, first) = runs[0];
    assert_eq!(first.gaps.len(), 499);
    assert_eq!(began + first.gaps.iter().map(|&gap| u64::from(gap)).sum::<u64>(), first.last_us);
    same(&trace);
}

#[test]
fn the_last_piece_of_a_run_decides_when_the_next_timer_is_due() {
    let mut trace = long();
    let Some(What::Pieces(run)) =
        trace.steps.iter_mut().rev().map(|step| &mut step.what).find(|what| matches!(what, What::Pieces(_)))
    else {
        panic!("it has runs")
    };
    // Half a second later, as if one piece more had come: the clock that fired next could not have been due.
    run.count += 1;
    run.last_us += 500_000;
    run.gaps.push(500_000);
    let replayed = incident::replay(&trace);
    let (number, line) = replayed.divergence().expect("the timer was not due");
    assert_eq!(number, trace.steps.len());
    assert!(line.replayed.as_deref().unwrap_or_default().contains("timer Between is next"), "{line:?}");
}

#[test]
fn a_second_accounts_same_refusal_convicts_the_request_again_without_its_words() {
    use Happening::*;
    let refusal = |words: &str| {
        Fault(self::Fault::new(FaultKind::Unclassified, Phase::Answered, Evidence::text(words).with_status(403)))
    };
    let acts = [NotKept, Slot(0, 0), Recorded, refusal("Not from your SECRET-COUNTRY (request req_1)")]
        .map(Act::Happen)
        .into_iter()
        .chain([Act::Fire])
        .chain([Slot(1, 0), Recorded, refusal("not from your secret-country (request req_2)")].map(Act::Happen))
        .collect::<Vec<_>>();
    let trace = traced(&acts, true, Duration::ZERO);
    let text = serde_json::to_string(&trace).unwrap();
    assert!(text.contains("\"take_back\":403"), "{text}");
    assert!(!text.to_lowercase().contains("secret-country"), "{text}");
    same(&trace);
}
