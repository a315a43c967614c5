//! Distinct values, estimated: HyperLogLog, exact while they are few.
//!
//! The estimate is that of Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017): it needs no
//! tables of corrections.

use serde::{Deserialize, Serialize};

/// The number of bits of a hash that choose a register: 2^14 of them, which is a standard error of 0.8 %.
const BITS: u32 = 14;
const REGISTERS: usize = 1 << BITS;
/// The greatest value of a register less one.
const RANK_MAX: usize = (64 - BITS) as usize;
/// So many hashes are kept as they are.
const EXACT_MAX: usize = 1024;

/// A set of hashes, of which only the size can be asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Sketch {
    /// All of them, sorted.
    Exact(Vec<u64>),
    /// For each register the greatest rank.
    Registers(#[serde(with = "serde_bytes")] Vec<u8>),
}

impl Default for Sketch {
    fn default() -> Self {
        Self::Exact(Vec::new())
    }
}

impl Sketch {
    /// Adds the hash of a value.
    pub fn insert(&mut self, hash: u64) {
        match self {
            Self::Exact(hashes) => {
                let Err(place) = hashes.binary_search(&hash) else { return };
                hashes.insert(place, hash);
                if hashes.len() > EXACT_MAX {
                    let mut registers = vec![0; REGISTERS];
                    hashes.iter().for_each(|hash| note(&mut registers, *hash));
                    *self = Self::Registers(registers);
                }
            }
            Self::Registers(registers) => note(registers, hash),
        }
    }

    /// Adds what another one has.
    pub fn merge(&mut self, other: &Self) {
        match other {
            Self::Exact(hashes) => hashes.iter().for_each(|hash| self.insert(*hash)),
            Self::Registers(theirs) => {
                if let Self::Exact(hashes) = self {
                    let mut registers = vec![0; REGISTERS];
                    hashes.iter().for_each(|hash| note(&mut registers, *hash));
                    *self = Self::Registers(registers);
                }
                if let Self::Registers(ours) = self {
                    ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours = (*ours).max(*theirs));
                }
            }
        }
    }

    /// About how many there are.
    pub fn estimate(&self) -> u64 {
        let registers = match self {
            Self::Exact(hashes) => return hashes.len() as u64,
            Self::Registers(registers) => registers,
        };
        let mut counts = [0_u32; RANK_MAX + 2];
        registers.iter().for_each(|rank| counts[usize::from(*rank).min(RANK_MAX + 1)] += 1);
        let all = REGISTERS as f64;
        let mut z = all * tau(1.0 - f64::from(counts[RANK_MAX + 1]) / all);
        for count in counts[1..=RANK_MAX].iter().rev() {
            z = 0.5 * (z + f64::from(*count));
        }
        z += all * sigma(f64::from(counts[0]) / all);
        (all * all / (2.0 * std::f64::consts::LN_2) / z).round() as u64
    }
}

fn note(registers: &mut [u8], hash: u64) {
    let register = (hash >> (64 - BITS)) as usize;
    let rank = (hash << BITS).leading_zeros().min(RANK_MAX as u32) + 1;
    if let Some(known) = registers.get_mut(register) {
        *known = (*known).max(rank as u8);
    }
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use flott_core::hash::stable_hash;

    use super::*;

    #[test]
    fn few_values_are_counted_and_many_estimated() {
        let mut sketch = Sketch::default();
        for value in 0..100_000_u64 {
            sketch.insert(stable_hash(&value));
            sketch.insert(stable_hash(&value));
            let seen = value + 1;
            if seen == 1000 {
                assert_eq!(sketch.estimate(), 1000);
            }
            if [2000, 10_000, 40_000, 100_000].contains(&seen) {
                let error = sketch.estimate() as f64 / seen as f64 - 1.0;
                assert!(error.abs() < 0.03, "{error} at {seen}");
            }
        }
    }

    #[test]
    fn two_sketches_become_that_of_all_values() {
        for (first, second) in [(10_u64, 20_u64), (10, 5000), (5000, 10), (5000, 9000)] {
            let (mut a, mut b, mut all) = (Sketch::default(), Sketch::default(), Sketch::default());
            (0..first).for_each(|value| a.insert(stable_hash(&value)));
            (first / 2..second).for_each(|value| b.insert(stable_hash(&value)));
            (0..first.max(second)).for_each(|value| all.insert(stable_hash(&value)));
            a.merge(&b);
            assert_eq!(a.estimate(), all.estimate(), "{first} and {second}");
        }
    }
}
