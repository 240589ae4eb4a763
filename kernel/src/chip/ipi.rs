//! Interrupts from core to core.
use alloc::boxed::Box;
use core::ptr::write_volatile;

use crate::arch::{fence, firmware};
use ainori_board::{Board, IPI_IDENTITY};

/// How a software interrupt reaches a core. The device costs a store; the firmware costs thousands of instructions on the
/// sending hart, with interrupts off, and hundreds on the receiving one.
#[derive(Debug, Clone)]
pub enum Ipi {
    /// A register per core: of the board's supervisor software-interrupt device (RISC-V ACLINT specification 1.0-rc4, SSWI), or of its IMSICs (AIA, section
    /// 3.5).
    Device(Box<[usize]>),
    /// The firmware: hart id per core.
    Firmware(Box<[u64]>),
}

impl Ipi {
    /// The best way that the board has, for its harts in the order of the cores. Only at boot.
    pub fn new(board: &Board, harts: &[u64]) -> Self {
        let register = |hart: &u64| {
            let hart = board.harts.iter().find(|h| h.id == *hart)?;
            let software = board.sswi.zip(hart.sswi_index).map(|(base, index)| base + 4 * u64::from(index));
            // A message comes as an external interrupt, which is told from others only when it has been claimed.
            Some(software.or(hart.messages.map(u64::from))? as usize)
        };
        match harts.iter().map(register).collect() {
            Some(registers) => Self::Device(registers),
            None => Self::Firmware(harts.into()),
        }
    }

    /// Sends one to a core. What was written to memory before is visible to it when it takes the interrupt.
    #[inline]
    pub fn send(&self, core: u32) {
        match self {
            Self::Device(registers) => {
                fence::before_device();
                if let Some(register) = registers.get(core as usize) {
                    // SAFETY: the board says that the register is there; the write only raises the other hart's interrupt.
                    unsafe { write_volatile(*register as *mut u32, IPI_IDENTITY) }
                }
            }
            Self::Firmware(harts) => {
                if let Some(hart) = harts.get(core as usize) {
                    firmware::send_ipi(*hart);
                }
            }
        }
    }
}
