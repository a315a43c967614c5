//! `tests/sql/functions/*.slt`: queries over functions and what Flink gives for them.
//!
//! Rows are sorted, since those of VALUES have no order. A value that is empty is shown as `(empty)`, one with spaces around it
//! in quotes.

use std::fs;

use flott_core::{Error, Result};
use flott_e2e::repository;
use flott_queries::bed::Bed;
use flott_queries::story::Story;
use flott_sql::parse::parse_script;
use flott_sql::session::{Answer, Session};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};

#[derive(Default)]
struct Database {
    session: Session,
}

fn shown(value: &str) -> String {
    match value {
        "" => "(empty)".to_owned(),
        value if value.starts_with(' ') || value.ends_with(' ') => format!("\"{value}\""),
        value => value.replace('\n', "\\n").replace('\t', "\\t"),
    }
}

impl DB for Database {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>> {
        let mut answer = Answer::Done;
        for statement in parse_script(sql)? {
            answer = self.session.execute(&statement)?;
        }
        let job = match answer {
            Answer::Select(job) => job,
            Answer::Done => return Ok(DBOutput::StatementComplete(0)),
            other => return Err(Error::input(format!("there is nothing to compare in {other:?}"))),
        };
        let bed = Bed::new()?;
        let mut story = Story::new(&bed, &job, 0);
        story.run(1)?;
        let rows = story.results().table()?;
        let rows = rows.iter().map(|row| row.split('\t').map(shown).collect()).collect();
        Ok(DBOutput::Rows { types: vec![DefaultColumnType::Text; job.schema.fields().len()], rows })
    }

    fn engine_name(&self) -> &str {
        "flott"
    }
}

#[test]
fn functions_give_what_flink_gives() {
    let folder = repository().join("tests/sql/functions");
    let mut files: Vec<_> =
        fs::read_dir(&folder).expect("the folder of functions").flatten().map(|e| e.path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "slt"));
    files.sort();
    let (mut queries, mut mistakes) = (0, Vec::new());
    for file in &files {
        // One by one, so that one run shows all that is wrong.
        let records = sqllogictest::parse_file::<DefaultColumnType>(file).expect("a file of queries");
        let mut runner = Runner::new(|| async { Ok(Database::default()) });
        runner.with_normalizer(String::clone);
        for record in records {
            queries += usize::from(matches!(record, sqllogictest::Record::Query { .. }));
            if let Err(error) = runner.run(record) {
                mistakes.push(error.display(false).to_string());
            }
        }
    }
    assert!(queries >= 300, "only {queries} queries");
    assert!(mistakes.is_empty(), "{} of {queries} queries:\n{}", mistakes.len(), mistakes.join("\n"));
}
