//! The kinds of upstreams: what each needs, what each has when nothing is said, and whose keys are whose.

use super::errors::tells;
use super::{UPSTREAM, errors, parse, parse_with};
use crate::config::{
    CascadeServer, Codec, Credential, EnvValue, Kind, Permissions, Process, Rpc, RpcProtocol, SecretRef, Speaks,
    Timeouts, ToolActivity, Upstream,
};
use std::path::{Path, PathBuf};
use std::time::Duration;
use turnkeep_engine::route::Reuse;

const CONNECT: &str = r#"
[[upstreams]]
name = "own"
kind = "connect"
base_url = "http://127.0.0.1:8081"
[[upstreams.accounts]]
name = "main"
secret = { env = "OWN_KEY" }
"#;

const CASCADE: &str = r#"
[[upstreams]]
name = "keeps"
kind = "cascade"
command = ["cascade-server", "--model", "small"]
[[upstreams.accounts]]
name = "main"
"#;

const ACP: &str = r#"
[[upstreams]]
name = "devin-cli"
kind = "acp"
command = ["devin", "acp"]
[[upstreams.accounts]]
name = "me"
"#;

const DEVIN: &str = r#"
[[upstreams]]
name = "devin"
kind = "devin"
[[upstreams.accounts]]
name = "team"
organization = "org-1a2b"
secret = { env = "DEVIN_API_KEY" }
"#;

const EACH: [&str; 4] = [CONNECT, CASCADE, ACP, DEVIN];

/// With a line for the upstream, which is its sixth or fifth.
fn with(text: &str, line: &str) -> String {
    text.replace("[[upstreams.acc", &format!("{line}\n[[upstreams.acc"))
}

fn only(text: &str) -> Upstream {
    let config = parse(text);
    assert_eq!(config.upstreams.len(), 1);
    let own = config.warnings.iter().find(|warning| warning.key.starts_with("upstreams"));
    assert!(own.is_none(), "{own:?}");
    config.upstreams[0].clone()
}

#[test]
fn each_kind_that_is_not_an_api_is_right_with_what_it_needs_and_no_more() {
    let kinds = EACH.map(|text| only(text).speaks.kind());
    assert_eq!(kinds, [Kind::Connect, Kind::Cascade, Kind::Acp, Kind::Devin]);
}

#[test]
fn a_connect_server_is_called_by_connect_with_protobuf_unless_it_says_otherwise() {
    let Speaks::Connect { remote, rpc } = only(CONNECT).speaks else { panic!("connect") };
    assert_eq!((remote.base_url.as_str(), rpc), ("http://127.0.0.1:8081", Rpc::default()));
    let other = with(CONNECT, "protocol = \"grpc\"\ncodec = \"json\"");
    let Speaks::Connect { rpc, .. } = only(&other).speaks else { panic!("connect") };
    assert_eq!(rpc, Rpc { protocol: RpcProtocol::Grpc, codec: Codec::Json });
    tells(&with(CONNECT, "codec = \"xml\""), "6:9 upstreams[0].codec", &["\"proto\" or \"json\""]);
}

#[test]
fn a_cascade_server_is_an_address_or_a_process_and_never_both() {
    let Speaks::Cascade { server: CascadeServer::Process(process), reuse, .. } = only(CASCADE).speaks else {
        panic!("a process")
    };
    let command = ["cascade-server", "--model", "small"].map(str::to_owned).to_vec();
    let state = PathBuf::from("conf/agents/keeps/.state");
    assert_eq!((process, reuse), (Process { command, memory: 4 << 30, state }, Reuse::Prefer));
    let address = CONNECT.replace("\"connect\"", "\"cascade\"");
    let remote = only(&address);
    assert!(matches!(&remote.speaks, Speaks::Cascade { server: CascadeServer::Remote(_), .. }), "{remote:?}");
    assert!(
        matches!(&remote.accounts[0].credential, Credential::Secret(Some(SecretRef::Env(name))) if name == "OWN_KEY")
    );

    tells(&with(CASCADE, "base_url = \"http://127.0.0.1:1\""), "6:12 upstreams[0].base_url", &["keep one of both"]);
    tells(&with(CASCADE, "proxy = \"http://127.0.0.1:1\""), "6:9 upstreams[0].proxy", &["beside command"]);
    tells(&with(&address, "memory = \"1GiB\""), "6:10 upstreams[0].memory", &["there is no command"]);
    let neither = CASCADE.replace("command = [\"cascade-server\", \"--model\", \"small\"]\n", "");
    let text = neither.replace("name = \"main\"", "name = \"main\"\nsecret = { env = \"A\" }");
    tells(&text, "2:1 upstreams[0].base_url", &["is missing", "command = [\"PROGRAM\"]"]);
}

#[test]
fn an_account_of_a_process_has_surroundings_and_no_secret() {
    let upstream = only(&format!("{CASCADE}env = {{ MODEL = \"m\", API_KEY = {{ file = \"key\" }} }}\n"));
    let Credential::Surroundings { home, env, auth_method: None } = &upstream.accounts[0].credential else {
        panic!("surroundings")
    };
    assert_eq!(home, Path::new("conf/agents/keeps/main"));
    assert!(matches!(&env[1], (name, EnvValue::Text(text)) if name == "MODEL" && text == "m"));
    let file = PathBuf::from("conf/key");
    assert!(matches!(&env[0], (name, EnvValue::Secret(SecretRef::File(path))) if name == "API_KEY" && *path == file));
    let home = only(&format!("{ACP}home = \"elsewhere\"\n"));
    assert!(
        matches!(&home.accounts[0].credential, Credential::Surroundings { home, .. } if home == Path::new("conf/elsewhere"))
    );

    let secret = "secret = { env = \"A\" }\n";
    tells(&format!("{CASCADE}{secret}"), "8:10 upstreams[0].accounts[0].secret", &["a secret of its own", "remove it"]);
    tells(&format!("{ACP}{secret}"), "8:10 upstreams[0].accounts[0].secret", &["\"acp\"", "has logged in itself"]);
    let dots = ACP.replace("devin-cli", "..");
    tells(&dots, "3:8 upstreams[0].name", &["begins with a dot"]);
    let dots = ACP.replace("name = \"me\"", "name = \"..\"");
    tells(&dots, "6:1 upstreams[0].accounts[0].home", &["is missing"]);
}

#[test]
fn variables_of_a_process_are_checked_and_one_that_looks_like_a_secret_is_doubted() {
    let env = |text: &str| format!("{ACP}env = {{ {text} }}\n");
    tells(&env("HOME = \"x\""), "8:16 upstreams[0].accounts[0].env.HOME", &["the account's home"]);
    tells(&env("\"a b\" = \"x\""), "8:17 upstreams[0].accounts[0].env.a b", &["not the name of a variable"]);
    tells(&env("A = 1"), "8:13 upstreams[0].accounts[0].env.A", &["must be a string"]);
    tells(&env("A = \"\\u0000\""), "8:13 upstreams[0].accounts[0].env.A", &["no variable can hold"]);
    let config = parse(&env("SOME_TOKEN = \"tk-pasted\""));
    let told: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|text| text.contains("looks like a secret") && !text.contains("tk-pasted")), "{told:?}");
}

#[test]
fn an_agent_may_do_nothing_and_says_nothing_of_its_tools_unless_the_file_says_otherwise() {
    let Speaks::Acp { process, permissions, tool_activity, reuse } = only(ACP).speaks else { panic!("acp") };
    assert_eq!(process.command, ["devin", "acp"]);
    assert_eq!((permissions, tool_activity, reuse), (Permissions::Deny, ToolActivity::Drop, Reuse::Prefer));
    for (word, expected) in
        [("deny", Permissions::Deny), ("allow-read", Permissions::AllowRead), ("allow", Permissions::Allow)]
    {
        let text = with(ACP, &format!("permissions = \"{word}\"\ntool_activity = \"notes\"\nmemory = \"512MiB\""));
        let Speaks::Acp { process, permissions, tool_activity, .. } = only(&text).speaks else { panic!("acp") };
        assert_eq!((permissions, tool_activity, process.memory), (expected, ToolActivity::Notes, 512 << 20));
    }
    tells(&with(ACP, "permissions = \"allow_read\""), "6:15 upstreams[0].permissions", &["\"allow-read\""]);
    tells(&with(ACP, "memory = \"1KiB\""), "6:10 upstreams[0].memory", &["from 16MiB"]);
    let none = ACP.replace("command = [\"devin\", \"acp\"]\n", "");
    tells(&none, "2:1 upstreams[0].command", &["is missing", "command = [\"PROGRAM\""]);
    tells(&ACP.replace("[\"devin\", \"acp\"]", "\"devin acp\""), "5:11 upstreams[0].command", &["without a shell"]);
    tells(&ACP.replace("[\"devin\", \"acp\"]", "[]"), "5:11 upstreams[0].command", &["names no program"]);
}

#[test]
fn devin_has_its_address_and_needs_an_organization() {
    let upstream = only(DEVIN);
    let Speaks::Devin { remote, quiet, reuse } = &upstream.speaks else { panic!("devin") };
    assert_eq!(remote.base_url, "https://api.devin.ai");
    assert_eq!((*quiet, *reuse), (Duration::from_secs(20), Reuse::Prefer));
    assert!(
        matches!(&upstream.accounts[0].credential, Credential::Member { organization, .. } if organization == "org-1a2b")
    );
    let here = with(DEVIN, "base_url = \"http://127.0.0.1:9\"\nquiet = \"50ms\"");
    let Speaks::Devin { remote, quiet, .. } = only(&here).speaks else { panic!("devin") };
    assert_eq!((remote.base_url.as_str(), quiet), ("http://127.0.0.1:9", Duration::from_millis(50)));

    let none = DEVIN.replace("organization = \"org-1a2b\"\n", "");
    tells(&none, "5:1 upstreams[0].accounts[0].organization", &["is missing", "org-"]);
    let path = DEVIN.replace("org-1a2b", "org/../x");
    tells(&path, "7:16 upstreams[0].accounts[0].organization", &["not the id of an organization"]);
}

#[test]
fn agents_that_work_by_themselves_have_half_an_hour_to_say_something() {
    let half_hour = Duration::from_secs(1800);
    for text in [ACP, DEVIN] {
        let Timeouts { first_content, between, total, .. } = only(text).timeouts;
        assert_eq!((first_content, between, total), (half_hour, half_hour, Duration::from_secs(3600)));
        let own = only(&with(text, "timeouts = { between = \"1m\" }")).timeouts;
        assert_eq!((own.first_content, own.between), (half_hour, Duration::from_secs(60)));
    }
    for text in [CONNECT, CASCADE, UPSTREAM] {
        assert_eq!(only(text).timeouts, Timeouts::default());
    }
    let connect = with(ACP, "timeouts = { connect = \"1s\" }");
    tells(&connect, "6:24 upstreams[0].timeouts.connect", &["connects to nothing"]);
}

#[test]
fn conversations_are_gone_on_with_as_the_file_says() {
    let responses = UPSTREAM.replace("kind = \"openai\"", "kind = \"openai-responses\"");
    for text in [responses.as_str(), CASCADE, ACP, DEVIN] {
        assert_eq!(only(text).speaks.reuse(), Reuse::Prefer);
        for (word, reuse) in [("prefer", Reuse::Prefer), ("strict", Reuse::Strict), ("off", Reuse::Off)] {
            assert_eq!(only(&with(text, &format!("reuse = \"{word}\""))).speaks.reuse(), reuse);
        }
    }
    assert_eq!(only(CONNECT).speaks.reuse(), Reuse::Off);
    tells(&with(ACP, "reuse = \"stric\""), "6:9 upstreams[0].reuse", &["did you mean \"strict\"?"]);
}

#[test]
fn a_key_of_another_kind_is_refused_with_the_reason_and_the_kinds_it_belongs_to() {
    let kind = |kind: &str| UPSTREAM.replace("kind = \"openai\"", &format!("kind = \"{kind}\""));
    for (text, line, key, parts) in [
        (kind("openai"), "reuse = \"prefer\"", "reuse", ["keeps no conversations", "\"openai-responses\""]),
        (kind("anthropic"), "reuse = \"off\"", "reuse", ["keeps no conversations", "\"cascade\""]),
        (kind("gemini"), "reuse = \"off\"", "reuse", ["keeps no conversations", "\"gemini\""]),
        (CONNECT.to_owned(), "reuse = \"off\"", "reuse", ["keeps no conversations", "\"connect\""]),
        (kind("openai"), "protocol = \"grpc\"", "protocol", ["one way only", "\"connect\" or \"cascade\""]),
        (CASCADE.to_owned(), "codec = \"json\"", "codec", ["one form only", "kind \"connect\""]),
        (kind("openai"), "command = [\"x\"]", "command", ["no process", "\"cascade\" or \"acp\""]),
        (CONNECT.to_owned(), "memory = \"1GiB\"", "memory", ["no process", "\"cascade\" or \"acp\""]),
        (CASCADE.to_owned(), "permissions = \"deny\"", "permissions", ["asks for leave", "kind \"acp\""]),
        (kind("anthropic"), "tool_activity = \"drop\"", "tool_activity", ["tools", "kind \"acp\""]),
        (ACP.to_owned(), "quiet = \"1s\"", "quiet", ["complete", "kind \"devin\""]),
        (ACP.to_owned(), "base_url = \"http://h\"", "base_url", ["a program", "remove it"]),
        (ACP.to_owned(), "headers = { a = \"b\" }", "headers", ["a program", "remove it"]),
        (ACP.to_owned(), "ca = \"corp.pem\"", "ca", ["a program", "remove it"]),
        (ACP.to_owned(), "proxy = \"http://h:1\"", "proxy", ["a program", "remove it"]),
    ] {
        let column = line.find('=').unwrap() + 3;
        tells(&with(&text, line), &format!("6:{column} upstreams[0].{key}"), &parts);
    }
    for (text, line, key) in [
        (kind("openai"), "home = \"x\"", "home"),
        (CONNECT.to_owned(), "env = { A = \"b\" }", "env"),
        (CASCADE.to_owned(), "auth_method = \"login\"", "auth_method"),
        (kind("gemini"), "organization = \"org-1\"", "organization"),
        (ACP.to_owned(), "organization = \"org-1\"", "organization"),
    ] {
        let told = errors(&format!("{text}{line}\n"));
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].key, format!("upstreams[0].accounts[0].{key}"));
        assert!(told[0].message.contains("remove it"), "{told:?}");
    }
    let address = CONNECT.replace("\"connect\"", "\"cascade\"");
    tells(&format!("{address}home = \"x\"\n"), "9:8 upstreams[0].accounts[0].home", &["called at its base_url"]);
}

#[test]
fn a_variable_overrides_the_keys_of_these_kinds_too() {
    let variables = [
        ("TURNKEEP_UPSTREAMS__DEVIN_CLI__PERMISSIONS", "allow"),
        ("TURNKEEP_UPSTREAMS__DEVIN_CLI__COMMAND", "[\"other\"]"),
    ];
    let config = parse_with(ACP, &variables).unwrap();
    let Speaks::Acp { process, permissions, .. } = &config.upstreams[0].speaks else { panic!("acp") };
    assert_eq!((process.command.as_slice(), *permissions), (&["other".to_owned()][..], Permissions::Allow));
}
