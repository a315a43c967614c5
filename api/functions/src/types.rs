//! Flink's types, their names, and what they are in Arrow.

pub mod coerce;
mod parse;

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, IntervalUnit, TimeUnit};

pub use parse::{Lexeme, lex, parse, parse_lexemes};

/// The length of `STRING` and `BYTES`.
pub const MAX_LENGTH: u32 = i32::MAX as u32;
/// The most digits of a DECIMAL.
pub const MAX_PRECISION: u8 = 38;
/// The key of a field's metadata that says what of Flink Arrow does not know.
pub const METADATA_KEY: &str = "flink";

/// A type of Flink and whether it has NULL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SqlType {
    /// Which.
    pub kind: Kind,
    /// Whether NULL is among its values.
    pub is_nullable: bool,
}

/// A type of Flink.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `BOOLEAN`
    Boolean,
    /// `TINYINT`
    TinyInt,
    /// `SMALLINT`
    SmallInt,
    /// `INT`
    Int,
    /// `BIGINT`
    BigInt,
    /// `FLOAT`
    Float,
    /// `DOUBLE`
    Double,
    /// `DECIMAL(p, s)`
    Decimal(u8, u8),
    /// `CHAR(n)`
    Char(u32),
    /// `VARCHAR(n)`; of [`MAX_LENGTH`], `STRING`
    Varchar(u32),
    /// `BINARY(n)`
    Binary(u32),
    /// `VARBINARY(n)`; of [`MAX_LENGTH`], `BYTES`
    Varbinary(u32),
    /// `DATE`
    Date,
    /// `TIME(p)`
    Time(u8),
    /// `TIMESTAMP(p)`
    Timestamp(u8),
    /// `TIMESTAMP_LTZ(p)`
    TimestampLtz(u8),
    /// `INTERVAL YEAR TO MONTH`
    YearMonth,
    /// `INTERVAL DAY TO SECOND`
    DaySecond,
    /// `ARRAY<t>`
    Array(Box<SqlType>),
    /// `MAP<k, v>`
    Map(Box<SqlType>, Box<SqlType>),
    /// `MULTISET<t>`
    Multiset(Box<SqlType>),
    /// `ROW<a t, …>`
    Row(Vec<(String, SqlType)>),
    /// `NULL`
    Null,
}

impl Kind {
    /// The type with NULL among its values.
    pub fn nullable(self) -> SqlType {
        SqlType { kind: self, is_nullable: true }
    }

    /// `STRING`.
    pub fn string() -> Self {
        Self::Varchar(MAX_LENGTH)
    }
}

impl SqlType {
    /// The same without NULL.
    pub fn not_null(self) -> Self {
        Self { is_nullable: false, ..self }
    }

    /// What holds its values.
    pub fn to_arrow(&self) -> DataType {
        match &self.kind {
            Kind::Boolean => DataType::Boolean,
            Kind::TinyInt => DataType::Int8,
            Kind::SmallInt => DataType::Int16,
            Kind::Int => DataType::Int32,
            Kind::BigInt => DataType::Int64,
            Kind::Float => DataType::Float32,
            Kind::Double => DataType::Float64,
            Kind::Decimal(precision, scale) => DataType::Decimal128(*precision, *scale as i8),
            Kind::Char(_) | Kind::Varchar(_) => DataType::Utf8,
            Kind::Binary(_) | Kind::Varbinary(_) => DataType::Binary,
            Kind::Date => DataType::Date32,
            Kind::Time(_) => DataType::Time32(TimeUnit::Millisecond),
            Kind::Timestamp(precision) => DataType::Timestamp(time_unit(*precision), None),
            Kind::TimestampLtz(precision) => DataType::Timestamp(time_unit(*precision), Some("UTC".into())),
            Kind::YearMonth => DataType::Interval(IntervalUnit::YearMonth),
            Kind::DaySecond => DataType::Duration(TimeUnit::Millisecond),
            Kind::Array(element) => array_of(element.to_field("element")),
            Kind::Map(key, value) => map_of(key.to_arrow(), value.to_field("value")),
            Kind::Multiset(element) => multiset_of(element.to_arrow()),
            Kind::Row(fields) => {
                DataType::Struct(fields.iter().map(|(name, of)| of.to_field(name)).collect::<Fields>())
            }
            Kind::Null => DataType::Null,
        }
    }

    /// A column of it.
    pub fn to_field(&self, name: &str) -> Field {
        let field = Field::new(name, self.to_arrow(), self.is_nullable);
        match self.kind {
            Kind::Multiset(_) => as_multiset(field),
            _ => field,
        }
    }

    /// What an Arrow column holds, as Flink calls it.
    ///
    /// # Errors
    /// No type of Flink has such values.
    pub fn from_field(field: &Field) -> Result<Self, String> {
        let mut found = Self::from_arrow(field.data_type())?;
        if is_multiset(field)
            && let Kind::Map(element, _) = found.kind
        {
            found.kind = Kind::Multiset(element);
        }
        Ok(Self { is_nullable: field.is_nullable() || matches!(found.kind, Kind::Null), ..found })
    }

    /// What holds such values, as Flink calls it; with NULL among them.
    ///
    /// # Errors
    /// No type of Flink has such values.
    pub fn from_arrow(of: &DataType) -> Result<Self, String> {
        let kind = match of {
            DataType::Boolean => Kind::Boolean,
            DataType::Int8 => Kind::TinyInt,
            DataType::Int16 => Kind::SmallInt,
            DataType::Int32 => Kind::Int,
            DataType::Int64 => Kind::BigInt,
            DataType::Float32 => Kind::Float,
            DataType::Float64 => Kind::Double,
            DataType::Decimal128(precision, scale) if *scale >= 0 => Kind::Decimal(*precision, *scale as u8),
            DataType::Utf8 => Kind::string(),
            DataType::Binary => Kind::Varbinary(MAX_LENGTH),
            DataType::Date32 => Kind::Date,
            DataType::Time32(TimeUnit::Millisecond) => Kind::Time(0),
            DataType::Timestamp(unit, None) => Kind::Timestamp(precision_of(*unit)),
            DataType::Timestamp(unit, Some(_)) => Kind::TimestampLtz(precision_of(*unit)),
            DataType::Interval(IntervalUnit::YearMonth) => Kind::YearMonth,
            DataType::Duration(TimeUnit::Millisecond) => Kind::DaySecond,
            DataType::List(element) => Kind::Array(Box::new(Self::from_field(element)?)),
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(pair) if pair.len() == 2 => {
                    Kind::Map(Box::new(Self::from_field(&pair[0])?), Box::new(Self::from_field(&pair[1])?))
                }
                _ => return Err(format!("{of} is no map")),
            },
            DataType::Struct(fields) => {
                let named = |field: &Arc<Field>| Ok::<_, String>((field.name().clone(), Self::from_field(field)?));
                Kind::Row(fields.iter().map(named).collect::<Result<_, _>>()?)
            }
            DataType::Null => Kind::Null,
            other => return Err(format!("Flink has no type for {other}")),
        };
        Ok(kind.nullable())
    }
}

/// An array of such elements.
pub fn array_of(element: Field) -> DataType {
    DataType::List(Arc::new(element.with_name("element")))
}

/// A map from such keys to such values.
pub fn map_of(key: DataType, value: Field) -> DataType {
    let pair = Fields::from(vec![Field::new("key", key, false), value.with_name("value")]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(pair), false)), false)
}

/// What holds a multiset of such elements: a map to how often each is there. Its field must be marked ([`as_multiset`]).
pub fn multiset_of(element: DataType) -> DataType {
    map_of(element, Field::new("value", DataType::Int32, false))
}

/// Says of a column of maps that they are multisets.
pub fn as_multiset(field: Field) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(METADATA_KEY.to_owned(), "multiset".to_owned());
    field.with_metadata(metadata)
}

/// Whether the maps of a column are multisets.
pub fn is_multiset(field: &Field) -> bool {
    field.metadata().get(METADATA_KEY).is_some_and(|of| of == "multiset")
}

/// The unit that holds so many digits behind the second.
pub fn time_unit(precision: u8) -> TimeUnit {
    match precision {
        0 => TimeUnit::Second,
        1..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

/// How many digits behind the second a unit holds.
pub fn precision_of(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// What an Arrow type is called in Flink, for messages and EXPLAIN.
pub fn name_of(of: &DataType) -> String {
    SqlType::from_arrow(of).map_or_else(|_| of.to_string(), |found| found.to_string())
}

/// `{:#}` spells STRING and BYTES out, as `VARCHAR(2147483647)` and `VARBINARY(2147483647)`.
impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.kind, f)?;
        f.write_str(if self.is_nullable || matches!(self.kind, Kind::Null) { "" } else { " NOT NULL" })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("BOOLEAN"),
            Self::TinyInt => f.write_str("TINYINT"),
            Self::SmallInt => f.write_str("SMALLINT"),
            Self::Int => f.write_str("INT"),
            Self::BigInt => f.write_str("BIGINT"),
            Self::Float => f.write_str("FLOAT"),
            Self::Double => f.write_str("DOUBLE"),
            Self::Decimal(precision, scale) => write!(f, "DECIMAL({precision}, {scale})"),
            Self::Char(length) => write!(f, "CHAR({length})"),
            Self::Varchar(MAX_LENGTH) if !f.alternate() => f.write_str("STRING"),
            Self::Varchar(length) => write!(f, "VARCHAR({length})"),
            Self::Binary(length) => write!(f, "BINARY({length})"),
            Self::Varbinary(MAX_LENGTH) if !f.alternate() => f.write_str("BYTES"),
            Self::Varbinary(length) => write!(f, "VARBINARY({length})"),
            Self::Date => f.write_str("DATE"),
            Self::Time(precision) => write!(f, "TIME({precision})"),
            Self::Timestamp(precision) => write!(f, "TIMESTAMP({precision})"),
            Self::TimestampLtz(precision) => write!(f, "TIMESTAMP_LTZ({precision})"),
            Self::YearMonth => f.write_str("INTERVAL YEAR TO MONTH"),
            Self::DaySecond => f.write_str("INTERVAL DAY TO SECOND(3)"),
            Self::Array(element) => within(f, "ARRAY", &[element]),
            Self::Map(key, value) => within(f, "MAP", &[key, value]),
            Self::Multiset(element) => within(f, "MULTISET", &[element]),
            Self::Row(fields) => {
                f.write_str("ROW<")?;
                for (at, (name, of)) in fields.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    write!(f, "`{}` ", name.replace('`', "``"))?;
                    fmt::Display::fmt(of, f)?;
                }
                f.write_str(">")
            }
            Self::Null => f.write_str("NULL"),
        }
    }
}

/// `NAME<a, b>`, with the types as `f` shows them.
fn within(f: &mut fmt::Formatter<'_>, name: &str, of: &[&SqlType]) -> fmt::Result {
    write!(f, "{name}<")?;
    for (at, of) in of.iter().enumerate() {
        f.write_str(if at == 0 { "" } else { ", " })?;
        fmt::Display::fmt(of, f)?;
    }
    f.write_str(">")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, shown: Expect) {
        let found = match parse(text) {
            Ok(found) => format!("{found} = {}", found.to_arrow()),
            Err(error) => format!("error: {error}"),
        };
        shown.assert_eq(&found);
    }

    #[test]
    fn aliases_are_spelled_out() {
        let found = parse("ROW<a ARRAY<STRING NOT NULL>, b MAP<VARCHAR(3), BYTES>>").expect("a type");
        let shown = "ROW<`a` ARRAY<VARCHAR(2147483647) NOT NULL>, `b` MAP<VARCHAR(3), VARBINARY(2147483647)>>";
        assert_eq!(format!("{found:#}"), shown);
    }

    #[test]
    fn names() {
        check("int", expect!["INT = Int32"]);
        check("INTEGER NOT NULL", expect!["INT NOT NULL = Int32"]);
        check("double precision", expect!["DOUBLE = Float64"]);
        check("Decimal", expect!["DECIMAL(10, 0) = Decimal128(10, 0)"]);
        check("NUMERIC(5)", expect!["DECIMAL(5, 0) = Decimal128(5, 0)"]);
        check("DEC(38, 18)", expect!["DECIMAL(38, 18) = Decimal128(38, 18)"]);
        check("string", expect!["STRING = Utf8"]);
        check("VARCHAR", expect!["VARCHAR(1) = Utf8"]);
        check("varchar(2147483647)", expect!["STRING = Utf8"]);
        check("char varying(3)", expect!["VARCHAR(3) = Utf8"]);
        check("CHAR(3)", expect!["CHAR(3) = Utf8"]);
        check("BYTES", expect!["BYTES = Binary"]);
        check("TIME", expect!["TIME(0) = Time32(ms)"]);
        check("TIMESTAMP", expect!["TIMESTAMP(6) = Timestamp(µs)"]);
        check("TIMESTAMP(3) WITHOUT TIME ZONE", expect!["TIMESTAMP(3) = Timestamp(ms)"]);
        check("TIMESTAMP(9) WITH LOCAL TIME ZONE", expect![[r#"TIMESTAMP_LTZ(9) = Timestamp(ns, "UTC")"#]]);
        check("timestamp_ltz(0)", expect![[r#"TIMESTAMP_LTZ(0) = Timestamp(s, "UTC")"#]]);
        check("INTERVAL DAY(2) TO SECOND(3)", expect!["INTERVAL DAY TO SECOND(3) = Duration(ms)"]);
        check("INTERVAL YEAR TO MONTH", expect!["INTERVAL YEAR TO MONTH = Interval(YearMonth)"]);
    }

    #[test]
    fn nested() {
        check(
            "ARRAY<ARRAY<INT>>",
            expect!["ARRAY<ARRAY<INT>> = List(List(Int32, field: 'element'), field: 'element')"],
        );
        check("INT ARRAY NOT NULL", expect!["ARRAY<INT> NOT NULL = List(Int32, field: 'element')"]);
        check(
            "ROW<a INT, `b c` ROW<d STRING NOT NULL COMMENT 'x'>>",
            expect![[
                r#"ROW<`a` INT, `b c` ROW<`d` STRING NOT NULL>> = Struct("a": Int32, "b c": Struct("d": non-null Utf8))"#
            ]],
        );
        check("ROW(a INT)", expect![[r#"ROW<`a` INT> = Struct("a": Int32)"#]]);
        check(
            "MAP<STRING, MULTISET<INT>>",
            expect![[
                r#"MAP<STRING, MULTISET<INT>> = Map("entries": non-null Struct("key": non-null Utf8, "value": Map("entries": non-null Struct("key": non-null Int32, "value": non-null Int32), unsorted), metadata: {"flink": "multiset"}), unsorted)"#
            ]],
        );
    }

    #[test]
    fn what_is_no_type() {
        check("DECIMAL(39, 0)", expect!["error: DECIMAL(39, 0): the precision must be from 1 to 38"]);
        check("DECIMAL(3, 5)", expect!["error: DECIMAL(3, 5): the scale must be from 0 to the precision"]);
        check("TIMESTAMP(12)", expect!["error: the precision 12 must be from 0 to 9"]);
        check("VARIANT", expect!["error: the type VARIANT is not supported"]);
        check("INTT", expect!["error: there is no type 'INTT'; did you mean 'INT'?"]);
        check("ROW<a INT", expect!["error: expected ',' or '>' in a ROW type, found the end"]);
        check("INT INT", expect!["error: 'INT' does not belong to the type"]);
        check("", expect!["error: expected a type, found the end"]);
    }

    #[test]
    fn there_and_back() {
        for text in [
            "BOOLEAN",
            "TINYINT",
            "BIGINT NOT NULL",
            "FLOAT",
            "DECIMAL(10, 2)",
            "STRING",
            "BYTES",
            "DATE",
            "TIME(0)",
            "TIMESTAMP(3)",
            "TIMESTAMP_LTZ(9)",
            "ARRAY<INT NOT NULL>",
            "MAP<STRING NOT NULL, INT>",
            "MULTISET<STRING NOT NULL>",
            "ROW<`a` INT, `b` ARRAY<STRING>>",
        ] {
            let parsed = parse(text).expect("a type");
            assert_eq!(parsed.to_string(), text);
            let back = SqlType::from_field(&parsed.to_field("x")).expect("a type of Flink");
            assert_eq!(back.to_string(), text);
        }
    }
}
