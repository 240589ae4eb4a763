//! Is a program made for machine mode? Such a one says so soon: nothing works there without machine CSRs.
use super::Program;

/// Instructions that are looked at from the entry on. Start code of such programs reads `mhartid` or sets `mtvec` within ten.
const INSTRUCTIONS: usize = 64;

const SYSTEM: u32 = 0x73;
const JAL_X0: u32 = 0x6f;
const MRET: u32 = 0x3020_0073;

/// What it does that only machine mode may, in words, if it does so before anything that speaks for supervisor mode. Follows jumps,
/// but not calls and branches: of a program that asks first which mode it is in, nothing is said.
pub fn find(program: &Program<'_>) -> Option<String> {
    let mut pc = program.entry;
    for _ in 0..INSTRUCTIONS {
        let bytes = program.bytes_at(pc);
        let low = u16::from_le_bytes(*bytes.first_chunk()?);
        if low & 0b11 != 0b11 {
            pc = match compressed_jump(low) {
                Some(offset) => pc.wrapping_add_signed(offset),
                None => pc + 2,
            };
            continue;
        }
        let bits = u32::from_le_bytes(*bytes.first_chunk()?);
        if bits == MRET {
            return Some(format!("at {pc:#x} it executes mret"));
        }
        match bits & 0xfff {
            JAL_X0 => {
                pc = pc.wrapping_add_signed(jump_offset(bits));
                continue;
            }
            opcode if opcode & 0x7f == SYSTEM => {
                let csr = bits >> 20;
                match (bits >> 12 & 0b11 != 0, csr >> 8 & 0b11) {
                    (true, 0b11) => return Some(format!("at {pc:#x} it accesses {}", name(csr))),
                    // A supervisor's CSR, or an environment call: it knows where it is.
                    (true, 0b01) | (false, _) => return None,
                    (true, _) => {}
                }
            }
            _ => {}
        }
        pc += 4;
    }
    None
}

/// `jal x0`: its offset.
fn jump_offset(bits: u32) -> i64 {
    let bits = bits as i32;
    let offset = (bits >> 31) << 20 | bits & 0xf_f000 | (bits >> 20 & 1) << 11 | (bits >> 21 & 0x3ff) << 1;
    i64::from(offset)
}

/// `c.j`: its offset.
fn compressed_jump(bits: u16) -> Option<i64> {
    if bits & 0xe003 != 0xa001 {
        return None;
    }
    let bit = |from: u16, to: u16| (bits >> from & 1) << to;
    let offset = bit(12, 11)
        | bit(11, 4)
        | bit(10, 9)
        | bit(9, 8)
        | bit(8, 10)
        | bit(7, 6)
        | bit(6, 7)
        | bit(5, 3)
        | bit(4, 2)
        | bit(3, 1)
        | bit(2, 5);
    Some(i64::from((offset << 4) as i16 >> 4))
}

/// The CSRs with which programs for machine mode begin; others by number.
fn name(csr: u32) -> String {
    let known = match csr {
        0x300 => "mstatus",
        0x301 => "misa",
        0x302 => "medeleg",
        0x303 => "mideleg",
        0x304 => "mie",
        0x305 => "mtvec",
        0x340 => "mscratch",
        0x341 => "mepc",
        0x342 => "mcause",
        0x344 => "mip",
        0x3a0 => "pmpcfg0",
        0x3b0 => "pmpaddr0",
        0xf11 => "mvendorid",
        0xf12 => "marchid",
        0xf13 => "mimpid",
        0xf14 => "mhartid",
        _ => return format!("the machine CSR {csr:#x}"),
    };
    known.into()
}
