//! The threshold of a core: which sources of the board's interrupt controller reach it.
use core::num::NonZeroU64;
use core::ptr::write_volatile;

use crate::arch::imsic;

/// A threshold, and where it is set.
#[derive(Debug)]
pub struct IrqThreshold {
    /// The address of the controller's register. None if it is in the hart's own file ([`imsic`]).
    register: Option<NonZeroU64>,
    number: u16,
}

impl IrqThreshold {
    /// One that is open, with the controller's register at this address, or in the hart itself. Only [`Irqchip`](super::Irqchip) knows which.
    pub(super) const fn new(register: Option<NonZeroU64>) -> Self {
        Self { register, number: 0 }
    }

    /// Of a core that no source reaches. It has to stay open.
    pub const fn open() -> Self {
        Self::new(None)
    }

    /// The threshold that holds now, as [`BoardIrqchip::threshold`](ainori_board::BoardIrqchip::threshold) has it.
    #[inline]
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Sets it. By its core only. Was it another one?
    ///
    /// As this is on the RTOS's way, it doesn't ask what kind the controller is, or whether there is one: without one, nobody has a threshold to be set (`boot/machine.rs`).
    #[inline(always)]
    pub fn set(&mut self, number: u16) -> bool {
        if number == self.number {
            return false;
        }
        self.number = number;
        match self.register {
            // SAFETY: `Irqchip::new` was promised that the device is here; its registers are outside of all Rust objects.
            Some(register) => unsafe { write_volatile(register.get() as *mut u32, number.into()) },
            None => imsic::set_threshold(number),
        }
        true
    }
}
