//! What `check` prints, and how it ends.

use super::{Probe, ProbeAnswer, run};
use crate::cli::{CheckArgs, ConfigFile};
use crate::commands::Failure;
use crate::config::{Account, Upstream};
use turnkeep_base::Secret;

struct TwoModels;

impl Probe for TwoModels {
    fn models<'a>(&'a self, _: &'a Upstream, account: &'a Account, secret: &'a Secret) -> ProbeAnswer<'a> {
        let refused = secret.expose() == "bad";
        let name = account.name.clone();
        Box::pin(async move {
            if refused {
                Err("401: the key was rejected".into())
            } else {
                Ok(vec!["one".into(), format!("{name}-two")])
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
