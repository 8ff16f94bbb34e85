//! The response cache: exact, of its caller alone, and of whole answers only.

use crate::asking::{Asking, Takes, Way};
use crate::scene::*;
use crate::support::dialects::{assert_said, saying, warm};
use crate::support::*;
use futures_util::future::join_all;
use serde_json::{Value, json};

async fn send(place: &Place, way: Way, pair: Pair, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut asking = Asking::connect(&place.served, way, Takes::Everything).await;
    asking.ask(pair, headers, body).await;
    asking.reply().await
}

fn word(reply: &Reply) -> &str {
    reply.header("x-turnkeep-cache").unwrap()
}

/// The tokens that a plain reply reports, or that the events of a streamed one do.
fn usage(pair: Pair, reply: &Reply) -> (Option<u64>, Option<u64>) {
    let inside = ("input_tokens", "output_tokens");
    let (input, output) =
        pair.each(("prompt_tokens", "completion_tokens"), inside, inside, ("promptTokenCount", "candidatesTokenCount"));
    let mut found = (None, None);
    let mut take = |value: &Value| {
        for usage in [&value["usage"], &value["message"]["usage"], &value["response"]["usage"], &value["usageMetadata"]]
        {
            found.0 = usage[input].as_u64().or(found.0);
            found.1 = usage[output].as_u64().or(found.1);
        }
    };
    if pair.stream {
        let data = reply.text().lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|data| serde_json::from_str(data).ok()).for_each(|event: Value| take(&event));
    } else {
        take(&reply.json());
    }
    found
}

/// The usual request, with usage in streams.
fn body(pair: Pair) -> Value {
    let mut body = request(pair);
    if pair.stream && pair.client == Dialect::Chat {
        body["stream_options"] = json!({"include_usage": true});
    }
    body
}

/// The same request with its keys turned round at every depth, and other white space.
fn turned_round(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let parts = members.iter().rev().map(|(key, value)| format!("{key:?} :\n {}", turned_round(value)));
            format!("{{ {} }}", parts.collect::<Vec<_>>().join(" ,\t"))
        }
        Value::Array(values) => format!("[ {} ]", values.iter().map(turned_round).collect::<Vec<_>>().join(" , ")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_arrived_is_given_again_streamed_or_plain_with_its_usage() {
    join_all(matrix().into_iter().map(|(way, pair)| async move {
        let text = "one two three";
        let place = Place::of(way, pair, Rule { text: Some(text.into()), ..Rule::default() }).await;
        let first = send(&place, way, pair, &[], &body(pair).to_string()).await;
        assert_eq!(word(&first), "miss", "{way:?} {pair:?}");
        place.closed(1).await;
        let tokens = (Some(pair.of(100, 80)), Some(40));
        assert_eq!(usage(pair, &first), tokens, "{way:?} {pair:?} {}", first.text());
        for (turns, stream) in [(2, pair.stream), (3, !pair.stream)] {
            let again = Pair { stream, ..pair };
            let hit = send(&place, way, again, &[], &turned_round(&body(again))).await;
            assert_said(again, &hit, text);
            assert_eq!((word(&hit), usage(again, &hit)), ("hit", tokens), "{way:?} {again:?} {}", hit.text());
            assert_eq!(hit.header("x-turnkeep-attempts"), Some("0"));
            let counters = place.closed(turns).await;
            assert_eq!(ends(&counters), [turns, 0, 0, 0], "{way:?} {again:?}");
            assert_eq!(counters["cache"]["hits"], turns - 1);
            assert_eq!(commits(&counters), [1, 1, 1], "a hit writes nothing");
        }
        assert_eq!(place.lab.requests().len(), 1, "{way:?} {pair:?}");
        let entries = place.served.world.into_ledger().await;
        let ends = entries.iter().map(|entry| entry.closed.as_ref().unwrap());
        let ends: Vec<_> = ends.map(|end| (end.outcome.as_str(), end.usage.output)).collect();
        assert_eq!(ends, [("completed", 40), ("hit", 0), ("hit", 0)], "{way:?} {pair:?}: a hit is billed as a hit");
    }))
    .await;
}

/// Two of the ways, in every dialect, streamed and not.
fn some() -> Vec<(Way, Pair)> {
    matrix().into_iter().filter(|(way, _)| matches!(way, Way::Http1 | Way::H2c)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_request_asks_and_what_passes_the_cache_by_is_asked_of_the_upstream() {
    join_all(some().into_iter().map(|(way, pair)| async move {
        let place = Place::of(way, pair, Rule::default()).await;
        assert_eq!(word(&place.turn(way, pair).await), "miss");
        place.closed(1).await;
        let bypass = send(&place, way, pair, &[("x-turnkeep-cache", "bypass")], &request(pair).to_string()).await;
        assert_eq!((bypass.status, word(&bypass), place.lab.requests().len()), (200, "off", 2), "{way:?} {pair:?}");
        let mut warmer = request(pair);
        warm(pair, &mut warmer, 0.7);
        let others = [warmer, saying(pair, "Hello there!")];
        for (calls, other) in (3..).zip(others) {
            let reply = send(&place, way, pair, &[], &other.to_string()).await;
            assert_eq!((word(&reply), place.lab.requests().len()), ("miss", calls), "{way:?} {pair:?}");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_caller_and_the_many_behind_a_shared_key_get_no_cached_answer() {
    join_all(some().into_iter().map(|(way, pair)| async move {
        let place = Place::of(way, pair, Rule::default()).await;
        let mut calls = 0;
        for (secret, words) in [(KEY, ["miss", "hit"]), (OTHER, ["miss", "hit"]), (SHARED, ["off", "off"])] {
            let bearer = format!("Bearer {secret}");
            for wanted in words {
                let reply = send(&place, way, pair, &[("authorization", &bearer)], &request(pair).to_string()).await;
                calls += usize::from(wanted != "hit");
                assert_eq!((word(&reply), place.lab.requests().len()), (wanted, calls), "{way:?} {pair:?} {secret}");
                place.world().until("its end", |counters| counters["now"]["turns_open"] == 0).await;
            }
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_were_cut_refused_or_failed_are_not_stored() {
    let finish = |word: &str| Rule { finish: Some(word.into()), ..Rule::default() };
    let error = ErrorSpec { status: Some(400), ..ErrorSpec::default() };
    let broken = Rule { fault: Some(Fault::NoTerminal), ..Rule::default() };
    let failed = Rule { error: Some(error), ..Rule::default() };
    let refused = Rule { refusal: Some("I would rather not.".into()), ..Rule::default() };
    let cases = [(finish("length"), true), (refused, true), (failed, false), (broken, false)];
    for (rule, completes) in &cases {
        join_all(some().into_iter().map(|(way, pair)| async move {
            let place = Place::of(way, pair, rule.clone()).await;
            let mut calls = 0;
            for _ in 0..2 {
                let reply = place.turn(way, pair).await;
                assert_ne!(word(&reply), "hit", "{way:?} {pair:?} {rule:?}");
                let counters = place.world().until("its end", |counters| counters["now"]["turns_open"] == 0).await;
                assert_eq!(counters["cache"]["stores"], 0, "{way:?} {pair:?} {rule:?}");
                let before = std::mem::replace(&mut calls, place.lab.requests().len());
                assert!(calls > before, "{way:?} {pair:?} {rule:?}");
                if *completes {
                    assert_eq!(reply.status, 200, "{way:?} {pair:?} {rule:?}");
                }
            }
        }))
        .await;
    }
}
