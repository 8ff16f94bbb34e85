//! Numbers that look random and are the same in every run (SplitMix64).

/// A source of them.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The source that this seed begins, for the `number`th user of it: each has its own.
    pub fn of(seed: u64, number: u64) -> Chance {
        let mut chance = Chance(seed ^ number.wrapping_mul(0xd6e8_feb8_6659_fd93));
        chance.next();
        chance
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Below a number.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// So many times of a hundred.
    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    /// One of these.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }
}
