//! An account whose key was refused comes back by itself: from its time on one turn at a time tries it, and no client sees
//! a try that fails.

use crate::scene::*;
use crate::support::dialects::{CHAT, assert_refused, assert_said};
use crate::support::world::{Plan, account};
use crate::support::*;
use futures_util::future::join_all;
use turnkeep_lab::{AccountState, Lab};

const SHORT: &str = "budget = 1\nepisode = \"1s\"\ntry_again = \"100ms\"\nbackoff = \"1ms\"";

async fn two(pair: Pair, lab: &Lab, tuning: &str) -> World {
    World::of(&Plan::over([Up::at(pair.upstream, lab).accounts(&["a", "b"])]).tuning(tuning)).await
}

/// Asks until the account `a` has been asked so often; every turn is served.
async fn until_asked(world: &World, pair: Pair, lab: &Lab, count: usize) {
    keep_asking(world, pair, served, async || lab.account("secret-a").requests >= count).await;
    world.until_at_rest().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_try_opens_the_next_longer_episode_and_a_success_ends_it_without_any_client_seeing_it() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = lab([]).await;
        lab.set_account("secret-a", AccountState::Revoked);
        let world = two(pair, &lab, SHORT).await;
        until_asked(&world, pair, &lab, 1).await;
        let counters = world.counters().await;
        let first = account(&counters, "a");
        assert_eq!((&first["status"], &first["episode"]), (&"errored".into(), &1.into()), "{first}");

        until_asked(&world, pair, &lab, 2).await;
        let counters = world.counters().await;
        let second = account(&counters, "a");
        assert_eq!((&second["status"], &second["episode"]), (&"errored".into(), &2.into()), "{second}");
        assert!(seconds_until(&second["retry_at"]) <= 2, "half as long again as a second: {second}");

        lab.set_account("secret-a", AccountState::Valid);
        keep_asking(&world, pair, served, async || status(&world, "a").await == "active").await;
        let counters = world.until_at_rest().await;
        assert_eq!(account(&counters, "a")["episode"], 0);
        assert_eq!(lab.account("secret-a").requests, 3, "one refusal, one try that failed, one that did not");
        assert_eq!((&counters["failover_exhausted"], &counters["pool_exhausted"]), (&0.into(), &0.into()));
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_turn_at_a_time_tries_an_errored_account_and_the_others_go_elsewhere() {
    join_all(ways().into_iter().map(|pair| async move {
        let rules = [of("a", times(1, refusing(401))), of("a", held("try", Rule::default()))];
        let lab = lab(rules).await;
        let world = two(pair, &lab, SHORT).await;
        until_asked(&world, pair, &lab, 1).await;
        let mut trying = loop {
            let mut client = world.client().await;
            client.ask(pair).await;
            tokio::select! {
                () = lab.wait_at_gate("try", 1) => break client,
                reply = client.reply() => served(&reply),
            }
        };
        let others = (0..12).map(|_| async { world.client().await.turn(pair).await });
        join_all(others).await.iter().for_each(served);
        assert_eq!(lab.account("secret-a").requests, 2, "the refusal and the one try");
        assert_eq!(status(&world, "a").await, "errored", "nothing is known yet");
        lab.release("try");
        served(&trying.reply().await);
        assert_eq!(account(&world.until_at_rest().await, "a")["status"], "active");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_try_that_ends_otherwise_tells_nothing_and_is_free_again_after_a_while() {
    join_all(plain_ways().into_iter().map(|pair| async move {
        let rules = [of("a", times(1, refusing(401))), of("a", times(2, refusing(500)))];
        let lab = lab(rules).await;
        let world = two(pair, &lab, SHORT).await;
        for asked in 1..=3 {
            until_asked(&world, pair, &lab, asked).await;
            let counters = world.counters().await;
            let errored = account(&counters, "a");
            assert_eq!((&errored["status"], &errored["episode"]), (&"errored".into(), &1.into()), "{asked}: {errored}");
        }
        keep_asking(&world, pair, served, async || status(&world, "a").await == "active").await;
        assert_eq!(lab.account("secret-a").requests, 4);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_try_whose_client_leaves_frees_it_and_revives_nothing() {
    let rules = [of("a", times(1, refusing(401))), of("a", times(1, held("try", Rule::default())))];
    let lab = lab(rules).await;
    let world = two(CHAT, &lab, SHORT).await;
    until_asked(&world, CHAT, &lab, 1).await;
    loop {
        let mut client = world.client().await;
        client.ask(CHAT).await;
        tokio::select! {
            () = lab.wait_at_gate("try", 1) => {
                client.leave(Leave::Reset).await;
                break;
            }
            reply = client.reply() => served(&reply),
        }
    }
    soon(lab.wait_aborted(1)).await;
    let counters = world.until_at_rest().await;
    assert_eq!((account(&counters, "a")["status"].as_str(), lab.account("secret-a").requests), (Some("errored"), 2));
    keep_asking(&world, CHAT, served, async || status(&world, "a").await == "active").await;
    assert_eq!(lab.account("secret-a").requests, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_due_try_is_made_by_a_conversation_that_another_account_keeps() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = lab([of("a", times(1, refusing(401)))]).await;
        let world = two(pair, &lab, SHORT).await;
        until_asked(&world, pair, &lab, 1).await;
        let kept = usize::MAX;
        served(&world.client().await.turn_of(pair, kept).await);
        let turns_of_it = async || {
            served(&world.client().await.turn_of(pair, kept).await);
            status(&world, "a").await == "active"
        };
        let mut pace = tokio::time::interval(std::time::Duration::from_millis(10));
        soon(async {
            while !turns_of_it().await {
                pace.tick().await;
            }
        })
        .await;
        assert_eq!(lab.account("secret-a").requests, 2, "the refusal and the try");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_account_of_a_model_is_tried_soon_although_its_episode_is_long() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = lab([]).await;
        lab.set_account("secret-a", AccountState::Revoked);
        let tuning = "budget = 1\nepisode = \"1h\"\nlast_account_retry = \"3s\"\nmax_cooling_wait = \"0ms\"";
        let world = World::of(&Plan::over([Up::at(pair.upstream, &lab)]).tuning(tuning)).await;
        assert_refused(pair, &world.client().await.turn(pair).await, 502);
        let out = world.client().await.turn(pair).await;
        assert!(assert_refused(pair, &out, 502).contains("账号队列耗尽"));
        let wait: u64 = out.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=3).contains(&wait), "{wait}");
        assert_eq!(lab.account("secret-a").requests, 1, "its time has not come");
        lab.set_account("secret-a", AccountState::Valid);
        let waits = |reply: &Reply| assert!([200, 502].contains(&reply.status), "{}", reply.text());
        keep_asking(&world, pair, waits, async || status(&world, "a").await == "active").await;
        assert_eq!(lab.account("secret-a").requests, 2);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_waits_for_the_last_account_when_its_time_is_near() {
    join_all(plain_ways().into_iter().map(|pair| async move {
        let lab = lab([times(1, refusing(401)), Rule { text: Some("back".into()), ..Rule::default() }]).await;
        let tuning = "budget = 1\nlast_account_retry = \"1s\"\nmax_cooling_wait = \"2s\"";
        let world = World::of(&Plan::over([Up::at(pair.upstream, &lab)]).tuning(tuning)).await;
        assert_refused(pair, &world.client().await.turn(pair).await, 502);
        assert_eq!(status(&world, "a").await, "errored");
        assert_said(pair, &world.client().await.turn(pair).await, "back");
        assert_eq!(status(&world, "a").await, "active");
    }))
    .await;
}
