//! The agent's side of the protocol.

use crate::steps::{self, Talk};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What it was started as.
#[derive(Clone, Debug, Default)]
struct Is {
    version: u64,
    auth: Option<String>,
    loads: bool,
    /// What it answers to each load, if that is an error.
    load_error: Option<i64>,
    /// The number of the session that it never tells of.
    late: Option<u64>,
    closes: bool,
    images: bool,
    models: Vec<String>,
}

pub struct Agent {
    out: Mutex<std::io::Stdout>,
    asked: AtomicU64,
    answers: Mutex<HashMap<u64, SyncSender<Value>>>,
    cancels: Mutex<HashMap<String, SyncSender<()>>>,
    turns: Mutex<HashMap<String, u64>>,
}

fn flag(arguments: &[String], name: &str) -> Option<String> {
    let at = arguments.iter().position(|argument| argument == name)?;
    Some(arguments.get(at + 1).cloned().unwrap_or_default())
}

/// Runs until its input ends.
pub fn run(arguments: &[String]) {
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let is = Is {
        version: flag(arguments, "--version").map_or(1, |version| version.parse().expect("a number")),
        auth: flag(arguments, "--auth"),
        loads: has("--loads"),
        load_error: flag(arguments, "--load-error").map(|code| code.parse().expect("a code")),
        late: flag(arguments, "--late").map(|number| number.parse().expect("a number")),
        closes: has("--closes"),
        images: has("--images"),
        models: flag(arguments, "--models").map_or(Vec::new(), |models| models.split(',').map(str::to_owned).collect()),
    };
    if has("--banner") {
        say_raw(b"Welcome to the agent!\n");
    }
    if let Some(slow) = flag(arguments, "--slow") {
        std::thread::sleep(Duration::from_millis(slow.parse().expect("a number")));
    }
    let agent = Arc::new(Agent {
        out: Mutex::new(std::io::stdout()),
        asked: AtomicU64::new(1),
        answers: Mutex::default(),
        cancels: Mutex::default(),
        turns: Mutex::default(),
    });
    let mut logged_in = is.auth.is_none();
    let mut sessions = 0u64;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        log(&line);
        let message: Value = serde_json::from_str(&line).expect("JSON");
        let (id, params) = (message.get("id").cloned(), &message["params"]);
        match (message["method"].as_str(), id) {
            (None, Some(id)) => agent.heard_answer(&id, &message),
            (Some("initialize"), Some(id)) => agent.answer(&id, initialized(&is)),
            (Some("authenticate"), Some(id)) => {
                if params["methodId"].as_str() == is.auth.as_deref() {
                    logged_in = true;
                    agent.answer(&id, Value::Null);
                } else {
                    agent.refuse(&id, -32602, "no such method");
                }
            }
            (Some("session/new" | "session/load"), Some(id)) if !logged_in => {
                agent.refuse(&id, -32000, "Authentication required");
            }
            (Some("session/new"), Some(id)) => {
                sessions += 1;
                if is.late == Some(sessions) {
                    continue;
                }
                let session = format!("session-{}-{sessions}", std::process::id());
                let mut answer = json!({"sessionId": session});
                if let Some(first) = is.models.first() {
                    let models: Vec<Value> = is.models.iter().map(|id| json!({"modelId": id, "name": id})).collect();
                    answer["models"] = json!({"currentModelId": first, "availableModels": models});
                }
                agent.answer(&id, answer);
            }
            (Some("session/load"), Some(id)) => {
                let session = params["sessionId"].as_str().expect("a session");
                if let Some(code) = is.load_error {
                    agent.refuse(&id, code, "not now");
                } else if std::path::Path::new(&marker(session)).exists() {
                    // It tells the past before it answers.
                    agent.update(
                        session,
                        json!({"sessionUpdate": "agent_message_chunk",
                        "content": {"type": "text", "text": "of the past"}}),
                    );
                    agent.answer(&id, Value::Null);
                } else {
                    agent.refuse(&id, -32002, "Resource not found");
                }
            }
            (Some("session/prompt"), Some(id)) => {
                let session = params["sessionId"].as_str().expect("a session").to_owned();
                std::fs::write(marker(&session), "").expect("a marker");
                let (cancel, cancelled) = sync_channel(4);
                agent.cancels.lock().expect("a lock").insert(session.clone(), cancel);
                let number = {
                    let mut turns = agent.turns.lock().expect("a lock");
                    let number = turns.entry(session.clone()).or_default();
                    *number += 1;
                    *number
                };
                let text = params["prompt"].as_array().and_then(|blocks| blocks.last()?["text"].as_str()).unwrap_or("");
                let talk = Talk { agent: agent.clone(), session, id, cancelled, number };
                let text = text.to_owned();
                std::thread::spawn(move || steps::play(&talk, &text));
            }
            (Some("session/cancel"), None) => {
                let session = params["sessionId"].as_str().expect("a session");
                if let Some(cancel) = agent.cancels.lock().expect("a lock").get(session) {
                    let _told = cancel.try_send(());
                }
            }
            (Some("session/close" | "session/set_model"), Some(id)) => agent.answer(&id, json!({})),
            (Some(other), Some(id)) => agent.refuse(&id, -32601, other),
            (_, None) => {}
        }
    }
}

/// Where a session is remembered beyond this process.
fn marker(session: &str) -> String {
    format!("{}/{session}", std::env::var("HOME").unwrap_or_else(|_| "/nowhere".into()))
}

fn initialized(is: &Is) -> Value {
    let mut sessions = json!({});
    if is.closes {
        sessions["close"] = json!({});
    }
    let method = is.auth.as_ref().map(|id| json!({"id": id, "name": id}));
    json!({
        "protocolVersion": is.version,
        "agentInfo": {"name": "fake", "version": "1"},
        "agentCapabilities": {"loadSession": is.loads, "promptCapabilities": {"image": is.images},
            "sessionCapabilities": sessions},
        "authMethods": method.into_iter().collect::<Vec<_>>(),
    })
}

fn log(line: &str) {
    if let Ok(path) = std::env::var("FAKE_LOG") {
        let mut file = OpenOptions::new().create(true).append(true).open(path).expect("a log");
        file.write_all(format!("{line}\n").as_bytes()).expect("a log");
    }
}

pub fn say_raw(bytes: &[u8]) {
    let mut out = std::io::stdout();
    let _gone = out.write_all(bytes).and_then(|()| out.flush());
}

impl Agent {
    pub fn say(&self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        let mut out = self.out.lock().expect("a lock");
        let _gone = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    }

    pub fn answer(&self, id: &Value, result: Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    pub fn refuse(&self, id: &Value, code: i64, message: &str) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
    }

    pub fn update(&self, session: &str, update: Value) {
        let params = json!({"sessionId": session, "update": update});
        self.say(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    /// Asks the client, and gives its whole answer.
    pub fn ask(&self, method: &str, params: Value) -> Value {
        let id = self.asked.fetch_add(1, Ordering::Relaxed);
        let (told, answer) = sync_channel(1);
        self.answers.lock().expect("a lock").insert(id, told);
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        answer.recv().expect("an answer")
    }

    fn heard_answer(&self, id: &Value, message: &Value) {
        let told = id.as_u64().and_then(|id| self.answers.lock().expect("a lock").remove(&id));
        if let Some(told) = told {
            let _told = told.try_send(message.clone());
        }
    }
}
