//! Names that refer to others, names taken twice, and secrets followed.

use super::{UPSTREAM, errors, only_error, parse};
use crate::config::SecretRef;

fn model(name: &str, rest: &str) -> String {
    format!("[[models]]\nname = \"{name}\"\nroutes = [{{ upstream = \"openai\" }}]\n{rest}")
}

#[test]
fn a_route_to_an_unknown_upstream_names_the_nearest() {
    let text = format!("{UPSTREAM}{}", model("a", "").replace("\"openai\"", "\"openia\""));
    let (place, message) = only_error(&text);
    assert_eq!(place, "11:24 models[0].routes[0].upstream");
    assert!(message.contains("did you mean \"openai\"?"), "{message}");
}

#[test]
fn names_differ_within_their_list_and_the_mistake_names_the_first() {
    let (place, message) = only_error(&format!("{UPSTREAM}{UPSTREAM}"));
    assert_eq!(place, "11:8 upstreams[1].name");
    assert!(message.contains("already used at line 3"), "{message}");
    let account = "[[upstreams.accounts]]\nname = \"main\"\nsecret = { env = \"B\" }\n";
    assert_eq!(only_error(&format!("{UPSTREAM}{account}")).0, "10:8 upstreams[0].accounts[1].name");
    let key = "[[keys]]\nname = \"a\"\nsecret = { env = \"A\" }\n";
    assert_eq!(only_error(&format!("{key}{key}")).0, "5:8 keys[1].name");
}

#[test]
fn an_alias_clashes_with_any_name_or_alias_of_another_model() {
    let first = model("a", "aliases = [\"x\"]\n");
    for clash in [model("x", ""), model("b", "aliases = [\"a\"]\n"), model("b", "aliases = [\"x\"]\n")] {
        let (place, message) = only_error(&format!("{UPSTREAM}{first}{clash}"));
        assert!(place.contains("models[1]") && message.contains("already used"), "{place} {message}");
    }
    assert!(only_error(&format!("{UPSTREAM}{}", model("a", "aliases = [\"a\"]\n"))).1.contains("already used"));
}

#[test]
fn only_the_whole_name_star_is_a_catch_all_and_it_has_no_aliases() {
    assert!(only_error(&format!("{UPSTREAM}{}", model("gpt-*", ""))).1.contains("no pattern"));
    assert!(only_error(&format!("{UPSTREAM}{}", model("*", "aliases = [\"x\"]\n"))).1.contains("no aliases"));
}

#[test]
fn a_model_is_found_by_name_then_alias_then_the_catch_all() {
    let text = format!("{UPSTREAM}{}{}", model("*", ""), model("big", "aliases = [\"b\"]\n"));
    let config = parse(&text);
    for (asked, found, sent) in [("big", "big", "big"), ("b", "big", "big"), ("other", "*", "other"), ("*", "*", "*")] {
        let model = config.model(asked).unwrap();
        assert_eq!(model.name, found);
        assert_eq!(model.upstream_model(&model.routes[0], asked), sent);
    }
    let only_named = parse(&format!("{UPSTREAM}{}", model("big", "")));
    assert!(only_named.model("other").is_none());
}

#[test]
fn missing_keys_are_told_at_their_table() {
    let told = errors("[[upstreams]]\n");
    let keys: Vec<_> = told.iter().map(|error| error.key.as_str()).collect();
    assert_eq!(keys, ["upstreams[0].name", "upstreams[0].kind", "upstreams[0].base_url"]);
    assert!(told.iter().all(|error| error.line == 1 && error.message.contains("add ")), "{told:?}");
}

#[test]
fn doubts_are_warnings_and_not_errors() {
    let text = UPSTREAM
        .replace("https://api.openai.com/v1", "http://models.example/v1")
        .replace("secret = { env = \"OPENAI_API_KEY\" }", "");
    let config = parse(&text);
    let told: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|text| text.starts_with("conf/turnkeep.toml:5:12: upstreams[0].base_url: plain http")));
    assert!(told.iter().any(|text| text.contains("no_credential")), "{told:?}");
    let local = parse(&UPSTREAM.replace("https://api.openai.com/v1", "http://[::1]:8080/v1"));
    assert!(!local.warnings.iter().any(|warning| warning.key.ends_with("base_url")), "{:?}", local.warnings);
}

#[test]
fn relative_paths_start_at_the_folder_of_the_file() {
    let text = "[store]\nurl = \"sqlite:data/t.db\"\n[server]\ntls = { cert = \"c.pem\", key = \"/abs/k.pem\" }\n";
    let config = parse(text);
    assert_eq!(config.store.url.to_string(), "sqlite:conf/data/t.db");
    let tls = config.server.tls.unwrap();
    assert_eq!((tls.cert.to_str().unwrap(), tls.key.to_str().unwrap()), ("conf/c.pem", "/abs/k.pem"));
}

#[test]
fn a_secret_file_loses_its_line_end_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = |text: &str| {
        let path = folder.path().join("s");
        std::fs::write(&path, text).unwrap();
        SecretRef::File(path).resolve()
    };
    assert_eq!(at("sk-1\n").unwrap().expose(), "sk-1");
    assert_eq!(at(" sk-1 \r\n").unwrap().expose(), " sk-1 ");
    assert!(at("\n").unwrap_err().contains("is empty"));
    assert!(at("a\nb\n").unwrap_err().contains("more than one line"));
    assert!(SecretRef::File(folder.path().join("none")).resolve().unwrap_err().contains("cannot be read"));
    assert!(SecretRef::Env("TURNKEEP_TEST_NOT_SET".into()).resolve().unwrap_err().contains("is not set"));
}
