//! Output over time as a picture, in as much SVG as that takes.

use std::fmt::Write;
use std::path::Path;

use flott_core::{Result, ResultExt};

use crate::report;

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 260.0;
/// The axes' distance from the edges: left, right, top, bottom.
const MARGINS: [f64; 4] = [60.0, 20.0, 40.0, 40.0];

/// Records in each step of time, and what happened meanwhile.
pub(crate) struct Plot<'a> {
    /// What can be seen.
    pub(crate) title: &'a str,
    /// Records in each step.
    pub(crate) steps: &'a [u64],
    /// How long a step is.
    pub(crate) step_ms: i64,
    /// The time of the first step.
    pub(crate) from_ms: i64,
    /// Times with what happened then.
    pub(crate) marks: &'a [(i64, &'a str)],
}

impl Plot<'_> {
    /// Writes the picture to `NAME.svg` in the folder of the documents.
    pub(crate) fn save(&self, name: &str) -> Result<()> {
        write(name, |caption| self.to_svg(caption))
    }

    fn to_svg(&self, caption: &str) -> String {
        let [left, right, top, bottom] = MARGINS;
        let (width, height) = (WIDTH - left - right, HEIGHT - top - bottom);
        let most = self.steps.iter().copied().max().unwrap_or(0).max(1) as f64;
        let span_ms = (self.steps.len() as i64 * self.step_ms).max(1) as f64;
        let x = |ms: f64| left + (ms - self.from_ms as f64) / span_ms * width;
        let y = |records: f64| top + height * (1.0 - records / most);

        let mut svg = head();
        let mut line = |text: String| {
            svg.push_str(&text);
            svg.push('\n');
        };
        line(text(left, 18.0, "start", "#000", self.title));
        line(text(WIDTH - right, HEIGHT - 6.0, "end", "#777", caption));
        line(text(left, top - 6.0, "start", "#777", &format!("records in {} ms", self.step_ms)));

        // A line at each whole second, counted from the first mark.
        let zero_ms = self.marks.first().map_or(self.from_ms, |(ms, _)| *ms) as f64;
        let seconds = |ms: f64| (ms - zero_ms) / 1e3;
        let first = seconds(self.from_ms as f64).ceil() as i64;
        let last = seconds(self.from_ms as f64 + span_ms).floor() as i64;
        for second in first..=last {
            let at = x(zero_ms + second as f64 * 1e3);
            line(rule(at, top, at, top + height, "#ddd"));
            line(text(at, top + height + 16.0, "middle", "#777", &format!("{second} s")));
        }
        for records in [0.0, most / 2.0, most] {
            line(rule(left, y(records), left + width, y(records), "#ddd"));
            line(text(left - 6.0, y(records) + 4.0, "end", "#777", &format!("{records:.0}")));
        }

        let mut points = String::new();
        for (step, records) in self.steps.iter().enumerate() {
            let (from_x, at) = (x((self.from_ms + step as i64 * self.step_ms) as f64), y(*records as f64));
            let to_x = x((self.from_ms + (step as i64 + 1) * self.step_ms) as f64);
            // Writing to a string cannot fail.
            let _ = write!(points, "{from_x:.1},{at:.1} {to_x:.1},{at:.1} ");
        }
        let points = points.trim_end();
        line(format!("<polyline points=\"{points}\" fill=\"none\" stroke=\"#2563eb\" stroke-width=\"1\"/>"));
        for (number, (ms, what)) in self.marks.iter().enumerate() {
            let at = x(*ms as f64);
            line(rule(at, top, at, top + height, "#dc2626"));
            line(text(at + 4.0, top + 12.0 + 14.0 * number as f64, "start", "#dc2626", what));
        }
        line("</svg>".to_owned());
        svg
    }
}

fn rule(x1: f64, y1: f64, x2: f64, y2: f64, colour: &str) -> String {
    format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>")
}

/// A figure by another, both on axes that begin at 0.
pub(crate) struct Curve<'a> {
    /// What can be seen.
    pub(crate) title: &'a str,
    /// In ascending order.
    pub(crate) points: &'a [(f64, f64)],
}

impl Curve<'_> {
    /// Writes the picture to `NAME.svg` in the folder of the documents.
    pub(crate) fn save(&self, name: &str) -> Result<()> {
        write(name, |caption| self.to_svg(caption))
    }

    fn to_svg(&self, caption: &str) -> String {
        let [left, right, top, bottom] = MARGINS;
        let (width, height) = (WIDTH - left - right, HEIGHT - top - bottom);
        let most = |value: fn(&(f64, f64)) -> f64| self.points.iter().map(value).fold(f64::MIN_POSITIVE, f64::max);
        let (most_x, most_y) = (most(|point| point.0), most(|point| point.1));
        let x = |value: f64| left + value / most_x * width;
        let y = |value: f64| top + height * (1.0 - value / most_y);
        let mut svg = head();
        svg.push_str(&text(left, 18.0, "start", "#000", self.title));
        svg.push_str(&text(WIDTH - right, HEIGHT - 6.0, "end", "#777", caption));
        for share in [0.0, 0.5, 1.0] {
            svg.push_str(&rule(left, y(most_y * share), left + width, y(most_y * share), "#ddd"));
            svg.push_str(&text(left - 6.0, y(most_y * share) + 4.0, "end", "#777", &format!("{:.1}", most_y * share)));
        }
        let mut points = String::new();
        for (at, value) in self.points {
            svg.push_str(&text(x(*at), top + height + 16.0, "middle", "#777", &format!("{at}")));
            // Writing to a string cannot fail.
            let _ = write!(points, "{:.1},{:.1} ", x(*at), y(*value));
        }
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"#2563eb\" stroke-width=\"1.5\"/>\n</svg>",
            points.trim_end()
        );
        svg
    }
}

/// Values of several kinds, side by side for each name.
pub(crate) struct Bars<'a> {
    /// What can be seen.
    pub(crate) title: &'a str,
    pub(crate) names: &'a [&'a str],
    /// Of each kind, what it is and its value for each name.
    pub(crate) values: &'a [(&'a str, Vec<f64>)],
    /// A value with a line of its own.
    pub(crate) mark: f64,
}

/// The colours of kinds, again from the first if there are more.
const COLOURS: [&str; 2] = ["#2563eb", "#93c5fd"];

impl Bars<'_> {
    /// Writes the picture to `NAME.svg` in the folder of the documents.
    pub(crate) fn save(&self, name: &str) -> Result<()> {
        write(name, |caption| self.to_svg(caption))
    }

    fn to_svg(&self, caption: &str) -> String {
        let [left, right, top, bottom] = MARGINS;
        let (width, height) = (WIDTH - left - right, HEIGHT - top - bottom);
        let most = self.values.iter().flat_map(|(_, values)| values).copied().fold(self.mark, f64::max);
        let y = |value: f64| top + height * (1.0 - value / most);
        let mut svg = head();
        svg.push_str(&text(left, 18.0, "start", "#000", self.title));
        svg.push_str(&text(WIDTH - right, HEIGHT - 6.0, "end", "#777", caption));
        for share in [0.0, 0.5, 1.0] {
            svg.push_str(&rule(left, y(most * share), left + width, y(most * share), "#ddd"));
            svg.push_str(&text(left - 6.0, y(most * share) + 4.0, "end", "#777", &format!("{:.1}", most * share)));
        }
        let group = width / self.names.len().max(1) as f64;
        let bar = group * 0.8 / self.values.len().max(1) as f64;
        for (index, name) in self.names.iter().enumerate() {
            let from = left + group * index as f64;
            svg.push_str(&text(from + group / 2.0, top + height + 16.0, "middle", "#777", name));
            for (kind, (_, values)) in self.values.iter().enumerate() {
                let value = values.get(index).copied().unwrap_or_default();
                // Writing to a string cannot fail.
                let _ = write!(
                    svg,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{bar:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                    from + group * 0.1 + bar * kind as f64,
                    y(value),
                    top + height - y(value),
                    COLOURS[kind % COLOURS.len()]
                );
            }
        }
        for (kind, (what, _)) in self.values.iter().enumerate() {
            let at = left + width / 2.0 * kind as f64;
            svg.push_str(&text(at, top - 6.0, "start", COLOURS[kind % COLOURS.len()], what));
        }
        svg.push_str(&rule(left, y(self.mark), left + width, y(self.mark), "#dc2626"));
        svg.push_str("\n</svg>\n");
        svg
    }
}

fn head() -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    )
}

fn write(name: &str, draw: impl FnOnce(&str) -> String) -> Result<()> {
    let svg = draw(&format!("{}, {}", report::command(), report::today()));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(format!("{name}.svg"));
    std::fs::write(&path, svg).with_context(|| path.display().to_string())?;
    println!("wrote {}", path.display());
    Ok(())
}

fn text(x: f64, y: f64, anchor: &str, colour: &str, text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{text}</text>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_marks_are_where_they_belong() {
        let marks = [(2000, "a < b"), (3000, "done")];
        let plot = Plot { title: "Rescale", steps: &[10, 0, 5, 10], step_ms: 1000, from_ms: 1000, marks: &marks };
        let svg = plot.to_svg("bench, today");
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
        let points = "60.0,40.0 240.0,40.0 240.0,220.0 420.0,220.0 420.0,130.0 600.0,130.0 600.0,40.0 780.0,40.0";
        assert!(svg.contains(points), "{svg}");
        assert!(svg.contains("<line x1=\"240.0\" y1=\"40.0\" x2=\"240.0\" y2=\"220.0\" stroke=\"#dc2626\"/>"), "{svg}");
        assert!(
            svg.contains(">a &lt; b</text>") && svg.contains(">-1 s</text>") && svg.contains(">3 s</text>"),
            "{svg}"
        );
    }

    #[test]
    fn a_curve_goes_through_its_points() {
        let svg = Curve { title: "t", points: &[(0.0, 4.0), (10.0, 2.0)] }.to_svg("c");
        assert!(svg.contains("points=\"60.0,40.0 780.0,130.0\"") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert!(!Curve { title: "", points: &[] }.to_svg("").contains("NaN"));
    }

    #[test]
    fn bars_are_as_high_as_their_values() {
        let values = [("ours", vec![4.0, 1.0]), ("theirs", vec![2.0, 0.0])];
        let svg = Bars { title: "t", names: &["q0", "q1"], values: &values, mark: 1.0 }.to_svg("c");
        assert!(
            svg.contains("<rect x=\"96.0\" y=\"40.0\" width=\"144.0\" height=\"180.0\" fill=\"#2563eb\"/>"),
            "{svg}"
        );
        assert!(svg.contains("y=\"130.0\" width=\"144.0\" height=\"90.0\" fill=\"#93c5fd\"/>"), "{svg}");
        assert!(!Bars { title: "", names: &[], values: &[], mark: 1.0 }.to_svg("").contains("NaN"));
    }

    #[test]
    fn no_output_at_all_can_be_drawn() {
        let svg = Plot { title: "", steps: &[], step_ms: 10, from_ms: 0, marks: &[] }.to_svg("");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
