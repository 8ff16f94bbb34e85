//! The simulation itself: what a plan holds, that it does the same twice, and that it is made smaller rightly.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends by panicking")]

use turnkeep_sim::plan::{Plan, draw};
use turnkeep_sim::run::run;
use turnkeep_sim::shrink::shrink;

#[test]
fn a_seed_is_at_least_two_hundred_turns_four_accounts_two_callers_and_five_faults() {
    for seed in 0..200 {
        let plan = draw(seed);
        let turns: usize = plan.talks.iter().map(|talk| talk.turns.len()).sum();
        let accounts: u32 = plan.upstreams.iter().map(|upstream| u32::from(upstream.accounts)).sum();
        assert!(turns >= 200 && accounts >= 4 && plan.callers >= 2 && plan.faults.len() >= 5, "seed {seed}");
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
    // What gateways log is read in every run of a process, not in the first one alone.
    assert!(first.logged > 50 && run(&draw(12)).unwrap().logged > 50);
}

#[test]
fn of_a_plan_that_fails_is_left_what_makes_it_fail() {
    let needed = |plan: &Plan| plan.talks.iter().any(|talk| talk.caller == 1) && !plan.faults.is_empty();
    let fails = |plan: &Plan| if needed(plan) { vec!["invariant 4: so it is".to_owned()] } else { Vec::new() };
    let small = shrink(draw(3), 2000, fails, |_| ());
    assert_eq!((small.talks.len(), small.faults.len(), small.events.len()), (1, 1, 0));
    assert_eq!(small.talks[0].caller, 1);
}

#[test]
fn every_bug_has_its_place_in_the_gateway_and_every_place_its_bug() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut sources = String::new();
    let mut folders: Vec<_> = ["base", "policy", "engine", "http"].map(|name| crates.join(name).join("src")).into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                sources += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    let bugs: Vec<&str> = turnkeep_sim::bugs::BUGS.iter().map(|bug| bug.name).collect();
    assert!(bugs.len() >= 40);
    for name in &bugs {
        assert!(sources.contains(&format!("seeded::is(\"{name}\")")), "{name} has no place");
    }
    for place in sources.split("seeded::is(\"").skip(1) {
        let name = place.split('"').next().unwrap();
        assert!(bugs.contains(&name), "{name} is not in the list");
    }
}
