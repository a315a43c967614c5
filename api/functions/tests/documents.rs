//! The table of functions in docs/sql-functions.md says what is there.

use std::collections::BTreeSet;

use flott_sql_functions::builtins::{Builtin, Is, WRITTEN_OTHERWISE, builtins, refusal};

/// What SHOW FUNCTIONS of Flink 2.3 prints.
const OF_FLINK: &str = include_str!("flink-functions.txt");

/// Names that only Flink's planner or its Table API uses, or that SQL has as syntax under another name.
const NOT_IN_SQL: &str = "AGG_DECIMAL_MINUS AGG_DECIMAL_PLUS HIVE_AGG_DECIMAL_PLUS ASSIGNMENT TRANSLATE3 and as asc at \
    desc distinct divide end equals flatten get greaterThan greaterThanOrEqual ifThenElse in isFalse isNotFalse isNotNull \
    isNotTrue isNull isTrue lessThan lessThanOrEqual minus minusPrefix not notBetween notEquals or over plus rangeTo \
    reinterpretCast rowtime similar start streamRecordTimestamp temporalOverlaps times withColumns withoutColumns between \
    JSON_ARRAYAGG_ABSENT_ON_NULL JSON_ARRAYAGG_NULL_ON_NULL JSON_OBJECTAGG_ABSENT_ON_NULL JSON_OBJECTAGG_NULL_ON_NULL";

/// What it does not print: the operators that only Flink's planner has.
const OF_PLANNER: &str = "ALL ANY APPROX_COUNT_DISTINCT CLASSIFIER CUME_DIST CUMULATE DENSE_RANK DESCRIPTOR FIRST GROUPING \
    GROUPING_ID GROUP_ID HASH_CODE HOP HOP_END HOP_PROCTIME HOP_ROWTIME HOP_START LAST MATCH_PROCTIME MATCH_ROWTIME \
    ML_EVALUATE MULTISET NEXT NTILE PERCENT_RANK PREV PRINT PROCTIME_MATERIALIZE RANK ROW_NUMBER SESSION SESSION_END \
    SESSION_PROCTIME SESSION_ROWTIME SESSION_START SINGLE_VALUE SOME STREAMRECORD_TIMESTAMP SYMMETRIC TUMBLE TUMBLE_END \
    TUMBLE_PROCTIME TUMBLE_ROWTIME TUMBLE_START UNNEST VECTOR_SEARCH";

/// Names that are one word in the Table API: those of SQL.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("charLength", "CHAR_LENGTH"),
    ("lowerCase", "LOWER"),
    ("upperCase", "UPPER"),
    ("initCap", "INITCAP"),
    ("listAgg", "LISTAGG"),
    ("timestampDiff", "TIMESTAMPDIFF"),
    ("unixTimestamp", "UNIX_TIMESTAMP"),
    ("fromUnixtime", "FROM_UNIXTIME"),
    ("localTime", "LOCALTIME"),
    ("localTimestamp", "LOCALTIMESTAMP"),
    ("dateFormat", "DATE_FORMAT"),
];

fn scalar_names() -> BTreeSet<String> {
    let shown = |name: &str| name.trim_start_matches("flink_").to_uppercase();
    let all = flott_sql_functions::all();
    all.iter()
        .flat_map(|one| std::iter::once(shown(one.name())).chain(one.aliases().iter().map(|a| shown(a))))
        .collect()
}

#[test]
fn every_function_of_flink_is_listed() {
    let listed: BTreeSet<_> = builtins().map(|one| one.name).collect();
    let in_sql = |name: &&str| !NOT_IN_SQL.split_whitespace().any(|other| other == *name);
    let sql_name = |name: &str| match OTHER_NAMES.iter().find(|(other, _)| *other == name) {
        Some((_, found)) => (*found).to_owned(),
        None if name.chars().any(char::is_lowercase) => {
            let parts = name.chars().map(|c| if c.is_uppercase() { format!("_{c}") } else { c.to_string() });
            parts.collect::<String>().to_uppercase()
        }
        None => name.to_owned(),
    };
    let missing: Vec<_> =
        OF_FLINK.lines().filter(in_sql).map(sql_name).filter(|name| !listed.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "builtins.rs does not know {missing:?}");
    let missing: Vec<_> = OF_PLANNER.split_whitespace().filter(|name| !listed.contains(name)).collect();
    assert!(missing.is_empty(), "builtins.rs does not know {missing:?}");
}

#[test]
fn what_is_listed_is_there() {
    let there = scalar_names();
    let scalars: BTreeSet<_> = builtins().filter(|one| one.is == Is::Scalar).map(|one| one.name.to_owned()).collect();
    let otherwise: BTreeSet<_> = WRITTEN_OTHERWISE.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(scalars.difference(&there).collect::<Vec<_>>(), Vec::<&String>::new(), "listed, but not there");
    let unlisted: Vec<_> = there.iter().filter(|name| !scalars.contains(*name) && !otherwise.contains(*name)).collect();
    assert_eq!(unlisted, Vec::<&String>::new(), "there, but not listed");
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    assert_eq!(
        refusal("parse_json").as_deref(),
        Some("PARSE_JSON is a function of Flink that is not supported: there is no type VARIANT")
    );
    assert_eq!(refusal("upper"), None);
    assert_eq!(refusal("tumble_start"), None);
    assert_eq!(refusal("nothing"), None);
}

#[test]
fn the_document_has_the_table() {
    let mut table = String::from("| | Here | Not here |\n|---|---|---|\n");
    let mut groups: Vec<(&str, Vec<Builtin>)> = Vec::new();
    for one in builtins() {
        match groups.last_mut() {
            Some((group, all)) if *group == one.group => all.push(one),
            _ => groups.push((one.group, vec![one])),
        }
    }
    for (group, mut all) in groups {
        all.sort_by_key(|one| one.name);
        // A name of SQL has no spaces but in syntax.
        let shown = |one: &Builtin| match one.is {
            Is::Syntax if matches!(one.group, "Comparison" | "Logic") => format!("`{}`", one.name.replace('_', " ")),
            Is::Syntax => format!("`{}`", one.name.replace('|', "\\|")),
            _ => one.name.to_owned(),
        };
        let is_absent = |one: &&Builtin| matches!(one.is, Is::Absent(_));
        let here: Vec<_> = all.iter().filter(|one| !is_absent(one)).map(shown).collect();
        let absent = all.iter().filter(is_absent).map(|one| match one.is {
            Is::Absent(why) => (one.name, why),
            _ => (one.name, ""),
        });
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for (name, why) in absent {
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, names)) => names.push(name),
                None => reasons.push((why, vec![name])),
            }
        }
        let reasons: Vec<_> = reasons.iter().map(|(why, names)| format!("{}: {why}", names.join(", "))).collect();
        table += &format!("| {group} | {} | {} |\n", here.join(", "), reasons.join("; "));
    }
    let document = include_str!("../../../docs/sql-functions.md");
    assert!(document.contains(&table), "docs/sql-functions.md needs this table:\n{table}");
}
