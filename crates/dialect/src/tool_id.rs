//! Tool call ids across dialects. Messages takes only letters, digits, `_` and `-`; Chat servers name calls as they like
//! (`functions.Bash:0`). An id that does not fit is wrapped so that no two ids meet, and unwrapped on its way back.
//!
//! Both halves of a call, the call and its result, go through the same function, so they always agree.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::borrow::Cow;

/// What a wrapped id begins with; an id that begins so by itself is wrapped too.
const WRAPPED: &str = "tkid_";

/// The id in the letters that Messages takes: `^[a-zA-Z0-9_-]+$`. Different ids stay different.
pub fn to_messages_safe(id: &str) -> Cow<'_, str> {
    let fits = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if fits && !id.starts_with(WRAPPED) {
        return Cow::Borrowed(id);
    }
    let mut out = String::from(WRAPPED);
    URL_SAFE_NO_PAD.encode_string(id, &mut out);
    Cow::Owned(out)
}

/// The id that [`to_messages_safe`] was given. An id that it cannot have made is left alone.
pub fn from_messages_safe(id: &str) -> Cow<'_, str> {
    let inner = id.strip_prefix(WRAPPED).and_then(|wrapped| URL_SAFE_NO_PAD.decode(wrapped).ok());
    match inner.and_then(|bytes| String::from_utf8(bytes).ok()) {
        Some(inner) if to_messages_safe(&inner) == id => Cow::Owned(inner),
        Some(_) | None => Cow::Borrowed(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_safe(id: &str) -> bool {
        !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    }

    #[test]
    fn an_id_that_fits_stays_as_it_is() {
        for id in ["toolu_01A", "call_x-9", "a"] {
            assert_eq!(to_messages_safe(id), id);
            assert_eq!(from_messages_safe(id), id);
        }
    }

    #[test]
    fn ids_that_differ_in_a_forbidden_letter_do_not_meet() {
        let ids = ["a:b", "a.b", "a_b", "", "tkid_", "tkid_YTpi", "functions.Bash:0"];
        let safe: std::collections::BTreeSet<_> = ids.iter().map(|id| to_messages_safe(id)).collect();
        assert_eq!(safe.len(), ids.len());
    }

    proptest! {
        #[test]
        fn every_id_becomes_safe_and_comes_back(id in ".{0,60}") {
            let safe = to_messages_safe(&id);
            prop_assert!(is_safe(&safe));
            prop_assert_eq!(&*from_messages_safe(&safe), &id);
        }

        #[test]
        fn whatever_a_client_sends_is_unwrapped_to_something_that_wraps_to_it(id in "(tkid_)?[a-zA-Z0-9_-]{0,20}") {
            let inner = from_messages_safe(&id);
            prop_assert!(inner == id.as_str() || to_messages_safe(&inner) == id.as_str());
        }
    }
}
