//! An agent of the Agent Client Protocol: this test's own binary, run as a process that is told to be one. It asks the test
//! what to do with each prompt, and tells it of each cancellation, over a Unix socket.
//!
//! The harness prints to standard output, which is the protocol's; a shell gives the agent the real one as descriptor 3.

use crate::support::soon;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::watch;

/// The test's socket, in the agent's environment.
const SOCKET: &str = "AGENT_SOCKET";
/// The agent can take a session up that another process of it began.
const LOADS: &str = "AGENT_LOADS";

/// What becomes of a prompt.
#[derive(Clone, Debug)]
pub enum Next {
    /// These words, and the end of the turn.
    Say(&'static str),
    /// The first words, and the others when the test says so.
    Hold(&'static str, &'static str),
    /// An error reply with this code.
    Error(i64),
    /// An error reply that the session, which it names, is not there.
    Lost,
    /// These words, and then such an error reply.
    Fail(&'static str, i64),
    /// The process ends without a word.
    Crash,
}

/// A prompt that came.
#[derive(Clone, Debug)]
pub struct Prompted {
    pub account: String,
    pub process: u64,
    pub session: String,
    /// The texts of its blocks.
    pub texts: Vec<String>,
}

#[derive(Default)]
struct State {
    script: VecDeque<Next>,
    prompted: Vec<Prompted>,
    cancelled: usize,
    /// Sessions taken up by another process.
    loaded: usize,
    released: bool,
}

/// The test's side.
pub struct Agent {
    state: Arc<Mutex<State>>,
    changed: watch::Sender<u64>,
    folder: TempDir,
}

impl Agent {
    pub async fn start() -> Agent {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let state: Arc<Mutex<State>> = Arc::default();
        let changed = watch::Sender::new(0);
        let agent = Agent { state: state.clone(), changed: changed.clone(), folder };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(told(stream, state.clone(), changed.clone()));
            }
        });
        agent
    }

    /// The upstream of such agents, with these accounts.
    pub fn upstream(&self, accounts: &[&str], loads: bool, lines: &str) -> String {
        let binary = std::env::current_exe().unwrap();
        let run = "exec \"$0\" --exact agent::a_process_that_is_told_to_is_an_agent --nocapture 3>&1 >/dev/null";
        let mut text = format!(
            "[[upstreams]]\nname = \"up\"\nkind = \"acp\"\ncommand = [\"sh\", \"-c\", {run:?}, {binary:?}]\n{lines}\n"
        );
        for account in accounts {
            text +=
                &format!("[[upstreams.accounts]]\nname = {account:?}\nhome = {:?}\n", self.folder.path().join(account));
            let loads = if loads { format!(", {LOADS} = \"yes\"") } else { String::new() };
            text += &format!("env = {{ {SOCKET} = {:?}, ACCOUNT = {account:?}{loads} }}\n", self.socket());
        }
        text
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Puts prompts behind those that the script has; without any, each is answered by its number, `answer 1` and so on.
    pub fn script(&self, next: impl IntoIterator<Item = Next>) {
        self.state().script.extend(next);
    }

    /// Lets go of what is held, and of what will be.
    pub fn release(&self) {
        self.state().released = true;
        self.changed.send_modify(|count| *count += 1);
    }

    /// Every prompt that came, in order.
    pub fn prompted(&self) -> Vec<Prompted> {
        self.state().prompted.clone()
    }

    /// How many sessions another process has taken up.
    pub fn loaded(&self) -> usize {
        self.state().loaded
    }

    pub async fn wait_for_prompts(&self, count: usize) {
        self.wait(|state| state.prompted.len() >= count).await;
    }

    pub async fn wait_for_cancels(&self, count: usize) {
        self.wait(|state| state.cancelled >= count).await;
    }

    async fn wait(&self, reached: impl Fn(&State) -> bool) {
        let mut changes = self.changed.subscribe();
        soon(async {
            while !reached(&self.state()) {
                changes.changed().await.unwrap();
            }
        })
        .await;
    }

    /// No text stands twice in what a session was told.
    pub fn assert_transcripts_are_whole(&self) {
        let mut by_session: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prompted in self.prompted() {
            by_session.entry(prompted.session).or_default().extend(prompted.texts);
        }
        for (session, texts) in by_session {
            let mut once = texts.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), texts.len(), "a text twice in {session}: {texts:?}");
        }
    }
}

/// What an agent tells, and what it is told.
async fn told(stream: tokio::net::UnixStream, state: Arc<Mutex<State>>, changed: watch::Sender<u64>) {
    let (read, mut write) = stream.into_split();
    let mut lines = tokio::io::BufReader::new(read).lines();
    let Ok(Some(line)) = lines.next_line().await else { return };
    let line: Value = serde_json::from_str(&line).unwrap();
    let word = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
    let next = {
        let mut state = state.lock().unwrap();
        match line["event"].as_str() {
            Some("cancelled") => {
                state.cancelled += 1;
                None
            }
            Some("loaded") => {
                state.loaded += 1;
                None
            }
            _ => {
                let texts = line["texts"].as_array().into_iter().flatten();
                let texts = texts.map(|text| text.as_str().unwrap().to_owned()).collect();
                let process = line["process"].as_u64().unwrap();
                state.prompted.push(Prompted { account: word("account"), process, session: word("session"), texts });
                let number = state.prompted.len();
                Some((state.script.pop_front(), format!("answer {number}")))
            }
        }
    };
    changed.send_modify(|count| *count += 1);
    let Some((next, usual)) = next else { return };
    let (what, rest) = match next {
        None => (json!({"say": usual}), None),
        Some(Next::Say(words)) => (json!({"say": words}), None),
        Some(Next::Hold(first, rest)) => (json!({"say": first, "held": true}), Some(rest)),
        Some(Next::Error(code)) => (json!({"error": code}), None),
        Some(Next::Lost) => (json!({"error": -32002, "message": format!("no session {}", word("session"))}), None),
        Some(Next::Fail(words, code)) => (json!({"say": words, "error": code}), None),
        Some(Next::Crash) => (json!({"crash": true}), None),
    };
    let _ = write.write_all(format!("{what}\n").as_bytes()).await;
    let Some(rest) = rest else { return };
    let mut changes = changed.subscribe();
    while !state.lock().unwrap().released {
        if changes.changed().await.is_err() {
            return;
        }
    }
    let _ = write.write_all(format!("{}\n", json!({"say": rest})).as_bytes()).await;
}

/// The agent's side.
struct Playing {
    out: Mutex<File>,
    socket: String,
    account: String,
    /// By session: the id of the prompt under way.
    under_way: Mutex<BTreeMap<String, Value>>,
}

#[test]
fn a_process_that_is_told_to_is_an_agent() {
    let Ok(socket) = std::env::var(SOCKET) else { return };
    let out = Mutex::new(File::options().write(true).open("/dev/fd/3").unwrap());
    let account = std::env::var("ACCOUNT").unwrap();
    let playing = Arc::new(Playing { out, socket, account, under_way: Mutex::default() });
    let mut sessions = 0;
    for line in std::io::stdin().lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let (id, params) = (line["id"].clone(), &line["params"]);
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        match line["method"].as_str() {
            Some("initialize") => {
                let can = json!({"loadSession": std::env::var(LOADS).is_ok(), "promptCapabilities": {}});
                playing.reply(&id, &json!({"protocolVersion": 1, "agentCapabilities": can, "authMethods": []}));
            }
            Some("session/new") => {
                sessions += 1;
                let name = format!("{}-{}-{sessions}", playing.account, std::process::id());
                playing.reply(&id, &json!({"sessionId": name}));
            }
            Some("session/load") => {
                playing.tell(&json!({"event": "loaded"}));
                // What was said before is told again.
                playing.say(&session, "what was said before");
                playing.reply(&id, &Value::Null);
            }
            Some("session/prompt") => {
                playing.under_way.lock().unwrap().insert(session.clone(), id.clone());
                let (playing, prompt) = (playing.clone(), params["prompt"].clone());
                std::thread::spawn(move || playing.prompted(&session, &id, &prompt));
            }
            Some("session/cancel") => {
                if let Some(id) = playing.under_way.lock().unwrap().remove(&session) {
                    playing.reply(&id, &json!({"stopReason": "cancelled"}));
                    playing.tell(&json!({"event": "cancelled"}));
                }
            }
            Some(_) if !id.is_null() => {
                playing.write(
                    &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}}),
                );
            }
            Some(_) | None => {}
        }
    }
}

impl Playing {
    fn write(&self, message: &Value) {
        let mut out = self.out.lock().unwrap();
        // Where the gateway is gone there is nobody to tell.
        let _ = out.write_all(format!("{message}\n").as_bytes());
    }

    fn reply(&self, id: &Value, result: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn say(&self, session: &str, words: &str) {
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": words}});
        let params = json!({"sessionId": session, "update": update});
        self.write(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    fn tell(&self, event: &Value) -> BufReader<UnixStream> {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.write_all(format!("{event}\n").as_bytes()).unwrap();
        BufReader::new(stream)
    }

    fn prompted(&self, session: &str, id: &Value, prompt: &Value) {
        let texts: Vec<&Value> = prompt.as_array().into_iter().flatten().map(|block| &block["text"]).collect();
        let process = std::process::id();
        let asked = json!({"session": session, "texts": texts, "process": process, "account": self.account});
        let mut told = self.tell(&asked);
        loop {
            let mut line = String::new();
            // A test that has ended tells nothing more.
            if told.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let what: Value = serde_json::from_str(&line).unwrap();
            if what["crash"] == true {
                std::process::exit(3);
            }
            if !self.under_way.lock().unwrap().contains_key(session) {
                return;
            }
            if let Some(words) = what["say"].as_str() {
                self.say(session, words);
            }
            if what["held"] == true {
                continue;
            }
            if self.under_way.lock().unwrap().remove(session).is_none() {
                return;
            }
            return match what["error"].as_i64() {
                None => self.reply(id, &json!({"stopReason": "end_turn"})),
                Some(code) => self.write(&json!({
                    "jsonrpc": "2.0", "id": id, "error": {"code": code, "message": what["message"].as_str().unwrap_or("the script says so")},
                })),
            };
        }
    }
}
