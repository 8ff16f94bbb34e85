//! Cooldowns: how long they are, that they end, and what a turn is told while every account is in one.

use crate::kit::*;
use crate::support::dialects::{assert_refused, assert_said};
use crate::support::world::Plan;
use crate::support::{Rule, Up, World, lab, soon};

#[tokio::test(flavor = "multi_thread")]
async fn a_later_limit_extends_a_cooldown_and_a_shorter_one_never_cuts_it() {
    for order in [[30, 600], [600, 30]] {
        each(async |pair| {
            let gated = |words: &str, seconds| Rule {
                body_contains: Some(words.into()),
                gate: Some(words.into()),
                ..limited(seconds)
            };
            let lab = lab([gated("earlier", order[0]), gated("later", order[1])]).await;
            let world = World::simple(pair, &lab).await;
            let [mut earlier, mut later] = [world.client().await, world.client().await];
            for (client, words) in [(&mut earlier, "earlier"), (&mut later, "later")] {
                let body = crate::support::dialects::saying(pair, words).to_string();
                client.ask_with(pair, &[], body.as_bytes()).await;
                soon(lab.wait_at_gate(words, 1)).await;
            }
            for (client, words) in [(&mut earlier, "earlier"), (&mut later, "later")] {
                lab.release(words);
                assert_refused(pair, &client.reply().await, 429);
            }
            let refused = turn(&world, pair).await;
            assert_refused(pair, &refused, 429);
            assert!((500..=600).contains(&wait_of(&refused)), "{pair:?} {order:?} {refused:?}");
            assert_eq!(lab.requests().len(), 2);
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_pool_tells_its_wait_and_its_refusals_count_against_nobody() {
    each(async |pair| {
        let lab = lab([limited(500)]).await;
        let up = Up::at(pair.upstream, &lab).accounts(&["a", "b"]);
        let world = World::of(&Plan::over([up]).tuning("breaker_faults = 1\nbudget = 1")).await;
        assert_refused(pair, &turn(&world, pair).await, 429);
        let mut last = 500;
        for _ in 0..5 {
            let refused = turn(&world, pair).await;
            assert!(assert_refused(pair, &refused, 429).contains("account queue exhausted"));
            let wait = wait_of(&refused);
            assert!((400..=last).contains(&wait), "a refusal does not lengthen the wait: {wait} after {last}");
            last = wait;
        }
        let counters = world.until_at_rest().await;
        assert_eq!((&counters["pool_exhausted"], &counters["rate_limited"]), (&5.into(), &2.into()));
        for id in ["up0/a", "up0/b"] {
            let account = account(&counters, id);
            assert_eq!((&account["status"], &account["budget_used"]), (&"active".into(), &0.into()));
            assert_eq!(account["cooldowns"].as_array().unwrap().len(), 1);
        }
        assert_eq!((&counters["upstreams"][0]["ejections"], lab.requests().len()), (&0.into(), 2));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cooldown_ends_by_itself_and_the_account_serves_without_a_restart() {
    each(async |pair| {
        for rule in [limited(1), error(402)] {
            let lab = lab([times(1, rule), good()]).await;
            let numbers = "quota_cooldown = \"1s\"\nmax_cooling_wait = \"20s\"";
            let world = World::of(&Plan::over([Up::at(pair.upstream, &lab)]).tuning(numbers)).await;
            assert_ne!(turn(&world, pair).await.status, 200);
            assert_said(pair, &turn(&world, pair).await, WORDS);
            assert_unblamed(&world.until_at_rest().await, "up0/a");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_of_weeks_is_believed_no_longer_than_the_longest_cooldown() {
    each(async |pair| {
        let lab = lab([limited(18 * 24 * 3600)]).await;
        let plan = Plan::over([Up::at(pair.upstream, &lab)]).tuning("longest_cooldown = \"1m\"");
        let world = World::of(&plan).await;
        assert_refused(pair, &turn(&world, pair).await, 429);
        let refused = turn(&world, pair).await;
        assert_refused(pair, &refused, 429);
        assert!((30..=60).contains(&wait_of(&refused)), "{refused:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_keeps_cooldowns_and_evictions() {
    each(async |pair| {
        let lab = lab([of("a", error(401)), of("b", limited(600))]).await;
        let up = Up::at(pair.upstream, &lab).accounts(&["a", "b"]);
        let plan = |heartbeat| Plan::over([up.clone()]).tuning(&format!("budget = 1\nheartbeat = \"{heartbeat}\""));
        let world = World::of(&plan("15s")).await;
        assert_ne!(turn(&world, pair).await.status, 200);
        let counters = world.take_up(&plan("14s")).await;
        assert_eq!(account(&counters, "up0/a")["status"], "errored");
        assert_eq!(account(&counters, "up0/b")["cooldowns"][0]["fault"], "rate_limited");
        let refused = turn(&world, pair).await;
        assert_refused(pair, &refused, 429);
        assert_eq!(lab.requests().len(), 2, "nobody is asked after the reload");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overload_or_a_rate_limit_without_a_stated_wait_is_tried_again() {
    each(async |pair| {
        for status in [429, 529] {
            let lab = lab([times(1, error(status)), good()]).await;
            let up = Up::at(pair.upstream, &lab).accounts(&["a", "b"]);
            let world = World::of(&Plan::over([up]).tuning("overload_cooldown = \"100ms\"")).await;
            assert_said(pair, &turn(&world, pair).await, WORDS);
            let asked = asked(&lab);
            assert_eq!(asked.len(), 2, "{pair:?} {status}");
            // A limit is the account's own, so another one is asked.
            assert!(status == 529 || asked[0] != asked[1], "{pair:?} {asked:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_refusal_tells_its_own_wait_and_nobody_is_asked_before_its_end() {
    each(async |pair| {
        let lab = lab([times(1, limited(1)), limited(600)]).await;
        let up = Up::at(pair.upstream, &lab);
        let plan = |wait| Plan::over([up.clone()]).tuning(&format!("{QUICK}max_cooling_wait = \"{wait}\""));
        let world = World::of(&plan("0ms")).await;
        let first = turn(&world, pair).await;
        assert_refused(pair, &first, 429);
        assert_eq!(wait_of(&first), 1, "{pair:?}");
        world.take_up(&plan("5s")).await;
        let second = turn(&world, pair).await;
        assert_refused(pair, &second, 429);
        assert!((590..=600).contains(&wait_of(&second)), "{pair:?} {second:?}");
        for _ in 0..5 {
            let refused = turn(&world, pair).await;
            assert_refused(pair, &refused, 429);
            assert!((500..=600).contains(&wait_of(&refused)), "{pair:?} {refused:?}");
        }
        assert_eq!(lab.requests().len(), 2, "{pair:?}: a stated wait is not spent on tries");
    })
    .await;
}
