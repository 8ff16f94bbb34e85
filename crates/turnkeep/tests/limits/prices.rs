//! Money: what turns cost, and models of which nobody knows what they cost.

use crate::scene::*;
use crate::support::client::request_bytes;
use crate::support::dialects::assert_refused;
use crate::support::*;
use futures_util::future::join_all;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_turn_costs_is_spent_counted_and_written_down() {
    join_all(ways().map(|pair| async move {
        let lab = lab([using(1_000, 500)]).await;
        let world = World::of(&plan(pair, &lab, "budget = { usd = 10, per = \"day\" }", PRICE)).await;
        let reply = turn(&world, pair).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let used = at_rest(&world).await;
        assert_eq!((&used["spent"]["usd"], &used["spent"]["tokens"]), (&2.0.into(), &1_500.into()));
        let mut client = world.client().await;
        client.write(&request_bytes("GET", "/metrics", &[], b"")).await;
        let metrics = client.reply().await;
        assert!(metrics.text().contains("\nturnkeep_cost_usd_total 2.0\n"), "{}", metrics.text());
        let entries = world.into_ledger().await;
        assert_eq!(entries[0].closed.as_ref().unwrap().cost, Some(2_000_000_000));
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_in_dollars_is_refused_a_model_without_a_price_by_name() {
    join_all(ways().map(|pair| async move {
        let lab = lab([]).await;
        let world = World::of(&plan(pair, &lab, "budget = { usd = 10, per = \"day\" }", "")).await;
        let reply = turn(&world, pair).await;
        let told = assert_refused(pair, &reply, 403);
        assert!(told.contains("\"m\" has no price") && told.contains("[[models]]"), "{told}");
        assert_eq!(lab.requests().len(), 0);
        // A key without such a budget may use it.
        assert_eq!(world.client().await.turn(pair).await.status, 200);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_that_is_set_later_is_taken_up_while_the_gateway_runs() {
    let pair = ways()[0];
    let lab = lab([]).await;
    let lines = "budget = { usd = 10, per = \"day\" }";
    let world = World::of(&plan(pair, &lab, lines, "")).await;
    assert_refused(pair, &turn(&world, pair).await, 403);
    world.take_up(&plan(pair, &lab, lines, PRICE)).await;
    assert_eq!(turn(&world, pair).await.status, 200);
    world.take_up(&plan(pair, &lab, "budget = { usd = 0.000000001, per = \"day\" }", PRICE)).await;
    at_rest(&world).await;
    assert_refused(pair, &turn(&world, pair).await, 429);
}
