//! `thoughtSignature`: a bytes field that SDKs decode and encode again, so all that stands in it is base 64. Gemini's own
//! proof stands in it as Gemini wrote it; another provider's is the standard base 64 of its marked form
//! (`turnkeep.<dialect>.<state>`, Anthropic's too), and is undone when it is read.

use crate::envelope;
use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use base64::{alphabet, engine::DecodePaddingMode};
use std::borrow::Cow;
use turnkeep_base::Dialect;

/// What Gemini documents for a call that it did not make itself.
pub const SENTINEL: &str = "skip_thought_signature_validator";
/// The other word it documents.
const OTHER_SENTINEL: &str = "context_engineering_is_the_way_to_go";
/// What a marked form begins with in base 64. The mark's nine bytes are twelve whole letters, the same in both alphabets.
const MARKED: &str = "dHVybmtlZXAu";

/// Base 64 as clients send it back: Python's SDK writes the alphabet for addresses, and some leave the padding out.
const LAX: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const LAX_STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LAX);
const LAX_URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LAX);

/// A proof in canonical form as it stands in Gemini's JSON.
pub fn shown(sealed: &str) -> Cow<'_, str> {
    match envelope::open(sealed, Dialect::Gemini) {
        Some(own) => Cow::Borrowed(own),
        None if sealed.starts_with(envelope::PREFIX) => Cow::Owned(STANDARD.encode(sealed)),
        None => Cow::Owned(STANDARD.encode(format!("{}{}.{sealed}", envelope::PREFIX, Dialect::Messages.name()))),
    }
}

/// What stands in Gemini's JSON in canonical form; `None` where it proves nothing: empty, a documented placeholder, or a
/// mark of nobody's.
pub fn read(signature: &str) -> Option<String> {
    if signature.is_empty() || is_sentinel(signature) {
        return None;
    }
    if !is_marked(signature) {
        return Some(envelope::seal(Dialect::Gemini, signature).into_owned());
    }
    let bytes = LAX_STANDARD.decode(signature).or_else(|_| LAX_URL_SAFE.decode(signature)).ok()?;
    let sealed = String::from_utf8(bytes).ok()?;
    envelope::origin(&sealed)?;
    // Anthropic's own has no mark in its canonical form.
    Some(envelope::open(&sealed, Dialect::Messages).map_or_else(|| sealed.clone(), str::to_owned))
}

/// It is of another provider's making, by our mark.
pub fn is_marked(signature: &str) -> bool {
    signature.starts_with(MARKED)
}

/// A placeholder that Gemini documents.
pub fn is_sentinel(signature: &str) -> bool {
    signature == SENTINEL || signature == OTHER_SENTINEL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_proof_comes_back_as_it_was_through_json_and_through_an_sdk() {
        for sealed in ["EqQB+/8=", "turnkeep.gemini.c3RhdGU=", "turnkeep.responses.gAAAA~?", "turnkeep.chat.x>?>?>?y"] {
            let json = shown(sealed);
            assert_eq!(read(&json).as_deref(), Some(sealed));
            let respelt = json.replace('+', "-").replace('/', "_");
            if !sealed.starts_with("turnkeep.gemini.") {
                assert!(is_marked(&json), "{json}");
                assert_eq!(read(respelt.trim_end_matches('=')).as_deref(), Some(sealed));
            }
        }
        assert_eq!(shown("turnkeep.gemini.c3RhdGU="), "c3RhdGU=");
    }

    #[test]
    fn what_proves_nothing_is_no_proof() {
        let nobody = STANDARD.encode("turnkeep.unsigned");
        for json in ["", SENTINEL, OTHER_SENTINEL, "dHVybmtlZXAu", "dHVybmtlZXAu!", &nobody] {
            assert_eq!(read(json), None, "{json}");
        }
    }
}
