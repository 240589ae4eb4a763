//! The fast path: instructions of a guest's kernel at breakpoints, and calls of its programs, that are carried out within the [window](super::window), in some 50 instructions. What it can't
//! do, or mustn't, goes the usual way, as if it hadn't been here.
//!
//! It does nothing but what [`Supervisor::access`](ainori_supervisor::Supervisor::access), `sret` and `trap` do, on the same registers.
use ainori_devices::zicsr::{AnyCsrInstruction, CsrAccess};
use ainori_supervisor::{Line, Privileged, Supervisor};

use super::page::{Entry, NO_TAG};
use super::window::HANDLERS;
use crate::arch::riscv::csr::{self, status};

/// What the fast path has code for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
enum Handler {
    /// Goes the usual way.
    None = 0,
    /// `csrr`.
    Read = 1,
    /// `csrw`.
    Write = 2,
    /// `csrw sepc`, whose lowest bit is 0.
    WritePc = 3,
    /// `csrrw` of `sscratch`.
    Swap = 4,
    /// `csrrs`, `csrrc` and `csrrw` of `sstatus`.
    StatusSet = 5,
    StatusClear = 6,
    StatusWrite = 7,
    /// `csrrci` and `csrrsi` of SIE in `sstatus`.
    Disable = 8,
    Enable = 9,
    /// SRET.
    Return = 10,
    /// `csrr` of `sstatus`.
    ReadStatus = 11,
    /// `csrw stimecmp`.
    WriteTimer = 12,
    /// `csrc sip`, and with a number.
    ClearPending = 13,
    ClearPendingNumber = 14,
    /// `csrs sip`, and with a number.
    SetPending = 15,
    SetPendingNumber = 16,
}

/// The place of a register that is nothing but what is written to it.
const fn plain(number: u16) -> Option<usize> {
    Some(match number {
        csr::SSCRATCH => Supervisor::OFFSETS.sscratch,
        csr::SEPC => Supervisor::OFFSETS.sepc,
        csr::SCAUSE => Supervisor::OFFSETS.scause,
        csr::STVAL => Supervisor::OFFSETS.stval,
        _ => return None,
    })
}

const _: () = {
    let places = Supervisor::OFFSETS;
    // Each fits into a byte of an entry.
    assert!(
        places.sstatus < 256
            && places.sscratch < 256
            && places.sepc < 256
            && places.scause < 256
            && places.stval < 256
    );
};

/// What to do at a breakpoint that stands for an instruction; with a tag that none has.
/// `has_timer`: the guest has `stimecmp`.
pub(super) fn entry(bits: u32, has_timer: bool) -> Entry {
    let (handler, source, target) = match Privileged::decode(bits) {
        Privileged::Return => (Handler::Return, 0, 0),
        Privileged::Csr(instruction) => of_register(instruction, has_timer),
        _ => (Handler::None, 0, 0),
    };
    let handler = HANDLERS.get(handler as usize).copied().unwrap_or(HANDLERS[0]);
    Entry { tag: NO_TAG, handler, source, target, bits }
}

/// Bytes of the code for one general register.
const SCALE: u8 = 8;

fn of_register(instruction: AnyCsrInstruction, has_timer: bool) -> (Handler, u8, u8) {
    const NONE: (Handler, u8, u8) = (Handler::None, 0, 0);
    let (number, rd) = (instruction.number(), instruction.rd());
    let target = rd * SCALE;
    // Of an instruction that has a number, this tells which.
    let access = instruction.access(1);
    if access == CsrAccess::Read {
        if number == csr::SSTATUS {
            return (Handler::ReadStatus, 0, target);
        }
        return plain(number).map_or(NONE, |place| (Handler::Read, place as u8, target));
    }
    let Some(source) = instruction.source() else {
        return match (number, access) {
            (csr::SSTATUS, CsrAccess::Clear(bits)) if bits & status::SIE != 0 => {
                (Handler::Disable, 0, target)
            }
            (csr::SSTATUS, CsrAccess::Set(bits)) if bits & status::SIE != 0 => (Handler::Enable, 0, target),
            (csr::SIP, CsrAccess::Clear(bits)) if rd == 0 && bits & Line::Software.bit() != 0 => {
                (Handler::ClearPendingNumber, 0, 0)
            }
            (csr::SIP, CsrAccess::Set(bits)) if rd == 0 && bits & Line::Software.bit() != 0 => {
                (Handler::SetPendingNumber, 0, 0)
            }
            _ => NONE,
        };
    };
    let source = source * SCALE;
    match (number, access) {
        (csr::SSTATUS, CsrAccess::Set(_)) => (Handler::StatusSet, source, target),
        (csr::SSTATUS, CsrAccess::Clear(_)) => (Handler::StatusClear, source, target),
        (csr::SSTATUS, CsrAccess::Write(_)) => (Handler::StatusWrite, source, target),
        (csr::SSCRATCH, CsrAccess::Write(_)) if rd != 0 => (Handler::Swap, source, target),
        _ if rd != 0 => NONE,
        (csr::SEPC, CsrAccess::Write(_)) => (Handler::WritePc, source, 0),
        (csr::STIMECMP, CsrAccess::Write(_)) if has_timer => (Handler::WriteTimer, source, 0),
        (csr::SIP, CsrAccess::Clear(_)) => (Handler::ClearPending, source, 0),
        (csr::SIP, CsrAccess::Set(_)) => (Handler::SetPending, source, 0),
        (_, CsrAccess::Write(_)) => plain(number).map_or(NONE, |place| (Handler::Write, source, place as u8)),
        _ => NONE,
    }
}
