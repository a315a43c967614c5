//! Groups become one: panes of a window, sessions that meet.

use flott_core::Result;

use super::input::Form;
use super::plan::{Aggregate, Aggregates, Kind, View};
use super::rich::{Rich, count};
use super::state::{Accumulators, Arena};
use super::update::{Changes, set_wide, wide};

/// Values as bytes.
type Values<'a> = Vec<&'a [u8]>;

impl Aggregates {
    /// Takes all rows of `from`, which come later, into a group.
    pub fn merge(&self, arena: &mut Arena, group: usize, from: &Accumulators) -> Result<()> {
        self.merge_taken(arena, group, &mut from.clone())
    }

    /// The same, where nothing of `from` is needed any more.
    pub(super) fn merge_taken(&self, arena: &mut Arena, group: usize, from: &mut Accumulators) -> Result<()> {
        let other = arena.load(from);
        arena.rows[group] += arena.rows[other];
        for set in 0..self.sets.len() {
            self.merge_set(set, arena, group, other)?;
        }
        for aggregate in self.aggregates.iter().filter(|aggregate| aggregate.set.is_none()) {
            aggregate.merge(arena, group, other, self.retracts)?;
        }
        arena.pop();
        Ok(())
    }

    /// Takes the distinct values of a group into another. What that had not, the aggregates of distinct values see as new.
    fn merge_set(&self, index: usize, arena: &mut Arena, group: usize, other: usize) -> Result<()> {
        let set = &self.sets[index];
        let theirs = std::mem::take(arena.rich_mut(other, set.rich));
        // Of each view, what is new and what is gone.
        let mut views: Vec<(Values<'_>, Values<'_>)> = vec![Default::default(); set.filters.len()];
        match &theirs {
            Rich::Counted(theirs) => {
                for (value, times) in theirs.iter() {
                    if arena.step(group, set.rich, value, times) {
                        let (new, gone) = &mut views[0];
                        if times > 0 { new.push(value) } else { gone.push(value) }
                    }
                }
            }
            Rich::Seen(theirs) => {
                for (value, seen) in theirs.iter() {
                    let new_to = arena.see(group, set.rich, value, seen);
                    let views = views.iter_mut().enumerate().filter(|(view, _)| (new_to >> view) & 1 == 1);
                    views.for_each(|(_, (new, _))| new.push(value));
                }
            }
            _ => return Ok(()),
        }
        for (view, (mut new, mut gone)) in views.into_iter().enumerate() {
            if new.is_empty() && gone.is_empty() {
                continue;
            }
            // In the order of bytes, so that the result does not depend on where they were.
            new.sort_unstable();
            let signs: Vec<i8> = new.iter().map(|_| 1).chain(gone.iter().map(|_| -1)).collect();
            new.append(&mut gone);
            let columns = set.decoder.decode(new.iter().copied())?;
            let bound = self.bind_values(index, &columns, new.len())?;
            let changes = Changes { groups: &vec![group as u32; new.len()], signs: Some(&signs) };
            self.update_of_view(View { set: index, view }, arena, &bound, changes)?;
        }
        Ok(())
    }
}

impl Aggregate {
    fn merge(&self, arena: &mut Arena, group: usize, other: usize, retracts: bool) -> Result<()> {
        let mut theirs = [0; 5];
        let words = arena.words_of(other, self.word);
        let length = words.len().min(5);
        theirs[..length].copy_from_slice(&words[..length]);
        let at = self.word;
        match &self.kind {
            Kind::Count => {
                let cell = &mut arena.cell(group, at)[0];
                *cell = cell.wrapping_add(theirs[0]);
            }
            Kind::Sum { .. } | Kind::Mean => {
                let cell = arena.cell(group, at);
                cell[0] = cell[0].wrapping_add(theirs[0]);
                match self.form {
                    Form::Ints => cell[1] = cell[1].wrapping_add(theirs[1]),
                    Form::Floats => {
                        let sum = f32::from_bits(cell[1] as u32) + f32::from_bits(theirs[1] as u32);
                        cell[1] = u64::from(sum.to_bits());
                    }
                    Form::Decimals => {
                        let sum = wide(&cell[1..]).wrapping_add(wide(&theirs[1..]));
                        set_wide(&mut cell[1..], sum);
                    }
                    _ => cell[1] = (f64::from_bits(cell[1]) + f64::from_bits(theirs[1])).to_bits(),
                }
            }
            Kind::Spread { .. } => merge_spread(arena.cell(group, at), &theirs),
            Kind::Best { is_max } if theirs[0] != 0 => {
                let is_wide = self.form == Form::Decimals;
                let cell = arena.cell(group, at);
                let value = |words: &[u64]| match is_wide {
                    true => u128::from(words[1]) | u128::from(words[2]) << 64,
                    false => u128::from(words[1]),
                };
                let (ours, new) = (value(cell), value(&theirs));
                if cell[0] == 0 || (if *is_max { new > ours } else { new < ours }) {
                    let length = if is_wide { 3 } else { 2 };
                    cell[..length].copy_from_slice(&theirs[..length]);
                }
            }
            Kind::Best { .. } => {}
            Kind::Ordered { .. } | Kind::Percentile { .. } => {
                if let Rich::Ordered(theirs) = std::mem::take(arena.rich_mut(other, self.rich)) {
                    theirs.iter().for_each(|(value, times)| {
                        arena.step_ordered(group, self.rich, value.as_slice(), *times);
                    });
                }
            }
            kind => {
                let theirs = std::mem::take(arena.rich_mut(other, self.rich));
                self.merge_rich(kind, arena.rich_mut(group, self.rich), theirs, retracts)?;
            }
        }
        Ok(())
    }

    fn merge_rich(&self, kind: &Kind, ours: &mut Rich, theirs: Rich, retracts: bool) -> Result<()> {
        if *ours == Rich::Nothing {
            *ours = theirs;
            return Ok(());
        }
        match (ours, theirs) {
            (Rich::Value(known), Rich::Value(new)) => {
                if let Kind::User(user) = kind {
                    let mut merged = known.as_slice().to_vec();
                    user.function.merge(&mut merged, new.as_slice())?;
                    known.set(&merged);
                    return Ok(());
                }
                let replaces = match kind {
                    Kind::BestBlob { is_max: true } => new > *known,
                    Kind::BestBlob { is_max: false } => new < *known,
                    Kind::Edge { is_first } => !is_first,
                    _ => false,
                };
                if replaces {
                    *known = new;
                }
            }
            (Rich::Ordered(known), Rich::Ordered(new)) => {
                new.into_iter().for_each(|(value, times)| count(known, value, times));
            }
            (Rich::Sequence(known), Rich::Sequence(new)) => known.append(&new, retracts),
            (Rich::Text(known), Rich::Text(new)) => {
                if let Kind::Text { separator: Some(separator) } = kind {
                    known.push_str(separator);
                }
                known.push_str(&new);
            }
            (Rich::Sketch(known), Rich::Sketch(new)) => known.merge(&new),
            _ => {}
        }
        Ok(())
    }
}

/// Chan's way of putting two spreads together.
fn merge_spread(cell: &mut [u64], theirs: &[u64]) {
    let (ours, new) = (cell[0] as i64, theirs[0] as i64);
    if new == 0 {
        return;
    }
    if ours == 0 {
        cell[..3].copy_from_slice(&theirs[..3]);
        return;
    }
    let all = ours.wrapping_add(new);
    if all == 0 {
        cell[..3].fill(0);
        return;
    }
    let (mean, squares) = (f64::from_bits(cell[1]), f64::from_bits(cell[2]));
    let distance = f64::from_bits(theirs[1]) - mean;
    let new_mean = mean + distance * new as f64 / all as f64;
    let squares = squares + f64::from_bits(theirs[2]) + distance * distance * ours as f64 * new as f64 / all as f64;
    cell[..3].copy_from_slice(&[all as u64, new_mean.to_bits(), squares.to_bits()]);
}
