//! A domain of an APLIC that interrupts harts itself (*The RISC-V Advanced Interrupt Architecture* 1.0, chapter 4). A target is a hart index.
//!
//! There is no completion: a source whose level stays high would come again at once. So who claims one switches it off, and its completion switches it
//! on again. What comes of an edge meanwhile is kept as pending.
use core::ptr::{read_volatile, write_volatile};

use ainori_board::{Interrupt, Trigger, aplic_number};
use ainori_devices::aplic::layout::{
    CLAIMI, CLRIENUM, DELIVERED, DETACHED, DOMAINCFG, EDGE0, EDGE1, HART_SHIFT, IDC, IDC_SIZE, IDELIVERY,
    IFORCE, INTERRUPT_ENABLE, ITHRESHOLD, LEVEL0, LEVEL1, PRIORITY, SETIENUM, SOURCE_SHIFT, SOURCECFG,
    TARGET,
};
use ainori_limits::IRQ_LEVELS;

use crate::arch::fence;

/// A domain at a physical address.
#[derive(Debug, Clone, Copy)]
pub struct Aplic(u64);

impl Aplic {
    /// The domain at `base` with sources `1..=sources`, all switched off. None if its priorities have too few bits for [`IRQ_LEVELS`]. Only at boot.
    ///
    /// # Safety
    /// It is there, is the supervisor's, and nothing else drives it.
    pub unsafe fn new(base: u64, sources: u32) -> Option<Self> {
        let aplic = Self(base);
        for source in 1..=sources {
            aplic.write(SOURCECFG + 4 * u64::from(source), 0);
        }
        aplic.write(DOMAINCFG, INTERRUPT_ENABLE);
        // Only a source that isn't off has a target. A detached one is wired to nothing.
        aplic.write(SOURCECFG + 4, DETACHED);
        aplic.write(TARGET + 4, PRIORITY);
        let most = aplic.read(TARGET + 4) & PRIORITY;
        aplic.write(SOURCECFG + 4, 0);
        (most >= IRQ_LEVELS).then_some(aplic)
    }

    fn read(&self, offset: u64) -> u32 {
        // SAFETY: `new` was promised that the device is here; its registers are outside of all Rust objects.
        unsafe { read_volatile((self.0 + offset) as *const u32) }
    }

    fn write(&self, offset: u64, value: u32) {
        // SAFETY: as in `read`.
        unsafe { write_volatile((self.0 + offset) as *mut u32, value) }
    }

    /// Where the interrupt delivery control of a hart is.
    fn idc(hart: u32) -> u64 {
        IDC + IDC_SIZE * u64::from(hart)
    }

    /// The address of a hart's threshold.
    pub fn threshold(&self, hart: u32) -> u64 {
        self.0 + Self::idc(hart) + ITHRESHOLD
    }

    /// Opens a hart's threshold. No source has been sent to it yet.
    pub fn reset_hart(&self, hart: u32) {
        let idc = Self::idc(hart);
        self.write(idc + IFORCE, 0);
        self.write(idc + ITHRESHOLD, 0);
        self.write(idc + IDELIVERY, DELIVERED);
    }

    /// Sends a source to a hart, with a level of 1 to [`IRQ_LEVELS`]. The registers that this changes are the source's own, or change only what is the
    /// source's: harts may do so at the same time.
    pub fn route(&self, interrupt: Interrupt, hart: u32, level: u32) {
        let source = u64::from(interrupt.source);
        let mode = match interrupt.trigger {
            Trigger::EdgeRising => EDGE1,
            Trigger::EdgeFalling => EDGE0,
            Trigger::LevelHigh => LEVEL1,
            Trigger::LevelLow => LEVEL0,
        };
        self.write(SOURCECFG + 4 * source, mode);
        self.set_level(interrupt.source, hart, level);
        self.write(SETIENUM, interrupt.source);
    }

    /// Gives a source that is sent to a hart another level.
    pub fn set_level(&self, source: u32, hart: u32, level: u32) {
        self.write(TARGET + 4 * u64::from(source), hart << HART_SHIFT | aplic_number(level));
    }

    /// Takes the most urgent source of a hart above its threshold, and switches it off. What is read from memory later is read after that.
    pub fn claim(&self, hart: u32) -> Option<u32> {
        let source = self.read(Self::idc(hart) + CLAIMI) >> SOURCE_SHIFT;
        if source != 0 {
            self.write(CLRIENUM, source);
        }
        fence::after_device_read();
        (source != 0).then_some(source)
    }

    /// Switches a source on again. What was written to memory before is seen by whoever claims it then.
    pub fn complete(&self, source: u32) {
        fence::before_device();
        self.write(SETIENUM, source);
    }
}
