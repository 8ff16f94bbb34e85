//! Tools, structured output, thinking, and what the lab refuses as the real APIs do.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

mod client;

use client::{Client, chat, h1, hello, hello_messages, lab, messages, with};
use serde_json::{Value, json};

fn chat_tools() -> Value {
    let tool = |name: &str| {
        json!({"type": "function", "function": {"name": name, "parameters": {"type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city", "days"]}}})
    };
    json!([tool("weather"), tool("time")])
}

fn messages_tools() -> Value {
    json!([{"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}},
        "required": ["city"]}}])
}

fn says(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

async fn refused(peer: &mut Client, request: http::Request<http_body_util::Full<bytes::Bytes>>, words: &str) {
    let got = peer.get(request).await;
    assert_eq!(got.status, 400, "{words}: {}", got.text());
    let body = got.json();
    assert_eq!(body["error"]["type"], "invalid_request_error");
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains(words), "{message:?} should say {words:?}");
}

#[tokio::test]
async fn chat_calls_the_tools_the_user_names_and_quotes_their_results() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let ask = json!({"model": "lab-1", "tools": chat_tools(), "messages": says("Please call time and call weather")});
    let body = peer.get(chat(&ask)).await.json();
    let message = &body["choices"][0]["message"];
    assert_eq!((&body["choices"][0]["finish_reason"], &message["content"]), (&json!("tool_calls"), &Value::Null));
    let names: Vec<&Value> = message["tool_calls"].as_array().unwrap().iter().map(|c| &c["function"]["name"]).collect();
    assert_eq!(names, ["time", "weather"]);
    assert_eq!(message["tool_calls"][0]["function"]["arguments"], r#"{"city":"lab","days":1}"#);

    let events = peer.get(chat(&with(&ask, &json!({"stream": true})))).await.events();
    let deltas: Vec<Value> = events[..events.len() - 1]
        .iter()
        .filter_map(|event| event.json()["choices"][0]["delta"]["tool_calls"].get(0).cloned())
        .collect();
    assert_eq!((&deltas[0]["id"], &deltas[0]["function"]["arguments"]), (&deltas[0]["id"], &json!("")));
    let arguments = |index: u64| -> String {
        let own = deltas.iter().filter(|delta| delta["index"] == index);
        own.map(|delta| delta["function"]["arguments"].as_str().unwrap()).collect()
    };
    assert_eq!(
        (arguments(0).as_str(), arguments(1).as_str()),
        (r#"{"city":"lab","days":1}"#, r#"{"city":"lab","days":1}"#)
    );

    let calls = message["tool_calls"].as_array().unwrap();
    let history = json!([ask["messages"][0], message,
        {"role": "tool", "tool_call_id": calls[1]["id"], "content": "sunny"},
        {"role": "tool", "tool_call_id": calls[0]["id"], "content": "noon"}]);
    let body = peer.get(chat(&with(&ask, &json!({"messages": history})))).await.json();
    let text = body["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.starts_with("The tool weather returned: \"sunny\". The tool time returned: \"noon\"."), "{text}");
}

#[tokio::test]
async fn a_forced_choice_is_obeyed_in_both_dialects() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    for (choice, name) in
        [(json!("required"), "weather"), (json!({"type": "function", "function": {"name": "time"}}), "time")]
    {
        let ask = with(&hello(), &json!({"tools": chat_tools(), "tool_choice": choice}));
        let body = peer.get(chat(&ask)).await.json();
        assert_eq!(body["choices"][0]["message"]["tool_calls"][0]["function"]["name"], name);
    }
    for choice in [json!({"type": "any"}), json!({"type": "tool", "name": "weather"})] {
        let ask = with(&hello_messages(), &json!({"tools": messages_tools(), "tool_choice": choice}));
        let body = peer.get(messages(&ask)).await.json();
        assert_eq!(body["stop_reason"], "tool_use");
        assert_eq!(body["content"][0]["input"], json!({"city": "lab"}));
    }
    let never = with(&hello(), &json!({"tools": chat_tools(), "tool_choice": "none", "messages": says("call time")}));
    assert_eq!(peer.get(chat(&never)).await.json()["choices"][0]["finish_reason"], "stop");
}

#[tokio::test]
async fn a_messages_stream_opens_a_tool_block_empty_and_fills_it_by_fragments() {
    let lab = lab([]).await;
    let ask =
        with(&hello_messages(), &json!({"tools": messages_tools(), "tool_choice": {"type": "any"}, "stream": true}));
    let events = h1(lab.addr()).await.get(messages(&ask)).await.events();
    let start = events.iter().find(|event| event.name.as_deref() == Some("content_block_start")).unwrap().json();
    assert_eq!(start["content_block"]["input"], json!({}));
    let json: String =
        events.iter().filter_map(|e| e.json()["delta"]["partial_json"].as_str().map(str::to_owned)).collect();
    assert_eq!(json, r#"{"city":"lab"}"#);
}

#[tokio::test]
async fn a_schema_gets_an_instance_of_it() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
    let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
    let body = peer.get(chat(&with(&hello(), &json!({"response_format": format})))).await.json();
    assert_eq!(body["choices"][0]["message"]["content"], r#"{"ok":true}"#);
    let format = json!({"format": {"type": "json_schema", "schema": schema}});
    let body = peer.get(messages(&with(&hello_messages(), &json!({"output_config": format})))).await.json();
    assert_eq!(body["content"][0]["text"], r#"{"ok":true}"#);
}

#[tokio::test]
async fn a_thinking_block_is_signed_and_only_its_own_signature_is_taken_back() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    for display in ["summarized", "omitted"] {
        let ask = with(&hello_messages(), &json!({"thinking": {"type": "adaptive", "display": display}}));
        let body = peer.get(messages(&ask)).await.json();
        let (block, text) = (&body["content"][0], &body["content"][1]);
        assert_eq!((&block["type"], &text["type"]), (&json!("thinking"), &json!("text")));
        assert_eq!(block["thinking"] == "", display == "omitted");
        let again = |block: &Value| {
            let turn = json!([ask["messages"][0], {"role": "assistant", "content": [block, text]},
                {"role": "user", "content": "go on"}]);
            messages(&with(&ask, &json!({"messages": turn})))
        };
        assert_eq!(peer.get(again(block)).await.status, 200);
        let forged = with(block, &json!({"thinking": "something else", "signature": "forged"}));
        refused(&mut peer, again(&forged), "Invalid `signature` in `thinking` block").await;
    }
    let stream = with(&hello_messages(), &json!({"thinking": {"type": "adaptive"}, "stream": true}));
    let events = peer.get(messages(&stream)).await.events();
    let kinds: Vec<String> =
        events.iter().filter_map(|e| e.json()["delta"]["type"].as_str().map(str::to_owned)).collect();
    let signed = kinds.iter().position(|kind| kind == "signature_delta").unwrap();
    assert!(kinds[..signed].iter().all(|kind| kind == "thinking_delta"));
    assert!(kinds[signed + 1..].iter().all(|kind| kind == "text_delta"));
}

#[tokio::test]
async fn the_api_version_decides_whether_sampling_fields_are_taken() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    for field in ["temperature", "top_p", "top_k"] {
        let ask = with(&hello_messages(), &json!({field: 1}));
        assert_eq!(peer.get(messages(&ask)).await.status, 200);
        let mut new = messages(&ask);
        new.headers_mut().insert("anthropic-version", "2026-10-21".parse().unwrap());
        refused(&mut peer, new, "Extra inputs are not permitted").await;
    }
    let mut unversioned = messages(&hello_messages());
    unversioned.headers_mut().remove("anthropic-version");
    refused(&mut peer, unversioned, "anthropic-version").await;
}

#[tokio::test]
async fn a_request_without_a_credential_is_401_in_the_dialect_of_its_path() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let (mut one, mut two) = (chat(&hello()), messages(&hello_messages()));
    one.headers_mut().remove("authorization");
    two.headers_mut().remove("authorization");
    let got = peer.get(one).await;
    assert_eq!((got.status.as_u16(), &got.json()["error"]["code"]), (401, &json!("invalid_api_key")));
    let got = peer.get(two).await;
    assert_eq!((got.status.as_u16(), &got.json()["error"]["type"]), (401, &json!("authentication_error")));
}

#[tokio::test]
async fn messages_refuses_what_breaks_the_protocol_of_tools() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "weather", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "sunny"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let turns = |calls: Value, results: Value| {
        let history = json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": calls},
            {"role": "user", "content": results}]);
        messages(&with(&hello_messages(), &json!({"messages": history, "tools": messages_tools()})))
    };
    let good = turns(json!([call("a"), call("b")]), json!([result("b"), result("a"), text("thanks")]));
    assert_eq!(peer.get(good).await.status, 200);
    let missing = turns(json!([call("a"), call("b")]), json!([result("a")]));
    refused(&mut peer, missing, "without `tool_result` blocks immediately after: b").await;
    let late = turns(json!([call("a")]), json!([text("first"), result("a")]));
    refused(&mut peer, late, "without `tool_result` blocks immediately after").await;
    let stray = turns(json!([text("no call")]), json!([result("a")]));
    refused(&mut peer, stray, "unexpected `tool_use_id`").await;
    let twice = turns(json!([call("a")]), json!([result("a"), result("a")]));
    refused(&mut peer, twice, "single result").await;
    let bad_id = turns(json!([call("a:b")]), json!([result("a:b")]));
    refused(&mut peer, bad_id, "^[a-zA-Z0-9_-]+$").await;
    let empty = turns(json!([call("a")]), json!([result("a"), text("")]));
    refused(&mut peer, empty, "text content blocks must be non-empty").await;
    refused(&mut peer, messages(&hello()), "max_tokens: Field required").await;
}

#[tokio::test]
async fn chat_refuses_tool_messages_out_of_place() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let call = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]});
    let user = json!({"role": "user", "content": "hi"});
    let result = json!({"role": "tool", "tool_call_id": "c1", "content": "sunny"});
    let ask = |messages: Value| chat(&with(&hello(), &json!({"messages": messages, "tools": chat_tools()})));
    assert_eq!(peer.get(ask(json!([user, call, result]))).await.status, 200);
    refused(&mut peer, ask(json!([user, result])), "must be a response to a preceding message").await;
    refused(&mut peer, ask(json!([user, call, user])), "must be followed by tool messages").await;
    refused(&mut peer, ask(json!([user, call])), "must be followed by tool messages").await;
    refused(&mut peer, chat(&json!({"model": "lab-1"})), "'messages'").await;
    refused(&mut peer, chat(&with(&hello(), &json!({"stream_options": {}}))), "only allowed when 'stream'").await;
}

#[tokio::test]
async fn a_thinking_budget_may_reach_the_token_limit_only_when_thinking_interleaves() {
    let lab = lab([]).await;
    let mut peer = h1(lab.addr()).await;
    let thinking = json!({"type": "enabled", "budget_tokens": 2000});
    let ask = with(&hello_messages(), &json!({"max_tokens": 2000, "thinking": thinking}));
    refused(&mut peer, messages(&ask), "`max_tokens` must be greater").await;
    let mut interleaved = messages(&ask);
    interleaved.headers_mut().insert("anthropic-beta", "a-beta, interleaved-thinking-2025-05-14".parse().unwrap());
    assert_eq!(peer.get(interleaved).await.status, 200);
}
