//! The protocols of upstreams that speak no client's dialect.

use super::waits::bounded;
use http::{HeaderMap, HeaderName, HeaderValue};
use turnkeep_dialect::event::{Event, Order};
use turnkeep_upstream::fuzzed::{self, Step};
use turnkeep_upstream::rpc::{Codec, RpcFault, Told};

/// Ends of Connect streams; and of each line `name: value`, the trailers of a gRPC call.
pub fn rpc_end(data: &[u8]) {
    for (begun, continued) in [(false, false), (false, true), (true, false), (true, true)] {
        match fuzzed::end_of_stream(data, begun, continued) {
            Ok(_) => {
                let tree: Option<serde_json::Value> = serde_json::from_slice(data).ok();
                assert!(
                    tree.is_none_or(|tree| tree.is_object() && tree.get("error").is_none()),
                    "an error taken for an end"
                );
            }
            Err(error) => known(&error, begun),
        }
        let trailers = headers(data);
        match fuzzed::grpc_status(&trailers, begun, continued) {
            Some(Ok(())) => {
                let said = trailers.get("grpc-status").and_then(|value| value.to_str().ok());
                assert_eq!(
                    said.map(|said| said.trim().trim_start_matches(['+', '0'])),
                    Some(""),
                    "a good end that nobody said"
                );
            }
            Some(Err(error)) => known(&error, begun),
            None => assert!(!trailers.contains_key("grpc-status")),
        }
        for whole in [false, true] {
            let error = fuzzed::error_reply(503, &trailers, data, whole, continued);
            assert!(whole || error.told == Told::Unknown, "half a reply proves nothing");
            bounded(&error.fault.declared);
        }
    }
}

fn known(error: &RpcFault, begun: bool) {
    bounded(&error.fault.declared);
    if begun {
        assert!(matches!(error.told, Told::Unknown), "a refusal after messages had come");
    }
}

fn headers(data: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(line[..colon].trim_ascii());
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}

/// Messages of a chat's and of a watch's stream: JSON a line, or each with a byte of length before it.
pub fn rpc_events(data: &[u8]) {
    let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    for (codec, messages) in [(Codec::Json, lines), (Codec::Proto, counted(data))] {
        let mut read = Vec::new();
        for message in &messages {
            let Ok((event, again)) = fuzzed::chat_event(codec, message) else { break };
            let twice = fuzzed::chat_event(codec, &again).ok().map(|(event, _)| event);
            assert_eq!(twice.as_ref(), Some(&event), "written and read, another message");
            let other = if codec == Codec::Json { Codec::Proto } else { Codec::Json };
            let crossed = crossed(other, &event);
            assert!(crossed.is_none() || crossed.as_ref() == Some(&event), "in the other form another message");
            read.push(event);
        }
        for ended in [false, true] {
            let (events, fault) = fuzzed::events(read.clone(), ended);
            let mut order = Order::default();
            for event in &events {
                let lawful = order.event(event);
                assert!(lawful.is_ok(), "{lawful:?}");
            }
            let complete = events.last() == Some(&Event::End);
            assert!(ended || !complete, "an end that the protocol has not told");
            assert!(!ended || complete || fault.is_some(), "neither an end nor a fault");
        }
        watched(codec, &messages);
    }
}

fn crossed(codec: Codec, event: &impl WrittenAnew) -> Option<turnkeep_proto::connect::v1::ChatEvent> {
    let bytes = event.bytes(codec)?;
    fuzzed::chat_event(codec, &bytes).ok().map(|(event, _)| event)
}

trait WrittenAnew {
    fn bytes(&self, codec: Codec) -> Option<Vec<u8>>;
}

impl WrittenAnew for turnkeep_proto::connect::v1::ChatEvent {
    fn bytes(&self, codec: Codec) -> Option<Vec<u8>> {
        codec.write(self).ok().map(|bytes| bytes.to_vec())
    }
}

fn watched(codec: Codec, messages: &[&[u8]]) {
    let mut over = false;
    let mut due = 3;
    for step in fuzzed::watched(codec, messages, due) {
        assert!(!over || matches!(step, Step::Nothing | Step::Fault(_)), "something follows the end: {step:?}");
        match step {
            Step::Event(_) => due += 1,
            Step::Final(position) => {
                due += 1;
                assert_eq!(position, due, "the position after the final step");
                over = true;
            }
            Step::Open(from) => assert_eq!(from, due, "opened from a step that is not due"),
            Step::Fault(_) => over = true,
            Step::Nothing => {}
        }
    }
}

/// Messages that each have a byte of length before them; the last one may be short.
fn counted(mut data: &[u8]) -> Vec<&[u8]> {
    let mut messages = Vec::new();
    while let Some((length, rest)) = data.split_first() {
        let (message, after) = rest.split_at(usize::from(*length).min(rest.len()));
        messages.push(message);
        data = after;
    }
    messages
}

/// The longest word of the API that is taken, with the prefix that an id may get.
const WORD: usize = 2048 + 6;

/// Sessions, and pages of messages.
pub fn devin(data: &[u8]) {
    match fuzzed::session(data) {
        Ok(session) => {
            assert!(session.id.starts_with("devin-") && session.id.len() <= WORD, "{session:?}");
            assert!(!session.status.is_empty() && session.status.len() <= 2 * WORD);
        }
        Err(error) => quiet(&error.message),
    }
    match fuzzed::page(data) {
        Ok(page) => {
            assert!(page.items.iter().all(|(event, _)| !event.is_empty() && event.len() <= WORD));
            assert!(page.cursor.as_ref().is_none_or(|cursor| !cursor.is_empty() && cursor.len() <= WORD));
        }
        Err(error) => quiet(&error.message),
    }
}

/// What the session says stays out of messages.
fn quiet(message: &str) {
    assert!(!message.is_empty() && message.len() < 200, "{message}");
    assert!(!message.contains("private"), "{message}");
}
