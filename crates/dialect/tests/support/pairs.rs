//! Requests and answers over any pair of dialects: reading, sending on, and the client's stream held against its
//! dialect's legal order.
//!
//! Included by `#[path = "support/pairs.rs"] mod pairs;`.

#![allow(dead_code, reason = "each test file uses a part of it")]
// A fault is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

use bytes::Bytes;
use serde_json::{Value, json};
use std::sync::Arc;
use turnkeep_base::Dialect;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::reply::{Asked, Facts, Piece, ReplyFault, ReplyOptions, StreamCodec, plain};
use turnkeep_dialect::request::{ClientRequest, InPath, Operation, StreamForm, read, read_in_path};
use turnkeep_dialect::tool_names::ToolNames;
use turnkeep_dialect::{chat, gemini, messages, responses};
use turnkeep_wire::sse;

/// Every client with every upstream.
pub fn every_pair() -> impl Iterator<Item = (Dialect, Dialect)> {
    Dialect::ALL.into_iter().flat_map(|client| Dialect::ALL.map(|upstream| (client, upstream)))
}

pub fn read_body(client: Dialect, body: &[u8]) -> Result<ClientRequest, Invalid> {
    let body = Bytes::copy_from_slice(body);
    match client {
        Dialect::Chat | Dialect::Responses | Dialect::Messages => read(client, Operation::Generate, body),
        Dialect::Gemini => {
            let path = InPath { model: "m".into(), stream: false, form: StreamForm::Events };
            read_in_path(Operation::Generate, path, body)
        }
    }
}

#[track_caller]
pub fn request(client: Dialect, body: &Value) -> ClientRequest {
    read_body(client, body.to_string().as_bytes()).unwrap_or_else(|error| panic!("{client}: {error}: {body}"))
}

pub fn options(client: Dialect, upstream: Dialect) -> ReplyOptions {
    ReplyOptions {
        client,
        upstream,
        model: "asked".into(),
        usage_wanted: true,
        choices: 1,
        id: "own".into(),
        created: 7,
        max_event: 1 << 24,
        asked: Asked { body: Bytes::from_static(b"{\"model\":\"asked\",\"input\":\"q\"}"), ..Asked::default() },
    }
}

/// As the answer to this request, whose tools the upstream got under these names.
pub fn options_of(request: &ClientRequest, upstream: Dialect, names: ToolNames) -> ReplyOptions {
    let asked = Asked { body: request.body.clone(), names: Arc::new(names), ..Asked::default() };
    ReplyOptions { asked, ..options(request.dialect, upstream) }
}

/// Everything that the codec gives, with the fault it ended by.
pub fn feed(options: &ReplyOptions, stream: &[u8], length: usize) -> (Vec<Piece>, Result<Facts, ReplyFault>) {
    let mut codec = StreamCodec::new(options);
    let mut pieces = Vec::new();
    for chunk in stream.chunks(length) {
        if let Err(fault) = codec.feed(Bytes::copy_from_slice(chunk), &mut pieces) {
            return (pieces, Err(fault));
        }
    }
    let end = codec.finish(&mut pieces).map(|()| codec.facts().clone());
    (pieces, end)
}

pub fn joined(pieces: &[Piece]) -> Vec<u8> {
    pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect()
}

/// The data of a client's stream, which must be in the dialect's legal order to its end.
#[track_caller]
pub fn lawful(client: Dialect, bytes: &[u8]) -> Vec<Value> {
    let mut reader = sse::Reader::new(1 << 24);
    reader.push(Bytes::copy_from_slice(bytes));
    let (mut chat, mut messages) = (chat::order::Order::default(), messages::order::Order::default());
    let (mut responses, mut gemini) = (responses::order::Order::default(), gemini::order::Order::default());
    let mut datas = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        let order = match client {
            Dialect::Chat => chat.frame(&frame),
            Dialect::Responses => responses.frame(&frame),
            Dialect::Messages => messages.frame(&frame),
            Dialect::Gemini => gemini.frame(&frame),
        };
        order.unwrap_or_else(|error| panic!("{client}: {error}: {:?}", String::from_utf8_lossy(&frame.raw)));
        datas.extend(frame.data.and_then(|data| serde_json::from_slice(&data).ok()));
    }
    let end = match client {
        Dialect::Chat => chat.finish(),
        Dialect::Responses => responses.finish(),
        Dialect::Messages => messages.finish(),
        Dialect::Gemini => gemini.finish(),
    };
    end.unwrap_or_else(|error| panic!("{client}: {error}: {:?}", String::from_utf8_lossy(bytes)));
    assert_eq!(reader.pending(), 0);
    datas
}

/// The data of the client's events of a whole stream.
#[track_caller]
pub fn streamed(options: &ReplyOptions, stream: &str) -> Vec<Value> {
    let (pieces, end) = feed(options, stream.as_bytes(), 1 << 16);
    if let Err(fault) = end {
        panic!("{} to {}: {fault:?}\n{stream}", options.upstream, options.client);
    }
    lawful(options.client, &joined(&pieces))
}

/// The client's plain answer.
#[track_caller]
pub fn answered(options: &ReplyOptions, whole: &Value) -> Value {
    let (body, _) = plain(options, whole.to_string().into())
        .unwrap_or_else(|fault| panic!("{} to {}: {fault:?}", options.upstream, options.client));
    serde_json::from_slice(&body).unwrap()
}

/// A question in the client's dialect, with the functions of these names as tools.
pub fn ask(client: Dialect, tools: &[&str]) -> Value {
    let schema = json!({"type":"object","properties":{}});
    let function = |name: &&str| match client {
        Dialect::Chat => json!({"type":"function","function":{"name":name,"parameters":schema}}),
        Dialect::Responses => json!({"type":"function","name":name,"parameters":schema}),
        Dialect::Messages => json!({"name":name,"input_schema":schema}),
        Dialect::Gemini => json!({"name":name,"parametersJsonSchema":schema}),
    };
    let list: Vec<Value> = tools.iter().map(function).collect();
    let mut body = match client {
        Dialect::Chat => json!({"model":"m","messages":[{"role":"user","content":"q"}]}),
        Dialect::Responses => json!({"model":"m","store":false,"input":[{"role":"user","content":"q"}]}),
        Dialect::Messages => json!({"model":"m","max_tokens":9000,"messages":[{"role":"user","content":"q"}]}),
        Dialect::Gemini => json!({"contents":[{"role":"user","parts":[{"text":"q"}]}]}),
    };
    if !list.is_empty() {
        body["tools"] = if client == Dialect::Gemini { json!([{"functionDeclarations":list}]) } else { json!(list) };
    }
    body
}

/// The client's conversation, to which more is added.
pub fn conversation(client: Dialect, body: &mut Value) -> &mut Vec<Value> {
    let field = match client {
        Dialect::Chat | Dialect::Messages => "messages",
        Dialect::Responses => "input",
        Dialect::Gemini => "contents",
    };
    body[field].as_array_mut().unwrap()
}
