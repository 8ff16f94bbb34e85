//! Who may do what: known before the body is read, refused in the dialect of the path.

use crate::support::client::request_bytes;
use crate::support::dialects::{CHAT, assert_refused};
use crate::support::world::Plan;
use crate::support::*;
use futures_util::future::join_all;
use turnkeep_lab::Lab;

const MORE_KEYS: &str = r#"
[[keys]]
name = "narrow"
secret = "a-key-for-one-model"
models = ["other-*"]
[[keys]]
name = "meter"
secret = "a-key-for-metrics"
scopes = ["metrics"]
"#;

async fn place(pair: Pair) -> (World, Lab) {
    let lab = lab([]).await;
    let mut plan = Plan::over([Up::at(pair.upstream, &lab)]);
    plan.more = MORE_KEYS.into();
    (World::of(&plan).await, lab)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_or_wrong_key_is_a_401_before_the_body_is_read() {
    join_all(pairs().into_iter().map(|pair| async move {
        let (world, lab) = place(pair).await;
        for key in [("authorization", ""), ("authorization", "Bearer wrong"), ("x-api-key", "wrong")] {
            let whole = request_bytes("POST", &pair.path(), &[key], &[b' '; 1_000_000]);
            let head = whole.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
            let mut client = world.client().await;
            client.write(&whole[..head]).await;
            assert_refused(pair, &client.reply().await, 401);
        }
        assert_eq!(world.counters().await["unauthenticated"], 3);
        assert_eq!(lab.requests().len(), 0);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn either_header_carries_a_key_and_neither_reaches_the_upstream() {
    join_all(pairs().into_iter().map(|pair| async move {
        let (world, lab) = place(pair).await;
        let bearer = format!("Bearer {KEY}");
        for key in [("authorization", bearer.as_str()), ("x-api-key", KEY)] {
            let mut client = world.client().await;
            let headers = [key, ("cookie", "a=b"), ("x-forwarded-for", "192.0.2.1")];
            client.ask_with(pair, &headers, request(pair).to_string().as_bytes()).await;
            assert_eq!(client.reply().await.status, 200, "{pair:?}");
        }
        for request in lab.requests() {
            assert_eq!(request.account.as_deref(), Some("secret-a"));
            for (name, value) in &request.headers {
                assert!(!String::from_utf8_lossy(value).contains(KEY), "{name} holds the caller's key");
                assert!(!["cookie", "x-forwarded-for"].contains(&name.as_str()), "{name} crossed");
            }
        }
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_for_other_models_is_a_403_that_names_the_model() {
    join_all(pairs().into_iter().map(|pair| async move {
        let (world, lab) = place(pair).await;
        let mut client = world.client().await;
        client.ask_with(pair, &[("x-api-key", "a-key-for-one-model")], request(pair).to_string().as_bytes()).await;
        assert!(assert_refused(pair, &client.reply().await, 403).contains("\"m\""));
        assert_eq!(world.counters().await["model_forbidden"], 1);
        assert_eq!(lab.requests().len(), 0);
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_counters_take_the_viewer_scope_and_turns_the_chat_scope() {
    let (world, _lab) = place(CHAT).await;
    let paths = [("GET", "/dashboard/api/connect-metrics"), ("GET", "/v1/models"), ("POST", &CHAT.path())];
    for (key, statuses) in [
        ("", [401, 401, 401]),
        ("a-key-for-metrics", [403, 403, 403]),
        ("a-key-for-one-model", [403, 200, 403]),
        (KEY, [200, 200, 200]),
    ] {
        for ((method, path), status) in paths.into_iter().zip(statuses) {
            let body = request(Pair { stream: false, ..CHAT }).to_string();
            let mut client = world.client().await;
            client.write(&request_bytes(method, path, &[("x-api-key", key)], body.as_bytes())).await;
            let reply = client.reply().await;
            assert_eq!(reply.status, status, "{key:?} {path} {}", reply.text());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_of_a_gateway_on_loopback_are_open_and_hold_every_counter() {
    let (world, _lab) = place(CHAT).await;
    assert_eq!(world.client().await.turn(CHAT).await.status, 200);
    world.until("delivery", |counters| counters["delivered"] == 1).await;
    let mut client = world.client().await;
    client.write(&request_bytes("GET", "/metrics", &[("x-api-key", "")], b"")).await;
    let reply = client.reply().await;
    assert_eq!(reply.status, 200);
    let text = reply.text();
    for (name, value) in world.counters().await.as_object().unwrap() {
        if value.is_u64() && !["uptime_ms", "waiting"].contains(&name.as_str()) {
            assert!(text.contains(&format!("turnkeep_{name}_total {value}")), "{name} is not in {text}");
        }
    }
    for name in ["hits", "misses", "restored", "advanced", "dropped", "held"] {
        assert!(text.contains(&format!("turnkeep_conversations_{name}_total 0")), "{name} is not in {text}");
    }
    for state in ["idle", "taken"] {
        assert!(text.contains(&format!("turnkeep_conversations{{state=\"{state}\"}} 0")), "{state} is not in {text}");
    }
    let turn =
        r#"turnkeep_turns_total{dialect="chat",upstream="up0",model="m",outcome="completed",delivery="delivered"} 1"#;
    assert!(text.contains(turn), "{text}");
    assert!(!text.contains("secret-a") && !text.contains(KEY), "a secret in the metrics");
}
