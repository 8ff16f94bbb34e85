//! A Chat answer on its way to a Chat client: every byte stays, and what the gateway must know is read in passing.
//!
//! The one frame that is held back is the usage chunk of a client that did not ask for it.

use super::{chunk, classify};
use crate::event::{Class, Finish};
use crate::reply::{Facts, Passed, Progress, ReplyFault, ReplyOptions, named};
use std::collections::BTreeSet;
use turnkeep_base::FaultKind;
use turnkeep_wire::sse::Frame;

/// Choices that an upstream may give beyond those asked for; more are taken for nonsense, as each costs memory.
const SPARE_CHOICES: u64 = 128;

/// Reads one streamed answer in passing.
#[derive(Debug)]
pub struct Tap {
    usage_wanted: bool,
    choices: u64,
    seen: BTreeSet<u64>,
    finished: BTreeSet<u64>,
    refused: bool,
    progress: Progress,
}

impl Tap {
    /// For one answer.
    pub fn new(options: &ReplyOptions) -> Self {
        Tap {
            usage_wanted: options.usage_wanted,
            choices: options.choices.max(1),
            seen: BTreeSet::new(),
            finished: BTreeSet::new(),
            refused: false,
            progress: Progress::Open,
        }
    }

    /// Reads a frame. A frame with content is `Answer`; the frame by which every choice has finished, and all after it,
    /// is `Terminal`, content or not. The finish of one of several choices commits no more than content does.
    pub fn frame(&mut self, frame: &Frame, facts: &mut Facts) -> Result<Passed, ReplyFault> {
        let quiet = if self.progress == Progress::Open { Class::Preamble } else { Class::Terminal };
        let data = frame.data.as_deref().unwrap_or_default().trim_ascii();
        if data.is_empty() {
            return Ok(self.passed(quiet));
        }
        if data == b"[DONE]" {
            // A server that ignores `n` gives fewer choices than were asked for.
            if self.finished.is_empty() || self.finished != self.seen {
                return Err(ReplyFault::truncated());
            }
            self.progress = Progress::Done;
            return Ok(self.passed(Class::Terminal));
        }
        let chunk = chunk::read(data)?;
        if let Some(error) = chunk.error {
            return Err(classify::in_band(error));
        }
        if facts.id.is_none() {
            facts.id = chunk.id.as_deref().and_then(named);
        }
        if facts.model.is_none() {
            facts.model = chunk.model.as_deref().and_then(named);
        }
        let choices = chunk.choices.unwrap_or_default();
        if chunk.usage.is_some() {
            facts.usage = chunk.usage;
            if choices.is_empty() && !self.usage_wanted {
                return Ok(Passed { class: None, progress: self.progress });
            }
        }
        let mut class = quiet;
        for choice in &choices {
            if let Some(error) = choice.error {
                return Err(classify::in_band(error));
            }
            self.seen.insert(choice.index);
            if self.seen.len() as u64 > self.choices.saturating_add(SPARE_CHOICES) {
                return Err(ReplyFault::malformed("more choices than were asked for"));
            }
            facts.content_bytes += choice.content_bytes();
            self.refused |= choice.refuses();
            if choice.has_content() {
                class = class.max(Class::Answer);
            }
            if let Some(reason) = choice.finish.as_deref() {
                if reason == "error" {
                    return Err(failed());
                }
                class = class.max(Class::Answer);
                self.finished.insert(choice.index);
                facts.finish = Some(of_all(facts.finish, finish(reason, false), self.refused, choice.index == 0));
            }
        }
        if self.progress == Progress::Open && self.finished.len() as u64 >= self.choices {
            self.progress = Progress::Finishing;
            class = Class::Terminal;
        }
        Ok(self.passed(class))
    }

    fn passed(&self, class: Class) -> Passed {
        Passed { class: Some(class), progress: self.progress }
    }
}

/// The finish reason `error`: the upstream says that it failed, and nothing else.
pub(super) fn failed() -> ReplyFault {
    ReplyFault::new(FaultKind::UpstreamInternal, "the upstream ended the answer with the finish reason `error`")
}

/// What a finish reason means. That the model calls tools is known from its having called one, where that is known, and
/// else from the upstream's word.
pub(super) fn finish(reason: &str, called: bool) -> Finish {
    match reason {
        "length" | "max_tokens" => Finish::Length,
        "content_filter" => Finish::Refusal,
        "tool_calls" | "function_call" => Finish::ToolCalls,
        _ if called => Finish::ToolCalls,
        _ => Finish::Stop,
    }
}

/// The finish of an answer of several choices: the first one's, but where another one was cut short or refused, that is
/// what ends the answer. A refusal in words ends as if by itself.
fn of_all(known: Option<Finish>, new: Finish, refused: bool, first: bool) -> Finish {
    let whole = |finish: Finish| match finish {
        Finish::Stop | Finish::StopSequence | Finish::ToolCalls => true,
        Finish::Length | Finish::ContextFull | Finish::Refusal | Finish::Pause => false,
    };
    let new = if refused && new == Finish::Stop { Finish::Refusal } else { new };
    match known {
        Some(known) if !whole(known) || (whole(new) && !first) => known,
        Some(_) | None => new,
    }
}

/// Reads one whole answer in passing.
pub fn plain(body: &[u8], facts: &mut Facts) -> Result<(), ReplyFault> {
    let chunk = chunk::read(body)?;
    if let Some(error) = chunk.error {
        return Err(classify::in_band(error));
    }
    let choices = chunk.choices.unwrap_or_default();
    if choices.is_empty() {
        return Err(ReplyFault::malformed("a JSON object without `choices`"));
    }
    if let Some(error) = choices.iter().find_map(|choice| choice.error) {
        return Err(classify::in_band(error));
    }
    facts.id = chunk.id.as_deref().and_then(named);
    facts.model = chunk.model.as_deref().and_then(named);
    facts.usage = chunk.usage;
    facts.content_bytes = choices.iter().map(chunk::Choice::content_bytes).sum();
    let refused = choices.iter().any(chunk::Choice::refuses);
    for choice in &choices {
        match choice.finish.as_deref() {
            None => {}
            Some("error") => return Err(failed()),
            Some(reason) => {
                let reason = finish(reason, !choice.calls.is_empty());
                facts.finish = Some(of_all(facts.finish, reason, refused, choice.index == 0));
            }
        }
    }
    if facts.finish.is_some() { Ok(()) } else { Err(ReplyFault::truncated()) }
}
