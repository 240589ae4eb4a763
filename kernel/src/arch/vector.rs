//! Vector registers of guests (V extension 1.0).
use alloc::{boxed::Box, vec};
use core::arch::asm;

use super::csr;

/// `v0` to `v31` and the vector CSRs of a vCPU. The registers' length is the hart's `vlenb`.
#[derive(Debug)]
pub struct VectorRegisters {
    v: Box<[u8]>,
    vlenb: usize,
    vstart: u64,
    vcsr: u64,
    vl: u64,
    vtype: u64,
}

impl VectorRegisters {
    /// Room for registers of `vlenb` bytes each. Allocates: only at boot.
    pub fn new(vlenb: usize) -> Self {
        Self { v: vec![0; 32 * vlenb].into_boxed_slice(), vlenb, vstart: 0, vcsr: 0, vl: 0, vtype: 0 }
    }

    /// All zero again.
    pub fn reset(&mut self) {
        // BOUND: 32 registers, 3 instructions for 8 bytes: 192 where they have 128 bits each, 1,536 where they have 1,024.
        self.v.fill(0);
        (self.vstart, self.vcsr, self.vl, self.vtype) = (0, 0, 0, 0);
    }

    /// Bytes of one vector register of this hart.
    ///
    /// # Safety
    /// `sstatus.VS` is not off.
    pub unsafe fn hart_vlenb() -> usize {
        csr::read!(csr::VLENB) as usize
    }

    /// Copies the hart's registers to memory.
    ///
    /// # Safety
    /// `sstatus.VS` is not off.
    pub unsafe fn save(&mut self) {
        let base = self.v.as_mut_ptr();
        // SAFETY: whole-register stores write 8 registers of `vlenb` bytes each, and `v` has room for 32;
        // `vstart` must be 0 for them, so it is saved first.
        unsafe {
            asm!(
                ".option push", ".option arch, +v",
                "csrr {vstart}, vstart", "csrr {vcsr}, vcsr", "csrr {vl}, vl", "csrr {vtype}, vtype",
                "csrw vstart, zero",
                "vs8r.v v0, ({p})", "add {p}, {p}, {n}",
                "vs8r.v v8, ({p})", "add {p}, {p}, {n}",
                "vs8r.v v16, ({p})", "add {p}, {p}, {n}",
                "vs8r.v v24, ({p})",
                ".option pop",
                p = inout(reg) base => _, n = in(reg) 8 * self.vlenb,
                vstart = out(reg) self.vstart, vcsr = out(reg) self.vcsr, vl = out(reg) self.vl, vtype = out(reg) self.vtype,
                options(nostack),
            );
        }
    }

    /// Copies only the CSRs to memory that a guest may have written without a trace in `sstatus`, as QEMU has it (as for `fcsr`).
    ///
    /// # Safety
    /// `sstatus.VS` is not off.
    pub unsafe fn save_control(&mut self) {
        self.vstart = csr::read!(csr::VSTART);
        self.vcsr = csr::read!(csr::VCSR);
    }

    /// Copies memory to the hart's registers.
    ///
    /// # Safety
    /// `sstatus.VS` is not off.
    pub unsafe fn load(&self) {
        let base = self.v.as_ptr();
        // SAFETY: whole-register loads read what `save` wrote. `vsetvl` restores vl and vtype (an illegal vtype gives
        // vill again), and the remaining CSRs come last since vector instructions reset vstart.
        unsafe {
            asm!(
                ".option push", ".option arch, +v",
                "csrw vstart, zero",
                "vl8re8.v v0, ({p})", "add {p}, {p}, {n}",
                "vl8re8.v v8, ({p})", "add {p}, {p}, {n}",
                "vl8re8.v v16, ({p})", "add {p}, {p}, {n}",
                "vl8re8.v v24, ({p})",
                "vsetvl zero, {vl}, {vtype}",
                "csrw vcsr, {vcsr}", "csrw vstart, {vstart}",
                ".option pop",
                p = inout(reg) base => _, n = in(reg) 8 * self.vlenb,
                vstart = in(reg) self.vstart, vcsr = in(reg) self.vcsr, vl = in(reg) self.vl, vtype = in(reg) self.vtype,
                options(nostack, readonly),
            );
        }
    }
}
