use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, LargeStringArray, RecordBatch, StructArray, UInt16Array};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::parquet::arrow::ArrowWriter;
use expect_test::{Expect, expect};
use flott_checkpoint::SubtaskSnapshot;

use super::*;
use crate::state::states;
use crate::state::states::tests::{keyed, manifest, vertex};

/// Rows `(key, count)` of a state, as a savepoint has them.
fn rows(counts: &[(&str, i64)]) -> RecordBatch {
    let groups: Vec<u16> = (0..counts.len() as u16).collect();
    let keys: Vec<&str> = counts.iter().map(|(key, _)| *key).collect();
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(counts.iter().map(|(_, count)| *count)));
    let value = StructArray::from(vec![(Arc::new(Field::new("totalCount", DataType::Int64, false)), values)]);
    let columns: [(&str, ArrayRef); 3] = [
        ("key_group", Arc::new(UInt16Array::from(groups))),
        ("key", Arc::new(LargeStringArray::from(keys))),
        ("value", Arc::new(value)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn parquet(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// A savepoint of two operators, where the first has two subtasks; returns its states.
async fn savepoint(dir: &Path) -> Vec<State> {
    let store = Store::default();
    let folder = format!("file://{}", dir.display());
    let put = async |path: &str, counts: &[(&str, i64)]| {
        store.put(&format!("{folder}/{path}"), parquet(&rows(counts)).into()).await.unwrap()
    };
    let words = [
        keyed(1, "words", 2, Some(put("Count/words/1-0.parquet", &[("apple", 3), ("pear", 1)]).await)),
        keyed(1, "words", 1, Some(put("Count/words/1-1.parquet", &[("plum", 2)]).await)),
    ];
    let seen = [
        keyed(1, "seen", 1, Some(put("Count/seen/1-0.parquet", &[("a", 1)]).await)),
        keyed(2, "seen", 0, Some(put("Sum up/seen/2-0.parquet", &[]).await)),
    ];
    let snapshot = |keyed_states| SubtaskSnapshot { keyed_states, ..SubtaskSnapshot::default() };
    let [words_0, words_1] = words;
    let [seen_1, seen_2] = seen;
    let manifest = manifest(vec![
        vertex(&[(1, "Count")], vec![snapshot(vec![words_0, seen_1]), snapshot(vec![words_1])]),
        vertex(&[(2, "Sum up")], vec![snapshot(vec![seen_2])]),
    ]);
    store.write_manifest(&folder, &manifest).await.unwrap();
    let (folder, manifest) = store.load_manifest(&folder, None).await.unwrap();
    states::of(&manifest, &folder)
}

async fn query(states: &[State], sql: &str) -> Result<String> {
    let rows = run(&Store::default(), states, sql, false).await?;
    let batches: Vec<RecordBatch> = rows.try_collect().await.map_err(|error| explain(&error))?;
    Ok(pretty_format_batches(&batches).unwrap().to_string())
}

async fn check(states: &[State], sql: &str, expected: Expect) {
    let rows = query(states, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    expected.assert_eq(&rows);
}

#[tokio::test]
async fn states_are_tables() {
    // A path with characters that a URL would have encoded.
    let dir = tempfile::Builder::new().prefix("save point%20é").tempdir().unwrap();
    let states = savepoint(dir.path()).await;
    check(
        &states,
        "SELECT key, value.totalCount AS n FROM words WHERE key <> 'pear' ORDER BY n DESC",
        expect![[r#"
            +-------+---+
            | key   | n |
            +-------+---+
            | apple | 3 |
            | plum  | 2 |
            +-------+---+"#]],
    )
    .await;
    check(
        &states,
        r#"WITH all_seen AS (SELECT key FROM Count.seen UNION ALL SELECT key FROM "Sum up".seen) SELECT count(*) AS n FROM all_seen"#,
        expect![[r#"
            +---+
            | n |
            +---+
            | 1 |
            +---+"#]],
    )
    .await;
    check(
        &states,
        "SHOW TABLES",
        expect![[r#"
            +--------------+------------+
            | table_schema | table_name |
            +--------------+------------+
            | Count        | seen       |
            | Sum up       | seen       |
            | public       | words      |
            +--------------+------------+"#]],
    )
    .await;
    let described = query(&states, "DESCRIBE words").await.unwrap();
    assert!(["key_group", "LargeUtf8", "totalCount"].iter().all(|part| described.contains(part)), "{described}");
}

#[tokio::test]
async fn names_that_do_not_exist_come_with_those_that_do() {
    let dir = tempfile::tempdir().unwrap();
    let states = savepoint(dir.path()).await;
    let refused = async |sql: &str, message: &str| {
        let error = query(&states, sql).await.unwrap_err().to_string();
        assert!(error.contains(message), "{sql}: {error}");
    };
    refused("SELECT * FROM wordz", "no keyed state 'wordz': did you mean 'words'?").await;
    refused("SELECT * FROM WORDS", "did you mean 'words'?").await;
    refused("SELECT * FROM seen", "write Count.seen or \"Sum up\".seen").await;
    refused("SELECT * FROM \"Sum\".seen", "there is no table 'Sum.seen'").await;
    refused("SELECT kay FROM words", "no column 'kay': did you mean 'key'?").await;
    refused("SELEKT 1", "not SQL that is understood").await;
    refused("SELECT 1; SELECT 2", "one statement at a time").await;
    refused("", "there is no statement").await;
    refused(" -- nothing", "there is no statement").await;
    let error = query(&states, "SELECT no_such_function(key) FROM words").await.unwrap_err().to_string();
    assert!(error.starts_with("the query is refused: "), "{error}");
    assert!(!error.contains("Error during planning") && !error.contains("caused by"), "{error}");
}

#[tokio::test]
async fn a_savepoint_is_only_read() {
    let dir = tempfile::tempdir().unwrap();
    let states = savepoint(dir.path()).await;
    let target = dir.path().join("target.csv");
    let copy = format!("COPY words TO '{}' STORED AS CSV", target.display());
    let external = format!("CREATE EXTERNAL TABLE x STORED AS PARQUET LOCATION '{}'", dir.path().display());
    let statements = [
        copy.as_str(),
        external.as_str(),
        "CREATE TABLE x AS SELECT * FROM words",
        "INSERT INTO words SELECT * FROM words",
        "DELETE FROM words",
        "DROP TABLE words",
        "SET datafusion.execution.batch_size = 1",
        "SELECT * INTO x FROM words",
        "EXPLAIN SELECT * FROM words",
    ];
    for statement in statements {
        let error = query(&states, statement).await.unwrap_err().to_string();
        let word = statement.split(' ').next().unwrap();
        assert!(error.starts_with(&format!("this {word} is not possible")), "{statement}: {error}");
    }
    assert!(!target.exists());
}

#[tokio::test]
async fn a_file_that_is_no_table_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let states = savepoint(dir.path()).await;
    let path = dir.path().join("Count/words/1-0.parquet");
    let length = std::fs::metadata(&path).unwrap().len();
    std::fs::write(&path, vec![0; length as usize]).unwrap();
    let error = query(&states, "SELECT * FROM words").await.unwrap_err().to_string();
    assert!(error.contains("state 'words' of operator 'Count'") && error.contains("1-0.parquet"), "{error}");
}

#[tokio::test]
async fn a_damaged_file_gives_no_rows() {
    let dir = tempfile::tempdir().unwrap();
    let states = savepoint(dir.path()).await;
    let path = dir.path().join("Count/words/1-1.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    // In the data, behind the magic number: what describes the columns is at the end.
    bytes[8] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let queries = [
        "SELECT * FROM words",
        "SELECT count(*) FROM public.words",
        "WITH w AS (SELECT key FROM savepoint.public.words) SELECT count(*) FROM w",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM words)",
    ];
    for sql in queries {
        let error = query(&states, sql).await.unwrap_err().to_string();
        assert!(error.contains("1-1.parquet is damaged: its SHA-256 is"), "{sql}: {error}");
    }
    query(&states, "SELECT * FROM Count.seen").await.unwrap();
}
