//! JSON-RPC 2.0, as far as both sides need it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The agent wants a login.
pub(super) const AUTH_REQUIRED: i64 = -32000;
/// What was named is not there.
pub(super) const NOT_FOUND: i64 = -32002;
/// The request was cancelled.
pub(super) const CANCELLED: i64 = -32800;
/// The line is not JSON.
pub(super) const PARSE_ERROR: i64 = -32700;
/// The message is not a request.
pub(super) const INVALID_REQUEST: i64 = -32600;
/// There is no such method.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are wrong.
pub(super) const INVALID_PARAMS: i64 = -32602;
/// The other side failed.
pub(super) const INTERNAL: i64 = -32603;

/// A message of the agent's.
#[derive(Debug)]
pub(super) enum Message<'a> {
    /// It asks something, and is to be answered under this id, which is given back as it came.
    Request { id: &'a RawValue, method: Cow<'a, str>, params: Option<&'a RawValue> },
    /// It tells something.
    Notification { method: Cow<'a, str>, params: Option<&'a RawValue> },
    /// It answers our request of this number.
    Response { id: u64, outcome: Result<&'a RawValue, RpcError> },
    /// It answers something that it could not tell the id of, or that we never asked.
    Stray,
}

/// An error reply.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RpcError {
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
    #[serde(default)]
    pub(super) data: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(default, borrow)]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<RpcError>,
}

impl<'a> Message<'a> {
    /// Reads a line; `null` is the result of a reply without one.
    pub(super) fn read(line: &'a [u8]) -> serde_json::Result<Message<'a>> {
        let text = std::str::from_utf8(line).map_err(serde::de::Error::custom)?;
        let Raw { id, method, params, result, error } = object(text)?;
        Ok(match (method, id) {
            (Some(method), Some(id)) => Message::Request { id, method, params },
            (Some(method), None) => Message::Notification { method, params },
            (None, Some(id)) => match (id.get().parse(), error) {
                (Err(_), _) => Message::Stray,
                (Ok(id), Some(error)) => Message::Response { id, outcome: Err(error) },
                (Ok(id), None) => Message::Response { id, outcome: Ok(result.unwrap_or(RawValue::NULL)) },
            },
            (None, None) => Message::Stray,
        })
    }
}

/// Reads a JSON object. An array would do for serde, member by member: `[3]` is no answer to our third request, and
/// `["end_turn"]` no end of a turn.
pub(super) fn object<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    if text.trim_ascii_start().starts_with('{') {
        serde_json::from_str(text)
    } else {
        Err(serde::de::Error::custom("expected a JSON object"))
    }
}

/// A message of ours.
#[derive(Serialize)]
struct Ours<'a, T: Serialize> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: T,
}

/// A request line; without an id, a notification.
pub(super) fn line(id: Option<u64>, method: &str, params: impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Ours { jsonrpc: "2.0", id, method, params })?;
    line.push(b'\n');
    Ok(line)
}

#[derive(Serialize)]
struct Reply<'a, T: Serialize> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorReply>,
}

/// An error that we answer with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ErrorReply {
    pub(super) code: i64,
    pub(super) message: String,
}

/// A reply line.
pub(super) fn reply(id: &RawValue, outcome: Result<impl Serialize, ErrorReply>) -> serde_json::Result<Vec<u8>> {
    let (result, error) = match outcome {
        Ok(result) => (Some(result), None),
        Err(error) => (None, Some(error)),
    };
    let mut line = serde_json::to_vec(&Reply { jsonrpc: "2.0", id, result, error })?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart_by_their_members() {
        let read = |line: &'static str| format!("{:?}", Message::read(line.as_bytes()).expect("JSON"));
        assert!(read(r#"{"jsonrpc":"2.0","id":"a","method":"fs/read_text_file","params":{}}"#).starts_with("Request"));
        assert!(read(r#"{"jsonrpc":"2.0","method":"session/update"}"#).starts_with("Notification"));
        assert!(read(r#"{"jsonrpc":"2.0","id":3,"result":null}"#).starts_with("Response { id: 3, outcome: Ok"));
        assert!(read(r#"{"id":3,"error":{"code":-32000,"message":"login"}}"#).contains("-32000"));
        assert!(read(r#"{"id":null,"error":{"code":-32700,"message":"?"}}"#).starts_with("Stray"));
        assert!(read(r#"{"id":"never ours","result":1}"#).starts_with("Stray"));
        assert!(Message::read(b"hello").is_err());
        assert!(Message::read(b"{\"method\":\"\xff\"}").is_err());
    }

    #[test]
    fn an_array_is_no_message_and_answers_nothing() {
        for line in ["[3]", " [3,null,null,{\"stopReason\":\"end_turn\"}]", "[]", "[null,\"session/update\"]", "3", ""]
        {
            assert!(Message::read(line.as_bytes()).is_err(), "{line}");
        }
        assert!(Message::read(b" \t{\"id\":3,\"result\":{}}").is_ok());
    }

    #[test]
    fn an_id_is_given_back_as_it_came() {
        let id: Box<RawValue> = serde_json::from_str("\"a-1\"").expect("raw");
        let line = reply(&id, Ok::<_, ErrorReply>(serde_json::json!({"ok": true}))).expect("line");
        assert_eq!(line, b"{\"jsonrpc\":\"2.0\",\"id\":\"a-1\",\"result\":{\"ok\":true}}\n");
        let error = ErrorReply { code: METHOD_NOT_FOUND, message: "no".into() };
        let line = reply(&id, Err::<(), _>(error)).expect("line");
        assert_eq!(line, b"{\"jsonrpc\":\"2.0\",\"id\":\"a-1\",\"error\":{\"code\":-32601,\"message\":\"no\"}}\n");
    }
}
