//! Gemini's other form of a stream: without `alt=sse` the answer is one JSON array, whose elements come as they are made.
//! It is one whole document however it ends, also where it failed.

use crate::support::client::{Client, request_bytes};
use crate::support::dialects::{assert_refused, body_of};
use crate::support::world::assert_unblamed;
use crate::support::*;
use futures_util::future::join_all;
use serde_json::Value;

const WORDS: &str = "one two three four";

/// A client of the form, over every kind of upstream.
fn ways() -> [Pair; 4] {
    Dialect::ALL.map(|upstream| Pair { client: Dialect::Gemini, upstream, stream: true })
}

fn good() -> Rule {
    Rule { text: Some(WORDS.into()), ..Rule::default() }
}

fn times(times: u32, rule: Rule) -> Rule {
    Rule { times: Some(times), ..rule }
}

async fn ask(client: &mut Client, pair: Pair) {
    let body = body_of(pair, request(pair));
    client.write(&request_bytes("POST", "/v1beta/models/m:streamGenerateContent", &[], body.as_bytes())).await;
}

async fn turn(world: &World, pair: Pair) -> Reply {
    let mut client = world.client().await;
    ask(&mut client, pair).await;
    client.reply().await
}

/// The elements of an answer, which is one whole document.
fn elements(reply: &Reply) -> Vec<Value> {
    assert_eq!(reply.header("content-type"), Some("application/json"), "{reply:?}");
    reply.json().as_array().unwrap_or_else(|| panic!("no array: {}", reply.text())).clone()
}

fn text(elements: &[Value]) -> String {
    let parts = elements.iter().flat_map(|element| element["candidates"][0]["content"]["parts"].as_array());
    parts.flatten().filter_map(|part| part["text"].as_str()).collect()
}

fn assert_whole(pair: Pair, reply: &Reply) {
    assert_eq!(reply.status, 200, "{pair:?} {}", reply.text());
    let elements = elements(reply);
    assert_eq!(text(&elements), WORDS, "{pair:?} {}", reply.text());
    assert!(elements.len() > 2, "{pair:?}: it comes in pieces: {}", reply.text());
    assert!(elements.iter().all(|element| element["error"].is_null()), "{pair:?} {}", reply.text());
    let last = elements.last().unwrap();
    assert_eq!(last["candidates"][0]["finishReason"], "STOP", "{pair:?} {}", reply.text());
    assert!(last["usageMetadata"]["totalTokenCount"].as_u64() > Some(0), "{pair:?} {}", reply.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_array_brings_the_whole_answer_and_its_attempt_is_exact() {
    join_all(ways().map(|pair| async move {
        let lab = lab([good()]).await;
        let world = World::simple(pair, &lab).await;
        assert_whole(pair, &turn(&world, pair).await);
        world.until("delivery", |counters| counters["delivered"] == 1).await;
        let entries = world.into_ledger().await;
        let closed = entries[0].closed.as_ref().unwrap();
        assert_eq!((&*entries[0].dialect, &*closed.outcome, closed.exact), ("gemini", "completed", true), "{pair:?}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_before_the_first_element_is_repaired_or_told_as_a_plain_error() {
    join_all(ways().map(|pair| async move {
        let error = |status| ErrorSpec { status: Some(status), retry_after: Some(60), ..ErrorSpec::default() };
        let failing = [
            Rule { error: Some(error(429)), ..Rule::default() },
            Rule { fault: Some(Fault::CloseMidStream), fault_at: Some(Point::AfterPreamble), ..good() },
            Rule { fault: Some(Fault::BadJson), fault_at: Some(Point::AfterPreamble), ..good() },
        ];
        for rule in failing {
            let lab = lab([times(1, rule), good()]).await;
            let world = World::two(pair, &lab).await;
            let reply = turn(&world, pair).await;
            assert_whole(pair, &reply);
            assert_eq!(reply.header("x-turnkeep-attempts"), Some("2"), "{pair:?}");
        }
        let lab = lab([Rule { error: Some(error(429)), ..Rule::default() }]).await;
        let world = World::two(pair, &lab).await;
        assert_refused(pair, &turn(&world, pair).await, 429);
        assert_eq!(lab.requests().len(), 2, "{pair:?}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_in_the_middle_is_the_arrays_last_element_and_the_document_is_whole() {
    join_all(ways().map(|pair| async move {
        for fault in [Fault::CloseMidStream, Fault::ResetMidStream, Fault::NoTerminal, Fault::BadJson] {
            let lab = lab([Rule { fault: Some(fault), fault_at: Some(Point::AfterWords(2)), ..good() }]).await;
            let world = World::two(pair, &lab).await;
            let reply = turn(&world, pair).await;
            assert_eq!(reply.status, 200, "{pair:?} {}", reply.text());
            let elements = elements(&reply);
            let (last, before) = elements.split_last().unwrap();
            assert!(text(before).starts_with("one two "), "{pair:?} {fault:?} {}", reply.text());
            assert_eq!(last["error"]["code"], 502, "{pair:?} {fault:?} {}", reply.text());
            assert!(last["error"]["status"].is_string(), "{pair:?} {fault:?} {}", reply.text());
            assert!(!reply.text().contains("finishReason"), "{pair:?} {fault:?} {}", reply.text());
            assert_eq!(lab.requests().len(), 1, "{pair:?} {fault:?}: nobody else is asked");
            let counters = world.until_at_rest().await;
            assert_eq!((&counters["delivered"], &counters["undelivered"]), (&0.into(), &0.into()), "{pair:?}");
            assert_unblamed(&counters, "a");
            assert_unblamed(&counters, "b");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_in_the_middle_of_an_array_ends_the_upstreams_work() {
    for how in Leave::BOTH {
        join_all(ways().map(|pair| async move {
            let rule = Rule { gate: Some("held".into()), gate_at: Some(Point::AfterWords(2)), ..good() };
            let lab = lab([rule]).await;
            let world = World::simple(pair, &lab).await;
            let mut client = world.client().await;
            ask(&mut client, pair).await;
            // The first elements come before the last is made.
            client.until("two ").await;
            soon(lab.wait_at_gate("held", 1)).await;
            client.leave(how).await;
            soon(lab.wait_aborted(1)).await;
            world.until("leaving", |counters| counters["client_gone_mid_answer"] == 1).await;
            let counters = world.until_at_rest().await;
            assert_unblamed(&counters, "a");
            let entries = world.into_ledger().await;
            let closed = entries[0].closed.as_ref().unwrap();
            assert_eq!((entries.len(), &*closed.outcome, closed.exact), (1, "interrupted", false), "{pair:?}");
        }))
        .await;
    }
}
