//! The text format in which Prometheus reads metrics, version 0.0.4.

use std::fmt::Write;

/// The content type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How the values of a family behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// They only grow, until the process starts again.
    Counter,
    /// They go up and down.
    Gauge,
}

/// A metric: what all its samples have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name, of letters, digits and `_`; a counter's ends with `_total`.
    pub name: &'static str,
    /// How its values behave.
    pub kind: Kind,
    /// What it shows, with its unit.
    pub help: &'static str,
}

/// Writes samples. They may come in any order: those of a family are put together, as the format demands.
///
/// ```
/// use flott_telemetry::prometheus::{Family, Kind, Writer};
/// const RECORDS: Family = Family { name: "flott_records_in_total", kind: Kind::Counter, help: "Records received." };
/// let mut writer = Writer::default();
/// writer.sample(&RECORDS, &[("job", "a \"b\""), ("subtask", "0")], 17.0);
/// assert_eq!(writer.finish(), "\
/// ## HELP flott_records_in_total Records received.
/// ## TYPE flott_records_in_total counter
/// flott_records_in_total{job=\"a \\\"b\\\"\",subtask=\"0\"} 17
/// ");
/// ```
#[derive(Debug, Default)]
pub struct Writer {
    /// The families in the order of their first samples, each with its text.
    families: Vec<(&'static str, String)>,
}

impl Writer {
    /// Adds one sample of `family`. No two samples of a family may have the same labels.
    pub fn sample(&mut self, family: &Family, labels: &[(&str, &str)], value: f64) {
        let text = self.family(family);
        text.push_str(family.name);
        for (index, (name, value)) in labels.iter().enumerate() {
            text.push_str(if index == 0 { "{" } else { "," });
            text.push_str(name);
            text.push_str("=\"");
            escape(text, value, true);
            text.push('"');
        }
        text.push_str(if labels.is_empty() { " " } else { "} " });
        if value == f64::INFINITY {
            text.push_str("+Inf\n");
        } else if value == f64::NEG_INFINITY {
            text.push_str("-Inf\n");
        } else {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{value}");
        }
    }

    /// All samples.
    pub fn finish(self) -> String {
        self.families.into_iter().map(|(_, text)| text).collect()
    }

    fn family(&mut self, family: &Family) -> &mut String {
        let index = self.families.iter().position(|(name, _)| *name == family.name).unwrap_or_else(|| {
            let kind = match family.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            let mut text = format!("# HELP {} ", family.name);
            escape(&mut text, family.help, false);
            let _ = writeln!(text, "\n# TYPE {} {kind}", family.name);
            self.families.push((family.name, text));
            self.families.len() - 1
        });
        &mut self.families[index].1
    }
}

fn escape(text: &mut String, value: &str, in_quotes: bool) {
    for char in value.chars() {
        match char {
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '"' if in_quotes => text.push_str("\\\""),
            char => text.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Family = Family { name: "a_total", kind: Kind::Counter, help: "First \"a\",\nthen \\." };
    const B: Family = Family { name: "b", kind: Kind::Gauge, help: "B." };

    #[test]
    fn families_are_contiguous_and_described_once() {
        let mut writer = Writer::default();
        writer.sample(&A, &[("x", "1")], 1.0);
        writer.sample(&B, &[], -0.5);
        writer.sample(&A, &[("x", "2\n\\")], 1e15);
        let expected = r#"# HELP a_total First "a",\nthen \\.
# TYPE a_total counter
a_total{x="1"} 1
a_total{x="2\n\\"} 1000000000000000
# HELP b B.
# TYPE b gauge
b -0.5
"#;
        assert_eq!(writer.finish(), expected);
    }

    #[test]
    fn special_values_are_written_as_go_reads_them() {
        let mut writer = Writer::default();
        for value in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            writer.sample(&B, &[], value);
        }
        assert!(writer.finish().ends_with("b +Inf\nb -Inf\nb NaN\n"));
    }

    #[test]
    fn nothing_is_an_empty_page() {
        assert_eq!(Writer::default().finish(), "");
    }
}
