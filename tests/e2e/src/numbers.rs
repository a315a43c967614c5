//! The records of `e2e-job --case numbers`, from which every loss and every repetition can be seen.
//!
//! Its source makes the numbers 0, 1, 2, …; an operator counts those of each key; the sink writes a line for each number with
//! its key and that count. A number is always the same line, since numbers of one key come in order: a key's numbers
//! are all in one stride of the generator. So a line that is wrong shows state that was lost or counted twice, a
//! missing line a lost record, and a repeated one a record that was committed twice.

use std::collections::BTreeSet;

/// How many keys there are. A multiple of [`STRIDES`], so that the numbers of a key are in one stride.
pub const KEYS: u64 = 64;

/// How many strides the generator has if it was discovered at parallelism 1, 2, 4, 8 or 16.
pub const STRIDES: u64 = 16;

/// The line of a number that is the `count`-th of its key.
pub fn line(number: u64, count: u64) -> String {
    format!("{},{number},{count}", number % KEYS)
}

/// The numbers that a job has committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers(BTreeSet<u64>);

impl Numbers {
    /// Reads committed lines.
    ///
    /// # Panics
    /// A line is damaged, has the wrong count, or is there twice.
    #[track_caller]
    pub fn read<'a>(lines: impl IntoIterator<Item = &'a String>) -> Self {
        let mut numbers = BTreeSet::new();
        for text in lines {
            let number = text.split(',').nth(1).and_then(|number| number.parse::<u64>().ok());
            let number = number.unwrap_or_else(|| panic!("'{text}' is not a line of numbers"));
            assert_eq!(*text, line(number, number / KEYS + 1), "the state of key {} was wrong", number % KEYS);
            assert!(numbers.insert(number), "number {number} is there twice");
        }
        Self(numbers)
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The least number above all.
    pub fn end(&self) -> u64 {
        self.0.last().map_or(0, |last| last + 1)
    }

    /// These and the others.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(&self.0 | &other.0)
    }

    /// Refuses lost numbers, given that all strides began at their first: each stride is there from its first number to
    /// some other.
    ///
    /// # Panics
    /// A number is missing below a later one of its stride.
    #[track_caller]
    pub fn assert_no_gaps(&self) {
        let missing = |number: &&u64| **number >= STRIDES && !self.0.contains(&(**number - STRIDES));
        let lost: Vec<u64> = self.0.iter().filter(missing).map(|number| number - STRIDES).take(10).collect();
        assert!(
            lost.is_empty(),
            "of {} numbers below {}, these were lost among others: {lost:?}",
            self.len(),
            self.end()
        );
    }

    /// Refuses anything but all numbers below `end`.
    ///
    /// # Panics
    /// A number is missing or too many.
    #[track_caller]
    pub fn assert_all_below(&self, end: u64) {
        let lost: Vec<u64> = (0..end).filter(|number| !self.0.contains(number)).take(10).collect();
        assert!(lost.is_empty(), "of the numbers below {end}, {} are there; lost among others: {lost:?}", self.len());
        assert_eq!(self.end(), end, "there are numbers that should not have been made");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(numbers: impl IntoIterator<Item = u64>) -> Vec<String> {
        numbers.into_iter().map(|number| line(number, number / KEYS + 1)).collect()
    }

    #[test]
    fn strides_may_be_of_different_length() {
        let numbers = Numbers::read(&lines((0..1000).chain([1000, 1016, 1032])));
        numbers.assert_no_gaps();
        Numbers::read(&lines(0..1000)).assert_all_below(1000);
        assert_eq!((numbers.len(), numbers.end()), (1003, 1033));
    }

    #[test]
    #[should_panic(expected = "lost among others: [984]")]
    fn a_lost_number_is_seen() {
        Numbers::read(&lines((0..1001).filter(|number| *number != 984))).assert_no_gaps();
    }

    #[test]
    #[should_panic(expected = "number 5 is there twice")]
    fn a_repeated_number_is_seen() {
        Numbers::read(&lines([5, 5]));
    }

    #[test]
    #[should_panic(expected = "the state of key 1 was wrong")]
    fn a_wrong_count_is_seen() {
        Numbers::read(&["1,65,3".to_owned()]);
    }
}
