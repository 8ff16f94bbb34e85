//! One agent process as a partner in talk: what is asked of it and not answered yet, the turns it is in, and what it asks of
//! us. One task reads and one writes; neither waits for any turn.

use super::faults::{Broken, Failed};
use super::lines::{Lines, TooLong};
use super::mailbox::{Item, Mailbox};
use super::permissions;
use super::rpc::{self, ErrorReply, Message, RpcError};
use super::sessions::{Agent, Session};
use super::spec::{Permissions, ToolActivity};
use super::update;
use super::waiting::{Waiting, Waits};
use crate::supervise::{Input, Output};
use bytes::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

/// Messages that may wait until the agent reads them; replies that find no place mean that it does not read.
const OUT: usize = 256;
/// Lines before its first message that are no message: a banner.
const BANNER: u64 = 64;
/// Kinds of tool calls that are remembered of one turn.
const TOOL_KINDS: usize = 256;
/// Bytes that are read at once.
const READ: usize = 64 << 10;

/// Why a call got no result.
#[derive(Debug)]
pub(super) enum CallFailed {
    /// As the agent or its end tells.
    Failed(Failed),
    /// It did not answer this in time.
    Late(&'static str),
}

/// A turn that a session is in.
struct InTurn {
    id: u64,
    mailbox: Arc<Mailbox>,
    cancelling: bool,
    tool_kinds: HashMap<String, String>,
}

/// What the tasks and the turns share.
pub(super) struct Shared {
    name: Arc<str>,
    policy: Permissions,
    activity: ToolActivity,
    out: mpsc::Sender<Bytes>,
    next: AtomicU64,
    /// Lines so far that were no message; counts only until the first message.
    banner: AtomicU64,
    spoken: std::sync::atomic::AtomicBool,
    waiting: Waits,
    turns: Mutex<HashMap<Arc<str>, InTurn>>,
    broken: Mutex<Option<Broken>>,
    /// Turns whose cancellation is not confirmed.
    cancelling: watch::Sender<usize>,
    closes: std::sync::atomic::AtomicBool,
}

/// The process's side of the talk. Dropped, it closes the agent's input.
pub(super) struct Peer {
    pub(super) shared: Arc<Shared>,
    /// What the agent can do.
    pub(super) agent: Agent,
    tasks: [AbortHandle; 2],
}

impl Drop for Peer {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        self.shared.break_off(Broken::Closed("the agent's process was let go of".into()));
    }
}

/// The tasks that read and write, before anything is known of the agent.
pub(super) fn connect(
    name: Arc<str>,
    policy: Permissions,
    activity: ToolActivity,
    stdin: Input,
    stdout: Output,
) -> Peer {
    let (out, lines) = mpsc::channel(OUT);
    let shared = Arc::new(Shared {
        name,
        policy,
        activity,
        out,
        next: AtomicU64::new(1),
        banner: AtomicU64::new(0),
        spoken: false.into(),
        waiting: Waits::default(),
        turns: Mutex::default(),
        broken: Mutex::default(),
        cancelling: watch::channel(0).0,
        closes: false.into(),
    });
    let reader = tokio::spawn(read(shared.clone(), stdout)).abort_handle();
    let writer = tokio::spawn(write(shared.clone(), lines, stdin)).abort_handle();
    Peer { shared, agent: Agent::default(), tasks: [reader, writer] }
}

async fn read(shared: Arc<Shared>, mut stdout: Output) {
    let mut lines = Lines::default();
    let mut buffer = vec![0u8; READ];
    let broken = 'reading: loop {
        let read = match stdout.read(&mut buffer).await {
            Ok(0) => break Broken::Closed("the agent closed its output before the end of the turn".into()),
            Ok(read) => read,
            Err(error) => break Broken::Closed(format!("the agent's output could not be read: {error}")),
        };
        lines.push(buffer.get(..read).unwrap_or_default());
        loop {
            match lines.next() {
                Ok(Some(line)) => {
                    if let Err(broken) = shared.heard(&line) {
                        break 'reading broken;
                    }
                }
                Ok(None) => break,
                Err(TooLong) => break 'reading Broken::Malformed("the agent wrote a line of more than 4 MiB".into()),
            }
        }
    };
    shared.break_off(broken);
}

async fn write(shared: Arc<Shared>, mut lines: mpsc::Receiver<Bytes>, mut stdin: Input) {
    while let Some(line) = lines.recv().await {
        let written = async {
            stdin.write_all(&line).await?;
            stdin.flush().await
        };
        if let Err(error) = written.await {
            shared.break_off(Broken::Closed(format!("the agent closed its input: {error}")));
            return;
        }
    }
}

#[derive(Serialize)]
struct OfSession<'a> {
    #[serde(rename = "sessionId")]
    session: &'a str,
}

#[derive(Deserialize)]
struct NamesSession {
    #[serde(rename = "sessionId")]
    session: String,
}

#[derive(Serialize)]
struct Prompt<'a> {
    #[serde(rename = "sessionId")]
    session: &'a str,
    prompt: &'a RawValue,
}

impl Shared {
    /// Nothing more comes from the process: whoever waits is told.
    fn break_off(&self, broken: Broken) {
        let broken = self.broken.lock().get_or_insert(broken).clone();
        // What waits is taken after that: whoever comes later sees it broken.
        self.turns.lock().clear();
        for waiting in self.waiting.take_all() {
            waiting.tell(Err(Failed::Broken(broken.clone())));
        }
    }

    /// Why it is of no use any more, if it is not.
    pub(super) fn broken(&self) -> Option<Broken> {
        self.broken.lock().clone()
    }

    fn failed(&self) -> Failed {
        Failed::Broken(self.broken().unwrap_or_else(|| Broken::Closed("the agent does not read its input".into())))
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Relaxed)
    }

    /// Asks, and waits for the answer.
    pub(super) async fn call<T: for<'a> Deserialize<'a>>(
        &self,
        method: &'static str,
        params: impl Serialize,
        within: Duration,
    ) -> Result<T, CallFailed> {
        let asked = async {
            let id = self.number();
            let line = rpc::line(Some(id), method, params).map_err(|error| unwritable(method, &error))?;
            let place = self.out.reserve().await.map_err(|_| self.failed())?;
            let (told, answer) = oneshot::channel();
            self.wait_for(id, Waiting::Call { method, told })?;
            place.send(line.into());
            answer.await.unwrap_or_else(|_| Err(self.failed()))
        };
        let answer = tokio::time::timeout(within, asked).await.map_err(|_| CallFailed::Late(method))?;
        let answer = answer.map_err(CallFailed::Failed)?;
        // A `null` is an answer without anything in it.
        let text = if answer.get() == "null" { "{}" } else { answer.get() };
        rpc::object(text).map_err(|error| {
            let what = format!("the answer to {method}: {error}");
            CallFailed::Failed(Failed::Broken(Broken::Malformed(what)))
        })
    }

    fn wait_for(&self, id: u64, waiting: Waiting) -> Result<(), Failed> {
        self.waiting.insert(id, waiting);
        if self.broken.lock().is_some() {
            self.waiting.remove(id);
            return Err(self.failed());
        }
        Ok(())
    }

    /// Begins a turn in a session. Once this has returned the agent may have it.
    pub(super) async fn prompt(&self, session: &Arc<str>, prompt: &RawValue) -> Result<(u64, Arc<Mailbox>), Failed> {
        let id = self.number();
        let params = Prompt { session, prompt };
        let line =
            rpc::line(Some(id), "session/prompt", params).map_err(|error| unwritable("session/prompt", &error))?;
        let place = self.out.reserve().await.map_err(|_| self.failed())?;
        // Nothing is waited for from here on: the turn is either not begun or known.
        let mailbox = Arc::new(Mailbox::default());
        let turn = InTurn { id, mailbox: mailbox.clone(), cancelling: false, tool_kinds: HashMap::new() };
        self.turns.lock().insert(session.clone(), turn);
        self.wait_for(id, Waiting::Turn { session: session.clone(), mailbox: mailbox.clone() })?;
        place.send(line.into());
        Ok((id, mailbox))
    }

    /// Asks the agent to end a turn. False: it does not read its input.
    pub(super) fn cancel(&self, session: &str, id: u64) -> bool {
        if let Some(turn) = self.turns.lock().get_mut(session)
            && turn.id == id
        {
            turn.cancelling = true;
        }
        self.tell("session/cancel", OfSession { session })
    }

    /// Closes a session that nobody goes on with, where the agent can. Its answer is not looked for.
    pub(super) fn close(&self, session: &str) {
        if !self.closes.load(Relaxed) {
            return;
        }
        if let Ok(line) = rpc::line(Some(self.number()), "session/close", OfSession { session }) {
            // An agent that does not read keeps its session until it ends.
            let _sent = self.out.try_send(line.into());
        }
    }

    fn tell(&self, method: &str, params: impl Serialize) -> bool {
        rpc::line(None, method, params).is_ok_and(|line| self.out.try_send(line.into()).is_ok())
    }

    /// Counts a cancellation until its confirmation.
    pub(super) fn cancellation(self: &Arc<Self>) -> Cancelling {
        self.cancelling.send_modify(|count| *count += 1);
        Cancelling(self.clone())
    }

    /// Waits until the agent has confirmed what was cancelled: its slots are not free before.
    pub(super) async fn cancellations(&self) {
        let mut count = self.cancelling.subscribe();
        let _gone = count.wait_for(|count| *count == 0).await;
    }

    /// A turn runs in this session.
    pub(super) fn is_in_turn(&self, session: &str) -> bool {
        self.turns.lock().contains_key(session)
    }

    /// The turns that run.
    pub(super) fn turns(&self) -> usize {
        self.turns.lock().len()
    }

    /// Takes a line. An error ends the talk.
    fn heard(&self, line: &[u8]) -> Result<(), Broken> {
        let message = match Message::read(line) {
            Ok(message) => message,
            Err(error) => {
                if !self.spoken.load(Relaxed) && self.banner.fetch_add(1, Relaxed) < BANNER {
                    tracing::debug!(process = %self.name, "a line before the first message that is no message");
                    return Ok(());
                }
                return Err(Broken::Malformed(format!("the agent wrote a line that is no message: {error}")));
            }
        };
        self.spoken.store(true, Relaxed);
        match message {
            Message::Response { id, outcome } => {
                // Nobody looks for some answers.
                if let Some(waiting) = self.waiting.remove(id) {
                    self.answered(id, waiting, outcome);
                }
                Ok(())
            }
            Message::Notification { method, params } => self.told(&method, params),
            Message::Request { id, method, params } => {
                let line = match self.asked(&method, params) {
                    Ok(answer) => rpc::reply(id, Ok(answer)),
                    Err(error) => rpc::reply(id, Err::<(), _>(error)),
                };
                let sent = line.is_ok_and(|line| self.out.try_send(line.into()).is_ok());
                if sent {
                    Ok(())
                } else {
                    Err(Broken::Malformed("the agent asks and does not read the answers".into()))
                }
            }
            Message::Stray => {
                tracing::debug!(process = %self.name, "an answer to nothing that was asked");
                Ok(())
            }
        }
    }

    fn answered(&self, id: u64, waiting: Waiting, outcome: Result<&RawValue, RpcError>) {
        if let Waiting::Turn { session, .. } = &waiting {
            let mut turns = self.turns.lock();
            if turns.get(session).is_some_and(|turn| turn.id == id) {
                turns.remove(session);
            }
        }
        // Whoever began a session has left: nobody else knows of it.
        if let (Waiting::Call { method: "session/new", told }, Ok(result)) = (&waiting, &outcome)
            && told.is_closed()
            && let Ok(Session { id: Some(session), .. }) = rpc::object(result.get())
        {
            self.close(&session);
        }
        waiting.tell(outcome.map(ToOwned::to_owned).map_err(Failed::Error));
    }

    fn told(&self, method: &str, params: Option<&RawValue>) -> Result<(), Broken> {
        if method != "session/update" {
            // `$/cancel_request` too: what the agent asks is answered at once.
            return Ok(());
        }
        let params = params.map_or("null", RawValue::get);
        let params: update::Params<'_> = rpc::object(params)
            .map_err(|error| Broken::Malformed(format!("the parameters of a session/update: {error}")))?;
        let mut turns = self.turns.lock();
        // Outside of a turn: what a loaded session tells of its past, or of what could be set.
        let Some(turn) = turns.get_mut(params.session.as_str()) else { return Ok(()) };
        match update::read(params.update, self.activity) {
            Ok(told) => {
                if let Some((id, kind)) = told.tool
                    && turn.tool_kinds.len() < TOOL_KINDS
                {
                    turn.tool_kinds.insert(id, kind);
                }
                if let Some(item) = told.item {
                    turn.mailbox.push(item);
                }
            }
            Err(update::Unreadable(why)) => {
                turn.mailbox.push(Item::Ended(Err(Failed::Broken(Broken::Malformed(why)))));
            }
        }
        Ok(())
    }

    fn asked(&self, method: &str, params: Option<&RawValue>) -> Result<permissions::Answer, ErrorReply> {
        self.is_at_work(params);
        if method != "session/request_permission" {
            let message = format!("this client does not offer {method}");
            return Err(ErrorReply { code: rpc::METHOD_NOT_FOUND, message });
        }
        let params = params.map_or("null", RawValue::get);
        let params: permissions::Params = rpc::object(params)
            .map_err(|error| ErrorReply { code: rpc::INVALID_PARAMS, message: error.to_string() })?;
        let turns = self.turns.lock();
        let Some(turn) = turns.get(params.session.as_str()).filter(|turn| !turn.cancelling) else {
            return Ok(permissions::CANCELLED);
        };
        let known = params.tool_call.id.as_ref().and_then(|id| turn.tool_kinds.get(id)).map(String::as_str);
        let kind = params.tool_call.kind.as_deref().or(known);
        Ok(permissions::answer(self.policy, kind, &params.options))
    }

    /// Who asks for something in a turn has begun with it, whatever is asked: an error after that is no refusal.
    fn is_at_work(&self, params: Option<&RawValue>) {
        let named = params.and_then(|params| rpc::object::<NamesSession>(params.get()).ok());
        if let Some(NamesSession { session }) = named
            && let Some(turn) = self.turns.lock().get(session.as_str())
        {
            turn.mailbox.push(Item::Alive);
        }
    }
}

impl Peer {
    /// What the agent has said of itself.
    pub(super) fn is(mut self, agent: Agent) -> Self {
        self.shared.closes.store(agent.closes, Relaxed);
        self.agent = agent;
        self
    }
}

/// A cancellation that is not confirmed yet.
pub(super) struct Cancelling(Arc<Shared>);

impl Drop for Cancelling {
    fn drop(&mut self) {
        self.0.cancelling.send_modify(|count| *count = count.saturating_sub(1));
    }
}

fn unwritable(method: &str, error: &serde_json::Error) -> Failed {
    Failed::Broken(Broken::Malformed(format!("{method} could not be written: {error}")))
}
