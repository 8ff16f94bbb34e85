//! Supervised processes: real children, real signals, real sockets.

#![allow(clippy::expect_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "support/processes.rs"]
mod processes;

use processes::{LONG, runs, until};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use turnkeep_agents::supervise::{Address, Daemon, DaemonSpec, Launch, Lent, Listen, ProcessLimits, ProcessSpec};
use turnkeep_base::{FaultKind, Phase, Secret};

fn spec(folder: &tempfile::TempDir, what: &str) -> ProcessSpec {
    let log = folder.path().join("log").display().to_string();
    ProcessSpec {
        name: "server/me".into(),
        command: vec![env!("CARGO_BIN_EXE_turnkeep-fake-agent").into(), what.into()],
        home: None,
        env: BTreeMap::from([("FAKE_LOG".to_owned(), Secret::new(log))]),
        directory: folder.path().join("work"),
        limits: ProcessLimits { backoff: Duration::from_millis(1), ..ProcessLimits::default() },
        launch: Launch::System,
    }
}

fn daemon(folder: &tempfile::TempDir, what: &str, listen: Listen) -> Daemon {
    Daemon::new(DaemonSpec { process: spec(folder, what), listen })
}

fn port(lent: &Lent) -> std::net::SocketAddr {
    match lent.endpoint.address {
        Address::Tcp(port) => port,
        Address::Unix(_) => panic!("a port"),
    }
}

/// Lets go of the last hold of a process, and waits until it is there no more.
async fn ends_with(last: Lent) {
    let port = port(&last);
    drop(last);
    let refused = async {
        while tokio::net::TcpStream::connect(port).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(LONG, refused).await.is_ok());
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[tokio::test]
async fn a_daemon_listens_where_we_chose_at_a_port_and_at_a_socket() {
    let folder = folder();
    for listen in [Listen::Loopback, Listen::Unix(folder.path().join("s"))] {
        let daemon = daemon(&folder, "listen", listen);
        let lent = daemon.lend().await.expect("ready");
        match &lent.endpoint.address {
            Address::Tcp(address) => {
                assert!(address.ip().is_loopback());
                assert!(tokio::net::TcpStream::connect(address).await.is_ok());
            }
            Address::Unix(path) => assert!(tokio::net::UnixStream::connect(path).await.is_ok()),
        }
        assert_eq!(daemon.instance(), Some(lent.endpoint.instance));
        assert_eq!(lent.endpoint.secret.expose().len(), 64);
    }
}

#[tokio::test]
async fn many_who_ask_at_once_get_the_same_instance_which_ends_with_the_last_hold_of_it() {
    let folder = folder();
    let daemon = daemon(&folder, "listen", Listen::Loopback);
    let lent = futures_util::future::join_all((0..8).map(|_| daemon.lend())).await;
    let lent: Vec<_> = lent.into_iter().map(|lent| lent.expect("ready")).collect();
    assert!(lent.iter().all(|it| it.endpoint.instance == lent[0].endpoint.instance));
    drop(daemon);
    // It serves on for who holds it, and no longer.
    let last = lent.into_iter().next_back().expect("eight");
    assert!(tokio::net::TcpStream::connect(port(&last)).await.is_ok());
    ends_with(last).await;
}

#[tokio::test]
async fn one_that_is_dismissed_serves_who_holds_it_is_lent_to_nobody_else_and_counts_as_one_failure() {
    let folder = folder();
    let mut process = spec(&folder, "listen");
    process.limits.restarts = 1;
    let daemon = Daemon::new(DaemonSpec { process, listen: Listen::Loopback });
    let first = daemon.lend().await.expect("ready");
    for _ in 0..3 {
        // Any number may find the same.
        daemon.dismiss(first.endpoint.instance);
    }
    assert_eq!(daemon.instance(), None);
    let second = daemon.lend().await.expect("another one");
    assert_ne!(second.endpoint.instance, first.endpoint.instance);
    assert!(tokio::net::TcpStream::connect(port(&first)).await.is_ok(), "it is held");
    daemon.dismiss(first.endpoint.instance);
    assert_eq!(
        daemon.instance(),
        Some(second.endpoint.instance),
        "what is said of the first is not said of the second"
    );
    ends_with(first).await;
    daemon.dismiss(second.endpoint.instance);
    let refused = daemon.lend().await.expect_err("two failures, and one restart is allowed");
    assert!(refused.message.contains("not started again"), "{refused}");
}

#[tokio::test]
async fn one_that_is_let_go_of_serves_who_holds_it_and_keeps_nothing_for_who_comes_late() {
    let folder = folder();
    let daemon = daemon(&folder, "listen", Listen::Loopback);
    let held = daemon.lend().await.expect("ready");
    daemon.let_go();
    assert_eq!(daemon.instance(), None);
    assert!(tokio::net::TcpStream::connect(port(&held)).await.is_ok(), "it is held");
    ends_with(held).await;
    // An attempt that was on its way has a process all the same, and so have those who come while that starts.
    let (late, later) = futures_util::future::join(daemon.lend(), daemon.lend()).await;
    let (late, later) = (late.expect("ready"), later.expect("ready"));
    assert_eq!(late.endpoint.instance, later.endpoint.instance);
    assert_eq!(daemon.instance(), None);
    drop(later);
    ends_with(late).await;
}

#[tokio::test]
async fn one_that_is_let_go_of_while_it_starts_ends_with_who_waited_for_it() {
    let folder = folder();
    let daemon = daemon(&folder, "listen", Listen::Loopback);
    let mut waits = Box::pin(daemon.lend());
    assert!(futures_util::poll!(&mut waits).is_pending());
    daemon.let_go();
    let held = waits.await.expect("ready");
    assert_eq!(daemon.instance(), None);
    ends_with(held).await;
}

#[tokio::test]
async fn a_foreign_listener_is_never_adopted() {
    let folder = folder();
    let refused = daemon(&folder, "foreign", Listen::Loopback).lend().await.expect_err("refused");
    assert!(refused.message.contains("another process listens"), "{refused}");
    let fault = refused.fault();
    assert_eq!((fault.kind, fault.phase), (FaultKind::UpstreamUnavailable, Phase::Unsent));
    // It ends with the one that started it, whose input has closed.
    let foreign = std::fs::read_to_string(folder.path().join("log")).expect("its number");
    until("the foreign listener has ended", || !runs(&foreign)).await;
}

#[tokio::test]
async fn a_daemon_that_does_not_listen_is_given_up_and_ended() {
    let folder = folder();
    let mut process = spec(&folder, "silent");
    process.limits.ready_within = Duration::from_millis(200);
    let daemon = Daemon::new(DaemonSpec { process, listen: Listen::Loopback });
    let refused = daemon.lend().await.expect_err("refused");
    assert!(refused.message.contains("not ready within"), "{refused}");
    assert_eq!(daemon.instance(), None);
}

#[tokio::test]
async fn one_that_fails_at_once_is_tried_six_times_and_its_last_words_are_told_without_its_secret() {
    let folder = folder();
    let daemon = daemon(&folder, "fail", Listen::Loopback);
    for _ in 0..6 {
        let refused = daemon.lend().await.expect_err("refused");
        let (status, words) = ("status 7", "no configuration for [secret]");
        assert!(refused.message.contains(status) && refused.message.contains(words), "{refused}");
    }
    let refused = daemon.lend().await.expect_err("refused");
    assert!(refused.message.contains("not started again"), "{refused}");
}

#[tokio::test]
async fn a_group_that_passes_over_term_is_killed_to_its_last_member() {
    let folder = folder();
    let mut process = spec(&folder, "stubborn");
    process.limits.stop_within = Duration::from_millis(100);
    process.limits.ready_within = Duration::from_millis(500);
    let daemon = Daemon::new(DaemonSpec { process, listen: Listen::Loopback });
    daemon.lend().await.expect_err("it does not listen");
    let pids = std::fs::read_to_string(folder.path().join("log")).expect("the numbers");
    let pids: Vec<&str> = pids.split(' ').collect();
    assert_eq!(pids.len(), 2);
    until("both have ended", || !pids.iter().any(|pid| runs(pid))).await;
}

#[tokio::test]
async fn a_dropped_start_leaves_nothing_behind() {
    let folder = folder();
    let daemon = daemon(&folder, "stubborn", Listen::Loopback);
    let log = folder.path().join("log");
    {
        let lend = daemon.lend();
        tokio::pin!(lend);
        tokio::select! {
            _ = &mut lend => panic!("it does not listen"),
            () = until("it runs", || log.exists()) => {}
        }
    }
    let pids = std::fs::read_to_string(&log).expect("the numbers");
    drop(daemon);
    until("both have ended", || !pids.split(' ').any(runs)).await;
}

#[test]
fn processes_end_with_the_runtime() {
    let folder = folder();
    let log = folder.path().join("log");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let daemon = daemon(&folder, "stubborn", Listen::Loopback);
    let pids = runtime.block_on(async {
        let lend = daemon.lend();
        tokio::pin!(lend);
        tokio::select! {
            _ = &mut lend => panic!("it does not listen"),
            () = until("it runs", || log.exists()) => {}
        }
        std::fs::read_to_string(&log).expect("the numbers")
    });
    runtime.shutdown_background();
    let wait = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    wait.block_on(until("both have ended", || !pids.split(' ').any(runs)));
    drop(daemon);
}

#[tokio::test]
async fn a_daemon_that_was_killed_is_started_again_when_it_is_wanted() {
    let folder = folder();
    let daemon = daemon(&folder, "listen", Listen::Loopback);
    let first = daemon.lend().await.expect("ready");
    let Address::Tcp(address) = first.endpoint.address else { panic!("a port") };
    let mut connection = tokio::net::TcpStream::connect(address).await.expect("connected");
    let pid = owner_of(&folder);
    std::process::Command::new("kill").args(["-9", &pid]).status().expect("kill");
    until("its end is seen", || daemon.instance().is_none()).await;
    assert_eq!(connection.read(&mut [0; 1]).await.unwrap_or(0), 0);
    let second = daemon.lend().await.expect("ready");
    assert_ne!(second.endpoint.instance, first.endpoint.instance);
    assert_ne!(second.endpoint.secret.expose(), first.endpoint.secret.expose());
}

/// The one process whose working directory is the folder's.
fn owner_of(folder: &tempfile::TempDir) -> String {
    let work = folder.path().join("work").canonicalize().expect("there");
    let entries = std::fs::read_dir("/proc").expect("proc").flatten();
    let mut owners = entries.filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == work));
    owners.next().expect("a process").file_name().to_string_lossy().into_owned()
}
