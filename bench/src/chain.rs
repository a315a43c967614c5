//! `map → filter → map` over numbers in memory, beside the loop that one would write by hand: both get the same batches
//! and make the same batches.

use std::hint::black_box;

use flott_core::{Batch, Result};
use flott_operators::Push;
use flott_operators::stateless::{Filter, Iter, Map, Records};

use crate::harness::{Sum, Total, batches, chained, check_same, medians, sum, timed};
use crate::report::Figure;

fn first(row: u64) -> u64 {
    row.wrapping_mul(3).wrapping_add(1)
}

/// Keeps seven of eight.
fn is_kept(row: &u64) -> bool {
    row & 7 != 0
}

fn second(row: u64) -> u64 {
    (row >> 1) ^ 0x55
}

fn value(row: &u64) -> u64 {
    *row
}

pub(crate) fn run(is_quick: bool) -> Result<Vec<Figure>> {
    let (rows, rounds) = if is_quick { (2_000_000, 3) } else { (20_000_000, 9) };
    let total = Total::default();
    let end = || Box::new(Sum::new(value, &total));
    let map = chained::<u64, u64, _>(Map::new(second), end());
    let filter = chained::<u64, u64, _>(Filter::new(is_kept), map);
    let mut operators = chained::<u64, u64, _>(Map::new(first), filter);
    let iter = Iter::new(|rows: Records<u64>| rows.map(first).filter(is_kept).map(second));
    let mut fused = chained::<u64, u64, _>(iter, end());
    let numbers = batches(rows, |index| index);

    let [operators_s, fused_s, loop_s] = medians(rounds, || {
        // Operators take their rows, so each round has its own; copying them is not measured.
        let mut input = numbers.clone();
        let (operators_s, pushed) = timed(|| push_all(&mut *operators, &mut input));
        pushed?;
        let operators_total = total.take();

        let mut input = numbers.clone();
        let (fused_s, pushed) = timed(|| push_all(&mut *fused, &mut input));
        pushed?;
        let fused_total = total.take();

        let input = numbers.clone();
        let (loop_s, loop_total) = timed(|| by_hand(&input));
        check_same("the sum of map, filter and map", operators_total, loop_total)?;
        check_same("the sum of iter", fused_total, loop_total)?;
        Ok([operators_s, fused_s, loop_s])
    })?;

    let rate = |seconds: f64| rows as f64 / seconds / 1e6;
    let figure = |name, seconds| Figure::more(name, "M rows/s", rate(seconds), rate(loop_s)).against("a loop", 0.8);
    Ok(vec![figure("chain", operators_s), figure("chain_iter", fused_s)])
}

fn push_all(chain: &mut dyn Push<u64>, input: &mut [Batch<u64>]) -> Result<()> {
    input.iter_mut().try_for_each(|batch| chain.push(batch))
}

fn by_hand(input: &[Batch<u64>]) -> u64 {
    let (mut output, mut total) = (Vec::with_capacity(Batch::<u64>::ROWS_MAX), 0_u64);
    for batch in input {
        output.clear();
        for &row in &batch.rows {
            let row = first(row);
            if is_kept(&row) {
                output.push(second(row));
            }
        }
        total = total.wrapping_add(sum(black_box(&output), value));
    }
    total
}
