//! Guests that hang are found, and stopped: in a kernel with the feature `watchdog`, a part of [the housework](super::housekeeping) on guests that are
//! started again.
//!
//! A guest's [watchdog](ainori_devices::watchdog) is a time by which it has to have shown a sign of life. Nobody sets a timer for that: the housekeeping core
//! looks at all of them when the earliest is due, as it was then, so a sign of life costs the guest a store that traps, and others nothing.
use ainori_lifecycle::{Cause, HartState};
use ainori_report::NO_TRAP;
use ainori_sched::VcpuId;

use super::Cpu;
use super::housekeeping::{Chore, Next};
use crate::arch::clock;
use crate::guest::Guest;
use crate::guest::fault::{Fault, What};
use crate::guest::stop::{self, Happened, Record, Stopped};

impl Cpu {
    /// All guests have their first life before them.
    pub(super) fn begin_watching(&mut self) {
        let now = clock::now();
        let mut is_any = false;
        // BOUND: `MAX_GUESTS`, at boot.
        for watchdog in self.machine.guests.iter().filter_map(|guest| guest.watchdog.as_ref()) {
            watchdog.begin(now);
            is_any = true;
        }
        if is_any {
            self.ask_housekeeper_later(Chore::Restarts);
        }
    }

    /// Stops a guest whose watchdog is due, one at a time. When to look again, if there is nothing sooner: `next`.
    pub(super) fn watch_guests(&mut self, next: Next) -> Next {
        let mut earliest = match next {
            // A piece has just been done.
            Next::Soon => return next,
            Next::At(time) => time,
            Next::WhenAsked => u64::MAX,
        };
        let machine = self.machine;
        let now = clock::now();
        // BOUND: `MAX_GUESTS`, some 12 instructions each.
        for guest in machine.guests {
            let Some(watchdog) = guest.watchdog.as_ref().filter(|_| guest.lifecycle.is_running()) else {
                continue;
            };
            let deadline = watchdog.deadline();
            if deadline <= now {
                self.stop_hung(guest, now);
                return Next::Soon;
            }
            earliest = earliest.min(deadline);
        }
        if earliest == u64::MAX { Next::WhenAsked } else { Next::At(earliest) }
    }

    /// Stops a guest wherever its vCPUs are, unless it is being stopped already. What is to be told of it, those cores find out that bring them to rest, and it
    /// is told after the last one.
    fn stop_hung(&mut self, guest: &'static Guest, now: u64) {
        let Some(next) = guest.lifecycle.stop(Cause::Failure, now) else { return };
        let stopped = Stopped { vcpu: 0, reason: "watchdog", next, fault: None };
        let record = Record { life: guest.lifecycle.life(), time: now, happened: Happened::Stopped(stopped) };
        stop::keep(guest, record);
        if let Some(watchdog) = &guest.watchdog {
            watchdog.expire();
        }
        self.backlog.unstopped |= guest.vcpu_set(u64::MAX);
        self.resume_backlog();
    }

    /// A vCPU of a stopped guest is about to come to rest here. If that guest has hung, where it was is told of one of them: of the first that could run and wasn't
    /// asleep, or else of the first that had started. (Of one that comes at the very moment at which another is looked at, nothing is.)
    pub(super) fn note_hung(&mut self, id: VcpuId) {
        let machine = self.machine;
        let guest = machine.guest_of(id);
        if !guest.watchdog.as_ref().is_some_and(|watchdog| watchdog.has_expired()) {
            return;
        }
        let vcpu = machine.vcpu(id);
        let is_loaded = self.loaded == Some(id);
        let is_busy = self.scheduler.picked() == Some(id) || vcpu.waiting_since().is_some();
        if vcpu.hart.state() != HartState::Started {
            return;
        }
        let Some(mut record) = guest.record.try_lock() else { return };
        let Some(Record { happened: Happened::Stopped(stopped), .. }) = &mut *record else { return };
        let known = stopped.fault.as_ref().map(|fault| fault.what);
        if known == Some(What::Hang) || known.is_some() && !is_busy {
            return;
        }
        let state = self.state(id);
        stopped.vcpu = vcpu.index;
        stopped.fault = Some(Fault {
            what: if is_busy { What::Hang } else { What::Sleep },
            pc: state.pc(),
            cause: NO_TRAP,
            address: 0,
            instruction: 0,
            mode: state.mode(),
            x: *state.registers(),
            system: if is_loaded { state.system_registers() } else { state.saved_system_registers() },
        });
    }

    /// All vCPUs of a guest rest. If it has hung, that is told now.
    pub(super) fn tell_of_hung(&mut self, guest: &Guest) {
        if guest.watchdog.as_ref().is_some_and(|watchdog| watchdog.has_expired()) {
            stop::tell_kept(self, guest);
        }
    }
}
