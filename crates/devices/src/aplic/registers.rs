//! Which register of an APLIC's domain is where.

use super::layout::{
    CLAIMI, CLRIE, CLRIENUM, CLRIPNUM, GENMSI, IDC, IDC_SIZE, IDELIVERY, IFORCE, IN_CLRIP, ITHRESHOLD, SETIE,
    SETIENUM, SETIP, SETIPNUM, SETIPNUM_LE, TOPI,
};
use super::{HARTS, WORDS};

/// Bytes of the arrays that have a register for each source. In the place of source 0, which doesn't exist, is `domaincfg` or `genmsi`.
const ARRAY: u64 = 0x1000;
/// Bytes of the arrays that have a bit for each of 1,024 sources.
const BITS: u64 = 0x80;

/// A register. The indices are those of what can exist: words of 32 sources, and harts; sources are below 1,024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Register {
    Domaincfg,
    Sourcecfg(u32),
    SetPending(usize),
    SetPendingByNumber,
    ClearPending(usize),
    ClearPendingByNumber,
    SetEnable(usize),
    SetEnableByNumber,
    ClearEnable(usize),
    ClearEnableByNumber,
    Genmsi,
    Target(u32),
    Idelivery(usize),
    Iforce(usize),
    Ithreshold(usize),
    Topi(usize),
    Claimi(usize),
}

/// The register at `offset`, if there is one. Those for machine level, and `setipnum_be`, are there in no guest.
pub(super) fn register(offset: u64) -> Option<Register> {
    if !offset.is_multiple_of(4) {
        return None;
    }
    let source = (offset % ARRAY / 4) as u32;
    Some(match offset {
        SETIPNUM | SETIPNUM_LE => Register::SetPendingByNumber,
        CLRIPNUM => Register::ClearPendingByNumber,
        SETIENUM => Register::SetEnableByNumber,
        CLRIENUM => Register::ClearEnableByNumber,
        0..ARRAY if source == 0 => Register::Domaincfg,
        0..ARRAY => Register::Sourcecfg(source),
        GENMSI..IDC if source == 0 => Register::Genmsi,
        GENMSI..IDC => Register::Target(source),
        IDC.. => return delivery_control(offset - IDC),
        _ => return by_bit(offset),
    })
}

/// The register with a bit for each source at `offset`.
fn by_bit(offset: u64) -> Option<Register> {
    let word = (offset % BITS / 4) as usize;
    let register = match offset - offset % BITS {
        SETIP => Register::SetPending(word),
        IN_CLRIP => Register::ClearPending(word),
        SETIE => Register::SetEnable(word),
        CLRIE => Register::ClearEnable(word),
        _ => return None,
    };
    (word < WORDS).then_some(register)
}

/// The register at `offset` among the interrupt delivery controls.
fn delivery_control(offset: u64) -> Option<Register> {
    let hart = usize::try_from(offset / IDC_SIZE).ok().filter(|&hart| hart < HARTS)?;
    Some(match offset % IDC_SIZE {
        IDELIVERY => Register::Idelivery(hart),
        IFORCE => Register::Iforce(hart),
        ITHRESHOLD => Register::Ithreshold(hart),
        TOPI => Register::Topi(hart),
        CLAIMI => Register::Claimi(hart),
        _ => return None,
    })
}
