//! What must hold of every run, whatever guests do: no panic, no end before the end, no RTOS late, no core long with its interrupts
//! off. Unlike the methods of [`Run`](crate::Run), these don't end a test: they list what doesn't hold.
use ainori::report::{GuestOutcome, GuestReport, Outcome, RunReport};
use ainori_limits::STACK_SIZE;
use ainori_report::StopReason;
pub use greatest::Greatest;
pub use punctual::Punctuality;
use serde::{Deserialize, Serialize};

/// Most nanoseconds from a period's deadline to the first statement of an RTOS's task, where the policy lets it take its core at once.
pub const TASK_NS: u64 = 2_500;
/// The same to the first statement of its tick handler.
pub const HANDLER_NS: u64 = 1_200;
/// Most nanoseconds in the hypervisor between two looks for interrupts, on a core that an RTOS may want.
pub const IRQS_OFF_BESIDE_RTOS_NS: u64 = 5_000;
/// The same for any core.
pub const IRQS_OFF_NS: u64 = 50_000;

/// Most nanoseconds for which a core serves one event after the other while a vCPU is ready. What makes a core look again and again without end is
/// seen here only: each look is short.
pub const DELAY_NS: u64 = 100_000;

/// Most bytes of a core's stack: more than twice of what is seen. There is no page behind it that would trap, so one that is too small changes
/// other data.
pub const STACK: u64 = STACK_SIZE as u64 / 8;

/// Something that doesn't hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind of thing.
    pub kind: Kind,
    /// What was found, in words.
    pub text: String,
}

/// Kinds of findings, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The hypervisor panicked.
    Panic,
    /// The run didn't come to its end.
    Hang,
    /// The emulator ended early, or its clock can't be relied on: nothing is known of the hypervisor.
    Emulator,
    /// A guest that has done nothing wrong failed, e.g. found its registers changed.
    Neighbour,
    /// A guest did something else than it was expected to.
    Hostile,
    /// An RTOS lost a tick or missed a deadline.
    Tick,
    /// An RTOS was later than [`TASK_NS`] or [`HANDLER_NS`].
    Delay,
    /// A core was longer in the hypervisor than it may be.
    IrqsOff,
    /// A core served one event after the other for longer than [`DELAY_NS`], and nobody was entered.
    Livelock,
    /// A core used more than [`STACK`] of its stack, or it wasn't measured.
    Stack,
}

/// What a preset promises to an RTOS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// [`TASK_NS`] and [`HANDLER_NS`], and no tick lost.
    Bound,
    /// No tick lost.
    Ticks,
    /// Nothing: everybody takes turns.
    Nothing,
}

/// What a preset (docs/policies.md) promises to an RTOS with a period of 1 ms.
pub fn promise(preset: &str) -> Promise {
    match preset {
        "ainori" | "spumone" | "spumone-on-demand" | "co-schedule" | "listee-rt" | "listee" | "partition" => {
            Promise::Bound
        }
        "round-robin" | "time-window" => Promise::Nothing,
        _ => Promise::Ticks,
    }
}

/// An RTOS of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rtos<'a> {
    /// The guest's name.
    pub name: &'a str,
    /// Its hart.
    pub hart: u32,
    /// Periods that it was told to measure.
    pub periods: u64,
}

/// What doesn't hold of a run in virtual time. The guests other than the RTOSes are for the caller to judge.
pub fn findings(report: &RunReport, preset: &str, rtoses: &[Rtos<'_>]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut add = |kind, text: String| found.push(Finding { kind, text });
    let unfinished = || {
        let running = report.guests.iter().filter(|guest| guest.outcome.is_unfinished());
        running.map(|guest| guest.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    match report.outcome {
        Outcome::Panic => add(Kind::Panic, last_words(report)),
        Outcome::TimeLimit => add(Kind::Hang, format!("still running at the time limit: {}", unfinished())),
        Outcome::Refused
        | Outcome::QemuDied
        | Outcome::ClockInvalid
        | Outcome::NoTrace
        | Outcome::Interrupted => {
            add(Kind::Emulator, report.outcome.words().into());
        }
        Outcome::Unreported => add(Kind::Neighbour, report.outcome.words().into()),
        // Who may fail is for the caller to say.
        Outcome::Good | Outcome::GuestFailed => {}
    }
    for wanted in rtoses {
        match report.guests.iter().find(|guest| guest.name == wanted.name) {
            // The run didn't come to its end, which has been said.
            Some(guest) if guest.outcome.is_unfinished() && !has_ended(report.outcome) => {}
            Some(guest) => rtos(guest, wanted.periods, promise(preset), &mut add),
            None => add(Kind::Neighbour, format!("{} is not in the report", wanted.name)),
        }
    }
    cores(report, rtoses, &mut add);
    found
}

/// Did all guests that are waited for come to their ends?
fn has_ended(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Good | Outcome::Unreported | Outcome::GuestFailed)
}

/// Is it a use of a core's stack, in bytes, that was measured and is within bounds?
pub fn is_stack_sound(bytes: u64) -> bool {
    (1..=STACK).contains(&bytes)
}

/// So many ticks of a board's clock, in nanoseconds.
pub fn ticks_to_ns(ticks: u64, timebase_hz: u64) -> u64 {
    ticks * 1_000_000_000 / timebase_hz
}

/// What no core may do. One that isn't in the report may have done it.
fn cores(report: &RunReport, rtoses: &[Rtos<'_>], add: &mut impl FnMut(Kind, String)) {
    let Some(board) = &report.board else {
        return add(
            Kind::Emulator,
            "the report has no board: the hypervisor didn't tell that it started".into(),
        );
    };
    if has_ended(report.outcome) && report.cores.len() as u64 != u64::from(board.harts) {
        add(Kind::Emulator, format!("the report has {} cores of {}", report.cores.len(), board.harts));
    }
    if let Some(rtos) = rtoses.iter().find(|rtos| u64::from(rtos.hart) >= u64::from(board.harts)) {
        // Else nobody would look at the core that it is on.
        add(Kind::Emulator, format!("{} is said to be on hart {} of {}", rtos.name, rtos.hart, board.harts));
    }
    for core in &report.cores {
        let ns = ticks_to_ns(core.longest_irqs_off, board.timebase_hz);
        if !is_stack_sound(core.stack) {
            let text =
                format!("hart {}: {} bytes of {STACK_SIZE} of its stack were in use", core.hart, core.stack);
            add(Kind::Stack, text);
        }
        let delay = ticks_to_ns(core.longest_delay, board.timebase_hz);
        if delay > DELAY_NS {
            add(Kind::Livelock, format!("hart {}: nobody was entered for {} us", core.hart, delay / 1000));
        }
        let beside = rtoses.iter().any(|rtos| u64::from(rtos.hart) == core.hart);
        let most = if beside { IRQS_OFF_BESIDE_RTOS_NS } else { IRQS_OFF_NS };
        if ns > most {
            let us = ns as f64 / 1e3;
            let place = if beside { "beside an RTOS" } else { "without an RTOS" };
            add(
                Kind::IrqsOff,
                format!(
                    "hart {} {place}: {us:.1} us in the hypervisor ({})",
                    core.hart, core.longest_irqs_off_cause
                ),
            );
        }
    }
}

/// What doesn't hold of an RTOS. Whatever it was promised: it has measured all its periods, and nothing but lateness made it fail.
fn rtos(guest: &GuestReport, periods: u64, promise: Promise, add: &mut impl FnMut(Kind, String)) {
    let name = &guest.name;
    let number = |key| number(guest, key);
    let (Some(missed), Some(lost)) = (number("missed"), number("ticks_lost")) else {
        return add(Kind::Neighbour, format!("{name} ended without a result: {:?}", guest.outcome));
    };
    let is_late = missed > 0 || lost > 0;
    if !(guest.outcome == GuestOutcome::Done || is_late && says_it_failed(guest)) {
        let reason = guest.stopped.as_ref().map(|stopped| stopped.reason);
        add(Kind::Neighbour, format!("{name} ended so: {:?}, {reason:?}", guest.outcome));
    }
    if number("periods") != Some(periods) {
        let found = number("periods");
        add(
            Kind::Neighbour,
            format!("{name} measured {found:?} periods, not the {periods} that it was told to"),
        );
    }
    if is_late && promise != Promise::Nothing {
        add(Kind::Tick, format!("{name} missed {missed} deadlines and lost {lost} ticks"));
    }
    if promise != Promise::Bound {
        return;
    }
    let bounds = Punctuality::of(guest);
    for (what, key, lateness) in
        [("task", "delay_ns", bounds.task), ("tick handler", "handler_delay_ns", bounds.handler)]
    {
        match lateness.latest(periods, |part| self::number(guest, &format!("{key}/{part}"))) {
            Some(Ok(_)) => {}
            Some(Err(ns)) => {
                add(Kind::Delay, format!("the {what} of {name} was {:.1} us late", ns as f64 / 1e3));
            }
            None => add(Kind::Neighbour, format!("the result of {name} has no {key}/max")),
        }
    }
}

/// Did it end itself, and say that it failed? FreeRTOS does so if it was late.
fn says_it_failed(guest: &GuestReport) -> bool {
    let reason = guest.stopped.as_ref().map(|stopped| stopped.reason);
    guest.outcome == GuestOutcome::Failed && reason == Some(StopReason::Failure)
}

/// A number in the first result of a guest: `key`, or `key/part`.
pub fn number(guest: &GuestReport, key: &str) -> Option<u64> {
    let mut path = key.split('/');
    let first = guest.results.first()?.get(path.next()?)?;
    path.try_fold(first, |value, part| value.get(part))?.as_u64()
}

/// The hypervisor's line about its panic.
fn last_words(report: &RunReport) -> String {
    let mut lines = report.console.values().flatten();
    let panic = lines.rfind(|line| line.contains("panic"));
    panic.cloned().unwrap_or_else(|| "the hypervisor panicked".into())
}

mod greatest;
mod punctual;
#[cfg(test)]
pub(crate) mod tests;
