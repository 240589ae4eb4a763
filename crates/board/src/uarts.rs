//! Serial ports that only a kernel with the feature `uarts` drives, beside the 16550A with registers of a byte.
use dtoolkit::fdt::FdtNode;

use crate::BoardUart;
use crate::irqchip::{BoardIrqchip, interrupts};
use crate::tree::{cell, is_compatible, is_on, registers};

/// In [`BoardUart::shift`], beside the shift itself, which is less: the registers of a 16550A are read and written as words of four bytes.
pub const WORDS: usize = 1 << 8;
/// In [`BoardUart::shift`]: it is SiFive's (SiFive FU540-C000 Manual, chapter "Universal Asynchronous Receiver/Transmitter").
pub const SIFIVE: usize = 1 << 9;

/// Bytes of the registers of SiFive's.
const SIFIVE_REGISTERS: u64 = 0x1c;
/// Registers of a 16550.
const NS16550_REGISTERS: u64 = 8;
/// Their least distance, if they are words: as a shift.
const WORD_SHIFT: u32 = 2;

/// The serial port that this node is, if it is one of these.
pub fn other(node: &FdtNode<'_>, irqchip: Option<BoardIrqchip>) -> Option<BoardUart> {
    let number = |name, default| cell(node, name).unwrap_or(default);
    let registers = registers(node).next()?;
    let (offset, shift) = (u64::from(number("reg-offset", 0)), number("reg-shift", 0));
    let size = registers.size().checked_sub(offset)?;
    let layout = if is_compatible(node, &["sifive,uart0"]) {
        (size >= SIFIVE_REGISTERS).then_some(SIFIVE)?
    } else {
        let is_one = is_compatible(node, &["ns16550a", "ns16550", "snps,dw-apb-uart"])
            && number("reg-io-width", 1) == 4
            && shift >= WORD_SHIFT
            && size.checked_shr(shift)? >= NS16550_REGISTERS;
        is_one.then_some(WORDS | shift as usize)?
    };
    is_on(node).then_some(BoardUart {
        base: registers.start + offset,
        shift: layout,
        interrupt: interrupts(node, irqchip).next()?,
    })
}
