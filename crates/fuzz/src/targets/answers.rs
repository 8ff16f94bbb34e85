//! Answers of upstreams, on their way to a client of each dialect.

use crate::cuts;
use crate::differential::{self, Outcome, Through, both_ways, both_ways_whole, options, through};
use bytes::Bytes;
use serde_json::Value;
use turnkeep_base::{Dialect, FaultKind};
use turnkeep_dialect::event::Class;
use turnkeep_dialect::reply::{Asked, Progress, ReplyOptions, plain};
use turnkeep_dialect::request::Operation;
use turnkeep_dialect::{chat, count, gemini, messages, responses};

/// Streamed Chat answers.
pub fn chat_stream(data: &[u8]) {
    streamed(Dialect::Chat, data);
}

/// Streamed Responses answers.
pub fn responses_stream(data: &[u8]) {
    streamed(Dialect::Responses, data);
}

/// Streamed Messages answers.
pub fn messages_stream(data: &[u8]) {
    streamed(Dialect::Messages, data);
}

/// Streamed Gemini answers.
pub fn gemini_stream(data: &[u8]) {
    streamed(Dialect::Gemini, data);
}

/// Plain Chat answers.
pub fn chat_whole(data: &[u8]) {
    whole(Dialect::Chat, data);
}

/// Plain Responses answers.
pub fn responses_whole(data: &[u8]) {
    whole(Dialect::Responses, data);
}

/// Plain Messages answers.
pub fn messages_whole(data: &[u8]) {
    whole(Dialect::Messages, data);
}

/// Plain Gemini answers.
pub fn gemini_whole(data: &[u8]) {
    whole(Dialect::Gemini, data);
}

fn shown(data: &[u8]) -> String {
    String::from_utf8_lossy(&data[..data.len().min(4000)]).into_owned()
}

fn streamed(upstream: Dialect, data: &[u8]) {
    let beginning = cuts::beginning(data);
    for client in Dialect::ALL {
        let options = options(client, upstream);
        let one = through(&options, &[data]);
        for way in &cuts::ways(data)[1..] {
            same(client, &one, &through(&options, way));
        }
        judged(&options, data, &one);
        judged(&options, beginning, &through(&options, &[beginning]));
    }
    agree(upstream, both_ways(upstream, data), data);
}

/// Whatever the bytes, the two ways never say different things, and what is refused when it is passed on is not read as a
/// whole answer, but for what is wrong with a choice beyond the first.
fn agree(upstream: Dialect, outcome: Outcome, data: &[u8]) {
    match outcome {
        Outcome::Same(_) | Outcome::Refused | Outcome::PassedOnly(_) => {}
        Outcome::ReadOnly(words) => {
            assert!(has_several(data), "{upstream}: read, and refused when passed on: {words}: {}", shown(data));
        }
        Outcome::Different(words) => assert!(words.is_empty(), "{upstream}: {words}"),
    }
}

/// A chunk, or the whole, has several choices or candidates, or one that is not the first.
fn has_several(data: &[u8]) -> bool {
    let several = |tree: &Value| {
        let all = ["choices", "candidates"].iter().flat_map(|name| tree[name].as_array().into_iter().flatten());
        all.clone().count() > 1 || all.clone().any(|one| one["index"].as_u64().unwrap_or(0) > 0)
    };
    let frames = differential::frames(data).unwrap_or_default();
    let datas = frames.iter().filter_map(|frame| frame.data.as_deref()).chain(std::iter::once(data));
    datas.filter_map(|data| serde_json::from_slice::<Value>(data).ok()).any(|tree| several(&tree))
}

fn same(client: Dialect, one: &Through, other: &Through) {
    assert_eq!(one.fault, other.fault, "{client}: another fault in other pieces");
    assert_eq!((one.progress, &one.facts), (other.progress, &other.facts), "{client}: other facts in other pieces");
    assert_eq!(one.pieces, other.pieces, "{client}: another answer in other pieces");
}

fn judged(options: &ReplyOptions, data: &[u8], told: &Through) {
    let ReplyOptions { client, upstream, .. } = options;
    if let Some(fault) = &told.fault {
        assert_ne!(
            fault.kind,
            FaultKind::GatewayBug,
            "{upstream} to {client}: {}: {}",
            fault.evidence.detail,
            shown(data)
        );
        assert_ne!(told.progress, Progress::Done, "{upstream} to {client}: a fault after the end");
        super::waits::bounded(&fault.declared);
    } else {
        assert_eq!(told.progress, Progress::Done, "{upstream} to {client}: neither a fault nor an end");
        assert!(
            ends(*upstream, data),
            "{upstream} to {client}: complete without the upstream's own end: {}",
            shown(data)
        );
        assert!(
            told.pieces.iter().any(|piece| piece.class == Class::Terminal),
            "{upstream} to {client}: an end that is not written"
        );
    }
    let last = told.pieces.iter().map(|piece| piece.class).max();
    if let Some(at) = told.pieces.iter().position(|piece| piece.class == Class::Terminal) {
        assert_eq!(last, Some(Class::Terminal));
        let after = told.pieces[at..].iter().filter(|piece| piece.class == Class::Answer).count();
        assert_eq!(after, 0, "{upstream} to {client}: an answer behind the end: {}", shown(data));
    }
    let given = told.bytes();
    if client == upstream {
        if matches!(client, Dialect::Chat | Dialect::Messages) {
            assert!(data.starts_with(&given), "{client}: not byte for byte: {}", shown(&given));
        }
    } else {
        lawful(*client, &given, told.fault.is_none());
    }
}

/// Whether the upstream has said somewhere that the answer is complete. By another parser where that reads the data, else
/// by the word.
fn ends(upstream: Dialect, data: &[u8]) -> bool {
    differential::frames(data).unwrap_or_default().iter().any(|frame| {
        let Some(data) = &frame.data else { return false };
        let has = |word: &str| data.windows(word.len()).any(|window| window == word.as_bytes());
        let Ok(tree) = serde_json::from_slice::<Value>(data) else {
            let word = match upstream {
                Dialect::Chat => return has("[DONE]") || has("finish_reason"),
                Dialect::Responses => "response.",
                Dialect::Messages => "message_stop",
                Dialect::Gemini => return has("finishReason") || has("blockReason"),
            };
            return has(word);
        };
        // Messages goes by the event's name where there is one; elsewhere a frame whose data has no type is of the event's.
        let named = match (upstream, tree["type"].as_str(), &frame.event) {
            (Dialect::Responses, None | Some(""), Some(event)) => {
                matches!(&event[..], b"response.completed" | b"response.incomplete")
            }
            (Dialect::Messages, _, Some(event)) => &event[..] == b"message_stop",
            (_, _, _) => false,
        };
        named || says_end(upstream, &tree) || (upstream == Dialect::Gemini && is_twice(data))
    })
}

fn says_end(upstream: Dialect, tree: &Value) -> bool {
    let members = |name: &str| tree[name].as_array().into_iter().flatten();
    match upstream {
        Dialect::Chat => members("choices").any(|choice| choice["finish_reason"].is_string()),
        Dialect::Responses => matches!(tree["type"].as_str(), Some("response.completed" | "response.incomplete")),
        Dialect::Messages => tree["type"] == "message_stop",
        Dialect::Gemini => {
            // Also in the envelope that Google's own clients get.
            let said = |tree: &Value| {
                let mut all = tree["candidates"].as_array().into_iter().flatten();
                all.any(|one| one["finishReason"].is_string()) || tree["promptFeedback"]["blockReason"].is_string()
            };
            said(tree) || said(&tree["response"])
        }
    }
}

/// A name that stands twice may mean either of its values; parsers differ, and ours are lenient.
fn is_twice(data: &[u8]) -> bool {
    let names = ["candidates", "choices", "status", "stop_reason", "type", "promptFeedback", "response"];
    names.iter().any(|name| {
        let name = format!("\"{name}\":");
        data.windows(name.len()).filter(|window| *window == name.as_bytes()).count() > 1
    })
}

/// Every frame that we wrote is in the order that the dialect's own rules ask for, deltas too.
fn lawful(client: Dialect, given: &[u8], complete: bool) {
    let (mut chat, mut messages) = (chat::order::Order::default(), messages::order::Order::default());
    let (mut responses, mut gemini) = (responses::order::Order::default(), gemini::order::Order::default());
    for frame in differential::frames(given).unwrap_or_default() {
        let order = match client {
            Dialect::Chat => chat.frame(&frame),
            Dialect::Responses => responses.frame(&frame),
            Dialect::Messages => messages.frame(&frame),
            Dialect::Gemini => gemini.frame(&frame),
        };
        assert!(order.is_ok(), "{client}: {order:?}: {}", shown(given));
    }
    let end = match client {
        Dialect::Chat => chat.finish(),
        Dialect::Responses => responses.finish(),
        Dialect::Messages => messages.finish(),
        Dialect::Gemini => gemini.finish(),
    };
    assert!(end.is_ok() == complete || given.is_empty(), "{client}: ended or not: {end:?}: {}", shown(given));
}

fn whole(upstream: Dialect, data: &[u8]) {
    for client in Dialect::ALL {
        let options = options(client, upstream);
        let given = plain(&options, Bytes::copy_from_slice(data));
        assert_eq!(given, plain(&options, Bytes::copy_from_slice(data)), "the same body, another answer");
        let (body, _) = match given {
            Ok(given) => given,
            Err(fault) => {
                assert_ne!(fault.kind, FaultKind::GatewayBug, "{upstream} to {client}: {}", fault.evidence.detail);
                super::waits::bounded(&fault.declared);
                continue;
            }
        };
        if client == upstream && upstream != Dialect::Responses {
            assert_eq!(body, data, "{client}: not byte for byte");
        }
        assert_json(&body);
        if let Ok(tree) = serde_json::from_slice::<Value>(data) {
            assert!(
                is_whole(upstream, &tree) || is_twice(data),
                "{upstream} to {client}: complete, and nobody said so: {}",
                shown(data)
            );
        }
    }
    agree(upstream, both_ways_whole(upstream, data), data);
}

fn is_whole(upstream: Dialect, tree: &Value) -> bool {
    match upstream {
        Dialect::Chat | Dialect::Gemini => says_end(upstream, tree),
        Dialect::Responses => matches!(tree["status"].as_str(), Some("completed" | "incomplete")),
        Dialect::Messages => tree["stop_reason"].is_string(),
    }
}

fn assert_json(body: &[u8]) {
    let error = serde_json::from_slice::<&serde_json::value::RawValue>(body).err();
    assert!(
        error.as_ref().is_none_or(|error| error.to_string().contains("recursion")),
        "no JSON: {error:?}: {}",
        shown(body)
    );
}

/// Counts and vectors.
pub fn other_answers(data: &[u8]) {
    for dialect in Dialect::ALL {
        if let Some(tokens) = count::count_reply(dialect, data) {
            let body = count::count_body(dialect, tokens);
            assert_json(&body);
            assert_eq!(count::count_reply(dialect, &body), Some(tokens), "{dialect}: another count when written again");
        }
        let asked = Asked { operation: Operation::Embed, ..Asked::default() };
        let options = ReplyOptions { asked, ..options(Dialect::Chat, dialect) };
        if let Ok((body, _)) = plain(&options, Bytes::copy_from_slice(data)) {
            assert_json(&body);
        }
        let asked = Asked { operation: Operation::Complete, ..Asked::default() };
        let options = ReplyOptions { asked, ..differential::options(Dialect::Chat, dialect) };
        if let Ok((body, _)) = plain(&options, Bytes::copy_from_slice(data)) {
            assert_json(&body);
        }
        let told = through(&options, &[data]);
        assert!(
            told.fault.as_ref().is_none_or(|fault| fault.kind != FaultKind::GatewayBug),
            "{dialect}: {:?}",
            told.fault
        );
    }
}
