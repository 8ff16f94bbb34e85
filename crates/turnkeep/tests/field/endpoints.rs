//! An endpoint as a whole: what sets it aside, what brings it back, and that nobody but a turn asks it anything.

use crate::kit::*;
use crate::support::dialects::{assert_refused, assert_said};
use crate::support::world::{Plan, nobodys};
use crate::support::{Fault, Rule, Up, World, lab};
use clap::Parser;
use turnkeep::cli::{Cli, Command};
use turnkeep_lab::{Lab, LabOptions, Script};

#[tokio::test(flavor = "multi_thread")]
async fn refused_requests_never_set_an_upstream_aside() {
    each(async |pair| {
        let bad = |status| Rule { body_contains: Some(status_word(status)), ..error_saying(status, "That is odd.") };
        let refusing = [400, 404, 413, 422].map(bad);
        let [first, second] = [lab(refusing.into_iter().chain([saying("first")])).await, lab([saying("second")]).await];
        let ups = [Up::at(pair.upstream, &first), Up::at(pair.upstream, &second)];
        let world = World::of(&Plan::over(ups).tuning("breaker_faults = 1")).await;
        for status in [400, 404, 413, 422, 400, 404] {
            assert_refused(pair, &turn_saying(&world, pair, &status_word(status)).await, status);
        }
        assert_said(pair, &turn(&world, pair).await, "first");
        assert_eq!(second.requests().len(), 0, "{pair:?}");
        let upstream = &world.until_at_rest().await["upstreams"][0];
        assert_eq!((&upstream["ejections"], &upstream["faults_in_a_row"]), (&0.into(), &0.into()), "{upstream}");
    })
    .await;
}

fn status_word(status: u16) -> String {
    format!("answer with {status}")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_fails_again_and_again_is_set_aside_and_not_asked_while_another_serves() {
    each(async |pair| {
        for failing in [error(503), fault(Fault::ResetBeforeReply, None)] {
            let [first, second] = [lab([failing]).await, lab([good()]).await];
            let ups = [Up::at(pair.upstream, &first), Up::at(pair.upstream, &second)];
            let world = World::of(&Plan::over(ups).tuning(QUICK)).await;
            for _ in 0..5 {
                assert_said(pair, &turn(&world, pair).await, WORDS);
            }
            let asked = first.requests().len();
            let reply = turn(&world, pair).await;
            assert_said(pair, &reply, WORDS);
            assert_eq!(reply.header("x-turnkeep-attempts"), Some("1"), "{pair:?}");
            assert_eq!(first.requests().len(), asked, "{pair:?}");
            let counters = world.until_at_rest().await;
            assert!(counters["upstreams"][0]["ejected_until"].is_string(), "{pair:?} {counters:#}");
            assert_unblamed(&counters, "up0/a");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_was_set_aside_is_tried_again_in_time_and_serves_when_it_is_well() {
    each(async |pair| {
        let [first, second] = [lab([times(1, error(503)), saying("first")]).await, lab([saying("second")]).await];
        let ups = [Up::at(pair.upstream, &first), Up::at(pair.upstream, &second)];
        let numbers = format!("{QUICK}breaker_faults = 1\nejection = \"100ms\"");
        let world = World::of(&Plan::over(ups).tuning(&numbers)).await;
        assert_said(pair, &turn(&world, pair).await, "second");
        // However many turns come meanwhile: the time ends by itself, and one of them is the probe.
        loop {
            let reply = turn(&world, pair).await;
            assert_eq!(reply.status, 200, "{reply:?}");
            if crate::support::said(pair, &reply) == "first" {
                break;
            }
        }
        assert_said(pair, &turn(&world, pair).await, "first");
        let counters = world.until_at_rest().await;
        assert!(counters["upstreams"][0]["ejected_until"].is_null(), "{counters:#}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_while_every_upstream_was_down_keeps_nobody_out_once_one_is_up() {
    for pair in crate::support::pairs() {
        let (up, down) = (nobodys(), nobodys());
        let ups = [&up, &down].map(|socket| Up::address(pair.upstream, socket.local_addr().unwrap()));
        let world = World::of(&Plan::over(ups).tuning(QUICK)).await;
        let burst = (0..12).map(|_| turn(&world, pair));
        for reply in futures_util::future::join_all(burst).await {
            assert_refused(pair, &reply, 502);
        }
        let listen = up.local_addr().unwrap();
        drop(up);
        let _lab = Lab::start(LabOptions { listen, tls: None, script: Script::of([good()]) }).await.unwrap();
        assert_said(pair, &turn(&world, pair).await, WORDS);
        let counters = world.until_at_rest().await;
        assert_unblamed(&counters, "up0/a");
        assert_unblamed(&counters, "up1/a");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_is_ready_only_while_it_has_an_account_that_can_serve() {
    let upstream = lab([error(401)]).await;
    let pair = crate::support::dialects::CHAT;
    let empty = World::over([Up::at(pair.upstream, &upstream).accounts(&[])]).await;
    assert_eq!(get(&empty, "/readyz").await.status, 503);
    let world = World::over([Up::at(pair.upstream, &upstream)]).await;
    assert_eq!(get(&world, "/readyz").await.status, 200);
    world.command(&["accounts", "disable", "up0", "a"]).await;
    world.until("the account is out", |counters| account(counters, "up0/a")["status"] == "disabled").await;
    assert_eq!(get(&world, "/readyz").await.status, 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_turn_nothing_is_sent_upstream() {
    for pair in crate::support::pairs() {
        let lab = lab([error(401)]).await;
        let plan = |heartbeat| Plan::over([Up::at(pair.upstream, &lab)]).tuning(&format!("heartbeat = {heartbeat:?}"));
        let world = World::of(&plan("15s")).await;
        assert_eq!(get(&world, "/readyz").await.status, 200);
        let counters = world.take_up(&plan("14s")).await;
        assert_unblamed(&counters, "up0/a");
        assert_eq!((lab.requests().len(), lab.open_connections()), (0, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_that_is_refused_changes_no_accounts_standing() {
    each(async |pair| {
        let probed = Rule { path: Some("/v1/models".into()), skip_checks: true, ..error(401) };
        let lab = lab([probed, good()]).await;
        let world = World::of(&Plan::over([Up::at(pair.upstream, &lab)]).tuning("budget = 1")).await;
        let file = world.file();
        let cli = Cli::parse_from(["turnkeep", "check", "--probe", "--config", file.to_str().unwrap()]);
        let Command::Check(args) = cli.command else { panic!("not check") };
        let mut out = Vec::new();
        assert!(turnkeep::commands::check::run(&args, &mut out, &turnkeep::probe::Live).await.is_err());
        assert_eq!(lab.requests().len(), 1, "{}", String::from_utf8(out).unwrap());
        assert_unblamed(&world.counters().await, "up0/a");
        assert_said(pair, &turn(&world, pair).await, WORDS);
    })
    .await;
}
