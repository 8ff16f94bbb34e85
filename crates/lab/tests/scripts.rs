//! What a script can make the lab say, and when.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

mod client;

use std::io::Read;

use client::{chat, h1, h2, hello, hello_messages, lab, lab_toml, messages, with};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use turnkeep_lab::{Point, Rule, Script};

fn streamed(body: &Value) -> Value {
    with(body, &json!({"stream": true}))
}

#[test]
fn every_example_of_the_manual_is_a_valid_script() {
    let manual = include_str!("../../../docs/lab.md");
    let examples: Vec<&str> = manual.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() > 5);
    for example in examples {
        if let Err(error) = Script::parse(example) {
            panic!("{error}\nin\n{example}");
        }
    }
}

#[test]
fn a_script_error_names_the_line_and_what_is_wrong() {
    for (script, line, words) in [
        ("[[rule]]\ntext = \"a\"\n\n[[rule]]\ntxt = \"b\"\n", "line 5", "unknown field `txt`"),
        ("[[rule]]\nfault = \"explode\"\n", "line 2", "unknown variant `explode`"),
        ("[[rule]]\nfault = \"hang\"\nfault_at = \"after_lunch\"\n", "line 3", "is no place in a reply"),
        ("[[rule]]\ntext = \"a\"\nwords = 3\n", "line 1", "exclude each other"),
        ("[[rule]]\nstatus = 99\n", "line 1", "`status` is 200 to 599"),
    ] {
        let error = Script::parse(script).unwrap_err().to_string();
        assert!(error.contains(line) && error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn rules_match_in_order_and_are_spent() {
    let lab = lab_toml(
        r#"
        [[rule]]
        account = "key-b*"
        text = "for b"
        [[rule]]
        model = "lab-*"
        times = 1
        text = "once"
        [[rule]]
        body_contains = "Hello"
        nth = 2
        text = "second"
        [[rule]]
        path = "/v1/messages"
        text = "messages"
        "#,
    )
    .await;
    let mut peer = h1(lab.addr()).await;
    let mut text = Vec::new();
    for _ in 0..4 {
        let body = peer.get(chat(&hello())).await.json();
        text.push(body["choices"][0]["message"]["content"].as_str().unwrap().to_owned());
    }
    assert_eq!((text[0].as_str(), text[2].as_str()), ("once", "second"));
    assert!(text[1].starts_with("You said") && text[3].starts_with("You said"), "{text:?}");
    assert_eq!(peer.get(messages(&hello_messages())).await.json()["content"][0]["text"], "messages");
    let mut other = chat(&hello());
    other.headers_mut().insert("authorization", "Bearer key-b7".parse().unwrap());
    assert_eq!(peer.get(other).await.json()["choices"][0]["message"]["content"], "for b");
    lab.set_script(Script::default());
    assert!(peer.get(chat(&hello())).await.text().contains("You said"));
}

#[tokio::test]
async fn parallel_calls_interleave_their_fragments_in_chat_and_follow_each_other_in_messages() {
    let script = r#"
        [[rule]]
        text = "Let me see."
        interleave = true
        fragment_chars = 3
        tool_calls = [
            { name = "a", arguments = '{"x":1}', id = "call-a" },
            { name = "b", arguments = '{"y":2}' },
        ]
    "#;
    let lab = lab_toml(script).await;
    let mut peer = h1(lab.addr()).await;
    let events = peer.get(chat(&streamed(&hello()))).await.events();
    let order: Vec<u64> = events[..events.len() - 1]
        .iter()
        .filter_map(|event| event.json()["choices"][0]["delta"]["tool_calls"][0]["index"].as_u64())
        .collect();
    assert_eq!(order, [0, 1, 0, 1, 0, 1, 0, 1]);
    let events = peer.get(messages(&streamed(&hello_messages()))).await.events();
    let open: Vec<u64> = events
        .iter()
        .filter(|event| event.name.as_deref() == Some("content_block_start"))
        .map(|event| event.json()["index"].as_u64().unwrap())
        .collect();
    assert_eq!(open, [0, 1, 2]);
    let body = peer.get(messages(&hello_messages())).await.json();
    assert_eq!(body["content"][1], json!({"type": "tool_use", "id": "call-a", "name": "a", "input": {"x": 1}}));
}

#[tokio::test]
async fn scripted_usage_finish_refusal_and_headers_are_sent() {
    let lab = lab_toml(
        r#"
        [[rule]]
        times = 2
        text = "hm"
        thinking = "let me think"
        signature = "sig"
        usage = { prompt = 100, completion = 20, cached = 60, cache_write = 10, reasoning = 5 }
        headers = { "x-ratelimit-remaining-requests" = "7" }
        [[rule]]
        times = 2
        refusal = "I will not."
        [[rule]]
        finish = "pause_turn"
        text = "wait"
        "#,
    )
    .await;
    let mut peer = h1(lab.addr()).await;
    let got = peer.get(chat(&hello())).await;
    assert_eq!(got.headers["x-ratelimit-remaining-requests"], "7");
    let usage = &got.json()["usage"];
    assert_eq!((&usage["prompt_tokens"], &usage["prompt_tokens_details"]["cached_tokens"]), (&json!(100), &json!(60)));
    assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], 5);
    let body = peer.get(messages(&hello_messages())).await.json();
    let usage = &body["usage"];
    assert_eq!((&usage["input_tokens"], &usage["cache_read_input_tokens"]), (&json!(30), &json!(60)));
    assert_eq!((&usage["cache_creation_input_tokens"], &usage["output_tokens"]), (&json!(10), &json!(20)));
    assert_eq!(body["content"][0], json!({"type": "thinking", "thinking": "let me think", "signature": "sig"}));
    let message = peer.get(chat(&hello())).await.json()["choices"][0]["message"].clone();
    assert_eq!((&message["refusal"], &message["content"]), (&json!("I will not."), &Value::Null));
    let body = peer.get(messages(&hello_messages())).await.json();
    assert_eq!((&body["stop_reason"], &body["stop_details"]["type"]), (&json!("refusal"), &json!("refusal")));
    assert_eq!(peer.get(messages(&hello_messages())).await.json()["stop_reason"], "pause_turn");
}

#[tokio::test]
async fn raw_bodies_and_frames_are_sent_as_they_are() {
    let lab = lab_toml(
        r#"
        [[rule]]
        times = 1
        status = 418
        raw = 'not { json'
        headers = { "content-type" = "text/plain" }
        [[rule]]
        raw_frames = ["data: one\n\n", "data: two\n\n"]
        "#,
    )
    .await;
    let mut peer = h1(lab.addr()).await;
    let got = peer.get(chat(&hello())).await;
    assert_eq!((got.status.as_u16(), got.text()), (418, "not { json"));
    assert_eq!(got.headers["content-type"], "text/plain");
    assert_eq!(peer.get(chat(&hello())).await.text(), "data: one\n\ndata: two\n\n");
}

#[tokio::test]
async fn an_error_takes_the_shape_of_the_dialect() {
    let script = r#"
        [[rule]]
        error = { status = 429, code = "slow_down", message = "Slower.", retry_after = 7 }
    "#;
    let lab = lab_toml(script).await;
    let mut peer = h1(lab.addr()).await;
    let got = peer.get(chat(&hello())).await;
    assert_eq!((got.status.as_u16(), got.headers["retry-after"].to_str().unwrap()), (429, "7"));
    let expected =
        json!({"error": {"message": "Slower.", "type": "rate_limit_error", "param": null, "code": "slow_down"}});
    assert_eq!(got.json(), expected);
    let got = peer.get(messages(&hello_messages())).await;
    assert_eq!(got.status, 429);
    assert_eq!(got.json()["error"]["type"], "rate_limit_error");
    assert!(got.json()["request_id"].is_string());
}

fn decoded(encoding: &str, body: &[u8]) -> String {
    let mut text = String::new();
    match encoding {
        "gzip" => flate2::read::GzDecoder::new(body).read_to_string(&mut text).unwrap(),
        "deflate" => flate2::read::ZlibDecoder::new(body).read_to_string(&mut text).unwrap(),
        "br" => brotli::Decompressor::new(body, 4096).read_to_string(&mut text).unwrap(),
        "zstd" => zstd::stream::read::Decoder::new(body).unwrap().read_to_string(&mut text).unwrap(),
        other => panic!("{other}"),
    };
    text
}

#[tokio::test]
async fn a_reply_can_be_compressed_and_cut_at_any_byte() {
    let plain = lab([]).await;
    let expected = h1(plain.addr()).await.get(messages(&streamed(&hello_messages()))).await.text().to_owned();
    for encoding in ["gzip", "br", "zstd", "deflate"] {
        let script = format!("[[rule]]\ncontent_encoding = \"{encoding}\"\nchunk_bytes = 7\n");
        let lab = lab_toml(&script).await;
        let got = h1(lab.addr()).await.get(messages(&streamed(&hello_messages()))).await;
        assert_eq!(got.headers["content-encoding"], encoding);
        assert_eq!(decoded(encoding, &got.body), expected);
        let whole = h2(lab.addr()).await.get(messages(&hello_messages())).await;
        assert!(decoded(encoding, &whole.body).contains("You said"));
    }
    let lab = lab([Rule { chunk_bytes: Some(3), ..Rule::default() }]).await;
    let response = h1(lab.addr()).await.send(messages(&streamed(&hello_messages()))).await.unwrap();
    let mut body = response.into_body();
    let mut sizes = Vec::new();
    while let Some(frame) = body.frame().await {
        sizes.push(frame.unwrap().into_data().unwrap().len());
    }
    assert!(sizes.iter().all(|size| *size <= 3), "{sizes:?}");
    assert_eq!(sizes.iter().sum::<usize>(), expected.len());
}

#[tokio::test]
async fn a_gate_holds_the_reply_where_the_script_says_until_it_is_released() {
    for (at, seen) in
        [(Point::AfterPreamble, "content\":\"\""), (Point::AfterWords(2), "two "), (Point::BeforeTerminal, "three")]
    {
        let rule = Rule {
            text: Some("one two three".to_owned()),
            gate: Some("held".to_owned()),
            gate_at: Some(at),
            ..Rule::default()
        };
        let lab = lab([rule]).await;
        let response = h1(lab.addr()).await.send(chat(&streamed(&hello()))).await.unwrap();
        lab.wait_at_gate("held", 1).await;
        let mut body = response.into_body();
        let mut text = String::new();
        while !text.contains(seen) {
            text.push_str(std::str::from_utf8(&body.frame().await.unwrap().unwrap().into_data().unwrap()).unwrap());
        }
        assert!(!text.contains("[DONE]") && !text.contains("finish_reason\":\"stop"), "{text}");
        assert_eq!(lab.in_flight(), 1);
        lab.release("held");
        text.push_str(std::str::from_utf8(&body.collect().await.unwrap().to_bytes()).unwrap());
        assert!(text.ends_with("[DONE]\n\n"));
        lab.wait_idle().await;
        assert_eq!(lab.aborted(), 0);
    }
}

#[tokio::test]
async fn a_gate_before_the_headers_holds_the_status_back() {
    let lab = lab([Rule { gate: Some("g".to_owned()), ..Rule::default() }]).await;
    let mut peer = h1(lab.addr()).await;
    let mut reply = Box::pin(peer.get(chat(&hello())));
    tokio::select! {
        biased;
        _ = &mut reply => panic!("the reply passed a closed gate"),
        () = lab.wait_at_gate("g", 1) => {}
    }
    lab.release("g");
    assert_eq!(reply.await.status, 200);
}

#[tokio::test]
async fn words_come_one_by_one_with_their_delay() {
    let lab = lab([Rule { words: Some(3), word_delay_ms: 5, ..Rule::default() }]).await;
    let start = std::time::Instant::now();
    let got = h1(lab.addr()).await.get(chat(&streamed(&hello()))).await;
    assert!(start.elapsed() >= std::time::Duration::from_millis(15));
    assert!(got.text().contains("word3"));
}

#[tokio::test]
async fn a_models_list_makes_other_names_unknown() {
    let lab = lab_toml("models = [\"only\"]\n").await;
    let mut peer = h1(lab.addr()).await;
    let got = peer.get(chat(&hello())).await;
    assert_eq!((got.status.as_u16(), &got.json()["error"]["code"]), (404, &json!("model_not_found")));
    assert_eq!(peer.get(chat(&with(&hello(), &json!({"model": "only"})))).await.status, 200);
}
