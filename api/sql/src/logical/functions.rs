//! Which functions queries may call, by the names that SQL has for them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};

use super::{aggregates, special};

/// Flott's functions under their own names, which plans refer to.
pub(super) struct Functions {
    scalars: HashMap<String, Arc<ScalarUDF>>,
    aggregates: HashMap<String, Arc<AggregateUDF>>,
    windows: HashMap<String, Arc<WindowUDF>>,
    /// From SQL's name to ours.
    names: HashMap<String, String>,
}

/// What operators and other grammar become: no functions that SQL has by these names.
const OPERATORS: [&str; 16] = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "negate",
    "equal",
    "less",
    "less_or_equal",
    "cast",
    "try_cast",
    "get_field",
    "item",
    "array",
    "is_null",
    "extract",
    "similar_to",
];

static ALL: LazyLock<Functions> = LazyLock::new(Functions::new);

impl Functions {
    /// All of them.
    pub(super) fn all() -> &'static Self {
        &ALL
    }

    fn new() -> Self {
        let mut scalars = HashMap::new();
        let mut names = HashMap::new();
        for function in flott_sql_functions::all() {
            let own = function.name().to_owned();
            for name in std::iter::once(&own).chain(function.aliases()) {
                let in_sql = name.strip_prefix("flink_").unwrap_or(name);
                if !OPERATORS.contains(&in_sql) {
                    names.insert(in_sql.to_owned(), own.clone());
                }
                // What grammar is rewritten to may be an alias.
                scalars.insert(name.clone(), Arc::clone(&function));
            }
        }
        for (name, own) in [("ceiling", "flink_ceil"), ("char_length", "flink_char_length")] {
            if scalars.contains_key(own) {
                names.insert(name.to_owned(), own.to_owned());
            }
        }
        for function in special::all() {
            scalars.insert(function.name().to_owned(), function);
        }
        let aggregates = aggregates::all().into_iter().map(|function| (function.name().to_owned(), function)).collect();
        let windows = aggregates::ranks().into_iter().map(|function| (function.name().to_owned(), function)).collect();
        Self { scalars, aggregates, windows, names }
    }

    /// Our name of SQL's scalar function.
    pub(super) fn own_name(&self, name: &str) -> Option<&str> {
        self.names.get(name).map(String::as_str)
    }

    /// A scalar function by our name.
    pub(super) fn scalar(&self, name: &str) -> Option<&Arc<ScalarUDF>> {
        self.scalars.get(name)
    }

    /// An aggregate.
    pub(super) fn aggregate(&self, name: &str) -> Option<&Arc<AggregateUDF>> {
        self.aggregates.get(name)
    }

    /// A function that there is only OVER a window.
    pub(super) fn window(&self, name: &str) -> Option<&Arc<WindowUDF>> {
        self.windows.get(name)
    }

    /// All names that SQL has.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let scalars = self.names.keys();
        scalars.chain(self.aggregates.keys()).chain(self.windows.keys()).map(String::as_str)
    }
}
