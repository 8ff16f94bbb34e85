//! An upstream that is down: how often it is asked again, when it is set aside, and how it comes back.

use crate::scene::*;
use crate::support::dialects::{CHAT, assert_refused};
use crate::support::world::Plan;
use crate::support::*;
use futures_util::future::join_all;
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_is_down_gets_its_share_of_retries_and_no_more() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = lab([refusing(500)]).await;
        // Ten may be saved up, whatever the share is.
        let tuning = "retry_share = 0.1\nretries_per_second = 0.0\nbackoff = \"1ms\"";
        let world =
            World::of(&Plan::over([Up::at(pair.upstream, &lab).accounts(&["a", "b", "c"])]).tuning(tuning)).await;
        const TURNS: usize = 60;
        for _ in 0..TURNS {
            assert_refused(pair, &world.client().await.turn(pair).await, 502);
        }
        let asked = lab.requests().len();
        assert!((TURNS + 10..=TURNS + 10 + TURNS / 10 + 1).contains(&asked), "{pair:?} {asked} for {TURNS} turns");
        for name in ["a", "b", "c"] {
            crate::support::world::assert_unblamed(&world.until_at_rest().await, name);
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_accounts_draw_on_no_retry_budget() {
    let lab = lab([refusing(429)]).await;
    let tuning = "retry_share = 0.0\nretries_per_second = 0.0\nrate_cooldown = \"1s\"\negress_accounts = 1000\n\
                  max_cooling_wait = \"10s\"";
    let plan = Plan::over([Up::at(Dialect::Chat, &lab).accounts(&["a", "b"])]).tuning(tuning);
    let world = World::of(&plan).await;
    for turn in 1..=3 {
        assert_refused(CHAT, &world.client().await.turn(CHAT).await, 429);
        assert_eq!(lab.requests().len(), 2 * turn, "each turn asks both");
    }
}

fn first_upstream(counters: &Value) -> &Value {
    &counters["upstreams"][0]
}

async fn down_and_spare(pair: Pair, rules: Vec<Rule>) -> (World, turnkeep_lab::Lab, turnkeep_lab::Lab) {
    let (down, spare) = (lab(rules).await, lab([]).await);
    let tuning = "ejection = \"1s\"\nbackoff = \"1ms\"";
    let ups = [Up::at(pair.upstream, &down), Up::at(pair.upstream, &spare)];
    (World::of(&Plan::over(ups).tuning(tuning)).await, down, spare)
}

#[tokio::test(flavor = "multi_thread")]
async fn five_faults_set_an_endpoint_aside_and_one_turn_at_a_time_probes_it() {
    join_all(ways().into_iter().map(|pair| async move {
        let broken = Rule { fault: Some(Fault::CloseBeforeReply), ..Rule::default() };
        let rules = vec![times(5, broken), times(1, held("probe", Rule::default()))];
        let (world, down, spare) = down_and_spare(pair, rules).await;
        while down.requests().len() < 5 {
            served(&world.client().await.turn(pair).await);
        }
        let counters =
            world.until("it is set aside", |counters| !first_upstream(counters)["ejected_until"].is_null()).await;
        assert_eq!(first_upstream(&counters)["ejections"], 1, "{counters:#}");
        let mut probing = loop {
            let mut client = world.client().await;
            client.ask(pair).await;
            tokio::select! {
                () = down.wait_at_gate("probe", 1) => break client,
                reply = client.reply() => {
                    served(&reply);
                    assert_eq!(reply.header("x-turnkeep-attempts"), Some("1"), "nobody asks what is set aside");
                }
            }
        };
        let others = (0..8).map(|_| async { world.client().await.turn(pair).await });
        join_all(others).await.iter().for_each(served);
        assert_eq!(down.requests().len(), 6, "five faults and one probe");
        down.release("probe");
        served(&probing.reply().await);
        world.until("it is back", |counters| first_upstream(counters)["ejected_until"].is_null()).await;
        let before = spare.requests().len();
        served(&world.client().await.turn(pair).await);
        assert_eq!((down.requests().len(), spare.requests().len()), (7, before), "the first route is first again");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_that_fails_sets_it_aside_for_longer() {
    let (world, down, _spare) = down_and_spare(CHAT, vec![refusing(502)]).await;
    keep_asking(&world, CHAT, served, async || first_upstream(&world.counters().await)["ejections"] == 2).await;
    let counters = world.until_at_rest().await;
    assert_eq!(down.requests().len(), 6);
    assert!(seconds_until(&first_upstream(&counters)["ejected_until"]) <= 2, "{counters:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_without_another_route_is_asked_however_often_it_fails() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = lab([times(12, refusing(502))]).await;
        let tuning = "ejection = \"1h\"\nlongest_ejection = \"1h\"\nattempts = 1";
        let world = World::of(&Plan::over([Up::at(pair.upstream, &lab)]).tuning(tuning)).await;
        for asked in 1..=12 {
            assert_refused(pair, &world.client().await.turn(pair).await, 503);
            assert_eq!(lab.requests().len(), asked);
        }
        served(&world.client().await.turn(pair).await);
        assert!(first_upstream(&world.until_at_rest().await)["ejected_until"].is_null());
    }))
    .await;
}
