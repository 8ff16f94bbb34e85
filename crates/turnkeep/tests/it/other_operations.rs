//! The older completions and embeddings: what holds of a turn of the chat holds of theirs.

use crate::support::client::{Client, request_bytes};
use crate::support::dialects::{CHAT, assert_refused};
use crate::support::world::assert_unblamed;
use crate::support::*;
use futures_util::future::join_all;
use serde_json::{Value, json};

const WORDS: &str = "one two three four";

fn good() -> Rule {
    Rule { text: Some(WORDS.into()), ..Rule::default() }
}

fn times(times: u32, rule: Rule) -> Rule {
    Rule { times: Some(times), ..rule }
}

fn limited() -> Rule {
    let error = ErrorSpec { status: Some(429), retry_after: Some(60), ..ErrorSpec::default() };
    Rule { error: Some(error), ..Rule::default() }
}

/// Every kind of upstream, streamed and not: Chat's takes completions as they are, the others get a turn.
fn ways() -> Vec<Pair> {
    dialects::pairs().into_iter().filter(|pair| pair.client == Dialect::Chat).collect()
}

async fn complete(client: &mut Client, pair: Pair) {
    let body = json!({"model": "m", "prompt": "Hello there", "max_tokens": 100, "stream": pair.stream});
    client.write(&request_bytes("POST", "/v1/completions", &[], body.to_string().as_bytes())).await;
}

async fn completion(world: &World, pair: Pair) -> Reply {
    let mut client = world.client().await;
    complete(&mut client, pair).await;
    client.reply().await
}

/// The chunks of a stream, or the one body.
fn bodies(pair: Pair, reply: &Reply) -> Vec<Value> {
    if !pair.stream {
        return vec![reply.json()];
    }
    let data = reply.text().lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn completed(bodies: &[Value]) -> String {
    bodies.iter().filter_map(|body| body["choices"][0]["text"].as_str()).collect()
}

fn assert_completed(pair: Pair, reply: &Reply) {
    assert_eq!(reply.status, 200, "{pair:?} {}", reply.text());
    let bodies = bodies(pair, reply);
    assert_eq!(completed(&bodies), WORDS, "{pair:?} {}", reply.text());
    assert!(bodies.iter().all(|body| body["object"] == "text_completion"), "{pair:?} {}", reply.text());
    assert!(bodies.iter().any(|body| body["choices"][0]["finish_reason"] == "stop"), "{pair:?} {}", reply.text());
    assert_eq!(reply.text().ends_with("data: [DONE]\n\n"), pair.stream, "{pair:?} {}", reply.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completion_is_answered_in_its_own_form_and_written_down() {
    join_all(ways().into_iter().map(|pair| async move {
        let usage = UsageSpec { prompt: Some(31), completion: Some(7), ..UsageSpec::default() };
        let lab = lab([Rule { usage, ..good() }]).await;
        let world = World::simple(pair, &lab).await;
        assert_completed(pair, &completion(&world, pair).await);
        let own = pair.upstream == Dialect::Chat;
        assert_eq!(lab.requests()[0].target.ends_with("/v1/completions"), own, "{pair:?}");
        world.until("delivery", |counters| counters["delivered"] == 1).await;
        let entries = world.into_ledger().await;
        let closed = entries[0].closed.as_ref().unwrap();
        let told = (closed.outcome.as_str(), closed.exact, closed.usage.input, closed.usage.output);
        assert_eq!((entries.len(), &*entries[0].model, told), (1, "m", ("completed", true, 31, 7)), "{pair:?}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completion_fails_over_before_its_text_and_breaks_off_after_it() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = lab([times(1, limited()), good()]).await;
        let world = World::two(pair, &lab).await;
        let reply = completion(&world, pair).await;
        assert_completed(pair, &reply);
        assert_eq!(reply.header("x-turnkeep-attempts"), Some("2"), "{pair:?}");
        lab.set_script(Script::of([limited()]));
        assert_refused(CHAT, &completion(&world, pair).await, 429);
        if !pair.stream {
            return;
        }
        let broken = Rule { fault: Some(Fault::CloseMidStream), fault_at: Some(Point::AfterWords(2)), ..good() };
        let lab = crate::support::lab([broken]).await;
        let world = World::two(pair, &lab).await;
        let reply = completion(&world, pair).await;
        let bodies = bodies(pair, &reply);
        let (last, before) = bodies.split_last().unwrap();
        assert!(completed(before).starts_with("one two "), "{pair:?} {}", reply.text());
        assert!(last["error"]["message"].is_string(), "{pair:?} {}", reply.text());
        let text = reply.text();
        assert!(!text.contains("[DONE]") && !text.contains("\"finish_reason\":\""), "{pair:?} {text}");
        assert_eq!(lab.requests().len(), 1, "{pair:?}");
        assert_unblamed(&world.until_at_rest().await, "a");
    }))
    .await;
}

/// Waits until the one client's leaving is noticed, and looks at what is left of it.
async fn assert_left(world: World, lab: turnkeep_lab::Lab, counter: &str, case: &str) {
    soon(lab.wait_aborted(1)).await;
    world.until(counter, |counters| counters[counter] == 1).await;
    let counters = world.until_at_rest().await;
    assert_unblamed(&counters, "a");
    assert_eq!((&counters["client_gone"], &counters["delivered"]), (&1.into(), &0.into()), "{case} {counters:#}");
    let entries = world.into_ledger().await;
    let closed = entries[0].closed.as_ref().unwrap();
    assert_eq!((entries.len(), &*closed.outcome, closed.exact), (1, "interrupted", false), "{case}");
    assert!(closed.usage.total_input() > 0, "{case} {closed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_a_completion_ends_the_upstreams_work() {
    for how in Leave::BOTH {
        join_all(ways().into_iter().map(|pair| async move {
            let middle = Some(Point::AfterWords(2)).filter(|_| pair.stream);
            let lab = lab([Rule { gate: Some("held".into()), gate_at: middle, ..good() }]).await;
            let world = World::simple(pair, &lab).await;
            let mut client = world.client().await;
            complete(&mut client, pair).await;
            if pair.stream {
                client.until("two ").await;
            }
            soon(lab.wait_at_gate("held", 1)).await;
            client.leave(how).await;
            let counter = if pair.stream { "client_gone_mid_answer" } else { "client_gone_before_answer" };
            assert_left(world, lab, counter, &format!("{pair:?} {how:?}")).await;
        }))
        .await;
    }
}

async fn embed(client: &mut Client, format: &str) {
    let body = json!({"model": "m", "input": ["Hello there", "and you"], "encoding_format": format});
    client.write(&request_bytes("POST", "/v1/embeddings", &[], body.to_string().as_bytes())).await;
}

async fn embedding(world: &World, format: &str) -> Reply {
    let mut client = world.client().await;
    embed(&mut client, format).await;
    client.reply().await
}

/// The upstreams that make embeddings.
const ABLE: [Dialect; 2] = [Dialect::Chat, Dialect::Gemini];

#[tokio::test(flavor = "multi_thread")]
async fn embeddings_come_in_order_and_their_call_is_written_down() {
    join_all(ABLE.map(|upstream| async move {
        let lab = lab([]).await;
        let world = World::over([Up::at(upstream, &lab)]).await;
        for (turns, format) in [(1, "float"), (2, "base64")] {
            let reply = embedding(&world, format).await;
            assert_eq!(reply.status, 200, "{upstream:?} {}", reply.text());
            let body = reply.json();
            let data = body["data"].as_array().unwrap();
            let indexes: Vec<_> = data.iter().map(|one| one["index"].as_u64().unwrap()).collect();
            assert_eq!((&body["object"], &*indexes), (&"list".into(), &[0, 1][..]), "{upstream:?} {body}");
            let vector = &data[0]["embedding"];
            assert_eq!((vector.is_array(), vector.is_string()), (format == "float", format == "base64"), "{body}");
            world.until("delivery", |counters| counters["delivered"] == turns).await;
        }
        let entries = world.into_ledger().await;
        assert_eq!(entries.len(), 2, "{upstream:?}");
        for entry in entries {
            let closed = entry.closed.unwrap();
            assert_eq!((&*entry.model, &*closed.outcome), ("m", "completed"), "{upstream:?}");
            assert!(closed.usage.total_input() > 0 && closed.usage.output == 0, "{upstream:?} {closed:?}");
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn embeddings_fail_over_and_go_to_nobody_who_makes_none() {
    join_all(ABLE.map(|upstream| async move {
        let unable = lab([]).await;
        for failing in [limited(), Rule { fault: Some(Fault::ResetBeforeReply), ..Rule::default() }] {
            let lab = lab([times(1, failing)]).await;
            let ups = [Up::at(Dialect::Messages, &unable), Up::at(upstream, &lab).accounts(&["a", "b"])];
            let world = World::over(ups).await;
            let reply = embedding(&world, "float").await;
            assert_eq!(reply.status, 200, "{upstream:?} {}", reply.text());
            assert_eq!(reply.header("x-turnkeep-attempts"), Some("2"), "{upstream:?}");
            lab.set_script(Script::of([limited()]));
            assert_refused(Pair { stream: false, ..CHAT }, &embedding(&world, "float").await, 429);
        }
        assert_eq!(unable.requests().len(), 0, "{upstream:?}");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_an_embedding_ends_the_upstreams_work() {
    for how in Leave::BOTH {
        join_all(ABLE.map(|upstream| async move {
            let lab = lab([Rule { gate: Some("held".into()), ..Rule::default() }]).await;
            let world = World::over([Up::at(upstream, &lab)]).await;
            let mut client = world.client().await;
            embed(&mut client, "float").await;
            soon(lab.wait_at_gate("held", 1)).await;
            client.leave(how).await;
            assert_left(world, lab, "client_gone_before_answer", &format!("{upstream:?} {how:?}")).await;
        }))
        .await;
    }
}
