//! Reads a Messages answer that passes to a Messages client unchanged: how far each frame commits the answer, when it is
//! complete, and the facts in it. It changes no byte and judges no order; only data that are no JSON, and the
//! upstream's own `error` event, stop it.

use super::{classify, kind, nothing::says_nothing, stop, usage::Counts};
use crate::event::{Class, Finish};
use crate::json::{Invalid, Kind, Reader};
use crate::reply::{Facts, Passed, Progress, ReplyFault, ReplyOptions, named};
use turnkeep_base::Usage;
use turnkeep_wire::sse::Frame;

/// Bytes of a delta event's data that are not content.
const DELTA_FRAME: u64 = 80;

/// The state of one streamed answer.
#[derive(Debug)]
pub struct Tap {
    counts: Counts,
    /// The open blocks: index, is a tool call, something came.
    open: Vec<(u64, bool, bool)>,
    /// The reason of the end has been told.
    ending: bool,
}

fn malformed(invalid: Invalid) -> ReplyFault {
    ReplyFault::malformed(invalid.to_string())
}

/// Reads one object to its end.
fn whole<'a>(data: &'a [u8], each: impl FnMut(&mut Reader<'a>, &str) -> Result<(), Invalid>) -> Result<(), ReplyFault> {
    let mut r = Reader::new(data).map_err(malformed)?;
    r.object(each).and_then(|()| r.end()).map_err(malformed)
}

impl Tap {
    /// A tap for one answer.
    pub fn new(_options: &ReplyOptions) -> Self {
        Tap { counts: Counts::default(), open: Vec::new(), ending: false }
    }

    /// Reads one frame in passing. The frame that tells why the answer ends, and all after it, is `Terminal`, a comment
    /// too: none of it may overtake the end that is held back.
    pub fn frame(&mut self, frame: &Frame, facts: &mut Facts) -> Result<Passed, ReplyFault> {
        let mut passed = self.read(frame, facts)?;
        if self.ending {
            passed.class = passed.class.map(|_| Class::Terminal);
        }
        Ok(passed)
    }

    fn read(&mut self, frame: &Frame, facts: &mut Facts) -> Result<Passed, ReplyFault> {
        let pass = |class| Ok(Passed { class: Some(class), progress: Progress::Open });
        let Some(data) = frame.data.as_ref().filter(|data| !data.trim_ascii().is_empty()) else {
            return pass(Class::Preamble);
        };
        if **data == b"[DONE]"[..] {
            // Another dialect's terminal, which ends nothing here.
            return Ok(Passed { class: None, progress: Progress::Open });
        }
        let mut from_data = String::new();
        let name: &[u8] = match kind::named(frame.event.as_deref()) {
            Some(name) => name,
            None => {
                whole(data, |r, key| {
                    if key == "type" && r.kind()? == Kind::String {
                        from_data = r.string()?.into_owned();
                        return Ok(());
                    }
                    r.skip().map(drop)
                })?;
                from_data.as_bytes()
            }
        };
        match name {
            b"content_block_delta" => self.delta(data, facts).and(pass(Class::Answer)),
            b"content_block_start" => self.block_start(data, facts).and_then(pass),
            b"content_block_stop" => self.block_stop(data).and_then(pass),
            b"message_start" => self.message_start(data, facts).and(pass(Class::Preamble)),
            b"message_delta" => self.message_delta(data, facts).and_then(pass),
            b"message_stop" => {
                whole(data, |r, _| r.skip().map(drop))?;
                Ok(Passed { class: Some(Class::Terminal), progress: Progress::Done })
            }
            b"error" => Err(classify::in_stream(data)),
            _ => whole(data, |r, _| r.skip().map(drop)).and(pass(Class::Preamble)),
        }
    }

    fn message_start(&mut self, data: &[u8], facts: &mut Facts) -> Result<(), ReplyFault> {
        let counts = &mut self.counts;
        whole(data, |r, key| {
            if key != "message" || r.kind()? != Kind::Object {
                return r.skip().map(drop);
            }
            r.object(|r, key| match (key, r.kind()?) {
                ("id", Kind::String) => r.string().map(|text| facts.id = named(&text)),
                ("model", Kind::String) => r.string().map(|text| facts.model = named(&text)),
                ("usage", _) => counts.merge(r),
                _ => r.skip().map(drop),
            })
        })?;
        facts.usage = self.counts.get();
        Ok(())
    }

    fn block_start(&mut self, data: &[u8], facts: &mut Facts) -> Result<Class, ReplyFault> {
        let mut index = 0;
        let mut block = Opened::default();
        whole(data, |r, key| match (key, r.kind()?) {
            ("index", Kind::Number) => r.u64().map(|number| index = number),
            ("content_block", Kind::Object) => r.object(|r, key| block.field(r, key)),
            _ => r.skip().map(drop),
        })?;
        let full = block.holds();
        facts.content_bytes += block.bytes;
        self.open.retain(|(known, _, _)| *known != index);
        self.open.push((index, block.is_call(), full));
        Ok(if full { Class::Answer } else { Class::Preamble })
    }

    fn delta(&mut self, data: &[u8], facts: &mut Facts) -> Result<(), ReplyFault> {
        let (mut index, mut signature) = (0, false);
        whole(data, |r, key| match (key, r.kind()?) {
            ("index", Kind::Number) => r.u64().map(|number| index = number),
            ("delta", Kind::Object) => r.object(|r, key| {
                signature |= key == "signature";
                r.skip().map(drop)
            }),
            _ => r.skip().map(drop),
        })?;
        if !signature {
            facts.content_bytes += (data.len() as u64).saturating_sub(DELTA_FRAME);
        }
        if let Some(open) = self.open.iter_mut().find(|(known, _, _)| *known == index) {
            open.2 = true;
        }
        Ok(())
    }

    fn block_stop(&mut self, data: &[u8]) -> Result<Class, ReplyFault> {
        let mut index = 0;
        whole(data, |r, key| match (key, r.kind()?) {
            ("index", Kind::Number) => r.u64().map(|number| index = number),
            _ => r.skip().map(drop),
        })?;
        let at = self.open.iter().position(|(known, _, _)| *known == index);
        let (call, full) = at.map_or((false, false), |at| {
            let (_, call, full) = self.open.swap_remove(at);
            (call, full)
        });
        // A call without arguments is made, and so committed, at its stop.
        Ok(if call || full { Class::Answer } else { Class::Preamble })
    }

    /// Counts that come before the end of the answer are no terminal.
    fn message_delta(&mut self, data: &[u8], facts: &mut Facts) -> Result<Class, ReplyFault> {
        let counts = &mut self.counts;
        let mut finish = None;
        whole(data, |r, key| match (key, r.kind()?) {
            ("usage", _) => counts.merge(r),
            ("delta", Kind::Object) => r.object(|r, key| match (key, r.kind()?) {
                ("stop_reason", Kind::String) => r.string().map(|reason| finish = Some(stop::finish(&reason))),
                _ => r.skip().map(drop),
            }),
            _ => r.skip().map(drop),
        })?;
        if let Some(usage) = counts.get() {
            facts.usage = Some(usage);
        }
        if finish.is_some() {
            facts.finish = finish;
            self.ending = true;
        }
        Ok(if finish.is_some() { Class::Terminal } else { Class::Preamble })
    }
}

/// A block at its start: does it hold anything yet?
#[derive(Default)]
struct Opened {
    kind: String,
    /// Bytes of what it holds, about.
    bytes: u64,
    full: bool,
}

impl Opened {
    fn field(&mut self, r: &mut Reader<'_>, key: &str) -> Result<(), Invalid> {
        match key {
            "type" if r.kind()? == Kind::String => self.kind = r.string()?.into_owned(),
            "text" | "thinking" | "signature" | "input" | "data" | "content" => {
                let raw = r.raw()?;
                if !says_nothing(raw) {
                    self.full = true;
                    self.bytes += raw.len() as u64;
                }
            }
            _ => r.skip().map(drop)?,
        }
        Ok(())
    }

    /// It holds something that the model, or one of its tools, made. Results come whole, even empty ones.
    fn holds(&self) -> bool {
        self.full || self.kind.ends_with("_tool_result") || self.kind == "container_upload"
    }

    /// It is a call of a tool, the client's or the provider's.
    fn is_call(&self) -> bool {
        self.kind.ends_with("tool_use")
    }
}

/// A whole answer's own fields.
#[derive(Debug)]
pub(super) struct Plain<'a> {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    /// The array of blocks, as it is written.
    pub(super) content: &'a str,
    pub(super) finish: Finish,
    pub(super) stop_sequence: Option<String>,
    pub(super) usage: Option<Usage>,
}

/// Reads a whole answer. An error object is a fault, and so is an answer that is not known to be complete.
pub(super) fn read_plain(body: &[u8]) -> Result<Plain<'_>, ReplyFault> {
    let (mut id, mut model, mut content, mut finish, mut stop_sequence) = (None, None, None, None, None);
    let (mut kind, mut error) = (String::new(), false);
    let mut counts = Counts::default();
    whole(body, |r, key| match (key, r.kind()?) {
        ("type", Kind::String) => r.string().map(|text| kind = text.into_owned()),
        ("id", Kind::String) => r.string().map(|text| id = Some(text.into_owned())),
        ("model", Kind::String) => r.string().map(|text| model = Some(text.into_owned())),
        ("content", Kind::Array) => r.raw().map(|raw| content = Some(raw)),
        ("stop_reason", Kind::String) => r.string().map(|reason| finish = Some(stop::finish(&reason))),
        ("stop_sequence", Kind::String) => r.string().map(|text| stop_sequence = Some(text.into_owned())),
        ("usage", _) => counts.merge(r),
        ("error", Kind::Object | Kind::String) => {
            error = true;
            r.skip().map(drop)
        }
        _ => r.skip().map(drop),
    })?;
    if kind == "error" || (kind != "message" && error) {
        return Err(classify::in_stream(body));
    }
    match (kind.as_str(), content, finish) {
        ("message", Some(content), Some(finish)) => {
            Ok(Plain { id, model, content, finish, stop_sequence, usage: counts.get() })
        }
        ("message", _, None) => Err(ReplyFault::malformed("an answer without `stop_reason`")),
        ("message", None, _) => Err(ReplyFault::malformed("an answer without `content`")),
        (_, _, _) => Err(ReplyFault::malformed("the body is no object of type `message`")),
    }
}

/// Reads a whole answer in passing.
pub fn plain(body: &[u8], facts: &mut Facts) -> Result<(), ReplyFault> {
    let read = read_plain(body)?;
    facts.id = read.id.as_deref().and_then(named);
    facts.model = read.model.as_deref().and_then(named);
    facts.finish = Some(read.finish);
    facts.usage = read.usage;
    facts.content_bytes = read.content.len() as u64;
    Ok(())
}
