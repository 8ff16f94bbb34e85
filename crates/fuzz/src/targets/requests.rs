//! What clients send.

use bytes::Bytes;
use turnkeep_base::Dialect;
use turnkeep_dialect::identity;
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::request::{ClientRequest, InPath, Operation, StreamForm, encode, read, read_in_path, write_for};
use turnkeep_dialect::turn::{At, Body, Turn};

/// Chat requests.
pub fn chat_request(data: &[u8]) {
    generates(Dialect::Chat, data);
}

/// Responses requests.
pub fn responses_request(data: &[u8]) {
    generates(Dialect::Responses, data);
}

/// Messages requests.
pub fn messages_request(data: &[u8]) {
    generates(Dialect::Messages, data);
}

/// Gemini requests.
pub fn gemini_request(data: &[u8]) {
    generates(Dialect::Gemini, data);
}

/// Requests for something else than an answer.
pub fn other_requests(data: &[u8]) {
    let kinds = [
        (Dialect::Chat, Operation::Complete),
        (Dialect::Chat, Operation::Embed),
        (Dialect::Responses, Operation::CountTokens),
        (Dialect::Messages, Operation::CountTokens),
        (Dialect::Gemini, Operation::CountTokens),
    ];
    for (dialect, operation) in kinds {
        let Some(request) = taken(dialect, operation, data) else { continue };
        for target in Dialect::ALL {
            if let Ok(encoded) = write_for(&request, target, "m", false) {
                assert_json(target, &encoded.body);
            }
        }
    }
}

fn parsed(dialect: Dialect, operation: Operation, data: &[u8]) -> Result<ClientRequest, Invalid> {
    let body = Bytes::copy_from_slice(data);
    match dialect {
        Dialect::Chat | Dialect::Responses | Dialect::Messages => read(dialect, operation, body),
        Dialect::Gemini => {
            let path = InPath { model: "m".into(), stream: false, form: StreamForm::Events };
            read_in_path(operation, path, body)
        }
    }
}

/// Reads the form of a body, and whether it passes on as it is.
fn taken(dialect: Dialect, operation: Operation, data: &[u8]) -> Option<ClientRequest> {
    let request = match parsed(dialect, operation, data) {
        Ok(request) => request,
        Err(error) => {
            placed(&error, data);
            return None;
        }
    };
    assert_json(dialect, data);
    let named = request.model.clone();
    let passed = request.pass_through(&named);
    // Its edits are done with: what has passed once passes as it is.
    match parsed(dialect, operation, &passed) {
        Ok(again) => {
            assert_eq!(again.pass_through(&named), passed, "edited twice, another body");
            assert_eq!(
                (again.stream, again.max_output, again.choices),
                (request.stream, request.max_output, request.choices)
            );
        }
        Err(error) => assert!(passed.is_empty(), "what passes on is refused: {error}: {}", text(&passed)),
    }
    let renamed = request.pass_through("another \"name\"");
    assert_json(dialect, &renamed);
    let (elsewhere, any) = request.pass_through_elsewhere(&named);
    assert_json(dialect, &elsewhere);
    assert!(any || elsewhere == passed, "nothing was taken out, and the body is another");
    Some(request)
}

fn placed(error: &Invalid, data: &[u8]) {
    assert!(!error.message.is_empty(), "an error that says nothing");
    assert!(error.at <= data.len(), "an error at byte {} of {}", error.at, data.len());
}

fn assert_json(dialect: Dialect, body: &[u8]) {
    if let Err(error) = serde_json::from_slice::<&serde_json::value::RawValue>(body) {
        // The recursion limit is the other parser's own; a raw value has no depth, and no number to keep.
        let words = error.to_string();
        assert!(words.contains("recursion limit"), "{dialect}: no JSON: {words}: {}", text(body));
    }
}

fn text(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(2000)]).into_owned()
}

fn generates(dialect: Dialect, data: &[u8]) {
    let Some(request) = taken(dialect, Operation::Generate, data) else { return };
    let key = [7; 32];
    assert_eq!(identity::request(&key, &request), identity::request(&key, &request));
    let _ = identity::session(&request, &|_| None);
    let turn = match request.turn() {
        Ok(turn) => turn,
        Err(error) => return placed(&error, data),
    };
    let _ = identity::history(&key, &turn);
    for target in Dialect::ALL {
        for elsewhere in [false, true] {
            match write_for(&request, target, "m", elsewhere) {
                Ok(encoded) => written(dialect, target, &encoded.body),
                Err(error) => placed(&error, data),
            }
        }
    }
    way_back(dialect, &turn);
}

/// What we write is a request of the target's dialect.
fn written(client: Dialect, target: Dialect, body: &Bytes) {
    assert_json(target, body);
    match parsed(target, Operation::Generate, body) {
        Ok(request) => {
            if let Err(error) = request.turn() {
                assert!(
                    body.is_empty(),
                    "{client} to {target}: what we write does not decode: {error}: {}",
                    text(body)
                );
            }
        }
        Err(error) => {
            assert!(body.is_empty(), "{client} to {target}: what we write is refused: {error}: {}", text(body))
        }
    }
}

/// What was written in the client's own dialect means the same when it is read, written and read again: the form that
/// our writing gives it (a result for every call, a type for every schema) stays as it is.
fn way_back(dialect: Dialect, turn: &Turn<'_>) {
    let Ok(first) = encode(dialect, turn, "m") else { return };
    let renamed = text(&first.body);
    // Names and ids that look like our own are wrapped once more, so that no two meet.
    if renamed.contains("_tk") || renamed.contains("tkid_") {
        return;
    }
    let read = |body: &Bytes| -> Option<(String, Option<Bytes>)> {
        let request = parsed(dialect, Operation::Generate, body).ok()?;
        let turn = request.turn().ok()?;
        Some((meaning(&turn), encode(dialect, &turn, "m").ok().map(|again| again.body)))
    };
    let Some((once, again)) = read(&first.body) else { return };
    let twice = again.as_ref().and_then(read).map(|(twice, _)| twice);
    assert!(twice.is_some(), "{dialect}: written, read, and not written again: {}", text(&first.body));
    let twice = twice.unwrap_or_default();
    let differs = once.lines().zip(twice.lines()).find(|(one, other)| one != other);
    assert_eq!(differs, None, "{dialect}: read again it is another turn: {}", text(&first.body));
    assert_eq!(
        once.lines().count(),
        twice.lines().count(),
        "{dialect}: read again it is another turn: {}",
        text(&first.body)
    );
}

/// A turn without the places in the body where its parts stood, and with texts that touch put together.
fn meaning(turn: &Turn<'_>) -> String {
    let mut turn = turn.clone();
    turn.model = "m".into();
    turn.hints.clear();
    for message in &mut turn.messages {
        message.at = At::System;
        for part in &mut message.parts {
            part.at = At::System;
            part.cache = None;
            if let Body::ToolResult { content, .. } = &mut part.body {
                content.iter_mut().for_each(|inner| (inner.at, inner.cache) = (At::System, None));
            }
        }
    }
    // A message of nothing is none, and two of one role are one.
    let mut messages: Vec<turnkeep_dialect::turn::Message<'_>> = Vec::new();
    for message in turn.messages.drain(..).filter(|message| !message.parts.is_empty()) {
        match messages.last_mut() {
            Some(last) if last.role == message.role => last.parts.extend(message.parts),
            Some(_) | None => messages.push(message),
        }
    }
    turn.messages = messages;
    format!("{turn:#?}")
}
