//! Turns that go on from stored ones.

use crate::scene::{KEY, OTHER, SHARED, Scene, Upstream, text_of};
use serde_json::{Value, json};

fn said(role: &str, text: &str) -> (String, String) {
    (role.to_owned(), text.to_owned())
}

#[tokio::test]
async fn a_turn_goes_on_from_the_one_before_and_the_upstream_gets_all_of_it() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let first = scene.ask(json!({"input": "one", "instructions": "be brief"})).await;
    let second = scene.ask(json!({"input": "two", "previous_response_id": first["id"]})).await;
    let input = json!([{"role": "user", "content": "three"}]);
    let third = scene.ask(json!({"input": input, "previous_response_id": second["id"]})).await;
    assert_eq!(text_of(&third), "answer 3");
    assert_eq!(third["previous_response_id"], second["id"]);
    let expected = [
        said("user", "one"),
        said("assistant", "answer 1"),
        said("user", "two"),
        said("assistant", "answer 2"),
        said("user", "three"),
    ];
    assert_eq!(upstream.messages(3), expected, "and no instructions of an earlier turn");
    // A branch from the first one knows nothing of the others.
    scene.ask(json!({"input": "other", "previous_response_id": first["id"]})).await;
    assert_eq!(upstream.messages(4), [said("user", "one"), said("assistant", "answer 1"), said("user", "other")]);
}

#[tokio::test]
async fn a_streamed_answer_can_be_gone_on_from_as_soon_as_its_end_is_there() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let body = json!({"model": "m", "input": "one", "stream": true});
    let (status, stream) = scene.send("POST", "/v1/responses", KEY, Some(body)).await;
    assert_eq!(status, 200, "{stream}");
    let events = crate::scene::events(&stream);
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    scene.ask(json!({"input": "two", "previous_response_id": last["response"]["id"]})).await;
    assert_eq!(upstream.messages(2)[1], said("assistant", "answer 1"));
}

#[tokio::test]
async fn an_unknown_id_and_another_callers_are_told_the_same() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let first = scene.ask(json!({"input": "one"})).await;
    let id = first["id"].as_str().unwrap();
    let from = |id: &str| Some(json!({"model": "m", "input": "x", "previous_response_id": id}));
    let (status, foreign) = scene.refused("POST", "/v1/responses", OTHER, from(id)).await;
    let (_, unknown) = scene.refused("POST", "/v1/responses", OTHER, from("resp_nothing")).await;
    assert_eq!((status, &foreign["param"]), (404, &json!("previous_response_id")));
    let words = |error: &serde_json::Value, id: &str| error["message"].as_str().unwrap().replace(id, "ID");
    assert_eq!(words(&foreign, id), words(&unknown, "resp_nothing"));
    let (status, shared) = scene.refused("POST", "/v1/responses", SHARED, from(id)).await;
    assert_eq!(status, 404);
    assert!(shared["message"].as_str().unwrap().contains("shared"), "{shared}");
    assert_eq!(upstream.asked().len(), 1, "nothing was asked for any of them");
}

#[tokio::test]
async fn a_history_that_was_deleted_in_the_middle_is_an_error_and_no_shorter_history() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let first = scene.ask(json!({"input": "one"})).await;
    let second = scene.ask(json!({"input": "two", "previous_response_id": first["id"]})).await;
    scene.json("DELETE", &format!("/v1/responses/{}", first["id"].as_str().unwrap()), None).await;
    let body = json!({"model": "m", "input": "three", "previous_response_id": second["id"]});
    let (status, error) = scene.refused("POST", "/v1/responses", KEY, Some(body)).await;
    assert_eq!(status, 400, "{error}");
    assert_eq!(upstream.asked().len(), 2);
}

#[tokio::test]
async fn an_item_may_be_sent_by_its_id_alone() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let first = scene.ask(json!({"input": "one"})).await;
    let item = &first["output"].as_array().unwrap().iter().find(|item| item["type"] == "message").unwrap()["id"];
    let by_id = |id: &serde_json::Value| {
        json!({"model": "m", "store": false, "input": [
            {"role": "user", "content": "one"}, {"type": "item_reference", "id": id}, {"role": "user", "content": "two"},
        ]})
    };
    scene.ask(by_id(item)).await;
    assert_eq!(upstream.messages(2), [said("user", "one"), said("assistant", "answer 1"), said("user", "two")]);
    for (key, id) in [(KEY, &json!("msg_nothing")), (OTHER, item)] {
        let (status, error) = scene.refused("POST", "/v1/responses", key, Some(by_id(id))).await;
        assert_eq!((status, &error["param"]), (404, &json!("input[1]")), "{error}");
    }
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_by_name_before_anything_is_asked() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    for (more, param) in [
        (json!({"previous_response_id": "resp_1", "conversation": "conv_1"}), "previous_response_id"),
        (json!({"background": true, "store": false}), "background"),
        (json!({"conversation": "conv_1", "store": false}), "store"),
        (json!({"conversation": 7}), "conversation"),
        (json!({"input": [{"role": "user", "content": "x"}, {"type": "compaction_trigger"}]}), "input[1]"),
    ] {
        let mut body = json!({"model": "m", "input": "x"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, error) = scene.refused("POST", "/v1/responses", KEY, Some(body)).await;
        assert_eq!((status, error["param"].as_str()), (400, Some(param)), "{error}");
    }
    assert!(upstream.asked().is_empty());
}

#[tokio::test]
async fn tokens_are_counted_with_the_history_that_the_request_names() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let long = "a word and another ".repeat(500);
    let first = scene.ask(json!({"input": long})).await;
    let items = json!({"items": [{"role": "user", "content": long}]});
    let conversation = scene.json("POST", "/v1/conversations", Some(items)).await;
    let item = &first["output"][0]["id"];
    let count = async |more: Value| {
        let mut body = json!({"model": "m", "input": "x"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        scene.json("POST", "/v1/responses/input_tokens", Some(body)).await["input_tokens"].as_u64().unwrap()
    };
    let alone = count(json!({})).await;
    assert!(count(json!({"previous_response_id": first["id"]})).await > alone + 1_000);
    assert!(count(json!({"conversation": conversation["id"]})).await > alone + 1_000);
    let reference = json!([{"role": "user", "content": "x"}, {"type": "item_reference", "id": item}]);
    assert!(count(json!({"input": reference})).await > alone);
    for named in [json!({"previous_response_id": first["id"]}), json!({"conversation": conversation["id"]})] {
        let mut body = json!({"model": "m", "input": "x"});
        body.as_object_mut().unwrap().extend(named.as_object().unwrap().clone());
        for (key, expected) in [(OTHER, 404), (SHARED, 404)] {
            let (status, error) = scene.refused("POST", "/v1/responses/input_tokens", key, Some(body.clone())).await;
            let param = named.as_object().unwrap().keys().next().map(String::as_str);
            assert_eq!((status, error["param"].as_str()), (expected, param), "{error}");
        }
    }
    assert_eq!(upstream.asked().len(), 1, "nothing of it was a turn");
    let items = format!("/v1/conversations/{}/items", conversation["id"].as_str().unwrap());
    assert_eq!(scene.json("GET", &items, None).await["data"].as_array().unwrap().len(), 1, "nothing was stored");
}
