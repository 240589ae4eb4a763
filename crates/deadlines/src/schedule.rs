//! Who runs when, if all tasks arrive at once and each job takes its whole cost: the busiest start. For pictures, and to test the analysis against.
use crate::response::Load;

/// A stretch of time in which one task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Index of its load.
    pub task: usize,
    /// In the unit of the loads, from the common arrival.
    pub from: u64,
    /// When somebody else runs, or nobody.
    pub to: u64,
}

/// What came of a synchronous start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// In the order of time. What is between them is idle.
    pub slices: Vec<Slice>,
    /// The longest response of each task's jobs that have ended.
    pub longest: Vec<u64>,
    /// Jobs of each task that have ended.
    pub ended: Vec<u64>,
}

/// Most slices: more than any picture can show.
pub const MAX_SLICES: usize = 1 << 20;

/// Runs all tasks from their common arrival until `end`, or for [`MAX_SLICES`]. Jitter and blocking are left out: they are what may come on top.
#[must_use]
pub fn synchronous(loads: &[Load], end: u64) -> Schedule {
    let mut jobs: Vec<Jobs> = loads.iter().map(|load| Jobs { next: 0, left: load.cost, first: 0 }).collect();
    let mut order: Vec<usize> = (0..loads.len()).collect();
    // Equals in the order in which they are declared.
    order.sort_by_key(|index| core::cmp::Reverse(loads[*index].rank));
    let mut schedule =
        Schedule { slices: Vec::new(), longest: vec![0; loads.len()], ended: vec![0; loads.len()] };
    let mut now = 0;
    while now < end && schedule.slices.len() < MAX_SLICES {
        for (state, load) in jobs.iter_mut().zip(loads) {
            while state.next <= now {
                state.next = state.next.saturating_add(load.period.max(1));
            }
        }
        let ready = order.iter().copied().find(|index| jobs[*index].first < jobs[*index].next);
        let next = jobs.iter().map(|state| state.next).min().unwrap_or(end).min(end);
        let Some(task) = ready else {
            now = next;
            continue;
        };
        let (state, load) = (&mut jobs[task], &loads[task]);
        let to = next.min(now.saturating_add(state.left));
        state.left -= to - now;
        match schedule.slices.last_mut().filter(|last| last.task == task && last.to == now) {
            Some(last) => last.to = to,
            None if to > now => schedule.slices.push(Slice { task, from: now, to }),
            None => {}
        }
        if state.left == 0 {
            schedule.longest[task] = schedule.longest[task].max(to - state.first);
            schedule.ended[task] += 1;
            state.first = state.first.saturating_add(load.period.max(1));
            state.left = load.cost;
        }
        now = to;
    }
    schedule
}

/// Where a task is.
struct Jobs {
    /// When the next job arrives.
    next: u64,
    /// What is left of the first job that hasn't ended.
    left: u64,
    /// When that one arrived, or will.
    first: u64,
}
