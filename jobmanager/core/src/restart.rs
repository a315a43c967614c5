//! Whether a failed job is started again, and when: Flink's four restart strategies.
//!
//! Delays have no jitter: one JobManager decides for one job, and the machine has to be reproducible. The first delay of
//! the exponential strategy is left out when a process or machine was lost: the job itself is sound, and whoever waits for
//! its output waits for nothing else.

use std::collections::VecDeque;

use flott_core::Result;
use flott_core::config::Configuration;
use flott_core::config::options;

use crate::settings::millis;

/// What follows a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Start again after this long.
    Restart {
        /// How long to wait.
        delay_ms: i64,
    },
    /// The job fails.
    GiveUp {
        /// The rule that was exhausted.
        reason: String,
    },
}

/// The strategy of one job, with its count of failures so far.
#[derive(Clone, Debug)]
pub(crate) enum RestartStrategy {
    /// Never restarts.
    Never,
    /// Restarts a number of times over the job's whole life.
    FixedDelay {
        /// The number.
        attempts_max: u32,
        /// The wait before each.
        delay_ms: i64,
        /// How many there were.
        attempts: u32,
    },
    /// Waits longer each time, and starts over after a long run without a failure.
    ExponentialDelay {
        /// The first wait.
        initial_ms: i64,
        /// The longest wait.
        longest_ms: i64,
        /// How much longer each wait is.
        multiplier: f64,
        /// How long the job has to run to count as healthy again.
        reset_ms: i64,
        /// How many restarts without a healthy run; `u32::MAX` has no end.
        attempts_max: u32,
        /// How many there were.
        attempts: u32,
        /// The next wait.
        next_ms: i64,
        /// When the last wait ended.
        restarted_ms: Option<i64>,
    },
    /// Restarts as long as there are not too many failures in an interval.
    FailureRate {
        /// How many failures an interval may have.
        failures_max: u32,
        /// The interval.
        interval_ms: i64,
        /// The wait before each restart.
        delay_ms: i64,
        /// When the failures of the last interval were.
        failures: VecDeque<i64>,
    },
}

impl RestartStrategy {
    /// Reads `restart-strategy.*`. As in Flink, a job without checkpoints is not restarted unless it says so: it would
    /// begin anew each time.
    pub(crate) fn read(config: &Configuration) -> Result<Self> {
        if !config.is_set(options::RESTART_STRATEGY) && config.get(options::CHECKPOINT_INTERVAL)?.is_none() {
            return Ok(Self::Never);
        }
        Ok(match config.get(options::RESTART_STRATEGY)?.as_str() {
            "none" => Self::Never,
            "fixed-delay" => Self::FixedDelay {
                attempts_max: config.get(options::FIXED_DELAY_ATTEMPTS)?,
                delay_ms: millis(config.get(options::FIXED_DELAY_DELAY)?),
                attempts: 0,
            },
            "failure-rate" => Self::FailureRate {
                failures_max: config.get(options::FAILURE_RATE_MAX)?,
                interval_ms: millis(config.get(options::FAILURE_RATE_INTERVAL)?),
                delay_ms: millis(config.get(options::FAILURE_RATE_DELAY)?),
                failures: VecDeque::new(),
            },
            // The option's own check leaves no other name.
            _ => {
                let initial_ms = millis(config.get(options::EXPONENTIAL_DELAY_INITIAL)?);
                Self::ExponentialDelay {
                    initial_ms,
                    longest_ms: millis(config.get(options::EXPONENTIAL_DELAY_MAX)?),
                    multiplier: config.get(options::EXPONENTIAL_DELAY_MULTIPLIER)?,
                    reset_ms: millis(config.get(options::EXPONENTIAL_DELAY_RESET)?),
                    attempts_max: config.get(options::EXPONENTIAL_DELAY_ATTEMPTS)?,
                    attempts: 0,
                    next_ms: initial_ms,
                    restarted_ms: None,
                }
            }
        })
    }

    /// The job failed now. `is_loss` says that a process, a machine or a connection was lost.
    pub(crate) fn on_failure(&mut self, now_ms: i64, is_loss: bool) -> Decision {
        match self {
            Self::Never => Decision::GiveUp { reason: "the restart strategy is 'none'".into() },
            Self::FixedDelay { attempts_max, delay_ms, attempts } => {
                if *attempts >= *attempts_max {
                    return Decision::GiveUp {
                        reason: format!("all {attempts_max} restarts of the fixed-delay strategy are used up"),
                    };
                }
                *attempts += 1;
                Decision::Restart { delay_ms: *delay_ms }
            }
            Self::ExponentialDelay {
                initial_ms,
                longest_ms,
                multiplier,
                reset_ms,
                attempts_max,
                attempts,
                next_ms,
                restarted_ms,
            } => {
                if restarted_ms.is_some_and(|restarted| now_ms - restarted >= *reset_ms) {
                    *attempts = 0;
                    *next_ms = *initial_ms;
                }
                if *attempts >= *attempts_max && *attempts_max != u32::MAX {
                    return Decision::GiveUp {
                        reason: format!("all {attempts_max} restarts of the exponential-delay strategy are used up"),
                    };
                }
                *attempts = attempts.saturating_add(1);
                let mut delay_ms = 0;
                if !is_loss || *attempts > 1 {
                    delay_ms = (*next_ms).min(*longest_ms);
                    *next_ms = ((delay_ms as f64 * *multiplier) as i64).clamp(delay_ms, *longest_ms);
                }
                *restarted_ms = Some(now_ms + delay_ms);
                Decision::Restart { delay_ms }
            }
            Self::FailureRate { failures_max, interval_ms, delay_ms, failures } => {
                while failures.front().is_some_and(|&earliest| now_ms - earliest > *interval_ms) {
                    failures.pop_front();
                }
                failures.push_back(now_ms);
                if failures.len() > *failures_max as usize {
                    return Decision::GiveUp {
                        reason: format!("more than {failures_max} failures within {interval_ms} ms"),
                    };
                }
                Decision::Restart { delay_ms: *delay_ms }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strategy(pairs: &[(&str, &str)]) -> RestartStrategy {
        let mut config = Configuration::default();
        config.set("restart-strategy.type", "exponential-delay").unwrap();
        for (key, value) in pairs {
            config.set(key, value).unwrap();
        }
        RestartStrategy::read(&config).unwrap()
    }

    #[test]
    fn without_checkpoints_a_job_is_not_restarted_unless_it_says_so() {
        let mut config = Configuration::default();
        assert!(matches!(RestartStrategy::read(&config).unwrap(), RestartStrategy::Never));
        config.set("execution.checkpointing.interval", "1 s").unwrap();
        assert!(matches!(RestartStrategy::read(&config).unwrap(), RestartStrategy::ExponentialDelay { .. }));
    }

    /// The delays that follow failures at these times; `None` is the end of the job.
    fn delays(mut strategy: RestartStrategy, failures_ms: &[i64]) -> Vec<Option<i64>> {
        let mut delay = |now_ms: &i64| match strategy.on_failure(*now_ms, false) {
            Decision::Restart { delay_ms } => Some(delay_ms),
            Decision::GiveUp { .. } => None,
        };
        failures_ms.iter().map(&mut delay).collect()
    }

    #[test]
    fn none_gives_up_at_once() {
        assert_eq!(delays(strategy(&[("restart-strategy.type", "none")]), &[0]), [None]);
    }

    #[test]
    fn fixed_delay_counts_over_the_whole_life() {
        let fixed = strategy(&[
            ("restart-strategy.type", "fixed-delay"),
            ("restart-strategy.fixed-delay.attempts", "2"),
            ("restart-strategy.fixed-delay.delay", "3 s"),
        ]);
        assert_eq!(delays(fixed, &[0, 1_000_000, 9_000_000]), [Some(3000), Some(3000), None]);
    }

    #[test]
    fn exponential_delay_grows_to_its_bound_and_starts_over_after_a_healthy_run() {
        let exponential = strategy(&[
            ("restart-strategy.exponential-delay.initial-backoff", "100 ms"),
            ("restart-strategy.exponential-delay.max-backoff", "300 ms"),
            ("restart-strategy.exponential-delay.backoff-multiplier", "2"),
            ("restart-strategy.exponential-delay.reset-backoff-threshold", "10 s"),
        ]);
        assert_eq!(
            delays(exponential, &[0, 1000, 2000, 3000, 50_000]),
            [Some(100), Some(200), Some(300), Some(300), Some(100)]
        );
    }

    #[test]
    fn exponential_delay_begins_at_once_after_a_loss() {
        let mut exponential = strategy(&[
            ("restart-strategy.exponential-delay.initial-backoff", "100 ms"),
            ("restart-strategy.exponential-delay.backoff-multiplier", "2"),
            ("restart-strategy.exponential-delay.reset-backoff-threshold", "10 s"),
        ]);
        let delays = [0, 1000, 2000, 20_000].map(|now_ms| exponential.on_failure(now_ms, true));
        assert_eq!(delays, [0, 100, 200, 0].map(|delay_ms| Decision::Restart { delay_ms }));
    }

    #[test]
    fn exponential_delay_can_have_an_end() {
        let exponential = strategy(&[("restart-strategy.exponential-delay.attempts-before-reset-backoff", "1")]);
        assert_eq!(delays(exponential, &[0, 1000]), [Some(100), None]);
    }

    #[test]
    fn failure_rate_counts_within_its_interval() {
        let rate = || {
            strategy(&[
                ("restart-strategy.type", "failure-rate"),
                ("restart-strategy.failure-rate.max-failures-per-interval", "2"),
                ("restart-strategy.failure-rate.failure-rate-interval", "10 s"),
            ])
        };
        assert_eq!(delays(rate(), &[0, 1, 2]), [Some(1000), Some(1000), None]);
        assert_eq!(delays(rate(), &[0, 9_000, 11_000, 22_000]), [Some(1000); 4]);
    }
}
