//! Do the tasks that a manifest declares keep their deadlines? What `ainori check` says of them.
mod relief;

use ainori_deadlines::{
    Answer, Guest, HartAnswer, Part, Paths, System, Task, Vcpu, Verdict, analyse, costs,
    response::Unknown,
    schedule::{Stream, Timetable},
    system::Window,
};
use ainori_limits::Room;
use ainori_manifest::Manifest;
use ainori_sched::Policy;
use miette::{Result, miette};
use relief::Advice;
use serde::Serialize;
use std::borrow::Cow;

/// Answers for all tasks of a system.
#[derive(Debug, Serialize)]
pub struct Deadlines {
    /// How fast harts are taken to be, in millions of instructions per second.
    pub mips: u32,
    /// Each task keeps its deadline. True if there is none.
    pub all_met: bool,
    /// The harts that have tasks.
    pub harts: Vec<HartReport>,
}

/// Answers for one hart.
#[derive(Debug, Serialize)]
pub struct HartReport {
    /// Its id.
    pub hart: u32,
    /// What tasks and hypervisor take at most in the long run, in percent of the hart.
    pub taken_percent: f64,
    /// What of that is the hypervisor's own work (housework, moving vCPUs), if there is as much of it as there can be.
    pub own_work_percent: f64,
    /// What is left for guests without tasks at least; under windows in time, in theirs.
    pub left_percent: f64,
    /// The guests without tasks there for whom that is nothing, as they wait for those who ask for all.
    pub starved: Vec<String>,
    /// Its tasks, the most urgent first.
    pub tasks: Vec<TaskReport>,
    /// The jobs of each of these, for a picture of them.
    #[serde(skip)]
    pub streams: Vec<Stream>,
    /// Its windows in time, for that picture.
    #[serde(skip)]
    pub windows: Timetable,
}

/// The answer for one task.
#[derive(Debug, Serialize)]
pub struct TaskReport {
    /// Its guest.
    pub guest: String,
    /// Its name.
    pub task: String,
    /// Line of the manifest where it stands, from 1.
    pub line: usize,
    /// Within its guest; the higher goes first.
    pub priority: u8,
    /// Least time between two jobs.
    pub period_ns: u64,
    /// Most that a job computes.
    pub execution_ns: u64,
    /// When a job has to have ended, from its arrival.
    pub deadline_ns: u64,
    /// By how much a job may become ready later than it arrives.
    pub jitter_ns: u64,
    /// For how long less urgent tasks of its guest may keep it waiting.
    pub blocking_ns: u64,
    /// The part of that for which it waits for another hart.
    pub remote_blocking_ns: u64,
    /// Whether it keeps its deadline.
    pub verdict: VerdictKind,
    /// By how much the deadline may be missed.
    pub late_ns: Option<u64>,
    /// Why no bound is known, or nothing can be said.
    pub why: Option<String>,
    /// The longest time from a job's arrival to its end, if a bound is known.
    pub response_ns: Option<u64>,
    /// What that is made of, the largest part first. Empty if no bound is known, or only a coarse one.
    pub parts: Vec<PartReport>,
    /// What is known to help it, if it is late.
    #[serde(skip)]
    pub advice: Option<String>,
}

/// A [`Verdict`] without its reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VerdictKind {
    /// No job ends later.
    Met,
    /// A job may.
    Missed,
    /// No bound is known.
    Unbounded,
    /// The analysis doesn't hold for the system.
    Unsaid,
}

/// A part of a response.
#[derive(Debug, Serialize)]
pub struct PartReport {
    /// `own`, `switches`, `housework`, `moving`, `begun`, `grace`, `blocking`, `outside` (of its guest's windows), `siblings` (outside of theirs, or kept from their harts), `jitter`, or another task as `guest/task`.
    pub what: String,
    /// Of how many jobs, where it is a task's.
    pub jobs: Option<u64>,
    /// How much.
    pub ns: u64,
}

/// Of how much weight a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// A deadline may be missed.
    Error,
    /// Nothing can be said of one.
    Warning,
}

/// What is wrong with a task.
#[derive(Debug)]
pub struct Problem {
    /// Of how much weight it is.
    pub weight: Weight,
    /// Line of the manifest, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Cow<'static, str>,
}

impl Deadlines {
    /// Analyses a system; `mips` is how fast its harts are, in millions of instructions per second, not 0.
    ///
    /// # Errors
    /// If the file of the hypervisor's costs, which is built in, can't be read; a test reads it.
    pub fn of(manifest: &Manifest, mips: u32) -> Result<Self> {
        let paths: Paths = toml::from_str(costs::FILE)
            .map_err(|error| miette!("the hypervisor's costs can't be read: {error}"))?;
        let system = system(manifest)?;
        let answers = analyse(&system, &paths, mips);
        let advice = relief::advice(&system, &answers, |other| analyse(other, &paths, mips));
        let harts = answers.into_iter().map(|answer| HartReport::new(manifest, &system, &advice, answer));
        let harts: Vec<_> = harts.collect();
        let all_met = harts.iter().flat_map(|hart| &hart.tasks).all(|task| task.verdict == VerdictKind::Met);
        Ok(Self { mips, all_met, harts })
    }

    /// What is wrong, in the order of the table.
    pub fn problems(&self) -> Vec<Problem> {
        let of_hart = |hart: &HartReport| -> Vec<Problem> {
            hart.tasks.iter().filter_map(TaskReport::problem).chain(hart.starving()).collect()
        };
        self.harts.iter().flat_map(of_hart).collect()
    }

    /// Is there a deadline that may be missed?
    pub fn is_missed(&self) -> bool {
        self.problems().iter().any(|problem| problem.weight == Weight::Error)
    }
}

impl HartReport {
    fn new(manifest: &Manifest, system: &System, advice: &Advice, answer: HartAnswer) -> Self {
        let percent = |ppm: u64| ppm as f64 / 10_000.0;
        let (taken_percent, left_percent) = (percent(answer.taken_ppm), percent(answer.left_ppm()));
        let own_work_percent = percent(answer.own_work_ppm);
        let tasks = answer.tasks.into_iter().map(|answer| TaskReport::new(manifest, system, advice, answer));
        Self {
            hart: answer.hart,
            taken_percent,
            own_work_percent,
            left_percent,
            starved: answer.starved.iter().map(|guest| system.guests[*guest].name.clone()).collect(),
            tasks: tasks.collect(),
            streams: answer.streams,
            windows: answer.windows,
        }
    }

    /// Who may never run.
    fn starving(&self) -> Option<Problem> {
        let most_urgent = self.tasks.first().filter(|_| !self.starved.is_empty())?;
        let names = self.starved.join(" and ");
        Some(Problem {
            weight: Weight::Warning,
            line: most_urgent.line,
            message: format!(
                "{names} may starve on hart {}: the tasks of more urgent guests ask for all of it",
                self.hart
            ),
            help: "shorten executions, lengthen periods, or give it another hart".into(),
        })
    }
}

fn unknown(system: &System, why: Unknown) -> &'static str {
    match why {
        Unknown::Overload if system.has_windows() => {
            "it and those that it waits for ask for more than the windows of its guest give"
        }
        Unknown::Overload if system.waits_for_other_harts() => {
            "it and the more urgent, with what they wait for on other harts, ask for more than the hart has"
        }
        Unknown::Overload => "it and the more urgent ask for more than the hart has",
        Unknown::TooLong => {
            "it and the more urgent ask for all that the hart has, and no end of their work was found"
        }
    }
}

impl PartReport {
    fn new(system: &System, part: &Part) -> Self {
        let (what, jobs) = match part {
            Part::Own { jobs, .. } => ("own".into(), Some(*jobs)),
            Part::Task { guest, task, jobs, .. } => {
                let guest = &system.guests[*guest];
                (format!("{}/{}", guest.name, guest.tasks[*task].name), Some(*jobs))
            }
            Part::Switches { .. } => ("switches".into(), None),
            Part::Housework { .. } => ("housework".into(), None),
            Part::Moving { .. } => ("moving".into(), None),
            Part::Begun { .. } => ("begun".into(), None),
            Part::Grace { .. } => ("grace".into(), None),
            Part::Blocking { .. } => ("blocking".into(), None),
            Part::Outside { .. } => ("outside".into(), None),
            Part::Siblings { .. } => ("siblings".into(), None),
            Part::Jitter { .. } => ("jitter".into(), None),
        };
        Self { what, jobs, ns: part.ns() }
    }
}

impl TaskReport {
    fn new(manifest: &Manifest, system: &System, advice: &Advice, answer: Answer) -> Self {
        let guest = &system.guests[answer.guest];
        let task = &guest.tasks[answer.task];
        let (verdict, late_ns, why) = match answer.verdict {
            Verdict::Met => (VerdictKind::Met, None, None),
            Verdict::Missed { by_ns } => (VerdictKind::Missed, Some(by_ns), None),
            Verdict::Unbounded(why) => (VerdictKind::Unbounded, None, Some(unknown(system, why).to_owned())),
            Verdict::Unsaid(why) => (VerdictKind::Unsaid, None, Some(why)),
        };
        Self {
            guest: guest.name.clone(),
            task: task.name.clone(),
            line: manifest.tasks[answer.guest][answer.task].line,
            priority: task.priority,
            period_ns: task.period_ns,
            execution_ns: task.execution_ns,
            deadline_ns: task.deadline_ns,
            jitter_ns: task.jitter_ns,
            blocking_ns: task.blocking_ns,
            remote_blocking_ns: task.remote_blocking_ns,
            verdict,
            late_ns,
            why,
            response_ns: answer.response_ns,
            parts: answer.parts.iter().map(|part| PartReport::new(system, part)).collect(),
            advice: advice.get(&(answer.guest, answer.task)).cloned(),
        }
    }

    fn problem(&self) -> Option<Problem> {
        let name = format!("the task {} of {}", self.task, self.guest);
        let why = self.why.as_deref().unwrap_or_default();
        let (weight, message, help) = match self.verdict {
            VerdictKind::Met => return None,
            VerdictKind::Unsaid => (
                Weight::Warning,
                format!("of {name} nothing can be said: {why}"),
                "docs/manifest.md, \"Deadlines\", says what the analysis needs",
            ),
            VerdictKind::Unbounded => (
                Weight::Error,
                format!("{name} may be late without end: {why}"),
                "shorten executions, lengthen periods, or give its guest another hart, or more of this one",
            ),
            VerdictKind::Missed => (
                Weight::Error,
                format!(
                    "{name} may miss its deadline of {} us by {} us",
                    micros(self.deadline_ns),
                    micros(self.late_ns.unwrap_or_default())
                ),
                "make what bounds it, as the table says, shorter or less urgent, or its deadline later",
            ),
        };
        let help = match &self.advice {
            Some(advice) => format!("{advice}; or {help}").into(),
            None => help.into(),
        };
        Some(Problem { weight, line: self.line, message, help })
    }
}

/// Nanoseconds as microseconds, with one digit behind the point where that isn't 0. Rounded up: a bound stays one.
pub fn micros(ns: u64) -> String {
    let tenths = ns.div_ceil(100);
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        digit => format!("{}.{digit}", tenths / 10),
    }
}

/// A system as the analysis asks for it.
fn system(manifest: &Manifest) -> Result<System> {
    // By id, so that those count that come ahead of the board's.
    let (system, harts) = (&manifest.system, manifest.board.hart_ids().end);
    let name = &system.policy.preset;
    // Its times are in ticks of a clock that nobody has here.
    let policy = Policy::preset(name, 1, 1_000).ok_or_else(|| miette!("there is no policy {name:?}"))?;
    let priority = |guest: &ainori_manifest::config::Guest, hart: u32| {
        policy.priority(guest.priority, guest.priority_on(hart.into()))
    };
    let guests = system.guests.iter().zip(&manifest.tasks).enumerate().map(|(index, (guest, tasks))| Guest {
        name: guest.name.clone(),
        vcpus: guest.vcpus.iter().map(|vcpu| Vcpu { home: vcpu.home, harts: vcpu.harts }).collect(),
        has_devices: !guest.devices.is_empty(),
        has_channels: system.channels_of(index).next().is_some(),
        priorities: (0..harts).map(|hart| priority(guest, hart)).collect(),
        tasks: tasks.iter().map(task).collect(),
    });
    let guests: Vec<Guest> = guests.collect();
    let windows = system.windows.iter().map(|window| Window {
        hart: window.hart,
        guest: window.guest as usize,
        start_ns: u64::from(window.start_us) * 1_000,
        length_ns: u64::from(window.length_us) * 1_000,
    });
    let needs = manifest.needs();
    Ok(System {
        policy,
        frame_ns: u64::from(system.policy.frame_us) * 1_000,
        windows: windows.collect(),
        quantum_ns: u64::from(system.policy.quantum_us) * 1_000,
        grace_ns: u64::from(system.policy.grace_us) * 1_000,
        advance_ns: u64::from(system.policy.advance_us) * 1_000,
        harts,
        housekeeping_hart: relief::house(harts, &guests),
        is_traced: system.trace.records != 0,
        needs_other_build: needs.memory_modes
            || needs.without_h
            || needs.without_sstc
            || needs.more_uarts
            || needs.watchdogs
            || !Room::USUAL.holds(needs.room),
        guests,
    })
}

fn task(task: &ainori_manifest::Task) -> Task {
    Task {
        name: task.name.clone(),
        hart: task.hart,
        period_ns: task.period_us * 1_000,
        execution_ns: task.execution_us * 1_000,
        deadline_ns: task.deadline_us * 1_000,
        priority: task.priority,
        jitter_ns: task.jitter_us * 1_000,
        blocking_ns: task.blocking_us * 1_000,
        remote_blocking_ns: task.remote_blocking_us * 1_000,
        is_handler: task.is_handler,
    }
}
