//! The longest response of a task among others on one hart, or in its guest's windows there, under preemptive fixed priorities.
//!
//! Source: Lehoczky, "Fixed priority scheduling of periodic task sets with arbitrary deadlines" (RTSS 1990): all jobs of the longest busy
//! period have to be looked at where a deadline may be beyond the period. Tindell, Burns and Wellings, "An extendible approach for analysing
//! fixed priority hard real-time tasks" (Real-Time Systems 6, 1994): release jitter and blocking in it.

use crate::supply::Supply;

/// What one task asks of the hart. All times are in one unit, nanoseconds in the rest of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// The higher goes first. Equals may go in any order: each is taken to wait for all others.
    pub rank: u32,
    /// Least time between two arrivals. Not 0.
    pub period: u64,
    /// Most that a job takes of the hart, with what it costs to switch to it and back.
    pub cost: u64,
    /// When a job has to have ended, from its arrival. It may be beyond the period.
    pub deadline: u64,
    /// By how much a job may become ready later than it arrives.
    pub jitter: u64,
    /// For how long somebody of a lower rank may keep the hart from it, once in a busy period.
    pub blocking: u64,
}

/// The longest response of a task, and what it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worst {
    /// From the arrival of a job to its end.
    pub response: u64,
    /// From the start of the busy period to that end.
    pub window: u64,
    /// How many jobs of the task end in that window; the last one has the longest response.
    pub jobs: u64,
    /// For each of the loads: how many of its jobs are in the window. 0 for the task itself, and for those of lower ranks.
    pub others: Vec<u64>,
    /// How much of the window others have the hart, as it is theirs then.
    pub outside: u64,
}

/// Why the longest response isn't known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// The task and those of its rank or higher ask for more than there is: responses grow without end.
    Overload,
    /// The busy period is too long to look at all of its jobs ([`MAX_LOOKS`]). [`at_most`] may have a bound.
    TooLong,
}

/// For one task so many other tasks are looked at, in all steps of the iteration together, before it is given up: some hundredths of a second of the host.
pub const MAX_LOOKS: usize = 1 << 17;

/// The whole of a hart, in which shares of it are counted.
const WHOLE: u128 = 1 << 63;

/// What a load takes of the hart in the long run, rounded down.
fn share(load: &Load) -> u128 {
    u128::from(load.cost) * WHOLE / u128::from(load.period.max(1))
}

/// The same, rounded up.
fn share_at_most(load: &Load) -> u128 {
    (u128::from(load.cost) * WHOLE).div_ceil(u128::from(load.period.max(1)))
}

/// The loads whose jobs a task waits for.
fn ahead(loads: &[Load], task: usize) -> impl Iterator<Item = (usize, &Load)> {
    let rank = loads[task].rank;
    loads.iter().enumerate().filter(move |(index, load)| *index != task && load.rank >= rank)
}

/// Jobs of this load that can be ready in a window of this length.
fn jobs_in(load: &Load, window: u64) -> u64 {
    window.saturating_add(load.jitter).div_ceil(load.period.max(1))
}

/// What a task waits for, if jobs came in parts: never more than they take as a whole. It is where the search for a window begins, so that the search is short
/// where the hart is nearly full.
struct Fluid {
    /// What is there at the start.
    offset: u128,
    /// What is left of what there is of the hart.
    rest: u128,
}

impl Fluid {
    fn new(loads: &[Load], task: usize, supply: &Supply) -> Self {
        let taken: u128 = ahead(loads, task).map(|(_, load)| share(load)).sum();
        let late = |load: &Load| u128::from(load.jitter) * share(load) / WHOLE;
        let offset = ahead(loads, task).map(|(_, load)| late(load)).sum();
        Self { offset, rest: supply.share(WHOLE).saturating_sub(taken) }
    }

    /// A window that is no longer than that in which so much of the task's own is done.
    fn window(&self, own: u64) -> u64 {
        let asked = (u128::from(own) + self.offset).min(u64::MAX.into());
        (asked * WHOLE).checked_div(self.rest).map_or(0, |window| u64::try_from(window).unwrap_or(u64::MAX))
    }
}

/// The longest response of `loads[task]`, whatever the arrivals of all are, as long as they keep their periods and jitters. `supply` says what of the hart there is
/// for all these loads.
///
/// # Errors
/// If it isn't known.
///
/// # Panics
/// If there is no such task.
pub fn worst(loads: &[Load], task: usize, supply: &Supply) -> Result<Worst, Unknown> {
    let own = &loads[task];
    // Each share is rounded down, and what there is is rounded up, so this is certain.
    let there_is = WHOLE.min(supply.share(WHOLE) + 1);
    if share(own) + ahead(loads, task).map(|(_, load)| share(load)).sum::<u128>() > there_is {
        return Err(Unknown::Overload);
    }
    let fluid = Fluid::new(loads, task, supply);
    let mut looks = 0;
    let mut longest: Option<Worst> = None;
    let mut window = 0u64;
    let mut jobs = 1u64;
    loop {
        // The window in which so many jobs of the task end: its least fixed point.
        let fixed = own.blocking.saturating_add(own.cost.saturating_mul(jobs));
        let mut asked;
        window = window.max(fluid.window(fixed));
        loop {
            looks += loads.len() + supply.looks();
            if looks > MAX_LOOKS || window == u64::MAX {
                return Err(Unknown::TooLong);
            }
            let interference = ahead(loads, task)
                .map(|(_, load)| jobs_in(load, window).saturating_mul(load.cost))
                .fold(0, u64::saturating_add);
            asked = fixed.saturating_add(interference);
            let next = supply.wait(asked);
            if next == window {
                break;
            }
            window = next;
        }
        let ready = window.saturating_add(own.jitter);
        let response = ready - own.period.saturating_mul(jobs - 1).min(ready);
        if longest.as_ref().is_none_or(|longest| response > longest.response) {
            let mut others = vec![0; loads.len()];
            for (index, load) in ahead(loads, task) {
                others[index] = jobs_in(load, window);
            }
            longest = Some(Worst { response, window, jobs, others, outside: window - asked });
        }
        // The next job arrives when the busy period is over.
        if response <= own.period {
            return longest.ok_or(Unknown::TooLong);
        }
        jobs += 1;
        window = window.saturating_add(own.cost);
    }
}

/// A bound of the longest response that doesn't need a search: each of the others has one job more than its share of the window. `None` if the task and those ahead of it
/// may ask for all that there is.
///
/// Source: Bini and Baruah, "Efficient computation of response time bounds under fixed-priority scheduling" (RTNS 2007), here with jitter and blocking. The first
/// job has the longest of these bounds, as each later one arrives a period later and waits for at most a period more.
///
/// # Panics
/// If there is no such task.
#[must_use]
pub fn at_most(loads: &[Load], task: usize, supply: &Supply) -> Option<u64> {
    let own = &loads[task];
    let taken: u128 = ahead(loads, task).map(|(_, load)| share_at_most(load)).sum();
    let there_is = supply.share(WHOLE);
    if taken + share_at_most(own) > there_is {
        return None;
    }
    let late = |load: &Load| (u128::from(load.jitter) * share_at_most(load)).div_ceil(WHOLE);
    let others: u128 = ahead(loads, task).map(|(_, load)| u128::from(load.cost) + late(load)).sum();
    // In a window of length w there is at least its share of what is behind the delay.
    let delayed = (u128::from(supply.delay()) * (there_is + 1)).div_ceil(WHOLE);
    let asked = u128::from(own.blocking) + u128::from(own.cost) + others + delayed;
    let window = asked.checked_mul(WHOLE)?.div_ceil(there_is - taken);
    u64::try_from(window + u128::from(own.jitter)).ok()
}
