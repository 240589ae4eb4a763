//! Privileged instructions in a guest's text that breakpoints stand for.
//!
//! Where a hart has no H extension, a guest's kernel runs in user mode, and each of its privileged instructions is illegal there. The firmware doesn't delegate that exception: it takes the trap, and
//! hands it on, in some 460 instructions (OpenSBI 1.5). It does delegate breakpoints. So where a privileged instruction has trapped, its first half is replaced by C.EBREAK, and [`Text`] knows
//! what was there.
//!
//! # The guest can't find out
//! A page of memory is *text* when none of the guest's harts can load from it or store to it: what they have of it in their tables lets them fetch alone. Only then breakpoints are put there. Who loads or
//! stores there all the same faults, the page is [given up](Text::give_up), with all instructions as they were, and the access is made again. A guest that writes its text makes it data so, until it
//! has trapped there often enough again, and each time that takes twice as many traps. Traps are counted by blocks of 2 MiB, and all pages of a block in which some were become text together, as harts
//! forget everything for that. (They are prepared by a few traps, each of which sees to some, so that none takes long.)
//!
//! A device's loads and stores are seen by nobody. So the guest must have none that can reach a page which is text: what it loads there has breakpoints in it. (What it stores there is kept, but where it is a
//! breakpoint itself.)
//!
//! What a hart has in its tables from before is to be forgotten, by all harts of the guest, between [`Advice::Forget`] and the first breakpoint. That is the caller's to do: it asks for it as for a fence of the vCPU's own
//! (SBI RFENCE, all harts, all addresses), and this vCPU goes on when all have answered; its next trap in the page finds that it is text now. In the same way all forget what they know of instructions there before a page is data
//! again ([`Progress::Forget`]).
//!
//! # How it is checked
//! Unit tests, and a property test with a model: random traps, loads, stores of several harts. Whatever these read is what was written there, and each breakpoint that a hart
//! fetches is one that it finds here, or one of the guest's own. What harts do at the same time is tried in each order by loom (`src/model.rs`).
#![cfg_attr(not(any(test, loom)), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod atomic;
#[cfg(all(test, loom))]
mod model;
mod region;
mod sites;
#[cfg(all(test, not(loom)))]
mod tests;

use alloc::boxed::Box;

use ainori_limits::PAGE;
use ainori_space::GuestPhysical;

use self::atomic::{AtomicBool, Mutex, Ordering};
use self::region::{Block, Shown, State};
use self::sites::Sites;

/// C.EBREAK.
pub const BREAKPOINT: u16 = 0x9002;
/// EBREAK.
const LONG_BREAKPOINT: u32 = 0x0010_0073;

/// Bytes of a block of pages: as large as the largest page that a shadow of guests' memory has.
pub const BLOCK: u64 = 2 << 20;
const PAGES_OF_A_BLOCK: usize = (BLOCK / PAGE) as usize;

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

/// How far it is that a page is given up.
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

/// What a breakpoint stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Look {
    /// This instruction.
    Instruction(u32),
    /// None that was replaced.
    Nothing,
    /// Another hart changes what is known at this moment.
    Busy,
}

/// What is known of a guest's text. All its harts share it.
pub struct Text {
    /// Guest-physical address of the first page.
    start: u64,
    shown: Shown,
    is_on: AtomicBool,
    /// None are replaced any more, and there are none that were.
    is_off: AtomicBool,
    inner: Mutex<Inner>,
}

struct Inner {
    blocks: Box<[Block]>,
    sites: Sites,
    /// How far [`Text::reset_some`] has come: with the sites, and with pages.
    next: usize,
    next_page: usize,
    are_sites_clear: bool,
    /// How far [`Text::switch_off`] has come.
    next_off: usize,
}

impl Text {
    /// That of a guest whose memory is there: data, all of it. `is_on`: instructions are replaced at all. Allocates: only at boot.
    #[must_use]
    pub fn new(start: u64, size: u64, is_on: bool) -> Self {
        let (pages, blocks) = (size.div_ceil(PAGE) as usize, size.div_ceil(BLOCK) as usize);
        Self {
            start,
            shown: Shown::new(pages, blocks),
            is_on: AtomicBool::new(is_on),
            is_off: AtomicBool::new(!is_on),
            inner: Mutex::new(Inner {
                blocks: (0..blocks).map(|_| Block::NEW).collect(),
                sites: Sites::new(),
                next: 0,
                next_page: 0,
                are_sites_clear: false,
                next_off: 0,
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
        self.page(at).is_some_and(|page| self.shown.state(page) != State::Data)
    }

    /// Are all pages of the block that this is in alike, data, so that it may be one large page?
    #[inline]
    #[must_use]
    pub fn is_plain(&self, at: GuestPhysical) -> bool {
        at.0.checked_sub(self.start).is_none_or(|offset| self.shown.is_plain((offset / BLOCK) as usize))
    }

    /// The privileged instruction there has trapped, of a hart of the guest with this number. Puts a breakpoint in its place, if its page is text and it is there still.
    pub fn note(&self, at: GuestPhysical, bits: u32, hart: u8, code: &impl Code) -> Advice {
        let Some(page) = self.page(at) else { return Advice::Nothing };
        // Nobody waits for it: the instruction will trap again.
        let Some(mut inner) = self.inner.try_lock() else { return Advice::Nothing };
        // Under the lock: who switches it off then finds each page that has become text before.
        if !self.is_on() {
            return Advice::Nothing;
        }
        let Inner { blocks, sites, .. } = &mut *inner;
        let number = page / PAGES_OF_A_BLOCK;
        let Some(block) = blocks.get_mut(number) else { return Advice::Nothing };
        let state = self.shown.state(page);
        if block.is_emptying()
            || state == State::Data && block.counts_enough((page % PAGES_OF_A_BLOCK) as u16)
        {
            // BOUND: the pages that are taken by one trap, some 25 instructions each.
            for wanted in block.take_wanted() {
                let page = number * PAGES_OF_A_BLOCK + usize::from(wanted);
                if self.shown.state(page) == State::Data {
                    self.shown.set(page, number, State::Emptied);
                }
            }
            // The next traps go on with it, and then one has all forget: that takes long as well, where a guest has many harts.
            return Advice::Nothing;
        }
        match state {
            State::Data => return Advice::Nothing,
            // This hart has gone on: so all have forgotten what they had.
            State::Emptied if block.has_asked_emptied(hart) => self.shown.set(page, number, State::Text),
            State::Emptied if block.may_ask_emptied(hart) => return block.ask_emptied(hart),
            State::Emptied | State::GivenUp | State::Restored => return Advice::Nothing,
            State::Text => {}
        }
        if is_there(at, bits, code) && sites.insert(at, bits) {
            code.store(at, BREAKPOINT);
        }
        Advice::Nothing
    }

    /// The instruction that a breakpoint stands for.
    #[must_use]
    pub fn instruction(&self, at: GuestPhysical) -> Option<u32> {
        // None is anywhere else: so for a breakpoint of the guest's own there nobody waits for the lock.
        if self.is_text(at) { self.inner.lock().sites.get(at) } else { None }
    }

    /// The same for a hart that has trapped there, and which traps again if that isn't known at this moment: what it waits for may be looks of others at many places, one
    /// after the other, and interrupts are looked for between two traps.
    pub fn look(&self, at: GuestPhysical) -> Look {
        if !self.is_text(at) {
            return Look::Nothing;
        }
        let Some(inner) = self.inner.try_lock() else { return Look::Busy };
        inner.sites.get(at).map_or(Look::Nothing, Look::Instruction)
    }

    /// A hart of the guest with this number loads or stores in a page that is [text](Self::is_text): puts some of its instructions back. When all are, and all harts know it, the page is data.
    pub fn give_up(&self, at: GuestPhysical, hart: u8, code: &impl Code) -> Progress {
        let Some(page) = self.page(at) else { return Progress::Done };
        // Others do the same, or something short: who waits for them can look for interrupts meanwhile.
        let Some(mut inner) = self.inner.try_lock() else { return Progress::Step };
        self.give_up_page(&mut inner, page, hart, code)
    }

    /// The same for all pages, and no instruction is replaced any more: a hart of the guest is about to be able to load what it may only fetch (`sstatus.MXR`). Done when it is
    /// [off](Self::is_off).
    pub fn switch_off(&self, hart: u8, code: &impl Code) -> Progress {
        /// Pages that are looked at.
        const LOOKS: usize = 32;
        self.is_on.store(false, Ordering::Relaxed);
        // Behind this, no page becomes text any more; and each that has is seen.
        let Some(from) = self.inner.try_lock().map(|inner| inner.next_off) else { return Progress::Step };
        // That takes longer, and others want the lock.
        let found = self.shown.next(from, LOOKS);
        let Some(mut inner) = self.inner.try_lock() else { return Progress::Step };
        match found {
            Some(page) => {
                inner.next_off = inner.next_off.max(page);
                match self.give_up_page(&mut inner, page, hart, code) {
                    // Others may be left.
                    Progress::Done => Progress::Step,
                    progress => progress,
                }
            }
            None if from + LOOKS < self.shown.pages() => {
                inner.next_off = inner.next_off.max(from + LOOKS);
                Progress::Step
            }
            None => {
                self.is_off.store(true, Ordering::Release);
                Progress::Done
            }
        }
    }

    fn give_up_page(&self, inner: &mut Inner, page: usize, hart: u8, code: &impl Code) -> Progress {
        let Inner { blocks, sites, .. } = inner;
        let number = page / PAGES_OF_A_BLOCK;
        let Some(block) = blocks.get_mut(number) else { return Progress::Done };
        match self.shown.state(page) {
            State::Data => return Progress::Done,
            State::Restored if block.has_asked_restored(hart) => {
                block.give_up();
                self.shown.set(page, number, State::Data);
                return Progress::Done;
            }
            // Another hart waits for the same: but it may never come back.
            State::Restored => {
                block.ask_restored(hart);
                return Progress::Forget;
            }
            State::GivenUp => {}
            State::Emptied | State::Text => self.shown.set(page, number, State::GivenUp),
        }
        // One page of a block after the other: whoever comes helps with the first.
        let page = if block.begins_or_goes_on((page % PAGES_OF_A_BLOCK) as u16) {
            page
        } else {
            number * PAGES_OF_A_BLOCK + usize::from(block.giving)
        };
        let start = self.start + page as u64 * PAGE;
        let is_empty = sites
            .remove_some(start..start + PAGE, &mut block.next, AT_ONCE, |at, bits| restore(at, bits, code));
        if is_empty {
            self.shown.set(page, number, State::Restored);
            block.restore();
        }
        Progress::Step
    }

    /// The hypervisor is about to store a byte for the guest: if that is of an instruction that a breakpoint stands for, puts that back. True: it has, and all harts of the guest are to forget what they know of it
    /// before the one that asked for the store goes on.
    #[must_use]
    pub fn make_way(&self, at: GuestPhysical, code: &impl Code) -> bool {
        let half = at.0 & !1;
        // The byte is in an instruction's first half, where a breakpoint is, or in its second one.
        let [first, second] = [half, half.wrapping_sub(2)].map(|at| self.put_back(GuestPhysical(at), code));
        first || second
    }

    /// Puts an instruction back that begins there. False: there was no breakpoint.
    fn put_back(&self, at: GuestPhysical, code: &impl Code) -> bool {
        if self.is_text(at)
            && let Some(bits) = self.inner.lock().sites.remove(at)
        {
            restore(at, bits, code);
            return true;
        }
        false
    }

    /// The guest begins anew, in memory that is written anew: forgets some of what is known of it. True when nothing is any more. None of its harts runs meanwhile.
    pub fn reset_some(&self) -> bool {
        /// Pages that are looked at.
        const LOOKS: usize = 16;
        let mut inner = self.inner.lock();
        let Inner { blocks, sites, next, next_page, are_sites_clear, .. } = &mut *inner;
        if !*are_sites_clear {
            *are_sites_clear = sites.clear_some(next);
            return false;
        }
        let end = (*next_page + LOOKS).min(self.shown.pages());
        // BOUND: `LOOKS`, some 30 instructions each.
        for page in *next_page..end {
            let number = page / PAGES_OF_A_BLOCK;
            self.shown.set(page, number, State::Data);
            if page % PAGES_OF_A_BLOCK == 0
                && let Some(block) = blocks.get_mut(number)
            {
                *block = Block::NEW;
            }
        }
        *next_page = if end == self.shown.pages() { 0 } else { end };
        *are_sites_clear = *next_page != 0;
        *next_page == 0
    }

    /// What the guest has there, in a byte of memory that the hypervisor has read for it.
    #[must_use]
    pub fn byte(&self, at: GuestPhysical, read: u8) -> u8 {
        if !self.is_text(at) {
            return read;
        }
        let byte_of = |half: u16| if at.0 & 1 == 0 { half as u8 } else { (half >> 8) as u8 };
        match self.instruction(GuestPhysical(at.0 & !1)) {
            Some(bits) if read == byte_of(BREAKPOINT) => byte_of(bits as u16),
            _ => read,
        }
    }

    /// The same for a doubleword, at a multiple of 8.
    #[inline(always)]
    #[must_use]
    pub fn doubleword(&self, at: GuestPhysical, read: u64) -> u64 {
        if self.is_text(at) { self.doubleword_of_text(at, read) } else { read }
    }

    #[cold]
    fn doubleword_of_text(&self, at: GuestPhysical, read: u64) -> u64 {
        // BOUND: four halves.
        (0..4).fold(read, |word, half| match self.instruction(GuestPhysical(at.0 + 2 * half)) {
            Some(bits) if (word >> (16 * half)) as u16 == BREAKPOINT => {
                word & !(0xffff << (16 * half)) | u64::from(bits & 0xffff) << (16 * half)
            }
            _ => word,
        })
    }

    #[inline]
    fn page(&self, at: GuestPhysical) -> Option<usize> {
        Some((at.0.checked_sub(self.start)? / PAGE) as usize).filter(|page| *page < self.shown.pages())
    }
}

/// Has the guest itself a breakpoint there, C.EBREAK or EBREAK? Asked by a hart that has fetched one where none [stands for another instruction](Text::look): it may be that it was put back since. Then what
/// is there now is that instruction, of which several have EBREAK's first half (SRET, WFI, SFENCE.VMA).
#[must_use]
pub fn is_own_breakpoint(at: GuestPhysical, code: &impl Code) -> bool {
    match code.load(at) {
        Some(BREAKPOINT) => true,
        // What goes on in another page was never replaced: so a hart that has fetched a breakpoint there has fetched one of the guest's own.
        Some(half) if half == LONG_BREAKPOINT as u16 => {
            second_half(at).is_none_or(|next| code.load(next) == Some((LONG_BREAKPOINT >> 16) as u16))
        }
        _ => false,
    }
}

/// Where the second half is of an instruction that is there, if that is in the same page: where other pages are, nobody says here.
fn second_half(at: GuestPhysical) -> Option<GuestPhysical> {
    const HALF: u64 = 2;
    Some(GuestPhysical(at.0 + HALF)).filter(|next| !next.0.is_multiple_of(PAGE))
}

/// Puts the first half of an instruction where its breakpoint is: not over what a device has stored there meanwhile.
fn restore(at: GuestPhysical, bits: u32, code: &impl Code) {
    if code.load(at) == Some(BREAKPOINT) {
        code.store(at, bits as u16);
    }
}

/// Is this instruction there, all of it? Else the hart was told of another one than it was at, or it has been changed meanwhile. None is that goes on in another page.
fn is_there(at: GuestPhysical, bits: u32, code: &impl Code) -> bool {
    second_half(at).is_some_and(|next| {
        code.load(at) == Some(bits as u16) && code.load(next) == Some((bits >> 16) as u16)
    })
}
