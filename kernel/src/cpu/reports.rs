//! Reports on guests that have stopped, or are started again: a kind of housework. The core that does it leaves a record of it; here it is
//! written to the log, part by part.
use core::sync::atomic::Ordering;

use ainori_limits::bits::lowest_bit_out_of_line;

use super::Cpu;
use super::housekeeping::{Chore, Next};
use crate::arch::clock;
use crate::report;

/// The longest part of a report.
const LONGEST_PART: usize = 160;
/// When to look again whether the log has room, in microseconds.
const RETRY_US: u64 = 100;

/// The report that is being written. Another guest's waits until its end.
#[derive(Default)]
pub struct ReportWriter {
    /// Index of the guest, if one has been begun.
    pub(super) guest: Option<usize>,
    /// The part to be written next.
    part: usize,
}

impl Cpu {
    /// Writes the next part of a report.
    pub(super) fn write_reports(&mut self) -> Next {
        let machine = self.machine;
        let waiting = match machine.news.load(Ordering::Acquire) {
            0 => None,
            news => Some(lowest_bit_out_of_line(news.into()) as usize),
        };
        let Some(index) = self.reports.guest.or(waiting) else { return Next::WhenAsked };
        let Some(guest) = machine.guests.get(index) else { return Next::WhenAsked };
        if machine.log.room() < LONGEST_PART {
            self.ask_housekeeper_later(Chore::Console);
            return Next::At(clock::now() + machine.ticks(RETRY_US));
        }
        let mut line_ended = false;
        // Who has stopped the guest has done with the record before it set the bit.
        let record = guest.record.try_lock();
        let number = self.reports.part;
        let is_more = record.as_ref().and_then(|record| record.as_ref()).is_some_and(|record| {
            report::life(&guest.config.name, record, number, &mut |text| {
                line_ended |= machine.log.write(text)
            })
        });
        if line_ended {
            self.ask_housekeeper_later(Chore::Console);
        }
        if is_more {
            self.reports = ReportWriter { guest: Some(index), part: number + 1 };
        } else {
            self.reports = ReportWriter::default();
            machine.news.fetch_and(!(1 << guest.index), Ordering::AcqRel);
        }
        Next::Soon
    }
}
