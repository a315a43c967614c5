//! Windows that are the same for all keys, and the panes that they are made of.
//!
//! A row is kept once, in its *pane*: the longest stretch of time that every window has wholly or not at all. A window is
//! put together of its panes when it closes. So overlapping windows cost a row no more than others.

use flott_core::time::Timestamp;
use flott_core::{Error, Result};
use flott_state::TimeWindow;

use crate::spec::WindowSpec;

/// See the module's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlignedWindows {
    /// From one start to the next.
    slide: i64,
    /// How long they are, at most.
    size: i64,
    offset: i64,
    /// How long a pane is.
    pane: i64,
    /// Whether they grow by panes, up to the size.
    is_growing: bool,
}

impl AlignedWindows {
    /// Those of a plan; none for sessions, of which every key has its own.
    ///
    /// # Errors
    /// Their lengths do not make windows.
    pub fn new(spec: WindowSpec) -> Result<Option<Self>> {
        let (slide, size, offset, pane, is_growing) = match spec {
            WindowSpec::Tumble { size_ms, offset_ms } => (size_ms, size_ms, offset_ms, size_ms, false),
            WindowSpec::Hop { slide_ms, size_ms, offset_ms } => {
                (slide_ms, size_ms, offset_ms, gcd(slide_ms, size_ms), false)
            }
            WindowSpec::Cumulate { step_ms, size_ms, offset_ms } => (size_ms, size_ms, offset_ms, step_ms, true),
            WindowSpec::Session { .. } => return Ok(None),
        };
        if slide <= 0 || size <= 0 || pane <= 0 {
            return Err(Error::input(format!(
                "a window's lengths must be at least one millisecond, which {spec:?} are not"
            )));
        }
        if is_growing && size % pane != 0 {
            return Err(Error::input(format!(
                "the size of a CUMULATE window, {size} ms, must be a multiple of its step, {pane} ms"
            )));
        }
        Ok(Some(Self { slide, size, offset, pane, is_growing }))
    }

    /// Whether windows grow, up to a size: CUMULATE.
    pub fn is_growing(self) -> bool {
        self.is_growing
    }

    /// The pane that a time is in.
    #[inline]
    pub fn pane_of(self, time: Timestamp) -> TimeWindow {
        let start = self.floor(time, self.pane);
        TimeWindow { start, end: start.saturating_add(self.pane) }
    }

    /// The end of the first window with a pane that ends after `after`.
    pub fn next_end(self, pane: TimeWindow, after: Timestamp) -> Option<Timestamp> {
        let after = after.max(pane.end.saturating_sub(1));
        if self.is_growing {
            let end = self.floor(after, self.pane).saturating_add(self.pane);
            return (end <= self.last_end(pane)).then_some(end);
        }
        let start = self.floor(after.saturating_sub(self.size), self.slide).saturating_add(self.slide);
        (start <= pane.start).then(|| start.saturating_add(self.size))
    }

    /// The end of the last window with a pane. If there are gaps between windows, it may end before the pane begins.
    pub fn last_end(self, pane: TimeWindow) -> Timestamp {
        self.floor(pane.start, self.slide).saturating_add(self.size)
    }

    /// The window with this end.
    pub fn ending_at(self, end: Timestamp) -> TimeWindow {
        let start =
            if self.is_growing { self.floor(end.saturating_sub(1), self.slide) } else { end.saturating_sub(self.size) };
        TimeWindow { start, end }
    }

    /// All windows that a time is in, by their ends.
    pub fn all_of(self, time: Timestamp) -> impl Iterator<Item = TimeWindow> {
        let pane = self.pane_of(time);
        let mut end = self.next_end(pane, Timestamp::MIN);
        std::iter::from_fn(move || {
            let window = self.ending_at(end?);
            end = self.next_end(pane, window.end);
            Some(window)
        })
    }

    /// The greatest multiple of a length, counted from the offset, that is not after a time.
    #[inline]
    fn floor(self, time: Timestamp, length: i64) -> Timestamp {
        time.saturating_sub(time.saturating_sub(self.offset).rem_euclid(length))
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn windows() -> impl Strategy<Value = WindowSpec> {
        (1..8_i64, 1..25_i64, 1..5_i64, -3..9_i64, 0..3).prop_map(|(step_ms, size_ms, times, offset_ms, kind)| {
            match kind {
                0 => WindowSpec::Tumble { size_ms, offset_ms },
                1 => WindowSpec::Hop { slide_ms: step_ms, size_ms, offset_ms },
                _ => WindowSpec::Cumulate { step_ms, size_ms: step_ms * times, offset_ms },
            }
        })
    }

    /// By their definition: all windows around a time that have it.
    fn naive(spec: WindowSpec, time: i64) -> Vec<TimeWindow> {
        let multiples = |length: i64, offset: i64| (-60..60).map(move |n| offset + n * length);
        let mut all: Vec<TimeWindow> = match spec {
            WindowSpec::Tumble { size_ms, offset_ms } => {
                multiples(size_ms, offset_ms).map(|start| TimeWindow { start, end: start + size_ms }).collect()
            }
            WindowSpec::Hop { slide_ms, size_ms, offset_ms } => {
                multiples(slide_ms, offset_ms).map(|start| TimeWindow { start, end: start + size_ms }).collect()
            }
            WindowSpec::Cumulate { step_ms, size_ms, offset_ms } => multiples(size_ms, offset_ms)
                .flat_map(|start| (1..=size_ms / step_ms).map(move |n| TimeWindow { start, end: start + n * step_ms }))
                .collect(),
            WindowSpec::Session { .. } => Vec::new(),
        };
        all.retain(|window| window.start <= time && time < window.end);
        all.sort_by_key(|window| window.end);
        all
    }

    proptest! {
        #[test]
        fn a_time_is_in_the_windows_that_have_it(spec in windows(), time in -20..20_i64) {
            let windows = AlignedWindows::new(spec).unwrap().unwrap();
            let expected = naive(spec, time);
            prop_assert_eq!(windows.all_of(time).collect::<Vec<_>>(), expected.clone());
            let pane = windows.pane_of(time);
            for other in pane.start..pane.end {
                prop_assert_eq!(&naive(spec, other), &expected, "{:?} is one pane", pane);
            }
            if let Some(last) = expected.last() {
                prop_assert_eq!(windows.last_end(pane), last.end);
            }
        }
    }

    #[test]
    fn impossible_windows_are_refused() {
        assert!(AlignedWindows::new(WindowSpec::Tumble { size_ms: 0, offset_ms: 0 }).is_err());
        let error = AlignedWindows::new(WindowSpec::Cumulate { step_ms: 3, size_ms: 7, offset_ms: 0 }).unwrap_err();
        assert!(error.to_string().contains("multiple"), "{error}");
    }
}
