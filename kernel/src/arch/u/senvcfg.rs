//! `senvcfg`, which harts have from version 1.12 of the privileged specification on. Those with Sstc have it, as that is switched on by a register of the same version (`menvcfg`); of
//! those without, some don't (U54).
use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::arch::riscv::{csr, fence};

/// Has the board's first hart it? All are treated alike: where that has none, it stays as it is on those that have one.
static IS_THERE: AtomicBool = AtomicBool::new(true);

/// The bits of it that can be written. `None`: there is none. Only at boot.
pub(super) fn probe() -> Option<u64> {
    let is_there = !cfg!(feature = "sbi-timer") || can_be_read();
    IS_THERE.store(is_there, Ordering::Relaxed);
    is_there.then(|| {
        // SAFETY: it concerns only user mode, and is written again before a guest runs.
        unsafe {
            csr::write!(csr::SENVCFG, 0b1100_0001 | 0b11 << 4);
            csr::read!(csr::SENVCFG)
        }
    })
}

/// Has this hart it, or isn't it used? Only at boot, with interrupts off.
pub(super) fn is_as_on_first() -> bool {
    !cfg!(feature = "sbi-timer") || !IS_THERE.load(Ordering::Relaxed) || can_be_read()
}

/// Sets it, if it is there.
#[inline(always)]
pub(super) fn set(value: u64) {
    if !cfg!(feature = "sbi-timer") || IS_THERE.load(Ordering::Relaxed) {
        // SAFETY: it concerns user mode only, in which the hypervisor never is.
        unsafe { csr::write!(csr::SENVCFG, value) }
    }
}

/// Tries it. Only at boot, with interrupts off.
fn can_be_read() -> bool {
    let is_there: u64;
    // SAFETY: the trap, if there is one, goes to the label, whose address is a multiple of 4 (a vector in mode Direct); then the former vector is back. What a trap writes beside
    // (`sepc`, `scause`, `stval`, SPP and SPIE) is for nobody at boot.
    unsafe {
        asm!(
            "lla    {vector}, 1f",
            "csrrw  {vector}, stvec, {vector}",
            "li     {is_there}, 0",
            "csrr   {value}, {SENVCFG}",
            "li     {is_there}, 1",
            ".balign 4",
            "1:",
            "csrw   stvec, {vector}",
            vector = out(reg) _,
            value = out(reg) _,
            is_there = out(reg) is_there,
            SENVCFG = const csr::SENVCFG,
            options(nostack),
        );
    }
    is_there != 0
}

/// CSRRW with `x0` as its target, of this register.
const WRITES: u32 = (csr::SENVCFG as u32) << 20 | 0b001 << 12 | 0b111_0011;
/// All of an instruction but its source.
const ALL_BUT_SOURCE: u32 = !(0b1_1111 << 15);
/// ADDI x0, x0, 0.
const NOTHING: u32 = 0x13;

/// Where it isn't there, code that writes it does nothing instead. `code`: so many bytes of instructions of 32 bits each, which nobody executes yet. Only at boot.
pub(super) fn leave_out(code: *mut u32, size: usize) {
    if IS_THERE.load(Ordering::Relaxed) {
        return;
    }
    for place in 0..size / size_of::<u32>() {
        // SAFETY: within these, which are the hypervisor's own text, and which nobody reads or executes meanwhile: one hart runs, without translation.
        unsafe {
            let instruction = code.wrapping_add(place);
            if instruction.read() & ALL_BUT_SOURCE == WRITES {
                instruction.write(NOTHING);
            }
        }
    }
    fence::instructions();
}
