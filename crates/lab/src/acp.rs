//! An agent of the Agent Client Protocol over its standard input and output, with the lab's script.
//!
//! A rule's `path` is the method (`session/prompt`), its `body_contains` looks at the whole line. Of a reply to a prompt
//! `text`, `words`, `word_delay_ms`, `thinking`, `tool_calls` (as steps of the agent's own), `refusal`, `finish` and `usage` count;
//! of a reply to any method `raw` (the result), `error` (its `code` or `status` as the number) and `before_headers_delay_ms`.
//! The faults that have a place here: those that close or reset end the process, before the reply or in it; `hang` waits until
//! the turn is cancelled, `no_terminal` says all and never answers, `bad_json`, `bad_sse` and `oversized_event` write such a line and go
//! on.

use crate::choose::{Chooser, Facts};
use crate::fault::{Fault, Point};
use crate::script::{Rule, Script};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, watch};

/// Bytes of one line that is heard, and of a transcript.
const MAX_LINE: u64 = 64 << 20;
const MAX_TRANSCRIPT: usize = 256 << 20;
/// Sessions of one process.
const MAX_SESSIONS: usize = 10_000;
/// Bytes of a line that is too long, unless the script says.
const OVERSIZED: usize = 5 << 20;

/// How an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentEnd {
    /// Its input has closed.
    Closed,
    /// The script ends the process in the middle.
    Crashed,
}

struct Session {
    turns: u64,
    cancelled: Arc<Notify>,
}

struct Agent<W> {
    out: tokio::sync::Mutex<W>,
    chooser: Arc<Mutex<Chooser>>,
    process: String,
    sessions: Mutex<HashMap<String, Session>>,
    /// Sessions so far, those that are closed too.
    begun: AtomicU64,
    transcript: Mutex<Option<(AgentLog, usize)>>,
    crashed: watch::Sender<bool>,
}

/// Serves one client until its input closes or the script ends the process. `transcript` gets every line of both sides, as a JSON
/// object with the one key `heard` or `said`.
///
/// # Errors
/// The output cannot be written, or a line is longer than 64 MiB.
pub async fn agent(
    script: Script,
    transcript: Option<AgentLog>,
    input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<AgentEnd> {
    AgentScript::of(script).agent(&std::process::id().to_string(), transcript, input, output).await
}

/// Where every line of both sides goes.
pub type AgentLog = Box<dyn Write + Send>;

/// The script of agents that are one after the other, or beside each other: their requests are counted together.
#[derive(Clone, Debug)]
pub struct AgentScript(Arc<Mutex<Chooser>>);

impl AgentScript {
    /// With this script.
    pub fn of(script: Script) -> AgentScript {
        AgentScript(Arc::new(Mutex::new(Chooser::new(script))))
    }

    /// Another script from now on, whose requests are counted anew.
    pub fn set(&self, script: Script) {
        *locked(&self.0) = Chooser::new(script);
    }

    /// Serves one client, as [`agent`]. `process` stands in its sessions' names, and sets them apart from another process's.
    ///
    /// # Errors
    /// As [`agent`].
    pub async fn agent(
        &self,
        process: &str,
        transcript: Option<AgentLog>,
        input: impl AsyncBufRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<AgentEnd> {
        serve(self.0.clone(), process, transcript, input, output).await
    }
}

async fn serve(
    chooser: Arc<Mutex<Chooser>>,
    process: &str,
    transcript: Option<AgentLog>,
    mut input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<AgentEnd> {
    let (crashed, mut ends) = watch::channel(false);
    let agent = Arc::new(Agent {
        out: tokio::sync::Mutex::new(output),
        chooser,
        process: process.to_owned(),
        sessions: Mutex::default(),
        begun: AtomicU64::new(0),
        transcript: Mutex::new(transcript.map(|kept| (kept, 0))),
        crashed,
    });
    let mut turns = tokio::task::JoinSet::new();
    loop {
        let mut line = Vec::new();
        // Of a line that is too long no more is read than tells that it is.
        let mut bounded = (&mut input).take(MAX_LINE + 1);
        let read = tokio::select! {
            biased;
            read = bounded.read_until(b'\n', &mut line) => read?,
            _ = ends.wait_for(|crashed| *crashed) => return Ok(AgentEnd::Crashed),
        };
        if read == 0 {
            return Ok(AgentEnd::Closed);
        }
        if bounded.limit() == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line of more than 64 MiB"));
        }
        while turns.try_join_next().is_some() {}
        let agent = agent.clone();
        agent.note("heard", line.trim_ascii_end());
        let Ok(message) = serde_json::from_slice::<Value>(&line) else {
            agent.refuse(&Value::Null, -32700, "not JSON").await?;
            continue;
        };
        match (message["method"].as_str(), message.get("id")) {
            (Some("session/cancel"), None) => agent.cancel(&message["params"]),
            (Some(_), Some(_)) => {
                turns.spawn(async move { agent.asked(&message, &line).await });
            }
            // What it tells, and what it answers.
            (Some(_) | None, _) => {}
        }
    }
}

/// A lock that a panic elsewhere does not spoil.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<W: AsyncWrite + Unpin + Send> Agent<W> {
    fn note(&self, who: &str, line: &[u8]) {
        let text = json!({who: String::from_utf8_lossy(line)}).to_string();
        let mut transcript = locked(&self.transcript);
        if let Some((file, bytes)) = &mut *transcript
            && *bytes + text.len() < MAX_TRANSCRIPT
        {
            *bytes += text.len();
            // A transcript that cannot be written is a test's to notice.
            let _lost = writeln!(file, "{text}");
        }
    }

    async fn write(&self, line: &[u8]) -> io::Result<()> {
        self.note("said", line);
        let mut out = self.out.lock().await;
        out.write_all(line).await?;
        out.write_all(b"\n").await?;
        out.flush().await
    }

    async fn say(&self, message: &Value) -> io::Result<()> {
        self.write(message.to_string().as_bytes()).await
    }

    async fn refuse(&self, id: &Value, code: i64, message: &str) -> io::Result<()> {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})).await
    }

    async fn answer(&self, id: &Value, result: Value) -> io::Result<()> {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await
    }

    async fn update(&self, session: &str, update: Value) -> io::Result<()> {
        let params = json!({"sessionId": session, "update": update});
        self.say(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params})).await
    }

    fn cancel(&self, params: &Value) {
        let session = params["sessionId"].as_str().unwrap_or_default();
        if let Some(session) = locked(&self.sessions).get(session) {
            session.cancelled.notify_one();
        }
    }

    async fn asked(&self, message: &Value, line: &[u8]) -> io::Result<()> {
        let (id, params) = (&message["id"], &message["params"]);
        let method = message["method"].as_str().unwrap_or_default();
        let facts =
            Facts { path: method, method: "", model: "", account: "", stream: true, body: line, refused: false };
        let rule = locked(&self.chooser).rule(&facts).unwrap_or_default();
        if rule.before_headers_delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(rule.before_headers_delay_ms)).await;
        }
        if ends_process(rule.fault) && place(&rule) == Point::BeforeHeaders {
            self.crashed.send_replace(true);
            return Ok(());
        }
        if method == "session/prompt" {
            return self.prompt(id, params, &rule).await;
        }
        if rule.fault == Some(Fault::Hang) {
            return Ok(());
        }
        if let Some((code, message)) = error_of(&rule) {
            return self.refuse(id, code, &message).await;
        }
        if let Some(raw) = &rule.raw {
            return self.write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{raw}}}").as_bytes()).await;
        }
        match method {
            "initialize" => self.answer(id, initialized()).await,
            "session/new" => match self.new_session() {
                Some(session) => self.answer(id, json!({"sessionId": session})).await,
                None => self.refuse(id, -32603, "too many sessions").await,
            },
            "session/close" => {
                locked(&self.sessions).remove(params["sessionId"].as_str().unwrap_or_default());
                self.answer(id, json!({})).await
            }
            "authenticate" => self.answer(id, json!({})).await,
            other => self.refuse(id, -32601, &format!("\"Method not found\": {other}")).await,
        }
    }

    fn new_session(&self) -> Option<String> {
        let mut sessions = locked(&self.sessions);
        if sessions.len() >= MAX_SESSIONS {
            return None;
        }
        let name = format!("lab-{}-{}", self.process, self.begun.fetch_add(1, Relaxed) + 1);
        sessions.insert(name.clone(), Session { turns: 0, cancelled: Arc::default() });
        Some(name)
    }

    async fn prompt(&self, id: &Value, params: &Value, rule: &Rule) -> io::Result<()> {
        let name = params["sessionId"].as_str().unwrap_or_default();
        let begun = locked(&self.sessions).get_mut(name).map(|session| {
            session.turns += 1;
            (session.turns, session.cancelled.clone())
        });
        let Some((turn, cancelled)) = begun else {
            return self.refuse(id, -32602, &format!("unknown session: {name}")).await;
        };
        let played = tokio::select! {
            biased;
            played = self.play(id, params, rule, turn, name) => Some(played),
            () = cancelled.notified() => None,
        };
        match played {
            Some(played) => played,
            None => self.answer(id, json!({"stopReason": "cancelled"})).await,
        }
    }

    async fn play(&self, id: &Value, params: &Value, rule: &Rule, turn: u64, session: &str) -> io::Result<()> {
        if rule.fault == Some(Fault::Hang) && place(rule) == Point::BeforeHeaders {
            return std::future::pending().await;
        }
        let early = matches!(rule.fault, None | Some(Fault::Html)) || place(rule) == Point::BeforeHeaders;
        if let Some((code, message)) = error_of(rule).filter(|_| early) {
            return self.refuse(id, code, &message).await;
        }
        let chunk = |kind: &str, text: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
        if let Some(thinking) = &rule.thinking {
            self.update(session, chunk("agent_thought_chunk", thinking)).await?;
        }
        for (number, call) in rule.tool_calls.iter().enumerate() {
            let tool = call.id.clone().unwrap_or_else(|| format!("call-{turn}-{number}"));
            let begins = json!({"sessionUpdate": "tool_call", "toolCallId": tool, "title": call.name, "kind": "other",
                "status": "in_progress"});
            self.update(session, begins).await?;
            let done = json!({"sessionUpdate": "tool_call_update", "toolCallId": tool, "status": "completed"});
            self.update(session, done).await?;
        }
        for (number, word) in words(rule, params, turn).iter().enumerate() {
            if self.broken_at(rule, Point::AfterWords(u32::try_from(number).unwrap_or(u32::MAX))).await? {
                return self.in_the_middle(id, rule).await;
            }
            if rule.word_delay_ms > 0 {
                tokio::time::sleep(Duration::from_millis(rule.word_delay_ms)).await;
            }
            self.update(session, chunk("agent_message_chunk", word)).await?;
        }
        if self.broken_at(rule, Point::BeforeTerminal).await? {
            return self.in_the_middle(id, rule).await;
        }
        let mut result = json!({"stopReason": stop_reason(rule)});
        if let (Some(prompt), Some(completion)) = (rule.usage.prompt, rule.usage.completion) {
            let (read, write) = (rule.usage.cached.unwrap_or(0), rule.usage.cache_write.unwrap_or(0));
            let input = prompt.saturating_sub(read).saturating_sub(write);
            result["usage"] = json!({"inputTokens": input, "outputTokens": completion, "cachedReadTokens": read,
                "cachedWriteTokens": write, "totalTokens": prompt.saturating_add(completion)});
        }
        self.answer(id, result).await
    }

    /// What goes wrong at this place and lets the reply go on is done; true for what ends it.
    async fn broken_at(&self, rule: &Rule, at: Point) -> io::Result<bool> {
        let Some(fault) = rule.fault.filter(|_| place(rule) == at) else { return Ok(false) };
        if fault == Fault::BadJson {
            self.write(b"this is no JSON").await?;
        } else if fault == Fault::BadSse {
            self.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\xfe\"}").await?;
        } else if fault == Fault::OversizedEvent {
            self.write(&vec![b'x'; rule.fault_bytes.unwrap_or(OVERSIZED)]).await?;
        } else {
            return Ok(ends_process(Some(fault)) || ends_reply(fault));
        }
        Ok(false)
    }

    async fn in_the_middle(&self, id: &Value, rule: &Rule) -> io::Result<()> {
        if ends_process(rule.fault) {
            self.crashed.send_replace(true);
            return Ok(());
        }
        if rule.fault == Some(Fault::ErrorInStream) {
            let (code, message) = error_of(rule).unwrap_or((-32603, "Internal error".into()));
            return self.refuse(id, code, &message).await;
        }
        std::future::pending().await
    }
}

fn ends_process(fault: Option<Fault>) -> bool {
    matches!(
        fault,
        Some(Fault::ResetBeforeReply | Fault::CloseBeforeReply | Fault::ResetMidStream | Fault::CloseMidStream)
    )
}

fn ends_reply(fault: Fault) -> bool {
    matches!(fault, Fault::Hang | Fault::NoTerminal | Fault::ErrorInStream)
}

fn place(rule: &Rule) -> Point {
    let usual = rule.fault.map_or(Point::BeforeHeaders, Fault::usual_place);
    match rule.fault_at.unwrap_or(usual) {
        Point::AfterPreamble => Point::AfterWords(0),
        place @ (Point::BeforeHeaders | Point::AfterWords(_) | Point::BeforeTerminal) => place,
    }
}

fn initialized() -> Value {
    json!({
        "protocolVersion": 1,
        "agentInfo": {"name": "turnkeep-lab", "title": "The lab", "version": env!("CARGO_PKG_VERSION")},
        "agentCapabilities": {"loadSession": false, "promptCapabilities": {"image": true}, "sessionCapabilities": {"close": {}}},
        "authMethods": [],
    })
}

/// The error that a rule answers with: its code, if that is a number, else its status.
fn error_of(rule: &Rule) -> Option<(i64, String)> {
    let error = rule.error.as_ref()?;
    let code = error.code.as_deref().and_then(|code| code.parse().ok());
    let code = code.or(error.status.map(i64::from)).unwrap_or(-32603);
    Some((code, error.message.clone().unwrap_or_else(|| "Internal error".into())))
}

fn stop_reason(rule: &Rule) -> &str {
    match rule.finish.as_deref() {
        None if rule.refusal.is_some() => "refusal",
        None | Some("stop" | "stop_sequence" | "tool_calls") => "end_turn",
        Some("length") => "max_tokens",
        Some(other) => other,
    }
}

/// The reply's words, each with the space before it.
fn words(rule: &Rule, params: &Value, turn: u64) -> Vec<String> {
    if let Some(count) = rule.words {
        return (1..=count).map(|number| format!("{}word{number}", if number > 1 { " " } else { "" })).collect();
    }
    let said = || {
        let blocks = params["prompt"].as_array().map(Vec::as_slice).unwrap_or_default();
        let last = blocks.iter().rev().find_map(|block| block["text"].as_str()).unwrap_or_default();
        let short: String = last.chars().take(200).collect();
        format!("You said: \"{short}\". This is turn {turn} of the lab's agent.")
    };
    let text = rule.text.clone().or_else(|| rule.refusal.clone()).unwrap_or_else(said);
    let mut words: Vec<String> = Vec::new();
    for piece in text.split_inclusive(' ') {
        words.push(piece.to_owned());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncRead, BufReader};

    /// What the agent says to these messages, and how it ends when its input closes.
    async fn said(script: &str, messages: &[Value]) -> (Vec<Value>, AgentEnd) {
        let script = Script::parse(script).expect("a script");
        let (near, far) = tokio::io::duplex(1 << 20);
        let (read, write) = tokio::io::split(far);
        let run = tokio::spawn(agent(script, None, BufReader::new(read), write));
        let (near_read, mut near_write) = tokio::io::split(near);
        let mut lines = BufReader::new(near_read).lines();
        let mut all = Vec::new();
        for message in messages {
            let sent = near_write.write_all(format!("{message}\n").as_bytes()).await;
            let Some(id) = message.get("id").filter(|_| sent.is_ok()) else { continue };
            while let Some(said) = next(&mut lines).await {
                let is_answer = said["id"] == *id;
                all.push(said);
                if is_answer {
                    break;
                }
            }
        }
        let _closed = near_write.shutdown().await;
        drop(near_write);
        drop(lines);
        (all, run.await.expect("no panic").expect("written"))
    }

    async fn next<R: AsyncRead + Unpin>(lines: &mut tokio::io::Lines<BufReader<R>>) -> Option<Value> {
        let line = lines.next_line().await.ok()??;
        Some(serde_json::from_str(&line).unwrap_or_else(|_| json!({"not json": line.len()})))
    }

    fn begin() -> Vec<Value> {
        vec![
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}),
        ]
    }

    fn prompt(id: u64, text: &str) -> Value {
        let session = format!("lab-{}-1", std::process::id());
        json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt",
            "params": {"sessionId": session, "prompt": [{"type": "text", "text": text}]}})
    }

    fn texts(said: &[Value]) -> String {
        said.iter().filter_map(|message| message.pointer("/params/update/content/text")?.as_str()).collect()
    }

    #[tokio::test]
    async fn without_a_script_an_agent_repeats_what_it_was_told_and_counts_the_turns() {
        let mut messages = begin();
        messages.extend([prompt(3, "hello"), prompt(4, "again")]);
        let (said, end) = said("", &messages).await;
        assert_eq!(end, AgentEnd::Closed);
        let text = texts(&said);
        assert!(text.contains("\"hello\". This is turn 1") && text.contains("\"again\". This is turn 2"), "{text}");
        assert_eq!(said.last().and_then(|last| last.pointer("/result/stopReason")), Some(&json!("end_turn")));
    }

    #[tokio::test]
    async fn rules_say_what_is_answered_and_where_it_breaks() {
        let run = async |rule: &str| {
            let mut messages = begin();
            messages.push(prompt(3, "x"));
            said(&format!("[[rule]]\npath = \"session/prompt\"\n{rule}"), &messages).await
        };
        let (said, _) = run("text = \"a b c\"\nthinking = \"hm\"\nfinish = \"length\"\nusage = { prompt = 9, completion = 2, cached = 4 }").await;
        assert_eq!(texts(&said), "hma b c");
        let last = said.last().expect("an answer");
        assert_eq!(
            (&last["result"]["stopReason"], &last["result"]["usage"]["inputTokens"]),
            (&json!("max_tokens"), &json!(5))
        );
        let (said, _) = run("error = { code = \"-32000\", message = \"login\" }").await;
        assert_eq!(said.last().expect("an answer")["error"]["code"], -32000);
        let (said, end) = run("text = \"a b c\"\nfault = \"close_mid_stream\"").await;
        assert_eq!((texts(&said).as_str(), end), ("a ", AgentEnd::Crashed));
        let (said, _) = run("text = \"a b\"\nfault = \"bad_json\"").await;
        assert!(said.iter().any(|message| message["not json"] == 15), "{said:?}");
        assert_eq!(texts(&said), "a b");
        let (said, end) = run("fault = \"reset_before_reply\"").await;
        assert_eq!((texts(&said).as_str(), end), ("", AgentEnd::Crashed));
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_not_kept_without_an_end() {
        let endless = tokio::io::BufReader::with_capacity(1 << 20, tokio::io::repeat(b'x'));
        let end = agent(Script::default(), None, endless, tokio::io::sink()).await;
        assert_eq!(end.map_err(|error| error.kind()), Err(io::ErrorKind::InvalidData));
    }

    #[tokio::test]
    async fn a_session_after_a_closed_one_has_a_name_of_its_own() {
        let ask = |id: u64, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let first = json!({"sessionId": format!("lab-{}-1", std::process::id())});
        let mut messages = begin();
        messages.extend([
            ask(3, "session/new", json!({})),
            ask(4, "session/close", first),
            ask(5, "session/new", json!({})),
        ]);
        let (said, _) = said("", &messages).await;
        let names: Vec<&Value> = said.iter().filter_map(|message| message.pointer("/result/sessionId")).collect();
        let once: std::collections::BTreeSet<String> = names.iter().map(|name| name.to_string()).collect();
        assert_eq!((names.len(), once.len()), (3, 3), "{names:?}");
    }

    #[tokio::test]
    async fn a_turn_that_hangs_is_over_when_it_is_cancelled() {
        let mut messages = begin();
        let session = format!("lab-{}-1", std::process::id());
        // The one after the other: a cancellation that comes before its turn has begun counts too.
        messages.push(json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}));
        messages.push(prompt(3, "x"));
        let (said, _) = said("[[rule]]\npath = \"session/prompt\"\nfault = \"hang\"", &messages).await;
        assert_eq!(said.last().and_then(|last| last.pointer("/result/stopReason")), Some(&json!("cancelled")));
    }
}
