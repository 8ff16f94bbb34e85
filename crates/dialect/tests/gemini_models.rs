//! The lists and counts that a Gemini client reads.

#![allow(clippy::unwrap_used, reason = "a test's functions, too, end by panicking")]

use serde_json::{Value, json};
use turnkeep_base::Dialect;
use turnkeep_dialect::count::{count_body, count_reply};
use turnkeep_dialect::gemini::models;

fn value(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

#[test]
fn models_are_named_in_their_collection_with_what_can_be_done_with_them() {
    let methods = json!(["generateContent", "streamGenerateContent", "countTokens"]);
    let model =
        |name: &str| json!({"name":format!("models/{name}"),"displayName":name,"supportedGenerationMethods":methods});
    assert_eq!(value(&models::list(&["a", "b\"c"])), json!({"models":[model("a"), model("b\"c")]}));
    assert_eq!(value(&models::list(&[])), json!({"models":[]}));
    assert_eq!(value(&models::one("a")), model("a"));
}

#[test]
fn a_count_is_read_as_it_is_written() {
    let read = |body: &[u8]| count_reply(Dialect::Gemini, body);
    assert_eq!(value(&count_body(Dialect::Gemini, 31)), json!({"totalTokens":31}));
    assert_eq!(read(&count_body(Dialect::Gemini, 31)), Some(31));
    assert_eq!(read(br#"{"promptTokensDetails":[{"tokenCount":3}],"total_tokens":3}"#), Some(3));
    let others: [&[u8]; 7] = [
        b"{}",
        br#"{"totalTokens":"x"}"#,
        br#"{"error":{"code":400}}"#,
        b"[1]",
        b"",
        b"{\"totalTokens\":1} x",
        b"\xff",
    ];
    for other in others {
        assert_eq!(read(other), None, "{other:?}");
    }
}
