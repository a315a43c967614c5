//! Programs in the embedded cluster: operators together, with state, time and checkpoints.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use flott::datagen::GeneratorSource;
use flott::prelude::*;

fn environment(parallelism: u32) -> StreamExecutionEnvironment {
    let env = StreamExecutionEnvironment::new();
    env.set_parallelism(parallelism);
    env
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn counts_are_right_at_any_parallelism() {
    for parallelism in [1, 2, 5] {
        let env = environment(parallelism);
        let counts = env
            .from_generator(GeneratorSource::new(|index| index % 100).count(50_000))
            .key_by(|n| *n)
            .fold(0_u64, |count, _| *count += 1)
            .collect();
        env.execute("counts").unwrap();
        let mut last = BTreeMap::new();
        let counts = counts.take();
        assert_eq!(counts.len(), 50_000);
        for (key, count) in counts {
            let entry = last.entry(key).or_insert(0);
            *entry = count.max(*entry);
        }
        assert_eq!(last.len(), 100);
        assert!(last.values().all(|count| *count == 500), "{last:?}");
    }
}

#[test]
fn tumbling_windows_count_every_record_in_its_window_and_late_ones_aside() {
    let env = environment(2);
    let late = OutputTag::new("late");
    // Times 0, 10, 20, …; every hundredth record is 5 s behind and too late for its window of a second.
    let records = (0..10_000_i64).map(|i| if i % 100 == 99 { i * 10 - 5_000 } else { i * 10 });
    let windows = env
        .from_collection(records)
        .assign_timestamps_and_watermarks(WatermarkStrategy::bounded_out_of_orderness(ms(100), |time: &i64| *time))
        .set_parallelism(1)
        .key_by(|time| time % 3)
        .window(TumblingEventTimeWindows::of(ms(1000)))
        .side_output_late_data(&late)
        .aggregate_with(Count, |key, window, count| (*key, window.start, count));
    let too_late = windows.side_output(&late).collect();
    let windows = windows.collect();
    env.execute("windows").unwrap();
    let too_late = too_late.take();
    let windows = windows.take();
    assert_eq!(too_late.len(), 100);
    assert!(too_late.iter().all(|time| time.rem_euclid(1000) == 990));
    assert_eq!(windows.iter().map(|(_, _, count)| count).sum::<u64>(), 9_900);
    let starts: std::collections::BTreeSet<i64> = windows.iter().map(|(_, start, _)| *start).collect();
    assert_eq!(starts.len(), 100);
    assert_eq!(windows.len(), 300);
}

#[derive(Clone)]
struct Count;

impl<T> AggregateFunction<T> for Count {
    type Accumulator = u64;
    type Output = u64;

    fn create(&self) -> u64 {
        0
    }

    fn add(&self, count: &mut u64, _: T) {
        *count += 1;
    }

    fn merge(&self, count: &mut u64, other: u64) {
        *count += other;
    }

    fn result(&self, count: &u64) -> u64 {
        *count
    }
}

#[test]
fn a_record_that_is_late_for_one_window_still_counts_in_the_others() {
    // R17: HOP(5, 10) and TUMBLE 5 over seconds 1, 6, 3, 12, 20, a watermark with every record.
    let run = |windows: fn() -> flott::windows::WindowAssigner| {
        let env = environment(1);
        let results = env
            .from_collection([1_i64, 6, 3, 12, 20])
            .assign_timestamps_and_watermarks(WatermarkStrategy::monotonous(|second: &i64| second * 1000))
            .key_by(|_| ())
            .window(windows())
            .aggregate_with(Count, |(), window, count| (window.start / 1000, count))
            .collect();
        env.execute("R17").unwrap();
        results.take().into_iter().map(|(_, count)| count).collect::<Vec<_>>()
    };
    assert_eq!(run(|| SlidingEventTimeWindows::of(ms(10_000), ms(5_000)).into()), [1, 3, 2, 1, 1, 1]);
    assert_eq!(run(|| TumblingEventTimeWindows::of(ms(5_000)).into()), [1, 1, 1, 1]);
}

#[test]
fn sessions_merge_when_they_touch() {
    let env = environment(1);
    let sessions = env
        .from_collection([0_i64, 10, 20, 31, 100, 95])
        .assign_timestamps_and_watermarks(WatermarkStrategy::bounded_out_of_orderness(ms(50), |time: &i64| *time))
        .key_by(|_| 7_u8)
        .window(EventTimeSessionWindows::with_gap(ms(10)))
        .process(|key: &u8, window: TimeWindow, times: &[i64], out: &mut Vec<(u8, i64, i64, Vec<i64>)>| {
            out.push((*key, window.start, window.end, times.to_vec()));
            Ok(())
        })
        .collect();
    env.execute("sessions").unwrap();
    let expected = [(7, 0, 30, vec![0, 10, 20]), (7, 31, 41, vec![31]), (7, 95, 110, vec![100, 95])];
    assert_eq!(sessions.take(), expected);
}

#[test]
fn allowed_lateness_gives_results_again() {
    let env = environment(1);
    let results = env
        .from_collection([1_i64, 2, 15, 3, 40, 4])
        .assign_timestamps_and_watermarks(WatermarkStrategy::monotonous(|time: &i64| time * 1000))
        .key_by(|_| ())
        .window(TumblingEventTimeWindows::of(ms(10_000)))
        .allowed_lateness(ms(20_000))
        .aggregate_with(Count, |(), window, count| (window.start / 1000, count))
        .collect();
    env.execute("lateness").unwrap();
    // 3 comes within the lateness of the first window, 4 after it.
    assert_eq!(results.take(), [(0, 2), (0, 3), (10, 1), (40, 1)]);
}

#[derive(Clone, Default)]
struct Reminder {
    seen: Option<ValueState<u32>>,
}

impl KeyedProcessFunction<String, (String, i64), String> for Reminder {
    fn open(&mut self, states: &mut KeyedStates<String>) -> flott::Result<()> {
        self.seen = Some(states.value("seen")?);
        Ok(())
    }

    fn process(
        &mut self,
        value: (String, i64),
        cx: &mut KeyedContext<'_, String>,
        out: &mut Collector<'_, String>,
    ) -> flott::Result<()> {
        let seen = self.seen.as_ref().unwrap();
        *seen.update(cx, || 0) += 1;
        cx.register_event_time_timer(value.1 + 100);
        out.collect(format!("{} at {}", value.0, value.1));
        Ok(())
    }

    fn on_timer(
        &mut self,
        timer: Timer,
        cx: &mut KeyedContext<'_, String>,
        out: &mut Collector<'_, String>,
    ) -> flott::Result<()> {
        let seen = self.seen.as_ref().unwrap();
        let count = seen.get(cx).copied();
        out.collect(format!("{timer:?} for {} that was seen {count:?}", cx.key()));
        Ok(())
    }
}

#[test]
fn timers_fire_in_order_with_the_state_of_their_key() {
    let env = environment(1);
    let events = [("a", 0_i64), ("b", 50), ("a", 120), ("c", 300)].map(|(key, time)| (key.to_owned(), time));
    env.set("pipeline.auto-watermark-interval", "1 ms");
    let results = env
        .from_collection(events)
        .assign_timestamps_and_watermarks(WatermarkStrategy::monotonous(|event: &(String, i64)| event.1))
        .key_by_ref(|event| &event.0)
        .process(Reminder::default())
        .collect();
    env.execute("timers").unwrap();
    assert_eq!(
        results.take(),
        [
            "a at 0",
            "b at 50",
            "a at 120",
            "EventTime(100) for a that was seen Some(2)",
            "c at 300",
            "EventTime(150) for b that was seen Some(1)",
            "EventTime(220) for a that was seen Some(2)",
            "EventTime(400) for c that was seen Some(1)",
        ]
    );
}

#[test]
fn a_failed_task_is_restarted_from_the_last_checkpoint_and_counts_each_record_once() {
    let env = environment(2);
    env.set("execution.checkpointing.interval", "20 ms")
        .set("restart-strategy.type", "fixed-delay")
        .set("restart-strategy.fixed-delay.attempts", "10")
        .set("restart-strategy.fixed-delay.delay", "10 ms");
    let failures = Arc::new(AtomicU32::new(0));
    let failing = Arc::clone(&failures);
    let counts = env
        .from_generator(GeneratorSource::new(|index| index).count(20_000).rows_per_second(20_000.0))
        .map(move |index| {
            if index % 5_000 == 4_321 && failing.fetch_add(1, Ordering::Relaxed) < 3 {
                panic!("record {index} is cursed");
            }
            index
        })
        .rebalance()
        .key_by(|index| index % 10)
        .fold(0_u64, |count, _| *count += 1)
        .collect();
    env.execute("restarts").unwrap();
    assert!(failures.load(Ordering::Relaxed) >= 3);
    let counts = counts.take();
    assert_eq!(counts.len(), 20_000);
    for key in 0..10 {
        let of_key: std::collections::BTreeSet<u64> =
            counts.iter().filter(|(k, _)| *k == key).map(|(_, count)| *count).collect();
        assert_eq!(of_key.len(), 2_000, "key {key}");
    }
}

#[test]
fn a_panic_names_the_operator() {
    let env = environment(1);
    env.set("restart-strategy.type", "none");
    env.from_collection([1, 2, 3]).map(|n: i32| if n == 2 { panic!("no twos") } else { n }).name("picky").print();
    let error = env.execute("panic").unwrap_err();
    assert!(error.to_string().contains("operator 'picky' panicked"), "{error}");
    assert!(error.to_string().contains("no twos"), "{error}");
}

#[test]
fn empty_input_ends() {
    let env = environment(3);
    let none = env.from_collection(Vec::<u64>::new()).key_by(|n| *n).reduce(|a, b| a + b).collect();
    env.execute("empty").unwrap();
    assert!(none.take().is_empty());
}

#[test]
fn unions_and_branches_see_every_record() {
    let env = environment(2);
    let numbers = env.from_collection(0..1000_u64);
    let even = numbers.clone().filter(|n| n % 2 == 0);
    let odd = numbers.filter(|n| n % 2 == 1).rebalance().map(|n| n);
    let all = even.union(odd).collect();
    env.execute("union").unwrap();
    let mut all = all.take();
    all.sort_unstable();
    assert_eq!(all, (0..1000).collect::<Vec<_>>());
}

#[test]
fn mistakes_are_reported_by_execute() {
    let env = environment(1);
    env.set("paralellism.default", "2");
    env.from_collection([1]).print();
    let error = env.execute("typo").unwrap_err();
    assert!(error.to_string().contains("did you mean 'parallelism.default'"), "{error}");
    let error = environment(1).execute("empty").unwrap_err();
    assert!(error.to_string().contains("no operators"), "{error}");
}

#[test]
fn batch_mode_gives_each_key_once_and_refuses_endless_sources() {
    let env = environment(2);
    env.set_runtime_mode(flott::config::options::RuntimeMode::Batch);
    let numbers = env.from_collection(0..1000_u64);
    let sums = numbers.clone().key_by(|n| n % 7).reduce(|sum, n| sum + n).collect();
    let counts = numbers.key_by(|n| n % 7).fold(0_u64, |count, _| *count += 1).collect();
    env.execute("batch").unwrap();
    let sums = sums.take();
    assert_eq!((sums.len(), sums.iter().sum::<u64>()), (7, 499_500));
    let counts = counts.take();
    assert_eq!((counts.len(), counts.iter().map(|(_, count)| count).sum::<u64>()), (7, 1000));

    let env = environment(1);
    env.set_runtime_mode(flott::config::options::RuntimeMode::Batch);
    env.from_generator(GeneratorSource::new(|index| index)).print();
    let error = env.execute("endless").unwrap_err();
    assert!(error.to_string().contains("the source 'Generator' has no end"), "{error}");
}

#[test]
fn processing_time_windows_end_by_the_clock_and_lose_nothing_at_the_end() {
    let env = environment(2);
    let windows = env
        .from_generator(GeneratorSource::new(|index| index).count(2_000).rows_per_second(10_000.0))
        .key_by(|n| n % 4)
        .window(TumblingProcessingTimeWindows::of(ms(50)))
        .aggregate_with(Count, |key, window, count| (*key, window.start, count))
        .collect();
    env.execute("clock").unwrap();
    let windows = windows.take();
    assert_eq!(windows.iter().map(|(_, _, count)| count).sum::<u64>(), 2_000);
    let starts: std::collections::BTreeSet<i64> = windows.iter().map(|(_, start, _)| *start).collect();
    assert!(starts.len() > 1 && starts.iter().all(|start| start % 50 == 0), "{starts:?}");
}

/// Keeps what each key sends, and tells it when the clock says so.
#[derive(Clone, Default)]
struct Basket {
    order: Option<flott::ListState<String>>,
    amounts: Option<flott::MapState<String, u32>>,
}

impl KeyedProcessFunction<u8, (u8, String), String> for Basket {
    fn open(&mut self, states: &mut KeyedStates<u8>) -> flott::Result<()> {
        self.order = Some(states.list("order")?);
        self.amounts = Some(states.map("amounts")?);
        let twice = states.value::<u8>("order").unwrap_err();
        assert!(twice.to_string().contains("'order' is declared twice"), "{twice}");
        Ok(())
    }

    fn process(
        &mut self,
        row: (u8, String),
        cx: &mut KeyedContext<'_, u8>,
        _: &mut Collector<'_, String>,
    ) -> flott::Result<()> {
        let (order, amounts) = (self.order.as_ref().unwrap(), self.amounts.as_ref().unwrap());
        let amount = amounts.get(cx, &row.1).copied().unwrap_or(0);
        amounts.put(cx, row.1.clone(), amount + 1);
        if row.1 == "nothing" {
            assert_eq!(amounts.remove(cx, &row.1), Some(1));
        }
        order.add(cx, row.1);
        let soon = cx.current_processing_time() + 20;
        cx.register_processing_time_timer(soon);
        Ok(())
    }

    fn on_timer(
        &mut self,
        timer: Timer,
        cx: &mut KeyedContext<'_, u8>,
        out: &mut Collector<'_, String>,
    ) -> flott::Result<()> {
        assert!(matches!(timer, Timer::ProcessingTime(_)));
        let (order, amounts) = (self.order.as_ref().unwrap(), self.amounts.as_ref().unwrap());
        let things = order.clear(cx);
        if !things.is_empty() {
            let amounts: Vec<String> = amounts.entries(cx).map(|(thing, amount)| format!("{amount} {thing}")).collect();
            out.collect(format!("{}: {} = {}", cx.key(), things.join(" "), amounts.join(" ")));
        }
        Ok(())
    }
}

#[test]
fn lists_maps_and_timers_of_the_clock() {
    let env = environment(1);
    let things = ["pear", "apple", "pear", "nothing"];
    let told = env
        // The last record comes long after the timers of the others.
        .from_generator(GeneratorSource::new(move |index| index).count(5).rows_per_second(10.0))
        .process(Repeat(things.map(str::to_owned).to_vec()))
        .key_by(|row: &(u8, String)| row.0)
        .process(Basket::default())
        .collect();
    env.execute("basket").unwrap();
    let told = told.take().join("; ");
    assert!(told.contains("1: pear apple pear nothing = 1 apple 2 pear"), "{told}");
}

/// All things at once with the first record, and nothing with the others.
#[derive(Clone)]
struct Repeat(Vec<String>);

impl ProcessFunction<u64, (u8, String)> for Repeat {
    fn process(&mut self, index: u64, _: Option<i64>, out: &mut Collector<'_, (u8, String)>) -> flott::Result<()> {
        if index == 0 {
            self.0.iter().for_each(|thing| out.collect((1, thing.clone())));
        }
        Ok(())
    }
}
