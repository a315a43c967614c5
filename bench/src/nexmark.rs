//! The queries of the Nexmark suite, on Flott and on Apache Flink, one after the other: from the same files, and from each
//! engine's own generator. Both have one core and parallelism 1, and write nowhere (`blackhole`).
//!
//! - [`queries`]: the queries and their tables; [`input`]: the files; [`sides`]: running them; [`page`]: the table and the plot

mod input;
mod page;
mod queries;
mod sides;

use flott_core::{Error, Result};

use self::queries::Query;
use self::sides::{Input, Measured};
use crate::report::Figure;

/// How many queries, of how many events, how often.
struct Extent {
    /// In files.
    filed: u64,
    /// Made by a generator.
    generated: u64,
    /// Those that are not counted.
    few: u64,
    rounds: usize,
}

/// A query from one input.
struct Pair {
    query: String,
    /// `json` or `generator`.
    input: &'static str,
    /// The rows that are read.
    read: u64,
    flott: Measured,
    flink: Option<Measured>,
}

impl Pair {
    fn rate(&self, measured: &Measured) -> f64 {
        self.read as f64 / measured.seconds / 1e3
    }

    fn ratio(&self) -> Option<f64> {
        self.flink.map(|flink| flink.seconds / self.flott.seconds)
    }

    fn figure(&self) -> Figure {
        let name = format!("nexmark_{}_{}", self.query, self.input);
        let ours = self.rate(&self.flott);
        match &self.flink {
            Some(flink) => Figure::more(name, "k rows/s", ours, self.rate(flink)).against("Apache Flink 2.3", 1.0),
            None => Figure::alone(name, "k rows/s", ours),
        }
    }
}

pub(crate) fn run(is_quick: bool) -> Result<Vec<Figure>> {
    let extent = match is_quick {
        true => Extent { filed: 500_000, generated: 500_000, few: 50_000, rounds: 1 },
        false => Extent { filed: 4_000_000, generated: 4_000_000, few: 100_000, rounds: 5 },
    };
    let wanted = std::env::var("NEXMARK_QUERIES").unwrap_or_default();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.split(',').any(|other| other.trim() == name);
    let queries = (0..=queries::LAST).map(Query::read).collect::<Result<Vec<_>>>()?;
    let queries: Vec<Query> = queries.into_iter().filter(|query| is_wanted(&query.name)).collect();
    if queries.is_empty() {
        return Err(Error::input(format!(
            "NEXMARK_QUERIES = '{wanted}' names no query: they are q0 to q{}",
            queries::LAST
        )));
    }
    let (all, few) = (input::folder(extent.filed)?, input::folder(extent.few)?);
    let generator = Input::Generator { folder: few.clone(), all: extent.generated, few: extent.few };
    let files = Input::Files { all, few };
    let classes = sides::generator();
    if let Err(error) = &classes {
        eprintln!("no generator for Flink, so ours runs alone: {error}");
    }
    let (mut pairs, mut left_out) = (Vec::new(), Vec::new());
    for query in &queries {
        let from_generator = classes.as_deref().ok().map(Some);
        for (input, name, classes) in [(&files, "json", Some(None)), (&generator, "generator", from_generator)] {
            match pair(query, input, name, &extent, classes) {
                Ok(pair) => pairs.push(pair),
                Err(error) => {
                    eprintln!("error: {} from {name}: {error}", query.name);
                    left_out.push(format!("{} from {name}: {error}", query.name));
                }
            }
        }
    }
    if pairs.is_empty() {
        return Err(Error::system(left_out.join("; ")));
    }
    page::print(&pairs, &left_out);
    if !is_quick && !cfg!(debug_assertions) && wanted.is_empty() {
        page::save(&pairs, &left_out)?;
    }
    let planning = pairs.iter().map(|pair| pair.flott.planning_ms).fold(0.0, f64::max);
    let mut figures: Vec<Figure> = pairs.iter().map(Pair::figure).collect();
    figures.push(Figure::limited("nexmark_planning_longest", "ms", planning, 50.0));
    let generator = input::generator_rate(extent.generated)?;
    figures.push(Figure::at_least("nexmark_generator", "M events/s", generator, 4.0));
    Ok(figures)
}

/// Runs a query on both sides. `classes` are those that Flink needs for the input; `None` if it cannot have it.
fn pair(
    query: &Query,
    input: &Input,
    name: &'static str,
    extent: &Extent,
    classes: Option<Option<&str>>,
) -> Result<Pair> {
    eprintln!("{} from {name}", query.name);
    let folder = tempfile::tempdir()?;
    // Two generators do not make the same events.
    let counts = name == "json" && query.flinks.is_some() && query.is_right_in_flink;
    let flott = sides::flott(query, input, counts, extent.rounds, folder.path())?;
    let flink = match classes.filter(|_| query.flinks.is_some()) {
        Some(classes) => Some(sides::flink(query, input, counts, classes, folder.path())?),
        None => None,
    };
    if let Some(flink) = &flink
        && flott.rows != flink.rows
    {
        return Err(Error::system(format!("{} has {:?} rows, and {:?} in Flink", query.name, flott.rows, flink.rows)));
    }
    let read = match input {
        Input::Files { .. } => {
            // Of 50 events.
            let share = |table: &&str| match *table {
                "person" => 1,
                "auction" => 3,
                _ => 46,
            };
            query.tables.iter().map(share).sum::<u64>() * (extent.filed - extent.few) / 50
        }
        Input::Generator { .. } => extent.generated - extent.few,
    };
    let pair = Pair { query: query.name.clone(), input: name, read, flott, flink };
    eprintln!(
        "  {:.0} k rows/s, {:.1} ms of planning; Flink {}",
        pair.rate(&pair.flott),
        pair.flott.planning_ms,
        pair.flink.map_or("-".to_owned(), |flink| format!(
            "{:.0} k rows/s, {:.1} ms: ratio {:.2}",
            pair.rate(&flink),
            flink.planning_ms,
            pair.ratio().unwrap_or_default()
        ))
    );
    Ok(pair)
}
