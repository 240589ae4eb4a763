//! A part of a run's time, of which a trace is to be shown.

use std::ops::Range;

use thiserror::Error;

use super::read::{Stamped, Trace};

/// A stretch of the machine's time (`time` register), both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    from: u64,
    to: u64,
}

/// Why a trace can't show a window.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum WindowError {
    /// It goes beyond the trace.
    #[error("the window ends at {to} s, but the last record is from {last} s")]
    TooLate {
        /// Its end in seconds.
        to: f64,
        /// Time of the last record in seconds.
        last: f64,
    },
    /// Nobody knows any more what happened there.
    #[error(
        "the window begins at {from} s, but hart {hart} has lost its records before {oldest} s: begin later, or keep more \
         records for each core"
    )]
    Lost {
        /// Its begin in seconds.
        from: f64,
        /// The hart.
        hart: u64,
        /// Time of the oldest record that is left of it, in seconds.
        oldest: f64,
    },
}

impl Window {
    /// From one time in nanoseconds to a later one; else `None`.
    pub fn new(from: u64, to: u64) -> Option<Self> {
        (from < to).then_some(Self { from, to })
    }

    /// Its begin in nanoseconds.
    pub fn from(self) -> u64 {
        self.from
    }

    /// Its end in nanoseconds.
    pub fn to(self) -> u64 {
        self.to
    }

    /// The places of a trace's records that lie in it. An error unless all that happened in it is known.
    pub fn records(self, trace: &Trace) -> Result<Range<usize>, WindowError> {
        let last = trace.records.last().map_or(0, |stamped| trace.nanoseconds(stamped));
        if self.to > last {
            return Err(WindowError::TooLate { to: seconds(self.to), last: seconds(last) });
        }
        for core in trace.cores.iter().filter(|core| core.lost > 0) {
            let mut own = trace.records.iter().filter(|stamped| stamped.core == core.core);
            let oldest = own.next().map_or(last, |stamped| trace.nanoseconds(stamped));
            if self.from < oldest {
                return Err(WindowError::Lost {
                    from: seconds(self.from),
                    hart: core.hart,
                    oldest: seconds(oldest),
                });
            }
        }
        let place = |before: &dyn Fn(u64) -> bool| {
            trace.records.partition_point(|stamped: &Stamped| before(trace.nanoseconds(stamped)))
        };
        Ok(place(&|time| time < self.from)..place(&|time| time <= self.to))
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
