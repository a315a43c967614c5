//! Changes as objects of JSON, a line each, as Flink reads and writes them: `debezium-json`, `canal-json`, `maxwell-json`.
//!
//! | | rows | kind |
//! |-|-|-|
//! | Debezium | `before`, `after` | `op`: `c`, `r`, `u`, `d` |
//! | Canal | `data`, an array; `old`, what was different before | `type`: `INSERT`, `UPDATE`, `DELETE` |
//! | Maxwell | `data`; `old`, what was different before | `type`: `insert`, `update`, `delete` |
//!
//! All rows of a message are found before the first is appended, so a message that is left out leaves nothing behind.

use flott_chunk::RowKind;
use regex::Regex;

use super::*;

/// How changes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeFormat {
    /// `debezium-json`
    Debezium,
    /// `canal-json`
    Canal,
    /// `maxwell-json`
    Maxwell,
}

impl ChangeFormat {
    /// The format of this name.
    pub fn of(name: &str) -> Option<Self> {
        [Self::Debezium, Self::Canal, Self::Maxwell].into_iter().find(|format| format.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debezium => "debezium-json",
            Self::Canal => "canal-json",
            Self::Maxwell => "maxwell-json",
        }
    }
}

/// Flink's options of these formats.
#[derive(Clone, Debug)]
pub struct ChangeOptions {
    format: ChangeFormat,
    json: JsonOptions,
    /// Whether messages are in a `payload`, beside their `schema`.
    is_in_payload: bool,
    /// Of which databases and tables messages are read; of all if `None`.
    database: Option<Regex>,
    table: Option<Regex>,
}

impl ChangeOptions {
    /// Reads what stands behind the format's name, such as `debezium-json.schema-include`.
    pub fn read(options: &Options, format: ChangeFormat) -> Result<Self> {
        let mut read = Self {
            format,
            json: JsonOptions::read_common(options, format.name())?,
            is_in_payload: false,
            database: None,
            table: None,
        };
        match format {
            ChangeFormat::Debezium => read.is_in_payload = options.flag(SCHEMA_INCLUDE, false)?,
            ChangeFormat::Canal => {
                // As Java's matches(): the whole name.
                let pattern = |key: &str| {
                    let parse = |text: &str| Regex::new(&format!(r"\A(?:{text})\z")).ok();
                    options.parsed(key, "a regular expression (without look-around)", parse)
                };
                read.database = pattern("canal-json.database.include")?;
                read.table = pattern("canal-json.table.include")?;
            }
            ChangeFormat::Maxwell => {}
        }
        Ok(read)
    }

    /// That changes can be written so.
    pub fn check_sink(&self, table: &str) -> Result<()> {
        match self.is_in_payload {
            true => Err(Error::input(format!(
                "table '{table}': option '{SCHEMA_INCLUDE}' is true, but changes are written without a schema: leave it out"
            ))),
            false => Ok(()),
        }
    }
}

const SCHEMA_INCLUDE: &str = "debezium-json.schema-include";

/// Fills the columns of a table with the rows of messages.
#[derive(Debug)]
pub struct ChangeRows {
    rows: JsonRows,
    kinds: Vec<RowKind>,
    options: ChangeOptions,
}

/// Makes chunks of messages.
pub type ChangeDecoder = LineDecoder<ChangeRows>;

impl ChangeDecoder {
    /// For the columns of `schema`.
    pub fn new(schema: &SchemaRef, options: ChangeOptions) -> Result<Self> {
        let rows = JsonRows::new(schema, options.json.clone())?;
        Ok(Self::of(ChangeRows { rows, kinds: Vec::new(), options }))
    }
}

/// The rows of a message, in order.
type Found<'a> = SmallVec<[(RowKind, Fields<'a>); 2]>;

/// A member of a message. What is null is as what is missing.
type Member<'a> = Option<&'a str>;

impl LineRows for ChangeRows {
    fn rows(&self) -> usize {
        self.kinds.len()
    }

    fn push_line(&mut self, line: &[u8]) -> Result<(), String> {
        let Some(text) = document(line) else { return Ok(()) };
        let found = match self.options.format {
            ChangeFormat::Debezium => self.debezium(text),
            ChangeFormat::Canal => self.canal(text),
            ChangeFormat::Maxwell => self.maxwell(text),
        }?;
        for (kind, fields) in found {
            self.rows.push_fields(&fields)?;
            self.kinds.push(kind);
        }
        Ok(())
    }

    fn skips_malformed(&self) -> bool {
        self.options.json.ignore_parse_errors
    }

    fn clear(&mut self) -> Result<()> {
        self.kinds.clear();
        self.rows.clear()
    }

    fn finish(&mut self) -> Result<Chunk> {
        Ok(Chunk::new(self.rows.finish()?, std::mem::take(&mut self.kinds)))
    }
}

impl ChangeRows {
    fn debezium<'a>(&self, text: &'a [u8]) -> Result<Found<'a>, String> {
        let text = if self.options.is_in_payload {
            let [payload] = named(text, ["payload"])?;
            payload.ok_or("'payload' is missing")?.as_bytes()
        } else {
            text
        };
        let [before, after, op] = named(text, ["before", "after", "op"])?;
        let before = |kind: &str| match before {
            Some(before) => self.row("before", Some(before)),
            None => Err(format!(
                "'before' is null in {kind}: if it comes from Postgres, set the REPLICA IDENTITY of its table to FULL, so that \
                 it has the row as it was"
            )),
        };
        let op = op.ok_or_else(|| {
            format!("'op' is missing: if messages have a 'schema' and a 'payload', set '{SCHEMA_INCLUDE}' = 'true'")
        })?;
        Ok(match &*scalar_text(op)? {
            "c" | "r" => smallvec![(RowKind::Insert, self.row("after", after)?)],
            "u" => smallvec![
                (RowKind::UpdateBefore, before("an UPDATE")?),
                (RowKind::UpdateAfter, self.row("after", after)?)
            ],
            "d" => smallvec![(RowKind::Delete, before("a DELETE")?)],
            _ => return Err(format!("'op' is {}, which is none of c, r, u and d", shown(op))),
        })
    }

    fn canal<'a>(&self, text: &'a [u8]) -> Result<Found<'a>, String> {
        let [data, old, kind, database, table] = named(text, ["data", "old", "type", "database", "table"])?;
        for (pattern, name, value) in
            [(&self.options.database, "database", database), (&self.options.table, "table", table)]
        {
            let Some(pattern) = pattern else { continue };
            let value = value.ok_or_else(|| format!("'{name}' is missing, which {name}.include asks for"))?;
            if !pattern.is_match(&scalar_text(value)?) {
                return Ok(Found::new());
            }
        }
        let all = |name: &str, value: Member<'a>| {
            let mut elements = Vec::new();
            collect(value.ok_or_else(|| missing(name))?, &mut elements)
                .map_err(|error| format!("'{name}': {}", reason(&error)))?;
            elements.into_iter().map(|element| self.row(name, present(element.get()))).collect::<Result<Vec<_>, _>>()
        };
        let of_kind = |kind| Ok(all("data", data)?.into_iter().map(|fields| (kind, fields)).collect::<Found<'a>>());
        let kind = kind.ok_or_else(|| missing("type"))?;
        match &*scalar_text(kind)? {
            "INSERT" => of_kind(RowKind::Insert),
            "DELETE" => of_kind(RowKind::Delete),
            "UPDATE" => {
                let (data, old) = (all("data", data)?, all("old", old)?);
                if data.len() != old.len() {
                    return Err(format!("'data' has {} rows and 'old' has {}", data.len(), old.len()));
                }
                Ok(data.into_iter().zip(old).flat_map(|(after, old)| update(after, old)).collect())
            }
            // Of a table, not of rows.
            "CREATE" => Ok(Found::new()),
            _ => Err(format!("'type' is {}, which is none of INSERT, UPDATE, DELETE and CREATE", shown(kind))),
        }
    }

    fn maxwell<'a>(&self, text: &'a [u8]) -> Result<Found<'a>, String> {
        let [data, old, kind] = named(text, ["data", "old", "type"])?;
        let kind = kind.ok_or_else(|| missing("type"))?;
        Ok(match &*scalar_text(kind)? {
            "insert" => smallvec![(RowKind::Insert, self.row("data", data)?)],
            "delete" => smallvec![(RowKind::Delete, self.row("data", data)?)],
            "update" => update(self.row("data", data)?, self.row("old", old)?).into_iter().collect(),
            _ => return Err(format!("'type' is {}, which is none of insert, update and delete", shown(kind))),
        })
    }

    fn row<'a>(&self, name: &str, value: Member<'a>) -> Result<Fields<'a>, String> {
        let text = value.ok_or_else(|| missing(name))?;
        self.rows.fields_of(text.as_bytes()).map_err(|reason| format!("'{name}': {reason}"))
    }
}

/// An update of which `old` has only what was different: what it has no word of was as it is. Flink looks for words of a field
/// in all of a message, so that it takes a field for changed that is so in another row.
fn update<'a>(after: Fields<'a>, old: Fields<'a>) -> [(RowKind, Fields<'a>); 2] {
    let before = old.iter().zip(&after).map(|(old, after)| old.or(*after)).collect();
    [(RowKind::UpdateBefore, before), (RowKind::UpdateAfter, after)]
}

fn missing(name: &str) -> String {
    format!("'{name}' is null or missing")
}

fn present(value: &str) -> Member<'_> {
    Some(value).filter(|text| *text != "null")
}

/// The members of a message that have these names.
fn named<'a, const N: usize>(text: &'a [u8], names: [&str; N]) -> Result<[Member<'a>; N], String> {
    let found = members(text, &|name| names.iter().position(|known| *known == name), N)?;
    Ok(std::array::from_fn(|at| found[at].and_then(present)))
}

/// Writes rows as messages.
#[derive(Debug)]
pub struct ChangeEncoder {
    options: ChangeOptions,
    text: String,
}

impl ChangeEncoder {
    /// With these options.
    pub fn new(options: ChangeOptions) -> Self {
        Self { options, text: String::new() }
    }

    /// What stands before and behind a row.
    fn frame(&self, is_addition: bool) -> [&'static str; 2] {
        match (self.options.format, is_addition, self.options.json.ignore_nulls) {
            (ChangeFormat::Debezium, true, false) => [r#"{"before":null,"after":"#, ",\"op\":\"c\"}\n"],
            (ChangeFormat::Debezium, true, true) => [r#"{"after":"#, ",\"op\":\"c\"}\n"],
            (ChangeFormat::Debezium, false, false) => [r#"{"before":"#, ",\"after\":null,\"op\":\"d\"}\n"],
            (ChangeFormat::Debezium, false, true) => [r#"{"before":"#, ",\"op\":\"d\"}\n"],
            (ChangeFormat::Canal, true, _) => [r#"{"data":["#, "],\"type\":\"INSERT\"}\n"],
            (ChangeFormat::Canal, false, _) => [r#"{"data":["#, "],\"type\":\"DELETE\"}\n"],
            (ChangeFormat::Maxwell, true, _) => [r#"{"data":"#, ",\"type\":\"insert\"}\n"],
            (ChangeFormat::Maxwell, false, _) => [r#"{"data":"#, ",\"type\":\"delete\"}\n"],
        }
    }
}

impl Encoder<Chunk> for ChangeEncoder {
    fn encode(&mut self, chunks: &[Chunk], _: bool, out: &mut Vec<u8>) -> Result<()> {
        for chunk in chunks {
            for row in 0..chunk.len() {
                // Flink has no message of an update: the row goes, and comes as it is now.
                let [before, behind] = self.frame(chunk.kind(row).is_addition());
                self.text.clear();
                self.text.push_str(before);
                write_object(&chunk.batch, row, &self.options.json, &mut self.text)?;
                self.text.push_str(behind);
                out.extend_from_slice(self.text.as_bytes());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
