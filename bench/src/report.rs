//! What was measured: a table for people, and `results.json` for the record.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use comfy_table::{CellAlignment, Table, presets};
use flott_core::{Error, Result, ResultExt};
use serde::Serialize;
use serde_json::Value;

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    name: String,
    unit: &'static str,
    ours: f64,
    peer: Option<f64>,
    peer_name: Option<&'static str>,
    /// How much better than the peer: more is better.
    ratio: Option<f64>,
    /// What the ratio should be at least.
    target: Option<f64>,
}

impl Figure {
    /// A figure of which more is better.
    pub(crate) fn more(name: impl Into<String>, unit: &'static str, ours: f64, peer: f64) -> Self {
        let ratio = Some(ours / peer);
        Self { name: name.into(), unit, ours, peer: Some(peer), peer_name: None, ratio, target: None }
    }

    /// A figure of which less is better.
    pub(crate) fn less(name: impl Into<String>, unit: &'static str, ours: f64, peer: f64) -> Self {
        let ratio = Some(peer / ours);
        Self { name: name.into(), unit, ours, peer: Some(peer), peer_name: None, ratio, target: None }
    }

    /// A figure that must not be above a limit that we set ourselves.
    pub(crate) fn limited(name: impl Into<String>, unit: &'static str, ours: f64, limit: f64) -> Self {
        Self::less(name, unit, ours, limit).against("our limit", 1.0)
    }

    /// A figure that must not be below a floor that we set ourselves.
    pub(crate) fn at_least(name: impl Into<String>, unit: &'static str, ours: f64, floor: f64) -> Self {
        Self::more(name, unit, ours, floor).against("our floor", 1.0)
    }

    /// A figure without anything to compare it with.
    pub(crate) fn alone(name: impl Into<String>, unit: &'static str, ours: f64) -> Self {
        Self { name: name.into(), unit, ours, peer: None, peer_name: None, ratio: None, target: None }
    }

    /// Who the peer is, and what the ratio should be.
    pub(crate) fn against(mut self, peer_name: &'static str, target: f64) -> Self {
        self.peer_name = Some(peer_name);
        self.target = Some(target);
        self
    }

    /// Who the peer is, where there is no target.
    pub(crate) fn beside(mut self, peer_name: &'static str) -> Self {
        self.peer_name = Some(peer_name);
        self
    }

    fn verdict(&self) -> &'static str {
        match (self.ratio, self.target) {
            (Some(ratio), Some(target)) if ratio >= target => "reached",
            (Some(_), Some(_)) => "missed",
            _ => "",
        }
    }
}

/// Prints all figures as a table.
pub(crate) fn print(figures: &[Figure]) {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(["benchmark", "unit", "Flott", "peer", "", "ratio", "target", ""]);
    for index in [2, 3, 5, 6] {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let number = |value: Option<f64>| value.map(readable).unwrap_or_default();
    for figure in figures {
        table.add_row([
            figure.name.clone(),
            figure.unit.to_owned(),
            readable(figure.ours),
            number(figure.peer),
            figure.peer_name.unwrap_or_default().to_owned(),
            number(figure.ratio),
            number(figure.target),
            figure.verdict().to_owned(),
        ]);
    }
    println!("{table}");
}

/// Three or four digits that count.
fn readable(value: f64) -> String {
    match value.abs() {
        1000.0.. => format!("{value:.0}"),
        100.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Adds all figures, with command and date, to the results beside the benchmarks' sources.
pub(crate) fn append(figures: &[Figure]) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("results.json");
    append_to(&path, figures, &command(), &today()).with_context(|| path.display().to_string())?;
    println!("appended to {}", path.display());
    Ok(())
}

/// The command that these measurements are made with.
pub(crate) fn command() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = format!("cargo run --release -p flott-bench -- {}", arguments.join(" "));
    command.trim_end_matches([' ', '-']).to_owned()
}

/// The date of this run.
pub(crate) fn today() -> String {
    date_utc(flott_env::now_ms())
}

fn append_to(path: &Path, figures: &[Figure], command: &str, date: &str) -> Result<()> {
    let malformed = |error: serde_json::Error| Error::input(format!("{error}: mend it or move it away"));
    let mut results: Vec<Value> = match fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).map_err(malformed)?,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    for figure in figures {
        let mut result = serde_json::to_value(figure).map_err(malformed)?;
        result["command"] = command.into();
        result["date"] = date.into();
        results.push(result);
    }
    let mut text = serde_json::to_string_pretty(&results).map_err(malformed)?;
    text.push('\n');
    // Whole or not at all: earlier results are not to be had again.
    let partial: PathBuf = path.with_extension("json.partial");
    fs::write(&partial, text)?;
    fs::rename(&partial, path)?;
    Ok(())
}

/// The date of a time after 1970, as `2024-02-29`.
fn date_utc(time_ms: i64) -> String {
    let (mut days, mut year) = (time_ms.max(0) / 86_400_000, 1970);
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    while days >= 365 + i64::from(is_leap(year)) {
        days -= 365 + i64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + i64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_added_to_those_that_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.json");
        let figures = [Figure::less("a", "s", 2.0, 6.0).against("b", 2.5), Figure::alone("c", "ms", 1.0)];
        append_to(&path, &figures, "bench", "2024-02-29").unwrap();
        append_to(&path, &figures, "bench", "2024-03-01").unwrap();
        let results: Vec<Value> = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(results.len(), 4);
        let first = serde_json::json!({
            "name": "a", "unit": "s", "ours": 2.0, "peer": 6.0, "peer_name": "b", "ratio": 3.0, "target": 2.5,
            "command": "bench", "date": "2024-02-29",
        });
        assert_eq!(results[0], first);
        assert_eq!(results[3]["ratio"], Value::Null);

        fs::write(&path, "[").unwrap();
        assert!(append_to(&path, &figures, "bench", "2024-03-01").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "[");
    }

    #[test]
    fn a_figure_reaches_its_target_or_does_not() {
        assert_eq!(Figure::more("a", "rows/s", 8.0, 10.0).against("b", 0.8).verdict(), "reached");
        assert_eq!(Figure::limited("a", "ms", 11.0, 10.0).verdict(), "missed");
        assert_eq!(Figure::at_least("a", "MB/s", 300.0, 300.0).verdict(), "reached");
        assert_eq!(Figure::more("a", "rows/s", 8.0, 10.0).beside("b").verdict(), "");
        assert_eq!(Figure::alone("a", "ms", 11.0).verdict(), "");
    }

    #[test]
    fn dates() {
        assert_eq!(date_utc(0), "1970-01-01");
        assert_eq!(date_utc(1_709_164_800_000), "2024-02-29");
        assert_eq!(date_utc(1_735_689_599_999), "2024-12-31");
        assert_eq!(date_utc(1_735_689_600_000), "2025-01-01");
    }
}
