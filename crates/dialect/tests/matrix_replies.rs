//! Answers on the four pairs of Chat and Messages, streamed and plain. Each case is written by hand once in either dialect,
//! and what a client must get out of it is said once: by what it means, not by its bytes. `matrix_every.rs` has all sixteen.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]
// A fault is made at most once per answer, and ends it.
#![allow(clippy::result_large_err)]

#[path = "matrix_replies/cases.rs"]
mod cases;
#[path = "matrix_replies/said.rs"]
mod said;

use bytes::Bytes;
use cases::{MESSAGES_END, ROLE, cases, write_chat, write_messages};
use said::{chat_plain, chat_stream, messages_plain, messages_stream};
use serde_json::Value;
use turnkeep_base::{ClientError, Dialect, FaultKind, Usage};
use turnkeep_dialect::event::Class;
use turnkeep_dialect::reply::{Facts, Piece, ReplyFault, ReplyOptions, StreamCodec, error_event, plain};
use turnkeep_dialect::request::StreamForm;
use turnkeep_dialect::{chat, messages};
use turnkeep_wire::sse;

fn options(client: Dialect, upstream: Dialect) -> ReplyOptions {
    ReplyOptions {
        client,
        upstream,
        model: "asked".into(),
        usage_wanted: true,
        choices: 1,
        id: "own".into(),
        created: 7,
        max_event: 1 << 20,
        asked: Default::default(),
    }
}

/// Everything that the codec gives, with the fault it ended by.
fn feed(options: &ReplyOptions, stream: &str, length: usize) -> (Vec<Piece>, Result<Facts, ReplyFault>) {
    let mut codec = StreamCodec::new(options);
    let mut pieces = Vec::new();
    for chunk in stream.as_bytes().chunks(length) {
        if let Err(fault) = codec.feed(Bytes::copy_from_slice(chunk), &mut pieces) {
            return (pieces, Err(fault));
        }
    }
    let end = codec.finish(&mut pieces).map(|()| codec.facts().clone());
    (pieces, end)
}

/// The data of a client's stream, which must be in the dialect's legal order to its end.
fn lawful(client: Dialect, bytes: &[u8]) -> Vec<Value> {
    let mut reader = sse::Reader::new(1 << 20);
    reader.push(Bytes::copy_from_slice(bytes));
    let (mut chat, mut messages) = (chat::order::Order::default(), messages::order::Order::default());
    let mut datas = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        let order = match client {
            Dialect::Chat => chat.frame(&frame),
            Dialect::Messages => messages.frame(&frame),
            Dialect::Responses | Dialect::Gemini => panic!("{client} is not one of the pair"),
        };
        order.unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&frame.raw)));
        datas.extend(frame.data.and_then(|data| serde_json::from_slice(&data).ok()));
    }
    match client {
        Dialect::Chat => chat.finish().unwrap(),
        Dialect::Messages => messages.finish().unwrap(),
        Dialect::Responses | Dialect::Gemini => panic!("{client} is not one of the pair"),
    }
    assert_eq!(reader.pending(), 0);
    datas
}

fn joined(pieces: &[Piece]) -> Vec<u8> {
    pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect()
}

#[test]
fn an_answer_means_the_same_on_the_pairs_of_chat_and_messages_streamed_and_plain() {
    for case in cases() {
        for upstream in [Dialect::Chat, Dialect::Messages] {
            let (stream, whole, said) = match upstream {
                Dialect::Chat => (write_chat(case.chat.0), &case.chat.1, &case.of_chat),
                Dialect::Messages => (write_messages(case.messages.0), &case.messages.1, &case.of_messages),
                Dialect::Responses | Dialect::Gemini => panic!("{upstream} is not one of the pair"),
            };
            for (client, said) in [Dialect::Chat, Dialect::Messages].into_iter().zip(said) {
                let what = format!("{}: {upstream} to {client}", case.name);
                let options = options(client, upstream);
                for length in [1, 7, 1 << 16] {
                    let (pieces, end) = feed(&options, &stream, length);
                    let facts = end.unwrap_or_else(|fault| panic!("{what}: {fault:?}"));
                    let datas = lawful(client, &joined(&pieces));
                    let got = match client {
                        Dialect::Chat => chat_stream(&datas),
                        Dialect::Messages => messages_stream(&datas),
                        Dialect::Responses | Dialect::Gemini => panic!("{client} is not one of the pair"),
                    };
                    assert_eq!(&got, said, "{what}, streamed");
                    assert_eq!(
                        facts.usage,
                        Some(Usage { input: 7, cache_read: 2, cache_write: 1, output: 5, reasoning: 3 }),
                        "{what}"
                    );
                    let ends = pieces.iter().position(|piece| piece.class == Class::Terminal).unwrap();
                    assert!(pieces[ends..].iter().all(|piece| piece.class == Class::Terminal), "{what}");
                }
                let (body, facts) = plain(&options, serde_json::to_vec(whole).unwrap().into()).unwrap();
                let body: Value = serde_json::from_slice(&body).unwrap();
                let got = match client {
                    Dialect::Chat => chat_plain(&body),
                    Dialect::Messages => messages_plain(&body),
                    Dialect::Responses | Dialect::Gemini => panic!("{client} is not one of the pair"),
                };
                assert_eq!(&got, said, "{what}, plain");
                assert_eq!(facts.usage.map(|usage| usage.total()), Some(15), "{what}");
            }
        }
    }
}

#[test]
fn an_error_in_a_stream_is_a_fault_on_the_pairs_of_chat_and_messages_and_its_end_is_lawful() {
    let chat_error =
        "data: {\"error\":{\"message\":\"busy\",\"type\":\"server_error\",\"code\":\"server_is_overloaded\"}}\n\n";
    let messages_error =
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n";
    let (_, chat_text) = (write_chat(&[]), write_chat(&[ROLE, r#""delta":{"content":"so far"},"finish_reason":null"#]));
    let chat_text = chat_text.replace("data: [DONE]\n\n", "");
    let messages_text = write_messages(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"so far"}}"#,
    ]);
    let messages_text = messages_text.replace("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", "");
    let start = messages_text.split_inclusive("\n\n").next().unwrap().to_owned();
    for client in [Dialect::Chat, Dialect::Messages] {
        for (upstream, before, error) in [
            (Dialect::Chat, String::new(), chat_error),
            (Dialect::Chat, chat_text.clone(), chat_error),
            (Dialect::Messages, String::new(), messages_error),
            (Dialect::Messages, start.clone(), messages_error),
            (Dialect::Messages, messages_text.clone(), messages_error),
        ] {
            for length in [1, 1 << 16] {
                let (pieces, end) = feed(&options(client, upstream), &format!("{before}{error}"), length);
                let fault = end.unwrap_err();
                assert_eq!(fault.kind, FaultKind::ModelOverloaded, "{upstream} to {client}");
                assert!(pieces.iter().all(|piece| piece.class != Class::Terminal));
                let content = pieces.iter().any(|piece| piece.class == Class::Answer);
                assert_eq!(content, before.contains("so far"), "{upstream} to {client}");
                // What the client has, with our own error behind it, ends as its dialect's streams may end.
                let mut bytes = joined(&pieces);
                let busy = ClientError::new(503, "model_overloaded", "busy");
                bytes.extend_from_slice(&error_event(client, StreamForm::Events, true, &busy, "t1"));
                let datas = lawful(client, &bytes);
                assert_eq!(datas.last().unwrap()["error"]["message"], "busy");
            }
        }
    }
}

#[test]
fn a_plain_answer_that_is_an_error_is_a_fault_on_the_pairs_of_chat_and_messages() {
    for client in [Dialect::Chat, Dialect::Messages] {
        for (upstream, body) in [
            (Dialect::Chat, r#"{"error":{"message":"busy","type":"server_error","code":"server_is_overloaded"}}"#),
            (Dialect::Messages, r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#),
        ] {
            let fault = plain(&options(client, upstream), Bytes::from_static(body.as_bytes())).unwrap_err();
            assert_eq!(fault.kind, FaultKind::ModelOverloaded, "{upstream} to {client}");
        }
    }
}

#[test]
fn a_block_after_the_reason_of_the_end_is_a_fault() {
    let late = write_messages(&[
        MESSAGES_END,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"late"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
    ]);
    let (_, end) = feed(&options(Dialect::Chat, Dialect::Messages), &late, 1 << 16);
    assert_eq!(end.unwrap_err().kind, FaultKind::MalformedResponse);
}
