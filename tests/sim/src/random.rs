//! The only source of chance: splitmix64 from the seed.

/// A generator of pseudo-random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The same seed gives the same numbers.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number from `least` to `most`.
    pub(crate) fn between(&mut self, least: i64, most: i64) -> i64 {
        let count = most.saturating_sub(least).unsigned_abs() + 1;
        least + (self.draw() % count) as i64
    }

    /// True that often in a hundred times.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.draw() % 100 < percent
    }

    /// One of these, if there is one.
    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { from.get((self.draw() % from.len() as u64) as usize).cloned() }
    }
}
