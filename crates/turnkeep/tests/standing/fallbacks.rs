//! Another model answers only if it is configured to, only if the model's own accounts cannot, only for who may use it, and
//! never in secret.

use crate::scene::*;
use crate::support::dialects::{assert_refused, assert_said};
use crate::support::world::{Plan, account};
use crate::support::*;
use futures_util::future::join_all;
use turnkeep_lab::Lab;

const NARROW: &str = "the-key-for-one-model";

/// The model `m` at the first lab, and `big` at the second as `large`; `m` says `how` the other stands in for it.
async fn place(pair: Pair, rules: impl IntoIterator<Item = Rule>, how: &str, tuning: &str) -> (World, Lab, Lab) {
    let (own, other) =
        (lab(rules).await, lab([Rule { text: Some("from the large one".into()), ..Rule::default() }]).await);
    let ups = [Up::at(pair.upstream, &own).slots(1), Up::at(pair.upstream, &other)];
    let models = format!(
        "[[models]]\nname = \"m\"\nroutes = [{{ upstream = \"up0\", model = \"upstream-m\" }}]\n{how}\n\
         [[models]]\nname = \"big\"\nroutes = [{{ upstream = \"up1\", model = \"large\" }}]"
    );
    let mut plan = Plan::over(ups).models(&models).tuning(tuning);
    plan.more = format!("[[keys]]\nname = \"narrow\"\nsecret = \"{NARROW}\"\nmodels = [\"m\"]\n");
    (World::of(&plan).await, own, other)
}

const FALLBACK: &str = "fallbacks = [\"big\"]";
const LARGER: &str = "larger = [\"big\"]";

#[tokio::test(flavor = "multi_thread")]
async fn a_fallback_answers_when_the_own_accounts_fail_cool_or_are_errored_and_says_so() {
    join_all(pairs().into_iter().map(|pair| async move {
        for (status, out) in [(429, true), (402, true), (401, true), (500, false), (503, false)] {
            let tuning = "budget = 1\nbackoff = \"1ms\"\nrate_cooldown = \"1h\"\nlast_account_retry = \"1h\"";
            let (world, own, other) = place(pair, [refusing(status)], FALLBACK, tuning).await;
            for turn in 1..=2 {
                let reply = world.client().await.turn(pair).await;
                assert_said(pair, &reply, "from the large one");
                assert_eq!(reply.header("x-turnkeep-model"), Some("large"), "{status}");
                let again = turn == 2 && out;
                assert_eq!(reply.header("x-turnkeep-attempts"), Some(if again { "1" } else { "2" }), "{status}");
            }
            assert_eq!(own.requests().len(), if out { 1 } else { 2 }, "{status}: who is out is not asked again");
            assert_eq!(other.requests().len(), 2);
            world.until_at_rest().await;
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_merely_busy_is_waited_for() {
    join_all(ways().into_iter().map(|pair| async move {
        let rules = [times(1, held("held", Rule::default())), Rule { text: Some("my own".into()), ..Rule::default() }];
        let (world, own, other) = place(pair, rules, FALLBACK, "").await;
        let mut first = world.client().await;
        first.ask(pair).await;
        soon(own.wait_at_gate("held", 1)).await;
        let mut second = world.client().await;
        second.ask(pair).await;
        world.until("the second waits", |counters| counters["waiting"] == 1).await;
        own.release("held");
        served(&first.reply().await);
        let reply = second.reply().await;
        assert_said(pair, &reply, "my own");
        assert_eq!(reply.header("x-turnkeep-model"), Some("upstream-m"));
        assert_eq!(other.requests().len(), 0);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_may_not_use_the_other_model_does_not_get_it() {
    join_all(ways().into_iter().map(|pair| async move {
        let (world, _own, other) = place(pair, [waiting(429, 600)], FALLBACK, "").await;
        for _ in 0..2 {
            let reply = send(&world, pair, "m", "Hello", NARROW).await.reply().await;
            assert_refused(pair, &reply, 429);
        }
        assert_eq!(other.requests().len(), 0);
        assert_said(pair, &turn_for(&world, pair, "m").await, "from the large one");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_fallback_the_other_model_is_never_asked() {
    join_all(ways().into_iter().map(|pair| async move {
        for status in [429, 401, 500] {
            let (world, _own, other) = place(pair, [refusing(status)], "", "backoff = \"1ms\"").await;
            assert_refused(pair, &world.client().await.turn(pair).await, if status == 429 { 429 } else { 502 });
            assert_eq!(other.requests().len(), 0, "{status}");
        }
    }))
    .await;
}

fn too_long() -> Rule {
    let error = ErrorSpec {
        status: Some(400),
        code: Some("context_length_exceeded".into()),
        message: Some("prompt is too long: 208310 tokens > 200000 maximum".into()),
        ..ErrorSpec::default()
    };
    Rule { error: Some(error), ..Rule::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_too_long_goes_to_a_larger_model_that_is_configured() {
    join_all(pairs().into_iter().map(|pair| async move {
        let (world, own, other) = place(pair, [too_long()], LARGER, "").await;
        let reply = world.client().await.turn(pair).await;
        assert_said(pair, &reply, "from the large one");
        assert_eq!(reply.header("x-turnkeep-model"), Some("large"));
        assert_eq!((own.requests().len(), other.requests().len()), (1, 1));
        let counters = world.until_at_rest().await;
        assert_eq!(account(&counters, "a")["status"], "active");
        let narrow = send(&world, pair, "m", "Hello", NARROW).await.reply().await;
        assert_refused(pair, &narrow, 400);
        assert_eq!(other.requests().len(), 1, "nor does a larger model answer who may not use it");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_too_long_is_refused_where_only_a_fallback_is_configured() {
    join_all(ways().into_iter().map(|pair| async move {
        let (world, own, other) = place(pair, [too_long()], FALLBACK, "").await;
        let message = assert_refused(pair, &world.client().await.turn(pair).await, 400);
        assert!(message.contains("too long"), "{message}");
        assert_eq!((own.requests().len(), other.requests().len()), (1, 0));
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_larger_model_stands_in_for_nothing_but_length() {
    join_all(ways().into_iter().map(|pair| async move {
        for (status, shown) in [(429, 429), (500, 502), (400, 400)] {
            let (world, _own, other) = place(pair, [refusing(status)], LARGER, "backoff = \"1ms\"").await;
            assert_refused(pair, &world.client().await.turn(pair).await, shown);
            assert_eq!(other.requests().len(), 0, "{status}");
        }
    }))
    .await;
}
