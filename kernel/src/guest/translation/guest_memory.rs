//! A guest's memory, as the walks of its tables find it that shadows are filled in from.
use core::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "no-h")]
use ainori_limits::PAGE;
use ainori_manifest::config::GUEST_MEMORY_ALIGN;
use ainori_shadow::{Memory, ROW};
use ainori_space::{Attributes, GuestPhysical, HostPhysical, Rights, Translation as Translated};

use crate::guest::space::Space;

/// What a shadow is made of, beside the guest's `satp`.
pub struct GuestMemory<'a>(pub(crate) &'a Space);

impl GuestMemory<'_> {
    /// Where an address of its main memory is on the board. That begins and ends at a large page.
    #[inline(always)]
    pub(in crate::guest) fn main(&self, at: GuestPhysical) -> Option<u64> {
        let (memory, offset) = (self.0.memory(), at.0.wrapping_sub(self.0.translation.base()));
        (offset < memory.size()).then(|| memory.start + offset)
    }

    /// A word of the guest's main memory: no table of it is elsewhere.
    fn word(&self, at: GuestPhysical) -> Option<&AtomicU64> {
        let host = self.main(at)?;
        // SAFETY: the word lies in the guest's memory, which no Rust object shares and which stays the guest's for ever. To the hypervisor
        // its address is itself, without translation or by its own map. The guest changes it at any time, by other instructions than Rust's: so it is only read and changed by atomic ones. A table's entries
        // are at multiples of 8.
        Some(unsafe { AtomicU64::from_ptr(host as *mut u64) })
    }
}

impl Memory for GuestMemory<'_> {
    #[inline]
    fn load(&self, at: GuestPhysical) -> Option<u64> {
        // What an entry leads to is loaded behind it, as its address is made of what was loaded here (RVWMO, "Syntactic Dependencies", rule 9): so walks of harts are ordered, too.
        #[cfg(not(feature = "no-h"))]
        return Some(self.word(at)?.load(Ordering::Relaxed));
        #[cfg(feature = "no-h")]
        return Some(self.0.text.doubleword(at, self.word(at)?.load(Ordering::Acquire)));
    }

    #[cfg(not(feature = "no-h"))]
    #[inline(always)]
    fn load_row(&self, at: GuestPhysical, mut each: impl FnMut(usize, u64)) {
        let Some(host) = self.main(at) else { return };
        // SAFETY: as of a single word. Main memory is whole pages, and a row is part of one, as it begins at a multiple of its size.
        let row = unsafe { &*(host as *const [AtomicU64; ROW]) };
        // BOUND: `ROW`.
        for (offset, word) in row.iter().enumerate() {
            each(offset, word.load(Ordering::Relaxed));
        }
    }

    #[cfg(feature = "no-h")]
    #[inline(always)]
    fn load_row(&self, at: GuestPhysical, mut each: impl FnMut(usize, u64)) {
        let Some(host) = self.main(at) else { return };
        // SAFETY: as of a single word. Main memory is whole pages, and a row is part of one, as it begins at a multiple of its size.
        let row = unsafe { &*(host as *const [AtomicU64; ROW]) };
        let row = row.each_ref().map(|word| word.load(Ordering::Acquire));
        // All of a row is in one page. What is text by now may have had breakpoints in it, and is no table.
        if !self.0.text.is_text(at) {
            // BOUND: `ROW`.
            for (offset, word) in row.into_iter().enumerate() {
                each(offset, word);
            }
        }
    }

    fn exchange(&self, at: GuestPhysical, old: u64, new: u64) -> Option<bool> {
        Some(self.word(at)?.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok())
    }

    #[inline]
    fn translate(&self, at: GuestPhysical) -> Option<Translated> {
        // Nearly always it is main memory: where that is, is known without the tables of the second stage.
        let Some(host) = self.main(at).map(HostPhysical) else { return self.0.tables().translate(at) };
        #[cfg(feature = "no-h")]
        let rights = if self.0.text.is_text(at) { Rights::Execute } else { Rights::ReadWriteExecute };
        #[cfg(not(feature = "no-h"))]
        let rights = Rights::ReadWriteExecute;
        #[cfg(feature = "no-h")]
        let size = if self.0.text.is_plain(at) { GUEST_MEMORY_ALIGN } else { PAGE };
        #[cfg(not(feature = "no-h"))]
        let size = GUEST_MEMORY_ALIGN;
        Some(Translated { host, attributes: Attributes::new(rights), size })
    }
}
