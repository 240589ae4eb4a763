//! Choosing what runs next, and the world switch.
use ainori_sched::VcpuId;
use ainori_trace::Event;

use super::Cpu;
use super::irq::level;
use crate::arch::csr::{self, interrupt, status};
use crate::arch::{Context, hart};
use crate::guest::vcpu::Hold;

impl Cpu {
    /// The end of every event: reads the mail, decides, and prepares the hart for the vCPU to run. Returns its context.
    /// While there is none to run, the core waits here.
    #[inline(always)]
    pub fn dispatch(&mut self) -> *mut Context {
        let me = self.id as usize;
        let mail = &self.machine.mail;
        loop {
            if mail.has_mail(me) {
                self.read_mail();
            }
            let now = csr::time();
            let decision = self.scheduler.schedule(now);
            if let Some(id) = decision.run {
                if decision.previous != Some(id) || self.loaded != Some(id) {
                    self.leave_vcpu(decision.previous, decision.preempted, now);
                    self.enter_vcpu(id, now);
                    let from = decision.previous.map(|previous| previous.0);
                    self.trace(Event::Switch { from, to: Some(id.0) });
                }
                self.carry_out_fences(id);
                self.set_alarm(decision.alarm);
                if mail.leave(me) {
                    let resident = self.resident(id);
                    if resident.due != 0 {
                        resident.note_delivery();
                    }
                    self.trace_taken(id);
                    return &raw mut self.resident(id).context;
                }
            } else {
                self.leave_vcpu(decision.previous, false, now);
                if let Some(VcpuId(from)) = decision.previous {
                    self.trace(Event::Switch { from: Some(from), to: None });
                }
                self.idle(now);
            }
        }
    }

    /// The vCPU that ran until now doesn't any more.
    #[inline(always)]
    fn leave_vcpu(&mut self, previous: Option<VcpuId>, preempted: bool, now: u64) {
        let Some(id) = previous else { return };
        let since = self.since;
        // Asleep or not, what others want of its translations can wait until it runs again.
        self.machine.vcpu(id).fences.depart();
        let counters = &mut self.resident(id).counters;
        counters.running += now - since;
        counters.preemptions += u64::from(preempted);
        self.resident(id).count_latency();
        self.since = now;
        self.deadlines_changed = true;
    }

    /// Makes the hart that of the vCPU.
    #[inline(always)]
    fn enter_vcpu(&mut self, id: VcpuId, now: u64) {
        let me = core::ptr::from_mut(self).cast();
        let fences = &self.machine.vcpu(id).fences;
        if self.loaded != Some(id) {
            if let Some(old) = self.loaded {
                self.resident(old).world.save();
            }
            self.loaded = Some(id);
            self.counters.switches += 1;
            // SAFETY: the world that was in the hart has just been saved.
            unsafe { self.resident(id).world.load() };
            if self.extensions != Some(id) {
                self.enter_without_extensions(id);
            }
            self.set_threshold(level(self.machine.vcpu(id).class.priority));
        }
        fences.arrive();
        let resident = self.resident(id);
        resident.context.cpu = me;
        // A timer that ran out while it could not run: nobody has waited for it so far.
        if resident.due == 0
            && let Some(at) = resident.world.deadline().filter(|at| *at <= now)
        {
            resident.due = at;
        }
        resident.counters.dispatches += 1;
        self.since = now;
        self.deadlines_changed = true;
    }

    /// The extension registers in the hart are another vCPU's. They are exchanged now if the guest has the units switched
    /// on, so that it will probably use them; else its first use traps.
    #[inline]
    fn enter_without_extensions(&mut self, id: VcpuId) {
        let resident = self.resident(id);
        resident.context.sstatus &= !(status::FS | status::VS);
        if resident.world.wants_extensions() {
            self.reload_extensions(id);
        }
    }

    /// Puts the extension registers of the loaded vCPU into the hart.
    #[inline(never)]
    pub(super) fn reload_extensions(&mut self, id: VcpuId) {
        if let Some(old) = self.extensions {
            let resident = self.resident(old);
            // SAFETY: `extensions` says whose registers the hart holds.
            unsafe { resident.world.save_extensions(&mut resident.context) };
        }
        self.extensions = Some(id);
        let resident = self.resident(id);
        // SAFETY: the registers of the former owner have just been saved.
        unsafe { resident.world.load_extensions(&mut resident.context) };
    }

    /// Only devices of more urgent guests may interrupt a vCPU: its own level is let through, lower ones wait in the
    /// interrupt controller until the core is given to somebody less urgent.
    #[inline]
    fn set_threshold(&mut self, level: u32) {
        let threshold = level.saturating_sub(1);
        if threshold != self.threshold
            && let (Some(plic), Some(context)) = (self.machine.plic, self.plic_context)
        {
            self.threshold = threshold;
            plic.set_threshold(context, threshold);
        }
    }

    /// Sets the alarm to the earliest of: end of the quantum, deadlines of sleeping vCPUs that may take the core,
    /// the console's.
    #[inline]
    fn set_alarm(&mut self, quantum: Option<u64>) {
        if self.deadlines_changed {
            self.deadlines_changed = false;
            self.next_deadline = self.earliest_deadline();
        }
        let alarm = self.next_deadline.min(quantum.unwrap_or(u64::MAX)).min(self.console_due);
        if alarm != self.alarm {
            self.alarm = alarm;
            hart::set_alarm(alarm);
        }
    }

    fn earliest_deadline(&mut self) -> u64 {
        let mut earliest = u64::MAX;
        for id in self.scheduler.asleep() {
            if self.scheduler.admits(id) {
                let resident = self.resident(id);
                if resident.hold == Hold::None
                    && let Some(at) = resident.world.deadline()
                {
                    earliest = earliest.min(at);
                }
            }
        }
        earliest
    }

    /// Waits for an interrupt of the core and takes it.
    #[inline(never)]
    fn idle(&mut self, began: u64) {
        let me = self.id as usize;
        self.set_threshold(0);
        self.set_alarm(None);
        if self.machine.mail.leave(me) {
            hart::wait();
            self.machine.mail.enter(me);
        }
        let pending = hart::pending_interrupts();
        if pending & interrupt::SOFTWARE != 0 {
            self.take_ring();
        }
        if pending & interrupt::TIMER != 0 {
            self.take_alarm();
        }
        if pending & interrupt::EXTERNAL != 0 {
            self.take_external();
        }
        self.entered = csr::time();
        self.counters.idle += self.entered - began;
    }

    /// The running vCPU doesn't go on until something wakes it.
    pub fn rest(&mut self, id: VcpuId) {
        self.scheduler.sleep(id);
        self.trace(Event::Sleep { vcpu: id.0 });
        self.deadlines_changed = true;
    }

    /// The running vCPU lets its equals go first.
    pub fn yield_now(&mut self) {
        self.scheduler.yield_now();
    }

    /// First entry of this core into a guest, or into its wait for one.
    pub fn run(&mut self) -> ! {
        self.since = csr::time();
        let context = self.dispatch();
        // SAFETY: `dispatch` has loaded the world of the vCPU that the context belongs to.
        unsafe { crate::arch::context::resume_guest(context) }
    }
}
