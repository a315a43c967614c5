//! Paths in JSON (`$.a[0].b`): a mode, `lax` or `strict`, and steps.

use super::document::Json;

#[derive(Debug)]
enum Step {
    Key(String),
    /// From 0; from the end if negative.
    Index(i64),
    Indices(Vec<i64>),
    /// `[from:to]`
    Slice(Option<i64>, Option<i64>),
    /// `*`
    All,
    /// `..`: the rest of the path from everything within.
    Within,
}

/// A path, taken apart.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) is_lax: bool,
    steps: Vec<Step>,
    /// Whether it leads to many values, and so to a list of those that are there.
    is_many: bool,
}

/// What cannot be used as a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It is none.
    NoPath,
    /// It has what is not here.
    Unsupported(&'static str),
}

impl Path {
    pub(super) fn new(text: &str) -> Result<Self, Wrong> {
        let text = text.trim();
        let (is_lax, text) = match text.split_once(' ') {
            Some((mode, rest)) if mode.eq_ignore_ascii_case("lax") => (true, rest.trim()),
            Some((mode, rest)) if mode.eq_ignore_ascii_case("strict") => (false, rest.trim()),
            _ => (false, text),
        };
        // Without `$` it begins with a key.
        let mut rest = match text.strip_prefix('$') {
            Some(rest) => rest.to_owned(),
            None if text.is_empty() => return Err(Wrong::NoPath),
            None if text.starts_with(['.', '[']) => text.to_owned(),
            None => format!(".{text}"),
        };
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let after = if let Some(after) = rest.strip_prefix("..") {
                steps.push(Step::Within);
                if after.starts_with('[') { after.to_owned() } else { key(after, &mut steps)? }
            } else if let Some(after) = rest.strip_prefix('.') {
                if after.starts_with('[') { after.to_owned() } else { key(after, &mut steps)? }
            } else if let Some(after) = rest.strip_prefix('[') {
                bracket(after, &mut steps)?
            } else {
                return Err(Wrong::NoPath);
            };
            rest = after;
        }
        let is_many = steps.iter().any(|step| !matches!(step, Step::Key(_) | Step::Index(_)));
        Ok(Self { is_lax, steps, is_many })
    }

    /// What is there; `None` if nothing.
    pub(super) fn find<'a>(&self, value: Json<'a>) -> Option<Json<'a>> {
        if self.is_many {
            let mut found = Vec::new();
            find_all(&value, &self.steps, &mut found);
            return Some(Json::Array(found.into_iter().cloned().collect()));
        }
        let mut value = value;
        for step in &self.steps {
            value = match (step, value) {
                (Step::Key(key), Json::Object(mut all)) => all.remove(key.as_str())?,
                (Step::Index(index), Json::Array(mut all)) => {
                    let at = place(*index, all.len())?;
                    all.swap_remove(at)
                }
                _ => return None,
            };
        }
        Some(value)
    }
}

fn place(index: i64, length: usize) -> Option<usize> {
    let at = if index < 0 { index + length as i64 } else { index };
    usize::try_from(at).ok().filter(|at| *at < length)
}

fn find_all<'v, 'a>(value: &'v Json<'a>, steps: &[Step], found: &mut Vec<&'v Json<'a>>) {
    let Some((step, rest)) = steps.split_first() else {
        found.push(value);
        return;
    };
    match (step, value) {
        (Step::Key(key), Json::Object(all)) => {
            if let Some(one) = all.get(key.as_str()) {
                find_all(one, rest, found);
            }
        }
        (Step::Index(index), Json::Array(all)) => {
            if let Some(at) = place(*index, all.len()) {
                find_all(&all[at], rest, found);
            }
        }
        (Step::Indices(indices), Json::Array(all)) => {
            for at in indices.iter().filter_map(|index| place(*index, all.len())) {
                find_all(&all[at], rest, found);
            }
        }
        (Step::Slice(from, to), Json::Array(all)) => {
            let length = all.len() as i64;
            let bound = |at: i64| (if at < 0 { at + length } else { at }).clamp(0, length) as usize;
            let (from, to) = (from.map_or(0, bound), to.map_or(all.len(), bound));
            for one in all.get(from..to).unwrap_or_default() {
                find_all(one, rest, found);
            }
        }
        (Step::All, Json::Array(all)) => all.iter().for_each(|one| find_all(one, rest, found)),
        (Step::All, Json::Object(all)) => all.values().for_each(|one| find_all(one, rest, found)),
        (Step::Within, _) => {
            find_all(value, rest, found);
            match value {
                Json::Array(all) => all.iter().for_each(|one| find_all(one, steps, found)),
                Json::Object(all) => all.values().for_each(|one| find_all(one, steps, found)),
                _ => {}
            }
        }
        _ => {}
    }
}

/// `name`, or `*`; gives what is behind it.
fn key(text: &str, steps: &mut Vec<Step>) -> Result<String, Wrong> {
    let end = text.find(['.', '[', '(', ' ']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if rest.starts_with('(') {
        return Err(Wrong::Unsupported("a function"));
    }
    match name {
        "" => return Err(Wrong::NoPath),
        "*" => steps.push(Step::All),
        name => steps.push(Step::Key(name.to_owned())),
    }
    Ok(rest.to_owned())
}

/// What is behind a `[`, up to its `]`; gives what is behind that.
fn bracket(text: &str, steps: &mut Vec<Step>) -> Result<String, Wrong> {
    let text = text.trim_start();
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        let mut name = String::new();
        let mut chars = text[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => name.extend(chars.next().map(|(_, c)| c)),
                c if c == quote => {
                    let rest = text[at + 2..].trim_start();
                    if rest.starts_with(',') {
                        return Err(Wrong::Unsupported("several keys"));
                    }
                    steps.push(Step::Key(name));
                    return rest.strip_prefix(']').map(str::to_owned).ok_or(Wrong::NoPath);
                }
                c => name.push(c),
            }
        }
        return Err(Wrong::NoPath);
    }
    if text.starts_with(['?', '(']) {
        return Err(Wrong::Unsupported("a filter"));
    }
    let (inner, rest) = text.split_once(']').ok_or(Wrong::NoPath)?;
    let number = |text: &str| text.trim().parse::<i64>().map_err(|_| Wrong::NoPath);
    let bound = |text: &str| if text.trim().is_empty() { Ok(None) } else { number(text).map(Some) };
    steps.push(if inner.trim() == "*" {
        Step::All
    } else if let Some((from, to)) = inner.split_once(':') {
        Step::Slice(bound(from)?, bound(to)?)
    } else if inner.contains(',') {
        Step::Indices(inner.split(',').map(number).collect::<Result<_, _>>()?)
    } else {
        Step::Index(number(inner)?)
    });
    Ok(rest.to_owned())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(document: &str, path: &str, expected: Expect) {
        let found = match Path::new(path) {
            Ok(path) => path.find(Json::parse(document).expect("JSON")).map_or("nothing".to_owned(), |found| {
                let mut made = String::new();
                found.write(&mut made);
                made
            }),
            Err(wrong) => format!("{wrong:?}"),
        };
        expected.assert_eq(&found);
    }

    #[test]
    fn steps() {
        let document = r#"{"a": [1, {"b": 2, "c d": "x"}, [3, 4]], "b": {"b": null}}"#;
        check(document, "$", expect![[r#"{"a":[1,{"b":2,"c d":"x"},[3,4]],"b":{"b":null}}"#]]);
        check(document, "$.a[1]['c d']", expect![[r#""x""#]]);
        check(document, "a[-1][0]", expect!["3"]);
        check(document, "$.a[3]", expect!["nothing"]);
        check(document, "$.a.b", expect!["nothing"]);
        check(document, "$.a[0,2]", expect!["[1,[3,4]]"]);
        check(document, "$.a[1:]", expect![[r#"[{"b":2,"c d":"x"},[3,4]]"#]]);
        check(document, "$.a[5:1]", expect!["[]"]);
        check(document, "$.a[*].b", expect!["[2]"]);
        check(document, "$..b", expect![[r#"[{"b":null},2,null]"#]]);
        check(document, "$.a[?(@.b == 2)]", expect![[r#"Unsupported("a filter")"#]]);
        check(document, "$.a.length()", expect![[r#"Unsupported("a function")"#]]);
        check(document, "$.", expect!["NoPath"]);
        check(document, "$x", expect!["NoPath"]);
        check(document, "", expect!["NoPath"]);
    }
}
