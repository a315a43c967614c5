//! Which settings there are, and what is said of one that is not.

use flott_core::config::options;

use super::recovery::Recovery;
use crate::catalog::suggestion;

/// Settings of SQL and its client, by their newest names. The engine does not know them.
const OF_SQL: &[&str] = &[
    "execution.state-recovery.claim-mode",
    "execution.state-recovery.ignore-unclaimed-state",
    "execution.state-recovery.path",
    "pipeline.name",
    "sql-client.execution.result-mode",
    "table.dml-sync",
    "table.exec.async-lookup.buffer-capacity",
    "table.exec.async-lookup.timeout",
    "table.exec.resource.default-parallelism",
    "table.exec.sink.require-on-conflict",
    "table.exec.source.cdc-events-duplicate",
    "table.exec.source.idle-timeout",
    "table.exec.state.ttl",
    "table.local-time-zone",
    "table.optimizer.agg-phase-strategy",
    "table.optimizer.reuse-sub-plan-enabled",
];

/// Settings of Flink that say how it works or what its client looks like, and never what comes of a query. A script may have them;
/// here they do nothing.
const OF_FLINK: &[&str] = &[
    "execution.checkpointing.max-concurrent-checkpoints",
    "execution.checkpointing.mode",
    "pipeline.object-reuse",
    "sql-client.display.color-schema",
    "sql-client.display.print-time-cost",
    "sql-client.display.show-line-numbers",
    "sql-client.verbose",
    "table.exec.async-lookup.output-mode",
    "table.exec.async-state.enabled",
    "table.exec.deduplicate.mini-batch.compact-changes-enabled",
    "table.exec.delta-join.cache-enabled",
    "table.exec.delta-join.left.cache-size",
    "table.exec.delta-join.right.cache-size",
    "table.exec.interval-join.min-cleanup-interval",
    "table.exec.local-hash-agg.adaptive.distinct-value-rate-threshold",
    "table.exec.local-hash-agg.adaptive.enabled",
    "table.exec.local-hash-agg.adaptive.sampling-threshold",
    "table.exec.mini-batch.allow-latency",
    "table.exec.mini-batch.enabled",
    "table.exec.mini-batch.size",
    "table.exec.operator-fusion-codegen.enabled",
    "table.exec.rank.topn-cache-size",
    "table.exec.resource.external-buffer-memory",
    "table.exec.resource.hash-agg.memory",
    "table.exec.resource.hash-join.memory",
    "table.exec.resource.sort.memory",
    "table.exec.simplify-operator-name-enabled",
    "table.exec.sort.async-merge-enabled",
    "table.exec.sort.max-num-file-handles",
    "table.exec.spill-compression.block-size",
    "table.exec.spill-compression.enabled",
    "table.exec.window-agg.buffer-size-limit",
    "table.generated-code.max-length",
    "table.generated-code.max-members",
    "table.optimizer.adaptive-broadcast-join.strategy",
    "table.optimizer.bushy-join-reorder-threshold",
    "table.optimizer.delta-join.strategy",
    "table.optimizer.distinct-agg.split.bucket-num",
    "table.optimizer.distinct-agg.split.enabled",
    "table.optimizer.dynamic-filtering.enabled",
    "table.optimizer.incremental-agg-enabled",
    "table.optimizer.join-reorder-enabled",
    "table.optimizer.join.broadcast-threshold",
    "table.optimizer.multi-join.enabled",
    "table.optimizer.multiple-input-enabled",
    "table.optimizer.reuse-optimize-block-with-digest-enabled",
    "table.optimizer.reuse-sink-enabled",
    "table.optimizer.reuse-source-enabled",
    "table.optimizer.runtime-filter.enabled",
    "table.optimizer.runtime-filter.max-build-data-size",
    "table.optimizer.runtime-filter.min-filter-ratio",
    "table.optimizer.runtime-filter.min-probe-data-size",
    "table.optimizer.skewed-join-optimization.skewed-factor",
    "table.optimizer.skewed-join-optimization.skewed-threshold",
    "table.optimizer.skewed-join-optimization.strategy",
    "table.optimizer.source.report-statistics-enabled",
    "table.optimizer.sql2rel.project-merge.enabled",
    "table.optimizer.union-all-as-breakpoint-enabled",
];

/// The keys of all settings that do something, those of the engine among them.
pub fn setting_keys() -> impl Iterator<Item = &'static str> {
    options::keys().chain(OF_SQL.iter().copied())
}

/// What to say of a setting that somebody makes, if it may be a mistake. Flink takes any, so it is none for certain.
pub(super) fn warning(key: &str) -> Option<String> {
    let is_known = options::find(key).is_some() || Recovery::has(key);
    if is_known || OF_SQL.contains(&key) || OF_FLINK.contains(&key) {
        return None;
    }
    let nearest = suggestion(key, setting_keys().chain(OF_FLINK.iter().copied()));
    Some(format!("SET '{key}' does nothing: there is no such setting here{nearest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_none_is_told_with_the_nearest() {
        for (key, nearest) in [
            ("table.exec.state.tll", "table.exec.state.ttl"),
            ("table.exec.mini-batch.enable", "table.exec.mini-batch.enabled"),
            ("execution.checkpointing.interva", "execution.checkpointing.interval"),
            ("sql-client.execution.resultmode", "sql-client.execution.result-mode"),
        ] {
            let warning = warning(key).unwrap();
            assert!(warning.contains(key) && warning.contains(&format!("did you mean '{nearest}'?")), "{warning}");
        }
        let warning = warning("x").unwrap();
        assert!(!warning.contains("did you mean"), "{warning}");
    }

    #[test]
    fn keys_that_do_something_or_never_could_are_silent() {
        let older = ["state.checkpoints.dir", "execution.savepoint.path"];
        for key in setting_keys().chain(OF_FLINK.iter().copied()).chain(older) {
            assert_eq!(warning(key), None);
        }
        // What would change results does not pass in silence.
        assert!(warning("table.exec.sink.not-null-enforcer").is_some());
    }
}
