//! Interrupts of the core itself.
use ainori_sched::{VcpuId, VcpuSet};

use super::Cpu;
use crate::arch::clock;
use crate::arch::context::enter_guest;
use crate::arch::hart::{self, Interrupts};
use crate::arch::trap::Interrupt;
use crate::chip::irqchip::{Claim, CoreIrqs};
use crate::stats::{Exit, interrupt};

impl Cpu {
    /// The alarm: some sleeping vCPU's timer is due, or the quantum is over, or there is housework, or what was deferred, a vCPU that is sampled
    /// or a device's interrupt that waits has its turn ([`later`](super::later)).
    #[inline(always)]
    pub(super) fn take_alarm(&mut self) -> Exit {
        let now = self.note_alarm();
        self.wake_expired(now);
        if self.own_work_due > now {
            return Exit::Timer;
        }
        self.begin_own_work(now)
    }

    /// The alarm, found pending at a preemption point, where no guest was interrupted by it. Unlike [`Self::take_alarm`] this wakes also
    /// who is due within the guard; if one that takes cores wants this one then, housework is put off for that; a look at hidden housework
    /// doesn't go back to a guest; and the alarm counts as out of date afterwards (`pending.alarm`).
    #[inline(never)]
    pub(super) fn take_alarm_between_guests(&mut self) -> Exit {
        let now = self.note_alarm();
        self.pending.alarm = true;
        if self.meet_deadline(now) && self.is_wanted() {
            // What is deferred then begins anew at the switch; for one that keeps the core, having slept for a moment, it interrupts once.
            if self.housework_alarm() <= now {
                self.defer_housework(now);
            }
            return Exit::Timer;
        }
        // To look at all sleepers may have taken as long as what follows.
        if self.gives_way_if_long() {
            return Exit::Timer;
        }
        self.see_to_own_work(now)
    }

    /// The alarm has interrupted a guest for work of the hypervisor's own.
    #[inline(never)]
    fn begin_own_work(&mut self, now: u64) -> Exit {
        if let Some(state) = self.return_from_look(now) {
            // SAFETY: of the running vCPU, which the alarm has interrupted: it was left in the hart, and nobody was loaded since.
            unsafe { enter_guest(state) }
        }
        let exit = self.see_to_own_work(now);
        // What that has given way to, before a guest is entered: the alarm is set for the same work once more, and where a hart takes its timer before devices (QEMU
        // without the AIA does), it would come first again and again.
        if !hart::pending_interrupts().is_empty() {
            self.look_for_interrupts();
        }
        exit
    }

    /// The alarm has fired. When?
    #[inline(always)]
    fn note_alarm(&mut self) -> u64 {
        self.counters.interrupts[interrupt::TIMER] += 1;
        self.silence_alarm();
        clock::now()
    }

    /// Whatever happens next computes the alarm anew; until then it must not fire again, or at all.
    #[inline(always)]
    fn silence_alarm(&mut self) {
        self.alarm = u64::MAX;
        hart::set_alarm(u64::MAX);
    }

    /// What the alarm was for is seen to before it has fired.
    pub(super) fn cancel_alarm(&mut self) {
        self.silence_alarm();
        self.pending.alarm = true;
    }

    /// Does the work of the hypervisor's own that the alarm was for.
    #[inline(never)]
    fn see_to_own_work(&mut self, now: u64) -> Exit {
        let mut exit = Exit::Timer;
        if self.later.due() <= now {
            exit = self.serve_mechanisms(now);
            // Each behind a preemption point.
            if self.gives_way() {
                return exit;
            }
            if self.later.is_device_due(now) {
                // Who has been woken just now keeps them away from here on.
                self.hold_back_devices();
                if self.hand_on_waiting(now) {
                    exit = Exit::External;
                }
                if self.gives_way() {
                    return exit;
                }
            }
        }
        if self.housework_alarm() <= now {
            exit = Exit::Housekeeping;
            // Who was woken on the way here may have taken as long as a look at all levels does.
            if self.gives_way_if_long() {
                return exit;
            }
            self.keep_house(clock::now());
        }
        if hart::pending_interrupts().is_empty() {
            self.end_irqs_off(exit, clock::now());
        }
        exit
    }

    /// Something that is only now and then worth a look.
    fn serve_mechanisms(&mut self, now: u64) -> Exit {
        if self.later.take_look(now) {
            self.serve_push(now);
            self.end_quiet();
            self.resume_backlog();
        }
        let exit = if self.next_sample() <= now { self.take_sample(now) } else { Exit::Timer };
        self.look_for_sample();
        exit
    }

    /// Another core sent an IPI. What it wants is in the mail, which is read before the next guest is entered unless it can wait.
    pub(super) fn take_ipi(&mut self) -> Exit {
        self.counters.interrupts[interrupt::SOFTWARE] += 1;
        hart::clear_software_interrupt();
        Exit::Ipi
    }

    /// An IPI or a device, while a vCPU ran. The mail may have been read already, when this core was in the hypervisor anyhow, or it can wait as that vCPU
    /// takes cores from others or is about to be interrupted by its timer: then it goes on at once.
    #[inline(always)]
    pub(super) fn take_interrupt_beside(&mut self, which: Interrupt, interrupted: VcpuId) -> Exit {
        let exit = match which {
            Interrupt::Software => self.take_ipi(),
            Interrupt::External => self.take_external(),
            Interrupt::GuestFile => self.take_guest_file(),
        };
        if exit == Exit::Ipi && self.mailbox.has_mail() && !self.interrupt_at_once(interrupted) {
            self.may_leave_mail(interrupted);
        }
        exit
    }

    /// Mail is mostly an interrupt for the vCPU that was just running: it goes on with that, and this core has been away all the time. False if it is
    /// something else: that is read, and waits.
    #[inline(always)]
    fn interrupt_at_once(&mut self, id: VcpuId) -> bool {
        let mut items = VcpuSet::EMPTY;
        self.mailbox.take_away(|from, some| items |= self.note_mail(from, some));
        if items != VcpuSet::of(id) || !ainori_handover::interrupt_running(self, id) {
            self.put_unread(items);
            return false;
        }
        true
    }

    /// A device of the board, or an IPI where these come as messages.
    #[inline(never)]
    pub(super) fn take_external(&mut self) -> Exit {
        let claim = self.irqs.as_ref().map_or(Claim::Nothing, CoreIrqs::claim);
        if claim == Claim::Ipi {
            return self.take_ipi();
        }
        self.counters.interrupts[interrupt::EXTERNAL] += 1;
        if let Claim::Source(source) = claim {
            self.take_source(source);
        }
        Exit::External
    }

    /// A device of the board. It stays quiet until it is completed, which a guest does for what it owns.
    #[inline(never)]
    fn take_source(&mut self, source: u32) {
        let Some(irqs) = &self.irqs else { return };
        if let Some(owner) = self.machine.owner_of(source) {
            irqs.hold(owner.interrupt.now());
            if let Some(guest) = self.machine.guests.get(usize::from(owner.guest)) {
                self.take_owned_source(guest, source);
            }
        } else if let Some(uart) = self.machine.board.uart {
            irqs.hold(uart.interrupt);
            self.take_serial_interrupt();
            if let Some(irqs) = &self.irqs {
                irqs.complete(uart.interrupt);
            }
        }
    }

    /// A device of the board, found pending at a preemption point. It is left pending if somebody is woken before it, or if who will have
    /// the core next keeps such devices away: whoever called this looks for interrupts once more.
    #[inline(never)]
    pub(super) fn take_external_unless_woken(&mut self) {
        // If the alarm has been taken, nobody else sees to that before a guest is entered.
        let is_woken = self.meet_deadline(clock::now());
        if !self.hold_back_devices() && !is_woken {
            self.take_external();
        } else {
            self.note_put_off(Interrupts::EXTERNAL);
        }
    }

    /// Who will have the core next keeps devices of less urgent guests away from now on. True if they weren't before.
    fn hold_back_devices(&mut self) -> bool {
        let first = self.scheduler.first().and_then(|id| self.residents[id].as_deref());
        // A policy that defers may go on with somebody else; who has been woken by its timer has raised the core's threshold.
        let threshold = first
            .filter(|first| !self.mechanisms.deferral.is_on || first.threshold == self.threshold.level)
            .map_or(0, |first| first.irq_threshold);
        let is_raised =
            self.machine.irq_level(threshold) > self.machine.irq_level(self.irq_threshold.number());
        if is_raised {
            self.set_irq_threshold(threshold);
        }
        is_raised
    }
}
