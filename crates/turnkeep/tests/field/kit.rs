//! Short words for what these tests say often: rules that refuse, numbers that make times short, accounts by their id.

use crate::support::client::Client;
use crate::support::world::Plan;
use crate::support::*;
use futures_util::future::join_all;
use serde_json::Value;
use turnkeep_base::Price;
use turnkeep_lab::Lab;

/// What a good answer says.
pub const WORDS: &str = "one two three four";

/// Retries come at once, and as many as a test asks for.
pub const QUICK: &str = "backoff = \"1ms\"\nlongest_backoff = \"1ms\"\nretries_per_second = 1000.0\n";

/// In every client dialect, on every kind of upstream, streamed and plain by turns, at once.
pub async fn each(test: impl AsyncFn(Pair)) {
    join_all(dialects::covering().into_iter().map(|pair| test(pair))).await;
}

/// The streamed ones.
pub async fn each_streamed(test: impl AsyncFn(Pair)) {
    join_all(dialects::streamed().into_iter().map(|pair| test(pair))).await;
}

/// Those that are not streamed.
pub async fn each_plain(test: impl AsyncFn(Pair)) {
    join_all(pairs().into_iter().filter(|pair| !pair.stream).map(|pair| test(pair))).await;
}

/// A whole answer.
pub fn good() -> Rule {
    saying(WORDS)
}

/// A whole answer of these words.
pub fn saying(words: &str) -> Rule {
    Rule { text: Some(words.into()), ..Rule::default() }
}

/// An error of this status in the dialect's usual words.
pub fn error(status: u16) -> Rule {
    Rule { error: Some(ErrorSpec { status: Some(status), ..ErrorSpec::default() }), ..Rule::default() }
}

/// An error of this status that says this.
pub fn error_saying(status: u16, message: &str) -> Rule {
    let message = Some(message.to_owned());
    Rule { error: Some(ErrorSpec { status: Some(status), message, ..ErrorSpec::default() }), ..Rule::default() }
}

/// A rate limit that ends in so many seconds.
pub fn limited(seconds: u64) -> Rule {
    let retry_after = Some(seconds);
    Rule { error: Some(ErrorSpec { status: Some(429), retry_after, ..ErrorSpec::default() }), ..Rule::default() }
}

/// A fault, at its usual place or another.
pub fn fault(fault: Fault, at: Option<Point>) -> Rule {
    Rule { fault: Some(fault), fault_at: at, ..good() }
}

/// Only so often.
pub fn times(times: u32, rule: Rule) -> Rule {
    Rule { times: Some(times), ..rule }
}

/// Only for this account.
pub fn of(account: &str, rule: Rule) -> Rule {
    Rule { account: Some(format!("secret-{account}")), ..rule }
}

/// A whole answer that waits until a gate is released.
pub fn held(gate: &str) -> Rule {
    Rule { gate: Some(gate.into()), ..good() }
}

/// The account of this id, as in `up0/a`.
pub fn account<'a>(counters: &'a Value, id: &str) -> &'a Value {
    counters["accounts"].as_array().unwrap().iter().find(|account| account["id"] == id).expect("the account")
}

/// Asserts that an account was blamed for nothing.
pub fn assert_unblamed(counters: &Value, id: &str) {
    let account = account(counters, id);
    assert_eq!((&account["status"], &account["budget_used"]), (&"active".into(), &0.into()), "{account}");
    assert_eq!(account["cooldowns"].as_array().unwrap().len(), 0, "{account}");
}

/// The seconds that a refusal asks to wait.
pub fn wait_of(reply: &Reply) -> u64 {
    reply.header("retry-after").unwrap().parse().unwrap()
}

/// The accounts that were asked, in order.
pub fn asked(lab: &Lab) -> Vec<String> {
    lab.requests().into_iter().map(|request| request.account.unwrap()).collect()
}

/// A turn of these words.
pub async fn turn_saying(world: &World, pair: Pair, words: &str) -> Reply {
    let mut client = world.client().await;
    client.ask_with(pair, &[], dialects::saying(pair, words).to_string().as_bytes()).await;
    client.reply().await
}

/// A turn of the usual words.
pub async fn turn(world: &World, pair: Pair) -> Reply {
    world.client().await.turn(pair).await
}

/// A turn of the usual words in a conversation of its own, which no other turn binds to an account.
pub async fn turn_of(world: &World, pair: Pair, conversation: usize) -> Reply {
    world.client().await.turn_of(pair, conversation).await
}

/// What a GET says, without a key.
pub async fn get(world: &World, path: &str) -> Reply {
    let mut client = world.client().await;
    client.write(&client::request_bytes("GET", path, &[("authorization", "")], b"")).await;
    client.reply().await
}

/// The secret of the key that [`priced`] adds.
const LIMITED: &str = "a-key-with-limits";

/// The prices of [`priced`], in billionths of a dollar for one token.
pub const PRICES: Price = Price { input: 1_000_000, output: 2_000_000, cache_read: 100_000, cache_write: 1_250_000 };

/// A gateway over this lab whose model has a price, with a key named `limited` that has these lines.
pub fn priced(pair: Pair, lab: &Lab, lines: &str) -> Plan {
    let model = "[[models]]\nname = \"m\"\nroutes = [{ upstream = \"up0\", model = \"upstream-m\" }]\n\
                 price = { input = 1000, output = 2000, cache_read = 100, cache_write = 1250 }\n";
    let more = format!("[[keys]]\nname = \"limited\"\nsecret = {LIMITED:?}\n{lines}\n");
    Plan { more, ..Plan::over([Up::at(pair.upstream, lab).slots(1_000)]).models(model) }
}

/// Sends a turn of the usual words by the limited key, with more headers.
pub async fn send(world: &World, pair: Pair, headers: &[(&str, &str)]) -> Client {
    let mut client = world.client().await;
    let bearer = format!("Bearer {LIMITED}");
    let mut all = vec![("authorization", bearer.as_str())];
    all.extend_from_slice(headers);
    client.ask_with(pair, &all, request(pair).to_string().as_bytes()).await;
    client
}

/// Waits until no turn of the limited key runs, and gives what it has used.
pub async fn limited_at_rest(world: &World) -> Value {
    let find = |counters: &Value| {
        let callers = counters["callers"].as_array().unwrap();
        callers.iter().find(|caller| caller["name"] == "limited").expect("the caller").clone()
    };
    find(&world.until("rest of the key", |counters| find(counters)["in_flight"] == 0).await)
}

/// Dollars as they are shown, in whole billionths.
pub fn nano(usd: &Value) -> u64 {
    (usd.as_f64().unwrap() * 1e9).round() as u64
}
