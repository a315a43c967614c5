//! What is known of the scripts in `tests/sql`.

/// Files with rows that come too late.
const LATE: [&str; 4] = ["data/orders.json", "data/shipments.json", "data/late_for_one.json", "data/range_late.json"];

/// Whether rows of a script may come too late. Which ones do depends, with several subtasks, on which of them is ahead: as in
/// Flink.
pub fn has_late_rows(script: &str) -> bool {
    script.contains("WATERMARK") && LATE.iter().any(|file| script.contains(file))
}
