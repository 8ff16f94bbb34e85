//! What is filled in, and that the texts we hand out are right.

use super::{UPSTREAM, parse};
use crate::config::template::{PROVIDERS, template};
use crate::config::{Kind, Listen, LogFormat, Scope, StoreUrl, Stream, Timeouts};
use std::path::Path;
use std::time::Duration;
use turnkeep_policy::Tuning;

#[test]
fn an_empty_file_is_a_gateway_on_loopback_with_every_default() {
    let config = parse("");
    assert_eq!(config.server.listen, [Listen::Tcp { host: "127.0.0.1".into(), port: 4141 }]);
    assert_eq!(config.server.max_body, 32 << 20);
    assert_eq!(config.server.shutdown_grace, Duration::from_secs(30));
    assert_eq!(config.store.url, StoreUrl::Sqlite(Path::new("conf/turnkeep.db").into()));
    assert_eq!((config.telemetry.log.as_str(), config.telemetry.log_format), ("info", LogFormat::Pretty));
    assert!(config.warnings.iter().any(|warning| warning.key == "upstreams"), "{:?}", config.warnings);
}

#[test]
fn without_models_any_name_goes_to_every_upstream_in_file_order() {
    let second = UPSTREAM.replace("\"openai\"\nkind", "\"other\"\nkind");
    let config = parse(&format!("{UPSTREAM}{second}"));
    let model = config.model("whatever").unwrap();
    let routes: Vec<_> = model.routes.iter().map(|route| route.upstream.as_str()).collect();
    assert_eq!(routes, ["openai", "other"]);
    assert_eq!(model.upstream_model(&model.routes[0], "whatever"), "whatever");
}

#[test]
fn an_upstream_and_its_account_have_their_defaults() {
    let config = parse(UPSTREAM);
    let upstream = config.upstream("openai").unwrap();
    assert_eq!((upstream.speaks.kind(), upstream.timeouts), (Kind::Openai, Timeouts::default()));
    assert_eq!(upstream.accounts[0].max_in_flight, 16);
    assert_eq!(upstream.accounts[0].models, ["*"]);
}

#[test]
fn a_key_opens_chat_for_every_model_unless_it_says_otherwise() {
    let config = parse("[[keys]]\nname = \"a\"\nsecret = { env = \"A\" }\n");
    assert_eq!((&config.keys[0].scopes[..], &config.keys[0].models[..]), (&[Scope::Chat][..], &["*".to_owned()][..]));
}

#[test]
fn every_template_is_right_without_a_change() {
    for count in 0..=PROVIDERS.len() {
        let config = parse(&template(&PROVIDERS[..count]));
        assert_eq!(config.upstreams.len(), count);
    }
    let every = parse(&template(PROVIDERS));
    let told: Vec<_> = every.warnings.iter().map(|warning| warning.key.as_str()).collect();
    assert_eq!(told, ["store.master_key"]);
}

#[test]
fn the_commented_lines_of_a_template_are_right_too() {
    let lines = template(&PROVIDERS[..1]);
    let is_key =
        |rest: &str| rest.starts_with('[') || rest.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
    let text: Vec<&str> =
        lines.lines().map(|line| line.strip_prefix("# ").filter(|rest| is_key(rest)).unwrap_or(line)).collect();
    let config = parse(&text.join("\n"));
    assert_eq!((config.models.len(), config.keys.len()), (3, 1));
    assert!(config.models[0].fallbacks == ["large"] && config.upstreams[0].accounts.len() == 2);
    assert_eq!((config.tuning, config.stream), (Tuning::default(), Stream::default()));
    assert!(config.server.tls.is_some() && config.store.master_key.is_some());
}

#[test]
fn the_example_of_the_documentation_is_right_and_uses_every_key() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(page).unwrap();
    let example = page.split("```toml full\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let config = parse(example);
    assert!(config.upstreams.len() >= 2 && config.models.len() >= 2 && !config.keys.is_empty());
    let keys =
        ["max_turn", "proxy", "headers", "ca", "aliases", "scopes", "log_format", "shutdown_grace", "on_failure"];
    let later = ["requests_per_minute", "tokens_per_minute", "limit_group", "command", "every", "fallbacks", "larger"];
    for key in keys
        .into_iter()
        .chain(later)
        .chain(["keep", "heartbeat", "delivery", "trusted_proxies", "user_header", "cache", "price", "budget"])
        .chain(["labels", "shared", "max_in_flight", "expires", "on_client_gone"])
        .chain(["reuse", "protocol", "codec", "memory", "permissions", "tool_activity", "quiet"])
        .chain(["home", "env", "auth_method", "organization"])
    {
        assert!(example.contains(&format!("{key} =")), "{key} is not in the example");
    }
}
