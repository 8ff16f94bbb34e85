use super::*;
use turnkeep_base::{Evidence, Phase};

const REPORTED: Usage = Usage { input: 10, cache_read: 5, cache_write: 0, output: 4, reasoning: 0 };

fn facts(end: AttemptEnd<'_>) -> AttemptFacts<'_> {
    let price = Some(Price { input: 2, output: 3, cache_read: 1, cache_write: 2 });
    AttemptFacts { end, reported: None, content_bytes: 0, estimated_input: 25, price }
}

fn fault(kind: FaultKind, status: Option<u16>) -> Fault {
    let evidence = Evidence::text("x");
    let evidence = match status {
        Some(status) => evidence.with_status(status),
        None => evidence,
    };
    Fault::new(kind, Phase::Answered, evidence)
}

#[test]
fn what_the_provider_reports_of_a_whole_answer_is_exact_and_of_a_part_an_estimate() {
    let whole = attempt(&AttemptFacts { reported: Some(REPORTED), content_bytes: 400, ..facts(AttemptEnd::Completed) });
    assert_eq!((whole.usage, whole.exact, whole.cost), (REPORTED, true, Some(10 * 2 + 5 + 4 * 3)));
    let end = AttemptEnd::Interrupted { late: None };
    let part = attempt(&AttemptFacts { reported: Some(REPORTED), content_bytes: 400, ..facts(end) });
    assert_eq!((part.usage.output, part.usage.input, part.exact), (100, 10, false));
    let silent = attempt(&AttemptFacts { content_bytes: 41, ..facts(end) });
    assert_eq!((silent.usage.input, silent.usage.output, silent.exact), (25, 11, false));
}

#[test]
fn what_was_refused_or_never_sent_costs_nothing_and_says_so_exactly() {
    let refused = fault(FaultKind::RateLimited, Some(429));
    let invalid = fault(FaultKind::RequestInvalid, Some(400));
    for end in [
        AttemptEnd::Unsent,
        AttemptEnd::Failed(&refused),
        AttemptEnd::Failed(&invalid),
        AttemptEnd::Interrupted { late: Some(&refused) },
    ] {
        let closed = attempt(&facts(end));
        assert_eq!((closed.usage, closed.exact, closed.cost), (Usage::default(), true, Some(0)), "{end:?}");
    }
}

#[test]
fn an_attempt_that_may_have_run_is_estimated() {
    let reset = fault(FaultKind::ConnectionReset, None);
    let closed = attempt(&facts(AttemptEnd::Failed(&reset)));
    assert_eq!((closed.usage.input, closed.exact), (25, false));
}

#[test]
fn only_a_failure_is_judged_in_full_and_leaving_is_no_judgement() {
    let limited = fault(FaultKind::RateLimited, Some(429));
    let of = |end| attempt(&facts(end)).account;
    assert!(matches!(of(AttemptEnd::Completed), OnAccount::Succeed { .. }));
    assert!(matches!(of(AttemptEnd::Failed(&limited)), OnAccount::Judge { bearing: Bearing::Full, .. }));
    let late = AttemptEnd::Interrupted { late: Some(&limited) };
    assert!(matches!(of(late), OnAccount::Judge { bearing: Bearing::DeclaredOnly, .. }));
    assert_eq!(of(AttemptEnd::Interrupted { late: None }), OnAccount::Release);
    assert_eq!(of(AttemptEnd::Unsent), OnAccount::Release);
}

#[test]
fn a_turn_sets_all_its_output_aside_and_a_lost_end_is_taken_for_a_usual_one() {
    let output = |usage: Usage| usage.output;
    assert_eq!(reserved(400, Some(9), 1), Usage { input: 100, output: 9, ..Usage::default() });
    assert_eq!(output(reserved(0, None, 0)), USUAL_OUTPUT);
    assert_eq!(output(reserved(0, Some(128_000), 2)), 256_000);
    assert_eq!(output(reserved(0, Some(u64::MAX), 2)), u64::MAX);
    assert_eq!(output(presumed(0, Some(128_000), 2)), 2 * USUAL_OUTPUT);
    assert_eq!((output(presumed(0, Some(9), 1)), output(presumed(0, None, 1))), (9, USUAL_OUTPUT));
}

fn every_outcome() -> [TurnOutcome; 4] {
    [TurnOutcome::Completed, TurnOutcome::Left, TurnOutcome::Stopped, TurnOutcome::Failed]
}

#[test]
fn only_a_complete_answer_is_published_or_remembered() {
    for outcome in every_outcome() {
        for (recorded, idempotent) in [(false, false), (false, true), (true, false), (true, true)] {
            let closed = turn(&TurnFacts { outcome, committed: true, recorded, idempotent });
            let completed = outcome == TurnOutcome::Completed;
            assert_eq!(closed.publish, completed && recorded);
            assert_eq!(closed.remember, completed && recorded && idempotent);
            assert_eq!(closed.left.is_some(), outcome == TurnOutcome::Left);
        }
    }
}

#[test]
fn nothing_is_bound_committed_or_cached_without_a_receipt_and_nothing_that_was_paid_for_is_lost() {
    for outcome in every_outcome() {
        for bits in 0..24_u8 {
            let bit = |at: u8| bits & (1 << at) != 0;
            let source = [Source::Upstream, Source::Late, Source::Cache][usize::from(bits / 8)];
            let facts = DeliveryFacts { outcome, receipt: bit(0), source, recorded: bit(1), cacheable: bit(2) };
            let closed = delivery(&facts);
            let completed = outcome == TurnOutcome::Completed;
            assert_eq!(
                closed.delivered,
                completed.then_some(facts.receipt),
                "one counter, and only for what completed"
            );
            if !facts.receipt {
                assert!(!closed.bind && !closed.commit && !closed.cache && !closed.spend, "{facts:?}");
            }
            assert!(!(closed.hold && closed.delivered == Some(true)), "{facts:?}");
            let owed = completed && !facts.receipt && facts.recorded && source == Source::Upstream;
            assert_eq!(closed.hold, owed, "{facts:?}");
            let stored = completed && facts.receipt && facts.recorded && facts.cacheable && source != Source::Cache;
            assert_eq!(closed.cache, stored, "every cacheable turn with a receipt is written: {facts:?}");
        }
    }
}
