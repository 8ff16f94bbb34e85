//! Legacy completions: checked as they come, passed as they are to a Chat upstream, carried as a turn to any other.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]
// A fault is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

use bytes::Bytes;
use serde_json::{Value, json};
use turnkeep_base::{Dialect, FaultKind, Usage};
use turnkeep_dialect::event::{Class, Finish};
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::reply::{Asked, Facts, Piece, ReplyFault, ReplyOptions, StreamCodec, plain};
use turnkeep_dialect::request::{ClientRequest, Operation, read, write_for};

fn request(body: &str) -> Result<ClientRequest, Invalid> {
    read(Dialect::Chat, Operation::Complete, Bytes::copy_from_slice(body.as_bytes()))
}

fn with(extra: &str) -> ClientRequest {
    request(&format!(r#"{{"model":"m","prompt":"Once upon"{extra}}}"#))
        .unwrap_or_else(|error| panic!("{error}: {extra}"))
}

fn options(upstream: Dialect, usage_wanted: bool, choices: u64) -> ReplyOptions {
    ReplyOptions {
        client: Dialect::Chat,
        upstream,
        model: "asked".into(),
        usage_wanted,
        choices,
        id: "own".into(),
        created: 7,
        max_event: 1 << 20,
        asked: Asked { operation: Operation::Complete, ..Asked::default() },
    }
}

fn run(options: &ReplyOptions, stream: &str) -> (Vec<Piece>, Result<(), ReplyFault>, Facts) {
    let mut codec = StreamCodec::new(options);
    let mut out = Vec::new();
    let fed = codec.feed(Bytes::copy_from_slice(stream.as_bytes()), &mut out);
    let ended = fed.and_then(|()| codec.finish(&mut out));
    (out, ended, codec.facts().clone())
}

fn text(pieces: &[Piece]) -> String {
    pieces.iter().map(|piece| std::str::from_utf8(&piece.bytes).unwrap()).collect()
}

#[test]
fn every_form_of_a_prompt_is_taken_and_counted() {
    for (prompt, choices) in
        [(r#""a""#, 1), (r#"["a"]"#, 1), (r#"["a","b"]"#, 2), ("[1,2,3]", 1), ("[[1,2],[3]]", 2), (r#""""#, 1)]
    {
        let read = request(&format!(r#"{{"prompt":{prompt},"model":"m","n":3}}"#)).unwrap();
        assert_eq!(
            (read.choices, read.operation, read.model.as_str()),
            (3 * choices, Operation::Complete, "m"),
            "{prompt}"
        );
    }
    let read = with(r#","stream":true,"max_tokens":9,"stream_options":{"include_usage":true}"#);
    assert!(read.stream && read.usage_wanted);
    assert_eq!(read.max_output, Some(9));
}

#[test]
fn what_is_no_completions_request_is_refused_with_its_path() {
    for (body, path) in [
        (r#"{"prompt":"a"}"#, "model"),
        (r#"{"model":"m"}"#, "prompt"),
        (r#"{"model":"m","prompt":null}"#, "prompt"),
        (r#"{"model":"m","prompt":[]}"#, "prompt"),
        (r#"{"model":"m","prompt":["a",1]}"#, "prompt[1]"),
        (r#"{"model":"m","prompt":[1,"a"]}"#, "prompt[1]"),
        (r#"{"model":"m","prompt":[[1],"a",{}]}"#, "prompt[2]"),
        (r#"{"model":"m","prompt":[-1]}"#, "prompt[0]"),
        (r#"{"model":"","prompt":"a"}"#, "model"),
        (r#"{"model":"m","prompt":"a","model":"n"}"#, "model"),
        (r#"{"model":"m","prompt":"a","n":0}"#, "n"),
        (r#"{"model":"m","prompt":"a","stream":1}"#, "stream"),
        (r#"{"model":"m","prompt":"a","echo":"yes"}"#, "echo"),
        (r#"{"model":"m","prompt":"a","suffix":[]}"#, "suffix"),
        (r#"{"model":"m","prompt":"a","stop":[1]}"#, "stop[0]"),
        (r#"{"model":"m","prompt":"a","logit_bias":[]}"#, "logit_bias"),
        (r#"{"model":"m","prompt":"a","temperature":"hot"}"#, "temperature"),
    ] {
        let error = request(body).expect_err(body);
        assert_eq!(error.path, path, "{body}: {error}");
    }
    for body in ["", "[]", "{", r#"{"model":"m","prompt":"a"} x"#] {
        assert!(request(body).is_err(), "{body}");
    }
}

#[test]
fn a_chat_upstream_gets_the_bytes_and_is_asked_for_usage_where_they_are_streamed() {
    let plain = with(r#","suffix":"end","echo":true,"best_of":3,"unknown":{"a":[1]}"#);
    assert_eq!(plain.pass_through("m"), plain.body);
    let renamed = String::from_utf8(plain.pass_through("up").to_vec()).unwrap();
    assert_eq!(renamed, String::from_utf8(plain.body.to_vec()).unwrap().replacen("\"m\"", "\"up\"", 1));
    let streamed = with(r#","stream":true"#);
    let sent: Value = serde_json::from_slice(&streamed.pass_through("m")).unwrap();
    assert_eq!(sent["stream_options"], json!({"include_usage":true}));
}

const ONE: &str = r#"{"id":"cmpl-1","object":"text_completion","created":1,"model":"up","choices":[{"text":" a","index":0,"logprobs":null,"finish_reason":null}]}"#;
const LAST: &str = r#"{"id":"cmpl-1","object":"text_completion","created":1,"model":"up","choices":[{"text":" time","index":0,"logprobs":null,"finish_reason":"length"}]}"#;
const USAGE: &str = r#"{"id":"cmpl-1","object":"text_completion","created":1,"model":"up","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}"#;

fn stream(datas: &[&str]) -> String {
    datas.iter().map(|data| format!("data: {data}\n\n")).collect()
}

#[test]
fn a_chat_upstreams_stream_passes_and_its_facts_are_read() {
    let whole = stream(&[ONE, LAST, USAGE, "[DONE]"]);
    let (pieces, ended, facts) = run(&options(Dialect::Chat, true, 1), &whole);
    assert_eq!((text(&pieces), ended), (whole.clone(), Ok(())));
    assert_eq!((facts.finish, facts.content_bytes), (Some(Finish::Length), 7));
    assert_eq!(facts.usage, Some(Usage { input: 3, output: 2, ..Usage::default() }));
    assert_eq!((facts.model.as_deref(), facts.id.as_deref()), (Some("up"), Some("cmpl-1")));
    let classes: Vec<Class> = pieces.iter().map(|piece| piece.class).collect();
    assert_eq!(classes, [Class::Answer, Class::Terminal, Class::Terminal, Class::Terminal]);
    // The client did not ask for the usage chunk.
    let (pieces, ended, _) = run(&options(Dialect::Chat, false, 1), &whole);
    assert_eq!((text(&pieces), ended), (stream(&[ONE, LAST, "[DONE]"]), Ok(())));
}

#[test]
fn a_stream_that_is_cut_or_fails_is_no_answer() {
    let cut = |datas: &[&str]| run(&options(Dialect::Chat, true, 1), &stream(datas)).1.unwrap_err().kind;
    assert_eq!(cut(&[ONE]), FaultKind::StreamTruncated);
    assert_eq!(cut(&[ONE, "[DONE]"]), FaultKind::StreamTruncated);
    assert_eq!(cut(&[ONE, "{"]), FaultKind::MalformedResponse);
    assert_eq!(
        cut(&[ONE, r#"{"error":{"message":"x","type":"server_error","code":null}}"#]),
        FaultKind::UpstreamInternal
    );
}

#[test]
fn a_chat_upstreams_whole_answer_passes() {
    let body = r#"{"id":"cmpl-1","object":"text_completion","created":1,"model":"up","choices":[{"text":"abc","index":0,"finish_reason":"stop"},{"text":"de","index":1,"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}"#;
    let (bytes, facts) = plain(&options(Dialect::Chat, false, 2), Bytes::from_static(body.as_bytes())).unwrap();
    assert_eq!(bytes, body);
    assert_eq!((facts.finish, facts.content_bytes), (Some(Finish::Stop), 5));
    assert!(plain(&options(Dialect::Chat, false, 1), Bytes::from_static(b"{}")).is_err());
}

#[test]
fn another_upstream_gets_the_prompt_as_the_users_message() {
    let sent = with(
        r#","max_tokens":9,"temperature":0.5,"stop":["X"],"stream":true,"user":"u","echo":false,"suffix":"","best_of":1"#,
    );
    let encoded = write_for(&sent, Dialect::Messages, "up", false).unwrap();
    let body: Value = serde_json::from_slice(&encoded.body).unwrap();
    assert_eq!(
        body,
        json!({"model":"up","max_tokens":9,"temperature":0.5,"stop_sequences":["X"],"stream":true,"metadata":{"user_id":"u"},
            "messages":[{"role":"user","content":"Once upon"}]})
    );
    assert_eq!(encoded.dropped, Vec::<String>::new());
    let list =
        request(r#"{"model":"m","prompt":["only"],"logprobs":2,"best_of":4,"logit_bias":{"1":2},"n":1}"#).unwrap();
    let encoded = write_for(&list, Dialect::Messages, "up", false).unwrap();
    assert_eq!(encoded.dropped, ["best_of", "logit_bias", "logprobs"]);
}

#[test]
fn what_changes_the_text_and_cannot_be_carried_is_refused_by_its_path() {
    for (body, path) in [
        (r#"{"model":"m","prompt":"a","suffix":"b"}"#, "suffix"),
        (r#"{"model":"m","prompt":"a","echo":true}"#, "echo"),
        (r#"{"model":"m","prompt":"a","n":2}"#, "n"),
        (r#"{"model":"m","prompt":["a","b"]}"#, "prompt[1]"),
        (r#"{"model":"m","prompt":[1,2]}"#, "prompt[0]"),
        (r#"{"model":"m","prompt":[[1,2]]}"#, "prompt[0]"),
    ] {
        let read = request(body).unwrap();
        let error = write_for(&read, Dialect::Messages, "up", false).expect_err(body);
        assert_eq!(error.path, path, "{body}");
    }
}

const CLAUDE: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" a time\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":2}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

#[test]
fn another_upstreams_stream_becomes_text_completions() {
    let (pieces, ended, facts) = run(&options(Dialect::Messages, true, 1), CLAUDE);
    assert_eq!(ended, Ok(()));
    let text = text(&pieces);
    let datas: Vec<&str> = text.split_terminator("\n\n").map(|frame| frame.strip_prefix("data: ").unwrap()).collect();
    let (done, chunks) = datas.split_last().unwrap();
    assert_eq!(*done, "[DONE]");
    let chunks: Vec<Value> = chunks.iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    let chunk = |text: &str, finish: Value| {
        json!({"id":"cmpl-own","object":"text_completion","created":7,"model":"claude","usage":null,
            "choices":[{"text":text,"index":0,"logprobs":null,"finish_reason":finish}]})
    };
    assert_eq!(chunks[0], chunk(" a time", Value::Null));
    assert_eq!(chunks[1], chunk("", "length".into()));
    assert_eq!((&chunks[2]["choices"], &chunks[2]["usage"]["total_tokens"]), (&json!([]), &json!(5)));
    assert_eq!(facts.usage, Some(Usage { input: 3, output: 2, ..Usage::default() }));
    // Its own reader takes it, whole and in its parts.
    let (again, ended, read) = run(&options(Dialect::Chat, true, 1), &text);
    assert_eq!((again.len(), ended, read.content_bytes), (4, Ok(()), 7));
}

#[test]
fn another_upstreams_whole_answer_becomes_a_text_completion() {
    let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"ab"},{"type":"text","text":"c"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":2}}"#;
    let (bytes, facts) = plain(&options(Dialect::Messages, false, 1), Bytes::from_static(body.as_bytes())).unwrap();
    let answer: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(answer["choices"], json!([{"text":"abc","index":0,"logprobs":null,"finish_reason":"stop"}]));
    assert_eq!(
        (&answer["object"], &answer["model"], &answer["usage"]["prompt_tokens"]),
        (&json!("text_completion"), &json!("claude"), &json!(3))
    );
    assert_eq!(facts.finish, Some(Finish::Stop));
}
