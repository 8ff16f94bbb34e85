//! One attempt's answer being read: the codec, what it holds back, and the upstream's error when that is what comes.

use crate::ports::{Answer, AnswerBody, Happening, NativeAnswer};
use crate::upstream_error::UpstreamError;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use turnkeep_base::limit::{MAX_ERROR_BODY, MAX_EVENT};
use turnkeep_base::{Declared, Dialect, Evidence, Fault, FaultKind, Phase};
use turnkeep_dialect::classify;
use turnkeep_dialect::count::{count_body, count_reply};
use turnkeep_dialect::event::{Block, Class, Delta, Event, Order};
use turnkeep_dialect::reply::{EventCodec, Facts, Piece, Progress, ReplyFault, ReplyOptions, StreamCodec};
use turnkeep_dialect::request::{ClientRequest, Operation};
use turnkeep_dialect::{reply, windows};
use turnkeep_policy::conversations::Conversation;

/// How long the end of an answer's transport is waited for after the protocol's own end, and the bytes that are passed
/// over until then.
const AFTER_END_WAIT: Duration = Duration::from_secs(1);
const AFTER_END_BYTES: usize = 64 << 10;

/// What one read brought.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    /// Something the model made.
    pub content: bool,
    /// How far the answer has come.
    pub progress: Progress,
    /// The upstream is at work, though nothing of it is shown.
    pub alive: bool,
}

impl Read {
    fn of(content: bool, progress: Progress) -> Self {
        Read { content, progress, alive: false }
    }
}

/// What one look at the upstream brought.
#[derive(Debug)]
pub(crate) enum Chunk {
    /// Bytes of a client's dialect.
    Bytes(Bytes),
    /// What happened in an answer of a protocol of its own.
    Happenings(Vec<Happening>),
}

/// Happenings that are taken in one look.
const AT_ONCE: usize = 64;

enum Source {
    Bytes(Box<dyn AnswerBody>),
    Native(Box<dyn NativeAnswer>),
}

enum Way {
    Stream(Box<StreamCodec>),
    Events(Box<EventCodec>),
    /// A plain answer of an upstream that speaks no client's dialect.
    Folded {
        events: Vec<Event>,
        order: Box<Order>,
        bytes: usize,
        facts: Facts,
    },
    Plain {
        whole: BytesMut,
        facts: Facts,
    },
    /// An error reply, or a body that is not what was asked for: read to its bound and classified.
    Error {
        status: StatusCode,
        whole: BytesMut,
        /// What the reply's headers say of the provider's limits.
        declared: Declared,
        /// When the reply was made, Unix milliseconds.
        made_ms: u64,
    },
}

/// An answer being read.
pub(crate) struct Answering {
    source: Option<Source>,
    /// As it stood at the end of a complete answer.
    conversation: Option<Conversation>,
    /// The answer that this one must go on from, by its upstream's own word.
    goes_on_from: Option<Arc<str>>,
    way: Way,
    options: ReplyOptions,
    operation: Operation,
    pieces: Vec<Piece>,
    held: Vec<Bytes>,
    terminal: Vec<Bytes>,
    error: Option<UpstreamError>,
    /// What the turn has cost in the provider's own units, in thousandths, as last told.
    units: Option<u64>,
}

impl Answering {
    /// `goes_on_from` is the answer that the upstream was asked to go on from; `wall_ms` is the gateway's own time, for a
    /// reply that states none.
    pub(crate) fn new(
        answer: Answer,
        request: &ClientRequest,
        options: ReplyOptions,
        goes_on_from: Option<Arc<str>>,
        wall_ms: u64,
    ) -> Self {
        let is = |kind: &str| {
            let value = answer.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
            value.is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with(kind))
        };
        // A stream that is answered as plain JSON or a page is read whole: it is an error, or not the protocol.
        let not_a_stream = request.stream && (is("application/json") || is("text/html"));
        let way = if !answer.status.is_success() || not_a_stream {
            error_way(&answer, wall_ms)
        } else if request.stream {
            Way::Stream(Box::new(StreamCodec::new(&options)))
        } else {
            Way::Plain { whole: BytesMut::new(), facts: Facts::default() }
        };
        let answering = Answering::over(Source::Bytes(answer.body), way, request, options);
        Answering { goes_on_from, ..answering }
    }

    /// An answer that comes as events.
    pub(crate) fn of_events(answer: Box<dyn NativeAnswer>, request: &ClientRequest, options: ReplyOptions) -> Self {
        let way = if request.stream {
            Way::Events(Box::new(EventCodec::new(&options)))
        } else {
            Way::Folded { events: Vec::new(), order: Box::default(), bytes: 0, facts: Facts::default() }
        };
        Answering::over(Source::Native(answer), way, request, options)
    }

    fn over(source: Source, way: Way, request: &ClientRequest, options: ReplyOptions) -> Self {
        Answering {
            source: Some(source),
            conversation: None,
            goes_on_from: None,
            way,
            options,
            operation: request.operation,
            pieces: Vec::new(),
            held: Vec::new(),
            terminal: Vec::new(),
            error: None,
            units: None,
        }
    }

    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk, Fault>>> {
        let native = match &mut self.source {
            None => return Poll::Ready(None),
            Some(Source::Bytes(body)) => {
                return body.poll_chunk(cx).map(|read| read.map(|read| read.map(Chunk::Bytes)));
            }
            Some(Source::Native(native)) => native,
        };
        let mut happened = Vec::new();
        while happened.len() < AT_ONCE {
            match native.poll_next(cx) {
                Poll::Ready(Some(Ok(happening))) => {
                    let end = happening == Happening::Event(Event::End);
                    happened.push(happening);
                    if end {
                        break;
                    }
                }
                // What came before is told first; the end, or the fault, is asked for again.
                Poll::Ready(Some(Err(fault))) if happened.is_empty() => return Poll::Ready(Some(Err(fault))),
                Poll::Ready(None) if happened.is_empty() => return Poll::Ready(None),
                Poll::Ready(end) => {
                    self.source = Some(Source::Native(Box::new(Over(end.and_then(Result::err)))));
                    break;
                }
                Poll::Pending if happened.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(Some(Ok(Chunk::Happenings(happened))))
    }

    pub(crate) fn take_in(&mut self, chunk: Chunk) -> Result<Read, Fault> {
        match chunk {
            Chunk::Bytes(bytes) => self.feed(bytes),
            Chunk::Happenings(happened) => self.happened(happened),
        }
    }

    fn happened(&mut self, happened: Vec<Happening>) -> Result<Read, Fault> {
        let mut alive = false;
        let mut outcome = Ok(());
        for happening in happened {
            match happening {
                Happening::Alive => alive = true,
                Happening::Units(units) => {
                    alive = true;
                    self.units = Some(units);
                }
                Happening::Event(event) => outcome = self.event(event),
            }
            if outcome.is_err() {
                break;
            }
        }
        let progress = self.progress();
        let mut read = self.sort(outcome, progress)?;
        read.alive = alive;
        Ok(read)
    }

    fn event(&mut self, event: Event) -> Result<(), ReplyFault> {
        let end = event == Event::End;
        match &mut self.way {
            Way::Events(codec) => codec.event(&event, &mut self.pieces)?,
            Way::Folded { events, order, bytes, facts } => {
                order.event(&event).map_err(|what| ReplyFault::new(FaultKind::GatewayBug, what))?;
                *bytes += event_bytes(&event);
                if *bytes > MAX_EVENT {
                    return Err(ReplyFault::malformed(format!("a plain answer of more than {MAX_EVENT} bytes")));
                }
                reply::note(&event, facts);
                events.push(event);
                if end {
                    let (body, read) = reply::plain_of(&self.options, events);
                    *facts = read;
                    self.pieces.push(Piece { class: Class::Terminal, bytes: body });
                }
            }
            Way::Stream(_) | Way::Plain { .. } | Way::Error { .. } => {
                return Err(ReplyFault::new(FaultKind::GatewayBug, "events in an answer of bytes"));
            }
        }
        if end && let Some(Source::Native(native)) = &self.source {
            self.conversation = native.conversation();
        }
        Ok(())
    }

    fn progress(&self) -> Progress {
        match &self.way {
            Way::Stream(codec) => codec.progress(),
            Way::Events(codec) => codec.progress(),
            Way::Folded { events, .. } if events.last() == Some(&Event::End) => Progress::Done,
            Way::Folded { .. } | Way::Plain { .. } | Way::Error { .. } => Progress::Open,
        }
    }

    /// The conversation as it stood at the end of a complete answer, where the upstream keeps one.
    pub(crate) fn conversation(&mut self) -> Option<Conversation> {
        if !self.options.asked.chained {
            return self.conversation.take();
        }
        let facts = self.facts();
        let handle = facts.id.as_deref().filter(|_| facts.link.stored)?;
        Some(Conversation { handle: handle.into(), position: None, instance: None })
    }

    /// What a turn that goes on is told is wrong with its request may be wrong only with what it goes on from: the answer is
    /// gone, an id of a call is another one there, the server takes no `previous_response_id`. The whole history says which.
    fn gone_on(&self, mut fault: Fault) -> Fault {
        let named = fault.evidence.code.as_deref() == Some("previous_response_not_found");
        let invalid = fault.kind == FaultKind::RequestInvalid && !fault.context_too_long;
        if self.goes_on_from.is_some() && (named || invalid) {
            fault.kind = FaultKind::ConversationGone;
        }
        fault
    }

    /// An upstream that passes over what it was asked to go on from answers without the conversation: nothing of that is
    /// used.
    fn must_go_on(&self, content: bool) -> Result<(), Fault> {
        let Some(previous) = &self.goes_on_from else { return Ok(()) };
        match self.facts().link.is_of(previous) {
            Some(true) => Ok(()),
            None if !content => Ok(()),
            None | Some(false) => {
                let what = Evidence::text("the upstream's answer does not go on from the one that it was asked to");
                Err(Fault::new(FaultKind::ConversationGone, Phase::Answered, what))
            }
        }
    }

    fn feed(&mut self, chunk: Bytes) -> Result<Read, Fault> {
        match &mut self.way {
            Way::Events(_) | Way::Folded { .. } => {
                let what = Evidence::text("bytes in an answer of events");
                Err(Fault::new(FaultKind::GatewayBug, Phase::Answered, what))
            }
            Way::Stream(codec) => {
                let outcome = codec.feed(chunk, &mut self.pieces);
                let progress = codec.progress();
                self.sort(outcome, progress)
            }
            Way::Plain { whole, .. } => {
                if whole.len() + chunk.len() > MAX_EVENT {
                    let what = format!("a plain answer of more than {MAX_EVENT} bytes");
                    return Err(Fault::new(FaultKind::MalformedResponse, Phase::Answered, Evidence::text(what)));
                }
                whole.extend_from_slice(&chunk);
                Ok(Read::of(false, Progress::Open))
            }
            Way::Error { whole, .. } => {
                let room = MAX_ERROR_BODY.saturating_sub(whole.len());
                whole.extend_from_slice(&chunk[..chunk.len().min(room)]);
                if room <= chunk.len() { self.classify() } else { Ok(Read::of(false, Progress::Open)) }
            }
        }
    }

    /// The body is at its end.
    pub(crate) fn finish(&mut self) -> Result<Read, Fault> {
        self.source = None;
        match &mut self.way {
            Way::Events(_) | Way::Folded { .. } => Err(answered(ReplyFault::truncated())),
            Way::Stream(codec) => {
                let outcome = codec.finish(&mut self.pieces);
                let progress = codec.progress();
                self.sort(outcome, progress)
            }
            Way::Plain { whole, facts } => {
                let whole = std::mem::take(whole).freeze();
                let outcome = match self.operation {
                    Operation::Generate | Operation::Complete | Operation::Embed => reply::plain(&self.options, whole),
                    Operation::CountTokens => {
                        let ReplyOptions { client, upstream, .. } = self.options;
                        match count_reply(upstream, &whole) {
                            Some(_) if client == upstream => Ok((whole, Facts::default())),
                            Some(tokens) => Ok((count_body(client, tokens), Facts::default())),
                            None => Err(ReplyFault::malformed("the answer holds no count of tokens")),
                        }
                    }
                };
                let (bytes, read) = outcome.map_err(answered)?;
                *facts = read;
                self.must_go_on(true)?;
                self.terminal.push(bytes);
                Ok(Read::of(true, Progress::Done))
            }
            Way::Error { .. } => self.classify(),
        }
    }

    /// The wait for usage is over.
    pub(crate) fn settle(&mut self) -> Result<Read, Fault> {
        match &mut self.way {
            Way::Stream(codec) => {
                let outcome = codec.settle(&mut self.pieces);
                let progress = codec.progress();
                self.sort(outcome, progress)
            }
            Way::Events(_) | Way::Folded { .. } | Way::Plain { .. } | Way::Error { .. } => {
                Ok(Read::of(false, Progress::Open))
            }
        }
    }

    /// Keeps the pieces where their class puts them. What came before a fault in the same bytes is kept, too.
    fn sort(&mut self, outcome: Result<(), ReplyFault>, progress: Progress) -> Result<Read, Fault> {
        let mut content = false;
        for piece in self.pieces.drain(..) {
            content |= piece.class == Class::Answer;
            if piece.class == Class::Terminal || !self.terminal.is_empty() {
                self.terminal.push(piece.bytes);
            } else {
                self.held.push(piece.bytes);
            }
        }
        outcome.map_err(|fault| self.gone_on(answered(fault)))?;
        self.must_go_on(content || progress != Progress::Open)?;
        let kept: usize = self.held.iter().chain(&self.terminal).map(Bytes::len).sum();
        if kept > 2 * MAX_EVENT {
            let what = format!("more than {} bytes that say nothing", 2 * MAX_EVENT);
            return Err(Fault::new(FaultKind::MalformedResponse, Phase::Answered, Evidence::text(what)));
        }
        Ok(Read::of(content, progress))
    }

    fn classify(&mut self) -> Result<Read, Fault> {
        let Way::Error { status, whole, declared, made_ms } = &mut self.way else {
            return Ok(Read::of(false, Progress::Open));
        };
        let body = std::mem::take(whole).freeze();
        let status = *status;
        let upstream = self.options.upstream;
        let mut classified = match &self.goes_on_from {
            Some(_) => classify::continued_at(upstream, status.as_u16(), &body, *made_ms),
            None => classify::reply_at(upstream, status.as_u16(), &body, *made_ms),
        };
        if status.is_success() && classified.evidence.code.is_none() {
            classified.kind = FaultKind::MalformedResponse;
            // It may be an answer, and no answer's text is kept as evidence.
            classified.evidence.detail = format!("{} bytes with a success status that are no stream", body.len());
            classified.message.clone_from(&classified.evidence.detail);
        }
        let declared = std::mem::take(declared).and(classified.declared.clone());
        let mut fault = Fault::new(classified.kind, Phase::Answered, classified.evidence.clone()).declaring(declared);
        fault.context_too_long = classified.context_too_long;
        let fault = self.gone_on(fault);
        classified.kind = fault.kind;
        self.error = Some(UpstreamError { status, body, dialect: self.options.upstream, classified });
        Err(fault)
    }

    pub(crate) fn facts(&self) -> &Facts {
        static NONE: std::sync::LazyLock<Facts> = std::sync::LazyLock::new(Facts::default);
        match &self.way {
            Way::Stream(codec) => codec.facts(),
            Way::Events(codec) => codec.facts(),
            Way::Plain { facts, .. } | Way::Folded { facts, .. } => facts,
            Way::Error { .. } => &NONE,
        }
    }

    /// What the turn has cost in the provider's own units, in thousandths, as far as it was told.
    pub(crate) fn units(&self) -> Option<u64> {
        self.units
    }

    pub(crate) fn take_held(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.held)
    }

    pub(crate) fn take_terminal(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.terminal)
    }

    pub(crate) fn take_error(&mut self) -> Option<UpstreamError> {
        self.error.take()
    }

    /// What an error reply says whose body has been read whole already; nothing if it has not, or is an answer.
    pub(crate) fn whole_error(&mut self, cx: &mut Context<'_>) -> Option<Fault> {
        match self.way {
            Way::Error { .. } => {}
            Way::Stream(_) | Way::Events(_) | Way::Folded { .. } | Way::Plain { .. } => return None,
        }
        loop {
            match self.poll_chunk(cx) {
                Poll::Ready(Some(Ok(chunk))) => {
                    if let Err(fault) = self.take_in(chunk) {
                        return Some(fault);
                    }
                }
                Poll::Ready(None) => return self.finish().err(),
                Poll::Ready(Some(Err(_))) | Poll::Pending => return None,
            }
        }
    }

    /// The answer is whole by its protocol. The transport's own end may come a moment later, and only then can the
    /// connection be used again: it is waited for, apart from the turn and not for long.
    pub(crate) fn hear_end(&mut self) {
        let mut body = match self.source.take() {
            Some(Source::Bytes(body)) => body,
            // Its end is the protocol's own.
            Some(Source::Native(_)) | None => return,
        };
        // Mostly it is there already, and no task is needed for it.
        let mut cx = Context::from_waker(std::task::Waker::noop());
        if let Poll::Ready(None | Some(Err(_))) = body.poll_chunk(&mut cx) {
            return;
        }
        tokio::spawn(async move {
            let mut room = AFTER_END_BYTES;
            let end = async {
                while let Some(Ok(bytes)) = poll_fn(|cx| body.poll_chunk(cx)).await {
                    let Some(left) = room.checked_sub(bytes.len()) else { return };
                    room = left;
                }
            };
            let _ = tokio::time::timeout(AFTER_END_WAIT, end).await;
        });
    }

    /// Drops the exchange: the connection is closed, or the stream reset. What was read before stays: once the answer
    /// has begun, the client still gets it ahead of the error.
    pub(crate) fn cancel(&mut self) {
        self.source = None;
    }
}

/// A native answer whose end has been seen, with its fault, and is told when what came before it has been.
struct Over(Option<Fault>);

impl NativeAnswer for Over {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Happening, Fault>>> {
        Poll::Ready(self.0.take().map(Err))
    }

    fn conversation(&self) -> Option<Conversation> {
        None
    }
}

/// About how many bytes of memory an event takes.
fn event_bytes(event: &Event) -> usize {
    let text = match event {
        Event::Delta { delta, .. } => match delta {
            Delta::Text(text) | Delta::Thinking(text) | Delta::Signature(text) | Delta::Arguments(text) => text.len(),
        },
        Event::BlockStart { kind: Block::RedactedThinking(text), .. } => text.len(),
        Event::BlockStart { kind: Block::ToolCall { id, name }, .. } => id.len() + name.len(),
        Event::BlockStart { kind: Block::Text | Block::Thinking | Block::Refusal, .. }
        | Event::Start { .. }
        | Event::BlockStop { .. }
        | Event::Finish { .. }
        | Event::Usage(_)
        | Event::End => 0,
    };
    text + 64
}

fn answered(fault: ReplyFault) -> Fault {
    let mut out = Fault::new(fault.kind, Phase::Answered, fault.evidence).declaring(fault.declared);
    out.context_too_long = fault.context_too_long;
    out
}

/// An error reply to be read, with what its headers say of the provider's limits.
fn error_way(answer: &Answer, wall_ms: u64) -> Way {
    let (declared, made_ms) = declared(&answer.headers, wall_ms);
    Way::Error { status: answer.status, whole: BytesMut::new(), declared, made_ms }
}

/// What a reply's headers declare, and when it was made.
fn declared(headers: &HeaderMap, wall_ms: u64) -> (Declared, u64) {
    let get = |name: &str| headers.get(name)?.to_str().ok();
    (windows::from_headers(&get, wall_ms), windows::made_at(&get, wall_ms))
}

/// What the head of an error reply says by itself.
pub(crate) fn of_head(upstream: Dialect, status: StatusCode, headers: &HeaderMap, wall_ms: u64) -> Fault {
    let (declared, made_ms) = declared(headers, wall_ms);
    let classified = classify::reply_at(upstream, status.as_u16(), b"", made_ms);
    Fault::new(classified.kind, Phase::Answered, classified.evidence).declaring(declared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnkeep_dialect::request;

    struct Nothing;

    impl AnswerBody for Nothing {
        fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Fault>>> {
            Poll::Pending
        }
    }

    #[test]
    fn what_a_turn_costs_in_its_providers_units_is_what_was_told_last_also_after_a_cancel() {
        struct Costly(Vec<u64>);
        impl NativeAnswer for Costly {
            fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Happening, Fault>>> {
                self.0.pop().map_or(Poll::Pending, |units| Poll::Ready(Some(Ok(Happening::Units(units)))))
            }

            fn conversation(&self) -> Option<Conversation> {
                None
            }
        }
        let (request, options) = asked();
        let mut answering = Answering::of_events(Box::new(Costly(vec![1_250, 0])), &request, options);
        assert_eq!(answering.units(), None);
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let Poll::Ready(Some(Ok(chunk))) = answering.poll_chunk(&mut cx) else { panic!("nothing came") };
        assert!(answering.take_in(chunk).unwrap().alive);
        answering.cancel();
        assert_eq!(answering.units(), Some(1_250));
    }

    fn asked() -> (ClientRequest, ReplyOptions) {
        let body = Bytes::from_static(br#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#);
        let request = request::read(Dialect::Chat, Operation::Generate, body).unwrap();
        let options = ReplyOptions {
            client: Dialect::Chat,
            upstream: Dialect::Chat,
            model: "m".into(),
            usage_wanted: false,
            choices: 1,
            id: "x".into(),
            created: 0,
            max_event: MAX_EVENT,
            asked: Default::default(),
        };
        (request, options)
    }

    #[test]
    fn what_came_in_the_same_bytes_before_a_fault_is_kept_for_the_client() {
        let (request, options) = asked();
        let answer = Answer { status: StatusCode::OK, headers: HeaderMap::new(), body: Box::new(Nothing) };
        let mut answering = Answering::new(answer, &request, options, None, 0);
        let delta = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n";
        let error = "data: {\"error\":{\"message\":\"broken\",\"type\":\"server_error\"}}\n\n";
        let outcome = answering.feed(Bytes::from(format!("{delta}{error}")));
        assert_eq!(outcome.map_err(|fault| fault.kind).err(), Some(FaultKind::UpstreamInternal));
        answering.cancel();
        assert_eq!(answering.take_held(), [Bytes::from(delta)]);
    }
}
