//! Signatures of thinking blocks, and whether a replayed block carries its own.
//!
//! A signature is a keyed hash of the text, so that any lab knows any lab's. Those a script made up, and those of
//! blocks whose text was withheld, are remembered, the last few.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;

/// How many signatures that cannot be recomputed are remembered.
const MAX_REMEMBERED: usize = 4096;

/// The signature of a text.
pub(crate) fn of(text: &str) -> String {
    let mut bytes = Vec::with_capacity(64);
    bytes.extend_from_slice(b"turnkeep-lab\0");
    for salt in 0..6_u64 {
        bytes.extend_from_slice(&fnv(text.as_bytes(), salt).to_be_bytes());
    }
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

// Not for secrecy: it only has to change when a byte of the text does.
fn fnv(bytes: &[u8], salt: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// The signatures given out that the text does not give back.
#[derive(Debug, Default)]
pub(crate) struct Signatures(Mutex<VecDeque<String>>);

impl Signatures {
    pub(crate) fn remember(&self, signature: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.iter().any(|have| have == signature) {
            return;
        }
        if known.len() == MAX_REMEMBERED {
            known.pop_front();
        }
        known.push_back(signature.to_owned());
    }

    pub(crate) fn accepts(&self, thinking: &str, signature: &str) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        of(thinking) == signature || known.iter().any(|have| have == signature)
    }
}
