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
