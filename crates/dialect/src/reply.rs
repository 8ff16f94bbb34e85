//! An upstream's answer on its way to the client, same dialect or translated, streamed or plain: bytes in, pieces out.
//!
//! The codec says how far each piece commits the answer and when the answer is complete; whether and when pieces are
//! written is the engine's. It never ends an answer that the upstream did not end.

mod call_ids;
mod lawful;

use crate::classify::Classified;
use crate::event::{Class, Event, Finish};
use crate::request::{Operation, StreamForm};
use crate::responses::chain::Link;
use crate::tool_names::ToolNames;
use crate::{chat, gemini, messages, responses};
use bytes::Bytes;
use call_ids::CallIds;
use lawful::Lawful;
use std::sync::Arc;
use turnkeep_base::{ClientError, Declared, Dialect, Evidence, FaultKind, Usage};
use turnkeep_wire::sse;

/// Bytes for the client and how far they commit the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// How far.
    pub class: Class,
    /// What.
    pub bytes: Bytes,
}

/// Appends a piece, joining it to the one before when both are slices of the same class that touch.
pub fn push_piece(out: &mut Vec<Piece>, class: Class, bytes: Bytes) {
    if !bytes.is_empty() {
        out.push(Piece { class, bytes });
    }
}

/// What is wrong with an upstream's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyFault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// Its proof.
    pub evidence: Evidence,
    /// What the error says of the provider's limits.
    pub declared: Declared,
    /// The request is longer than the model's window.
    pub context_too_long: bool,
}

impl ReplyFault {
    /// A fault of the answer's own, which declares nothing.
    pub fn new(kind: FaultKind, what: impl Into<String>) -> Self {
        ReplyFault { kind, evidence: Evidence::text(what), declared: Declared::default(), context_too_long: false }
    }

    /// Bytes that are not the protocol.
    pub fn malformed(what: impl Into<String>) -> Self {
        Self::new(FaultKind::MalformedResponse, what)
    }

    /// The answer ended without its terminal event.
    pub fn truncated() -> Self {
        Self::new(FaultKind::StreamTruncated, "the answer ended without its terminal event")
    }
}

impl From<Classified> for ReplyFault {
    fn from(error: Classified) -> Self {
        let Classified { kind, evidence, declared, context_too_long, message: _, param: _ } = error;
        ReplyFault { kind, evidence, declared, context_too_long }
    }
}

/// What the gateway has read of an answer in passing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Token counts, the last ones seen.
    pub usage: Option<Usage>,
    /// Why the model stopped.
    pub finish: Option<Finish>,
    /// The model that answered, as the upstream names it; none where the name is over 256 bytes or has control
    /// characters.
    pub model: Option<String>,
    /// The upstream's id of the answer, within the same bounds.
    pub id: Option<String>,
    /// Bytes of content (text, thinking, arguments), for an estimate when no usage came.
    pub content_bytes: u64,
    /// What a Responses answer says of the chain it is in.
    pub link: Link,
}

/// How far the answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// More is to come.
    Open,
    /// It is complete, but usage may follow (Chat after its last finish reason).
    Finishing,
    /// It is complete and nothing of it can follow.
    Done,
}

/// What a codec must know of the request it answers.
#[derive(Clone, Debug)]
pub struct ReplyOptions {
    /// The client's dialect.
    pub client: Dialect,
    /// The upstream's dialect.
    pub upstream: Dialect,
    /// The client named this model; shown where the upstream names none.
    pub model: String,
    /// The client wants Chat's usage chunk.
    pub usage_wanted: bool,
    /// How many choices were asked for.
    pub choices: u64,
    /// An id for an answer whose upstream gives none; made by the caller, without a dialect's prefix.
    pub id: String,
    /// Unix seconds, for dialects whose answers carry a time.
    pub created: u64,
    /// The longest event that is read, in bytes.
    pub max_event: usize,
    /// What else the answer depends on of the request.
    pub asked: Asked,
}

/// What an answer depends on of its request, beside what every dialect asks for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What was asked for.
    pub operation: Operation,
    /// How a stream is framed.
    pub form: StreamForm,
    /// How the client knows the tools that were sent under another name.
    pub names: Arc<ToolNames>,
    /// The client's body, for dialects whose answers repeat fields of the request (Responses); empty where none is
    /// needed.
    pub body: Bytes,
    /// The upstream is asked with another body than the client's, so what a Responses answer repeats of its request is
    /// put right within the dialect too.
    pub restated: bool,
    /// A Responses answer has the gateway's own id, within the dialect too.
    pub own_id: bool,
    /// A Responses upstream is asked to keep its answer, as the gateway may go on from it.
    pub chained: bool,
}

impl Default for Asked {
    fn default() -> Self {
        Asked {
            operation: Operation::Generate,
            form: StreamForm::Events,
            names: Arc::default(),
            body: Bytes::new(),
            restated: false,
            own_id: false,
            chained: false,
        }
    }
}

/// The codec of one streamed answer.
#[derive(Debug)]
pub struct StreamCodec {
    reader: sse::Reader,
    way: Way,
    facts: Facts,
    progress: Progress,
    options: ReplyOptions,
}

#[derive(Debug)]
enum Way {
    Tap(Tap),
    Translate { decoder: Decoder, writer: Writer, events: Vec<Event> },
}

#[derive(Debug)]
enum Tap {
    Chat(chat::tap::Tap),
    Responses(responses::tap::Tap),
    Messages(messages::tap::Tap),
    Gemini(gemini::tap::Tap),
}

#[derive(Debug)]
enum Decoder {
    Chat(chat::reply_decode::StreamDecoder),
    Responses(responses::reply_decode::StreamDecoder),
    Messages(messages::reply_decode::StreamDecoder),
    Gemini(gemini::reply_decode::StreamDecoder),
}

#[derive(Debug)]
enum Encoder {
    Chat(chat::reply_encode::StreamEncoder),
    Completion(chat::completions::StreamEncoder),
    Responses(responses::reply_encode::StreamEncoder),
    Messages(messages::reply_encode::StreamEncoder),
    Gemini(gemini::reply_encode::StreamEncoder),
}

/// What a tap says of one frame that it has read in passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// How far the frame commits the answer; `None` when the frame is withheld from the client.
    pub class: Option<Class>,
    /// How far the answer has come with it.
    pub progress: Progress,
}

impl StreamCodec {
    /// A codec for one answer.
    pub fn new(options: &ReplyOptions) -> Self {
        let way = if options.client == options.upstream {
            Way::Tap(match options.client {
                Dialect::Chat => Tap::Chat(chat::tap::Tap::new(options)),
                Dialect::Responses => Tap::Responses(responses::tap::Tap::new(options)),
                Dialect::Messages => Tap::Messages(messages::tap::Tap::new(options)),
                Dialect::Gemini => Tap::Gemini(gemini::tap::Tap::new(options)),
            })
        } else {
            translating(options)
        };
        StreamCodec {
            reader: sse::Reader::new(options.max_event),
            way,
            facts: Facts::default(),
            progress: Progress::Open,
            options: options.clone(),
        }
    }

    /// Reads a chunk; appends what may go to the client. After [`Progress::Done`] everything is ignored.
    pub fn feed(&mut self, chunk: Bytes, out: &mut Vec<Piece>) -> Result<(), ReplyFault> {
        if self.progress == Progress::Done {
            return Ok(());
        }
        self.reader.push(chunk);
        loop {
            let frame = self.reader.next_frame().map_err(|long| ReplyFault::malformed(long.to_string()))?;
            let Some(frame) = frame else { return Ok(()) };
            self.frame(frame, out)?;
            if self.progress == Progress::Done {
                return Ok(());
            }
        }
    }

    /// The upstream's bytes are at their end. An answer that is not complete by now is truncated.
    pub fn finish(&mut self, out: &mut Vec<Piece>) -> Result<(), ReplyFault> {
        while self.progress != Progress::Done {
            let frame = self.reader.finish().map_err(|long| ReplyFault::malformed(long.to_string()))?;
            let Some(frame) = frame else { break };
            // What the connection cut in the middle of an event is no event.
            self.frame(frame, out).map_err(|fault| {
                if fault.kind == FaultKind::MalformedResponse { ReplyFault::truncated() } else { fault }
            })?;
        }
        self.settle(out)
    }

    /// Nothing more is awaited: ends an answer that is [`Progress::Finishing`], as the wait for its usage is over.
    pub fn settle(&mut self, out: &mut Vec<Piece>) -> Result<(), ReplyFault> {
        match self.progress {
            Progress::Done => Ok(()),
            Progress::Open => Err(ReplyFault::truncated()),
            Progress::Finishing => {
                match &mut self.way {
                    Way::Translate { decoder, writer, events } => {
                        match decoder {
                            Decoder::Chat(decoder) => decoder.settle(events),
                            Decoder::Gemini(decoder) => decoder.settle(events),
                            Decoder::Responses(_) | Decoder::Messages(_) => {}
                        }
                        translate(events, writer, &mut self.facts, out)?;
                    }
                    Way::Tap(Tap::Gemini(tap)) => tap.settle(out),
                    Way::Tap(Tap::Chat(_) | Tap::Responses(_) | Tap::Messages(_)) => {}
                }
                self.progress = Progress::Done;
                Ok(())
            }
        }
    }

    fn frame(&mut self, frame: sse::Frame, out: &mut Vec<Piece>) -> Result<(), ReplyFault> {
        if let Way::Tap(Tap::Responses(tap)) = &self.way
            && tap.is_off_spec(&frame)
        {
            self.way = translating(&self.options);
        }
        match &mut self.way {
            Way::Tap(tap) => {
                let passed = match tap {
                    Tap::Chat(tap) => tap.frame(&frame, &mut self.facts)?,
                    Tap::Responses(tap) => tap.frame(&frame, &mut self.facts)?,
                    Tap::Messages(tap) => tap.frame(&frame, &mut self.facts)?,
                    Tap::Gemini(tap) => tap.frame(&frame, &mut self.facts)?,
                };
                self.progress = passed.progress;
                if let Some(class) = passed.class {
                    let bytes = match tap {
                        Tap::Gemini(tap) => tap.bytes(frame),
                        Tap::Responses(tap) => tap.bytes(frame),
                        Tap::Chat(_) | Tap::Messages(_) => frame.raw,
                    };
                    push_piece(out, class, bytes);
                }
            }
            Way::Translate { decoder, writer, events } => {
                self.progress = match decoder {
                    Decoder::Chat(decoder) => decoder.frame(&frame, events)?,
                    Decoder::Responses(decoder) => {
                        let progress = decoder.frame(&frame, events)?;
                        decoder.note_link(&mut self.facts);
                        progress
                    }
                    Decoder::Messages(decoder) => decoder.frame(&frame, events)?,
                    Decoder::Gemini(decoder) => decoder.frame(&frame, events)?,
                };
                translate(events, writer, &mut self.facts, out)?;
            }
        }
        Ok(())
    }

    /// How far the answer has come.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// What has been read in passing.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }
}

/// Read as events and written anew.
fn translating(options: &ReplyOptions) -> Way {
    let decoder = match options.upstream {
        Dialect::Chat => Decoder::Chat(chat::reply_decode::StreamDecoder::new(options)),
        Dialect::Responses => Decoder::Responses(responses::reply_decode::StreamDecoder::new(options)),
        Dialect::Messages => Decoder::Messages(messages::reply_decode::StreamDecoder::new(options)),
        Dialect::Gemini => Decoder::Gemini(gemini::reply_decode::StreamDecoder::new(options)),
    };
    Way::Translate { decoder, writer: Writer::new(options), events: Vec::new() }
}

/// Events written in the client's dialect, and held to the order of both.
#[derive(Debug)]
struct Writer {
    encoder: Encoder,
    lawful: Box<Lawful>,
    ids: CallIds,
    scratch: Vec<u8>,
}

impl Writer {
    fn new(options: &ReplyOptions) -> Self {
        let encoder = match options.client {
            Dialect::Chat if options.asked.operation == Operation::Complete => {
                Encoder::Completion(chat::completions::StreamEncoder::new(options))
            }
            Dialect::Chat => Encoder::Chat(chat::reply_encode::StreamEncoder::new(options)),
            Dialect::Responses => Encoder::Responses(responses::reply_encode::StreamEncoder::new(options)),
            Dialect::Messages => Encoder::Messages(messages::reply_encode::StreamEncoder::new(options)),
            Dialect::Gemini => Encoder::Gemini(gemini::reply_encode::StreamEncoder::new(options)),
        };
        Writer { encoder, lawful: Box::new(Lawful::new(options)), ids: CallIds::new(&options.id), scratch: Vec::new() }
    }

    fn event(&mut self, event: &Event, facts: &mut Facts, out: &mut Vec<Piece>) -> Result<(), ReplyFault> {
        let Writer { encoder, lawful, ids, scratch } = self;
        let event = &*ids.own(event);
        lawful.event(event)?;
        note(event, facts);
        scratch.clear();
        let class = match encoder {
            Encoder::Chat(encoder) => encoder.event(event, scratch),
            Encoder::Completion(encoder) => encoder.event(event, scratch),
            Encoder::Responses(encoder) => encoder.event(event, scratch),
            Encoder::Messages(encoder) => encoder.event(event, scratch),
            Encoder::Gemini(encoder) => encoder.event(event, scratch),
        };
        // A short event is copied, so that the buffer which it grew in serves the next one too.
        let bytes = if scratch.capacity() > SCRATCH {
            Bytes::from(std::mem::take(scratch))
        } else {
            Bytes::copy_from_slice(scratch)
        };
        lawful.bytes(event, &bytes)?;
        push_piece(out, class, bytes);
        Ok(())
    }
}

/// The codec of one streamed answer that comes as events: of an upstream that speaks no client's dialect.
#[derive(Debug)]
pub struct EventCodec {
    writer: Writer,
    facts: Facts,
    progress: Progress,
}

impl EventCodec {
    /// A codec for one answer; [`ReplyOptions::upstream`] is not looked at.
    pub fn new(options: &ReplyOptions) -> Self {
        EventCodec { writer: Writer::new(options), facts: Facts::default(), progress: Progress::Open }
    }

    /// Takes an event; appends what may go to the client. After [`Event::End`] everything is ignored.
    pub fn event(&mut self, event: &Event, out: &mut Vec<Piece>) -> Result<(), ReplyFault> {
        if self.progress == Progress::Done {
            return Ok(());
        }
        self.writer.event(event, &mut self.facts, out)?;
        if *event == Event::End {
            self.progress = Progress::Done;
        }
        Ok(())
    }

    /// How far the answer has come.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// What has been read in passing.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }
}

/// What of the buffer that events are written into is kept from one to the next, in bytes.
const SCRATCH: usize = 1 << 10;

fn translate(
    events: &mut Vec<Event>,
    writer: &mut Writer,
    facts: &mut Facts,
    out: &mut Vec<Piece>,
) -> Result<(), ReplyFault> {
    events.drain(..).try_for_each(|event| writer.event(&event, facts, out))
}

/// A name that an upstream gave, if it is fit to be kept.
pub(crate) fn named(name: &str) -> Option<String> {
    crate::request::is_name(name).then(|| name.to_owned())
}

/// Keeps the facts of an event.
pub fn note(event: &Event, facts: &mut Facts) {
    use crate::event::Delta;
    match event {
        Event::Start { id, model, usage } => {
            facts.id = id.as_deref().and_then(named);
            facts.model = model.as_deref().and_then(named);
            facts.usage = *usage;
        }
        Event::Delta { delta, .. } => {
            facts.content_bytes += match delta {
                Delta::Text(text) | Delta::Thinking(text) | Delta::Arguments(text) => text.len() as u64,
                Delta::Signature(_) => 0,
            };
        }
        Event::Finish { reason, .. } => facts.finish = Some(*reason),
        Event::Usage(usage) => facts.usage = Some(*usage),
        Event::BlockStart { .. } | Event::BlockStop { .. } | Event::End => {}
    }
}

/// Reads a whole plain answer and gives the client's: the same bytes in the same dialect, else the translation.
pub fn plain(options: &ReplyOptions, body: Bytes) -> Result<(Bytes, Facts), ReplyFault> {
    if options.asked.operation == Operation::Embed {
        return embedded(options, body);
    }
    let mut facts = Facts::default();
    let same = options.client == options.upstream;
    if same && !(options.upstream == Dialect::Responses && responses::tap::is_off_spec(&body)) {
        match options.client {
            Dialect::Chat => chat::tap::plain(&body, &mut facts)?,
            Dialect::Responses => responses::tap::plain(&body, &mut facts)?,
            Dialect::Messages => messages::tap::plain(&body, &mut facts)?,
            Dialect::Gemini => gemini::tap::plain(&body, &mut facts)?,
        }
        let body = match options.client {
            Dialect::Responses => responses::tap::plain_bytes(body, options),
            Dialect::Chat | Dialect::Messages | Dialect::Gemini => body,
        };
        return Ok((body, facts));
    }
    let events = match options.upstream {
        Dialect::Chat => chat::reply_decode::plain(&body, options)?,
        Dialect::Responses => responses::reply_decode::plain(&body, options)?,
        Dialect::Messages => messages::reply_decode::plain(&body, options)?,
        Dialect::Gemini => gemini::reply_decode::plain(&body, options)?,
    };
    let (body_out, mut facts) = plain_of(options, &events);
    if options.asked.chained && options.upstream == Dialect::Responses {
        responses::tap::link(&body, &mut facts);
    }
    Ok((body_out, facts))
}

/// A whole plain answer of these events, in the client's dialect.
pub fn plain_of(options: &ReplyOptions, events: &[Event]) -> (Bytes, Facts) {
    let mut facts = Facts::default();
    for event in events {
        note(event, &mut facts);
    }
    let own = call_ids::all(&options.id, events);
    let events = own.as_deref().unwrap_or(events);
    let out = match options.client {
        Dialect::Chat if options.asked.operation == Operation::Complete => chat::completions::plain(events, options),
        Dialect::Chat => chat::reply_encode::plain(events, options),
        Dialect::Responses => responses::reply_encode::plain(events, options),
        Dialect::Messages => messages::reply_encode::plain(events, options),
        Dialect::Gemini => gemini::reply_encode::plain(events, options),
    };
    (out.into(), facts)
}

/// Vectors for a client of embeddings.
fn embedded(options: &ReplyOptions, body: Bytes) -> Result<(Bytes, Facts), ReplyFault> {
    match options.upstream {
        Dialect::Gemini => chat::embeddings::from_gemini(&body, options),
        Dialect::Chat | Dialect::Responses | Dialect::Messages => {
            let mut facts = Facts::default();
            chat::embeddings::plain(&body, &mut facts)?;
            Ok((body, facts))
        }
    }
}

/// The HTTP status and body of an error in a dialect. `request_id` is our turn's id.
pub fn error_body(dialect: Dialect, error: &ClientError, request_id: &str) -> (u16, Bytes) {
    match dialect {
        Dialect::Chat => chat::error::body(error, request_id),
        Dialect::Responses => responses::error::body(error, request_id),
        Dialect::Messages => messages::error::body(error, request_id),
        Dialect::Gemini => gemini::error::body(error, request_id),
    }
}

/// Whether an upstream's error body is wholly of the dialect, so that a client of it can be given the very bytes. Many
/// compatible servers answer with a form of their own.
pub fn is_error_body(dialect: Dialect, body: &[u8]) -> bool {
    match dialect {
        Dialect::Chat | Dialect::Responses => chat::error::is_body(body),
        Dialect::Messages => messages::error::is_body(body),
        Dialect::Gemini => gemini::error::is_body(body),
    }
}

/// The end of a stream that failed after it had begun: the dialect's in-band error, and never a success terminator.
/// `begun`: something of the answer has been sent.
pub fn error_event(dialect: Dialect, form: StreamForm, begun: bool, error: &ClientError, request_id: &str) -> Bytes {
    match dialect {
        Dialect::Chat => chat::error::event(error, request_id),
        Dialect::Responses => responses::error::event(error, request_id),
        Dialect::Messages => messages::error::event(error, request_id),
        Dialect::Gemini => gemini::error::event(form, begun, error, request_id),
    }
}

/// A sign of life for a stream that has nothing to say. `begun`: something of the answer has been sent.
pub fn heartbeat(dialect: Dialect, form: StreamForm, begun: bool) -> Bytes {
    match (dialect, form) {
        // White space is nothing in JSON.
        (_, StreamForm::Array) => Bytes::from_static(b"\n"),
        // To Codex a comment is no sign of life, but any event is, also of an unknown type. Before the first event the
        // SDKs take nothing but `response.created`.
        (Dialect::Responses, StreamForm::Events) if begun => {
            Bytes::from_static(b"event: keepalive\ndata: {\"type\":\"keepalive\"}\n\n")
        }
        // Google's Python client takes a comment for JSON and fails; a blank line is nothing to it, and to the others.
        (Dialect::Gemini, StreamForm::Events) => Bytes::from_static(b"\n"),
        (Dialect::Chat | Dialect::Responses, StreamForm::Events) => Bytes::from_static(b": keepalive\n\n"),
        (Dialect::Messages, StreamForm::Events) => Bytes::from_static(b"event: ping\ndata: {\"type\":\"ping\"}\n\n"),
    }
}
