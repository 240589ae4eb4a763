//! Floating-point registers of guests.
use core::arch::global_asm;

/// `f0` to `f31` and `fcsr` of a vCPU.
#[repr(C)]
#[derive(Debug, Default)]
pub struct FloatRegisters {
    f: [u64; 32],
    fcsr: u64,
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
transfer!("float_save", "fsd", "frcsr t0\n sw t0, 32*8(a0)");
transfer!("float_load", "fld", "lw t0, 32*8(a0)\n fscsr t0");

unsafe extern "C" {
    fn float_save(registers: *mut FloatRegisters);
    fn float_load(registers: *const FloatRegisters);
}

impl FloatRegisters {
    /// Copies the hart's registers to memory.
    ///
    /// # Safety
    /// `sstatus.FS` is not off. The hypervisor itself is compiled without floating point.
    pub unsafe fn save(&mut self) {
        // SAFETY: the routine writes exactly this object and changes only t0.
        unsafe { float_save(self) }
    }
    /// Copies memory to the hart's registers.
    ///
    /// # Safety
    /// As for [`Self::save`].
    pub unsafe fn load(&self) {
        // SAFETY: the routine reads exactly this object and changes only t0 and floating-point registers.
        unsafe { float_load(self) }
    }
}
