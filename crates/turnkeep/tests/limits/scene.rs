//! A gateway whose callers have limits, and turns by their keys.

use crate::support::client::Client;
use crate::support::world::Plan;
use crate::support::*;
use serde_json::Value;

/// The secret of the key whose limits a test is about.
pub const LIMITED: &str = "a-key-with-limits";

/// Every client dialect, each over another upstream, streamed and not.
pub fn ways() -> [Pair; 4] {
    [
        Pair { client: Dialect::Chat, upstream: Dialect::Chat, stream: true },
        Pair { client: Dialect::Messages, upstream: Dialect::Messages, stream: false },
        Pair { client: Dialect::Responses, upstream: Dialect::Gemini, stream: false },
        Pair { client: Dialect::Gemini, upstream: Dialect::Responses, stream: true },
    ]
}

/// A price for the model `m`, in dollars per million tokens: a thousand tokens in cost a dollar, a thousand out two.
pub const PRICE: &str = "price = { input = 1000, output = 2000 }";

/// A gateway over this lab, with a key that has these lines.
pub fn plan(pair: Pair, lab: &turnkeep_lab::Lab, lines: &str, model_lines: &str) -> Plan {
    let model = "[[models]]\nname = \"m\"\nroutes = [{ upstream = \"up0\", model = \"upstream-m\" }]\n";
    let key = format!("[[keys]]\nname = \"limited\"\nsecret = {LIMITED:?}\n{lines}\n");
    let plan = Plan::over([Up::at(pair.upstream, lab).slots(1_000)]).models(&format!("{model}{model_lines}\n"));
    Plan { more: key, ..plan }
}

/// Sends a turn by a key, with more headers.
pub async fn send(world: &World, pair: Pair, headers: &[(&str, &str)], body: &Value) -> Client {
    let mut client = world.client().await;
    let bearer = format!("Bearer {LIMITED}");
    let mut all = vec![("authorization", bearer.as_str())];
    all.extend_from_slice(headers);
    client.ask_with(pair, &all, body.to_string().as_bytes()).await;
    client
}

/// A turn by the limited key.
pub async fn turn(world: &World, pair: Pair) -> Reply {
    turn_of(world, pair, &request(pair)).await
}

/// A turn by the limited key, of these words.
pub async fn turn_of(world: &World, pair: Pair, body: &Value) -> Reply {
    send(world, pair, &[], body).await.reply().await
}

/// Held at this gate before its first byte.
pub fn held(gate: &str) -> Rule {
    Rule { gate: Some(gate.into()), ..Rule::default() }
}

/// Answers that report so many tokens.
pub fn using(prompt: u64, completion: u64) -> Rule {
    let usage = UsageSpec { prompt: Some(prompt), completion: Some(completion), ..UsageSpec::default() };
    Rule { usage, ..Rule::default() }
}

/// A caller in the counters.
pub fn caller<'a>(counters: &'a Value, name: &str) -> &'a Value {
    counters["callers"].as_array().unwrap().iter().find(|caller| caller["name"] == name).expect("the caller")
}

/// Waits until no turn of the limited key runs, and gives what it has used.
pub async fn at_rest(world: &World) -> Value {
    let counters = world.until("rest of the caller", |counters| caller(counters, "limited")["in_flight"] == 0).await;
    caller(&counters, "limited").clone()
}

/// A number in a header.
pub fn number(reply: &Reply, name: &str) -> f64 {
    reply.header(name).unwrap_or_else(|| panic!("{name} is missing: {reply:?}")).parse().unwrap()
}
