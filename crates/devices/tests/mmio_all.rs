//! The decoder against a table of masks and matches, as *riscv-opcodes* lists the instructions, over every encoding whose fields
//! the decoder could look at.
#![cfg(not(loom))]

use ainori_devices::mmio::{Access, Kind, decode};

/// Name, mask, match, width in bytes, and whether it is a load and sign-extends.
type Row = (&'static str, u32, u32, u8, Option<bool>);

const SIGNED: Option<bool> = Some(true);
const UNSIGNED: Option<bool> = Some(false);
const STORE: Option<bool> = None;

/// RV64I: the register of a load is in bits 11:7, that of a store in 24:20.
const STANDARD: [Row; 11] = [
    ("lb", 0x707f, 0x0003, 1, SIGNED),
    ("lh", 0x707f, 0x1003, 2, SIGNED),
    ("lw", 0x707f, 0x2003, 4, SIGNED),
    ("ld", 0x707f, 0x3003, 8, SIGNED),
    ("lbu", 0x707f, 0x4003, 1, UNSIGNED),
    ("lhu", 0x707f, 0x5003, 2, UNSIGNED),
    ("lwu", 0x707f, 0x6003, 4, UNSIGNED),
    ("sb", 0x707f, 0x0023, 1, STORE),
    ("sh", 0x707f, 0x1023, 2, STORE),
    ("sw", 0x707f, 0x2023, 4, STORE),
    ("sd", 0x707f, 0x3023, 8, STORE),
];

/// C and Zcb through a register: x8 to x15, in bits 4:2.
const QUADRANT_0: [Row; 9] = [
    ("c.lw", 0xe003, 0x4000, 4, SIGNED),
    ("c.ld", 0xe003, 0x6000, 8, SIGNED),
    ("c.sw", 0xe003, 0xc000, 4, STORE),
    ("c.sd", 0xe003, 0xe000, 8, STORE),
    ("c.lbu", 0xfc03, 0x8000, 1, UNSIGNED),
    ("c.lhu", 0xfc43, 0x8400, 2, UNSIGNED),
    ("c.lh", 0xfc43, 0x8440, 2, SIGNED),
    ("c.sb", 0xfc03, 0x8800, 1, STORE),
    ("c.sh", 0xfc43, 0x8c00, 2, STORE),
];

/// C through the stack pointer: the register of a load, never x0, is in bits 11:7, that of a store in 6:2.
const QUADRANT_2: [Row; 4] = [
    ("c.lwsp", 0xe003, 0x4002, 4, SIGNED),
    ("c.ldsp", 0xe003, 0x6002, 8, SIGNED),
    ("c.swsp", 0xe003, 0xc002, 4, STORE),
    ("c.sdsp", 0xe003, 0xe002, 8, STORE),
];

fn five(bits: u32, low: u32) -> u8 {
    (bits >> low) as u8 & 31
}

fn expected(bits: u32) -> Option<Access> {
    // A transformed instruction with bit 1 clear was a compressed one, and is written as the standard one that it stands for.
    let transformed = bits & 3 == 1;
    let looked_at = if transformed { bits | 2 } else { bits };
    let find = |rows: &'static [Row]| rows.iter().find(|(_, mask, wanted, ..)| looked_at & mask == *wanted);
    let (row, load_register, store_register) = match looked_at & 3 {
        3 => (find(&STANDARD)?, five(bits, 7), five(bits, 20)),
        0 => (find(&QUADRANT_0)?, 8 + (five(bits, 2) & 7), 8 + (five(bits, 2) & 7)),
        _ => (find(&QUADRANT_2)?, five(bits, 7), five(bits, 2)),
    };
    let (_, _, _, width, extension) = *row;
    let length = if bits & 3 == 3 { 4 } else { 2 };
    let kind = match extension {
        Some(_) if bits & 3 == 2 && load_register == 0 => return None,
        Some(signed) => Kind::Load { rd: load_register, width, signed },
        None => Kind::Store { rs2: store_register, width },
    };
    Some(Access { kind, length })
}

#[test]
fn every_compressed_encoding_decodes_as_the_table_says() {
    for bits in (0..1 << 16).filter(|bits| bits & 1 == 0) {
        assert_eq!(decode(bits), expected(bits), "{bits:#06x}");
    }
}

/// Opcode, funct3 and both registers in all combinations; what else is in the word is all zeros, all ones, or mixed.
#[test]
fn every_standard_and_transformed_encoding_decodes_as_the_table_says() {
    const LOOKED_AT: u32 = 0x01f0_7fff;
    let mut accesses = 0;
    for fields in 0..1u32 << 20 {
        let looked_at = fields & 0x7fff | (fields >> 15) << 20;
        for others in [0, !0, 0xa5a5_5a5a] {
            let bits = looked_at | others & !LOOKED_AT;
            if bits & 1 == 1 {
                assert_eq!(decode(bits), expected(bits), "{bits:#010x}");
                accesses += usize::from(decode(bits).is_some());
            }
        }
    }
    // 11 instructions, two lengths, 32 values of each register field, three fillings.
    assert_eq!(accesses, 11 * 2 * 32 * 32 * 3);
}
