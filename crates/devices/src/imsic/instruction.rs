//! Instructions by which a guest reaches its interrupt file, decoded.
use super::CsrAccess;

/// The major opcode SYSTEM (unprivileged specification, table of opcodes).
const SYSTEM: u32 = 0b111_0011;
/// Numbers of registers (AIA, table 2.1).
mod csr {
    pub(super) const SIREG: u32 = 0x151;
    pub(super) const STOPEI: u32 = 0x15c;
}

/// A register of which the guest's interrupt file says what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRegister {
    /// `sireg`: which one, `siselect` says.
    Indirect,
    /// `stopei`
    Top,
}

/// A Zicsr instruction on one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileInstruction {
    /// The register.
    pub register: FileRegister,
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

impl FileInstruction {
    /// Bytes of each.
    pub const LENGTH: u8 = 4;

    /// `None` for all other instructions (unprivileged specification, "Zicsr").
    pub const fn decode(bits: u32) -> Option<Self> {
        if bits & 0x7f != SYSTEM {
            return None;
        }
        let register = match bits >> 20 {
            csr::SIREG => FileRegister::Indirect,
            csr::STOPEI => FileRegister::Top,
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Assembled by GNU as.
    #[test]
    fn instructions_are_what_the_assembler_makes() {
        let five = |number: u8| if number == 10 { 5 } else { panic!("register {number}") };
        for (bits, register, rd, access) in [
            (0x15c0_1573, FileRegister::Top, 10, CsrAccess::Write(0)), // csrrw a0, stopei, zero
            (0x15c0_25f3, FileRegister::Top, 11, CsrAccess::Read),     // csrr a1, stopei
            (0x1515_1073, FileRegister::Indirect, 0, CsrAccess::Write(5)), // csrw sireg, a0
            (0x1515_2073, FileRegister::Indirect, 0, CsrAccess::Set(5)), // csrs sireg, a0
            (0x1515_35f3, FileRegister::Indirect, 11, CsrAccess::Clear(5)), // csrrc a1, sireg, a0
            (0x151f_d073, FileRegister::Indirect, 0, CsrAccess::Write(31)), // csrwi sireg, 31
            (0x1510_e073, FileRegister::Indirect, 0, CsrAccess::Set(1)), // csrsi sireg, 1
            (0x1510_7073, FileRegister::Indirect, 0, CsrAccess::Read), // csrci sireg, 0
        ] {
            let decoded = FileInstruction::decode(bits).expect("it is one");
            let read = |number| if number == 0 { 0 } else { five(number) };
            assert_eq!(
                (decoded.register, decoded.rd, decoded.access(read)),
                (register, rd, access),
                "{bits:#x}"
            );
        }
    }

    #[test]
    fn others_are_none() {
        for bits in [
            0x1505_1073, // csrw siselect, a0
            0xdb00_2573, // csrr a0, stopi
            0x1520_2573, // csrr a0, sireg2
            0x15c0_0073, // no Zicsr instruction
            0x15c0_4073, // nor this
            0x1510_1003, // a load
            0,
            u32::MAX,
        ] {
            assert_eq!(FileInstruction::decode(bits), None, "{bits:#x}");
        }
    }
}
