//! The job `e2e-job --case kinds`: keyed state of every kind, and what has come of it at the end of the input.
//!
//! Its numbers are those of [`Numbers`](crate::Numbers). A function keeps something of each number of its key in every
//! kind of state: values (of numbers, of a struct, of an enum, of what has no Arrow type and is a binary column), a list,
//! maps, and timers of both kinds of time, some of which are taken back. At the end of the input each key writes one line
//! with all of it. So a line is right if each number got into each state once, and in order.

use std::collections::{BTreeMap, BTreeSet};

use flott::prelude::*;
use flott::time::Timestamp;
use flott::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::numbers::KEYS;

/// Later than any number's time.
const END_MS: Timestamp = 1_000_000_000_000_000;

/// A timer that is taken back before it is due.
const NEVER_MS: Timestamp = END_MS - 1;

/// Each key is woken when event time comes to the multiple of it behind one of its numbers.
const TICK_MS: u64 = 10_000;

/// How long after its first number a key is woken by the wall clock: longer than what a test does before it has the
/// checkpoint that it wants.
const ALARM_MS: Timestamp = 15_000;

/// How many of the last numbers are in the list.
const RECENT: usize = 3;

/// In a savepoint, a column of texts.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Parity {
    Even,
    Odd,
}

/// In a savepoint, a binary column.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Step {
    First(u64),
    Next { from: u64, to: u64 },
}

/// In a savepoint, a struct with a null now and then.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Note {
    text: String,
    half: Option<f64>,
    pair: (i32, bool),
    bytes: Vec<u8>,
}

/// Of a number's place among those of its key.
fn parity(number: u64) -> Parity {
    if (number / KEYS).is_multiple_of(2) { Parity::Even } else { Parity::Odd }
}

fn step(last: Option<u64>, number: u64) -> Step {
    last.map_or(Step::First(number), |from| Step::Next { from, to: number })
}

fn note(number: u64) -> Note {
    Note {
        text: format!("number {number}"),
        half: number.is_multiple_of(3).then_some(number as f64 / 2.0),
        pair: (-((number % 1000) as i32), number.is_multiple_of(5)),
        bytes: number.to_le_bytes().to_vec(),
    }
}

/// Counts the numbers of a key by it.
fn residue(number: u64) -> u16 {
    (number / KEYS % 10) as u16
}

/// When the key of a number is woken next.
fn tick_ms(number: u64) -> Timestamp {
    ((number / TICK_MS + 1) * TICK_MS) as Timestamp
}

/// All that is kept of a key.
#[derive(Default, Serialize)]
struct Kept {
    key: u64,
    count: u64,
    /// Multiplied, so that it does not fit into 64 bits.
    product: u128,
    parity: Option<Parity>,
    step: Option<Step>,
    note: Option<Note>,
    recent: Vec<u64>,
    residues: BTreeMap<u16, u64>,
    ticks: BTreeSet<Timestamp>,
    alarms: u64,
}

impl Kept {
    fn line(&self) -> String {
        serde_json::to_string(self).expect("all of it has a form in JSON")
    }
}

fn product(before: u128, number: u64) -> u128 {
    before.wrapping_mul(31).wrapping_add((u128::from(number) << 64) | 7)
}

/// The lines of the numbers below `end`, of keys that the wall clock has woken so often.
pub fn kinds_lines(end: u64, alarms: u64) -> Vec<String> {
    let line = |key| {
        let mut kept = Kept { key, alarms, ..Kept::default() };
        let mut last = None;
        for number in (key..end).step_by(KEYS as usize) {
            kept.count += 1;
            kept.product = product(kept.product, number);
            kept.parity = Some(parity(number));
            kept.step = Some(step(last.replace(number), number));
            kept.note = Some(note(number));
            kept.recent.push(number);
            *kept.residues.entry(residue(number)).or_default() += 1;
            kept.ticks.insert(tick_ms(number));
        }
        kept.recent.drain(..kept.recent.len().saturating_sub(RECENT));
        kept.line()
    };
    let mut lines: Vec<String> = (0..KEYS).map(line).collect();
    lines.sort_unstable();
    lines
}

/// The job, without its source and its sink. Each key has `padding_bytes` of state that never changes, so that what does
/// is little beside it.
pub fn all_kinds(numbers: DataStream<u64>, padding_bytes: usize) -> DataStream<String> {
    numbers
        .assign_timestamps_and_watermarks(WatermarkStrategy::monotonous(|number: &u64| *number as Timestamp))
        .uid("time")
        .key_by(|number: &u64| number % KEYS)
        .process(Keep { padding_bytes, states: None })
        .name("Kinds")
        .uid("kinds")
}

#[derive(Clone)]
struct Keep {
    padding_bytes: usize,
    states: Option<States>,
}

#[derive(Clone)]
struct States {
    count: ValueState<u64>,
    last: ValueState<u64>,
    product: ValueState<u128>,
    parity: ValueState<Parity>,
    step: ValueState<Step>,
    note: ValueState<Note>,
    recent: ListState<u64>,
    residues: MapState<u16, u64>,
    ticks: MapState<Timestamp, bool>,
    alarms: ValueState<u64>,
    padding: ValueState<String>,
}

impl Keep {
    fn states(&self) -> Result<&States> {
        self.states.as_ref().ok_or_else(|| Error::system("it was not opened"))
    }
}

impl KeyedProcessFunction<u64, u64, String> for Keep {
    fn open(&mut self, states: &mut KeyedStates<u64>) -> Result<()> {
        self.states = Some(States {
            count: states.value("count")?,
            last: states.value("last")?,
            product: states.value("product")?,
            parity: states.value("parity")?,
            step: states.value("step")?,
            note: states.value("note")?,
            recent: states.list("recent")?,
            residues: states.map("residues")?,
            ticks: states.map("ticks")?,
            alarms: states.value("alarms")?,
            padding: states.value("padding")?,
        });
        Ok(())
    }

    fn process(&mut self, number: u64, cx: &mut KeyedContext<'_, u64>, _: &mut Collector<'_, String>) -> Result<()> {
        let states = self.states()?;
        let last = states.last.get(cx).copied();
        if last.is_none() {
            states.padding.set(cx, "7".repeat(self.padding_bytes));
            cx.register_event_time_timer(END_MS);
            cx.register_processing_time_timer(flott_env::now_ms() + ALARM_MS);
        }
        states.last.set(cx, number);
        *states.count.update(cx, || 0) += 1;
        let before = *states.product.update(cx, || 0);
        states.product.set(cx, product(before, number));
        states.parity.set(cx, parity(number));
        states.step.set(cx, step(last, number));
        states.note.set(cx, note(number));
        let recent = states.recent.clear(cx);
        let kept = recent.len().saturating_sub(RECENT - 1);
        recent.into_iter().skip(kept).chain([number]).for_each(|number| states.recent.add(cx, number));
        let counted = states.residues.get(cx, &residue(number)).copied().unwrap_or(0);
        states.residues.put(cx, residue(number), counted + 1);
        cx.register_event_time_timer(tick_ms(number));
        // Every other number takes back what the one before has asked for.
        match parity(number) {
            Parity::Even => cx.register_event_time_timer(NEVER_MS),
            Parity::Odd => cx.delete_event_time_timer(NEVER_MS),
        }
        Ok(())
    }

    fn on_timer(
        &mut self,
        timer: Timer,
        cx: &mut KeyedContext<'_, u64>,
        out: &mut Collector<'_, String>,
    ) -> Result<()> {
        let states = self.states()?;
        match timer {
            Timer::EventTime(END_MS) => {
                let kept = Kept {
                    key: *cx.key(),
                    count: states.count.get(cx).copied().unwrap_or(0),
                    product: states.product.get(cx).copied().unwrap_or(0),
                    parity: states.parity.get(cx).cloned(),
                    step: states.step.get(cx).cloned(),
                    note: states.note.get(cx).cloned(),
                    recent: states.recent.get(cx).to_vec(),
                    residues: states.residues.entries(cx).map(|(residue, count)| (*residue, *count)).collect(),
                    ticks: states.ticks.entries(cx).map(|(tick, _)| *tick).collect(),
                    alarms: states.alarms.get(cx).copied().unwrap_or(0),
                };
                out.collect(kept.line());
            }
            Timer::EventTime(NEVER_MS) => {}
            // Once or more: a number that is late asks for it again.
            Timer::EventTime(tick) => states.ticks.put(cx, tick, true),
            Timer::ProcessingTime(_) => *states.alarms.update(cx, || 0) += 1,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_a_line_with_all_of_its_numbers() {
        let lines = kinds_lines(3 * KEYS, 1);
        assert_eq!(lines.len() as u64, KEYS);
        let first = lines.iter().find(|line| line.starts_with("{\"key\":0,")).unwrap();
        let first: serde_json::Value = serde_json::from_str(first).unwrap();
        assert_eq!((&first["count"], &first["alarms"]), (&3.into(), &1.into()));
        assert_eq!(first["recent"], serde_json::json!([0, 64, 128]));
        assert_eq!(first["ticks"], serde_json::json!([10_000]));
        assert_eq!(first["residues"], serde_json::json!({"0": 1, "1": 1, "2": 1}));
    }
}
