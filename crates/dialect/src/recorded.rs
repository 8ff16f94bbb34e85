//! A whole answer as its client got it, for another use of it: held until its client fetches it, shared by requests that
//! ask the same, or kept in the response cache. The other client may want it streamed where it was plain, or with the
//! usage that the first one did not ask for.
//!
//! Whether an answer may be used again, and by whom, is not decided here but for [`may_be_cached`], which knows what is no
//! whole answer.

mod array;
mod saved;
mod usage;

use crate::event::{Class, Event, Finish};
use crate::reply::{Facts, Piece, Progress, ReplyFault, ReplyOptions, StreamCodec};
use crate::request::Operation;
use crate::{chat, gemini, messages, reply, responses};
use bytes::Bytes;
use std::fmt;
use turnkeep_base::{Dialect, Usage};
use turnkeep_wire::sse;

/// Bytes of a piece up to which its neighbours are joined to it.
const PIECE: usize = 64 << 10;

/// A whole, complete answer as its client got it, for another use of it.
#[derive(Clone, PartialEq)]
pub struct Recorded {
    /// The client's dialect, in which the bytes are.
    pub dialect: Dialect,
    /// The bytes are a stream of events; else one JSON body.
    pub stream: bool,
    /// The answer.
    pub bytes: Bytes,
    /// What was read of it in passing.
    pub facts: Facts,
}

/// Without what was said.
impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Recorded { dialect, stream, bytes, facts } = self;
        let mut out = f.debug_struct("Recorded");
        out.field("dialect", dialect).field("stream", stream).field("bytes", &bytes.len()).field("facts", facts);
        out.finish()
    }
}

/// Its bytes for a client that wants it streamed or plain, with usage or without. They are the same bytes where nothing
/// differs, and the same but for the usage chunk where nothing else does; else the answer is read and written anew, with
/// its own id, model and time. A usage that the record lacks is filled from its facts. The pieces are in order, and the
/// last one, and only it, is terminal.
///
/// A Gemini stream is read in whichever form it was recorded, events or one JSON array, and written in the one that
/// `options.asked` names.
///
/// Fails for what is no whole answer, and for one that cannot change its form: several choices, log probabilities, audio,
/// citations or tools of the provider's own, and all that is no answer of [`Operation::Generate`].
pub fn replay(recorded: &Recorded, options: &ReplyOptions, stream: bool) -> Result<Vec<Piece>, ReplyFault> {
    match options.asked.operation {
        Operation::Generate => {}
        Operation::Complete if recorded.dialect == options.client && recorded.stream && stream => {}
        Operation::CountTokens | Operation::Complete | Operation::Embed => return as_it_is(recorded, options, stream),
    }
    if recorded.dialect != options.client || recorded.stream != stream {
        return rewritten(recorded, options, stream);
    }
    if stream { same_stream(recorded, options) } else { same_body(recorded) }
}

/// What has one form only: a count, vectors, a continued text.
fn as_it_is(recorded: &Recorded, options: &ReplyOptions, stream: bool) -> Result<Vec<Piece>, ReplyFault> {
    if recorded.dialect != options.client || recorded.stream != stream {
        return Err(ReplyFault::malformed("a recorded answer of this kind has one form only, and another is wanted"));
    }
    Ok(vec![Piece { class: Class::Terminal, bytes: recorded.bytes.clone() }])
}

/// Complete and whole: it ended by itself, at a stop text or in calls of tools. One that ran into a limit, paused, was
/// refused or filtered, or whose end nobody told, is not, and an error is no answer at all.
pub fn may_be_cached(facts: &Facts) -> bool {
    match facts.finish {
        Some(Finish::Stop | Finish::StopSequence | Finish::ToolCalls) => true,
        Some(Finish::Length | Finish::ContextFull | Finish::Refusal | Finish::Pause) | None => false,
    }
}

/// The options of a codec that reads a record in its own dialect.
fn own(recorded: &Recorded, options: &ReplyOptions) -> ReplyOptions {
    // An array's elements get a few bytes each when they become events.
    let (dialect, max_event) = (recorded.dialect, recorded.bytes.len().saturating_mul(8).saturating_add(64));
    let asked = reply::Asked { restated: false, own_id: false, ..options.asked.clone() };
    ReplyOptions { client: dialect, upstream: dialect, max_event, asked, ..options.clone() }
}

/// The events of a record of which nothing is passed over, or a fault.
pub(crate) fn whole_events(recorded: &Recorded) -> Result<Vec<Event>, ReplyFault> {
    let dialect = recorded.dialect;
    let options = ReplyOptions {
        client: dialect,
        upstream: dialect,
        model: String::new(),
        usage_wanted: true,
        choices: 1,
        id: "recorded".into(),
        created: 0,
        max_event: recorded.bytes.len().saturating_add(1),
        asked: reply::Asked::default(),
    };
    events(recorded, &options).map(|(events, _)| events)
}

/// The events, and when the answer was made where it says so.
fn events(recorded: &Recorded, options: &ReplyOptions) -> Result<(Vec<Event>, Option<u64>), ReplyFault> {
    match (recorded.dialect, recorded.stream) {
        (Dialect::Chat, false) => chat::reply_decode::plain_strict(&recorded.bytes, options),
        (Dialect::Messages, false) => {
            messages::reply_decode::plain_strict(&recorded.bytes, options).map(|events| (events, None))
        }
        (Dialect::Responses, false) => responses::reply_decode::plain_strict(&recorded.bytes, options),
        (Dialect::Gemini, false) => {
            gemini::reply_decode::plain_strict(&recorded.bytes, options).map(|events| (events, None))
        }
        (Dialect::Responses, true) => {
            let mut decoder = responses::reply_decode::StreamDecoder::strict(options);
            let mut events = Vec::new();
            match frames(recorded, |frame| decoder.frame(frame, &mut events))? {
                Progress::Done => Ok((events, decoder.created())),
                Progress::Open | Progress::Finishing => Err(ReplyFault::truncated()),
            }
        }
        (Dialect::Gemini, true) => {
            let mut decoder = gemini::reply_decode::StreamDecoder::strict(options);
            let mut events = Vec::new();
            if frames(recorded, |frame| decoder.frame(frame, &mut events))? == Progress::Open {
                return Err(ReplyFault::truncated());
            }
            decoder.settle(&mut events);
            Ok((events, None))
        }
        (Dialect::Chat, true) => {
            let mut decoder = chat::reply_decode::StreamDecoder::strict(options);
            let mut events = Vec::new();
            let ended = frames(recorded, |frame| decoder.frame(frame, &mut events))?;
            if ended == Progress::Open {
                return Err(ReplyFault::truncated());
            }
            decoder.settle(&mut events);
            Ok((events, decoder.created()))
        }
        (Dialect::Messages, true) => {
            let mut decoder = messages::reply_decode::StreamDecoder::strict(options);
            let mut events = Vec::new();
            match frames(recorded, |frame| decoder.frame(frame, &mut events))? {
                Progress::Done => Ok((events, None)),
                Progress::Open | Progress::Finishing => Err(ReplyFault::truncated()),
            }
        }
    }
}

/// Gives every frame to `each` until the answer is at its end; tells how far it came.
fn frames(
    recorded: &Recorded,
    mut each: impl FnMut(&sse::Frame) -> Result<Progress, ReplyFault>,
) -> Result<Progress, ReplyFault> {
    let bytes = array::events(recorded)?;
    let mut reader = sse::Reader::new(bytes.len().saturating_add(1));
    reader.push(bytes);
    let long = |long: sse::TooLong| ReplyFault::malformed(long.to_string());
    let mut progress = Progress::Open;
    while progress != Progress::Done {
        let frame = match reader.next_frame().map_err(long)? {
            Some(frame) => frame,
            None => match reader.finish().map_err(long)? {
                Some(frame) => frame,
                None => break,
            },
        };
        progress = each(&frame)?;
    }
    Ok(progress)
}

/// The answer, written anew.
fn rewritten(recorded: &Recorded, options: &ReplyOptions, stream: bool) -> Result<Vec<Piece>, ReplyFault> {
    let (mut events, created) = events(recorded, &own(recorded, options))?;
    let told = events.iter().rev().find_map(|event| match event {
        Event::Usage(usage) => Some(*usage),
        Event::Start { .. }
        | Event::BlockStart { .. }
        | Event::Delta { .. }
        | Event::BlockStop { .. }
        | Event::Finish { .. }
        | Event::End => None,
    });
    let known = told.or(recorded.facts.usage);
    if let (None, Some(usage)) = (told, known) {
        let end = events.iter().rposition(|event| *event == Event::End).unwrap_or(events.len());
        events.insert(end, Event::Usage(usage));
    }
    if let Some(Event::Start { usage, .. }) = events.first_mut() {
        *usage = known.map(|usage| Usage { output: 0, reasoning: 0, ..usage });
    }
    let created = created.unwrap_or(options.created);
    let model = recorded.facts.model.clone().unwrap_or_else(|| options.model.clone());
    let options = ReplyOptions { upstream: recorded.dialect, created, model, ..options.clone() };
    let again = options.client == options.upstream;
    if !stream {
        let body = match (options.client, again) {
            (Dialect::Chat, true) => chat::reply_encode::plain_again(&events, &options),
            (Dialect::Chat, false) => chat::reply_encode::plain(&events, &options),
            (Dialect::Responses, true) => responses::reply_encode::plain_again(&events, &options),
            (Dialect::Responses, false) => responses::reply_encode::plain(&events, &options),
            (Dialect::Gemini, true) => gemini::reply_encode::plain_again(&events, &options),
            (Dialect::Gemini, false) => gemini::reply_encode::plain(&events, &options),
            (Dialect::Messages, true) => messages::reply_encode::plain_again(&events, &options),
            (Dialect::Messages, false) => messages::reply_encode::plain(&events, &options),
        };
        return Ok(vec![Piece { class: Class::Terminal, bytes: body.into() }]);
    }
    let mut pieces = Vec::new();
    match options.client {
        Dialect::Chat => {
            use chat::reply_encode::StreamEncoder;
            let mut encoder = if again { StreamEncoder::again(&options) } else { StreamEncoder::new(&options) };
            write(&events, &mut pieces, |event, out| encoder.event(event, out));
        }
        Dialect::Responses => {
            use responses::reply_encode::StreamEncoder;
            let mut encoder = if again { StreamEncoder::again(&options) } else { StreamEncoder::new(&options) };
            write(&events, &mut pieces, |event, out| encoder.event(event, out));
        }
        Dialect::Gemini => {
            use gemini::reply_encode::StreamEncoder;
            let mut encoder = if again { StreamEncoder::again(&options) } else { StreamEncoder::new(&options) };
            write(&events, &mut pieces, |event, out| encoder.event(event, out));
        }
        Dialect::Messages => {
            use messages::reply_encode::StreamEncoder;
            let mut encoder = if again { StreamEncoder::again(&options) } else { StreamEncoder::new(&options) };
            write(&events, &mut pieces, |event, out| encoder.event(event, out));
        }
    }
    Ok(packed(pieces))
}

fn write(events: &[Event], pieces: &mut Vec<Piece>, mut encode: impl FnMut(&Event, &mut Vec<u8>) -> Class) {
    for event in events {
        let mut out = Vec::new();
        let class = encode(event, &mut out);
        reply::push_piece(pieces, class, out.into());
    }
}

/// The stream as it is, but for the usage chunk.
fn same_stream(recorded: &Recorded, options: &ReplyOptions) -> Result<Vec<Piece>, ReplyFault> {
    let bytes = array::events(recorded)?;
    let own = ReplyOptions { max_event: bytes.len().saturating_add(1), ..own(recorded, options) };
    let mut codec = StreamCodec::new(&own);
    let mut pieces = Vec::new();
    codec.feed(bytes, &mut pieces)?;
    codec.finish(&mut pieces)?;
    if let (None, Some(usage)) = (codec.facts().usage, recorded.facts.usage) {
        match recorded.dialect {
            Dialect::Chat if options.usage_wanted => {
                let done = |piece: &Piece| is_done(&piece.bytes);
                let at = pieces.iter().rposition(done).unwrap_or(pieces.len());
                let bytes = chat::reply_encode::usage_frame(&like(&pieces), &usage)?.into();
                pieces.insert(at, Piece { class: Class::Terminal, bytes });
            }
            Dialect::Chat => {}
            Dialect::Responses | Dialect::Messages | Dialect::Gemini => return rewritten(recorded, options, true),
        }
    }
    Ok(packed(pieces))
}

/// The frame is the end of a Chat stream.
fn is_done(frame: &[u8]) -> bool {
    frame.trim_ascii().strip_prefix(b"data:").is_some_and(|data| data.trim_ascii() == b"[DONE]")
}

/// The data of the last chunk of a Chat stream.
fn like(pieces: &[Piece]) -> Bytes {
    let data = |piece: &Piece| {
        let mut reader = sse::Reader::new(piece.bytes.len().saturating_add(1));
        reader.push(piece.bytes.clone());
        let frame = reader.next_frame().ok().flatten().or_else(|| reader.finish().ok().flatten())?;
        frame.data.filter(|data| data.trim_ascii().first() == Some(&b'{'))
    };
    pieces.iter().rev().find_map(data).unwrap_or_default()
}

/// The body as it is, with a usage if it has none.
fn same_body(recorded: &Recorded) -> Result<Vec<Piece>, ReplyFault> {
    let mut facts = Facts::default();
    match recorded.dialect {
        Dialect::Chat => chat::tap::plain(&recorded.bytes, &mut facts)?,
        Dialect::Responses => responses::tap::plain(&recorded.bytes, &mut facts)?,
        Dialect::Messages => messages::tap::plain(&recorded.bytes, &mut facts)?,
        Dialect::Gemini => gemini::tap::plain(&recorded.bytes, &mut facts)?,
    }
    let bytes = match (facts.usage, recorded.facts.usage) {
        (None, Some(usage)) => {
            usage::inserted(recorded, &usage).map_err(|bad| ReplyFault::malformed(bad.to_string()))?
        }
        (Some(_), _) | (None, None) => recorded.bytes.clone(),
    };
    Ok(vec![Piece { class: Class::Terminal, bytes }])
}

/// Pieces of a size worth sending, none of them less committed than the one before, all that is terminal in the last.
fn packed(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<(Class, Vec<Bytes>, usize)> = Vec::new();
    for piece in pieces {
        let before = out.last().map_or(Class::Preamble, |(class, ..)| *class);
        let class = before.max(piece.class);
        let length = piece.bytes.len();
        match out.last_mut() {
            Some((last, parts, size)) if *last == class && (class == Class::Terminal || *size + length <= PIECE) => {
                parts.push(piece.bytes);
                *size += length;
            }
            Some(_) | None => out.push((class, vec![piece.bytes], length)),
        }
    }
    let joined = |mut parts: Vec<Bytes>| match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, last) => parts.into_iter().chain(last).flatten().collect(),
    };
    out.into_iter().map(|(class, parts, _)| Piece { class, bytes: joined(parts) }).collect()
}
