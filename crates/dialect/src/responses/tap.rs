//! A Responses answer on its way to a Responses client: every byte stays but for what it repeats of a request that the
//! gateway has filled up, and what the gateway must know is read in passing. It judges no order; only data that are no JSON, an `error` event and an answer that failed stop it.

use super::reply_decode::read::{self, Item, Response, malformed};
use super::restate::Restate;
use crate::chat::classify;
use crate::chat::reply_decode::Shape;
use crate::event::{Class, Finish};
use crate::json::{Invalid, Kind, Reader};
use crate::reply::{Facts, Passed, Progress, ReplyFault, ReplyOptions, named};
use bytes::Bytes;
use turnkeep_wire::sse::Frame;

/// Reads one streamed answer in passing.
#[derive(Debug)]
pub struct Tap {
    /// An event of the answer has passed.
    passed: bool,
    seen: Seen,
    restate: Option<Restate>,
    /// The last frame holds a response object.
    told: bool,
}

/// What of an answer decides how it ends.
#[derive(Debug, Default)]
struct Seen {
    called: bool,
    /// A call stops in the middle of its arguments.
    cut: bool,
    refused: bool,
}

fn is_cut(arguments: &str) -> bool {
    let mut shape = Shape::default();
    shape.take(arguments);
    shape.cut()
}

impl Seen {
    fn finish(&self, ending: Option<Finish>) -> Finish {
        match ending {
            Some(reason) => reason,
            None if self.cut => Finish::Length,
            None if self.called => Finish::ToolCalls,
            None if self.refused => Finish::Refusal,
            None => Finish::Stop,
        }
    }

    fn item(&mut self, raw: &str) -> Result<(), ReplyFault> {
        let item = Item::over(raw)?;
        self.called |= matches!(&*item.kind, "function_call" | "custom_tool_call");
        self.cut |= item.kind == "function_call" && item.arguments.as_deref().is_some_and(is_cut);
        if item.kind == "message"
            && let Some(content) = item.content
        {
            self.parts(content).map_err(malformed)?;
        }
        Ok(())
    }

    fn parts(&mut self, content: &str) -> Result<(), Invalid> {
        Reader::over(content).array::<Invalid>(|r, _| {
            let part = read::Part::over(r.raw()?);
            self.refused |= part.is_ok_and(|part| part.kind == "refusal" && !part.text.is_empty());
            Ok(())
        })
    }

    /// Reads the whole output; tells its bytes.
    fn output(&mut self, output: &str) -> Result<u64, ReplyFault> {
        let mut raws = Vec::new();
        let mut r = Reader::over(output);
        r.array::<Invalid>(|r, _| {
            if r.kind()? == Kind::Object {
                raws.push(r.raw()?);
            } else {
                r.skip()?;
            }
            Ok(())
        })
        .map_err(malformed)?;
        // Only at the end it is known what the calls have come to, where the end tells them.
        self.cut &= raws.is_empty();
        raws.iter().try_for_each(|raw| self.item(raw))?;
        Ok(raws.iter().map(|raw| raw.len() as u64).sum())
    }
}

impl Tap {
    /// For one answer.
    pub fn new(options: &ReplyOptions) -> Self {
        Tap { passed: false, seen: Seen::default(), restate: Restate::of(options), told: false }
    }

    /// The bytes for the client of the frame that was read last.
    pub fn bytes(&self, frame: Frame) -> Bytes {
        match &self.restate {
            Some(restate) if self.told => restate.frame(frame),
            Some(_) | None => frame.raw,
        }
    }

    /// The answer's first event lacks what the official clients need (`sequence_number`, the whole response), or is not
    /// the one that has to be first, so that the answer has to be written anew. Asked with each frame until one has
    /// passed.
    pub fn is_off_spec(&self, frame: &Frame) -> bool {
        if self.passed {
            return false;
        }
        let Some(fields) = read::data(frame).and_then(|data| read::fields(frame, data).ok()) else { return false };
        match fields.kind.strip_prefix("response.") {
            Some("created" | "queued") => {
                let response = fields.response.and_then(|raw| Response::over(raw).ok());
                !fields.sequence || !response.is_some_and(|response| response.is_whole())
            }
            // A fault, in whatever form.
            Some("failed") => false,
            Some(_) => true,
            // Nothing of the answer: signs of life, errors.
            None => false,
        }
    }

    /// Reads a frame. What the model made is `Answer`, also what a tool of the provider's own did for it; the
    /// announcement of an item is not.
    pub fn frame(&mut self, frame: &Frame, facts: &mut Facts) -> Result<Passed, ReplyFault> {
        self.told = false;
        let open = |class| Ok(Passed { class: Some(class), progress: Progress::Open });
        let Some(data) = read::data(frame) else {
            let done = frame.data.as_deref().is_some_and(|data| !data.trim_ascii().is_empty());
            // `[DONE]` is another dialect's terminal, which ends nothing here.
            return Ok(Passed { class: (!done).then_some(Class::Preamble), progress: Progress::Open });
        };
        let fields = read::fields(frame, data)?;
        self.told = fields.response.is_some();
        let Some(kind) = fields.kind.strip_prefix("response.") else {
            if fields.kind == "error" || (fields.kind.is_empty() && fields.error) {
                return Err(classify::in_band(&String::from_utf8_lossy(data)));
            }
            return open(Class::Preamble);
        };
        self.passed = true;
        if let Some(status) = super::terminal(kind) {
            let response = Response::over(fields.response.unwrap_or("{}"))?;
            let ending = response.ending(status)?;
            head(&response, facts);
            let bytes = self.seen.output(response.output.unwrap_or("[]"))?;
            if facts.content_bytes == 0 {
                facts.content_bytes = bytes;
            }
            facts.usage = response.usage.or(facts.usage);
            facts.finish = Some(self.seen.finish(ending));
            return Ok(Passed { class: Some(Class::Terminal), progress: Progress::Done });
        }
        match kind {
            "created" | "in_progress" | "queued" => {
                let response = Response::over(fields.response.unwrap_or("{}"))?;
                head(&response, facts);
                open(Class::Preamble)
            }
            "output_item.added" => {
                self.seen.item(fields.item.unwrap_or("{}"))?;
                open(Class::Preamble)
            }
            "content_part.added" | "reasoning_summary_part.added" => open(Class::Preamble),
            _ => {
                if let Some(delta) = &fields.delta {
                    facts.content_bytes += delta.len() as u64;
                }
                self.seen.refused |= kind == "refusal.delta";
                if let Some(item) = fields.item {
                    self.seen.item(item)?;
                }
                open(Class::Answer)
            }
        }
    }
}

fn head(response: &Response<'_>, facts: &mut Facts) {
    if facts.id.is_none() {
        facts.id = response.id.as_deref().and_then(named);
    }
    if facts.model.is_none() {
        facts.model = response.model.as_deref().and_then(named);
    }
    note_link(response, facts);
}

/// Keeps what the answer says of its chain; the last word counts.
pub(super) fn note_link(response: &Response<'_>, facts: &mut Facts) {
    facts.link.stored = response.link.stored;
    if response.link.previous.is_some() {
        facts.link.previous.clone_from(&response.link.previous);
    }
}

/// A whole answer lacks what the official clients need.
pub fn is_off_spec(body: &[u8]) -> bool {
    read::body(body).is_ok_and(|response| response.is_response() && !response.is_whole())
}

/// What a client gets of a whole answer.
pub fn plain_bytes(body: Bytes, options: &ReplyOptions) -> Bytes {
    match Restate::of(options) {
        Some(restate) => restate.body(body),
        None => body,
    }
}

/// What a whole answer says of its chain, read by itself.
pub(crate) fn link(body: &[u8], facts: &mut Facts) {
    if let Ok(response) = read::body(body) {
        note_link(&response, facts);
    }
}

/// Reads a whole answer in passing. One that failed is a fault, and so is one that is still being made: a client that
/// waits for an answer can do nothing with it.
pub fn plain(body: &[u8], facts: &mut Facts) -> Result<(), ReplyFault> {
    let response = read::answer(body)?;
    let ending = response.ending("")?;
    let mut seen = Seen::default();
    facts.content_bytes = seen.output(response.output.unwrap_or("[]"))?;
    head(&response, facts);
    facts.usage = response.usage;
    facts.finish = Some(seen.finish(ending));
    Ok(())
}
