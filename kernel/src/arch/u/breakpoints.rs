//! Breakpoints that a vCPU has come by, and what they stand for: so that the guest's tables needn't be walked each time, and the [fast path](super::fast) finds what to do.
use core::cell::Cell;

use ainori_shadow::Satp;
use ainori_supervisor::Privileged;
use ainori_text::Text;

use super::fast;
use super::page::{Entry, PLACES, Page};

/// Where a stamp is in a tag: in bits in which addresses at one place don't differ if they are the same in all others. Its upper bits are those that are the same as bit 47 of each
/// virtual address of up to four levels (Sv48), its lower ones those that say which place it is.
const UPPER: u32 = 48;
const LOWER: u32 = PLACES.trailing_zeros() + 1;
/// Between them.
const ADDRESS: u64 = (1 << UPPER) - (1 << LOWER);
/// Of none before it. Its upper bits are never all zero, nor all one: so the tag of an entry is no address, and none is found with 0 for a stamp.
const FIRST: u64 = 1 << UPPER;

/// The upper bits of the last ones.
const LAST: u64 = (u64::MAX >> UPPER) - 1;

/// The next one. Behind the last one is the first one again.
const fn next(stamp: u64) -> u64 {
    // The carry goes through what is between them.
    let next = (stamp | ADDRESS).wrapping_add(1) & !ADDRESS;
    if next >> UPPER > LAST { FIRST } else { next }
}

/// The place that is emptied when this stamp begins. Among the last ones each place has its own two, so that this isn't to be done for all of them at once: whatever is in a place when they have
/// run out has been entered since, and has one of these last stamps, from the place's second one on; and none with such a one is looked for again before the place has been emptied again.
const fn emptied(stamp: u64) -> Option<usize> {
    if stamp >> UPPER == LAST { Some(stamp as usize % PLACES) } else { None }
}

const _: () = assert!(
    next(FIRST) == FIRST + 1
        && next(FIRST | ((1 << LOWER) - 1)) == 2 * FIRST
        && next(!ADDRESS - FIRST) == FIRST
        && matches!(emptied(LAST << UPPER), Some(0))
        && matches!(emptied(LAST << UPPER | (PLACES as u64 - 1)), Some(place) if place == PLACES - 1)
        && 1 << LOWER >= PLACES
        && emptied((LAST << UPPER) - 1).is_none()
);

/// Pieces of addresses in which there may be something, a power of two.
const PIECES: usize = 512;
const WORD: usize = u64::BITS as usize;

/// Bytes of an instruction.
const LENGTH: u64 = Privileged::LENGTH as u64;
/// The fast path carries out no more instructions one behind the other, without a look for interrupts: Linux's kernel has five at the beginning of its trap handler.
const MOST_IN_A_ROW: u64 = 6;

/// What there was at the last breakpoints, by the virtual addresses of the vCPU's kernel.
pub(super) struct Breakpoints {
    page: &'static Page,
    text: &'static Text,
    /// Bits of an address within the largest leaf that the guest's tables can have.
    leaf: u32,
    /// In which pieces of addresses, as large as such a leaf, there are entries.
    pieces: [u64; PIECES / WORD],
}

impl Breakpoints {
    /// `leaf`: bits of an address within the largest leaf that the guest's tables can have.
    pub(super) fn new(page: &'static Page, text: &'static Text, leaf: u32) -> Self {
        page.fast.stamp_of_kernel.set(FIRST);
        Self { page, text, leaf, pieces: [0; PIECES / WORD] }
    }

    /// That of its guest.
    pub(super) const fn text(&self) -> &'static Text {
        self.text
    }

    fn place(pc: u64) -> usize {
        (pc >> 1) as usize % PLACES
    }

    /// The word and the bit of an address's piece.
    const fn piece(&self, address: u64) -> (usize, u64) {
        let number = (address >> self.leaf) as usize % PIECES;
        (number / WORD, 1 << (number % WORD))
    }

    /// Never 0 in the bits of the stamp: a kernel's address has equal bits there, and no stamp is all ones, nor 0.
    fn tag(&self, pc: u64) -> u64 {
        pc ^ self.page.fast.stamp_of_kernel.get()
    }

    /// What is at this address.
    #[inline]
    pub(super) fn bits_at(&self, pc: u64) -> Option<u32> {
        Some(self.known(pc)?.get().bits)
    }

    #[inline]
    fn known(&self, pc: u64) -> Option<&Cell<Entry>> {
        let tag = self.tag(pc);
        // BOUND: two.
        self.page.entries.0.get(Self::place(pc))?.iter().find(|entry| entry.get().tag == tag)
    }

    /// That is there. `is_global`: in all address spaces.
    pub(super) fn learn(&mut self, pc: u64, bits: u32, is_global: bool) {
        let fast = &self.page.fast;
        if !is_global && !fast.is_local.replace(true) {
            // In others something else may be there.
            fast.forget_spaces();
        }
        let (word, bit) = self.piece(pc);
        if let Some(word) = self.pieces.get_mut(word) {
            *word |= bit;
        }
        if let Some([first, second]) = self.page.entries.0.get(Self::place(pc)) {
            let has_timer = self.page.registers.with(|registers| registers.features().timer);
            // The one that was met before is found still.
            second.set(first.get());
            first.set(Entry { tag: self.tag(pc), ..fast::entry(bits, has_timer) });
            self.put_in_a_row(pc);
        }
    }

    /// The instruction at this address has become known: the fast path is to go on to it from the one before it, and from it to the one behind it, where they are known and that makes no longer row than it may.
    ///
    /// It goes on without a look at what is there. That is right, in the next page as well, as this vCPU forgets what it knows before anybody can store to a page that is text, and when a store is made for the guest.
    fn put_in_a_row(&self, pc: u64) {
        let (before, behind) = (pc.wrapping_sub(LENGTH), pc.wrapping_add(LENGTH));
        let goes_on = |pc| self.known(pc).is_some_and(|entry| fast::goes_on(entry.get()));
        let mut length = 1;
        if let Some(entry) = self.known(before)
            && let Some(going_on) = fast::going_on(entry.get())
        {
            // BOUND: `MOST_IN_A_ROW`.
            let row = (1..MOST_IN_A_ROW)
                .take_while(|place| goes_on(before.wrapping_sub(place * LENGTH)))
                .count() as u64
                + 1;
            if fast::goes_on(entry.get()) || row + length <= MOST_IN_A_ROW {
                entry.set(going_on);
                length += row;
            }
        }
        if self.known(behind).is_some()
            && let Some(entry) = self.known(pc)
            && let Some(going_on) = fast::going_on(entry.get())
        {
            // BOUND: `MOST_IN_A_ROW`.
            let row = (0..MOST_IN_A_ROW)
                .take_while(|place| goes_on(behind.wrapping_add(place * LENGTH)))
                .count() as u64
                + 1;
            if length + row <= MOST_IN_A_ROW {
                entry.set(going_on);
            }
        }
    }

    /// Nothing is known any more. The fast path finds nothing from now on, whether the vCPU is told anything else or not.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.page.fast.is_local.set(false);
        self.pieces = [0; PIECES / WORD];
        let stamp = next(self.page.fast.stamp_of_kernel.get());
        if let Some(place) = emptied(stamp) {
            self.empty(place);
        }
        // Entries have this stamp from now on: the fast path finds none with another one, if it finds any.
        let fast = &self.page.fast;
        fast.stamp_of_kernel.set(stamp);
        if fast.stamp.get() != 0 {
            fast.stamp.set(stamp);
        }
    }

    #[cold]
    fn empty(&self, place: usize) {
        if let Some([first, second]) = self.page.entries.0.get(place) {
            first.set(fast::entry(0, false));
            second.set(fast::entry(0, false));
        }
    }

    /// The vCPU has fenced an address, and so whatever leaf that is below: nothing is known any more, if something was there. Mostly it is an address of a program, and nothing was.
    #[inline]
    pub(super) fn forget_at(&mut self, address: u64) {
        let (word, bit) = self.piece(address);
        if self.pieces.get(word).is_none_or(|word| word & bit != 0) {
            self.forget();
        }
    }

    /// The vCPU has gone from the one address space to the other. What is global is so in all of one format: in tables with other levels, or without translation, the same address is somewhere
    /// else, and to change between these takes no fence (privileged specification, "Supervisor Address Translation and Protection Register").
    #[inline]
    pub(super) fn leave(&mut self, old: Satp, new: Satp) {
        if old.has_mode_of(new) {
            self.forget_local();
        } else {
            self.forget();
        }
    }

    /// The vCPU is in another address space of those, or has fenced one.
    #[inline]
    pub(super) fn forget_local(&mut self) {
        if self.page.fast.is_local.get() {
            self.forget();
        }
    }
}
