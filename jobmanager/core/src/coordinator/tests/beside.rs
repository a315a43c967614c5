//! A savepoint and a checkpoint at the same time.

use super::*;

#[test]
fn checkpoints_come_and_go_beside_a_savepoint_that_takes_long() {
    let mut bed = Bed::every_second();
    bed.savepoint(7, false);
    assert_eq!(bed.tick(0, RUNNING), ["trigger 1 savepoint s3://s/7 stop false"]);
    SUBTASKS[..2].iter().for_each(|subtask| bed.coordinator.taken(*subtask, 1));
    bed.coordinator.taken(SubtaskId { vertex: 1, index: 9 }, 1);
    assert!(bed.tick(1000, RUNNING).is_empty(), "a subtask is still writing what it has frozen");
    assert_eq!(bed.coordinator.next_deadline(RUNNING), Some(600_000));
    bed.take(1);
    assert_eq!(bed.coordinator.next_deadline(RUNNING), Some(1000));
    assert_eq!(bed.tick(1000, RUNNING), ["trigger 2"]);
    assert!(bed.tick(3000, RUNNING).is_empty(), "one checkpoint at a time");
    assert_eq!(bed.in_progress(), [1, 2]);
    assert_eq!(bed.complete(2), ["complete 2"]);

    // The savepoint is complete while the next checkpoint is under way, which is none the worse.
    assert_eq!(bed.tick(3000, RUNNING), ["trigger 3"]);
    assert_eq!(bed.complete(1), ["reply 7 completed s3://s/7"], "sinks commit nothing with it");
    assert_eq!(bed.coordinator.latest().map(|latest| latest.id), Some(2));
    assert_eq!(bed.in_progress(), [3]);
    assert_eq!(bed.complete(3), ["complete 3", "propose drop 2"]);
    let history: Vec<CheckpointId> = bed.coordinator.view().history.iter().map(|checkpoint| checkpoint.id).collect();
    assert_eq!(history, [3, 1, 2], "as they ended");
}

#[test]
fn both_may_be_on_their_way_to_the_log_in_either_order() {
    for savepoint_first in [true, false] {
        let mut bed = Bed::every_second();
        bed.savepoint(7, false);
        bed.tick(0, RUNNING);
        bed.take(1);
        bed.tick(1000, RUNNING);
        let mut proposed = Vec::new();
        for id in if savepoint_first { [1, 2] } else { [2, 1] } {
            bed.acknowledge(id);
            assert_eq!(bed.written(), [format!("propose checkpoint {id}")]);
            proposed.extend(bed.proposed.take());
        }
        for checkpoint in proposed {
            assert!(!bed.coordinator.is_settled());
            let line = if checkpoint.is_savepoint { "reply 7 completed s3://s/7" } else { "complete 2" };
            bed.proposed = Some(checkpoint);
            assert_eq!(bed.committed(), [line]);
        }
        assert!(bed.coordinator.is_settled());
        assert_eq!(bed.coordinator.latest().map(|latest| latest.id), Some(2));
    }
}

#[test]
fn what_becomes_of_one_does_not_concern_the_other() {
    let settings = [
        ("execution.checkpointing.interval", "1 s"),
        ("execution.checkpointing.min-pause", "2 s"),
        ("execution.checkpointing.timeout", "5 s"),
        ("execution.checkpointing.tolerable-failed-checkpoints", "1"),
    ];
    let mut bed = Bed::new(&settings);
    bed.savepoint(7, false);
    bed.tick(0, RUNNING);
    bed.take(1);
    assert_eq!(bed.tick(1000, RUNNING), ["trigger 2"]);
    let actions = bed.coordinator.decline(1500, "Sink (1/1)", 2, Error::system("disk full"));
    assert_eq!(bed.show(actions), ["abort 2"]);
    assert_eq!(bed.in_progress(), [1]);
    assert_eq!(bed.tick(3500, RUNNING), ["trigger 3"], "the pause after a checkpoint");

    let lines = bed.tick(5000, RUNNING);
    assert_eq!(lines[..2], ["abort 1", r#"delete [] ["s3://s/7"]"#]);
    assert_eq!(bed.in_progress(), [3]);
    assert_eq!(bed.complete(3), ["complete 3", r#"delete [] ["s3://c/JOB/g1/chk-2"]"#]);

    // A savepoint has no pause after it.
    bed.savepoint(8, false);
    bed.tick(5000, RUNNING);
    bed.take(4);
    assert_eq!(bed.tick(7000, RUNNING), ["trigger 5"]);
    bed.complete(5);
    bed.now_ms = 8999;
    bed.complete(4);
    assert_eq!(bed.tick(9000, RUNNING), ["trigger 6"]);

    // A failure of the execution is the end of both, and an answer to everybody.
    bed.savepoint(9, false);
    bed.complete(6);
    bed.tick(9000, RUNNING);
    bed.take(7);
    bed.coordinator.request(10, Wish::Checkpoint).unwrap();
    assert_eq!(bed.tick(9000, RUNNING), ["trigger 8"], "a checkpoint that a client wants need not wait either");
    assert_eq!(bed.fail(), ["reply 9 error: the job failed: boom", "reply 10 error: the job failed: boom"]);
    assert!(bed.in_progress().is_empty());
}

#[test]
fn what_ends_an_execution_has_nothing_beside_it() {
    let beside_a_savepoint = || {
        let mut bed = Bed::every_second();
        bed.savepoint(7, false);
        bed.tick(0, RUNNING);
        bed.take(1);
        assert_eq!(bed.tick(1000, RUNNING), ["trigger 2"]);
        bed
    };
    let mut bed = beside_a_savepoint();
    bed.savepoint(8, false);
    bed.savepoint(9, true);
    bed.complete(2);
    // What waits for the savepoint does not keep checkpoints from being taken meanwhile.
    assert_eq!(bed.tick(2000, RUNNING), ["trigger 3"]);
    bed.complete(1);
    assert!(bed.tick(2000, RUNNING).is_empty());
    bed.complete(3);
    assert_eq!(bed.tick(3000, RUNNING), ["trigger 4 savepoint s3://s/8 stop false"]);
    bed.take(4);
    bed.complete(4);
    assert_eq!(bed.tick(4000, RUNNING), ["trigger 5 savepoint s3://s/9 stop true"]);
    bed.take(5);
    assert!(bed.tick(9000, RUNNING).is_empty());

    let mut bed = beside_a_savepoint();
    bed.coordinator.request_for_rescale().unwrap();
    bed.complete(2);
    assert_eq!(
        bed.tick(2000, RUNNING),
        ["trigger 3"],
        "not that of the rescale, which would be the end of the savepoint"
    );
    bed.complete(3);
    bed.complete(1);
    assert_eq!(bed.tick(2000, RUNNING), ["trigger 4"]);
    bed.savepoint(8, false);
    assert!(bed.tick(9000, RUNNING).is_empty());
    assert_eq!(bed.complete(4)[..2], ["complete 4", "rescale"]);

    let mut bed = beside_a_savepoint();
    bed.complete(2);
    assert!(bed.tick(2000, FINISHING).is_empty());
    assert_eq!(bed.coordinator.next_deadline(FINISHING), Some(600_000));
    bed.complete(1);
    assert_eq!(bed.tick(2000, FINISHING), ["trigger 3 final"]);
}
