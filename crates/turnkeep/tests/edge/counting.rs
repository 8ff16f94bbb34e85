//! Counting, embeddings and completions go only where an upstream has them.

use crate::scene::{Gateway, model, server, upstream};

const COUNT: &str = r#"{"model":"m","messages":[{"role":"user","content":"hello there"}]}"#;
const JSON: &str = "application/json";

#[tokio::test]
async fn tokens_are_counted_by_an_upstream_that_can_and_guessed_with_a_mark_otherwise() {
    let (addr, asked) = server(&[("/count_tokens", JSON, br#"{"input_tokens":77}"#.to_vec())]).await;
    let models = model("m", &["openai", "anthropic"]) + &model("guessed", &["openai"]);
    let gateway = Gateway::with(&format!("{}{}{models}", upstream("openai", addr), upstream("anthropic", addr))).await;
    let counted = gateway.ask("POST", "/v1/messages/count_tokens", COUNT).await;
    assert_eq!((counted.status, counted.json()["input_tokens"].clone()), (200, 77.into()), "{}", counted.text());
    assert_eq!(counted.header("x-turnkeep-estimated"), None);
    let guessed = gateway.ask("POST", "/v1/messages/count_tokens", &COUNT.replace("\"m\"", "\"guessed\"")).await;
    assert_eq!((guessed.status, guessed.header("x-turnkeep-estimated")), (200, Some("input_tokens")));
    assert!(guessed.json()["input_tokens"].as_u64().is_some_and(|tokens| tokens > 0));
    let paths: Vec<String> = asked.lock().unwrap().iter().map(|(path, _)| path.clone()).collect();
    assert_eq!(paths, ["/v1/messages/count_tokens"]);
}

#[tokio::test]
async fn embeddings_go_past_upstreams_that_make_none_and_are_refused_where_no_other_is() {
    let vectors = br#"{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"model":"e",
        "usage":{"prompt_tokens":1,"total_tokens":1}}"#;
    let (addr, asked) = server(&[("/embeddings", JSON, vectors.to_vec())]).await;
    let models = model("m", &["anthropic", "openai"]) + &model("none", &["anthropic", "openai-responses"]);
    let upstreams = ["anthropic", "openai", "openai-responses"].map(|kind| upstream(kind, addr)).concat();
    let gateway = Gateway::with(&format!("{upstreams}{models}")).await;
    let refused = gateway.ask("POST", "/v1/embeddings", r#"{"model":"none","input":"hi"}"#).await;
    assert_eq!((refused.status, refused.json()["error"]["param"].clone()), (400, "model".into()), "{}", refused.text());
    assert!(asked.lock().unwrap().is_empty());
    let made = gateway.ask("POST", "/v1/embeddings", r#"{"model":"m","input":"hi"}"#).await;
    assert_eq!((made.status, made.json()["data"][0]["embedding"][0].clone()), (200, 0.5.into()), "{}", made.text());
    assert_eq!(asked.lock().unwrap()[0].0, "/v1/embeddings");
}

/// A request to count in each dialect, with what only a request for an answer has where its clients send that, too.
const COUNTS: [(&str, &str, &str); 3] = [
    (
        "/v1/responses/input_tokens",
        r#"{"model":"MODEL","input":"hello there","max_output_tokens":64,"store":true,"include":["reasoning.encrypted_content"]}"#,
        "/input_tokens",
    ),
    (
        "/v1/messages/count_tokens",
        r#"{"model":"MODEL","max_tokens":64,"temperature":1,"messages":[{"role":"user","content":"hello there"}]}"#,
        "/input_tokens",
    ),
    (
        "/v1beta/models/MODEL:countTokens",
        r#"{"generateContentRequest":{"model":"models/MODEL","contents":[{"role":"user","parts":[{"text":"hello there"}]}],
            "generationConfig":{"maxOutputTokens":64}}}"#,
        "/totalTokens",
    ),
];

#[tokio::test]
async fn a_count_across_dialects_asks_for_nothing_that_the_endpoint_does_not_take() {
    let counts = [
        ("/v1/responses/input_tokens", JSON, br#"{"object":"response.input_tokens","input_tokens":41}"#.to_vec()),
        ("/v1/messages/count_tokens", JSON, br#"{"input_tokens":41}"#.to_vec()),
        (":countTokens", JSON, br#"{"totalTokens":41}"#.to_vec()),
    ];
    let (addr, asked) = server(&counts).await;
    let kinds = ["openai-responses", "anthropic", "gemini"];
    let upstreams = kinds.map(|kind| upstream(kind, addr)).concat();
    let models = kinds.map(|kind| model(kind, &[kind])).concat();
    let gateway = Gateway::with(&format!("{upstreams}{models}")).await;
    for (own, (path, body, count)) in kinds.iter().zip(COUNTS) {
        for kind in kinds {
            let (path, body) = (path.replace("MODEL", kind), body.replace("MODEL", kind));
            let reply = gateway.ask("POST", &path, &body).await;
            assert_eq!(reply.status, 200, "{path} over {kind}: {}", reply.text());
            assert_eq!(reply.json().pointer(count), Some(&41.into()), "{path} over {kind}: {}", reply.text());
            assert_eq!(reply.header("x-turnkeep-estimated"), None, "{path} over {kind}");
            let (_, sent) = asked.lock().unwrap().pop().unwrap();
            assert!(sent.contains("hello there"), "{path} over {kind}: {sent}");
            // Its own dialect's bytes are its client's.
            if *own != kind && kind != "gemini" {
                for field in ["max_tokens", "max_output_tokens", "stream", "store", "include", "temperature"] {
                    assert!(!sent.contains(&format!("\"{field}\"")), "{path} over {kind}: {sent}");
                }
            }
        }
    }
}

#[tokio::test]
async fn an_estimate_is_marked_as_one_in_every_dialect() {
    let (addr, asked) = server(&[]).await;
    let gateway = Gateway::with(&(upstream("openai", addr) + &model("m", &["openai"]))).await;
    for (path, body, count) in COUNTS {
        let reply = gateway.ask("POST", &path.replace("MODEL", "m"), &body.replace("MODEL", "m")).await;
        assert_eq!(
            (reply.status, reply.header("x-turnkeep-estimated")),
            (200, Some("input_tokens")),
            "{path}: {}",
            reply.text()
        );
        let tokens = reply.json().pointer(count).and_then(serde_json::Value::as_u64);
        assert!(tokens.is_some_and(|tokens| (1..40).contains(&tokens)), "{path}: {}", reply.text());
    }
    assert!(asked.lock().unwrap().is_empty());
}
