//! Answers of Chat and Messages on their way to each other, where the dialects differ: names and kinds of tools, proofs,
//! the stop text that was met, arguments that are no JSON.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;
use turnkeep_base::Dialect;
use turnkeep_dialect::reply::{Asked, ReplyOptions, StreamCodec, plain};
use turnkeep_dialect::request::{Operation, encode, read};
use turnkeep_dialect::tool_names::{ToolNames, sent};
use turnkeep_dialect::turn::{Tool, ToolKind, Turn};
use turnkeep_wire::sse;

fn options(client: Dialect, upstream: Dialect) -> ReplyOptions {
    let name =
        |name: &'static str| ToolKind::Function { name: name.into(), description: None, schema: None, strict: None };
    let free = ToolKind::Custom { name: "apply patch".into(), description: None, format: None };
    let tools = [name("files.read"), free].into_iter().map(|kind| Tool { index: 0, kind }).collect();
    let names = ToolNames::of(&Turn { tools, ..Turn::default() }, upstream);
    ReplyOptions {
        client,
        upstream,
        model: "asked".into(),
        usage_wanted: false,
        choices: 1,
        id: "t1".into(),
        created: 1,
        max_event: 1 << 20,
        asked: Asked { names: Arc::new(names), ..Asked::default() },
    }
}

/// The data of the client's events.
fn streamed(options: &ReplyOptions, stream: &str) -> Vec<Value> {
    let mut codec = StreamCodec::new(options);
    let mut pieces = Vec::new();
    codec.feed(Bytes::copy_from_slice(stream.as_bytes()), &mut pieces).unwrap();
    codec.finish(&mut pieces).unwrap();
    let mut reader = sse::Reader::new(1 << 20);
    reader.push(pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect::<Vec<_>>().into());
    let mut datas = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        datas.extend(frame.data.and_then(|data| serde_json::from_slice(&data).ok()));
    }
    datas
}

fn answered(options: &ReplyOptions, body: &Value) -> Value {
    serde_json::from_slice(&plain(options, body.to_string().into()).unwrap().0).unwrap()
}

fn chat_stream(deltas: &[Value], finish: Value) -> String {
    let head = json!({"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m"});
    let mut out = String::new();
    for choice in deltas.iter().map(|delta| json!({"index":0,"delta":delta})).chain([finish]) {
        let mut chunk = head.clone();
        chunk["choices"] = json!([choice]);
        out.push_str(&format!("data: {chunk}\n\n"));
    }
    out + "data: [DONE]\n\n"
}

fn messages_stream(events: &[Value]) -> String {
    let event = |data: &Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    let start = json!({"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],
        "stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}});
    let end = json!({"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":1}});
    let all: Vec<_> = [start].iter().chain(events).chain([&end, &json!({"type":"message_stop"})]).map(event).collect();
    all.concat()
}

fn tool_use(index: u64, name: &str, pieces: &[&str]) -> Vec<Value> {
    let block = json!({"type":"tool_use","id":format!("t{index}"),"name":name,"input":{}});
    let mut out = vec![json!({"type":"content_block_start","index":index,"content_block":block})];
    out.extend(pieces.iter().map(|piece| json!({"type":"content_block_delta","index":index,"delta":{"type":"input_json_delta","partial_json":piece}})));
    out.push(json!({"type":"content_block_stop","index":index}));
    out
}

fn calls(datas: &[Value]) -> Vec<Value> {
    datas.iter().filter_map(|data| data["choices"][0]["delta"]["tool_calls"].get(0).cloned()).collect()
}

#[test]
fn a_chat_client_sees_its_own_names_and_its_free_text_unwrapped() {
    let options = options(Dialect::Chat, Dialect::Messages);
    let (read, patch) = (sent("files.read", Dialect::Messages), sent("apply patch", Dialect::Messages));
    let events = [tool_use(0, &read, &["{\"a\"", ":1}"]), tool_use(1, &patch, &["{\"inp", "ut\":\"a\\nb\"}"])].concat();
    let datas = streamed(&options, &messages_stream(&events));
    assert_eq!(
        calls(&datas),
        [
            json!({"index":0,"id":"t0","type":"function","function":{"name":"files.read","arguments":""}}),
            json!({"index":0,"function":{"arguments":"{\"a\""}}),
            json!({"index":0,"function":{"arguments":":1}"}}),
            json!({"index":1,"id":"t1","type":"custom","custom":{"name":"apply patch","input":""}}),
            json!({"index":1,"custom":{"input":"a\nb"}}),
        ]
    );
    let whole = json!({"id":"msg_1","type":"message","role":"assistant","model":"m","stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1},
        "content":[{"type":"tool_use","id":"t0","name":read,"input":{"a":1}},{"type":"tool_use","id":"t1","name":patch,"input":{"input":"a\nb"}},
            {"type":"tool_use","id":"t2","name":patch,"input":{"other":1}}]});
    assert_eq!(
        answered(&options, &whole)["choices"][0]["message"]["tool_calls"],
        json!([{"id":"t0","type":"function","function":{"name":"files.read","arguments":"{\"a\":1}"}},
            {"id":"t1","type":"custom","custom":{"name":"apply patch","input":"a\nb"}},
            {"id":"t2","type":"custom","custom":{"name":"apply patch","input":"{\"other\":1}"}}])
    );
}

#[test]
fn a_messages_client_sees_its_own_names() {
    let options = options(Dialect::Messages, Dialect::Chat);
    let name = sent("files.read", Dialect::Chat);
    let call = json!({"index":0,"id":"c1","type":"function","function":{"name":name,"arguments":"{}"}});
    let finish = json!({"index":0,"delta":{},"finish_reason":"tool_calls"});
    let datas = streamed(&options, &chat_stream(&[json!({"role":"assistant","tool_calls":[call]})], finish));
    assert_eq!(datas[1]["content_block"]["name"], "files.read");
    let whole = json!({"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[call]}}]});
    assert_eq!(answered(&options, &whole)["content"][0]["name"], "files.read");
}

#[test]
fn the_stop_text_that_was_met_is_told_where_the_server_tells_it() {
    let options = options(Dialect::Messages, Dialect::Chat);
    for (field, value, reason, text) in [
        ("stop_reason", json!("END"), "stop_sequence", json!("END")),
        ("matched_stop", json!("END"), "stop_sequence", json!("END")),
        ("stop_reason", json!(null), "end_turn", json!(null)),
        ("matched_stop", json!(151645), "end_turn", json!(null)),
        ("stop_reason", json!(""), "end_turn", json!(null)),
    ] {
        let mut finish = json!({"index":0,"delta":{},"finish_reason":"stop"});
        finish[field] = value.clone();
        let datas = streamed(&options, &chat_stream(&[json!({"role":"assistant","content":"a"})], finish));
        let end = datas.iter().find(|data| data["type"] == "message_delta").unwrap();
        assert_eq!(
            (&end["delta"]["stop_reason"], &end["delta"]["stop_sequence"]),
            (&json!(reason), &text),
            "{field} {value}"
        );
        let mut choice = json!({"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"a"}});
        choice[field] = value.clone();
        let whole = json!({"id":"c","object":"chat.completion","created":1,"model":"m","choices":[choice]});
        let got = answered(&options, &whole);
        assert_eq!((&got["stop_reason"], &got["stop_sequence"]), (&json!(reason), &text), "{field} {value}");
    }
    // A limit that was met is a limit, whatever else the server says.
    let finish = json!({"index":0,"delta":{},"finish_reason":"length","stop_reason":"END"});
    let datas = streamed(&options, &chat_stream(&[json!({"role":"assistant","content":"a"})], finish));
    let end = datas.iter().find(|data| data["type"] == "message_delta").unwrap();
    assert_eq!(end["delta"], json!({"stop_reason":"max_tokens","stop_sequence":null}));
}

#[test]
fn a_proof_of_gemini_crosses_and_comes_back_to_its_call() {
    let to_messages = options(Dialect::Messages, Dialect::Chat);
    let call = json!({"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}});
    let finish = json!({"index":0,"delta":{},"finish_reason":"tool_calls"});
    let datas = streamed(&to_messages, &chat_stream(&[json!({"role":"assistant","tool_calls":[call]})], finish));
    let signature = datas.iter().find(|data| data["delta"]["type"] == "signature_delta").unwrap();
    assert_eq!(signature["delta"]["signature"], "turnkeep.gemini.c2ln");
    let kinds: Vec<_> = datas.iter().filter_map(|data| data["content_block"]["type"].as_str()).collect();
    assert_eq!(kinds, ["thinking", "tool_use"]);

    // The client sends it back, and the upstream that made it gets it at its call again.
    let history = json!({"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"},
        {"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"turnkeep.gemini.c2ln"},{"type":"tool_use","id":"c1","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r"}]}]});
    let request = read(Dialect::Messages, Operation::Generate, Bytes::from(history.to_string())).unwrap();
    let encoded = encode(Dialect::Chat, &request.turn().unwrap(), "gemini-3-pro").unwrap();
    let body: Value = serde_json::from_slice(&encoded.body).unwrap();
    assert_eq!(body["messages"][1]["tool_calls"][0]["extra_content"], json!({"google":{"thought_signature":"c2ln"}}));
    assert!(encoded.dropped.is_empty(), "{:?}", encoded.dropped);

    // A Chat client has it at the call, streamed and plain; where no call comes next, among the thinking.
    let to_chat = options(Dialect::Chat, Dialect::Messages);
    let signed = [
        json!({"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}),
        json!({"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"turnkeep.gemini.c2ln"}}),
        json!({"type":"content_block_stop","index":0}),
    ];
    let datas = streamed(&to_chat, &messages_stream(&[signed.to_vec(), tool_use(1, "f", &["{}"])].concat()));
    assert_eq!(calls(&datas)[0]["extra_content"], json!({"google":{"thought_signature":"c2ln"}}));
    assert!(datas.iter().all(|data| data["choices"][0]["delta"]["thinking_blocks"].is_null()));
    let datas = streamed(&to_chat, &messages_stream(&signed));
    let alone = datas.iter().find_map(|data| data["choices"][0]["delta"]["thinking_blocks"].get(0)).unwrap();
    assert_eq!(alone["signature"], "turnkeep.gemini.c2ln");
    let whole = |content: Value| json!({"id":"msg_1","type":"message","role":"assistant","model":"m","stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1},"content":content});
    let thought = json!({"type":"thinking","thinking":"","signature":"turnkeep.gemini.c2ln"});
    let message =
        answered(&to_chat, &whole(json!([thought, {"type":"tool_use","id":"c1","name":"f","input":{}}])))["choices"][0]
            ["message"]
            .clone();
    assert_eq!(message["tool_calls"][0]["extra_content"]["google"]["thought_signature"], "c2ln");
    assert!(message["thinking_blocks"].is_null());
    let message = answered(&to_chat, &whole(json!([thought])))["choices"][0]["message"].clone();
    assert_eq!(message["thinking_blocks"][0]["signature"], "turnkeep.gemini.c2ln");
}

#[test]
fn arguments_that_are_no_json_never_stop_an_answer() {
    for arguments in ["", "{", "{\"a\":", "[1]", "7", "not json", "\u{0}", "null"] {
        let call = json!({"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":arguments}});
        let finish = json!({"index":0,"delta":{},"finish_reason":"tool_calls"});
        let stream = chat_stream(&[json!({"role":"assistant","tool_calls":[call]})], finish);
        let datas = streamed(&options(Dialect::Messages, Dialect::Chat), &stream);
        assert_eq!(datas.last().unwrap()["type"], "message_stop", "{arguments}");
        let whole = json!({"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[call]}}]});
        assert!(
            answered(&options(Dialect::Messages, Dialect::Chat), &whole)["content"][0]["input"].is_object(),
            "{arguments}"
        );
        // To a Chat client's tool of free text they are the text.
        let patch = sent("apply patch", Dialect::Messages);
        let datas =
            streamed(&options(Dialect::Chat, Dialect::Messages), &messages_stream(&tool_use(0, &patch, &[arguments])));
        assert_eq!(calls(&datas)[1]["custom"]["input"], arguments, "{arguments}");
    }
}
