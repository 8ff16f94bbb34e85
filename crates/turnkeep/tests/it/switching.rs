//! What the operator switches from the command line beside a running gateway, or while there is none.

use crate::support::dialects::{CHAT, assert_refused};
use crate::support::world::{Plan, account};
use crate::support::*;
use clap::Parser;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use turnkeep::cli::{Cli, Command};
use turnkeep_lab::Lab;

fn status(counters: &Value) -> Value {
    account(counters, "a")["status"].clone()
}

/// The provider suspends the account on the first two turns.
async fn suspending() -> Lab {
    let error = ErrorSpec {
        status: Some(403),
        code: Some("account_deactivated".into()),
        message: Some("This account has been deactivated.".into()),
        ..ErrorSpec::default()
    };
    lab([Rule { error: Some(error), times: Some(2), ..Rule::default() }]).await
}

/// Runs a command of the command line in the folder of a gateway that has stopped.
async fn command_in(folder: &Path, words: &[&str]) -> String {
    let file = folder.join("turnkeep.toml");
    let cli = Cli::parse_from(["turnkeep"].iter().chain(words).chain(&["--config", file.to_str().unwrap()]));
    let mut out = Vec::new();
    if let Command::Accounts { command } = &cli.command {
        turnkeep::commands::accounts::run(command, &mut std::io::empty(), &mut out).await.unwrap();
    } else if let Command::Explain { topic } = &cli.command {
        turnkeep::commands::explain::run(topic, &mut out).await.unwrap();
    } else {
        panic!("not a command for here: {words:?}");
    }
    String::from_utf8(out).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_brings_a_suspended_account_back_and_takes_it_out_while_the_gateway_runs() {
    let lab = suspending().await;
    let plan = Plan::over([Up::at(Dialect::Chat, &lab)]);
    let world = World::of(&plan).await;
    for _ in 0..2 {
        assert_refused(CHAT, &world.client().await.turn(CHAT).await, 502);
    }
    assert_eq!(status(&world.until_at_rest().await), "suspended");
    let refusal = world.client().await.turn(CHAT).await;
    assert!(assert_refused(CHAT, &refusal, 503).contains("the operator must act"));
    assert_eq!(lab.requests().len(), 2, "nobody is asked while the account is out");

    let said = world.command(&["accounts", "enable", "up0", "a"]).await;
    assert!(said.starts_with("enabled up0/a"), "{said}");
    world.until("the account is back", |counters| status(counters) == "active").await;
    assert_eq!(world.client().await.turn(CHAT).await.status, 200);

    world.command(&["accounts", "disable", "up0", "a"]).await;
    world.until("the account is out", |counters| status(counters) == "disabled").await;
    assert_refused(CHAT, &world.client().await.turn(CHAT).await, 503);
    let world = World::in_folder(&plan, world.stopped().await).await;
    assert_eq!(status(&world.counters().await), "disabled", "a restart does not bring it back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_is_not_lost_while_the_account_is_rate_limited_all_the_time() {
    // Short cooldowns: the standing changes, and the gateway writes it, many times between two looks at the switches.
    let error = ErrorSpec { status: Some(429), ..ErrorSpec::default() };
    let headers = [("retry-after-ms".to_owned(), "20".to_owned())].into();
    let lab = lab([Rule { error: Some(error), headers, ..Rule::default() }]).await;
    let plan = Plan::over([Up::at(Dialect::Chat, &lab)]);
    let world = World::of(&plan).await;
    let ended = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let (addr, ended) = (world.addr(), ended.clone());
            tokio::spawn(async move {
                while !ended.load(Ordering::Relaxed) {
                    client::Client::tcp(addr).await.turn(CHAT).await;
                }
            })
        })
        .collect();
    world.until("the account is asked", |_| !lab.requests().is_empty()).await;
    for _ in 0..2 {
        world.command(&["accounts", "disable", "up0", "a"]).await;
        world.until("the account is out", |counters| status(counters) == "disabled").await;
        world.command(&["accounts", "enable", "up0", "a"]).await;
        world.until("the account is back", |counters| status(counters) == "active").await;
    }
    world.command(&["accounts", "disable", "up0", "a"]).await;
    world.until("the account is out", |counters| status(counters) == "disabled").await;
    ended.store(true, Ordering::Relaxed);
    for caller in callers {
        soon(caller).await.unwrap();
    }
    let world = World::in_folder(&plan, world.stopped().await).await;
    assert_eq!(status(&world.counters().await), "disabled", "the last switch is the one that a restart finds");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_cooldown_survives_that_the_operator_takes_the_account_out_and_back_and_a_restart() {
    let error = ErrorSpec {
        status: Some(429),
        kind: Some("insufficient_quota".into()),
        code: Some("insufficient_quota".into()),
        retry_after: Some(3000),
        ..ErrorSpec::default()
    };
    let lab = lab([Rule { error: Some(error), ..Rule::default() }]).await;
    let plan = Plan::over([Up::at(Dialect::Chat, &lab)]);
    let world = World::of(&plan).await;
    assert_ne!(world.client().await.turn(CHAT).await.status, 200);
    let cools = |counters: &Value| account(counters, "a")["cooldowns"][0]["scope"] == "quota";
    assert!(cools(&world.until_at_rest().await));
    for (verb, then) in [("disable", "disabled"), ("enable", "active")] {
        world.command(&["accounts", verb, "up0", "a"]).await;
        let told = world.command(&["explain", "account", "a"]).await;
        assert!(told.contains("cooldown of quota"), "{verb} erased it:\n{told}");
        let counters = world.until("the account is switched", |counters| status(counters) == then).await;
        assert!(cools(&counters), "{counters:#}");
    }
    let world = World::in_folder(&plan, world.stopped().await).await;
    let counters = world.counters().await;
    assert!(status(&counters) == "active" && cools(&counters), "{counters:#}");
    assert_ne!(world.client().await.turn(CHAT).await.status, 200);
    assert_eq!(lab.requests().len(), 1, "nobody was asked after the restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_switched_while_no_gateway_runs_is_taken_up_before_the_next_one_serves() {
    let lab = suspending().await;
    let plan = Plan::over([Up::at(Dialect::Chat, &lab)]);
    let world = World::of(&plan).await;
    for _ in 0..2 {
        assert_refused(CHAT, &world.client().await.turn(CHAT).await, 502);
    }
    assert_eq!(status(&world.until_at_rest().await), "suspended");
    let folder = world.stopped().await;
    command_in(folder.path(), &["accounts", "enable", "up0", "a"]).await;
    let told = command_in(folder.path(), &["explain", "account", "a"]).await;
    assert!(told.contains("suspended") && told.contains("\nenabled by the operator at 20"), "{told}");

    let world = World::in_folder(&plan, folder).await;
    assert_eq!(world.client().await.turn(CHAT).await.status, 200);
    let folder = world.stopped().await;
    command_in(folder.path(), &["accounts", "disable", "up0", "a"]).await;
    let told = command_in(folder.path(), &["explain", "account", "a"]).await;
    assert!(told.contains("a: active") && told.contains("\ndisabled by the operator at 20"), "{told}");

    let world = World::in_folder(&plan, folder).await;
    assert_refused(CHAT, &world.client().await.turn(CHAT).await, 503);
    assert_eq!(lab.requests().len(), 3, "it was out before anybody could call");
    let told = world.command(&["explain", "account", "a"]).await;
    assert!(told.contains("a: disabled") && !told.contains("by the operator at"), "{told}");
}
