//! Requests that are sent again under the same idempotency key.

use crate::scene::{Scene, Upstream, events, text_of};
use serde_json::{Value, json};

fn read(told: (u16, String)) -> Value {
    assert_eq!(told.0, 200, "{}", told.1);
    serde_json::from_str(&told.1).unwrap()
}

#[tokio::test]
async fn a_background_response_that_is_asked_for_again_is_the_same_one_and_runs_once() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let go_on = upstream.hold();
    let body = json!({"model": "m", "input": "one", "background": true});
    let first = read(scene.under("a-key", &body).await);
    upstream.until_asked(1).await;
    scene.until_status(first["id"].as_str().unwrap(), "in_progress").await;
    let again = read(scene.under("a-key", &body).await);
    assert_eq!((&again["id"], &again["status"]), (&first["id"], &json!("in_progress")));
    go_on.notify_one();
    let done = scene.until_status(first["id"].as_str().unwrap(), "completed").await;
    assert_eq!(read(scene.under("a-key", &body).await), done);
    let other = json!({"model": "m", "input": "two", "background": true});
    assert_eq!(scene.under("a-key", &other).await.0, 422);
    assert_eq!(upstream.asked().len(), 1);
}

#[tokio::test]
async fn two_at_the_same_moment_are_one_and_it_outlives_a_restart() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let body = json!({"model": "m", "input": "one", "background": true});
    let (one, two) = tokio::join!(scene.under("a-key", &body), scene.under("a-key", &body));
    let (one, two) = (read(one), read(two));
    assert_eq!(one["id"], two["id"]);
    let done = scene.until_status(one["id"].as_str().unwrap(), "completed").await;
    let scene = Scene::in_folder(&upstream, scene.stop().await, true).await;
    assert_eq!(read(scene.under("a-key", &body).await), done);
    assert_eq!(upstream.asked().len(), 1);
}

#[tokio::test]
async fn a_streamed_one_is_followed_from_its_beginning() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let body = json!({"model": "m", "input": "one", "background": true, "stream": true});
    let first = scene.under("a-key", &body).await;
    let again = scene.under("a-key", &body).await;
    assert_eq!((first.0, events(&first.1)), (200, events(&again.1)));
    assert_eq!(upstream.asked().len(), 1);
}

#[tokio::test]
async fn a_turn_of_a_conversation_that_is_asked_for_again_waits_for_its_first_and_is_no_second_turn() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let made = scene.json("POST", "/v1/conversations", Some(json!({}))).await;
    let go_on = upstream.hold();
    let body = json!({"model": "m", "input": "one", "conversation": made["id"]});
    let first = scene.under("a-key", &body);
    let later = async {
        upstream.until_asked(1).await;
        let other = json!({"model": "m", "input": "two", "conversation": made["id"]});
        assert_eq!(scene.under("another-key", &other).await.0, 409);
        let again = scene.under("a-key", &body);
        let release = async {
            tokio::task::yield_now().await;
            go_on.notify_one();
        };
        tokio::join!(again, release).0
    };
    let (first, again) = tokio::join!(first, later);
    let (first, again) = (read(first), read(again));
    assert_eq!((&first["id"], text_of(&again)), (&again["id"], "answer 1"));
    let path = format!("/v1/conversations/{}/items?order=asc", made["id"].as_str().unwrap());
    let items = scene.json("GET", &path, None).await;
    assert_eq!((items["data"].as_array().unwrap().len(), upstream.asked().len()), (2, 1), "{items}");
    let asked = scene.json("GET", &format!("/v1/responses/{}/input_items", first["id"].as_str().unwrap()), None).await;
    assert_eq!(asked["data"][0], items["data"][0], "the second has not given them other ids");
}
