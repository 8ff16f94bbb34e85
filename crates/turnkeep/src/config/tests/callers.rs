//! What a key may use, what models cost, and who may say which user stands behind a shared key.

use super::{UPSTREAM, only_error, parse};
use crate::config::CallerKey;
use turnkeep_base::Price;
use turnkeep_http::proxies::TrustedPeer;
use turnkeep_policy::limits::{Amount, Budget, Limits, Per};

fn key(lines: &str) -> String {
    format!("[[keys]]\nname = \"a\"\nsecret = {{ env = \"A\" }}\n{lines}\n")
}

fn one(lines: &str) -> CallerKey {
    parse(&key(lines)).keys.remove(0)
}

fn model(line: &str) -> String {
    format!("{UPSTREAM}[[models]]\nname = \"m\"\nroutes = [{{ upstream = \"openai\" }}]\n{line}\n")
}

fn tells(text: &str, place: &str, part: &str) {
    let (at, message) = only_error(text);
    assert!(at == place && message.contains(part), "{at}: {message}");
}

#[test]
fn a_key_has_limits_labels_and_an_end() {
    let lines = "requests_per_minute = 60\ntokens_per_minute = 400000\nmax_in_flight = 8\nshared = true\n\
                 labels = { team = \"infra\", \"cost centre\" = \"7\" }\nexpires = 2030-01-01T00:00:00+01:00\n\
                 budget = { usd = 20.25, per = \"month\" }";
    let key = one(lines);
    let limits = Limits {
        requests_per_minute: Some(60),
        tokens_per_minute: Some(400_000),
        max_in_flight: Some(8),
        budget: Some(Budget { amount: Amount::NanoUsd(20_250_000_000), per: Per::Month }),
    };
    assert_eq!(key.limits, limits);
    assert!(key.shared && key.labels["team"] == "infra" && key.labels.len() == 2);
    assert_eq!(key.expires_ms, Some(1_893_452_400_000));
    let plain = one("");
    assert!(plain.limits.is_none() && !plain.shared && plain.labels.is_empty() && plain.expires_ms.is_none());
    let tokens = Budget { amount: Amount::Tokens(5_000), per: Per::Week };
    assert_eq!(one("budget = { tokens = 5_000, per = \"week\" }").limits.budget, Some(tokens));
    assert_eq!(one("expires = \"1970-01-02\"").expires_ms, Some(86_400_000));
    assert_eq!(one("expires = 1970-01-02").expires_ms, Some(86_400_000));
}

#[test]
fn a_limit_that_is_none_is_told_with_its_place() {
    for (line, place, part) in [
        ("requests_per_minute = 0", "4:23 keys[0].requests_per_minute", "from 1"),
        ("max_in_flight = 100001", "4:17 keys[0].max_in_flight", "to 100000"),
        ("budget = 20", "4:10 keys[0].budget", "must be a table"),
        ("budget = { per = \"day\" }", "4:10 keys[0].budget", "names no amount"),
        ("budget = { usd = 1, tokens = 1, per = \"day\" }", "4:10 keys[0].budget", "not in both"),
        ("budget = { usd = 1 }", "4:10 keys[0].budget.per", "is missing"),
        ("budget = { usd = 0, per = \"day\" }", "4:18 keys[0].budget.usd", "above 0"),
        ("budget = { usd = -1.0, per = \"day\" }", "4:18 keys[0].budget.usd", "above 0"),
        ("budget = { usd = nan, per = \"day\" }", "4:18 keys[0].budget.usd", "above 0"),
        ("budget = { usd = inf, per = \"day\" }", "4:18 keys[0].budget.usd", "above 0"),
        ("budget = { usd = 1e300, per = \"day\" }", "4:18 keys[0].budget.usd", "at most 1000000"),
        ("budget = { tokens = 1.5, per = \"day\" }", "4:21 keys[0].budget.tokens", "whole number"),
        ("budget = { usd = 1, per = \"year\" }", "4:27 keys[0].budget.per", "\"month\""),
        ("expires = 2030-01-01T00:00:00", "4:11 keys[0].expires", "with its offset"),
        ("expires = 5", "4:11 keys[0].expires", "must be a date"),
        ("expires = \"soon\"", "4:11 keys[0].expires", "2026-12-31"),
        ("labels = { team = 1 }", "4:19 keys[0].labels.team", "must be a string"),
        ("labels = { \"a=b\" = \"c\" }", "4:20 keys[0].labels.a=b", "1 to 64"),
        ("labels = { team = \"\" }", "4:19 keys[0].labels.team", "1 to 256"),
        ("shared = \"yes\"", "4:10 keys[0].shared", "true or false"),
    ] {
        tells(&key(line), place, part);
    }
    let many: Vec<String> = (0..17).map(|n| format!("l{n} = \"x\"")).collect();
    tells(&key(&format!("labels = {{ {} }}", many.join(", "))), "4:10 keys[0].labels", "16 labels");
}

#[test]
fn a_price_is_per_million_tokens_and_exact() {
    let price = |line: &str| parse(&model(line)).model("m").unwrap().price;
    let whole = Price { input: 3_000, output: 15_000, cache_read: 300, cache_write: 3_750 };
    assert_eq!(price("price = { input = 3.0, output = 15, cache_read = 0.3, cache_write = 3.75 }"), Some(whole));
    let default = Price { input: 75, output: 300, cache_read: 75, cache_write: 75 };
    assert_eq!(price("price = { input = 0.075, output = 0.3 }"), Some(default));
    assert_eq!(price("price = { input = 0, output = 0.0 }").unwrap().output, 0);
    assert_eq!(price(""), None);
    for (line, place, part) in [
        ("price = { input = -1, output = 1 }", "12:19 models[0].price.input", "negative"),
        ("price = { input = nan, output = 1 }", "12:19 models[0].price.input", "per million"),
        ("price = { input = inf, output = 1 }", "12:19 models[0].price.input", "per million"),
        ("price = { input = 0.0375, output = 1 }", "12:19 models[0].price.input", "three decimals"),
        ("price = { input = 1, output = 1e6 }", "12:31 models[0].price.output", "more than 100000"),
        ("price = { input = 1 }", "12:9 models[0].price.output", "is missing"),
        ("price = { input = \"1\", output = 1 }", "12:19 models[0].price.input", "must be a number"),
        ("price = 3.0", "12:9 models[0].price", "must be a table"),
    ] {
        tells(&model(line), place, part);
    }
}

#[test]
fn a_budget_in_dollars_over_a_model_without_a_price_is_doubtful() {
    let doubts = |model_line: &str, key_line: &str| {
        let text = format!("{}{}", model(model_line), key(key_line));
        let warnings = parse(&text).warnings;
        warnings.iter().any(|warning| warning.key == "keys[0].budget" && warning.message.contains("\"m\""))
    };
    let usd = "budget = { usd = 1, per = \"day\" }";
    assert!(doubts("", usd));
    assert!(!doubts("price = { input = 1, output = 1 }", usd));
    assert!(!doubts("", "budget = { tokens = 1, per = \"day\" }"));
    assert!(!doubts("", &format!("{usd}\nmodels = [\"other\"]")));
}

#[test]
fn trusted_proxies_are_networks_or_the_socket_and_the_user_has_a_header_of_its_own() {
    let config = parse("[server]\ntrusted_proxies = [\"10.0.0.0/8\", \"::1\", \"unix\"]\nuser_header = \"X-User\"\n");
    assert_eq!(config.server.trusted_proxies.len(), 3);
    assert_eq!(config.server.trusted_proxies[2], TrustedPeer::Unix);
    assert_eq!(config.server.user_header.as_deref(), Some("x-user"));
    let server = |line: &str| format!("[server]\n{line}\n");
    for (line, place, part) in [
        ("trusted_proxies = [\"10.0.0.1/8\"]", "2:20 server.trusted_proxies[0]", "10.0.0.0/8"),
        ("trusted_proxies = [\"proxy.local\"]", "2:20 server.trusted_proxies[0]", "no network"),
        ("user_header = \"a b\"", "2:15 server.user_header", "not a header name"),
        ("user_header = \"Authorization\"", "2:15 server.user_header", "another meaning"),
    ] {
        tells(&server(line), place, part);
    }
    let told = |line: &str| parse(&server(line)).warnings.iter().any(|w| w.key.starts_with("server."));
    assert!(told("user_header = \"x-user\""));
    assert!(told("trusted_proxies = [\"unix\"]"));
    assert!(told("trusted_proxies = [\"0.0.0.0/0\"]\nuser_header = \"x-user\""));
    assert!(!told("trusted_proxies = [\"unix\"]\nuser_header = \"x-user\""));
}
