//! Accounts that the command line adds, changes and switches in the store beside a running gateway.

use crate::scene::*;
use crate::support::dialects::{CHAT, assert_refused};
use crate::support::world::{Plan, account};
use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn accounts_that_are_added_rotated_disabled_and_enabled_are_taken_up_while_the_gateway_runs() {
    let lab = lab([]).await;
    let world = World::of(&Plan::over([Up::at(Dialect::Messages, &lab).accounts(&[])])).await;
    let pair = Pair { upstream: Dialect::Messages, ..CHAT };
    let refusal = world.client().await.turn(pair).await;
    assert_refused(pair, &refusal, 503);
    let file = |name: &str, secret: &str| {
        let path = world.folder().join(name);
        std::fs::write(&path, secret).unwrap();
        path.to_str().unwrap().to_owned()
    };

    let first = file("first", "secret-first");
    world.command(&["accounts", "add", "up0", "stored", "--secret-file", &first]).await;
    let here = |counters: &serde_json::Value| counters["accounts"].as_array().unwrap().len() == 1;
    world.until("the account is there", here).await;
    served(&world.client().await.turn(pair).await);
    assert_eq!(lab.account("secret-first").completed, 1);

    let second = file("second", "secret-second");
    world.command(&["accounts", "rotate", "up0", "stored", "--secret-file", &second]).await;
    keep_asking(&world, pair, served, async || lab.account("secret-second").completed > 0).await;

    let status =
        |status: &'static str| move |counters: &serde_json::Value| account(counters, "stored")["status"] == status;
    world.command(&["accounts", "disable", "up0", "stored"]).await;
    world.until("it is out", status("disabled")).await;
    assert_refused(pair, &world.client().await.turn(pair).await, 503);
    world.command(&["accounts", "enable", "up0", "stored"]).await;
    world.until("it is back", status("active")).await;
    served(&world.client().await.turn(pair).await);
    world.command(&["accounts", "remove", "up0", "stored"]).await;
    world.until("it is gone", |counters| counters["accounts"].as_array().unwrap().is_empty()).await;
    assert_refused(pair, &world.client().await.turn(pair).await, 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_out_for_its_key_is_tried_at_once_when_it_gets_another() {
    let lab = lab([]).await;
    lab.set_account("secret-first", turnkeep_lab::AccountState::Revoked);
    let plan = Plan::over([Up::at(Dialect::Chat, &lab).accounts(&[])]);
    let world = World::of(&plan.tuning("budget = 1\nlast_account_retry = \"1h\"")).await;
    let path = world.folder().join("key");
    std::fs::write(&path, "secret-first").unwrap();
    let path = path.to_str().unwrap().to_owned();
    world.command(&["accounts", "add", "up0", "stored", "--secret-file", &path]).await;
    world.until("it is there", |counters| counters["accounts"].as_array().unwrap().len() == 1).await;
    assert_refused(CHAT, &world.client().await.turn(CHAT).await, 502);
    world.until("it is out", |counters| account(counters, "stored")["status"] == "errored").await;
    let other = world.folder().join("other-key");
    std::fs::write(&other, "secret-second").unwrap();
    world.command(&["accounts", "rotate", "up0", "stored", "--secret-file", other.to_str().unwrap()]).await;
    let waits = |reply: &Reply| assert!([200, 502].contains(&reply.status), "{}", reply.text());
    keep_asking(&world, CHAT, waits, async || status(&world, "stored").await == "active").await;
    assert_eq!(lab.account("secret-second").refused, 0);
}
