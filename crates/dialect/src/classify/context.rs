//! Whether a refused request is longer than the model's window, which a larger model may have: named codes anywhere,
//! wording outside quotations, and where nothing but the request is at fault.

use super::said::Said;
use super::wording::contains;
use turnkeep_base::FaultKind;

const CODES: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size_error",
    "context_window_exceeded",
    "contextwindowexceedederror",
    "context_too_long",
    "model_context_window_exceeded",
    "prompt_too_long",
];

/// As OpenAI, Anthropic, Gemini, llama.cpp, vLLM, Mistral, xAI, Bedrock, Moonshot and others say it.
const WORDS: &[&str] = &[
    "maximum context length",
    "maximum model length",
    "maximum prompt length",
    "context length is only",
    "exceeds the context",
    "exceed the context",
    "exceeds context",
    "exceed context",
    "exceeds the available context",
    "exceeds the model's context",
    "exceeds the model's maximum",
    "exceeds the maximum number of tokens",
    "exceed the model's maximum",
    "exceeded model token limit",
    "exceed model limit",
    "prompt is too long",
    "input is too long",
    "input too long",
    "prompt exceeds max length",
    "context window exceeded",
    "context length exceeded",
    "larger than the context",
    "longer than the context",
    "too large for model with",
];

/// Statuses whose wording is believed; none is an error inside a stream.
const STATUSES: &[u16] = &[400, 413, 422, 429];

/// Whether it is. `kind` is what the error means.
pub(crate) fn is_too_long(kind: FaultKind, status: Option<u16>, said: &Said) -> bool {
    kind == FaultKind::RequestInvalid
        && (CODES.iter().any(|code| said.names(code))
            || (status.is_none_or(|status| STATUSES.contains(&status)) && contains(&said.unquoted, WORDS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: &str, message: &str) -> Said {
        Said { code: code.into(), unquoted: crate::classify::wording::unquoted(message), ..Said::default() }
    }

    #[test]
    fn every_code_and_wording_is_known_and_only_a_request_can_be_too_long() {
        for code in CODES {
            assert!(is_too_long(FaultKind::RequestInvalid, Some(500), &said(code, "")), "{code}");
            assert!(!is_too_long(FaultKind::RateLimited, Some(429), &said(code, "")), "{code}");
        }
        for words in WORDS {
            for status in [None, Some(400), Some(413), Some(422), Some(429)] {
                assert!(is_too_long(FaultKind::RequestInvalid, status, &said("", words)), "{words}");
            }
            for status in [401, 404, 405, 409, 415, 500] {
                assert!(!is_too_long(FaultKind::RequestInvalid, Some(status), &said("", words)), "{status} {words}");
            }
            let quoted = format!("role `{words}` and \"{words}\" are not allowed");
            assert!(!is_too_long(FaultKind::RequestInvalid, Some(400), &said("", &quoted)), "{quoted}");
        }
    }

    #[test]
    fn the_sentences_of_providers_are_recognised() {
        for message in [
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 200001 tokens.",
            "prompt is too long: 208310 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            "the request exceeds the available context size (4096 tokens), try increasing it",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
            "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
            "Input is too long for requested model.",
            "Invalid request: Your request exceeded model token limit: 131072",
            "Requested tokens (5000) exceed context window of 4096",
        ] {
            assert!(is_too_long(FaultKind::RequestInvalid, Some(400), &said("", message)), "{message}");
        }
        for message in
            ["max_tokens is too large: 99999999", "string too long", "the request body is too large", "too many tools"]
        {
            assert!(!is_too_long(FaultKind::RequestInvalid, Some(400), &said("", message)), "{message}");
        }
    }
}
