//! What is known after a run, and whether the run was good.
use crate::serial::GuestResult;
use ainori_manifest::{Findings, config::Kind};
use ainori_report::{Board, CoreStats, End, Next, StopReason, Stopped, VcpuStats};
use serde::Serialize;
use std::{collections::BTreeMap, path::PathBuf};

/// Stands for a mark where lines have none.
pub const FIRMWARE: &str = "firmware";

/// Everything that is known after a run. As JSON it is the same for the same run, but for [`Self::host`].
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// Name of the system.
    pub system: String,
    /// How the run went.
    pub outcome: Outcome,
    /// What else is wrong, in words.
    pub problems: Vec<String>,
    /// What time was measured in.
    pub clock: Clock,
    /// Version of QEMU.
    pub qemu: String,
    /// The board as the hypervisor found it.
    pub board: Option<Board>,
    /// The guests, in the order of the manifest.
    pub guests: Vec<GuestReport>,
    /// The cores, by index.
    pub cores: Vec<CoreStats>,
    /// The end, if the hypervisor came to it.
    pub end: Option<End>,
    /// Last lines of consoles by mark (`firmware` for lines without one): those that may tell why a run was not good.
    pub console: BTreeMap<String, Vec<String>>,
    /// The trace, if one was taken.
    pub trace: Option<TraceReport>,
    /// What depends on the computer that QEMU ran on.
    pub host: Host,
}

impl RunReport {
    /// How the run went, in words: its outcome, and the guests in the background that failed. They don't spoil it, but nobody shall think that they
    /// did their job.
    pub fn words(&self) -> String {
        let all_done = self.guests.iter().all(|guest| guest.outcome == GuestOutcome::Done);
        let waited_for = self.guests.iter().any(|guest| guest.background) && !all_done;
        let words = match self.outcome {
            Outcome::Good if waited_for => "every guest that the run waits for did its job",
            Outcome::Unreported if waited_for => {
                "every guest that the run waits for shut itself down, but not every one reported that it did its job"
            }
            outcome => outcome.words(),
        };
        let failed = |guest: &GuestReport| match guest.outcome {
            GuestOutcome::Failed => Some(format!("{} failed", guest.name)),
            GuestOutcome::Faulted => Some(format!("{} faulted", guest.name)),
            _ => None,
        };
        let failed: Vec<_> = self.guests.iter().filter(|guest| guest.background).filter_map(failed).collect();
        if failed.is_empty() {
            return words.into();
        }
        format!("{words}; in the background {}", failed.join(", "))
    }

    /// Leaves only those consoles that may tell why the run was not good.
    pub fn keep_telling_consoles(&mut self) {
        let guests = &self.guests;
        let booted = self.board.is_some();
        match self.outcome {
            // A refusal is among the problems, and nobody else has said anything of interest.
            Outcome::Good | Outcome::NoTrace | Outcome::Refused => self.console.clear(),
            Outcome::GuestFailed | Outcome::Unreported => {
                self.console
                    .retain(|mark, _| guests.iter().any(|guest| guest.name == *mark && !guest.is_good()));
            }
            _ if booted => drop(self.console.remove(FIRMWARE)),
            _ => {}
        }
    }
}

/// All that is known of a run that could not be started.
#[derive(Debug, Serialize)]
pub struct NotStarted {
    outcome: &'static str,
    problems: Vec<String>,
}

impl NotStarted {
    /// Of one that was not started for this reason: the errors of its manifest, or what else it was.
    pub fn new(why: &miette::Report) -> Self {
        let errors = why.downcast_ref::<Findings>().map(|findings| {
            let errors = findings.iter().filter(|finding| !finding.is_warning);
            errors.map(|error| error.message.clone()).collect()
        });
        Self { outcome: "not-started", problems: errors.unwrap_or_else(|| vec![format!("{why:#}")]) }
    }
}

/// How a run went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every guest that the run waits for did its job.
    Good,
    /// A guest failed, faulted, or did not finish.
    GuestFailed,
    /// Every guest shut itself down and none failed, but one reported nothing: nobody knows whether it did its job.
    Unreported,
    /// The time limit passed.
    TimeLimit,
    /// The hypervisor panicked.
    Panic,
    /// The hypervisor doesn't start on this machine, and said why.
    Refused,
    /// QEMU ended before the hypervisor did.
    QemuDied,
    /// The clock of the run can't be relied on, so neither can its figures.
    ClockInvalid,
    /// The guests ended in order, but the trace that was asked for could not be written.
    NoTrace,
    /// The user stopped it.
    Interrupted,
}

impl Outcome {
    /// How a run went that came to its end, by what became of its guests.
    pub fn of(guests: &[GuestReport]) -> Self {
        if guests.iter().all(GuestReport::is_good) {
            Self::Good
        } else if guests.iter().all(GuestReport::is_in_order) {
            Self::Unreported
        } else {
            Self::GuestFailed
        }
    }

    /// Exit code of `ainori run`.
    pub fn exit_code(self) -> u8 {
        match self {
            // A guest that isn't made for this tool has no results to print, and ends in order all the same.
            Self::Good | Self::Unreported => 0,
            Self::GuestFailed => 1,
            Self::TimeLimit
            | Self::Panic
            | Self::Refused
            | Self::QemuDied
            | Self::ClockInvalid
            | Self::NoTrace => 3,
            Self::Interrupted => 130,
        }
    }

    /// In words, for a run without guests in the background, see [`RunReport::words`].
    pub fn words(self) -> &'static str {
        match self {
            Self::Good => "every guest did its job",
            Self::GuestFailed => "not every guest did its job",
            Self::Unreported => {
                "every guest shut itself down, but not every one reported that it did its job"
            }
            Self::TimeLimit => "stopped at the time limit",
            Self::Panic => "the hypervisor panicked",
            Self::Refused => "the hypervisor doesn't start on this machine",
            Self::QemuDied => "QEMU ended before the hypervisor did",
            Self::ClockInvalid => "the clock of this run can't be relied on: throw its figures away",
            Self::NoTrace => "the guests ended in order, but there is no trace",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What time was measured in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "mode", rename_all = "kebab-case")]
pub enum Clock {
    /// The host's clock: says nothing about speed.
    Host,
    /// Instructions of the one hart; 4 ns each.
    Icount,
    /// Lockstep virtual time of several harts.
    Lockstep {
        /// Instructions of a slice.
        q: u32,
        /// Virtual nanoseconds of an instruction.
        ns: u32,
        /// Times that the clock stood still although something waited; must be 0.
        stuck: Option<u64>,
        /// Hash of the schedule: the same for identical runs.
        hash: Option<String>,
    },
}

/// What depends on the computer that QEMU ran on.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Host {
    /// Length of the run in seconds.
    pub seconds: f64,
    /// Seconds from a guest's last output, be it a whole line or not, to the end of the run, by the names of the guests that had not stopped. One that is not
    /// here said nothing.
    pub silent: BTreeMap<String, f64>,
}

/// A trace that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TraceReport {
    /// The file, for the Perfetto UI.
    #[serde(serialize_with = "ainori_manifest::files::serialize_path")]
    pub file: PathBuf,
    /// Records in it.
    pub records: u64,
    /// Older ones that were overwritten before the run ended.
    pub lost: u64,
}

/// One guest.
#[derive(Debug, Clone, Serialize)]
pub struct GuestReport {
    /// Its name.
    pub name: String,
    /// What its image is.
    pub kind: Kind,
    /// The run did not wait for it.
    pub background: bool,
    /// What became of it.
    pub outcome: GuestOutcome,
    /// Its lives before the last one, in order: each ended, and it was started again.
    pub former_lives: Vec<Life>,
    /// When its last life began, in ticks since boot; 0 for the first one, of which nobody tells. `None` if it was not started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// The end of its last life, if it came to one.
    pub stopped: Option<Stopped>,
    /// The objects that it printed in its last life, in order.
    pub results: Vec<GuestResult>,
    /// Its vCPUs, by index, with what all of its lives did.
    pub vcpus: Vec<VcpuStats>,
}

/// A life of a guest that was started again.
#[derive(Debug, Clone, Serialize)]
pub struct Life {
    /// When it began, in ticks since boot; 0 for the first one, of which nobody tells.
    pub started: u64,
    /// Its end. `None` only if the line that told it was lost.
    pub stopped: Option<Stopped>,
    /// The objects that the guest printed in it, in order.
    pub results: Vec<GuestResult>,
    /// What was wrong with what it printed, in words.
    pub problems: Vec<String>,
}

/// What became of a guest: its last life decides. What it was started again for is forgiven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestOutcome {
    /// Shut itself down after a result, and no result says otherwise.
    Done,
    /// Shut itself down, but printed no result: somebody may have halted it before it did anything.
    ShutDown,
    /// Said itself that it failed, stopped all its vCPUs, asked for a reboot that it doesn't get, or was started again too often.
    Failed,
    /// Did what it may not do.
    Faulted,
    /// The run ended before the hypervisor started guests.
    NotStarted,
    /// Had not stopped when the run ended.
    Running,
    /// Had stopped, and was about to be started again when the run ended.
    Restarting,
}

impl GuestOutcome {
    /// Did the run end before the guest did?
    pub fn is_unfinished(self) -> bool {
        matches!(self, Self::NotStarted | Self::Running | Self::Restarting)
    }
}

impl GuestReport {
    /// A guest of which nothing is known yet.
    pub fn new(guest: &ainori_manifest::config::Guest) -> Self {
        Self {
            name: guest.name.clone(),
            kind: guest.kind,
            background: guest.background,
            outcome: GuestOutcome::NotStarted,
            former_lives: Vec::new(),
            started: None,
            stopped: None,
            results: Vec::new(),
            vcpus: Vec::new(),
        }
    }

    /// It is started for the first time.
    pub fn start(&mut self) {
        self.started = Some(0);
    }

    /// It is started again: what comes from now on is its next life's. `problems`: what was wrong in the former one.
    pub fn restart(&mut self, time: u64, problems: Vec<String>) {
        let started = self.started.replace(time).unwrap_or(0);
        let (stopped, results) = (self.stopped.take(), std::mem::take(&mut self.results));
        self.former_lives.push(Life { started, stopped, results, problems });
    }

    /// Did it say in a result of its last life that it missed deadlines, or lost ticks?
    pub fn missed(&self) -> bool {
        let missed = |name| self.results.iter().filter_map(move |result| result.get(name)?.as_f64());
        ["missed", "ticks_lost"].into_iter().flat_map(missed).any(|count| count != 0.0)
    }

    /// The ends of all its lives, in order.
    pub fn ends(&self) -> impl Iterator<Item = &Stopped> {
        self.former_lives.iter().map(|life| &life.stopped).chain([&self.stopped]).flatten()
    }

    /// Decides the outcome from what is known.
    pub fn judge(&mut self) {
        let says_bad = self.results.iter().any(|result| result.get("ok").is_some_and(|ok| ok != true));
        self.outcome = match self.stopped.as_ref().map(|stopped| stopped.reason) {
            _ if self.is_between_lives() => GuestOutcome::Restarting,
            Some(StopReason::Fault) => GuestOutcome::Faulted,
            Some(
                StopReason::Failure | StopReason::AllHartsStopped | StopReason::Reboot | StopReason::Watchdog,
            ) => GuestOutcome::Failed,
            _ if says_bad || self.is_given_up() => GuestOutcome::Failed,
            Some(StopReason::Shutdown) if self.results.is_empty() => GuestOutcome::ShutDown,
            Some(StopReason::Shutdown) => GuestOutcome::Done,
            None if self.started.is_none() => GuestOutcome::NotStarted,
            None => GuestOutcome::Running,
        };
    }

    /// Was it about to be started again when the run ended?
    fn is_between_lives(&self) -> bool {
        self.stopped.as_ref().is_some_and(|stopped| stopped.next == Next::Restart)
    }

    /// Was it started again as often as it may be?
    pub fn is_given_up(&self) -> bool {
        self.stopped.as_ref().is_some_and(|stopped| stopped.next == Next::GiveUp)
    }

    /// Did it do what the run waits for? A guest in the background can't spoil a run.
    pub fn is_good(&self) -> bool {
        self.background || self.outcome == GuestOutcome::Done
    }

    /// As [`Self::is_good`], or it shut itself down and nobody knows.
    fn is_in_order(&self) -> bool {
        self.is_good() || self.outcome == GuestOutcome::ShutDown
    }
}
