//! Floating-point registers of guests, of harts with single precision only (F) or with double precision (D).
use super::csr;
use core::arch::global_asm;

/// `f0` to `f31` and `fcsr` of a vCPU.
#[repr(C)]
#[derive(Debug)]
pub struct FloatRegisters {
    f: [u64; 32],
    fcsr: u64,
    is_double: bool,
}

macro_rules! transfer {
    ($name:literal, $op:literal, $csr:literal) => {
        global_asm!(
            ".option push",
            ".option arch, +f, +d",
            concat!(".global ", $name),
            concat!($name, ":"),
            ".altmacro",
            concat!(".macro ", $name, "_one n"),
            concat!($op, " f\\n, 8*\\n(a0)"),
            ".endm",
            ".set i, 0",
            ".rept 32",
            concat!($name, "_one %i"),
            ".set i, i+1",
            ".endr",
            ".noaltmacro",
            $csr,
            "ret",
            ".option pop",
        );
    };
}
transfer!("float_save_double", "fsd", "frcsr t0\n sw t0, 32*8(a0)");
transfer!("float_load_double", "fld", "lw t0, 32*8(a0)\n fscsr t0");
transfer!("float_save_single", "fsw", "frcsr t0\n sw t0, 32*8(a0)");
transfer!("float_load_single", "flw", "lw t0, 32*8(a0)\n fscsr t0");

unsafe extern "C" {
    fn float_save_double(registers: *mut FloatRegisters);
    fn float_load_double(registers: *const FloatRegisters);
    fn float_save_single(registers: *mut FloatRegisters);
    fn float_load_single(registers: *const FloatRegisters);
}

impl FloatRegisters {
    /// All zeros, for a hart with double precision, or with single precision at most.
    pub fn new(is_double: bool) -> Self {
        Self { f: [0; 32], fcsr: 0, is_double }
    }

    /// As [`Self::new`].
    pub fn reset(&mut self) {
        *self = Self::new(self.is_double);
    }

    /// Copies the hart's registers to memory.
    ///
    /// # Safety
    /// `sstatus.FS` is not off. The hypervisor itself is compiled without floating point.
    pub unsafe fn save(&mut self) {
        // SAFETY: the routine writes exactly this object and changes only t0; the hart has the instructions that it consists of.
        unsafe { if self.is_double { float_save_double(self) } else { float_save_single(self) } }
    }

    /// Copies only `fcsr` to memory. QEMU (10.0 and later) doesn't note in the hypervisor's `sstatus` that a guest has written it, so it
    /// may have changed where nothing else has.
    ///
    /// # Safety
    /// As for [`Self::save`].
    pub unsafe fn save_control(&mut self) {
        self.fcsr = csr::read!(csr::FCSR);
    }

    /// Copies memory to the hart's registers.
    ///
    /// # Safety
    /// As for [`Self::save`].
    pub unsafe fn load(&self) {
        // SAFETY: the routine reads exactly this object and changes only t0 and floating-point registers; the hart has its instructions.
        unsafe { if self.is_double { float_load_double(self) } else { float_load_single(self) } }
    }
}
