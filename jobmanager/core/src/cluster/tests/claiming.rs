//! The savepoint that a job owns from its start on.

use flott_control::ClaimMode;

use super::*;

impl Bed {
    /// A job runs from the savepoint `/sp`, which has the number 1.
    fn restored(claim_mode: ClaimMode) -> Self {
        let mut first = Self::running(&[EVERY_SECOND]);
        first.wait_until(1000);
        first.acknowledge(WORKERS, 1, 1);
        let manifest = first.manifests.pop_first().unwrap().1;

        let mut bed = Self::new(&[EVERY_SECOND]);
        bed.manifests.insert("/sp".into(), manifest);
        bed.add_task_manager(1, "tm-1", 1);
        bed.add_task_manager(2, "tm-2", 1);
        let spec = JobSpec { savepoint: Some("/sp".into()), claim_mode, ..spec() };
        let lines = bed.request(1, Request::Submit { job: JOB, spec: Box::new(spec) });
        assert!(lines.contains(&"load /sp for generation 1".to_owned()), "{lines:?}");
        bed.run_generation(1);
        bed.wait_until(1000);
        bed
    }
}

#[test]
fn a_claimed_savepoint_is_dropped_when_a_checkpoint_has_taken_its_place() {
    let mut bed = Bed::restored(ClaimMode::Claim);
    let lines = bed.acknowledge(WORKERS, 1, 2);
    assert_eq!(lines[lines.len() - 2..], ["propose drop 0", r#"delete [] ["/sp"]"#]);
    bed.wait_until(2000);
    let lines = bed.acknowledge(WORKERS, 1, 3);
    assert!(!lines.contains(&"propose drop 0".to_owned()), "once: {lines:?}");
    let lines = bed.replace_leader(&[EVERY_SECOND]);
    assert_eq!(lines, ["load s3://c/JOB/g1/chk-3 for generation 2"], "nor by the next leader");
}

#[test]
fn a_new_leader_drops_what_the_last_one_did_not() {
    let mut bed = Bed::restored(ClaimMode::Claim);
    bed.acknowledge(WORKERS, 1, 2);
    assert!(matches!(bed.log.pop(), Some(Fact::CheckpointDropped { checkpoint: 0, .. })));
    let lines = bed.replace_leader(&[EVERY_SECOND]);
    assert_eq!(
        lines,
        [
            "load /sp for generation 0",
            "load s3://c/JOB/g1/chk-2 for generation 2",
            "propose drop 0",
            r#"delete [] ["/sp"]"#
        ]
    );
    bed.log.pop();
    bed.manifests.remove("/sp");
    let lines = bed.replace_leader(&[EVERY_SECOND]);
    assert_eq!(lines.len(), 2, "what cannot be read is left where it is: {lines:?}");
}

#[test]
fn a_savepoint_that_was_not_claimed_is_the_users() {
    let mut bed = Bed::restored(ClaimMode::NoClaim);
    let lines = bed.acknowledge(WORKERS, 1, 2);
    assert!(lines.iter().all(|line| !line.contains("drop") && !line.contains("delete")), "{lines:?}");
    let lines = bed.replace_leader(&[EVERY_SECOND]);
    assert_eq!(lines, ["load s3://c/JOB/g1/chk-2 for generation 2"]);
}
