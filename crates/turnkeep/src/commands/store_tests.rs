//! Usage, backup, restore and the master key's rotation, as they are typed, on a store in a file.

use super::{Failure, backup, rekey, restore, usage};
use crate::cli::{Cli, Command, KeysTopic};
use clap::Parser;
use std::path::Path;
use std::sync::Arc;
use turnkeep_base::{AccountId, AttemptId, Dialect, Secret, TurnId, Usage};
use turnkeep_engine::ports::{AttemptClosed, AttemptOpened, AttemptOutcome, WallClock};
use turnkeep_store::{Ledger, MasterKey, Role, SqliteStore, Store, StoreOptions, SystemClock};

const OLD_KEY: &str = "the old passphrase of this store";
const NEW_KEY: &str = "the new passphrase of this store";

fn gateway(folder: &Path, key: &str) -> SqliteStore {
    let master_key = Some(MasterKey::parse(&Secret::new(key.into())).unwrap());
    let options = StoreOptions { role: Role::Gateway, master_key, clock: Arc::new(SystemClock) };
    SqliteStore::open(&folder.join("t.db"), options).unwrap()
}

async fn attempt(store: &SqliteStore, caller: &str, team: &str) {
    let now = SystemClock.unix_ms();
    let attempt = AttemptId { turn: TurnId::new(now, u128::from(caller.as_bytes()[0])), number: 1 };
    let entry = AttemptOpened {
        attempt,
        caller: caller.into(),
        labels: format!("{{\"team\":\"{team}\"}}").into(),
        account: AccountId { upstream: "openai".into(), account: "a".into() },
        model: "gpt".into(),
        upstream_model: "gpt-1".into(),
        dialect: Dialect::Chat,
        opened_ms: now,
        estimated_input: 5,
        estimated_output: 0,
        estimated_cost: None,
        conversation: None,
    };
    store.open(entry).await.unwrap();
    let usage = Usage { input: 7, output: 3, ..Usage::default() };
    let cost = Some(20_000_000);
    store
        .close(AttemptClosed {
            attempt,
            outcome: AttemptOutcome::Completed,
            usage,
            exact: true,
            cost,
            milli_units: None,
            closed_ms: now,
        })
        .await
        .unwrap();
    store.flush().await.unwrap();
}

/// Runs a command on the store of this folder, whose configured master key is in the file `master.key`.
async fn typed(folder: &Path, words: &[&str]) -> Result<String, Failure> {
    let config = folder.join("turnkeep.toml");
    std::fs::write(&config, "[store]\nurl = \"sqlite:t.db\"\nmaster_key = { file = \"master.key\" }\n").unwrap();
    let words = ["turnkeep"].iter().chain(words).copied().chain(["--config", config.to_str().unwrap()]);
    let mut out = Vec::new();
    match Cli::try_parse_from(words).unwrap().command {
        Command::Usage(args) => usage::run(&args, &mut out).await?,
        Command::Backup(args) => backup::run(&args, &mut out)?,
        Command::Restore(args) => restore::run(&args, &mut out)?,
        Command::Keys { command: KeysTopic::Rekey(args) } => rekey::run(&args, &mut out)?,
        Command::Serve(_)
        | Command::Demo(_)
        | Command::Init(_)
        | Command::Check(_)
        | Command::Keys { .. }
        | Command::Accounts { .. }
        | Command::Explain { .. }
        | Command::Validate(_)
        | Command::Replay(_)
        | Command::Lab(_) => panic!("not a command of here: {config:?}"),
    }
    Ok(String::from_utf8(out).unwrap())
}

#[tokio::test]
async fn usage_and_backup_work_beside_a_gateway_and_restore_and_rekey_wait_for_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("master.key"), format!("{OLD_KEY}\n")).unwrap();
    std::fs::write(at("new.key"), NEW_KEY).unwrap();
    let store = gateway(folder.path(), OLD_KEY);
    attempt(&store, "laptop", "infra").await;

    let text = typed(folder.path(), &["usage", "--by", "label:team,caller", "--since", "1h"]).await.unwrap();
    let line: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(line[..7], ["infra", "laptop", "1", "1", "0", "0", "7"], "{text}");
    assert!(line.contains(&"0.02"), "{text}");
    let text = typed(folder.path(), &["usage", "--json"]).await.unwrap();
    assert!(text.starts_with('[') && text.contains("\"cost_usd\":\"0.02\""), "{text}");

    let text = typed(folder.path(), &["backup", &at("copy.db")]).await.unwrap();
    assert!(text.contains("copy.db") && text.contains("checked"), "{text}");
    let refused = typed(folder.path(), &["backup", &at("copy.db")]).await.unwrap_err();
    assert!(refused.status() == 1 && refused.to_string().contains("--force"), "{refused}");
    typed(folder.path(), &["backup", "--force", &at("copy.db")]).await.unwrap();
    attempt(&store, "phone", "infra").await;

    let rekey = ["keys", "rekey", "--new-file", &at("new.key")];
    for words in [&["restore", &at("copy.db")][..], &rekey] {
        let refused = typed(folder.path(), words).await.unwrap_err();
        assert!(refused.status() == 1 && refused.to_string().contains("running gateway"), "{refused}");
    }
    store.shutdown().await.unwrap();
    drop(store);

    let text = typed(folder.path(), &["restore", &at("copy.db")]).await.unwrap();
    assert!(text.contains("is kept as") && text.contains(".old"), "{text}");
    let text = typed(folder.path(), &["usage", "--csv"]).await.unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");

    let text = typed(folder.path(), &rekey).await.unwrap();
    assert!(text.contains("now set [store] master_key") && !text.contains(NEW_KEY), "{text}");
    let refused = typed(folder.path(), &["usage"]).await.unwrap_err();
    assert!(refused.to_string().contains("master key is not the one"), "{refused}");
    gateway(folder.path(), NEW_KEY).shutdown().await.unwrap();
}

#[tokio::test]
async fn a_look_into_a_store_that_is_not_there_says_so_and_makes_none() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("master.key"), OLD_KEY).unwrap();
    let refused = typed(folder.path(), &["usage", "--by", "caller", "--since", "7d"]).await.err().unwrap();
    assert!(refused.to_string().contains("there is no store yet"), "{refused}");
    assert!(!folder.path().join("t.db").exists());
}
