//! Vector registers of guests (V extension 1.0).
use alloc::{boxed::Box, vec};
use core::arch::asm;

use super::csr;

/// `v0` to `v31` and the vector CSRs of a vCPU. The registers' length is `vlenb`, that of the harts that the vCPU may run on: the
/// instructions that copy them move as many bytes as the hart's registers have, whatever there is room for.
#[derive(Debug)]
pub struct VectorRegisters {
    v: Box<[u8]>,
    vlenb: usize,
    vstart: u64,
    vcsr: u64,
    vl: u64,
    vtype: u64,
    /// All registers are zero, whatever `v` says. So a reset takes the same few instructions however long they are.
    are_zero: bool,
}

impl VectorRegisters {
    /// Room for registers of `vlenb` bytes each. Allocates: only at boot.
    pub fn new(vlenb: usize) -> Self {
        let v = vec![0; 32 * vlenb].into_boxed_slice();
        Self { v, vlenb, vstart: 0, vcsr: 0, vl: 0, vtype: 0, are_zero: true }
    }

    /// All zero again.
    pub fn reset(&mut self) {
        self.are_zero = true;
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
    /// `sstatus.VS` is not off, and the hart's [`vlenb`](Self::hart_vlenb) is the one that [`Self::new`] was given.
    pub unsafe fn save(&mut self) {
        self.are_zero = false;
        let base = self.v.as_mut_ptr();
        // SAFETY: whole-register stores write 8 registers of the hart's `vlenb` bytes each, and `v` has room for 32 of that length;
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
    /// As for [`Self::save`].
    pub unsafe fn load(&self) {
        // SAFETY: as this function's.
        unsafe {
            if self.are_zero {
                clear()
            } else {
                self.load_registers()
            }
            self.load_control();
        }
    }

    /// # Safety
    /// As for [`Self::save`].
    unsafe fn load_registers(&self) {
        let base = self.v.as_ptr();
        // SAFETY: whole-register loads read what `save` wrote: 32 registers of the hart's `vlenb` bytes each.
        unsafe {
            asm!(
                ".option push", ".option arch, +v",
                "csrw vstart, zero",
                "vl8re8.v v0, ({p})", "add {p}, {p}, {n}",
                "vl8re8.v v8, ({p})", "add {p}, {p}, {n}",
                "vl8re8.v v16, ({p})", "add {p}, {p}, {n}",
                "vl8re8.v v24, ({p})",
                ".option pop",
                p = inout(reg) base => _, n = in(reg) 8 * self.vlenb,
                options(nostack, readonly),
            );
        }
    }

    /// # Safety
    /// `sstatus.VS` is not off.
    unsafe fn load_control(&self) {
        // SAFETY: `vsetvl` restores vl and vtype (an illegal vtype gives vill again), and the remaining CSRs come last since vector
        // instructions reset vstart.
        unsafe {
            asm!(
                ".option push", ".option arch, +v",
                "vsetvl zero, {vl}, {vtype}",
                "csrw vcsr, {vcsr}", "csrw vstart, {vstart}",
                ".option pop",
                vstart = in(reg) self.vstart, vcsr = in(reg) self.vcsr, vl = in(reg) self.vl, vtype = in(reg) self.vtype,
                options(nostack, nomem),
            );
        }
    }
}

/// Clears the hart's registers. Leaves vl and vtype changed.
///
/// # Safety
/// `sstatus.VS` is not off.
unsafe fn clear() {
    // SAFETY: touches nothing but vector registers.
    unsafe {
        asm!(
            ".option push", ".option arch, +v",
            "csrw vstart, zero",
            "vsetvli {most}, zero, e8, m8, ta, ma",
            "vmv.v.i v0, 0", "vmv.v.i v8, 0", "vmv.v.i v16, 0", "vmv.v.i v24, 0",
            ".option pop",
            most = out(reg) _,
            options(nostack, nomem),
        );
    }
}
