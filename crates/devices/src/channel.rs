//! A guest's end of a channel: memory that two guests see, and a doorbell with which each interrupts the other. It is the `ivshmem` device of QEMU, with its
//! register interface ("Device Specification for Inter-VM shared memory device") in the form whose interrupt is a
//! PCI INTx: drivers that know the registers need no other, and Linux's `uio_pci_generic` brings both to a program.
//!
//! The memory isn't here: guests have it as their own, without any trap. All that an end has is one word, so each thing that happens to it is one atomic
//! step, whichever core does it. The step that makes the interrupt due, and no other, answers that it has: whoever makes it then has the interrupt
//! controller make *one* request ([`Irqchip::pulse`](crate::irqchip::Irqchip::pulse)). So a bell that rings again and again interrupts no more often than its
//! hearer reads the status.

use crate::atomic::{AtomicBool, AtomicU32, Ordering};

/// Where the registers are, in bytes.
pub mod layout {
    /// Interrupt Mask: bit 0 lets the bell interrupt.
    pub const MASK: u64 = 0;
    /// Interrupt Status: bit 0, the bell has rung. A load clears it.
    pub const STATUS: u64 = 4;
    /// IVPosition: which end this is, 0 or 1.
    pub const POSITION: u64 = 8;
    /// Doorbell: a store rings at the end whose number is in the upper half; the lower half, the vector, is 0.
    pub const DOORBELL: u64 = 12;
}

/// What the guest can switch in the PCI command register: memory, bus master (which means nothing here), and that INTx is off (PCI Local Bus
/// Specification 3.0, 6.2.2).
pub(crate) const COMMAND: u32 = MEMORY | 1 << 2 | INTX_OFF;
const MEMORY: u32 = 1 << 1;
const INTX_OFF: u32 = 1 << 10;
// Above the command register's bits in the same word:
const RUNG: u32 = 1 << 16;
const UNMASKED: u32 = 1 << 17;
/// The interrupt has become due, and nobody has made it yet.
const OWED: u32 = 1 << 18;

/// By which a bell is known in its interrupt file.
pub const BELL_IDENTITY: u32 = 1;

/// What a store asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing beyond the device.
    Nothing,
    /// The device interrupts its own guest.
    Interrupt,
    /// The bell of the other end rings.
    Ring,
}

/// An end. All methods take `&self` and may run on several cores at once.
#[derive(Debug)]
pub struct Endpoint {
    /// Which channel of the system it is an end of, in the order of the manifest.
    pub number: u16,
    /// Which end: 0 or 1.
    pub position: u32,
    /// Bytes of the channel's memory.
    pub size: u64,
    state: AtomicU32,
    page: AtomicBool,
}

impl Endpoint {
    const AFTER_RESET: u32 = MEMORY;

    /// An end after reset: its registers answer, its bell is masked, and hasn't rung.
    #[must_use]
    pub fn new(number: u16, position: u32, size: u64) -> Self {
        Self {
            number,
            position,
            size,
            state: AtomicU32::new(Self::AFTER_RESET),
            page: AtomicBool::new(false),
        }
    }

    /// It rings by a page of its own as well, from now on: a store of [`BELL_IDENTITY`] there is a message to an interrupt file, which the host of the other end watches. Before
    /// any guest runs.
    pub fn add_page(&self) {
        self.page.store(true, Ordering::Relaxed);
    }

    /// Has it such a page?
    pub fn has_page(&self) -> bool {
        self.page.load(Ordering::Relaxed)
    }

    /// Puts it back to reset. Who rings from then on is heard. While its guest rests: who starts that one again does so behind this.
    pub fn reset(&self) {
        self.state.store(Self::AFTER_RESET, Ordering::Relaxed);
    }

    /// The other end has rung. True if that makes its interrupt due.
    ///
    /// What the ringing hart has stored before is seen by whoever then finds the bell rung.
    #[must_use]
    pub fn ring(&self) -> bool {
        self.change(0, RUNG).1
    }

    /// A guest's load of `width` bytes at `offset` of the registers. Those that don't exist, and other widths than 4, read as zero.
    pub fn read(&self, offset: u64, width: u8) -> u32 {
        match (offset, width) {
            (layout::MASK, 4) => u32::from(self.state() & UNMASKED != 0),
            (layout::STATUS, 4) => u32::from(self.change(RUNG, 0).0 & RUNG != 0),
            (layout::POSITION, 4) => self.position,
            _ => 0,
        }
    }

    /// A guest's store. Registers that don't exist or are only read, and other widths than 4, are ignored; so are bells that nobody has.
    #[must_use]
    pub fn write(&self, offset: u64, width: u8, value: u32) -> Effect {
        let own = |bit: u32| {
            let on = if value & 1 != 0 { bit } else { 0 };
            if self.change(bit, on).1 { Effect::Interrupt } else { Effect::Nothing }
        };
        match (offset, width) {
            (layout::MASK, 4) => own(UNMASKED),
            (layout::STATUS, 4) => own(RUNG),
            (layout::DOORBELL, 4) if value == (self.position ^ 1) << 16 => Effect::Ring,
            _ => Effect::Nothing,
        }
    }

    /// The PCI command register.
    pub(crate) fn command(&self) -> u32 {
        self.state() & COMMAND
    }

    /// Writes those of its bits that are in `mask`. True if that makes the interrupt due.
    #[must_use]
    pub(crate) fn set_command(&self, value: u32, mask: u32) -> bool {
        let mask = mask & COMMAND;
        self.change(mask, value & mask).1
    }

    /// Would the device interrupt if INTx is on? The bit Interrupt Status of PCI, which doesn't care for that.
    pub(crate) fn asks(&self) -> bool {
        asks(self.state())
    }

    /// Is an interrupt owed that has become due? Who asks makes it: nobody else is told of it. It isn't if somebody has looked since, or may not be interrupted any more.
    #[must_use]
    pub fn take_due(&self) -> bool {
        let before = self.change(OWED, 0).0;
        before & OWED != 0 && interrupts(before)
    }

    fn state(&self) -> u32 {
        self.state.load(Ordering::Acquire)
    }

    /// Clears bits of the word and then sets some: what it was, and whether an interrupt is due that wasn't before.
    #[inline(never)]
    fn change(&self, clear: u32, set: u32) -> (u32, bool) {
        let mut before = self.state();
        // BOUND: one round; each more is a change that another core has made in between.
        loop {
            let after = before & !clear | set;
            let is_due = interrupts(after) && !interrupts(before);
            let after = if is_due { after | OWED } else { after };
            match self.state.compare_exchange(before, after, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return (before, is_due),
                Err(now) => before = now,
            }
        }
    }
}

const fn asks(state: u32) -> bool {
    state & (RUNG | UNMASKED) == RUNG | UNMASKED
}

const fn interrupts(state: u32) -> bool {
    asks(state) && state & INTX_OFF == 0
}
