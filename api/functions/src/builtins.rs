//! All of Flink's built-in functions, and what is here of each: the table in docs/sql-functions.md is this one.

/// What there is of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Is {
    /// A scalar function of [`all`](crate::all).
    Scalar,
    /// Syntax, or a name that the planner gives a meaning.
    Syntax,
    /// An aggregate, alone or over a window: the planner knows it, operators compute it.
    Aggregate,
    /// A function that gives a table.
    Table,
    /// Not here, and why.
    Absent(&'static str),
}

/// A function or operator of Flink.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// What it belongs to.
    pub group: &'static str,
    /// Its name in SQL.
    pub name: &'static str,
    /// What there is of it.
    pub is: Is,
}

const VARIANT: Is = Is::Absent("there is no type VARIANT");
const BITMAP: Is = Is::Absent("there is no type BITMAP");
const OBJECT: Is = Is::Absent("there are no structured types, which are classes of Java");

/// Names of one group, separated by spaces; `_` in operators of several words stands for a space.
const GROUPS: &[(&str, Is, &str)] = &[
    (
        "Comparison",
        Is::Syntax,
        "= <> < <= > >= IS_NULL IS_NOT_NULL IS_DISTINCT_FROM IS_NOT_DISTINCT_FROM BETWEEN LIKE SIMILAR_TO IN EXISTS ANY \
         SOME ALL",
    ),
    ("Comparison", Is::Absent("write the lesser bound of BETWEEN first"), "SYMMETRIC"),
    ("Logic", Is::Syntax, "OR AND NOT IS_TRUE IS_NOT_TRUE IS_FALSE IS_NOT_FALSE IS_UNKNOWN IS_NOT_UNKNOWN"),
    ("Conditions", Is::Syntax, "CASE"),
    ("Conditions", Is::Scalar, "COALESCE GREATEST IF IFNULL LEAST NULLIF"),
    ("Numbers", Is::Syntax, "+ - * / %"),
    (
        "Numbers",
        Is::Scalar,
        "ABS ACOS ASIN ATAN ATAN2 BIN CEIL CEILING COS COSH COT DEGREES E EXP FLOOR HEX LN LOG LOG10 LOG2 MOD PI POWER \
         RADIANS RAND RAND_INTEGER ROUND SIGN SIN SINH SQRT TAN TANH TRUNCATE UNHEX",
    ),
    ("Texts", Is::Syntax, "||"),
    (
        "Texts",
        Is::Scalar,
        "ASCII BTRIM CHARACTER_LENGTH CHAR_LENGTH CHR CONCAT CONCAT_WS DECODE ELT ENCODE ENDSWITH FROM_BASE64 INET_ATON \
         INET_NTOA INITCAP INSTR IS_ALPHA IS_DECIMAL IS_DIGIT LCASE LEFT LENGTH LOCATE LOWER LPAD LTRIM OVERLAY PARSE_URL \
         POSITION PRINTF REGEXP REGEXP_COUNT REGEXP_EXTRACT REGEXP_EXTRACT_ALL REGEXP_INSTR REGEXP_REPLACE REGEXP_SUBSTR \
         REPEAT REPLACE REVERSE RIGHT RPAD RTRIM SPLIT SPLIT_INDEX STARTSWITH STR_TO_MAP SUBSTR SUBSTRING TO_BASE64 \
         TRANSLATE TRIM UCASE UPPER URL_DECODE URL_ENCODE UUID",
    ),
    ("Digests", Is::Scalar, "MD5 SHA1 SHA2 SHA224 SHA256 SHA384 SHA512"),
    ("Dates and times", Is::Syntax, "DATE TIME TIMESTAMP INTERVAL SOURCE_WATERMARK"),
    (
        "Dates and times",
        Is::Scalar,
        "CONVERT_TZ CURRENT_DATE CURRENT_ROW_TIMESTAMP CURRENT_TIME CURRENT_TIMESTAMP CURRENT_WATERMARK DATE_FORMAT \
         DAYOFMONTH DAYOFWEEK DAYOFYEAR EXTRACT FROM_UNIXTIME HOUR LOCALTIME LOCALTIMESTAMP MINUTE MONTH NOW OVERLAPS \
         PROCTIME QUARTER SECOND TIMESTAMPADD TIMESTAMPDIFF TO_DATE TO_TIMESTAMP TO_TIMESTAMP_LTZ UNIX_TIMESTAMP WEEK YEAR",
    ),
    ("Types", Is::Scalar, "CAST TRY_CAST TYPEOF"),
    ("Arrays, maps and rows", Is::Syntax, "[] ."),
    (
        "Arrays, maps and rows",
        Is::Scalar,
        "ARRAY ARRAY_APPEND ARRAY_CONCAT ARRAY_CONTAINS ARRAY_DISTINCT ARRAY_EXCEPT ARRAY_INTERSECT ARRAY_JOIN ARRAY_MAX \
         ARRAY_MIN ARRAY_POSITION ARRAY_PREPEND ARRAY_REMOVE ARRAY_REVERSE ARRAY_SLICE ARRAY_SORT ARRAY_UNION CARDINALITY \
         ELEMENT MAP MAP_ENTRIES MAP_FROM_ARRAYS MAP_KEYS MAP_UNION MAP_VALUES ROW",
    ),
    ("Arrays, maps and rows", OBJECT, "OBJECT_OF OBJECT_UPDATE"),
    ("Arrays, maps and rows", Is::Absent("COLLECT makes them"), "MULTISET"),
    (
        "JSON",
        Is::Scalar,
        "IS_JSON JSON JSON_ARRAY JSON_EXISTS JSON_OBJECT JSON_QUERY JSON_QUOTE JSON_STRING JSON_UNQUOTE JSON_VALUE",
    ),
    ("JSON", VARIANT, "PARSE_JSON TRY_PARSE_JSON"),
    (
        "Bitmaps",
        BITMAP,
        "BITMAP_AND BITMAP_ANDNOT BITMAP_AND_AGG BITMAP_AND_CARDINALITY_AGG BITMAP_BUILD BITMAP_BUILD_AGG \
         BITMAP_BUILD_CARDINALITY_AGG BITMAP_CARDINALITY BITMAP_FROM_BYTES BITMAP_OR BITMAP_OR_AGG \
         BITMAP_OR_CARDINALITY_AGG BITMAP_TO_ARRAY BITMAP_TO_BYTES BITMAP_TO_STRING BITMAP_XOR BITMAP_XOR_AGG \
         BITMAP_XOR_CARDINALITY_AGG",
    ),
    ("Grouping", Is::Syntax, "GROUPING GROUPING_ID GROUP_ID"),
    (
        "Windows of GROUP BY",
        Is::Syntax,
        "TUMBLE_START TUMBLE_END TUMBLE_ROWTIME TUMBLE_PROCTIME HOP_START HOP_END HOP_ROWTIME HOP_PROCTIME SESSION_START \
         SESSION_END SESSION_ROWTIME SESSION_PROCTIME",
    ),
    (
        "Aggregates",
        Is::Aggregate,
        "APPROX_COUNT_DISTINCT ARRAY_AGG AVG COLLECT COUNT CUME_DIST DENSE_RANK FIRST_VALUE JSON_ARRAYAGG JSON_OBJECTAGG \
         LAG LAST_VALUE LEAD LISTAGG MAX MIN NTILE PERCENTILE PERCENT_RANK RANK ROW_NUMBER SINGLE_VALUE STDDEV STDDEV_POP \
         STDDEV_SAMP SUM SUM0 VARIANCE VAR_POP VAR_SAMP",
    ),
    ("Tables", Is::Table, "CUMULATE HOP SESSION TUMBLE UNNEST"),
    ("Tables", Is::Syntax, "DESCRIPTOR"),
    ("Tables", Is::Absent("there are no models"), "ML_EVALUATE ML_PREDICT"),
    ("Tables", Is::Absent("no connector searches vectors"), "VECTOR_SEARCH"),
    ("Tables", Is::Absent("formats and sinks turn changes into rows and back"), "FROM_CHANGELOG TO_CHANGELOG"),
    ("Session", Is::Syntax, "CURRENT_DATABASE"),
    ("Session", Is::Absent("a column has no default value"), "DEFAULT"),
    (
        "Patterns",
        Is::Absent("MATCH_RECOGNIZE is not supported"),
        "CLASSIFIER FIRST LAST MATCH_PROCTIME MATCH_ROWTIME NEXT PREV",
    ),
    (
        "Internals",
        Is::Absent("only Flink's planner calls it"),
        "HASH_CODE PRINT PROCTIME_MATERIALIZE STREAMRECORD_TIMESTAMP",
    ),
];

/// Scalar functions that are written in another way in SQL, and what they stand for.
pub const WRITTEN_OTHERWISE: &[(&str, &str)] = &[
    ("ADD", "+"),
    ("SUBTRACT", "-"),
    ("MULTIPLY", "*"),
    ("DIVIDE", "/"),
    ("NEGATE", "-"),
    ("EQUAL", "="),
    ("LESS", "<"),
    ("LESS_OR_EQUAL", "<="),
    ("IS_NULL", "IS NULL"),
    ("SIMILAR_TO", "SIMILAR TO"),
    ("ITEM", "[]"),
    ("GET_FIELD", "."),
];

/// All of them, by group.
pub fn builtins() -> impl Iterator<Item = Builtin> {
    GROUPS.iter().flat_map(|(group, is, names)| names.split_whitespace().map(|name| Builtin { group, name, is: *is }))
}

/// Why a function of Flink is not here; `None` if it is, or if Flink has none of that name. Whatever the case.
pub fn refusal(name: &str) -> Option<String> {
    let name = name.to_uppercase();
    builtins().find(|one| one.name == name).and_then(|one| match one.is {
        Is::Absent(why) => Some(format!("{name} is a function of Flink that is not supported: {why}")),
        _ => None,
    })
}
