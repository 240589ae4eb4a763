//! Interrupts of the board's devices that belong to guests.
//!
//! A guest that serves its device on other cores can make it interrupt again faster than this core can hand that on. So one interrupt of
//! each guest's devices is handed on in a while; the next one is claimed, and waits for the rest of it. Until it is handed on nobody can
//! complete it, and so it can't come again. Nor is it handed on beside a vCPU that the interrupt controller would keep
//! it from.
use alloc::boxed::Box;
use core::sync::atomic::Ordering;

use ainori_devices::bus;

use ainori_limits::bits::lowest_bit;
use ainori_limits::{IRQ_SOURCES, MAX_GUESTS};

use super::Cpu;
use crate::arch::clock;
use crate::guest::Guest;

// A guest's controller has the numbers of the board's, so there are no others.
const _: () = assert!(IRQ_SOURCES <= u128::BITS as usize);
const _: () = assert!(MAX_GUESTS <= u16::BITS as usize);

/// What this core has claimed for guests.
pub struct Devices {
    /// Apart from what is asked for on the RTOS's way.
    guests: Box<[OfGuest; MAX_GUESTS]>,
    /// The guests of which sources wait, a bit each.
    held: u16,
}

/// The sources of one guest.
#[derive(Clone, Copy)]
struct OfGuest {
    /// When the next one may be handed on.
    due: u64,
    /// Those that have been claimed and wait for that, a bit each.
    held: u128,
    /// Which of them was handed on last: the others have their turns before it.
    last: u32,
    /// The level of all of them in the interrupt controller.
    level: u32,
    /// The life of the guest in which they were claimed: the next one finds its sources completed.
    life: u32,
}

impl Devices {
    /// Nothing has been claimed. Allocates: only at boot.
    pub fn new() -> Self {
        let guests = Box::new([OfGuest { due: 0, held: 0, last: 0, level: 0, life: 0 }; MAX_GUESTS]);
        Self { guests, held: 0 }
    }

    /// Does something wait?
    pub(super) fn are_held(&self) -> bool {
        self.held != 0
    }

    /// All sources of a guest have this level in the interrupt controller from now on.
    pub(super) fn set_level(&mut self, guest: usize, level: u32) {
        if let Some(of) = self.guests.get_mut(guest) {
            of.level = level;
        }
    }

    /// When the next one is to be handed on beside a vCPU that keeps away levels up to `threshold`, in ticks of `time`; `u64::MAX` if never.
    fn next_due(&self, threshold: u32) -> u64 {
        let mut due = u64::MAX;
        let mut rest = self.held;
        // BOUND: the guests, 10 instructions for each of which something waits.
        while rest != 0 {
            if let Some(of) = self.guests.get(lowest_bit(rest.into()) as usize)
                && of.level > threshold
            {
                due = due.min(of.due);
            }
            rest &= rest - 1;
        }
        due
    }

    /// The most urgent guest of which one is to be handed on by `now`.
    fn choose(&self, threshold: u32, now: u64) -> Option<usize> {
        let mut chosen = None;
        let mut above = threshold;
        let mut rest = self.held;
        // BOUND: as above.
        while rest != 0 {
            let index = lowest_bit(rest.into()) as usize;
            if let Some(of) = self.guests.get(index)
                && of.level > above
                && of.due <= now
            {
                (chosen, above) = (Some(index), of.level);
            }
            rest &= rest - 1;
        }
        chosen
    }
}

impl OfGuest {
    /// Takes the next source out of those that wait.
    fn take(&mut self) -> Option<u32> {
        let after = self.last + 1;
        let steps = self.held.rotate_right(after).trailing_zeros();
        let source = (after + steps) % u128::BITS;
        (self.held != 0).then(|| {
            self.held &= !(1 << source);
            self.last = source;
            source
        })
    }
}

impl Cpu {
    /// A source of this guest has been claimed.
    pub(super) fn take_owned_source(&mut self, guest: &'static Guest, source: u32) {
        // If the guest has stopped, whoever starts it again completes it, behind that.
        if !guest.lifecycle.is_running() {
            return;
        }
        self.hand_on_in_turn(guest, source, 0);
    }

    /// Hands a source of this guest on, unless it isn't its turn yet: not before `earliest`, nor within a while behind the last one.
    pub(super) fn hand_on_in_turn(&mut self, guest: &'static Guest, source: u32, earliest: u64) {
        let index = usize::from(guest.index);
        let level = self.device_level_now(guest);
        let Some(of) = self.devices.guests.get_mut(index) else { return };
        let life = guest.lifecycle.life();
        if of.life != life {
            (of.life, of.held) = (life, 0);
            self.devices.held &= !(1 << index);
        }
        let now = clock::now();
        of.due = of.due.max(earliest);
        if now < of.due || of.held != 0 {
            of.held |= 1 << source;
            of.level = level;
            self.devices.held |= 1 << index;
            self.review_held();
        } else {
            of.due = now + self.scheduler.policy().patience;
            let due = of.due;
            self.hand_on(guest, source, due);
        }
    }

    /// One request has come, so one is passed on. If it is one of the board, whose line is still high when the guest completes it, the controller asks again by
    /// itself. The next bell, wherever it rings, has to wait until `next`.
    fn hand_on(&mut self, guest: &'static Guest, source: u32, next: u64) {
        if bus::is_channel_source(source) {
            guest.next_bell.store(next, Ordering::Relaxed);
            return self.hand_on_edge(guest, source);
        }
        let harts = guest.devices.irqchip.request(source, self.sources_of(guest));
        self.look_at_harts(guest, harts);
    }

    /// A bell of a guest has rung.
    pub(super) fn hand_on_edge(&mut self, guest: &Guest, source: u32) {
        let harts = guest.devices.irqchip.pulse(source);
        self.look_at_harts(guest, harts);
    }

    /// Hands on one of those that wait, if its time has come. Is there one?
    #[inline(never)]
    pub(super) fn hand_on_held(&mut self, now: u64) -> bool {
        let Some(index) = self.devices.choose(self.machine.irq_level(self.irq_threshold.number()), now)
        else {
            // Who is next keeps them away, or what was due belonged to a former life.
            self.review_held();
            return false;
        };
        let (Some(of), Some(guest)) = (self.devices.guests.get_mut(index), self.machine.guests.get(index))
        else {
            return false;
        };
        if !guest.lifecycle.is_running() || of.life != guest.lifecycle.life() {
            of.held = 0;
        }
        let source = of.take();
        of.due = now + self.scheduler.policy().patience;
        let due = of.due;
        if of.held == 0 {
            self.devices.held &= !(1 << index);
        }
        self.review_held();
        if let Some(source) = source {
            self.hand_on(guest, source, due);
        }
        source.is_some()
    }

    /// What waits, or what it waits behind, has changed.
    #[inline(never)]
    pub(super) fn review_held(&mut self) {
        let threshold = self.machine.irq_level(self.irq_threshold.number());
        self.set_device_due(self.devices.next_due(threshold));
    }
}
