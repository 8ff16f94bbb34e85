//! Providers quote the key that they refuse. What looks like one leaves neither for the caller nor for the ledger. This
//! goes by form alone: it knows no key.

/// How the keys of known providers begin.
const STARTS: &[&str] = &[
    "sk-",
    "sk_",
    "pk-",
    "rk_",
    "gsk_",
    "xai-",
    "AIza",
    "ya29.",
    "hf_",
    "nvapi-",
    "pplx-",
    "r8_",
    "fw_",
    "csk-",
    "ghp_",
    "github_pat_",
    "AKIA",
    "ASIA",
    "eyJ",
    "tk-",
    "tk_",
];
/// A word with a known beginning is a key from this length on, in bytes.
const KNOWN_BYTES: usize = 12;
/// Any word with capitals, small letters and digits is a key from this length on, in bytes.
const RANDOM_BYTES: usize = 32;

/// The text with `[key]` in place of every word that has the form of a secret: the beginning of a known provider's key, a
/// long mixture of letters and digits, or what follows `Bearer`. What has no such form stays.
pub fn redact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut after_bearer = false;
    // Keys are ASCII, so bytes will do.
    while let Some(start) = rest.bytes().position(is_key_byte) {
        let (between, from) = rest.split_at(start);
        let end = from.bytes().position(|byte| !is_key_byte(byte)).unwrap_or(from.len());
        let (word, more) = from.split_at(end);
        out.push_str(between);
        // The full stop after a key is the sentence's.
        let key = word.trim_end_matches('.');
        if is_key(key) || (after_bearer && key.len() >= KNOWN_BYTES) {
            out.push_str("[key]");
            out.push_str(&word[key.len()..]);
        } else {
            out.push_str(word);
        }
        after_bearer = word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic");
        rest = more;
    }
    out.push_str(rest);
    out
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'*' | b'.')
}

fn is_key(word: &str) -> bool {
    let any = |is: fn(&u8) -> bool| word.bytes().any(|byte| is(&byte));
    (word.len() >= KNOWN_BYTES && STARTS.iter().any(|start| word.starts_with(start)))
        || (word.len() >= RANDOM_BYTES
            && any(u8::is_ascii_uppercase)
            && any(u8::is_ascii_lowercase)
            && word.bytes().filter(u8::is_ascii_digit).count() >= 4)
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn keys_go_and_words_stay() {
        for (text, left) in [
            ("key sk-proj-abcdefgh1234. Next", "key [key]. Next"),
            ("é sk-short, claude-sonnet-4-5-20250929 é", "é sk-short, claude-sonnet-4-5-20250929 é"),
            ("id 0b9d1f0e-6f0a-4c1b-9b1e-0123456789ab", "id 0b9d1f0e-6f0a-4c1b-9b1e-0123456789ab"),
            ("Authorization: Bearer abcdefghijkl", "Authorization: Bearer [key]"),
            ("gsk_************abcd", "[key]"),
            ("in asia-southeast1", "in asia-southeast1"),
            ("", ""),
        ] {
            assert_eq!(redact(text), left);
        }
    }
}
