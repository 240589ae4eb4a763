//! A domain of an APLIC (*The RISC-V Advanced Interrupt Architecture* 1.0, chapter 4): what both ways have in common in which it delivers interrupts.
use core::ptr::{read_volatile, write_volatile};

use ainori_board::{Interrupt, Trigger};
use ainori_devices::aplic::layout::{
    CLRIENUM, DOMAINCFG, EDGE0, EDGE1, INTERRUPT_ENABLE, LEVEL0, LEVEL1, SETIENUM, SOURCECFG, TARGET,
};

/// A domain at a physical address.
#[derive(Debug, Clone, Copy)]
pub struct Domain(u64);

impl Domain {
    /// The domain at `base` with sources `1..=sources`, all switched off. Only at boot.
    ///
    /// # Safety
    /// It is there, is the supervisor's, and nothing else drives it.
    pub unsafe fn new(base: u64, sources: u32) -> Self {
        let domain = Self(base);
        for source in 1..=sources {
            domain.configure(source, 0);
        }
        domain
    }

    /// Delivers its interrupts, with these bits in its configuration. False if it doesn't have one of them.
    pub fn switch_on(&self, bits: u32) -> bool {
        self.write(DOMAINCFG, INTERRUPT_ENABLE | bits);
        self.read(DOMAINCFG) & bits == bits
    }

    pub fn read(&self, offset: u64) -> u32 {
        // SAFETY: `new` was promised that the device is here; its registers are outside of all Rust objects.
        unsafe { read_volatile((self.0 + offset) as *const u32) }
    }

    pub fn write(&self, offset: u64, value: u32) {
        // SAFETY: as in `read`.
        unsafe { write_volatile((self.0 + offset) as *mut u32, value) }
    }

    /// The address of a register.
    pub fn address(&self, offset: u64) -> u64 {
        self.0 + offset
    }

    /// Sets when a source asks. With 0 it is off.
    pub fn configure(&self, source: u32, mode: u32) {
        self.write(SOURCECFG + 4 * u64::from(source), mode);
    }

    /// Where the target of a source is set.
    pub const fn target(source: u32) -> u64 {
        TARGET + 4 * source as u64
    }

    /// Wires a source to a target. The registers that this changes are the source's own: harts may do so at the same time.
    pub fn wire(&self, interrupt: Interrupt, target: u32) {
        self.attach(interrupt);
        self.aim(interrupt.source, target);
    }

    /// Has a source ask when its wire does.
    pub fn attach(&self, interrupt: Interrupt) {
        let mode = match interrupt.trigger {
            Trigger::EdgeRising => EDGE1,
            Trigger::EdgeFalling => EDGE0,
            Trigger::LevelHigh => LEVEL1,
            Trigger::LevelLow => LEVEL0,
        };
        self.configure(interrupt.source, mode);
    }

    /// Switches a source on. If it has asked, that counts. As with [`Self::disable`], any hart may do so at any time.
    pub fn enable(&self, source: u32) {
        self.write(SETIENUM, source);
    }

    /// Sends a source that is wired elsewhere. What the domain has sent before, has been sent when this returns.
    pub fn aim(&self, source: u32, target: u32) {
        self.write(Self::target(source), target);
        let _ = self.read(Self::target(source));
    }

    /// Switches a source off. That it asks is kept.
    pub fn disable(&self, source: u32) {
        self.write(CLRIENUM, source);
    }
}
