//! A PLIC (RISC-V PLIC specification 1.0.0). A target is a context; a level is a priority.
use core::ptr::{read_volatile, write_volatile};

use ainori_devices::plic::layout::{CLAIM_COMPLETE, CONTEXT, CONTEXT_SIZE, ENABLE, ENABLE_SIZE};

use crate::arch::fence;

/// A PLIC at a physical address, with its number of sources.
#[derive(Debug, Clone, Copy)]
pub struct Plic {
    base: u64,
    sources: u32,
}

impl Plic {
    /// The controller at `base` with sources `1..=sources`, all switched off. Only at boot.
    ///
    /// # Safety
    /// A PLIC is there, and nothing else drives its supervisor contexts.
    pub unsafe fn new(base: u64, sources: u32) -> Self {
        let plic = Self { base, sources };
        for source in 1..=sources {
            plic.write(4 * u64::from(source), 0);
        }
        plic
    }

    fn read(&self, offset: u64) -> u32 {
        // SAFETY: `new` was promised that the device is here; its registers are outside of all Rust objects.
        unsafe { read_volatile((self.base + offset) as *const u32) }
    }

    fn write(&self, offset: u64, value: u32) {
        // SAFETY: as in `read`.
        unsafe { write_volatile((self.base + offset) as *mut u32, value) }
    }

    /// Switches all sources of a context off and opens its threshold.
    pub fn reset_context(&self, context: u32) {
        // BOUND: only at the core's start.
        for word in 0..=u64::from(self.sources / 32) {
            self.write(ENABLE + ENABLE_SIZE * u64::from(context) + 4 * word, 0);
        }
        self.write(Self::of_context(context), 0);
    }

    /// Sends a source to a context, with a level of 1 to [`IRQ_LEVELS`](ainori_limits::IRQ_LEVELS). The words that this changes are the source's and the context's own:
    /// harts may do so at the same time, each for its own context.
    pub fn route(&self, source: u32, context: u32, level: u32) {
        self.set_level(source, level);
        let word = ENABLE + ENABLE_SIZE * u64::from(context) + 4 * u64::from(source / 32);
        self.write(word, self.read(word) | 1 << (source % 32));
    }

    /// Gives a source another level.
    pub fn set_level(&self, source: u32, level: u32) {
        self.write(4 * u64::from(source), level);
    }

    /// Where the registers are by which a context is interrupted: its threshold is the first one.
    fn of_context(context: u32) -> u64 {
        CONTEXT + CONTEXT_SIZE * u64::from(context)
    }

    /// The address of a context's threshold.
    pub fn threshold(&self, context: u32) -> u64 {
        self.base + Self::of_context(context)
    }

    /// Takes the most urgent source of a context; it stays quiet until completed. What is read from memory later is read after that.
    pub fn claim(&self, context: u32) -> Option<u32> {
        let claimed = self.read(Self::of_context(context) + CLAIM_COMPLETE);
        fence::after_device_read();
        (claimed != 0).then_some(claimed)
    }

    /// A source that a context has taken may interrupt again. What was written to memory before is seen by whoever claims it then.
    pub fn complete(&self, context: u32, source: u32) {
        fence::before_device();
        self.write(Self::of_context(context) + CLAIM_COMPLETE, source);
    }
}
