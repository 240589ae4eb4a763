//! Reports on guests that have stopped: a kind of housework. The core that has stopped a guest leaves a record of it; here it is written
//! to the log, part by part.
use core::fmt::{self, Write};
use core::sync::atomic::Ordering;

use super::Cpu;
use super::housekeeping::Next;
use crate::arch::csr;
use crate::report;

/// The longest part of a report.
const LONGEST_PART: usize = 160;
/// When to look again whether the log has room, in microseconds.
const RETRY_US: u64 = 100;

/// The part to be written next.
#[derive(Default)]
pub struct ReportWriter {
    part: usize,
}

/// Text of a bounded length.
struct Part {
    text: [u8; LONGEST_PART],
    length: usize,
}

impl Write for Part {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.text.get_mut(self.length..self.length + text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

impl Cpu {
    /// Writes the next part of a report.
    pub(super) fn write_reports(&mut self) -> Next {
        let machine = self.machine;
        let waiting = machine.stopped_guests.load(Ordering::Acquire);
        let Some(guest) = machine.guests.get(waiting.trailing_zeros() as usize) else {
            return Next::WhenAsked;
        };
        if machine.log.room() < LONGEST_PART {
            self.wake_console();
            return Next::At(csr::time() + machine.ticks(RETRY_US));
        }
        let mut part = Part { text: [0; LONGEST_PART], length: 0 };
        // Who has stopped the guest has done with the record before it set the bit.
        let record = guest.record.try_lock();
        let number = self.reports.part;
        let written = record
            .as_ref()
            .and_then(|record| record.as_ref())
            .and_then(|record| report::stopped(&guest.config.name, record, number, &mut part).ok());
        if machine.log.write(&part.text[..part.length]) {
            self.wake_console();
        }
        if written == Some(true) {
            self.reports.part += 1;
        } else {
            self.reports.part = 0;
            machine.stopped_guests.fetch_and(!(1 << guest.index), Ordering::AcqRel);
        }
        Next::Soon
    }
}
