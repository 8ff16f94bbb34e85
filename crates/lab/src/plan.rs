//! From a rendered reply and a rule to steps: where the waits, gates and faults stand, and how the bytes are cut.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use crate::encode::Encoder;
use crate::fault::{Fault, Point};
use crate::frame::{Mark, Piece};
use crate::http2;
use crate::script::{ContentEncoding, Rule};
use crate::socket::Order;

/// One thing a reply does.
#[derive(Debug)]
pub(crate) enum Step {
    Send(Bytes),
    /// Sends, and the reply has ended.
    Last(Bytes),
    Wait(Duration),
    Gate(String),
    /// The socket is told; nothing follows.
    Order(Order),
    Silence,
    /// The body fails: a stream reset on HTTP/2.
    Break,
    Goaway,
    /// A frame that ends this stream: a reset by this code.
    Rst(u32),
    /// A frame that ends this stream: a goodbye by this code which counts it as not processed.
    Refuse(u32),
    /// Sends past the compression.
    Uncoded(Bytes),
    /// The reply ends with these trailers.
    Trailers(HeaderMap),
    /// A Cascade turn's last step is about to be shown.
    Shown {
        name: String,
        offset: u64,
    },
    /// The body ends here.
    End,
}

/// What bytes a fault puts into a stream, in the dialect at hand.
#[derive(Debug, Default)]
pub(crate) struct FaultBytes {
    pub bad_json: Bytes,
    pub bad_utf8: Bytes,
    pub error: Bytes,
}

/// The steps of a rule before the headers.
pub(crate) fn before_headers(rule: &Rule) -> Vec<Step> {
    let mut steps = Vec::new();
    if rule.before_headers_delay_ms > 0 {
        steps.push(Step::Wait(Duration::from_millis(rule.before_headers_delay_ms)));
    }
    let gates = gates(rule).into_iter().filter(|(point, _)| *point == Point::BeforeHeaders);
    steps.extend(gates.map(|(_, name)| Step::Gate(name)));
    let Some(fault) = rule.fault.filter(|fault| place(rule, *fault) == Point::BeforeHeaders) else { return steps };
    match fault {
        Fault::ResetBeforeReply | Fault::ResetMidStream => steps.push(Step::Order(Order::Reset)),
        Fault::CloseBeforeReply | Fault::CloseMidStream => steps.push(Step::Order(Order::Close)),
        Fault::RstStream => match &rule.fault_code {
            Some(_) => steps.push(Step::Rst(code(rule))),
            None => steps.push(Step::Order(Order::Close)),
        },
        Fault::Http2GoawayRefusing => steps.push(Step::Refuse(code(rule))),
        Fault::Hang => steps.push(Step::Silence),
        Fault::BadHeader => steps.push(Step::Order(Order::Raw(bad_header()))),
        Fault::HeaderOverflow => {
            steps.push(Step::Order(Order::Raw(large_header(rule.fault_bytes.unwrap_or(1024 * 1024)))));
        }
        Fault::BadChunk => steps.push(Step::Order(Order::Raw(Bytes::from_static(BAD_CHUNKED_REPLY)))),
        Fault::Http2Goaway => steps.push(Step::Goaway),
        Fault::NoTerminal
        | Fault::DoneWithoutFinish
        | Fault::BadJson
        | Fault::BadSse
        | Fault::Html
        | Fault::ErrorInStream
        | Fault::OversizedEvent
        | Fault::BadEncoding
        | Fault::RepeatSteps
        | Fault::SkipStep
        | Fault::TruncatedEncoding => {}
    }
    steps
}

/// The steps of a body.
pub(crate) fn body(rule: &Rule, pieces: Vec<Piece>, bytes: &FaultBytes) -> Vec<Step> {
    let drop_finish = rule.fault == Some(Fault::DoneWithoutFinish);
    let mut inserts: Vec<(Point, Vec<Step>)> =
        gates(rule).into_iter().map(|(point, name)| (point, vec![Step::Gate(name)])).collect();
    if let Some(fault) = rule.fault {
        inserts.push((place(rule, fault), fault_steps(fault, rule, bytes)));
    }
    let delay = Duration::from_millis(rule.word_delay_ms);
    let mut steps = Vec::new();
    let (mut words, mut opened, mut closing) = (0, false, false);
    let mut emit = |steps: &mut Vec<Step>, here: &dyn Fn(Point) -> bool| {
        for (point, what) in &mut inserts {
            if here(*point) {
                steps.append(what);
            }
        }
    };
    for piece in pieces {
        if piece.mark != Mark::Preamble && !opened {
            opened = true;
            emit(&mut steps, &|point| matches!(point, Point::AfterPreamble | Point::AfterWords(0)));
        }
        if matches!(piece.mark, Mark::Finish | Mark::Terminal) && !closing {
            closing = true;
            emit(&mut steps, &|point| point != Point::BeforeHeaders);
        }
        if piece.mark == Mark::Word && !delay.is_zero() {
            steps.push(Step::Wait(delay));
        }
        match piece.mark {
            Mark::Finish if drop_finish => {}
            Mark::Terminal => steps.push(Step::Last(piece.bytes)),
            Mark::Preamble | Mark::Between | Mark::Finish => steps.push(Step::Send(piece.bytes)),
            Mark::Word => {
                steps.push(Step::Send(piece.bytes));
                words += 1;
                emit(&mut steps, &|point| point == Point::AfterWords(words));
            }
        }
    }
    steps
}

/// A body that is not streamed, in one piece, or in two where something is to happen between them.
pub(crate) fn halves(rule: Option<&Rule>, body: Vec<u8>) -> Vec<Piece> {
    let eventful = rule.is_some_and(|rule| rule.fault.is_some() || rule.gate.is_some() || !rule.gates.is_empty());
    if !eventful || body.len() < 2 {
        return vec![Piece::new(Mark::Terminal, body)];
    }
    let mut first = Bytes::from(body);
    let second = first.split_off(first.len() / 2);
    vec![Piece::new(Mark::Word, first), Piece::new(Mark::Terminal, second)]
}

fn place(rule: &Rule, fault: Fault) -> Point {
    rule.fault_at.unwrap_or_else(|| fault.usual_place())
}

fn gates(rule: &Rule) -> Vec<(Point, String)> {
    let first = rule.gate.iter().map(|name| (rule.gate_at.unwrap_or(Point::BeforeHeaders), name.clone()));
    first.chain(rule.gates.iter().map(|gate| (gate.at, gate.name.clone()))).collect()
}

/// The HTTP/2 error code of a rule; `no_error` without one.
fn code(rule: &Rule) -> u32 {
    rule.fault_code.as_deref().and_then(http2::code).unwrap_or_default()
}

fn fault_steps(fault: Fault, rule: &Rule, bytes: &FaultBytes) -> Vec<Step> {
    match fault {
        Fault::ResetBeforeReply | Fault::ResetMidStream => vec![Step::Order(Order::Reset)],
        Fault::CloseBeforeReply | Fault::CloseMidStream => vec![Step::Order(Order::Close)],
        Fault::NoTerminal => vec![Step::End],
        Fault::Hang => vec![Step::Silence],
        Fault::BadJson => vec![Step::Send(bytes.bad_json.clone())],
        Fault::BadSse => vec![Step::Send(bytes.bad_utf8.clone())],
        Fault::BadChunk => vec![Step::Order(Order::Raw(Bytes::from_static(b"this is no chunk size\r\n\r\n")))],
        Fault::ErrorInStream => vec![Step::Last(bytes.error.clone()), Step::End],
        Fault::Http2Goaway => vec![Step::Goaway],
        Fault::Http2GoawayRefusing => vec![Step::Refuse(code(rule))],
        Fault::RstStream if rule.fault_code.is_some() => vec![Step::Rst(code(rule))],
        Fault::RstStream => vec![Step::Break],
        Fault::BadEncoding => vec![Step::Uncoded(Bytes::from_static(&[0xff; 64]))],
        // The first three replace the reply before its headers; the others change the answer or its coding.
        Fault::Html
        | Fault::HeaderOverflow
        | Fault::BadHeader
        | Fault::DoneWithoutFinish
        | Fault::OversizedEvent
        | Fault::RepeatSteps
        | Fault::SkipStep
        | Fault::TruncatedEncoding => Vec::new(),
    }
}

const BAD_CHUNKED_REPLY: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\nthis is no chunk size\r\n";

fn bad_header() -> Bytes {
    Bytes::from_static(b"HTTP/1.1 200 OK\r\na name with spaces: \x01\r\ncontent-length: 2\r\n\r\n{}")
}

fn large_header(size: usize) -> Bytes {
    let mut head = BytesMut::from(&b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-large: "[..]);
    head.resize(head.len() + size, b'x');
    head.extend_from_slice(b"\r\n\r\n{}");
    head.freeze()
}

/// Compresses what is sent; with `whole` to the compression's own end.
pub(crate) fn encode(steps: Vec<Step>, encoding: ContentEncoding, whole: bool) -> io::Result<Vec<Step>> {
    let mut encoder = Some(Encoder::new(encoding)?);
    let mut out = Vec::with_capacity(steps.len());
    for step in steps {
        match step {
            Step::Send(bytes) => {
                if let Some(encoder) = &mut encoder {
                    out.push(Step::Send(encoder.feed(&bytes)?.into()));
                }
            }
            Step::Last(bytes) => {
                if let Some(mut encoder) = encoder.take() {
                    let mut last = encoder.feed(&bytes)?;
                    if whole {
                        last.extend(encoder.finish()?);
                    }
                    out.push(Step::Last(last.into()));
                }
            }
            Step::End => {
                if let Some(encoder) = encoder.take() {
                    out.push(Step::Send(encoder.finish()?.into()));
                }
                out.push(Step::End);
            }
            Step::Uncoded(bytes) => out.push(Step::Send(bytes)),
            other @ (Step::Wait(_)
            | Step::Gate(_)
            | Step::Order(_)
            | Step::Silence
            | Step::Break
            | Step::Goaway
            | Step::Rst(_)
            | Step::Trailers(_)
            | Step::Shown { .. }
            | Step::Refuse(_)) => out.push(other),
        }
    }
    Ok(out)
}

/// Cuts what is sent into pieces of so many bytes, whatever the events were.
pub(crate) fn rechunk(steps: Vec<Step>, size: usize) -> Vec<Step> {
    let mut out = Vec::new();
    let mut held = BytesMut::new();
    let cut = |held: &mut BytesMut, out: &mut Vec<Step>, is_last: bool| {
        let mut rest = held.split().freeze();
        while !rest.is_empty() {
            let piece = rest.split_to(size.min(rest.len()));
            out.push(if is_last && rest.is_empty() { Step::Last(piece) } else { Step::Send(piece) });
        }
    };
    for step in steps {
        match step {
            Step::Send(bytes) | Step::Uncoded(bytes) => held.extend_from_slice(&bytes),
            Step::Last(bytes) => {
                held.extend_from_slice(&bytes);
                cut(&mut held, &mut out, true);
            }
            other @ (Step::Wait(_)
            | Step::Gate(_)
            | Step::Order(_)
            | Step::Silence
            | Step::Break
            | Step::Goaway
            | Step::Rst(_)
            | Step::Refuse(_)
            | Step::Trailers(_)
            | Step::Shown { .. }
            | Step::End) => {
                cut(&mut held, &mut out, false);
                out.push(other);
            }
        }
    }
    cut(&mut held, &mut out, false);
    out
}

/// The length of the whole body, as if nothing went wrong in it.
pub(crate) fn length(steps: &[Step]) -> usize {
    let size = |step: &Step| match step {
        Step::Send(bytes) | Step::Last(bytes) | Step::Uncoded(bytes) => bytes.len(),
        Step::Wait(_)
        | Step::Gate(_)
        | Step::Order(_)
        | Step::Silence
        | Step::Break
        | Step::Goaway
        | Step::Rst(_)
        | Step::Refuse(_)
        | Step::Trailers(_)
        | Step::Shown { .. }
        | Step::End => 0,
    };
    steps.iter().map(size).sum()
}
