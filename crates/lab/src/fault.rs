//! What can go wrong, by name, and the places in a reply where it can.

use std::str::FromStr;

use serde::Deserialize;

/// A fault in answering one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// TCP reset before a byte of the reply.
    ResetBeforeReply,
    /// Orderly TCP close before a byte of the reply.
    CloseBeforeReply,
    /// TCP reset inside the body.
    ResetMidStream,
    /// TCP close inside the body, which HTTP calls incomplete.
    CloseMidStream,
    /// The body ends as HTTP wants it, but the dialect's end never came.
    NoTerminal,
    /// The end mark without the event that says why (`[DONE]` without `finish_reason`).
    DoneWithoutFinish,
    /// Silence until the peer leaves.
    Hang,
    /// An event (or body) that is not JSON; then the reply goes on.
    BadJson,
    /// An event whose bytes are not UTF-8; then the reply goes on.
    BadSse,
    /// A 502 with a page of HTML.
    Html,
    /// HTTP/1 chunk framing that is not legal.
    BadChunk,
    /// A header larger than a client should take.
    HeaderOverflow,
    /// A header line that is not legal.
    BadHeader,
    /// An error event inside a 200 stream, and no more.
    ErrorInStream,
    /// One event of many bytes; then the reply goes on.
    OversizedEvent,
    /// HTTP/2: `GOAWAY` while the reply goes on. HTTP/1: `connection: close` where still possible.
    Http2Goaway,
    /// HTTP/2: `GOAWAY` that counts this stream as not processed, and silence on it. HTTP/1: the connection is closed.
    Http2GoawayRefusing,
    /// HTTP/2: this stream is reset, the connection lives. HTTP/1: the connection is dropped.
    RstStream,
    /// Bytes that do not belong to the compressed body (`content_encoding`) stand in the middle of it.
    BadEncoding,
    /// The compressed body ends as HTTP wants it, but the compression's own end is missing.
    TruncatedEncoding,
    /// A Cascade watch begins with the conversation's first step, and says every step twice.
    RepeatSteps,
    /// A Cascade watch leaves out the step of its second word.
    SkipStep,
}

impl Fault {
    /// Where it happens when the script does not say.
    pub(crate) fn usual_place(self) -> Point {
        match self {
            Self::ResetBeforeReply
            | Self::CloseBeforeReply
            | Self::Html
            | Self::HeaderOverflow
            | Self::BadHeader
            | Self::Hang
            | Self::RepeatSteps
            | Self::SkipStep
            | Self::Http2Goaway
            | Self::Http2GoawayRefusing => Point::BeforeHeaders,
            Self::ErrorInStream => Point::AfterPreamble,
            Self::ResetMidStream
            | Self::CloseMidStream
            | Self::BadChunk
            | Self::BadJson
            | Self::BadSse
            | Self::OversizedEvent
            | Self::BadEncoding
            | Self::RstStream => Point::AfterWords(1),
            Self::NoTerminal | Self::DoneWithoutFinish | Self::TruncatedEncoding => Point::BeforeTerminal,
        }
    }
}

/// A fault in accepting a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AcceptFault {
    /// A fatal TLS alert in answer to the ClientHello.
    TlsAlert,
    /// Plain HTTP in answer to the ClientHello.
    TlsWrongVersion,
    /// TCP reset at once.
    ResetOnAccept,
    /// TCP close at once.
    CloseOnAccept,
    /// Nothing is read or written until the peer leaves.
    HangOnAccept,
}

/// A place in a reply. Of a reply that is not streamed, `after_words` and `before_terminal` are the middle of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// Before the status line.
    BeforeHeaders,
    /// After the events that open a stream, before content.
    AfterPreamble,
    /// After this many words of content (thinking, text, or fragments of arguments).
    AfterWords(u32),
    /// Before the event that says why the reply ends.
    BeforeTerminal,
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!("`{text}` is no place in a reply: before_headers, after_preamble, after_words N or before_terminal")
        };
        match text {
            "before_headers" => Ok(Self::BeforeHeaders),
            "after_preamble" => Ok(Self::AfterPreamble),
            "before_terminal" => Ok(Self::BeforeTerminal),
            _ => {
                let count = text.strip_prefix("after_words ").ok_or_else(bad)?;
                count.trim().parse().map(Self::AfterWords).map_err(|_| bad())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Point {
    fn deserialize<D: serde::Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        String::deserialize(source)?.parse().map_err(serde::de::Error::custom)
    }
}
