//! Proofs of thinking in Gemini's JSON. `thoughtSignature` is a field of bytes there: SDKs decode its base 64 and encode
//! it again, some in the alphabet for URLs. Gemini's own state stands in it as it is; any other as the base 64 of its
//! text, with its maker's name, so that it is known when it comes back.

use crate::envelope::{self, FROM_MESSAGES, PREFIX, REDACTED};
use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use turnkeep_base::Dialect;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What a `thoughtSignature` holds, in the form of [`envelope`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The proof of the thinking before it.
    Thinking(String),
    /// A thinking that only its maker can read.
    Redacted(String),
}

/// Reads a `thoughtSignature`.
pub(crate) fn read(state: &str) -> Proof {
    let ours = undone(state).filter(|text| text.starts_with(PREFIX));
    let Some(ours) = ours else { return Proof::Thinking(envelope::seal(Dialect::Gemini, state).into_owned()) };
    match ours.strip_prefix(REDACTED) {
        Some(redacted) => Proof::Redacted(unmarked(redacted)),
        None => Proof::Thinking(unmarked(&ours)),
    }
}

fn undone(state: &str) -> Option<String> {
    String::from_utf8(bytes(state)?).ok()
}

/// The bytes, in either alphabet, padded or not.
fn bytes(state: &str) -> Option<Vec<u8>> {
    let standard: Vec<u8> = state
        .bytes()
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            byte => byte,
        })
        .collect();
    LENIENT.decode(standard).ok()
}

fn unmarked(text: &str) -> String {
    envelope::seal(Dialect::Messages, text).into_owned()
}

/// The `thoughtSignature` for a client, which decodes it; none for a state that is nobody's, or is no bytes.
pub(crate) fn shown(sealed: &str) -> Option<String> {
    match envelope::origin(sealed)? {
        Dialect::Gemini => Some(STANDARD.encode(bytes(envelope::open(sealed, Dialect::Gemini)?)?)),
        Dialect::Chat | Dialect::Responses | Dialect::Messages => Some(STANDARD.encode(marked(sealed))),
    }
}

/// The `thoughtSignature` that stands for a thinking which only its maker can read; none if that is nobody.
pub(crate) fn shown_redacted(sealed: &str) -> Option<String> {
    envelope::origin(sealed)?;
    Some(STANDARD.encode(format!("{REDACTED}{}", marked(sealed))))
}

fn marked(sealed: &str) -> String {
    if sealed.starts_with(PREFIX) { sealed.to_owned() } else { format!("{FROM_MESSAGES}{sealed}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_comes_back_as_it_was_also_in_the_alphabet_for_urls() {
        for sealed in ["turnkeep.gemini.c3RhdGU=", "turnkeep.responses.gAAA~~??>>", "turnkeep.chat.djE", "ErUB+/x=="] {
            let standard = shown(sealed).unwrap();
            let redacted = shown_redacted(sealed).unwrap();
            for change in [
                |text: &str| text.to_owned(),
                |text: &str| text.replace('+', "-").replace('/', "_").trim_end_matches('=').to_owned(),
            ] {
                if !sealed.starts_with("turnkeep.gemini.") {
                    assert_eq!(read(&change(&standard)), Proof::Thinking(sealed.to_owned()));
                }
                assert_eq!(read(&change(&redacted)), Proof::Redacted(sealed.to_owned()));
            }
            assert!(STANDARD.decode(&standard).is_ok(), "{standard}");
        }
        assert_eq!(shown("turnkeep.gemini.c3RhdGU=").unwrap(), "c3RhdGU=");
        // As a server of another dialect may have passed it on.
        assert_eq!(shown("turnkeep.gemini._-_-AA").unwrap(), "/+/+AA==");
        assert_eq!(shown("turnkeep.gemini.no bytes"), None);
        assert_eq!(read("c3RhdGU="), Proof::Thinking("turnkeep.gemini.c3RhdGU=".into()));
    }

    #[test]
    fn what_is_no_base_64_is_geminis_own_and_what_is_nobodys_is_not_shown() {
        assert_eq!(read("~"), Proof::Thinking("turnkeep.gemini.~".into()));
        assert_eq!((shown(envelope::UNSIGNED), shown(""), shown_redacted("")), (None, None, None));
    }
}
