//! Fingerprints of what has several parts.

use super::{HashKey, fingerprint};
use turnkeep_base::Fingerprint;

/// Of a list of parts. Each goes in with its length before it, so that two different lists never meet; `context` keeps
/// fingerprints of different kinds apart.
pub fn of_parts(key: &HashKey, context: &str, parts: &[&[u8]]) -> Fingerprint {
    let mut hasher = blake3::Hasher::new_keyed(key);
    for part in std::iter::once(context.as_bytes()).chain(parts.iter().copied()) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    fingerprint(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_read_the_same_when_joined_are_told_apart() {
        let key = [7; 32];
        let of = |parts: &[&[u8]]| of_parts(&key, "test", parts);
        assert_eq!(of(&[b"ab", b"c"]), of(&[b"ab", b"c"]));
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_ne!(of(&[b"a"]), of(&[b"a", b""]));
        assert_ne!(of_parts(&key, "a", &[]), of_parts(&key, "b", &[]));
        assert_ne!(of_parts(&[8; 32], "test", &[b"ab"]), of(&[b"ab"]));
    }
}
