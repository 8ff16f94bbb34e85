//! Connect and gRPC as a server speaks them: how a call is told, its message read, and its replies framed.
//!
//! The framing is the lab's own, so that a mistake in the gateway's is not answered by the same one here; only the messages
//! are shared, as the schema is.

use std::io::Read;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::encode::Encoder;
use crate::script::{ContentEncoding, ErrorSpec};

/// The most that a compressed message may grow to.
const MAX_INFLATED: u64 = 64 * 1024 * 1024;

/// How messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Proto,
    Json,
}

/// How a call is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// A body that is the message.
    ConnectUnary,
    /// Envelopes, the last of which says how the stream ended.
    ConnectStream,
    /// Envelopes, and trailers.
    Grpc,
}

/// A call's manner and codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spoken {
    pub manner: Manner,
    pub codec: Codec,
    /// How the messages of the reply are compressed.
    pub coding: Option<ContentEncoding>,
}

/// A message both codecs know.
pub(crate) trait Both: Message + Default + Serialize + DeserializeOwned {}
impl<T: Message + Default + Serialize + DeserializeOwned> Both for T {}

impl Spoken {
    /// By the content type; `None` if it is no call.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let (manner, codec) = match kind {
            "application/proto" => (Manner::ConnectUnary, Codec::Proto),
            "application/json" => (Manner::ConnectUnary, Codec::Json),
            "application/connect+proto" => (Manner::ConnectStream, Codec::Proto),
            "application/connect+json" => (Manner::ConnectStream, Codec::Json),
            "application/grpc" | "application/grpc+proto" => (Manner::Grpc, Codec::Proto),
            "application/grpc+json" => (Manner::Grpc, Codec::Json),
            _ => return None,
        };
        Some(Self { manner, codec, coding: None })
    }

    /// The content type of the reply.
    pub(crate) fn kind(self) -> &'static str {
        match (self.manner, self.codec) {
            (Manner::ConnectUnary, Codec::Proto) => "application/proto",
            (Manner::ConnectUnary, Codec::Json) => "application/json",
            (Manner::ConnectStream, Codec::Proto) => "application/connect+proto",
            (Manner::ConnectStream, Codec::Json) => "application/connect+json",
            (Manner::Grpc, Codec::Proto) => "application/grpc+proto",
            (Manner::Grpc, Codec::Json) => "application/grpc+json",
        }
    }

    /// The header that names the coding of messages.
    pub(crate) fn coding_header(self) -> HeaderName {
        match self.manner {
            Manner::ConnectUnary => header::CONTENT_ENCODING,
            Manner::ConnectStream => HeaderName::from_static("connect-content-encoding"),
            Manner::Grpc => HeaderName::from_static("grpc-encoding"),
        }
    }

    /// The one message of a request.
    pub(crate) fn read<T: Both>(self, headers: &HeaderMap, body: &Bytes) -> Result<T, String> {
        let coding = headers.get(self.coding_header()).and_then(|value| value.to_str().ok()).unwrap_or("identity");
        let (compressed, payload) = match self.manner {
            Manner::ConnectUnary => (coding != "identity", body.clone()),
            Manner::ConnectStream | Manner::Grpc => opened(body)?,
        };
        let payload = if compressed && !payload.is_empty() { inflated(coding, &payload)? } else { payload };
        match self.codec {
            Codec::Proto => T::decode(payload).map_err(|error| format!("the message is no protobuf: {error}")),
            Codec::Json => serde_json::from_slice(&payload).map_err(|error| format!("the message is no JSON: {error}")),
        }
    }

    /// A message as bytes of the reply's body.
    pub(crate) fn write<T: Both>(self, message: &T) -> Bytes {
        let payload = match self.codec {
            Codec::Proto => message.encode_to_vec(),
            Codec::Json => serde_json::to_vec(message).unwrap_or_default(),
        };
        let packed = self.coding.and_then(|coding| {
            let mut encoder = Encoder::new(coding).ok()?;
            let mut packed = encoder.feed(&payload).ok()?;
            packed.extend(encoder.finish().ok()?);
            Some(packed)
        });
        match self.manner {
            Manner::ConnectUnary => packed.unwrap_or(payload).into(),
            Manner::ConnectStream | Manner::Grpc => {
                let flags = u8::from(packed.is_some());
                envelope(flags, &packed.unwrap_or(payload))
            }
        }
    }

    /// What ends a stream's body, its trailers apart.
    pub(crate) fn end(self, error: Option<&Failed>) -> Bytes {
        match self.manner {
            Manner::ConnectStream => {
                let end = match error {
                    Some(error) => json!({"error": error.json()}),
                    None => json!({}),
                };
                envelope(2, end.to_string().as_bytes())
            }
            Manner::ConnectUnary | Manner::Grpc => Bytes::new(),
        }
    }

    /// Bytes that are no message of the schema, framed as one.
    pub(crate) fn nonsense(self) -> Bytes {
        match self.manner {
            Manner::ConnectUnary => Bytes::from_static(b"\xff\xff\xff"),
            Manner::ConnectStream | Manner::Grpc => envelope(0, b"\xff\xff\xff"),
        }
    }
}

/// One envelope.
pub(crate) fn envelope(flags: u8, payload: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(5 + payload.len());
    out.put_u8(flags);
    out.put_u32(u32::try_from(payload.len()).unwrap_or(u32::MAX));
    out.put_slice(payload);
    out.freeze()
}

/// The one envelope of a request.
fn opened(body: &Bytes) -> Result<(bool, Bytes), String> {
    let Some(([flags, length @ ..], _)) = body.split_first_chunk::<5>() else {
        return Err("the body is shorter than an envelope's head".into());
    };
    let length = u32::from_be_bytes(*length) as usize;
    let payload = body.slice(5..);
    if payload.len() != length || *flags > 1 {
        return Err(format!("an envelope of {length} bytes with the flags {flags} in a body of {}", body.len()));
    }
    Ok((*flags == 1, payload))
}

fn inflated(coding: &str, payload: &[u8]) -> Result<Bytes, String> {
    let mut out = Vec::new();
    let read = match coding {
        "gzip" => flate2::read::GzDecoder::new(payload).take(MAX_INFLATED).read_to_end(&mut out),
        "zstd" => match zstd::stream::read::Decoder::new(payload) {
            Ok(decoder) => decoder.take(MAX_INFLATED).read_to_end(&mut out),
            Err(error) => Err(error),
        },
        other => return Err(format!("compressed by {other}, and only gzip and zstd are known")),
    };
    read.map_err(|error| format!("the message does not inflate: {error}"))?;
    Ok(out.into())
}

/// An error of a call.
#[derive(Debug, Clone)]
pub(crate) struct Failed {
    /// Connect's word for it.
    pub code: String,
    pub message: String,
}

/// The codes, with their numbers in gRPC and Connect's HTTP status for them.
const CODES: [(&str, u32, u16); 16] = [
    ("canceled", 1, 499),
    ("unknown", 2, 500),
    ("invalid_argument", 3, 400),
    ("deadline_exceeded", 4, 504),
    ("not_found", 5, 404),
    ("already_exists", 6, 409),
    ("permission_denied", 7, 403),
    ("resource_exhausted", 8, 429),
    ("failed_precondition", 9, 400),
    ("aborted", 10, 409),
    ("out_of_range", 11, 400),
    ("unimplemented", 12, 501),
    ("internal", 13, 500),
    ("unavailable", 14, 503),
    ("data_loss", 15, 500),
    ("unauthenticated", 16, 401),
];

impl Failed {
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }

    /// A rule's error: its code, else what its status means.
    pub(crate) fn of(spec: &ErrorSpec, status: u16) -> Self {
        let code = spec.code.clone().unwrap_or_else(|| {
            let code = match status {
                400 | 422 => "invalid_argument",
                401 => "unauthenticated",
                403 => "permission_denied",
                404 => "not_found",
                409 => "aborted",
                429 => "resource_exhausted",
                499 => "canceled",
                501 => "unimplemented",
                502 | 503 | 529 => "unavailable",
                504 => "deadline_exceeded",
                _ => "internal",
            };
            code.to_owned()
        });
        Self { message: spec.message.clone().unwrap_or_else(|| format!("the lab answers {code}")), code }
    }

    fn row(&self) -> (u32, u16) {
        CODES.iter().find(|(name, ..)| *name == self.code).map_or((2, 500), |(_, number, status)| (*number, *status))
    }

    /// Connect's status for it.
    pub(crate) fn status(&self) -> u16 {
        self.row().1
    }

    /// Connect's document of it.
    pub(crate) fn json(&self) -> serde_json::Value {
        json!({"code": self.code, "message": self.message})
    }

    /// gRPC's trailers of it.
    pub(crate) fn trailers(&self) -> HeaderMap {
        trailers(self.row().0, &self.message)
    }
}

/// gRPC's end; 0 is success.
pub(crate) fn trailers(number: u32, message: &str) -> HeaderMap {
    let mut out = HeaderMap::new();
    out.insert("grpc-status", HeaderValue::from(number));
    let mut text = String::new();
    for byte in message.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    if let Some(value) = HeaderValue::from_str(&text).ok().filter(|_| !message.is_empty()) {
        out.insert("grpc-message", value);
    }
    out
}
