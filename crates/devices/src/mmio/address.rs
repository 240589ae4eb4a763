//! Which address a load or store accesses: for harts that don't say where a misaligned one began.

/// The stack pointer.
const SP: u8 = 2;
/// Opcodes of loads and stores that aren't compressed, with their lowest two bits.
const LOAD: u32 = 0b000_0011;
const STORE: u32 = 0b010_0011;
const OPCODE: u32 = 0b111_1111;

/// How far an address lies behind the first byte that an integer load or store of RV64I, C or Zcb accesses, as `htinst` has it (privileged specification, "Transformed Instruction or
/// Pseudoinstruction for `mtinst` or `htinst`", field "Addr. Offset"): a hart that splits a misaligned access reports the address of the part that it couldn't make.
///
/// `bits` is the instruction as it stands in memory (the upper half of a compressed one is ignored), and `register` gives the value of a general register, 0 to 31. `None`: it is none of those
/// instructions.
///
/// ```
/// use ainori_devices::mmio::address_offset;
///
/// // ld a0, -4(a1), which has trapped at 0x1000
/// assert_eq!(address_offset(0xffc5_b503, 0x1000, |_| 0x1000), Some(4));
/// // c.ldsp a0, 8(sp), which has trapped where it begins
/// assert_eq!(address_offset(0x6522, 0x1008, |_| 0x1000), Some(0));
/// ```
pub fn address_offset(bits: u32, at: u64, register: impl Fn(u8) -> u64) -> Option<u64> {
    let (base, offset) = match bits & 0b11 {
        0b11 => long(bits)?,
        0b00 => through_a_register(bits)?,
        0b10 => through_the_stack(bits)?,
        _ => return None,
    };
    Some(at.wrapping_sub(register(base).wrapping_add(offset as u64)))
}

/// `count` bits from bit `from` on, moved to bit `to`.
const fn moved(bits: u32, from: u32, count: u32, to: u32) -> i64 {
    ((bits >> from & ((1 << count) - 1)) << to) as i64
}

const fn register(bits: u32, from: u32) -> u8 {
    moved(bits, from, 5, 0) as u8
}

/// The base register, and the offset.
fn long(bits: u32) -> Option<(u8, i64)> {
    // Immediates are extended by the instruction's highest bit.
    let upper = bits as i32;
    let offset = match bits & OPCODE {
        LOAD => i64::from(upper >> 20),
        STORE => i64::from(upper >> 25 << 5) | moved(bits, 7, 5, 0),
        _ => return None,
    };
    Some((register(bits, 15), offset))
}

fn through_a_register(bits: u32) -> Option<(u8, i64)> {
    let offset = match bits >> 13 & 0b111 {
        0b010 | 0b110 => moved(bits, 10, 3, 3) | moved(bits, 6, 1, 2) | moved(bits, 5, 1, 6),
        0b011 | 0b111 => moved(bits, 10, 3, 3) | moved(bits, 5, 2, 6),
        // Zcb: of halfwords, and of bytes.
        0b100 if bits >> 10 & 1 != 0 => moved(bits, 5, 1, 1),
        0b100 => moved(bits, 6, 1, 0) | moved(bits, 5, 1, 1),
        _ => return None,
    };
    Some((8 + moved(bits, 7, 3, 0) as u8, offset))
}

fn through_the_stack(bits: u32) -> Option<(u8, i64)> {
    let offset = match bits >> 13 & 0b111 {
        0b010 => moved(bits, 12, 1, 5) | moved(bits, 4, 3, 2) | moved(bits, 2, 2, 6),
        0b011 => moved(bits, 12, 1, 5) | moved(bits, 5, 2, 3) | moved(bits, 2, 3, 6),
        0b110 => moved(bits, 9, 4, 2) | moved(bits, 7, 2, 6),
        0b111 => moved(bits, 10, 3, 3) | moved(bits, 7, 3, 6),
        _ => return None,
    };
    Some((SP, offset))
}
