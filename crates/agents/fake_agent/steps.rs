//! What the lines of a prompt make the agent do. A prompt without a step is echoed.

use crate::agent::{Agent, say_raw};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// One turn.
pub struct Talk {
    pub agent: Arc<Agent>,
    pub session: String,
    pub id: Value,
    pub cancelled: Receiver<()>,
    /// Counts the session's turns from 1.
    pub number: u64,
}

impl Talk {
    fn chunk(&self, kind: &str, text: &str) {
        self.agent.update(&self.session, json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}}));
    }

    fn say(&self, text: &str) {
        self.chunk("agent_message_chunk", text);
    }

    fn end(&self, reason: &str) {
        self.agent.answer(&self.id, json!({"stopReason": reason}));
    }
}

/// Plays the steps. Those that end the turn are the last.
pub fn play(talk: &Talk, text: &str) {
    for line in text.lines() {
        let (step, rest) = line.split_once(' ').unwrap_or((line, ""));
        match step {
            "say" => talk.say(rest),
            "think" => talk.chunk("agent_thought_chunk", rest),
            "tool" => {
                let update = json!({"sessionUpdate": "tool_call", "toolCallId": "t1", "title": rest, "kind": "read",
                    "status": "pending"});
                talk.agent.update(&talk.session, update);
                let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed"});
                talk.agent.update(&talk.session, update);
            }
            "commands" => {
                let update = json!({"sessionUpdate": "available_commands_update", "availableCommands": []});
                talk.agent.update(&talk.session, update);
            }
            "used" => {
                let update = json!({"sessionUpdate": "usage_update", "used": 10, "size": 1000});
                talk.agent.update(&talk.session, update);
            }
            "permission" => talk.say(&permission(talk, rest)),
            "ask" => {
                let answer = talk.agent.ask(rest, json!({"sessionId": talk.session, "path": "/etc/passwd"}));
                talk.say(&answer["error"]["code"].to_string());
            }
            "ask-quietly" => drop(talk.agent.ask(rest, json!({"sessionId": talk.session, "path": "/etc/passwd"}))),
            "update" => talk.agent.update(&talk.session, json!({"sessionUpdate": rest})),
            "cancel-request" => {
                let params = json!({"requestId": 1});
                talk.agent.say(&json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params}));
            }
            "split" => {
                let content = json!({"type": "text", "text": rest});
                let params = json!({"sessionId": talk.session,
                    "update": {"sessionUpdate": "agent_message_chunk", "content": content}});
                let message = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
                for byte in format!("{message}\n").into_bytes() {
                    say_raw(&[byte]);
                }
            }
            "cwd" => talk.say(&std::env::current_dir().expect("a directory").display().to_string()),
            "pid" => talk.say(&std::process::id().to_string()),
            "count" => talk.say(&talk.number.to_string()),
            "garbage" => say_raw(b"Warning: something happened\n"),
            "odd-update" => {
                talk.agent.update(&talk.session, json!({"sessionUpdate": "agent_message_chunk", "content": 3}))
            }
            "huge" => {
                let mut line = vec![b'x'; 5 << 20];
                line.push(b'\n');
                say_raw(&line);
            }
            "eat" => {
                let bytes = vec![1u8; rest.parse::<usize>().expect("a number") << 20];
                talk.say(&bytes.iter().map(|&byte| usize::from(byte)).sum::<usize>().to_string());
                std::mem::forget(bytes);
            }
            "flood" => {
                let piece = "x".repeat(1 << 20);
                for _ in 0..rest.parse().expect("a number") {
                    talk.say(&piece);
                }
            }
            "mark" => std::fs::write(std::env::var("FAKE_MARK").expect("FAKE_MARK"), rest).expect("a file"),
            "crash" => std::process::exit(3),
            "error" => {
                let (code, message) = rest.split_once(' ').unwrap_or((rest, "it failed"));
                return talk.agent.refuse(&talk.id, code.parse().expect("a code"), message);
            }
            "hang" => {
                let _cancelled = talk.cancelled.recv();
                // Asked while it is being cancelled.
                let answer = permission(talk, "execute");
                std::fs::write(std::env::var("FAKE_CANCELLED").unwrap_or("/dev/null".into()), answer).expect("a file");
                return talk.end("cancelled");
            }
            "deaf" => return,
            "usage" => {
                let usage = json!({"inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 90, "totalTokens": 105});
                return talk.agent.answer(&talk.id, json!({"stopReason": "end_turn", "usage": usage}));
            }
            "stop" => return talk.end(rest),
            _ => talk.say(&format!("{} {line}", talk.number)),
        }
    }
    talk.end("end_turn");
}

fn permission(talk: &Talk, kind: &str) -> String {
    let options: Vec<Value> = ["allow_always", "allow_once", "reject_once", "reject_always"]
        .map(|kind| json!({"optionId": format!("id-{kind}"), "name": kind, "kind": kind}))
        .into();
    let call = json!({"toolCallId": "t9", "title": "it", "kind": kind});
    let params = json!({"sessionId": talk.session, "toolCall": call, "options": options});
    let answer = talk.agent.ask("session/request_permission", params);
    let outcome = &answer["result"]["outcome"];
    outcome["optionId"].as_str().or(outcome["outcome"].as_str()).unwrap_or("nothing").to_owned()
}
