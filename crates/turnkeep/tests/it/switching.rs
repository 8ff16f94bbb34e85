//! What the operator switches from the command line beside a running gateway.

use crate::support::dialects::{CHAT, assert_refused};
use crate::support::world::{Plan, account};
use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_brings_a_suspended_account_back_and_takes_it_out_while_the_gateway_runs() {
    let error = ErrorSpec {
        status: Some(403),
        code: Some("account_deactivated".into()),
        message: Some("This account has been deactivated.".into()),
        ..ErrorSpec::default()
    };
    let suspended = Rule { error: Some(error), times: Some(2), ..Rule::default() };
    let lab = lab([suspended]).await;
    let plan = Plan::over([Up::at(Dialect::Chat, &lab)]);
    let world = World::of(&plan).await;
    for _ in 0..2 {
        assert_refused(CHAT, &world.client().await.turn(CHAT).await, 502);
    }
    let out = |counters: &serde_json::Value| account(counters, "a")["status"].clone();
    assert_eq!(out(&world.until_at_rest().await), "suspended");
    let refusal = world.client().await.turn(CHAT).await;
    assert!(assert_refused(CHAT, &refusal, 503).contains("the operator must act"));
    assert_eq!(lab.requests().len(), 2, "nobody is asked while the account is out");

    let said = world.command(&["accounts", "enable", "up0", "a"]).await;
    assert!(said.starts_with("enabled up0/a"), "{said}");
    world.until("the account is back", |counters| out(counters) == "active").await;
    assert_eq!(world.client().await.turn(CHAT).await.status, 200);

    world.command(&["accounts", "disable", "up0", "a"]).await;
    world.until("the account is out", |counters| out(counters) == "disabled").await;
    assert_refused(CHAT, &world.client().await.turn(CHAT).await, 503);
    let world = World::in_folder(&plan, world.stopped().await).await;
    assert_eq!(out(&world.counters().await), "disabled", "a restart does not bring it back");
}
