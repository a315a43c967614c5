//! What it costs while a job runs that its state can be taken back to a checkpoint in memory, and how long that takes
//! for a gigabyte of which one entry in a hundred changed, beside reading the checkpoint's file.

use std::sync::Arc;

use flott_core::Result;
use flott_core::hash::stable_hash;
use flott_operators::key::BorrowedKey;
use flott_operators::reduce::Reduce;
use flott_operators::{KeyExtractor, Push};
use flott_state::{Checkpointed, Freeze, SnapshotMode};

use crate::checkpoint::{Row, UNCHANGED, feed, snapshot};
use crate::harness::{Sum, Total, batches, chained, check_same, medians, runtime, scrambled, task_context, timed};
use crate::report::Figure;
use crate::tables;

pub(crate) fn run(is_quick: bool) -> Result<Vec<Figure>> {
    Ok(vec![cost(is_quick)?, rewind(is_quick)?])
}

fn key(row: &Row) -> &u64 {
    &row.0
}

/// A running sum per key, from one checkpoint to the next, in which every key changes several times.
fn cost(is_quick: bool) -> Result<Figure> {
    let (rows, keys, rounds) = if is_quick { (1_000_000, 100_000, 3) } else { (10_000_000, 1_000_000, 7) };
    let runtime = runtime()?;
    let cx = task_context(runtime.handle());
    let input = batches(rows, |index| (scrambled(index) % keys, index));
    let sums = |total: &Total| -> Result<Box<dyn Push<Row>>> {
        let add = |sum: &Row, next: Row| (next.0, sum.1.wrapping_add(next.1));
        let extractor: Arc<dyn KeyExtractor<Row, u64>> = Arc::new(BorrowedKey::new(key));
        let end = Box::new(Sum::new(|row: &Row| row.1, total));
        let mut chain = chained::<Row, Row, _>(Reduce::new(add, extractor, &cx)?, end);
        feed(&mut *chain, 0..keys)?;
        Ok(chain)
    };
    let (kept_total, plain_total) = (Total::default(), Total::default());
    let (mut kept, mut plain) = (sums(&kept_total)?, sums(&plain_total)?);

    let mut checkpoint = 0;
    let [kept_s, plain_s] = medians(rounds, || {
        checkpoint += 1;
        let interval = |chain: &mut dyn Push<Row>, is_rewindable| -> Result<f64> {
            snapshot(chain, Freeze { checkpoint, mode: SnapshotMode::Incremental, is_rewindable })?;
            // The operator takes its rows; copying them is not measured.
            let mut own = input.clone();
            let (seconds, pushed) = timed(|| own.iter_mut().try_for_each(|batch| chain.push(batch)));
            pushed.map(|()| seconds)
        };
        let seconds = [interval(&mut *kept, true)?, interval(&mut *plain, false)?];
        check_same("the sum of the running sums", kept_total.take(), plain_total.take())?;
        Ok(seconds)
    })?;
    let rate = |seconds: f64| rows as f64 / seconds / 1e6;
    Ok(Figure::more("rewindable", "M rows/s", rate(kept_s), rate(plain_s)).beside("the same, not rewindable"))
}

/// What a survivor of a failure does.
fn rewind(is_quick: bool) -> Result<Figure> {
    let (keys, rounds) = (tables::keys(is_quick), if is_quick { 3 } else { 5 });
    let checkpoint = 1;
    let mut table = tables::filled(keys);
    let freeze = Freeze { checkpoint, mode: SnapshotMode::Full, is_rewindable: true };
    let file = tables::snapshot(&mut table, freeze)?;
    table.confirm(checkpoint);
    let expected = tables::checksum(&table);

    let mut first = 0;
    let [rewind_s, restore_s] = medians(rounds, || {
        for key in (first..keys).step_by(UNCHANGED as usize) {
            if let Some(totals) = table.get_mut(stable_hash(&key), &key, &()) {
                totals.add(1);
            }
        }
        first += 1;
        let mut successor = tables::empty();
        let (rewind_s, adopted) = timed(|| -> Result<()> {
            for (group, entries) in table.release(checkpoint) {
                successor.adopt(group, entries)?;
            }
            successor.rewindable_from(checkpoint);
            Ok(())
        });
        adopted?;
        check_same("the state that was taken back", tables::checksum(&successor), expected)?;
        table = successor;

        let mut restored = tables::empty();
        let (restore_s, result) = timed(|| tables::restore(&file, &mut restored));
        result?;
        check_same("the state that was read", tables::checksum(&restored), expected)?;
        Ok([rewind_s, restore_s])
    })?;
    Ok(Figure::less("rewind", "ms", rewind_s * 1e3, restore_s * 1e3).beside("reading its file"))
}
