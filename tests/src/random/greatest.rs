//! How near a run came to its bounds. That all bounds held says nothing of the room that is left, nor that anything was measured.
use super::{
    description::{Description, Job},
    oracle,
};
use crate::Run;
use crate::bounds::{IRQS_OFF_BESIDE_RTOS_NS, ticks_to_ns};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The greatest of what has a bound, in nanoseconds; `None` where nothing was promised, or measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greatest {
    /// From an RTOS's deadline to its task: [`TASK_NS`](crate::bounds::TASK_NS).
    pub task: Option<u64>,
    /// The same to its tick's handler: [`HANDLER_NS`](crate::bounds::HANDLER_NS).
    pub handler: Option<u64>,
    /// Between two looks for interrupts on an RTOS's core: [`IRQS_OFF_BESIDE_RTOS_NS`].
    pub irqs_off_beside_rtos: Option<u64>,
    /// The same on other cores: [`IRQS_OFF_NS`](crate::bounds::IRQS_OFF_NS).
    pub irqs_off: Option<u64>,
}

impl Greatest {
    /// Of one run.
    pub fn of(system: &Description, run: &Run) -> Self {
        let mut greatest = Self::default();
        for guest in &system.guests {
            let is_judged =
                matches!(guest.job, Job::FreeRtos { .. }) && oracle::promise(system, guest).punctual;
            let report = run.report.guests.iter().find(|report| report.name == guest.name);
            let Some(result) = report.filter(|_| is_judged).and_then(|report| report.results.first()) else {
                continue;
            };
            let longest = |key: &str| result.get(key)?.get("max").and_then(Value::as_u64);
            greatest.task = greatest.task.max(longest("delay_ns"));
            greatest.handler = greatest.handler.max(longest("handler_delay_ns"));
        }
        let Some(board) = &run.report.board else { return greatest };
        for core in &run.report.cores {
            let longest = ticks_to_ns(core.longest_irqs_off, board.timebase_hz);
            let bound = oracle::longest_irqs_off_ns(system, core.hart as u32);
            let greatest = if bound == IRQS_OFF_BESIDE_RTOS_NS {
                &mut greatest.irqs_off_beside_rtos
            } else {
                &mut greatest.irqs_off
            };
            *greatest = (*greatest).max(Some(longest));
        }
        greatest
    }

    /// Each with what it is of.
    pub fn named(self) -> [(&'static str, Option<u64>); 4] {
        [
            ("from an RTOS's deadline to its task", self.task),
            ("from an RTOS's tick to its handler", self.handler),
            ("with interrupts off on an RTOS's core", self.irqs_off_beside_rtos),
            ("with interrupts off on another core", self.irqs_off),
        ]
    }
}
