//! An upstream with a protocol of its own that keeps conversations, and every word that reached them. It notes whatever
//! must never happen: two turns in one conversation, a turn in one that is not as far as it was said to be, one that was
//! spoilt or let go of and is gone on with.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::Semaphore;
use turnkeep_base::{AccountId, Evidence, Fault, FaultKind, Phase};
use turnkeep_dialect::event::{Block, Delta, Event, Finish};
use turnkeep_dialect::json::Invalid;
use turnkeep_dialect::tool_names::ToolNames;
use turnkeep_dialect::turn::{Body, Role, Turn};
use turnkeep_engine::ports::{Ask, Happening, Native, NativeAnswer, NativeWritten, SendFault, Writing};
use turnkeep_policy::conversations::{Conversation, Handling, RefusalProof};

/// What a refusal of the send proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    Nothing,
    NeverLeft,
    ByReply,
    ByFailure,
}

/// One step of an answer.
#[derive(Clone, Debug)]
pub enum Beat {
    /// Lets others run first.
    Pause,
    /// Never comes to an end.
    Hang,
    /// Waits until the test opens it.
    Gate(Arc<Semaphore>),
    /// The answer begins; nothing is said yet.
    Start,
    Say(&'static str),
    /// Calls a tool, with these arguments.
    Call(&'static str, &'static str),
    Fault(FaultKind),
    Panic,
    /// The protocol's own end.
    End,
}

/// What becomes of a send.
#[derive(Clone, Debug)]
pub enum Act {
    Answer(Vec<Beat>),
    Refuse(FaultKind, Proof),
    Hang,
    Panic,
}

/// An answer that says this.
pub fn says(text: &'static str) -> Act {
    Act::Answer(vec![Beat::Start, Beat::Say(text), Beat::End])
}

/// The upstream does not know the handle.
pub fn gone() -> Act {
    Act::Refuse(FaultKind::ConversationGone, Proof::ByReply)
}

/// A turn that was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub account: String,
    /// The conversation that it goes on with.
    pub resume: Option<String>,
    pub reread: bool,
    /// What it holds.
    pub lines: Vec<String>,
}

#[derive(Default)]
pub struct Kept {
    acts: VecDeque<Act>,
    /// Every conversation's words.
    pub transcripts: BTreeMap<String, Vec<String>>,
    in_turn: BTreeSet<String>,
    pub sends: Vec<Sent>,
    pub forgotten: Vec<String>,
    /// Turns that were dropped before their end.
    pub cancelled: usize,
    begun: u32,
    /// What must not happen, and did.
    pub wrong: Vec<String>,
}

/// The upstream.
pub struct Fake {
    pub handling: Handling,
    pub kept: Arc<Mutex<Kept>>,
    /// The process that keeps the conversations; `None`: they do not end with one.
    pub instance: Mutex<Option<u128>>,
    pub names_instance: bool,
}

impl Fake {
    pub fn new(handling: Handling, instance: Option<u128>) -> Arc<Fake> {
        let names_instance = instance.is_some();
        Arc::new(Fake { handling, kept: Arc::default(), instance: instance.into(), names_instance })
    }

    /// What becomes of the next sends, in order; of all further ones, an answer that says `one`.
    pub fn act(&self, acts: impl IntoIterator<Item = Act>) {
        self.kept.lock().acts = acts.into_iter().collect();
    }

    pub fn sends(&self) -> usize {
        self.kept.lock().sends.len()
    }

    pub fn last(&self) -> Sent {
        self.kept.lock().sends.last().cloned().expect("something was sent")
    }

    /// The words of the one conversation that is there.
    #[track_caller]
    pub fn transcript(&self) -> Vec<String> {
        let kept = self.kept.lock();
        assert_eq!(kept.transcripts.len(), 1, "{:?}", kept.transcripts);
        kept.transcripts.values().next().cloned().unwrap_or_default()
    }

    /// Nothing happened that must not.
    #[track_caller]
    pub fn assert_right(&self) {
        let kept = self.kept.lock();
        assert_eq!(kept.wrong, [""; 0]);
        assert!(kept.in_turn.is_empty(), "a turn goes on: {:?}", kept.in_turn);
        for (handle, lines) in &kept.transcripts {
            let answers: Vec<_> = lines.windows(2).filter(|two| two[0] == two[1]).collect();
            assert!(answers.is_empty(), "{handle} holds something twice: {lines:?}");
        }
    }
}

/// What a part says.
fn words_of(body: &Body<'_>) -> String {
    match body {
        Body::Text(text) => text.to_string(),
        Body::ToolCall { name, arguments, .. } => format!("{name} {arguments}"),
        Body::ToolResult { content, .. } => content.iter().map(|part| words_of(&part.body)).collect(),
        Body::Image(_)
        | Body::File(_)
        | Body::Thinking { .. }
        | Body::RedactedThinking(_)
        | Body::Refusal(_)
        | Body::Other(_) => format!("{body:?}"),
    }
}

fn lines_of(turn: &Turn<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for message in &turn.messages {
        let who = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        for part in &message.parts {
            let words = words_of(&part.body);
            lines.push(match &part.body {
                Body::ToolCall { .. } => format!("{who} calls: {words}"),
                Body::ToolResult { .. } => format!("tool: {words}"),
                Body::Text(_)
                | Body::Image(_)
                | Body::File(_)
                | Body::Thinking { .. }
                | Body::RedactedThinking(_)
                | Body::Refusal(_)
                | Body::Other(_) => format!("{who}: {words}"),
            });
        }
    }
    lines
}

impl Native for Fake {
    fn write(&self, turn: &Turn<'_>, _: Writing<'_>) -> Result<NativeWritten, Invalid> {
        let body = lines_of(turn).join("\n").into();
        Ok(NativeWritten { body, dropped: Vec::new(), names: ToolNames::default() })
    }

    fn send(&self, ask: Ask) -> BoxFuture<'_, Result<Box<dyn NativeAnswer>, SendFault>> {
        let lines: Vec<String> = std::str::from_utf8(&ask.body).unwrap().split('\n').map(str::to_owned).collect();
        let act = {
            let mut kept = self.kept.lock();
            let resume = ask.resume.as_ref().map(|resume| resume.handle.to_string());
            let account = ask.account.account.to_string();
            kept.sends.push(Sent { account, resume, reread: ask.reread, lines: lines.clone() });
            kept.acts.pop_front().unwrap_or_else(|| says("one"))
        };
        async move {
            tokio::task::yield_now().await;
            match act {
                Act::Panic => panic!("a mistake in sending"),
                Act::Hang => std::future::pending().await,
                Act::Refuse(kind, proof) => Err(self.refuse(&ask, kind, proof)),
                Act::Answer(beats) => Ok(Box::new(self.begin(&ask, lines, beats)) as Box<dyn NativeAnswer>),
            }
        }
        .boxed()
    }

    fn stands(&self, conversation: &Conversation) -> bool {
        conversation.instance.is_none() || conversation.instance == *self.instance.lock()
    }

    fn forget(&self, _: &AccountId, conversation: Conversation) {
        let mut kept = self.kept.lock();
        let handle = conversation.handle.to_string();
        if kept.in_turn.contains(&handle) {
            kept.wrong.push(format!("{handle} is let go of in the middle of a turn"));
        }
        kept.transcripts.remove(&handle);
        kept.forgotten.push(handle);
    }
}

impl Fake {
    fn refuse(&self, ask: &Ask, kind: FaultKind, proof: Proof) -> SendFault {
        if kind == FaultKind::ConversationGone {
            let resume = ask.resume.as_ref().map(|resume| resume.handle.to_string()).unwrap_or_default();
            self.kept.lock().transcripts.remove(&resume);
        }
        let (phase, refused) = match proof {
            Proof::Nothing => (Phase::MaybeSent, None),
            Proof::NeverLeft => (Phase::Unsent, Some(RefusalProof::never_left())),
            Proof::ByReply => (Phase::Answered, Some(RefusalProof::by_reply())),
            Proof::ByFailure => (Phase::Answered, Some(RefusalProof::by_failure())),
        };
        SendFault { fault: Fault::new(kind, phase, Evidence::text("as the test says")), refused }
    }

    fn begin(&self, ask: &Ask, lines: Vec<String>, beats: Vec<Beat>) -> FakeAnswer {
        let mut kept = self.kept.lock();
        let mut words = Vec::new();
        let mut handle = None;
        if let Some(resume) = &ask.resume {
            let name = resume.handle.to_string();
            match kept.transcripts.get(&name).cloned() {
                None => kept.wrong.push(format!("{name} is gone on with and not there")),
                Some(before) if resume.position != Some(before.len() as u64) => {
                    kept.wrong.push(format!("{name} is not as far as {:?}: {before:?}", resume.position));
                }
                Some(before) => words = before,
            }
            if self.handling == Handling::Mutable {
                if kept.in_turn.contains(&name) {
                    kept.wrong.push(format!("{name} is in two turns"));
                }
                handle = Some(name);
            }
        }
        let handle = handle.unwrap_or_else(|| {
            kept.begun += 1;
            format!("h{}", kept.begun)
        });
        words.extend(lines);
        kept.in_turn.insert(handle.clone());
        match self.handling {
            // What a turn has said to it stays, however the turn ends.
            Handling::Mutable => drop(kept.transcripts.insert(handle.clone(), words.clone())),
            Handling::Immutable => {}
        }
        FakeAnswer {
            kept: self.kept.clone(),
            handle,
            words,
            instance: self.names_instance.then(|| *self.instance.lock()).flatten(),
            beats: beats.into(),
            ready: VecDeque::new(),
            waiting: None,
            blocks: 0,
            answer: String::new(),
            calls: Vec::new(),
            ended: false,
        }
    }
}

struct FakeAnswer {
    kept: Arc<Mutex<Kept>>,
    handle: String,
    words: Vec<String>,
    instance: Option<u128>,
    beats: VecDeque<Beat>,
    ready: VecDeque<Event>,
    waiting: Option<BoxFuture<'static, ()>>,
    blocks: u32,
    answer: String,
    calls: Vec<String>,
    ended: bool,
}

impl FakeAnswer {
    fn block(&mut self, kind: Block, delta: Delta) {
        let block = self.blocks;
        self.blocks += 1;
        self.ready.extend([
            Event::BlockStart { block, kind },
            Event::Delta { block, delta },
            Event::BlockStop { block },
        ]);
    }

    fn end(&mut self) {
        let reason = if self.calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
        self.ready.extend([Event::Finish { reason, stop_sequence: None }, Event::End]);
        if !self.answer.is_empty() {
            self.words.push(format!("assistant: {}", self.answer));
        }
        self.words.append(&mut self.calls);
        let mut kept = self.kept.lock();
        kept.transcripts.insert(self.handle.clone(), self.words.clone());
        kept.in_turn.remove(&self.handle);
        self.ended = true;
    }
}

impl NativeAnswer for FakeAnswer {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Happening, Fault>>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                std::task::ready!(waiting.poll_unpin(cx));
                self.waiting = None;
            }
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(Happening::Event(event))));
            }
            let wait = match self.beats.pop_front() {
                None => return Poll::Ready(None),
                Some(Beat::Pause) => tokio::task::yield_now().boxed(),
                Some(Beat::Hang) => std::future::pending().boxed(),
                Some(Beat::Gate(gate)) => async move { gate.acquire().await.unwrap().forget() }.boxed(),
                Some(Beat::Panic) => panic!("a mistake in reading"),
                Some(Beat::Fault(kind)) => {
                    let why = Evidence::text("as the test says");
                    return Poll::Ready(Some(Err(Fault::new(kind, Phase::Answered, why))));
                }
                Some(Beat::Start) => {
                    self.ready.push_back(Event::Start { id: None, model: Some("m".into()), usage: None });
                    continue;
                }
                Some(Beat::Say(text)) => {
                    self.answer.push_str(text);
                    self.block(Block::Text, Delta::Text(text.into()));
                    continue;
                }
                Some(Beat::Call(name, arguments)) => {
                    self.calls.push(format!("assistant calls: {name} {arguments}"));
                    let id = format!("call_{}", self.calls.len());
                    self.block(Block::ToolCall { id, name: name.into() }, Delta::Arguments(arguments.into()));
                    continue;
                }
                Some(Beat::End) => {
                    self.end();
                    continue;
                }
            };
            self.waiting = Some(wait);
        }
    }

    fn conversation(&self) -> Option<Conversation> {
        let position = Some(self.words.len() as u64);
        self.ended.then(|| Conversation { handle: self.handle.as_str().into(), position, instance: self.instance })
    }
}

impl Drop for FakeAnswer {
    fn drop(&mut self) {
        if !self.ended {
            let mut kept = self.kept.lock();
            kept.in_turn.remove(&self.handle);
            kept.cancelled += 1;
        }
    }
}
