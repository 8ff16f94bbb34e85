//! What the end of an attempt does to an account, to its pool and to what is written down.

mod support;

use std::time::Duration;
use support::{UM, World, account, fault, need, own};
use turnkeep_base::{Declared, Evidence, Fault, FaultKind, Fingerprint, LimitScope, Phase, Window};
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::{
    AccountKey, AccountSpec, Applied, Bearing, Need, Saved, SavedStatus, Status, Taken, Unavailable,
};
use turnkeep_policy::glob::Globs;

const SECOND: Duration = Duration::from_secs(1);

fn shell() -> Fault {
    Fault::new(FaultKind::UpstreamInternal, Phase::Answered, Evidence::default().with_status(401))
}

fn retry_at(world: &World, key: AccountKey) -> Option<Moment> {
    match world.snapshot(key).standing.status() {
        Status::Errored { retry_at, .. } => Some(*retry_at),
        Status::Active | Status::Suspended { .. } | Status::Disabled => None,
    }
}

#[test]
fn two_revoked_keys_are_both_evicted_while_the_others_serve_every_turn() {
    let mut world = World::of(5);
    let dead = [world.key("u", 1), world.key("u", 3)];
    let mut refused = 0;
    for turn in 0..60 {
        let mut tried = Vec::new();
        loop {
            let need = Need { tried: &tried, tie: turn, ..need(UM) };
            let taken = world.take(&need).unwrap();
            let key = taken.account();
            if dead.contains(&key) {
                world.judge(taken, &fault(FaultKind::CredentialRejected));
                refused += 1;
                tried.push(key);
            } else {
                world.succeed(taken);
                break;
            }
        }
        world.pass(SECOND);
    }
    assert_eq!(dead.map(|key| world.status(key)), ["errored", "errored"]);
    assert_eq!(refused, 6, "three refusals each, and then they are left alone");
}

#[test]
fn three_dead_keys_among_twenty_do_not_fail_a_turn() {
    let mut world = World::of(20);
    let dead: Vec<AccountKey> = [0, 7, 13].map(AccountKey).to_vec();
    dead.iter().for_each(|&key| world.evict(key));
    // All three are due for a try at once, and stay dead.
    world.pass(Duration::from_secs(2 * 3600));
    for turn in 0..40 {
        let mut tried = Vec::new();
        let served = (0..3).any(|_| {
            let need = Need { tried: &tried, tie: turn, ..need(UM) };
            let taken = world.take(&need).unwrap();
            let key = taken.account();
            if !dead.contains(&key) {
                world.succeed(taken);
                return true;
            }
            world.judge(taken, &fault(FaultKind::CredentialRejected));
            tried.push(key);
            false
        });
        assert!(served && tried.len() <= 1, "turn {turn} met {} dead keys", tried.len());
        world.pass(SECOND);
    }
}

#[test]
fn a_due_try_is_preferred_in_a_turns_first_attempt_and_taken_by_any_that_has_nobody_else() {
    let mut world = World::of(2);
    let (dead, other) = (AccountKey(0), AccountKey(1));
    world.evict(dead);
    world.pass(Duration::from_secs(900));
    assert_eq!(world.pick(&need(UM)).map(|pick| (pick.account, pick.trial)), Ok((dead, true)));
    let refused = [AccountKey(9)];
    let second = Need { tried: &refused, ..need(UM) };
    assert_eq!(world.pick(&second).map(|pick| (pick.account, pick.trial)), Ok((other, false)));
    let alone = Need { tried: &[other], ..need(UM) };
    assert_eq!(world.pick(&alone).map(|pick| (pick.account, pick.trial)), Ok((dead, true)));
    let trying = world.take(&need(UM)).unwrap();
    assert!(trying.trial());
    assert_eq!(world.pick(&need(UM)).map(|pick| pick.account), Ok(other), "one at a time");
    world.pool.release(world.now, trying, true);
    assert_eq!(retry_at(&world, dead), Some(world.now.after(5 * SECOND)), "an end that says nothing frees it soon");
}

#[test]
fn an_account_without_which_some_routed_model_has_nobody_is_tried_again_within_a_minute() {
    let narrow = AccountSpec { models: Globs::new(vec!["n".into()]), ..account("u", 0) };
    let specs = vec![AccountSpec { models: Globs::default(), ..account("u", 1) }, narrow, account("u", 2)];
    let mut world = World::routed(specs.clone(), &[("u", "m"), ("u", "n")]);
    let all = world.key("u", 1);
    world.evict(all);
    assert_eq!(retry_at(&world, all), Some(world.now.after(900 * SECOND)), "another has both models");
    let mut world = World::routed(specs[..2].to_vec(), &[("u", "n")]);
    let key = world.key("u", 1);
    let taken: Vec<Taken> = (0..3).map(|_| world.take_of(key)).collect();
    for taken in taken {
        world.judge(taken, &fault(FaultKind::CredentialRejected));
    }
    assert_eq!(
        retry_at(&world, key),
        Some(world.now.after(60 * SECOND)),
        "the attempt's own model counts though unrouted"
    );
    let mut world = World::routed(specs[..2].to_vec(), &[("u", "n")]);
    let on_n = [own("u", "n")];
    let taken: Vec<Taken> = (0..3).map(|_| world.take(&Need { only: Some(key), ..need(&on_n) }).unwrap()).collect();
    for taken in taken {
        world.judge(taken, &fault(FaultKind::CredentialRejected));
    }
    assert_eq!(retry_at(&world, key), Some(world.now.after(900 * SECOND)));
}

#[test]
fn a_refusal_of_an_older_secret_is_recorded_and_a_newer_one_lets_an_errored_account_be_tried_at_once() {
    let mut world = World::of(2);
    let key = AccountKey(0);
    let old: Vec<Taken> = (0..3).map(|_| world.take_of(key)).collect();
    assert!(world.pool.set_secret(world.now, &account("u", 0).id, true, 1));
    for taken in old {
        let judged = world.judge(taken, &fault(FaultKind::CredentialRejected));
        assert!(matches!(judged.applied[..], [Applied::Recorded(_)]) && !judged.changed);
    }
    assert_eq!((world.status(key), world.snapshot(key).standing.budget_used(world.now)), ("active", 0));
    world.evict(key);
    assert_ne!(world.pick(&need(UM)).map(|pick| pick.account), Ok(key));
    world.reconfigure(vec![AccountSpec { generation: 2, ..account("u", 0) }, account("u", 1)]);
    assert_eq!(world.pick(&need(UM)).map(|pick| (pick.account, pick.trial)), Ok((key, true)));
}

#[test]
fn a_removed_account_takes_nothing_new_its_late_ends_change_nothing_and_it_comes_back_as_it_was() {
    let mut world = World::of(2);
    let key = AccountKey(0);
    world.fail(key, &fault(FaultKind::CredentialRejected));
    world.fail(key, &fault(FaultKind::QuotaExhausted));
    world.pass(Duration::from_secs(1800));
    let before = world.snapshot(key).saved(world.now);
    let late: Vec<Taken> = (0..4).map(|_| world.take_of(key)).collect();
    world.reconfigure(vec![account("u", 1)]);
    assert!((0..9).all(|_| world.take(&need(UM)).is_ok_and(|taken| {
        let other = taken.account() != key;
        world.succeed(taken);
        other
    })));
    assert_eq!(world.pool.in_flight(), 4);
    for (n, mut taken) in late.into_iter().enumerate() {
        if n == 0 {
            assert!(!world.pool.succeed(world.now, &mut taken, None));
        }
        world.judge(taken, &fault(FaultKind::CredentialRejected));
    }
    assert_eq!(world.pool.in_flight(), 0);
    let epoch = world.snapshot(key).epoch;
    world.reconfigure(vec![account("u", 1), account("u", 0)]);
    assert_eq!((world.key("u", 0), world.snapshot(key).epoch), (key, epoch));
    assert_eq!(world.snapshot(key).saved(world.now), before);
    assert!(epoch > 0);
}

#[test]
fn an_account_at_another_place_is_as_it_was_and_what_ends_late_at_the_old_one_changes_nothing() {
    let mut world = World::of(1);
    let key = AccountKey(0);
    world.fail(key, &fault(FaultKind::CredentialRejected));
    let (before, epoch) = (world.snapshot(key).saved(world.now), world.snapshot(key).epoch);
    let late = world.take_of(key);
    let moved = AccountSpec { place: Fingerprint([1; 16]), ..account("u", 0) };
    world.reconfigure(vec![moved.clone()]);
    world.judge(late, &fault(FaultKind::CredentialRejected));
    assert_eq!((world.snapshot(key).saved(world.now), world.snapshot(key).epoch), (before, epoch + 1));
    world.reconfigure(vec![moved]);
    assert_eq!(world.snapshot(key).epoch, epoch + 1, "once");
}

#[test]
fn a_suspended_account_is_revived_by_the_operator_alone() {
    let mut world = World::of(1);
    let key = AccountKey(0);
    let late = world.take_of(key);
    let named: Vec<Taken> = (0..2).map(|_| world.take_of(key)).collect();
    for taken in named {
        world.judge(taken, &fault(FaultKind::AccountSuspended));
    }
    assert_eq!((world.status(key), world.snapshot(key).epoch), ("suspended", 1));
    world.succeed(late);
    world.pool.set_secret(world.now, &account("u", 0).id, true, 9);
    world.reconfigure(vec![AccountSpec { generation: 10, ..account("u", 0) }]);
    world.pass(Duration::from_secs(1_000_000));
    assert_eq!(world.status(key), "suspended");
    assert_eq!(world.pick(&need(UM)), Err(Unavailable::NoAccounts));
    world.pool.set_enabled(world.now, &account("u", 0).id, true);
    assert!(world.pick(&need(UM)).is_ok());
}

#[test]
fn the_operators_switch_outlives_a_reload_that_says_nothing_about_it() {
    let mut world = World::of(1);
    let id = account("u", 0).id;
    world.pool.set_enabled(world.now, &id, false);
    world.reconfigure(vec![account("u", 0)]);
    assert_eq!(world.status(AccountKey(0)), "disabled");
    world.reconfigure(vec![AccountSpec { enabled: false, ..account("u", 0) }]);
    world.reconfigure(vec![account("u", 0)]);
    assert_eq!(world.status(AccountKey(0)), "active", "the configuration has changed its mind");
    let disabled = Saved { status: SavedStatus::Disabled, ..world.snapshot(AccountKey(0)).saved(world.now) };
    world.pool.restore(world.now, &id, disabled);
    assert_eq!(world.status(AccountKey(0)), "disabled");
}

#[test]
fn the_fifth_shell_in_a_row_is_charged_with_a_reference_and_nothing_else_is() {
    let mut world = World::of(2);
    let key = AccountKey(0);
    assert_eq!(world.fail(key, &fault(FaultKind::CredentialRejected)).charge, None);
    let before = world.snapshot(key).saved(world.now);
    let mut charges: Vec<_> = (0..5).map(|_| world.fail(key, &shell())).collect();
    assert!(charges[..4].iter().all(|judged| judged.charge.is_none() && !judged.changed));
    let fifth = charges.remove(4);
    assert!(fifth.changed && fifth.applied.contains(&Applied::Budget { used: 2, of: 3 }));
    assert!(world.pool.take_back(world.now, fifth.charge.unwrap()));
    assert_eq!(world.snapshot(key).saved(world.now), before);
    // The same where it was the last of the budget: the episode that it opened goes with it, and only that.
    world.fail(key, &fault(FaultKind::CredentialRejected));
    let before = world.snapshot(key).saved(world.now);
    let charge = (0..5).filter_map(|_| world.fail(key, &shell()).charge).last().unwrap();
    assert_eq!(world.status(key), "errored");
    assert!(world.pool.take_back(world.now, charge));
    let after = world.snapshot(key).saved(world.now);
    assert_eq!((after.status, after.budget), (before.status, before.budget));
    assert!(world.pick(&need(UM)).is_ok());
}

#[test]
fn an_attempt_is_judged_once() {
    let mut world = World::of(2);
    let mut taken = world.take_of(AccountKey(0));
    for _ in 0..9 {
        world.pool.judge(world.now, &mut taken, &fault(FaultKind::CredentialRejected), Bearing::Full);
    }
    assert!(!world.pool.succeed(world.now, &mut taken, None));
    world.pool.release(world.now, taken, true);
    assert_eq!(world.snapshot(AccountKey(0)).standing.budget_used(world.now), 1);
}

#[test]
fn a_cooldown_of_one_model_leaves_the_others_and_days_are_capped() {
    let mut world = World::routed(vec![account("u", 0)], &[("u", "m"), ("u", "n")]);
    let days = Declared {
        wait: None,
        windows: vec![Window { scope: LimitScope::Model, wait: Duration::from_secs(18 * 86_400) }],
        names_model: true,
    };
    world.fail(AccountKey(0), &fault(FaultKind::RateLimited).declaring(days));
    let retry_at = world.now.after(Duration::from_secs(6 * 3600));
    assert_eq!(world.pick(&need(UM)), Err(Unavailable::AllCooling { retry_at }));
    assert!(world.pick(&need(&[own("u", "n")])).is_ok());
    world.fail_on("n", &fault(FaultKind::ModelNotEntitled));
    assert_eq!(world.pick(&need(&[own("u", "n")])), Err(Unavailable::NoneEntitled));
}

#[test]
fn a_routed_model_that_only_this_account_serves_shortens_its_episode_whatever_the_attempt_asked_for() {
    let narrow = AccountSpec { models: Globs::new(vec!["n".into()]), ..account("u", 0) };
    for (routes, seconds) in [([("u", "n")], 900), ([("u", "m")], 60)] {
        let mut world = World::routed(vec![narrow.clone(), account("u", 1)], &routes);
        let (key, on_n) = (world.key("u", 1), [own("u", "n")]);
        for _ in 0..3 {
            let taken = world.take(&Need { only: Some(key), ..need(&on_n) }).unwrap();
            world.judge(taken, &fault(FaultKind::CredentialRejected));
        }
        assert_eq!(retry_at(&world, key), Some(world.now.after(seconds * SECOND)), "{routes:?}");
    }
    // An account whose key may not use the model does not count as one that serves it.
    let mut world = World::of(2);
    world.fail(AccountKey(0), &fault(FaultKind::ModelNotEntitled));
    world.evict(AccountKey(1));
    assert_eq!(retry_at(&world, AccountKey(1)), Some(world.now.after(60 * SECOND)));
}

#[test]
fn a_cooldown_that_runs_already_is_not_shortened_by_what_is_put_back() {
    let mut world = World::of(1);
    let id = account("u", 0).id;
    let fresh = world.snapshot(AccountKey(0)).saved(world.now);
    world.fail(AccountKey(0), &fault(FaultKind::RateLimited));
    world.pool.restore(world.now, &id, fresh);
    assert_eq!(world.pick(&need(UM)), Err(Unavailable::AllCooling { retry_at: world.now.after(15 * SECOND) }));
}
