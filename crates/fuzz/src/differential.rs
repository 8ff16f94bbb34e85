//! One upstream stream in two ways: passed on to a client of its own dialect, and read as events and written anew in that
//! dialect. Both are read with the same reader, and must say the same.
//!
//! [`DIFFERENCES`] are those that are meant; each has a test.

use crate::said::{Part, Said};
use bytes::Bytes;
use turnkeep_base::{Dialect, Usage};
use turnkeep_dialect::event::{Block, Event};
use turnkeep_dialect::reply::{Asked, Facts, Piece, Progress, ReplyFault, ReplyOptions, StreamCodec};
use turnkeep_dialect::{chat, gemini, messages, responses};
use turnkeep_wire::sse;

/// Bytes of one event that are read here.
const MAX_EVENT: usize = 1 << 20;

/// What a codec must know, the same for every answer here.
pub fn options(client: Dialect, upstream: Dialect) -> ReplyOptions {
    ReplyOptions {
        client,
        upstream,
        model: "asked".into(),
        usage_wanted: true,
        choices: 1,
        id: "own".into(),
        created: 7,
        max_event: MAX_EVENT,
        asked: Asked { body: Bytes::from_static(b"{\"model\":\"asked\",\"input\":\"q\"}"), ..Asked::default() },
    }
}

/// What a codec made of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Through {
    /// What may go to the client.
    pub pieces: Vec<Piece>,
    /// What was read in passing.
    pub facts: Facts,
    /// How far the answer came.
    pub progress: Progress,
    /// What was wrong with it.
    pub fault: Option<ReplyFault>,
}

impl Through {
    /// The client's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect()
    }
}

/// Through the codec of an answer, in these pieces, to the end of the stream.
pub fn through(options: &ReplyOptions, chunks: &[&[u8]]) -> Through {
    let mut codec = StreamCodec::new(options);
    let mut pieces = Vec::new();
    let fed = chunks.iter().try_for_each(|chunk| codec.feed(Bytes::copy_from_slice(chunk), &mut pieces));
    let ended = fed.and_then(|()| codec.finish(&mut pieces));
    Through { facts: codec.facts().clone(), progress: codec.progress(), fault: ended.err(), pieces }
}

/// The frames of a stream, what is left at its end included; the error is an event that is too long.
pub fn frames(stream: &[u8]) -> Result<Vec<sse::Frame>, sse::TooLong> {
    let mut reader = sse::Reader::new(MAX_EVENT);
    reader.push(Bytes::copy_from_slice(stream));
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame()? {
        frames.push(frame);
    }
    while let Some(frame) = reader.finish()? {
        frames.push(frame);
    }
    Ok(frames)
}

enum Decoder {
    Chat(chat::reply_decode::StreamDecoder),
    Responses(responses::reply_decode::StreamDecoder),
    Messages(messages::reply_decode::StreamDecoder),
    Gemini(gemini::reply_decode::StreamDecoder),
}

/// The events of a stream of this dialect.
///
/// # Errors
/// As the decoder says, and an answer that has no end.
pub fn decoded(dialect: Dialect, stream: &[u8]) -> Result<Vec<Event>, ReplyFault> {
    let options = options(dialect, dialect);
    let mut decoder = match dialect {
        Dialect::Chat => Decoder::Chat(chat::reply_decode::StreamDecoder::strict(&options)),
        Dialect::Responses => Decoder::Responses(responses::reply_decode::StreamDecoder::strict(&options)),
        Dialect::Messages => Decoder::Messages(messages::reply_decode::StreamDecoder::strict(&options)),
        Dialect::Gemini => Decoder::Gemini(gemini::reply_decode::StreamDecoder::strict(&options)),
    };
    let (mut events, mut progress) = (Vec::new(), Progress::Open);
    for frame in frames(stream).map_err(|long| ReplyFault::malformed(long.to_string()))? {
        progress = match &mut decoder {
            Decoder::Chat(decoder) => decoder.frame(&frame, &mut events)?,
            Decoder::Responses(decoder) => decoder.frame(&frame, &mut events)?,
            Decoder::Messages(decoder) => decoder.frame(&frame, &mut events)?,
            Decoder::Gemini(decoder) => decoder.frame(&frame, &mut events)?,
        };
        if progress == Progress::Done {
            break;
        }
    }
    match (progress, &mut decoder) {
        (Progress::Open, _) => return Err(ReplyFault::truncated()),
        (Progress::Finishing, Decoder::Chat(decoder)) => decoder.settle(&mut events),
        (Progress::Finishing, Decoder::Gemini(decoder)) => decoder.settle(&mut events),
        (Progress::Finishing | Progress::Done, _) => {}
    }
    Ok(events)
}

/// The events written as a stream of this dialect.
pub fn encoded(dialect: Dialect, events: &[Event]) -> Vec<u8> {
    let options = options(dialect, dialect);
    let mut out = Vec::new();
    match dialect {
        Dialect::Chat => {
            let mut encoder = chat::reply_encode::StreamEncoder::again(&options);
            events.iter().for_each(|event| {
                encoder.event(event, &mut out);
            });
        }
        Dialect::Responses => {
            let mut encoder = responses::reply_encode::StreamEncoder::again(&options);
            events.iter().for_each(|event| {
                encoder.event(event, &mut out);
            });
        }
        Dialect::Messages => {
            let mut encoder = messages::reply_encode::StreamEncoder::again(&options);
            events.iter().for_each(|event| {
                encoder.event(event, &mut out);
            });
        }
        Dialect::Gemini => {
            let mut encoder = gemini::reply_encode::StreamEncoder::again(&options);
            events.iter().for_each(|event| {
                encoder.event(event, &mut out);
            });
        }
    }
    out
}

/// The events of a plain answer of this dialect.
///
/// # Errors
/// As the decoder says.
pub fn decoded_whole(dialect: Dialect, body: &[u8]) -> Result<Vec<Event>, ReplyFault> {
    let options = options(dialect, dialect);
    match dialect {
        Dialect::Chat => chat::reply_decode::plain_strict(body, &options).map(|(events, _)| events),
        Dialect::Responses => responses::reply_decode::plain_strict(body, &options).map(|(events, _)| events),
        Dialect::Messages => messages::reply_decode::plain_strict(body, &options),
        Dialect::Gemini => gemini::reply_decode::plain_strict(body, &options),
    }
}

/// The events written as a plain answer of this dialect.
pub fn encoded_whole(dialect: Dialect, events: &[Event]) -> Vec<u8> {
    let options = options(dialect, dialect);
    match dialect {
        Dialect::Chat => chat::reply_encode::plain_again(events, &options),
        Dialect::Responses => responses::reply_encode::plain_again(events, &options),
        Dialect::Messages => messages::reply_encode::plain_again(events, &options),
        Dialect::Gemini => gemini::reply_encode::plain_again(events, &options),
    }
}

/// A difference that is meant.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// In which dialects.
    pub dialects: &'static [Dialect],
    /// What differs.
    pub what: &'static str,
    /// Why it may.
    pub why: &'static str,
}

/// What may differ between an answer that is passed on and one that is written anew.
pub const DIFFERENCES: &[Difference] = &[
    Difference {
        dialects: &Dialect::ALL,
        what: "the answer's id, and the model where the upstream names none",
        why: "an answer that is written anew has an id of the gateway's form where the upstream's is none, and the model that \
              was asked for",
    },
    Difference {
        dialects: &[Dialect::Chat, Dialect::Gemini],
        what: "choices and candidates beyond the first; what is wrong with one",
        why: "an answer of several has one form only, its own: it is passed on, and never written anew",
    },
    Difference {
        dialects: &[Dialect::Chat],
        what: "where thinking without a proof ends and thinking with one begins, if nothing stands between them",
        why: "Chat streams thinking as one text, and only a proof ends a block of it",
    },
    Difference {
        dialects: &[Dialect::Chat],
        what: "the end of an answer that both refuses in words and calls a tool",
        why: "a refusal in words ends with `stop`, and what calls a tool ends by that, whatever was written",
    },
    Difference {
        dialects: &[Dialect::Chat],
        what: "the order of thinking, text and a refusal in words in a whole answer",
        why: "they are fields of one message",
    },
    Difference {
        dialects: &[Dialect::Responses],
        what: "calls of one and the same `call_id`",
        why: "the reader takes them for one, as some servers name a call by that alone; translated, each gets an id of its own",
    },
    Difference {
        dialects: &[Dialect::Gemini],
        what: "a proof that is no base 64, and the alphabet and padding of one that is",
        why: "the field is one of bytes, which its SDKs decode",
    },
    Difference {
        dialects: &[Dialect::Gemini, Dialect::Messages],
        what: "arguments that are no JSON object",
        why: "they become `{\"input\": …}`, as these dialects have no others",
    },
    Difference {
        dialects: &[Dialect::Messages],
        what: "a usage of nothing but zeros where the upstream gave none",
        why: "Messages has no answer without usage",
    },
];

/// What an answer says, without what may differ; `whole`: of a plain answer.
pub fn meant(dialect: Dialect, whole: bool, said: Said) -> Said {
    let usage = said.usage.filter(|usage| *usage != Usage::default());
    let mut parts: Vec<Part> = Vec::with_capacity(said.parts.len());
    for part in said.parts {
        match (dialect, parts.last_mut(), part) {
            (Dialect::Chat, Some(Part::Thinking(text, proof)), Part::Thinking(more, proven)) if proof.is_empty() => {
                text.push_str(&more);
                *proof = proven;
            }
            (Dialect::Gemini | Dialect::Messages, _, Part::Call(id, name, arguments)) => {
                parts.push(Part::Call(id, name, object(arguments)));
            }
            (Dialect::Gemini, _, Part::Thinking(text, proof)) => {
                let proof = bytes(&proof).unwrap_or_default();
                if !text.is_empty() || !proof.is_empty() {
                    parts.push(Part::Thinking(text, proof));
                }
            }
            (_, _, part) => parts.push(part),
        }
    }
    if dialect == Dialect::Chat && whole {
        let place = |part: &Part| match part {
            Part::Thinking(..) | Part::Redacted(_) => 0,
            Part::Text(_) => 1,
            Part::Refusal(_) => 2,
            Part::Call(..) => 3,
        };
        parts.sort_by_key(place);
        let mut said = Said::default();
        parts.into_iter().for_each(|part| said.push(part));
        parts = said.parts;
    }
    let has = |is: fn(&Part) -> bool| parts.iter().any(is);
    let both = has(|part| matches!(part, Part::Refusal(_))) && has(|part| matches!(part, Part::Call(..)));
    let finish = said.finish.filter(|_| !(dialect == Dialect::Chat && both));
    Said { id: None, model: None, usage, parts, finish, ..said }
}

/// A proof by what it holds; `None` for Gemini's own that holds no bytes.
fn bytes(proof: &str) -> Option<String> {
    use base64::engine::{DecodePaddingMode, Engine as _, GeneralPurpose, GeneralPurposeConfig};
    let Some(own) = proof.strip_prefix("turnkeep.gemini.") else { return Some(proof.to_owned()) };
    let lenient = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&base64::alphabet::STANDARD, lenient);
    engine.decode(own.replace('-', "+").replace('_', "/")).ok().map(|bytes| format!("{bytes:?}"))
}

fn object(arguments: String) -> String {
    let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&arguments).is_ok();
    if is_object { arguments } else { serde_json::json!({ "input": arguments }).to_string() }
}

/// What came of the same bytes in both ways.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Both say the same.
    Same(Said),
    /// Both are refused.
    Refused,
    /// Passed on, and refused when read, with these words: what is passed on is read for what the gateway must know of it,
    /// and no further.
    PassedOnly(String),
    /// Read, and refused when passed on, with these words.
    ReadOnly(String),
    /// They say different things, in words.
    Different(String),
}

/// The same stream in both ways.
pub fn both_ways(dialect: Dialect, stream: &[u8]) -> Outcome {
    let passed = through(&options(dialect, dialect), &[stream]);
    let passed = match passed.fault.clone() {
        None => Ok(passed.bytes()),
        Some(fault) => Err(fault),
    };
    compared(dialect, false, passed, decoded(dialect, stream), decoded, encoded)
}

/// The same plain answer in both ways.
pub fn both_ways_whole(dialect: Dialect, body: &[u8]) -> Outcome {
    let passed = turnkeep_dialect::reply::plain(&options(dialect, dialect), Bytes::copy_from_slice(body));
    let passed = passed.map(|(body, _)| body.to_vec());
    compared(dialect, true, passed, decoded_whole(dialect, body), decoded_whole, encoded_whole)
}

/// Two calls have one id.
fn has_one_id_twice(events: &[Event]) -> bool {
    let mut ids: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::BlockStart { kind: Block::ToolCall { id, .. }, .. } => Some(id.as_str()),
            Event::Start { .. }
            | Event::BlockStart { .. }
            | Event::Delta { .. }
            | Event::BlockStop { .. }
            | Event::Finish { .. }
            | Event::Usage(_)
            | Event::End => None,
        })
        .collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    ids.len() < all
}

fn compared(
    dialect: Dialect,
    whole: bool,
    passed: Result<Vec<u8>, ReplyFault>,
    read: Result<Vec<Event>, ReplyFault>,
    decode: fn(Dialect, &[u8]) -> Result<Vec<Event>, ReplyFault>,
    encode: fn(Dialect, &[Event]) -> Vec<u8>,
) -> Outcome {
    let words = |fault: ReplyFault| format!("{}: {}", fault.kind, fault.evidence.detail);
    let (passed, events) = match (passed, read) {
        (Ok(passed), Ok(events)) => (passed, events),
        (Ok(_), Err(fault)) => return Outcome::PassedOnly(words(fault)),
        (Err(fault), Ok(_)) => return Outcome::ReadOnly(words(fault)),
        (Err(_), Err(_)) => return Outcome::Refused,
    };
    if dialect == Dialect::Responses && has_one_id_twice(&events) {
        return Outcome::PassedOnly("calls of one id".into());
    }
    let anew = encode(dialect, &events);
    let of = |bytes: &[u8], which: &str| {
        decode(dialect, bytes)
            .map(|events| meant(dialect, whole, Said::of(&events)))
            .map_err(|fault| format!("{which} cannot be read: {}: {}", words(fault), String::from_utf8_lossy(bytes)))
    };
    match (of(&passed, "what is passed on"), of(&anew, "what is written anew")) {
        (Ok(one), Ok(other)) if one == other => Outcome::Same(one),
        (Ok(one), Ok(other)) => Outcome::Different(format!("passed on: {one:?}\nwritten anew: {other:?}")),
        (Err(what), _) | (Ok(_), Err(what)) => Outcome::Different(what),
    }
}
