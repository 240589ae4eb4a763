//! An interrupt file of an incoming MSI controller (IMSIC) that lies in memory: what a vCPU has where its hart has no guest interrupt file
//! for it, and where messages wait for one that has.
//!
//! Source: *The RISC-V Advanced Interrupt Architecture*, version 1.0, chapter 3. A device or a vCPU sends a message: the number of an
//! interrupt, its *identity*. The file keeps a pending and an enable bit for each. The lowest identity goes first.
//!
//! There are as many identities as each file of any hart is sure to have ([`IDENTITIES`]). So each of the two sets of bits is one
//! word, and what has come in is handed on to a hart's file as one.
//!
//! # How it works without locks
//!
//! Any core may [post](InterruptFile::post); all else is done by the core that runs the vCPU, or looks after it. A message writes the pending bits and then
//! reads what decides whether it interrupts; the vCPU writes one of those words and then reads the pending bits. Sequentially consistent
//! fences between write and read make sure that at least one of the two sees the other: a message that finds its identity disabled is found
//! by whoever enables it. `tests/imsic_races.rs` checks this with loom.

use ainori_limits::bits::lowest_bit_out_of_line;

use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use crate::zicsr::CsrAccess;

/// Identities are `1..=IDENTITIES`: "the minimum is 63" (section 3.2), and a guest reads it in its device tree (`riscv,num-ids`).
pub const IDENTITIES: u32 = 63;

/// Bytes of the page through which messages come to a file.
pub const PAGE: u64 = 0x1000;
/// Where in its page a message is written in little-endian order (`seteipnum_le`), in bytes. A file has no other registers in memory: no guest is big-endian.
pub const SETEIPNUM_LE: u64 = 0;

/// Registers of a file by their numbers in `siselect` (section 3.8).
mod select {
    /// The hart's own interrupts have priorities, not the file's: `iprio0` to `iprio15`.
    pub(super) const IPRIO0: u64 = 0x30;
    pub(super) const IPRIO15: u64 = 0x3f;
    pub(super) const EIDELIVERY: u64 = 0x70;
    pub(super) const EITHRESHOLD: u64 = 0x72;
    /// Each of the arrays has a number for 32 identities; a 64-bit hart has only the even ones.
    pub(super) const EIP: u64 = 0x80;
    pub(super) const EIE: u64 = 0xc0;
    /// Those from [`EIDELIVERY`] to here are registers of a file, or reserved for one.
    pub(super) const END: u64 = 0x100;
}

/// All pending or enable bits that exist: none for identity 0.
const ALL: u64 = !1;

/// A file. Any core may [`Self::post`]; all other methods are for the core that looks after the vCPU.
pub struct InterruptFile {
    eip: AtomicU64,
    eie: AtomicU64,
    eithreshold: AtomicU32,
    eidelivery: AtomicU32,
}

impl InterruptFile {
    const_constructor! {
        /// A file after reset: nothing is pending or enabled, and nothing is delivered.
        #[allow(clippy::new_without_default, reason = "statics need a const constructor; one way to build it is enough")]
        pub fn new() -> Self {
            Self {
                eip: AtomicU64::new(0),
                eie: AtomicU64::new(0),
                eithreshold: AtomicU32::new(0),
                eidelivery: AtomicU32::new(0),
            }
        }
    }

    /// A message with this identity has come. Must the vCPU be told, as it may be interrupted now? Identities that don't exist are ignored (section 3.5).
    ///
    /// If it is pending already, whoever made it so has told the vCPU, or is about to.
    #[must_use]
    pub fn post(&self, identity: u32) -> bool {
        if !(1..=IDENTITIES).contains(&identity) {
            return false;
        }
        let bit = 1 << identity;
        if self.eip.fetch_or(bit, Ordering::AcqRel) & bit != 0 {
            return false;
        }
        fence(Ordering::SeqCst); // Against `after_write`: the pending bit before what decides.
        self.is_signaled()
    }

    /// Is anything pending, enabled or not?
    pub fn has_pending(&self) -> bool {
        self.eip.load(Ordering::Acquire) != 0
    }

    /// Does the file interrupt its hart?
    pub fn is_signaled(&self) -> bool {
        self.eidelivery.load(Ordering::Relaxed) != 0 && self.top() != 0
    }

    /// `stopei`: the identity that goes first, in bits 26:16 and again, as its priority, in bits 10:0; 0 if there is none.
    pub fn top(&self) -> u32 {
        // Acquire: what was written before a message was sent is seen by whoever is interrupted by it.
        let ready =
            self.eip.load(Ordering::Acquire) & self.eie.load(Ordering::Relaxed) & self.below_threshold();
        // As if identity 0, which doesn't exist, were always there and came last.
        let identity = if ready == 0 { 0 } else { lowest_bit_out_of_line(ready) };
        identity << 16 | identity
    }

    /// The identities that the threshold lets through, a bit each.
    fn below_threshold(&self) -> u64 {
        match self.eithreshold.load(Ordering::Relaxed) {
            0 => ALL,
            threshold => (1 << threshold) - 1,
        }
    }

    /// A write to `stopei`, whatever its value: claims what [`Self::top`] is, and returns that.
    pub fn claim(&self) -> u32 {
        let top = self.top();
        // Nobody but this core takes a pending bit back. Bit 0 is that of no identity, and never set.
        self.eip.fetch_and(!(1 << (top >> 16)), Ordering::AcqRel);
        top
    }

    /// An instruction accesses `stopei`: what it reads. A write claims that.
    pub fn access_top(&self, access: CsrAccess) -> u32 {
        if access == CsrAccess::Read { self.top() } else { self.claim() }
    }

    /// An instruction accesses `sireg` while `siselect` is `select`: what it reads. `None` if there is no register of that number: the instruction is
    /// illegal for the guest. What may be a write can have changed [`Self::is_signaled`].
    pub fn access(&self, select: u64, access: CsrAccess) -> Option<u64> {
        let old = match select {
            select::EIDELIVERY => self.access_word(&self.eidelivery, 1, access),
            select::EITHRESHOLD => self.access_word(&self.eithreshold, IDENTITIES, access),
            select::EIP => self.access_bits(&self.eip, access),
            select::EIE => self.access_bits(&self.eie, access),
            // "Read-only zero" is one of the ways in which they may be there (section 5.2.2 and 2.3).
            select::IPRIO0..=select::IPRIO15 if select.is_multiple_of(2) => return Some(0),
            ..select::EIDELIVERY | select::END.. => return None,
            select::EIP.. if !select.is_multiple_of(2) => return None,
            // Bits of identities that this file hasn't got, and numbers that are reserved: "reads return zero, and writes are ignored".
            _ => return Some(0),
        };
        Some(old)
    }

    fn access_word(&self, word: &AtomicU32, mask: u32, access: CsrAccess) -> u64 {
        let old = u64::from(word.load(Ordering::Relaxed));
        word.store(access.applied_to(old) as u32 & mask, Ordering::Relaxed);
        self.after_write();
        old
    }

    fn access_bits(&self, bits: &AtomicU64, access: CsrAccess) -> u64 {
        let old = match access {
            CsrAccess::Read => bits.load(Ordering::Acquire),
            CsrAccess::Write(value) => bits.swap(value & ALL, Ordering::AcqRel),
            CsrAccess::Set(set) => bits.fetch_or(set & ALL, Ordering::AcqRel),
            CsrAccess::Clear(clear) => bits.fetch_and(!clear, Ordering::AcqRel),
        };
        self.after_write();
        old
    }

    /// Ends a write to what decides whether a message interrupts: the caller looks at the pending bits next.
    fn after_write(&self) {
        fence(Ordering::SeqCst); // Against `post`: what decides before the pending bits.
    }

    /// Takes out what is pending: it goes into the guest interrupt file of the hart that the vCPU runs on. What is posted from now on is here again.
    pub fn take_pending(&self) -> u64 {
        self.eip.swap(0, Ordering::AcqRel)
    }

    /// Puts it back to reset. What is posted meanwhile may be lost, as at any reset.
    pub fn reset(&self) {
        self.eip.store(0, Ordering::Relaxed);
        self.eie.store(0, Ordering::Relaxed);
        self.eithreshold.store(0, Ordering::Relaxed);
        self.eidelivery.store(0, Ordering::Relaxed);
        self.after_write();
    }
}
