//! A recorded answer, used again: streamed or plain, with usage or without, as it was first wanted or not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's functions, too, end by panicking")]
#![allow(clippy::result_large_err)] // As in the library.

#[path = "matrix_replies/cases.rs"]
#[allow(dead_code, reason = "shared with the matrix of replies")]
mod cases;
#[path = "matrix_replies/said.rs"]
#[allow(dead_code, reason = "shared with the matrix of replies")]
mod said;

use bytes::Bytes;
use cases::{CHAT_USAGE, cases, write_chat, write_messages};
use proptest::prelude::*;
use said::{Said, chat_plain, chat_stream, messages_plain, messages_stream};
use serde_json::{Value, json};
use turnkeep_base::{Dialect, Usage};
use turnkeep_dialect::event::{Class, Event, Finish};
use turnkeep_dialect::recorded::{Recorded, may_be_cached, replay};
use turnkeep_dialect::reply::{Asked, Facts, Piece, ReplyOptions, StreamCodec, plain};
use turnkeep_dialect::request::{Operation, StreamForm};
use turnkeep_dialect::{chat, gemini, messages, responses};
use turnkeep_wire::sse;

const USAGE: Usage = Usage { input: 7, cache_read: 2, cache_write: 1, output: 5, reasoning: 3 };

fn options(client: Dialect, upstream: Dialect, usage_wanted: bool) -> ReplyOptions {
    ReplyOptions {
        client,
        upstream,
        model: "asked".into(),
        usage_wanted,
        choices: 1,
        id: "again".into(),
        created: 99,
        max_event: 1 << 20,
        asked: Default::default(),
    }
}

fn joined(pieces: &[Piece]) -> Bytes {
    pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect()
}

fn frames(bytes: &Bytes) -> Vec<sse::Frame> {
    let mut reader = sse::Reader::new(1 << 20);
    reader.push(bytes.clone());
    let frames = std::iter::from_fn(|| reader.next_frame().unwrap()).collect();
    assert_eq!(reader.pending(), 0);
    frames
}

/// The data of a stream, which must be in the dialect's legal order to its end.
fn lawful(dialect: Dialect, bytes: &Bytes) -> Vec<Value> {
    let (mut chat, mut messages) = (chat::order::Order::default(), messages::order::Order::default());
    let (mut responses, mut gemini) = (responses::order::Order::default(), gemini::order::Order::default());
    let mut datas = Vec::new();
    for frame in frames(bytes) {
        let order = match dialect {
            Dialect::Chat => chat.frame(&frame),
            Dialect::Messages => messages.frame(&frame),
            Dialect::Responses => responses.frame(&frame),
            Dialect::Gemini => gemini.frame(&frame),
        };
        order.unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&frame.raw)));
        datas.extend(frame.data.and_then(|data| serde_json::from_slice(&data).ok()));
    }
    match dialect {
        Dialect::Chat => chat.finish().unwrap(),
        Dialect::Messages => messages.finish().unwrap(),
        Dialect::Responses => responses.finish().unwrap(),
        Dialect::Gemini => gemini.finish().unwrap(),
    }
    datas
}

/// As a client reads it; of Responses and Gemini, what a Chat client would be told.
fn understood(dialect: Dialect, stream: bool, bytes: &Bytes) -> Said {
    let whole = || serde_json::from_slice(bytes).unwrap();
    match (dialect, stream) {
        (Dialect::Chat, true) => chat_stream(&lawful(dialect, bytes)),
        (Dialect::Messages, true) => messages_stream(&lawful(dialect, bytes)),
        (Dialect::Chat, false) => chat_plain(&whole()),
        (Dialect::Messages, false) => messages_plain(&whole()),
        (Dialect::Responses | Dialect::Gemini, _) => {
            if stream {
                lawful(dialect, bytes);
            }
            let options = options(Dialect::Chat, dialect, true);
            let chat = chat::reply_encode::plain(&events(dialect, stream, bytes), &options);
            chat_plain(&serde_json::from_slice(&chat).unwrap())
        }
    }
}

/// The answer as events, the deltas of a block put together, ids and all.
fn events(dialect: Dialect, stream: bool, bytes: &Bytes) -> Vec<Event> {
    let options = options(dialect, dialect, true);
    let all = match (dialect, stream) {
        (Dialect::Chat, false) => chat::reply_decode::plain_strict(bytes, &options).unwrap().0,
        (Dialect::Messages, false) => messages::reply_decode::plain_strict(bytes, &options).unwrap(),
        (Dialect::Chat, true) => {
            let mut decoder = chat::reply_decode::StreamDecoder::strict(&options);
            let mut events = Vec::new();
            for frame in frames(bytes) {
                decoder.frame(&frame, &mut events).unwrap();
            }
            decoder.settle(&mut events);
            events
        }
        (Dialect::Messages, true) => {
            let mut decoder = messages::reply_decode::StreamDecoder::strict(&options);
            let mut events = Vec::new();
            for frame in frames(bytes) {
                decoder.frame(&frame, &mut events).unwrap();
            }
            events
        }
        (Dialect::Responses, false) => responses::reply_decode::plain_strict(bytes, &options).unwrap().0,
        (Dialect::Gemini, false) => gemini::reply_decode::plain_strict(bytes, &options).unwrap(),
        (Dialect::Responses, true) => {
            let mut decoder = responses::reply_decode::StreamDecoder::strict(&options);
            let mut events = Vec::new();
            for frame in frames(bytes) {
                decoder.frame(&frame, &mut events).unwrap();
            }
            events
        }
        (Dialect::Gemini, true) => {
            let mut decoder = gemini::reply_decode::StreamDecoder::strict(&options);
            let mut events = Vec::new();
            for frame in frames(bytes) {
                decoder.frame(&frame, &mut events).unwrap();
            }
            decoder.settle(&mut events);
            events
        }
    };
    folded(all)
}

fn folded(all: Vec<Event>) -> Vec<Event> {
    use turnkeep_dialect::event::Delta;
    let mut out: Vec<Event> = Vec::new();
    let mut tail = Vec::new();
    for event in all {
        match event {
            // What is known at the start, and when usage is told, is the form's own.
            Event::Start { id, model, usage: _ } => out.push(Event::Start { id, model, usage: None }),
            Event::Usage(_) | Event::Finish { .. } => tail.push(event),
            Event::Delta { block, delta } => {
                let kind = std::mem::discriminant(&delta);
                let same = |known: &&mut Event| matches!(known, Event::Delta { block: b, delta } if *b == block && std::mem::discriminant(delta) == kind);
                let text = |delta| match delta {
                    Delta::Text(text) | Delta::Thinking(text) | Delta::Signature(text) | Delta::Arguments(text) => text,
                };
                match out.iter_mut().find(same) {
                    Some(Event::Delta { block: _, delta: known }) => {
                        let (Delta::Text(known)
                        | Delta::Thinking(known)
                        | Delta::Signature(known)
                        | Delta::Arguments(known)) = known;
                        known.push_str(&text(delta));
                    }
                    Some(_) | None => out.push(Event::Delta { block, delta }),
                }
            }
            Event::BlockStart { .. } | Event::BlockStop { .. } | Event::End => out.push(event),
        }
    }
    // No arguments mean these.
    out.retain(|event| !matches!(event, Event::Delta { block: _, delta: Delta::Arguments(none) } if none == "{}"));
    // Blocks one after the other, however they grew.
    let block = |event: &Event| match event {
        Event::Start { .. } => 0,
        Event::BlockStart { block, .. } => block * 4 + 1,
        Event::Delta { block, delta: Delta::Signature(_) } => block * 4 + 3,
        Event::Delta { block, .. } => block * 4 + 2,
        Event::BlockStop { block } => block * 4 + 4,
        Event::Finish { .. } | Event::Usage(_) | Event::End => u32::MAX,
    };
    out.sort_by_key(block);
    tail.sort_by_key(|event| matches!(event, Event::Finish { .. }));
    out.extend(tail);
    out
}

/// The answer of an upstream as its client gets it, and what was read in passing.
fn record(upstream: Dialect, client: Dialect, stream: bool, usage_wanted: bool, bytes: &str) -> Recorded {
    let options = ReplyOptions { created: 7, ..options(client, upstream, usage_wanted) };
    if !stream {
        let (bytes, facts) = plain(&options, Bytes::copy_from_slice(bytes.as_bytes())).unwrap();
        return Recorded { dialect: client, stream, bytes, facts };
    }
    let (mut codec, mut pieces) = (StreamCodec::new(&options), Vec::new());
    codec.feed(Bytes::copy_from_slice(bytes.as_bytes()), &mut pieces).unwrap();
    codec.finish(&mut pieces).unwrap();
    Recorded { dialect: client, stream, bytes: joined(&pieces), facts: codec.facts().clone() }
}

fn check_pieces(pieces: &[Piece], what: &str) {
    assert!(pieces.is_sorted_by_key(|piece| piece.class), "{what}");
    let terminal = pieces.iter().filter(|piece| piece.class == Class::Terminal).count();
    assert_eq!((terminal, pieces.last().map(|piece| piece.class)), (1, Some(Class::Terminal)), "{what}");
}

#[test]
fn every_answer_is_the_same_answer_in_every_form_it_is_wanted() {
    for case in cases() {
        for (upstream, client) in Dialect::ALL.into_iter().flat_map(|up| Dialect::ALL.map(|client| (up, client))) {
            let (streamed, whole) = match upstream {
                Dialect::Chat => (write_chat(case.chat.0), case.chat.1.to_string()),
                Dialect::Messages => (write_messages(case.messages.0), case.messages.1.to_string()),
                // Their own writers are tested where they are; here an answer in their form is one that we wrote.
                Dialect::Responses | Dialect::Gemini => continue,
            };
            for (stream, had_usage) in [(true, true), (true, false), (false, true)] {
                let first = record(upstream, client, stream, had_usage, if stream { &streamed } else { &whole });
                let mut first_said = understood(client, stream, &first.bytes);
                first_said.usage = None;
                for (again, wanted) in [(true, true), (true, false), (false, true), (false, false)] {
                    let what = format!(
                        "{}: {upstream} to {client}, stream {stream}, usage {had_usage}, then {again}, {wanted}",
                        case.name
                    );
                    let pieces = replay(&first, &options(client, upstream, wanted), again)
                        .unwrap_or_else(|fault| panic!("{what}: {fault:?}"));
                    check_pieces(&pieces, &what);
                    let bytes = joined(&pieces);
                    let has_choice = client == Dialect::Chat && again;
                    if again == stream && (had_usage == wanted || !has_choice) {
                        assert_eq!(bytes, first.bytes, "{what}");
                    }
                    let mut said = understood(client, again, &bytes);
                    let usage = if has_choice && !wanted { None } else { case.of_chat[0].usage };
                    // Gemini has no word for what was written to a cache: it is input.
                    let usage = usage.map(|[input, read, written, output, reasoning]| match client {
                        Dialect::Chat | Dialect::Responses | Dialect::Messages => {
                            [input, read, written, output, reasoning]
                        }
                        Dialect::Gemini => [input + written, read, 0, output, reasoning],
                    });
                    assert_eq!(said.usage.take(), usage, "{what}");
                    if again != stream && first_said.finish == "stop" && !said.calls.is_empty() {
                        // A server that says `stop` where it calls tools is put right where its answer is written anew.
                        assert_eq!(std::mem::replace(&mut said.finish, "stop".into()), "tool_calls", "{what}");
                    }
                    assert_eq!(said, first_said, "{what}");
                    let (was, is) = (events(client, stream, &first.bytes), events(client, again, &bytes));
                    let no_usage = |all: Vec<Event>| -> Vec<Event> {
                        all.into_iter().filter(|event| !matches!(event, Event::Usage(_))).collect()
                    };
                    assert_eq!(no_usage(was), no_usage(is), "{what}");
                }
            }
        }
    }
}

#[test]
fn field_fault_e20_a_streamed_use_of_an_answer_has_usage_when_it_is_wanted() {
    let text = write_chat(&[
        r#""delta":{"role":"assistant","content":"a"},"finish_reason":null"#,
        r#""delta":{},"finish_reason":"stop""#,
        CHAT_USAGE,
    ]);
    let without = record(Dialect::Chat, Dialect::Chat, true, false, &text);
    assert!(!String::from_utf8_lossy(&without.bytes).contains("prompt_tokens"));
    let with = joined(&replay(&without, &options(Dialect::Chat, Dialect::Chat, true), true).unwrap());
    let datas = lawful(Dialect::Chat, &with);
    assert_eq!(datas.last().unwrap()["usage"]["prompt_tokens"], 10);
    assert!(with.ends_with(b"data: [DONE]\n\n"));
    // An upstream that never says [DONE].
    let bare = Recorded { bytes: without.bytes.slice(..without.bytes.len() - "data: [DONE]\n\n".len()), ..without };
    let with = joined(&replay(&bare, &options(Dialect::Chat, Dialect::Chat, true), true).unwrap());
    assert!(String::from_utf8_lossy(&with).contains("\"cached_tokens\":2"));
}

#[test]
fn a_usage_that_the_record_lacks_comes_from_its_facts() {
    let bodies = [
        (
            Dialect::Chat,
            r#"{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}"#,
        ),
        (
            Dialect::Chat,
            r#"{"usage":null,"choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}] }"#,
        ),
        (Dialect::Messages, r#"{"type":"message","id":"msg_m","content":[],"stop_reason":"end_turn"}"#),
    ];
    for (dialect, body) in bodies {
        let facts = Facts { usage: Some(USAGE), ..Facts::default() };
        let record = Recorded { dialect, stream: false, bytes: Bytes::from_static(body.as_bytes()), facts };
        for again in [false, true] {
            let bytes = joined(&replay(&record, &options(dialect, dialect, true), again).unwrap());
            assert_eq!(understood(dialect, again, &bytes).usage, Some([7, 2, 1, 5, 3]), "{body} {again}");
        }
    }
}

#[test]
fn id_model_and_time_stay_the_answers_own() {
    let body = r#"{"id":"gen-77","object":"chat.completion","created":1234,"model":"vendor/m","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}"#;
    let record = record(Dialect::Chat, Dialect::Chat, false, true, body);
    let bytes = joined(&replay(&record, &options(Dialect::Chat, Dialect::Chat, true), true).unwrap());
    for data in lawful(Dialect::Chat, &bytes) {
        assert_eq!(
            (&data["id"], &data["created"], &data["model"]),
            (&json!("gen-77"), &json!(1234), &json!("vendor/m"))
        );
    }
    let body = r#"{"id":"vendor:1","type":"message","role":"assistant","model":"v","stop_reason":"tool_use","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"f:0","name":"f","input":{}}]}"#;
    let record = self::record(Dialect::Messages, Dialect::Messages, false, true, body);
    let bytes = joined(&replay(&record, &options(Dialect::Messages, Dialect::Messages, true), true).unwrap());
    // Not in the dialect's own letters, but what its client would have got.
    let datas: Vec<Value> =
        frames(&bytes).into_iter().map(|frame| serde_json::from_slice(&frame.data.unwrap()).unwrap()).collect();
    assert_eq!(datas[0]["message"]["id"], "vendor:1");
    assert!(datas.iter().any(|data| data["content_block"]["id"] == "f:0"));
}

#[test]
fn an_answer_that_has_one_form_only_keeps_it_and_is_refused_in_another() {
    let choice =
        |index: u64| json!({"index":index,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"});
    let mut judged = choice(0);
    judged["logprobs"] = json!({"content":[]});
    let mut spoken = choice(0);
    spoken["message"]["audio"] = json!({"id":"a"});
    let chats = [json!([choice(0), choice(1)]), json!([judged]), json!([spoken])];
    let chats = chats.into_iter().map(|choices| (Dialect::Chat, json!({"id":"x","choices":choices})));
    let cited = json!([{"type":"text","text":"a","citations":[{"type":"page_location"}]}]);
    let hosted = json!([{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]);
    let whole = |content: Value| {
        (
            Dialect::Messages,
            json!({"type":"message","content":content,"stop_reason":"end_turn","usage":{"output_tokens":1}}),
        )
    };
    for (dialect, body) in chats.chain([whole(cited), whole(hosted)]) {
        let record = Recorded { dialect, stream: false, bytes: body.to_string().into(), facts: Facts::default() };
        let options = options(dialect, dialect, true);
        assert_eq!(joined(&replay(&record, &options, false).unwrap()), record.bytes);
        assert!(replay(&record, &options, true).is_err(), "{body}");
    }
    let record = Recorded {
        dialect: Dialect::Chat,
        stream: true,
        bytes: "data: {\"choices\":[]}\n\n".into(),
        facts: Facts::default(),
    };
    for again in [true, false] {
        assert!(replay(&record, &options(Dialect::Chat, Dialect::Chat, true), again).is_err());
    }
}

#[test]
fn a_long_stream_comes_in_pieces_of_a_size_worth_sending() {
    let deltas: Vec<String> =
        (0..3000).map(|_| format!("\"delta\":{{\"content\":\"{}\"}},\"finish_reason\":null", "x".repeat(60))).collect();
    let mut pieces: Vec<&str> = deltas.iter().map(String::as_str).collect();
    pieces.push(r#""delta":{},"finish_reason":"stop""#);
    let record = record(Dialect::Chat, Dialect::Chat, true, true, &write_chat(&pieces));
    let again = replay(&record, &options(Dialect::Chat, Dialect::Chat, true), true).unwrap();
    assert_eq!(joined(&again), record.bytes);
    assert!(again.len() < 20 && again.iter().all(|piece| piece.bytes.len() <= 64 << 10), "{}", again.len());
}

#[test]
fn field_faults_k1_k2_only_a_whole_answer_may_be_cached() {
    for (finish, may) in [
        (Some(Finish::Stop), true),
        (Some(Finish::StopSequence), true),
        (Some(Finish::ToolCalls), true),
        (Some(Finish::Length), false),
        (Some(Finish::ContextFull), false),
        (Some(Finish::Refusal), false),
        (Some(Finish::Pause), false),
        (None, false),
    ] {
        assert_eq!(may_be_cached(&Facts { finish, ..Facts::default() }), may, "{finish:?}");
    }
    // As the codecs tell it. An error is no answer, and no facts come of it.
    let chat = |message: Value, finish: &str| {
        let choice = json!({"index":0,"message":message,"finish_reason":finish});
        record(Dialect::Chat, Dialect::Chat, false, true, &json!({"choices":[choice]}).to_string()).facts
    };
    let text = json!({"role":"assistant","content":"a"});
    assert!(may_be_cached(&chat(text.clone(), "stop")));
    for finish in ["length", "max_tokens", "content_filter"] {
        assert!(!may_be_cached(&chat(text.clone(), finish)), "{finish}");
    }
    assert!(!may_be_cached(&chat(json!({"role":"assistant","content":null,"refusal":"no"}), "stop")));
    let streamed = write_chat(&[
        r#""delta":{"role":"assistant","refusal":"no"},"finish_reason":null"#,
        r#""delta":{},"finish_reason":"stop""#,
    ]);
    assert!(!may_be_cached(&record(Dialect::Chat, Dialect::Chat, true, true, &streamed).facts));
    // One of several choices that was cut short spoils them all.
    let choice = |index: u64, finish: &str| json!({"index":index,"message":{"role":"assistant","content":"a"},"finish_reason":finish});
    let several = json!({"choices":[choice(0, "stop"), choice(1, "length")]}).to_string();
    assert!(!may_be_cached(&record(Dialect::Chat, Dialect::Chat, false, true, &several).facts));
    for reason in ["max_tokens", "refusal", "pause_turn", "model_context_window_exceeded"] {
        let body = json!({"type":"message","content":[],"stop_reason":reason}).to_string();
        assert!(!may_be_cached(&record(Dialect::Messages, Dialect::Messages, false, true, &body).facts), "{reason}");
    }
    let error = Bytes::from_static(br#"{"error":{"message":"no","type":"server_error"}}"#);
    assert!(plain(&options(Dialect::Chat, Dialect::Chat, true), error).is_err());
}

/// A Chat upstream's answer, streamed to a Gemini client in one of its two forms.
fn gemini_stream(form: StreamForm) -> (Recorded, ReplyOptions) {
    let text = write_chat(&[
        r#""delta":{"role":"assistant","content":"a"},"finish_reason":null"#,
        r#""delta":{"content":"b"},"finish_reason":null"#,
        r#""delta":{},"finish_reason":"stop""#,
        CHAT_USAGE,
    ]);
    let asked = Asked { form, ..Asked::default() };
    let options = ReplyOptions { asked, ..options(Dialect::Gemini, Dialect::Chat, true) };
    let (mut codec, mut pieces) = (StreamCodec::new(&options), Vec::new());
    codec.feed(text.into(), &mut pieces).unwrap();
    codec.finish(&mut pieces).unwrap();
    let record =
        Recorded { dialect: Dialect::Gemini, stream: true, bytes: joined(&pieces), facts: codec.facts().clone() };
    (record, options)
}

#[test]
fn a_gemini_stream_is_used_again_in_either_form_whichever_it_was_recorded_in() {
    for (was, is) in [
        (StreamForm::Events, StreamForm::Array),
        (StreamForm::Array, StreamForm::Events),
        (StreamForm::Array, StreamForm::Array),
        (StreamForm::Events, StreamForm::Events),
    ] {
        let what = format!("{was:?} {is:?}");
        let ((record, _), (wanted, options)) = (gemini_stream(was), gemini_stream(is));
        let pieces = replay(&record, &options, true).unwrap();
        check_pieces(&pieces, &what);
        let again = joined(&pieces);
        let elements = |bytes: &Bytes, form: StreamForm| -> Vec<Value> {
            match form {
                StreamForm::Events => lawful(Dialect::Gemini, bytes),
                StreamForm::Array => serde_json::from_slice(bytes).unwrap(),
            }
        };
        assert_eq!(elements(&again, is), elements(&wanted.bytes, is), "{what}");
        if was == is {
            assert_eq!(again, record.bytes, "{what}");
        }
        let plain = joined(&replay(&record, &options, false).unwrap());
        assert_eq!(understood(Dialect::Gemini, false, &plain).text, "ab", "{what}");
    }
}

#[test]
fn what_is_no_answer_of_a_model_has_one_form() {
    for operation in [Operation::CountTokens, Operation::Complete, Operation::Embed] {
        let asked = Asked { operation, ..Asked::default() };
        let options = ReplyOptions { asked, ..options(Dialect::Chat, Dialect::Chat, true) };
        let body = Bytes::from_static(br#"{"input_tokens":7}"#);
        let record = Recorded { dialect: Dialect::Chat, stream: false, bytes: body, facts: Facts::default() };
        assert_eq!(joined(&replay(&record, &options, false).unwrap()), record.bytes, "{operation:?}");
        assert!(replay(&record, &options, true).is_err(), "{operation:?}");
        let other = ReplyOptions { client: Dialect::Messages, ..options };
        assert!(replay(&record, &other, false).is_err(), "{operation:?}");
    }
}

fn some_record() -> impl Strategy<Value = Recorded> {
    let usage = prop::option::of(any::<[u64; 5]>().prop_map(|[input, cache_read, cache_write, output, reasoning]| {
        Usage { input, cache_read, cache_write, output, reasoning }
    }));
    let finish = prop::sample::select(vec![
        None,
        Some(Finish::Stop),
        Some(Finish::StopSequence),
        Some(Finish::Length),
        Some(Finish::ContextFull),
        Some(Finish::ToolCalls),
        Some(Finish::Refusal),
        Some(Finish::Pause),
    ]);
    let name = || prop::option::of("[a-zé]{1,20}");
    let facts = (usage, finish, name(), name(), any::<u64>()).prop_map(|(usage, finish, model, id, content_bytes)| {
        Facts { usage, finish, model, id, content_bytes, ..Facts::default() }
    });
    let bytes = prop::collection::vec(any::<u8>(), 0..64).prop_map(Bytes::from);
    (prop::sample::select(Dialect::ALL.to_vec()), any::<bool>(), bytes, facts)
        .prop_map(|(dialect, stream, bytes, facts)| Recorded { dialect, stream, bytes, facts })
}

proptest! {
    #[test]
    fn a_record_reads_back_as_it_was(record in some_record()) {
        prop_assert_eq!(Recorded::from_bytes(record.to_bytes()), Some(record));
    }

    #[test]
    fn what_is_cut_changed_or_of_another_version_is_no_record_and_no_panic(record in some_record(), cut in 0usize..80, at in 0usize..80, byte in any::<u8>()) {
        let bytes = record.to_bytes();
        let head = bytes.len() - record.bytes.len();
        if cut < head {
            prop_assert_eq!(Recorded::from_bytes(bytes.slice(..cut)), None);
        }
        let mut changed = bytes.to_vec();
        if let Some(place) = changed.get_mut(at) {
            *place = byte;
        }
        let read = Recorded::from_bytes(changed.into());
        if at < 9 && byte != bytes[at] {
            prop_assert_eq!(read, None);
        }
    }

    #[test]
    fn garbage_is_no_record_and_replays_as_nothing(bytes in prop::collection::vec(any::<u8>(), 0..200), stream in any::<bool>(), again in any::<bool>()) {
        prop_assert_eq!(Recorded::from_bytes(bytes.clone().into()), None);
        for dialect in Dialect::ALL {
            let record = Recorded { dialect, stream, bytes: bytes.clone().into(), facts: Facts::default() };
            prop_assert!(replay(&record, &options(dialect, dialect, true), again).is_err());
        }
    }
}
