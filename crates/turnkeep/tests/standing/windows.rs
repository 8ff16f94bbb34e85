//! What a provider declares in headers is what cools, in the scope it names, until the end it names; and no end that is
//! stated replaces a later one or one of another kind.

use crate::scene::*;
use crate::support::dialects::{CHAT, assert_refused};
use crate::support::world::Plan;
use crate::support::*;
use futures_util::future::join_all;

type Headers = &'static [(&'static str, &'static str)];
type Ends = &'static [(&'static str, i64)];

/// The headers of a 429, and what cools for how many seconds; in order of scope.
const DECLARED: &[(Headers, Ends)] = &[
    (&[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "6m0s")], &[("rate", 360)]),
    (&[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "2m59.56s")], &[("account", 180)]),
    (&[("x-ratelimit-remaining-requests", "0"), ("retry-after", "70")], &[("account", 70), ("rate", 70)]),
    (
        &[
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "40s"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "90s"),
        ],
        &[("account", 90), ("rate", 40)],
    ),
    (&[("x-ratelimit-remaining-requests", "1"), ("x-ratelimit-reset-requests", "6m0s")], &[("account", 15)]),
    (
        &[("anthropic-ratelimit-requests-remaining", "0"), ("anthropic-ratelimit-requests-reset", "{rfc3339+300}")],
        &[("rate", 300)],
    ),
    (
        &[("anthropic-ratelimit-tokens-remaining", "0"), ("anthropic-ratelimit-tokens-reset", "{rfc3339+200}")],
        &[("account", 200)],
    ),
    (
        &[
            ("anthropic-ratelimit-unified-status", "rejected"),
            ("anthropic-ratelimit-unified-5h-status", "rejected"),
            ("anthropic-ratelimit-unified-5h-reset", "{unix+1000}"),
        ],
        &[("quota", 1000)],
    ),
    (
        &[
            ("anthropic-ratelimit-unified-status", "rejected"),
            ("anthropic-ratelimit-unified-7d_opus-status", "rejected"),
            ("anthropic-ratelimit-unified-7d_opus-reset", "{unix+2000}"),
        ],
        &[("model", 2000)],
    ),
    (&[("retry-after", "{date+120}")], &[("account", 120)]),
    // The reply's own clock is wrong by decades, and so is the date: what is left between them is right.
    (
        &[("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("retry-after", "Sun, 06 Nov 1994 08:51:37 GMT")],
        &[("account", 120)],
    ),
    (&[("retry-after", "999999")], &[("account", 6 * 60 * 60)]),
    // Longer than a year is no wait at all.
    (&[("retry-after", "99999999")], &[("account", 15)]),
    (&[("retry-after", "-5")], &[("account", 15)]),
];

fn with(headers: Headers, rule: Rule) -> Rule {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Rule { headers: headers.collect(), ..rule }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_headers_declare_cools_in_its_own_scope_until_its_own_end() {
    let cases = Dialect::ALL.into_iter().flat_map(|upstream| DECLARED.iter().map(move |case| (upstream, case)));
    join_all(cases.map(|(upstream, (headers, ends))| async move {
        let lab = lab([with(headers, refusing(429))]).await;
        let world = World::of(&Plan::over([Up::at(upstream, &lab)])).await;
        let pair = Pair { upstream, ..CHAT };
        assert_refused(pair, &world.client().await.turn(pair).await, 429);
        let found = cooldowns(&world.until_at_rest().await, "a");
        let scopes: Vec<&str> = found.iter().map(|(scope, ..)| scope.as_str()).collect();
        let expected: Vec<&str> = ends.iter().map(|(scope, _)| *scope).collect();
        assert_eq!(scopes, expected, "{upstream:?} {headers:?} {found:?}");
        for ((scope, fault, model, left), (_, stated)) in found.iter().zip(*ends) {
            assert_eq!(fault, "rate_limited", "{headers:?}");
            assert_eq!(model, if scope == "model" { "upstream-m" } else { "" }, "{headers:?}");
            assert_left(*left, *stated);
        }
        let reply = world.client().await.turn(pair).await;
        assert!(assert_refused(pair, &reply, 429).contains("账号队列耗尽"));
        assert_eq!(lab.requests().len(), 1);
        let told: i64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert_left(told, ends.iter().map(|(_, end)| *end).max().unwrap().min(600));
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_one_model_leaves_the_others_to_the_account() {
    let opus: Headers = &[
        ("anthropic-ratelimit-unified-status", "rejected"),
        ("anthropic-ratelimit-unified-representative-claim", "seven_day_opus"),
        ("anthropic-ratelimit-unified-reset", "{unix+3000}"),
    ];
    join_all(plain_ways().into_iter().map(|pair| async move {
        let lab = lab([Rule { model: Some("opus".into()), ..with(opus, refusing(429)) }]).await;
        let models = "[[models]]\nname = \"*\"\nroutes = [{ upstream = \"up0\" }]";
        let world = World::of(&Plan::over([Up::at(pair.upstream, &lab)]).models(models)).await;
        assert_refused(pair, &turn_for(&world, pair, "opus").await, 429);
        served(&turn_for(&world, pair, "sonnet").await);
        assert_refused(pair, &turn_for(&world, pair, "opus").await, 429);
        assert_eq!(lab.requests().len(), 2);
        let found = cooldowns(&world.until_at_rest().await, "a");
        assert_eq!((found.len(), found[0].0.as_str(), found[0].2.as_str()), (1, "model", "opus"));
        assert_left(found[0].3, 3000);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quota_and_rate_cool_apart_and_each_only_grows() {
    join_all(plain_ways().into_iter().map(|pair| async move {
        let answers =
            [("first", 402, 600), ("second", 429, 300), ("third", 429, 100), ("fourth", 402, 900), ("fifth", 402, 60)];
        let rules = answers.map(|(words, status, wait)| Rule {
            body_contains: Some(format!("the {words} words")),
            ..held(words, waiting(status, wait))
        });
        let lab = lab(rules).await;
        let world = World::over([Up::at(pair.upstream, &lab)]).await;
        let mut clients = Vec::new();
        for (words, ..) in answers {
            clients.push(send(&world, pair, "m", &format!("the {words} words"), KEY).await);
            soon(lab.wait_at_gate(words, 1)).await;
        }
        let mut expected = [0, 0];
        for ((words, status, wait), client) in answers.into_iter().zip(&mut clients) {
            lab.release(words);
            assert_ne!(client.reply().await.status, 200);
            let end = &mut expected[usize::from(status == 402)];
            *end = wait.max(*end);
            let found = cooldowns(&world.counters().await, "a");
            for (scope, end) in ["account", "quota"].into_iter().zip(expected) {
                let left = found.iter().find(|(have, ..)| have == scope).map_or(0, |(.., left)| *left);
                assert_left(left, i64::try_from(end).unwrap());
            }
        }
        assert_eq!(expected, [300, 900]);
    }))
    .await;
}
