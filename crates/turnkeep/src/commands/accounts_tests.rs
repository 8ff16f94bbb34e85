//! The whole way: arguments, configuration file, database file, output.

use super::run;
use crate::cli::{Cli, Command};
use crate::commands::Failure;
use clap::Parser;
use std::sync::Arc;
use turnkeep_store::{Role, SqliteStore, Store, StoreOptions, SystemClock};

const MASTER_KEY: &str = "a passphrase of enough length\n";

async fn accounts(folder: &tempfile::TempDir, args: &[&str], mut input: &[u8]) -> Result<String, Failure> {
    let config = folder.path().join("turnkeep.toml");
    let master = if folder.path().join("master").exists() { "master_key = { file = \"master\" }" } else { "" };
    let text = format!(
        "[store]\nurl = \"sqlite:t.db\"\n{master}\n[[upstreams]]\nname = \"openai\"\nkind = \"openai\"\n\
         base_url = \"http://127.0.0.1:9/v1\"\n[[upstreams.accounts]]\nname = \"main\"\nsecret = {{ env = \"X\" }}\n"
    );
    std::fs::write(&config, text).unwrap();
    let config = config.display().to_string();
    let typed = ["turnkeep", "accounts"].iter().chain(args).copied().chain(["--config", config.as_str()]);
    let Command::Accounts { command } = Cli::try_parse_from(typed).unwrap().command else { panic!("not accounts") };
    let mut out = Vec::new();
    run(&command, &mut input, &mut out).await?;
    Ok(String::from_utf8(out).unwrap())
}

#[tokio::test]
async fn an_account_is_added_listed_disabled_enabled_and_rotated() {
    let folder = tempfile::tempdir().unwrap();
    accounts(&folder, &["add", "openai", "two", "--secret-env", "TWO", "--model", "gpt-*"], b"").await.unwrap();
    let list = accounts(&folder, &["list"], b"").await.unwrap();
    assert!(list.contains("env:TWO") && list.contains("gpt-*") && list.contains("enabled"), "{list}");
    accounts(&folder, &["disable", "openai", "two"], b"").await.unwrap();
    let json = accounts(&folder, &["list", "--json"], b"").await.unwrap();
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(parsed[0]["enabled"], false);
    accounts(&folder, &["enable", "openai", "two"], b"").await.unwrap();
    accounts(&folder, &["rotate", "openai", "two", "--secret-env", "NEXT"], b"").await.unwrap();
    let json = accounts(&folder, &["list", "--json"], b"").await.unwrap();
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&parsed[0]["secret"], &parsed[0]["generation"]), (&"env:NEXT".into(), &2.into()));
}

#[tokio::test]
async fn an_account_has_its_limits_and_can_be_removed_but_not_one_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ["--requests-per-minute", "60", "--tokens-per-minute", "4000", "--limit-group", "org"];
    let add: Vec<&str> = ["add", "openai", "two", "--secret-env", "TWO"].into_iter().chain(limits).collect();
    accounts(&folder, &add, b"").await.unwrap();
    let json = accounts(&folder, &["list", "--json"], b"").await.unwrap();
    let listed: serde_json::Value = serde_json::from_str(&json).unwrap();
    let shown = (&listed[0]["requests_per_minute"], &listed[0]["tokens_per_minute"], &listed[0]["limit_group"]);
    assert_eq!(shown, (&60.into(), &4000.into(), &"org".into()));
    let refused = accounts(&folder, &["remove", "openai", "main"], b"").await.unwrap_err();
    assert!(refused.status() == 2 && refused.to_string().contains("in the config"), "{refused}");
    accounts(&folder, &["remove", "openai", "two"], b"").await.unwrap();
    assert_eq!(accounts(&folder, &["list", "--json"], b"").await.unwrap().trim(), "[]");
    assert_eq!(accounts(&folder, &["remove", "openai", "two"], b"").await.unwrap_err().status(), 1);
}

#[tokio::test]
async fn a_switch_is_left_for_a_gateway_and_no_standing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    accounts(&folder, &["add", "openai", "two", "--secret-env", "TWO"], b"").await.unwrap();
    accounts(&folder, &["disable", "openai", "main"], b"").await.unwrap();
    accounts(&folder, &["enable", "openai", "two"], b"").await.unwrap();
    assert_eq!(accounts(&folder, &["disable", "openai", "none"], b"").await.unwrap_err().status(), 1);
    let options = StoreOptions { role: Role::Tool, master_key: None, clock: Arc::new(SystemClock) };
    let store = SqliteStore::open(&folder.path().join("t.db"), options).unwrap();
    let open = store.open_switches().await.unwrap();
    let open: Vec<_> = open.iter().map(|switch| (&*switch.account.account, switch.enabled)).collect();
    assert_eq!(open, [("main", false), ("two", true)]);
    assert_eq!(store.load_standing().await.unwrap(), []);
    let log = store.audit_entries(2).await.unwrap();
    let said: Vec<_> =
        log.iter().map(|line| (line.actor.as_str(), line.action.as_str(), line.subject.as_str())).collect();
    assert_eq!(
        said,
        [("command line", "enable", "account openai/two"), ("command line", "disable", "account openai/main")]
    );
}

#[tokio::test]
async fn a_secret_on_standard_input_is_sealed_and_needs_a_master_key() {
    let folder = tempfile::tempdir().unwrap();
    let add = ["add", "openai", "two", "--secret-stdin"];
    let refused = accounts(&folder, &add, b"sk-not-shown\n").await.unwrap_err();
    assert!(refused.to_string().contains("master_key") && !refused.to_string().contains("sk-"), "{refused}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("master"), MASTER_KEY).unwrap();
    let said = accounts(&folder, &add, b"sk-not-shown\n").await.unwrap();
    assert!(said.contains("sealed") && !said.contains("sk-"), "{said}");
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(12).any(|window| window == b"sk-not-shown"));
    }
}

#[tokio::test]
async fn an_account_of_an_unknown_upstream_is_refused_with_the_nearest_name() {
    let folder = tempfile::tempdir().unwrap();
    let refused = accounts(&folder, &["add", "openia", "two", "--secret-env", "TWO"], b"").await.unwrap_err();
    assert!(refused.status() == 2 && refused.to_string().contains("\"openai\""), "{refused}");
    let taken = accounts(&folder, &["add", "openai", "main", "--secret-env", "TWO"], b"").await.unwrap_err();
    assert_eq!(taken.status(), 1);
}

#[test]
fn a_secret_has_exactly_one_source_and_none_is_the_command_line() {
    for args in [&["--secret-env", "A", "--secret-stdin"][..], &[], &["--secret", "sk-1"]] {
        let typed = ["turnkeep", "accounts", "add", "openai", "two"].iter().chain(args).copied();
        assert!(Cli::try_parse_from(typed).is_err(), "{args:?}");
    }
}
