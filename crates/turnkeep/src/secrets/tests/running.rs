//! One run of a command.

use super::{Place, hourly, until};
use crate::secrets::{fetch, fetch_within};
use std::time::Duration;
use turnkeep_base::Secret;

async fn fails(script: &str) -> String {
    fetch(&hourly(script)).await.expect_err("the command is wrong")
}

#[tokio::test]
async fn what_a_command_prints_is_the_secret_without_its_line_end() {
    assert_eq!(fetch(&hourly("echo sk-1")).await.unwrap().expose(), "sk-1");
    assert_eq!(fetch(&hourly("printf ' sk 1 '")).await.unwrap().expose(), " sk 1 ");
}

#[tokio::test]
async fn its_words_are_read_by_no_shell_and_it_has_the_environment_of_the_gateway() {
    let words = ["/bin/echo", "$HOME; echo *"].map(str::to_owned).into();
    let source = super::SecretSource::Command { words, every: Duration::from_secs(60) };
    assert_eq!(fetch(&source).await.unwrap().expose(), "$HOME; echo *");
    let path = std::env::var("PATH").unwrap();
    assert_eq!(fetch(&hourly("printf %s \"$PATH\"")).await.unwrap().expose(), path);
}

#[tokio::test]
async fn a_command_that_fails_is_told_with_its_status_and_what_it_said() {
    let why = fails("echo not logged in >&2; exit 3").await;
    assert_eq!(why, "command /bin/sh ended with status 3: not logged in");
    assert!(fails("kill -TERM $$").await.contains("ended by signal 15"));
    let words = vec!["/nowhere/at-all".to_owned()];
    let source = super::SecretSource::Command { words, every: Duration::from_secs(60) };
    let why = fetch(&source).await.unwrap_err();
    assert!(why.starts_with("command /nowhere/at-all cannot be started: "), "{why}");
}

#[tokio::test]
async fn an_error_never_holds_a_secret_and_is_short() {
    let why = fails("echo sk-printed-here; echo 'refused: sk-printed-here' >&2; exit 1").await;
    assert!(why.contains("refused: [secret]") && !why.contains("sk-printed"), "{why}");
    let known = Secret::new("sk-known-before".into());
    let script = hourly("echo 'stale: sk-known-before' >&2; exit 1");
    let why = fetch_within(&script, Duration::from_secs(20), Some(&known)).await.unwrap_err();
    assert!(why.ends_with("stale: [secret]"), "{why}");
    let why = fails("yes 'many words' | head -c 300000 >&2; exit 1").await;
    assert!(why.chars().count() < 400 && why.ends_with('…'), "{why}");
}

#[tokio::test]
async fn more_than_one_line_none_and_no_text_are_no_secret() {
    for (script, part) in
        [("printf 'a\\nb\\n'", "more than one line"), ("true", "is empty"), ("printf '\\377'", "not UTF-8")]
    {
        let why = fails(script).await;
        assert!(why.contains(part) && why.starts_with("command /bin/sh "), "{script}: {why}");
    }
}

#[tokio::test]
async fn a_command_that_prints_too_much_is_ended_without_waiting_for_it() {
    assert!(fails("yes").await.ends_with("printed more than 64KiB"));
    let fits = fetch(&hourly("head -c 65536 /dev/zero | tr '\\0' x")).await.unwrap();
    assert_eq!(fits.expose().len(), 64 * 1024);
}

#[tokio::test]
async fn a_command_that_runs_too_long_is_killed_with_everything_it_has_started() {
    let place = Place::new("");
    let folder = place.0.path().display();
    // The child of the command holds a lock for as long as it lives.
    let script = format!("cd {folder}; mkfifo hold; (exec 3<>hold; echo $$ > started; sleep 600) & sleep 600");
    let run = Duration::from_millis(1500);
    let why = fetch_within(&hourly(&script), run, None).await.unwrap_err();
    assert_eq!(why, "command /bin/sh did not end within 1500ms");
    assert!(place.path("started").exists(), "the time was too short to start it");
    let group = std::fs::read_to_string(place.path("started")).unwrap();
    let group = rustix::process::Pid::from_raw(group.trim().parse().unwrap()).unwrap();
    until("the end of the group", || rustix::process::test_kill_process_group(group).is_err()).await;
}
