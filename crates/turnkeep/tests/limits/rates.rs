//! Requests and tokens per minute, and turns at once: refused before any account, in the caller's dialect, with what is
//! left in the headers that its SDK reads.

use crate::scene::*;
use crate::support::dialects::{assert_refused, limit_output};
use crate::support::*;
use futures_util::future::join_all;

#[tokio::test(flavor = "multi_thread")]
async fn requests_per_minute_are_refused_beyond_their_number_and_every_reply_tells_what_is_left() {
    join_all(ways().map(|pair| async move {
        let lab = lab([]).await;
        let world = World::of(&plan(pair, &lab, "requests_per_minute = 2", "")).await;
        let limit = pair.of("x-ratelimit-limit-requests", "anthropic-ratelimit-requests-limit");
        let left = pair.of("x-ratelimit-remaining-requests", "anthropic-ratelimit-requests-remaining");
        let reset = pair.of("x-ratelimit-reset-requests", "anthropic-ratelimit-requests-reset");
        for expected in [1.0, 0.0] {
            let reply = turn(&world, pair).await;
            assert_eq!(reply.status, 200, "{}", reply.text());
            assert_eq!((number(&reply, limit), number(&reply, left)), (2.0, expected));
            assert!(reply.header(reset).is_some(), "{reply:?}");
        }
        let reply = turn(&world, pair).await;
        let told = assert_refused(pair, &reply, 429);
        assert!(told.contains("2 turns a minute"), "{told}");
        assert_eq!(number(&reply, left), 0.0);
        assert!((1.0..=30.0).contains(&number(&reply, "retry-after")), "{reply:?}");
        assert_eq!(lab.requests().len(), 2);
        // Another key is not limited, and is told nothing.
        let other = world.client().await.turn(pair).await;
        assert!(other.status == 200 && other.header(limit).is_none(), "{other:?}");
        assert_eq!(world.counters().await["caller_rate_limited"], 1);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_at_once_are_bounded_and_a_turn_that_ends_makes_room() {
    join_all(ways().map(|pair| async move {
        let lab = lab([held("door")]).await;
        let world = World::of(&plan(pair, &lab, "max_in_flight = 2", "")).await;
        let mut first = send(&world, pair, &[], &request(pair)).await;
        let mut second = send(&world, pair, &[], &request(pair)).await;
        soon(lab.wait_at_gate("door", 2)).await;
        let told = assert_refused(pair, &turn(&world, pair).await, 429);
        assert!(told.contains("2 turns at once"), "{told}");
        assert_eq!(caller(&world.counters().await, "limited")["in_flight"], 2);
        lab.release("door");
        for client in [&mut first, &mut second] {
            assert_eq!(client.reply().await.status, 200);
        }
        assert_eq!(at_rest(&world).await["reserved"]["tokens"], 0);
        assert_eq!(turn(&world, pair).await.status, 200);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_gives_its_place_back() {
    let pair = ways()[0];
    let lab = lab([held("door")]).await;
    let world =
        World::of(&plan(pair, &lab, "max_in_flight = 1\nbudget = { tokens = 100000, per = \"day\" }", "")).await;
    let client = send(&world, pair, &[], &request(pair)).await;
    soon(lab.wait_at_gate("door", 1)).await;
    client.leave(Leave::Reset).await;
    assert_eq!(at_rest(&world).await["reserved"]["tokens"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_per_minute_count_what_turns_truly_used() {
    join_all(ways().map(|pair| async move {
        let lab = lab([using(3_000, 2_000)]).await;
        let world = World::of(&plan(pair, &lab, "tokens_per_minute = 6000", "")).await;
        let reply = turn(&world, pair).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        at_rest(&world).await;
        let mut large = request(pair);
        limit_output(pair, &mut large, 4_000);
        let reply = turn_of(&world, pair, &large).await;
        let told = assert_refused(pair, &reply, 429);
        assert!(told.contains("6000 tokens a minute"), "{told}");
        let left = number(&reply, pair.of("x-ratelimit-remaining-tokens", "anthropic-ratelimit-tokens-remaining"));
        assert!((1_000.0..3_000.0).contains(&left), "{left}");
    }))
    .await;
}
