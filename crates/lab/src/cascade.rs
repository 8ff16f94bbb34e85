//! The conversations that the lab keeps as a Cascade server, and what it was told in them: the transcript that tests look at.
//!
//! A turn's answer is worked out when the turn is taken, and all its steps stand in the log at once; how fast a watch shows
//! them, and where it breaks, is the script's matter.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use turnkeep_proto::cascade::v1::{Reason, Refusal, step};
use turnkeep_proto::connect::v1 as chat;

use crate::frame::Mark;
use crate::rpc_chat;

/// The most conversations that are kept, closed ones included; the oldest go first.
pub const MAX_CONVERSATIONS: usize = 10_000;

/// A conversation as a test looks at it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transcript {
    /// Its name.
    pub name: String,
    /// The model that it was begun with.
    pub model: String,
    /// It is not known any more: closed, or of an earlier process.
    pub closed: bool,
    /// The turns that were taken, in order.
    pub turns: Vec<TakenTurn>,
    /// Sends that were refused.
    pub refused: usize,
}

impl Transcript {
    /// Every message that was brought, as `role: text`, in order.
    pub fn said(&self) -> Vec<&str> {
        self.turns.iter().flat_map(|turn| turn.said.iter().map(String::as_str)).collect()
    }
}

/// A turn that was taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakenTurn {
    /// The position at which it was sent.
    pub at: u64,
    /// The messages that it brought, as `role: text`.
    pub said: Vec<String>,
    /// It brought tools.
    pub tools: usize,
    /// It was cancelled.
    pub cancelled: bool,
    /// Its final step has been shown.
    pub shown: bool,
}

/// A step of the log; the taking of a turn has nothing in it.
#[derive(Debug, Clone)]
pub(crate) struct Logged {
    pub mark: Mark,
    pub what: Option<step::What>,
}

#[derive(Debug)]
struct Kept {
    public: Transcript,
    messages: Vec<chat::Message>,
    tools: Vec<chat::Tool>,
    log: Vec<Logged>,
    /// The turn under way: its place among the turns, and the offset of its last step.
    under_way: Option<(usize, u64)>,
}

#[derive(Debug)]
struct Table {
    instance: [u8; 16],
    begun: u64,
    kept: BTreeMap<String, Kept>,
}

/// Running numbers of the Cascade server, for tests to wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CascadeCounts {
    /// Conversations begun.
    pub starts: usize,
    /// Turns taken.
    pub taken: usize,
    /// Sends refused.
    pub refused: usize,
    /// Watches opened.
    pub watches: usize,
    /// Positions asked for.
    pub positions: usize,
    /// Calls to cancel, whatever came of them.
    pub cancels: usize,
    /// Conversations closed.
    pub closed: usize,
}

/// The server.
#[derive(Debug)]
pub(crate) struct Cascade {
    table: Mutex<Table>,
    pub counts: watch::Sender<CascadeCounts>,
}

impl Default for Cascade {
    fn default() -> Self {
        let table = Table { instance: drawn(), begun: 0, kept: BTreeMap::new() };
        Self { table: Mutex::new(table), counts: watch::Sender::default() }
    }
}

/// Sixteen bytes by chance.
fn drawn() -> [u8; 16] {
    let half = || RandomState::new().hash_one("a process").to_be_bytes();
    let mut out = [0; 16];
    out[..8].copy_from_slice(&half());
    out[8..].copy_from_slice(&half());
    out
}

/// What there is to send.
pub(crate) struct Sent<'a> {
    pub name: &'a str,
    pub position: u64,
    pub instance: &'a [u8],
    pub turn: &'a chat::ChatRequest,
}

/// A conversation as an answer is made in it.
pub(crate) struct Asked<'a> {
    pub model: &'a str,
    /// All of them, those of this turn included.
    pub messages: &'a [chat::Message],
    pub tools: &'a [chat::Tool],
    /// How many words were there before this turn.
    pub known_words: u64,
}

impl Cascade {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process, as its clients know it.
    pub(crate) fn instance(&self) -> Vec<u8> {
        self.table().instance.to_vec()
    }

    /// Another process: it knows nothing of what was begun.
    pub(crate) fn restart(&self) {
        let mut table = self.table();
        table.instance = drawn();
        for kept in table.kept.values_mut() {
            kept.public.closed = true;
        }
    }

    pub(crate) fn start(&self, model: &str) -> (String, Vec<u8>) {
        let mut table = self.table();
        table.begun += 1;
        let name = format!("lab-conversation-{:06}", table.begun);
        let public = Transcript { name: name.clone(), model: model.to_owned(), ..Transcript::default() };
        let kept = Kept { public, messages: Vec::new(), tools: Vec::new(), log: Vec::new(), under_way: None };
        table.kept.insert(name.clone(), kept);
        if table.kept.len() > MAX_CONVERSATIONS {
            table.kept.pop_first();
        }
        let instance = table.instance.to_vec();
        drop(table);
        self.counts.send_modify(|counts| counts.starts += 1);
        (name, instance)
    }

    /// The model of a conversation.
    pub(crate) fn model(&self, name: &str) -> Option<String> {
        self.table().kept.get(name).map(|kept| kept.public.model.clone())
    }

    /// Notes a refusal in the conversation, and gives it back.
    pub(crate) fn refuse(&self, name: &str, refusal: Refusal) -> Refusal {
        if let Some(kept) = self.table().kept.get_mut(name) {
            kept.public.refused += 1;
        }
        self.counts.send_modify(|counts| counts.refused += 1);
        refusal
    }

    /// Takes a turn; `answer` makes the steps of its answer, the last one included, and the message that stays of it. Gives
    /// the offset of the first step.
    pub(crate) fn take(
        &self,
        sent: &Sent<'_>,
        answer: impl FnOnce(&Asked<'_>) -> (Vec<Logged>, Option<chat::Message>),
    ) -> Result<u64, Refusal> {
        let mut table = self.table();
        let instance = table.instance;
        let gone = || refusal(Reason::Conversation, "there is no such conversation");
        let kept = table.kept.get_mut(sent.name).filter(|kept| !kept.public.closed).ok_or_else(gone)?;
        if sent.instance != instance {
            return Err(refusal(Reason::Conversation, "another process began this conversation"));
        }
        let position = kept.log.len() as u64;
        if kept.under_way.is_some() {
            return Err(refusal(Reason::Busy, "another turn is under way"));
        }
        if sent.position != position {
            return Err(refusal(Reason::Position, &format!("the conversation stands at {position}")));
        }
        let words = |messages: &[chat::Message]| {
            let count = |message| rpc_chat::said(message).split_whitespace().count().saturating_sub(1) as u64;
            messages.iter().map(count).sum::<u64>()
        };
        let known_words = words(&kept.messages);
        kept.messages.extend(sent.turn.messages.iter().cloned());
        if !sent.turn.tools.is_empty() {
            kept.tools.clone_from(&sent.turn.tools);
        }
        kept.log.push(Logged { mark: Mark::Preamble, what: None });
        let asked = Asked { model: &kept.public.model, messages: &kept.messages, tools: &kept.tools, known_words };
        let (steps, stays) = answer(&asked);
        kept.log.extend(steps);
        kept.messages.extend(stays);
        let last = (kept.log.len() as u64).saturating_sub(1);
        kept.under_way = Some((kept.public.turns.len(), last));
        kept.public.turns.push(TakenTurn {
            at: position,
            said: sent.turn.messages.iter().map(rpc_chat::said).collect(),
            tools: sent.turn.tools.len(),
            ..TakenTurn::default()
        });
        drop(table);
        self.counts.send_modify(|counts| counts.taken += 1);
        Ok(position + 1)
    }

    /// The steps from an offset on.
    pub(crate) fn watch(&self, name: &str, offset: u64) -> Option<Vec<(u64, Logged)>> {
        let table = self.table();
        let kept = table.kept.get(name).filter(|kept| !kept.public.closed)?;
        let steps = kept.log.iter().enumerate().map(|(at, step)| (at as u64, step.clone()));
        let steps = steps.skip_while(|(at, _)| *at < offset).collect();
        drop(table);
        self.counts.send_modify(|counts| counts.watches += 1);
        Some(steps)
    }

    /// A turn's last step is being shown: the turn is over.
    pub(crate) fn shown(&self, name: &str, offset: u64) {
        if let Some(kept) = self.table().kept.get_mut(name)
            && let Some((turn, last)) = kept.under_way
            && last <= offset
        {
            kept.under_way = None;
            if let Some(turn) = kept.public.turns.get_mut(turn) {
                turn.shown = true;
            }
        }
    }

    pub(crate) fn position(&self, name: &str) -> Result<(u64, Vec<u8>), Refusal> {
        self.counts.send_modify(|counts| counts.positions += 1);
        let table = self.table();
        match table.kept.get(name).filter(|kept| !kept.public.closed) {
            Some(kept) => Ok((kept.log.len() as u64, table.instance.to_vec())),
            None => Err(refusal(Reason::Conversation, "there is no such conversation")),
        }
    }

    pub(crate) fn cancel(&self, name: &str, position: u64, close: bool) {
        let mut closed = false;
        if let Some(kept) = self.table().kept.get_mut(name) {
            if let Some((turn, _)) = kept.under_way
                && let Some(turn) = kept.public.turns.get_mut(turn)
                && (close || turn.at == position)
            {
                turn.cancelled = true;
                kept.under_way = None;
            }
            closed = close && !kept.public.closed;
            kept.public.closed |= close;
        }
        self.counts.send_modify(|counts| {
            counts.cancels += 1;
            counts.closed += usize::from(closed);
        });
    }

    /// Every conversation, in the order in which they were begun.
    pub(crate) fn transcripts(&self) -> Vec<Transcript> {
        self.table().kept.values().map(|kept| kept.public.clone()).collect()
    }
}

/// A refusal without a wait.
pub(crate) fn refusal(reason: Reason, message: &str) -> Refusal {
    Refusal { reason: reason.into(), message: message.to_owned(), ..Refusal::default() }
}
