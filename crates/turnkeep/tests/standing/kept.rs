//! What accounts have earned outlives the process, however it ends.

use crate::process::Process;
use crate::scene::*;
use crate::support::dialects::CHAT;
use crate::support::world::{Plan, account, database};
use crate::support::*;
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use turnkeep_lab::Lab;
use turnkeep_store::{Role, SqliteStore, Store, StoreOptions, SystemClock};

const ALL: [&str; 7] = ["errored", "spent", "cooled", "slowed", "broke", "narrow", "fine"];

/// Each account alone serves the models that begin with its name.
async fn place(upstream: Dialect) -> (Lab, Plan) {
    let window = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let slowed =
        BTreeMap::from([window("x-ratelimit-remaining-requests", "0"), window("x-ratelimit-reset-requests", "10m0s")]);
    let rules = [
        of("errored", refusing(401)),
        of("spent", times(2, refusing(401))),
        of("cooled", waiting(429, 900)),
        of("slowed", Rule { headers: slowed, ..refusing(429) }),
        of("broke", waiting(402, 1200)),
        Rule { model: Some("narrow-overloaded".into()), ..of("narrow", waiting(529, 800)) },
    ];
    let lab = lab(rules).await;
    let up = Up::at(upstream, &lab).accounts(&ALL).each("models = [\"NAME-*\"]");
    let plan = Plan::over([up]).models("[[models]]\nname = \"*\"\nroutes = [{ upstream = \"up0\" }]");
    (lab, plan.tuning("last_account_retry = \"1h\""))
}

/// Everything of an account that must be the same afterwards; of times, the seconds that are left.
fn shown(counters: &Value, name: &str) -> (Value, Vec<(String, String, String)>, Vec<i64>) {
    let account = account(counters, name);
    let plain = serde_json::json!([account["status"], account["episode"], account["budget_used"]]);
    let cooldowns = cooldowns(counters, name);
    let mut times: Vec<i64> = cooldowns.iter().map(|(.., left)| *left).collect();
    times.extend((!account["retry_at"].is_null()).then(|| seconds_until(&account["retry_at"])));
    (plain, cooldowns.into_iter().map(|(scope, fault, model, _)| (scope, fault, model)).collect(), times)
}

fn assert_kept(before: &Value, after: &Value) {
    for name in ALL {
        let (old, new) = (shown(before, name), shown(after, name));
        assert_eq!((&old.0, &old.1), (&new.0, &new.1), "{name}");
        for (old, new) in old.2.iter().zip(&new.2) {
            assert!((old - 10..=old + 1).contains(new), "{name}: {old} s were left, and then {new} s");
        }
    }
}

async fn earn(world: &World, pair: Pair) -> Value {
    for (model, turns) in [
        ("errored-1", 3),
        ("spent-1", 2),
        ("cooled-1", 1),
        ("slowed-1", 1),
        ("broke-1", 1),
        ("narrow-overloaded", 1),
        ("fine-1", 1),
    ] {
        for _ in 0..turns {
            let status = turn_for(world, pair, model).await.status;
            assert_eq!(status == 200, model == "fine-1", "{model}");
        }
    }
    let counters = world.until_at_rest().await;
    let status = |name| account(&counters, name)["status"].clone();
    assert_eq!((status("errored"), status("spent")), ("errored".into(), "active".into()));
    assert_eq!(account(&counters, "spent")["budget_used"], 2);
    let scopes = ["cooled", "slowed", "broke", "narrow"].map(|name| cooldowns(&counters, name)[0].0.clone());
    assert_eq!(scopes, ["account", "rate", "quota", "model"]);
    counters
}

#[tokio::test(flavor = "multi_thread")]
async fn episodes_budgets_and_every_kind_of_cooldown_survive_restarts() {
    join_all(Dialect::ALL.map(|upstream| async move {
        let pair = Pair { upstream, ..CHAT };
        let (lab, plan) = place(upstream).await;
        let mut world = World::of(&plan).await;
        let before = earn(&world, pair).await;
        let asked = lab.requests().len();
        for _ in 0..2 {
            world = World::in_folder(&plan, world.stopped().await).await;
            assert_kept(&before, &world.counters().await);
        }
        for model in ["errored-1", "cooled-2", "slowed-1", "broke-1", "narrow-overloaded"] {
            assert_ne!(turn_for(&world, pair, model).await.status, 200, "{model}");
        }
        assert_eq!(lab.requests().len(), asked, "nobody who is out is asked");
        served(&turn_for(&world, pair, "narrow-other").await);
        served(&turn_for(&world, pair, "fine-1").await);

        lab.set_account("secret-spent", turnkeep_lab::AccountState::Revoked);
        assert_eq!(turn_for(&world, pair, "spent-1").await.status, 502);
        let counters = world.until_at_rest().await;
        assert_eq!(
            account(&counters, "spent")["status"],
            "errored",
            "the third refusal, two of them before the restart"
        );
    }))
    .await;
}

/// Waits until the running gateway's store holds a standing.
async fn until_written_down(folder: &Path) {
    let options = StoreOptions { role: Role::Tool, master_key: None, clock: Arc::new(SystemClock) };
    let store = SqliteStore::open(&database(folder), options).unwrap();
    let mut looks = tokio::time::interval(Duration::from_millis(5));
    while store.load_standing().await.unwrap().is_empty() {
        looks.tick().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_earned_is_written_down_while_the_gateway_runs_and_survives_a_kill() {
    let error = lab([waiting(429, 900)]).await;
    let plan = Plan::over([Up::at(Dialect::Chat, &error)]);
    let folder = tempfile::tempdir().unwrap();
    let process = Process::of(&plan, folder.path()).await;
    assert_eq!(process.turn(KEY).await, 429);
    assert_eq!(account(&process.counters().await, "a")["cooldowns"][0]["scope"], "account");
    soon(until_written_down(folder.path())).await;
    let world = process.killed_and_followed(&plan, folder).await;
    let left = cooldowns(&world.counters().await, "a");
    assert_eq!(left.len(), 1, "the cooldown was lost with the process");
    assert_left(left[0].3, 900);
    assert_eq!(world.client().await.turn(CHAT).await.status, 429);
    assert_eq!(error.requests().len(), 1);
}
