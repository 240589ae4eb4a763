//! Pull migration: vCPUs that wait for a core are brought to one that suits them, on the [occasions](Occasion) that the policy names.
use core::sync::atomic::Ordering;

use ainori_handover::Requests;
use ainori_sched::{Occasion, VcpuId};

use crate::arch::{clock, hart};
use crate::cpu::given_way::GivenWay;
use crate::cpu::threshold::{IDLE, hears};
use crate::cpu::{Cpu, Machine};
use crate::stats::Exit;

/// After so many vCPUs it is asked whether somebody is due.
const ASKED_EACH: usize = 16;

/// What a core knows of those that it might pull.
pub struct Pull {
    /// To whom the search for work has given way.
    given_way: GivenWay,
}

impl Pull {
    /// To nobody yet. Only at boot.
    pub fn new(machine: &Machine) -> Self {
        Self { given_way: GivenWay::new(machine) }
    }
}

impl Cpu {
    /// Has a vCPU that waits for a core brought to `core`.
    fn pull(&mut self, id: VcpuId, core: u32) {
        let vcpu = self.machine.vcpu(id);
        if !vcpu.is_parked() {
            vcpu.wanted_by.store(core, Ordering::Relaxed);
            self.ask(id, Requests::WANTED);
        } else {
            self.offer(id, core);
        }
    }

    /// Offers a parked vCPU to `core`: that claims it, unless another one is faster.
    fn offer(&mut self, id: VcpuId, core: u32) {
        if core == self.id {
            self.claim(id);
        } else {
            self.post(core, u32::from(id.0));
        }
    }

    /// Kicks a core that suits a parked vCPU to claim it. False if there is none.
    pub(in crate::cpu) fn kick(&mut self, id: VcpuId) -> bool {
        // Where it will get its turn anyhow, only a core that idles is better. If all its cores are busy with more urgent ones, it
        // stays parked until one isn't.
        let waits_for_equal = self.gets_turns(id);
        let core = self.suitable_core(id).filter(|core| !waits_for_equal || self.is_idle(*core));
        if let Some(core) = core {
            // If it isn't parked any more, a core has it. `pull` would ask that one for it; by then it might be parked again, and the cores would be
            // searched a second time in this section.
            self.offer(id, core);
        }
        core.is_some()
    }

    /// Kicks another core for a vCPU that has just lost this one, or for which no core was free before, if it gets no turn where it is.
    pub(in crate::cpu) fn kick_preempted(&mut self, id: VcpuId) {
        // One that came back, as its turn was near, may wait here below somebody more urgent who was woken just then.
        let is_tried_again =
            if self.mechanisms.migration.here.contains(id) { self.push_starved(id) } else { self.place(id) };
        if !is_tried_again {
            self.retry_next();
        }
    }

    /// Sees to it that a vCPU that is parked gets its turns somewhere. True if there is no core for it at this moment: it will be tried again.
    pub(super) fn place(&mut self, id: VcpuId) -> bool {
        if !self.machine.vcpu(id).is_parked() {
            return false;
        }
        if self.gets_turns(id) {
            // There may have been none for it here, so that it has lost its place.
            if self.is_parked_here(id) && !self.waits_for_its_turn(id) {
                self.claim(id);
            }
            return false;
        }
        let is_unplaced = !self.kick(id);
        if is_unplaced {
            self.push_again(id);
        }
        is_unplaced
    }

    /// This core has nothing to do: it pulls the vCPU that has waited longest for a core, if that may run here and has waited
    /// for long enough. Otherwise it says when to look again: at once, if something comes first.
    pub(in crate::cpu) fn pull_work(&mut self, now: u64) -> Option<u64> {
        if !self.scheduler.policy().pulls(Occasion::Idle) {
            return None;
        }
        let mut longest: Option<(u64, VcpuId)> = None;
        // BOUND: the machine's vCPUs, some 20 instructions each. An interrupt goes first, and so does who is due here.
        for (index, vcpu) in self.machine.vcpus().iter().enumerate() {
            // The alarm may be for what is gone by now: then nothing but the time to look again leads here once more.
            let is_free =
                hart::pending_interrupts().is_empty() && (index % ASKED_EACH != 0 || self.may_go_on_idle());
            if !is_free {
                return Some(now);
            }
            if let Some(since) = vcpu.waiting_since().filter(|_| vcpu.may_run_on(self.id))
                && longest.is_none_or(|(earliest, _)| since < earliest)
            {
                longest = Some((since, VcpuId(index as u8)));
            }
        }
        if !self.may_go_on_idle() {
            return Some(now);
        }
        let (since, id) = longest?;
        let due = since + self.scheduler.policy().patience;
        if due > now {
            return Some(due);
        }
        self.pull(id, self.id);
        // If another core was faster, or its own goes on with it, somebody else may be waiting.
        Some(now + self.scheduler.policy().patience)
    }

    /// A preemption point of a core that idles, for which no alarm is set yet: has nobody been woken meanwhile? Who sleeps for moments only, again and
    /// again, [isn't asked for](crate::cpu::given_way) each time.
    #[inline(never)]
    fn may_go_on_idle(&mut self) -> bool {
        let now = clock::now();
        self.end_irqs_off(Exit::Backlog, now);
        let (_, levels) = self.sleepers_due_by(now + self.guard, &self.mechanisms.pull.given_way, now);
        // To look at all of them takes a while where there are many levels, and to wake them as long again.
        let gives_way = levels != 0 && (self.gives_way() || self.meet_deadline(clock::now()));
        if gives_way {
            self.mechanisms.pull.given_way.note(levels, now);
        }
        !gives_way
    }

    /// The running vCPU spins. If one of its guest could run but has no core, it probably waits for that: the one that has waited
    /// longest is pulled. If that waits for this very core, the spinner lets it go first.
    ///
    /// How long a vCPU may spin before this is called is up to the hart, whose WRS.NTO traps after a time of its own (Friebel and
    /// Biemueller, "How to Deal with Lock Holder Preemption", yield after a threshold of failed attempts). To wait
    /// for more such traps is of no use: see docs/policies.md.
    pub(in crate::cpu) fn note_spin(&mut self, spinner: VcpuId) {
        // If all of its guest run or sleep, so does the one that it waits for.
        let Some(id) = self.someone_waits(spinner) else { return };
        if !self.has(id)
            && self.scheduler.policy().pulls(Occasion::Spin)
            && let Some(core) = self.suitable_core(id)
            // With many vCPUs and cores, to find both takes as long as half a section may, and to have it brought here as long again. Who spins
            // says so again.
            && !self.gives_way_if_long()
        {
            self.pull(id, core);
        }
        let siblings = self.machine.guest_of(spinner).vcpus();
        // BOUND: no loop: a range is asked for a member.
        self.scheduler.step_aside(|next| siblings.contains(&next.0));
    }

    /// Of a vCPU's guest, the one that could run but has waited longest for a core.
    #[inline]
    pub(in crate::cpu) fn someone_waits(&self, id: VcpuId) -> Option<VcpuId> {
        let machine = self.machine;
        let all = machine.guest_of(id).vcpus().map(VcpuId);
        // BOUND: the vCPUs of one guest, some 12 instructions each.
        let waiting = all.filter_map(|id| Some((machine.vcpu(id).waiting_since()?, id))).min();
        waiting.map(|(_, id)| id)
    }

    /// The core where a vCPU had best go: one that idles, or else this one, or the next one after its home.
    pub(super) fn suitable_core(&self, id: VcpuId) -> Option<u32> {
        let vcpu = self.machine.vcpu(id);
        let cores = vcpu.cores_now();
        let all = self.machine.harts.len() as u32;
        let is_here = cores >> self.id & 1 != 0 && self.accepts(id, self.id);
        let (mut busy, mut core) = (is_here.then_some(self.id), vcpu.home);
        // BOUND: the cores, some 18 instructions each.
        loop {
            core = if core + 1 < all { core + 1 } else { 0 };
            if cores >> core & 1 != 0 {
                let threshold = self.machine.thresholds[core].level();
                if threshold == IDLE {
                    return Some(core);
                }
                if busy.is_none() && threshold <= vcpu.level_on(core) {
                    busy = Some(core);
                }
            }
            if core == vcpu.home {
                return busy;
            }
        }
    }

    /// Would a vCPU get its turns on this core?
    pub(in crate::cpu) fn accepts(&self, id: VcpuId, core: u32) -> bool {
        hears(self.machine.thresholds[core].level(), self.machine.vcpu(id).level_on(core))
    }

    /// Would a vCPU get its turns where it is parked? An idle core is of no use to one that must not run there.
    pub(super) fn gets_turns(&self, id: VcpuId) -> bool {
        let vcpu = self.machine.vcpu(id);
        let owner = vcpu.owner();
        vcpu.may_run_on(owner) && self.accepts(id, owner)
    }

    pub(super) fn is_idle(&self, core: u32) -> bool {
        self.machine.thresholds[core].level() == IDLE
    }
}
