//! How a kept secret changes.

use super::{Bounds, Place, SecretSource, current, hourly, id, quick, script, sourced, until, watched};
use std::time::Duration;
use turnkeep_base::Secret;

const TICK: Duration = Duration::from_millis(50);

fn exposed(secret: Option<Secret>) -> Option<String> {
    secret.map(|secret| secret.expose().to_owned())
}

#[tokio::test]
async fn accounts_have_their_secrets_in_the_order_they_were_given() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "of-file\n").unwrap();
    let (keeper, _told) = watched(quick());
    let sources = vec![
        sourced("z-command", hourly("echo of-command")),
        sourced("none", SecretSource::Env("TURNKEEP_TEST_NOT_SET".into())),
        (id("nowhere"), Err("it has no secret".into())),
        sourced("file", SecretSource::File(file)),
        sourced("file", SecretSource::Plain(Secret::new("a second of one name".into()))),
    ];
    let found: Vec<Option<String>> = keeper.keep(sources).await.into_iter().map(exposed).collect();
    let [command, of_file] = [Some("of-command".to_owned()), Some("of-file".to_owned())];
    assert_eq!(found, [command.clone(), None, None, of_file.clone(), of_file.clone()]);
    assert_eq!((current(&keeper, "z-command"), current(&keeper, "file")), (command, of_file));
    assert!(keeper.problem(&id("none")).unwrap().contains("is not set"));
    assert_eq!(keeper.problem(&id("nowhere")).as_deref(), Some("it has no secret"));
    assert_eq!(keeper.problem(&id("file")), None);
    assert_eq!(keeper.problems().len(), 2);
}

#[tokio::test]
async fn what_is_found_and_not_taken_changes_nothing() {
    let (keeper, _told) = watched(quick());
    keeper.keep(vec![sourced("a", hourly("echo one"))]).await;
    drop(keeper.find(vec![sourced("a", hourly("echo two")), sourced("b", hourly("echo b"))]).await);
    assert_eq!((current(&keeper, "a").as_deref(), current(&keeper, "b")), (Some("one"), None));
}

#[tokio::test]
async fn a_refresh_that_was_asked_for_is_told_even_if_the_secret_is_the_same() {
    let (keeper, mut told) = watched(quick());
    keeper.keep(vec![sourced("a", hourly("echo one"))]).await;
    keeper.refresh_now(&id("a"));
    assert_eq!(told.next().await, ("up/a".into(), "one".into()));
}

#[tokio::test]
async fn a_source_that_is_the_same_keeps_its_secret_when_it_cannot_be_found_again() {
    let place = Place::new("one");
    let (keeper, _told) = watched(quick());
    let source = || vec![sourced("a", SecretSource::File(place.path("secret")))];
    keeper.keep(source()).await;
    std::fs::remove_file(place.path("secret")).unwrap();
    assert_eq!(exposed(keeper.keep(source()).await.remove(0)).as_deref(), Some("one"));
    assert!(keeper.problem(&id("a")).unwrap().contains("cannot be read"));
    place.write("secret", "two");
    assert_eq!(exposed(keeper.keep(source()).await.remove(0)).as_deref(), Some("two"));
    assert_eq!(keeper.problem(&id("a")), None);
}

#[tokio::test]
async fn a_command_is_run_again_by_its_clock_and_another_secret_is_told() {
    let place = Place::new("one");
    let (keeper, mut told) = watched(quick());
    keeper.keep(vec![sourced("a", script(&place.script(""), TICK))]).await;
    until("a second run", || place.runs() >= 2).await;
    place.write("secret", "two");
    assert_eq!(told.next().await, ("up/a".into(), "two".into()));
    assert_eq!(current(&keeper, "a").as_deref(), Some("two"));
    place.write("secret", "three");
    // Not once for every run: only what is another is told.
    assert_eq!(told.next().await.1, "three");
}

#[tokio::test]
async fn a_failed_refresh_keeps_the_old_secret_and_is_shown_until_one_goes_well() {
    let place = Place::new("one");
    let text = place.script("[ ! -e broken ] || { echo no login >&2; exit 7; };");
    let (keeper, mut told) = watched(quick());
    keeper.keep(vec![sourced("a", hourly(&text))]).await;
    place.write("broken", "");
    keeper.refresh_now(&id("a"));
    until("the problem", || !keeper.problems().is_empty()).await;
    let why = &keeper.problems()[0].1;
    assert!(why.starts_with("command /bin/sh ended with status 7; the 9 bytes") && !why.contains("no login"), "{why}");
    assert_eq!(current(&keeper, "a").as_deref(), Some("one"));
    // It is tried again by itself, long before its hour.
    place.write("secret", "two");
    std::fs::remove_file(place.path("broken")).unwrap();
    assert_eq!(told.next().await.1, "two");
    assert!(keeper.problems().is_empty());
}

#[tokio::test]
async fn asks_while_a_refresh_runs_are_answered_by_it() {
    let place = Place::new("one");
    // The script waits for somebody to write into the gate.
    let text = place.script("[ ! -p gate ] || read x < gate;");
    let (keeper, mut told) = watched(quick());
    keeper.keep(vec![sourced("a", hourly(&text))]).await;
    let gate = place.path("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    keeper.refresh_now(&id("a"));
    until("the run", || place.runs() == 2).await;
    for _ in 0..100 {
        keeper.refresh_now(&id("a"));
    }
    place.write("secret", "two");
    let open = gate.clone();
    tokio::task::spawn_blocking(move || std::fs::write(open, "go\n")).await.unwrap().unwrap();
    assert_eq!(told.next().await.1, "two");
    assert_eq!(place.runs(), 2);
    // The next ask is one of its own: had an older one been left, it would have run before, and found the same.
    std::fs::remove_file(gate).unwrap();
    place.write("secret", "three");
    keeper.refresh_now(&id("a"));
    assert_eq!(told.next().await.1, "three");
    assert_eq!(place.runs(), 3);
}

#[tokio::test]
async fn asks_of_one_account_run_once_in_their_time_and_a_later_one_is_not_lost() {
    let place = Place::new("one");
    let (keeper, mut told) = watched(Bounds { between_asked: Duration::from_secs(2), ..quick() });
    keeper.keep(vec![sourced("a", hourly(&place.script("")))]).await;
    place.write("secret", "two");
    let first = std::time::Instant::now();
    keeper.refresh_now(&id("a"));
    assert_eq!(told.next().await.1, "two");
    place.write("secret", "three");
    keeper.refresh_now(&id("a"));
    keeper.refresh_now(&id("a"));
    assert_eq!(told.next().await.1, "three");
    assert!(first.elapsed() >= Duration::from_millis(1900), "{:?}", first.elapsed());
    assert_eq!(place.runs(), 3);
}

#[tokio::test]
async fn a_rejected_secret_of_a_file_is_read_again() {
    let place = Place::new("one");
    let (keeper, mut told) = watched(quick());
    keeper.keep(vec![sourced("a", SecretSource::File(place.path("secret")))]).await;
    place.write("secret", "two\n");
    keeper.refresh_now(&id("a"));
    assert_eq!(told.next().await.1, "two");
}

#[tokio::test]
async fn other_accounts_may_come_and_go_while_one_stays_as_it_is() {
    let (stays, changes, comes) = (Place::new("stays"), Place::new("old"), Place::new("comes"));
    let (keeper, mut told) = watched(quick());
    let kept = hourly(&stays.script(""));
    let old = hourly(&changes.script(""));
    keeper
        .keep(vec![sourced("stays", kept.clone()), sourced("changes", old), sourced("goes", hourly("echo goes"))])
        .await;
    let other = hourly("echo broken >&2; exit 1");
    keeper
        .keep(vec![sourced("stays", kept), sourced("changes", other), sourced("comes", hourly(&comes.script("")))])
        .await;
    assert_eq!((current(&keeper, "stays").as_deref(), stays.runs()), (Some("stays"), 1));
    assert_eq!(current(&keeper, "comes").as_deref(), Some("comes"));
    assert_eq!(current(&keeper, "goes"), None);
    // Another source may be another principal: its secret is not the old one.
    assert_eq!(current(&keeper, "changes"), None);
    assert_eq!(keeper.problems()[0].0, id("changes"));
    comes.write("secret", "came");
    keeper.refresh_now(&id("comes"));
    assert_eq!(told.next().await, ("up/comes".into(), "came".into()));
}

#[tokio::test]
async fn a_keeper_that_is_dropped_ends_the_command_that_runs() {
    let place = Place::new("one");
    let text = place.script("[ ! -e slow ] || { echo $$ > pid; exec sleep 600; };");
    // Its own time would not end it within this test's.
    let (keeper, _told) = watched(Bounds { run: Duration::from_secs(600), ..quick() });
    keeper.keep(vec![sourced("a", hourly(&text))]).await;
    place.write("slow", "");
    keeper.refresh_now(&id("a"));
    let pid = || std::fs::read_to_string(place.path("pid")).ok()?.trim().parse().ok();
    until("the run", || pid().is_some()).await;
    drop(keeper);
    let group = pid().and_then(rustix::process::Pid::from_raw).unwrap();
    until("the end of the command", || rustix::process::test_kill_process_group(group).is_err()).await;
}
