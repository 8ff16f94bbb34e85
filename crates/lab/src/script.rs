//! The script: an ordered list of rules, each a condition on a request and the reply it gets.
//!
//! A script is data only. It is read from TOML (unknown keys are errors that name their line) or built in Rust with
//! the same structs; which rule a request gets is decided in `choose`, and how a reply is played in `play`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use crate::accounts::AccountSpec;
use crate::fault::{AcceptFault, Fault, Point};
use crate::http2;
use crate::rpc_reply::is_reason;

/// What a lab upstream answers, beyond its default behaviour.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// The models this upstream knows. Empty: every name is accepted, and two names are listed.
    pub models: Vec<String>,
    /// Tried in order; the first which matches and is not spent answers.
    pub rule: Vec<Rule>,
    /// Faults at accepting a connection, before any request can be read; tried in order.
    pub accept: Vec<AcceptRule>,
    /// Accounts that are not simply valid.
    pub account: Vec<AccountSpec>,
}

/// A script that could not be read; the message names line and column.
#[derive(Debug, thiserror::Error)]
#[error("the lab script is not valid: {0}")]
pub struct ScriptError(#[from] toml::de::Error);

impl Script {
    /// Reads a script from TOML.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        Ok(toml::from_str(text)?)
    }

    /// A script of these rules.
    pub fn of(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self { rule: rules.into_iter().collect(), ..Self::default() }
    }
}

/// A fault at accepting a connection.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptRule {
    /// What goes wrong.
    pub fault: AcceptFault,
    /// How many connections it takes; without it, every one.
    pub times: Option<u32>,
}

/// One rule: which requests it takes, and what they get. Every unset condition matches; every unset part of the reply
/// is what the lab would do by itself, so that a rule may be only a fault.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, remote = "Self")]
pub struct Rule {
    /// The path without its query, exactly.
    pub path: Option<String>,
    /// The body's `model`; `*` matches any run of characters.
    pub model: Option<String>,
    /// The credential as sent (the bearer token or `x-api-key`); `*` as above.
    pub account: Option<String>,
    /// Whether the body asks for a stream.
    pub stream: Option<bool>,
    /// A text the body's bytes contain.
    pub body_contains: Option<String>,
    /// Only the nth request (from 1) that meets the conditions above.
    pub nth: Option<u32>,
    /// The rule is spent after this many replies.
    pub times: Option<u32>,
    /// Every so many requests of those (with 3: the third, the sixth, and so on).
    pub every: Option<u32>,
    /// `nth`, `every` and `times` count for each account by itself.
    pub per_account: bool,
    /// Also takes requests that the lab's own checks (credential, account, protocol) would refuse.
    pub skip_checks: bool,

    /// The reply's text.
    pub text: Option<String>,
    /// A reply of this many numbered words, instead of `text`.
    pub words: Option<u32>,
    /// Wait before each word, in milliseconds.
    pub word_delay_ms: u64,
    /// A thinking block before the text.
    pub thinking: Option<String>,
    /// The thinking block's signature, instead of the lab's own.
    pub signature: Option<String>,
    /// Tool calls after the text.
    pub tool_calls: Vec<ToolCall>,
    /// Fragments of several tool calls alternate (Chat only: Messages has one open block at a time).
    pub interleave: bool,
    /// Characters of a tool call's arguments in one fragment.
    pub fragment_chars: Option<usize>,
    /// The model refuses, with this explanation.
    pub refusal: Option<String>,
    /// Why the reply ends: `stop`, `length`, `stop_sequence`, `tool_calls`, `refusal`, or a word sent as it is.
    pub finish: Option<String>,
    /// Token counts to report instead of counted words.
    pub usage: UsageSpec,

    /// The body, literally.
    pub raw: Option<String>,
    /// The body, literally, as bytes (in TOML `raw_base64`).
    #[serde(rename = "raw_base64", deserialize_with = "base64")]
    pub raw_bytes: Option<Vec<u8>>,
    /// The body in pieces, literally; each piece counts as a word for `word_delay_ms` and points.
    pub raw_frames: Vec<String>,
    /// The status of the reply (200 without it).
    pub status: Option<u16>,
    /// Headers added to the reply; a header the lab sets itself is replaced. `{date+30}`, `{rfc3339+30}`, `{unix+30}` and
    /// `{unix_ms+30}` in a value become the time of the reply and so many seconds more (or less, with `-`).
    pub headers: BTreeMap<String, String>,
    /// Compresses the reply.
    pub content_encoding: Option<ContentEncoding>,
    /// Cuts the body into pieces of this many bytes, each its own write.
    pub chunk_bytes: Option<usize>,
    /// Wait before the reply's headers, in milliseconds.
    pub before_headers_delay_ms: u64,
    /// The reply waits at `gate_at` until this gate is released.
    pub gate: Option<String>,
    /// Where the reply waits for `gate` (before the headers without it).
    pub gate_at: Option<Point>,
    /// Further gates.
    pub gates: Vec<Gate>,

    /// What goes wrong.
    pub fault: Option<Fault>,
    /// Where it goes wrong; each fault has a usual place.
    pub fault_at: Option<Point>,
    /// Size of `oversized_event` and `header_overflow`.
    pub fault_bytes: Option<usize>,
    /// The code of `rst_stream`, `http2_goaway_refusing`: HTTP/2's name for it in lower case, or its number.
    pub fault_code: Option<String>,
    /// An error reply in the path's dialect; with the fault `error_in_stream`, the error event. A call's error has the
    /// `code` of Connect, else that of the status.
    pub error: Option<ErrorSpec>,
    /// A Cascade start or send is refused.
    pub refuse: Option<RefusalSpec>,
    /// A Cascade turn that is taken fails after its first word.
    pub fail: Option<RefusalSpec>,
    /// A Cascade send is taken although the reply is an error or a refusal.
    pub takes_anyway: bool,
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let rule = Rule::deserialize(source)?;
        rule.check().map_err(D::Error::custom)?;
        Ok(rule)
    }
}

impl Rule {
    fn check(&self) -> Result<(), &'static str> {
        if self.text.is_some() && self.words.is_some() {
            return Err("`text` and `words` exclude each other");
        }
        let bodies = [self.raw.is_some(), self.raw_bytes.is_some(), !self.raw_frames.is_empty()];
        if bodies.iter().filter(|given| **given).count() > 1 {
            return Err("`raw`, `raw_base64` and `raw_frames` exclude each other");
        }
        let literal = bodies.contains(&true);
        if literal && (self.composes() || self.error.is_some()) {
            return Err(
                "`raw`, `raw_base64` and `raw_frames` are the whole body: no text, thinking, tool calls, refusal or error",
            );
        }
        if self.signature.is_some() && self.thinking.is_none() {
            return Err("`signature` needs `thinking`");
        }
        if self.gate_at.is_some() && self.gate.is_none() {
            return Err("`gate_at` needs `gate`");
        }
        if self.fault_at.is_some() && self.fault.is_none() {
            return Err("`fault_at` needs `fault`");
        }
        if self.fault_bytes.is_some_and(|bytes| bytes > MAX_FAULT_BYTES) {
            return Err("`fault_bytes` may be at most 67108864");
        }
        if self.words.is_some_and(|words| words > MAX_WORDS) {
            return Err("`words` may be at most 1000000");
        }
        if [self.nth, self.every].contains(&Some(0)) || [self.chunk_bytes, self.fragment_chars].contains(&Some(0)) {
            return Err("`chunk_bytes`, `fragment_chars`, `nth` and `every` start at 1");
        }
        if self.fault_code.as_deref().is_some_and(|code| http2::code(code).is_none()) {
            return Err("`fault_code` is HTTP/2's name of an error in lower case, or its number");
        }
        if self.fault_code.is_some() && !matches!(self.fault, Some(Fault::RstStream | Fault::Http2GoawayRefusing)) {
            return Err("`fault_code` needs the fault `rst_stream` or `http2_goaway_refusing`");
        }
        let coded = matches!(self.fault, Some(Fault::BadEncoding | Fault::TruncatedEncoding));
        if coded && self.content_encoding.is_none() {
            return Err("`bad_encoding` and `truncated_encoding` need `content_encoding`");
        }
        let reasons = self.refuse.iter().chain(&self.fail);
        if reasons.into_iter().any(|spec| !is_reason(&spec.reason)) {
            return Err("`reason` is one of Cascade's, in lower case and without its `REASON_`");
        }
        if self.status.is_some_and(|status| !(200..=599).contains(&status)) {
            return Err("`status` is 200 to 599");
        }
        for (name, value) in &self.headers {
            if http::HeaderName::from_bytes(name.as_bytes()).is_err() || http::HeaderValue::from_str(value).is_err() {
                return Err("`headers` holds a name or value that is not legal (see the fault `bad_header`)");
            }
        }
        Ok(())
    }

    /// Whether the rule says itself what the model answers.
    pub(crate) fn composes(&self) -> bool {
        self.text.is_some()
            || self.words.is_some()
            || self.thinking.is_some()
            || !self.tool_calls.is_empty()
            || self.refusal.is_some()
    }
}

fn base64<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Vec<u8>>, D::Error> {
    let text = String::deserialize(source)?;
    STANDARD.decode(text.trim()).map(Some).map_err(|error| D::Error::custom(format!("`raw_base64`: {error}")))
}

/// The largest size a fault may have, in bytes.
pub const MAX_FAULT_BYTES: usize = 64 * 1024 * 1024;
/// The longest reply made by `words`.
pub const MAX_WORDS: u32 = 1_000_000;

/// A tool call of a reply.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The tool's name.
    pub name: String,
    /// The arguments, a JSON text sent as it is.
    #[serde(default = "no_arguments")]
    pub arguments: String,
    /// The call's id, instead of a counted one.
    pub id: Option<String>,
}

fn no_arguments() -> String {
    "{}".to_owned()
}

/// A named gate in a reply.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// The name to release it by.
    pub name: String,
    /// Where the reply waits.
    pub at: Point,
}

/// Token counts; what is unset is counted.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UsageSpec {
    /// All input tokens, those read from and written to a cache included.
    pub prompt: Option<u64>,
    /// All output tokens, reasoning included.
    pub completion: Option<u64>,
    /// Input tokens read from a cache.
    pub cached: Option<u64>,
    /// Input tokens written to a cache.
    pub cache_write: Option<u64>,
    /// Output tokens spent on reasoning.
    pub reasoning: Option<u64>,
}

/// An error, rendered in the dialect of the request's path.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ErrorSpec {
    /// The HTTP status (500 without it; not used inside a stream).
    pub status: Option<u16>,
    /// The error's `type`; the dialect's usual one for the status without it.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Chat: the error's `code`. Messages: `details.error_code`.
    pub code: Option<String>,
    /// The error's message.
    pub message: Option<String>,
    /// Chat: the error's `param`.
    pub param: Option<String>,
    /// Seconds for a `retry-after` header.
    pub retry_after: Option<u64>,
}

/// Why a Cascade turn is refused, or fails.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RefusalSpec {
    /// As the schema names it, in lower case and without `REASON_`: `policy`, `rate`, `credential`, …
    pub reason: String,
    /// In words.
    pub message: Option<String>,
    /// After how many milliseconds to ask again; 0 is not told.
    pub retry_after_ms: u64,
    /// The limit is that of the model alone.
    pub of_model: bool,
}

impl RefusalSpec {
    /// A reason and nothing else.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..Self::default() }
    }
}

/// How a reply's body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentEncoding {
    /// RFC 1952.
    Gzip,
    /// Brotli.
    Br,
    /// Zstandard.
    Zstd,
    /// The zlib form, which is what HTTP means by the name.
    Deflate,
}

impl ContentEncoding {
    /// Its name in headers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Br => "br",
            Self::Zstd => "zstd",
            Self::Deflate => "deflate",
        }
    }
}
