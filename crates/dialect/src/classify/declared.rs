//! What an error body declares of its provider's limits: the wait, the windows that are used up, and whether the limit is
//! the model's. Fields come before wording. Only errors that speak of a limit or a lack of capacity declare anything.

use super::said::Said;
use crate::json::{Invalid, Kind, Reader};
use crate::windows::{from_headers, moment, span};
use std::time::Duration;
use turnkeep_base::limit::WINDOWS;
use turnkeep_base::{Declared, FaultKind, LimitScope, Window};

/// How deep fields are looked for.
const DEPTH: u8 = 8;
/// Headers that are read of those that a body repeats, and bytes of each.
const HEADERS: usize = 64;
const HEADER_BYTES: usize = 128;

/// What is declared. `made_ms` is when the reply was made; 0 is unknown, and then moments say nothing.
pub(crate) fn declared(kind: FaultKind, said: &Said, body: &str, made_ms: u64) -> Declared {
    let speaks_of_limits = matches!(
        kind,
        FaultKind::RateLimited
            | FaultKind::QuotaExhausted
            | FaultKind::ModelOverloaded
            | FaultKind::UpstreamUnavailable
            | FaultKind::UpstreamInternal
    );
    if !speaks_of_limits {
        return Declared::default();
    }
    let mut found = Found { made_ms, ..Found::default() };
    // What was read before a text breaks off is still said.
    let _ = found.value(&mut Reader::over(body), 0);
    let limited = matches!(kind, FaultKind::RateLimited | FaultKind::QuotaExhausted);
    let of_model = found.of_model || (found.quota && found.model);
    let names_model = limited && (of_model || names_model(&said.unquoted));
    let scope = if names_model {
        LimitScope::Model
    } else if kind == FaultKind::QuotaExhausted {
        LimitScope::Quota
    } else {
        LimitScope::Account
    };
    let wait = found.wait.or(found.resets).or_else(|| spoken(&said.outside));
    let mut windows = Vec::new();
    // A reset, and a violated quota, say which count is at 0.
    let window = found.resets.or(found.wait.filter(|_| found.violated)).filter(|_| limited);
    windows.extend(window.map(|wait| Window { scope, wait }));
    let headers = found.headers.unwrap_or_default();
    windows.extend(headers.windows);
    windows.truncate(WINDOWS);
    Declared { wait: wait.or(headers.wait), windows, names_model: names_model || headers.names_model }
}

/// The longest wait that is believed of a message. What is longer, providers say in a field or a header.
const SPOKEN: Duration = Duration::from_mins(10);

/// The wait that a message speaks of: a sentence of its own, as providers say it, with nothing else behind the length. Of
/// several the shortest, since one may be a caller's.
fn spoken(message: &str) -> Option<Duration> {
    const SENTENCES: &[&str] = &[
        "try again in ",
        "try again after ",
        "retry in ",
        "retry after ",
        "retrying in ",
        "resets in ",
        "reset in ",
        "reset after ",
        "available in ",
        "wait ",
        "wait for ",
        "you must wait ",
    ];
    let waits = |at: usize| {
        let sentence = message[at..].trim_start();
        let sentence = sentence.strip_prefix("please ").unwrap_or(sentence);
        SENTENCES.iter().find_map(|start| span::spoken(whole(sentence.strip_prefix(start)?)?))
    };
    let starts = message.match_indices(['.', '!', '?', ',', ';', '\n']).map(|(at, mark)| (at + 1, mark == "\n"));
    let after_space =
        starts.filter(|&(at, line)| line || message[at..].starts_with(char::is_whitespace)).map(|(at, _)| at);
    std::iter::once(0).chain(after_space).filter_map(waits).filter(|wait| *wait <= SPOKEN).filter_map(span::worth).min()
}

/// The length at the text's beginning, up to the sentence's end; none if the sentence goes on with anything else.
fn whole(text: &str) -> Option<&str> {
    let end = text
        .match_indices(['.', '!', ';'])
        .map(|(at, _)| at)
        .find(|&at| text[at + 1..].chars().next().is_none_or(char::is_whitespace));
    let sentence = &text[..end.unwrap_or(text.len())];
    let unit = |word: &str| {
        let word = word.trim_matches([',', '(', ')']);
        word.starts_with(|char: char| char.is_ascii_digit())
            || matches!(
                word,
                "ms" | "millisecond"
                    | "milliseconds"
                    | "s"
                    | "sec"
                    | "secs"
                    | "second"
                    | "seconds"
                    | "min"
                    | "mins"
                    | "minute"
                    | "minutes"
                    | "hour"
                    | "hours"
                    | "day"
                    | "days"
                    | "and"
            )
    };
    let ends = |word: &str| matches!(word, "before" | "to" | "or");
    sentence.split_whitespace().take_while(|word| !ends(word)).all(unit).then_some(sentence)
}

/// Whether a message says that the limit is the model's: OpenAI and Groq, Anthropic, Gemini and Vertex.
fn names_model(message: &str) -> bool {
    let openai = message.strip_prefix("rate limit reached for ").is_some_and(|rest| {
        let model = rest.split(" in organization ").next().filter(|model| model.len() < rest.len());
        model.is_some_and(|model| !matches!(model, "requests" | "tokens") && !model.is_empty())
    });
    openai
        || (message.contains("rate limit of ") && message.contains(", model: "))
        || (message.contains("quota exceeded for ")
            && [", model: ", "with base model: "].iter().any(|names| message.contains(names)))
}

#[derive(Default)]
struct Found {
    made_ms: u64,
    wait: Option<Duration>,
    resets: Option<Duration>,
    violated: bool,
    of_model: bool,
    /// A reset of Google's tools was read, and a model's name: beside each other they say whose quota it is.
    quota: bool,
    model: bool,
    headers: Option<Declared>,
}

impl Found {
    fn value(&mut self, r: &mut Reader<'_>, depth: u8) -> Result<(), Invalid> {
        if depth > DEPTH {
            return r.skip().map(drop);
        }
        match r.kind()? {
            Kind::Object => r.object(|r, key| self.field(r, key, depth)),
            Kind::Array => r.array(|r, _| self.value(r, depth + 1)),
            Kind::String | Kind::Number | Kind::Bool | Kind::Null => r.skip().map(drop),
        }
    }

    fn field(&mut self, r: &mut Reader<'_>, key: &str, depth: u8) -> Result<(), Invalid> {
        match key {
            "error" | "errors" | "detail" | "details" | "metadata" | "debug" | "response" => self.value(r, depth + 1),
            "violations" => {
                self.violated = true;
                self.value(r, depth + 1)
            }
            "quotaDimensions" if r.kind()? == Kind::Object => r.object(|r, key| {
                self.of_model |= key == "model";
                r.skip().map(drop)
            }),
            "headers" if r.kind()? == Kind::Object => self.read_headers(r),
            "retryDelay" | "retry_delay" => {
                let wait = delay(r)?;
                self.waits(wait);
                Ok(())
            }
            "retry_after" | "retryAfter" | "retry_after_seconds" | "retryAfterSeconds" => {
                let wait = text(r)?.and_then(|text| span::length(&text));
                self.waits(wait);
                Ok(())
            }
            "retry_after_ms" | "retryAfterMs" => {
                let wait = text(r)?.and_then(|text| span::millis(&text));
                self.waits(wait);
                Ok(())
            }
            "resets_in_seconds" | "resetsInSeconds" | "reset_after_seconds" | "reset_seconds" => {
                let wait = text(r)?.and_then(|text| span::seconds(&text));
                self.resets(wait);
                Ok(())
            }
            "quotaResetDelay" => {
                let wait = text(r)?.and_then(|text| span::units(&text));
                self.quota = true;
                self.resets(wait);
                Ok(())
            }
            "model" => {
                self.model |= text(r)?.is_some_and(|model| !model.is_empty());
                Ok(())
            }
            "resets_at" | "reset_at" | "resetsAt" | "quotaResetTimeStamp" => {
                let wait = text(r)?.and_then(|text| {
                    let at = moment::number(&text).or_else(|| moment::rfc3339(&text))?;
                    moment::until(at, self.made_ms)
                });
                self.resets(wait);
                Ok(())
            }
            _ => r.skip().map(drop),
        }
    }

    fn waits(&mut self, wait: Option<Duration>) {
        self.wait = self.wait.max(wait.and_then(span::worth));
    }

    /// A length is more exact than the moment beside it, so the first one that is read stays.
    fn resets(&mut self, wait: Option<Duration>) {
        self.resets = self.resets.or(wait.and_then(span::worth));
    }

    /// The upstream's own headers, which routers and sockets repeat in the body.
    fn read_headers(&mut self, r: &mut Reader<'_>) -> Result<(), Invalid> {
        let mut headers = Vec::new();
        r.object::<Invalid>(|r, key| {
            let value = text(r)?.filter(|value| value.len() <= HEADER_BYTES && key.len() <= HEADER_BYTES);
            if let Some(value) = value.filter(|_| headers.len() < HEADERS) {
                headers.push((key.to_ascii_lowercase(), value));
            }
            Ok(())
        })?;
        let get = |name: &str| headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str());
        self.headers = Some(from_headers(&get, self.made_ms));
        Ok(())
    }
}

/// A string, or a number as it is written; anything else is skipped.
fn text(r: &mut Reader<'_>) -> Result<Option<String>, Invalid> {
    match r.kind()? {
        Kind::String => r.string().map(|text| Some(text.into_owned())),
        Kind::Number => r.number().map(|number| Some(number.to_owned())),
        Kind::Object | Kind::Array | Kind::Bool | Kind::Null => r.skip().map(|_| None),
    }
}

/// A protobuf duration: `"13s"`, `"0.5s"`, or seconds and nanoseconds in an object.
fn delay(r: &mut Reader<'_>) -> Result<Option<Duration>, Invalid> {
    if r.kind()? != Kind::Object {
        return Ok(text(r)?.and_then(|text| span::length(&text)));
    }
    let (mut seconds, mut nanos) = (Some(Duration::ZERO), Some(0));
    r.object::<Invalid>(|r, key| {
        match key {
            "seconds" => seconds = text(r)?.and_then(|text| span::seconds(&text)),
            "nanos" => {
                nanos = text(r)?.and_then(|text| text.parse::<u32>().ok()).filter(|nanos| *nanos < 1_000_000_000)
            }
            _ => {
                r.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(seconds.zip(nanos).and_then(|(seconds, nanos)| seconds.checked_add(Duration::from_nanos(u64::from(nanos)))))
}
