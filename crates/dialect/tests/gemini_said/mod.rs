//! What the tests of Gemini's answers share: options, frames, and events in short.

#![allow(dead_code, reason = "each test file uses a part of it")]

use bytes::Bytes;
use turnkeep_base::Dialect;
use turnkeep_dialect::event::{Block, Delta, Event};
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

/// The events in short: `+0 text`, `0 "a"`, `-0`, `finish Stop`.
pub fn short(events: &[Event]) -> Vec<String> {
    let line = |event: &Event| match event {
        Event::Start { id, model, .. } => {
            format!("start {} {}", id.as_deref().unwrap_or("-"), model.as_deref().unwrap_or("-"))
        }
        Event::BlockStart { block, kind } => match kind {
            Block::Text => format!("+{block} text"),
            Block::Thinking => format!("+{block} thinking"),
            Block::Refusal => format!("+{block} refusal"),
            Block::RedactedThinking(data) => format!("+{block} redacted {data}"),
            Block::ToolCall { id, name } => format!("+{block} call {id} {name}"),
        },
        Event::Delta { block, delta } => match delta {
            Delta::Text(text) | Delta::Thinking(text) | Delta::Arguments(text) => format!("{block} {text}"),
            Delta::Signature(text) => format!("{block} signed {text}"),
        },
        Event::BlockStop { block } => format!("-{block}"),
        Event::Finish { reason, .. } => format!("finish {reason:?}"),
        Event::Usage(usage) => format!("usage {}+{}", usage.total_input(), usage.output),
        Event::End => "end".into(),
    };
    events.iter().map(line).collect()
}

/// The order that decoders keep.
#[track_caller]
pub fn lawful(events: &[Event]) {
    assert!(matches!(events.first(), Some(Event::Start { .. })), "{events:?}");
    assert!(matches!(events.last(), Some(Event::End)), "{events:?}");
    let (mut next, mut open) = (0, std::collections::BTreeSet::new());
    for event in events {
        match event {
            Event::BlockStart { block, .. } => {
                assert_eq!(*block, next);
                next += 1;
                open.insert(*block);
            }
            Event::Delta { block, .. } => assert!(open.contains(block), "{event:?}"),
            Event::BlockStop { block } => assert!(open.remove(block), "{event:?}"),
            Event::Finish { .. } => assert!(open.is_empty()),
            Event::Start { .. } | Event::Usage(_) | Event::End => {}
        }
    }
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
