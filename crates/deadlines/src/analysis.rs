//! The answer for a system: what each task's longest response is, what bounds it, and what is left of each hart.
use crate::costs::{Costs, Paths};
use crate::limits;
use crate::response::{Load, Unbounded, Worst, worst};
use crate::system::{Guest, System, Task};

/// What is known of a task's deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// No job ends later.
    Met,
    /// A job may end so many nanoseconds later: there is no proof that none does.
    Missed {
        /// By how much, in nanoseconds.
        by_ns: u64,
    },
    /// There is no bound.
    Unbounded(Unbounded),
    /// The analysis doesn't hold for this system, for a reason in words.
    Unsaid(String),
}

/// What the longest response is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The task computes, in so many jobs.
    Own {
        /// How many of its jobs are in the busy period up to the one with the longest response.
        jobs: u64,
        /// Nanoseconds.
        ns: u64,
    },
    /// A more urgent one does, or one as urgent.
    Task {
        /// Index of its guest.
        guest: usize,
        /// Its place among that guest's tasks.
        task: usize,
        /// How often.
        jobs: u64,
        /// Nanoseconds of all these jobs.
        ns: u64,
    },
    /// The hypervisor switches between guests.
    Switches {
        /// Nanoseconds.
        ns: u64,
    },
    /// The hypervisor's own slow work.
    Housework {
        /// Nanoseconds.
        ns: u64,
    },
    /// The policy looks for other harts for those that are kept waiting.
    Moving {
        /// Nanoseconds.
        ns: u64,
    },
    /// The hypervisor is at something that it has begun before.
    Begun {
        /// Nanoseconds.
        ns: u64,
    },
    /// The policy defers the preemption of a less urgent guest.
    Grace {
        /// Nanoseconds.
        ns: u64,
    },
    /// Less urgent tasks of the same guest, as the task declares it.
    Blocking {
        /// Nanoseconds.
        ns: u64,
    },
    /// It becomes ready later than it arrives, as the task declares it.
    Jitter {
        /// Nanoseconds.
        ns: u64,
    },
}

impl Part {
    /// Nanoseconds.
    #[must_use]
    pub fn ns(&self) -> u64 {
        match self {
            Self::Own { ns, .. }
            | Self::Task { ns, .. }
            | Self::Switches { ns }
            | Self::Housework { ns }
            | Self::Moving { ns }
            | Self::Begun { ns }
            | Self::Grace { ns }
            | Self::Blocking { ns }
            | Self::Jitter { ns } => *ns,
        }
    }
}

/// The answer for one task.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Index of its guest.
    pub guest: usize,
    /// Its place among that guest's tasks.
    pub task: usize,
    /// Whether it keeps its deadline.
    pub verdict: Verdict,
    /// The longest time from a job's arrival to its end, in nanoseconds, if there is a bound.
    pub response_ns: Option<u64>,
    /// What that is made of, the largest part first; empty if there is no bound. The sum is the response, and a period more for each job of its own
    /// before the last: these arrived so much earlier.
    pub parts: Vec<Part>,
}

/// The answer for one hart.
#[derive(Debug, Clone)]
pub struct HartAnswer {
    /// Its id.
    pub hart: u32,
    /// Its tasks, the most urgent first.
    pub tasks: Vec<Answer>,
    /// What its tasks and the hypervisor take at most in the long run, in millionths of the hart. More than a million if they ask for too much.
    pub taken_ppm: u64,
    /// What each task asks of the hart, with the hypervisor's switches, in the order of [`Self::tasks`].
    pub loads: Vec<Load>,
}

impl HartAnswer {
    /// What is left for guests without tasks, in millionths of the hart.
    #[must_use]
    pub fn left_ppm(&self) -> u64 {
        MILLION.saturating_sub(self.taken_ppm)
    }
}

/// Parts of a whole.
const MILLION: u64 = 1_000_000;

/// Answers for all tasks of a system; `mips` is the speed of its harts in millions of instructions per second, not 0.
#[must_use]
pub fn analyse(system: &System, paths: &Paths, mips: u32) -> Vec<HartAnswer> {
    let has_tasks = |hart: &u32| system.guests.iter().any(|guest| guest.tasks_on(*hart).next().is_some());
    (0..system.harts).filter(has_tasks).map(|hart| on_hart(system, paths, mips, hart)).collect()
}

/// A task, and where it stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    guest: usize,
    index: usize,
    task: &'a Task,
    rank: u32,
}

/// The guest's priority on the hart decides first, then the task's within the guest.
fn rank(guest: &Guest, task: &Task) -> u32 {
    u32::from(guest.priority_on(task.hart)) << u8::BITS | u32::from(task.priority)
}

fn on_hart(system: &System, paths: &Paths, mips: u32, hart: u32) -> HartAnswer {
    let mut places: Vec<Place<'_>> = Vec::new();
    for (index, guest) in system.guests.iter().enumerate() {
        let tasks = guest.tasks_on(hart);
        places.extend(tasks.map(|(place, task)| Place {
            guest: index,
            index: place,
            task,
            rank: rank(guest, task),
        }));
    }
    places.sort_by_key(|place| core::cmp::Reverse(place.rank));
    let costs = |guest: usize| paths.on(system, hart, system.guests[guest].priority_on(hart), mips);
    let tasks = places
        .iter()
        .map(|place| match limits::reason(system, place.guest, hart) {
            Some(why) => Answer {
                guest: place.guest,
                task: place.index,
                verdict: Verdict::Unsaid(why),
                response_ns: None,
                parts: Vec::new(),
            },
            None => answer(place, &places, &costs(place.guest)),
        })
        .collect();
    let loads: Vec<Load> = places.iter().map(|place| load(place, &costs(place.guest))).collect();
    // As the least urgent tasks meet it, which is at least what the others do.
    let own = places.last().map(|last| own_work(&costs(last.guest)));
    let share =
        |load: &Load| (u128::from(load.cost) * u128::from(MILLION)).div_ceil(u128::from(load.period.max(1)));
    let taken: u128 = loads.iter().chain(own.iter().flatten()).map(share).sum();
    HartAnswer { hart, tasks, taken_ppm: u64::try_from(taken).unwrap_or(u64::MAX), loads }
}

/// What a task asks of the hart, in the eyes of other guests.
///
/// Each job may find its guest asleep. The hart may be taken from others so much ahead of the job's arrival as `advance_ns` says, and waits for it then: that is
/// a part of the cost. So a job counts as arriving so much earlier, with that as jitter, as it isn't taken ahead if there is nobody to take it from.
fn load(place: &Place<'_>, costs: &Costs) -> Load {
    let load = load_within(place, costs);
    Load {
        cost: load.cost.saturating_add(costs.switches_ns),
        jitter: load.jitter.saturating_add(costs.advance_ns),
        ..load
    }
}

/// What a task asks of the hart, in the eyes of tasks of its own guest.
///
/// From the arrival of a job until its end its guest is awake, so all jobs of that guest that arrive meanwhile, or that are still there, cost it one switch together. Those
/// before it are no part of the busy period: while more urgent guests have the hart, no job of this guest begins and ends. So the switch is a part of what
/// the task itself waits for, once, as is what blocks it.
fn load_within(place: &Place<'_>, costs: &Costs) -> Load {
    let task = place.task;
    let blocking = [task.blocking_ns, costs.blocking_ns, costs.grace_ns, costs.switches_ns];
    Load {
        rank: place.rank,
        period: task.period_ns,
        cost: task.execution_ns.saturating_add(costs.job_ns),
        deadline: task.deadline_ns,
        jitter: task.jitter_ns,
        blocking: blocking.into_iter().fold(0, u64::saturating_add),
    }
}

/// Work of the hypervisor's own that comes between at any time: housework, and moving vCPUs. One of which there is none has a cost of 0.
fn own_work(costs: &Costs) -> [Load; 2] {
    let load =
        |period, cost| Load { rank: u32::MAX, period, cost, deadline: u64::MAX, jitter: 0, blocking: 0 };
    [load(costs.housework_period_ns, costs.housework_ns), load(costs.retry_period_ns, costs.retry_ns)]
}

fn answer(place: &Place<'_>, places: &[Place<'_>], costs: &Costs) -> Answer {
    let seen = |other: &Place<'_>| {
        if other.guest == place.guest { load_within(other, costs) } else { load(other, costs) }
    };
    let mut loads: Vec<Load> = places.iter().map(seen).collect();
    loads.extend(own_work(costs));
    let found = places.iter().position(|other| (other.guest, other.index) == (place.guest, place.index));
    let own = found.unwrap_or_default();
    match worst(&loads, own) {
        Err(why) => Answer {
            guest: place.guest,
            task: place.index,
            verdict: Verdict::Unbounded(why),
            response_ns: None,
            parts: Vec::new(),
        },
        Ok(worst) => {
            let response = worst.response;
            let by_ns = response.saturating_sub(place.task.deadline_ns);
            Answer {
                guest: place.guest,
                task: place.index,
                verdict: if by_ns == 0 { Verdict::Met } else { Verdict::Missed { by_ns } },
                response_ns: Some(response),
                parts: parts(place, places, costs, &worst),
            }
        }
    }
}

fn parts(place: &Place<'_>, places: &[Place<'_>], costs: &Costs, worst: &Worst) -> Vec<Part> {
    let task = place.task;
    let others = places.iter().zip(&worst.others).filter(|(_, jobs)| **jobs > 0);
    let all_jobs = worst.jobs + others.clone().map(|(_, jobs)| jobs).sum::<u64>();
    let of_others = others.clone().filter(|(other, _)| other.guest != place.guest);
    let switches = 1 + of_others.map(|(_, jobs)| jobs).sum::<u64>();
    // Behind those of the tasks is what the hypervisor does of its own.
    let own = |place: usize| worst.others.get(places.len() + place).copied().unwrap_or_default();
    let mut parts = vec![
        Part::Own { jobs: worst.jobs, ns: task.execution_ns * worst.jobs },
        Part::Switches { ns: costs.switches_ns * switches + costs.job_ns * all_jobs },
        Part::Housework { ns: costs.housework_ns * own(0) },
        Part::Moving { ns: costs.retry_ns * own(1) },
        Part::Begun { ns: costs.blocking_ns },
        Part::Grace { ns: costs.grace_ns },
        Part::Blocking { ns: task.blocking_ns },
        Part::Jitter { ns: task.jitter_ns },
    ];
    parts.extend(others.map(|(other, jobs)| Part::Task {
        guest: other.guest,
        task: other.index,
        jobs: *jobs,
        ns: other.task.execution_ns * jobs,
    }));
    parts.retain(|part| part.ns() > 0);
    parts.sort_by_key(|part| core::cmp::Reverse(part.ns()));
    parts
}
