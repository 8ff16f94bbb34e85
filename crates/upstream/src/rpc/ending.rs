//! How an answer ends: Connect's end of the stream, gRPC's trailers, and the error documents of unary calls, as faults.

use super::status::{Status, percent_decoded};
use super::{RpcFault, Told};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use turnkeep_base::{Declared, Evidence, Fault, FaultKind, Phase};
use turnkeep_dialect::connect::classify as connect;
use turnkeep_dialect::reply::ReplyFault;
use turnkeep_dialect::windows;

/// Names of metadata that are kept, and bytes of one value.
const METADATA: usize = 128;
const METADATA_BYTES: usize = 8 << 10;

/// Bytes that are not the protocol.
pub(super) fn malformed(what: impl Into<String>) -> Fault {
    Fault::new(FaultKind::MalformedResponse, Phase::Answered, Evidence::text(what))
}

/// The answer stopped without its end.
pub(super) fn truncated(what: impl Into<String>) -> Fault {
    Fault::new(FaultKind::StreamTruncated, Phase::Answered, Evidence::text(what))
}

/// What is known of a call whose error is complete and came before any message.
fn told(begun: bool, failed: bool) -> Told {
    match (begun, failed) {
        (true, _) => Told::Unknown,
        (false, true) => Told::Failed,
        (false, false) => Told::Refused,
    }
}

/// Whether an error tells of a failure on the server's side, after which it may have begun: all but the codes that say no.
/// `aborted` is not one of them: a conflict may be found when much has been done.
fn is_failure(code: Option<&str>) -> bool {
    let refusals = [
        "invalid_argument",
        "not_found",
        "already_exists",
        "permission_denied",
        "resource_exhausted",
        "failed_precondition",
        "out_of_range",
        "unimplemented",
        "unauthenticated",
    ];
    code.is_none_or(|code| !refusals.contains(&code))
}

fn fault_of(reply: ReplyFault, from: &HeaderMap) -> Fault {
    let ReplyFault { kind, evidence, declared, context_too_long } = reply;
    let mut fault = Fault::new(kind, Phase::Answered, evidence);
    fault.declared = declared_by(from).and(declared);
    fault.context_too_long = context_too_long;
    fault
}

/// What headers or trailers declare of the server's limits, gRPC's own way to ask for a wait included.
fn declared_by(headers: &HeaderMap) -> Declared {
    let get = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let mut declared = windows::from_headers(&get, 0);
    let pushback = get("grpc-retry-pushback-ms").and_then(windows::millis).and_then(windows::worth);
    declared.wait = declared.wait.max(pushback);
    declared
}

/// A reply with an error status: the error document of a unary Connect call, or what a proxy in front of the server says.
/// `whole`: all of it has come.
pub(super) fn by_status(status: u16, headers: &HeaderMap, body: &[u8], whole: bool, continued: bool) -> RpcFault {
    let get = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let made_ms = windows::made_at(&get, 0);
    let classified = match continued {
        true => connect::continued_at(status, body, made_ms),
        false => connect::reply_at(status, body, made_ms),
    };
    let code = classified.evidence.code.clone();
    // A code is the server's own word; without one the status speaks, most often a proxy's.
    let failed = if code.is_some() { is_failure(code.as_deref()) } else { !(400..500).contains(&status) };
    let told = if whole { told(false, failed) } else { Told::Unknown };
    RpcFault { fault: fault_of(classified.into(), headers), told }
}

/// The end of a Connect stream.
#[derive(Deserialize)]
struct EndOfStream<'a> {
    #[serde(borrow, default)]
    error: Given<'a>,
    #[serde(default)]
    metadata: Option<BTreeMap<String, Vec<String>>>,
}

/// A value that is there or not; `null` is one that is there.
#[derive(Default)]
struct Given<'a>(Option<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Given<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|value| Given(Some(value)))
    }
}

/// Reads the end of a Connect stream: its metadata, or its error. `begun`: messages have come before.
pub(super) fn end_of_stream(payload: &[u8], begun: bool, continued: bool) -> Result<HeaderMap, RpcFault> {
    // An array would do for serde.
    if !payload.trim_ascii_start().starts_with(b"{") {
        return Err(malformed("the end of the stream is no JSON object").into());
    }
    let end: EndOfStream<'_> = serde_json::from_slice(payload)
        .map_err(|error| malformed(format!("the end of the stream is not what it must be: {error}")))?;
    let metadata = metadata(end.metadata.unwrap_or_default());
    let Some(error) = end.error.0 else { return Ok(metadata) };
    if !error.get().starts_with('{') {
        return Err(malformed(format!("the end of the stream has an error that is {}", kind_of(error.get()))).into());
    }
    let read = match continued {
        true => connect::in_stream_continued(error.get().as_bytes()),
        false => connect::in_stream(error.get().as_bytes()),
    };
    let told = told(begun, is_failure(read.evidence.code.as_deref()));
    Err(RpcFault { fault: fault_of(read, &metadata), told })
}

fn kind_of(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'n') => "null",
        Some(b'"') => "a string",
        Some(b'[') => "an array",
        Some(_) | None => "no object",
    }
}

fn metadata(given: BTreeMap<String, Vec<String>>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, values) in given {
        let Ok(name) = HeaderName::try_from(name) else { continue };
        for value in values {
            if headers.len() >= METADATA {
                return headers;
            }
            let fits = Some(value).filter(|value| value.len() <= METADATA_BYTES);
            if let Some(Ok(value)) = fits.map(HeaderValue::try_from) {
                headers.append(name.clone(), value);
            }
        }
    }
    headers
}

/// Reads gRPC's status from trailers, or from the headers of an answer without a body. `None`: there is none.
pub(super) fn grpc_status(trailers: &HeaderMap, begun: bool, continued: bool) -> Option<Result<(), RpcFault>> {
    let value = trailers.get("grpc-status")?;
    let number = value.to_str().ok().and_then(|text| text.trim().parse::<u32>().ok());
    let Some(number) = number else {
        return Some(Err(malformed(format!("grpc-status is {value:?}, and must be a number")).into()));
    };
    if number == 0 {
        return Some(Ok(()));
    }
    let message = trailers.get("grpc-message").map(|value| percent_decoded(value.as_bytes())).unwrap_or_default();
    let read = match continued {
        true => connect::grpc_continued(number, &message),
        false => connect::grpc(number, &message),
    };
    let told = told(begun, is_failure(read.evidence.code.as_deref()));
    let mut fault = fault_of(read, trailers);
    if let Some(wait) = trailers.get("grpc-status-details-bin").and_then(Status::retry_delay) {
        fault.declared.wait = fault.declared.wait.max(Some(wait));
    }
    Some(Err(RpcFault { fault, told }))
}

/// A message longer than its bound, a flag that is none, or an end within a message.
pub(super) fn broken(error: turnkeep_wire::envelope::Broken) -> Fault {
    use turnkeep_wire::envelope::Broken;
    let (kind, at) = match error {
        Broken::TooLong { offset, .. } | Broken::Flags { offset, .. } => (FaultKind::MalformedResponse, offset),
        Broken::Cut { offset, .. } => (FaultKind::StreamTruncated, offset),
    };
    let mut fault = Fault::new(kind, Phase::Answered, Evidence::text(error.to_string()));
    fault.evidence.offset = Some(at);
    fault
}

/// Nothing is left to wait for, and no end has come.
pub(super) fn no_end(of: &str) -> Fault {
    truncated(format!("the stream ended without {of}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_pushback_of_nothing_or_of_ages_is_none() {
        for (text, wait) in [
            ("1500", Some(Duration::from_millis(1500))),
            ("0", None),
            ("-1", None),
            ("soon", None),
            ("18446744073709551615", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-retry-pushback-ms", HeaderValue::from_static(text));
            assert_eq!(declared_by(&headers).wait, wait, "{text}");
        }
    }
}
