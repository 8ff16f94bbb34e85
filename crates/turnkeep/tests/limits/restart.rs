//! Limits hold across a restart: what was spent, and what was used in the last minute, is read from the store.

use crate::scene::*;
use crate::support::dialects::assert_refused;
use crate::support::*;
use futures_util::future::join_all;

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_as_spent_after_a_restart_as_before() {
    join_all(ways().map(|pair| async move {
        let lab = lab([using(1_000, 500)]).await;
        for (lines, left) in
            [("budget = { usd = 5, per = \"month\" }", 1.0), ("budget = { tokens = 4000, per = \"month\" }", 1_000.0)]
        {
            let plan = plan(pair, &lab, lines, PRICE);
            let world = World::of(&plan).await;
            for _ in 0..2 {
                assert_eq!(turn(&world, pair).await.status, 200);
                at_rest(&world).await;
            }
            let world = World::in_folder(&plan, world.stopped().await).await;
            let used = at_rest(&world).await;
            assert_eq!((&used["spent"]["usd"], &used["spent"]["tokens"]), (&4.0.into(), &3_000.into()));
            assert_eq!(used["budget"]["left"].as_f64(), Some(left));
            assert_eq!(turn(&world, pair).await.status, 200);
            at_rest(&world).await;
            let reply = turn(&world, pair).await;
            assert_eq!(reply.status, pair.of(429, 402), "{}", reply.text());
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_minutes_turns_count_after_a_restart() {
    let pair = ways()[0];
    let lab = lab([]).await;
    let plan = plan(pair, &lab, "requests_per_minute = 3", "");
    let world = World::of(&plan).await;
    for _ in 0..3 {
        assert_eq!(turn(&world, pair).await.status, 200);
    }
    at_rest(&world).await;
    let world = World::in_folder(&plan, world.stopped().await).await;
    assert_refused(pair, &turn(&world, pair).await, 429);
    assert_eq!(lab.requests().len(), 3);
}
