//! Which address loads and stores access, against the GNU assembler's output and an encoder written from the instruction formats.
#![cfg(not(loom))]

use ainori_devices::mmio::{address_offset, decode};
use proptest::prelude::*;

/// Each register has a value of its own.
const fn value(register: u8) -> u64 {
    0x8000_0000 + 0x1_0000 * register as u64
}

/// `riscv64-unknown-elf-as -march=rv64gc` (GNU 2.40), then `objdump -d`. Zcb, which it doesn't know, is written out from the manual's formats.
#[test]
fn agrees_with_the_assembler() {
    for (text, bits, base, offset) in [
        ("c.lw a0,4(a1)", 0x41c8, 11, 4),
        ("c.lw s0,64(a5)", 0x43a0, 15, 64),
        ("c.lw a0,60(s1)", 0x5cc8, 9, 60),
        ("c.ld a0,8(a1)", 0x6588, 11, 8),
        ("c.ld a2,200(s0)", 0x6470, 8, 200),
        ("c.ld a0,64(a4)", 0x6328, 14, 64),
        ("c.sw a0,124(a1)", 0xdde8, 11, 124),
        ("c.sd a3,248(a5)", 0xfff4, 15, 248),
        ("c.lwsp a0,4(sp)", 0x4512, 2, 4),
        ("c.lwsp ra,252(sp)", 0x50fe, 2, 252),
        ("c.lwsp t6,96(sp)", 0x5f86, 2, 96),
        ("c.ldsp a0,8(sp)", 0x6522, 2, 8),
        ("c.ldsp s11,504(sp)", 0x7dfe, 2, 504),
        ("c.ldsp a0,288(sp)", 0x7512, 2, 288),
        ("c.swsp a0,4(sp)", 0xc22a, 2, 4),
        ("c.swsp t3,192(sp)", 0xc1f2, 2, 192),
        ("c.swsp a0,60(sp)", 0xde2a, 2, 60),
        ("c.sdsp a0,8(sp)", 0xe42a, 2, 8),
        ("c.sdsp s2,448(sp)", 0xe3ca, 2, 448),
        ("c.sdsp a0,56(sp)", 0xfc2a, 2, 56),
        ("ld a0,-4(a1)", 0xffc5_b503, 11, -4),
        ("lbu t6,2047(s11)", 0x7ffd_cf83, 27, 2047),
        ("sd a0,-2048(t6)", 0x80af_b023, 31, -2048),
        ("sh zero,31(a0)", 0x0005_1fa3, 10, 31),
        ("c.lbu s0,3(a5)", 0x83e0, 15, 3),
        ("c.lbu s0,1(a5)", 0x83c0, 15, 1),
        ("c.lbu s0,2(a5)", 0x83a0, 15, 2),
        ("c.lhu s0,2(a5)", 0x87a0, 15, 2),
        ("c.lh s0,2(a5)", 0x87e0, 15, 2),
        ("c.lh s0,0(a5)", 0x87c0, 15, 0),
        ("c.sb s0,3(a5)", 0x8be0, 15, 3),
        ("c.sh s0,2(a5)", 0x8fa0, 15, 2),
    ] {
        let begins = value(base).wrapping_add_signed(offset);
        assert_eq!(address_offset(bits, begins, value), Some(0), "{text}");
        assert_eq!(address_offset(bits, begins + 3, value), Some(3), "{text}");
    }
}

proptest! {
    #[test]
    fn every_long_one_has_its_address(rs1 in 0u8..32, offset in -2048i64..2048, is_store: bool, rest in 0u32..32, behind in 0u64..8) {
        let imm = offset as u32;
        let bits = u32::from(rs1) << 15 | 0b011 << 12 | if is_store {
            (imm >> 5 & 0x7f) << 25 | rest << 20 | (imm & 0x1f) << 7 | 0x23
        } else {
            (imm & 0xfff) << 20 | rest << 7 | 0x03
        };
        let begins = value(rs1).wrapping_add_signed(offset);
        prop_assert_eq!(address_offset(bits, begins + behind, value), Some(behind));
    }

    /// What devices take has an address: so none of those is taken for one that begins where it was reported.
    #[test]
    fn whatever_decodes_has_an_address(bits: u32) {
        // Those with 01 in their lowest bits aren't in memory: a hart transforms instructions to such.
        if bits & 0b11 != 0b01 && decode(bits).is_some() {
            prop_assert!(address_offset(bits, 0, value).is_some());
        }
    }
}

#[test]
fn every_compressed_one_that_decodes_has_an_address() {
    for bits in (0..1 << 16).filter(|bits| bits & 1 == 0) {
        assert!(decode(bits).is_none() || address_offset(bits, 0, value).is_some(), "{bits:#06x}");
    }
}

#[test]
fn other_instructions_have_none() {
    for (text, bits) in
        [("amoadd.w a0,a1,(a2)", 0x00b6_252f), ("flw fa0,0(a1)", 0x0005_a507), ("c.addi a0,1", 0x0505)]
    {
        assert_eq!(address_offset(bits, 0, value), None, "{text}");
    }
}
