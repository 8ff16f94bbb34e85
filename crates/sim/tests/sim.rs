//! The simulation itself: what a plan holds, that it does the same twice, and that it is made smaller rightly.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends by panicking")]

use turnkeep_sim::plan::{Plan, draw};
use turnkeep_sim::run::run;
use turnkeep_sim::shrink::shrink;

#[test]
fn a_seed_is_at_least_two_hundred_turns_three_accounts_two_callers_and_five_faults() {
    for seed in 0..200 {
        let plan = draw(seed);
        let turns: usize = plan.talks.iter().map(|talk| talk.turns.len()).sum();
        let accounts: u32 = plan.upstreams.iter().map(|upstream| u32::from(upstream.accounts)).sum();
        assert!(turns >= 200 && accounts >= 3 && plan.callers >= 2 && plan.faults.len() >= 5, "seed {seed}");
    }
}

#[test]
fn a_plan_that_was_written_down_is_read_as_it_was() {
    let plan = draw(7);
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
}

#[test]
fn a_plan_does_the_same_twice_and_another_one_something_else() {
    let first = run(&draw(11)).unwrap();
    assert_eq!(first.trace, run(&draw(11)).unwrap().trace);
    assert_ne!(first.digest, run(&draw(12)).unwrap().digest);
    assert_eq!(first.broken, Vec::<String>::new());
}

#[test]
fn of_a_plan_that_fails_is_left_what_makes_it_fail() {
    let needed = |plan: &Plan| plan.talks.iter().any(|talk| talk.caller == 1) && !plan.faults.is_empty();
    let fails = |plan: &Plan| if needed(plan) { vec!["invariant 4: so it is".to_owned()] } else { Vec::new() };
    let small = shrink(draw(3), 2000, fails, |_| ());
    assert_eq!((small.talks.len(), small.faults.len(), small.events.len()), (1, 1, 0));
    assert_eq!(small.talks[0].caller, 1);
}
