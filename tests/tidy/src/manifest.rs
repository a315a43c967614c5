//! The crates of the workspace and what they depend on.

use crate::tree::files;

/// A line of a dependency table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The crate's name.
    pub name: String,
    /// The table that it stands in, such as `dependencies` or `dev-dependencies`.
    pub table: String,
    /// Whether its version is the workspace's.
    pub is_workspace: bool,
    /// The line in the manifest, counted from 1.
    pub line: usize,
}

impl Dependency {
    /// Whether it is in the crate that others link, rather than in its tests or its build script.
    pub fn is_shipped(&self) -> bool {
        self.table == "dependencies" || (self.table.starts_with("target.") && self.table.ends_with(".dependencies"))
    }
}

/// A crate of the workspace.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The crate's folder from the repository's root, such as `common/core`.
    pub folder: String,
    /// The crate's name.
    pub name: String,
    /// What it depends on.
    pub dependencies: Vec<Dependency>,
}

/// All crates, by folder.
pub fn manifests() -> Vec<Manifest> {
    let members = files("Cargo.toml").into_iter().filter_map(|file| {
        let folder = file.path.strip_suffix("/Cargo.toml")?;
        Some(Manifest::parse(folder, &file.text))
    });
    members.collect()
}

impl Manifest {
    /// Reads the parts of a manifest that the rules are about. Each dependency is on a line of its own, which is how
    /// all manifests here are written; a `[dependencies.name]` table counts as one dependency.
    fn parse(folder: &str, text: &str) -> Self {
        let mut manifest = Self { folder: folder.to_owned(), name: String::new(), dependencies: Vec::new() };
        let mut table = String::new();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let line = line.split(" #").next().unwrap_or_default().trim();
            if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                table = header.to_owned();
                if let Some((parent, name)) = header.rsplit_once("dependencies.") {
                    let table = format!("{parent}dependencies");
                    let name = name.to_owned();
                    manifest.dependencies.push(Dependency { name, table, is_workspace: false, line: line_number });
                }
                continue;
            }
            let Some((key, value)) = line.split_once('=') else { continue };
            let (key, value) = (key.trim(), value.trim());
            if line.starts_with('#') {
                continue;
            }
            if table == "package" && key == "name" {
                manifest.name = value.trim_matches('"').to_owned();
            } else if table.ends_with("dependencies") {
                let (name, is_workspace) = match key.split_once('.') {
                    Some((name, field)) => (name, field == "workspace" && value == "true"),
                    None => (key, value.replace(' ', "").contains("workspace=true")),
                };
                let (name, table) = (name.to_owned(), table.clone());
                manifest.dependencies.push(Dependency { name, table, is_workspace, line: line_number });
            } else if table.contains("dependencies.")
                && key == "workspace"
                && value == "true"
                && let Some(last) = manifest.dependencies.last_mut()
            {
                last.is_workspace = true;
            }
        }
        manifest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_in_every_way_to_write_them() {
        let manifest = Manifest::parse(
            "a/b",
            r#"
[package]
name = "b"
version.workspace = true

[dependencies]
one.workspace = true
two = { workspace = true, features = ["x"] }
three = "3"
# four = "4"

[dev-dependencies]
five = { path = "../five" }

[target.'cfg(unix)'.dependencies]
six.workspace = true

[dependencies.seven]
workspace = true
"#,
        );
        assert_eq!(manifest.name, "b");
        let found: Vec<_> =
            manifest.dependencies.iter().map(|d| (d.name.as_str(), d.is_workspace, d.is_shipped())).collect();
        assert_eq!(
            found,
            [
                ("one", true, true),
                ("two", true, true),
                ("three", false, true),
                ("five", false, false),
                ("six", true, true),
                ("seven", true, true),
            ]
        );
    }
}
