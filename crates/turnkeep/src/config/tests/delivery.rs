//! What becomes of replies that do not arrive, of answers that may be used again, and of turns that cannot be written down.

use super::{UPSTREAM, only_error, parse};
use std::time::Duration;
use turnkeep_engine::route::OnClientGone;
use turnkeep_http::Delivery;

fn upstream(value: &str) -> String {
    UPSTREAM.replace("[[upstreams.acc", &format!("on_client_gone = {value}\n[[upstreams.acc"))
}

fn tells(text: &str, place: &str, part: &str) {
    let (at, message) = only_error(text);
    assert!(at == place && message.contains(part), "{at}: {message}");
}

#[test]
fn a_call_whose_client_leaves_is_cancelled_or_finishes_within_bounds() {
    let of = |text: &str| parse(text).upstreams[0].on_client_gone;
    assert_eq!(of(UPSTREAM), OnClientGone::Cancel);
    assert_eq!(of(&upstream("\"cancel\"")), OnClientGone::Cancel);
    let bounds = OnClientGone::Finish { max_tokens: 2_000, max_time: Duration::from_secs(30) };
    assert_eq!(of(&upstream("{ finish = { max_tokens = 2000, max_seconds = 30 } }")), bounds);
    let place = "6:18 upstreams[0].on_client_gone";
    tells(&upstream("\"finish\""), place, "max_seconds = 30");
    tells(&upstream("\"stop\""), place, "\"cancel\"");
    tells(&upstream("7"), place, "must be a string");
    tells(&upstream("{}"), "6:18 upstreams[0].on_client_gone.finish", "is missing");
    let finish = "6:29 upstreams[0].on_client_gone.finish";
    tells(&upstream("{ finish = { max_tokens = 1 } }"), &format!("{finish}.max_seconds"), "is missing");
    let zero = "{ finish = { max_tokens = 0, max_seconds = 1 } }";
    tells(&upstream(zero), "6:44 upstreams[0].on_client_gone.finish.max_tokens", "from 1");
}

#[test]
fn a_reply_is_delivered_when_it_is_acknowledged_unless_flushing_is_enough() {
    let of = |line: &str| parse(&format!("[server]\n{line}\n")).server.delivery;
    assert_eq!((of(""), of("delivery = \"acked\"")), (Delivery::Acked, Delivery::Acked));
    assert_eq!(of("delivery = \"flushed\""), Delivery::Flushed);
    tells("[server]\ndelivery = \"aked\"\n", "2:12 server.delivery", "did you mean \"acked\"?");
}

#[test]
fn a_store_that_cannot_write_refuses_turns_unless_they_may_go_on() {
    let of = |line: &str| parse(&format!("[store]\n{line}\n")).store.serve_on_failure;
    assert!(!of("") && !of("on_failure = \"refuse\"") && of("on_failure = \"serve\""));
    tells("[store]\non_failure = \"go on\"\n", "2:14 store.on_failure", "\"serve\"");
}

#[test]
fn answers_are_used_again_for_as_long_as_the_model_says() {
    let model =
        |line: &str| format!("{UPSTREAM}[[models]]\nname = \"m\"\nroutes = [{{ upstream = \"openai\" }}]\n{line}\n");
    let of = |line: &str| parse(&model(line)).model("m").unwrap().cache;
    assert_eq!((of(""), of("cache = { ttl = \"5m\" }")), (None, Some(Duration::from_secs(300))));
    tells(&model("cache = { ttl = \"0s\" }"), "12:17 models[0].cache.ttl", "from 1s to 7d");
    tells(&model("cache = {}"), "12:9 models[0].cache.ttl", "is missing");
    tells(&model("cache = true"), "12:9 models[0].cache", "must be a table");
}
