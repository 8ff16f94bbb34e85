//! The command line as a process of its own, and what is asked of every export.

use crate::scene::at_rest;
use crate::support::world::ledger;
use crate::support::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

/// What a run of the binary said.
pub struct Ran {
    pub status: i32,
    pub out: String,
    pub err: String,
}

/// Runs the binary.
pub async fn turnkeep(words: &[&str], variables: &[(&str, &str)]) -> Ran {
    let ran = Command::new(env!("CARGO_BIN_EXE_turnkeep"))
        .args(words)
        .envs(variables.iter().copied())
        .env("TURNKEEP_EGRESS", "loopback")
        .stdin(Stdio::null())
        .output();
    let ran = soon(ran).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { status: ran.status.code().unwrap(), out: text(ran.stdout), err: text(ran.stderr) }
}

/// Asks for a turn's trace, with more words.
pub async fn export(world: &World, turn: &str, file: &Path, more: &[&str]) -> Ran {
    let (url, config) = (format!("http://{}", world.addr()), world.file());
    let words = ["explain", "turn", turn, "--export", file.to_str().unwrap(), "--config", config.to_str().unwrap()];
    let words = [&words[..], &["--url", &url], more].concat();
    turnkeep(&words, &[]).await
}

/// A turn's trace in a file of the world's folder, and what it holds.
pub async fn exported(world: &World, turn: &str) -> (PathBuf, Value) {
    let file = world.folder().join(format!("{turn}.json"));
    let ran = export(world, turn, &file, &[]).await;
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("turnkeep replay"), "{}", ran.out);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_no_content(&text);
    (file, serde_json::from_str(&text).unwrap())
}

/// Replays a file.
pub async fn replay(file: &Path) -> Ran {
    turnkeep(&["replay", file.to_str().unwrap()], &[]).await
}

/// A turn's trace, exported and replayed: identical.
pub async fn same(world: &World, turn: &str) -> Value {
    let (file, trace) = exported(world, turn).await;
    let ran = replay(&file).await;
    assert_eq!(ran.status, 0, "{}{}\n{trace:#}", ran.out, ran.err);
    assert!(ran.out.contains("identical: all ") && ran.out.contains(turn), "{}", ran.out);
    assert_eq!((ran.out.contains("(not replayed)"), ran.err.as_str()), (false, ""), "{}", ran.out);
    assert_no_content(&ran.out);
    trace
}

/// The turns that reached an account, the oldest first.
pub async fn turns(world: &World) -> Vec<String> {
    at_rest(world).await;
    let mut turns: Vec<String> = Vec::new();
    for entry in ledger(world.folder()).await {
        let turn = entry.attempt.turn.to_string();
        if !turns.contains(&turn) {
            turns.push(turn);
        }
    }
    turns
}

/// What no export may hold: the words of requests, answers and providers, and every secret.
pub fn assert_no_content(text: &str) {
    for words in ["Hello there", "slow down", KEY, "secret-"] {
        assert!(!text.contains(words), "{words:?} is in it:\n{text}");
    }
    // Single words of requests and answers; parts of a name do not count.
    for word in text.split(|char: char| !char.is_alphanumeric() && char != '_') {
        assert!(!["one", "two", "three", "four", "first", "second"].contains(&word), "{word:?} is in it:\n{text}");
    }
}

/// The steps of one sort.
pub fn steps<'a>(trace: &'a Value, sort: &str) -> Vec<&'a Value> {
    let steps = trace["steps"].as_array().unwrap().iter();
    steps.filter_map(|step| step["what"].get(sort)).collect()
}

/// The names of the machine's events, in order. One with facts is named alone.
pub fn events(trace: &Value) -> Vec<String> {
    let name = |event: &Value| match event.as_object() {
        Some(fields) => fields.keys().next().unwrap().clone(),
        None => event.as_str().unwrap().to_owned(),
    };
    steps(trace, "machine").iter().map(|step| name(&step["event"])).collect()
}
