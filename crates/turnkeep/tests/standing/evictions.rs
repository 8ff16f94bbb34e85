//! Keys that are really dead go out, whatever else is in the pool, and no turn fails for them.

use crate::scene::*;
use crate::support::world::{Plan, account};
use crate::support::*;
use futures_util::future::join_all;
use turnkeep_lab::AccountState;

const TWENTY: [&str; 20] = [
    "k01", "k02", "k03", "k04", "k05", "k06", "k07", "k08", "k09", "k10", "k11", "k12", "k13", "k14", "k15", "k16",
    "k17", "k18", "k19", "k20",
];

#[tokio::test(flavor = "multi_thread")]
async fn two_revoked_keys_among_others_are_both_evicted() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = lab([]).await;
        let revoked = ["secret-b", "secret-d"];
        revoked.iter().for_each(|secret| lab.set_account(secret, AccountState::Revoked));
        let world = World::over([Up::at(pair.upstream, &lab).accounts(&["a", "b", "c", "d"])]).await;
        keep_asking(&world, pair, served, async || world.counters().await["dead_credentials"] == 2).await;
        let counters = world.until_at_rest().await;
        for (name, status) in [("a", "active"), ("b", "errored"), ("c", "active"), ("d", "errored")] {
            assert_eq!(account(&counters, name)["status"], status, "{pair:?} {counters:#}");
        }
        assert_eq!(revoked.map(|secret| lab.account(secret).requests), [3, 3], "three refusals each, and no more");
        assert_eq!(counters["corroborated"], 0, "a second key's refusal does not excuse the first");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_dead_keys_among_twenty_fail_no_turn() {
    join_all(ways().into_iter().map(|pair| async move {
        let lab = lab([]).await;
        let dead = ["k04", "k11", "k19"];
        dead.iter().for_each(|name| lab.set_account(&format!("secret-{name}"), AccountState::Revoked));
        let world = World::of(&Plan::over([Up::at(pair.upstream, &lab).accounts(&TWENTY)])).await;
        for round in 0..10 {
            let turns = (0..20).map(|turn| {
                let world = &world;
                async move { world.client().await.turn_of(pair, round * 20 + turn).await }
            });
            join_all(turns).await.iter().for_each(served);
        }
        let counters = world.until_at_rest().await;
        assert_eq!((&counters["failover_exhausted"], &counters["pool_exhausted"]), (&0.into(), &0.into()));
        for name in TWENTY {
            let status = if dead.contains(&name) { "errored" } else { "active" };
            assert_eq!(account(&counters, name)["status"], status, "{pair:?} {name}");
        }
    }))
    .await;
}
