//! Routes, errors and lists of models of the dialects that have the model in the body.

use crate::scene::{Gateway, KEY, Reply, model, server, upstream};
use serde_json::Value;

/// A path, and a body that only needs its model to be known.
const TURNS: [(&str, &str); 5] = [
    ("/v1/chat/completions", r#"{"model":"nope","messages":[{"role":"user","content":"hi"}]}"#),
    ("/v1/completions", r#"{"model":"nope","prompt":"hi"}"#),
    ("/v1/embeddings", r#"{"model":"nope","input":"hi"}"#),
    ("/v1/messages", r#"{"model":"nope","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#),
    ("/v1/messages/count_tokens", r#"{"model":"nope","messages":[{"role":"user","content":"hi"}]}"#),
];

fn assert_shape(path: &str, reply: &Reply, status: u16) {
    assert_eq!(reply.status, status, "{path}: {}", reply.text());
    let body = reply.json();
    if path.contains("/v1/messages") || path.starts_with("/anthropic/v1/other") {
        assert_eq!(body["type"], "error", "{path}");
        assert!(body["error"]["type"].is_string() && reply.header("request-id").is_some(), "{path}: {body}");
    } else {
        assert_eq!(body["type"], Value::Null, "{path}");
        assert!(body["error"]["type"].is_string() && reply.header("x-request-id").is_some(), "{path}: {body}");
    }
    assert!(body["error"]["message"].is_string(), "{path}: {body}");
}

async fn gateway() -> Gateway {
    let (addr, _) = server(&[]).await;
    let models = model("m", &["openai"]) + &model("other", &["openai"]);
    Gateway::with(&format!("{}{}{models}", upstream("openai", addr), upstream("anthropic", addr))).await
}

#[tokio::test]
async fn every_kind_of_error_is_in_the_dialect_of_its_path_under_every_prefix() {
    let gateway = gateway().await;
    let bearer = format!("Bearer {KEY}");
    let json = ("content-type", "application/json");
    let long = " ".repeat(70 << 10);
    for prefix in ["", "/openai", "/anthropic", "/gemini"] {
        for (path, body) in TURNS {
            let path = format!("{prefix}{path}");
            assert_shape(&path, &gateway.send("POST", &path, &[json], body).await, 401);
            // A key in the query is Gemini's way alone.
            let with_key = format!("{path}?key={KEY}");
            assert_shape(&path, &gateway.send("POST", &with_key, &[json], body).await, 401);
            let wrong = gateway.ask("PUT", &path, "").await;
            assert_shape(&path, &wrong, 405);
            assert_eq!(wrong.header("allow"), Some("POST"));
            let text = [("authorization", bearer.as_str()), ("content-type", "text/plain")];
            assert_shape(&path, &gateway.send("POST", &path, &text, body).await, 415);
            assert_shape(&path, &gateway.ask("POST", &path, &long).await, 413);
            assert_shape(&path, &gateway.ask("POST", &path, "{").await, 400);
            let unknown = gateway.ask("POST", &path, body).await;
            assert_shape(&path, &unknown, 404);
            assert!(unknown.json()["error"]["message"].as_str().unwrap().contains("nope"));
        }
    }
    for path in ["/v1/other", "/openai/v1/other", "/anthropic/v1/other", "/v1/files", "/v1/messages/batches"] {
        assert_shape(path, &gateway.ask("POST", path, "{}").await, 404);
    }
}

#[tokio::test]
async fn a_key_that_may_ask_no_more_is_told_so_in_the_dialect_of_the_path() {
    let (addr, _) = server(&[]).await;
    let key = "[[keys]]\nname = \"few\"\nsecret = \"a-key-for-one-turn\"\nrequests_per_minute = 1\n";
    let gateway = Gateway::with(&format!("{key}{}{}", upstream("openai", addr), model("m", &["openai"]))).await;
    let headers = [("authorization", "Bearer a-key-for-one-turn"), ("content-type", "application/json")];
    let body = |body: &str| body.replace("nope", "m");
    let (path, first) = TURNS[0];
    gateway.send("POST", path, &headers, &body(first)).await;
    for (path, text) in TURNS {
        let reply = gateway.send("POST", path, &headers, &body(text)).await;
        assert_shape(path, &reply, 429);
        assert!(reply.header("retry-after").is_some(), "{path}");
    }
}

#[tokio::test]
async fn models_are_listed_in_the_shape_that_the_headers_or_the_prefix_ask_for() {
    let gateway = gateway().await;
    let bearer = format!("Bearer {KEY}");
    let auth = ("authorization", bearer.as_str());
    let version = ("anthropic-version", "2023-06-01");
    let ids = |reply: &Reply| -> Vec<String> {
        let body = reply.json();
        body["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap().to_owned()).collect()
    };
    let openai = gateway.send("GET", "/v1/models", &[auth], "").await;
    assert_eq!(openai.json()["object"], "list");
    assert_eq!(ids(&openai), ["m", "other"]);
    let forced = gateway.send("GET", "/openai/v1/models", &[auth, version], "").await;
    assert_eq!(forced.json()["object"], "list");
    for (path, headers) in [("/v1/models", &[auth, version][..]), ("/anthropic/v1/models", &[auth])] {
        let reply = gateway.send("GET", path, headers, "").await;
        assert_eq!((ids(&reply), reply.json()["has_more"].clone()), (vec!["m".into(), "other".into()], false.into()));
        let page = gateway.send("GET", &format!("{path}?limit=1"), headers, "").await.json();
        assert_eq!((&page["has_more"], &page["last_id"]), (&true.into(), &"m".into()));
        let next = gateway.send("GET", &format!("{path}?limit=1&after_id=m"), headers, "").await;
        assert_eq!((ids(&next), next.json()["has_more"].clone()), (vec!["other".into()], false.into()));
        let wrong = gateway.send("GET", &format!("{path}?limit=0"), headers, "").await;
        assert_eq!((wrong.status, wrong.json()["type"].clone()), (400, "error".into()));
        let one = gateway.send("GET", &format!("{path}/m"), headers, "").await.json();
        assert_eq!((&one["type"], &one["id"]), (&"model".into(), &"m".into()));
        let none = gateway.send("GET", &format!("{path}/nope"), headers, "").await;
        assert_eq!((none.status, none.json()["type"].clone()), (404, "error".into()));
    }
    let refused = gateway.send("GET", "/v1/models", &[version], "").await;
    assert_eq!((refused.status, refused.json()["type"].clone()), (401, "error".into()));
}
