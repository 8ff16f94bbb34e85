//! Rate limits of several accounts at once are the gateway's own address unless each explains itself; then the model waits
//! there, and nowhere else.

use crate::scene::*;
use crate::support::dialects::{CHAT, assert_refused, assert_said};
use crate::support::world::Plan;
use crate::support::*;
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

const FOUR: [&str; 4] = ["a", "b", "c", "d"];

fn closed(counters: &Value) -> usize {
    counters["upstreams"].as_array().unwrap().iter().map(|up| up["closed"].as_array().unwrap().len()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_unexplained_rate_limits_on_different_accounts_close_the_model_and_it_opens_again() {
    join_all(pairs().into_iter().map(|pair| async move {
        let lab = lab([times(3, refusing(429))]).await;
        let tuning = "rate_cooldown = \"1h\"\negress_closed = \"3s\"\nmax_cooling_wait = \"0ms\"";
        let world = World::of(&Plan::over([Up::at(pair.upstream, &lab).accounts(&FOUR)]).tuning(tuning)).await;
        for attempts in ["3", "0"] {
            let reply = world.client().await.turn(pair).await;
            let message = assert_refused(pair, &reply, 429);
            assert!(message.contains("gateway's own network address"), "{message}");
            assert_eq!(reply.header("x-turnkeep-attempts"), Some(attempts));
            let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
            assert!((1..=3).contains(&wait), "{wait}");
        }
        assert_eq!(lab.requests().len(), 3, "the fourth account is behind the same address");
        let counters = world.until_at_rest().await;
        assert_eq!((&counters["egress_throttled"], &counters["pool_exhausted"]), (&2.into(), &0.into()));
        assert_eq!(counters["upstreams"][0]["closed"][0]["model"], "upstream-m", "{counters:#}");

        let waits = |reply: &Reply| assert!([200, 429].contains(&reply.status), "{}", reply.text());
        keep_asking(&world, pair, waits, async || lab.requests().len() > 3).await;
        served(&world.client().await.turn(pair).await);
        assert_eq!(closed(&world.until_at_rest().await), 0);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_was_limited_on_all_accounts_there_are_is_told_of_the_address() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = lab([times(3, refusing(429))]).await;
        let tuning = "rate_cooldown = \"1h\"\nmax_cooling_wait = \"0ms\"";
        let world = World::of(&Plan::over([Up::at(pair.upstream, &lab).accounts(&FOUR[..3])]).tuning(tuning)).await;
        let message = assert_refused(pair, &world.client().await.turn(pair).await, 429);
        assert!(message.contains("gateway's own network address"), "{message}");
        assert_eq!(lab.requests().len(), 3);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_at_another_upstream_serves_on_and_so_do_other_models_at_the_closed_one() {
    join_all(ways().into_iter().map(|pair| async move {
        let limited = lab([Rule { model: Some("upstream-m".into()), ..times(3, refusing(429)) }]).await;
        let other = lab([Rule { text: Some("from the other".into()), ..Rule::default() }]).await;
        let ups = [Up::at(pair.upstream, &limited).accounts(&FOUR), Up::at(pair.upstream, &other)];
        let models = r#"
            [[models]]
            name = "m"
            routes = [{ upstream = "up0", model = "upstream-m" }, { upstream = "up1", model = "upstream-m" }]
            [[models]]
            name = "n"
            routes = [{ upstream = "up0" }]
        "#;
        let world = World::of(&Plan::over(ups).models(models)).await;
        for _ in 0..3 {
            assert_said(pair, &world.client().await.turn(pair).await, "from the other");
        }
        assert_eq!(limited.requests().len(), 3);
        assert_eq!(closed(&world.counters().await), 1);
        served(&turn_for(&world, pair, "n").await);
        assert_eq!(limited.account("secret-d").requests, 1, "the account that is not limited serves another model");
        assert_eq!(world.until_at_rest().await["egress_throttled"], 0, "nobody was refused for it");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_of_one_limit_group_count_once() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = lab([times(3, refusing(429))]).await;
        let up = Up::at(pair.upstream, &lab).accounts(&FOUR).each("limit_group = \"one-organisation\"");
        let world = World::over([up]).await;
        served(&world.client().await.turn(pair).await);
        assert_eq!(lab.requests().len(), 4);
        let counters = world.until_at_rest().await;
        assert_eq!((closed(&counters), &counters["egress_throttled"]), (0, &0.into()));
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_callers_and_three_honest_rate_limits_close_nothing() {
    const TWENTY: [&str; 20] = [
        "k01", "k02", "k03", "k04", "k05", "k06", "k07", "k08", "k09", "k10", "k11", "k12", "k13", "k14", "k15", "k16",
        "k17", "k18", "k19", "k20",
    ];
    let spent = |headers: &[(&str, &str)]| Rule {
        headers: headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<BTreeMap<_, _>>(),
        ..refusing(429)
    };
    let honest = [
        ("k03", spent(&[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "1h0m0s")])),
        ("k09", spent(&[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "1h0m0s")])),
        ("k17", spent(&[("x-ratelimit-remaining-requests", "0"), ("retry-after", "3600")])),
    ];
    let lab = lab(honest.map(|(name, rule)| of(name, rule))).await;
    let mut plan = Plan::over([Up::at(Dialect::Chat, &lab).accounts(&TWENTY)]);
    for number in 0..200 {
        write!(plan.more, "[[keys]]\nname = \"caller-{number}\"\nsecret = \"the-key-of-caller-{number}\"\n").unwrap();
    }
    let world = World::of(&plan).await;
    let ways = Dialect::ALL.map(|client| Pair { client, stream: client == Dialect::Chat, ..CHAT });
    let turns = (0..200).map(|number| {
        let (world, pair) = (&world, ways[number % 4]);
        async move { send(world, pair, "m", "Hello", &format!("the-key-of-caller-{number}")).await.reply().await }
    });
    join_all(turns).await.iter().for_each(served);
    let counters = world.until_at_rest().await;
    assert_eq!((closed(&counters), &counters["egress_throttled"]), (0, &0.into()), "{counters:#}");
    for name in ["k03", "k09", "k17"] {
        assert!(lab.account(&format!("secret-{name}")).refused > 0 || !cooldowns(&counters, name).is_empty(), "{name}");
    }
}
