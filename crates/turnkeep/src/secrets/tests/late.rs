//! Commands that take their time, and the order in which secrets are told.

use super::{Bounds, PATIENCE, Place, current, hourly, id, quick, sourced, until, watched};
use crate::secrets::Keeper;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long what must not come is waited for.
const A_WHILE: Duration = Duration::from_millis(300);

/// Finding does not wait at all.
fn impatient() -> Bounds {
    Bounds { find: Duration::ZERO, ..quick() }
}

/// A place whose script waits until somebody opens its gate.
fn gated() -> (Place, String) {
    let place = Place::new("one");
    assert!(std::process::Command::new("mkfifo").arg(place.path("gate")).status().unwrap().success());
    let script = place.script("read x < gate;");
    (place, script)
}

/// Waits until a script waits.
fn open_gate(place: &Place) {
    std::fs::write(place.path("gate"), "go\n").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_takes_its_time_is_not_waited_for_and_its_secret_is_told_when_it_comes() {
    let (place, script) = gated();
    let (keeper, mut told) = watched(impatient());
    let found = tokio::time::timeout(PATIENCE, keeper.keep(vec![sourced("a", hourly(&script))])).await.unwrap();
    assert!(found[0].is_none());
    let why = keeper.problem(&id("a")).unwrap();
    assert!(why.starts_with("command /bin/sh has not answered yet"), "{why}");
    until("the run", || place.runs() == 1).await;
    // Whatever else is taken up meanwhile, it is neither lost nor run again.
    keeper.keep(vec![sourced("a", hourly(&script))]).await;
    open_gate(&place);
    assert_eq!(told.next().await, ("up/a".into(), "one".into()));
    assert_eq!((keeper.problem(&id("a")), current(&keeper, "a").as_deref()), (None, Some("one")));
    assert_eq!(place.runs(), 1);
}

#[tokio::test]
async fn a_command_that_fails_late_is_shown_and_tried_again() {
    let place = Place::new("one");
    place.write("broken", "");
    let script = place.script("[ ! -e broken ] || exit 7;");
    let (keeper, mut told) = watched(impatient());
    keeper.keep(vec![sourced("a", hourly(&script))]).await;
    until("the failure", || keeper.problem(&id("a")).is_some_and(|why| why.contains("status 7"))).await;
    std::fs::remove_file(place.path("broken")).unwrap();
    assert_eq!(told.next().await.1, "one");
}

#[tokio::test]
async fn a_command_that_was_found_late_and_is_not_taken_is_ended() {
    let place = Place::new("");
    let (keeper, _told) = watched(Bounds { run: Duration::from_secs(600), ..impatient() });
    let script = place.script("echo $$ > pid; exec sleep 600;");
    let found = keeper.find(vec![sourced("a", hourly(&script))]).await;
    let pid = || std::fs::read_to_string(place.path("pid")).ok()?.trim().parse().ok();
    until("the run", || pid().is_some()).await;
    drop(found);
    let group = pid().and_then(rustix::process::Pid::from_raw).unwrap();
    until("the end of the command", || rustix::process::test_kill_process_group(group).is_err()).await;
}

#[tokio::test]
async fn a_file_that_is_not_waited_for_is_taken_up_also_where_an_older_secret_was_kept() {
    let place = Place::new("one");
    let (keeper, _told) = watched(impatient());
    let source = || vec![sourced("a", super::SecretSource::File(place.path("secret")))];
    keeper.keep(source()).await;
    until("the first", || current(&keeper, "a").as_deref() == Some("one")).await;
    place.write("secret", "two");
    keeper.keep(source()).await;
    until("the second", || current(&keeper, "a").as_deref() == Some("two")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_other_source_takes_an_accounts_place_while_its_secret_is_told() {
    let (tell, told) = sync_channel(8);
    let (go, gone) = sync_channel::<()>(8);
    let gone = Mutex::new(gone);
    let on_change = move |_: &_, secret: Option<turnkeep_base::Secret>| {
        tell.send(secret.unwrap().expose().to_owned()).unwrap();
        let _ = gone.lock().unwrap().recv();
    };
    let keeper = Keeper::within(quick(), Arc::new(on_change));
    keeper.keep(vec![sourced("a", hourly("echo old"))]).await;
    let found = keeper.find(vec![sourced("a", hourly("echo new"))]).await;
    keeper.refresh_now(&id("a"));
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "old");
    let (take, taken) = sync_channel(8);
    let taker = keeper.clone();
    let taking = tokio::task::spawn_blocking(move || {
        taker.take(found);
        take.send(()).unwrap();
    });
    // Else the watcher would be left with the old one, as it is told of it after whoever takes gives it the new one.
    assert!(taken.recv_timeout(A_WHILE).is_err(), "taken while the old secret was told");
    drop(go);
    taking.await.unwrap();
    assert_eq!(current(&keeper, "a").as_deref(), Some("new"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_late_secret_is_told_only_after_those_that_were_taken_are_given_on() {
    let (place, script) = gated();
    let (tell, told) = sync_channel(8);
    let on_change = move |_: &_, secret: Option<turnkeep_base::Secret>| {
        tell.send(secret.unwrap().expose().to_owned()).unwrap();
    };
    let keeper = Keeper::within(impatient(), Arc::new(on_change));
    let found = keeper.find(vec![sourced("a", hourly(&script))]).await;
    keeper.take_into(found, |secrets| {
        assert!(secrets[0].is_none());
        open_gate(&place);
        assert!(told.recv_timeout(A_WHILE).is_err(), "told before the account was given on");
    });
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "one");
}
