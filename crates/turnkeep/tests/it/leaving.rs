//! A client that leaves is noticed in every phase: the upstream's work ends, the slot comes back, nobody is blamed.

use crate::support::client::{request_bytes, turn_bytes};
use crate::support::dialects::{CHAT, assert_said, body_of};
use crate::support::listen::{Served, h2_client, served};
use crate::support::world::{Plan, assert_unblamed};
use crate::support::*;
use futures_util::future::join_all;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use turnkeep_lab::Lab;

fn held_before_headers() -> Rule {
    Rule { gate: Some("held".into()), ..Rule::default() }
}

fn held_after_two_words() -> Rule {
    let text = Some("one two three four".into());
    Rule { text, gate: Some("held".into()), gate_at: Some(Point::AfterWords(2)), ..Rule::default() }
}

/// What must hold after the only turn's client has left.
async fn left(world: &World, counter: &str) -> Value {
    world.until(counter, |counters| counters[counter] == 1).await;
    let counters = world.until_at_rest().await;
    assert_unblamed(&counters, "a");
    assert_eq!(counters["client_gone"], 1, "{counters:#}");
    let both = ["client_gone_before_answer", "client_gone_mid_answer"].map(|name| counters[name].as_u64().unwrap());
    assert_eq!(both.iter().sum::<u64>(), 1, "{counters:#}");
    for zero in ["delivered", "undelivered", "transport_fault", "unclassified_fault", "failover_hops"] {
        assert_eq!(counters[zero], 0, "{zero}: {counters:#}");
    }
    counters
}

/// The combinations: the client's way out, the client's transport, the upstream's transport.
async fn each_way(test: impl AsyncFn(Pair, Leave, bool, bool)) {
    for how in Leave::BOTH {
        for (client_tls, upstream_tls) in [(false, false), (true, false), (false, true)] {
            join_all(pairs().into_iter().map(|pair| test(pair, how, client_tls, upstream_tls))).await;
        }
    }
}

async fn place(pair: Pair, rule: Rule, client_tls: bool, upstream_tls: bool) -> (Served, Lab) {
    let script = Script::of([rule]);
    // By TLS the lab takes HTTP/2, so that there the upstream sees a stream's reset and not a connection's end.
    let lab = if upstream_tls { tls_lab(script).await } else { plain_lab(script).await };
    (served(Plan::over([Up::at(pair.upstream, &lab)]), client_tls).await, lab)
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_before_the_upstream_has_answered_ends_the_upstreams_work() {
    each_way(async |pair, how, client_tls, upstream_tls| {
        let (served, lab) = place(pair, held_before_headers(), client_tls, upstream_tls).await;
        let mut client = served.client().await;
        client.ask(pair).await;
        soon(lab.wait_at_gate("held", 1)).await;
        client.leave(how).await;
        soon(lab.wait_aborted(1)).await;
        served.until_left("client_gone_before_answer").await;
        assert_eq!(lab.requests().len(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_in_the_middle_of_a_stream_ends_the_upstreams_work() {
    each_way(async |pair, how, client_tls, upstream_tls| {
        if !pair.stream {
            return;
        }
        let (served, lab) = place(pair, held_after_two_words(), client_tls, upstream_tls).await;
        let mut client = served.client().await;
        client.ask(pair).await;
        client.until("two ").await;
        soon(lab.wait_at_gate("held", 1)).await;
        client.leave(how).await;
        soon(lab.wait_aborted(1)).await;
        served.until_left("client_gone_mid_answer").await;
        assert_eq!(lab.requests().len(), 1);
    })
    .await;
}

impl Served {
    async fn until_left(&self, counter: &str) {
        left(&self.world, counter).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resetting_an_http2_stream_ends_the_upstreams_work_and_the_connection_serves_on() {
    for mid_stream in [false, true] {
        for pair in pairs().into_iter().filter(|pair| pair.stream) {
            let rule = if mid_stream { held_after_two_words() } else { held_before_headers() };
            let rule = Rule { times: Some(1), ..rule };
            let lab = lab([rule, Rule { text: Some("served".into()), ..Rule::default() }]).await;
            let world = World::simple(pair, &lab).await;
            let mut client = h2_client(world.addr()).await;
            let request = || {
                http::Request::post(format!("http://gateway{}", pair.path()))
                    .header("authorization", format!("Bearer {KEY}"))
                    .header("content-type", "application/json")
                    .header("anthropic-version", "2023-06-01")
                    .body(Full::from(body_of(pair, request(pair))))
                    .unwrap()
            };
            let reply = client.send_request(request());
            if mid_stream {
                let mut body = reply.await.unwrap().into_body();
                let mut text = String::new();
                while !text.contains("two ") {
                    let frame = body.frame().await.unwrap().unwrap();
                    text += std::str::from_utf8(frame.data_ref().unwrap()).unwrap();
                }
                drop(body);
            } else {
                let reply = tokio::spawn(reply);
                soon(lab.wait_at_gate("held", 1)).await;
                reply.abort();
            }
            soon(lab.wait_aborted(1)).await;
            let counter = if mid_stream { "client_gone_mid_answer" } else { "client_gone_before_answer" };
            left(&world, counter).await;
            let again = client.send_request(request()).await.unwrap();
            let body = again.into_body().collect().await.unwrap().to_bytes();
            assert!(String::from_utf8_lossy(&body).contains("served"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_while_waiting_for_a_slot_gives_the_place_up_and_nothing_is_sent() {
    for how in Leave::BOTH {
        join_all(pairs().into_iter().map(|pair| async move {
            let lab = lab([Rule { times: Some(1), ..held_before_headers() }]).await;
            let world = World::over([Up::at(pair.upstream, &lab).slots(1)]).await;
            let mut holder = world.client().await;
            holder.ask(pair).await;
            soon(lab.wait_at_gate("held", 1)).await;
            let mut client = world.client().await;
            client.ask(pair).await;
            world.until("one that waits", |counters| counters["waiting"] == 1).await;
            client.leave(how).await;
            let left = |counters: &Value| counters["client_gone_before_answer"] == 1 && counters["waiting"] == 0;
            let counters = world.until("the place given up", left).await;
            assert_eq!(counters["accounts"][0]["in_flight"], 1, "the other turn goes on");
            lab.release("held");
            assert_eq!(holder.reply().await.status, 200);
            assert_unblamed(&world.until_at_rest().await, "a");
            assert_eq!(lab.requests().len(), 1);
        }))
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_while_the_turn_waits_to_try_again_makes_no_second_call() {
    for how in Leave::BOTH {
        join_all(pairs().into_iter().map(|pair| async move {
            // An overload whose wait of 2 s the gateway sits out before it asks again.
            let error = ErrorSpec { status: Some(529), retry_after: Some(2), ..ErrorSpec::default() };
            let lab = lab([Rule { error: Some(error), ..Rule::default() }]).await;
            let world = World::simple(pair, &lab).await;
            let mut client = world.client().await;
            client.ask(pair).await;
            world.until("the overload", |counters| counters["model_overloaded"] == 1).await;
            client.leave(how).await;
            let counters = world.until("leaving", |counters| counters["client_gone_before_answer"] == 1).await;
            assert_eq!(counters["accounts"][0]["in_flight"], 0);
            assert_eq!(
                counters["accounts"][0]["cooldowns"][0]["fault"], "model_overloaded",
                "a declared wait outlives the client"
            );
            assert_eq!(counters["transient_replays"], 0);
            assert_eq!(lab.requests().len(), 1);
        }))
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_that_races_an_upstream_fault_makes_no_second_call() {
    for how in Leave::BOTH {
        join_all(pairs().into_iter().map(|pair| async move {
            let rule = Rule { fault: Some(Fault::ResetBeforeReply), ..held_before_headers() };
            let lab = lab([rule]).await;
            let world = World::two(pair, &lab).await;
            let mut client = world.client().await;
            client.ask(pair).await;
            soon(lab.wait_at_gate("held", 1)).await;
            client.leave(how).await;
            lab.release("held");
            world.until("leaving", |counters| counters["client_gone_before_answer"] == 1).await;
            let counters = world.until_at_rest().await;
            assert_unblamed(&counters, "a");
            assert_unblamed(&counters, "b");
            assert_eq!(lab.requests().len(), 1);
        }))
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_while_the_body_is_still_to_come_starts_no_turn() {
    let lab = lab([]).await;
    let world = World::simple(CHAT, &lab).await;
    let whole = turn_bytes(CHAT, &[], request(CHAT).to_string().as_bytes());
    for how in Leave::BOTH {
        let mut client = world.client().await;
        client.write(&whole[..whole.len() - 5]).await;
        if how == Leave::Fin {
            client.fin().await;
            client.until_closed().await;
        } else {
            client.leave(how).await;
        }
    }
    assert_said(
        CHAT,
        &world.client().await.turn(CHAT).await,
        "You said: \"Hello there\". This is the lab model upstream-m answering.",
    );
    let counters = world.until_at_rest().await;
    assert_eq!(lab.requests().len(), 1, "nothing of the others was sent");
    assert_unblamed(&counters, "a");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_closes_after_the_terminal_event_has_not_left() {
    for pair in pairs() {
        let lab = lab([]).await;
        let world = World::simple(pair, &lab).await;
        let reply = world.client().await.turn(pair).await;
        assert_eq!(reply.status, 200);
        let counters = world.until("delivery", |counters| counters["delivered"] == 1).await;
        assert_eq!((&counters["client_gone"], &counters["undelivered"]), (&0.into(), &0.into()), "{pair:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_serves_many_turns_one_after_another() {
    let lab = lab([]).await;
    let world = World::simple(CHAT, &lab).await;
    let mut client = world.client().await;
    for pair in pairs() {
        assert_eq!(client.turn(pair).await.status, 200, "{pair:?}");
    }
    client.write(&request_bytes("HEAD", "/api/hello", &[], b"")).await;
    client.until("200 OK").await;
    assert_eq!(world.until("delivery", |counters| counters["delivered"] == pairs().len()).await["client_gone"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_with_a_reply_that_was_never_read_ends_the_upstreams_work() {
    for how in Leave::BOTH {
        join_all(pairs().into_iter().filter(|pair| pair.stream).map(|pair| async move {
            // Far more than the sockets on the way can hold, and held at its end.
            let at = Some(Point::BeforeTerminal);
            let rule = Rule { words: Some(100_000), gate: Some("held".into()), gate_at: at, ..Rule::default() };
            let lab = lab([rule]).await;
            let world = World::simple(pair, &lab).await;
            let mut client = world.client().await;
            client.ask(pair).await;
            client.until("word1 ").await;
            client.leave(how).await;
            soon(lab.wait_aborted(1)).await;
            left(&world, "client_gone_mid_answer").await;
        }))
        .await;
    }
}
