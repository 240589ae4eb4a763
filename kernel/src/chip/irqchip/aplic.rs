//! A domain of an APLIC that interrupts harts itself (direct delivery mode: AIA, section 4.8). A target is a hart index.
//!
//! There is no completion: a source whose level stays high would come again at once. So who claims one detaches it from its wire, and its completion attaches
//! it again: then it is pending if the wire asks just then (section 4.7). To switch it off meanwhile would do if that were so at any time, but QEMU 10.0 keeps a
//! level as pending when its wire has gone low: the guest would be interrupted once more. A source of an edge is switched off, as what comes of it meanwhile is
//! to be kept as pending.
use ainori_board::{Interrupt, aplic_number};
use ainori_devices::aplic::layout::{
    CLAIMI, CLRIPNUM, DELIVERED, DETACHED, HART_SHIFT, IDC, IDC_SIZE, IDELIVERY, IFORCE, ITHRESHOLD,
    PRIORITY, SOURCE_SHIFT,
};
use ainori_limits::IRQ_LEVELS;

use super::domain::Domain;
use crate::arch::fence;

/// The domain.
#[derive(Debug, Clone, Copy)]
pub struct Aplic(Domain);

impl Aplic {
    /// The domain at `base` with sources `1..=sources`, all switched off. None if its priorities have too few bits for [`IRQ_LEVELS`]. Only at boot.
    ///
    /// # Safety
    /// As of [`Domain::new`].
    pub unsafe fn new(base: u64, sources: u32) -> Option<Self> {
        // SAFETY: as this function's.
        let domain = unsafe { Domain::new(base, sources) };
        domain.switch_on(0);
        // Only a source that isn't off has a target. A detached one is wired to nothing.
        domain.configure(1, DETACHED);
        domain.write(Domain::target(1), PRIORITY);
        let most = domain.read(Domain::target(1)) & PRIORITY;
        domain.configure(1, 0);
        (most >= IRQ_LEVELS).then_some(Self(domain))
    }

    /// Where the interrupt delivery control of a hart is.
    fn idc(hart: u32) -> u64 {
        IDC + IDC_SIZE * u64::from(hart)
    }

    /// The address of a hart's threshold.
    pub fn threshold(&self, hart: u32) -> u64 {
        self.0.address(Self::idc(hart) + ITHRESHOLD)
    }

    /// Opens a hart's threshold. No source has been sent to it yet.
    pub fn reset_hart(&self, hart: u32) {
        let idc = Self::idc(hart);
        self.0.write(idc + IFORCE, 0);
        self.0.write(idc + ITHRESHOLD, 0);
        self.0.write(idc + IDELIVERY, DELIVERED);
    }

    /// Sends a source to a hart, with a level of 1 to [`IRQ_LEVELS`]. Harts may do so at the same time.
    pub fn route(&self, interrupt: Interrupt, hart: u32, level: u32) {
        self.0.wire(interrupt, hart << HART_SHIFT | aplic_number(level));
        self.0.enable(interrupt.source);
    }

    /// Gives a source that is sent to a hart another level.
    pub fn set_level(&self, source: u32, hart: u32, level: u32) {
        self.0.aim(source, hart << HART_SHIFT | aplic_number(level));
    }

    /// Takes the most urgent source of a hart above its threshold. What is read from memory later is read after that.
    pub fn claim(&self, hart: u32) -> Option<u32> {
        let source = self.0.read(Self::idc(hart) + CLAIMI) >> SOURCE_SHIFT;
        fence::after_device_read();
        (source != 0).then_some(source)
    }

    /// Keeps a source that was claimed quiet until it is completed.
    pub fn hold(&self, interrupt: Interrupt) {
        if interrupt.trigger.is_level() {
            self.0.configure(interrupt.source, DETACHED);
            // The claim has left it pending, as its wire asked. Nothing makes it so now.
            self.0.write(CLRIPNUM, interrupt.source);
        } else {
            self.0.disable(interrupt.source);
        }
        // Whoever completes it, on whichever hart, does so behind that.
        fence::memory_and_devices();
    }

    /// Ends what [`Self::hold`] does; `is_new`: that was done for the other kind of trigger. What was written to memory before is seen by whoever claims the source then.
    pub fn complete(&self, interrupt: Interrupt, is_new: bool) {
        fence::before_device();
        let is_level = interrupt.trigger.is_level();
        if is_level || is_new {
            self.0.attach(interrupt);
        }
        if is_new && !is_level {
            // The one that was claimed, if its wire is high still.
            self.0.write(CLRIPNUM, interrupt.source);
        }
        // A level that was claimed as such is on.
        self.0.enable(interrupt.source);
    }
}
