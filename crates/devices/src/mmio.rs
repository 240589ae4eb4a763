//! Decodes the load or store that trapped into the hypervisor.
//!
//! Sources: *RISC-V Instruction Set Manual*, volume I (RV64I, C, Zcb) for the instructions, volume II, "Transformed
//! Instruction or Pseudoinstruction for `mtinst` or `htinst`", for the transformed form. The address is of no interest
//! for that: the hart reports it.
mod address;

pub use address::address_offset;

/// What a load or store does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Loads `width` bytes into integer register `rd`, extended as `signed` says.
    Load {
        /// Destination register, 0 to 31.
        rd: u8,
        /// Bytes: 1, 2, 4 or 8.
        width: u8,
        /// Sign-extended rather than zero-extended.
        signed: bool,
    },
    /// Stores the low `width` bytes of integer register `rs2`.
    Store {
        /// Source register, 0 to 31.
        rs2: u8,
        /// Bytes: 1, 2, 4 or 8.
        width: u8,
    },
}

/// A decoded load or store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// What it does.
    pub kind: Kind,
    /// Bytes of the instruction, 2 or 4: how far the program counter moves on.
    pub length: u8,
}

impl Access {
    /// Bytes that are loaded or stored: 1, 2, 4 or 8.
    #[inline(always)]
    pub const fn width(self) -> u8 {
        match self.kind {
            Kind::Load { width, .. } | Kind::Store { width, .. } => width,
        }
    }
}

/// Bits of the opcode. Of bits 1:0, a transformed instruction has bit 1 clear if it was compressed, and all have bit 0.
const OPCODE: u32 = 0b1111101;
const LOAD: u32 = 0b0000001;
const STORE: u32 = 0b0100001;
/// The instruction has 4 bytes.
const IS_LONG: u32 = 0b10;

/// Decodes an integer load or store of RV64I, C or Zcb.
///
/// `bits` is either what the hart wrote to `htinst`, or the instruction as fetched from memory (the upper half is ignored
/// if it is a compressed one). The two forms don't collide: a transformed instruction has the bits 1:0 = 11, or 01 if
/// it was compressed, and no compressed instruction of quadrant 01 accesses memory. A guest that rewrites the instruction
/// between the trap and the fetch gets another access of its own making, and nothing that it couldn't do anyway.
///
/// ```
/// use ainori_devices::mmio::{decode, Access, Kind};
///
/// // lbu a0, 0(a1), as the hart transforms it or as it stands in memory
/// let load = Kind::Load { rd: 10, width: 1, signed: false };
/// assert_eq!(decode(0x0005_c503), Some(Access { kind: load, length: 4 }));
/// // c.sw a0, 0(a1)
/// assert_eq!(decode(0xc188), Some(Access { kind: Kind::Store { rs2: 10, width: 4 }, length: 2 }));
/// // amoadd.w a0, a0, (a1): no device takes that
/// assert_eq!(decode(0x00a5_a52f), None);
/// ```
///
/// `None` for all else: floating-point and vector accesses, AMOs, LR/SC, an `htinst` of zero (nothing known), and the
/// pseudoinstructions that stand for an implicit access of the page-table walker. A device has no use for those.
#[inline(always)] // Called in one place, on the way of each load and store.
pub fn decode(bits: u32) -> Option<Access> {
    // One that stands in memory compressed is expanded, so that there is one form from here on.
    let bits = if bits & 1 == 0 { expand(bits) } else { bits };
    let funct3 = field(bits, 12, 3);
    let width = 1 << (funct3 & 3);
    let unsigned = funct3 & 4 != 0;
    let kind = match bits & OPCODE {
        // funct3 7 would be an unsigned load of 64 bits.
        LOAD if funct3 != 7 => Kind::Load { rd: field(bits, 7, 5), width, signed: !unsigned },
        STORE if !unsigned => Kind::Store { rs2: field(bits, 20, 5), width },
        _ => return None,
    };
    Some(Access { kind, length: 2 + (bits & IS_LONG) as u8 })
}

/// The 64-bit register value after a load of `width` bytes (1, 2, 4 or 8): the low bytes of `value`, sign-extended or
/// zero-extended.
pub const fn extend(value: u64, width: u8, signed: bool) -> u64 {
    let unused = 64 - 8 * width as u32;
    let shifted = value << unused;
    if signed { (shifted as i64 >> unused) as u64 } else { shifted >> unused }
}

/// `count` bits of `bits` from bit `low` on.
const fn field(bits: u32, low: u32, count: u32) -> u8 {
    (bits >> low & ((1 << count) - 1)) as u8
}

/// One of the registers x8 to x15 that compressed instructions name with three bits at `low`.
const fn compressed_register(bits: u32, low: u32) -> u32 {
    8 + (bits >> low & 7)
}

/// A load in the form that the hart transforms compressed ones to: as the 32-bit one, but that [`IS_LONG`] is clear.
const fn load(rd: u32, funct3: u32) -> u32 {
    LOAD | funct3 << 12 | rd << 7
}

/// The same of a store.
const fn store(rs2: u32, funct3: u32) -> u32 {
    STORE | funct3 << 12 | rs2 << 20
}

/// funct3 of loads and stores: the width, and that a load doesn't extend the sign.
mod funct3 {
    pub const BYTE: u32 = 0;
    pub const HALF: u32 = 1;
    pub const WORD: u32 = 2;
    pub const DOUBLE: u32 = 3;
    pub const UNSIGNED: u32 = 4;
}

/// A compressed load or store, transformed; 0 for any other instruction.
#[inline(never)]
fn expand(bits: u32) -> u32 {
    if bits & 2 == 0 { quadrant_0(bits) } else { quadrant_2(bits) }
}

/// Compressed loads and stores through a register.
fn quadrant_0(bits: u32) -> u32 {
    let register = compressed_register(bits, 2);
    match field(bits, 13, 3) {
        0b010 => load(register, funct3::WORD),
        0b011 => load(register, funct3::DOUBLE),
        0b100 => zcb(bits, register),
        0b110 => store(register, funct3::WORD),
        0b111 => store(register, funct3::DOUBLE),
        _ => 0,
    }
}

/// The bytes and halfwords of Zcb.
fn zcb(bits: u32, register: u32) -> u32 {
    let bit_6 = field(bits, 6, 1) != 0;
    match field(bits, 10, 3) {
        0b000 => load(register, funct3::BYTE | funct3::UNSIGNED),
        0b001 if bit_6 => load(register, funct3::HALF),
        0b001 => load(register, funct3::HALF | funct3::UNSIGNED),
        0b010 => store(register, funct3::BYTE),
        0b011 if !bit_6 => store(register, funct3::HALF),
        _ => 0,
    }
}

/// Compressed loads and stores through the stack pointer.
fn quadrant_2(bits: u32) -> u32 {
    let (rd, rs2) = (bits >> 7 & 0x1f, bits >> 2 & 0x1f);
    match field(bits, 13, 3) {
        0b010 if rd != 0 => load(rd, funct3::WORD),
        0b011 if rd != 0 => load(rd, funct3::DOUBLE),
        0b110 => store(rs2, funct3::WORD),
        0b111 => store(rs2, funct3::DOUBLE),
        _ => 0,
    }
}
