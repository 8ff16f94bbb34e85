//! What is stored, asked for by its id, and where it is on the disk.

use crate::scene::{KEY, OTHER, SHARED, Scene, Upstream, holds, text_of};
use serde_json::{Value, json};

fn path(response: &Value) -> String {
    format!("/v1/responses/{}", response["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_response_is_there_for_its_caller_until_it_is_deleted() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let made = scene.ask(json!({"input": "one"})).await;
    assert_eq!(scene.json("GET", &path(&made), None).await, made);
    for key in [OTHER, SHARED] {
        assert_eq!(scene.refused("GET", &path(&made), key, None).await.0, 404);
        assert_eq!(scene.refused("DELETE", &path(&made), key, None).await.0, 404);
    }
    let deleted = scene.json("DELETE", &path(&made), None).await;
    assert_eq!(deleted, json!({"id": made["id"], "object": "response", "deleted": true}));
    assert_eq!(scene.refused("GET", &path(&made), KEY, None).await.0, 404);
    assert_eq!(scene.refused("DELETE", &path(&made), KEY, None).await.0, 404);
}

#[tokio::test]
async fn what_is_not_to_be_stored_is_not_there() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let made = scene.ask(json!({"input": "one", "store": false})).await;
    assert_eq!(scene.refused("GET", &path(&made), KEY, None).await.0, 404);
    let (status, text) = scene.send("POST", "/v1/responses", SHARED, Some(json!({"model": "m", "input": "one"}))).await;
    assert_eq!(status, 200, "{text}");
    let made: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(scene.refused("GET", &path(&made), SHARED, None).await.0, 404);
}

#[tokio::test]
async fn a_stored_response_can_be_streamed_again() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let made = scene.ask(json!({"input": "one"})).await;
    let (status, stream) = scene.send("GET", &(path(&made) + "?stream=true"), KEY, None).await;
    assert_eq!(status, 200, "{stream}");
    let events = crate::scene::events(&stream);
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["response"]["id"]), (&json!("response.completed"), &made["id"]));
    assert_eq!(text_of(&last["response"]), "answer 1");
    assert_eq!(upstream.asked().len(), 1);
}

#[tokio::test]
async fn what_a_response_was_asked_with_is_listed_page_by_page_under_ids_that_stay() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let input: Vec<Value> = ["a", "b", "c"].iter().map(|text| json!({"role": "user", "content": text})).collect();
    let made = scene.ask(json!({"input": input})).await;
    let items = path(&made) + "/input_items";
    let newest = scene.json("GET", &(items.clone() + "?limit=2"), None).await;
    assert_eq!((&newest["object"], &newest["has_more"]), (&json!("list"), &json!(true)));
    assert_eq!(newest["data"][0]["content"][0]["text"], "c");
    let after = newest["last_id"].as_str().unwrap();
    let rest = scene.json("GET", &format!("{items}?limit=2&after={after}"), None).await;
    assert_eq!((rest["data"][0]["content"][0]["text"].as_str(), &rest["has_more"]), (Some("a"), &json!(false)));
    let all = scene.json("GET", &(items.clone() + "?order=asc"), None).await;
    assert_eq!((&all["data"][2], &all["data"][0]), (&newest["data"][0], &rest["data"][0]));
    assert_eq!(scene.refused("GET", &(items + "?limit=0"), KEY, None).await.0, 400);
}

#[tokio::test]
async fn with_a_master_key_it_is_there_after_a_restart_and_never_in_plain_on_the_disk() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let made = scene.ask(json!({"input": "a secret question"})).await;
    assert!(!scene.holds("a secret question") && !scene.holds("answer 1"));
    let folder = scene.stop().await;
    assert!(holds(folder.path(), "ann") && !holds(folder.path(), "a secret question"));
    let scene = Scene::in_folder(&upstream, folder, true).await;
    assert_eq!(scene.json("GET", &path(&made), None).await, made);
    scene.ask(json!({"input": "two", "previous_response_id": made["id"]})).await;
    assert_eq!(upstream.messages(2).len(), 3);
}

#[tokio::test]
async fn without_a_master_key_it_lives_as_long_as_the_process_and_never_reaches_the_disk() {
    let upstream = Upstream::start().await;
    let scene = Scene::in_folder(&upstream, tempfile::tempdir().unwrap(), false).await;
    let made = scene.ask(json!({"input": "a secret question"})).await;
    assert_eq!(scene.json("GET", &path(&made), None).await, made);
    let folder = scene.stop().await;
    assert!(!holds(folder.path(), "a secret question") && !holds(folder.path(), "answer 1"));
    let scene = Scene::in_folder(&upstream, folder, false).await;
    assert_eq!(scene.refused("GET", &path(&made), KEY, None).await.0, 404);
}

#[tokio::test]
async fn a_failed_turn_is_not_stored_and_one_that_is_no_response_has_no_cancel() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let made = scene.ask(json!({"input": "one"})).await;
    let (status, error) = scene.refused("POST", &(path(&made) + "/cancel"), KEY, None).await;
    assert_eq!(status, 400, "{error}");
    let (status, _) = scene.refused("POST", "/v1/responses/resp_nothing/cancel", KEY, None).await;
    assert_eq!(status, 404);
    let (status, _) = scene.refused("GET", "/v1/responses", KEY, None).await;
    assert_eq!(status, 405);
}

#[tokio::test]
async fn an_upgrade_is_refused_with_426_so_that_clients_take_up_http_at_once() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let upgrade = "GET /v1/responses HTTP/1.1\r\nhost: g\r\nconnection: close, upgrade\r\nupgrade: websocket\r\n\r\n";
    let (status, body) = scene.raw(upgrade).await;
    assert_eq!(status, 426, "{body}");
    assert!(serde_json::from_str::<Value>(&body).unwrap()["error"]["message"].is_string());
}
