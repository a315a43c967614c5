//! What earlier leaders left behind.

use super::*;

/// A leader whose first execution is the second of the job. The log has checkpoint 1 and savepoint 2 in `s3://s/8`; the one in
/// `s3://s/7` was asked for, and never became complete.
fn successor(pairs: &[(&str, &str)], start: Option<&str>) -> Bed {
    let pairs = [&[("execution.checkpointing.interval", "1 s")][..], pairs].concat();
    let mut bed = Bed::new(&pairs);
    bed.tick(1000, RUNNING);
    bed.complete(1);
    let latest = bed.coordinator.latest().cloned().unwrap();
    let mut coordinator = Coordinator::new(JOB, graph(), Settings::read(&config(&pairs)).unwrap());
    if let Some(start) = start {
        coordinator.starts_from(start, false);
    }
    for location in ["s3://s/7", "s3://s/8"] {
        coordinator.replay_requested(location.into());
    }
    coordinator.replay_completed(latest.clone());
    let savepoint = CompletedCheckpoint { id: 2, is_savepoint: true, location: "s3://s/8".into(), ..latest.clone() };
    coordinator.replay_completed(savepoint);
    coordinator.restored(latest, BTreeSet::new());
    coordinator.start(1000, 2);
    bed.coordinator = coordinator;
    bed
}

fn listed(bed: &mut Bed, names: &[&str]) -> Option<String> {
    let files = names.iter().map(|name| format!("s3://c/{JOB}/{name}")).collect();
    bed.coordinator.files_listed(files).as_ref().map(show)
}

#[test]
fn a_new_leader_looks_for_what_nobody_remembers_once_it_has_a_checkpoint() {
    let mut bed = successor(&[], None);
    assert_eq!(bed.tick(2000, RUNNING), ["trigger 3"]);
    assert_eq!(
        bed.complete(3),
        ["complete 3", "propose drop 1", r#"delete [] ["s3://s/7"]"#, "list s3://c/JOB"],
        "savepoint 8 is the user's"
    );
    let names = [
        "g1/chk-1/_metadata",
        "g1/chk-2/.0-0.state-0.part",
        "g1/chk-3/0-0.state",
        "g2/chk-3/_metadata",
        "g2/chk-4/0-0.state",
        "savepoint-ab-x/_metadata",
        "notes",
    ];
    let expected = r#"delete [] ["s3://c/JOB/g1/chk-2", "s3://c/JOB/g1/chk-3"]"#;
    assert_eq!(listed(&mut bed, &names).as_deref(), Some(expected), "checkpoint 1 is not dropped yet, 4 is under way");
    let dropped: Vec<String> = bed.coordinator.dropped(1).iter().map(show).collect();
    assert_eq!(dropped, [r#"delete [] ["s3://c/JOB/g1/chk-1"]"#]);
    assert_eq!(listed(&mut bed, &["g2/chk-3/_metadata"]), None);
    bed.tick(3000, RUNNING);
    assert_eq!(bed.complete(4), ["complete 4", "propose drop 3"], "once");
    bed.coordinator.listing_failed();
    bed.tick(4000, RUNNING);
    let lines = bed.complete(5);
    assert_eq!(lines.last().map(String::as_str), Some("list s3://c/JOB"), "but for a store that did not answer");
}

#[test]
fn nothing_is_looked_for_where_that_is_not_wanted() {
    let own = format!("s3a://c/{JOB}/g1/chk-1/");
    for (pairs, start) in [
        (&[("execution.checkpointing.cleaner.orphans", "false")][..], None),
        // What lies there may be of an earlier job with the same id.
        (&[][..], Some(own.as_str())),
        (&[][..], Some("")),
    ] {
        let mut bed = successor(pairs, start);
        bed.tick(2000, RUNNING);
        assert_eq!(bed.complete(3), ["complete 3", "propose drop 1"], "{start:?}");
        let actions = bed.coordinator.ended(JobStatus::Failed);
        assert!(!bed.show(actions).iter().any(|line| line.contains("s3://s/7")));
    }
    let mut bed = successor(&[], Some("s3://c/other/g1/chk-1"));
    bed.tick(2000, RUNNING);
    assert_eq!(bed.complete(3).last().map(String::as_str), Some("list s3://c/JOB"));
}

#[test]
fn as_long_as_files_are_unknown_nothing_is_looked_for() {
    let mut bed = successor(&[("execution.checkpointing.num-retained", "2")], None);
    let latest = bed.coordinator.latest().cloned().unwrap();
    let pairs = [("execution.checkpointing.interval", "1 s"), ("execution.checkpointing.num-retained", "2")];
    let mut coordinator = Coordinator::new(JOB, graph(), Settings::read(&config(&pairs)).unwrap());
    coordinator.replay_completed(latest.clone());
    let second = CompletedCheckpoint { id: 2, location: format!("s3://c/{JOB}/g1/chk-2"), ..latest };
    coordinator.replay_completed(second.clone());
    coordinator.restored(second, BTreeSet::new());
    coordinator.start(1000, 2);
    bed.coordinator = coordinator;
    bed.tick(2000, RUNNING);
    assert_eq!(bed.complete(3), ["complete 3", "propose drop 1"]);
    let dropped: Vec<String> = bed.coordinator.dropped(1).iter().map(show).collect();
    assert_eq!(dropped, [r#"delete [] ["s3://c/JOB/g1/chk-1"]"#, "list s3://c/JOB"]);
}

#[test]
fn a_job_whose_checkpoints_stay_leaves_nothing_else() {
    let retained = ("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
    let mut bed = Bed::new(&[("execution.checkpointing.interval", "1 s"), retained]);
    bed.tick(1000, RUNNING);
    bed.complete(1);
    bed.tick(2000, RUNNING);
    bed.suspend(Suspension::Cancelled);
    let actions = bed.coordinator.ended(JobStatus::Canceled);
    assert_eq!(bed.show(actions), ["list s3://c/JOB"]);
    let names = ["g1/chk-1/_metadata", "g1/chk-1/0-0.state", "g1/chk-2/0-0.state"];
    let expected = r#"delete ["s3://c/JOB/g1/chk-1/0-0.state"] ["s3://c/JOB/g1/chk-2"]"#;
    assert_eq!(listed(&mut bed, &names).as_deref(), Some(expected), "nobody will complete checkpoint 2");
}
