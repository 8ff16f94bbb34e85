//! Each mistake names its line, column and key, and what to do.

use super::{UPSTREAM, errors, only_error};

/// The mistake stands at `place` and its message has all of `parts`.
pub(super) fn tells(text: &str, place: &str, parts: &[&str]) {
    let (at, message) = only_error(text);
    assert_eq!(at, place, "{message}");
    let by_name = parts.iter().any(|part| part.contains("not in this version"));
    assert!(!by_name || !message.contains("unknown"), "{message:?} does not know the key by name");
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

#[test]
fn text_that_is_not_toml_is_told_with_its_key() {
    tells("[server]\nmax_body = 32MiB\n", "2:12 server.max_body", &["not valid TOML"]);
}

#[test]
fn a_key_given_twice_is_told_at_the_second() {
    tells("[server]\nlisten = \"a:1\"\nlisten = \"b:1\"\n", "3:1 server.listen", &["duplicate key"]);
}

#[test]
fn an_unknown_key_names_the_nearest_one_and_the_table() {
    tells("[server]\nlisen = \"127.0.0.1:1\"\n", "2:1 server.lisen", &["did you mean \"listen\"?", "[server]"]);
    tells("[servr]\n", "1:2 servr", &["did you mean \"server\"?"]);
    tells("[telemetry]\nport = 1\n", "2:1 telemetry.port", &["it takes \"log\""]);
    tells(&format!("{UPSTREAM}model = [\"*\"]\n"), "9:1 upstreams[0].accounts[0].model", &["\"models\""]);
}

#[test]
fn a_key_of_a_later_version_is_refused_by_name() {
    let later = [
        ("[server]\nadmin_listen = \"x\"", "2:1 server.admin_listen"),
        ("[store]\nurl = \"postgres://h/d\"", "2:7 store.url"),
        ("[telemetry]\notlp = \"http://h\"", "2:1 telemetry.otlp"),
        ("[telemetry]\ncontent = true", "2:11 telemetry.content"),
        ("[cluster]", "1:2 cluster"),
    ];
    for (text, place) in later {
        tells(text, place, &["is not in this version"]);
    }
}

#[test]
fn an_unknown_kind_of_upstream_is_told_with_the_nearest() {
    let text = UPSTREAM.replace("kind = \"openai\"", "kind = \"antropic\"");
    tells(&text, "4:8 upstreams[0].kind", &["did you mean \"anthropic\"?"]);
}

#[test]
fn a_secret_in_the_file_is_refused_unless_the_file_allows_it() {
    let text = UPSTREAM.replace("{ env = \"OPENAI_API_KEY\" }", "\"sk-in-the-file\"");
    let (place, message) = only_error(&text);
    assert_eq!(place, "8:10 upstreams[0].accounts[0].secret");
    assert!(message.contains("allow_plain_secrets") && !message.contains("sk-"), "{message}");
    let config = super::parse(&format!("allow_plain_secrets = true\n{text}"));
    let secret = config.upstreams[0].accounts[0].credential.secret().unwrap();
    assert_eq!(secret.resolve().unwrap().expose(), "sk-in-the-file");
    assert!(!format!("{config:?}").contains("sk-in-the-file"));
}

#[test]
fn a_secret_has_one_place() {
    let with = |value: &str| UPSTREAM.replace("{ env = \"OPENAI_API_KEY\" }", value);
    let secret = "8:10 upstreams[0].accounts[0].secret";
    tells(&with("{}"), secret, &["names no place"]);
    tells(&with("{ env = \"A\", file = \"b\" }"), secret, &["keep one"]);
    tells(&with("7"), secret, &["{ env = \"NAME\" }"]);
    let (_, message) = only_error(&with("{ env = \"sk-pasted-here\" }"));
    assert!(!message.contains("sk-pasted"), "{message}");
}

#[test]
fn values_of_the_wrong_kind_or_out_of_range_are_told() {
    let server = |line: &str| format!("[server]\n{line}\n");
    tells(&server("listen = 4141"), "2:10 server.listen", &["must be a string", "an integer"]);
    tells(&server("listen = \"4141\""), "2:10 server.listen", &["has no port"]);
    tells(&server("listen = [\"127.0.0.1:1\", \"127.0.0.1:99999\"]"), "2:26 server.listen[1]", &["\"99999\""]);
    tells(&server("listen = \"::1:80\""), "2:10 server.listen", &["[::1]"]);
    tells(&server("listen = []"), "2:10 server.listen", &["names no address"]);
    tells(&server("listen = [\"a:1\", \"a:1\"]"), "2:18 server.listen[1]", &["twice"]);
    tells(&server("max_body = \"32\""), "2:12 server.max_body", &["\"32MiB\""]);
    tells(&server("max_body = 0"), "2:12 server.max_body", &["from 1KiB to 1GiB"]);
    tells(&server("shutdown_grace = 30"), "2:18 server.shutdown_grace", &["with its unit"]);
    tells(&server("shutdown_grace = \"2 days\""), "2:18 server.shutdown_grace", &["\"2 days\""]);
    tells(&server("tls = { cert = \"c\" }"), "2:7 server.tls.key", &["is missing"]);
    tells(&server("tls = true"), "2:7 server.tls", &["must be a table"]);
    tells("[store]\nurl = \"turnkeep.db\"\n", "2:7 store.url", &["sqlite:PATH"]);
    tells("[telemetry]\nlog = \"loud\"\n", "2:7 telemetry.log", &["\"loud\" is not a level"]);
    tells("[telemetry]\nlog = \"turnkeep=loud\"\n", "2:7 telemetry.log", &["directives"]);
    tells("[telemetry]\nlog_format = \"jsn\"\n", "2:14 telemetry.log_format", &["did you mean \"json\"?"]);
    tells(&format!("{UPSTREAM}max_in_flight = 0\n"), "9:17 upstreams[0].accounts[0].max_in_flight", &["from 1"]);
    tells(&format!("{UPSTREAM}models = []\n"), "9:10 upstreams[0].accounts[0].models", &["[\"*\"]"]);
    let key = |line: &str| format!("[[keys]]\nname = \"a\"\nsecret = {{ env = \"A\" }}\n{line}\n");
    tells(&key("scopes = [\"chat\", \"view\"]"), "4:19 keys[0].scopes[1]", &["\"view\"", "\"admin\""]);
    tells(&key("scopes = []"), "4:10 keys[0].scopes", &["opens nothing"]);
}

#[test]
fn urls_headers_clocks_and_proxies_of_an_upstream_are_checked() {
    let with = |line: &str| UPSTREAM.replace("[[upstreams.acc", &format!("{line}\n[[upstreams.acc"));
    let base = |url: &str| UPSTREAM.replace("https://api.openai.com/v1", url);
    for (url, part) in [
        ("api.openai.com/v1", "https:// or http://"),
        ("ftp://h/v1", "\"ftp\""),
        ("https://u:p@h/v1", "user or password"),
        ("https://h/v1?key=1", "query"),
        ("https://", "https:// or http://"),
    ] {
        tells(&base(url), "5:12 upstreams[0].base_url", &[part]);
    }
    let header = "6:29 upstreams[0].headers.Authorization";
    tells(&with("headers = { Authorization = \"Bearer x\" }"), header, &["the gateway sets"]);
    tells(&with("headers = { x-api-key = \"x\" }"), "6:25 upstreams[0].headers.x-api-key", &["credential"]);
    tells(&with("headers = { host = \"x\" }"), "6:20 upstreams[0].headers.host", &["the gateway sets"]);
    tells(&with("headers = { \"a b\" = \"x\" }"), "6:21 upstreams[0].headers.a b", &["not a header name"]);
    tells(&with("headers = { x = \"a\\nb\" }"), "6:17 upstreams[0].headers.x", &["line break"]);
    tells(&with("timeouts = { total = \"0s\" }"), "6:22 upstreams[0].timeouts.total", &["from 1ms to 1d"]);
    tells(&with("timeouts = { conect = \"1s\" }"), "6:14 upstreams[0].timeouts.conect", &["\"connect\""]);
    tells(&with("proxy = \"socks4://h:1\""), "6:9 upstreams[0].proxy", &["socks5h://"]);
    let (_, message) = only_error(&with("proxy = \"http://u:secret@h:1\""));
    assert!(message.contains("password") && !message.contains("secret@"), "{message}");
}

#[test]
fn every_mistake_of_a_file_is_told_at_once_in_its_order() {
    let told = errors("[server]\nlisten = 1\nmax_body = true\n[stor]\n[[keys]]\nname = \"\"\n");
    let places: Vec<_> = told.iter().map(|error| (error.line, error.key.as_str())).collect();
    let expected =
        [(2, "server.listen"), (3, "server.max_body"), (4, "stor"), (5, "keys[0].secret"), (6, "keys[0].name")];
    assert_eq!(places, expected);
    assert!(told[0].to_string().starts_with("conf/turnkeep.toml:2:10: server.listen: "), "{}", told[0]);
}

#[test]
fn a_list_written_as_one_table_and_a_table_written_as_a_list_are_told() {
    tells("[upstreams]\nname = \"a\"\n", "1:1 upstreams", &["[[upstreams]]"]);
    tells("[[server]]\n", "1:1 server", &["must be a table, not an array"]);
}

#[test]
fn columns_count_characters() {
    tells("server = { \"üü\" = 1 } # ü", "1:12 server.üü", &["unknown key"]);
}

#[test]
fn a_deeply_nested_value_is_a_mistake_and_not_the_end_of_the_process() {
    let text = format!("server = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(!errors(&text).is_empty());
}
