//! A run that has ended, and what tests ask of it. Whatever is not as it should be ends the test with the manifest, the
//! report's own words and the last lines of each console.
use crate::bounds::{IRQS_OFF_BESIDE_RTOS_NS, Punctuality, ticks_to_ns};
use ainori::{
    report::{GuestReport, Outcome, RunReport},
    serial::{self, GuestResult, Source},
};
use ainori_report::{CONTINUATION, CoreStats, Fault, MARK, SEPARATOR, StopReason};
use std::fmt::{Display, Write};
use tempfile::TempDir;

/// Lines of each console that are shown when a test fails.
const TAIL: usize = 12;

/// A run that has ended.
#[derive(Debug)]
pub struct Run {
    /// What `ainori run` reports.
    pub report: RunReport,
    /// The serial line, line by line, without line ends.
    pub serial: Vec<String>,
    manifest: String,
}

impl Run {
    /// Takes over what a run has left in its folder.
    pub(crate) fn new(report: RunReport, manifest: String, folder: TempDir) -> Self {
        let serial = std::fs::read(folder.path().join("serial.log")).unwrap_or_default();
        let serial = String::from_utf8_lossy(&serial).lines().map(str::to_owned).collect();
        Self { report, serial, manifest }
    }

    /// Ends the test: `why`, and all that helps to understand it.
    #[track_caller]
    pub fn fail(&self, why: impl Display) -> ! {
        let mut text = format!("{why}\noutcome: {}\n", self.report.outcome.words());
        for problem in &self.report.problems {
            let _ = writeln!(text, "problem: {problem}");
        }
        let names: Vec<String> = self.report.guests.iter().map(|guest| guest.name.clone()).collect();
        let sources =
            [Source::Unmarked, Source::Hypervisor].into_iter().chain((0..names.len()).map(Source::Guest));
        for source in sources {
            let lines: Vec<&String> = self
                .serial
                .iter()
                .filter(|line| serial::split(line.as_bytes(), &names).0 == source)
                .collect();
            for line in &lines[lines.len().saturating_sub(TAIL)..] {
                let _ = writeln!(text, "    {line}");
            }
        }
        panic!("{text}of the system\n{}", self.manifest)
    }

    /// Ends the test unless `condition` holds.
    #[track_caller]
    pub fn check(&self, condition: bool, why: impl Display) -> &Self {
        if !condition {
            self.fail(why);
        }
        self
    }

    /// Every guest did its job, and nothing was wrong with the run itself.
    #[track_caller]
    pub fn good(&self) -> &Self {
        self.ended(Outcome::Good);
        self.check(self.report.problems.is_empty(), "a good run has no problems")
    }

    /// The run ended in this way.
    #[track_caller]
    pub fn ended(&self, outcome: Outcome) -> &Self {
        self.check(
            self.report.outcome == outcome,
            format_args!("it should have ended so: {}", outcome.words()),
        )
    }

    /// The hypervisor didn't start, for a reason with these words, which is the one thing that the report has to say.
    #[track_caller]
    pub fn refused(&self, why: &str) -> &Self {
        self.ended(Outcome::Refused);
        let problems = &self.report.problems;
        self.check(
            problems.len() == 1 && problems[0].contains(why),
            format_args!("the one problem should be {why:?}"),
        )
    }

    /// A guest by its name.
    #[track_caller]
    pub fn guest(&self, name: &str) -> &GuestReport {
        let guest = self.report.guests.iter().find(|guest| guest.name == name);
        guest.unwrap_or_else(|| self.fail(format_args!("there is no guest {name}")))
    }

    /// The first result that a guest printed; it says that all was well.
    #[track_caller]
    pub fn result(&self, name: &str) -> &GuestResult {
        match self.guest(name).results.first() {
            Some(result) if result.get("ok").is_some_and(|ok| ok == true) => result,
            Some(result) => self.fail(format_args!("{name} says {result:?}")),
            None => self.fail(format_args!("{name} printed no result")),
        }
    }

    /// A number in the first result of a guest: `key`, or `key/part` where that has parts.
    #[track_caller]
    pub fn number(&self, name: &str, key: &str) -> u64 {
        let mut path = key.split('/');
        let first = path.next().and_then(|key| self.result(name).get(key));
        let value = path.fold(first, |value, part| value?.get(part)).and_then(|value| value.as_u64());
        value.unwrap_or_else(|| self.fail(format_args!("the result of {name} has no number {key}")))
    }

    /// A guest stopped for this reason.
    #[track_caller]
    pub fn stopped(&self, name: &str, reason: StopReason) -> &Self {
        let found = self.guest(name).stopped.as_ref().map(|stopped| stopped.reason);
        self.check(
            found == Some(reason),
            format_args!("{name} should have stopped for {reason:?}, not {found:?}"),
        )
    }

    /// What a guest did wrong.
    #[track_caller]
    pub fn fault(&self, name: &str) -> &Fault {
        self.stopped(name, StopReason::Fault);
        let fault = self.guest(name).stopped.as_ref().and_then(|stopped| stopped.fault.as_ref());
        fault.unwrap_or_else(|| self.fail(format_args!("the report on {name} has no fault")))
    }

    /// FreeRTOS measured as many periods as it was told to, and missed neither a deadline nor a tick.
    #[track_caller]
    pub fn lost_no_tick(&self, name: &str, periods: u64) -> &Self {
        for (key, wanted) in [("periods", periods), ("missed", 0), ("ticks_lost", 0)] {
            let found = self.number(name, key);
            self.check(found == wanted, format_args!("{name}: {key} is {found}, not {wanted}"));
        }
        self
    }

    /// No task of FreeRTOS began later than an RTOS is promised, and no handler of its tick. `what` names the run in the output.
    #[track_caller]
    pub fn was_in_time(&self, name: &str, what: impl Display) -> &Self {
        let bounds = Punctuality::of(self.guest(name));
        let periods = self.number(name, "periods");
        for (part, key, lateness) in
            [("task", "delay_ns", bounds.task), ("tick's handler", "handler_delay_ns", bounds.handler)]
        {
            let number = |of: &str| Some(self.number(name, &format!("{key}/{of}")));
            match lateness.latest(periods, number) {
                Some(Ok(ns)) => println!("{what}: {name}: {part} {ns} ns"),
                late => self.fail(format_args!("{what}: {name}: a {part} is {late:?} ns late")),
            }
        }
        self
    }

    /// How often a vCPU left its guest, over all causes.
    #[track_caller]
    pub fn exits(&self, name: &str, vcpu: usize) -> u64 {
        let vcpu = self.guest(name).vcpus.get(vcpu);
        let vcpu = vcpu.unwrap_or_else(|| self.fail(format_args!("{name}: no counters of that vCPU")));
        vcpu.exits.values().sum()
    }

    /// How often the vCPUs of a guest left it for this cause, as reports call it.
    #[track_caller]
    pub fn exits_for(&self, name: &str, cause: &str) -> u64 {
        self.guest(name).vcpus.iter().filter_map(|vcpu| vcpu.exits.get(cause)).sum()
    }

    /// What the fast path has carried out for the vCPUs of a guest, on harts without H.
    #[track_caller]
    pub fn fast_path(&self, name: &str) -> u64 {
        self.guest(name).vcpus.iter().filter_map(|vcpu| vcpu.fast_path).sum()
    }

    /// How often the vCPUs of a guest went to another core.
    #[track_caller]
    pub fn migrations(&self, name: &str) -> u64 {
        self.guest(name).vcpus.iter().map(|vcpu| vcpu.migrations).sum()
    }

    /// A core's counters.
    #[track_caller]
    pub fn core(&self, index: usize) -> &CoreStats {
        self.report.cores.get(index).unwrap_or_else(|| self.fail(format_args!("no counters of core {index}")))
    }

    /// None of so many first cores was longer in the hypervisor without a look for interrupts than it may be beside an RTOS.
    #[track_caller]
    pub fn looks_for_interrupts(&self, cores: u32) -> &Self {
        for core in 0..cores {
            let longest = self.longest_irqs_off_ns(core as usize);
            self.check(
                longest <= IRQS_OFF_BESIDE_RTOS_NS,
                format_args!("{longest} ns without a look for interrupts"),
            );
        }
        self
    }

    /// The longest time that a core was in the hypervisor between two looks for interrupts, in nanoseconds.
    #[track_caller]
    pub fn longest_irqs_off_ns(&self, index: usize) -> u64 {
        self.ns(self.core(index).longest_irqs_off)
    }

    /// The longest time for which a core entered nobody, although somebody was ready, in nanoseconds.
    #[track_caller]
    pub fn longest_delay_ns(&self, index: usize) -> u64 {
        self.ns(self.core(index).longest_delay)
    }

    /// Ticks of the board's clock in nanoseconds.
    #[track_caller]
    fn ns(&self, ticks: u64) -> u64 {
        let Some(board) = &self.report.board else { self.fail("the hypervisor didn't tell its board") };
        ticks_to_ns(ticks, board.timebase_hz)
    }

    /// Texts of the lines with this mark, in order. One that was broken, as others had something to say, is put together again.
    pub fn lines(&self, mark: &str) -> impl Iterator<Item = String> {
        let mut lines: Vec<String> = Vec::new();
        for line in self.serial.iter().filter_map(|line| line.strip_prefix(mark)) {
            if let Some(text) = line.strip_prefix(SEPARATOR) {
                lines.push(text.to_owned());
            } else if let (Some(text), Some(begun)) = (line.strip_prefix(CONTINUATION), lines.last_mut()) {
                begun.push_str(text);
            }
        }
        lines.into_iter()
    }

    /// What came from the serial port before the hypervisor's first word: the firmware, and a boot loader.
    pub fn before_the_hypervisor(&self) -> impl Iterator<Item = &str> {
        let mark = format!("{MARK}{SEPARATOR}");
        self.serial.iter().map(String::as_str).take_while(move |line| !line.starts_with(&mark))
    }

    /// Lines that the hypervisor or a guest should have marked, and did not. The firmware's banner has no marks.
    pub fn unmarked_lines(&self) -> Vec<&str> {
        let marks: Vec<String> = self
            .report
            .guests
            .iter()
            .map(|guest| guest.name.as_str())
            .chain([MARK])
            .flat_map(|mark| [SEPARATOR, CONTINUATION].map(|separator| format!("{mark}{separator}")))
            .collect();
        let marked = |line: &str| marks.iter().any(|mark| line.starts_with(mark));
        self.serial
            .iter()
            .map(String::as_str)
            .skip_while(|line| !marked(line))
            .filter(|line| !marked(line))
            .collect()
    }
}
