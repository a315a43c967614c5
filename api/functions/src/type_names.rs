//! TYPEOF: what a type is called.

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::common::Result;
use datafusion::logical_expr::ScalarUDF;

use crate::define::{Call, Function, Takes, is, user_error};
use crate::types::{Kind, MAX_LENGTH, SqlType};

pub(crate) fn all() -> Vec<Arc<ScalarUDF>> {
    // A second argument says whether STRING and BYTES are written with their lengths.
    vec![Function::new("typeof", &[Takes::Any, Takes::Bool], is::text, type_of).least(1).make()]
}

fn type_of(call: &Call<'_>) -> Result<ArrayRef> {
    let found = SqlType::from_field(&call.fields[0]).map_err(user_error)?;
    let (short, long) = (found.to_string(), in_full(&found));
    let forced = if call.has(1) { Some(call.bools(1)?) } else { None };
    call.make_texts(|row| match forced.as_ref().and_then(|forced| forced.get(row)) {
        Some(true) => Some(&long),
        _ => Some(&short),
    })
}

/// With every length.
fn in_full(of: &SqlType) -> String {
    let shown = match &of.kind {
        Kind::Varchar(MAX_LENGTH) => format!("VARCHAR({MAX_LENGTH})"),
        Kind::Varbinary(MAX_LENGTH) => format!("VARBINARY({MAX_LENGTH})"),
        Kind::Array(element) => format!("ARRAY<{}>", in_full(element)),
        Kind::Multiset(element) => format!("MULTISET<{}>", in_full(element)),
        Kind::Map(key, value) => format!("MAP<{}, {}>", in_full(key), in_full(value)),
        Kind::Row(fields) => {
            let shown = |(name, of): &(String, SqlType)| format!("`{}` {}", name.replace('`', "``"), in_full(of));
            format!("ROW<{}>", fields.iter().map(shown).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    };
    shown + if of.is_nullable { "" } else { " NOT NULL" }
}
