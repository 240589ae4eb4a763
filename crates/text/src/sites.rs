//! The places of breakpoints: a table with open addressing.
use alloc::{boxed::Box, vec};
use core::ops::Range;

use ainori_space::GuestPhysical;

/// Places in the table, a power of two. Debian's kernel executes some 600 such instructions after it has booted.
const PLACES: usize = 2048;
/// Three quarters are used, so that a place is found soon.
const MOST: usize = PLACES / 4 * 3;
/// What is no address of an instruction.
const NOWHERE: u64 = u64::MAX;
/// Where something was. Who looks for something else goes on.
const GONE: u64 = u64::MAX - 1;

#[derive(Debug, Clone, Copy)]
struct Site {
    at: u64,
    bits: u32,
}

const UNUSED: Site = Site { at: NOWHERE, bits: 0 };

pub(crate) struct Sites {
    places: Box<[Site]>,
    /// Places that aren't [`NOWHERE`].
    used: usize,
}

impl Sites {
    pub fn new() -> Self {
        Self { places: vec![UNUSED; PLACES].into_boxed_slice(), used: 0 }
    }

    fn first(at: GuestPhysical) -> usize {
        // Instructions are at even addresses, those of one function near each other.
        (at.0 >> 1) as usize % PLACES
    }

    /// Where it is; or else where it could be.
    fn place(&self, at: GuestPhysical) -> Result<usize, Option<usize>> {
        let first = Self::first(at);
        let mut free = None;
        // BOUND: the places; on average two or three, as a quarter of them at least was never used.
        for place in (first..PLACES).chain(0..first) {
            match self.places.get(place).map(|site| site.at) {
                Some(found) if found == at.0 => return Ok(place),
                Some(GONE) => free = free.or(Some(place)),
                Some(NOWHERE) => return Err(free.or(Some(place).filter(|_| self.used < MOST))),
                _ => {}
            }
        }
        Err(free)
    }

    pub fn find(&self, at: GuestPhysical) -> Option<u32> {
        self.place(at).ok().and_then(|place| self.places.get(place)).map(|site| site.bits)
    }

    pub fn remove(&mut self, at: GuestPhysical) -> Option<u32> {
        let site = self.place(at).ok().and_then(|place| self.places.get_mut(place))?;
        site.at = GONE;
        Some(site.bits)
    }

    /// False if there is no room.
    pub fn insert(&mut self, at: GuestPhysical, bits: u32) -> bool {
        let place = self.place(at).map_or_else(|free| free, Some);
        let Some(site) = place.and_then(|place| self.places.get_mut(place)) else { return false };
        if site.at == NOWHERE {
            self.used += 1;
        }
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
        /// Places that are looked at.
        const LOOKS: usize = 64;
        let mut removed = 0;
        // BOUND: `LOOKS`, some 8 instructions each.
        for _ in 0..LOOKS {
            let Some(site) = self.places.get_mut(*next) else {
                *next = 0;
                return true;
            };
            if range.contains(&site.at) {
                if removed == most {
                    return false;
                }
                removed += 1;
                each(GuestPhysical(site.at), site.bits);
                site.at = GONE;
            }
            *next += 1;
        }
        false
    }

    /// Forgets some, from a place on, which is the next one afterwards; and begins with the first, which is 0. True when none is left.
    pub fn clear_some(&mut self, next: &mut usize) -> bool {
        /// Places at once.
        const PLACES_AT_ONCE: usize = 64;
        let places = self.places.iter_mut().skip(*next).take(PLACES_AT_ONCE);
        // BOUND: `PLACES_AT_ONCE`, some 4 instructions each.
        for site in places {
            *site = UNUSED;
        }
        *next += PLACES_AT_ONCE;
        if *next < PLACES {
            return false;
        }
        (self.used, *next) = (0, 0);
        true
    }
}
