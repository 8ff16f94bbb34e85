//! Answers that begin well and are not what they should be: broken compression and chunks, errors inside of a success,
//! and ends that never came. The turn is repaired before its content and ends as failed after it; nobody is blamed.
//!
//! Each client dialect meets each kind of upstream once, streamed and plain by turns.

use crate::support::dialects::{assert_broke_off, assert_refused, assert_said, covering, streamed};
use crate::support::world::{Plan, account, assert_unblamed};
use crate::support::*;
use futures_util::future::join_all;
use turnkeep_lab::ContentEncoding;

const WORDS: &str = "one two three four";
const TWO: Option<Point> = Some(Point::AfterWords(2));
const PREAMBLE: Option<Point> = Some(Point::AfterPreamble);

fn good() -> Rule {
    Rule { text: Some(WORDS.into()), ..Rule::default() }
}

fn fault(fault: Fault, at: Option<Point>) -> Rule {
    Rule { fault: Some(fault), fault_at: at, ..good() }
}

fn coded(rule: Rule) -> Rule {
    Rule { content_encoding: Some(ContentEncoding::Gzip), ..rule }
}

fn overload() -> ErrorSpec {
    ErrorSpec {
        status: Some(529),
        kind: Some("overloaded_error".into()),
        message: Some("Overloaded".into()),
        ..ErrorSpec::default()
    }
}

/// Four turns that meet it on the only account, then one that is well; then two accounts, of which the other serves.
async fn repaired(pair: Pair, rule: Rule, counter: &str, tries: u64) {
    let alone = lab([rule.clone()]).await;
    let world = World::simple(pair, &alone).await;
    for _ in 0..4 {
        let reply = world.client().await.turn(pair).await;
        assert_refused(pair, &reply, 502);
        assert!(!reply.text().contains("one two"), "{pair:?} {counter}: {}", reply.text());
    }
    let counters = world.until_at_rest().await;
    assert_unblamed(&counters, "a");
    assert_eq!(counters[counter], 4 * tries, "{pair:?} {counter} {counters:#}");
    assert_eq!((&counters["unclassified_fault"], &counters["delivered"]), (&0.into(), &0.into()));
    alone.set_script(Script::of([good()]));
    assert_said(pair, &world.client().await.turn(pair).await, WORDS);

    let first = lab([Rule { times: Some(1), ..rule }, good()]).await;
    let world = World::two(pair, &first).await;
    let reply = world.client().await.turn(pair).await;
    assert_said(pair, &reply, WORDS);
    assert_eq!(reply.header("x-turnkeep-attempts"), Some("2"), "{pair:?} {counter}");
    let counters = world.until_at_rest().await;
    assert_unblamed(&counters, "a");
    assert_unblamed(&counters, "b");
    assert_eq!((&counters[counter], &counters["failover_hops"]), (&1.into(), &1.into()), "{pair:?} {counter}");
}

async fn all_repaired(pairs: Vec<Pair>, rule: fn() -> Rule, counter: &'static str, tries: u64) {
    join_all(pairs.into_iter().map(|pair| repaired(pair, rule(), counter, tries))).await;
}

fn plain() -> Vec<Pair> {
    pairs().into_iter().filter(|pair| !pair.stream).collect()
}

async fn all_break_off(rule: fn() -> Rule, counter: &'static str) {
    join_all(streamed().into_iter().map(|pair| async move {
        let lab = lab([rule()]).await;
        let world = World::two(pair, &lab).await;
        for turn in 1..=4 {
            let reply = world.client().await.turn(pair).await;
            assert_broke_off(pair, &reply, "one two ");
            assert_eq!(lab.requests().len(), turn, "{pair:?} {counter}: nobody else is asked");
        }
        let counters = world.until_at_rest().await;
        assert_unblamed(&counters, "a");
        assert_unblamed(&counters, "b");
        assert_eq!((&counters[counter], &counters["delivered"]), (&4.into(), &0.into()), "{pair:?} {counters:#}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_in_a_compressed_answer_is_the_upstreams_fault() {
    let no_gzip = || Rule {
        raw_bytes: Some(b"this was never compressed".to_vec()),
        headers: [("content-encoding".to_owned(), "gzip".to_owned())].into(),
        ..Rule::default()
    };
    all_repaired(covering(), no_gzip, "malformed_response", 1).await;
    all_repaired(streamed(), || coded(fault(Fault::BadEncoding, PREAMBLE)), "malformed_response", 1).await;
    all_repaired(plain(), || coded(fault(Fault::BadEncoding, None)), "malformed_response", 1).await;
    all_break_off(|| coded(fault(Fault::BadEncoding, TWO)), "malformed_response").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_for_a_chunks_size_is_no_http_and_nobodys_fault() {
    all_repaired(streamed(), || fault(Fault::BadChunk, PREAMBLE), "http_protocol_error", 2).await;
    all_repaired(plain(), || fault(Fault::BadChunk, None), "http_protocol_error", 2).await;
    all_break_off(|| fault(Fault::BadChunk, TWO), "http_protocol_error").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_whose_end_never_came_is_no_answer() {
    all_repaired(streamed(), || fault(Fault::NoTerminal, PREAMBLE), "stream_truncated", 2).await;
    all_break_off(|| fault(Fault::NoTerminal, TWO), "stream_truncated").await;
    // A plain answer has no terminal event: what ends too soon is not its protocol.
    all_repaired(plain(), || fault(Fault::NoTerminal, None), "malformed_response", 1).await;
    // Nothing at all.
    let empty = || Rule { raw: Some(String::new()), ..Rule::default() };
    all_repaired(plain(), empty, "malformed_response", 1).await;
    let empty = || Rule {
        raw: Some(String::new()),
        headers: [("content-type".to_owned(), "text/event-stream".to_owned())].into(),
        ..Rule::default()
    };
    all_repaired(streamed(), empty, "stream_truncated", 2).await;
}

/// A reset before the first byte, after the headers, and after the first content.
#[tokio::test(flavor = "multi_thread")]
async fn a_reset_is_repaired_before_content_and_ends_the_answer_after_it() {
    all_repaired(covering(), || fault(Fault::ResetBeforeReply, None), "connection_reset", 2).await;
    all_repaired(streamed(), || fault(Fault::ResetMidStream, PREAMBLE), "connection_reset", 2).await;
    all_repaired(plain(), || fault(Fault::ResetMidStream, None), "connection_reset", 2).await;
    all_break_off(|| fault(Fault::ResetMidStream, TWO), "connection_reset").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_the_body_of_a_200_is_that_error() {
    join_all(covering().into_iter().map(|pair| async move {
        let error = |kind: &str, code: Option<&str>, message: &str| {
            let spec = ErrorSpec {
                kind: Some(kind.into()),
                code: code.map(str::to_owned),
                message: Some(message.into()),
                ..ErrorSpec::default()
            };
            Rule { status: Some(200), error: Some(spec), ..Rule::default() }
        };
        let (money, money_status) = match pair.upstream {
            Dialect::Chat | Dialect::Responses => {
                (error("insufficient_quota", Some("insufficient_quota"), "No credit."), pair.of(429, 402))
            }
            Dialect::Gemini => {
                (error("RESOURCE_EXHAUSTED", None, "Your prepayment credits are depleted."), pair.of(429, 402))
            }
            Dialect::Messages => (error("billing_error", None, "No credit."), pair.of(429, 402)),
        };
        // Google names a limit by the status alone.
        let limit = match pair.upstream {
            Dialect::Gemini => "RESOURCE_EXHAUSTED",
            Dialect::Chat | Dialect::Responses | Dialect::Messages => "rate_limit_error",
        };
        let cases = [
            (error("overloaded_error", None, "Overloaded"), "model_overloaded", pair.of(503, 529), Some("model")),
            (money, "quota_exhausted", money_status, Some("quota")),
            (error(limit, None, "Slow down."), "rate_limited", 429, Some("account")),
            (error("flux_drift", Some("flux_capacitor_drift"), "Odd."), "unclassified_fault", 502, None),
        ];
        for (rule, counter, status, scope) in cases {
            let lab = lab([rule]).await;
            // The model's cooldown is longer than a turn waits for.
            let plan = Plan::over([Up::at(pair.upstream, &lab)]).tuning("overload_cooldown = \"30s\"");
            let world = World::of(&plan).await;
            let reply = world.client().await.turn(pair).await;
            assert_refused(pair, &reply, status);
            let counters = world.until_at_rest().await;
            assert_eq!((&counters[counter], &counters["delivered"]), (&1.into(), &0.into()), "{pair:?} {counters:#}");
            let a = account(&counters, "a");
            assert_eq!((&a["status"], &a["budget_used"]), (&"active".into(), &0.into()));
            let scopes: Vec<_> =
                a["cooldowns"].as_array().unwrap().iter().filter_map(|c| c["scope"].as_str()).collect();
            assert_eq!(scopes, scope.into_iter().collect::<Vec<_>>(), "{pair:?} {counter}");
        }
    }))
    .await;
}

fn overloaded(at: Option<Point>) -> Rule {
    Rule { error: Some(overload()), ..fault(Fault::ErrorInStream, at) }
}

const OVERLOAD: &str = "overload_cooldown = \"1s\"";

#[tokio::test(flavor = "multi_thread")]
async fn an_overload_right_after_the_preamble_is_replayed_once_on_the_same_account_and_then_elsewhere() {
    join_all(streamed().into_iter().map(|pair| async move {
        let lab = lab([Rule { times: Some(2), ..overloaded(PREAMBLE) }, good()]).await;
        let world = World::of(&Plan::over([Up::at(pair.upstream, &lab).accounts(&["a", "b"])]).tuning(OVERLOAD)).await;
        let reply = world.client().await.turn(pair).await;
        assert_said(pair, &reply, WORDS);
        assert_eq!(reply.header("x-turnkeep-attempts"), Some("3"), "{pair:?}");
        let asked: Vec<String> = lab.requests().iter().map(|request| request.account.clone().unwrap()).collect();
        assert_eq!(asked.len(), 3, "{pair:?}");
        assert_eq!(asked[0], asked[1], "{pair:?}: once more on the same account");
        assert_ne!(asked[1], asked[2], "{pair:?}: then elsewhere");
        let counters = world.until_at_rest().await;
        assert_eq!(counters["model_overloaded"], 2, "{pair:?} {counters:#}");
        assert_eq!((&counters["transient_replays"], &counters["failover_hops"]), (&1.into(), &1.into()));
        let [hit, other] = [&asked[0], &asked[2]].map(|secret| secret.trim_start_matches("secret-"));
        assert_unblamed(&counters, other);
        let cooling = account(&counters, hit);
        assert_eq!((&cooling["status"], &cooling["budget_used"]), (&"active".into(), &0.into()));
        let cooldown = &cooling["cooldowns"][0];
        let shown = (&cooldown["scope"], &cooldown["model"], &cooldown["fault"]);
        assert_eq!(shown, (&"model".into(), &"upstream-m".into(), &"model_overloaded".into()), "{pair:?}");
        assert_eq!(cooling["cooldowns"].as_array().unwrap().len(), 1, "{pair:?}: the account itself does not cool");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overload_on_every_account_is_never_a_success() {
    join_all(streamed().into_iter().map(|pair| async move {
        let lab = lab([overloaded(PREAMBLE)]).await;
        let plan = Plan::over([Up::at(pair.upstream, &lab).accounts(&["a", "b"])]);
        let world = World::of(&plan.tuning("overload_cooldown = \"30s\"")).await;
        let reply = world.client().await.turn(pair).await;
        assert_refused(pair, &reply, pair.of(503, 529));
        let counters = world.until_at_rest().await;
        assert_eq!((&counters["delivered"], &counters["undelivered"]), (&0.into(), &0.into()));
        for name in ["a", "b"] {
            assert_eq!(account(&counters, name)["status"], "active");
            assert_eq!(account(&counters, name)["budget_used"], 0);
        }
        let entries = world.into_ledger().await;
        assert!(
            entries.iter().all(|entry| entry.closed.as_ref().unwrap().outcome == "model_overloaded"),
            "{entries:?}"
        );
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overload_after_content_ends_the_answer_as_failed_and_cools_the_model_only() {
    join_all(streamed().into_iter().map(|pair| async move {
        let lab = lab([overloaded(TWO)]).await;
        let world = World::simple(pair, &lab).await;
        let reply = world.client().await.turn(pair).await;
        assert_broke_off(pair, &reply, "one two ");
        let counters = world.until_at_rest().await;
        assert_eq!((&counters["model_overloaded"], &counters["delivered"]), (&1.into(), &0.into()), "{counters:#}");
        let a = account(&counters, "a");
        assert_eq!((&a["status"], &a["budget_used"]), (&"active".into(), &0.into()));
        assert!(a["cooldowns"].as_array().unwrap().iter().all(|cooldown| cooldown["scope"] == "model"), "{a}");
    }))
    .await;
}
