//! Streams that other gateways lost, cut, merged or forged, over every client and upstream.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]

#[path = "support/answers.rs"]
mod answers;
#[path = "support/heard.rs"]
mod heard;
#[path = "support/pairs.rs"]
mod pairs;

use answers::{Say, call, chat_stream, streamed, text, think, whole};
use bytes::Bytes;
use pairs::{answered, every_pair, feed, joined, lawful, options, streamed as heard_by};
use serde_json::{Value, json};
use turnkeep_base::{ClientError, Dialect};
use turnkeep_dialect::event::Class;
use turnkeep_dialect::reply::{error_body, error_event, is_error_body, plain};
use turnkeep_dialect::request::StreamForm;

fn everything() -> Vec<Say> {
    vec![
        think("hm, sö 😀", "RXFRQg=="),
        Say::Text(["Le", "t ", "m", "e\r\n", "[", "1] ", "data: x\n\n", "[DONE]", " 😀"].map(String::from).to_vec()),
        call("c1", "f", r#"{"a":"\u00e9\ud83d\ude00 😀","b":[1,2]}"#),
    ]
}

#[test]
fn however_the_transport_cuts_a_stream_nothing_of_it_is_lost_or_merged() {
    for (client, upstream) in every_pair() {
        let stream = streamed(upstream, &everything(), "tools");
        let options = options(client, upstream);
        let (once, end) = feed(&options, stream.as_bytes(), usize::MAX >> 1);
        let facts = end.unwrap();
        let heard = heard::stream(client, &lawful(client, &joined(&once)));
        assert_eq!(heard.text, "Let me\r\n[1] data: x\n\n[DONE] 😀", "{upstream} to {client}");
        assert_eq!(heard.thinking, "hm, sö 😀", "{upstream} to {client}");
        let arguments: Value = serde_json::from_str(&heard.calls[0].2).unwrap();
        assert_eq!(arguments, json!({"a":"é😀 😀","b":[1,2]}), "{upstream} to {client}");
        for length in [1, 2, 3, 5, 64, 1000] {
            let (pieces, end) = feed(&options, stream.as_bytes(), length);
            assert_eq!(end.unwrap(), facts, "{upstream} to {client}, {length} at a time");
            assert_eq!(joined(&pieces), joined(&once), "{upstream} to {client}, {length} at a time");
        }
        // A plain answer says the same.
        let plain = heard::whole(client, &answered(&options, &whole(upstream, &everything(), "tools")));
        assert_eq!((plain.text, plain.thinking), (heard.text, heard.thinking), "{upstream} to {client}, plain");
    }
}

#[test]
fn an_answer_without_a_byte_or_without_an_event_is_no_answer() {
    for (client, upstream) in every_pair() {
        let options = options(client, upstream);
        for stream in ["", "\n\n", ": waiting\n\n", ": waiting\n\n: still\n\n"] {
            let (pieces, end) = feed(&options, stream.as_bytes(), 1 << 16);
            assert!(end.is_err(), "{upstream} to {client}: {stream:?}");
            assert!(pieces.iter().all(|piece| piece.class != Class::Terminal), "{upstream} to {client}: {stream:?}");
        }
        for body in ["", " ", "null", "{}", "[]", "<html>"] {
            assert!(plain(&options, Bytes::from_static(body.as_bytes())).is_err(), "{upstream} to {client}: {body:?}");
        }
    }
}

#[test]
fn an_event_of_a_megabyte_is_one_event() {
    let long = "x".repeat(1 << 20);
    for (client, upstream) in every_pair() {
        let stream = streamed(upstream, &[Say::Text(vec![long.clone()])], "stop");
        let (pieces, end) = feed(&options(client, upstream), stream.as_bytes(), 4096);
        assert!(end.is_ok(), "{upstream} to {client}: {end:?}");
        assert_eq!(heard::stream(client, &lawful(client, &joined(&pieces))).text, long, "{upstream} to {client}");
    }
}

#[test]
fn a_comment_reaches_the_client_where_its_kind_of_client_reads_comments() {
    for dialect in [Dialect::Chat, Dialect::Responses, Dialect::Messages] {
        let stream = streamed(dialect, &[text("all")], "stop");
        let at = stream.find("\n\n").unwrap() + 2;
        let stream = format!("{}: still at work\n\n{}", &stream[..at], &stream[at..]);
        let (pieces, end) = feed(&options(dialect, dialect), stream.as_bytes(), 1 << 16);
        assert!(end.is_ok() && joined(&pieces) == stream.as_bytes(), "{dialect}: {end:?}");
    }
    // Translated, it says nothing, and breaks nothing.
    for (client, upstream) in every_pair() {
        let stream = streamed(upstream, &[text("all")], "stop").replace("data: ", ": still at work\ndata: ");
        let datas = heard_by(&options(client, upstream), &stream);
        assert_eq!(heard::stream(client, &datas).text, "all", "{upstream} to {client}");
    }
}

#[test]
fn a_responses_stream_is_complete_with_its_own_last_event() {
    for client in Dialect::ALL {
        let stream = streamed(Dialect::Responses, &[text("all")], "stop");
        for more in ["", "data: [DONE]\n\n"] {
            let (pieces, end) = feed(&options(client, Dialect::Responses), format!("{stream}{more}").as_bytes(), 9);
            assert!(end.is_ok(), "{client}: {end:?}");
            assert_eq!(heard::stream(client, &lawful(client, &joined(&pieces))).text, "all", "{client}");
        }
    }
}

#[test]
fn a_last_line_without_its_blank_line_is_read() {
    for (client, upstream) in every_pair() {
        let stream = streamed(upstream, &[text("all")], "stop");
        for cut in [1, 2] {
            let short = &stream[..stream.len() - cut];
            let (pieces, end) = feed(&options(client, upstream), short.as_bytes(), 1 << 16);
            assert!(end.is_ok(), "{upstream} to {client}: {end:?}");
            if client != upstream {
                assert_eq!(heard::stream(client, &lawful(client, &joined(&pieces))).text, "all");
            }
        }
    }
}

#[test]
fn azures_chunks_without_choices_and_its_filters_lose_no_token() {
    let filters = json!({"hate":{"filtered":false,"severity":"safe"}});
    let first = json!({"id":"","object":"","created":0,"model":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":filters}],"choices":[]});
    let stream = chat_stream(
        &[
            json!({"role":"assistant","content":""}),
            json!({"content":"["}),
            json!({"content":"1"}),
            json!({"content":"]"}),
        ],
        "stop",
    )
    .replace("\"index\":0,", &format!("\"index\":0,\"content_filter_results\":{filters},"));
    for client in [Dialect::Responses, Dialect::Messages, Dialect::Gemini] {
        let datas = heard_by(&options(client, Dialect::Chat), &format!("data: {first}\n\n{stream}"));
        assert_eq!(heard::stream(client, &datas).text, "[1]", "{client}");
    }
}

#[test]
fn an_error_has_the_form_of_the_clients_dialect_and_in_a_stream_its_event() {
    let busy = ClientError::new(503, "model_overloaded", "busy");
    for dialect in Dialect::ALL {
        let (status, body) = error_body(dialect, &busy, "t1");
        assert!(status >= 500 && is_error_body(dialect, &body), "{dialect}: {}", String::from_utf8_lossy(&body));
        let event = error_event(dialect, StreamForm::Events, false, &busy, "t1");
        let text = String::from_utf8(event.to_vec()).unwrap();
        assert!(text.contains("busy") && text.ends_with("\n\n"), "{dialect}: {text}");
        match dialect {
            Dialect::Messages => assert!(text.starts_with("event: error\n"), "{text}"),
            Dialect::Responses => assert!(text.starts_with("event: "), "{text}"),
            Dialect::Chat | Dialect::Gemini => assert!(text.starts_with("data: "), "{text}"),
        }
    }
}

#[test]
fn calls_that_all_have_one_id_reach_every_client_as_calls_of_their_own() {
    for upstream in Dialect::ALL {
        let stream = streamed(upstream, &[call("same", "f", "{\"a\":1}"), call("same", "g", "{\"b\":2}")], "tools");
        for client in Dialect::ALL.into_iter().filter(|client| *client != upstream) {
            let heard = heard::stream(client, &heard_by(&options(client, upstream), &stream));
            let calls: Vec<(&str, &str)> =
                heard.calls.iter().map(|(_, name, arguments)| (name.as_str(), arguments.as_str())).collect();
            assert_eq!(calls, [("f", "{\"a\":1}"), ("g", "{\"b\":2}")], "{upstream} to {client}");
            assert_ne!(heard.calls[0].0, heard.calls[1].0, "{upstream} to {client}");
        }
    }
}
