//! The generated messages in both forms.

#![allow(missing_docs, clippy::unwrap_used)] // a test fails by panicking

use prost::Message as _;
use turnkeep_proto::connect::v1::{ChatEvent, ChatRequest, Finish, Image, Part, chat_event, finish, image, part};

fn finish(reason: i32) -> ChatEvent {
    let finish = Finish { reason, stop_sequence: Some("END".into()) };
    ChatEvent { event: Some(chat_event::Event::Finish(finish)) }
}

#[test]
fn json_has_protobufs_own_spelling() {
    let event = finish(finish::Reason::StopSequence.into());
    let json = serde_json::to_string(&event).unwrap();
    assert_eq!(json, r#"{"finish":{"reason":"REASON_STOP_SEQUENCE","stopSequence":"END"}}"#);
    assert_eq!(serde_json::from_str::<ChatEvent>(&json).unwrap(), event);
    let as_in_the_schema = r#"{"finish":{"reason":2,"stop_sequence":"END"}}"#;
    assert_eq!(serde_json::from_str::<ChatEvent>(as_in_the_schema).unwrap(), event);
}

#[test]
fn whole_numbers_of_64_bits_are_strings_and_read_either_way() {
    let request = ChatRequest { max_output_tokens: Some(1 << 60), ..ChatRequest::default() };
    let json = serde_json::to_string(&request).unwrap();
    assert_eq!(json, r#"{"maxOutputTokens":"1152921504606846976"}"#);
    for json in [json.as_str(), r#"{"maxOutputTokens":1152921504606846976}"#] {
        assert_eq!(serde_json::from_str::<ChatRequest>(json).unwrap(), request);
    }
}

#[test]
fn what_a_newer_peer_adds_is_passed_over_in_both_forms() {
    let json = r#"{"finish":{"reason":"REASON_OF_TOMORROW","more":{"x":[1]}},"also":1}"#;
    let read: ChatEvent = serde_json::from_str(json).unwrap();
    let Some(chat_event::Event::Finish(read)) = read.event else { panic!("{read:?}") };
    assert_eq!(read.reason, 0);
    let mut bytes = finish(77).encode_to_vec();
    // Field 100, a string.
    bytes.extend_from_slice(&[0xa2, 0x06, 2, b'h', b'i']);
    assert_eq!(ChatEvent::decode(&bytes[..]).unwrap(), finish(77));
}

#[test]
fn bytes_are_base64_in_json() {
    let image = Image { media_type: "image/png".into(), source: Some(image::Source::Data(vec![0xff, 0xfe, 0x00])) };
    let part = Part { body: Some(part::Body::Image(image)), cache_mark_json: None };
    let json = serde_json::to_string(&part).unwrap();
    assert_eq!(json, r#"{"image":{"mediaType":"image/png","data":"//4A"}}"#);
    for json in [json.as_str(), r#"{"image":{"media_type":"image/png","data":"__4A"}}"#] {
        assert_eq!(serde_json::from_str::<Part>(json).unwrap(), part);
    }
}
