//! Chance that is the same on every machine: ChaCha8 streams, each seeded by what it is for.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};

/// One stream of random numbers.
#[derive(Debug)]
pub struct Chance(ChaCha8Rng);

impl Chance {
    /// The stream of this purpose and number.
    pub fn of(purpose: &str, number: u64) -> Chance {
        Chance::over(purpose, &number.to_le_bytes())
    }

    /// The stream of this purpose and these bytes: a target draws from its own input, so that an input replays alone.
    pub fn over(purpose: &str, data: &[u8]) -> Chance {
        let mut hasher = blake3::Hasher::new_derive_key("turnkeep fuzz streams");
        hasher.update(&(purpose.len() as u64).to_le_bytes()).update(purpose.as_bytes()).update(data);
        Chance(ChaCha8Rng::from_seed(*hasher.finalize().as_bytes()))
    }

    /// A number below this one; 0 below 0 and 1.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.0.next_u64() % bound).unwrap_or_default()
    }

    /// True in one of so many cases.
    pub fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        self.0.next_u64().to_le_bytes()[0]
    }

    /// One of these, if there are any.
    pub fn one_of<'a, T>(&mut self, these: &'a [T]) -> Option<&'a T> {
        these.get(self.below(these.len()))
    }
}
