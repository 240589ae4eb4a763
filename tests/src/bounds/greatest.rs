//! How near a run came to its bounds. That all bounds held says nothing of the room that is left, nor that anything was measured.
use super::{number, ticks_to_ns};
use ainori::report::{GuestReport, RunReport};
use serde::{Deserialize, Serialize};

/// The greatest of what has a bound, in nanoseconds; `None` where nothing was promised, or measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Greatest {
    /// From an RTOS's deadline to its task: [`TASK_NS`](super::TASK_NS).
    pub task_ns: Option<u64>,
    /// The same to its tick's handler: [`HANDLER_NS`](super::HANDLER_NS).
    pub handler_ns: Option<u64>,
    /// Between two looks for interrupts on an RTOS's core: [`IRQS_OFF_BESIDE_RTOS_NS`](super::IRQS_OFF_BESIDE_RTOS_NS).
    pub irqs_off_beside_rtos_ns: Option<u64>,
    /// The same on other cores: [`IRQS_OFF_NS`](super::IRQS_OFF_NS).
    pub irqs_off_elsewhere_ns: Option<u64>,
}

impl Greatest {
    /// Of one run: the delays of the guests that are RTOSes, and the sections of all cores, some of which have an RTOS.
    pub fn of(
        report: &RunReport,
        is_rtos: impl Fn(&GuestReport) -> bool,
        has_rtos: impl Fn(u64) -> bool,
    ) -> Self {
        let mut greatest = Self::default();
        for guest in report.guests.iter().filter(|guest| is_rtos(guest)) {
            greatest.task_ns = greatest.task_ns.max(number(guest, "delay_ns/max"));
            greatest.handler_ns = greatest.handler_ns.max(number(guest, "handler_delay_ns/max"));
        }
        let Some(board) = &report.board else { return greatest };
        for core in &report.cores {
            let longest = if has_rtos(core.hart) {
                &mut greatest.irqs_off_beside_rtos_ns
            } else {
                &mut greatest.irqs_off_elsewhere_ns
            };
            *longest = (*longest).max(Some(ticks_to_ns(core.longest_irqs_off, board.timebase_hz)));
        }
        greatest
    }

    /// The greater of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            task_ns: self.task_ns.max(other.task_ns),
            handler_ns: self.handler_ns.max(other.handler_ns),
            irqs_off_beside_rtos_ns: self.irqs_off_beside_rtos_ns.max(other.irqs_off_beside_rtos_ns),
            irqs_off_elsewhere_ns: self.irqs_off_elsewhere_ns.max(other.irqs_off_elsewhere_ns),
        }
    }

    /// Each with what it is of.
    pub fn named(self) -> [(&'static str, Option<u64>); 4] {
        [
            ("from an RTOS's deadline to its task", self.task_ns),
            ("from an RTOS's tick to its handler", self.handler_ns),
            ("with interrupts off on an RTOS's core", self.irqs_off_beside_rtos_ns),
            ("with interrupts off on another core", self.irqs_off_elsewhere_ns),
        ]
    }
}
