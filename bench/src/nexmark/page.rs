//! What was measured of the queries, as a page of the documents with a plot.

use std::fmt::Write;
use std::path::Path;

use flott_core::{Result, ResultExt};

use super::Pair;
use crate::plot::Bars;
use crate::report;

/// The inputs, with what they are called.
const INPUTS: [(&str, &str); 2] =
    [("json", "From the same JSON files"), ("generator", "From each engine's own generator")];

const HEAD: &str = "\
# Nexmark, beside Apache Flink

Written by `make bench-nexmark`. Each query of the suite (`tests/sql/nexmark`) runs on Flott and on Apache Flink 2.3 with heap state and object
reuse, each with parallelism 1 and on one core, one after the other, and writes to `blackhole`. Rows are those that are read. What the same
statement takes over few events, start-up and planning with it, is not counted on either side; Flink's time includes the warming up of its compiler.
From files both must have the same number of rows in the result, except in q9, where Flink leaves rows in that it should take back (FLINK-40368). Flink
cannot stream q6. Planning is that of the first query in a process.
";

/// A table of one input.
fn table(pairs: &[Pair], input: &str) -> String {
    let mut table = String::from(
        "| query | Flott k rows/s | Flink k rows/s | ratio | Flott planning ms | Flink planning ms |\n|---|---|---|---|---|---|\n",
    );
    let number = |value: Option<f64>| value.map(|value| format!("{value:.0}")).unwrap_or_default();
    for pair in pairs.iter().filter(|pair| pair.input == input) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            table,
            "| {} | {:.0} | {} | {} | {:.0} | {} |",
            pair.query,
            pair.rate(&pair.flott),
            number(pair.flink.map(|flink| pair.rate(&flink))),
            pair.ratio().map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
            pair.flott.planning_ms,
            number(pair.flink.map(|flink| flink.planning_ms)),
        );
    }
    if let Some(mean) = geometric_mean(pairs.iter().filter(|pair| pair.input == input).filter_map(Pair::ratio)) {
        let _ = writeln!(table, "\nGeometric mean of the ratios: {mean:.2}.");
    }
    table
}

fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = values.map(f64::ln).collect();
    (!logarithms.is_empty()).then(|| (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp())
}

/// Prints the tables, and what is not in them.
pub(super) fn print(pairs: &[Pair], left_out: &[String]) {
    for (input, title) in INPUTS {
        println!("{title}\n\n{}", table(pairs, input));
    }
    left_out.iter().for_each(|reason| println!("Left out: {reason}"));
}

/// Writes the page and the plot.
pub(super) fn save(pairs: &[Pair], left_out: &[String]) -> Result<()> {
    let mut page = HEAD.to_owned();
    let _ = writeln!(page, "\n`{}`, {}.\n\n![ratios](nexmark.svg)", report::command(), report::today());
    for (input, title) in INPUTS {
        let _ = write!(page, "\n## {title}\n\n{}", table(pairs, input));
    }
    for reason in left_out {
        let _ = write!(page, "\nLeft out: {}.\n", reason.replace('\n', " "));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/nexmark.md");
    std::fs::write(&path, page).with_context(|| path.display().to_string())?;
    println!("wrote {}", path.display());
    let mut queries: Vec<&str> = pairs.iter().map(|pair| pair.query.as_str()).collect();
    queries.dedup();
    let ratios = |input: &str| -> Vec<f64> {
        let of = |query: &&str| pairs.iter().find(|pair| pair.query == **query && pair.input == input);
        queries.iter().map(|query| of(query).and_then(Pair::ratio).unwrap_or_default()).collect()
    };
    let values = INPUTS.map(|(input, title)| (title, ratios(input)));
    Bars { title: "Nexmark: how many times as fast as Apache Flink 2.3", names: &queries, values: &values, mark: 1.0 }
        .save("nexmark")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nexmark::sides::Measured;

    #[test]
    fn a_table_has_the_rates_and_their_ratio() {
        let measured = |seconds| Measured { seconds, planning_ms: 4.6, rows: None };
        let pair = |query: &str, flink| Pair {
            query: query.to_owned(),
            input: "json",
            read: 1_000_000,
            flott: measured(0.5),
            flink,
        };
        let pairs = [pair("q0", Some(measured(2.0))), pair("q1", Some(measured(0.5))), pair("q6", None)];
        let table = table(&pairs, "json");
        assert!(table.contains("| q0 | 2000 | 500 | 4.00 | 5 | 5 |\n"), "{table}");
        assert!(table.contains("| q6 | 2000 |  |  | 5 |  |\n"), "{table}");
        assert!(table.ends_with("Geometric mean of the ratios: 2.00.\n"), "{table}");
        assert!(geometric_mean(std::iter::empty()).is_none());
    }
}
