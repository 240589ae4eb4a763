//! The decoder against an encoder written from the instruction formats, and against the GNU assembler's output.
#![cfg(not(loom))]

use ainori_devices::mmio::{Access, Kind, decode, extend};
use proptest::prelude::*;

/// The 32-bit encoding: I-type for loads, S-type for stores.
fn encode(kind: Kind, rs1: u32, offset: i32) -> u32 {
    let imm = offset as u32;
    match kind {
        Kind::Load { rd, width, signed } => {
            let funct3 = width.trailing_zeros() | if signed { 0 } else { 4 };
            (imm & 0xfff) << 20 | rs1 << 15 | funct3 << 12 | u32::from(rd) << 7 | 0x03
        }
        Kind::Store { rs2, width } => {
            (imm >> 5 & 0x7f) << 25
                | u32::from(rs2) << 20
                | rs1 << 15
                | width.trailing_zeros() << 12
                | (imm & 0x1f) << 7
                | 0x23
        }
    }
}

/// What a hart writes to `htinst`: the immediate fields zero, the "address offset" in place of rs1, bit 1 clear if the
/// instruction was compressed.
fn transform(kind: Kind, address_offset: u32, compressed: bool) -> u32 {
    encode(kind, address_offset, 0) & if compressed { !2 } else { !0 }
}

fn any_kind() -> impl Strategy<Value = Kind> {
    let load = (0u8..32, 0u32..4, any::<bool>())
        .prop_filter("there is no unsigned load of 64 bits", |(_, log, signed)| *signed || *log < 3)
        .prop_map(|(rd, log, signed)| Kind::Load { rd, width: 1 << log, signed });
    let store = (0u8..32, 0u32..4).prop_map(|(rs2, log)| Kind::Store { rs2, width: 1 << log });
    prop_oneof![load, store]
}

proptest! {
    #[test]
    fn every_encoding_decodes_to_what_it_was(kind in any_kind(), rs1 in 0u32..32, offset in -2048i32..2048) {
        prop_assert_eq!(decode(encode(kind, rs1, offset)), Some(Access { kind, length: 4 }));
    }

    #[test]
    fn every_transformed_instruction_decodes_to_what_it_was(kind in any_kind(), compressed: bool) {
        let length = if compressed { 2 } else { 4 };
        prop_assert_eq!(decode(transform(kind, 0, compressed)), Some(Access { kind, length }));
    }

    #[test]
    fn any_bits_decode_to_something_sound_or_nothing(bits: u32) {
        if let Some(Access { kind, length }) = decode(bits) {
            let (register, width) = match kind {
                Kind::Load { rd, width, .. } => (rd, width),
                Kind::Store { rs2, width } => (rs2, width),
            };
            prop_assert!(register < 32 && [1, 2, 4, 8].contains(&width));
            prop_assert_eq!(length, if bits & 3 == 3 { 4 } else { 2 });
        }
    }

    #[test]
    fn the_upper_half_of_a_compressed_instruction_does_not_matter(low: u16, high: u16) {
        prop_assume!(low & 1 == 0);
        prop_assert_eq!(decode(low.into()), decode(u32::from(high) << 16 | u32::from(low)));
    }

    #[test]
    fn extension_agrees_with_rust(value: u64) {
        prop_assert_eq!(extend(value, 1, true), value as i8 as u64);
        prop_assert_eq!(extend(value, 2, true), value as i16 as u64);
        prop_assert_eq!(extend(value, 4, true), value as i32 as u64);
        prop_assert_eq!(extend(value, 1, false), u64::from(value as u8));
        prop_assert_eq!(extend(value, 2, false), u64::from(value as u16));
        prop_assert_eq!(extend(value, 4, false), u64::from(value as u32));
        prop_assert_eq!(extend(value, 8, true), value);
        prop_assert_eq!(extend(value, 8, false), value);
    }
}

fn load(rd: u8, width: u8, signed: bool, length: u8) -> Option<Access> {
    Some(Access { kind: Kind::Load { rd, width, signed }, length })
}

fn store(rs2: u8, width: u8, length: u8) -> Option<Access> {
    Some(Access { kind: Kind::Store { rs2, width }, length })
}

/// `riscv64-unknown-elf-as -march=rv64gc` (GNU 2.40), then `objdump -d`. Zcb, which it doesn't know, is written out from the
/// manual's formats.
#[test]
fn agrees_with_the_assembler() {
    for (text, bits, expected) in [
        ("lb a0,-1(a1)", 0xfff58503, load(10, 1, true, 4)),
        ("lbu t6,2047(sp)", 0x7ff14f83, load(31, 1, false, 4)),
        ("lh s11,6(a1)", 0x00659d83, load(27, 2, true, 4)),
        ("lhu a0,0(a1)", 0x0005d503, load(10, 2, false, 4)),
        ("lw zero,4(a1)", 0x0045a003, load(0, 4, true, 4)),
        ("lwu t0,8(a1)", 0x0085e283, load(5, 4, false, 4)),
        ("ld ra,16(a1)", 0x0105b083, load(1, 8, true, 4)),
        ("sb a7,-7(a0)", 0xff150ca3, store(17, 1, 4)),
        ("sh t3,2(a0)", 0x01c51123, store(28, 2, 4)),
        ("sw zero,4(a0)", 0x00052223, store(0, 4, 4)),
        ("sd t4,-8(a0)", 0xffd53c23, store(29, 8, 4)),
        ("c.lw a5,124(s1)", 0x5cfc, load(15, 4, true, 2)),
        ("c.ld s0,8(a0)", 0x6500, load(8, 8, true, 2)),
        ("c.sw a4,4(a5)", 0xc3d8, store(14, 4, 2)),
        ("c.sd a3,248(a2)", 0xfe74, store(13, 8, 2)),
        ("c.lwsp t6,252(sp)", 0x5ffe, load(31, 4, true, 2)),
        ("c.ldsp a0,8(sp)", 0x6522, load(10, 8, true, 2)),
        ("c.swsp zero,4(sp)", 0xc202, store(0, 4, 2)),
        ("c.sdsp s11,504(sp)", 0xffee, store(27, 8, 2)),
        ("amoadd.w a0,a1,(a2)", 0x00b6252f, None),
        ("lr.d a0,(a1)", 0x1005b52f, None),
        ("sc.w a0,a1,(a2)", 0x18b6252f, None),
        ("flw fa0,0(a1)", 0x0005a507, None),
        ("c.fsd fa0,8(a1)", 0xa588, None),
        ("c.fld fa0,8(a1)", 0x2588, None),
        ("c.fsdsp fa0,8(sp)", 0xa42a, None),
        ("addi a0,a0,100", 0x06450513, None),
        ("ecall", 0x00000073, None),
        ("c.lbu s0,3(a5)", 0x83e0, load(8, 1, false, 2)),
        ("c.lhu s0,2(a5)", 0x87a0, load(8, 2, false, 2)),
        ("c.lh s0,2(a5)", 0x87e0, load(8, 2, true, 2)),
        ("c.sb s0,3(a5)", 0x8be0, store(8, 1, 2)),
        ("c.sh s0,2(a5)", 0x8fa0, store(8, 2, 2)),
    ] {
        assert_eq!(decode(bits), expected, "{text}");
    }
}

/// `htinst` of zero, and of an implicit access by the page-table walker (32 and 64 bits, read and write).
#[test]
fn no_instruction_decodes_to_nothing() {
    for bits in [0, 0x2000, 0x2020, 0x3000, 0x3020] {
        assert_eq!(decode(bits), None, "{bits:#x}");
    }
}
