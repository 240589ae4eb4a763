//! The places of breakpoints: a table with a few places for each address.
use alloc::{boxed::Box, vec};
use core::ops::Range;

use ainori_space::GuestPhysical;

/// Places in the table, a power of two. Debian's kernel executes some 600 such instructions after it has booted. Few where loom tries out every order.
const PLACES: usize = if cfg!(loom) { 64 } else { 2048 };
/// An instruction is within so many places of the first that is for it, or has none: so nobody looks for long.
const NEAR: usize = 16;
/// What is no address of an instruction.
const NOWHERE: u64 = u64::MAX;

#[derive(Debug, Clone, Copy)]
struct Site {
    at: u64,
    bits: u32,
}

const UNUSED: Site = Site { at: NOWHERE, bits: 0 };

pub(crate) struct Sites(Box<[Site]>);

impl Sites {
    pub fn new() -> Self {
        Self(vec![UNUSED; PLACES].into_boxed_slice())
    }

    /// The places that are for an address.
    fn places(at: u64) -> impl Iterator<Item = usize> {
        // Instructions are at even addresses, those of one function near each other, functions that are alike pages apart.
        let first = (at >> 1 ^ at >> 12) as usize;
        (first..first + NEAR).map(|place| place % PLACES)
    }

    /// The place of an address, or one that is unused if [`NOWHERE`] is looked for.
    fn find_place(&self, at: u64, what: u64) -> Option<usize> {
        // BOUND: `NEAR`, some 6 instructions each.
        Self::places(at).find(|place| self.0.get(*place).is_some_and(|site| site.at == what))
    }

    fn site_mut(&mut self, at: u64, what: u64) -> Option<&mut Site> {
        let place = self.find_place(at, what)?;
        self.0.get_mut(place)
    }

    pub fn get(&self, at: GuestPhysical) -> Option<u32> {
        self.find_place(at.0, at.0).and_then(|place| self.0.get(place)).map(|site| site.bits)
    }

    pub fn remove(&mut self, at: GuestPhysical) -> Option<u32> {
        let site = self.site_mut(at.0, at.0)?;
        site.at = NOWHERE;
        Some(site.bits)
    }

    /// False if there is no room near its place.
    pub fn insert(&mut self, at: GuestPhysical, bits: u32) -> bool {
        let what = if self.find_place(at.0, at.0).is_some() { at.0 } else { NOWHERE };
        let Some(site) = self.site_mut(at.0, what) else { return false };
        *site = Site { at: at.0, bits };
        true
    }

    /// Takes some of those out that lie in a range, each with a call, from a place on, which is the next one afterwards; and begins with the first, which is 0. True when none is left.
    pub fn remove_some(
        &mut self,
        range: Range<u64>,
        next: &mut usize,
        most: usize,
        mut each: impl FnMut(GuestPhysical, u32),
    ) -> bool {
        /// Places that are looked at. Others wait for the lock meanwhile.
        const LOOKS: usize = 64;
        let length = range.end - range.start;
        let (first, end) = (*next, (*next + LOOKS).min(self.0.len()));
        let mut left = most;
        // BOUND: `LOOKS`, some 8 instructions each, and `most` of them some 20.
        for (offset, site) in self.0.get_mut(first..end).unwrap_or_default().iter_mut().enumerate() {
            if site.at.wrapping_sub(range.start) < length {
                if left == 0 {
                    *next = first + offset;
                    return false;
                }
                left -= 1;
                each(GuestPhysical(site.at), site.bits);
                site.at = NOWHERE;
            }
        }
        *next = end;
        let is_over = end == self.0.len();
        if is_over {
            *next = 0;
        }
        is_over
    }

    /// Forgets some, from a place on, which is the next one afterwards; and begins with the first, which is 0. True when none is left.
    pub fn clear_some(&mut self, next: &mut usize) -> bool {
        /// Places at once.
        const PLACES_AT_ONCE: usize = 64;
        let places = self.0.iter_mut().skip(*next).take(PLACES_AT_ONCE);
        // BOUND: `PLACES_AT_ONCE`, some 4 instructions each.
        for site in places {
            *site = UNUSED;
        }
        *next += PLACES_AT_ONCE;
        if *next < PLACES {
            return false;
        }
        *next = 0;
        true
    }
}
