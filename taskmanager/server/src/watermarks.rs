//! The watermark of a subtask: the minimum over its active channels. A pure machine.

use flott_core::time::{Timestamp, WATERMARK_MAX, WATERMARK_MIN};

/// What a change of a channel means for the subtask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing.
    None,
    /// Event time has come this far.
    Watermark(Timestamp),
    /// All channels are idle.
    Idle,
    /// A channel is active again.
    Active,
}

#[derive(Clone, Copy, Debug)]
struct Channel {
    watermark: Timestamp,
    is_idle: bool,
}

/// Merges the watermarks of channels. The result never goes back.
#[derive(Clone, Debug)]
pub struct Watermarks {
    channels: Vec<Channel>,
    current: Timestamp,
    is_idle: bool,
}

impl Watermarks {
    /// `channels` active channels without a watermark.
    pub fn new(channels: usize) -> Self {
        let channel = Channel { watermark: WATERMARK_MIN, is_idle: false };
        Self { channels: vec![channel; channels], current: WATERMARK_MIN, is_idle: false }
    }

    /// The current watermark.
    pub fn current(&self) -> Timestamp {
        self.current
    }

    /// A channel's watermark came. One that goes back is ignored.
    pub fn on_watermark(&mut self, channel: usize, watermark: Timestamp) -> Progress {
        let channel = &mut self.channels[channel];
        channel.watermark = channel.watermark.max(watermark);
        self.advance()
    }

    /// A channel went idle: it no longer holds the others back.
    pub fn on_idle(&mut self, channel: usize) -> Progress {
        self.channels[channel].is_idle = true;
        self.become_idle().unwrap_or_else(|| self.advance())
    }

    /// Whether nothing is left that could move: every channel is idle or has ended, and some are idle.
    fn become_idle(&mut self) -> Option<Progress> {
        let is_quiet = |channel: &Channel| channel.is_idle || channel.watermark == WATERMARK_MAX;
        if !self.channels.iter().any(|channel| channel.is_idle) || !self.channels.iter().all(is_quiet) {
            return None;
        }
        let was_idle = std::mem::replace(&mut self.is_idle, true);
        Some(if was_idle { Progress::None } else { Progress::Idle })
    }

    /// A channel is active again. Its watermark may be behind; the result waits for it then.
    pub fn on_active(&mut self, channel: usize) -> Progress {
        self.channels[channel].is_idle = false;
        if std::mem::replace(&mut self.is_idle, false) { Progress::Active } else { Progress::None }
    }

    /// A channel ended: no record of it will be late for anything.
    pub fn on_end(&mut self, channel: usize) -> Progress {
        self.channels[channel] = Channel { watermark: WATERMARK_MAX, is_idle: false };
        self.become_idle().unwrap_or_else(|| self.advance())
    }

    fn advance(&mut self) -> Progress {
        let active = self.channels.iter().filter(|channel| !channel.is_idle);
        match active.map(|channel| channel.watermark).min() {
            // The end of all channels is announced as the end, not as a watermark.
            Some(WATERMARK_MAX) => Progress::None,
            Some(lowest) if lowest > self.current => {
                self.current = lowest;
                Progress::Watermark(lowest)
            }
            _ => Progress::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_active_channel_decides() {
        let mut watermarks = Watermarks::new(2);
        assert_eq!(watermarks.on_watermark(0, 10), Progress::None);
        assert_eq!(watermarks.on_watermark(1, 5), Progress::Watermark(5));
        assert_eq!(watermarks.on_watermark(1, 20), Progress::Watermark(10));
        assert_eq!(watermarks.on_watermark(1, 15), Progress::None);
        assert_eq!(watermarks.current(), 10);
    }

    #[test]
    fn an_idle_channel_holds_nothing_back() {
        let mut watermarks = Watermarks::new(2);
        watermarks.on_watermark(0, 10);
        assert_eq!(watermarks.on_idle(1), Progress::Watermark(10));
        assert_eq!(watermarks.on_idle(0), Progress::Idle);
        assert_eq!(watermarks.on_active(1), Progress::Active);
        assert_eq!(watermarks.on_watermark(1, 7), Progress::None);
        assert_eq!(watermarks.on_watermark(1, 12), Progress::Watermark(12));
    }

    #[test]
    fn ended_channels_do_not_hide_that_the_rest_is_idle() {
        let mut watermarks = Watermarks::new(3);
        watermarks.on_end(0);
        assert_eq!(watermarks.on_idle(1), Progress::None);
        assert_eq!(watermarks.on_idle(2), Progress::Idle);
        assert_eq!(watermarks.on_active(2), Progress::Active);
        assert_eq!(watermarks.on_watermark(2, 4), Progress::Watermark(4));
        assert_eq!(watermarks.on_end(2), Progress::Idle);
        assert_eq!(watermarks.on_end(1), Progress::None);
    }

    #[test]
    fn an_ended_channel_holds_nothing_back() {
        let mut watermarks = Watermarks::new(2);
        watermarks.on_watermark(0, 3);
        assert_eq!(watermarks.on_end(1), Progress::Watermark(3));
        assert_eq!(watermarks.on_end(0), Progress::None);
        assert_eq!(watermarks.current(), 3);
    }
}
