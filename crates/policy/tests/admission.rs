//! Who serves: routes, tiers, slots, own rates, bursts of an address, endpoints that are out, and retry budgets.

mod support;

use std::time::Duration;
use support::{UM, World, account, fault, need, own};
use turnkeep_base::{Declared, Evidence, Fault, FaultKind, LimitScope, Phase, Window};
use turnkeep_policy::Moment;
use turnkeep_policy::accounts::{AccountKey, AccountSpec, Candidate, Need, Taken, Tier, Unavailable};
use turnkeep_policy::glob::Globs;

const SECOND: Duration = Duration::from_secs(1);

fn narrow(upstream: &str, n: u32, slots: u32) -> AccountSpec {
    AccountSpec { max_in_flight: slots, ..account(upstream, n) }
}

fn explained() -> Fault {
    let window = Window { scope: LimitScope::Account, wait: 20 * SECOND };
    fault(FaultKind::RateLimited).declaring(Declared { windows: vec![window], ..Declared::default() })
}

#[test]
fn turns_spread_over_equal_accounts_and_the_first_route_wins_while_it_can_serve() {
    let mut world = World::new(vec![narrow("u", 0, 2), narrow("u", 1, 2), narrow("v", 2, 2)]);
    let routes = [own("u", "m"), own("v", "n")];
    let mut picks = Vec::new();
    let taken: Vec<Taken> = (0..6)
        .map(|_| {
            let pick = world.pick(&need(&routes)).unwrap();
            picks.push((pick.route, pick.account.0));
            world.take(&need(&routes)).unwrap()
        })
        .collect();
    picks[..4].sort_unstable();
    assert_eq!(picks, [(0, 0), (0, 0), (0, 1), (0, 1), (1, 2), (1, 2)]);
    assert_eq!(world.pick(&need(&routes)), Err(Unavailable::AllBusy { retry_at: None }));
    let second = taken.into_iter().find(|taken| taken.account() == AccountKey(1)).unwrap();
    world.pool.release(world.now, second, true);
    assert_eq!(world.pick(&need(&routes)).map(|pick| pick.account), Ok(AccountKey(1)));
    let later = Need { from_route: 1, ..need(&routes) };
    assert_eq!(world.pick(&later), Err(Unavailable::AllBusy { retry_at: None }));
}

#[test]
fn ties_between_accounts_that_were_never_used_are_broken_by_the_caller() {
    let mut world = World::of(20);
    let mut chosen: Vec<u32> = (0..40).map(|tie| world.pick(&Need { tie, ..need(UM) }).unwrap().account.0).collect();
    chosen.sort_unstable();
    chosen.dedup();
    assert!(chosen.len() >= 10, "{chosen:?}");
    let health = world.take_of(AccountKey(3));
    world.judge(health, &fault(FaultKind::UpstreamInternal));
    assert!((0..40).all(|tie| world.pick(&Need { tie, ..need(UM) }).unwrap().account != AccountKey(3)));
}

#[test]
fn what_nobody_can_serve_is_told_apart() {
    let mut world = World::of(2);
    let (first, second) = (AccountKey(0), AccountKey(1));
    assert_eq!(world.pick(&need(&[own("nowhere", "m")])), Err(Unavailable::NoAccounts));
    world.fail(first, &explained());
    world.fail(second, &fault(FaultKind::RateLimited).wait(Some(9 * SECOND)));
    let retry_at = world.now.after(9 * SECOND);
    assert_eq!(world.pick(&need(UM)), Err(Unavailable::AllCooling { retry_at }));
    world.pass(9 * SECOND);
    assert_eq!(world.pick(&need(UM)).map(|pick| pick.account), Ok(second));
    world.pass(20 * SECOND);
    for key in [first, second] {
        world.fail(key, &fault(FaultKind::ModelNotEntitled));
    }
    assert_eq!(world.pick(&need(UM)), Err(Unavailable::NoneEntitled));
    let mut world = World::of(1);
    world.evict(first);
    assert_eq!(world.pick(&need(UM)), Err(Unavailable::AllErrored { retry_at: world.now.after(60 * SECOND) }));
}

#[test]
fn a_tried_account_is_not_asked_again_unless_it_is_the_only_one_wanted() {
    let mut world = World::of(1);
    let tried = [AccountKey(0)];
    let again = Need { tried: &tried, ..need(UM) };
    assert_eq!(world.pick(&again), Err(Unavailable::NoAccounts));
    assert!(world.pick(&Need { only: Some(AccountKey(0)), ..again }).is_ok());
}

#[test]
fn a_fallback_serves_when_the_models_own_routes_cannot_and_waits_while_they_are_only_busy() {
    let mut world = World::new(vec![narrow("u", 0, 1), narrow("v", 1, 9)]);
    let routes = [
        own("u", "m"),
        Candidate { upstream: "v", model: "other", tier: Tier::Fallback },
        Candidate { upstream: "v", model: "large", tier: Tier::Larger },
    ];
    let taken = world.take(&need(&routes)).unwrap();
    assert_eq!(world.pick(&need(&routes)), Err(Unavailable::AllBusy { retry_at: None }));
    world.judge(taken, &explained());
    assert_eq!(world.pick(&need(&routes)).map(|pick| pick.route), Ok(1));
    let larger = Need { larger: true, ..need(&routes) };
    assert_eq!(world.pick(&larger).map(|pick| pick.route), Ok(2));
    let only_larger = Need { from_route: 2, ..need(&routes) };
    assert_eq!(world.pick(&only_larger), Err(Unavailable::NoAccounts), "nobody asked for a larger model");
}

#[test]
fn an_accounts_own_rate_is_waited_for_and_comes_back_only_when_nothing_was_sent() {
    let limited = AccountSpec { requests_per_minute: Some(2), ..account("u", 0) };
    let mut world = World::new(vec![limited]);
    let unsent = world.take(&need(UM)).unwrap();
    let sent = world.take(&need(UM)).unwrap();
    let retry_at = world.now.after(30 * SECOND);
    assert_eq!(world.pick(&need(UM)), Err(Unavailable::AllBusy { retry_at: Some(retry_at) }));
    world.judge(sent, &fault(FaultKind::UpstreamInternal));
    assert!(world.pick(&need(UM)).is_err());
    world.pool.release(world.now, unsent, false);
    assert!(world.pick(&need(UM)).is_ok());
}

#[test]
fn estimated_tokens_are_drawn_and_trued_up_and_a_small_turn_passes_where_a_large_one_waits() {
    let limited = |n| AccountSpec { tokens_per_minute: Some(6000), ..account("u", n) };
    let mut world = World::new(vec![limited(0)]);
    let tokens = |tokens| Need { tokens, ..need(UM) };
    let mut first = world.take(&tokens(5000)).unwrap();
    let retry_at = world.now.after(10 * SECOND);
    assert_eq!(world.pick(&tokens(2000)), Err(Unavailable::AllBusy { retry_at: Some(retry_at) }));
    assert!(world.pick(&tokens(1000)).is_ok());
    world.pool.succeed(world.now, &mut first, Some(1000));
    world.pool.release(world.now, first, true);
    assert!(world.pick(&tokens(5000)).is_ok());
    world.reconfigure(vec![limited(0), limited(1)]);
    assert_eq!(world.pick(&tokens(10)).map(|pick| pick.account), Ok(AccountKey(1)), "the one with more headroom");
}

#[test]
fn two_hundred_callers_on_twenty_accounts_with_three_honest_429s_close_no_model() {
    let mut world = World::of(20);
    let live: Vec<Taken> = (0..200).map(|tie| world.take(&Need { tie, ..need(UM) }).unwrap()).collect();
    for (n, taken) in live.into_iter().enumerate() {
        if taken.account().0 < 3 {
            assert!(!world.judge(taken, &explained()).burst, "{n}");
        } else {
            world.pool.release(world.now, taken, true);
        }
    }
    assert!((0..200).all(|tie| world.pick(&Need { tie, ..need(UM) }).is_ok()));
}

#[test]
fn three_unexplained_429s_of_different_groups_close_the_model_by_that_address_for_everybody() {
    let mut world = World::routed((0..20).map(|n| account("u", n)).chain([account("v", 20)]).collect(), &[]);
    let limited = fault(FaultKind::RateLimited).wait(Some(SECOND));
    let bursts = [0, 1, 2].map(|n| world.fail(AccountKey(n), &limited).burst);
    assert_eq!(bursts, [false, false, true]);
    let retry_at = world.now.after(SECOND);
    assert_eq!(
        world.pick(&need(UM)),
        Err(Unavailable::EgressClosed { retry_at: world.now.after(30 * SECOND) }),
        "{retry_at:?}"
    );
    assert!(world.pick(&need(&[own("u", "n")])).is_ok(), "another model");
    assert_eq!(world.pick(&need(&[own("u", "m"), own("v", "m")])).map(|pick| pick.route), Ok(1));
    assert_eq!(world.pool.upstreams(world.now)[0].closed.len(), 1);
    world.pass(30 * SECOND);
    assert!(world.pick(&need(UM)).is_ok());
}

#[test]
fn three_429s_of_one_group_or_with_a_success_between_close_nothing() {
    let grouped = |n| AccountSpec { limit_group: Some("org".into()), ..account("u", n) };
    let mut world = World::new((0..20).map(grouped).collect());
    assert!((0..6).all(|n| !world.fail(AccountKey(n), &fault(FaultKind::RateLimited)).burst));
    let mut world = World::of(20);
    for n in 0..2 {
        world.fail(AccountKey(n), &fault(FaultKind::RateLimited));
    }
    let taken = world.take_of(AccountKey(9));
    world.succeed(taken);
    assert!(!world.fail(AccountKey(2), &fault(FaultKind::RateLimited)).burst);
}

/// Two upstreams, the first of which has just been ejected.
fn ejected() -> World {
    let mut world = World::new(vec![account("u", 0), narrow("v", 1, 2)]);
    for _ in 0..5 {
        world.fail(AccountKey(0), &fault(FaultKind::ConnectRefused));
    }
    world
}

#[test]
fn an_endpoint_that_keeps_failing_is_left_alone_only_while_another_route_can_serve() {
    let mut world = ejected();
    let routes = [own("u", "m"), own("v", "m")];
    assert_eq!(world.pick(&need(&routes)).map(|pick| pick.route), Ok(1));
    assert_eq!(world.pick(&need(UM)).map(|pick| (pick.route, pick.probe)), Ok((0, false)), "it has nobody else");
    let held: Vec<Taken> = (0..2).map(|_| world.take(&need(&routes)).unwrap()).collect();
    assert_eq!(world.pick(&need(&routes)).map(|pick| pick.route), Ok(0), "the other one is full");
    held.into_iter().for_each(|taken| world.succeed(taken));
    assert_eq!(world.snapshot(AccountKey(0)).standing.budget_used(world.now), 0);
    assert_eq!(world.status(AccountKey(0)), "active");
}

#[test]
fn one_turn_at_a_time_with_a_spare_route_probes_and_a_failure_ejects_for_longer() {
    let mut world = ejected();
    let routes = [own("u", "m"), own("v", "m")];
    world.pass(10 * SECOND);
    let probe = world.take(&need(&routes)).unwrap();
    assert!(probe.probe() && probe.account() == AccountKey(0));
    assert_eq!(world.pick(&need(&routes)).map(|pick| (pick.route, pick.probe)), Ok((1, false)));
    world.judge(probe, &fault(FaultKind::ConnectTimeout));
    world.pass(19 * SECOND);
    assert_eq!(world.pick(&need(&routes)).map(|pick| pick.route), Ok(1));
    world.pass(SECOND);
    let probe = world.take(&need(&routes)).unwrap();
    assert!(probe.probe());
    world.pool.release(world.now, probe, false);
    let probe = world.take(&need(&routes)).unwrap();
    assert!(probe.probe(), "an end that says nothing frees the probe");
    world.succeed(probe);
    assert_eq!(world.pick(&need(&routes)).map(|pick| (pick.route, pick.probe)), Ok((0, false)));
}

#[test]
fn counted_retries_are_bounded_by_the_upstream_and_first_attempts_are_not() {
    let mut world = World::of(2);
    let retry = Need { retry: true, tried: &[AccountKey(0)], ..need(UM) };
    let taken: Vec<Taken> = std::iter::from_fn(|| world.take(&retry).ok()).take(1000).collect();
    assert_eq!(taken.len(), 30);
    assert_eq!(world.pick(&retry), Err(Unavailable::RetriesSpent));
    assert!(world.pick(&need(UM)).is_ok());
    world.pass(SECOND);
    assert!(world.pick(&retry).is_ok());
}

#[test]
fn an_account_serves_the_models_that_it_is_configured_for() {
    let only = AccountSpec { models: Globs::new(vec!["claude-*".into()]), ..account("u", 0) };
    let mut world = World::new(vec![only]);
    assert_eq!(world.pick(&need(UM)), Err(Unavailable::NoneEntitled));
    assert!(world.pick(&need(&[own("u", "claude-x")])).is_ok());
}

#[test]
fn time_that_is_told_in_the_wrong_order_does_not_run_back() {
    let mut world = World::of(1);
    let key = AccountKey(0);
    world.evict(key);
    let later = world.now.after(60 * SECOND);
    assert!(world.pool.pick(later, &need(UM)).is_ok());
    assert!(world.pool.pick(Moment(0), &need(&[own("u", "m")])).is_ok());
    assert!(world.pool.pick(Moment(0), &Need { only: Some(key), ..need(UM) }).is_ok());
}

#[test]
fn an_account_that_is_held_back_from_a_model_and_cools_or_is_errored_says_when_it_is_back_for_that_model() {
    let on_m = |world: &mut World, fault: &Fault| world.fail(AccountKey(0), fault);
    let mut world = World::of(1);
    let both = [world.take_of(AccountKey(0)), world.take_of(AccountKey(0))];
    for (taken, fault) in
        both.into_iter().zip([fault(FaultKind::ModelOverloaded), fault(FaultKind::RateLimited).wait(Some(90 * SECOND))])
    {
        world.judge(taken, &fault);
    }
    let retry_at = world.now.after(90 * SECOND);
    assert_eq!(world.pick(&need(UM)), Err(Unavailable::AllCooling { retry_at }), "the later of the two");
    let mut world = World::of(1);
    let refused: Vec<Taken> = (0..3).map(|_| world.take_of(AccountKey(0))).collect();
    on_m(&mut world, &fault(FaultKind::ModelOverloaded).wait(Some(7200 * SECOND)));
    for taken in refused {
        world.judge(taken, &fault(FaultKind::CredentialRejected));
    }
    let retry_at = world.now.after(60 * SECOND);
    assert_eq!(world.pick(&need(UM)), Err(Unavailable::AllErrored { retry_at }));
    world.pass(60 * SECOND);
    let on_n = [own("u", "n")];
    let trying = world.take(&need(&on_n)).unwrap();
    assert!(trying.trial());
    let retry_at = world.now.after(SECOND);
    assert_eq!(world.pick(&need(UM)), Err(Unavailable::AllErrored { retry_at }), "its try is under way");
    world.succeed(trying);
    assert!(matches!(world.pick(&need(UM)), Err(Unavailable::AllCooling { .. })));
}

#[test]
fn only_faults_of_the_network_and_the_upstream_count_against_an_endpoint() {
    for kind in
        [FaultKind::RequestInvalid, FaultKind::ModelOverloaded, FaultKind::ModelNotFound, FaultKind::Unclassified]
    {
        let mut world = World::new(vec![account("u", 0), account("v", 1)]);
        for _ in 0..9 {
            let taken = world.take_of(AccountKey(0));
            world.judge(taken, &fault(kind));
            world.pass(60 * SECOND);
        }
        assert_eq!(world.pool.upstreams(world.now)[0].faults_in_a_row, 0, "{kind}");
    }
}

#[test]
fn a_whole_reply_that_refuses_shows_that_the_endpoint_is_there_and_ends_its_row_and_its_ejection() {
    let refused = Fault::new(FaultKind::RateLimited, Phase::Answered, Evidence::default().with_status(429));
    let mut world = World::new(vec![account("u", 0), account("v", 1)]);
    for _ in 0..4 {
        world.fail(AccountKey(0), &fault(FaultKind::ConnectRefused));
    }
    world.fail(AccountKey(0), &refused);
    assert_eq!(world.pool.upstreams(world.now)[0].faults_in_a_row, 0);
    let mut world = ejected();
    world.pass(10 * SECOND);
    let routes = [own("u", "m"), own("v", "m")];
    let probe = world.take(&need(&routes)).unwrap();
    assert!(probe.probe());
    let invalid = Fault::new(FaultKind::RequestInvalid, Phase::Answered, Evidence::default().with_status(400));
    world.judge(probe, &invalid);
    assert_eq!(world.pick(&need(&routes)).map(|pick| (pick.route, pick.probe)), Ok((0, false)));
}
