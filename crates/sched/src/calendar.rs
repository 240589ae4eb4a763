//! Levels by the clock: windows in time in which a vCPU has another level than otherwise, or none.
//!
//! Not used yet by the kernel; for a policy with temporal partitioning. (So it is with all levels that change: see the head of `level.rs`.)
//!
//! So a core's time is divided among guests (temporal partitioning, as ARINC 653 has it): each has a calendar with its own windows in a common
//! period, and no level outside of them. A calendar is a value and knows no clock. The core asks it for a level when it
//! adopts the vCPU, and then whenever that [changes](Calendar::next_change), for which it sets a timer:
//!
//! ```
//! use ainori_sched::{Calendar, Class, Policy, Scheduler, VcpuId, VcpuSet, Window};
//!
//! // In each 10 ms, the first two are the guest's (10,000,000 ticks a second).
//! let windows = [Window { start: 0, length: 20_000, level: Some(5) }];
//! let calendar = Calendar::new(100_000, &windows, None).unwrap();
//! assert_eq!((calendar.level_at(300_000), calendar.next_change(300_000)), (Some(5), Some(320_000)));
//! assert_eq!((calendar.level_at(320_000), calendar.next_change(320_000)), (None, Some(400_000)));
//!
//! let v = VcpuId(0);
//! let mut core = Scheduler::new(Policy::preset("spumone", 5_000, 10_000_000).unwrap());
//! core.adopt(v, Class { priority: 5, guest: 0 });
//! core.wake(v);
//! assert_eq!(core.schedule(300_000).run, Some(v));
//! // At 320,000, by the timer:
//! let again = core.set_levels(VcpuSet::from_iter([v]), calendar.level_at(320_000));
//! assert!(again.schedule);
//! assert_eq!(core.schedule(320_000).run, None);
//! ```
//!
//! The period begins whenever `time` is a multiple of it, so that all cores agree on it without a word.

use core::fmt;

use ainori_limits::PRIORITIES;

use crate::Time;

/// A piece of a calendar's period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// When it begins, in ticks of `time` after the period does.
    pub start: Time,
    /// How long it is, in ticks of `time`. Not 0.
    pub length: Time,
    /// The level in it, below [`PRIORITIES`]; `None`: no turn.
    pub level: Option<u8>,
}

/// Which level a vCPU has at which time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Calendar<'a> {
    period: Time,
    windows: &'a [Window],
    otherwise: Option<u8>,
}

/// Why there is no such calendar. Windows are named by their place in the list, `0..`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CalendarError {
    /// The period is 0, or above `Time::MAX / 2`.
    Period(Time),
    /// A level is not below [`PRIORITIES`]: that of a window, or the one outside of all.
    Level {
        /// The window; `None` outside of all.
        window: Option<usize>,
        /// The level.
        level: u8,
    },
    /// A window has no length. In units of less than a tick, it may have had one.
    Empty(usize),
    /// A window ends after the period. One that is to go on in the next is two windows.
    EndsLate(usize),
    /// A window begins before the one that is ahead of it in the list ends: the two overlap, or are in the wrong order.
    Overlaps(usize),
}

impl fmt::Display for CalendarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Period(period) => {
                write!(f, "the period of {period} ticks is not from 1 to {}", Time::MAX / 2)
            }
            Self::Level { window: Some(window), level } => {
                write!(f, "window {window}: level {level} is not below {PRIORITIES}")
            }
            Self::Level { window: None, level } => {
                write!(f, "outside of all windows: level {level} is not below {PRIORITIES}")
            }
            Self::Empty(window) => write!(f, "window {window} is shorter than a tick"),
            Self::EndsLate(window) => {
                write!(f, "window {window} ends after the period; the rest is a window of its own")
            }
            Self::Overlaps(window) => write!(f, "window {window} begins before the one ahead of it ends"),
        }
    }
}

impl core::error::Error for CalendarError {}

impl<'a> Calendar<'a> {
    /// A calendar in which each `period`, in ticks of `time`, has these windows, in the order of time. In between the level is `otherwise`.
    /// Only at boot.
    ///
    /// # Errors
    /// What is wrong with it first, in the order of the list.
    pub fn new(period: Time, windows: &'a [Window], otherwise: Option<u8>) -> Result<Self, CalendarError> {
        if period == 0 || period > Time::MAX / 2 {
            return Err(CalendarError::Period(period));
        }
        check_level(None, otherwise)?;
        let mut end = 0;
        for (index, window) in windows.iter().enumerate() {
            check_level(Some(index), window.level)?;
            if window.length == 0 {
                return Err(CalendarError::Empty(index));
            }
            if window.start < end {
                return Err(CalendarError::Overlaps(index));
            }
            end = window.start.saturating_add(window.length);
            if end > period {
                return Err(CalendarError::EndsLate(index));
            }
        }
        Ok(Self { period, windows, otherwise })
    }

    /// The level at a time.
    #[must_use]
    pub fn level_at(&self, time: Time) -> Option<u8> {
        self.piece_at(time % self.period).0
    }

    /// When the level becomes another than it is at `time`, for the first time after that. `None`: never, or not before the clock's end.
    #[must_use]
    pub fn next_change(&self, time: Time) -> Option<Time> {
        let level = self.level_at(time);
        let mut at = time;
        // BOUND: the pieces of a period, two for each window and one more; each is found in a logarithm of the windows.
        for _ in 0..=2 * self.windows.len() {
            let offset = at % self.period;
            at = (at - offset).checked_add(self.piece_at(offset).1)?;
            if self.level_at(at) != level {
                return Some(at);
            }
        }
        None
    }

    /// The level at so many ticks after a period's begin, and until how many: to the end of the window, or to the next one, or to the
    /// end of the period.
    fn piece_at(&self, offset: Time) -> (Option<u8>, Time) {
        // In a logarithm of the windows.
        let begun = self.windows.partition_point(|window| window.start <= offset);
        let window = |index: usize| self.windows.get(index);
        match begun.checked_sub(1).and_then(window) {
            Some(window) if offset - window.start < window.length => {
                (window.level, window.start + window.length)
            }
            _ => (self.otherwise, window(begun).map_or(self.period, |window| window.start)),
        }
    }
}

fn check_level(window: Option<usize>, level: Option<u8>) -> Result<(), CalendarError> {
    match level {
        Some(level) if level >= PRIORITIES => Err(CalendarError::Level { window, level }),
        _ => Ok(()),
    }
}
