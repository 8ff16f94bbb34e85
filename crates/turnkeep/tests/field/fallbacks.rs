//! Failing over: every fault that another candidate can repair reaches it before the client has seen anything, and no
//! other does.

use crate::kit::*;
use crate::support::dialects::{assert_begins_once, assert_refused, assert_said, say};
use crate::support::world::{Plan, nobodys};
use crate::support::{AcceptFault, AcceptRule, ErrorSpec, Fault, Rule, Script, Up, World, lab, tls_lab};
use turnkeep_base::Dialect;
use turnkeep_lab::Lab;

/// The model `m` at the first upstream, and `n` at the second, which stands in for it.
const STANDING_IN: &str = "[[models]]\nname = \"m\"\nroutes = [{ upstream = \"up0\" }]\nfallbacks = [\"n\"]\n\
                           [[models]]\nname = \"n\"\nroutes = [{ upstream = \"up1\" }]\nfallbacks = [\"o\"]\n\
                           [[models]]\nname = \"o\"\nroutes = [{ upstream = \"up2\" }]\n";

/// Another kind of upstream, so that a failover crosses dialects.
fn other(dialect: Dialect) -> Dialect {
    match dialect {
        Dialect::Chat => Dialect::Messages,
        Dialect::Messages => Dialect::Gemini,
        Dialect::Gemini => Dialect::Responses,
        Dialect::Responses => Dialect::Chat,
    }
}

/// A first upstream of this kind, and a second one of the other, which is well.
async fn two(pair: crate::support::Pair, first: Up) -> (World, Lab) {
    let second = lab([saying("second")]).await;
    let ups = [first, Up::at(other(pair.upstream), &second)];
    (World::of(&Plan::over(ups).tuning(QUICK)).await, second)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_status_that_another_route_can_repair_goes_on_to_it() {
    each(async |pair| {
        for status in [401, 402, 403, 408, 425, 429, 500, 502, 503, 520, 529] {
            let rule = if status == 529 || status == 429 {
                let retry_after = Some(60);
                Rule { error: Some(ErrorSpec { status: Some(status), retry_after, ..ErrorSpec::default() }), ..good() }
            } else {
                error_saying(status, "It did not work.")
            };
            let first = lab([rule]).await;
            let (world, _second) = two(pair, Up::at(pair.upstream, &first)).await;
            let reply = turn(&world, pair).await;
            assert_said(pair, &reply, "second");
            assert_eq!(reply.header("x-turnkeep-attempts"), Some("2"), "{pair:?} {status}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_without_a_status_goes_on_to_the_next_route() {
    each(async |pair| {
        for faulty in [Fault::ResetBeforeReply, Fault::CloseBeforeReply, Fault::BadHeader, Fault::HeaderOverflow] {
            let first = lab([fault(faulty, None)]).await;
            let (world, _second) = two(pair, Up::at(pair.upstream, &first)).await;
            assert_said(pair, &turn(&world, pair).await, "second");
        }
        for faulty in [AcceptFault::TlsAlert, AcceptFault::TlsWrongVersion, AcceptFault::ResetOnAccept] {
            let accept = vec![AcceptRule { fault: faulty, times: None }];
            let first = tls_lab(Script { accept, ..Script::default() }).await;
            let (world, _second) = two(pair, Up::at(pair.upstream, &first)).await;
            assert_said(pair, &turn(&world, pair).await, "second");
        }
        let nobody = nobodys();
        let (world, _second) = two(pair, Up::address(pair.upstream, nobody.local_addr().unwrap())).await;
        assert_said(pair, &turn(&world, pair).await, "second");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_takes_too_long_is_a_fault_of_its_own_and_the_next_route_serves() {
    each(async |pair| {
        let accept = vec![AcceptRule { fault: AcceptFault::HangOnAccept, times: None }];
        let silent = tls_lab(Script { accept, ..Script::default() }).await;
        let up = Up::at(pair.upstream, &silent).timeouts("connect = \"150ms\"");
        let (world, _second) = two(pair, up).await;
        assert_said(pair, &turn(&world, pair).await, "second");
        assert_eq!(world.until_at_rest().await["connect_timeout"], 1, "{pair:?}");
    })
    .await;
    each_streamed(async |pair| {
        let first = lab([fault(Fault::Hang, None)]).await;
        let up = Up::at(pair.upstream, &first).timeouts("first_content = \"150ms\"");
        let (world, _second) = two(pair, up).await;
        assert_said(pair, &turn(&world, pair).await, "second");
        assert_eq!(world.until_at_rest().await["upstream_stalled"], 1, "{pair:?}");
    })
    .await;
    // A plain answer has no beginning to wait for: its whole time ends it, as a 504 and not as a mistake of ours.
    each_plain(async |pair| {
        let first = lab([fault(Fault::Hang, None)]).await;
        let up = Up::at(pair.upstream, &first).timeouts("total = \"150ms\"");
        let (world, _second) = two(pair, up).await;
        assert_refused(pair, &turn(&world, pair).await, 504);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_stands_in_serves_streamed_and_plain_turns_alike_and_is_named() {
    each(async |pair| {
        let [first, second] = [lab([error(503)]).await, lab([saying("second")]).await];
        let third = lab([saying("third")]).await;
        let ups = [Up::at(pair.upstream, &first), Up::at(other(pair.upstream), &second), Up::at(pair.upstream, &third)];
        let world = World::of(&Plan::over(ups).models(STANDING_IN).tuning(QUICK)).await;
        let reply = turn(&world, pair).await;
        assert_said(pair, &reply, "second");
        assert_eq!(reply.header("x-turnkeep-model"), Some("n"), "{pair:?}");
        assert_eq!(third.requests().len(), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_a_stand_in_can_repair_reaches_it_and_the_stand_ins_own_are_not_followed() {
    each(async |pair| {
        let first =
            lab([Rule { body_contains: Some("odd".into()), ..error_saying(422, "That is odd.") }, error(503)]).await;
        let [second, third] = [lab([error(503)]).await, lab([saying("third")]).await];
        let ups = [&first, &second, &third].map(|lab| Up::at(pair.upstream, lab));
        let world = World::of(&Plan::over(ups).models(STANDING_IN).tuning(QUICK)).await;
        assert_refused(pair, &turn_saying(&world, pair, "odd").await, 422);
        assert_eq!((first.requests().len(), second.requests().len()), (1, 0), "{pair:?}");
        assert_refused(pair, &turn(&world, pair).await, 503);
        assert!(!second.requests().is_empty(), "{pair:?}");
        assert_eq!(third.requests().len(), 0, "{pair:?}: stand-ins are one step");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_routes_refusal_does_not_hide_the_fault_that_led_there() {
    each(async |pair| {
        let first = lab([error(503)]).await;
        let prefill = "This model does not support assistant message prefill.";
        let second = lab([error_saying(400, prefill)]).await;
        let ups = [Up::at(pair.upstream, &first), Up::at(other(pair.upstream), &second)];
        let world = World::of(&Plan::over(ups).tuning(QUICK)).await;
        let message = assert_refused(pair, &turn(&world, pair).await, 503);
        assert!(!message.contains("prefill"), "{pair:?} {message}");
        assert_eq!(second.requests().len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_turn_begins_at_the_first_route_again() {
    each(async |pair| {
        let first = lab([times(1, error(503)), saying("first")]).await;
        let [second, third] = [lab([times(1, error(503)), saying("second")]).await, lab([saying("third")]).await];
        let ups = [&first, &second, &third].map(|lab| Up::at(pair.upstream, lab));
        let world = World::of(&Plan::over(ups).tuning(QUICK)).await;
        assert_said(pair, &turn(&world, pair).await, "third");
        for _ in 0..3 {
            assert_said(pair, &turn(&world, pair).await, "first");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_the_provider_refuses_for_its_content_is_asked_once() {
    each(async |pair| {
        let policy = match pair.upstream {
            Dialect::Gemini => {
                ErrorSpec { status: Some(451), message: Some("Refused by our policy.".into()), ..ErrorSpec::default() }
            }
            Dialect::Chat | Dialect::Responses => ErrorSpec {
                status: Some(400),
                code: Some("content_policy_violation".into()),
                message: Some("Refused by our policy.".into()),
                ..ErrorSpec::default()
            },
            Dialect::Messages => ErrorSpec {
                status: Some(400),
                message: Some("Output blocked by content filtering policy".into()),
                ..ErrorSpec::default()
            },
        };
        let first = lab([Rule { error: Some(policy), ..Rule::default() }]).await;
        let (world, second) = two(pair, Up::at(pair.upstream, &first).accounts(&["a", "b"])).await;
        assert_refused(pair, &turn(&world, pair).await, 451);
        assert_eq!((first.requests().len(), second.requests().len()), (1, 0), "{pair:?}");
        let counters = world.until_at_rest().await;
        assert_unblamed(&counters, "up0/a");
        assert_unblamed(&counters, "up0/b");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_elsewhere_when_the_account_that_served_it_is_limited() {
    each(async |pair| {
        let lab = lab([good()]).await;
        let world = World::two(pair, &lab).await;
        let mut client = world.client().await;
        assert_said(pair, &client.turn(pair).await, WORDS);
        let served = asked(&lab)[0].trim_start_matches("secret-").to_owned();
        lab.set_script(Script::of([of(&served, limited(600)), good()]));
        let mut body = crate::support::request(pair);
        say(pair, &mut body, "assistant", WORDS);
        say(pair, &mut body, "user", "And then?");
        for _ in 0..3 {
            client.ask_with(pair, &[("x-session-id", "s-1")], body.to_string().as_bytes()).await;
            assert_said(pair, &client.reply().await, WORDS);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_reaches_the_client_before_a_route_has_content_however_many_fail_first() {
    each(async |pair| {
        let failing = [error(503), fault(Fault::NoTerminal, Some(crate::support::Point::AfterPreamble)), error(500)];
        let rules = failing.into_iter().map(|rule| times(1, rule)).chain([good()]);
        let lab = lab(rules).await;
        let ups = (0..4).map(|_| Up::at(pair.upstream, &lab));
        let world = World::of(&Plan::over(ups).tuning(&format!("{QUICK}attempts = 4"))).await;
        let reply = turn(&world, pair).await;
        if pair.stream {
            assert_said(pair, &reply, WORDS);
            assert_begins_once(pair, &reply);
        }
        assert_eq!(reply.status, 200, "{pair:?} {}", reply.text());
        lab.set_script(Script::of([error(503)]));
        assert_refused(pair, &turn(&world, pair).await, 503);
    })
    .await;
}
