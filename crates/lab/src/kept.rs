//! The answers that a Responses upstream keeps: each with all that was said up to and including it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

/// Answers that are kept; the oldest go first.
const MAX_KEPT: usize = 1_000;

/// One kept answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// Its id.
    pub id: String,
    /// What it goes on from.
    pub previous: Option<String>,
    /// The items of the conversation up to and including its own.
    pub items: Vec<Value>,
}

#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<VecDeque<KeptAnswer>>);

impl Kept {
    /// The items of a kept answer.
    pub(crate) fn items(&self, id: &str) -> Option<Vec<Value>> {
        self.with(|kept| kept.iter().find(|answer| answer.id == id).map(|answer| answer.items.clone()))
    }

    pub(crate) fn put(&self, answer: KeptAnswer) {
        self.with(|kept| {
            kept.push_back(answer);
            while kept.len() > MAX_KEPT {
                kept.pop_front();
            }
        });
    }

    pub(crate) fn all(&self) -> Vec<KeptAnswer> {
        self.with(|kept| kept.iter().cloned().collect())
    }

    pub(crate) fn forget(&self) {
        self.with(VecDeque::clear);
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut VecDeque<KeptAnswer>) -> T) -> T {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The input of a request as items.
pub(crate) fn input(body: &Value) -> Vec<Value> {
    match &body["input"] {
        Value::String(text) => vec![json!({"type": "message", "role": "user", "content": text})],
        Value::Array(items) => items.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}
