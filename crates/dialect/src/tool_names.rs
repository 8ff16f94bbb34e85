//! The names of tools across dialects. Each target takes other letters and lengths; a name that does not fit is sent
//! under another one, which is worked out from the name alone, so that a tool and the calls of it in the history always
//! agree. How the client knows a tool is kept for the answer.
//!
//! No two names meet: a name that was made here has a form of its own, and a client's name that has that form by itself
//! is renamed too. Two made names are the same only where 64 bits of a strong hash are, so nobody can be given another
//! tool's call by a name that was chosen for it.

use crate::turn::{ClientTool, Text, Tool, ToolKind, Turn};
use std::borrow::Cow;
use std::collections::BTreeMap;
use turnkeep_base::Dialect;

/// The longest name that every target takes; Anthropic's own limit is 128, that of servers like it is not known.
pub const MAX_NAME: usize = 64;

/// What parts the readable beginning of a made name from its hash.
const MARK: &str = "_tk";
/// Digits of the hash, 4 bits each.
const DIGITS: usize = 16;

/// How the client knows the tools of a request, by the names under which they were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolNames {
    by_sent: BTreeMap<String, ClientTool>,
}

impl ToolNames {
    /// Of a turn that goes to a target: every tool whose name is sent as another one, every tool that takes free text,
    /// and every tool whose canonical name is not the client's own.
    pub fn of(turn: &Turn<'_>, target: Dialect) -> Self {
        let mut by_sent: BTreeMap<String, ClientTool> = BTreeMap::new();
        for tool in &turn.tools {
            let Some(name) = name_of(tool) else { continue };
            let (to_send, custom) = (sent(name, target), matches!(tool.kind, ToolKind::Custom { .. }));
            if custom || to_send != *name {
                let client = ClientTool { name: name.to_string(), namespace: None, custom };
                by_sent.insert(to_send.into_owned(), client);
            }
        }
        for renamed in &turn.renamed {
            let known = by_sent.entry(sent(&renamed.canonical, target).into_owned()).or_default();
            *known = ClientTool { custom: known.custom || renamed.client.custom, ..renamed.client.clone() };
        }
        ToolNames { by_sent }
    }

    /// Every tool is known to the client as it was sent, or nothing is known of them.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_sent.is_empty()
    }

    /// How the client knows a tool, where that differs from the name under which it was sent.
    pub fn client(&self, sent: &str) -> Option<&ClientTool> {
        self.by_sent.get(sent)
    }

    /// How the client names a tool.
    pub fn name<'n>(&'n self, sent: &'n str) -> &'n str {
        self.client(sent).map_or(sent, |tool| &tool.name)
    }

    /// The client knows the tool as one that takes free text.
    pub fn is_custom(&self, sent: &str) -> bool {
        self.client(sent).is_some_and(|tool| tool.custom)
    }
}

/// The canonical name of a tool that the client runs.
pub fn name_of<'t, 'a>(tool: &'t Tool<'a>) -> Option<&'t Text<'a>> {
    match &tool.kind {
        ToolKind::Function { name, .. } | ToolKind::Custom { name, .. } => Some(name),
        ToolKind::Hosted(_) => None,
    }
}

/// The name under which a tool is sent.
pub fn sent(name: &str, target: Dialect) -> Cow<'_, str> {
    if fits(name, target) && !is_made(name) { Cow::Borrowed(name) } else { Cow::Owned(made(name, target)) }
}

/// The target takes the name. Chat and Responses: `^[A-Za-z0-9_-]{1,64}$`; Messages the same, with some models up to
/// 128; Gemini begins with a letter or `_` and takes `.` and `:` too.
fn fits(name: &str, target: Dialect) -> bool {
    let first = name.bytes().next().is_some_and(|byte| begins(byte, target));
    first && name.len() <= MAX_NAME && name.bytes().all(|byte| takes(byte, target))
}

fn begins(byte: u8, target: Dialect) -> bool {
    match target {
        Dialect::Chat | Dialect::Responses | Dialect::Messages => takes(byte, target),
        Dialect::Gemini => byte.is_ascii_alphabetic() || byte == b'_',
    }
}

fn takes(byte: u8, target: Dialect) -> bool {
    let common = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match target {
        Dialect::Chat | Dialect::Responses | Dialect::Messages => common,
        Dialect::Gemini => common || matches!(byte, b'.' | b':'),
    }
}

/// The name could have been made here.
fn is_made(name: &str) -> bool {
    let hash = name.len().checked_sub(DIGITS).and_then(|at| name.split_at_checked(at));
    hash.is_some_and(|(start, hash)| {
        start.ends_with(MARK) && hash.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
    })
}

fn made(name: &str, target: Dialect) -> String {
    let mut out = String::with_capacity(MAX_NAME);
    if !name.bytes().next().is_some_and(|byte| begins(byte, target)) {
        out.push_str("tool_");
    }
    for letter in name.chars() {
        if out.len() >= MAX_NAME - MARK.len() - DIGITS {
            break;
        }
        let fits = u8::try_from(letter).is_ok_and(|byte| byte.is_ascii() && takes(byte, target));
        out.push(if fits { letter } else { '_' });
    }
    out.push_str(MARK);
    out.extend(blake3::hash(name.as_bytes()).to_hex().chars().take(DIGITS));
    out
}
