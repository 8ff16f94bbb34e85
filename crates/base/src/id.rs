//! Identities. They are made elsewhere (the wiring draws the randomness); here they only have a form.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// One client request for one answer. Printed as `turn_` and 26 characters of Crockford base 32; sorts by time made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TurnId(u128);

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl TurnId {
    /// From 48 bits of Unix milliseconds and 80 random bits (the rest of `random` is ignored).
    pub fn new(unix_ms: u64, random: u128) -> Self {
        let time = u128::from(unix_ms & 0xffff_ffff_ffff) << 80;
        TurnId(time | (random & ((1 << 80) - 1)))
    }

    /// The raw 128 bits, for storage.
    pub fn bits(self) -> u128 {
        self.0
    }

    /// The id with these bits, as read back from storage.
    pub fn from_bits(bits: u128) -> Self {
        TurnId(bits)
    }
}

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = *b"turn_00000000000000000000000000";
        let mut rest = self.0;
        for slot in out[5..].iter_mut().rev() {
            *slot = ALPHABET[(rest & 31) as usize];
            rest >>= 5;
        }
        f.write_str(std::str::from_utf8(&out).unwrap_or("turn_"))
    }
}

impl fmt::Debug for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a turn id.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a turn id: expected turn_ and 26 characters")]
pub struct BadTurnId;

impl FromStr for TurnId {
    type Err = BadTurnId;

    fn from_str(text: &str) -> Result<Self, BadTurnId> {
        let digits = text.strip_prefix("turn_").ok_or(BadTurnId)?;
        if digits.len() != 26 || digits.as_bytes()[0] > b'7' {
            return Err(BadTurnId);
        }
        digits
            .bytes()
            .try_fold(0u128, |bits, byte| {
                let digit = ALPHABET.iter().position(|&a| a == byte)?;
                Some((bits << 5) | digit as u128)
            })
            .map(TurnId)
            .ok_or(BadTurnId)
    }
}

/// One dispatch of a turn to one account. Printed as the turn's id, a dot and the attempt's number, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptId {
    /// The turn.
    pub turn: TurnId,
    /// Counts the turn's dispatches from 1; at most [`crate::limit::MAX_DISPATCHES`].
    pub number: u8,
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.turn, self.number)
    }
}

/// One credential: (upstream name, account name), for ever. Printed as `upstream/account`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountId {
    /// The upstream's name in the configuration.
    pub upstream: Arc<str>,
    /// The account's name within it.
    pub account: Arc<str>,
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.upstream, self.account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_id_reads_back_as_it_was_printed_and_sorts_by_time() {
        let early = TurnId::new(1, u128::MAX);
        let late = TurnId::new(2, 0);
        assert!(early < late && early.to_string() < late.to_string());
        assert_eq!(late.to_string().parse(), Ok(late));
        assert_eq!(TurnId::from_bits(u128::MAX).to_string().parse(), Ok(TurnId::from_bits(u128::MAX)));
    }

    #[test]
    fn text_that_is_no_turn_id_is_refused() {
        for text in ["", "turn_", "turn_z", "turn_80000000000000000000000000", "turn_0000000000000000000000000i"] {
            assert_eq!(text.parse::<TurnId>(), Err(BadTurnId), "{text}");
        }
    }
}
