//! What is asked: a system as far as it matters for the time of its tasks.
use crate::supply::{self, Supply};
use ainori_sched::{Class, Policy};

/// A system.
#[derive(Debug, Clone)]
pub struct System {
    /// The choices of the policy. Its times are in ticks of some clock and don't count: these do.
    pub policy: Policy,
    /// For how long one of several guests of one priority has its turn at least, in nanoseconds. Not 0.
    pub quantum_ns: u64,
    /// For how long a preemption may be deferred, in nanoseconds, where the policy does that.
    pub grace_ns: u64,
    /// How long before its timer a vCPU gets the hart that it takes from others, in nanoseconds.
    pub advance_ns: u64,
    /// Harts of the board; their ids are below this.
    pub harts: u32,
    /// The one where the hypervisor does its own slow work.
    pub housekeeping_hart: u32,
    /// Each event leaves a record in a trace.
    pub is_traced: bool,
    /// It needs another build of the hypervisor than the usual one, of whose paths nothing is counted.
    pub needs_other_build: bool,
    /// Length of a frame of windows in time, in nanoseconds; 0 under a policy that has none.
    pub frame_ns: u64,
    /// Those windows, by hart and time, as far as each hart's don't overlap and end within the frame.
    pub windows: Vec<Window>,
    /// The guests.
    pub guests: Vec<Guest>,
}

/// A window in time: in each frame a hart is so long one guest's. All times are in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Whose hart.
    pub hart: u32,
    /// Index of its guest.
    pub guest: usize,
    /// From the frame's begin.
    pub start_ns: u64,
    /// How long it is.
    pub length_ns: u64,
}

/// A guest.
#[derive(Debug, Clone)]
pub struct Guest {
    /// Its name, for reasons in words.
    pub name: String,
    /// Its vCPUs.
    pub vcpus: Vec<Vcpu>,
    /// Its priority on each hart, by the hart's id; the higher goes first.
    pub priorities: Vec<u8>,
    /// It owns devices of the board.
    pub has_devices: bool,
    /// It is at an end of channels.
    pub has_channels: bool,
    /// Its tasks. A guest without any computes for as long as it likes.
    pub tasks: Vec<Task>,
}

/// Where a vCPU may be.
#[derive(Debug, Clone, Copy)]
pub struct Vcpu {
    /// The hart that has it at the start.
    pub home: u32,
    /// The set of harts that it may move to under a policy that moves vCPUs, a bit each.
    pub harts: u64,
}

/// A task: jobs that arrive at least a period apart. All times are in nanoseconds.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// The hart that it runs on, which is home to one of its guest's vCPUs.
    pub hart: u32,
    /// Least time between two jobs. Not 0.
    pub period_ns: u64,
    /// Most that a job computes.
    pub execution_ns: u64,
    /// When a job has to have ended, from its arrival.
    pub deadline_ns: u64,
    /// Within its guest; the higher goes first.
    pub priority: u8,
    /// By how much a job may become ready later than it arrives.
    pub jitter_ns: u64,
    /// For how long less urgent tasks of its guest may keep it waiting: critical sections, interrupts off, locks.
    pub blocking_ns: u64,
    /// The part of that for which it spins for a vCPU of its guest on another hart, in each job. Counts only if the guest has one there.
    pub remote_blocking_ns: u64,
    /// It is what handles interrupts from outside of its guest: of devices and channels.
    pub is_handler: bool,
}

impl System {
    /// Does the policy let a guest's priority take a hart from others?
    pub(crate) fn has_priorities(&self) -> bool {
        self.policy.takes_cores()
    }

    /// Has a hart windows in time, in each of which it is one guest's?
    #[must_use]
    pub fn has_windows(&self) -> bool {
        self.policy.has_windows()
    }

    /// What of a hart there is for a guest, if beginning a window takes so much of it. `None` if that is nothing.
    pub(crate) fn supply(&self, guest: usize, hart: u32, opening_ns: u64) -> Option<Supply> {
        if !self.has_windows() {
            return Some(Supply::always());
        }
        let its = self.windows.iter().filter(|window| (window.guest, window.hart) == (guest, hart));
        let rest = its.filter_map(|window| {
            let length = window.length_ns.checked_sub(opening_ns).filter(|length| *length > 0)?;
            Some(supply::Window { start: window.start_ns.saturating_add(opening_ns), length })
        });
        Supply::of(self.frame_ns, rest.collect())
    }

    /// The set of harts where a vCPU may be met.
    pub(crate) fn reach(&self, vcpu: &Vcpu) -> u64 {
        // Whoever makes a system may name a home that no board has.
        if vcpu.home < u64::BITS { self.policy.reach(vcpu.home, vcpu.harts) } else { 0 }
    }

    /// How many vCPUs of a guest may be met on a hart.
    pub(crate) fn may_be_met(&self, guest: &Guest, hart: u32) -> usize {
        guest.vcpus.iter().filter(|vcpu| self.reach(vcpu) & bit(hart) != 0).count()
    }

    /// How many vCPUs may be met on a hart that may be moved to another one.
    pub(crate) fn movable(&self, hart: u32) -> u64 {
        let vcpus = self.guests.iter().flat_map(|guest| &guest.vcpus).map(|vcpu| self.reach(vcpu));
        vcpus.filter(|reach| reach & bit(hart) != 0 && *reach != bit(hart)).count() as u64
    }

    /// Is a hart left to one vCPU, as no other may be met there?
    pub(crate) fn is_alone(&self, hart: u32) -> bool {
        self.guests.iter().map(|guest| self.may_be_met(guest, hart)).sum::<usize>() <= 1
    }

    /// May another guest be met on a hart that has the same priority there, so that they take turns?
    pub(crate) fn has_equal(&self, guest: usize, hart: u32) -> bool {
        let priority = self.guests[guest].priority_on(hart);
        let mut others = self.guests.iter().enumerate().filter(|(index, _)| *index != guest);
        others.any(|(_, other)| other.priority_on(hart) == priority && self.may_be_met(other, hart) > 0)
    }

    /// The vCPUs of a guest for which its tasks on a hart may wait, as they declare it (`remote_blocking`): those at home elsewhere.
    pub(crate) fn siblings(&self, guest: usize, hart: u32) -> impl Iterator<Item = &Vcpu> {
        let own = &self.guests[guest];
        let waits = own.tasks_on(hart).any(|(_, task)| task.remote_blocking_ns.min(task.blocking_ns) > 0);
        own.vcpus.iter().filter(move |vcpu| waits && vcpu.home != hart)
    }

    /// The guests that may keep one from a hart: the more urgent that may be met there, and those of its priority. All, where priorities don't count.
    pub(crate) fn ahead_of(&self, guest: usize, hart: u32) -> impl Iterator<Item = usize> {
        let priority = self.guests[guest].priority_on(hart);
        let others = self.guests.iter().enumerate().filter(move |(index, _)| *index != guest);
        let met = others.filter(move |(_, other)| self.may_be_met(other, hart) > 0);
        let ahead = move |other: &Guest| !self.has_priorities() || other.priority_on(hart) >= priority;
        met.filter(move |(_, other)| ahead(other)).map(|(index, _)| index)
    }

    /// May a guest's tasks on a hart wait for a vCPU elsewhere that others keep from its hart?
    pub(crate) fn waits_for_others(&self, guest: usize, hart: u32) -> bool {
        self.siblings(guest, hart).any(|sibling| self.ahead_of(guest, sibling.home).next().is_some())
    }

    /// Does a guest with tasks anywhere wait so?
    #[must_use]
    pub fn waits_for_other_harts(&self) -> bool {
        (0..self.guests.len()).any(|guest| (0..self.harts).any(|hart| self.waits_for_others(guest, hart)))
    }

    /// The guests that may have a hart while they wait so, as far as that keeps one from it: itself, and those ahead of it.
    pub(crate) fn waiting(&self, guest: usize, hart: u32) -> impl Iterator<Item = usize> {
        let all = core::iter::once(guest).chain(self.ahead_of(guest, hart));
        all.filter(move |guest| self.waits_for_others(*guest, hart))
    }

    /// The guests that declare no task on a hart, have a vCPU that runs nowhere else, and wait for all that declare one there.
    pub(crate) fn below_all_tasks(&self, hart: u32) -> impl Iterator<Item = usize> {
        let has_tasks = move |guest: &Guest| guest.tasks_on(hart).next().is_some();
        let with_tasks = self.guests.iter().filter(move |guest| has_tasks(guest));
        let least = with_tasks.map(move |guest| guest.priority_on(hart)).min().unwrap_or_default();
        let stays = move |guest: &Guest| guest.vcpus.iter().any(|vcpu| self.reach(vcpu) == bit(hart));
        let guests = self.guests.iter().enumerate();
        let below = guests.filter(move |(_, guest)| !has_tasks(guest) && guest.priority_on(hart) < least);
        below.filter(move |(_, guest)| stays(guest)).map(|(index, _)| index)
    }

    /// Most vCPUs that a guest has at home on a hart.
    pub(crate) fn most_vcpus_at_home(&self, hart: u32) -> u64 {
        let at_home = |guest: &Guest| guest.vcpus.iter().filter(|vcpu| vcpu.home == hart).count();
        self.guests.iter().map(at_home).max().unwrap_or_default() as u64
    }

    /// Is a guest of this priority among the least urgent of a hart, as the policy counts?
    pub(crate) fn is_least(&self, priority: u8, hart: u32) -> bool {
        let level = |priority| self.policy.level(Class { priority, guest: 0 });
        self.least_at_home(hart).is_some_and(|least| level(priority) <= level(least))
    }

    /// The least priority of those at home on a hart, beside whom housework lies if it is done there.
    pub(crate) fn least_at_home(&self, hart: u32) -> Option<u8> {
        let at_home = self.guests.iter().filter(|guest| guest.vcpus.iter().any(|vcpu| vcpu.home == hart));
        at_home.map(|guest| guest.priority_on(hart)).min()
    }
}

impl Guest {
    /// Its priority on a hart; 0 on one that isn't on the board.
    #[must_use]
    pub fn priority_on(&self, hart: u32) -> u8 {
        self.priorities.get(hart as usize).copied().unwrap_or_default()
    }

    /// Its tasks on a hart, and their places in [`Self::tasks`].
    pub fn tasks_on(&self, hart: u32) -> impl Iterator<Item = (usize, &Task)> {
        self.tasks.iter().enumerate().filter(move |(_, task)| task.hart == hart)
    }
}

/// The set of this hart.
pub(crate) fn bit(hart: u32) -> u64 {
    1u64.checked_shl(hart).unwrap_or_default()
}
