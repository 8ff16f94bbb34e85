//! Error bodies of every upstream.

use super::waits::bounded;
use crate::chance::Chance;
use turnkeep_base::limit::EVIDENCE_BYTES;
use turnkeep_base::{ClientError, Dialect};
use turnkeep_dialect::classify::{self, Classified, redact};
use turnkeep_dialect::request::StreamForm;
use turnkeep_dialect::{connect, devin, gemini, messages, reply};

const STATUSES: [u16; 14] = [200, 301, 400, 401, 402, 403, 404, 408, 413, 429, 500, 502, 503, 529];
const MADE_MS: u64 = 1_700_000_000_000;

/// A body, with each of some statuses, for each upstream.
pub fn error_reply(data: &[u8]) {
    let mut chance = Chance::over("status", data);
    let drawn: [u16; 4] = std::array::from_fn(|_| chance.one_of(&STATUSES).copied().unwrap_or(500));
    for status in drawn {
        for upstream in Dialect::ALL {
            let told = classify::reply_at(upstream, status, data, MADE_MS);
            assert_eq!(told, classify::reply_at(upstream, status, data, MADE_MS), "the same reply, another meaning");
            within(&told);
            within(&classify::continued_at(upstream, status, data, MADE_MS));
            let timeless = classify::reply(upstream, status, data);
            within(&timeless);
            assert_eq!((timeless.kind, &timeless.message), (told.kind, &told.message));
        }
        within(&connect::classify::reply_at(status, data, MADE_MS));
        within(&connect::classify::continued_at(status, data, MADE_MS));
        within(&devin::classify::reply_at(status, data, MADE_MS, chance.one_in(2)));
    }
    bounded(&messages::classify::in_stream(data).declared);
    bounded(&gemini::classify::in_stream(data).declared);
    bounded(&connect::classify::in_stream(data).declared);
    for dialect in Dialect::ALL {
        if reply::is_error_body(dialect, data) {
            assert!(serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok(), "{dialect}: passed on, and no JSON");
        }
    }
    ours(data);
}

fn within(told: &Classified) {
    let Classified { kind: _, evidence, message, param, declared, context_too_long: _ } = told;
    assert!(message.len() <= 4 << 10, "a message of {} bytes", message.len());
    assert!(param.as_ref().is_none_or(|param| param.len() <= 256));
    assert!(evidence.detail.len() <= EVIDENCE_BYTES, "evidence of {} bytes", evidence.detail.len());
    assert!(evidence.code.as_ref().is_none_or(|code| code.len() <= 64 && !code.contains(char::is_whitespace)));
    bounded(declared);
    let kept = [Some(message), param.as_ref(), evidence.code.as_ref()];
    for text in kept.into_iter().flatten() {
        assert_eq!(&redact(text), text, "a key in what is kept");
    }
}

/// What the provider said goes to the client in the client's own form.
fn ours(data: &[u8]) {
    let told = classify::reply(Dialect::Chat, 400, data);
    let error = ClientError { param: told.param, ..ClientError::new(400, "invalid_request", told.message) };
    for dialect in Dialect::ALL {
        let (status, body) = reply::error_body(dialect, &error, "turn");
        assert!(status >= 400 && reply::is_error_body(dialect, &body), "{dialect}: what we write is no error body");
        for form in [StreamForm::Events, StreamForm::Array] {
            let event = reply::error_event(dialect, form, true, &error, "turn");
            assert!(!event.is_empty());
        }
    }
}
