//! The canonical answer: a stream of events in no dialect. A plain answer is the same events, folded.
//!
//! Order, which decoders keep and encoders rely on: one `Start`; blocks, each with one `BlockStart`, deltas and one
//! `BlockStop`, where several may be open at once; `Finish`; `Usage` wherever it was known; one `End`.

mod order;

pub use order::Order;
use turnkeep_base::Usage;

/// One step of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The answer begins. Nothing in it was made by the model.
    Start {
        /// The upstream's id for the answer.
        id: Option<String>,
        /// The model that answers, as the upstream names it.
        model: Option<String>,
        /// Usage known at the start.
        usage: Option<Usage>,
    },
    /// A block opens. Numbers count from 0 without gaps.
    BlockStart {
        /// The block's number.
        block: u32,
        /// What it holds.
        kind: Block,
    },
    /// A block grows.
    Delta {
        /// The block's number.
        block: u32,
        /// By what.
        delta: Delta,
    },
    /// A block is whole.
    BlockStop {
        /// The block's number.
        block: u32,
    },
    /// Why the model stopped.
    Finish {
        /// The reason.
        reason: Finish,
        /// Which stop text was met, where the upstream tells.
        stop_sequence: Option<String>,
    },
    /// Token counts; a later one replaces an earlier one.
    Usage(Usage),
    /// The protocol's own terminal event: the answer is complete.
    End,
}

/// What a block holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Text.
    Text,
    /// Thinking in the clear.
    Thinking,
    /// Thinking that only the provider can read; whole at its start.
    RedactedThinking(String),
    /// A tool call; its arguments come as deltas, none of them meaning `{}`.
    ToolCall {
        /// The upstream's id, or one made for it.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// A refusal in words.
    Refusal,
}

/// What a block grows by.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// Text of a text or refusal block.
    Text(String),
    /// Text of a thinking block.
    Thinking(String),
    /// The proof of a thinking block.
    Signature(String),
    /// A piece of a tool call's JSON arguments.
    Arguments(String),
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    /// It had said what it had to say.
    Stop,
    /// It met a stop text.
    StopSequence,
    /// The limit of output tokens.
    Length,
    /// The context window is full.
    ContextFull,
    /// It calls tools.
    ToolCalls,
    /// It, or a filter, refuses.
    Refusal,
    /// It pauses for a tool of the provider's own.
    Pause,
}

/// How far an event, or the bytes made from it, commits the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Nothing in it was made by the model: may be held back and thrown away.
    Preamble,
    /// Something the model made.
    Answer,
    /// Belongs to the end: to be written only when the answer is known to be complete.
    Terminal,
}

impl Event {
    /// The class of the event.
    pub fn class(&self) -> Class {
        match self {
            Event::Start { .. } | Event::Usage(_) => Class::Preamble,
            Event::BlockStart { kind: Block::RedactedThinking(_), .. } => Class::Answer,
            Event::BlockStart { .. } => Class::Preamble,
            Event::Delta { .. } | Event::BlockStop { .. } => Class::Answer,
            Event::Finish { .. } | Event::End => Class::Terminal,
        }
    }
}
