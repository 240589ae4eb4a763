//! Windows in time (ARINC 653's time partitioning): in each window the core is one guest's.
//!
//! A core has a [`Calendar`] of its own. When a piece of it ends, which is looked for before each decision and for which an alarm is set
//! ([`later`](crate::cpu::later)), all that depends on the levels of vCPUs here is changed, and nowhere else:
//!
//! | what | of the window's guest | of all others |
//! |---|---|---|
//! | level in the run queue, and of timers | that of its rank | none: nobody runs, nor is woken by a timer |
//! | level that other cores read ([`Vcpu::level_on`](crate::guest::vcpu::Vcpu::level_on)) | the same | [`Policy::OUTSIDE`], below whatever runs: who wants something makes its request, and sends nothing |
//! | level of devices in the board's interrupt controller | that of its rank | [`CLOSED`], which each core's threshold keeps away, also while it idles |
//!
//! So interrupts of a guest outside of its windows stay pending in the controller, in its words, or in its timer, and cost whoever runs nothing. When
//! its window begins, the core looks for them as it does when its threshold goes down.
use alloc::vec::Vec;

use ainori_board::BoardIrqchip;
use ainori_sched::{Calendar, Piece, Policy, VcpuId, VcpuSet};

use crate::arch::clock;
use crate::chip::irqchip::CLOSED;
use crate::cpu::{Cpu, Machine};
use crate::guest::Guest;

/// So many vCPUs get or lose their level in one go.
const AT_ONCE: usize = 4;

/// The windows of a core.
pub struct Windows {
    /// The policy has windows.
    pub(in crate::cpu) is_on: bool,
    /// The threshold of the interrupt controller while the core idles, as [it has it](BoardIrqchip::threshold).
    pub(in crate::cpu) idle_threshold: u16,
    calendar: Calendar<'static>,
    /// Whose the core is, until when; 0 before the first look.
    guest: Option<u8>,
    until: u64,
    /// Those of the window before that still have a level.
    closing: VcpuSet,
    /// The window's guest, while not all of its vCPUs here have theirs; and those that have.
    opening: Option<&'static Guest>,
    opened: VcpuSet,
    /// The board's sources that come to this core, and their owners.
    sources: &'static [(u32, u8)],
}

impl Windows {
    /// Those of core `id`, of which none has begun: it is nobody's. Allocates: only at boot.
    pub fn new(machine: &Machine, id: u32, policy: &Policy) -> Self {
        let is_on = policy.has_windows();
        let number = |chip: BoardIrqchip| chip.threshold(CLOSED) as u16;
        let target = machine.board.harts.get(id as usize).and_then(|hart| hart.irq_target);
        let owned = machine.source_owner.iter().enumerate().filter_map(|(source, owner)| {
            owner
                .as_ref()
                .filter(|owner| Some(owner.target) == target)
                .map(|owner| (source as u32, owner.guest))
        });
        let sources: Vec<(u32, u8)> = if is_on { owned.collect() } else { Vec::new() };
        Self {
            is_on,
            idle_threshold: machine.board.irqchip.filter(|_| is_on).map_or(0, number),
            calendar: machine.calendars[id],
            guest: None,
            until: 0,
            closing: VcpuSet::EMPTY,
            opening: None,
            opened: VcpuSet::EMPTY,
            sources: sources.leak(),
        }
    }
}

impl Cpu {
    /// All vCPUs of this core are outside of their windows until one begins. Once, at boot, when it has got them.
    pub fn begin_outside(&mut self) {
        if self.mechanisms.windows.is_on {
            let _ = self.scheduler.set_levels(self.scheduler.owned(), None, usize::MAX);
        }
    }

    /// If a piece of the core's calendar has ended by `now`, the next one begins, in parts. `now` is later afterwards. True if an interrupt has come in
    /// meanwhile, which is to be seen to first: then this is asked again.
    #[inline(never)]
    pub(super) fn keep_to_windows(&mut self, now: &mut u64) -> bool {
        // BOUND: for the vCPUs of two guests, `AT_ONCE` of them in each round, and a preemption point behind it.
        while self.begin_part(*now) {
            if self.gives_way() {
                return true;
            }
            *now = clock::now();
        }
        false
    }

    /// Does the next part of what begins a window. Was there any?
    fn begin_part(&mut self, now: u64) -> bool {
        let windows = &mut self.mechanisms.windows;
        if now >= windows.until {
            self.begin_window(now);
            return true;
        }
        if !windows.closing.is_empty() {
            let (again, rest) = self.scheduler.set_levels(windows.closing, None, AT_ONCE);
            windows.closing = rest;
            self.pending.deadlines |= again.timers;
            return true;
        }
        let Some(opened) = windows.opening else { return false };
        let vcpus = opened.vcpu_set(u64::MAX) & self.scheduler.owned();
        let level = self.order.rank(VcpuId(opened.vcpus().start)).level;
        if windows.opened != vcpus {
            let (again, rest) = self.scheduler.set_levels(vcpus - windows.opened, Some(level), AT_ONCE);
            windows.opened = vcpus - rest;
            self.pending.deadlines |= again.timers;
            return true;
        }
        windows.opening = None;
        self.publish_levels(vcpus, level);
        self.set_device_levels(opened, self.machine.device_level(opened, self.id));
        self.begin_for(vcpus);
        // Who should have been woken before the window began is one of those to choose from.
        self.update_deadline_out_of_line(Some(now));
        self.meet_deadline(now);
        true
    }

    /// A piece of the calendar has ended: notes who is to lose their level now, and who gets one then.
    fn begin_window(&mut self, now: u64) {
        let machine = self.machine;
        let guest = |index: Option<u8>| index.and_then(|index| machine.guests.get(usize::from(index)));
        let windows = &mut self.mechanisms.windows;
        let Piece { guest: opened, until } = windows.calendar.at(now);
        let closed = core::mem::replace(&mut windows.guest, opened);
        windows.until = until;
        if closed != opened {
            windows.opening = guest(opened);
            windows.opened = VcpuSet::EMPTY;
            if let Some(closed) = guest(closed) {
                windows.closing |= closed.vcpu_set(u64::MAX) & self.scheduler.owned();
                let closing = windows.closing;
                self.publish_levels(closing, Policy::OUTSIDE);
                self.set_device_levels(closed, CLOSED);
            }
        }
        // The alarm is wanted then.
        self.later.set_window(until);
        self.look_for_sample();
        self.pending.alarm = true;
    }

    fn publish_levels(&self, vcpus: VcpuSet, level: u8) {
        // BOUND: the vCPUs of one guest, some 10 instructions each.
        for id in vcpus {
            self.machine.vcpu(id).publish_level(self.id, level);
        }
    }

    /// The interrupts of a guest's devices that come to this core have this level from now on.
    fn set_device_levels(&mut self, guest: &Guest, level: u32) {
        let own = self.machine.device_level(guest, self.id);
        let before = if level == CLOSED { own } else { CLOSED };
        let Some(irqs) = &self.irqs else { return };
        // BOUND: the sources of devices that guests own, some 8 instructions each, and for those of one guest a store to the controller; an IMSIC wants two looks for their identities
        // and some 40 instructions.
        for (source, owner) in self.mechanisms.windows.sources.iter().copied() {
            if owner == guest.index {
                irqs.set_level(source, before, level);
            }
        }
        if self.devices.are_waiting() {
            self.devices.set_level(usize::from(guest.index), level);
            self.review_waiting();
        }
    }

    /// The level at which interrupts of a guest's devices come to this core now.
    pub(in crate::cpu) fn device_level_now(&self, guest: &Guest) -> u32 {
        let windows = &self.mechanisms.windows;
        if windows.is_on && windows.guest != Some(guest.index) {
            return CLOSED;
        }
        self.machine.device_level(guest, self.id)
    }
}
