//! The kinds of upstream this crate drives: which wire protocol, and where the credential goes.

use http::{HeaderName, HeaderValue};
use turnkeep_base::{Dialect, Secret};

/// A provider's wire protocol, by the name it has in the configuration. All of these kinds are replay-safe: nothing that a
/// turn needs is kept between turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// OpenAI Chat Completions and what is compatible with it.
    OpenAi,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini generateContent.
    Gemini,
}

impl Kind {
    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Kind::OpenAi => "openai",
            Kind::OpenAiResponses => "openai-responses",
            Kind::Anthropic => "anthropic",
            Kind::Gemini => "gemini",
        }
    }

    /// The dialect its bodies are written in.
    pub fn dialect(self) -> Dialect {
        match self {
            Kind::OpenAi => Dialect::Chat,
            Kind::OpenAiResponses => Dialect::Responses,
            Kind::Anthropic => Dialect::Messages,
            Kind::Gemini => Dialect::Gemini,
        }
    }

    /// The header that carries the secret, or `None` if the secret cannot stand in a header. Marked sensitive, so that
    /// it is not printed and not put into an HTTP/2 compression table.
    pub(crate) fn credential(self, secret: &Secret) -> Option<(HeaderName, HeaderValue)> {
        let text = secret.expose();
        if text.is_empty() {
            return None;
        }
        let (name, value) = match self {
            Kind::OpenAi | Kind::OpenAiResponses => {
                (http::header::AUTHORIZATION, HeaderValue::try_from(format!("Bearer {text}")))
            }
            Kind::Anthropic => (X_API_KEY, HeaderValue::from_str(text)),
            Kind::Gemini => (X_GOOG_API_KEY, HeaderValue::from_str(text)),
        };
        let mut value = value.ok()?;
        value.set_sensitive(true);
        Some((name, value))
    }
}

pub(crate) const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
pub(crate) const X_GOOG_API_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");
pub(crate) const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
/// Sent when the client named none.
pub(crate) const ANTHROPIC_VERSION_DEFAULT: HeaderValue = HeaderValue::from_static("2023-06-01");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_puts_the_secret_where_its_provider_wants_it() {
        let secret = Secret::new("sk-1".into());
        let (name, value) = Kind::OpenAi.credential(&secret).unwrap();
        assert_eq!((name.as_str(), value.as_bytes()), ("authorization", &b"Bearer sk-1"[..]));
        let (name, value) = Kind::Anthropic.credential(&secret).unwrap();
        assert_eq!((name.as_str(), value.as_bytes()), ("x-api-key", &b"sk-1"[..]));
        assert_eq!(format!("{value:?}"), "Sensitive");
    }

    #[test]
    fn a_secret_that_cannot_stand_in_a_header_is_no_credential() {
        for text in ["", "a\nb"] {
            let secret = Secret::new(text.into());
            assert!(Kind::OpenAi.credential(&secret).is_none());
            assert!(Kind::Anthropic.credential(&secret).is_none());
        }
    }
}
