//! Which crate may know which.

use flott_tidy::{Manifest, assert_none, manifests};

/// Our crates that a crate may use.
struct Layer {
    /// A folder, or all folders below one (`common/*`).
    folders: &'static str,
    /// The folders whose crates it may depend on, written likewise.
    may_use: &'static [&'static str],
    /// Why not on others.
    reason: &'static str,
}

/// The first entry that fits a crate counts.
const LAYERS: &[Layer] = &[
    Layer {
        folders: "common/core",
        may_use: &[],
        reason: "every crate builds on it: what it needed would be in all of them, and anything of ours would be a cycle",
    },
    Layer {
        folders: "common/*",
        may_use: &["common/*"],
        reason: "both sides of the wire share it, so it knows neither",
    },
    Layer {
        folders: "proto",
        may_use: &["common/*"],
        reason: "it turns wire types into those of common, and is all that JobManager and TaskManager have in common",
    },
    Layer {
        folders: "jobmanager/core",
        may_use: &["common/*"],
        reason: "the JobManager's decisions are pure: the simulator runs them without a server",
    },
    Layer {
        folders: "jobmanager/raft",
        may_use: &["common/*", "jobmanager/core"],
        reason: "a log of facts needs to know the facts and nothing that serves them",
    },
    Layer {
        folders: "jobmanager/*",
        may_use: &["common/*", "proto", "jobmanager/*"],
        reason: "jobmanager and taskmanager meet only through proto, so that either can be replaced and both can be upgraded one by one",
    },
    Layer {
        folders: "taskmanager/server",
        may_use: &["common/*", "proto", "connectors/spi", "taskmanager/*"],
        reason: "jobmanager and taskmanager meet only through proto; connectors are the job's, never the server's",
    },
    Layer {
        folders: "taskmanager/*",
        may_use: &["common/*", "connectors/spi", "taskmanager/state", "taskmanager/network", "taskmanager/operators"],
        reason: "operators, state and network are libraries of the data path: they know no server, no wire of the control plane, no connector",
    },
    Layer {
        folders: "connectors/spi",
        may_use: &["common/*"],
        reason: "connectors written by others depend on it: it must stay small",
    },
    Layer {
        folders: "connectors/*",
        may_use: &["common/*", "connectors/*"],
        reason: "a connector sees the engine through connectors/spi alone, so that it can be tested without one",
    },
    Layer {
        folders: "api/local",
        may_use: &["common/*", "proto", "connectors/spi", "jobmanager/*", "taskmanager/*"],
        reason: "the embedded cluster puts the servers together; the APIs build on it",
    },
    Layer {
        folders: "api/datastream",
        may_use: &["common/*", "connectors/*", "taskmanager/state", "taskmanager/operators", "api/local"],
        reason: "users import it: it offers operators and connectors, and reaches the servers through api/local alone",
    },
    Layer {
        folders: "api/*",
        may_use: &["common/*", "proto", "connectors/*", "jobmanager/*", "taskmanager/*", "api/*"],
        reason: "nothing that ships depends on tests, benchmarks or examples",
    },
    Layer {
        folders: "examples/*",
        may_use: &["api/datastream", "api/table"],
        reason: "an example shows what a user can write, and a user has the crates flott and flott-table and nothing else of ours",
    },
    Layer {
        folders: "tests/*",
        may_use: &[
            "common/*",
            "proto",
            "connectors/*",
            "jobmanager/*",
            "taskmanager/*",
            "api/*",
            "examples/*",
            "tests/*",
        ],
        reason: "tests may use everything but the benchmarks",
    },
    Layer {
        folders: "bench",
        may_use: &["common/*", "proto", "connectors/*", "jobmanager/*", "taskmanager/*", "api/*", "examples/*"],
        reason: "benchmarks may use everything that ships",
    },
];

/// It has no code, only versions and features of crates of others, as the root has them.
const FEATURES: &str = "common/features";

/// Crates of others that a crate of ours must do without, in whatever it ships.
const BANNED: &[(&str, &str, &str)] = &[
    ("common/core", "tokio", "core has no I/O and no clock, so that everything built on it can be simulated"),
    ("jobmanager/core", "tokio", "the JobManager's machines are pure: same events, same commands, whatever the thread"),
    ("api/datastream", "datafusion", "a DataStream job builds in minutes: SQL is a crate beside it"),
];

fn fits(folder: &str, pattern: &str) -> bool {
    match pattern.strip_suffix("/*") {
        Some(parent) => folder.strip_prefix(parent).is_some_and(|rest| rest.starts_with('/')),
        None => folder == pattern,
    }
}

fn layer_violations(manifests: &[Manifest]) -> Vec<String> {
    let mut violations = Vec::new();
    for manifest in manifests {
        let Some(layer) = LAYERS.iter().find(|layer| fits(&manifest.folder, layer.folders)) else {
            violations.push(format!("{}: no layer; add it to LAYERS with what it may use and why", manifest.folder));
            continue;
        };
        // A test may use more than what ships, as long as no server or API comes into the libraries below it.
        for dependency in manifest.dependencies.iter().filter(|dependency| dependency.is_shipped()) {
            let Some(used) = manifests.iter().find(|other| other.name == dependency.name) else { continue };
            if !layer.may_use.iter().any(|pattern| fits(&used.folder, pattern)) {
                violations.push(format!(
                    "{}/Cargo.toml:{}: must not use {} ({}): {}",
                    manifest.folder, dependency.line, used.name, used.folder, layer.reason
                ));
            }
        }
    }
    violations
}

#[test]
fn dependencies_run_one_way() {
    assert_none(
        "common/core <- common/*, connectors/spi, taskmanager/{state,network,operators} <- api/datastream, servers <- api/{local,cli}",
        "each layer can be understood, built and tested without those above it",
        layer_violations(&manifests()),
    );
}

#[test]
fn pure_crates_have_no_runtime_and_the_api_has_no_query_engine() {
    let mut violations = Vec::new();
    for manifest in manifests() {
        for (folder, banned, reason) in BANNED {
            let is_banned = |name: &str| name == *banned || name.starts_with(&format!("{banned}-"));
            for dependency in manifest.dependencies.iter().filter(|d| d.is_shipped() && is_banned(&d.name)) {
                if manifest.folder == *folder {
                    violations.push(format!("{folder}/Cargo.toml:{}: {}: {reason}", dependency.line, dependency.name));
                }
            }
        }
    }
    assert_none("some crates must do without some others", "see each", violations);
}

#[test]
fn versions_stand_in_the_workspace() {
    let manifests = manifests().into_iter().filter(|manifest| manifest.folder != FEATURES);
    let violations = manifests.flat_map(|manifest| {
        let folder = manifest.folder;
        let own = manifest.dependencies.into_iter().filter(|dependency| !dependency.is_workspace);
        own.map(move |dependency| {
            format!("{folder}/Cargo.toml:{}: write {}.workspace = true", dependency.line, dependency.name)
        })
    });
    assert_none(
        "every dependency's version stands once, in the root Cargo.toml",
        "two crates with two versions of one dependency do not fit together, and are built twice",
        violations.collect(),
    );
}

#[test]
fn a_broken_rule_is_named_with_its_reason() {
    use flott_tidy::Dependency;
    let manifest = |folder: &str, name: &str, uses: &[&str]| Manifest {
        folder: folder.to_owned(),
        name: name.to_owned(),
        dependencies: uses
            .iter()
            .map(|name| Dependency {
                name: (*name).to_owned(),
                table: "dependencies".to_owned(),
                is_workspace: true,
                line: 7,
            })
            .collect(),
    };
    let broken = layer_violations(&[
        manifest("jobmanager/server", "flott-jobmanager", &["flott-taskmanager", "serde"]),
        manifest("taskmanager/server", "flott-taskmanager", &[]),
    ]);
    assert_eq!(broken.len(), 1);
    assert!(broken[0].starts_with("jobmanager/server/Cargo.toml:7: must not use flott-taskmanager"), "{}", broken[0]);
    assert!(broken[0].contains("meet only through proto"), "{}", broken[0]);
}
