//! The columns of a keyed state, from the text that its manifest has of them.
//!
//! Beside these every table has the column `key_group`, which is the same in all of them.

use serde_json::Value;

/// Names and types, in the order of the table. Nothing, if the text is of another version.
pub(super) fn of(schema: &str) -> Vec<(&'static str, String)> {
    let layout: Value = serde_json::from_str(schema).unwrap_or_default();
    let column = |name: &'static str| {
        let column = &layout[name];
        match column["form"].as_str()? {
            "arrow" => Some((name, shown(&column["type"]))),
            // What has no Arrow shape is in the form of the program's codec.
            "binary" => Some((name, "binary".to_owned())),
            _ => None,
        }
    };
    ["key", "namespace", "value"].into_iter().filter_map(column).collect()
}

/// `key int64, value struct<count uint64, last string?>`
pub(super) fn text(schema: &str) -> String {
    let columns = of(schema).into_iter().map(|(name, kind)| format!("{name} {kind}"));
    columns.collect::<Vec<_>>().join(", ")
}

/// A type as Arrow calls it; a question mark behind what can be null.
fn shown(shape: &Value) -> String {
    let parts = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let fields = |fields: Vec<(String, Value)>| {
        let fields: Vec<String> = fields.iter().map(|(name, shape)| format!("{name} {}", shown(shape))).collect();
        format!("struct<{}>", fields.join(", "))
    };
    if let Some(name) = shape.as_str() {
        return match name {
            "Boolean" => "bool".to_owned(),
            "Utf8" => "string".to_owned(),
            "Char" => "uint32".to_owned(),
            name => name.to_lowercase(),
        };
    }
    let Some((kind, inner)) = shape.as_object().and_then(|object| object.iter().next()) else { return "?".to_owned() };
    match kind.as_str() {
        "Option" => format!("{}?", shown(inner)),
        "List" if inner == "UInt8" => "binary".to_owned(),
        "List" => format!("list<{}>", shown(inner)),
        "Array" => format!("list<{}>", shown(&inner[0])),
        "Map" => format!("map<{}, {}>", shown(&inner[0]), shown(&inner[1])),
        "Tuple" => {
            fields(parts(inner).into_iter().enumerate().map(|(index, part)| (index.to_string(), part)).collect())
        }
        "Struct" => {
            let name = |member: &Value| member["name"].as_str().unwrap_or("?").to_owned();
            fields(parts(inner).into_iter().map(|member| (name(&member), member["type"].clone())).collect())
        }
        // One with data is in a binary column.
        "Enum" => "string".to_owned(),
        _ => "?".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_named_with_their_types() {
        let window = json!({ "Struct": [{ "name": "start", "type": "Int64" }, { "name": "end", "type": "Int64" }] });
        let value = json!({ "Tuple": [
            { "List": "UInt8" },
            { "Option": { "Map": ["Utf8", { "List": "Float64" }] } },
            { "Array": ["Boolean", 8] },
            { "Enum": [{ "name": "A" }, { "name": "B" }] },
        ]});
        let schema = json!({
            "format": 1,
            "key": { "form": "arrow", "type": "Utf8" },
            "namespace": { "form": "arrow", "type": window },
            "value": { "form": "arrow", "type": value },
        });
        assert_eq!(
            text(&schema.to_string()),
            "key string, namespace struct<start int64, end int64>, \
             value struct<0 binary, 1 map<string, list<float64>>?, 2 list<bool>, 3 string>"
        );
    }

    #[test]
    fn what_is_not_there_or_has_no_arrow_form_says_so() {
        let schema = json!({
            "format": 1,
            "key": { "form": "binary", "type": "Unknown" },
            "namespace": { "form": "absent", "type": "Unit" },
            "value": { "form": "arrow", "type": { "Later": 1 } },
        });
        assert_eq!(text(&schema.to_string()), "key binary, value ?");
        assert_eq!(text(""), "");
        assert_eq!(text("[]"), "");
        let columns: BTreeMap<&str, String> = of(&schema.to_string()).into_iter().collect();
        assert_eq!(columns["key"], "binary");
    }
}
