//! Instructions that reach control and status registers, decoded (unprivileged specification, "Zicsr"): those of a guest that trap, as its hart hasn't got
//! for it what they reach.
//!
//! Most harts have nearly all registers for their guests, and `decode` knows those that they haven't. On a hart without H, where a guest's kernel runs in user
//! mode, they have none: `decode_any` is for those guests.

/// The major opcode SYSTEM (unprivileged specification, table of opcodes).
const SYSTEM: u32 = 0b111_0011;

/// Numbers of registers (AIA, table 2.1; privileged specification, volume II, tables "Currently allocated CSR addresses").
mod csr {
    pub(super) const SIREG: u32 = 0x151;
    pub(super) const STOPEI: u32 = 0x15c;
    #[cfg(feature = "shadow")]
    pub(super) const SATP: u32 = 0x180;
}

/// A register that the hypervisor has for a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsrRegister {
    /// `sireg`, of an [interrupt file](crate::imsic): which of its registers, `siselect` says.
    Indirect,
    /// `stopei`, of an interrupt file.
    Top,
    /// `satp`, where the hart walks other tables than those that the guest means.
    #[cfg(feature = "shadow")]
    AddressSpace,
}

/// What an instruction does with a CSR (unprivileged specification, "Zicsr").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsrAccess {
    /// `csrrs` and `csrrc` with `x0`, or with 0: no write at all.
    Read,
    /// `csrrw`
    Write(u64),
    /// `csrrs`
    Set(u64),
    /// `csrrc`
    Clear(u64),
}

impl CsrAccess {
    /// Does it write at all?
    #[must_use]
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Read)
    }

    /// What is in a register afterwards that held `old`, as far as it is free to hold anything.
    #[must_use]
    pub const fn applied_to(self, old: u64) -> u64 {
        match self {
            Self::Read => old,
            Self::Write(value) => value,
            Self::Set(bits) => old | bits,
            Self::Clear(bits) => old & !bits,
        }
    }
}

/// An instruction on one of these registers; or on any, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsrInstruction<Register = CsrRegister> {
    /// The register.
    pub register: Register,
    /// Number of the general register that gets the old value.
    pub rd: u8,
    /// What is written: the general register of that number, or that number itself.
    operand: u8,
    is_immediate: bool,
    operation: Operation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Write,
    Set,
    Clear,
}

/// An instruction with the opcode SYSTEM, on this register. A macro, as the compiler makes other code of a function, and each change of the usual kernel's code has to be measured.
macro_rules! with_register {
    ($bits:ident, $register:expr) => {{
        let operation = match $bits >> 12 & 0b11 {
            0b01 => Operation::Write,
            0b10 => Operation::Set,
            0b11 => Operation::Clear,
            _ => return None,
        };
        Some(Self {
            register: $register,
            rd: ($bits >> 7 & 31) as u8,
            operand: ($bits >> 15 & 31) as u8,
            is_immediate: $bits >> 14 & 1 != 0,
            operation,
        })
    }};
}

impl CsrInstruction {
    /// Bytes of each.
    pub const LENGTH: u8 = 4;

    /// `None` for all other instructions.
    pub const fn decode(bits: u32) -> Option<Self> {
        if bits & 0x7f != SYSTEM {
            return None;
        }
        let register = match bits >> 20 {
            csr::SIREG => CsrRegister::Indirect,
            csr::STOPEI => CsrRegister::Top,
            #[cfg(feature = "shadow")]
            csr::SATP => CsrRegister::AddressSpace,
            _ => return None,
        };
        with_register!(bits, register)
    }
}

impl CsrInstruction<u16> {
    /// An instruction on any register, by its number (12 bits). `None` for all that are of no register.
    #[inline]
    pub const fn decode_any(bits: u32) -> Option<Self> {
        if bits & 0x7f != SYSTEM {
            return None;
        }
        with_register!(bits, (bits >> 20) as u16)
    }
}

impl<Register: Copy> CsrInstruction<Register> {
    /// The number of the general register whose value is written. `None` if none is: the instruction has the value itself.
    #[inline]
    pub const fn source(&self) -> Option<u8> {
        if self.is_immediate { None } else { Some(self.operand) }
    }

    /// What it does, of the guest whose general registers `register` tells.
    pub fn access(self, register: impl FnOnce(u8) -> u64) -> CsrAccess {
        let value = if self.is_immediate { self.operand.into() } else { register(self.operand) };
        match self.operation {
            Operation::Write => CsrAccess::Write(value),
            // Register 0, or the number 0: "will not write to the CSR at all".
            _ if self.operand == 0 => CsrAccess::Read,
            Operation::Set => CsrAccess::Set(value),
            Operation::Clear => CsrAccess::Clear(value),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Assembled by GNU as.
    #[test]
    fn instructions_are_what_the_assembler_makes() {
        let five = |number: u8| if number == 10 { 5 } else { panic!("register {number}") };
        for (bits, register, rd, access) in [
            (0x15c0_1573, CsrRegister::Top, 10, CsrAccess::Write(0)), // csrrw a0, stopei, zero
            (0x15c0_25f3, CsrRegister::Top, 11, CsrAccess::Read),     // csrr a1, stopei
            (0x1515_1073, CsrRegister::Indirect, 0, CsrAccess::Write(5)), // csrw sireg, a0
            (0x1515_2073, CsrRegister::Indirect, 0, CsrAccess::Set(5)), // csrs sireg, a0
            (0x1515_35f3, CsrRegister::Indirect, 11, CsrAccess::Clear(5)), // csrrc a1, sireg, a0
            (0x151f_d073, CsrRegister::Indirect, 0, CsrAccess::Write(31)), // csrwi sireg, 31
            (0x1510_e073, CsrRegister::Indirect, 0, CsrAccess::Set(1)), // csrsi sireg, 1
            (0x1510_7073, CsrRegister::Indirect, 0, CsrAccess::Read), // csrci sireg, 0
        ] {
            let decoded = CsrInstruction::decode(bits).expect("it is one");
            let read = |number| if number == 0 { 0 } else { five(number) };
            assert_eq!(
                (decoded.register, decoded.rd, decoded.access(read)),
                (register, rd, access),
                "{bits:#x}"
            );
        }
    }

    #[cfg(feature = "shadow")]
    #[test]
    fn one_of_them_is_that_of_the_address_space() {
        let write = CsrInstruction::decode(0x1805_15f3).expect("csrrw a1, satp, a0");
        assert_eq!((write.register, write.rd), (CsrRegister::AddressSpace, 11));
        assert_eq!(write.access(|_| 5), CsrAccess::Write(5));
    }

    #[test]
    fn of_any_register_they_have_its_number() {
        let swap = CsrInstruction::decode_any(0x1402_1273).expect("csrrw tp, sscratch, tp");
        assert_eq!((swap.register, swap.rd, swap.source()), (0x140, 4, Some(4)));
        assert_eq!(swap.access(|number| number.into()), CsrAccess::Write(4));
        let save = CsrInstruction::decode_any(0x1001_74f3).expect("csrrci s1, sstatus, 2");
        assert_eq!((save.register, save.rd, save.source()), (0x100, 9, None));
        assert_eq!(save.access(|_| 9), CsrAccess::Clear(2));
        let last = CsrInstruction::decode_any(0xfff0_2573).expect("csrr a0, 0xfff");
        assert_eq!(last.register, 0xfff);
        for bits in [0x1200_0073, 0x1020_0073, 0x1050_0073, 0x6200_4073, 0x1000_2003, 0, u32::MAX] {
            assert_eq!(CsrInstruction::decode_any(bits), None, "{bits:#x}");
        }
    }

    #[test]
    fn others_are_none() {
        for bits in [
            0x15c0_0073, // no Zicsr instruction
            0x15c0_4073, // nor this
            0x1510_1003, // a load
            0x1505_1073, // csrw siselect, a0
            0xdb00_2573, // csrr a0, stopi
            0x1520_2573, // csrr a0, sireg2
            0x1200_0073, // sfence.vma
            0,
            u32::MAX,
        ] {
            assert_eq!(CsrInstruction::decode(bits), None, "{bits:#x}");
        }
    }

    #[test]
    fn what_is_written_is_what_the_access_says() {
        let after = [CsrAccess::Read, CsrAccess::Write(5), CsrAccess::Set(5), CsrAccess::Clear(5)];
        assert_eq!(after.map(|access| access.applied_to(6)), [6, 5, 7, 2]);
    }
}
