//! Before the answer has begun a failed attempt is repaired where nobody sees it; after that the stream ends as failed.

use crate::support::dialects::{CHAT, assert_broke_off, assert_refused, assert_said, streamed};
use crate::support::world::{Plan, account, assert_unblamed};
use crate::support::*;
use futures_util::future::join_all;

const WORDS: &str = "one two three four";

fn good() -> Rule {
    Rule { text: Some(WORDS.into()), ..Rule::default() }
}

/// The first request meets the rule, every later one is served.
fn first(rule: Rule) -> [Rule; 2] {
    [Rule { times: Some(1), ..rule }, good()]
}

fn error(status: u16, code: &str, retry_after: Option<u64>) -> Rule {
    let kind = (!code.is_empty()).then(|| code.to_owned());
    let error = ErrorSpec { status: Some(status), kind, retry_after, ..ErrorSpec::default() };
    Rule { error: Some(error), ..Rule::default() }
}

fn fault(fault: Fault, at: Option<Point>) -> Rule {
    Rule { text: Some(WORDS.into()), fault: Some(fault), fault_at: at, ..Rule::default() }
}

/// Two accounts; the one asked first fails as the rule says, and the other serves.
async fn the_other_serves(pair: Pair, rule: Rule, counter: &str) -> (World, turnkeep_lab::Lab) {
    let lab = lab(first(rule)).await;
    let world = World::two(pair, &lab).await;
    let reply = world.client().await.turn(pair).await;
    assert_said(pair, &reply, WORDS);
    assert_eq!(reply.header("x-turnkeep-attempts"), Some("2"), "{pair:?} {counter}");
    assert_eq!(reply.header("x-turnkeep-model"), Some("upstream-m"));
    let requests = lab.requests();
    assert_eq!(requests.len(), 2, "{pair:?} {counter}");
    assert_ne!(requests[0].account, requests[1].account, "{pair:?} {counter}");
    let counters = world.until_at_rest().await;
    assert_eq!(counters[counter], 1, "{pair:?} {counters:#}");
    assert_eq!(counters["failover_hops"], 1, "{pair:?} {counter}");
    assert_eq!((&counters["transient_replays"], &counters["failover_exhausted"]), (&0.into(), &0.into()));
    (world, lab)
}

async fn for_all(pairs: Vec<Pair>, rule: fn() -> Rule, counter: &'static str) {
    join_all(pairs.into_iter().map(|pair| the_other_serves(pair, rule(), counter))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limited_account_is_passed_over_without_the_clients_knowing() {
    join_all(pairs().into_iter().map(|pair| async move {
        let (world, lab) = the_other_serves(pair, error(429, "", Some(600)), "rate_limited").await;
        let cooled = lab.requests()[0].account.clone().unwrap();
        let counters = world.counters().await;
        let cooldowns = &account(&counters, cooled.trim_start_matches("secret-"))["cooldowns"];
        assert_eq!((&cooldowns[0]["scope"], &cooldowns[0]["fault"]), (&"account".into(), &"rate_limited".into()));
        assert_said(pair, &world.client().await.turn(pair).await, WORDS);
        assert_eq!(lab.requests().len(), 3, "the cooling account is not asked again");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_credential_is_passed_over_without_the_clients_knowing() {
    for_all(pairs(), || error(401, "", None), "credential_rejected").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_up_quota_is_passed_over_without_the_clients_knowing() {
    join_all(pairs().into_iter().map(|pair| async move {
        let (world, _lab) = the_other_serves(pair, error(402, "", None), "quota_exhausted").await;
        assert_eq!(world.counters().await["quota_failover_hops"], 1);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_up_quota_without_another_account_is_no_hop() {
    let lab = lab([error(402, "", None)]).await;
    let world = World::simple(CHAT, &lab).await;
    assert_refused(CHAT, &world.client().await.turn(CHAT).await, 429);
    let counters = world.until_at_rest().await;
    assert_eq!(counters["quota_exhausted"], 1);
    assert_eq!((&counters["failover_hops"], &counters["quota_failover_hops"]), (&0.into(), &0.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_internal_error_or_an_outage_is_passed_over_without_the_clients_knowing() {
    for_all(pairs(), || error(500, "", None), "upstream_internal").await;
    for_all(
        pairs(),
        || Rule { status: Some(502), raw: Some("upstream down".into()), ..Rule::default() },
        "upstream_unavailable",
    )
    .await;
    for_all(pairs(), || fault(Fault::Html, None), "upstream_unavailable").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overloaded_model_is_passed_over_when_its_wait_is_long() {
    for_all(pairs(), || error(529, "overloaded_error", Some(60)), "model_overloaded").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overloaded_model_whose_wait_is_short_is_asked_once_more_on_the_same_account() {
    let lab = lab(first(error(529, "overloaded_error", Some(1)))).await;
    let world = World::two(CHAT, &lab).await;
    let reply = world.client().await.turn(CHAT).await;
    assert_said(CHAT, &reply, WORDS);
    let requests = lab.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].account, requests[1].account);
    assert_eq!(world.until_at_rest().await["transient_replays"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_connection_before_content_is_passed_over_without_the_clients_knowing() {
    for_all(pairs(), || fault(Fault::ResetBeforeReply, None), "connection_reset").await;
    for_all(pairs(), || fault(Fault::CloseBeforeReply, None), "connection_reset").await;
    for_all(streamed(), || fault(Fault::CloseMidStream, Some(Point::AfterPreamble)), "stream_truncated").await;
    for_all(streamed(), || fault(Fault::NoTerminal, Some(Point::AfterPreamble)), "stream_truncated").await;
    for_all(streamed(), || fault(Fault::BadChunk, Some(Point::AfterPreamble)), "http_protocol_error").await;
    for_all(streamed(), || fault(Fault::BadJson, Some(Point::AfterPreamble)), "malformed_response").await;
    for_all(streamed(), || fault(Fault::BadSse, Some(Point::AfterPreamble)), "malformed_response").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overload_inside_of_a_stream_before_content_is_passed_over() {
    let rule = || Rule {
        error: Some(ErrorSpec { status: Some(529), kind: Some("overloaded_error".into()), ..ErrorSpec::default() }),
        ..fault(Fault::ErrorInStream, None)
    };
    join_all(streamed().into_iter().map(|pair| async move {
        let lab = lab(first(rule())).await;
        let world = World::two(pair, &lab).await;
        let reply = world.client().await.turn(pair).await;
        assert_said(pair, &reply, WORDS);
        assert_eq!(world.until_at_rest().await["model_overloaded"], 1, "{pair:?}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_answer_that_breaks_off_or_is_no_json_is_asked_for_elsewhere() {
    let plain = || pairs().into_iter().filter(|pair| !pair.stream).collect::<Vec<_>>();
    for_all(plain(), || fault(Fault::CloseMidStream, None), "stream_truncated").await;
    for_all(plain(), || fault(Fault::ResetMidStream, None), "connection_reset").await;
    for_all(plain(), || fault(Fault::BadJson, None), "malformed_response").await;
    for_all(plain(), || fault(Fault::BadSse, None), "malformed_response").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_every_account_fails_the_last_fault_is_shown_in_the_clients_dialect() {
    join_all(pairs().into_iter().map(|pair| async move {
        for (rule, status) in [
            (error(500, "", None), 502),
            (error(429, "", Some(77)), 429),
            (error(402, "", None), pair.of(429, 402)),
            (error(529, "overloaded_error", Some(60)), pair.of(503, 529)),
            (error(401, "", None), 502),
        ] {
            let lab = lab([rule]).await;
            let world = World::two(pair, &lab).await;
            let reply = world.client().await.turn(pair).await;
            assert_refused(pair, &reply, status);
            if status == 429 && reply.text().contains("rate") {
                assert_eq!(reply.header("retry-after"), Some("77"), "{}", reply.text());
            }
            assert_eq!(reply.header("x-should-retry").is_some(), status >= 500, "our own retries are over: {reply:?}");
            assert_eq!(lab.requests().len(), 2, "{pair:?} {status}");
            assert_eq!(world.until_at_rest().await["failover_exhausted"], 1);
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_is_not_asked_for_elsewhere_and_the_client_sees_why() {
    join_all(pairs().into_iter().map(|pair| async move {
        let spec = ErrorSpec { status: Some(422), message: Some("max_tokens is odd".into()), ..ErrorSpec::default() };
        let lab = lab([Rule { error: Some(spec), ..Rule::default() }]).await;
        let world = World::two(pair, &lab).await;
        let reply = world.client().await.turn(pair).await;
        assert!(assert_refused(pair, &reply, 422).contains("max_tokens is odd"));
        assert_eq!(lab.requests().len(), 1);
        let counters = world.until_at_rest().await;
        assert_unblamed(&counters, "a");
        assert_unblamed(&counters, "b");
    }))
    .await;
}

/// The stream breaks after two words: what the client has stays, then the error, and nobody else is asked.
async fn breaks_off(pair: Pair, rule: Rule, counter: &str) {
    let lab = lab(first(rule)).await;
    let world = World::two(pair, &lab).await;
    let reply = world.client().await.turn(pair).await;
    assert_broke_off(pair, &reply, "one two ");
    assert!(!said(pair, &reply).contains("four"), "{pair:?} {counter} {}", reply.text());
    let counters = world.until_at_rest().await;
    assert_eq!(lab.requests().len(), 1, "{pair:?} {counter}");
    assert_eq!(counters[counter], 1, "{pair:?} {counters:#}");
    assert_eq!((&counters["delivered"], &counters["undelivered"]), (&0.into(), &0.into()));
    assert_unblamed(&counters, "a");
    assert_unblamed(&counters, "b");
}

async fn all_break_off(rule: fn() -> Rule, counter: &'static str) {
    join_all(streamed().into_iter().map(|pair| breaks_off(pair, rule(), counter))).await;
}

const TWO: Option<Point> = Some(Point::AfterWords(2));

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_whose_connection_breaks_after_content_ends_as_failed() {
    all_break_off(|| fault(Fault::ResetMidStream, TWO), "connection_reset").await;
    all_break_off(|| fault(Fault::CloseMidStream, TWO), "stream_truncated").await;
    all_break_off(|| fault(Fault::RstStream, TWO), "stream_truncated").await;
    all_break_off(|| fault(Fault::BadChunk, TWO), "http_protocol_error").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_without_its_terminal_event_ends_as_failed() {
    all_break_off(|| fault(Fault::NoTerminal, TWO), "stream_truncated").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_mark_without_a_reason_to_end_is_no_success() {
    join_all(streamed().into_iter().map(|pair| async move {
        let lab = lab(first(fault(Fault::DoneWithoutFinish, None))).await;
        let world = World::two(pair, &lab).await;
        let reply = world.client().await.turn(pair).await;
        match pair.upstream {
            Dialect::Chat => {
                assert_broke_off(pair, &reply, WORDS);
                assert_eq!(world.until_at_rest().await["stream_truncated"], 1, "{pair:?}");
            }
            // Its event is the protocol's own end, whatever came before it; Gemini has no mark but the reason.
            Dialect::Responses | Dialect::Messages | Dialect::Gemini => {}
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_with_bytes_that_are_not_the_protocol_ends_as_failed() {
    all_break_off(|| fault(Fault::BadJson, TWO), "malformed_response").await;
    all_break_off(|| fault(Fault::BadSse, TWO), "malformed_response").await;
    let oversized = || Rule { fault_bytes: Some(17 << 20), ..fault(Fault::OversizedEvent, TWO) };
    for pair in streamed() {
        breaks_off(pair, oversized(), "malformed_response").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_event_after_content_ends_the_stream_as_failed() {
    let rule = || Rule {
        error: Some(ErrorSpec { status: Some(500), message: Some("It broke.".into()), ..ErrorSpec::default() }),
        ..fault(Fault::ErrorInStream, TWO)
    };
    all_break_off(rule, "upstream_internal").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_route_serves_when_the_first_upstream_is_down() {
    let [down, up] = [lab([error(503, "", None)]).await, lab([good()]).await];
    let ups = [Up::at(Dialect::Chat, &down), Up::at(Dialect::Messages, &up)];
    // Each turn shall meet it: the endpoint is not ejected.
    let world = World::of(&Plan::over(ups).tuning("breaker_faults = 1000")).await;
    for pair in pairs() {
        let reply = world.client().await.turn(pair).await;
        assert_said(pair, &reply, WORDS);
        assert_eq!(reply.header("x-turnkeep-attempts"), Some("2"));
    }
    assert_eq!((down.requests().len(), up.requests().len()), (32, 32));
    assert_unblamed(&world.until_at_rest().await, "a");
}
