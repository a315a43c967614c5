//! A compiled plan as text: how it gets to workers.
//!
//! A worker runs the same binary with the same arguments. The plan is not one of them: it may be longer than a command line, and
//! has the options of tables in it, which are not for everybody on the machine to read. It is compressed, written in base64, and
//! goes to workers as the payload of the job.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flott_core::{Error, Result, ResultExt};
use flott_sql_runtime::spec::CompiledPlan;

/// What a plan may be when it is unpacked: nobody writes such a script.
const PLAN_MAX: usize = 64 << 20;

/// The text that stands for a plan.
pub fn to_text(plan: &CompiledPlan) -> Result<String> {
    let packed = zstd::bulk::compress(&plan.encode()?, 3).context("compressing the plan")?;
    Ok(STANDARD.encode(packed))
}

/// The plan that a text stands for.
///
/// # Errors
/// It is not from [`to_text`], or from another version.
pub fn from_text(text: &str) -> Result<CompiledPlan> {
    let damaged = |reason: String| Error::input(format!("the compiled plan of the job is damaged: {reason}"));
    let packed = STANDARD.decode(text).map_err(|error| damaged(error.to_string()))?;
    let bytes = zstd::bulk::decompress(&packed, PLAN_MAX).map_err(|error| damaged(error.to_string()))?;
    CompiledPlan::decode(&bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field, Schema};
    use flott_sql_runtime::spec::{OperatorSpec, PLAN_VERSION, PlanNode};

    use super::*;

    fn plan(nodes: usize) -> CompiledPlan {
        let schema = Arc::new(Schema::new(vec![Field::new("é", DataType::Decimal128(10, 2), true)]));
        let node = |index: usize| PlanNode {
            uid: format!("{:x}", index.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            name: "DropUpdateBefore".to_owned(),
            operator: OperatorSpec::DropUpdateBefore,
            schema: Arc::clone(&schema),
            parallelism: None,
        };
        CompiledPlan {
            version: PLAN_VERSION,
            name: "a plan".to_owned(),
            nodes: (0..nodes).map(node).collect(),
            edges: Vec::new(),
            config: [("k".to_owned(), "v".to_owned())].into(),
        }
    }

    #[test]
    fn plans_of_any_size_arrive() {
        for nodes in [0, 1, 20_000] {
            let plan = plan(nodes);
            let arrived = from_text(&to_text(&plan).unwrap()).unwrap();
            assert_eq!(format!("{arrived:?}"), format!("{plan:?}"));
        }
    }

    #[test]
    fn what_is_damaged_or_of_another_version_is_refused() {
        let error = from_text("x*").unwrap_err();
        assert!(error.message.contains("damaged"), "{error}");
        let other = CompiledPlan { version: 99, ..plan(1) };
        let error = from_text(&to_text(&other).unwrap()).unwrap_err();
        assert!(error.message.contains("version 99"), "{error}");
    }
}
