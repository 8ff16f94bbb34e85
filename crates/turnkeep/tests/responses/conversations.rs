//! Turns in a conversation, and the conversation itself.

use crate::scene::{KEY, OTHER, Scene, Upstream};
use serde_json::{Value, json};

async fn items(scene: &Scene, conversation: &str) -> Vec<Value> {
    let path = format!("/v1/conversations/{conversation}/items?order=asc&limit=100");
    scene.json("GET", &path, None).await["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn what_is_asked_and_answered_becomes_a_part_of_the_conversation() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let begin = json!({"metadata": {"topic": "x"}, "items": [{"role": "user", "content": "before"}]});
    let made = scene.json("POST", "/v1/conversations", Some(begin)).await;
    let id = made["id"].as_str().unwrap().to_owned();
    assert_eq!((&made["object"], &made["metadata"]["topic"]), (&json!("conversation"), &json!("x")));
    let first = scene.ask(json!({"input": "one", "conversation": id})).await;
    assert_eq!(first["conversation"]["id"], id);
    scene.ask(json!({"input": "two", "conversation": {"id": id}})).await;
    let texts: Vec<String> = upstream.messages(2).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["before", "one", "answer 1", "two"]);
    let all = items(&scene, &id).await;
    let texts: Vec<&str> = all.iter().map(|item| item["content"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["before", "one", "answer 1", "two", "answer 2"]);
    let from = json!({"model": "m", "input": "x", "previous_response_id": first["id"]});
    assert_eq!(scene.refused("POST", "/v1/responses", KEY, Some(from)).await.0, 400);
}

#[tokio::test]
async fn two_turns_at_once_are_refused_the_second_and_nothing_is_asked_for_it() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let id = scene.json("POST", "/v1/conversations", Some(json!({}))).await["id"].clone();
    let go_on = upstream.hold();
    let body = json!({"model": "m", "input": "one", "conversation": id});
    let first = scene.send("POST", "/v1/responses", KEY, Some(body.clone()));
    let second = async {
        upstream.until_asked(1).await;
        let refused = scene.refused("POST", "/v1/responses", KEY, Some(body.clone())).await;
        go_on.notify_one();
        refused
    };
    let ((status, _), (locked, error)) = tokio::join!(first, second);
    assert_eq!((status, locked), (200, 409), "{error}");
    assert_eq!(upstream.asked().len(), 1);
    assert_eq!(items(&scene, id.as_str().unwrap()).await.len(), 2);
    go_on.notify_one();
    scene.ask(body).await;
    assert_eq!(upstream.messages(2).len(), 3, "it is free again");
}

#[tokio::test]
async fn a_conversation_and_its_items_can_be_read_changed_and_deleted_by_their_owner_alone() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let made = scene.json("POST", "/v1/conversations", None).await;
    let path = format!("/v1/conversations/{}", made["id"].as_str().unwrap());
    let changed = scene.json("POST", &path, Some(json!({"metadata": {"a": "b"}}))).await;
    assert_eq!(scene.json("GET", &path, None).await, changed);
    assert_eq!(changed["metadata"], json!({"a": "b"}));
    let added = json!({"items": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]});
    let added = scene.json("POST", &(path.clone() + "/items"), Some(added)).await;
    let item = format!("{path}/items/{}", added["data"][1]["id"].as_str().unwrap());
    assert_eq!(scene.json("GET", &item, None).await, added["data"][1]);
    for (method, place) in [("GET", &path), ("DELETE", &path), ("GET", &item), ("DELETE", &item)] {
        assert_eq!(scene.refused(method, place, OTHER, None).await.0, 404, "{method} {place}");
    }
    assert_eq!(scene.json("DELETE", &item, None).await["id"], made["id"]);
    assert_eq!(scene.refused("GET", &item, KEY, None).await.0, 404);
    assert_eq!(scene.json("DELETE", &path, None).await["deleted"], true);
    assert_eq!(scene.refused("GET", &path, KEY, None).await.0, 404);
}

#[tokio::test]
async fn a_conversation_whose_answer_was_too_long_to_be_stored_says_so_and_is_never_taken_for_whole() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let made = scene.json("POST", "/v1/conversations", Some(json!({}))).await;
    let id = made["id"].as_str().unwrap();
    scene.ask(json!({"input": "one", "conversation": id})).await;
    upstream.lengthen(5 << 20);
    let long = scene.ask(json!({"input": "two", "conversation": id})).await;
    assert_eq!(long["conversation"]["id"], id, "it is delivered all the same");
    upstream.lengthen(0);
    let next = json!({"model": "m", "input": "three", "conversation": id});
    for path in ["/v1/responses", "/v1/responses/input_tokens"] {
        let (status, error) = scene.refused("POST", path, KEY, Some(next.clone())).await;
        let told = (status, error["code"].as_str(), error["param"].as_str());
        assert_eq!(told, (400, Some("history_is_gone"), Some("conversation")), "{error}");
    }
    assert_eq!((upstream.asked().len(), items(&scene, id).await.len()), (2, 2), "what is there can be read");
}
