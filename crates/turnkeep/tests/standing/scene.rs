//! What several of these tests do: refuse by rule, ask for a certain model, keep asking until something has come about,
//! and read what the operator is shown of an account.

use crate::support::client::Client;
use crate::support::dialects::saying;
use crate::support::world::{BOUND, account};
use crate::support::*;
use serde_json::Value;
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Every client dialect over two kinds of upstream, where streaming makes no difference; each is streamed once.
pub fn ways() -> [Pair; 8] {
    let way = |client, upstream, stream| Pair { client, upstream, stream };
    [
        way(Dialect::Chat, Dialect::Chat, true),
        way(Dialect::Chat, Dialect::Messages, false),
        way(Dialect::Messages, Dialect::Chat, false),
        way(Dialect::Responses, Dialect::Responses, true),
        way(Dialect::Responses, Dialect::Gemini, false),
        way(Dialect::Gemini, Dialect::Gemini, true),
        way(Dialect::Gemini, Dialect::Responses, false),
        way(Dialect::Messages, Dialect::Messages, true),
    ]
}

/// Turns of every client dialect to the upstream that each is at home at.
pub fn plain_ways() -> [Pair; 4] {
    Dialect::ALL.map(|dialect| Pair { client: dialect, upstream: dialect, stream: true })
}

/// A refusal of this status.
pub fn refusing(status: u16) -> Rule {
    Rule { error: Some(ErrorSpec { status: Some(status), ..ErrorSpec::default() }), ..Rule::default() }
}

/// A refusal of this status that says how long to wait.
pub fn waiting(status: u16, retry_after: u64) -> Rule {
    let error = ErrorSpec { status: Some(status), retry_after: Some(retry_after), ..ErrorSpec::default() };
    Rule { error: Some(error), ..Rule::default() }
}

/// Only of this account.
pub fn of(name: &str, rule: Rule) -> Rule {
    Rule { account: Some(format!("secret-{name}")), ..rule }
}

/// So many times.
pub fn times(count: u32, rule: Rule) -> Rule {
    Rule { times: Some(count), ..rule }
}

/// Held at this gate before its first byte.
pub fn held(gate: &str, rule: Rule) -> Rule {
    Rule { gate: Some(gate.into()), ..rule }
}

/// Sends a turn for a model by a caller's key.
pub async fn send(world: &World, pair: Pair, model: &str, words: &str, key: &str) -> Client {
    let mut body = saying(pair, words);
    body["model"] = model.into();
    let bearer = format!("Bearer {key}");
    let mut client = world.client().await;
    client.ask_with(pair, &[("authorization", &bearer)], body.to_string().as_bytes()).await;
    client
}

/// A turn for a model.
pub async fn turn_for(world: &World, pair: Pair, model: &str) -> Reply {
    send(world, pair, model, "Hello there", KEY).await.reply().await
}

/// Asks again and again, each time in a conversation of its own, which any account may get, looking at each reply, until
/// something has come about.
pub async fn keep_asking(world: &World, pair: Pair, each: impl Fn(&Reply), reached: impl AsyncFn() -> bool) -> usize {
    let mut pace = tokio::time::interval(Duration::from_millis(10));
    let end = tokio::time::Instant::now() + BOUND;
    for turns in 0.. {
        if reached().await {
            return turns;
        }
        assert!(tokio::time::Instant::now() < end, "it did not come about: {:#}", world.counters().await);
        pace.tick().await;
        each(&world.client().await.turn_of(pair, turns).await);
    }
    unreachable!("the loop ends by its bound")
}

/// Every reply is a success.
pub fn served(reply: &Reply) {
    assert_eq!(reply.status, 200, "{}", reply.text());
}

/// An account's status as the operator is shown it.
pub async fn status(world: &World, name: &str) -> String {
    account(&world.counters().await, name)["status"].as_str().unwrap().to_owned()
}

/// Seconds from now until a moment as it is shown.
pub fn seconds_until(shown: &Value) -> i64 {
    let at = OffsetDateTime::parse(shown.as_str().unwrap(), &Rfc3339).unwrap();
    (at - OffsetDateTime::now_utc()).whole_seconds()
}

/// An account's cooldowns: scope, fault, model, seconds left; in order of scope.
pub fn cooldowns(counters: &Value, name: &str) -> Vec<(String, String, String, i64)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = account(counters, name)["cooldowns"].as_array().unwrap().iter();
    let mut all: Vec<_> = entries
        .map(|entry| {
            (text(&entry["scope"]), text(&entry["fault"]), text(&entry["model"]), seconds_until(&entry["until"]))
        })
        .collect();
    all.sort();
    all
}

/// Asserts that a time that was stated a few seconds ago at most is left but for those.
pub fn assert_left(left: i64, stated: i64) {
    assert!((stated - 10..=stated).contains(&left), "{left} s are left of {stated} s");
}

/// What a command says, once it tells of something; proofs are written down in the background.
pub async fn told(world: &World, words: &[&str], something: &str) -> String {
    let mut pace = tokio::time::interval(Duration::from_millis(20));
    let end = tokio::time::Instant::now() + BOUND;
    loop {
        pace.tick().await;
        let told = world.command(words).await;
        if told.contains(something) {
            return told;
        }
        assert!(tokio::time::Instant::now() < end, "{something:?} is never told:\n{told}");
    }
}
