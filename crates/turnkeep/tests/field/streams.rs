//! Streams that fail: repaired before content, told truthfully after it, and never taken for a success.

use crate::kit::*;
use crate::support::dialects::{assert_begins_once, assert_broke_off, assert_refused, assert_said};
use crate::support::world::Plan;
use crate::support::{ErrorSpec, Fault, Pair, Point, Rule, Up, World, lab, soon};
use turnkeep_base::Dialect;

const PREAMBLE: Option<Point> = Some(Point::AfterPreamble);

/// An error event inside of a stream.
fn inside(status: u16, message: &str, at: Option<Point>) -> Rule {
    let error = ErrorSpec { status: Some(status), message: Some(message.into()), ..ErrorSpec::default() };
    Rule { error: Some(error), ..fault(Fault::ErrorInStream, at) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_fails_before_content_is_asked_for_again_though_there_is_nobody_else() {
    each_streamed(async |pair| {
        for rule in [fault(Fault::CloseMidStream, PREAMBLE), inside(529, "Overloaded", PREAMBLE)] {
            let lab = lab([times(1, rule), good()]).await;
            let numbers = format!("{QUICK}overload_cooldown = \"100ms\"");
            let world = World::of(&Plan::over([Up::at(pair.upstream, &lab)]).tuning(&numbers)).await;
            assert_said(pair, &turn(&world, pair).await, WORDS);
            assert_eq!(lab.requests().len(), 2, "{pair:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overload_inside_of_a_200_is_no_success_and_the_other_account_serves() {
    each_streamed(async |pair| {
        let lab = lab([times(1, inside(529, "Overloaded", PREAMBLE)), good()]).await;
        let up = Up::at(pair.upstream, &lab).accounts(&["a", "b"]);
        let world =
            World::of(&Plan::over([up]).tuning("overload_cooldown = \"100ms\"\nmax_cooling_wait = \"0ms\"")).await;
        assert_said(pair, &turn(&world, pair).await, WORDS);
        let counters = world.until_at_rest().await;
        assert_eq!(counters["model_overloaded"], 1, "{pair:?}");
        let ledger = world.into_ledger().await;
        let outcomes: Vec<&str> = ledger.iter().map(|entry| &*entry.closed.as_ref().unwrap().outcome).collect();
        assert_eq!(outcomes, ["model_overloaded", "completed"], "{pair:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_failed_everywhere_before_content_is_an_error_and_no_empty_answer() {
    each_streamed(async |pair| {
        for (rule, status) in [
            (inside(500, "It broke.", PREAMBLE), 502),
            (fault(Fault::NoTerminal, PREAMBLE), 502),
            (fault(Fault::CloseMidStream, PREAMBLE), 502),
        ] {
            let lab = lab([rule]).await;
            let world = World::of(&Plan::over([Up::at(pair.upstream, &lab)]).tuning(QUICK)).await;
            let reply = turn(&world, pair).await;
            assert_refused(pair, &reply, status);
            assert_ne!(reply.json()["error"]["type"], "invalid_request_error", "{pair:?} {}", reply.text());
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_cut_after_content_is_told_as_the_upstreams_failure_and_not_as_the_clients_mistake() {
    each_streamed(async |pair| {
        for faulty in [Fault::CloseMidStream, Fault::ResetMidStream, Fault::NoTerminal] {
            let lab = lab([fault(faulty, Some(Point::AfterWords(2)))]).await;
            let world = World::two(pair, &lab).await;
            let reply = turn(&world, pair).await;
            assert_broke_off(pair, &reply, "one two ");
            assert!(!reply.text().contains("invalid_request"), "{pair:?} {}", reply.text());
            assert_eq!(lab.requests().len(), 1, "what the client has is not asked for again");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_after_a_200_is_tried_elsewhere_and_both_calls_are_in_the_ledger() {
    each_streamed(async |pair| {
        let lab = lab([times(1, fault(Fault::Hang, PREAMBLE)), good()]).await;
        let up = Up::at(pair.upstream, &lab).accounts(&["a", "b"]).timeouts("first_content = \"150ms\"");
        let world = World::of(&Plan::over([up]).tuning(QUICK)).await;
        assert_said(pair, &turn(&world, pair).await, WORDS);
        soon(lab.wait_aborted(1)).await;
        world.until_at_rest().await;
        let ledger = world.into_ledger().await;
        let [silent, served] = &ledger[..] else { panic!("{ledger:?}") };
        let [silent, served] = [silent, served].map(|entry| entry.closed.as_ref().unwrap());
        assert_eq!((&*silent.outcome, silent.exact), ("upstream_stalled", false), "{pair:?}");
        assert!(silent.usage.input > 0, "{silent:?}");
        assert_eq!((&*served.outcome, served.exact), ("completed", true), "{pair:?}");
    })
    .await;
}

/// The bodies of a stream that is only an error, which names nothing but a code.
fn bare_codes(pair: Pair) -> Vec<&'static str> {
    match pair.upstream {
        Dialect::Responses => vec![
            "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\"}\n\n",
            "event: error\ndata: {\"type\":\"error\",\"code\":\"429\",\"message\":\"\"}\n\n",
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"code\":\"rate_limit_exceeded\"}}\n\n",
        ],
        Dialect::Gemini => {
            vec!["data: {\"error\":{\"status\":\"RESOURCE_EXHAUSTED\"}}\n\n", "data: {\"error\":{\"code\":429}}\n\n"]
        }
        Dialect::Chat => vec![
            "data: {\"error\":{\"code\":\"rate_limit_exceeded\"}}\n\n",
            "data: {\"error\":{\"code\":429}}\n\n",
            "data: {\"error\":{\"code\":\"429\",\"message\":\"\"}}\n\n",
        ],
        Dialect::Messages => vec![
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\"}}\n\n",
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"code\":\"rate_limit_error\"}}\n\n",
        ],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_limit_in_a_stream_that_is_only_a_code_is_known_and_the_other_account_serves() {
    each_streamed(async |pair| {
        for body in bare_codes(pair) {
            let lab = lab([times(1, Rule { raw_frames: vec![body.into()], ..Rule::default() }), good()]).await;
            let world = World::two(pair, &lab).await;
            assert_said(pair, &turn(&world, pair).await, WORDS);
            let counters = world.until_at_rest().await;
            assert_eq!(counters["rate_limited"], 1, "{pair:?} {body} {counters:#}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_route_has_begun_is_whole_and_no_time_of_the_beginning_cuts_it() {
    each_streamed(async |pair| {
        let first = lab([fault(Fault::CloseMidStream, PREAMBLE)]).await;
        let second = lab([Rule { words: Some(12), word_delay_ms: 50, ..Rule::default() }]).await;
        let ups = [&first, &second].map(|lab| Up::at(pair.upstream, lab).timeouts("total = \"450ms\""));
        let world = World::of(&Plan::over(ups).tuning(QUICK)).await;
        let reply = turn(&world, pair).await;
        assert_eq!(reply.status, 200);
        assert!(crate::support::said(pair, &reply).ends_with("word12"), "{pair:?} {}", reply.text());
        assert_begins_once(pair, &reply);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_was_opened_while_it_waited_still_fails_over_and_begins_once() {
    each_streamed(async |pair| {
        let slow = Rule { gate: Some("slow".into()), ..error(503) };
        let [first, second] = [lab([slow]).await, lab([good()]).await];
        let ups = [&first, &second].map(|lab| Up::at(pair.upstream, lab));
        let numbers = format!("{QUICK}stream_open_after = \"100ms\"");
        let world = World::of(&Plan::over(ups).tuning(&numbers)).await;
        let mut client = world.client().await;
        client.ask(pair).await;
        client.until("200 OK").await;
        first.release("slow");
        let reply = client.reply().await;
        assert_eq!(crate::support::said(pair, &reply), WORDS, "{pair:?} {}", reply.text());
        assert!(!reply.text().contains("\"error\""), "{pair:?} {}", reply.text());
        assert_begins_once(pair, &reply);
    })
    .await;
}
