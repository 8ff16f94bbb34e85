//! The response cache: only whole answers, and the same request however its JSON is written.

use crate::kit::*;
use crate::support::client::turn_bytes;
use crate::support::dialects::{assert_refused, assert_said};
use crate::support::world::Plan;
use crate::support::{Dialect, Pair, Reply, Rule, Up, World, lab};
use turnkeep_lab::Lab;

async fn caching(pair: Pair, lab: &Lab) -> World {
    let model = "[[models]]\nname = \"m\"\nroutes = [{ upstream = \"up0\", model = \"upstream-m\" }]\ncache = { ttl = \"1h\" }\n";
    World::of(&Plan::over([Up::at(pair.upstream, lab)]).models(model).tuning("attempts = 1")).await
}

/// A turn of this body, and its reply once the gateway has closed it.
async fn closed(world: &World, pair: Pair, body: &str) -> Reply {
    let mut client = world.client().await;
    client.write(&turn_bytes(pair, &[], body.as_bytes())).await;
    let reply = client.reply().await;
    world.until("closed", |counters| counters["now"]["turns_open"] == 0).await;
    let stored = |counters: &serde_json::Value| counters["delivered"].as_u64() >= Some(1);
    if reply.status == 200 {
        world.until("arrived", stored).await;
    }
    reply
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_an_error_nor_an_answer_cut_at_its_length_is_given_again() {
    each(async |pair| {
        let cut = Rule { finish: Some("length".into()), ..saying("one two") };
        let lab = lab([times(1, error(400)), times(2, cut), good()]).await;
        let world = caching(pair, &lab).await;
        let body = crate::support::request(pair).to_string();
        assert_refused(pair, &closed(&world, pair, &body).await, 400);
        for _ in 0..2 {
            assert_eq!(crate::support::said(pair, &closed(&world, pair, &body).await).trim(), "one two", "{pair:?}");
        }
        assert_said(pair, &closed(&world, pair, &body).await, WORDS);
        world.until("stored", |counters| counters["cache"]["stores"] == 1).await;
        assert_said(pair, &closed(&world, pair, &body).await, WORDS);
        assert_eq!((lab.requests().len(), &world.counters().await["cache"]["hits"]), (4, &1.into()), "{pair:?}");
    })
    .await;
}

/// One request, written in two ways.
fn two_orders(pair: Pair) -> [String; 2] {
    let stream = pair.stream;
    let message = r#"{"role":"user","content":"Hello"}"#;
    let turned = r#"{"content":"Hello", "role":"user"}"#;
    let [list, limit] = match pair.client {
        Dialect::Chat | Dialect::Messages => ["messages", "max_tokens"],
        Dialect::Responses => ["input", "max_output_tokens"],
        Dialect::Gemini => {
            return [
                r#"{"model":"m","contents":[{"role":"user","parts":[{"text":"Hello"}]}],"generationConfig":{"temperature":0.5,"maxOutputTokens":100}}"#,
                r#"{ "generationConfig":{ "maxOutputTokens":100, "temperature":0.5}, "contents":[ {"parts":[ {"text":"Hello"} ], "role":"user"} ],"model":"m"}"#,
            ]
            .map(str::to_owned);
        }
    };
    [
        format!(r#"{{"model":"m","{limit}":100,"stream":{stream},"{list}":[{message}],"temperature":0.5}}"#),
        format!(r#"{{ "temperature": 0.5, "{list}": [ {turned} ], "stream":{stream}, "{limit}":100, "model":"m"}}"#),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_order_of_the_keys_in_a_request_makes_no_other_request_of_it() {
    each(async |pair| {
        let lab = lab([good()]).await;
        let world = caching(pair, &lab).await;
        let [one, other] = two_orders(pair);
        assert_said(pair, &closed(&world, pair, &one).await, WORDS);
        world.until("stored", |counters| counters["cache"]["stores"] == 1).await;
        let again = closed(&world, pair, &other).await;
        assert_said(pair, &again, WORDS);
        assert_eq!((lab.requests().len(), &world.counters().await["cache"]["hits"]), (1, &1.into()), "{pair:?}");
        // The answer says what it used, as it did the first time.
        assert!(again.header("x-turnkeep-cache") == Some("hit"), "{again:?}");
    })
    .await;
}
