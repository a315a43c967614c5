//! A running sum per key, beside a loop over a hash map: one that gives the running sums as well, and one that only adds.

use std::hint::black_box;
use std::sync::Arc;

use flott_core::{Batch, Result};
use flott_operators::KeyExtractor;
use flott_operators::key::BorrowedKey;
use flott_operators::reduce::Reduce;
use hashbrown::HashMap;

use crate::harness::{Sum, Total, batches, chained, check_same, medians, runtime, scrambled, sum, task_context, timed};
use crate::report::Figure;

/// A key and a value.
type Row = (u64, u64);

fn key(row: &Row) -> &u64 {
    &row.0
}

fn value(row: &Row) -> u64 {
    row.1
}

pub(crate) fn run(is_quick: bool) -> Result<Vec<Figure>> {
    let (rows, keys, rounds) = if is_quick { (1_000_000, 100_000, 3) } else { (10_000_000, 1_000_000, 7) };
    let runtime = runtime()?;
    let cx = task_context(runtime.handle());
    let input = batches(rows, |index| (scrambled(index) % keys, index));

    let [reduce_s, running_s, adding_s] = medians(rounds, || {
        let total = Total::default();
        let add = |sum: &Row, next: Row| (next.0, sum.1.wrapping_add(next.1));
        let keys: Arc<dyn KeyExtractor<Row, u64>> = Arc::new(BorrowedKey::new(key));
        let mut chain = chained::<Row, Row, _>(Reduce::new(add, keys, &cx)?, Box::new(Sum::new(value, &total)));
        // The operator takes its rows; copying them is not measured.
        let mut own = input.clone();
        let (reduce_s, pushed) = timed(|| own.iter_mut().try_for_each(|batch| chain.push(batch)));
        pushed?;
        drop(chain);

        let own = input.clone();
        let (running_s, running_total) = timed(|| running_sums(&own));
        check_same("the sum of the running sums", total.take(), running_total)?;

        let own = input.clone();
        let (adding_s, sums) = timed(|| sums(&own));
        black_box(&sums);
        Ok([reduce_s, running_s, adding_s])
    })?;

    let rate = |seconds: f64| rows as f64 / seconds / 1e6;
    let figure = |name, peer_s, peer| Figure::more(name, "M rows/s", rate(reduce_s), rate(peer_s)).against(peer, 0.5);
    Ok(vec![
        figure("keyed_sum", running_s, "a hash map, running sums"),
        figure("keyed_sum_adding", adding_s, "a hash map, only adding"),
    ])
}

fn running_sums(input: &[Batch<Row>]) -> u64 {
    let mut sums: HashMap<u64, u64> = HashMap::new();
    let (mut output, mut total) = (Vec::with_capacity(Batch::<Row>::ROWS_MAX), 0_u64);
    for batch in input {
        output.clear();
        for &(key, value) in &batch.rows {
            let running = sums.entry(key).or_insert(0);
            *running = running.wrapping_add(value);
            output.push((key, *running));
        }
        total = total.wrapping_add(sum(black_box(&output), value));
    }
    total
}

fn sums(input: &[Batch<Row>]) -> HashMap<u64, u64> {
    let mut sums = HashMap::new();
    for &(key, value) in input.iter().flat_map(|batch| &batch.rows) {
        let sum = sums.entry(key).or_insert(0_u64);
        *sum = sum.wrapping_add(value);
    }
    sums
}
