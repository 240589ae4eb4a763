//! The answer for a system: what each task's longest response is, what bounds it, and what is left of each hart.
use crate::costs::{Costs, Paths};
use crate::limits;
use crate::response::{Load, Unknown, Worst, at_most, worst};
use crate::schedule::{Slot, Stream, Timetable};
use crate::system::{System, Task};
use std::collections::BTreeMap;

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
    /// No bound is known.
    Unbounded(Unknown),
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
        /// Nanoseconds of all these jobs, and of their waiting for somebody on another hart.
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
    /// The hart is other guests', or nobody's: outside of its windows, and while one begins.
    Outside {
        /// Nanoseconds.
        ns: u64,
    },
    /// Another vCPU of its guest, or of a more urgent one, may be waited for, as tasks declare it, and isn't running: it is outside of its own windows, or others have its hart.
    Siblings {
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
            | Self::Outside { ns }
            | Self::Siblings { ns }
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
    /// The longest time from a job's arrival to its end, in nanoseconds, if a bound is known.
    pub response_ns: Option<u64>,
    /// What that is made of, the largest part first. The sum is the response, and a period more for each job of its own before the last: these arrived so much earlier. Empty if
    /// no bound is known, or only a coarse one, as the busy period is too long to be looked at ([`at_most`]).
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
    /// What of that the hypervisor's own work may take (housework, moving vCPUs), in millionths of the hart.
    pub own_work_ppm: u64,
    /// The guests without tasks there, by their index, for whom nothing may be left: they wait for those who ask for all.
    pub starved: Vec<usize>,
    /// The jobs of each task, in the order of [`Self::tasks`], for a picture of them.
    pub streams: Vec<Stream>,
    /// The hart's windows in time, for that picture.
    pub windows: Timetable,
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
    let asked = Asked { system, paths, mips };
    let mut known = Known::new();
    (0..system.harts).filter(has_tasks).map(|hart| on_hart(asked, hart, &mut known)).collect()
}

/// How long tasks take that keep others' vCPUs from a hart, by guest and place among its tasks; `None` if no bound is known. Each is asked for once, however many wait for it.
type Known = BTreeMap<(usize, usize), Option<u64>>;

/// A system on harts of a speed.
#[derive(Clone, Copy)]
struct Asked<'a> {
    system: &'a System,
    paths: &'a Paths,
    mips: u32,
}

impl Asked<'_> {
    /// What the hypervisor takes on a hart for a guest of this priority there.
    fn costs(self, hart: u32, priority: u8) -> Costs {
        self.paths.on(self.system, hart, priority, self.mips)
    }
}

/// A task, and where it stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    guest: usize,
    index: usize,
    task: &'a Task,
    rank: u32,
    /// What the hypervisor takes there for the task's guest.
    costs: Costs,
    /// For how long it may hold the hart while it is blocked: who blocks it runs on another hart meanwhile, and it spins. (Blocked on this hart it takes nothing from the others, as that
    /// one's job runs.) One that slept instead would find others at something when it wakes, in each job, and no term has that: whoever declares such a wait says that it spins.
    spins_ns: u64,
    /// What the ends of its guest's turns take for each job, if that shares them with others of its priority, and not by the clock ([`boundaries`]).
    turns_ns: u64,
    /// How much of each frame who blocks it may be outside of its windows on another hart, while it is inside here.
    forsaken_ns: u64,
}

impl<'a> Place<'a> {
    fn new(asked: Asked<'a>, guest: usize, index: usize) -> Self {
        let system = asked.system;
        let of = &system.guests[guest];
        let task = &of.tasks[index];
        let hart = task.hart;
        let is_spread = of.vcpus.iter().any(|vcpu| vcpu.home != hart);
        let spins_ns = if is_spread { task.remote_blocking_ns.min(task.blocking_ns) } else { 0 };
        let costs = asked.costs(hart, of.priority_on(hart));
        let turns_ns = if shares_turns(system, guest, hart) && !system.policy.co_schedules() {
            // A guest that wakes has a whole turn, so it comes to the end of one for each quantum that it has had the hart.
            let has_ns =
                task.execution_ns.saturating_add(spins_ns).saturating_add(costs.job_ns + costs.switches_ns);
            let ends_ns = u128::from(has_ns) * u128::from(costs.switches_ns);
            u64::try_from(ends_ns.div_ceil(system.quantum_ns.max(1).into())).unwrap_or(u64::MAX)
        } else {
            0
        };
        Self {
            guest,
            index,
            task,
            // The guest's priority on the hart decides first, then the task's within the guest.
            rank: u32::from(of.priority_on(hart)) << u8::BITS | u32::from(task.priority),
            costs,
            spins_ns,
            turns_ns,
            forsaken_ns: forsaken_ns(asked, hart, guest),
        }
    }

    /// What the task itself asks of the hart.
    ///
    /// From the arrival of a job until its end its guest is awake, so all jobs of that guest that arrive meanwhile, or that are still there, cost it one switch together. Those
    /// before it are no part of the busy period: while more urgent guests have the hart, no job of this guest begins and ends. So the switch is a part of what
    /// the task itself waits for, once, as is what blocks it on this hart: less urgent tasks begin nothing in the busy period. Those on other harts do, so each of its jobs may wait for them.
    fn own_load(&self) -> Load {
        let (task, costs) = (self.task, &self.costs);
        let blocking =
            [task.blocking_ns - self.spins_ns, costs.blocking_ns, costs.grace_ns, costs.switches_ns];
        Load {
            rank: self.rank,
            period: task.period_ns,
            cost: task.execution_ns.saturating_add(costs.job_ns).saturating_add(self.spins_ns),
            deadline: task.deadline_ns,
            jitter: task.jitter_ns,
            blocking: blocking.into_iter().fold(0, u64::saturating_add),
        }
    }

    /// What it asks in the eyes of other guests.
    ///
    /// Each job may find its guest asleep. The hart may be taken from others so much ahead of the job's
    /// arrival as `advance_ns` says, and waits for it then: that is a part of the cost. So a job counts as arriving so much earlier, with that as jitter, as it isn't
    /// taken ahead if there is nobody to take it from.
    fn load(&self) -> Load {
        let load = self.own_load();
        Load {
            cost: load.cost.saturating_add(self.switches_ns()),
            jitter: load.jitter.saturating_add(self.costs.advance_ns),
            ..load
        }
    }

    /// What the switches take that a job may cost other guests: to its guest and back, and where its turn among equals ends.
    fn switches_ns(&self) -> u64 {
        self.costs.switches_ns.saturating_add(self.turns_ns)
    }

    /// What it asks in the eyes of another one, or in its own: those of its guest find that awake.
    fn load_for(&self, other: &Self) -> Load {
        if self.guest == other.guest { self.own_load() } else { self.load() }
    }

    /// The answer where no bound is known.
    fn without_bound(&self, verdict: Verdict) -> Answer {
        self.answer(verdict, None, Vec::new())
    }

    fn answer(&self, verdict: Verdict, response_ns: Option<u64>, parts: Vec<Part>) -> Answer {
        Answer { guest: self.guest, task: self.index, verdict, response_ns, parts }
    }
}

/// All tasks on a hart, the most urgent first.
fn places_on(asked: Asked<'_>, hart: u32) -> Vec<Place<'_>> {
    let mut places: Vec<Place<'_>> = Vec::new();
    for (index, guest) in asked.system.guests.iter().enumerate() {
        places.extend(guest.tasks_on(hart).map(|(place, _)| Place::new(asked, index, place)));
    }
    places.sort_by_key(|place| core::cmp::Reverse(place.rank));
    places
}

fn on_hart(asked: Asked<'_>, hart: u32, known: &mut Known) -> HartAnswer {
    let system = asked.system;
    let places = places_on(asked, hart);
    // What is the same for all tasks of a guest: why nothing can be said of them, or what keeps vCPUs from other harts while they wait.
    let mut of_guests = BTreeMap::new();
    for guest in places.iter().map(|place| place.guest) {
        of_guests.entry(guest).or_insert_with(|| match limits::reason(system, guest, hart) {
            Some(why) => Err(Verdict::Unsaid(why)),
            None => absences(asked, hart, guest, known).ok_or(Verdict::Unbounded(Unknown::Overload)),
        });
    }
    let tasks = places
        .iter()
        .map(|place| match &of_guests[&place.guest] {
            Ok(absences) => answer(system, hart, place, &places, absences),
            Err(verdict) => place.without_bound(verdict.clone()),
        })
        .collect();
    // The hypervisor's own work as whoever is least urgent there meets it: that is what is taken from those without tasks.
    let least = system.least_at_home(hart).unwrap_or_default();
    let costs = asked.costs(hart, least);
    let own = own_work(&costs).map(|(_, load)| load);
    let taken_ppm = if system.has_windows() {
        taken_by_windows_ppm(system, hart, &own, costs.opening_ns)
    } else {
        taken_ppm(&places, &own, &boundaries(system, hart, places.iter()))
    };
    let is_taken = system.has_priorities() && taken_ppm >= MILLION;
    HartAnswer {
        hart,
        tasks,
        taken_ppm,
        own_work_ppm: u64::try_from(share_of(&own)).unwrap_or(u64::MAX),
        starved: if is_taken { system.below_all_tasks(hart).collect() } else { Vec::new() },
        streams: places.iter().map(stream).collect(),
        windows: timetable(system, hart),
    }
}

/// What keeps vCPUs from other harts while tasks on this one wait for them, the guest's own or those of guests ahead of it: nothing is done here meanwhile. That is all that those do who are more urgent
/// there, and what the hypervisor does beside these of its own, which makes that longer; what it does beside the one that is waited for is a part of what tasks declare. `None` if no bound is known of that. Who
/// these are may not wait so themselves ([`limits`]), so one step is enough.
fn absences(asked: Asked<'_>, hart: u32, guest: usize, known: &mut Known) -> Option<Vec<Load>> {
    let system = asked.system;
    let mut loads = Vec::new();
    if system.has_windows() {
        return Some(loads);
    }
    for waiting in system.waiting(guest, hart) {
        for home in system.siblings(waiting, hart).map(|sibling| sibling.home) {
            let ahead: Vec<usize> = system.ahead_of(waiting, home).collect();
            let Some(least) = ahead.iter().map(|other| system.guests[*other].priority_on(home)).min() else {
                continue;
            };
            loads.extend(own_work(&asked.costs(home, least)).map(|(_, load)| load));
            let places = places_on(asked, home);
            for place in places.iter().filter(|place| ahead.contains(&place.guest)) {
                // When a wait begins here there may be a job that arrived as long ago as its longest response.
                let response = *known
                    .entry((place.guest, place.index))
                    .or_insert_with(|| answer(system, home, place, &places, &[]).response_ns);
                let response = response?;
                let load = place.load();
                let (cost, jitter) = (load.cost, load.jitter.saturating_add(response));
                loads.push(Load { jitter, ..comes_between(load.period, cost) });
            }
        }
    }
    Some(loads)
}

/// Does a guest take turns on a hart with another one of its priority?
fn shares_turns(system: &System, guest: usize, hart: u32) -> bool {
    system.has_priorities() && system.has_equal(guest, hart)
}

/// Where turns end by the clock (co-scheduling): a switch at each quantum's end, if some of these tasks are of guests that take turns. It is as often as that, however little of a turn such a guest has had, as
/// more urgent ones may have had the rest.
fn boundaries<'a, 'b: 'a>(system: &System, hart: u32, places: impl Iterator<Item = &'a Place<'b>>) -> Load {
    let sharing = places
        .filter(|place| system.policy.co_schedules() && shares_turns(system, place.guest, hart))
        .map(|place| place.costs.switches_ns);
    comes_between(system.quantum_ns, sharing.max().unwrap_or_default())
}

/// How much of each frame a guest with several vCPUs has a hart while one of them is outside of its windows on another hart. If that one holds a lock, say, all that the guest's
/// tasks do here is to wait for it. 0 if no task of the guest ever waits so, or the hart has no windows.
fn forsaken_ns(asked: Asked<'_>, hart: u32, guest: usize) -> u64 {
    let system = asked.system;
    let own = &system.guests[guest];
    if !system.has_windows() || own.tasks.iter().all(|task| task.remote_blocking_ns == 0) {
        return 0;
    }
    let supply = |hart: u32| {
        let opening_ns = asked.costs(hart, own.priority_on(hart)).opening_ns;
        system.supply(guest, hart, opening_ns)
    };
    let Some(here) = supply(hart) else { return 0 };
    let homes = own.vcpus.iter().map(|vcpu| vcpu.home).filter(|home| *home != hart);
    match homes.map(supply).collect::<Option<Vec<_>>>() {
        Some(elsewhere) => here.without(&elsewhere),
        // One of them never runs.
        None => system.frame_ns,
    }
}

/// Where a hart has windows in time, the guests without tasks have theirs, and the hypervisor's work may be in these.
fn taken_by_windows_ppm(system: &System, hart: u32, own: &[Load], opening_ns: u64) -> u64 {
    let without =
        (0..system.guests.len()).filter(|guest| system.guests[*guest].tasks_on(hart).next().is_none());
    let theirs = without.filter_map(|guest| system.supply(guest, hart, opening_ns));
    let theirs: u128 = theirs.map(|supply| supply.share(MILLION.into())).sum();
    MILLION - u64::try_from(theirs.saturating_sub(share_of(own))).unwrap_or(MILLION).min(MILLION)
}

/// What so much in each period is of the hart, in millionths.
fn share(ns: u64, period: u64) -> u128 {
    (u128::from(ns) * u128::from(MILLION)).div_ceil(u128::from(period.max(1)))
}

/// What these take of the hart together, in millionths.
fn share_of(loads: &[Load]) -> u128 {
    loads.iter().map(|load| share(load.cost, load.period)).sum()
}

/// The windows of a hart, for a picture.
fn timetable(system: &System, hart: u32) -> Timetable {
    let here = system.windows.iter().filter(|window| window.hart == hart);
    Timetable {
        frame: if system.has_windows() { system.frame_ns } else { 0 },
        windows: here
            .map(|window| Slot {
                guest: window.guest,
                from: window.start_ns,
                to: window.start_ns + window.length_ns,
            })
            .collect(),
    }
}

/// What all tasks on a hart and the hypervisor take at most in the long run, in millionths of the hart.
fn taken_ppm(places: &[Place<'_>], own: &[Load], boundary: &Load) -> u64 {
    let jobs: u128 = places.iter().map(|place| share(place.own_load().cost, place.task.period_ns)).sum();
    let own = share_of(own);
    let switches: u128 = places.iter().map(|place| share(place.switches_ns(), place.task.period_ns)).sum();
    let switches = switches + share(boundary.cost, boundary.period);
    // A guest is switched to if it has slept, which it does only in time that its jobs leave over.
    let asked = jobs + own;
    let taken = asked + switches.min(u128::from(MILLION).saturating_sub(asked));
    u64::try_from(taken).unwrap_or(u64::MAX)
}

fn stream(place: &Place<'_>) -> Stream {
    Stream {
        rank: place.rank,
        period: place.task.period_ns,
        cost: place.task.execution_ns.saturating_add(place.costs.job_ns),
        guest: place.guest,
        switch: place.costs.switches_ns,
    }
}

/// Why something comes between that is no task of the hart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    /// As [`Part::Housework`].
    Housework,
    /// As [`Part::Moving`].
    Moving,
    /// As [`Part::Siblings`].
    Siblings,
    /// A turn of others ends by the clock ([`boundaries`]): a part of [`Part::Switches`].
    TurnEnds,
}

/// What comes between at any time, so much in each period.
fn comes_between(period: u64, cost: u64) -> Load {
    Load { rank: u32::MAX, period, cost, deadline: u64::MAX, jitter: 0, blocking: 0 }
}

/// Work of the hypervisor's own: housework, and moving vCPUs. One of which there is none has a cost of 0.
fn own_work(costs: &Costs) -> [(Between, Load); 2] {
    [
        (Between::Housework, comes_between(costs.housework_period_ns, costs.housework_ns)),
        (Between::Moving, comes_between(costs.retry_period_ns, costs.retry_ns)),
    ]
}

fn answer(system: &System, hart: u32, place: &Place<'_>, places: &[Place<'_>], absences: &[Load]) -> Answer {
    let Some(supply) = system.supply(place.guest, hart, place.costs.opening_ns) else {
        return place.without_bound(Verdict::Unbounded(Unknown::Overload));
    };
    // In its windows a guest's tasks wait for each other only.
    let is_met = |other: &Place<'_>| !system.has_windows() || other.guest == place.guest;
    let places: Vec<Place<'_>> = places.iter().copied().filter(is_met).collect();
    let above = places.iter().filter(|other| other.rank > place.rank && other.guest != place.guest);
    let mut between = Vec::from(own_work(&place.costs));
    between.push((Between::Siblings, comes_between(system.frame_ns, place.forsaken_ns)));
    between.push((Between::TurnEnds, boundaries(system, hart, above)));
    between.extend(absences.iter().map(|load| (Between::Siblings, *load)));
    let of_tasks = places.iter().map(|other| other.load_for(place));
    let loads: Vec<Load> = of_tasks.chain(between.iter().map(|(_, load)| *load)).collect();
    let found = places.iter().position(|other| (other.guest, other.index) == (place.guest, place.index));
    let own = found.unwrap_or_default();
    let (response, parts) = match worst(&loads, own, &supply) {
        Ok(worst) => (worst.response, parts(place, &places, &between, &worst)),
        Err(why @ Unknown::Overload) => return place.without_bound(Verdict::Unbounded(why)),
        Err(why @ Unknown::TooLong) => match at_most(&loads, own, &supply) {
            Some(response) => (response, Vec::new()),
            None => return place.without_bound(Verdict::Unbounded(why)),
        },
    };
    let by_ns = response.saturating_sub(place.task.deadline_ns);
    let verdict = if by_ns == 0 { Verdict::Met } else { Verdict::Missed { by_ns } };
    place.answer(verdict, Some(response), parts)
}

/// What the longest response is made of: `worst` is about the loads of all places, and behind them those of what comes between.
fn parts(place: &Place<'_>, places: &[Place<'_>], between: &[(Between, Load)], worst: &Worst) -> Vec<Part> {
    let (task, costs) = (place.task, &place.costs);
    let (of_tasks, of_between) = worst.others.split_at(places.len());
    let others = places.iter().zip(of_tasks).filter(|(_, jobs)| **jobs > 0);
    let all_jobs = worst.jobs + others.clone().map(|(_, jobs)| jobs).sum::<u64>();
    let of_others = others.clone().filter(|(other, _)| other.guest != place.guest);
    let of_others: u64 = of_others.map(|(other, jobs)| other.switches_ns() * jobs).sum();
    let ns_of = |why: Between| -> u64 {
        let loads = between.iter().zip(of_between).filter(|((other, _), _)| *other == why);
        loads.map(|((_, load), jobs)| load.cost * jobs).sum()
    };
    let mut parts = vec![
        Part::Own { jobs: worst.jobs, ns: task.execution_ns * worst.jobs },
        Part::Switches {
            ns: costs.switches_ns + of_others + costs.job_ns * all_jobs + ns_of(Between::TurnEnds),
        },
        Part::Housework { ns: ns_of(Between::Housework) },
        Part::Moving { ns: ns_of(Between::Moving) },
        Part::Begun { ns: costs.blocking_ns },
        Part::Grace { ns: costs.grace_ns },
        Part::Blocking { ns: task.blocking_ns - place.spins_ns + place.spins_ns * worst.jobs },
        Part::Outside { ns: worst.outside },
        Part::Siblings { ns: ns_of(Between::Siblings) },
        Part::Jitter { ns: task.jitter_ns },
    ];
    parts.extend(others.map(|(other, jobs)| Part::Task {
        guest: other.guest,
        task: other.index,
        jobs: *jobs,
        ns: (other.task.execution_ns + other.spins_ns) * jobs,
    }));
    parts.retain(|part| part.ns() > 0);
    parts.sort_by_key(|part| core::cmp::Reverse(part.ns()));
    parts
}
