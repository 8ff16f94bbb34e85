//! A conversation's owner: asked first, waited for or not, and what becomes of the conversation when the owner is no longer
//! what it was.

use crate::fake::{Act, Beat, Proof, says};
use crate::table::{patient, until};
use crate::world::{Ask, With, World, begun, said, second, with};
use std::time::Duration;
use turnkeep_base::{AccountId, FaultKind};
use turnkeep_engine::route::{Reuse, Rules, Tier};
use turnkeep_policy::Tuning;
use turnkeep_policy::conversations::Handling;

fn id(name: &str) -> AccountId {
    AccountId { upstream: "up".into(), account: name.into() }
}

fn other(name: &str) -> &'static str {
    if name == "a" { "b" } else { "a" }
}

/// A turn of another conversation that keeps its account busy until the test is over.
async fn keep_busy(world: &World, account: &str) {
    let sends = world.fake.sends();
    world.fake.act([Act::Answer(vec![Beat::Start, Beat::Hang])]);
    world.engine.admission.switch(&id(other(account)), false);
    let busy = world.start(&Ask { caller: "busy", ..said(true, &["keep busy"]) });
    until(|| world.fake.sends() > sends).await;
    world.engine.admission.switch(&id(other(account)), true);
    assert_eq!(world.fake.last().account, account);
    std::mem::forget(busy);
}

fn two(reuse: Reuse) -> World {
    let tuning = Tuning { max_queue_wait: Duration::from_secs(30), ..Tuning::default() };
    with(With { reuse, accounts: &["a", "b"], max_in_flight: 1, tuning, ..With::default() })
}

#[tokio::test]
async fn the_owner_of_a_lease_is_asked_first_whatever_its_load() {
    for reuse in [Reuse::Prefer, Reuse::Strict] {
        let world = with(With { reuse, accounts: &["a", "b", "c"], max_in_flight: 9, ..With::default() });
        begun(&world, true).await;
        let owner = world.fake.last().account;
        for turn in 0..6 {
            world.delivered(&Ask { caller: "another", ..said(true, &[["x", "y", "z"][turn % 3]]) }).await;
        }
        world.delivered(&second(true)).await;
        let sent = world.fake.last();
        assert_eq!((sent.account, sent.lines), (owner, vec!["user: more".to_owned()]));
        world.assert_right();
    }
}

#[tokio::test(start_paused = true)]
async fn a_preferred_owner_of_a_lease_is_not_waited_for() {
    let world = two(Reuse::Prefer);
    begun(&world, true).await;
    let owner = world.fake.last().account;
    keep_busy(&world, &owner).await;
    world.fake.act([says("two")]);
    let told = world.start(&second(true)).told().await.arrives();
    assert_eq!(told.status, 200);
    let sent = world.fake.last();
    assert_eq!((sent.account.as_str(), sent.resume), (other(&owner), None));
    until(|| world.counts()[2] == 1).await;
    assert_eq!((world.size(), world.counts()), (2, [1, 0, 1, 0, 0]), "restored, and the new one beside it");
}

#[tokio::test(start_paused = true)]
async fn a_strict_owner_of_a_lease_is_waited_for_and_then_429_and_restored() {
    let world = two(Reuse::Strict);
    begun(&world, true).await;
    let owner = world.fake.last().account;
    keep_busy(&world, &owner).await;
    let sends = world.fake.sends();
    let began = tokio::time::Instant::now();
    let told = patient(world.start(&second(false))).await;
    assert_eq!((told, world.fake.sends()), (429, sends));
    assert_eq!(began.elapsed().as_secs(), 30, "as long as the queue");
    until(|| world.counts()[2] == 1).await;
    assert_eq!((world.size(), world.counts()), (1, [1, 0, 1, 0, 0]));
}

#[tokio::test(start_paused = true)]
async fn a_strict_owner_of_a_lease_that_gets_free_in_time_serves() {
    let tuning = Tuning { max_queue_wait: Duration::from_secs(30), ..Tuning::default() };
    let with_rate =
        With { reuse: Reuse::Strict, accounts: &["a", "b"], requests_per_minute: Some(6), tuning, ..With::default() };
    let world = with(with_rate);
    begun(&world, true).await;
    let owner = world.fake.last().account;
    world.engine.admission.switch(&id(other(&owner)), false);
    // Its own rate is used up by others.
    let mut served = 0;
    while tokio::time::timeout(Duration::from_millis(1), async {
        world.delivered(&Ask { caller: "another", ..said(true, &["x"]) }).await
    })
    .await
    .is_ok()
    {
        served += 1;
        assert!(served < 20, "the rate bounds it");
    }
    world.engine.admission.switch(&id(other(&owner)), true);
    let told = world.start(&second(true)).told().await.arrives();
    assert_eq!(told.status, 200, "{}", told.body);
    let sent = world.fake.kept.lock().sends.iter().rev().find(|sent| sent.lines == ["user: more"]).cloned();
    assert_eq!(sent.expect("it goes on").account, owner);
}

#[tokio::test(start_paused = true)]
async fn a_strict_owner_of_a_lease_is_not_waited_for_when_it_is_out() {
    for out in ["disabled", "removed", "suspended"] {
        let world = two(Reuse::Strict);
        begun(&world, true).await;
        let owner = world.fake.last().account;
        take_out(&world, &owner, out).await;
        let hits = world.counts()[0];
        let began = tokio::time::Instant::now();
        let told = world.delivered(&second(true)).await;
        assert_eq!((told.status.as_u16(), began.elapsed().as_secs()), (200, 0), "{out}: {}", told.body);
        let sent = world.fake.last();
        assert_eq!((sent.account.as_str(), sent.resume), (other(&owner), None), "{out}");
        assert_eq!(sent.lines.len(), 3, "{out}: the whole history");
        assert_eq!(world.counts()[0] - hits, u64::from(out == "disabled"), "{out}: a disabled one may come back");
        world.assert_right();
    }
}

/// Takes an account out.
async fn take_out(world: &World, account: &str, how: &str) {
    match how {
        "disabled" => drop(world.engine.admission.switch(&id(account), false)),
        "removed" => world.configure(&[other(account)]),
        "moved" => world.move_to(1),
        _ => {
            // Twice within half an hour, in turns of another conversation that nobody else could serve.
            world.engine.admission.switch(&id(other(account)), false);
            for _ in 0..2 {
                world.fake.act([Act::Refuse(FaultKind::AccountSuspended, Proof::ByReply)]);
                world.delivered(&Ask { caller: "another", ..said(true, &["x"]) }).await;
            }
            world.engine.admission.switch(&id(other(account)), true);
        }
    }
}

#[tokio::test]
async fn a_lease_of_an_account_that_was_replaced_moved_or_suspended_is_of_no_use_any_more() {
    for handling in [Handling::Mutable, Handling::Immutable] {
        for how in ["removed", "moved", "suspended"] {
            let world = with(With { handling, accounts: &["a", "b"], ..With::default() });
            begun(&world, true).await;
            let owner = world.fake.last().account;
            take_out(&world, &owner, how).await;
            if how == "removed" {
                world.configure(&["a", "b"]);
            }
            assert_eq!(world.size(), 0, "{how}: dropped at once");
            let lost = usize::from(handling == Handling::Mutable);
            assert_eq!(world.fake.kept.lock().forgotten.len(), lost, "{how}");
            world.delivered(&second(true)).await;
            assert_eq!(world.fake.last().resume, None, "{how}");
            world.assert_right();
        }
    }
}

#[tokio::test]
async fn a_lease_whose_account_is_replaced_in_the_middle_of_its_turn_is_refused_when_it_comes_back() {
    for handling in [Handling::Mutable, Handling::Immutable] {
        for (refused, moves) in [(true, true), (true, false), (false, true), (false, false)] {
            let world = with(With { handling, rules: Rules { attempts: 1, ..Rules::default() }, ..With::default() });
            begun(&world, true).await;
            let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
            let after = if refused { Beat::Fault(FaultKind::RequestInvalid) } else { Beat::End };
            world.fake.act([Act::Answer(vec![Beat::Start, Beat::Gate(gate.clone()), after])]);
            let asking = world.start(&second(true));
            until(|| world.fake.sends() == 2).await;
            if moves {
                world.move_to(1);
            } else {
                world.configure(&[]);
                world.configure(&["a"]);
            }
            gate.add_permits(1);
            drop(asking.told().await.arrives());
            world.idle().await;
            assert_eq!((world.size(), world.counts()[4]), (0, 1), "{handling:?} {refused} {moves}");
            world.delivered(&Ask { bypass: true, ..second(true) }).await;
            assert_eq!(world.fake.last().resume, None);
            world.assert_right();
        }
    }
}

#[tokio::test]
async fn a_lease_stands_when_its_accounts_are_taken_up_again_at_the_same_place() {
    let world = with(With { accounts: &["a", "b"], ..With::default() });
    begun(&world, true).await;
    world.move_to(0);
    world.delivered(&second(true)).await;
    assert!(world.fake.last().resume.is_some());
    world.assert_right();
}

#[tokio::test]
async fn a_conversation_that_is_begun_while_its_account_is_replaced_leaves_no_lease() {
    let world = with(With::default());
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    world.fake.act([Act::Answer(vec![Beat::Start, Beat::Gate(gate.clone()), Beat::Say("one"), Beat::End])]);
    let asking = world.start(&said(true, &["hi"]));
    until(|| world.fake.sends() == 1).await;
    world.configure(&[]);
    world.configure(&["a"]);
    gate.add_permits(1);
    assert_eq!(asking.told().await.arrives().status, 200);
    world.idle().await;
    assert_eq!((world.size(), world.fake.kept.lock().forgotten.clone()), (0, vec!["h1".to_owned()]));
    world.assert_right();
}

#[tokio::test]
async fn a_refreshed_secret_of_the_owner_leaves_its_lease_as_it_is() {
    let world = with(With::default());
    begun(&world, true).await;
    let refreshed = turnkeep_base::Secret::new("another-secret".to_owned());
    assert!(world.engine.admission.set_secret(&id("a"), Some(refreshed)));
    world.delivered(&second(true)).await;
    assert_eq!(world.fake.last().lines, ["user: more"]);
    world.assert_right();
}

#[tokio::test]
async fn a_lease_whose_process_is_gone_is_of_no_use_any_more() {
    let world = with(With { instance: Some(1), ..With::default() });
    begun(&world, true).await;
    *world.fake.instance.lock() = Some(2);
    world.delivered(&second(true)).await;
    assert_eq!((world.fake.last().resume, world.counts()[..2].to_vec()), (None, vec![0, 1]));
    world.delivered(&said(true, &["hi", "one", "more", "one", "go on"])).await;
    assert_eq!(world.fake.last().lines, ["user: go on"], "the new process' own goes on");
    world.assert_right();
}

#[tokio::test]
async fn a_turn_whose_owner_refuses_fails_over_with_the_whole_history_and_its_lease_is_restored() {
    for handling in [Handling::Mutable, Handling::Immutable] {
        for stream in [true, false] {
            let world = with(With { handling, accounts: &["a", "b"], ..With::default() });
            begun(&world, stream).await;
            let owner = world.fake.last().account;
            world.fake.act([Act::Refuse(FaultKind::RateLimited, Proof::ByReply), says("two")]);
            let told = world.delivered(&second(stream)).await;
            let sent = world.fake.last();
            assert_eq!((told.status.as_u16(), sent.account.as_str()), (200, other(&owner)));
            assert_eq!((sent.resume, sent.lines.len()), (None, 3));
            assert_eq!((world.size(), world.counts()), (2, [1, 0, 1, 0, 0]));
            world.delivered(&said(stream, &["hi", "one", "more", "two", "go on"])).await;
            assert_eq!((world.fake.last().account.as_str(), world.fake.last().lines.len()), (other(&owner), 1));
            world.assert_right();
        }
    }
}

#[tokio::test]
async fn a_replay_on_the_owner_goes_on_with_its_lease() {
    let world = with(With::default());
    begun(&world, true).await;
    let overloaded = Act::Refuse(FaultKind::ModelOverloaded, Proof::ByReply);
    world.fake.act([overloaded, says("two")]);
    let told = world.delivered(&second(true)).await;
    assert_eq!(told.status, 200, "{}", told.body);
    assert_eq!(world.fake.last().lines, ["user: more"]);
    assert_eq!((world.size(), world.counts()), (1, [1, 0, 0, 1, 0]));
    world.assert_right();
}

#[tokio::test]
async fn an_owner_on_a_later_route_of_the_model_is_asked_before_an_earlier_one_and_a_fallbacks_is_not() {
    for (tier, goes_on) in [(Tier::Own, true), (Tier::Fallback, false)] {
        let world = with(With { second: Some(tier), ..With::default() });
        world.engine.admission.switch(&id("a"), false);
        world.delivered(&said(true, &["hi"])).await;
        assert_eq!(world.second.sends(), 1, "the second route's account begins the conversation");
        world.engine.admission.switch(&id("a"), true);
        world.delivered(&second(true)).await;
        assert_eq!(world.second.sends() == 2, goes_on, "{tier:?}");
        if goes_on {
            assert_eq!(world.second.last().lines, ["user: more"]);
        } else {
            assert_eq!(world.fake.last().lines.len(), 3, "the model's own route, with the whole history");
            assert_eq!(world.counts()[2], 1, "and the conversation is restored");
        }
        world.assert_right();
    }
}

#[tokio::test]
async fn an_entry_that_cannot_be_written_leaves_the_lease_and_where_turns_go_on_without_it_begins_anew() {
    for serve_unrecorded in [false, true] {
        let rules = Rules { serve_unrecorded, ..Rules::default() };
        let world = with(With { rules, ..With::default() });
        begun(&world, true).await;
        *world.written.refuse_entries.lock() = true;
        world.fake.act([says("two")]);
        let told = world.delivered(&second(true)).await;
        assert_eq!(told.status.as_u16(), if serve_unrecorded { 200 } else { 503 });
        assert_eq!(world.fake.sends(), if serve_unrecorded { 2 } else { 1 });
        if serve_unrecorded {
            assert_eq!((world.fake.last().resume, world.fake.last().lines.len()), (None, 3));
        }
        assert_eq!(world.counts(), [1, 0, 1, 0, 0]);
        *world.written.refuse_entries.lock() = false;
        world.delivered(&Ask { bypass: true, ..second(true) }).await;
        assert_eq!(world.fake.last().lines, ["user: more"]);
        world.assert_right();
    }
}
