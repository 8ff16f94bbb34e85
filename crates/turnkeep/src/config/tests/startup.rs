//! Who may call a gateway without keys.

use super::{parse, parse_with};
use crate::config::{KeyRule, startup_rule};

fn rule(listen: &str, store_has_keys: bool) -> KeyRule {
    startup_rule(&parse(&format!("[server]\nlisten = {listen}\n")), store_has_keys)
}

#[test]
fn without_a_key_only_this_machine_may_call() {
    for local in ["\"127.0.0.1:1\"", "\"localhost:1\"", "\"[::1]:1\"", "\"127.8.8.8:1\"", "\"unix:/run/t.sock\""] {
        assert_eq!(rule(local, false), KeyRule::MakeOne, "{local}");
    }
    let public =
        ["\"0.0.0.0:1\"", "\"[::]:1\"", "\"10.0.0.1:1\"", "\"box.example:1\"", "[\"127.0.0.1:1\", \"0.0.0.0:1\"]"];
    for public in public {
        assert_eq!(rule(public, false), KeyRule::RefusePublic, "{public}");
        assert_eq!(rule(public, true), KeyRule::AsConfigured, "{public}");
    }
}

#[test]
fn a_key_of_the_file_is_enough() {
    let text = "[server]\nlisten = \"0.0.0.0:1\"\n[[keys]]\nname = \"a\"\nsecret = { env = \"A\" }\n";
    assert_eq!(startup_rule(&parse_with(text, &[]).unwrap(), false), KeyRule::AsConfigured);
}
