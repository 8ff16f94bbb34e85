//! Overrides from the environment.

use super::{UPSTREAM, parse_with};
use crate::config::{Listen, SecretRef};

#[test]
fn a_variable_replaces_a_key_of_the_file_or_adds_it() {
    let text = "[server]\nlisten = \"127.0.0.1:1\"\n";
    let variables = [
        ("TURNKEEP_SERVER__LISTEN", "0.0.0.0:4141"),
        ("TURNKEEP_SERVER__MAX_BODY", "1MiB"),
        ("TURNKEEP_STORE__URL", "memory:"),
        ("TURNKEEP_TELEMETRY__LOG", "debug"),
        ("TURNKEEP_SERVER__TLS__CERT", "/c"),
        ("TURNKEEP_SERVER__TLS__KEY", "/k"),
    ];
    let config = parse_with(text, &variables).unwrap();
    assert_eq!(config.server.listen, [Listen::Tcp { host: "0.0.0.0".into(), port: 4141 }]);
    assert_eq!((config.server.max_body, config.store.url.to_string()), (1 << 20, "memory:".into()));
    assert_eq!(config.telemetry.log, "debug");
    assert!(config.server.tls.is_some());
}

#[test]
fn a_variable_may_hold_toml_where_the_text_can_be_nothing_else() {
    let list = [("TURNKEEP_SERVER__LISTEN", "[\"127.0.0.1:1\", \"[::1]:1\"]")];
    assert_eq!(parse_with("", &list).unwrap().server.listen.len(), 2);
    let v6 = parse_with("", &[("TURNKEEP_SERVER__LISTEN", "[::1]:4141")]).unwrap();
    assert_eq!(v6.server.listen[0].to_string(), "[::1]:4141");
    let reference = parse_with("", &[("TURNKEEP_STORE__MASTER_KEY", "{ file = \"/m\" }")]).unwrap();
    assert!(matches!(reference.store.master_key, Some(SecretRef::File(_))));
}

#[test]
fn a_secret_in_a_variable_is_a_reference_to_that_variable() {
    let variables = [
        ("TURNKEEP_STORE__MASTER_KEY", "a long passphrase"),
        ("TURNKEEP_UPSTREAMS__OPENAI__ACCOUNTS__MAIN__SECRET", "sk"),
    ];
    let config = parse_with(UPSTREAM, &variables).unwrap();
    assert!(matches!(&config.store.master_key, Some(SecretRef::Env(name)) if name == "TURNKEEP_STORE__MASTER_KEY"));
    assert!(!format!("{config:?}").contains("passphrase"));
}

#[test]
fn an_entry_of_a_list_is_addressed_by_its_name() {
    let text = UPSTREAM.replace("\"openai\"\nkind", "\"My-AI\"\nkind");
    let url = [("TURNKEEP_UPSTREAMS__MY_AI__BASE_URL", "http://127.0.0.1:9/v1")];
    assert_eq!(
        parse_with(&text, &url).unwrap().upstreams[0].speaks.remote().unwrap().base_url,
        "http://127.0.0.1:9/v1"
    );
    let wrong = parse_with(&text, &[("TURNKEEP_UPSTREAMS__MY_AY__BASE_URL", "http://h/v1")]).unwrap_err();
    assert!(wrong[0].message.contains("did you mean \"my_ai\"?"), "{wrong:?}");
}

#[test]
fn a_mistake_in_a_variable_names_the_variable_and_the_key() {
    let wrong = parse_with("", &[("TURNKEEP_SERVER__LISTEN", "nowhere")]).unwrap_err();
    assert_eq!(
        (wrong[0].file.as_str(), wrong[0].key.as_str()),
        ("environment variable TURNKEEP_SERVER__LISTEN", "server.listen")
    );
    let unknown = parse_with("", &[("TURNKEEP_SERVER__LISEN", "127.0.0.1:1")]).unwrap_err();
    assert!(unknown[0].message.contains("did you mean \"listen\"?"), "{unknown:?}");
    let section = parse_with("", &[("TURNKEEP_SERVR__LISTEN", "127.0.0.1:1")]).unwrap_err();
    assert!(section[0].message.contains("did you mean \"server\"?"), "{section:?}");
    assert!(unknown[0].message.ends_with("Then set TURNKEEP_SERVER__LISTEN"), "{unknown:?}");
    let toml = parse_with("", &[("TURNKEEP_SERVER__LISTEN", "[\"127.0.0.1:1\"")]).unwrap_err();
    assert_eq!(toml[0].key, "server.listen");
    let below = parse_with("[server]\nlisten = \"a:1\"\n", &[("TURNKEEP_SERVER__LISTEN__PORT", "1")]).unwrap_err();
    assert!(below[0].message.contains("nothing below"), "{below:?}");
}

#[test]
fn other_variables_and_empty_ones_are_left_alone() {
    let variables =
        [("TURNKEEP_MASTER_KEY", "x"), ("TURNKEEP_BIN", "y"), ("TURNKEEP_SERVER__LISTEN", ""), ("PATH", "z")];
    assert_eq!(parse_with("", &variables).unwrap().server.listen[0].to_string(), "127.0.0.1:4141");
}

#[test]
fn plain_secrets_can_be_allowed_by_the_environment() {
    let text = UPSTREAM.replace("{ env = \"OPENAI_API_KEY\" }", "\"sk\"");
    assert!(parse_with(&text, &[]).is_err());
    assert!(parse_with(&text, &[("TURNKEEP_ALLOW_PLAIN_SECRETS", "true")]).is_ok());
}

#[test]
fn a_mistake_in_a_variable_is_told_without_a_line_and_with_the_variable_to_set() {
    let only = |name: &str, value: &str| {
        let errors = parse_with(UPSTREAM, &[(name, value)]).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        errors[0].to_string()
    };
    let size = only("TURNKEEP_SERVER__MAX_BODY", "many");
    assert!(size.starts_with("environment variable TURNKEEP_SERVER__MAX_BODY: server.max_body: must be"), "{size}");
    let half = only("TURNKEEP_SERVER__TLS__CERT", "/c");
    assert!(half.contains("server.tls.key: is missing") && half.contains("or set TURNKEEP_SERVER__TLS__KEY"), "{half}");
    let later = only("TURNKEEP_SERVER__ADMIN_LISTEN", "x");
    assert!(later.ends_with("is not in this version; unset TURNKEEP_SERVER__ADMIN_LISTEN"), "{later}");
    let below = only("TURNKEEP_UPSTREAMS__OPENAI__BASEURL", "http://127.0.0.1:1/v1");
    assert!(below.ends_with("Then set TURNKEEP_UPSTREAMS__OPENAI__BASE_URL"), "{below}");
    let section = only("TURNKEEP_TUNNING__BUDGET", "3");
    assert!(section.ends_with("Then set TURNKEEP_TUNING__BUDGET"), "{section}");
    let place = only("TURNKEEP_SERVER__LISTEN", "[\"127.0.0.1:1\", 2]");
    assert!(place.starts_with("environment variable TURNKEEP_SERVER__LISTEN:1:17: server.listen[1]"), "{place}");
}
