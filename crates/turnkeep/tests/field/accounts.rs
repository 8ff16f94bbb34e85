//! What lowers an account's standing and what does not, and that every penalty is seen, ends, and survives what it should.

use crate::kit::*;
use crate::support::dialects::{assert_refused, assert_said};
use crate::support::world::Plan;
use crate::support::{Dialect, Fault, Rule, Up, World, lab};

#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_the_caller_set_too_short_costs_the_first_choice_nothing() {
    each(async |pair| {
        let hurried = Rule { body_contains: Some("hurry".into()), ..fault(Fault::Hang, None) };
        let [first, second] = [lab([hurried, saying("first")]).await, lab([saying("second")]).await];
        let ups = [Up::at(pair.upstream, &first), Up::at(pair.upstream, &second)];
        let world = World::of(&Plan::over(ups).tuning("breaker_faults = 1")).await;
        let body = crate::support::dialects::saying(pair, "hurry").to_string();
        for _ in 0..4 {
            let mut client = world.client().await;
            client.ask_with(pair, &[("x-turnkeep-timeout", "60ms")], body.as_bytes()).await;
            assert_refused(pair, &client.reply().await, 504);
        }
        assert_said(pair, &turn(&world, pair).await, "first");
        assert_eq!(second.requests().len(), 0, "{pair:?}");
        let counters = world.until_at_rest().await;
        assert_unblamed(&counters, "up0/a");
        assert_eq!((&counters["upstreams"][0]["ejections"], &counters["deadline_exceeded"]), (&0.into(), &4.into()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_account_that_is_forbidden_takes_no_other_with_it() {
    each(async |pair| {
        let disabled = error_saying(403, "This organization has been disabled.");
        for rule in [error_saying(403, "No."), disabled, error(401)] {
            let lab = lab([of("a", rule), good()]).await;
            let up = Up::at(pair.upstream, &lab).accounts(&["a", "b", "c"]);
            let world = World::of(&Plan::over([up]).tuning(QUICK)).await;
            for conversation in 0..8 {
                assert_said(pair, &turn_of(&world, pair, conversation).await, WORDS);
            }
            assert!(asked(&lab).iter().any(|account| account == "secret-a"), "{pair:?}");
            let counters = world.until_at_rest().await;
            assert_unblamed(&counters, "up0/b");
            assert_unblamed(&counters, "up0/c");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_not_found_keeps_no_account_from_the_next_turn() {
    each(async |pair| {
        let page = Rule { status: Some(404), raw: Some("<html>404 page not found</html>".into()), ..Rule::default() };
        for rule in [error_saying(404, "No such thing."), error_saying(404, "model: m-9 does not exist"), page] {
            let lab = lab([times(4, rule), good()]).await;
            let world = World::simple(pair, &lab).await;
            for _ in 0..4 {
                assert_refused(pair, &turn(&world, pair).await, 404);
            }
            assert_said(pair, &turn(&world, pair).await, WORDS);
            assert_unblamed(&world.until_at_rest().await, "up0/a");
            assert_eq!(lab.requests().len(), 5);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_the_provider_refuses_is_asked_of_one_account_only() {
    each(async |pair| {
        for status in [400, 404, 409, 413, 422] {
            // Google's 409 is no refusal: `ABORTED` asks to be tried again.
            if status == 409 && pair.upstream == Dialect::Gemini {
                continue;
            }
            let lab = lab([error_saying(status, "max_tokens is odd")]).await;
            let up = Up::at(pair.upstream, &lab).accounts(&["a", "b", "c"]);
            let world = World::over([up]).await;
            assert!(assert_refused(pair, &turn(&world, pair).await, status).contains("max_tokens is odd"));
            assert_eq!(lab.requests().len(), 1, "{pair:?} {status}");
            let counters = world.until_at_rest().await;
            for id in ["up0/a", "up0/b", "up0/c"] {
                assert_unblamed(&counters, id);
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_400_that_says_the_credit_is_spent_goes_on_to_the_next_account() {
    each(async |pair| {
        let spent = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.";
        let lab = lab([of("a", error_saying(400, spent)), good()]).await;
        let world = World::two(pair, &lab).await;
        for conversation in 0..4 {
            assert_said(pair, &turn_of(&world, pair, conversation).await, WORDS);
        }
        let asked = asked(&lab);
        assert_eq!(asked.iter().filter(|account| *account == "secret-a").count(), 1, "{pair:?} {asked:?}");
        let counters = world.until_at_rest().await;
        let cooldowns = &account(&counters, "up0/a")["cooldowns"];
        assert_eq!((&cooldowns[0]["scope"], &cooldowns[0]["fault"]), (&"quota".into(), &"quota_exhausted".into()));
        assert_unblamed(&counters, "up0/b");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_failure_of_the_upstream_costs_the_account_no_time_out() {
    each(async |pair| {
        for status in [500, 502, 503] {
            let lab = lab([times(1, error(status)), good()]).await;
            let world = World::of(&Plan::over([Up::at(pair.upstream, &lab)]).tuning("attempts = 1")).await;
            let failed = turn(&world, pair).await;
            assert!(failed.status >= 500, "{failed:?}");
            assert_said(pair, &turn(&world, pair).await, WORDS);
            assert_unblamed(&world.until_at_rest().await, "up0/a");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_strictest_numbers_let_no_failure_of_the_upstream_take_an_account_out() {
    each(async |pair| {
        let failing = [error(500), error(503), fault(Fault::ResetBeforeReply, None), fault(Fault::BadJson, None)];
        let rules = failing.into_iter().map(|rule| times(2, rule)).chain([good()]);
        let lab = lab(rules).await;
        let numbers = format!("{QUICK}budget = 1\nbreaker_faults = 1\nattempts = 1");
        let world = World::of(&Plan::over([Up::at(pair.upstream, &lab)]).tuning(&numbers)).await;
        for _ in 0..8 {
            turn(&world, pair).await;
        }
        assert_unblamed(&world.until_at_rest().await, "up0/a");
        assert_said(pair, &turn(&world, pair).await, WORDS);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_a_stand_in_stays_the_stand_ins_own() {
    each(async |pair| {
        let [first, second] = [lab([times(1, error(503)), saying("first")]).await, lab([limited(600)]).await];
        // The accounts have the same name, and even the same secret.
        let ups = [Up::at(pair.upstream, &first), Up::at(pair.upstream, &second)];
        let models = "[[models]]\nname = \"m\"\nroutes = [{ upstream = \"up0\" }]\nfallbacks = [\"n\"]\n\
                      [[models]]\nname = \"n\"\nroutes = [{ upstream = \"up1\" }]\n";
        let world = World::of(&Plan::over(ups).models(models).tuning(QUICK)).await;
        let failed = turn(&world, pair).await;
        assert_ne!(failed.status, 200, "{failed:?}");
        let counters = world.until_at_rest().await;
        assert_unblamed(&counters, "up0/a");
        assert_eq!(account(&counters, "up1/a")["cooldowns"][0]["fault"], "rate_limited", "{pair:?}");
        assert_said(pair, &turn(&world, pair).await, "first");
        assert_eq!((first.requests().len(), second.requests().len()), (2, 1));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_sees_which_account_is_out_and_why_and_until_when() {
    each(async |pair| {
        let lab = lab([of("a", error_saying(401, "That key is dead.")), of("b", limited(600))]).await;
        let up = Up::at(pair.upstream, &lab).accounts(&["a", "b"]);
        let world = World::of(&Plan::over([up]).tuning("budget = 1")).await;
        assert_ne!(turn(&world, pair).await.status, 200);
        let counters = world.until_at_rest().await;
        let [a, b] = ["up0/a", "up0/b"].map(|id| account(&counters, id));
        assert_eq!(a["status"], "errored", "{a}");
        assert!(a["retry_at"].as_str().is_some_and(|at| at.contains('T')), "{a}");
        assert_eq!(
            (&b["cooldowns"][0]["scope"], &b["cooldowns"][0]["fault"]),
            (&"account".into(), &"rate_limited".into())
        );
        assert!(b["cooldowns"][0]["until"].as_str().is_some_and(|at| at.contains('T')), "{b}");
        let (a, b) = (explained(&world, "up0/a").await, explained(&world, "up0/b").await);
        assert!(a.contains("errored") && a.contains("401") && a.contains("That key is dead."), "{a}");
        assert!(b.contains("rate_limited") && b.contains("429"), "{b}");
    })
    .await;
}

/// What `turnkeep explain account` says, once the gateway has written what it knows.
async fn explained(world: &World, id: &str) -> String {
    loop {
        let said = world.command(&["explain", "account", id]).await;
        if !said.contains("no fault is kept") {
            return said;
        }
        tokio::task::yield_now().await;
    }
}
