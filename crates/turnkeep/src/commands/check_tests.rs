//! What `check` prints, and how it ends.

use super::{Probe, ProbeAnswer, Probed, run};
use crate::cli::{CheckArgs, ConfigFile};
use crate::commands::Failure;
use crate::commands::open_store;
use crate::config::{Account, Config, Upstream};
use turnkeep_base::{AccountId, Secret};
use turnkeep_store::{NewAccount, NewKey, SecretInput, SecretRef, SqliteStore, Store};

struct TwoModels;

impl Probe for TwoModels {
    fn models<'a>(&'a self, _: &'a Upstream, account: &'a Account, secret: &'a Secret) -> ProbeAnswer<'a> {
        let refused = secret.expose() == "bad";
        let name = account.name.clone();
        Box::pin(async move {
            if refused {
                Err("401: the key was rejected".into())
            } else {
                Ok(Probed::Models(vec!["one".into(), format!("{name}-two")]))
            }
        })
    }
}

async fn check(folder: &tempfile::TempDir, text: &str, probe: bool) -> (Result<(), Failure>, String) {
    let config = folder.path().join("turnkeep.toml");
    std::fs::write(&config, text).unwrap();
    let mut out = Vec::new();
    let result = run(&CheckArgs { file: ConfigFile { config }, probe }, &mut out, &TwoModels).await;
    (result, String::from_utf8(out).unwrap())
}

const UPSTREAM: &str = r#"
[[upstreams]]
name = "openai"
kind = "openai"
base_url = "https://api.openai.com/v1"
[[upstreams.accounts]]
name = "main"
secret = { file = "secret" }
"#;

#[tokio::test]
async fn check_tells_what_would_run_and_never_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), "sk-not-shown\n").unwrap();
    let (result, said) = check(&folder, UPSTREAM, true).await;
    result.unwrap();
    for part in ["listen    127.0.0.1:4141", "openai", "secret found in file", "model     *", "main-two", "is right"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("sk-not-shown"), "{said}");
}

#[tokio::test]
async fn how_long_responses_are_kept_is_told_in_its_own_unit() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), "sk-not-shown\n").unwrap();
    for (keep, words) in [("", "30d unused, 90d at most"), ("5h", "5h unused, 15h at most")] {
        let keep =
            if keep.is_empty() { String::new() } else { format!("[store]\nkeep = {{ responses = {keep:?} }}\n") };
        let (_, said) = check(&folder, &(keep + UPSTREAM), false).await;
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[tokio::test]
async fn a_missing_secret_fails_the_check_and_names_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let (result, said) = check(&folder, UPSTREAM, false).await;
    assert_eq!(result.unwrap_err().status(), 1);
    assert!(said.contains("MISSING: file"), "{said}");
}

#[tokio::test]
async fn a_probe_that_the_upstream_refuses_fails_the_check() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), "bad").unwrap();
    let (result, said) = check(&folder, UPSTREAM, true).await;
    assert_eq!(result.unwrap_err().status(), 1);
    assert!(said.contains("PROBE FAILED: 401"), "{said}");
    assert!(check(&folder, UPSTREAM, false).await.0.is_ok());
}

#[tokio::test]
async fn a_wrong_config_ends_with_status_2_and_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let (result, _) = check(&folder, "[server]\nlisen = \"127.0.0.1:1\"\n", false).await;
    let failure = result.unwrap_err();
    assert_eq!(failure.status(), 2);
    assert!(failure.to_string().contains("turnkeep.toml:2:1: server.lisen:"), "{failure}");
}

#[tokio::test]
async fn a_master_key_that_is_none_and_a_missing_certificate_fail_the_check() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("master"), "short").unwrap();
    let text = "[server]\ntls = { cert = \"c\", key = \"k\" }\n[store]\nmaster_key = { file = \"master\" }\n";
    let (result, said) = check(&folder, text, false).await;
    assert!(result.unwrap_err().to_string().contains("3 of the things"), "{said}");
    assert!(said.contains("16 characters") && said.contains("tls cert"), "{said}");
}

/// The store of a configuration, as the command line makes it.
fn store(folder: &tempfile::TempDir, text: &str) -> SqliteStore {
    let config = Config::parse(text, &folder.path().join("turnkeep.toml"), std::iter::empty()).unwrap();
    open_store::open(&config).unwrap()
}

fn refused(result: Result<(), Failure>, said: &str, part: &str) {
    assert!(said.contains(part), "{part:?} is not in {said}");
    assert_eq!(result.expect_err(said).status(), 1, "{said}");
}

#[tokio::test]
async fn check_makes_no_store_and_says_that_the_first_start_does() {
    let folder = tempfile::tempdir().unwrap();
    let (result, said) = check(&folder, "", false).await;
    result.unwrap();
    assert!(
        said.contains("made at the first start") && said.contains("the first start makes one and prints it"),
        "{said}"
    );
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["turnkeep.toml"]);
}

#[tokio::test]
async fn a_store_that_serve_could_not_open_fails_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let (result, said) = check(&folder, "[store]\nurl = \"sqlite:nowhere/t.db\"\n", false).await;
    refused(result, &said, "there is no folder");
    std::fs::create_dir(folder.path().join("t.db")).unwrap();
    let text = "[store]\nurl = \"sqlite:t.db\"\n";
    let (result, said) = check(&folder, text, false).await;
    refused(result, &said, "it is not a file");
    std::fs::write(folder.path().join("u.db"), "words that are no database").unwrap();
    let (result, said) = check(&folder, &text.replace("t.db", "u.db"), false).await;
    refused(result, &said, "CANNOT BE OPENED");
}

#[tokio::test]
async fn a_public_address_fails_the_check_until_there_is_a_key_in_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[server]\nlisten = \"0.0.0.0:4141\"\n[store]\nurl = \"sqlite:t.db\"\n";
    let (result, said) = check(&folder, text, false).await;
    refused(result, &said, "`serve` refuses to start");
    let store = store(&folder, text);
    store.create_key(NewKey::named("laptop")).await.unwrap();
    store.shutdown().await.unwrap();
    let (result, said) = check(&folder, text, false).await;
    result.unwrap();
    assert!(said.contains("0 accounts, 1 keys") && !said.contains("NONE"), "{said}");
}

#[tokio::test]
async fn the_accounts_of_the_store_are_checked_beside_those_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let master = "[store]\nmaster_key = { file = \"master\" }\n";
    std::fs::write(folder.path().join("master"), "a passphrase that is long").unwrap();
    let text = format!("{master}{}", UPSTREAM.split("[[upstreams.accounts]]").next().unwrap());
    let store = store(&folder, &text);
    let sealed = SecretInput::Literal(Secret::new("sk-in-the-store".into()));
    let gone = SecretInput::Reference(SecretRef::File(folder.path().join("gone")));
    for (upstream, account, secret) in
        [("openai", "sealed", sealed), ("openai", "lost", gone.clone()), ("old", "x", gone)]
    {
        let id = AccountId { upstream: upstream.into(), account: account.into() };
        let models = vec!["*".into()];
        let new = NewAccount { models, max_in_flight: Some(3), ..NewAccount::new(id, secret) };
        store.add_account(new).await.unwrap();
    }
    store.shutdown().await.unwrap();
    let (result, said) = check(&folder, &text, true).await;
    for part in [
        "account sealed, in the store, at most 3 at once, secret found in the store, sealed",
        "sealed-two",
        "account lost, in the store, at most 3 at once, secret MISSING: file",
        "account old/x of the store belongs to no upstream",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    assert!(!said.contains("sk-in-the-store") && !said.contains("has no account here"), "{said}");
    refused(result, &said, "3 accounts, 0 keys");
}

#[tokio::test]
async fn a_command_is_run_only_for_a_probe() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("{{ command = [\"/bin/sh\", \"-c\", \"touch {}/ran; echo sk\"] }}", folder.path().display());
    let text = UPSTREAM.replace("{ file = \"secret\" }", &script);
    let (result, said) = check(&folder, &text, false).await;
    result.unwrap();
    assert!(said.contains("secret from command /bin/sh, which is run only with --probe"), "{said}");
    assert!(!folder.path().join("ran").exists());
    let (result, said) = check(&folder, &text, true).await;
    result.unwrap();
    assert!(folder.path().join("ran").exists() && said.contains("main-two"), "{said}");
}

#[tokio::test]
async fn the_models_that_stand_in_and_the_limits_of_an_account_are_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), "sk").unwrap();
    let model = |name: &str| format!("[[models]]\nname = \"{name}\"\nroutes = [{{ upstream = \"openai\" }}]\n");
    let limits = "requests_per_minute = 60\ntokens_per_minute = 9\nlimit_group = \"org\"\n";
    let standing_in = "fallbacks = [\"b\", \"c\"]\nlarger = [\"c\"]\n";
    let text = format!("{UPSTREAM}{limits}{}{standing_in}{}{}", model("a"), model("b"), model("c"));
    let (result, said) = check(&folder, &text, false).await;
    result.unwrap();
    for part in [
        "model     a -> openai as a; if none can serve: b, then c; if a request is too long: c",
        "at most 16 at once, 60 requests a minute, 9 tokens a minute, limit group org",
        "warning   upstreams[0].accounts[0].limit_group",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
}

#[tokio::test]
async fn two_callers_with_one_secret_fail_the_check_as_they_fail_the_start() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k"), "a secret that is long enough").unwrap();
    let key = |name: &str| format!("[[keys]]\nname = \"{name}\"\nsecret = {{ file = \"k\" }}\n");
    let (result, said) = check(&folder, &format!("{}{}", key("one"), key("two")), false).await;
    refused(result, &said, "THE SAME as that of one");
    assert!(!said.contains("long enough"), "{said}");
}

#[tokio::test]
async fn a_certificate_that_is_none_fails_the_check() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["c", "k"] {
        std::fs::write(folder.path().join(name), "words").unwrap();
    }
    let (result, said) = check(&folder, "[server]\ntls = { cert = \"c\", key = \"k\" }\n", false).await;
    refused(result, &said, "CANNOT BE USED");
}

#[tokio::test]
async fn a_keys_limits_are_shown_and_an_end_that_has_passed_and_models_without_a_price_are_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("secret"), "sk-not-shown-anywhere\n").unwrap();
    let key = "[[keys]]\nname = \"old\"\nsecret = { file = \"secret\" }\nmax_in_flight = 3\nexpires = 2001-01-01\n\
               budget = { usd = 0.5, per = \"week\" }\n";
    let (result, said) = check(&folder, &format!("{UPSTREAM}{key}"), false).await;
    result.unwrap();
    for part in ["3 turns at once, 0.5usd/week", "EXPIRED", "refused models without a price"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
