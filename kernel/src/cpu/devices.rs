//! Interrupts of the board's devices that belong to guests.
//!
//! A guest that serves its device on other cores can make it interrupt again faster than this core can hand that on. So one interrupt of each guest's
//! devices is handed on in a while; the next one is claimed, and waits for the rest of it. Until it is handed on nobody can complete it, and so it can't
//! come again.
use ainori_limits::{MAX_GUESTS, PLIC_SOURCES};

use super::Cpu;
use crate::arch::clock;
use crate::guest::Guest;

// A guest's controller has the numbers of the board's, so there are no others.
const _: () = assert!(PLIC_SOURCES <= u128::BITS as usize);

/// What this core has claimed for guests.
pub struct Devices {
    /// When the next interrupt of each guest's devices may be handed on, in ticks of `time`.
    due: [u64; MAX_GUESTS],
    /// Sources that have been claimed and wait for that, a bit each.
    held: u128,
    /// In which life of each guest: the next one finds its sources completed.
    lives: [u32; MAX_GUESTS],
}

impl Devices {
    /// Nothing has been claimed.
    pub const NONE: Self = Self { due: [0; MAX_GUESTS], held: 0, lives: [0; MAX_GUESTS] };

    /// Does something wait?
    pub(super) fn are_held(&self) -> bool {
        self.held != 0
    }
}

impl Cpu {
    /// A source of this guest has been claimed.
    pub(super) fn take_owned_source(&mut self, guest: &'static Guest, source: u32) {
        // If the guest has stopped, whoever starts it again completes it, behind that.
        if !guest.lifecycle.is_running() {
            return;
        }
        let now = clock::now();
        let Some((due, life)) = self.devices.of(guest) else { return };
        if now < *due {
            *life = guest.lifecycle.life();
            let due = *due;
            self.devices.held |= 1 << source;
            self.look_again_at(due);
        } else {
            *due = now + self.scheduler.policy().patience;
            self.hand_on(guest, source);
        }
    }

    /// One request has come, so one is passed on. If the board's line is still high when the guest completes it, the controller asks again by itself.
    fn hand_on(&mut self, guest: &Guest, source: u32) {
        let harts = guest.devices.irqchip.request(source);
        self.look_at_harts(guest, harts);
    }

    /// Hands on one of those that wait, if its time has come, and has this core look again for the others.
    #[inline(never)]
    pub(super) fn hand_on_held(&mut self, now: u64) {
        let mut rest = self.devices.held;
        // BOUND: the sources that wait, some 60 instructions each; of each guest's, the next can't come before it is handed on.
        while rest != 0 {
            let source = rest.trailing_zeros();
            rest &= rest - 1;
            let owner = self.machine.source_owner.get(source as usize).copied().flatten();
            let Some(guest) = owner.and_then(|owner| self.machine.guests.get(usize::from(owner.guest)))
            else {
                continue;
            };
            let Some((due, life)) = self.devices.of(guest) else { continue };
            if now < *due {
                let due = *due;
                self.look_again_at(due);
                continue;
            }
            let is_of_this_life = guest.lifecycle.is_running() && *life == guest.lifecycle.life();
            *due = now + self.scheduler.policy().patience;
            self.devices.held &= !(1 << source);
            if is_of_this_life {
                self.hand_on(guest, source);
            }
            if rest != 0 {
                self.look_again_at(now);
            }
            return;
        }
    }

    /// What was to be looked at again has been forgotten, as this core has got room: those that wait aren't.
    #[inline(never)]
    pub(super) fn remember_held(&mut self) {
        let now = clock::now();
        self.look_again_at(now);
    }
}

impl Devices {
    /// When the next one of a guest may be handed on, and in which life one was claimed.
    fn of(&mut self, guest: &Guest) -> Option<(&mut u64, &mut u32)> {
        let index = usize::from(guest.index);
        self.due.get_mut(index).zip(self.lives.get_mut(index))
    }
}
