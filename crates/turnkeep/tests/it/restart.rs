//! What an account has earned outlives the process.

use crate::support::dialects::{CHAT, assert_refused};
use crate::support::world::{Plan, account};
use crate::support::*;
use futures_util::future::join_all;

fn refusing(status: u16, retry_after: Option<u64>) -> Rule {
    let error = ErrorSpec { status: Some(status), retry_after, ..ErrorSpec::default() };
    Rule { error: Some(error), ..Rule::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cooldown_survives_a_restart() {
    join_all(Dialect::ALL.map(|upstream| async move {
        let pair = Pair { upstream, ..CHAT };
        let lab = lab([refusing(429, Some(600))]).await;
        let plan = Plan::over([Up::at(upstream, &lab)]);
        let world = World::of(&plan).await;
        assert_refused(pair, &world.client().await.turn(pair).await, 429);
        let before = account(&world.until_at_rest().await, "a")["cooldowns"].clone();
        assert_eq!((&before[0]["scope"], &before[0]["fault"]), (&"account".into(), &"rate_limited".into()));
        let world = World::in_folder(&plan, world.stopped().await).await;
        let after = account(&world.counters().await, "a")["cooldowns"].clone();
        assert_eq!((&after[0]["scope"], &after[0]["fault"]), (&"account".into(), &"rate_limited".into()));
        let reply = world.client().await.turn(pair).await;
        assert!(assert_refused(pair, &reply, 429).contains("账号队列耗尽"));
        let wait: u64 = reply.header("retry-after").unwrap().parse().unwrap();
        assert!((500..=600).contains(&wait), "{wait}");
        assert_eq!(lab.requests().len(), 1, "nobody was asked after the restart");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eviction_survives_a_restart() {
    let lab = lab([refusing(401, None)]).await;
    let plan = Plan::over([Up::at(Dialect::Chat, &lab)]);
    let world = World::of(&plan).await;
    for _ in 0..3 {
        assert_refused(CHAT, &world.client().await.turn(CHAT).await, 502);
    }
    world.until_at_rest().await;
    let world = World::in_folder(&plan, world.stopped().await).await;
    assert_eq!(account(&world.counters().await, "a")["status"], "errored");
    assert_refused(CHAT, &world.client().await.turn(CHAT).await, 502);
    assert_eq!(lab.requests().len(), 3);
}
