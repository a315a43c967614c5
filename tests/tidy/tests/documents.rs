//! Documents tell the truth about where things are.

use std::fmt::Write;
use std::{env, fs};

use flott_core::config::options;
use flott_tidy::{assert_none, repository};

/// Documents whose paths must exist.
const DOCUMENTS: &[&str] = &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];

/// The paths in the repository that `text` names: in backticks with a slash, or as the target of a link. Lines of
/// code blocks are commands and pictures and count for nothing.
fn named_paths(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_code_block = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code_block = !in_code_block;
            continue;
        }
        if in_code_block {
            continue;
        }
        let quoted = line.split('`').skip(1).step_by(2).filter(|text| text.contains('/'));
        let linked = line.match_indices("](").filter_map(|(at, open)| line[at + open.len()..].split(')').next());
        let paths = quoted.chain(linked).flat_map(expand).filter(|path| is_repository_path(path));
        found.extend(paths.map(|path| (index + 1, path)));
    }
    found
}

/// Whether `path` is meant to be a file or folder of the repository, rather than a URL, a route of the REST API, a
/// place on the reader's machine, or a command.
fn is_repository_path(path: &str) -> bool {
    let is_path = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    !path.is_empty()
        && !path.starts_with(['/', '.', '#'])
        && !path.contains("://")
        && path.chars().all(is_path)
        && !path.chars().all(|c| c.is_numeric() || c == '/')
}

/// `a/{b,c}/d#section` is `a/b/d` and `a/c/d`; `a/*` is `a`.
fn expand(path: &str) -> Vec<String> {
    let path = path.split('#').next().unwrap_or_default().trim_end_matches("/*");
    match (path.find('{'), path.find('}')) {
        (Some(open), Some(close)) if open < close => path[open + 1..close]
            .split(',')
            .flat_map(|choice| expand(&format!("{}{}{}", &path[..open], choice.trim(), &path[close + 1..])))
            .collect(),
        _ => vec![path.to_owned()],
    }
}

#[test]
fn paths_in_documents_exist() {
    let root = repository();
    let mut violations = Vec::new();
    for document in DOCUMENTS {
        let text = fs::read_to_string(root.join(document)).unwrap_or_else(|error| panic!("{document}: {error}"));
        for (line, path) in named_paths(&text) {
            if !root.join(&path).exists() {
                violations.push(format!("{document}:{line}: {path}"));
            }
        }
    }
    assert_none(
        "every path that a document names exists",
        "a map that leads nowhere is worse than none; write other things that look like paths in a code block",
        violations,
    );
}

#[test]
fn all_options_are_documented() {
    let path = repository().join("docs/configuration.md");
    let page = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut table = String::from("| key | default | meaning |\n|---|---|---|\n");
    for option in options::all() {
        let default = if option.default.is_empty() { "empty".to_owned() } else { format!("`{}`", option.default) };
        let alias = option.alias.map(|alias| format!(" Older key: `{alias}`.")).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(table, "| `{}` | {default} | {}{alias} |", option.key, option.description.trim());
    }
    let (start, end) = match (page.find("| key | default"), page.find("<!-- end of options -->")) {
        (Some(start), Some(end)) => (start, end),
        _ => panic!("{}: the table of options or the comment behind it is gone", path.display()),
    };
    if page[start..end] == table {
        return;
    }
    if env::var_os("UPDATE_DOCS").is_some() {
        let page = format!("{}{table}{}", &page[..start], &page[end..]);
        fs::write(&path, page).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let expected: Vec<&str> = table.lines().collect();
    let differing = expected.iter().filter(|line| !page[start..end].lines().any(|found| found == **line));
    assert_none(
        "docs/configuration.md lists the options of common/core/src/config/options.rs, in their order",
        "an option that is not documented does not exist; UPDATE_DOCS=1 cargo test -p flott-tidy rewrites the table",
        differing
            .map(|line| format!("missing: {line}"))
            .chain(["the order, or an option that no longer exists".to_owned()])
            .collect(),
    );
}

#[test]
fn paths_are_found_in_backticks_and_links() {
    let text = "See `common/core` and [rules](docs/rules.md#why), `a/{b,c}.rs`, `tests/*`.\n\
                Not `GET`, `/jobs/:id`, `file://x/y`, `a/b c`, [web](https://example.org/x).\n\
                ```\n`no/code`\n```";
    let paths: Vec<String> = named_paths(text).into_iter().map(|(_, path)| path).collect();
    assert_eq!(paths, ["common/core", "a/b.rs", "a/c.rs", "tests", "docs/rules.md"]);
}
