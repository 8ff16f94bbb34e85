//! Budgets under many turns at once: never overdrawn by more than one turn's estimate, and nothing stays set aside.

use crate::scene::*;
use crate::support::dialects::{assert_refused, body_of, limit_output};
use crate::support::*;
use futures_util::future::join_all;

const TURNS: usize = 200;

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_turns_at_once_overdraw_a_token_budget_by_no_more_than_one_estimate() {
    join_all(ways().map(|pair| async move {
        // Each uses exactly what it is estimated at: 1000 tokens of output, and the size of its body.
        let mut body = request(pair);
        limit_output(pair, &mut body, 1_000);
        let input = body_of(pair, body.clone()).len() as u64 / 4;
        let estimate = input + 1_000;
        let lab = lab([using(input, 1_000)]).await;
        let budget = 50 * estimate - 1;
        let lines = format!("budget = {{ tokens = {budget}, per = \"month\" }}");
        let world = World::of(&plan(pair, &lab, &lines, "")).await;
        let turns = (0..TURNS).map(|_| turn_of(&world, pair, &body));
        let replies = join_all(turns).await;
        let served = replies.iter().filter(|reply| reply.status == 200).count();
        assert_eq!(served, 50, "as many as the budget is for, the last beyond it by less than itself");
        let refused = pair.of(429, 402);
        for reply in replies.iter().filter(|reply| reply.status != 200) {
            assert_eq!(reply.status, refused, "{}", reply.text());
            assert!(reply.header("x-turnkeep-budget-remaining").is_some(), "{reply:?}");
        }
        let used = at_rest(&world).await;
        assert_eq!(used["reserved"]["tokens"], 0);
        assert_eq!(used["spent"]["tokens"], 50 * estimate);
        assert_eq!(lab.requests().len(), 50, "a refused turn reaches nobody");
        let reply = turn_of(&world, pair, &body).await;
        assert_eq!((reply.status, number(&reply, "x-turnkeep-budget-remaining")), (refused, 0.0));
        assert!(reply.text().contains("is spent"), "{}", reply.text());
        assert!(reply.header("x-turnkeep-budget-reset").unwrap().ends_with("-01T00:00:00Z"), "{reply:?}");
        assert_eq!(world.counters().await["caller_budget_exhausted"], (TURNS - 50 + 1) as u64);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_aside_is_not_left_and_the_refusal_says_so() {
    join_all(ways().map(|pair| async move {
        let lab = lab([held("door")]).await;
        let lines = "budget = { usd = 0.5, per = \"week\" }";
        let world = World::of(&plan(pair, &lab, lines, PRICE)).await;
        let mut body = request(pair);
        limit_output(pair, &mut body, 1_000);
        let mut running = send(&world, pair, &[], &body).await;
        soon(lab.wait_at_gate("door", 1)).await;
        let reply = turn_of(&world, pair, &body).await;
        assert_eq!(reply.status, pair.of(429, 402), "{}", reply.text());
        assert!(reply.text().contains("set aside for turns that run"), "{}", reply.text());
        assert_eq!(number(&reply, "x-turnkeep-budget-limit"), 0.5);
        assert_eq!((number(&reply, "x-turnkeep-budget-remaining"), number(&reply, "retry-after")), (0.0, 1.0));
        lab.release("door");
        assert_eq!(running.reply().await.status, 200);
        let used = at_rest(&world).await;
        assert_eq!(used["reserved"]["usd"], 0.0);
        let reply = turn_of(&world, pair, &body).await;
        assert_eq!(reply.status, 200, "it used little, and there is budget again: {}", reply.text());
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_turn_of_an_upstream_costs_nothing_and_gives_everything_back() {
    let pair = ways()[0];
    let error = ErrorSpec { status: Some(400), ..ErrorSpec::default() };
    let lab = lab([Rule { error: Some(error), ..Rule::default() }]).await;
    let world = World::of(&plan(pair, &lab, "budget = { tokens = 5000, per = \"day\" }", "")).await;
    for _ in 0..10 {
        assert_refused(pair, &turn(&world, pair).await, 400);
    }
    let used = at_rest(&world).await;
    assert_eq!((&used["reserved"]["tokens"], &used["spent"]["tokens"]), (&0.into(), &0.into()));
}
