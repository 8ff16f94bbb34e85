//! Corroboration: a second account that refuses a turn with the same words convicts the request, and nobody else.
//!
//! Each client dialect meets each kind of upstream once, streamed and plain by turns.

use crate::support::dialects::{assert_refused, covering};
use crate::support::world::{Plan, account, assert_unblamed};
use crate::support::*;
use futures_util::future::join_all;

fn refuses(account: Option<&str>, status: u16, code: Option<&str>, message: &str) -> Rule {
    let error = ErrorSpec {
        status: Some(status),
        // In Messages, the type is the code.
        kind: Some(code.unwrap_or("permission_error").into()),
        code: code.map(str::to_owned),
        message: Some(message.into()),
        ..ErrorSpec::default()
    };
    Rule { account: account.map(str::to_owned), error: Some(error), ..Rule::default() }
}

const THREE: [&str; 3] = ["a", "b", "c"];

#[tokio::test(flavor = "multi_thread")]
async fn the_same_unnamed_403_from_a_second_account_convicts_the_request() {
    join_all(covering().into_iter().map(|pair| async move {
        // The words differ as those of one cause do: by an id.
        let rules = [
            refuses(Some("secret-a"), 403, None, "Not from here (req_01ab)."),
            refuses(None, 403, None, "Not from here (req_77zz)."),
        ];
        let lab = lab(rules).await;
        let world = World::over([Up::at(pair.upstream, &lab).accounts(&THREE)]).await;
        for turn in 1..=4u64 {
            let reply = world.client().await.turn(pair).await;
            let message = assert_refused(pair, &reply, 400);
            assert!(message.contains("Not from here"), "{pair:?}: the client learns why: {message}");
            assert_eq!(lab.requests().len() as u64, 2 * turn, "{pair:?}: a third account is not asked");
            let counters = world.until_at_rest().await;
            assert_eq!(counters["corroborated"], turn, "{pair:?} {counters:#}");
        }
        let counters = world.until_at_rest().await;
        assert_eq!((&counters["unclassified_fault"], &counters["request_invalid"]), (&4.into(), &4.into()));
        for name in THREE {
            assert_unblamed(&counters, name);
        }
        assert_eq!(counters["dead_credentials"], 0);
        lab.set_script(Script::default());
        assert_eq!(world.client().await.turn(pair).await.status, 200, "every account is there");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn different_refusals_convict_nobody() {
    join_all(covering().into_iter().map(|pair| async move {
        let bare = |account: Option<&str>, words: &str| Rule {
            account: account.map(str::to_owned),
            status: Some(403),
            raw: Some(words.to_owned()),
            ..Rule::default()
        };
        let other_words = [
            bare(Some("secret-a"), "Not from here."),
            bare(Some("secret-b"), "Not at this hour."),
            bare(None, "Not with this shirt."),
        ];
        let other_code = [
            refuses(Some("secret-a"), 403, Some("flux"), "No."),
            refuses(Some("secret-b"), 403, Some("drift"), "No."),
            refuses(None, 403, Some("shirt"), "No."),
        ];
        for rules in [other_words, other_code] {
            let lab = lab(rules).await;
            let world = World::over([Up::at(pair.upstream, &lab).accounts(&THREE)]).await;
            assert_refused(pair, &world.client().await.turn(pair).await, 502);
            let counters = world.until_at_rest().await;
            assert_eq!((&counters["corroborated"], &counters["request_invalid"]), (&0.into(), &0.into()), "{pair:?}");
            assert_eq!(counters["unclassified_fault"], 2, "{pair:?} {counters:#}");
            for name in THREE {
                assert_unblamed(&counters, name);
            }
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_revoked_keys_that_say_the_same_are_both_evicted() {
    join_all(covering().into_iter().map(|pair| async move {
        let lab = lab([]).await;
        for secret in ["secret-a", "secret-b"] {
            lab.set_account(secret, turnkeep_lab::AccountState::Revoked);
        }
        let world = World::over([Up::at(pair.upstream, &lab).accounts(&THREE)]).await;
        for turn in 0..12 {
            assert_eq!(world.client().await.turn_of(pair, turn).await.status, 200, "{pair:?}");
        }
        let counters = world.until_at_rest().await;
        assert_eq!((&counters["corroborated"], &counters["dead_credentials"]), (&0.into(), &2.into()), "{pair:?}");
        for name in ["a", "b"] {
            assert_eq!(account(&counters, name)["status"], "errored", "{pair:?}");
        }
        assert_unblamed(&counters, "c");
    }))
    .await;
}

/// Four shells have come on account `a` in earlier turns. The fifth would charge it, but in the same turn `b` says the same.
#[tokio::test(flavor = "multi_thread")]
async fn the_charge_of_a_fifth_shell_is_taken_back_when_a_second_account_says_the_same() {
    join_all(covering().into_iter().map(|pair| async move {
        let shell = || refuses(None, 403, None, "internal error");
        let [first, second] = [lab([shell()]).await, lab([]).await];
        let ups = [Up::at(pair.upstream, &first), Up::at(pair.upstream, &second).accounts(&["b"])];
        let tuning = "breaker_faults = 1000\nretries_per_second = 1000\nbackoff = \"1ms\"";
        let world = World::of(&Plan::over(ups).tuning(tuning)).await;
        for _ in 0..4 {
            let reply = world.client().await.turn(pair).await;
            assert_eq!((reply.status, reply.header("x-turnkeep-attempts")), (200, Some("2")), "{pair:?}");
        }
        let counters = world.until_at_rest().await;
        assert_unblamed(&counters, "a");
        second.set_script(Script::of([shell()]));
        let reply = world.client().await.turn(pair).await;
        assert_refused(pair, &reply, 400);
        let counters = world.until_at_rest().await;
        assert_eq!(counters["corroborated"], 1, "{pair:?} {counters:#}");
        for name in ["a", "b"] {
            assert_unblamed(&counters, name);
        }
        // It was there to be taken back: without a second account the fifth in a row charges.
        let explained = world.command(&["explain", "account", "a"]).await;
        assert!(explained.contains("corroborated"), "{explained}");
        second.set_script(Script::default());
        for _ in 0..5 {
            assert_eq!(world.client().await.turn(pair).await.status, 200);
        }
        assert_eq!(account(&world.until_at_rest().await, "a")["budget_used"], 1, "{pair:?}");
    }))
    .await;
}
