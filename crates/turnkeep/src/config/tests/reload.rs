//! What a running gateway takes up.

use super::{UPSTREAM, parse};
use crate::config::{RESTART_KEYS, needs_restart};

#[test]
fn each_key_that_waits_for_the_next_start_is_named_alone() {
    let old = parse("");
    let changes = [
        ("server.listen", "[server]\nlisten = \"127.0.0.1:1\"\n"),
        ("server.tls", "[server]\ntls = { cert = \"c\", key = \"k\" }\n"),
        ("server.shutdown_grace", "[server]\nshutdown_grace = \"1s\"\n"),
        ("server.delivery", "[server]\ndelivery = \"flushed\"\n"),
        ("store.url", "[store]\nurl = \"memory:\"\n"),
        ("store.master_key", "[store]\nmaster_key = { env = \"M\" }\n"),
        ("telemetry.log", "[telemetry]\nlog = \"debug\"\n"),
        ("telemetry.log_format", "[telemetry]\nlog_format = \"json\"\n"),
    ];
    for (key, text) in changes {
        assert_eq!(needs_restart(&old, &parse(text)), [key]);
        assert_eq!(needs_restart(&parse(text), &parse(text)), [""; 0]);
    }
    assert_eq!(changes.map(|(key, _)| key), RESTART_KEYS);
}

#[test]
fn everything_else_is_taken_up() {
    let new = format!(
        "[server]\nmax_body = \"1MiB\"\n[store]\nkeep = {{ turns = \"1d\" }}\n[tuning]\nbudget = 5\n[[keys]]\nname = \"a\"\nsecret = {{ env = \"A\" }}\n{UPSTREAM}max_in_flight = 2\n\
         [[models]]\nname = \"*\"\nroutes = [{{ upstream = \"openai\" }}]\n"
    );
    assert_eq!(needs_restart(&parse(""), &parse(&new)), [""; 0]);
}

#[test]
fn a_master_key_found_elsewhere_is_another_and_the_same_place_is_the_same() {
    let master = |place: &str| parse(&format!("[store]\nmaster_key = {place}\n"));
    let env = master("{ env = \"M\" }");
    assert_eq!(needs_restart(&env, &master("{ env = \"M\" }")), [""; 0]);
    for other in ["{ env = \"N\" }", "{ file = \"M\" }"] {
        assert_eq!(needs_restart(&env, &master(other)), ["store.master_key"]);
    }
}

#[test]
fn the_documentation_names_the_keys_that_wait() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(page).unwrap();
    let part = page.split("## Reload\n").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    for key in RESTART_KEYS {
        assert!(part.contains(&format!("`{key}`")), "{key}");
    }
}
