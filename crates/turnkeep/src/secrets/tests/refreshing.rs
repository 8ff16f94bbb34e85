//! How a kept secret changes.

use super::{Bounds, Keeper, Place, SecretSource, current, hourly, id, script, until, watch};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(50);

/// Bounds that a test can wait for.
fn quick() -> Bounds {
    Bounds { run: Duration::from_secs(20), between_asked: TICK, after_failure: TICK }
}

#[tokio::test]
async fn a_secret_is_there_when_the_accounts_are_and_before_anybody_watches() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "of-file\n").unwrap();
    let keeper = Keeper::new();
    let sources = vec![
        (id("command"), hourly("echo of-command")),
        (id("file"), SecretSource::File(file)),
        (id("none"), SecretSource::Env("TURNKEEP_TEST_NOT_SET".into())),
    ];
    keeper.replace(sources).await;
    assert_eq!(current(&keeper, "command").as_deref(), Some("of-command"));
    assert_eq!(current(&keeper, "file").as_deref(), Some("of-file"));
    assert_eq!(current(&keeper, "none"), None);
    let problems = keeper.problems();
    assert!(matches!(&problems[..], [(which, why)] if *which == id("none") && why.contains("is not set")));
}

#[tokio::test]
async fn a_command_is_run_again_by_its_clock_and_another_secret_is_told() {
    let place = Place::new("one");
    let keeper = Keeper::within(quick());
    keeper.replace(vec![(id("a"), script(&place.script(""), TICK))]).await;
    let mut told = watch(&keeper);
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
    let keeper = Keeper::within(quick());
    keeper.replace(vec![(id("a"), hourly(&text))]).await;
    let mut told = watch(&keeper);
    place.write("broken", "");
    keeper.refresh_now(&id("a"));
    until("the problem", || !keeper.problems().is_empty()).await;
    assert_eq!(keeper.problems()[0].1, "command /bin/sh ended with status 7: no login");
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
    let keeper = Keeper::within(quick());
    keeper.replace(vec![(id("a"), hourly(&text))]).await;
    let mut told = watch(&keeper);
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
    let keeper = Keeper::within(Bounds { between_asked: Duration::from_secs(2), ..quick() });
    keeper.replace(vec![(id("a"), hourly(&place.script("")))]).await;
    let mut told = watch(&keeper);
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
    let keeper = Keeper::within(quick());
    keeper.replace(vec![(id("a"), SecretSource::File(place.path("secret")))]).await;
    let mut told = watch(&keeper);
    place.write("secret", "two\n");
    keeper.refresh_now(&id("a"));
    assert_eq!(told.next().await.1, "two");
}

#[tokio::test]
async fn other_accounts_may_come_and_go_while_one_stays_as_it_is() {
    let (stays, changes, comes) = (Place::new("stays"), Place::new("old"), Place::new("comes"));
    let keeper = Keeper::within(quick());
    let kept = hourly(&stays.script(""));
    let old = hourly(&changes.script(""));
    keeper.replace(vec![(id("stays"), kept.clone()), (id("changes"), old), (id("goes"), hourly("echo goes"))]).await;
    let mut told = watch(&keeper);
    let other = hourly("echo broken >&2; exit 1");
    keeper.replace(vec![(id("stays"), kept), (id("changes"), other), (id("comes"), hourly(&comes.script("")))]).await;
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
    let keeper = Keeper::within(quick());
    keeper.replace(vec![(id("a"), hourly(&text))]).await;
    let _told = watch(&keeper);
    place.write("slow", "");
    keeper.refresh_now(&id("a"));
    let pid = || std::fs::read_to_string(place.path("pid")).ok()?.trim().parse().ok();
    until("the run", || pid().is_some()).await;
    drop(keeper);
    let group = pid().and_then(rustix::process::Pid::from_raw).unwrap();
    until("the end of the command", || rustix::process::test_kill_process_group(group).is_err()).await;
}
