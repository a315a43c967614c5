//! Rules about Rust files.

use flott_tidy::{File, assert_none, manifests, repository, rust_files};

/// The longest that a file may be.
const LINES_MAX: usize = 800;

/// Files that may say `unsafe`, each with what for. Keep it short: a safe crate that does the same is better.
const UNSAFE_ALLOWED: &[(&str, &str)] = &[];

/// A line of `file` without its strings' and comments' content, or as good as that: a rule that looks for a word
/// must not find it in a message or in prose.
fn code(line: &str) -> String {
    let mut code = String::new();
    let mut in_string = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if in_string => {
                chars.next();
            }
            // A quote in a character literal opens nothing.
            '\'' if !in_string && chars.peek() == Some(&'"') => {
                chars.next();
                chars.next();
            }
            '"' => in_string = !in_string,
            '/' if !in_string && chars.peek() == Some(&'/') => break,
            _ if in_string => {}
            _ => code.push(c),
        }
    }
    code
}

/// Lines of code in which `found` says yes, as `path:line: text`.
fn lines(file: &File, found: impl Fn(&str) -> bool) -> Vec<String> {
    let numbered = file.text.lines().enumerate();
    let matching = numbered.filter(|(_, line)| found(&code(line)));
    matching.map(|(index, line)| format!("{}:{}: {}", file.path, index + 1, line.trim())).collect()
}

/// Whether `word` is in `line` and is not a part of a longer name.
fn has_word(line: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(is_name)
            && !line[at + word.len()..].chars().next().is_some_and(is_name)
    })
}

#[test]
fn files_are_short() {
    let too_long = rust_files().into_iter().filter_map(|file| {
        let lines = file.text.lines().count();
        (lines > LINES_MAX).then(|| format!("{}: {lines} lines", file.path))
    });
    assert_none(
        &format!("a file has at most {LINES_MAX} lines"),
        "a file is one idea, and a longer one is two: split it by what its parts know",
        too_long.collect(),
    );
}

#[test]
fn unsafe_code_is_listed_and_argued() {
    let files = rust_files();
    let is_listed = |path: &str| UNSAFE_ALLOWED.iter().any(|(allowed, _)| *allowed == path);
    let mut violations: Vec<String> = files
        .iter()
        .filter(|file| !is_listed(&file.path))
        .flat_map(|file| lines(file, |line| has_word(line, "unsafe")))
        .collect();
    for (path, reason) in UNSAFE_ALLOWED {
        if !files.iter().any(|file| file.path == *path && file.text.contains("unsafe")) {
            violations.push(format!("{path}: in the list ({reason}) and no longer unsafe: remove it there"));
        }
    }
    assert_none(
        "unsafe stands only in the files of UNSAFE_ALLOWED in tests/tidy/tests/sources.rs",
        "each exception is small, visible and argued for; everything else cannot corrupt memory",
        violations,
    );
}

#[test]
fn exceptions_from_lints_give_their_reason() {
    let mut violations = Vec::new();
    for file in rust_files() {
        let mut attribute: Option<(usize, String)> = None;
        for (index, line) in file.text.lines().enumerate() {
            let code = code(line);
            let opens = ["#[allow(", "#![allow(", "#[expect(", "#![expect("].iter().any(|start| code.contains(start));
            if opens {
                attribute = Some((index + 1, String::new()));
            }
            let Some((start, text)) = &mut attribute else { continue };
            text.push_str(&code);
            if code.contains(")]") {
                if !text.replace(' ', "").contains("reason=") {
                    violations.push(format!("{}:{start}: {}", file.path, text.trim()));
                }
                attribute = None;
            }
        }
    }
    assert_none(
        "every #[allow(...)] and #[expect(...)] has a reason = \"...\"",
        "who reads it later must be able to tell whether it still holds",
        violations,
    );
}

#[test]
fn nothing_is_left_unfinished() {
    let leftovers = ["todo!", "unimplemented!", "dbg!"];
    let is_left = |line: &str| {
        leftovers.iter().any(|name| {
            line.match_indices(name).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            })
        })
    };
    assert_none(
        "no todo!, unimplemented! or dbg!",
        "they are panics and noise at the user's",
        rust_files().iter().flat_map(|file| lines(file, is_left)).collect(),
    );
}

#[test]
fn every_crate_says_what_it_is() {
    let files = rust_files();
    let mut violations = Vec::new();
    for manifest in manifests() {
        let folder = repository().join(&manifest.folder);
        for root in ["src/lib.rs", "src/main.rs"] {
            let path = format!("{}/{root}", manifest.folder);
            let Some(file) = files.iter().find(|file| file.path == path) else { continue };
            // A main beside a library is often a few lines; the library says what the crate is.
            if root == "src/main.rs" && folder.join("src/lib.rs").exists() {
                continue;
            }
            let first = file.text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("#!["));
            if !first.is_some_and(|line| line.starts_with("//!") && line.len() > "//! ".len()) {
                violations.push(path);
            }
        }
    }
    assert_none(
        "lib.rs or main.rs of every crate begins with //! and what the crate is",
        "a newcomer opens it first",
        violations,
    );
}

#[test]
fn words_in_strings_and_comments_are_not_code() {
    assert_eq!(code(r#"let a = "x \" y"; // z"#), "let a = ; ");
    assert_eq!(code(r#"if c == '"' { call() }"#), "if c ==  { call() }");
    assert!(has_word("unsafe { x }", "unsafe"));
    assert!(!has_word("unsafe_code = 1", "unsafe"));
}
