//! Privileged instructions in a guest's text that breakpoints stand for.
//!
//! Where a hart has no H extension, a guest's kernel runs in user mode, and each of its privileged instructions is illegal there. The firmware doesn't delegate that exception: it takes the trap, and
//! hands it on, in some 460 instructions (OpenSBI 1.5). It does delegate breakpoints. So where a privileged instruction has trapped, its first half is replaced by C.EBREAK, and [`Text`] knows
//! what was there.
//!
//! # The guest can't find out
//! A region of memory is *text* when none of the guest's harts can load from it or store to it: what they have of it in their tables lets them fetch alone. Only then breakpoints are put there. Who loads or
//! stores there all the same faults, the region is [given up](Text::give_up), with all instructions as they were, and the access is made again. A guest that writes its text makes it data so, until it
//! has trapped there often enough again, and each time that takes twice as many traps.
//!
//! What a hart has in its tables from before is to be forgotten, by all harts of the guest, between [`Advice::Forget`] and the first breakpoint. That is the caller's to do: it asks for it as for a fence of the vCPU's own
//! (SBI RFENCE, all harts, all addresses), and this vCPU goes on when all have answered; its next trap in the region finds that it is text now. In the same way all forget what they know of instructions there before a region is data
//! again ([`Progress::Forget`]).
//!
//! # How it is checked
//! Unit tests, and a property test with a model: random traps, loads, stores of several harts. Whatever these read is what was written there, and each breakpoint that a hart
//! fetches is one that it finds here, or one of the guest's own.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod region;
mod sites;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use ainori_space::GuestPhysical;
use spin::Mutex;

use self::region::{Region, State};
use self::sites::Sites;

/// C.EBREAK.
pub const BREAKPOINT: u16 = 0x9002;

/// Bytes of a region: as large as the largest page that a shadow of guests' memory has.
pub const REGION: u64 = 2 << 20;

/// Instructions that are put back at most by a step of [`Text::give_up`].
const AT_ONCE: usize = 8;

/// The guest's memory, as its harts fetch it.
pub trait Code {
    /// The half of an instruction that is there. `None`: no memory is.
    fn load(&self, at: GuestPhysical) -> Option<u16>;

    /// Replaces it, by one store. Only where [`Self::load`] has found one.
    fn store(&self, at: GuestPhysical, half: u16);
}

/// What is to be done when a privileged instruction has trapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Advice {
    /// Nothing more.
    Nothing,
    /// All harts of the guest are to forget what their tables have, before this one goes on.
    Forget,
}

/// How far it is that a region is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// It is data.
    Done,
    /// A step of it was done.
    Step,
    /// All harts of the guest are to forget what they know of its [instructions](Text::instruction), and what their tables have, before this one goes on.
    Forget,
}

impl From<Advice> for Progress {
    fn from(advice: Advice) -> Self {
        match advice {
            Advice::Nothing => Self::Step,
            Advice::Forget => Self::Forget,
        }
    }
}

/// What is known of a guest's text. All its harts share it.
pub struct Text {
    /// Guest-physical address of the first region.
    start: u64,
    /// By region: a [`State`], to be looked at without the lock.
    states: Box<[AtomicU8]>,
    is_on: AtomicBool,
    /// None are replaced any more, and there are none that were.
    is_off: AtomicBool,
    inner: Mutex<Inner>,
}

struct Inner {
    regions: Box<[Region]>,
    sites: Sites,
    /// How far [`Text::reset_some`] has come.
    next: usize,
}

impl Text {
    /// That of a guest whose memory is there: data, all of it. `is_on`: instructions are replaced at all. Allocates: only at boot.
    #[must_use]
    pub fn new(start: u64, size: u64, is_on: bool) -> Self {
        let count = size.div_ceil(REGION) as usize;
        Self {
            start,
            states: (0..count).map(|_| AtomicU8::new(State::Data as u8)).collect(),
            is_on: AtomicBool::new(is_on),
            is_off: AtomicBool::new(!is_on),
            inner: Mutex::new(Inner {
                regions: (0..count).map(|_| Region::DATA).collect(),
                sites: Sites::new(),
                next: 0,
            }),
        }
    }

    /// Are instructions replaced?
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Is no instruction a breakpoint, for good?
    #[inline]
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.is_off.load(Ordering::Acquire)
    }

    /// Is what is there, as far as harts are concerned, to be fetched alone?
    #[inline]
    #[must_use]
    pub fn is_text(&self, at: GuestPhysical) -> bool {
        let state = self.number(at).and_then(|number| self.states.get(number));
        state.is_some_and(|state| state.load(Ordering::Acquire) != State::Data as u8)
    }

    /// The privileged instruction there has trapped, as it stands there, of a hart of the guest with this number. Puts a breakpoint in its place, if its region is text.
    pub fn note(&self, at: GuestPhysical, bits: u32, hart: u8, code: &impl Code) -> Advice {
        let Some(number) = self.number(at) else { return Advice::Nothing };
        let mut inner = self.inner.lock();
        // Under the lock: who switches it off then finds each region that has become text before.
        if !self.is_on() {
            return Advice::Nothing;
        }
        let Inner { regions, sites, .. } = &mut *inner;
        let Some(region) = regions.get_mut(number) else { return Advice::Nothing };
        match region.state {
            State::Data => {
                if !region.counts_enough() {
                    return Advice::Nothing;
                }
                self.change(region, number, State::Emptied);
                return region.ask(hart);
            }
            // This hart has gone on: so all have forgotten what they had.
            State::Emptied if region.has_asked(hart) => self.change(region, number, State::Text),
            State::Emptied | State::GivenUp | State::Restored => return Advice::Nothing,
            State::Text => {}
        }
        if code.load(at) == Some(bits as u16) && sites.insert(at, bits) {
            code.store(at, BREAKPOINT);
        }
        Advice::Nothing
    }

    /// The instruction that a breakpoint stands for.
    #[must_use]
    pub fn instruction(&self, at: GuestPhysical) -> Option<u32> {
        self.inner.lock().sites.find(at)
    }

    /// A hart of the guest with this number loads or stores in a region that is [text](Self::is_text): puts some of its instructions back. When all are, and all harts know it, the region is data.
    pub fn give_up(&self, at: GuestPhysical, hart: u8, code: &impl Code) -> Progress {
        self.number(at).map_or(Progress::Done, |number| self.give_up_region(number, hart, code))
    }

    /// The same for all regions, and no instruction is replaced any more: a hart of the guest is about to be able to load what it may only fetch (`sstatus.MXR`). Done when it is
    /// [off](Self::is_off).
    pub fn switch_off(&self, hart: u8, code: &impl Code) -> Progress {
        self.is_on.store(false, Ordering::Relaxed);
        let is_text = |state: &AtomicU8| state.load(Ordering::Relaxed) != State::Data as u8;
        match self.states.iter().position(is_text) {
            Some(number) => match self.give_up_region(number, hart, code) {
                // Others may be left.
                Progress::Done => Progress::Step,
                progress => progress,
            },
            None => {
                self.is_off.store(true, Ordering::Release);
                Progress::Done
            }
        }
    }

    fn give_up_region(&self, number: usize, hart: u8, code: &impl Code) -> Progress {
        let mut inner = self.inner.lock();
        let Inner { regions, sites, .. } = &mut *inner;
        let Some(region) = regions.get_mut(number) else { return Progress::Done };
        match region.state {
            State::Data => return Progress::Done,
            State::Restored if region.has_asked(hart) => {
                region.give_up();
                self.change(region, number, State::Data);
                return Progress::Done;
            }
            // Another hart waits for the same: but it may never come back.
            State::Restored => return region.ask(hart).into(),
            State::GivenUp => {}
            State::Emptied | State::Text => self.change(region, number, State::GivenUp),
        }
        let start = self.start + number as u64 * REGION;
        let is_empty = sites.remove_some(start..start + REGION, &mut region.next, AT_ONCE, |at, bits| {
            code.store(at, bits as u16);
        });
        if !is_empty {
            return Progress::Step;
        }
        self.change(region, number, State::Restored);
        region.ask(hart).into()
    }

    /// The hypervisor is about to store a byte for the guest: if a breakpoint is there, puts the instruction back.
    pub fn make_way(&self, at: GuestPhysical, code: &impl Code) {
        let at = GuestPhysical(at.0 & !1);
        if self.is_text(at)
            && let Some(bits) = self.inner.lock().sites.remove(at)
        {
            code.store(at, bits as u16);
        }
    }

    /// The guest begins anew, in memory that is written anew: forgets some of what is known of it. True when nothing is any more. None of its harts runs meanwhile.
    pub fn reset_some(&self) -> bool {
        let mut inner = self.inner.lock();
        let Inner { regions, sites, next } = &mut *inner;
        if !sites.clear_some(next) {
            return false;
        }
        // BOUND: the regions of a guest's memory, some five instructions each.
        for (region, state) in regions.iter_mut().zip(&self.states) {
            *region = Region::DATA;
            state.store(State::Data as u8, Ordering::Release);
        }
        true
    }

    /// What the guest has there, in a byte of memory that the hypervisor has read for it.
    #[must_use]
    pub fn byte(&self, at: GuestPhysical, read: u8) -> u8 {
        if !self.is_text(at) {
            return read;
        }
        let bits = self.instruction(GuestPhysical(at.0 & !1));
        bits.map_or(read, |bits| if at.0 & 1 == 0 { bits as u8 } else { (bits >> 8) as u8 })
    }

    /// The same for a doubleword, at a multiple of 8.
    #[must_use]
    pub fn doubleword(&self, at: GuestPhysical, read: u64) -> u64 {
        if !self.is_text(at) {
            return read;
        }
        // BOUND: four halves.
        (0..4).fold(read, |word, half| match self.instruction(GuestPhysical(at.0 + 2 * half)) {
            Some(bits) => word & !(0xffff << (16 * half)) | u64::from(bits & 0xffff) << (16 * half),
            None => word,
        })
    }

    #[inline]
    fn number(&self, at: GuestPhysical) -> Option<usize> {
        Some((at.0.checked_sub(self.start)? / REGION) as usize).filter(|number| *number < self.states.len())
    }

    fn change(&self, region: &mut Region, number: usize, state: State) {
        region.enter(state);
        if let Some(shown) = self.states.get(number) {
            shown.store(state as u8, Ordering::Release);
        }
    }
}
