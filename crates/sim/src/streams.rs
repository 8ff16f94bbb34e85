//! Chance: one stream of random numbers for each part of a run, split from the seed by the part's name, so that what one
//! part draws does not move what another one draws.

use parking_lot::Mutex;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};
use std::ops::RangeInclusive;
use turnkeep_engine::ports::Random;

/// One part's stream.
#[derive(Debug)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream of the part with this name.
    pub fn of(seed: u64, name: &str) -> Stream {
        let mut hasher = blake3::Hasher::new_derive_key("turnkeep simulation streams");
        hasher.update(&seed.to_le_bytes()).update(name.as_bytes());
        Stream(ChaCha8Rng::from_seed(*hasher.finalize().as_bytes()))
    }

    /// A number of this range, all alike likely.
    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (from, to) = (*range.start(), *range.end());
        let span = to.saturating_sub(from).saturating_add(1).max(1);
        from + self.0.next_u64() % span
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, of_hundred: u64) -> bool {
        self.within(1..=100) <= of_hundred
    }

    /// One of these; the slice is not empty.
    pub fn one_of<T: Copy>(&mut self, these: &[T]) -> T {
        these[usize::try_from(self.within(0..=these.len() as u64 - 1)).unwrap_or_default()]
    }
}

/// The gateway's own randomness.
#[derive(Debug)]
pub struct Chance(Mutex<Stream>);

impl Chance {
    /// Of a run's life of a gateway.
    pub fn of(seed: u64, life: u32) -> Chance {
        Chance(Mutex::new(Stream::of(seed, &format!("gateway {life}"))))
    }
}

impl Random for Chance {
    fn bits(&self) -> u128 {
        let mut stream = self.0.lock();
        (u128::from(stream.0.next_u64()) << 64) | u128::from(stream.0.next_u64())
    }
}
