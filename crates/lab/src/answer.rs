//! What the model says, before any dialect gives it a shape.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::ask::{Ask, Thinking};
use crate::script::Rule;
use crate::signature;

/// Why a reply ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finish {
    Stop,
    Length,
    StopSequence(String),
    ToolCalls,
    Refusal,
    /// Sent as it is.
    Other(String),
}

/// A tool call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub id: String,
    pub name: String,
    /// JSON text in fragments.
    pub fragments: Vec<String>,
}

impl Call {
    pub(crate) fn arguments(&self) -> String {
        self.fragments.concat()
    }
}

/// A thinking block.
#[derive(Debug, Clone)]
pub(crate) struct Thought {
    pub words: Vec<String>,
    pub signature: String,
}

/// Token counts; `prompt` holds the cache's counts, `completion` the reasoning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub prompt: u64,
    pub completion: u64,
    pub cached: u64,
    pub cache_write: u64,
    pub reasoning: u64,
}

/// The whole answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub id: u64,
    pub model: String,
    pub thought: Option<Thought>,
    /// Pieces of text; a stream sends each by itself.
    pub words: Vec<String>,
    pub refusal: Option<String>,
    pub calls: Vec<Call>,
    pub interleave: bool,
    pub finish: Finish,
    pub usage: Usage,
}

/// Numbers replies, so that ids repeat in the same order in every run.
#[derive(Debug, Default)]
pub(crate) struct Numbering(AtomicU64);

impl Numbering {
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Cuts a text after each run of white space; the pieces concatenate to the text.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut spaced = false;
    for (at, char) in text.char_indices() {
        if spaced && !char.is_whitespace() {
            pieces.push(text[start..at].to_owned());
            start = at;
        }
        spaced = char.is_whitespace();
    }
    if start < text.len() {
        pieces.push(text[start..].to_owned());
    }
    pieces
}

/// Cuts a text into pieces of so many characters.
pub(crate) fn fragments(text: &str, chars: usize) -> Vec<String> {
    let all: Vec<char> = text.chars().collect();
    all.chunks(chars.max(1)).map(|piece| piece.iter().collect()).collect()
}

/// The answer a rule spells out; what it leaves open comes from the request.
pub(crate) fn scripted(rule: &Rule, ask: &Ask, id: u64) -> Answer {
    let mut text = match (&rule.text, rule.words) {
        (Some(text), _) => words(text),
        (None, Some(count)) => (1..=count).map(|n| format!("word{n}{}", if n == count { "" } else { " " })).collect(),
        (None, None) => Vec::new(),
    };
    let thought = rule.thinking.as_ref().map(|thinking| {
        let made = signature::of(thinking);
        Thought { words: words(thinking), signature: rule.signature.clone().unwrap_or(made) }
    });
    let size = rule.fragment_chars.unwrap_or(8);
    let call = |(at, call): (usize, &crate::script::ToolCall)| Call {
        id: call.id.clone().unwrap_or_else(|| call_id(ask, id, at)),
        name: call.name.clone(),
        fragments: fragments(&call.arguments, size),
    };
    let calls: Vec<Call> = rule.tool_calls.iter().enumerate().map(call).collect();
    if text.is_empty() && thought.is_none() && calls.is_empty() && rule.refusal.is_none() {
        text = words("Nothing.");
    }
    let finish = if rule.refusal.is_some() {
        Finish::Refusal
    } else if calls.is_empty() {
        Finish::Stop
    } else {
        Finish::ToolCalls
    };
    let usage = counted(ask, thought.as_ref(), &text, rule.refusal.as_deref(), &calls);
    let model = ask.model.clone();
    let (refusal, interleave) = (rule.refusal.clone(), rule.interleave);
    Answer { id, model, thought, words: text, refusal, calls, interleave, finish, usage }
}

/// Overrides of a rule that hold for any answer.
pub(crate) fn adjust(answer: &mut Answer, rule: &Rule) {
    if let Some(finish) = &rule.finish {
        answer.finish = match finish.as_str() {
            "stop" | "end_turn" => Finish::Stop,
            "length" | "max_tokens" => Finish::Length,
            "stop_sequence" => Finish::StopSequence("STOP".to_owned()),
            "tool_calls" | "tool_use" => Finish::ToolCalls,
            "refusal" => Finish::Refusal,
            other => Finish::Other(other.to_owned()),
        };
    }
    let (usage, spec) = (&mut answer.usage, &rule.usage);
    usage.prompt = spec.prompt.unwrap_or(usage.prompt);
    usage.completion = spec.completion.unwrap_or(usage.completion);
    usage.cached = spec.cached.unwrap_or(usage.cached);
    usage.cache_write = spec.cache_write.unwrap_or(usage.cache_write);
    usage.reasoning = spec.reasoning.unwrap_or(usage.reasoning);
    answer.interleave = rule.interleave;
}

/// A call's id in the manner of the dialect.
pub(crate) fn call_id(ask: &Ask, reply: u64, at: usize) -> String {
    match ask.dialect {
        crate::ask::Dialect::Chat | crate::ask::Dialect::Completions | crate::ask::Dialect::Responses => {
            format!("call_lab{reply:06}n{at}")
        }
        crate::ask::Dialect::Gemini => format!("lab{reply:06}n{at}"),
        crate::ask::Dialect::Messages => format!("toolu_lab{reply:06}n{at}"),
    }
}

/// Counts words: text and thinking as sent, a call as its name and one word for each fragment.
pub(crate) fn counted(
    ask: &Ask,
    thought: Option<&Thought>,
    text: &[String],
    refusal: Option<&str>,
    calls: &[Call],
) -> Usage {
    let reasoning = thought.map_or(0, |thought| thought.words.len()) as u64;
    let called: usize = calls.iter().map(|call| 1 + call.fragments.len()).sum();
    let refused = refusal.map_or(0, |text| text.split_whitespace().count());
    let completion = (reasoning + (text.len() + called + refused) as u64).max(1);
    Usage { prompt: ask.prompt_words, completion, cached: 0, cache_write: 0, reasoning }
}

/// Leaves only the signature of a thought when the request wants it so.
pub(crate) fn hide(thought: &mut Thought, wanted: Thinking) {
    if wanted == Thinking::SignatureOnly {
        thought.words.clear();
    }
}
