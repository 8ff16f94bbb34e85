//! Answers that are made in the background.

use crate::scene::{KEY, OTHER, Scene, Upstream, events, soon, text_of};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

fn path(response: &Value) -> String {
    format!("/v1/responses/{}", response["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_background_response_is_queued_at_once_and_complete_when_it_is() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let go_on = upstream.hold();
    let queued = scene.ask(json!({"input": "one", "background": true})).await;
    assert_eq!((&queued["status"], &queued["background"]), (&json!("queued"), &json!(true)));
    let id = queued["id"].as_str().unwrap();
    scene.until_status(id, "in_progress").await;
    let early = json!({"model": "m", "input": "two", "previous_response_id": id});
    assert_eq!(scene.refused("POST", "/v1/responses", KEY, Some(early)).await.0, 400);
    assert_eq!(scene.refused("GET", &path(&queued), OTHER, None).await.0, 404);
    go_on.notify_one();
    let done = scene.until_status(id, "completed").await;
    assert_eq!((&done["id"], text_of(&done)), (&queued["id"], "answer 1"));
    // The model is the one that was asked for until another name has answered.
    let changes = ["status", "model", "output", "usage", "created_at", "completed_at", "output_text"];
    for (name, value) in queued.as_object().unwrap().iter().filter(|(name, _)| !changes.contains(&name.as_str())) {
        assert_eq!(done[name], *value, "{name}");
    }
    assert_eq!(upstream.asked().len(), 1);
}

#[tokio::test]
async fn its_events_can_be_followed_from_any_of_them_on() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let queued = scene.ask(json!({"input": "one", "background": true})).await;
    scene.until_status(queued["id"].as_str().unwrap(), "completed").await;
    let all = events(&scene.send("GET", &(path(&queued) + "?stream=true"), KEY, None).await.1);
    let numbers: Vec<u64> = all.iter().map(|event| event["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..all.len() as u64).collect::<Vec<_>>());
    assert_eq!(all.last().unwrap()["type"], "response.completed");
    let later = path(&queued) + "?stream=true&starting_after=2";
    assert_eq!(events(&scene.send("GET", &later, KEY, None).await.1), all[3..]);
}

#[tokio::test]
async fn whoever_leaves_its_stream_does_not_cancel_it() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let go_on = upstream.hold();
    let body = json!({"model": "m", "input": "one", "background": true, "stream": true});
    let mut socket = scene.open("POST", "/v1/responses", KEY, Some(body)).await;
    let mut seen = String::new();
    let id = soon(async {
        loop {
            let mut buffer = [0; 4096];
            let count = socket.read(&mut buffer).await.unwrap();
            seen += &String::from_utf8_lossy(&buffer[..count]);
            if let Some((_, rest)) = seen.split_once("\"id\":\"resp_") {
                return format!("resp_{}", rest.split('"').next().unwrap());
            }
        }
    })
    .await;
    drop(socket);
    scene.until_status(&id, "in_progress").await;
    go_on.notify_one();
    assert_eq!(text_of(&scene.until_status(&id, "completed").await), "answer 1");
}

#[tokio::test]
async fn a_cancelled_one_is_cancelled_upstream_too_and_stays_so() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let _never = upstream.hold();
    let queued = scene.ask(json!({"input": "one", "background": true})).await;
    upstream.until_asked(1).await;
    let cancelled = scene.json("POST", &(path(&queued) + "/cancel"), None).await;
    assert_eq!((&cancelled["status"], &cancelled["id"]), (&json!("cancelled"), &queued["id"]));
    upstream.until_left().await;
    assert_eq!(scene.json("GET", &path(&queued), None).await["status"], "cancelled");
    assert_eq!(scene.json("POST", &(path(&queued) + "/cancel"), None).await["status"], "cancelled");
}

#[tokio::test]
async fn after_a_restart_its_answer_is_there_and_its_events_are_not() {
    let upstream = Upstream::start().await;
    let scene = Scene::over(&upstream).await;
    let queued = scene.ask(json!({"input": "one", "background": true})).await;
    let id = queued["id"].as_str().unwrap().to_owned();
    scene.until_status(&id, "completed").await;
    let folder = scene.stop().await;
    let scene = Scene::in_folder(&upstream, folder, true).await;
    assert_eq!(scene.json("GET", &path(&queued), None).await["status"], "completed", "it had ended before");
    let (status, error) = scene.refused("GET", &(path(&queued) + "?stream=true&starting_after=1"), KEY, None).await;
    assert_eq!((status, error["param"].as_str()), (400, Some("starting_after")), "{error}");
}
