//! Counts of tokens in the shape of each dialect.

use bytes::Bytes;
use turnkeep_base::Dialect;
use turnkeep_dialect::json::Object;
use turnkeep_dialect::{gemini, messages};

/// The count in an upstream's answer; `None` if it is no such answer.
pub(crate) fn count_reply(upstream: Dialect, body: &[u8]) -> Option<u64> {
    match upstream {
        Dialect::Gemini => gemini::count::count_reply(body),
        // Responses names the number as Messages does.
        Dialect::Chat | Dialect::Responses | Dialect::Messages => messages::count::count_reply(body),
    }
}

/// An answer with a count, for a client of this dialect.
pub fn count_body(client: Dialect, tokens: u64) -> Bytes {
    match client {
        Dialect::Gemini => gemini::count::count_body(tokens),
        Dialect::Messages => messages::count::count_body(tokens),
        Dialect::Chat | Dialect::Responses => {
            let mut out = Vec::new();
            let mut object = Object::open(&mut out);
            object.string("object", "response.input_tokens");
            object.number("input_tokens", tokens);
            drop(object);
            out.into()
        }
    }
}

/// Whether an upstream of this dialect counts tokens.
pub fn counts(upstream: Dialect) -> bool {
    match upstream {
        Dialect::Messages | Dialect::Gemini | Dialect::Responses => true,
        Dialect::Chat => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_responses_count_is_read_and_written_in_its_own_shape() {
        let body = count_body(Dialect::Responses, 42);
        assert_eq!(body, &br#"{"object":"response.input_tokens","input_tokens":42}"#[..]);
        assert_eq!(count_reply(Dialect::Responses, &body), Some(42));
        assert_eq!(count_reply(Dialect::Responses, b"{\"input_tokens\":\"x\"}"), None);
    }
}
