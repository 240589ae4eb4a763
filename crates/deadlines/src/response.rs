//! The longest response of a task among others on one hart, under preemptive fixed priorities.
//!
//! Source: Lehoczky, "Fixed priority scheduling of periodic task sets with arbitrary deadlines" (RTSS 1990): all jobs of the longest busy
//! period have to be looked at where a deadline may be beyond the period. Tindell, Burns and Wellings, "An extendible approach for analysing
//! fixed priority hard real-time tasks" (Real-Time Systems 6, 1994): release jitter and blocking in it.

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
}

/// Why a task has no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unbounded {
    /// It and those of its rank or higher ask for more than there is: responses grow without end.
    Overload,
    /// They ask for nearly all there is, and no end of the busy period was found in [`MAX_STEPS`].
    Endless,
}

/// So many steps of the iteration are made for one task before it is given up. A step is one look at all tasks, so this takes a moment at
/// most. Whoever has so long a busy period uses the hart to within a millionth.
pub const MAX_STEPS: u32 = 100_000;

/// The loads whose jobs a task waits for.
fn ahead(loads: &[Load], task: usize) -> impl Iterator<Item = (usize, &Load)> {
    let rank = loads[task].rank;
    loads.iter().enumerate().filter(move |(index, load)| *index != task && load.rank >= rank)
}

/// Do the task and all ahead of it ask for more than the hart has? Each share is rounded down, so a yes is certain.
fn is_overload(loads: &[Load], task: usize) -> bool {
    const WHOLE: u128 = 1 << 63;
    let share = |load: &Load| u128::from(load.cost) * WHOLE / u128::from(load.period.max(1));
    share(&loads[task]) + ahead(loads, task).map(|(_, load)| share(load)).sum::<u128>() > WHOLE
}

/// Jobs of this load that can be ready in a window of this length.
fn jobs_in(load: &Load, window: u64) -> u64 {
    window.saturating_add(load.jitter).div_ceil(load.period.max(1))
}

/// The longest response of `loads[task]`, whatever the arrivals of all are, as long as they keep their periods and jitters.
///
/// # Errors
/// If there is no bound.
///
/// # Panics
/// If there is no such task.
pub fn worst(loads: &[Load], task: usize) -> Result<Worst, Unbounded> {
    let own = &loads[task];
    if is_overload(loads, task) {
        return Err(Unbounded::Overload);
    }
    let mut steps = 0;
    let mut longest: Option<Worst> = None;
    let mut window = own.blocking.saturating_add(own.cost);
    let mut jobs = 1u64;
    loop {
        // The window in which so many jobs of the task end: its least fixed point.
        let fixed = own.blocking.saturating_add(own.cost.saturating_mul(jobs));
        loop {
            steps += 1;
            if steps > MAX_STEPS || window == u64::MAX {
                return Err(Unbounded::Endless);
            }
            let interference = ahead(loads, task)
                .map(|(_, load)| jobs_in(load, window).saturating_mul(load.cost))
                .fold(0, u64::saturating_add);
            let next = fixed.saturating_add(interference);
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
            longest = Some(Worst { response, window, jobs, others });
        }
        // The next job arrives when the busy period is over.
        if response <= own.period {
            return longest.ok_or(Unbounded::Endless);
        }
        jobs += 1;
        window = window.saturating_add(own.cost);
    }
}
