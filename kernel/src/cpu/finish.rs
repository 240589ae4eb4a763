//! The end of guests, and of the run.
use core::sync::atomic::Ordering;

use ainori_handover::Requests;
use ainori_lifecycle::Next;
use ainori_sched::VcpuId;

use super::Cpu;
use super::housekeeping::Chore;
use super::mail::{MACHINE, NO_VCPU};
use crate::arch::{clock, firmware};
use crate::guest::Guest;
use crate::guest::vcpu::Hold;
use crate::report;

impl Cpu {
    /// Stops all vCPUs of the running one's guest, wherever they are, one by one, behind the present event.
    pub fn stop_guest(&mut self, running: VcpuId) {
        self.backlog.unstopped |= self.machine.guest_of(running).vcpu_set(u64::MAX).without(running);
        self.hold_until_stopped(running);
        self.machine.vcpu(running).request(Requests::STOP);
        self.backlog.unread.insert(running);
        self.resume_backlog();
    }

    /// The running vCPU doesn't go on before it is asked to come to rest, even where another core takes it before its turn comes, or where this core has
    /// more to do than it can and would enter it before that.
    pub fn hold_until_stopped(&mut self, running: VcpuId) {
        self.resident(running).hold = Hold::Stopped;
        self.rest(running);
    }

    /// A vCPU of a stopped guest comes to rest here. That counts only after the present event, which may be one of its own.
    pub(super) fn bring_to_rest(&mut self, id: VcpuId) {
        #[cfg(feature = "watchdog")]
        self.note_hung(id);
        self.machine.vcpu(id).hart.note_stop();
        self.resident(id).hold = Hold::Stopped;
        self.rest(id);
        self.note_asleep(Some(id));
        // It may have been waiting for a core, and must not look so any more: idle cores would ask for it without end.
        self.machine.vcpu(id).publish_waiting(0);
        self.resting.insert(id);
        self.backlog.unread.insert(NO_VCPU);
        self.resume_backlog();
    }

    /// Between two events: a vCPU that was brought to rest here is there now.
    pub(super) fn note_rest(&mut self, id: VcpuId) {
        let guest = self.machine.guest_of(id);
        // Before anybody can ask for its reset: where it gets no turns, others keep quiet as long as somebody more urgent computes, perhaps for ever.
        self.leave_where_it_starts(id);
        let next = guest.lifecycle.note_rest();
        #[cfg(feature = "watchdog")]
        if next.is_some() {
            self.tell_of_hung(guest);
        }
        match next {
            None => {}
            Some(Next::Restart) => {
                self.machine.restarting.fetch_or(1 << guest.index, Ordering::Release);
                self.ask_housekeeper_later(Chore::Restarts);
            }
            Some(Next::End | Next::GiveUp) => self.end(guest),
        }
    }

    /// A guest has ended for good. The last one that is waited for ends the run.
    fn end(&mut self, guest: &Guest) {
        let machine = self.machine;
        if !guest.config.background && machine.awaited_guests.fetch_sub(1, Ordering::AcqRel) == 1 {
            machine.finishing.store(true, Ordering::Release);
            // BOUND: the cores, some 40 instructions each, and nobody is waited for any more.
            for core in 0..machine.harts.len() as u32 {
                if core != self.id {
                    self.post(core, MACHINE);
                }
            }
            self.finish();
        }
    }

    /// Only at the end of the run. Core by core, each reports what it knows; the last one switches the machine off.
    pub(super) fn finish(&mut self) -> ! {
        // Before the report is written, which takes more of it than all that came before.
        let stack = self.stack_used();
        let machine = self.machine;
        let cores = machine.harts.len() as u32;
        let now = clock::now();
        let decision = self.scheduler.schedule(now);
        self.leave_vcpu(decision.previous, false, now);
        machine.ended.fetch_add(1, Ordering::AcqRel);
        // Nobody writes to a ring any more once all have come to an end, so the console core can empty them.
        while machine.ended.load(Ordering::Acquire) != cores {
            core::hint::spin_loop();
        }
        let first = machine.console_core;
        let me = if self.id < first { self.id + cores - first } else { self.id - first };
        while machine.turn.load(Ordering::Acquire) != me {
            core::hint::spin_loop();
        }
        self.flush_console();
        for id in (0..machine.vcpus().len() as u8).map(VcpuId) {
            // Those that nobody has are reported by whoever comes first, for the core that they were parked for.
            let owner = machine.vcpu(id).owner();
            if let Some(resident) = self.residents[id].take().or_else(|| machine.vcpu(id).claim(self.id)) {
                report::vcpu(machine, owner, id, &resident);
            }
        }
        report::core(self.id, self.hart, &self.counters, stack, &self.trace);
        if me + 1 == cores {
            report::end(machine, now);
            firmware::shutdown(false);
        }
        machine.turn.fetch_add(1, Ordering::AcqRel);
        loop {
            crate::arch::hart::wait();
        }
    }
}
