//! How far it reaches that rows of a key come and go: which rows then result in something else, and of which rows that is made.
//!
//! All of it is said in sort keys, since rows of one place in the order are never told apart.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::positions::Place;
use super::times::SortTimes;
use super::work::Work;
use crate::row::RowBytes;
use crate::spec::OverFrame;

/// The sort keys of a key, each with how many rows have it.
#[derive(Debug, Default)]
pub struct Sorts {
    counts: BTreeMap<RowBytes, usize>,
    rows: usize,
}

impl Sorts {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many sort keys there are.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// So many rows come. Returns whether they are the first with their sort key.
    pub fn add(&mut self, sort: &RowBytes, rows: usize) -> bool {
        self.rows += rows;
        match self.counts.get_mut(sort) {
            Some(count) => {
                *count += rows;
                false
            }
            None => {
                self.counts.insert(sort.clone(), rows);
                true
            }
        }
    }

    /// A row goes. Returns whether it was the last with its sort key.
    pub fn remove(&mut self, sort: &RowBytes) -> bool {
        let Some(count) = self.counts.get_mut(sort) else { return false };
        *count -= 1;
        self.rows -= 1;
        let is_last = *count == 0;
        if is_last {
            self.counts.remove(sort);
        }
        is_last
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &RowBytes> {
        self.counts.keys()
    }

    /// Those of a stretch, in order.
    pub fn within(&self, stretch: &Stretch) -> impl Iterator<Item = &RowBytes> {
        let from = stretch.from.as_ref().map_or(Bound::Unbounded, Bound::Included);
        let to = stretch.to.as_ref().map_or(Bound::Unbounded, Bound::Included);
        self.counts.range::<RowBytes, _>((from, to)).map(|(sort, _)| sort)
    }

    /// The place of the row before a stretch.
    pub fn place_before(&self, stretch: &Stretch) -> Place {
        let mut place = Place::default();
        if let Some(from) = &stretch.from {
            for (_, rows) in self.counts.range::<RowBytes, _>(..from) {
                place.row_number += *rows as i64;
                place.dense_rank += 1;
            }
        }
        place
    }

    /// The sort key that is so many rows before `from`; none if there are not so many.
    fn back(&self, from: &RowBytes, rows: usize) -> Option<RowBytes> {
        away(from, rows, self.counts.range::<RowBytes, _>(..from).rev())
    }

    /// The sort key that is so many rows behind `from`; none if there are not so many.
    fn ahead(&self, from: &RowBytes, rows: usize) -> Option<RowBytes> {
        away(from, rows, self.counts.range::<RowBytes, _>((Bound::Excluded(from), Bound::Unbounded)))
    }
}

/// The first of `sorts` by which there are so many rows, or `from` if none are wanted.
fn away<'a>(
    from: &RowBytes,
    rows: usize,
    mut sorts: impl Iterator<Item = (&'a RowBytes, &'a usize)>,
) -> Option<RowBytes> {
    if rows == 0 {
        return Some(from.clone());
    }
    let mut passed = 0;
    let (sort, _) = sorts.find(|(_, count)| {
        passed += **count;
        passed >= rows
    })?;
    Some(sort.clone())
}

/// A stretch of the order, both ends in it. An end that is not there is that of the key's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// The first sort key.
    pub from: Option<RowBytes>,
    /// The last sort key.
    pub to: Option<RowBytes>,
}

impl Stretch {
    /// Whether rows with a sort key are in it.
    pub fn contains(&self, sort: &RowBytes) -> bool {
        self.from.as_ref().is_none_or(|from| from <= sort) && self.to.as_ref().is_none_or(|to| sort <= to)
    }
}

/// Where rows of a key have come and gone.
#[derive(Clone, Debug)]
pub struct Changed {
    first: RowBytes,
    last: RowBytes,
    /// How many more rows there are than before.
    rows: i64,
    /// How many more sort keys.
    sorts: i64,
}

impl Changed {
    /// About to change at a place.
    pub fn at(sort: &RowBytes) -> Self {
        Self { first: sort.clone(), last: sort.clone(), rows: 0, sorts: 0 }
    }

    /// So many more rows, and sort keys, are at a place.
    pub fn note(&mut self, sort: &RowBytes, rows: i64, sorts: i64) {
        if *sort < self.first {
            self.first.set(sort.as_slice());
        }
        if *sort > self.last {
            self.last.set(sort.as_slice());
        }
        self.rows += rows;
        self.sorts += sorts;
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Reach {
    /// How many rows before it a row's result is made of; of all, where there is no number.
    back: Option<usize>,
    /// How many behind it.
    ahead: usize,
    /// Those of how long before it, a millisecond more than the frame, since what is finer is cut off.
    span: Option<(SortTimes, i64)>,
    /// Whether it counts how many rows come before.
    has_ranks: bool,
    /// Whether it counts how many there are.
    needs_all_rows: bool,
}

impl Reach {
    /// Of what is computed over frames. `times` are those of sort keys, where frames are times.
    pub fn of(frame: OverFrame, times: Option<SortTimes>, work: &Work) -> Self {
        let rows = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
        let shifts = work.shifts();
        let most = |is_wanted: fn(&&i64) -> bool| {
            shifts.iter().filter(is_wanted).map(|by| rows(by.unsigned_abs())).max().unwrap_or(0)
        };
        let (lag, lead) = (most(|by| **by < 0), most(|by| **by > 0));
        let has_frames = !work.aggregates.is_empty();
        let (back, limit) = match frame {
            OverFrame::Rows(None) | OverFrame::Range(None) if has_frames => (None, None),
            OverFrame::Rows(Some(limit)) if has_frames => (Some(lag.max(rows(limit))), None),
            OverFrame::Range(limit) if has_frames => (Some(lag), limit),
            _ => (Some(lag), None),
        };
        Self {
            back,
            ahead: lead,
            span: times.zip(limit.map(|limit| limit.saturating_add(1))),
            has_ranks: work.has_ranks(),
            needs_all_rows: work.needs_all_rows(),
        }
    }

    /// Whether a result depends on the place of its row among all.
    pub fn has_ranks(&self) -> bool {
        self.has_ranks
    }

    /// Where results may be others than before.
    pub fn affected(&self, sorts: &Sorts, changed: &Changed) -> Stretch {
        let has_moved = changed.rows != 0 || changed.sorts != 0;
        let from = match self.needs_all_rows && changed.rows != 0 {
            true => None,
            false => sorts.back(&changed.first, self.ahead),
        };
        let to = match self.back {
            // Behind the last change all places are what they were, if as many have come as gone.
            Some(back) if !(self.has_ranks && has_moved) => sorts.ahead(&changed.last, back),
            _ => None,
        };
        let to = to.map(|to| match self.span {
            Some((times, span)) => to.max(times.moved(&changed.last, span)),
            None => to,
        });
        Stretch { from, to }
    }

    /// Where the rows are that those results are made of.
    pub fn needed(&self, sorts: &Sorts, affected: &Stretch) -> Stretch {
        let from = affected.from.as_ref().and_then(|from| {
            let first = sorts.back(from, self.back?)?;
            Some(match self.span {
                Some((times, span)) => first.min(times.moved(from, span.saturating_neg())),
                None => first,
            })
        });
        let to = affected.to.as_ref().and_then(|to| sorts.ahead(to, self.ahead));
        Stretch { from, to }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sort(place: u8) -> RowBytes {
        RowBytes::new(&[1, place])
    }

    /// Two rows at each of the places 10, 20, … 90.
    fn sorts() -> Sorts {
        let mut sorts = Sorts::default();
        (1..10).for_each(|place| assert!(sorts.add(&sort(place * 10), 2)));
        sorts
    }

    fn stretch(from: Option<u8>, to: Option<u8>) -> Stretch {
        Stretch { from: from.map(sort), to: to.map(sort) }
    }

    /// Rows came and went from place 40 to place 50, so many more, with as many sort keys more.
    fn changed(more: i64) -> Changed {
        let mut changed = Changed::at(&sort(50));
        changed.note(&sort(40), more, more);
        changed
    }

    const NOTHING: Reach = Reach { back: Some(0), ahead: 0, span: None, has_ranks: false, needs_all_rows: false };

    #[test]
    fn a_frame_of_rows_reaches_as_many_behind_a_change() {
        let reach = Reach { back: Some(3), ..NOTHING };
        let affected = reach.affected(&sorts(), &changed(1));
        assert_eq!(affected, stretch(Some(40), Some(70)));
        assert_eq!(reach.needed(&sorts(), &affected), stretch(Some(20), Some(70)));
        let unbounded = Reach { back: None, ..NOTHING };
        let affected = unbounded.affected(&sorts(), &changed(0));
        assert_eq!(affected, stretch(Some(40), None));
        assert_eq!(unbounded.needed(&sorts(), &affected), stretch(None, None));
    }

    #[test]
    fn what_looks_ahead_reaches_to_before_a_change() {
        let reach = Reach { ahead: 1, ..NOTHING };
        let affected = reach.affected(&sorts(), &changed(0));
        assert_eq!(affected, stretch(Some(30), Some(50)));
        assert_eq!(reach.needed(&sorts(), &affected), stretch(Some(30), Some(60)));
    }

    #[test]
    fn ranks_stay_behind_as_many_that_came_as_went() {
        let ranks = Reach { has_ranks: true, ..NOTHING };
        assert_eq!(ranks.affected(&sorts(), &changed(0)), stretch(Some(40), Some(50)));
        assert_eq!(ranks.affected(&sorts(), &changed(1)), stretch(Some(40), None));
        let shares = Reach { needs_all_rows: true, ..ranks };
        assert_eq!(shares.affected(&sorts(), &changed(0)), stretch(Some(40), Some(50)));
        assert_eq!(shares.affected(&sorts(), &changed(-1)), stretch(None, None));
        let place = sorts().place_before(&stretch(Some(45), None));
        assert_eq!((place.row_number, place.dense_rank), (8, 4));
    }
}
