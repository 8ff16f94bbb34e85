//! Which account a turn goes to when many turns, or many failures, are under way.

use crate::kit::*;
use crate::support::dialects::assert_said;
use crate::support::world::Plan;
use crate::support::{Rule, Up, World, lab, soon};
use std::collections::BTreeSet;

#[tokio::test(flavor = "multi_thread")]
async fn turns_at_once_are_spread_over_the_accounts() {
    each(async |pair| {
        let lab = lab([held("all")]).await;
        let names = ["a", "b", "c", "d"];
        let world = World::over([Up::at(pair.upstream, &lab).accounts(&names)]).await;
        let mut clients = Vec::new();
        for _ in 0..8 {
            let mut client = world.client().await;
            client.ask(pair).await;
            clients.push(client);
        }
        soon(lab.wait_at_gate("all", 8)).await;
        for name in names {
            assert_eq!(lab.account(&format!("secret-{name}")).in_flight, 2, "{pair:?} {name}");
        }
        lab.release("all");
        for client in &mut clients {
            assert_said(pair, &client.reply().await, WORDS);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_goes_to_the_account_that_has_the_fewest_under_way() {
    each(async |pair| {
        let lab = lab([times(1, held("first")), good()]).await;
        let world = World::two(pair, &lab).await;
        let mut busy = world.client().await;
        busy.ask(pair).await;
        soon(lab.wait_at_gate("first", 1)).await;
        for conversation in 0..4 {
            assert_said(pair, &turn_of(&world, pair, conversation).await, WORDS);
        }
        let asked = asked(&lab);
        assert!(asked[1..].iter().all(|account| *account != asked[0]), "{pair:?} {asked:?}");
        lab.release("first");
        assert_said(pair, &busy.reply().await, WORDS);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_stays_counted_while_health_is_asked_and_the_configuration_changes() {
    each(async |pair| {
        let lab = lab([times(1, held("first")), good()]).await;
        let up = Up::at(pair.upstream, &lab).accounts(&["a", "b"]).slots(1);
        let plan = |heartbeat| Plan::over([up.clone()]).tuning(&format!("heartbeat = \"{heartbeat}\""));
        let world = World::of(&plan("15s")).await;
        let mut busy = world.client().await;
        busy.ask(pair).await;
        soon(lab.wait_at_gate("first", 1)).await;
        assert_eq!(get(&world, "/readyz").await.status, 200);
        world.take_up(&plan("14s")).await;
        for conversation in 0..3 {
            assert_said(pair, &turn_of(&world, pair, conversation).await, WORDS);
        }
        let asked = asked(&lab);
        assert!(asked[1..].iter().all(|account| *account != asked[0]), "{pair:?} {asked:?}");
        let busy_id = asked[0].replace("secret-", "up0/");
        assert_eq!(account(&world.counters().await, &busy_id)["in_flight"], 1);
        lab.release("first");
        assert_said(pair, &busy.reply().await, WORDS);
        world.until_at_rest().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_keys_cost_no_attempts_and_the_last_healthy_one_serves() {
    each(async |pair| {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let lab = lab([
            of("h", good()),
            of("a", limited(600)),
            of("b", limited(600)),
            Rule { every: Some(2), ..error(402) },
            error(401),
        ])
        .await;
        let up = Up::at(pair.upstream, &lab).accounts(&names);
        let world = World::of(&Plan::over([up]).tuning("attempts = 1")).await;
        // Whichever is asked first: at the latest when the seven others have refused, the last one is.
        for conversation in 0..7 {
            assert_said(pair, &turn_of(&world, pair, conversation).await, WORDS);
        }
        assert_eq!(asked(&lab).into_iter().collect::<BTreeSet<_>>().len(), 8, "{pair:?}: every key was asked");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_try_of_a_turn_goes_to_an_account_that_has_not_failed_it() {
    each(async |pair| {
        for failing in [[error(500), error(503)], [error(401), error(401)], [error(503), limited(600)]] {
            let lab = lab(failing.into_iter().map(|rule| times(1, rule)).chain([good()])).await;
            let up = Up::at(pair.upstream, &lab).accounts(&["a", "b", "c"]);
            let world = World::of(&Plan::over([up]).tuning(QUICK)).await;
            assert_said(pair, &turn(&world, pair).await, WORDS);
            let asked = asked(&lab);
            assert_eq!((asked.len(), asked.iter().collect::<BTreeSet<_>>().len()), (3, 3), "{pair:?} {asked:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_takes_long_leaves_its_account_and_upstream_serving_others() {
    each(async |pair| {
        let lab = lab([times(1, held("long")), good()]).await;
        let world = World::of(&Plan::over([Up::at(pair.upstream, &lab)]).tuning("breaker_faults = 1")).await;
        let mut long = world.client().await;
        long.ask(pair).await;
        soon(lab.wait_at_gate("long", 1)).await;
        for _ in 0..5 {
            assert_said(pair, &turn(&world, pair).await, WORDS);
            assert_eq!(get(&world, "/readyz").await.status, 200);
        }
        lab.release("long");
        assert_said(pair, &long.reply().await, WORDS);
        let counters = world.until_at_rest().await;
        assert_unblamed(&counters, "up0/a");
        assert_eq!(counters["upstreams"][0]["ejections"], 0);
    })
    .await;
}
