//! Compares a run with what its system promises ([`oracle`]), and its counters with each other.
use super::{
    counters,
    description::{Description, Guest, Job},
    oracle::{self, Promise},
    text,
};
use crate::Run;
use crate::bounds::{DELAY_NS, Punctuality, is_stack_sound, ticks_to_ns};
use ainori::report::{Clock, GuestOutcome, GuestReport, Outcome};
use ainori_report::{Next, StopReason};
use serde::Serialize;
use serde_json::Value;

/// Something that should not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The rule that is broken: the same words for the same kind of failure.
    pub rule: &'static str,
    /// Where, and how.
    pub what: String,
}

/// A list that grows.
#[derive(Debug, Default)]
pub struct Violations(pub Vec<Violation>);

impl Violations {
    /// Notes a violation unless `holds`.
    pub fn expect(&mut self, holds: bool, rule: &'static str, what: impl FnOnce() -> String) {
        if !holds {
            self.0.push(Violation { rule, what: what() });
        }
    }
}

/// Everything that is wrong with a run. What explains the rest comes first.
pub fn violations(system: &Description, run: &Run) -> Vec<Violation> {
    let mut found = Violations::default();
    check_end(run, &mut found);
    for (guest, report) in system.guests.iter().zip(&run.report.guests) {
        check_guest(system, guest, report, run, &mut found);
    }
    if run.report.end.is_some() {
        check_console(run, &mut found);
        check_irqs_off(system, run, &mut found);
        counters::check(system, run, &mut found);
    }
    found.0
}

fn check_end(run: &Run, found: &mut Violations) {
    let report = &run.report;
    // What QEMU's plugins say last is long, and no help here.
    let why = || report.problems.join("; ").split("; lockstep: ").next().unwrap_or_default().to_owned();
    found.expect(report.outcome != Outcome::Panic, "the hypervisor doesn't panic", why);
    if report.outcome == Outcome::Panic {
        return;
    }
    found.expect(report.end.is_some(), "the run comes to its end", || {
        let running: Vec<&str> = report
            .guests
            .iter()
            .filter(|guest| guest.stopped.is_none() && !guest.background)
            .map(|guest| guest.name.as_str())
            .collect();
        format!("{}: {}; still there: {}", report.outcome.words(), why(), running.join(", "))
    });
    if let (Some(_), Clock::Lockstep { stuck, .. }) = (&report.end, &report.clock) {
        found.expect(*stuck == Some(0), "the clock depends on nothing but the guests", || {
            format!("stuck: {stuck:?}")
        });
    }
}

fn check_guest(system: &Description, guest: &Guest, report: &GuestReport, run: &Run, found: &mut Violations) {
    let promise = oracle::promise(system, guest);
    let name = &guest.name;
    // A guest in the background may be about to start again when the others are done.
    let ended = report.stopped.as_ref().filter(|stopped| stopped.next != Next::Restart);
    let reason = ended.map(|stopped| stopped.reason);
    found.expect(report.outcome != GuestOutcome::Faulted, "no guest of ours faults", || {
        let fault = report.stopped.as_ref().and_then(|stopped| stopped.fault.as_ref());
        format!("{name}: {}", fault.map_or("?".into(), |fault| format!("{} at {:#x}", fault.what, fault.pc)))
    });
    if matches!(reason, Some(StopReason::Shutdown | StopReason::Failure)) && guest.job.text().is_some() {
        check_text(guest, run, found);
        check_talk(system, guest, report, found);
    }
    if let Job::FreeRtos { periods, report_ms, .. } = &guest.job
        && !report.results.is_empty()
    {
        check_rtos(report, *periods, promise, found);
        if *report_ms > 0 {
            check_progress(name, run, found);
        }
    }
    check_lives(guest, report, found);
    // Last: what is above says why.
    if promise.good && reason.is_some() {
        found.expect(report.outcome == GuestOutcome::Done, "each guest does its job", || {
            let last = run.lines(name).last().unwrap_or_default();
            format!("{name} stopped for {reason:?}; its last line: {last:?}")
        });
    }
}

/// Each life before the last found the machine as the first one did, and ended as it was told to.
fn check_lives(guest: &Guest, report: &GuestReport, found: &mut Violations) {
    for (life, number) in report.former_lives.iter().zip(1..) {
        let is_well = life.problems.is_empty()
            && life.stopped.is_some()
            && matches!(&life.results[..], [result] if result.get("ok") == Some(&Value::Bool(true)));
        found.expect(is_well, "each life is as the first one", || {
            format!("{}, life {number}: {life:?}", guest.name)
        });
    }
}

/// What a talker printed is its text, line by line, and nothing else. (Linux and its kernel have lines of their own.)
fn check_text(guest: &Guest, run: &Run, found: &mut Violations) {
    let Some((seed, bytes)) = guest.job.text() else { return };
    let is_own = |line: &String| {
        !line.starts_with("@result ")
            && (!guest.job.is_linux() || !line.starts_with("[ ") && !line.starts_with("Linux "))
    };
    let mut printed = run.lines(&guest.name).filter(is_own);
    for wanted in text::text(seed, bytes) {
        let line = printed.next().map(|line| line.trim_end_matches('\r').to_owned());
        if line.as_ref() != Some(&wanted) {
            found.expect(false, "each console passes its text on, whole and in order", || {
                format!("{}: {line:?} instead of {wanted:?}", guest.name)
            });
            return;
        }
    }
    let more = printed.next();
    found.expect(more.is_none(), "each console passes its text on, whole and in order", || {
        format!("{}: {more:?} behind the text", guest.name)
    });
}

fn check_talk(system: &Description, guest: &Guest, report: &GuestReport, found: &mut Violations) {
    let result = report.results.first();
    let field = |key: &str| result.and_then(|result| result.get(key));
    if let Some(typing) = system.typing.as_ref().filter(|_| guest.job.hears()) {
        let heard = field("heard").and_then(Value::as_str);
        found.expect(heard == Some(typing.text.as_str()), "what is typed arrives", || {
            format!("{} heard {heard:?} instead of {:?}", guest.name, typing.text)
        });
    }
    if let Job::Talk(talk) = &guest.job {
        let number = |key| field(key).and_then(Value::as_u64);
        let (alarms, spurious) = (number("alarms"), number("spurious"));
        let once = alarms == Some(u64::from(talk.alarms)) && spurious == Some(0);
        found.expect(once, "each alarm interrupts its owner once", || {
            format!("{}: {alarms:?} interrupts for {} alarms, {spurious:?} for none", guest.name, talk.alarms)
        });
    }
}

fn check_rtos(report: &GuestReport, periods: u32, promise: Promise, found: &mut Violations) {
    let name = &report.name;
    let result = report.results.first().cloned().map(Value::Object).unwrap_or_default();
    let number = |path: &str| result.pointer(path).and_then(Value::as_u64);
    found.expect(number("/periods") == Some(periods.into()), "an RTOS counts all its periods", || {
        format!("{name}: {:?} instead of {periods}", number("/periods"))
    });
    if promise.good {
        for (rule, path) in [
            ("an RTOS on top misses no deadline", "/missed"),
            ("an RTOS on top loses no tick", "/ticks_lost"),
        ] {
            let value = number(path);
            found.expect(value == Some(0), rule, || format!("{name}: {path} is {value:?}"));
        }
    }
    if promise.punctual {
        let bounds = Punctuality::of(report);
        for (rule, kind, lateness) in [
            ("an RTOS's task begins in time", "delay_ns", bounds.task),
            ("an RTOS's tick is handled in time", "handler_delay_ns", bounds.handler),
        ] {
            let latest = lateness.latest(periods.into(), |part| number(&format!("/{kind}/{part}")));
            found.expect(matches!(latest, Some(Ok(_))), rule, || {
                format!("{name}: {kind} is {latest:?}, at most {lateness:?}")
            });
        }
    }
}

/// FreeRTOS's lines between the first and the result: "N periods, worst delay 1.9 us", with rising numbers.
fn check_progress(name: &str, run: &Run, found: &mut Violations) {
    let mut before = 0;
    for line in
        run.lines(name).filter(|line| !line.starts_with("FreeRTOS V") && !line.starts_with("@result "))
    {
        let number =
            line.split_once(" periods, worst delay ").and_then(|(number, _)| number.parse::<u64>().ok());
        let whole = line.ends_with(" us") || line.ends_with(" missed");
        match number {
            Some(number) if number >= before && whole => before = number,
            _ => {
                found.expect(false, "each console passes its text on, whole and in order", || {
                    format!("{name}: {line:?} behind {before} periods")
                });
                return;
            }
        }
    }
}

fn check_console(run: &Run, found: &mut Violations) {
    let lost = run.report.end.as_ref().map_or(0, |end| end.console_bytes_lost);
    found.expect(lost == 0, "no byte of a polite guest is lost", || format!("{lost} bytes"));
    let unmarked = run.unmarked_lines();
    found.expect(unmarked.is_empty(), "each line has its guest's mark", || {
        format!("{} lines without: {:?}", unmarked.len(), &unmarked[..unmarked.len().min(3)])
    });
    let others: Vec<&String> =
        run.report.problems.iter().filter(|problem| !problem.contains("were lost")).collect();
    found.expect(others.is_empty(), "nothing else is wrong with the run", || format!("{others:?}"));
}

/// How long each core was in the hypervisor, and how deep.
fn check_irqs_off(system: &Description, run: &Run, found: &mut Violations) {
    let Some(board) = &run.report.board else { return };
    for core in &run.report.cores {
        found.expect(
            is_stack_sound(core.stack),
            "the use of each core's stack is measured, and at most an eighth",
            || format!("hart {}: {} bytes", core.hart, core.stack),
        );
        let delay = ticks_to_ns(core.longest_delay, board.timebase_hz);
        found.expect(
            delay <= DELAY_NS,
            "no core serves events for longer than 100 us while a vCPU is ready",
            || format!("hart {}: {delay} ns", core.hart),
        );
        let most = oracle::longest_irqs_off_ns(system, core.hart as u32);
        let longest = ticks_to_ns(core.longest_irqs_off, board.timebase_hz);
        let rule = if most < 50_000 {
            "no irqs-off section on an RTOS's core is longer than 5 us"
        } else {
            "no irqs-off section is longer than 50 us"
        };
        found.expect(longest <= most, rule, || {
            format!("hart {}: {longest} ns for {}, at most {most}", core.hart, core.longest_irqs_off_cause)
        });
    }
}
