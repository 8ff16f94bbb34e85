//! From a call to an HTTP request: the headers of each protocol, and the message in its form.

use super::{Codec, Protocol, RpcCall};
use crate::classify;
use crate::request::{AGENT, Draft};
use crate::target::Target;
use bytes::Bytes;
use http::Method;
use http::header::{self, HeaderName, HeaderValue};
use std::time::Duration;
use turnkeep_base::limit::MAX_EVENT;
use turnkeep_base::{Fault, FaultKind, Secret};
use turnkeep_wire::envelope;

const CONNECT_VERSION: HeaderName = HeaderName::from_static("connect-protocol-version");
const CONNECT_TIMEOUT: HeaderName = HeaderName::from_static("connect-timeout-ms");
const CONNECT_ACCEPT: HeaderName = HeaderName::from_static("connect-accept-encoding");
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const GRPC_ACCEPT: HeaderName = HeaderName::from_static("grpc-accept-encoding");
/// What an answer's messages may be compressed by.
const CODINGS: HeaderValue = HeaderValue::from_static("gzip, zstd");
const VERSION: HeaderValue = HeaderValue::from_static("1");
const TRAILERS: HeaderValue = HeaderValue::from_static("trailers");
/// The most milliseconds of Connect's ten digits.
const MOST_MS: u128 = 9_999_999_999;
/// The most of gRPC's eight digits.
const MOST_GRPC: u128 = 99_999_999;

/// Headers of the connection, of the protocols and of the credential, which neither the configuration nor a call replaces.
static OURS: [HeaderName; 13] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
    header::PROXY_AUTHORIZATION,
    header::ACCEPT_ENCODING,
    header::CONTENT_ENCODING,
    header::CONTENT_TYPE,
    header::AUTHORIZATION,
];

/// The header is the gateway's own.
pub(super) fn is_ours(name: &HeaderName) -> bool {
    let text = name.as_str();
    OURS.contains(name) || text.starts_with("connect-") || text.starts_with("grpc-")
}

/// Whether an answer is one message or many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Unary,
    Stream,
}

/// The content type of requests, and of the answers to them.
pub(super) fn content_type(protocol: Protocol, codec: Codec, form: Form) -> &'static str {
    match (protocol, form, codec) {
        (Protocol::Connect, Form::Unary, Codec::Proto) => "application/proto",
        (Protocol::Connect, Form::Unary, Codec::Json) => "application/json",
        (Protocol::Connect, Form::Stream, Codec::Proto) => "application/connect+proto",
        (Protocol::Connect, Form::Stream, Codec::Json) => "application/connect+json",
        (Protocol::Grpc, Form::Unary | Form::Stream, Codec::Proto) => "application/grpc+proto",
        (Protocol::Grpc, Form::Unary | Form::Stream, Codec::Json) => "application/grpc+json",
    }
}

/// Makes the request of a call.
pub(super) fn head(
    call: RpcCall,
    protocol: Protocol,
    codec: Codec,
    form: Form,
    extra: &[(HeaderName, HeaderValue)],
    target: &Target,
) -> Result<Draft, Fault> {
    let Some(forms) = target.forms(call.method) else {
        return Err(classify::unsent(FaultKind::GatewayBug, format!("{:?} is not a path", call.method)));
    };
    let body = match (protocol, form) {
        (Protocol::Connect, Form::Unary) => Some(call.message).filter(|message| message.len() <= MAX_EVENT),
        (Protocol::Connect, Form::Stream) | (Protocol::Grpc, Form::Unary | Form::Stream) => {
            envelope::write(0, &call.message, MAX_EVENT)
        }
    };
    let body: Bytes = body.ok_or_else(too_long)?;
    let mut headers = call.metadata;
    let given: Vec<HeaderName> = headers.keys().filter(|name| is_ours(name)).cloned().collect();
    for name in given {
        headers.remove(name);
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(protocol, codec, form)));
    headers.insert(header::USER_AGENT, AGENT);
    if let Some(credential) = credential(&call.secret)? {
        headers.insert(header::AUTHORIZATION, credential);
    }
    match protocol {
        Protocol::Connect => {
            headers.insert(CONNECT_VERSION, VERSION);
            let accept = match form {
                Form::Unary => header::ACCEPT_ENCODING,
                Form::Stream => CONNECT_ACCEPT,
            };
            headers.insert(accept, CODINGS);
            if let Some(left) = call.time_left {
                headers.insert(CONNECT_TIMEOUT, value(&connect_timeout(left))?);
            }
        }
        Protocol::Grpc => {
            headers.insert(header::TE, TRAILERS);
            headers.insert(GRPC_ACCEPT, CODINGS);
            if let Some(left) = call.time_left {
                headers.insert(GRPC_TIMEOUT, value(&grpc_timeout(left))?);
            }
        }
    }
    for (name, value) in extra {
        headers.insert(name, value.clone());
    }
    Ok(Draft { method: Method::POST, headers, body, forms })
}

fn too_long() -> Fault {
    let text = format!("the message is longer than {MAX_EVENT} bytes, which no server of this protocol takes");
    classify::unsent(FaultKind::RequestInvalid, text)
}

fn value(text: &str) -> Result<HeaderValue, Fault> {
    HeaderValue::try_from(text).map_err(|_| classify::unsent(FaultKind::GatewayBug, "a time that is no header"))
}

/// Marked sensitive, so that it is not printed and not put into an HTTP/2 compression table.
fn credential(secret: &Secret) -> Result<Option<HeaderValue>, Fault> {
    if secret.expose().is_empty() {
        return Ok(None);
    }
    let text = "the account's secret holds bytes that cannot stand in a header";
    let mut value = HeaderValue::try_from(format!("Bearer {}", secret.expose()))
        .map_err(|_| classify::unsent(FaultKind::NoCredential, text))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// Whole milliseconds, at least one, in at most ten digits.
fn connect_timeout(left: Duration) -> String {
    left.as_millis().clamp(1, MOST_MS).to_string()
}

/// At most eight digits and a unit; the finest that fits, never more than what is left but at least one.
fn grpc_timeout(left: Duration) -> String {
    let (millis, seconds) = (left.as_millis(), u128::from(left.as_secs()));
    if millis <= MOST_GRPC {
        format!("{}m", millis.max(1))
    } else if seconds <= MOST_GRPC {
        format!("{seconds}S")
    } else {
        format!("{}H", (seconds / 3600).min(MOST_GRPC))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_the_time_fits_its_digits() {
        let rows = [
            (Duration::ZERO, "1", "1m"),
            (Duration::from_micros(1500), "1", "1m"),
            (Duration::from_secs(600), "600000", "600000m"),
            (Duration::from_millis(99_999_999), "99999999", "99999999m"),
            (Duration::from_secs(100_000), "100000000", "100000S"),
            (Duration::from_secs(360_000_000), "9999999999", "100000H"),
            (Duration::from_secs(1 << 40), "9999999999", "99999999H"),
        ];
        for (left, connect, grpc) in rows {
            assert_eq!(connect_timeout(left), connect);
            assert_eq!(grpc_timeout(left), grpc);
            assert!(grpc_timeout(left).len() <= 9 && connect_timeout(left).len() <= 10, "{left:?}");
        }
        assert_eq!(grpc_timeout(Duration::MAX), "99999999H");
    }
}
