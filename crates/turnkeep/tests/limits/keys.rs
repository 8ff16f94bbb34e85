//! Keys that end, and keys of the store.

use crate::scene::*;
use crate::support::dialects::assert_refused;
use crate::support::*;
use futures_util::future::join_all;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_has_ended_is_refused_like_an_unknown_one() {
    join_all(ways().map(|pair| async move {
        let lab = lab([]).await;
        let world = World::of(&plan(pair, &lab, "expires = 2001-01-01", "")).await;
        let told = assert_refused(pair, &turn(&world, pair).await, 401);
        assert!(told.contains("not known"), "{told}");
        world.take_up(&plan(pair, &lab, "expires = 2999-12-31", "")).await;
        assert_eq!(turn(&world, pair).await.status, 200);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_ends_while_the_gateway_runs_and_nothing_is_reloaded() {
    let pair = ways()[0];
    let lab = lab([]).await;
    // A key's end is kept to the millisecond.
    let end = OffsetDateTime::now_utc() + std::time::Duration::from_millis(1_500);
    let end = end.replace_millisecond(end.millisecond()).unwrap();
    let expires = format!("expires = {:?}", end.format(&Rfc3339).unwrap());
    let world = World::of(&plan(pair, &lab, &expires, "")).await;
    let mut looks = tokio::time::interval(std::time::Duration::from_millis(20));
    let mut served = 0;
    soon(async {
        loop {
            looks.tick().await;
            match turn(&world, pair).await.status {
                200 => served += 1,
                other => return assert_eq!(other, 401),
            }
        }
    })
    .await;
    assert!(OffsetDateTime::now_utc() >= end, "not before its end, after {served} turns");
}
