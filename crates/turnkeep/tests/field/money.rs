//! What turns cost: each call that was made is in the books once, at the right price, and what is no answer is no output.

use crate::kit::*;
use crate::support::dialects::assert_said;
use crate::support::{Dialect, ErrorSpec, Fault, Point, Rule, UsageSpec, World, lab, soon};
use turnkeep_base::Usage;

const BUDGET: &str = "budget = { usd = 100000, per = \"day\" }";

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_costs_the_same_streamed_and_plain_and_cached_tokens_have_their_own_price() {
    each(async |pair| {
        let written = (pair.upstream == Dialect::Messages).then_some(100);
        let usage = UsageSpec {
            prompt: Some(1_300),
            completion: Some(80),
            cached: Some(1_000),
            cache_write: written,
            reasoning: None,
        };
        let lab = lab([Rule { usage, ..good() }]).await;
        let world = World::of(&priced(pair, &lab, BUDGET)).await;
        assert_said(pair, &send(&world, pair, &[]).await.reply().await, WORDS);
        let used = limited_at_rest(&world).await;
        let closed = world.into_ledger().await.remove(0).closed.unwrap();
        let (written, input) = (written.unwrap_or(0), 300 - written.unwrap_or(0));
        let want = Usage { input, cache_read: 1_000, cache_write: written, output: 80, reasoning: 0 };
        assert_eq!((Usage { reasoning: 0, ..closed.usage }, closed.exact), (want, true), "{pair:?}");
        // Dollars per million tokens are thousandths of a dollar per thousand.
        let nano_usd = 1_000_000 * input + 100_000 * 1_000 + 1_250_000 * written + 2_000_000 * 80;
        assert_eq!((closed.cost, nano(&used["spent"]["usd"])), (Some(nano_usd), nano_usd), "{pair:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tokens_of_a_model_without_a_price_count_and_its_cost_is_unknown_and_not_nothing() {
    each(async |pair| {
        let usage = UsageSpec { prompt: Some(1_000), completion: Some(500), ..UsageSpec::default() };
        let lab = lab([Rule { usage, ..good() }]).await;
        let mut plan = priced(pair, &lab, "budget = { tokens = 1500, per = \"day\" }");
        plan.models = None;
        let world = World::of(&plan).await;
        assert_said(pair, &send(&world, pair, &[]).await.reply().await, WORDS);
        let used = limited_at_rest(&world).await;
        assert_eq!((&used["spent"]["tokens"], &used["reserved"]["tokens"]), (&1_500.into(), &0.into()), "{pair:?}");
        let refused = send(&world, pair, &[]).await.reply().await;
        assert_eq!(refused.status, pair.of(429, 402), "{pair:?} {}", refused.text());
        let entries = world.into_ledger().await;
        let closed = entries[0].closed.as_ref().unwrap();
        assert_eq!((entries.len(), closed.exact, closed.cost), (1, true, None), "{pair:?}");
    })
    .await;
}

/// A failure after two words, with this error in its stream if it is one.
fn mid_answer(kind: Fault, error: Option<ErrorSpec>) -> Rule {
    Rule { error, ..fault(kind, Some(Point::AfterWords(2))) }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_caller_has_spent_is_the_sum_of_its_entries_however_its_calls_end() {
    each(async |pair| {
        let lab = lab([
            times(1, error(500)),
            times(1, limited(1)),
            times(1, fault(Fault::ResetBeforeReply, None)),
            times(1, mid_answer(Fault::CloseMidStream, None)),
            times(1, mid_answer(Fault::ErrorInStream, Some(ErrorSpec::default()))),
            times(1, fault(Fault::BadJson, None)),
            times(1, error(400)),
            times(1, Rule { refusal: Some("I will not.".into()), ..Rule::default() }),
            times(1, Rule { finish: Some("length".into()), ..good() }),
            good(),
        ])
        .await;
        let mut plan = priced(pair, &lab, BUDGET).tuning(QUICK);
        plan.ups[0].accounts = vec!["a", "b", "c"];
        let world = World::of(&plan).await;
        for _ in 0..10 {
            send(&world, pair, &[]).await.reply().await;
        }
        let used = limited_at_rest(&world).await;
        assert_eq!((&used["reserved"]["tokens"], nano(&used["reserved"]["usd"])), (&0.into(), 0), "{pair:?}");
        let requests = lab.requests().len();
        let entries = world.into_ledger().await;
        assert_eq!(entries.len(), requests, "{pair:?}: one entry for each call");
        let closed: Vec<_> = entries.iter().map(|entry| entry.closed.as_ref().unwrap()).collect();
        for end in &closed {
            assert_eq!(end.cost, Some(PRICES.cost(&end.usage)), "{pair:?} {end:?}");
            assert!(end.outcome != "completed" || (end.exact && end.cost > Some(0)), "{pair:?} {end:?}");
        }
        let cost: u64 = closed.iter().filter_map(|end| end.cost).sum();
        assert_eq!(nano(&used["spent"]["usd"]), cost, "{pair:?} {closed:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstreams_error_text_is_not_billed_as_output() {
    let long = "This text is of the error and not of the model. ".repeat(200);
    each(async |pair| {
        let page = Rule { status: Some(200), raw: Some(format!("<html>{long}</html>")), ..Rule::default() };
        let said = ErrorSpec { message: Some(long.clone()), ..ErrorSpec::default() };
        let rules =
            [error_saying(400, &long), error_saying(503, &long), page, mid_answer(Fault::ErrorInStream, Some(said))];
        for rule in rules {
            let lab = lab([rule]).await;
            let world = World::of(&priced(pair, &lab, BUDGET).tuning("attempts = 1")).await;
            send(&world, pair, &[]).await.reply().await;
            limited_at_rest(&world).await;
            for entry in world.into_ledger().await {
                let closed = entry.closed.unwrap();
                assert_ne!(closed.outcome, "completed", "{pair:?}");
                assert!(closed.usage.output < 10, "{pair:?} {closed:?}");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_right_after_many_turns_loses_no_entry() {
    each(async |pair| {
        let lab = lab([good()]).await;
        let world = World::of(&priced(pair, &lab, BUDGET)).await;
        let turns = (0..20).map(|_| async { send(&world, pair, &[]).await.reply().await });
        for reply in soon(futures_util::future::join_all(turns)).await {
            assert_said(pair, &reply, WORDS);
        }
        let entries = world.into_ledger().await;
        assert_eq!(entries.len(), 20, "{pair:?}");
        for entry in entries {
            assert!(entry.closed.is_some_and(|closed| closed.outcome == "completed" && closed.exact), "{pair:?}");
        }
    })
    .await;
}
