//! Conversations over an upstream that keeps its answers, and what it was asked.

use crate::support::talk::Talk;
use crate::support::*;
use serde_json::{Value, json};
use turnkeep_base::Dialect;

/// Every client dialect over a Responses upstream, streamed and not.
pub fn ways() -> Vec<Pair> {
    pairs().into_iter().filter(|pair| pair.upstream == Dialect::Responses).collect()
}

/// A conversation that begins with these words. Its client leaves it to the provider whether answers are kept.
pub fn begin(pair: Pair, words: &str) -> Talk {
    let mut talk = Talk::begin(pair, words);
    if let Some(fields) = talk.body.as_object_mut() {
        fields.remove("store");
    }
    talk
}

/// A lab that answers with these words.
pub async fn keeping() -> turnkeep_lab::Lab {
    lab([Rule { text: Some("noted so far".into()), ..Rule::default() }]).await
}

/// What the gateway asked of the lab, in order.
pub fn asked(lab: &turnkeep_lab::Lab) -> Vec<Value> {
    lab.requests().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

/// The texts of an input, oldest first.
pub fn texts(input: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let parts = |value: &Value| list(value).iter().filter_map(|part| part["text"].as_str()).collect::<String>();
    let one = |item: &Value| item["content"].as_str().map_or_else(|| parts(&item["content"]), str::to_owned);
    input.as_str().map_or_else(|| list(input).iter().map(one).collect(), |text| vec![text.to_owned()])
}

/// The counters of conversations: hits, misses, restored, advanced, dropped.
pub fn counts(counters: &Value) -> [u64; 5] {
    ["hits", "misses", "restored", "advanced", "dropped"].map(|name| counters["conversations"][name].as_u64().unwrap())
}

/// An answer's id in the lab that keeps it.
pub fn kept_id(lab: &turnkeep_lab::Lab, at: usize) -> Value {
    json!(lab.kept_answers()[at].id)
}
