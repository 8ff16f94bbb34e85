//! One JSON value in one spelling, as bytes to be hashed: object members in the order of their keys, numbers by their
//! value, strings without escapes, each with its length before it, so that two values have the same bytes only if they
//! are the same.
//!
//! Of two members with one key both count, in their order: a reader that takes the first and one that takes the last
//! would see different requests. Lone surrogates, which are no text, all count as U+FFFD.

use super::HashKey;
use crate::json::{Invalid, Kind, Reader};

/// Texts from this length on, in bytes, are hashed where they stand and count by their hash, so that no image is copied
/// once for each level it stands in.
const LONG: usize = 2048;

/// The bytes of one value, or of several in a row.
pub(super) struct Canonical<'k> {
    key: &'k HashKey,
    pub(super) out: Vec<u8>,
    /// Bytes of long texts that were hashed where they stand.
    pub(super) hashed: usize,
    members: Vec<Member>,
    scratch: Vec<u8>,
}

/// Where a member of an object stands in `out`.
#[derive(Clone, Copy)]
pub(super) struct Member {
    /// The first bytes of its key, by which most keys differ already.
    first: u64,
    /// Its key.
    from: usize,
    /// Its value.
    value: usize,
    to: usize,
}

impl<'k> Canonical<'k> {
    pub(super) fn new(key: &'k HashKey) -> Self {
        Canonical { key, out: Vec::with_capacity(4096), hashed: 0, members: Vec::new(), scratch: Vec::new() }
    }

    /// Forgets what is left of a value that could not be read to its end.
    pub(super) fn reset(&mut self) {
        self.members.clear();
    }

    /// Appends the next value. The reader bounds the nesting.
    pub(super) fn value(&mut self, r: &mut Reader<'_>) -> Result<(), Invalid> {
        match r.kind()? {
            Kind::Object => {
                self.out.push(b'{');
                let base = self.members.len();
                r.object(|r, key| self.member(r, key))?;
                self.sort(base);
                self.out.push(b'}');
            }
            Kind::Array => {
                self.out.push(b'[');
                r.array(|r, _| self.value(r))?;
                self.out.push(b']');
            }
            Kind::String => {
                let text = r.string()?;
                self.text(&text);
            }
            Kind::Number => number(r.number()?, &mut self.out),
            Kind::Bool => self.out.push(if r.bool()? { b't' } else { b'f' }),
            Kind::Null => {
                r.null()?;
                self.out.push(b'z');
            }
        }
        Ok(())
    }

    /// Appends a member of an object.
    pub(super) fn member(&mut self, r: &mut Reader<'_>, key: &str) -> Result<(), Invalid> {
        let from = self.out.len();
        self.text(key);
        let value = self.out.len();
        self.value(r)?;
        let mut first = [0; 8];
        let length = key.len().min(8);
        first[..length].copy_from_slice(&key.as_bytes()[..length]);
        self.members.push(Member { first: u64::from_be_bytes(first), from, value, to: self.out.len() });
        Ok(())
    }

    /// Appends a text: itself, or its hash where it is long.
    pub(super) fn text(&mut self, text: &str) {
        if text.len() < LONG {
            let [low, high, ..] = text.len().to_le_bytes();
            self.out.extend_from_slice(&[b's', low, high]);
            self.out.extend_from_slice(text.as_bytes());
        } else {
            self.hashed += text.len();
            self.out.push(b'h');
            self.out.extend_from_slice(blake3::keyed_hash(self.key, text.as_bytes()).as_bytes());
        }
    }

    /// Puts pieces at the end of `out`, each from and up to a place in it, in the order in which they are given.
    pub(super) fn arrange(&mut self, pieces: impl Iterator<Item = (usize, usize)> + Clone) {
        arrange(&mut self.out, &mut self.scratch, pieces);
    }

    /// Puts the members since `base` in the order of their keys; tells whether they were not in it already.
    fn order(&mut self, base: usize) -> bool {
        let out = &self.out;
        let members = &mut self.members[base..];
        let key = |member: &Member| &out[member.from..member.value];
        let compare = |one: &Member, other: &Member| one.first.cmp(&other.first).then_with(|| key(one).cmp(key(other)));
        let sorted = members.is_sorted_by(|one, other| compare(one, other).is_le());
        if !sorted {
            // Stable: members of one key stay in their order.
            members.sort_by(compare);
        }
        !sorted
    }

    /// The members since `base` in the order of their keys, each as its bytes.
    pub(super) fn sorted(&mut self, base: usize) -> impl Iterator<Item = &[u8]> {
        self.order(base);
        self.members[base..].iter().map(|member| &self.out[member.from..member.to])
    }

    /// Puts the members since `base`, which are the end of `out`, in order.
    fn sort(&mut self, base: usize) {
        if self.order(base) {
            let pieces = self.members[base..].iter().map(|member| (member.from, member.to));
            arrange(&mut self.out, &mut self.scratch, pieces);
        }
        self.members.truncate(base);
    }
}

/// As [`Canonical::arrange`].
fn arrange(out: &mut Vec<u8>, scratch: &mut Vec<u8>, pieces: impl Iterator<Item = (usize, usize)> + Clone) {
    let Some(start) = pieces.clone().map(|(from, _)| from).min() else { return };
    scratch.clear();
    scratch.extend_from_slice(&out[start..]);
    out.truncate(start);
    for (from, to) in pieces {
        out.extend_from_slice(&scratch[from - start..to - start]);
    }
}

/// Appends a number by its exact decimal value: `10`, `10.0` and `1e1` are one, `0.1` and `0.1000000000000000001` two.
fn number(text: &str, out: &mut Vec<u8>) {
    let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (digits, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let exponent = exponent.strip_prefix('+').unwrap_or(exponent).parse::<i64>();
    let Some(exponent) = exponent.ok().filter(|exponent| exponent.unsigned_abs() < 1 << 40) else {
        // Absurdly large or small; as it is written.
        out.push(b'N');
        out.extend_from_slice(&(text.len() as u64).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
        return;
    };
    out.push(b'n');
    let start = out.len();
    out.extend(whole.bytes().chain(fraction.bytes()).skip_while(|digit| *digit == b'0'));
    let mut exponent = exponent.saturating_sub(fraction.len() as i64);
    while out.len() > start && out.last() == Some(&b'0') {
        out.pop();
        exponent += 1;
    }
    if out.len() == start {
        // Zero has no sign and no exponent.
        out.push(b'.');
        return;
    }
    out.push(if negative { b'-' } else { b'+' });
    out.extend_from_slice(&exponent.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        let mut canonical = Canonical::new(&[7; 32]);
        canonical.value(&mut Reader::over(text)).unwrap();
        canonical.out
    }

    #[test]
    fn numbers_of_one_value_are_one() {
        for (one, other) in [("10", "1e1"), ("10", "10.0"), ("0", "-0.0"), ("0", "0e7"), ("-1.50", "-15E-1")] {
            assert_eq!(bytes(one), bytes(other), "{one} {other}");
        }
        for (one, other) in [("1", "10"), ("1", "-1"), ("0.1", "0.1000000000000000001"), ("1e9999999999999", "1")] {
            assert_ne!(bytes(one), bytes(other), "{one} {other}");
        }
    }

    #[test]
    fn members_are_in_order_at_every_depth_and_duplicates_stay() {
        assert_eq!(
            bytes(r#"{"b":[{"y":1,"x":"\u0061"}],"a":null}"#),
            bytes(r#" {"a":null , "b":[{"x":"a","y":1.0}]}"#)
        );
        assert_ne!(bytes(r#"{"a":1,"a":2}"#), bytes(r#"{"a":2,"a":1}"#));
        assert_ne!(bytes(r#"{"a":1,"a":2}"#), bytes(r#"{"a":2}"#));
    }

    #[test]
    fn neighbours_do_not_flow_together() {
        for (one, other) in
            [(r#"["ab","c"]"#, r#"["a","bc"]"#), ("[[1],2]", "[[1,2]]"), ("[1,23]", "[12,3]"), ("[[],[]]", "[[[]]]")]
        {
            assert_ne!(bytes(one), bytes(other), "{one} {other}");
        }
    }

    #[test]
    fn a_long_text_counts_whole() {
        let long = |last: char| format!("\"{}{last}\"", "x".repeat(LONG));
        assert_ne!(bytes(&long('a')), bytes(&long('b')));
        assert!(bytes(&long('a')).len() < 64);
    }
}
