//! Who runs when, if all tasks arrive at once and each job takes all that it may. For pictures, and to test the analysis against. What comes at any time is left out:
//! jitter, blocking, and what the hypervisor does of its own.

/// The jobs of a task, which arrive a period apart from the start on. Times are in one unit, nanoseconds in the rest of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// The higher goes first.
    pub rank: u32,
    /// Between two arrivals. Not 0.
    pub period: u64,
    /// What a job takes of the hart.
    pub cost: u64,
    /// Whose it is.
    pub guest: usize,
    /// What a job takes more if its guest sleeps when it arrives.
    pub switch: u64,
}

/// Which guest has the hart when.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timetable {
    /// The slots come again after so much; 0 if there are none, and all guests have the hart at any time.
    pub frame: u64,
    /// In the order of time, without overlap, within the frame.
    pub windows: Vec<Slot>,
}

/// A window of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Whose it is.
    pub guest: usize,
    /// From the frame's begin.
    pub from: u64,
    /// When it ends.
    pub to: u64,
}

impl Timetable {
    /// May a guest have the hart at this time? And until when is all so as it is?
    fn at(&self, time: u64) -> (impl Fn(usize) -> bool, u64) {
        let offset = time.checked_rem(self.frame).unwrap_or_default();
        let slot = self.windows.iter().find(|slot| slot.to > offset).copied();
        let whose = slot.filter(|slot| slot.from <= offset).map(|slot| slot.guest);
        let end = match slot {
            _ if self.frame == 0 => u64::MAX,
            Some(slot) if whose.is_some() => slot.to,
            Some(slot) => slot.from,
            None => self.frame,
        };
        let is_shared = self.frame == 0;
        (move |guest| is_shared || whose == Some(guest), (time - offset).saturating_add(end))
    }

    /// The windows of a guest that begin before `end`: from and to, cut there. None where there are no windows.
    pub fn of(&self, guest: usize, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let frames = 0..end.checked_div(self.frame).map_or(0, |frames| frames + 1);
        let slots = move |frame: u64| {
            let own = self.windows.iter().filter(move |slot| slot.guest == guest);
            own.map(move |slot| (frame * self.frame + slot.from, (frame * self.frame + slot.to).min(end)))
        };
        frames.flat_map(slots).filter(move |(from, _)| *from < end)
    }
}

/// A stretch of time in which one task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Index of its stream.
    pub task: usize,
    /// In the unit of the streams, from the common arrival.
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

/// Most points in time at which something changes, and so most slices: more than any picture can show.
pub const MAX_STEPS: usize = 1 << 20;

/// Runs all tasks from their common arrival, which is at a frame's begin if there are windows, until `end`, or for [`MAX_STEPS`].
#[must_use]
pub fn synchronous(streams: &[Stream], timetable: &Timetable, end: u64) -> Schedule {
    let mut jobs: Vec<Jobs> =
        streams.iter().map(|stream| Jobs { next: 0, left: stream.cost, first: 0 }).collect();
    // Of each guest, the jobs that are there.
    let guests = streams.iter().map(|stream| stream.guest + 1).max().unwrap_or_default();
    let mut waiting = vec![0u64; guests];
    let mut order: Vec<usize> = (0..streams.len()).collect();
    // Equals in the order in which they are declared.
    order.sort_by_key(|index| core::cmp::Reverse(streams[*index].rank));
    let mut schedule =
        Schedule { slices: Vec::new(), longest: vec![0; streams.len()], ended: vec![0; streams.len()] };
    let mut now = 0;
    for _ in 0..MAX_STEPS {
        if now >= end {
            break;
        }
        for index in &order {
            let (state, stream) = (&mut jobs[*index], &streams[*index]);
            while state.next <= now {
                if waiting[stream.guest] == 0 {
                    state.left = state.left.saturating_add(stream.switch);
                }
                waiting[stream.guest] += 1;
                state.next = state.next.saturating_add(stream.period.max(1));
            }
        }
        let (has_hart, until) = timetable.at(now);
        let is_ready =
            |index: &usize| jobs[*index].first < jobs[*index].next && has_hart(streams[*index].guest);
        let ready = order.iter().copied().find(is_ready);
        // Where nobody has a job, windows come and go.
        let until = if waiting.iter().all(|jobs| *jobs == 0) { end } else { until };
        let next = jobs.iter().map(|state| state.next).min().unwrap_or(end).min(end).min(until);
        let Some(task) = ready else {
            now = next;
            continue;
        };
        let (state, stream) = (&mut jobs[task], &streams[task]);
        let to = next.min(now.saturating_add(state.left));
        state.left -= to - now;
        match schedule.slices.last_mut().filter(|last| last.task == task && last.to == now) {
            Some(last) => last.to = to,
            None if to > now => schedule.slices.push(Slice { task, from: now, to }),
            None => {}
        }
        if state.left == 0 {
            waiting[stream.guest] -= 1;
            schedule.longest[task] = schedule.longest[task].max(to - state.first);
            schedule.ended[task] += 1;
            state.first = state.first.saturating_add(stream.period.max(1));
            state.left = stream.cost;
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
