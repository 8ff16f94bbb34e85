//! The whole way: arguments, configuration file, database file, output.

use super::run;
use crate::cli::{Cli, Command, KeysTopic};
use crate::commands::Failure;
use clap::Parser;

async fn keys(folder: &tempfile::TempDir, args: &[&str]) -> Result<String, Failure> {
    let config = folder.path().join("turnkeep.toml");
    std::fs::write(&config, "[store]\nurl = \"sqlite:t.db\"\n").unwrap();
    let config = config.display().to_string();
    let typed = ["turnkeep", "keys"].iter().chain(args).copied().chain(["--config", config.as_str()]);
    let command = Cli::try_parse_from(typed).unwrap().command;
    let Command::Keys { command: KeysTopic::Records(command) } = command else { panic!("not keys") };
    let mut out = Vec::new();
    run(&command, &mut out).await?;
    Ok(String::from_utf8(out).unwrap())
}

#[tokio::test]
async fn a_created_key_prints_its_secret_alone_and_the_list_never_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let secret = keys(&folder, &["create", "laptop", "--scope", "chat,metrics", "--model", "gpt-*"]).await.unwrap();
    assert!(secret.starts_with("tk_") && secret.lines().count() == 1, "{secret}");
    let list = keys(&folder, &["list"]).await.unwrap();
    assert!(list.contains("laptop") && list.contains("chat,metrics") && list.contains("gpt-*"), "{list}");
    let json = keys(&folder, &["list", "--json"]).await.unwrap();
    let parsed: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(parsed[0]["name"], "laptop");
    assert!(!list.contains(secret.trim()) && !json.contains(secret.trim()));
}

#[tokio::test]
async fn a_rotated_key_has_another_secret_and_a_revoked_one_cannot_be_rotated() {
    let folder = tempfile::tempdir().unwrap();
    let first = keys(&folder, &["create", "a"]).await.unwrap();
    let second = keys(&folder, &["rotate", "a", "--overlap", "10m"]).await.unwrap();
    assert_ne!(first, second);
    keys(&folder, &["revoke", "a"]).await.unwrap();
    let refused = keys(&folder, &["rotate", "a"]).await.unwrap_err();
    assert!(refused.status() == 1 && refused.to_string().contains("revoked"), "{refused}");
    assert!(keys(&folder, &["list"]).await.unwrap().contains("revoked 2"));
}

#[tokio::test]
async fn a_key_that_is_not_there_cannot_be_revoked_and_a_name_is_taken_once() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(keys(&folder, &["revoke", "nobody"]).await.unwrap_err().status(), 1);
    keys(&folder, &["create", "a"]).await.unwrap();
    assert_eq!(keys(&folder, &["create", "a"]).await.unwrap_err().status(), 1);
}

#[test]
fn an_unknown_scope_is_refused_on_the_command_line() {
    let refused = Cli::try_parse_from(["turnkeep", "keys", "create", "a", "--scope", "root"]).unwrap_err();
    assert!(refused.to_string().contains("viewer"), "{refused}");
}

#[tokio::test]
async fn a_key_is_made_with_its_limits_and_the_list_shows_them() {
    let folder = tempfile::tempdir().unwrap();
    let args = "create portal --requests-per-minute 60 --tokens-per-minute 4000 --max-in-flight 8 --budget 20.5usd/day \
                --label team=infra --label stage=live --shared --expires 2999-12-31";
    keys(&folder, &args.split_whitespace().collect::<Vec<_>>()).await.unwrap();
    let list = keys(&folder, &["list"]).await.unwrap();
    assert!(list.contains("60 req/min, 4000 tok/min, 8 at once, 20.5usd/day"), "{list}");
    assert!(list.contains("active until 2999-12-31T00:00:00Z"), "{list}");
    let json: serde_json::Value = serde_json::from_str(&keys(&folder, &["list", "--json"]).await.unwrap()).unwrap();
    assert_eq!(json[0]["limits"]["budget"], serde_json::json!({"usd": 20.5, "per": "day"}));
    assert_eq!(json[0]["labels"], serde_json::json!({"team": "infra", "stage": "live"}));
    assert_eq!((&json[0]["shared"], &json[0]["limits"]["max_in_flight"]), (&true.into(), &8.into()));
    keys(&folder, &["create", "old", "--expires", "2001-01-01", "--budget", "1000tokens/week"]).await.unwrap();
    let list = keys(&folder, &["list"]).await.unwrap();
    assert!(list.contains("1000tokens/week") && list.contains("expired 2001"), "{list}");
}

#[test]
fn a_limit_that_is_none_is_refused_on_the_command_line() {
    for (option, value, part) in [
        ("--budget", "20", "20usd/day"),
        ("--budget", "20usd/year", "day, week or month"),
        ("--expires", "soon", "2026-12-31"),
        ("--label", "team", "NAME=VALUE"),
        ("--max-in-flight", "0", "1..=100000"),
    ] {
        let refused = Cli::try_parse_from(["turnkeep", "keys", "create", "a", option, value]).unwrap_err();
        assert!(refused.to_string().contains(part), "{refused}");
    }
}
