//! Windows in time: which guest has a core when (temporal partitioning, as ARINC 653 has it).
//!
//! A core's [`Calendar`] divides its time into frames of one length, and each frame into windows of guests. In a window the vCPUs of one guest
//! have their level and those of all others have none, so nobody gets what that guest leaves over. A calendar is a value and knows no clock: the core
//! asks it [whose](Calendar::at) the time is, and until when, and asks again then:
//!
//! ```
//! use ainori_sched::{Calendar, Class, Piece, Policy, Scheduler, VcpuId, VcpuSet, Window};
//!
//! // In each 10 ms, the first two are the first guest's (10,000,000 ticks a second).
//! let windows = [Window { start: 0, length: 20_000, guest: 0 }];
//! let calendar = Calendar::new(100_000, &windows).unwrap();
//! assert_eq!(calendar.at(310_000), Piece { guest: Some(0), until: 320_000 });
//! assert_eq!(calendar.at(320_000), Piece { guest: None, until: 400_000 });
//!
//! let v = VcpuId(0);
//! let mut core = Scheduler::new(Policy::preset("time-window", 5_000, 10_000_000).unwrap());
//! core.adopt(v, Class { priority: 5, guest: 0 });
//! core.wake(v);
//! assert_eq!(core.schedule(310_000).run, Some(v));
//! // At 320,000, by the alarm:
//! let (again, rest) = core.set_levels(VcpuSet::of(v), None, 1);
//! assert!(again.schedule && rest.is_empty());
//! assert_eq!(core.schedule(320_000).run, None);
//! ```
//!
//! A frame begins whenever `time` is a multiple of its length, so that all cores agree on it without a word.

use core::fmt;
use core::num::NonZeroU64;

use crate::Time;

/// A piece of a frame in which a core is one guest's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// When it begins, in ticks of `time` after the frame does.
    pub start: Time,
    /// How long it is, in ticks of `time`. Not 0.
    pub length: Time,
    /// Whose it is.
    pub guest: u8,
}

/// Whose a core is at which time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Calendar<'a> {
    frame: NonZeroU64,
    windows: &'a [Window],
}

/// What a calendar says of a point in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Whose the core is then. `None`: nobody's.
    pub guest: Option<u8>,
    /// Until when that is so at least, in ticks of `time`; the clock's end, if that comes first.
    pub until: Time,
}

/// Why there is no such calendar. Windows are named by their place in the list, `0..`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CalendarError {
    /// The frame is 0 ticks long.
    NoFrame,
    /// A window has no length. In units of less than a tick, it may have had one.
    Empty(usize),
    /// A window ends after the frame. One that is to go on in the next is two windows.
    EndsLate(usize),
    /// A window begins before the one that is ahead of it in the list ends: the two overlap, or are in the wrong order.
    Overlaps(usize),
}

impl fmt::Display for CalendarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NoFrame => write!(f, "the frame is shorter than a tick"),
            Self::Empty(window) => write!(f, "window {window} is shorter than a tick"),
            Self::EndsLate(window) => {
                write!(f, "window {window} ends after the frame; the rest is a window of its own")
            }
            Self::Overlaps(window) => write!(f, "window {window} begins before the one ahead of it ends"),
        }
    }
}

impl core::error::Error for CalendarError {}

impl<'a> Calendar<'a> {
    /// That of a core which is never anybody's.
    pub const EMPTY: Self = Self { frame: NonZeroU64::MAX, windows: &[] };

    /// A calendar in which each `frame`, in ticks of `time`, has these windows, in the order of time. Only at boot.
    ///
    /// # Errors
    /// What is wrong with it first, in the order of the list.
    pub fn new(frame: Time, windows: &'a [Window]) -> Result<Self, CalendarError> {
        let frame = NonZeroU64::new(frame).ok_or(CalendarError::NoFrame)?;
        let mut end = 0;
        for (index, window) in windows.iter().enumerate() {
            if window.length == 0 {
                return Err(CalendarError::Empty(index));
            }
            if window.start < end {
                return Err(CalendarError::Overlaps(index));
            }
            end = window.start.saturating_add(window.length);
            if end > frame.get() {
                return Err(CalendarError::EndsLate(index));
            }
        }
        Ok(Self { frame, windows })
    }

    /// Whose the core is at a time: to the end of the window, or to the next one, or to the end of the frame. In a logarithm of the windows.
    #[must_use]
    pub fn at(&self, time: Time) -> Piece {
        let offset = time % self.frame;
        let begun = self.windows.partition_point(|window| window.start <= offset);
        let window = |index: usize| self.windows.get(index);
        let (guest, end) = match begun.checked_sub(1).and_then(window) {
            Some(window) if offset - window.start < window.length => {
                (Some(window.guest), window.start + window.length)
            }
            _ => (None, window(begun).map_or(self.frame.get(), |window| window.start)),
        };
        Piece { guest, until: (time - offset).saturating_add(end) }
    }
}
