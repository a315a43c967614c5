//! The windows that a keyed stream can be divided into, with Flink's names.

use std::time::Duration;

use flott_core::Result;
use flott_operators::window::WindowTime;
use flott_operators::window::assigner::AlignedWindows;

/// Which windows a record belongs to.
pub struct WindowAssigner {
    pub(crate) assigner: Result<Assigner>,
    pub(crate) time: WindowTime,
}

pub(crate) enum Assigner {
    Aligned(AlignedWindows),
    Session(Duration),
}

macro_rules! aligned_windows {
    ($($(#[doc = $doc:literal])+ $name:ident, $time:ident;)*) => {$(
        $(#[doc = $doc])+
        pub struct $name {
            size: Duration,
            slide: Duration,
            offset: Duration,
        }

        impl $name {
            /// Shifts all windows, to begin days in another time zone for example.
            #[must_use]
            pub fn with_offset(mut self, offset: Duration) -> Self {
                self.offset = offset;
                self
            }
        }

        impl From<$name> for WindowAssigner {
            fn from(windows: $name) -> Self {
                let aligned = AlignedWindows::new(windows.size, windows.slide, windows.offset);
                Self { assigner: aligned.map(Assigner::Aligned), time: WindowTime::$time }
            }
        }
    )*};
}

aligned_windows! {
    /// Windows of event time that follow each other without gaps.
    TumblingEventTimeWindows, Event;
    /// Windows of the machine's clock that follow each other without gaps.
    TumblingProcessingTimeWindows, Processing;
    /// Windows of event time that overlap.
    SlidingEventTimeWindows, Event;
    /// Windows of the machine's clock that overlap.
    SlidingProcessingTimeWindows, Processing;
}

impl TumblingEventTimeWindows {
    /// Windows of this size.
    pub fn of(size: Duration) -> Self {
        Self { size, slide: size, offset: Duration::ZERO }
    }
}

impl TumblingProcessingTimeWindows {
    /// Windows of this size.
    pub fn of(size: Duration) -> Self {
        Self { size, slide: size, offset: Duration::ZERO }
    }
}

impl SlidingEventTimeWindows {
    /// Windows of this size, one of which begins every `slide`.
    pub fn of(size: Duration, slide: Duration) -> Self {
        Self { size, slide, offset: Duration::ZERO }
    }
}

impl SlidingProcessingTimeWindows {
    /// Windows of this size, one of which begins every `slide`.
    pub fn of(size: Duration, slide: Duration) -> Self {
        Self { size, slide, offset: Duration::ZERO }
    }
}

/// Windows of event time that end when a key is silent for a while.
pub struct EventTimeSessionWindows(Duration);

impl EventTimeSessionWindows {
    /// Sessions that end `gap` after their last record.
    pub fn with_gap(gap: Duration) -> Self {
        Self(gap)
    }
}

impl From<EventTimeSessionWindows> for WindowAssigner {
    fn from(windows: EventTimeSessionWindows) -> Self {
        Self { assigner: Ok(Assigner::Session(windows.0)), time: WindowTime::Event }
    }
}

/// Windows of the machine's clock that end when a key is silent for a while.
pub struct ProcessingTimeSessionWindows(Duration);

impl ProcessingTimeSessionWindows {
    /// Sessions that end `gap` after their last record.
    pub fn with_gap(gap: Duration) -> Self {
        Self(gap)
    }
}

impl From<ProcessingTimeSessionWindows> for WindowAssigner {
    fn from(windows: ProcessingTimeSessionWindows) -> Self {
        Self { assigner: Ok(Assigner::Session(windows.0)), time: WindowTime::Processing }
    }
}
