//! A Cascade server whose turns go by a script and whose conversations' transcripts are kept. It speaks the Connect
//! protocol, as the schema and its comments say; within, everything is in the JSON form of the schema's messages.

use crate::fake::{Answer, Answers, Asked, Server};
use crate::support::soon;
use futures_util::future::BoxFuture;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use turnkeep_proto::cascade::v1;

/// What becomes of a turn.
#[derive(Clone, Debug)]
pub enum Next {
    /// It is answered by these words.
    Say(String),
    /// By the first words, and by the others when the test says so.
    Hold(&'static str, &'static str),
    /// By calls of a tool `look`, with these ids.
    Call(Vec<&'static str>),
    /// It is refused by the reply to the send call, with this reason and this wait in milliseconds.
    Refuse(&'static str, u64),
    /// It says these words and fails for this reason.
    Fail(&'static str, &'static str),
    /// The connection of the send call ends without a reply; the turn has not begun.
    Lose,
    /// The same, and the turn is under way for ever.
    TakeAndLose,
}

/// A turn that came, whatever became of it.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Whose credential it came with.
    pub account: String,
    /// The conversation.
    pub conversation: String,
    /// What is new in it, as `user: words`.
    pub messages: Vec<String>,
    /// It was taken.
    pub taken: bool,
}

#[derive(Debug, Default)]
struct Conversation {
    account: String,
    steps: Vec<Value>,
    /// At which its turn under way was sent.
    open: Option<u64>,
}

#[derive(Debug, Default)]
struct State {
    conversations: BTreeMap<String, Conversation>,
    begun: usize,
    script: VecDeque<Next>,
    sent: Vec<Sent>,
    /// Turns that were ended by a cancel.
    cancelled: usize,
    instance: u8,
    /// What is held is let go.
    released: bool,
    broken: Vec<String>,
    /// It is a process of its own, and its answers tell which, and how many messages it was sent.
    process: bool,
    /// It answers no call any more but for watches.
    deaf: bool,
}

/// The server.
pub struct Cascade {
    inner: Arc<Inner>,
    server: Server,
}

struct Inner {
    state: Mutex<State>,
    /// Told of every change.
    changed: watch::Sender<u64>,
}

impl Cascade {
    /// Answers every turn with its number, `answer 1` and so on, unless the script says otherwise.
    pub async fn start() -> Cascade {
        Cascade::at("127.0.0.1:0", State { instance: 1, ..State::default() }).await
    }

    async fn at(place: &str, state: State) -> Cascade {
        let inner = Arc::new(Inner { state: Mutex::new(state), changed: watch::Sender::new(0) });
        let server = Server::start(place, inner.clone()).await;
        Cascade { inner, server }
    }

    pub fn addr(&self) -> SocketAddr {
        self.server.addr
    }

    /// Puts turns behind those that the script has.
    pub fn script(&self, next: impl IntoIterator<Item = Next>) {
        self.inner.state().script.extend(next);
    }

    /// Lets go of what is held, and of what will be.
    pub fn release(&self) {
        self.inner.change(|state| state.released = true);
    }

    /// Every turn that came, in order.
    pub fn sent(&self) -> Vec<Sent> {
        assert_eq!(self.inner.state().broken, Vec::<String>::new(), "calls as the schema wants them");
        self.inner.state().sent.clone()
    }

    /// The messages of every turn that came, in order.
    pub fn messages(&self) -> Vec<Vec<String>> {
        self.sent().into_iter().map(|sent| sent.messages).collect()
    }

    /// The conversations that were begun, and are known.
    pub fn known(&self) -> usize {
        self.inner.state().conversations.len()
    }

    /// Forgets every conversation, as a server may.
    pub fn forget_all(&self) {
        self.inner.change(|state| state.conversations.clear());
    }

    /// Forgets every conversation and is another process.
    pub fn restart(&self) {
        self.inner.change(|state| {
            state.conversations.clear();
            state.instance += 1;
        });
    }

    /// Waits until so many turns have come.
    pub async fn wait_for_turns(&self, count: usize) {
        self.wait(|state| state.sent.len() >= count).await;
    }

    /// Waits until so many turns have been cancelled.
    pub async fn wait_for_cancels(&self, count: usize) {
        self.wait(|state| state.cancelled >= count).await;
    }

    async fn wait(&self, reached: impl Fn(&State) -> bool) {
        let mut changes = self.inner.changed.subscribe();
        soon(async {
            while !reached(&self.inner.state()) {
                changes.changed().await.unwrap();
            }
        })
        .await;
    }

    /// No message stands twice in the transcript of any conversation.
    pub fn assert_transcripts_are_whole(&self) {
        let mut by_conversation: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for sent in self.sent().into_iter().filter(|sent| sent.taken) {
            by_conversation.entry(sent.conversation).or_default().extend(sent.messages);
        }
        for (name, messages) in by_conversation {
            let mut once = messages.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), messages.len(), "a message twice in {name}: {messages:?}");
        }
    }
}

/// Where the test's own binary is to be a server that the gateway starts, as its environment tells.
pub const PROCESS: &str = "CASCADE_PROCESS";

#[test]
fn a_process_that_is_told_to_is_a_server() {
    let (Ok(_), Ok(listen)) = (std::env::var(PROCESS), std::env::var("TURNKEEP_LISTEN")) else { return };
    // Another process with each start.
    let instance = u8::try_from(std::process::id() % 25).unwrap();
    let state = State { instance, process: true, ..State::default() };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(Cascade::at(&listen, state));
    runtime.spawn(async move {
        let mut release = signal(SignalKind::user_defined1()).unwrap();
        while release.recv().await.is_some() {
            server.release();
        }
    });
    // It ends with the gateway.
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let out = change(&mut self.state());
        self.changed.send_modify(|count| *count += 1);
        out
    }

    async fn until(&self, reached: impl Fn(&State) -> bool) {
        let mut changes = self.changed.subscribe();
        while !reached(&self.state()) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}

/// 16 bytes, in base 64.
fn instance(number: u8) -> String {
    format!("{}AAAAAAAAAAAAAAAAAAAAA==", char::from(b'A' + number))
}

fn refused(reason: &str, wait: u64) -> Value {
    json!({"refused": {"reason": format!("REASON_{reason}"), "message": "the script says so", "retryAfterMs": wait.to_string()}})
}

fn number(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok())).unwrap_or(0)
}

/// A message as `user: words`; of a tool's result, its id.
fn words(message: &Value) -> String {
    let role = message["role"].as_str().unwrap_or_default().trim_start_matches("ROLE_").to_ascii_lowercase();
    let parts = message["parts"].as_array().into_iter().flatten().map(|part| {
        let call = part["toolCall"]["id"].as_str().map(|id| format!("call {id}"));
        let result = part["toolResult"]["id"].as_str().map(|id| format!("result of {id}"));
        part["text"].as_str().map(str::to_owned).or(call).or(result).unwrap_or_else(|| part.to_string())
    });
    format!("{role}: {}", parts.collect::<Vec<_>>().join(" + "))
}

fn text_steps(words: &str, block: u32, whole: bool) -> Vec<Value> {
    let mut steps = vec![json!({"event": {"delta": {"block": block, "text": words}}})];
    if whole {
        steps.push(json!({"event": {"blockStop": {"block": block}}}));
    }
    steps
}

fn end_steps(reason: &str) -> Vec<Value> {
    vec![
        json!({"event": {"finish": {"reason": format!("REASON_{reason}")}}}),
        json!({"event": {"usage": {"input": "10", "output": "5"}}}),
        json!({"final": {}}),
    ]
}

impl State {
    fn send(&mut self, account: &str, body: &Value) -> (Value, Option<Next>) {
        let name = body["conversation"].as_str().unwrap_or_default().to_owned();
        let position = number(&body["position"]);
        let messages: Vec<String> = body["turn"]["messages"].as_array().into_iter().flatten().map(words).collect();
        let said = |words: &str| messages.last().is_some_and(|message| message.contains(words));
        let (heard, holds) = (messages.len(), said("hold"));
        self.deaf |= self.process && said("take no more calls");
        self.sent.push(Sent { account: account.to_owned(), conversation: name.clone(), messages, taken: false });
        let same = body["instance"].as_str().unwrap_or_default() == instance(self.instance);
        let Some(conversation) = self.conversations.get_mut(&name).filter(|_| same) else {
            return (refused("CONVERSATION", 0), None);
        };
        if conversation.account != account {
            self.broken.push(format!("{name} belongs to {} and was gone on with by {account}", conversation.account));
        }
        if conversation.open.is_some() {
            self.broken.push(format!("two turns at once in {name}"));
            return (refused("BUSY", 0), None);
        }
        if position != conversation.steps.len() as u64 {
            return (refused("POSITION", 0), None);
        }
        let taken = self.sent.iter().filter(|sent| sent.taken).count() + 1;
        let usual = || match (self.process, holds) {
            (false, _) => Next::Say(format!("answer {taken}")),
            (true, false) => Next::Say(format!("{} heard {heard}", std::process::id())),
            (true, true) => Next::Hold("held", " for ever"),
        };
        let next = self.script.pop_front().unwrap_or_else(usual);
        match next {
            Next::Refuse(reason, wait) => return (refused(reason, wait), None),
            Next::Lose => return (Value::Null, Some(next)),
            Next::Say(_) | Next::Hold(..) | Next::Call(_) | Next::Fail(..) | Next::TakeAndLose => {}
        }
        if let Some(sent) = self.sent.last_mut() {
            sent.taken = true;
        }
        let steps = &mut conversation.steps;
        steps.push(json!({}));
        let offset = steps.len().to_string();
        steps.push(json!({"event": {"start": {"id": "one"}}}));
        let text = json!({"event": {"blockStart": {"block": 0, "text": {}}}});
        let mut open = None;
        match &next {
            Next::Say(words) => {
                steps.push(text);
                steps.extend(text_steps(words, 0, true));
                steps.extend(end_steps("STOP"));
            }
            Next::Call(ids) => {
                for (block, id) in ids.iter().enumerate() {
                    steps.push(
                        json!({"event": {"blockStart": {"block": block, "toolCall": {"id": id, "name": "look"}}}}),
                    );
                    steps.push(json!({"event": {"delta": {"block": block, "arguments": "{\"at\":1}"}}}));
                    steps.push(json!({"event": {"blockStop": {"block": block}}}));
                }
                steps.extend(end_steps("TOOL_CALLS"));
            }
            Next::Hold(first, _) => {
                steps.push(text);
                steps.extend(text_steps(first, 0, false));
                open = Some(position);
            }
            Next::Fail(words, reason) => {
                steps.push(text);
                steps.extend(text_steps(words, 0, false));
                steps.push(json!({"failed": refused(reason, 0)["refused"]}));
            }
            Next::TakeAndLose => open = Some(position),
            Next::Refuse(..) | Next::Lose => {}
        }
        conversation.open = open;
        (json!({"taken": {"offset": offset}}), Some(next))
    }

    fn cancel(&mut self, body: &Value) {
        let name = body["conversation"].as_str().unwrap_or_default().to_owned();
        if let Some(conversation) = self.conversations.get_mut(&name)
            && conversation.open.is_some_and(|open| open == number(&body["position"]) || body["close"] == true)
        {
            conversation.open = None;
            conversation.steps.push(json!({"failed": refused("CANCELLED", 0)["refused"]}));
            self.cancelled += 1;
        }
        if body["close"] == true {
            self.conversations.remove(&name);
        }
    }
}

fn is_last(step: &Value) -> bool {
    step.get("final").is_some() || step.get("failed").is_some()
}

/// A message in its JSON form.
fn read<M: Message + Default + Serialize>(bytes: &[u8]) -> Value {
    serde_json::to_value(M::decode(bytes).unwrap()).unwrap()
}

/// A message from its JSON form.
fn written<M: Message + DeserializeOwned>(value: Value) -> Vec<u8> {
    let shown = value.to_string();
    serde_json::from_value::<M>(value).unwrap_or_else(|error| panic!("{error}: {shown}")).encode_to_vec()
}

fn reply<M: Message + DeserializeOwned>(value: Value) -> Answer {
    Answer::Bytes("application/proto", written::<M>(value))
}

fn envelope(flags: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[flags], &length[..], body].concat()
}

/// The end of a stream, which is JSON whatever the messages are.
fn end(message: &Value) -> Vec<u8> {
    envelope(2, message.to_string().as_bytes())
}

impl Answers for Inner {
    fn answer(self: Arc<Self>, asked: Asked) -> BoxFuture<'static, Answer> {
        Box::pin(async move {
            let account = asked.account();
            let method = asked.path.strip_prefix("/turnkeep.cascade.v1.CascadeService/").unwrap_or_default().to_owned();
            if method != "Watch" && self.state().deaf {
                std::future::pending::<()>().await;
            }
            match method.as_str() {
                "Start" => self.change(|state| {
                    state.begun += 1;
                    let name = format!("conversation-{}", state.begun);
                    let begun = Conversation { account, ..Conversation::default() };
                    state.conversations.insert(name.clone(), begun);
                    let started = json!({"conversation": name, "position": "0", "instance": instance(state.instance)});
                    reply::<v1::StartResponse>(json!({"started": started}))
                }),
                "Send" => {
                    let body = read::<v1::SendRequest>(&asked.body);
                    let (taken, next) = self.change(|state| state.send(&account, &body));
                    match next {
                        Some(Next::Lose | Next::TakeAndLose) => Answer::Close,
                        Some(Next::Hold(_, rest)) => {
                            let name = body["conversation"].as_str().unwrap_or_default().to_owned();
                            tokio::spawn(self.clone().go_on(name, rest));
                            reply::<v1::SendResponse>(taken)
                        }
                        Some(Next::Say(_) | Next::Call(_) | Next::Refuse(..) | Next::Fail(..)) | None => {
                            reply::<v1::SendResponse>(taken)
                        }
                    }
                }
                "Watch" => {
                    // Five bytes stand before the one message.
                    let body = read::<v1::WatchRequest>(&asked.body[5..]);
                    let (tell, told) = mpsc::channel(64);
                    tokio::spawn(self.clone().watch(body, tell));
                    Answer::Stream("application/connect+proto", told)
                }
                "Position" => {
                    let body = read::<v1::PositionRequest>(&asked.body);
                    let name = body["conversation"].as_str().unwrap_or_default();
                    let state = self.state();
                    reply::<v1::PositionResponse>(match state.conversations.get(name) {
                        None => refused("CONVERSATION", 0),
                        Some(found) => json!({"at": {
                            "conversation": name,
                            "position": found.steps.len().to_string(),
                            "instance": instance(state.instance),
                        }}),
                    })
                }
                "Cancel" => {
                    self.change(|state| state.cancel(&read::<v1::CancelRequest>(&asked.body)));
                    reply::<v1::CancelResponse>(json!({}))
                }
                "Health" => {
                    let instance = instance(self.state().instance);
                    reply::<v1::HealthResponse>(json!({"instance": instance, "models": ["upstream-m"]}))
                }
                other => Answer::Json(404, json!({"code": "unimplemented", "message": other})),
            }
        })
    }
}

impl Inner {
    /// Says the rest of a held answer once it is let go, unless the turn was cancelled.
    async fn go_on(self: Arc<Self>, name: String, rest: &'static str) {
        let open = |state: &State| state.conversations.get(&name).is_some_and(|found| found.open.is_some());
        self.until(|state| state.released || !open(state)).await;
        self.change(|state| {
            if open(state)
                && let Some(conversation) = state.conversations.get_mut(&name)
            {
                conversation.steps.extend(text_steps(rest, 0, true));
                conversation.steps.extend(end_steps("STOP"));
                conversation.open = None;
            }
        });
    }

    /// Tells the steps from an offset on, to the final one of the turn under way.
    async fn watch(self: Arc<Self>, body: Value, tell: mpsc::Sender<Vec<u8>>) {
        let name = body["conversation"].as_str().unwrap_or_default().to_owned();
        let mut next = usize::try_from(number(&body["offset"])).unwrap();
        loop {
            let look = |found: &Conversation| (found.steps.get(next).cloned(), found.open.is_some());
            let seen = self.state().conversations.get(&name).map(look);
            let Some((step, open)) = seen else {
                let error = json!({"error": {"code": "not_found", "message": "no such conversation"}});
                let _ = tell.send(end(&error)).await;
                return;
            };
            match step {
                Some(mut step) => {
                    let last = is_last(&step);
                    step["offset"] = next.to_string().into();
                    next += 1;
                    let message = written::<v1::WatchResponse>(json!({"step": step}));
                    if tell.send(envelope(0, &message)).await.is_err() {
                        return;
                    }
                    if last {
                        break;
                    }
                }
                None if open => {
                    let more = self.until(|state| {
                        state
                            .conversations
                            .get(&name)
                            .is_none_or(|found| found.steps.len() > next || found.open.is_none())
                    });
                    tokio::select! {
                        () = more => {}
                        () = tell.closed() => return,
                    }
                }
                None => break,
            }
        }
        let _ = tell.send(end(&json!({}))).await;
    }
}
