//! Random numbers that are functions of a position: any row can be made again, alone and in any order.

/// A sequence of random numbers, such as those of one column. The same seeds give the same sequence.
///
/// ```
/// use flott_datagen::{Draws, below};
/// let prices = Draws::new(1, 7);
/// assert_eq!(prices.at(5), Draws::new(1, 7).at(5));
/// assert_ne!(prices.at(5), Draws::new(1, 8).at(5));
/// assert!(below(prices.at(5), 10) < 10);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    key: u64,
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
#[inline]
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Draws {
    /// Sequence `column` of those with this seed.
    pub fn new(seed: u64, column: u64) -> Self {
        Self { key: mix(mix(seed.wrapping_add(GOLDEN)).wrapping_add(column.wrapping_mul(GOLDEN))) }
    }

    /// The number at a position: 64 random bits.
    #[inline]
    pub fn at(self, position: u64) -> u64 {
        mix(self.key.wrapping_add(position.wrapping_mul(GOLDEN)))
    }

    /// The sequence of all that is drawn for one position.
    #[inline]
    pub fn stream(self, position: u64) -> DrawStream {
        DrawStream { state: self.at(position) }
    }
}

/// Random numbers one after the other.
#[derive(Clone, Debug)]
pub struct DrawStream {
    state: u64,
}

impl DrawStream {
    /// 64 random bits.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }
}

/// A number from 0 to `count - 1` made of 64 random bits; 0 if `count` is.
#[inline]
pub fn below(bits: u64, count: u64) -> u64 {
    ((u128::from(bits) * u128::from(count)) >> 64) as u64
}

/// A number from 0 to below 1 made of 64 random bits.
#[inline]
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_evenly() {
        let draws = Draws::new(0, 0);
        let mut counts = [0; 10];
        let mut stream = draws.stream(0);
        for position in 0..100_000 {
            counts[below(draws.at(position), 10) as usize] += 1;
            counts[(unit(stream.draw()) * 10.0) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (19_300..20_700).contains(count)), "{counts:?}");
    }

    #[test]
    fn what_was_drawn_once_is_drawn_again() {
        let drawn = [Draws::new(0, 0).at(0), Draws::new(1, 2).at(3), Draws::new(1, 2).stream(3).draw()];
        assert_eq!(
            drawn,
            [3_746_585_686_858_627_171, 8_566_811_186_491_711_777, 6_694_809_129_887_813_358],
            "what is drawn must not change: jobs that are restored go on with it"
        );
    }

    #[test]
    fn columns_do_not_follow_each_other() {
        let (a, b) = (Draws::new(0, 1), Draws::new(0, 2));
        let equal = (0..10_000).filter(|&position| below(a.at(position), 2) == below(b.at(position), 2)).count();
        assert!((4_700..5_300).contains(&equal), "{equal}");
    }
}
