//! Work that has many parts, a part at a time.
//!
//! How much a core has to do for others can be up to the guests: a guest with many vCPUs sends interrupts to all of them, others'
//! messages come in, stealable vCPUs are to be brought back. The hypervisor runs to completion with interrupts off, so in one go all
//! that would be the RTOS's delay. Instead, the vCPUs that are concerned stand in a set, the *backlog*, and after each of them there is
//! a *preemption point* (seL4's word): if a more urgent vCPU wants the core by then, or an interrupt does, what is left waits.
//!
//! Nothing gets lost by that, since a member says only "look at vCPU n", and what is wanted of it stands in its own words. Nobody waits
//! for ever either: what is left is taken up again when the more urgent one leaves, or [`Policy::patience`](ainori_sched::Policy::patience)
//! later, beside it, for a fifth of the guard at a time; of a less urgent vCPU only those are answered then who wait for its fences.
use ainori_handover::Requests;
use ainori_limits::{PRIORITIES, VCPU_SLOTS};
use ainori_sched::{VcpuId, VcpuSet};

use super::Cpu;
use super::mail::NO_VCPU;
use crate::arch::clock;

/// After so many times [`Policy::patience`](ainori_sched::Policy::patience) in which nothing of it was done, a part of the backlog goes before who is about
/// to be entered: half a millisecond.
const STALLED: u64 = 20;

/// [`Cpu::busy_at_most`] in times the guard: 20 us. Where 15 cores ask something of a
/// vCPU that is about to be entered, again and again as their own ones spin until it goes on, the next messages are there before the last are read.
const FLOODED: u64 = 4;

/// One that was deferred longer ago, in times [`Policy::patience`](ainori_sched::Policy::patience), was another one. Its next look comes after one or
/// two, and after one more for each higher priority that takes the core meanwhile.
const RECENT: u64 = STALLED;

/// For how long a core works off its backlog at a time beside a vCPU that takes cores, in the unit of `guard`, the guard's length: 1 us,
/// and the part that is under way then.
#[inline(always)]
const fn beside_urgent_at_most(guard: u64) -> u64 {
    guard / 5
}

// `Backlog::gave_way_to` has a bit for each priority.
const _: () = assert!(PRIORITIES as u32 <= u32::BITS);

/// What is still to be done, by vCPU.
pub(super) struct Backlog {
    /// The priorities, a bit each, of the vCPUs for which the backlog was deferred since something of it was done. These are vCPUs that had
    /// the core already and whose own timers were due; and, once the backlog is [stalled](Cpu::is_stalled), also vCPUs that took the core.
    pub(super) gave_way_to: u32,
    /// Since when nothing of it has been done, although it was its turn, in ticks of `time`. Means something if `deferred_at` is [recent](RECENT).
    stalled_since: u64,
    /// When it was last deferred; 0: something of it has been done since.
    pub(super) deferred_at: u64,
    /// How many turns there have been ([`Self::next_in_turn`]).
    turns: u32,
    /// It has been deferred since a part was taken out: the next one is chosen by [`Self::next_in_turn`].
    is_resumed: bool,
    /// Their guest has been stopped on this core, and they don't know yet.
    pub(super) unstopped: VcpuSet,
    /// Fences were recorded for them here, and their owners are to be asked for answers.
    pub(super) unfenced: VcpuSet,
    /// This core has requested something of them, and not told their owners yet.
    pub(super) untold: VcpuSet,
    /// Others want them to be looked at.
    pub(super) unread: VcpuSet,
    /// They wait or are parked here, where they get no turn; or [`NO_VCPU`], if that is to be found out.
    pub(super) starved: VcpuSet,
    /// They have just lost this core, and the policy kicks another one at once.
    pub(super) preempted: VcpuSet,
    /// They belong here, or are stealable here, and this core has room for them again.
    pub(super) strays: VcpuSet,
    /// Others may have wanted something of them, and have kept quiet as this core was busy with something more urgent.
    pub(super) neglected: VcpuSet,
    /// They are to be looked at when the next guest has been entered, who may be one of them: then they are among the [unread](Self::unread).
    #[cfg(feature = "shadow")]
    pub(super) put_off: VcpuSet,
}

/// One part.
enum Part {
    Stop(VcpuId),
    Fence(VcpuId),
    Tell(VcpuId),
    Look(VcpuId),
    Kick(VcpuId),
    Push(VcpuId),
    Collect(VcpuId),
    MakeUpFor(VcpuSet),
}

impl Backlog {
    pub(super) const EMPTY: Self = Self {
        gave_way_to: 0,
        stalled_since: 0,
        deferred_at: 0,
        turns: 0,
        is_resumed: false,
        unstopped: VcpuSet::EMPTY,
        unfenced: VcpuSet::EMPTY,
        untold: VcpuSet::EMPTY,
        unread: VcpuSet::EMPTY,
        preempted: VcpuSet::EMPTY,
        starved: VcpuSet::EMPTY,
        strays: VcpuSet::EMPTY,
        neglected: VcpuSet::EMPTY,
        #[cfg(feature = "shadow")]
        put_off: VcpuSet::EMPTY,
    };

    fn is_empty(&self) -> bool {
        (self.unstopped
            | self.unfenced
            | self.untold
            | self.unread
            | self.preempted
            | self.starved
            | self.strays
            | self.neglected)
            .is_empty()
    }

    /// The vCPUs of which something is asked.
    fn asked(&self) -> VcpuSet {
        self.unread | self.untold | self.unfenced
    }

    /// Takes out the next part.
    fn next(&mut self) -> Option<Part> {
        if self.is_resumed {
            self.is_resumed = false;
            if let Some(part) = self.next_in_turn() {
                return Some(part);
            }
        }
        let (unfenced, untold, unread) = (&mut self.unfenced, &mut self.untold, &mut self.unread);
        self.unstopped
            .pop()
            .map(Part::Stop)
            .or_else(|| unfenced.pop().map(Part::Fence))
            .or_else(|| untold.pop().map(Part::Tell))
            .or_else(|| unread.pop().map(Part::Look))
            .or_else(|| self.preempted.pop().map(Part::Kick))
            .or_else(|| self.starved.pop().map(Part::Push))
            .or_else(|| self.strays.pop().map(Part::Collect))
            .or_else(|| (!self.neglected.is_empty()).then_some(Part::MakeUpFor(self.neglected)))
    }

    /// Takes out a part of which it is the turn. Beside an urgent vCPU there may be time for one part at a time, and a guest may make new parts of
    /// one kind faster than that: so each kind, and each vCPU, goes first after so many turns.
    #[inline(never)]
    fn next_in_turn(&mut self) -> Option<Part> {
        const KINDS: u32 = 8;
        self.turns = self.turns.wrapping_add(1);
        let (kind, first) = (self.turns % KINDS, self.turns / KINDS % VCPU_SLOTS as u32);
        let (set, part): (_, fn(VcpuId) -> Part) = match kind {
            0 => (&mut self.unread, Part::Look),
            1 => (&mut self.untold, Part::Tell),
            2 => (&mut self.preempted, Part::Kick),
            3 => (&mut self.starved, Part::Push),
            4 => (&mut self.strays, Part::Collect),
            5 => (&mut self.unfenced, Part::Fence),
            6 => (&mut self.unstopped, Part::Stop),
            _ => return (!self.neglected.is_empty()).then_some(Part::MakeUpFor(self.neglected)),
        };
        set.pop_from(first as u8).map(part)
    }
}

impl Cpu {
    /// Reads the mail, and does what there is to do until all is done or something more urgent is. False if there is something to do before anybody is
    /// chosen: a preemption point has read what can't wait.
    #[inline(never)]
    pub(super) fn work_off(&mut self) -> bool {
        // The IPI for this mail need not be taken once more: that would be a trap just after the guest is entered. First, as an
        // IPI always comes after its mail.
        self.clear_ipi();
        let was_due = self.pending.backlog;
        self.read_mail();
        if self.pending.deadlines {
            self.update_deadline_out_of_line(None);
        }
        // BOUND: those for whom this core is here now, each once more for each message that a store of its own has left; before each is a preemption point: what led here
        // has taken its time, too.
        while self.has_urgent_work() {
            // Somebody more urgent may come: then nobody else is left here whom this core is here for.
            self.meet_deadline(clock::now());
            if self.is_interrupted() {
                self.resume_backlog();
                return true;
            }
            let urgent = self.urgent_now();
            if let Some(id) = (self.backlog.unread & urgent).pop() {
                self.backlog.unread.remove(id);
                self.look_at(id);
            } else if let Some(id) = (self.backlog.untold & urgent).pop() {
                self.backlog.untold.remove(id);
                self.tell(id);
            } else if let Some(id) = (self.backlog.unfenced & urgent).pop() {
                self.backlog.unfenced.remove(id);
                self.ask(id, Requests::FENCE);
            }
        }
        let beside_urgent = self.holder().is_some_and(|id| self.urgent.contains(id));
        // What made this work has taken its time already.
        let mut stops = self.is_preempted() || beside_urgent && !was_due;
        let began = clock::now();
        if !stops {
            (self.backlog.gave_way_to, self.backlog.deferred_at) = (0, 0);
        }
        // BOUND: a part a round; the sets grow by mail, answers, `MakeUpFor` and who comes to rest, and between two parts is a preemption point.
        while !stops {
            match self.backlog.next() {
                None => {
                    self.pending.backlog = false;
                    return true;
                }
                Some(Part::Look(NO_VCPU)) => self.look_at_machine(),
                Some(Part::Look(id)) => self.look_at(id),
                Some(Part::Stop(id)) => self.ask(id, Requests::STOP),
                Some(Part::Fence(id)) => self.ask(id, Requests::FENCE),
                Some(Part::Tell(id)) => self.tell(id),
                Some(Part::Kick(id)) => self.kick_preempted(id),
                Some(Part::Push(NO_VCPU)) => self.find_starved(),
                Some(Part::Push(id)) => {
                    self.push_starved(id);
                }
                Some(Part::Collect(id)) => self.collect(id),
                Some(Part::MakeUpFor(neglected)) => self.make_up_for_some(neglected),
            }
            // Beside a more urgent vCPU little at a time has to do.
            let now = clock::now();
            stops = self.is_preempted()
                || self.has_urgent_work()
                || self.is_flooded(now)
                || beside_urgent && now - began >= beside_urgent_at_most(self.guard);
        }
        if self.is_interrupted() {
            // The backlog goes on when that has been served. A part may have taken as long as a section may: no time for what follows.
            self.resume_backlog();
            return true;
        }
        let (gives_way, is_flooded) = (self.is_wanted_out_of_line(), self.is_flooded(clock::now()));
        if self.has_read_urgent_mail(is_flooded) {
            self.resume_backlog();
            return false;
        }
        if gives_way || beside_urgent || is_flooded {
            if let Some(id) = self.loaded.filter(|id| is_flooded && self.scheduler.first() == Some(*id)) {
                self.interrupt_first(id);
            }
            self.defer_backlog(gives_way);
        } else {
            // An interrupt is pending, and the backlog goes on when that has been served.
            self.resume_backlog();
        }
        true
    }

    /// The vCPU that is in the hart is about to be entered, while what else has come in waits: interrupts that others have for it are raised all the same,
    /// unless something else is wanted of it as well. Asked wherever this is settled: for who stays in the hart where the rest is left, for who
    /// gets it at the [switch](Self::dispatch).
    #[inline(never)]
    pub(super) fn interrupt_first(&mut self, id: VcpuId) {
        if self.backlog.unread.contains(id) && self.has(id) && ainori_handover::interrupt_running(self, id) {
            self.backlog.unread.remove(id);
        }
    }

    /// Has a preemption point read something for one that takes cores from others? That is never deferred with the rest, as nobody says it again. Where
    /// more comes in than this core can do, only what is for one that is more urgent than who is about to be entered.
    fn has_read_urgent_mail(&self, is_flooded: bool) -> bool {
        match self.scheduler.first() {
            Some(first) if is_flooded => self.has_work_above(first),
            _ => self.has_urgent_work(),
        }
    }

    /// Has this core been in the hypervisor for so long that what comes in, and what is left, waits until a guest has had it for a while? Not if there is
    /// none that could: that is noted.
    pub(super) fn is_flooded(&mut self, now: u64) -> bool {
        if now - self.busy_since < self.busy_at_most() {
            return false;
        }
        let waits = self.scheduler.first().is_some();
        if !waits {
            self.nobody_ready_at = now;
        }
        waits
    }

    /// For how long a core sees to messages and its backlog at most before a guest has it again, in ticks.
    pub(super) fn busy_at_most(&self) -> u64 {
        FLOODED * self.guard
    }

    /// Is there something to be done for vCPUs for whom this core is here now?
    #[inline]
    pub(super) fn has_urgent_work(&self) -> bool {
        // Mostly there is nothing for anybody: then it doesn't matter for whom this core is here.
        let asked = self.backlog.asked();
        !asked.is_empty() && !(asked & self.urgent_now()).is_empty()
    }

    /// Is there something to be done for vCPUs that would take the core from this one?
    pub(super) fn has_work_above(&self, id: VcpuId) -> bool {
        !(self.backlog.asked() & self.urgent & self.above(id)).is_empty()
    }

    /// The vCPUs that take cores from others, but for those that are less urgent than who goes first here.
    #[inline(never)]
    fn urgent_now(&self) -> VcpuSet {
        let first = self.scheduler.first();
        first.map_or(self.urgent, |id| self.urgent & self.order.rank(id).no_less_urgent)
    }

    /// Has nothing of the backlog been done for so long that no RTOS can be the reason? A guest that interrupts itself all the time, and never takes
    /// these interrupts, looks like one that is about to be entered with its interrupt.
    #[inline(never)]
    pub(super) fn is_stalled(&self, now: u64) -> bool {
        let patience = self.scheduler.policy().patience;
        now - self.backlog.deferred_at <= RECENT * patience
            && now - self.backlog.stalled_since > STALLED * patience
    }

    /// What is left of the backlog waits until the more urgent vCPU leaves, or for a while. Does it give way to that one's interrupt, or has
    /// enough been done for now?
    #[inline(never)]
    pub(super) fn defer_backlog(&mut self, gives_way: bool) {
        self.pending.backlog = false;
        self.backlog.is_resumed = true;
        if self.backlog.is_empty() {
            (self.backlog.gave_way_to, self.backlog.deferred_at) = (0, 0);
            return;
        }
        let (now, patience) = (clock::now(), self.scheduler.policy().patience);
        if now - self.backlog.deferred_at > RECENT * patience {
            (self.backlog.gave_way_to, self.backlog.stalled_since) = (0, now);
        }
        self.backlog.deferred_at = now;
        let is_noted = |id: &VcpuId| !self.waits_for_core(*id) || self.is_stalled(now);
        if gives_way && let Some(id) = self.scheduler.first().filter(is_noted) {
            // To one that has the core already, as its own timer is due or near; or that takes it, and may do so for some microseconds each time.
            self.backlog.gave_way_to |= 1 << self.order.rank(id).class.priority;
        }
        self.look_again_at(now + patience);
    }

    /// What was deferred is taken up again before the next guest is entered.
    #[inline]
    pub(super) fn resume_backlog(&mut self) {
        self.pending.backlog = !self.backlog.is_empty();
    }
}
