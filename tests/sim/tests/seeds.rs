//! Many runs of the simulator. `FLOTT_SIM_SEEDS` says how many, `FLOTT_SIM_SEED` repeats a single one
//! and prints what happens in it.

use flott_core::status::JobStatus;

const SEEDS_DEFAULT: u64 = 300;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

#[test]
fn every_record_becomes_visible_exactly_once() {
    if let Some(seed) = number("FLOTT_SIM_SEED") {
        let outcome = flott_sim::run(seed, true).unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        println!("seed {seed}: {outcome:?}");
        return;
    }
    let (mut finished, mut restarted, mut leaders) = (0, 0, 0);
    let (mut rescaled, mut continued, mut carried, mut followed) = (0, 0, 0, 0);
    let (mut competing, mut upgraded, mut rolled_back, mut by_hand, mut drained) = (0, 0, 0, 0, 0);
    let seeds = number("FLOTT_SIM_SEEDS").unwrap_or(SEEDS_DEFAULT);
    for seed in 0..seeds {
        let outcome = flott_sim::run(seed, false).unwrap_or_else(|violation| {
            panic!("seed {seed}: {violation}; repeat it with FLOTT_SIM_SEED={seed}");
        });
        finished += u64::from(outcome.statuses.iter().all(|status| *status == JobStatus::Finished));
        restarted += u64::from(outcome.generations > 1);
        leaders += u64::from(outcome.leaders > 1);
        rescaled += u64::from(outcome.rescales > 0);
        continued += u64::from(outcome.continued > 0);
        carried += u64::from(outcome.carried > 0);
        followed += u64::from(outcome.jobs > outcome.lines);
        competing += u64::from(outcome.lines > 1);
        upgraded += u64::from(outcome.upgrades > 0);
        rolled_back += u64::from(outcome.rollbacks > 0);
        by_hand += u64::from(outcome.by_hand > 0);
        drained += u64::from(outcome.drained > 0);
    }
    println!("{seeds} seeds: {finished} finished, {restarted} restarted, {leaders} with more than one leader");
    println!(
        "{rescaled} rescaled, {continued} with workers that went on, {carried} of them with subtasks that carried over"
    );
    println!("{followed} with more than one job, {drained} with one that was drained");
    println!("{competing} with two jobs at once, {upgraded} upgraded, {rolled_back} rolled back, {by_hand} by hand");
    // A simulator that tests nothing must not pass.
    assert!(seeds < 100 || (finished * 2 > seeds && restarted * 4 > seeds && leaders * 5 > seeds));
    assert!(seeds < 100 || carried * 20 > seeds);
    assert!(seeds < 100 || (rescaled * 5 > seeds && continued * 4 > seeds && followed * 10 > seeds));
    assert!(seeds < 100 || (competing * 5 > seeds && upgraded * 20 > seeds && rolled_back * 20 > seeds));
    assert!(seeds < 300 || (by_hand * 100 > seeds && drained * 100 > seeds));
}

#[test]
fn a_seed_is_a_run() {
    for seed in [1, 2, 3, 5, 8, 13] {
        assert_eq!(flott_sim::run(seed, false), flott_sim::run(seed, false), "seed {seed}");
    }
}
