//! What the lab answers by itself, over real sockets.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

mod client;

use client::{chat, h1, h2, hello, hello_messages, lab, messages, post, tls, tls_lab, with};
use http::Version;
use serde_json::{Value, json};

const SAID: &str = "You said: \"Hello there\". This is the lab model lab-1 answering.";

#[tokio::test]
async fn chat_answers_with_the_users_words_and_honest_counts() {
    let lab = lab([]).await;
    let got = h1(lab.addr()).await.get(chat(&hello())).await;
    assert_eq!(got.status, 200);
    let body = got.json();
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["choices"][0]["message"]["content"], SAID);
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!((&body["usage"]["prompt_tokens"], &body["usage"]["completion_tokens"]), (&json!(2), &json!(11)));
    assert_eq!(body["usage"]["total_tokens"], 13);
}

#[tokio::test]
async fn a_chat_stream_keeps_the_order_of_the_dialect_and_sends_usage_only_when_asked() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let got = peer.get(chat(&with(&hello(), &json!({"stream": true})))).await;
    assert!(got.headers["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    let events = got.events();
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let chunks: Vec<Value> = events[..events.len() - 1].iter().map(client::Event::json).collect();
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({"role": "assistant", "content": "", "refusal": null}));
    let text: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, SAID);
    let last = &chunks[chunks.len() - 1]["choices"][0];
    assert_eq!((&last["delta"], &last["finish_reason"]), (&json!({}), &json!("stop")));
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));

    let asked = with(&hello(), &json!({"stream": true, "stream_options": {"include_usage": true}}));
    let events = peer.get(chat(&asked)).await.events();
    let chunks: Vec<Value> = events[..events.len() - 1].iter().map(client::Event::json).collect();
    let (end, before) = chunks.split_last().unwrap();
    assert_eq!(end["choices"], json!([]));
    assert_eq!(end["usage"]["completion_tokens"], 11);
    assert!(before.iter().all(|chunk| chunk.get("usage") == Some(&Value::Null)));
}

#[tokio::test]
async fn messages_answers_whole_and_in_named_events() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let body = peer.get(messages(&hello_messages())).await.json();
    assert_eq!(body["content"], json!([{"type": "text", "text": SAID}]));
    assert_eq!(body["stop_reason"], "end_turn");
    assert_eq!((&body["usage"]["input_tokens"], &body["usage"]["output_tokens"]), (&json!(2), &json!(11)));

    let events = peer.get(messages(&with(&hello_messages(), &json!({"stream": true})))).await.events();
    assert!(events.iter().all(|event| event.name.as_deref() == event.json()["type"].as_str()));
    let names: Vec<&str> = events.iter().map(|event| event.name.as_deref().unwrap()).collect();
    assert_eq!(names[..3], ["message_start", "ping", "content_block_start"]);
    assert_eq!(names[names.len() - 3..], ["content_block_stop", "message_delta", "message_stop"]);
    assert_eq!(events[0].json()["message"]["usage"]["input_tokens"], 2);
    assert_eq!(events[0].json()["message"]["content"], json!([]));
    let text: String = events.iter().filter_map(|e| e.json()["delta"]["text"].as_str().map(str::to_owned)).collect();
    assert_eq!(text, SAID);
    let delta = events[events.len() - 2].json();
    assert_eq!((&delta["delta"]["stop_reason"], &delta["usage"]["output_tokens"]), (&json!("end_turn"), &json!(11)));
}

#[tokio::test]
async fn every_transport_carries_a_turn_and_is_recorded() {
    let lab = tls_lab("").await;
    for protocol in [&b"h2"[..], b"http/1.1"] {
        let got = tls(&lab, protocol).await.unwrap().get(chat(&hello())).await;
        assert_eq!(got.json()["choices"][0]["message"]["content"], SAID);
    }
    let plain = client::lab([]).await;
    let got = h2(plain.addr()).await.get(messages(&hello_messages())).await;
    assert_eq!(got.status, 200);
    lab.wait_for_requests(2).await;
    let seen = lab.requests();
    assert_eq!((seen[0].version, seen[1].version), (Version::HTTP_2, Version::HTTP_11));
    assert_eq!((seen[0].connection, seen[1].connection), (1, 2));
    assert_eq!(plain.requests()[0].target, "/v1/messages?beta=true");
    let seen = &plain.requests()[0];
    assert_eq!(seen.account.as_deref(), Some("key-a"));
    assert_eq!(serde_json::from_slice::<Value>(&seen.body).unwrap(), hello_messages());
    assert_eq!(seen.header("Content-Type"), Some("application/json"));
    assert!(!seen.client_closed_after);
    plain.wait_idle().await;
    assert_eq!(plain.aborted(), 0);
}

#[tokio::test]
async fn a_limit_or_a_stop_text_ends_the_reply_and_says_so() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let short = peer.get(chat(&with(&hello(), &json!({"max_completion_tokens": 3})))).await.json();
    assert_eq!(short["choices"][0]["finish_reason"], "length");
    assert_eq!(short["usage"]["completion_tokens"], 3);
    let short = peer.get(messages(&with(&hello_messages(), &json!({"max_tokens": 3})))).await.json();
    assert_eq!(
        (&short["stop_reason"], &short["content"][0]["text"]),
        (&json!("max_tokens"), &json!("You said: \"Hello "))
    );
    let cut = peer.get(messages(&with(&hello_messages(), &json!({"stop_sequences": ["lab model"]})))).await.json();
    assert_eq!((&cut["stop_reason"], &cut["stop_sequence"]), (&json!("stop_sequence"), &json!("lab model")));
    let cut = peer.get(chat(&with(&hello(), &json!({"stop": "There"})))).await.json();
    assert_eq!(cut["choices"][0]["finish_reason"], "stop");
}

#[tokio::test]
async fn counting_and_models_answer_in_the_dialect_of_the_caller() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let count = peer.get(post("/v1/messages/count_tokens", &hello())).await.json();
    assert_eq!(count, json!({"input_tokens": 2}));
    let get = |path: &str, headers: &[(&str, &str)]| {
        let mut request = http::Request::get(format!("http://localhost{path}")).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(http_body_util::Full::default()).unwrap()
    };
    let list = peer.get(get("/v1/models", &[("authorization", "Bearer k")])).await.json();
    assert_eq!((&list["object"], &list["data"][0]["object"]), (&json!("list"), &json!("model")));
    let list = peer.get(get("/v1/models", &[("x-api-key", "k"), ("anthropic-version", "2023-06-01")])).await.json();
    assert_eq!((&list["has_more"], &list["data"][0]["type"]), (&json!(false), &json!("model")));
    let one = peer.get(get("/v1/models/lab-1", &[("authorization", "Bearer k")])).await;
    assert_eq!(one.json()["id"], "lab-1");
    assert_eq!(peer.get(get("/v1/models/other", &[("authorization", "Bearer k")])).await.status, 404);
    assert_eq!(peer.get(get("/v1/models", &[])).await.status, 401);
    assert_eq!(peer.get(get("/v1/messages", &[("x-api-key", "k")])).await.status, 405);
    assert_eq!(peer.get(get("/nowhere", &[("x-api-key", "k")])).await.status, 404);
}
