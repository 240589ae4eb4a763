//! Instructions that reach control and status registers, decoded (unprivileged specification, "Zicsr"): those of a guest that trap, as its hart hasn't got
//! for it what they reach.
//!
//! Harts with H have nearly all registers for their guests, and [`CsrInstruction`] is of those that they haven't. On a hart without H, where a guest's kernel runs in user
//! mode, they have none: [`AnyCsrInstruction`] is for those guests.

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

/// An instruction on one of these registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsrInstruction {
    /// The register.
    pub register: CsrRegister,
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
        let operation = match bits >> 12 & 0b11 {
            0b01 => Operation::Write,
            0b10 => Operation::Set,
            0b11 => Operation::Clear,
            _ => return None,
        };
        Some(Self {
            register,
            rd: (bits >> 7 & 31) as u8,
            operand: (bits >> 15 & 31) as u8,
            is_immediate: bits >> 14 & 1 != 0,
            operation,
        })
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

/// An instruction on any register, by its number. It is no more than its bits, so that an emulation that does little takes little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnyCsrInstruction(u32);

impl AnyCsrInstruction {
    /// `None` for instructions that reach no register.
    #[inline]
    pub const fn decode(bits: u32) -> Option<Self> {
        /// Of the field `funct3`, those that tell what is done. Where they are 0, it is another instruction.
        const OPERATION: u32 = 0b11 << 12;
        if bits & 0x7f == SYSTEM && bits & OPERATION != 0 { Some(Self(bits)) } else { None }
    }

    /// The register's number: below 4096.
    #[inline]
    pub const fn number(self) -> u16 {
        (self.0 >> 20) as u16
    }

    /// Number of the general register that gets the old value.
    #[inline]
    pub const fn rd(self) -> u8 {
        (self.0 >> 7 & 31) as u8
    }

    /// The number of the general register whose value is written. `None` if none is: the instruction has the value itself.
    #[inline]
    pub const fn source(self) -> Option<u8> {
        if self.0 >> 14 & 1 != 0 { None } else { Some(self.operand()) }
    }

    const fn operand(self) -> u8 {
        (self.0 >> 15 & 31) as u8
    }

    /// What it does, if its [source](Self::source) has this value. Of register 0 that is 0.
    #[inline]
    pub const fn access(self, source: u64) -> CsrAccess {
        let value = if self.source().is_none() { self.operand() as u64 } else { source };
        match self.0 >> 12 & 0b11 {
            0b01 => CsrAccess::Write(value),
            _ if self.operand() == 0 => CsrAccess::Read,
            0b10 => CsrAccess::Set(value),
            _ => CsrAccess::Clear(value),
        }
    }

    /// Does it write at all? As [`CsrAccess::writes`].
    #[inline]
    pub const fn writes(self) -> bool {
        self.0 >> 12 & 0b11 == 0b01 || self.operand() != 0
    }

    /// The [access](Self::access) as bits that are kept and bits that are set: in few steps, whichever it is.
    #[inline]
    pub const fn change(self, source: u64) -> CsrChange {
        let value = if self.source().is_none() { self.operand() as u64 } else { source };
        let is_write = self.0 >> 12 & 0b11 == 0b01;
        let is_clear = self.0 >> 12 & 0b11 == 0b11;
        CsrChange { keep: if is_write { 0 } else { !value }, set: if is_clear { 0 } else { value } }
    }
}

/// What is made of a register's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsrChange {
    keep: u64,
    set: u64,
}

impl CsrChange {
    /// As [`CsrAccess::applied_to`].
    #[inline]
    #[must_use]
    pub const fn applied_to(self, old: u64) -> u64 {
        old & self.keep | self.set
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
        for (bits, number, rd, source, access) in [
            (0x1402_1273, 0x140, 4, Some(4), CsrAccess::Write(7)), // csrrw tp, sscratch, tp
            (0x1400_1273, 0x140, 4, Some(0), CsrAccess::Write(7)), // csrrw tp, sscratch, zero (which isn't 7)
            (0x1001_74f3, 0x100, 9, None, CsrAccess::Clear(2)),    // csrrci s1, sstatus, 2
            (0x100f_e073, 0x100, 0, None, CsrAccess::Set(31)),     // csrsi sstatus, 31
            (0x1004_a073, 0x100, 0, Some(9), CsrAccess::Set(7)),   // csrs sstatus, s1
            (0x1004_b073, 0x100, 0, Some(9), CsrAccess::Clear(7)), // csrc sstatus, s1
            (0x1410_5073, 0x141, 0, None, CsrAccess::Write(0)),    // csrwi sepc, 0
            (0x1000_6073, 0x100, 0, None, CsrAccess::Read),        // csrsi sstatus, 0
            (0xfff0_2573, 0xfff, 10, Some(0), CsrAccess::Read),    // csrr a0, 0xfff
            (0xfff0_3573, 0xfff, 10, Some(0), CsrAccess::Read),    // csrrc a0, 0xfff, zero
        ] {
            let decoded = AnyCsrInstruction::decode(bits).expect("it is one");
            assert_eq!(
                (decoded.number(), decoded.rd(), decoded.source(), decoded.access(7)),
                (number, rd, source, access),
                "{bits:#x}"
            );
            assert_eq!(decoded.writes(), access.writes(), "{bits:#x}");
            // What comes of register 0 is 0.
            let value = if source == Some(0) { 0 } else { 7 };
            let expected = decoded.access(value).applied_to(0x55);
            assert_eq!(decoded.change(value).applied_to(0x55), expected, "{bits:#x}");
        }
        for bits in [0x1200_0073, 0x1020_0073, 0x1050_0073, 0x6200_4073, 0x1000_2003, 0, u32::MAX] {
            assert_eq!(AnyCsrInstruction::decode(bits), None, "{bits:#x}");
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
