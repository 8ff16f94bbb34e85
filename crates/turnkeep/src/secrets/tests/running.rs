//! One run of a command.

use super::{Place, hourly, until};
use crate::secrets::{fetch, fetch_within};
use std::time::Duration;

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
async fn a_command_that_fails_is_told_with_how_it_ended_and_how_much_it_said() {
    let why = fails("echo not logged in >&2; exit 3").await;
    let words = "command /bin/sh ended with status 3; the 14 bytes it wrote to stderr are not shown, as they may hold a \
                 secret: run it by hand to see more, and try it with turnkeep check --probe";
    assert_eq!(why, words);
    let why = fails("kill -TERM $$").await;
    assert!(why.contains("ended by signal 15; it wrote nothing to stderr"), "{why}");
    let why = fails("yes 'many words' | head -c 300000 >&2; exit 1").await;
    assert!(why.contains("ended with status 1; the 300000 bytes"), "{why}");
    let words = vec!["/nowhere/at-all".to_owned()];
    let source = super::SecretSource::Command { words, every: Duration::from_secs(60) };
    let why = fetch(&source).await.unwrap_err();
    assert!(why.starts_with("command /nowhere/at-all cannot be started: "), "{why}");
}

#[tokio::test]
async fn an_error_holds_nothing_of_what_a_command_has_printed_anywhere() {
    for script in [
        r#"echo '{"access_token":"SEKRET-new"}' >&2; exit 3"#,
        "echo 'refreshed to SEKRET-new but saving failed' >&2; exit 1",
        "echo SEKRET-new; echo SEKRET-new >&2; exit 1",
        "echo SEKRET-new; echo SEKRET >&2; echo SEKRET-other",
        "printf 'SEKRET-\\033new'; echo SEKRET >&2",
        "printf 'SEKRET-\\377'; echo SEKRET >&2",
        "echo SEKRET-new; echo SEKRET >&2; kill -KILL $$",
        "echo SEKRET >&2; while echo SEKRET; do :; done",
    ] {
        let why = fails(script).await;
        assert!(!why.contains("SEKRET"), "{script}: {why}");
    }
    let stuck = hourly("echo SEKRET; echo SEKRET >&2; exec sleep 600");
    let why = fetch_within(&stuck, Duration::from_millis(1500)).await.unwrap_err();
    assert!(why.starts_with("command /bin/sh did not end within 1500ms; the 7 bytes"), "{why}");
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
    assert!(fails("yes").await.starts_with("command /bin/sh printed more than 64KiB; "));
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
    let why = fetch_within(&hourly(&script), run).await.unwrap_err();
    assert!(why.starts_with("command /bin/sh did not end within 1500ms; "), "{why}");
    assert!(place.path("started").exists(), "the time was too short to start it");
    let group = std::fs::read_to_string(place.path("started")).unwrap();
    let group = rustix::process::Pid::from_raw(group.trim().parse().unwrap()).unwrap();
    until("the end of the group", || rustix::process::test_kill_process_group(group).is_err()).await;
}

#[tokio::test]
async fn a_child_that_is_left_behind_holds_up_no_command_and_is_killed_with_it() {
    for keeps in ["", ">/dev/null 2>&1"] {
        let place = Place::new("");
        let folder = place.0.path().display();
        let script = format!("cd {folder}; echo $$ > group; sleep 600 {keeps} & echo sk-1");
        let began = std::time::Instant::now();
        assert_eq!(fetch(&hourly(&script)).await.unwrap().expose(), "sk-1", "with {keeps:?}");
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
        let group = std::fs::read_to_string(place.path("group")).unwrap();
        let group = rustix::process::Pid::from_raw(group.trim().parse().unwrap()).unwrap();
        until("the end of the group", || rustix::process::test_kill_process_group(group).is_err()).await;
    }
}

#[tokio::test]
async fn all_that_a_command_has_printed_before_its_end_is_read_where_a_child_holds_the_output() {
    let script = "head -c 65536 /dev/zero | tr '\\0' x; sleep 600 &";
    assert_eq!(fetch(&hourly(script)).await.unwrap().expose().len(), 64 * 1024);
}
