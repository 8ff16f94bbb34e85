//! What stands in `thoughtSignature` besides proofs: the placeholders that Gemini documents, and our mark of another
//! provider's proof.

/// What Gemini documents for a call that it did not make itself.
pub(super) const SENTINEL: &str = "skip_thought_signature_validator";
/// The other word it documents.
const OTHER_SENTINEL: &str = "context_engineering_is_the_way_to_go";
/// What `turnkeep.` begins with in base 64. Its nine bytes are twelve whole letters, the same in both alphabets.
const MARKED: &str = "dHVybmtlZXAu";

/// A placeholder that Gemini documents.
pub(super) fn is_sentinel(signature: &str) -> bool {
    signature == SENTINEL || signature == OTHER_SENTINEL
}

/// It is of another provider's making, by our mark.
pub(super) fn is_marked(signature: &str) -> bool {
    signature.starts_with(MARKED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemini::proof;

    #[test]
    fn every_proof_but_geminis_own_is_known_by_its_mark() {
        for sealed in ["EqQB+/8=", "turnkeep.responses.gAAAA~?", "turnkeep.chat.x>?"] {
            assert!(is_marked(&proof::shown(sealed).unwrap()), "{sealed}");
            assert!(is_marked(&proof::shown_redacted(sealed).unwrap()), "{sealed}");
        }
        for own in ["turnkeep.gemini.c3RhdGU=", "turnkeep.gemini.dHVybmtlZXA="] {
            assert!(!is_marked(&proof::shown(own).unwrap()), "{own}");
        }
    }
}
