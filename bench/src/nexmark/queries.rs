//! The queries of the suite, as the scripts of `tests/sql/nexmark` have them, over tables of our own.

use std::fs;
use std::path::{Path, PathBuf};

use flott_core::{Error, Result, ResultExt};

/// The number of the last query.
pub(super) const LAST: u32 = 23;

/// Columns of the events in files: what the scripts read, with the name of each table.
const TABLES: [(&str, &str); 3] = [
    (
        "person",
        "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, `dateTime` TIMESTAMP(3), \
         extra STRING",
    ),
    (
        "auction",
        "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, `dateTime` TIMESTAMP(3), \
         expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING",
    ),
    (
        "bid",
        "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING",
    ),
];

const WATERMARK: &str = "WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND";

/// A query of the suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Query {
    /// `q0` and so on.
    pub(super) name: String,
    /// For us.
    pub(super) ours: String,
    /// For Flink; `None` where Flink cannot run it.
    pub(super) flinks: Option<String>,
    /// Whether Flink has the same rows when it streams.
    pub(super) is_right_in_flink: bool,
    /// Those tables of events that it reads.
    pub(super) tables: Vec<&'static str>,
}

impl Query {
    /// Reads query `number`.
    pub(super) fn read(number: u32) -> Result<Self> {
        let name = format!("q{number}");
        let folder = scripts();
        let text = read(&folder.join(format!("{name}.sql")))?;
        let ours = select(&text, &name)?;
        let other = folder.join(format!("{name}.flink.sql"));
        let flinks = match number {
            // A window over changes, which Flink refuses when it streams.
            6 => None,
            _ if other.exists() => Some(select(&read(&other)?, &name)?),
            _ => Some(ours.clone()),
        };
        // Scripts have no other tables than those that they read.
        let is_made = |name: &&str| text.contains(&format!("CREATE TABLE {name} ("));
        let tables = TABLES.iter().map(|(name, _)| *name).filter(is_made).collect();
        // Else the script says why.
        let is_right_in_flink = !text.contains("\n-- record: batch\n");
        Ok(Self { name, ours, flinks, is_right_in_flink, tables })
    }
}

/// Where the scripts are.
pub(super) fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/sql/nexmark")
}

fn read(script: &Path) -> Result<String> {
    fs::read_to_string(script).with_context(|| script.display().to_string())
}

/// The statement that a script ends with.
fn select(script: &str, name: &str) -> Result<String> {
    let last = script.trim_end().trim_end_matches(';').rsplit(";\n").next().unwrap_or_default().trim();
    match last.starts_with("SELECT") {
        true => Ok(last.to_owned()),
        false => Err(Error::input(format!("the script of {name} does not end in a SELECT"))),
    }
}

/// The statements that make the tables of files in `folder`, and the side input of q13.
pub(super) fn file_tables(folder: &Path) -> Vec<String> {
    let table = |(name, columns): &(&str, &str)| {
        let path = folder.join(format!("{name}.json"));
        format!(
            "CREATE TABLE {name} ({columns}, {WATERMARK}) WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = 'json')",
            path.display()
        )
    };
    TABLES.iter().map(table).chain([side_input(folder)]).collect()
}

fn side_input(folder: &Path) -> String {
    let path = folder.join("side_input.csv");
    format!(
        "CREATE TABLE side_input (key BIGINT, `value` STRING) WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = 'csv')",
        path.display()
    )
}

/// The statements that make the tables of what an engine's own generator makes: the suite's wide table and its views.
pub(super) fn generated_tables(folder: &Path, events: u64) -> Vec<String> {
    let rows = TABLES.map(|(name, columns)| format!("{name} ROW<{columns}>"));
    let time = "`dateTime` AS CASE WHEN event_type = 0 THEN person.`dateTime` WHEN event_type = 1 THEN auction.`dateTime` \
                ELSE bid.`dateTime` END";
    let wide = format!(
        "CREATE TABLE nexmark (event_type INT, {}, {time}, {WATERMARK}) WITH ('connector' = 'nexmark', \
         'first-event.rate' = '10000', 'next-event.rate' = '10000', 'events.num' = '{events}')",
        rows.join(", ")
    );
    let view = |(kind, (name, columns)): (usize, &(&str, &str))| {
        let field = |column: &str| match column.split(' ').next().unwrap_or_default() {
            "`dateTime`" => "`dateTime`".to_owned(),
            field => format!("{name}.{field}"),
        };
        let fields: Vec<String> = columns.split(", ").map(field).collect();
        format!("CREATE VIEW {name} AS SELECT {} FROM nexmark WHERE event_type = {kind}", fields.join(", "))
    };
    [wide].into_iter().chain(TABLES.iter().enumerate().map(view)).chain([side_input(folder)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_queries_are_there() {
        for number in 0..=LAST {
            let query = Query::read(number).unwrap();
            assert!(query.ours.starts_with("SELECT") && !query.ours.contains(';'), "{query:?}");
            assert!(!query.tables.is_empty(), "{query:?}");
            assert_eq!(query.flinks.is_none(), number == 6);
            assert_eq!(query.is_right_in_flink, ![6, 9].contains(&number), "{query:?}");
        }
        assert_ne!(Query::read(13).map(|query| query.flinks), Query::read(13).map(|query| Some(query.ours)));
        assert!(Query::read(LAST + 1).is_err());
        assert_eq!(Query::read(0).unwrap().tables, ["bid"]);
        assert_eq!(Query::read(3).unwrap().tables, ["person", "auction"]);
    }

    #[test]
    fn views_have_the_columns_of_files() {
        let tables = generated_tables(Path::new("/d"), 7);
        assert!(
            tables[0].contains("'events.num' = '7'") && tables[0].contains("bid ROW<auction BIGINT, "),
            "{tables:?}"
        );
        let person = "CREATE VIEW person AS SELECT person.id, person.name, person.emailAddress, person.creditCard, person.city, \
                      person.state, `dateTime`, person.extra FROM nexmark WHERE event_type = 0";
        assert_eq!(tables[1], person);
        assert!(file_tables(Path::new("/d"))[2].contains("'/d/bid.json'"));
    }
}
