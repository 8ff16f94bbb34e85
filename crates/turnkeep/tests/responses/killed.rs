//! Background responses across the gateway's sudden death.

use crate::scene::{KEY, exchange};
use crate::support::binary;
use crate::support::world::{self, Plan};
use crate::support::{Dialect, Rule, Up, lab};
use serde_json::{Value, json};

#[tokio::test]
async fn what_ran_while_the_gateway_was_killed_has_failed_and_says_so() {
    let lab = lab([Rule { gate: Some("never".into()), ..Rule::default() }]).await;
    let store = format!("master_key = {:?}", "ab".repeat(32));
    let plan = Plan { store, ..Plan::over([Up::at(Dialect::Chat, &lab)]) };
    let folder = tempfile::tempdir().unwrap();
    let (mut child, addr) = binary::serve(&plan, folder.path(), None).await;
    let ask = |addr, method: &'static str, path: String, body: Option<Value>| async move {
        let more = "idempotency-key: a-key\r\n";
        let more = if method == "POST" { more } else { "" };
        let (status, text) = exchange(addr, method, &path, world::KEY, more, body).await;
        (status, serde_json::from_str::<Value>(&text).unwrap())
    };
    let body = json!({"model": "m", "input": "a question", "background": true});
    let (status, queued) = ask(addr, "POST", "/v1/responses".into(), Some(body.clone())).await;
    assert_eq!((status, &queued["status"]), (200, &json!("queued")), "{queued}");
    world::soon(lab.wait_for_requests(1)).await;
    child.kill().await.unwrap();

    let (_child, addr) = binary::serve(&plan, folder.path(), None).await;
    let path = format!("/v1/responses/{}", queued["id"].as_str().unwrap());
    let (status, found) = ask(addr, "GET", path.clone(), None).await;
    assert_eq!((status, &found["status"], &found["error"]["code"]), (200, &json!("failed"), &json!("server_error")));
    assert_eq!((&found["id"], &found["background"]), (&queued["id"], &json!(true)));
    let (_, asked) = ask(addr, "GET", path.clone() + "/input_items", None).await;
    assert_eq!(asked["data"][0]["content"][0]["text"], "a question");
    let (status, repeated) = ask(addr, "POST", "/v1/responses".into(), Some(body)).await;
    assert_eq!((status, &repeated), (200, &found), "the key still stands for it");
    let (_, cancelled) = ask(addr, "POST", path.clone() + "/cancel", None).await;
    assert_eq!(cancelled, found, "it has ended");
    let from = json!({"model": "m", "input": "x", "previous_response_id": queued["id"]});
    let (status, text) = exchange(addr, "POST", "/v1/responses", world::KEY, "", Some(from)).await;
    assert_eq!(status, 400, "{text}");
    assert_ne!(KEY, world::KEY);
    assert_eq!(lab.requests().len(), 1);
}
