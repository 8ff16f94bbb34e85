//! A Gemini answer on its way to a Gemini client: every byte of what it says stays, and what the gateway must know is
//! read in passing. Only the framing may change, where the client asked for an array.
//!
//! Lines that are no data become blank ones: Google's own Python client takes a comment for JSON and fails.

use super::chunk::{self, Chunk, Counts};
use super::finish;
use crate::event::{Class, Finish};
use crate::reply::{Facts, Passed, Piece, Progress, ReplyFault, ReplyOptions, named, push_piece};
use crate::request::StreamForm;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use turnkeep_wire::sse::Frame;

/// Candidates of one answer that are followed; each costs memory.
const MAX_CANDIDATES: usize = 128;

/// Reads one streamed answer in passing.
#[derive(Debug)]
pub struct Tap {
    form: StreamForm,
    /// An element of the array is out.
    begun: bool,
    counts: Option<Counts>,
    /// By index, whether it has finished.
    candidates: BTreeMap<u64, bool>,
    called: BTreeSet<u64>,
    content: bool,
    terminal: bool,
}

impl Tap {
    /// For one answer.
    pub fn new(options: &ReplyOptions) -> Self {
        Tap {
            form: options.asked.form,
            begun: false,
            counts: None,
            candidates: BTreeMap::new(),
            called: BTreeSet::new(),
            content: false,
            terminal: false,
        }
    }

    /// Reads a frame. A chunk with content is `Answer`; the one by which every candidate has finished, and all after it,
    /// is `Terminal`, content or not.
    pub fn frame(&mut self, frame: &Frame, facts: &mut Facts) -> Result<Passed, ReplyFault> {
        let class = match frame.data.as_deref().map(<[u8]>::trim_ascii) {
            None => {
                chunk::bare_error(&frame.raw)?;
                self.quiet()
            }
            // Not of this dialect, but some servers write it under every one, and clients read it as JSON.
            Some(b"[DONE]") if self.finished() => None,
            Some(b"[DONE]") => return Err(ReplyFault::truncated()),
            Some(b"") => self.quiet(),
            Some(data) => Some(self.chunk(&chunk::read(data)?, facts)?),
        };
        let progress = if self.finished() { Progress::Finishing } else { Progress::Open };
        Ok(Passed { class, progress })
    }

    /// The class of a frame that says nothing. White space before an array's first element is withheld, so that whatever
    /// has been written of an array is at least one element.
    fn quiet(&self) -> Option<Class> {
        match self.form {
            StreamForm::Array if !self.begun => None,
            StreamForm::Array | StreamForm::Events => {
                Some(if self.terminal { Class::Terminal } else { Class::Preamble })
            }
        }
    }

    fn finished(&self) -> bool {
        !self.candidates.is_empty() && self.candidates.values().all(|finished| *finished)
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, facts: &mut Facts) -> Result<Class, ReplyFault> {
        head(chunk, facts);
        if let Some(counts) = chunk.counts {
            let counts = counts.after(self.counts);
            self.counts = Some(counts);
            facts.usage = Some(counts.usage());
        }
        let mut class = Class::Preamble;
        for candidate in chunk.candidates.iter().flatten() {
            let known = self.candidates.entry(candidate.index).or_default();
            facts.content_bytes += candidate.content_bytes();
            if candidate.calls() {
                self.called.insert(candidate.index);
            }
            if candidate.has_content() {
                self.content = true;
                class = Class::Answer;
            }
            let Some(reason) = candidate.finish.as_deref() else { continue };
            if let Some(finish) = finish::meaning(reason, candidate.message.as_deref(), self.content)? {
                *known = true;
                class = Class::Answer;
                let called = self.called.contains(&candidate.index);
                facts.finish = Some(of_all(facts.finish, called_or(finish, called), candidate.index == 0));
            }
        }
        if self.candidates.len() > MAX_CANDIDATES {
            return Err(ReplyFault::malformed(format!("more than {MAX_CANDIDATES} candidates")));
        }
        self.terminal |= self.finished();
        Ok(if self.terminal { Class::Terminal } else { class })
    }

    /// The bytes of a frame that has been read, in the form that the client asked for.
    pub fn bytes(&mut self, frame: Frame) -> Bytes {
        let data = frame.data.filter(|data| !data.trim_ascii().is_empty());
        match (self.form, data) {
            (_, None) => Bytes::from_static(b"\n"),
            (StreamForm::Events, Some(_)) => frame.raw,
            (StreamForm::Array, Some(data)) => {
                let before: &[u8] = if std::mem::replace(&mut self.begun, true) { b",\r\n" } else { b"[" };
                [before, &data].concat().into()
            }
        }
    }

    /// The answer is complete: what the client's form still needs.
    pub fn settle(&mut self, out: &mut Vec<Piece>) {
        match self.form {
            StreamForm::Events => {}
            StreamForm::Array => push_piece(out, Class::Terminal, Bytes::from_static(b"]")),
        }
    }
}

fn head(chunk: &Chunk<'_>, facts: &mut Facts) {
    if facts.id.is_none() {
        facts.id = chunk.id.as_deref().and_then(named);
    }
    if facts.model.is_none() {
        facts.model = chunk.model.as_deref().and_then(named);
    }
}

fn called_or(finish: Finish, called: bool) -> Finish {
    if finish == Finish::Stop && called { Finish::ToolCalls } else { finish }
}

/// The finish of an answer of several candidates: the first one's, but where another one was cut short or refused, that
/// is what ends the answer.
fn of_all(known: Option<Finish>, new: Finish, first: bool) -> Finish {
    let whole = |finish: Finish| match finish {
        Finish::Stop | Finish::StopSequence | Finish::ToolCalls => true,
        Finish::Length | Finish::ContextFull | Finish::Refusal | Finish::Pause => false,
    };
    match known {
        Some(known) if !whole(known) || (whole(new) && !first) => known,
        Some(_) | None => new,
    }
}

/// Reads one whole answer in passing.
pub fn plain(body: &[u8], facts: &mut Facts) -> Result<(), ReplyFault> {
    let chunk = chunk::read(body)?;
    head(&chunk, facts);
    facts.usage = chunk.counts.map(Counts::usage);
    let candidates = chunk.candidates.unwrap_or_default();
    if candidates.is_empty() {
        return Err(ReplyFault::malformed("a JSON object without `candidates`"));
    }
    facts.content_bytes = candidates.iter().map(chunk::Candidate::content_bytes).sum();
    for candidate in &candidates {
        let reason = candidate.finish.as_deref().unwrap_or_default();
        let finish = finish::meaning(reason, candidate.message.as_deref(), candidate.has_content())?;
        let finish = called_or(finish.ok_or_else(ReplyFault::truncated)?, candidate.calls());
        facts.finish = Some(of_all(facts.finish, finish, candidate.index == 0));
    }
    Ok(())
}
