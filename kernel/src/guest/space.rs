//! A guest's memory space: what it sees at which guest-physical address, and where that is on the board.
//!
//! It is laid out at boot and doesn't change afterwards, so no fence for it is due later. [`ainori_space`] could change it while the guest runs; what
//! the kernel would have to do for that is in docs/decisions.md ("Memory spaces").
use ainori_limits::PAGE;
use ainori_space::{Attributes, Mapped, Rights};

use super::translation::GuestTranslation;
use crate::arch::gstage::{self, GuestTables};
use ainori_board::Range;

use crate::memory::{GuestPhysical, HostPhysical};

/// What a guest sees beside its virtual devices: its main memory, that of its channels, and the registers of devices that it owns.
pub struct Space {
    /// Where its main memory is on the board.
    memory: Range,
    tables: GuestTables,
    /// How a hart comes from the guest's own addresses to those of the board.
    pub translation: GuestTranslation,
    /// Where breakpoints stand in its memory for privileged instructions.
    #[cfg(feature = "no-h")]
    pub text: ainori_text::Text,
}

impl Space {
    /// One with so many bytes of main memory. `None` if the board hasn't so much left. Allocates: only at boot.
    pub fn new(size: u64, translation: GuestTranslation) -> Option<Self> {
        let start = translation.take_memory(size)?;
        let mut tables = gstage::empty();
        let all = Attributes::new(Rights::ReadWriteExecute);
        tables.map(GuestPhysical(translation.base()), start, size, all).map(Mapped::later).ok()?;
        Some(Self {
            memory: Range { start: start.0, end: start.0 + size },
            tables,
            #[cfg(feature = "no-h")]
            text: ainori_text::Text::new(translation.base(), size, translation.has_breakpoints()),
            translation,
        })
    }

    /// Lets the guest have the pages of a device's registers, at the addresses that they have on the board. False if its main memory or another
    /// device is there, or it can see nothing there; where its virtual devices answer, nothing may be. Allocates: only at boot.
    #[must_use]
    pub fn add_device(&mut self, pages: Range) -> bool {
        let (guest, host) = (GuestPhysical(pages.start), HostPhysical(pages.start));
        let registers = Attributes::new(Rights::ReadWrite);
        self.tables.map(guest, host, pages.size(), registers).map(Mapped::later).is_ok()
    }

    /// Lets the guest send messages to a guest interrupt file, through a page of its own addresses. False if something else is there. Allocates: only
    /// at boot.
    #[must_use]
    pub fn add_file(&mut self, page: GuestPhysical, file: HostPhysical) -> bool {
        self.add_shared(page.0, Range { start: file.0, end: file.0 + PAGE })
    }

    /// Lets the guest see other memory, which it shares with another guest; not as code. False if something is there. Allocates: only at boot.
    #[must_use]
    pub fn add_shared(&mut self, at: u64, memory: Range) -> bool {
        let shared = Attributes::new(Rights::ReadWrite);
        let mapped = self.tables.map(GuestPhysical(at), HostPhysical(memory.start), memory.size(), shared);
        mapped.map(Mapped::later).is_ok()
    }

    /// Where its main memory is on the board.
    pub const fn memory(&self) -> Range {
        self.memory
    }

    /// Where a range of its memory is on the board. `None` unless all of it is its main memory.
    pub fn locate(&self, address: GuestPhysical, size: u64) -> Option<HostPhysical> {
        let offset = address.0.checked_sub(self.translation.base())?;
        let end = offset.checked_add(size)?;
        (end <= self.memory.size()).then(|| HostPhysical(self.memory.start + offset))
    }

    /// Bytes of its memory, from an address on, as the guest has them.
    #[cfg(feature = "no-h")]
    pub fn seen(&self, address: u64, bytes: impl Iterator<Item = u8>) -> impl Iterator<Item = u8> {
        // A page doesn't become text meanwhile, with breakpoints in it: for that this very hart has to forget what it has, when the call is over.
        let (mut page, mut is_text) = (None, false);
        (address..).zip(bytes).map(move |(at, byte)| {
            if page != Some(at / PAGE) {
                (page, is_text) = (Some(at / PAGE), self.text.is_text(GuestPhysical(at)));
            }
            if is_text { self.text.byte(GuestPhysical(at), byte) } else { byte }
        })
    }

    /// Bytes of its memory, from an address on, as the guest has them.
    #[cfg(not(feature = "no-h"))]
    #[expect(clippy::unused_self, reason = "where guests' kernels run in user mode, it is asked")]
    #[inline(always)]
    pub fn seen<T>(&self, _: u64, bytes: T) -> T {
        bytes
    }

    /// Its tables, for the hart's own use.
    pub fn tables(&self) -> &GuestTables {
        &self.tables
    }
}
