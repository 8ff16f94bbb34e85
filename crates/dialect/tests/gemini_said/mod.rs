//! What the tests of Gemini's answers share: options, frames, and events in short.

#![allow(dead_code, unused_imports, reason = "each test file uses a part of it")]

#[path = "../support/events.rs"]
mod events;

use bytes::Bytes;
pub use events::lawful;
use turnkeep_base::Dialect;
use turnkeep_dialect::event::Event;
use turnkeep_dialect::gemini::reply_decode::StreamDecoder;
use turnkeep_dialect::reply::{Facts, Piece, Progress, ReplyFault, ReplyOptions, StreamCodec};
use turnkeep_dialect::request::StreamForm;
use turnkeep_wire::sse;

pub fn options() -> ReplyOptions {
    ReplyOptions {
        client: Dialect::Gemini,
        upstream: Dialect::Gemini,
        model: "asked".into(),
        usage_wanted: true,
        choices: 1,
        id: "own".into(),
        created: 7,
        max_event: 1 << 20,
        asked: Default::default(),
    }
}

pub fn in_form(form: StreamForm) -> ReplyOptions {
    let mut options = options();
    options.asked.form = form;
    options
}

pub fn frames(chunks: &[&[u8]]) -> Vec<sse::Frame> {
    let mut reader = sse::Reader::new(1 << 20);
    let mut out = Vec::new();
    for chunk in chunks {
        reader.push(Bytes::copy_from_slice(chunk));
        while let Some(frame) = reader.next_frame().unwrap() {
            out.push(frame);
        }
    }
    out.extend(reader.finish().unwrap());
    out
}

/// Decodes a stream; at its end what is finishing is settled.
pub fn decode_by(mut decoder: StreamDecoder, chunks: &[&[u8]]) -> Result<Vec<Event>, ReplyFault> {
    let mut events = Vec::new();
    let mut progress = Progress::Open;
    for frame in frames(chunks) {
        progress = decoder.frame(&frame, &mut events)?;
    }
    if progress == Progress::Open {
        return Err(ReplyFault::truncated());
    }
    decoder.settle(&mut events);
    decoder.settle(&mut events);
    Ok(events)
}

pub fn decode(chunks: &[&[u8]]) -> Result<Vec<Event>, ReplyFault> {
    decode_by(StreamDecoder::new(&options()), chunks)
}

/// A stream of one candidate: each item is the inside of `candidates[0]`.
pub fn stream(candidates: &[&str]) -> String {
    candidates.iter().map(|candidate| format!("data: {}\r\n\r\n", answer(candidate))).collect()
}

/// A whole answer, or a chunk, of one candidate.
pub fn answer(candidate: &str) -> String {
    format!(
        r#"{{"candidates":[{{{candidate}}}],"usageMetadata":{{"promptTokenCount":9,"candidatesTokenCount":5,"totalTokenCount":14}},"modelVersion":"up","responseId":"r1"}}"#
    )
}

/// The inside of a candidate with these parts.
pub fn parts(parts: &str) -> String {
    format!(r#""content":{{"parts":[{parts}],"role":"model"}}"#)
}

/// The inside of a candidate with these parts that ends.
pub fn last(parts: &str, reason: &str) -> String {
    format!(r#""content":{{"parts":[{parts}],"role":"model"}},"finishReason":"{reason}","index":0"#)
}

pub fn short(events: &[Event]) -> Vec<String> {
    events::short(events, events::in_and_out)
}

/// Everything that the codec gives, with the fault it ended by.
pub fn run(options: &ReplyOptions, chunks: &[&[u8]]) -> (Vec<Piece>, Result<(), ReplyFault>, Facts) {
    let mut codec = StreamCodec::new(options);
    let mut out = Vec::new();
    let fed = chunks.iter().try_for_each(|chunk| codec.feed(Bytes::copy_from_slice(chunk), &mut out));
    let ended = fed.and_then(|()| codec.finish(&mut out));
    (out, ended, codec.facts().clone())
}

pub fn text(pieces: &[Piece]) -> String {
    pieces.iter().map(|piece| std::str::from_utf8(&piece.bytes).unwrap()).collect()
}
