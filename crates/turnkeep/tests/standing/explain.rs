//! `turnkeep explain` tells why an account stands as it does and what happened to a turn, with proofs, and never a secret.

use crate::scene::*;
use crate::support::*;
use futures_util::future::join_all;
use turnkeep_lab::Lab;

/// The first account refuses the key and repeats it, the second is limited, the third serves.
async fn place(pair: Pair) -> (World, Lab, String) {
    let repeats = ErrorSpec {
        status: Some(401),
        code: Some("invalid_api_key".into()),
        message: Some("Incorrect API key provided: secret-a secret-b secret-c.".into()),
        ..ErrorSpec::default()
    };
    let rules = [times(1, Rule { error: Some(repeats), ..Rule::default() }), times(1, waiting(429, 700))];
    let lab = lab(rules).await;
    let world = World::over([Up::at(pair.upstream, &lab).accounts(&["a", "b", "c"])]).await;
    let reply = world.client().await.turn(pair).await;
    served(&reply);
    let turn = reply.header("x-turnkeep-turn").unwrap().to_owned();
    world.until_at_rest().await;
    (world, lab, turn)
}

fn assert_tells(told: &str, words: &[&str]) {
    for words in words {
        assert!(told.contains(words), "{words:?} is missing:\n{told}");
    }
    assert!(!told.contains(KEY), "a caller's key:\n{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accounts_standing_is_explained_by_its_faults_their_proofs_effects_and_ends() {
    join_all(plain_ways().map(|pair| async move {
        let (world, lab, turn) = place(pair).await;
        let names: Vec<String> =
            lab.requests().iter().map(|r| r.account.clone().unwrap().replace("secret-", "")).collect();

        let refused = told(&world, &["explain", "account", &names[0]], "credential_rejected").await;
        assert_tells(
            &refused,
            &["origin account", "status 401", "Incorrect API key", "effect: error budget 1 of 3", "active"],
        );
        assert!(!refused.contains(&format!("secret-{}", names[0])), "its secret was repeated:\n{refused}");

        let limited = told(&world, &["explain", "account", &names[1]], "rate_limited").await;
        let words =
            ["cooldown of account until", "status 429", "declared wait 700000 ms", "effect: the account cools, until"];
        assert_tells(&limited, &words);

        let fine = told(&world, &["explain", "account", &names[2]], "no fault is kept").await;
        assert_tells(&fine, &["active; nothing has ever changed its standing"]);

        let as_json = told(&world, &["explain", "account", &names[1], "--json"], "rate_limited").await;
        let as_json: serde_json::Value = serde_json::from_str(&as_json).unwrap();
        assert_eq!((&as_json["status"], &as_json["cooldowns"][0]["scope"]), (&"active".into(), &"account".into()));
        assert_eq!((&as_json["faults"][0]["status"], &as_json["faults"][0]["turn"]), (&429.into(), &turn.into()));
        assert_left(seconds_until(&as_json["faults"][0]["until"]), 700);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_explained_by_its_attempts_in_order_and_the_faults_between() {
    join_all(plain_ways().map(|pair| async move {
        let (world, lab, turn) = place(pair).await;
        let told = told(&world, &["explain", "turn", &turn], "rate_limited (origin").await;
        assert_tells(&told, &["model m", "caller tester", "credential_rejected", "effect: error budget 1 of 3"]);
        let mut at = 0;
        for (number, request) in lab.requests().iter().enumerate() {
            let name = request.account.clone().unwrap().replace("secret-", "");
            let line = format!("attempt {} on up0/{name} as upstream-m", number + 1);
            let found = told[at..].find(&line);
            assert!(found.is_some(), "{line:?} is missing or out of order:\n{told}");
            at += found.unwrap();
        }
        let secret = lab.requests()[0].account.clone().unwrap();
        assert!(!told.contains(&secret), "a secret was repeated:\n{told}");
    }))
    .await;
}
