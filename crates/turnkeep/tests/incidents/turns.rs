//! Turns that went wrong in every way, or right: each is replayed identically.

use crate::scene::at_rest;
use crate::stage::*;
use crate::support::dialects::{CHAT, assert_broke_off, assert_refused, assert_said};
use crate::support::world::Plan;
use crate::support::*;
use futures_util::future::join_all;
use serde_json::{Value, json};
use turnkeep::config::Config;
use turnkeep::wiring;

const WORDS: &str = "one two three four";

fn good() -> Rule {
    Rule { text: Some(WORDS.into()), ..Rule::default() }
}

fn refusing(status: u16, code: &str) -> Rule {
    let error = ErrorSpec {
        status: Some(status),
        code: Some(code.into()),
        message: Some("slow down please".into()),
        retry_after: (status == 429).then_some(600),
        ..ErrorSpec::default()
    };
    Rule { error: Some(error), ..Rule::default() }
}

fn once(rule: Rule) -> Rule {
    Rule { times: Some(1), ..rule }
}

fn held() -> Rule {
    Rule { gate: Some("held".into()), gate_at: Some(Point::AfterWords(2)), ..good() }
}

fn ways() -> [Pair; 3] {
    let way = |client, upstream, stream| Pair { client, upstream, stream };
    [CHAT, way(Dialect::Messages, Dialect::Chat, false), way(Dialect::Gemini, Dialect::Responses, true)]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_a_second_account_served_after_a_rate_limit_is_replayed_identically() {
    join_all(ways().map(|pair| async move {
        let lab = lab([once(refusing(429, "rate_limit_exceeded")), good()]).await;
        let world = World::two(pair, &lab).await;
        let reply = world.client().await.turn(pair).await;
        assert_said(pair, &reply, WORDS);
        let turn = reply.header("x-turnkeep-turn").unwrap().to_owned();
        at_rest(&world).await;
        let trace = same(&world, &turn).await;
        assert_eq!(trace["format"], "turnkeep-incident/1");
        let head = &trace["head"];
        assert_eq!((&head["turn"], &head["caller"], &head["model"]), (&json!(turn), &json!("tester"), &json!("m")));
        assert_eq!((&head["dialect"], &trace["state"]), (&json!(pair.client.name()), &json!("ended")));
        assert!(head["config"].as_str().unwrap().starts_with("blake3:"), "{head}");
        let accounts: Vec<&Value> = head["accounts"].as_object().unwrap().values().collect();
        assert!(accounts.contains(&&json!("up0/a")) && accounts.contains(&&json!("up0/b")), "{head}");
        let judged = steps(&trace, "judged");
        assert_eq!((judged.len(), &judged[0]["fault"]["status"]), (1, &json!(429)), "{trace:#}");
        assert_eq!(judged[0]["judgement"]["applied"][0]["cooled"], json!({"what": "account", "left": "600s"}));
        let attempts = steps(&trace, "attempt");
        let outcomes: Vec<&Value> = attempts.iter().map(|step| &step["closing"]["outcome"]).collect();
        assert_eq!(outcomes, [&json!({"failed": "rate_limited"}), &json!("completed")]);
        assert_eq!(steps(&trace, "delivery")[0]["effects"]["delivered"], true);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_errored_tried_and_errored_again_is_judged_identically_each_time() {
    let lab = lab([refusing(401, "invalid_api_key")]).await;
    let plan = Plan::over([Up::at(Dialect::Chat, &lab).accounts(&["a"])]);
    let world = World::of(&plan.tuning("last_account_retry = \"1s\"")).await;
    let mut pace = tokio::time::interval(std::time::Duration::from_millis(20));
    let end = tokio::time::Instant::now() + crate::support::world::BOUND;
    // Three refusals, and that of the try.
    while lab.requests().len() < 4 {
        assert!(tokio::time::Instant::now() < end, "it was not tried");
        pace.tick().await;
        assert_ne!(world.client().await.turn(CHAT).await.status, 200);
    }
    let turns = turns(&world).await;
    let mut applied = Vec::new();
    for turn in &turns {
        let trace = same(&world, turn).await;
        applied.extend(steps(&trace, "judged").iter().map(|step| step["judgement"]["applied"][0].clone()));
    }
    assert_eq!(applied[..2], [json!({"budget": {"used": 1, "of": 3}}), json!({"budget": {"used": 2, "of": 3}})]);
    let episodes: Vec<&Value> = applied.iter().filter_map(|applied| applied.pointer("/errored/episode")).collect();
    assert!(episodes.contains(&&json!(2)), "a try was refused: {applied:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_broke_in_the_middle_is_replayed_identically() {
    join_all(ways().into_iter().filter(|pair| pair.stream).map(|pair| async move {
        let broken = Rule { fault: Some(Fault::ResetMidStream), fault_at: Some(Point::AfterWords(2)), ..good() };
        let lab = lab([broken]).await;
        let world = World::two(pair, &lab).await;
        let reply = world.client().await.turn(pair).await;
        assert_broke_off(pair, &reply, "one two ");
        at_rest(&world).await;
        let trace = same(&world, reply.header("x-turnkeep-turn").unwrap()).await;
        assert_eq!(events(&trace).last().map(String::as_str), Some("fault"), "{trace:#}");
        assert_eq!(steps(&trace, "turn")[0]["facts"]["outcome"], "failed");
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_client_left_is_replayed_identically_while_it_runs_and_afterwards() {
    for how in Leave::BOTH {
        let lab = lab([held()]).await;
        let world = World::simple(CHAT, &lab).await;
        let mut client = world.client().await;
        client.ask(CHAT).await;
        client.until("two ").await;
        soon(lab.wait_at_gate("held", 1)).await;
        let entries = crate::support::world::ledger(world.folder()).await;
        let turn = entries[0].attempt.turn.to_string();
        let running = same(&world, &turn).await;
        assert_eq!((&running["state"], steps(&running, "turn").len()), (&json!("running"), 0));
        client.leave(how).await;
        at_rest(&world).await;
        std::fs::remove_file(world.folder().join(format!("{turn}.json"))).unwrap();
        let ended = same(&world, &turn).await;
        assert_eq!(events(&ended).last().map(String::as_str), Some("client_gone"));
        assert_eq!(steps(&ended, "turn")[0]["effects"]["left"], "mid_answer", "{ended:#}");
        let before = running["steps"].as_array().unwrap();
        assert_eq!(ended["steps"].as_array().unwrap()[..before.len()], before[..], "the same steps, and more");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_waited_for_a_slot_with_signs_of_life_is_replayed_identically() {
    let lab = lab([once(held()), good()]).await;
    let tuning = "stream_open_after = \"100ms\"\nheartbeat = \"1s\"\nmax_queue_wait = \"30s\"";
    let world = World::of(&Plan::over([Up::at(Dialect::Chat, &lab).slots(1)]).tuning(tuning)).await;
    let mut first = world.client().await;
    first.ask(CHAT).await;
    soon(lab.wait_at_gate("held", 1)).await;
    let mut second = world.client().await;
    second.ask(CHAT).await;
    second.until(": keepalive\n\n").await;
    lab.release("held");
    assert_said(CHAT, &first.reply().await, WORDS);
    assert_eq!(second.reply().await.status, 200);
    let turns = turns(&world).await;
    let trace = same(&world, &turns[1]).await;
    assert!(events(&trace).contains(&"timer".to_owned()), "{trace:#}");
    let mut slot = trace["steps"].as_array().unwrap().iter();
    let slot = slot.find(|step| !step["what"]["machine"]["event"]["slot"].is_null()).unwrap();
    assert!(slot["us"].as_u64().unwrap() >= 100_000, "it waited: {slot}");
    same(&world, &turns[0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_nobody_could_serve_is_replayed_identically() {
    let lab = lab([refusing(429, "rate_limit_exceeded")]).await;
    let world = World::simple(CHAT, &lab).await;
    let replies = [world.client().await.turn(CHAT).await, world.client().await.turn(CHAT).await];
    at_rest(&world).await;
    for reply in replies {
        assert_refused(CHAT, &reply, 429);
        let trace = same(&world, reply.header("x-turnkeep-turn").unwrap()).await;
        assert!(events(&trace).contains(&"no_slot".to_owned()), "{trace:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_the_gateways_stop_ended_is_replayed_identically() {
    let lab = lab([held()]).await;
    let folder = tempfile::tempdir().unwrap();
    let mut plan = Plan::over([Up::at(Dialect::Chat, &lab)]);
    plan.server = "shutdown_grace = \"0s\"".into();
    let config = folder.path().join("turnkeep.toml");
    std::fs::write(&config, plan.toml(folder.path())).unwrap();
    let wired = wiring::wire(Config::load(&config).unwrap()).await.map_err(|failure| failure.to_string()).unwrap();
    let engine = wired.gateway().engine().clone();
    let turnkeep_http::Bound::Tcp(addr) = wired.bound[0].clone() else { panic!("a TCP address") };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(wired.serve(async {
        let _ = stopped.await;
    }));
    let mut client = crate::support::client::Client::tcp(addr).await;
    client.ask(CHAT).await;
    client.until("two ").await;
    drop(stop);
    assert_broke_off(CHAT, &client.reply().await, "one two ");
    soon(serving).await.unwrap().unwrap();
    let entries = crate::support::world::ledger(folder.path()).await;
    // The gateway is gone, and its traces would be with it, but for the engine that the test holds.
    let trace = engine.incidents.trace(entries[0].attempt.turn).unwrap();
    let file = folder.path().join("trace.json");
    std::fs::write(&file, serde_json::to_vec(&trace).unwrap()).unwrap();
    let ran = replay(&file).await;
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("gateway stops") && ran.out.contains("identical"), "{}", ran.out);
}
