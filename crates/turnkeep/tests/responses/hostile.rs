//! What no client should send, and what a hostile one may.

use crate::scene::{KEY, OTHER, Scene, Upstream, config, events, soon};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncReadExt;

#[tokio::test]
async fn another_callers_id_and_an_unknown_one_are_answered_with_the_same_bytes() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let response = scene.ask(json!({"input": "one"})).await["id"].as_str().unwrap().to_owned();
    let conversation =
        scene.json("POST", "/v1/conversations", Some(json!({}))).await["id"].as_str().unwrap().to_owned();
    let item = json!({"items": [{"role": "user", "content": "x"}]});
    let added = scene.json("POST", &format!("/v1/conversations/{conversation}/items"), Some(item.clone())).await;
    let item_id = added["data"][0]["id"].as_str().unwrap().to_owned();
    let (none, nowhere, nothing) = ("resp_00000000000000000000000000", "conv_00000000000000000000000000", "msg_0000_0");
    let one = |method: &'static str, path: &str, id: &str, body: Option<Value>| (method, path.replace("ID", id), body);
    let from = |id: &str| Some(json!({"model": "m", "input": "x", "previous_response_id": id}));
    let within = |id: &str| Some(json!({"model": "m", "input": "x", "conversation": id}));
    let refers = |id: &str| Some(json!({"model": "m", "input": [{"type": "item_reference", "id": id}]}));
    let mut pairs = Vec::new();
    for (method, path) in
        [("GET", "ID"), ("DELETE", "ID"), ("POST", "ID/cancel"), ("GET", "ID/input_items"), ("GET", "ID?stream=true")]
    {
        let path = format!("/v1/responses/{path}");
        pairs.push((one(method, &path, &response, None), one(method, &path, none, None), &response, none));
    }
    for (method, path, body) in [
        ("GET", "ID", None),
        ("POST", "ID", Some(json!({"metadata": {}}))),
        ("DELETE", "ID", None),
        ("GET", "ID/items", None),
        ("POST", "ID/items", Some(item)),
        ("GET", "ID/items/x", None),
        ("DELETE", "ID/items/x", None),
    ] {
        let path = format!("/v1/conversations/{path}");
        let foreign = one(method, &path, &conversation, body.clone());
        pairs.push((foreign, one(method, &path, nowhere, body), &conversation, nowhere));
    }
    let turn = |body: Option<Value>| ("POST", "/v1/responses".to_owned(), body);
    pairs.push((turn(from(&response)), turn(from(none)), &response, none));
    pairs.push((turn(within(&conversation)), turn(within(nowhere)), &conversation, nowhere));
    pairs.push((turn(refers(&item_id)), turn(refers(nothing)), &item_id, nothing));
    let without_id = |text: &str, id: &str| {
        let text = text.replace(id, "ID");
        let Some(at) = text.find("turn_") else { return text };
        let end = text[at..].find('"').map_or(text.len(), |end| at + end);
        format!("{}TURN{}", &text[..at], &text[end..])
    };
    for ((method, path, body), (_, unknown, other), foreign_id, unknown_id) in pairs {
        let foreign = scene.send(method, &path, OTHER, body).await;
        let unknown = scene.send(method, &unknown, OTHER, other).await;
        assert_eq!((foreign.0, unknown.0), (404, 404), "{method} {path}: {} {}", foreign.1, unknown.1);
        assert_eq!(without_id(&foreign.1, foreign_id), without_id(&unknown.1, unknown_id), "{method} {path}");
    }
    assert_eq!(upstream.asked().len(), 1);
}

#[tokio::test]
async fn ids_of_any_form_are_unknown_ids() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let long = "x".repeat(6_000);
    for id in [
        "%00",
        "%ff%fe",
        "%",
        "%2",
        "%2F..%2F..%2Fetc",
        "..",
        ".",
        "%0d%0aset-cookie:x",
        "a+b",
        "a;b",
        "%F0%9F%92%A9",
        "'%20OR%201=1--",
        &long,
    ] {
        for (method, path) in [
            ("GET", format!("/v1/responses/{id}")),
            ("DELETE", format!("/v1/responses/{id}")),
            ("POST", format!("/v1/responses/{id}/cancel")),
            ("GET", format!("/v1/responses/{id}/input_items?limit=100&after=%00")),
            ("GET", format!("/v1/conversations/{id}/items/{id}")),
        ] {
            let (status, text) = scene.send(method, &path, KEY, None).await;
            assert_eq!(status, 404, "{method} {path}: {text}");
            assert!(text.len() < 1_000, "{text}");
        }
    }
    for id in [json!("\u{0}"), json!("\u{202e}x"), json!("x".repeat(256)), json!("x".repeat(257)), json!(" ")] {
        let body = json!({"model": "m", "input": "x", "previous_response_id": id});
        let (status, error) = scene.refused("POST", "/v1/responses", KEY, Some(body)).await;
        assert!(status == 404 || status == 400, "{id}: {error}");
    }
    assert!(upstream.asked().is_empty());
}

#[tokio::test]
async fn metadata_beyond_its_bounds_is_refused_by_name() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let pairs = |count: usize| (0..count).map(|n| (format!("k{n}"), json!("v"))).collect::<serde_json::Map<_, _>>();
    for (metadata, status) in [
        (json!(pairs(16)), 200),
        (json!(pairs(17)), 400),
        (json!({"k".repeat(64): "v".repeat(512)}), 200),
        (json!({"k".repeat(65): "v"}), 400),
        (json!({"k": "v".repeat(513)}), 400),
        (json!({"k": 1}), 400),
    ] {
        for (path, body) in [
            ("/v1/responses", json!({"model": "m", "input": "x", "metadata": metadata})),
            ("/v1/conversations", json!({"metadata": metadata})),
        ] {
            let (found, text) = scene.send("POST", path, KEY, Some(body)).await;
            assert_eq!(found, status, "{path}: {text}");
            assert!(status == 200 || text.contains("metadata"), "{text}");
        }
    }
}

#[tokio::test]
async fn a_large_item_is_stored_once_and_a_history_beyond_the_bound_of_a_request_is_refused() {
    let upstream = Upstream::start().await;
    let text =
        config(&[("openai", upstream.addr())], true, "").replace("[server]\n", "[server]\nmax_body = \"4MiB\"\n");
    let scene = Scene::of(&text, tempfile::tempdir().unwrap()).await;
    let large = "x".repeat(3 << 20);
    let first = scene.ask(json!({"input": large})).await;
    let path = format!("/v1/responses/{}/input_items", first["id"].as_str().unwrap());
    let items = scene.json("GET", &path, None).await;
    assert_eq!(items["data"][0]["content"][0]["text"].as_str().unwrap().len(), large.len());
    let second = json!({"model": "m", "input": large, "previous_response_id": first["id"]});
    let (status, error) = scene.refused("POST", "/v1/responses", KEY, Some(second)).await;
    assert_eq!(
        (status, error["code"].as_str(), error["param"].as_str()),
        (400, Some("history_too_long"), Some("previous_response_id"))
    );
    scene.ask(json!({"input": "go on", "previous_response_id": first["id"]})).await;
    let (status, _) = scene.refused("POST", "/v1/responses", KEY, Some(json!({"input": "x".repeat(5 << 20)}))).await;
    assert_eq!((status, upstream.asked().len()), (413, 2));
}

#[tokio::test]
async fn a_flood_of_background_responses_is_stopped_for_its_caller_alone() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let _never = upstream.hold();
    let body = json!({"model": "m", "input": "x", "background": true});
    let mut statuses = Vec::new();
    for _ in 0..120 {
        statuses.push(scene.send("POST", "/v1/responses", KEY, Some(body.clone())).await.0);
    }
    let (begun, refused) = statuses.split_at(100);
    assert!(begun.iter().all(|status| *status == 200), "{statuses:?}");
    assert!(refused.iter().all(|status| *status == 429), "{statuses:?}");
    let (status, text) = scene.send("POST", "/v1/responses", OTHER, Some(body)).await;
    assert_eq!(status, 200, "{text}");
}

#[tokio::test]
async fn a_reader_that_stops_holds_nothing_up_and_a_deleted_response_is_still_read_to_its_end() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let go_on = upstream.hold();
    let queued = scene.ask(json!({"input": "one", "background": true})).await;
    let path = format!("/v1/responses/{}", queued["id"].as_str().unwrap());
    scene.until_status(queued["id"].as_str().unwrap(), "in_progress").await;
    let stream = path.clone() + "?stream=true";
    let stalled = scene.open("GET", &stream, KEY, None).await;
    let mut follower = scene.open("GET", &stream, KEY, None).await;
    let mut seen = Vec::new();
    soon(follower.read_buf(&mut seen)).await.unwrap();
    let (status, error) = scene.refused("DELETE", &path, KEY, None).await;
    assert_eq!(status, 409, "{error}");
    go_on.notify_one();
    scene.until_status(queued["id"].as_str().unwrap(), "completed").await;
    assert_eq!(scene.json("DELETE", &path, None).await["deleted"], true);
    soon(follower.read_to_end(&mut seen)).await.unwrap();
    assert!(String::from_utf8_lossy(&seen).contains("response.completed"));
    assert_eq!(scene.refused("GET", &stream, KEY, None).await.0, 404);
    drop(stalled);
    let body = json!({"model": "m", "input": "two", "previous_response_id": queued["id"]});
    assert_eq!(scene.refused("POST", "/v1/responses", KEY, Some(body)).await.0, 404);
}

#[tokio::test]
async fn what_a_running_background_response_was_asked_is_shown_at_once() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let go_on = upstream.hold();
    let queued = scene.ask(json!({"input": "one", "background": true})).await;
    let path = format!("/v1/responses/{}/input_items", queued["id"].as_str().unwrap());
    let running = scene.json("GET", &path, None).await;
    assert_eq!(running["data"][0]["content"][0]["text"], "one");
    go_on.notify_one();
    scene.until_status(queued["id"].as_str().unwrap(), "completed").await;
    assert_eq!(scene.json("GET", &path, None).await, running, "under the same ids");
}

#[tokio::test]
async fn how_long_things_are_kept_is_the_configurations() {
    let upstream = Upstream::start().await;
    let text = config(&[("openai", upstream.addr())], true, "keep = { responses = \"5h\" }\n");
    let scene = Scene::of(&text, tempfile::tempdir().unwrap()).await;
    scene.ask(json!({"input": "one"})).await;
    scene.json("POST", "/v1/conversations", Some(json!({}))).await;
    let folder = scene.stop().await;
    let database = rusqlite::Connection::open(folder.path().join("test.db")).unwrap();
    let mut all = database.prepare("SELECT kind, until_ms - made_ms FROM stored").unwrap();
    let kept: Vec<(String, i64)> =
        all.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    let hours = Duration::from_secs(5 * 3600).as_millis();
    assert!(kept.len() >= 4, "{kept:?}");
    assert!(kept.iter().all(|(_, time)| (u128::try_from(*time).unwrap()).abs_diff(hours) < 60_000), "{kept:?}");
}

#[tokio::test]
async fn an_end_that_is_read_can_be_gone_on_from_at_once_however_often() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let mut previous = Value::Null;
    for number in 0..40 {
        let body =
            json!({"model": "m", "input": format!("n{number}"), "stream": true, "previous_response_id": previous});
        let (status, stream) = scene.send("POST", "/v1/responses", KEY, Some(body)).await;
        assert_eq!(status, 200, "{number}: {stream}");
        previous = events(&stream).last().unwrap()["response"]["id"].clone();
    }
    assert_eq!(upstream.messages(40).len(), 79);
}
