//! What an answer says, whatever events and frames it came in: its parts in their order, why it ended, and what it used.

use turnkeep_base::Usage;
use turnkeep_dialect::event::{Block, Delta, Event, Finish};

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(String),
    /// Thinking, and its proof.
    Thinking(String, String),
    /// Thinking that only its maker reads.
    Redacted(String),
    /// Id, name and arguments of a call.
    Call(String, String, String),
    /// A refusal in words.
    Refusal(String),
}

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// The upstream's id of it.
    pub id: Option<String>,
    /// The model, as the upstream names it.
    pub model: Option<String>,
    /// Its parts; one of no content is none, and texts that touch are one.
    pub parts: Vec<Part>,
    /// Why it ended.
    pub finish: Option<Finish>,
    /// The stop text that was met.
    pub stop_sequence: Option<String>,
    /// Token counts, the last ones.
    pub usage: Option<Usage>,
    /// It has its end.
    pub complete: bool,
}

impl Said {
    /// Of these events, which are in their order.
    pub fn of(events: &[Event]) -> Said {
        let mut said = Said::default();
        let mut blocks: Vec<Part> = Vec::new();
        for event in events {
            match event {
                Event::Start { id, model, usage } => {
                    (said.id, said.model) = (id.clone(), model.clone());
                    said.usage = *usage;
                }
                Event::BlockStart { block: _, kind } => blocks.push(match kind {
                    Block::Text => Part::Text(String::new()),
                    Block::Thinking => Part::Thinking(String::new(), String::new()),
                    Block::RedactedThinking(data) => Part::Redacted(data.clone()),
                    Block::ToolCall { id, name } => Part::Call(id.clone(), name.clone(), String::new()),
                    Block::Refusal => Part::Refusal(String::new()),
                }),
                Event::Delta { block, delta } => {
                    let part = usize::try_from(*block).ok().and_then(|at| blocks.get_mut(at));
                    match (part, delta) {
                        (Some(Part::Text(text) | Part::Refusal(text)), Delta::Text(more))
                        | (Some(Part::Thinking(text, _)), Delta::Thinking(more))
                        | (Some(Part::Thinking(_, text)), Delta::Signature(more))
                        | (Some(Part::Call(_, _, text)), Delta::Arguments(more)) => text.push_str(more),
                        (_, _) => {}
                    }
                }
                Event::BlockStop { .. } => {}
                Event::Finish { reason, stop_sequence } => {
                    (said.finish, said.stop_sequence) = (Some(*reason), stop_sequence.clone());
                }
                Event::Usage(usage) => said.usage = Some(*usage),
                Event::End => said.complete = true,
            }
        }
        blocks.into_iter().for_each(|part| said.push(part));
        said
    }

    /// Adds a part.
    pub(crate) fn push(&mut self, part: Part) {
        match (self.parts.last_mut(), part) {
            (Some(Part::Text(before)), Part::Text(more)) | (Some(Part::Refusal(before)), Part::Refusal(more)) => {
                before.push_str(&more);
            }
            (_, Part::Text(text) | Part::Refusal(text)) if text.is_empty() => {}
            (_, Part::Thinking(text, proof)) if text.is_empty() && proof.is_empty() => {}
            (_, part) => self.parts.push(normal(part)),
        }
    }
}

/// Arguments as the value that they are; none are `{}`.
fn normal(part: Part) -> Part {
    let Part::Call(id, name, arguments) = part else { return part };
    let arguments = if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
    let value = serde_json::from_str::<serde_json::Value>(&arguments).map(|value| value.to_string());
    Part::Call(id, name, value.unwrap_or(arguments))
}
