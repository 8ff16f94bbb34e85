//! The limits per minute that the operator gives an account: no more reaches the upstream, and a turn goes elsewhere or
//! waits.

use crate::scene::*;
use crate::support::dialects::{CHAT, assert_refused};
use crate::support::world::Plan;
use crate::support::*;
use futures_util::future::join_all;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn requests_per_minute_send_turns_elsewhere_and_then_nowhere() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = lab([]).await;
        let up = Up::at(pair.upstream, &lab).accounts(&["a", "b"]).each("requests_per_minute = 4");
        let world = World::of(&Plan::over([up]).tuning("max_queue_wait = \"100ms\"")).await;
        let turns = (0..8).map(|_| async { world.client().await.turn(pair).await });
        join_all(turns).await.iter().for_each(served);
        let reply = world.client().await.turn(pair).await;
        assert!(assert_refused(pair, &reply, 429).contains("账号队列耗尽"));
        let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=15).contains(&wait), "a fourth of a minute, less what has passed: {wait}");
        assert_eq!(["secret-a", "secret-b"].map(|secret| lab.account(secret).requests), [4, 4]);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_waits_for_the_accounts_own_rate() {
    join_all(plain_ways().into_iter().map(|pair| async move {
        let lab = lab([]).await;
        let up = Up::at(pair.upstream, &lab).slots(100).each("requests_per_minute = 60");
        let world = World::of(&Plan::over([up])).await;
        let began = Instant::now();
        let turns = (0..61).map(|_| async { world.client().await.turn(pair).await });
        join_all(turns).await.iter().for_each(served);
        assert!(began.elapsed() >= Duration::from_millis(900), "the last had to wait for its second");
        assert_eq!(lab.requests().len(), 61);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_replay_draws_on_the_rate_too() {
    let lab = lab([times(2, refusing(500))]).await;
    let up = Up::at(Dialect::Chat, &lab).accounts(&["a", "b"]).each("requests_per_minute = 1");
    let tuning = "max_queue_wait = \"100ms\"\nbackoff = \"1ms\"";
    let world = World::of(&Plan::over([up]).tuning(tuning)).await;
    assert_refused(CHAT, &world.client().await.turn(CHAT).await, 502);
    assert_refused(CHAT, &world.client().await.turn(CHAT).await, 429);
    assert_eq!(lab.requests().len(), 2, "both accounts have had their one request of this minute");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_per_minute_count_what_turns_truly_cost() {
    join_all(plain_ways().into_iter().map(|pair| async move {
        let usage = UsageSpec { prompt: Some(600), completion: Some(400), ..UsageSpec::default() };
        let lab = lab([Rule { usage, ..Rule::default() }]).await;
        let up = Up::at(pair.upstream, &lab).accounts(&["a", "b"]).each("tokens_per_minute = 1000");
        let world = World::of(&Plan::over([up]).tuning("max_queue_wait = \"100ms\"")).await;
        for _ in 0..2 {
            served(&world.client().await.turn(pair).await);
            world.until_at_rest().await;
        }
        assert_eq!(["secret-a", "secret-b"].map(|secret| lab.account(secret).requests), [1, 1]);
        assert_refused(pair, &world.client().await.turn(pair).await, 429);
        assert_eq!(lab.requests().len(), 2, "a small estimate does not hide what the turns before it cost");
    }))
    .await;
}
