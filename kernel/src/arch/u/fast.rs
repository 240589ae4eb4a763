//! The fast path: instructions of a guest's kernel at breakpoints, and calls of its programs, that are carried out within the [window](super::window), in some 50 instructions. What it can't
//! do, or mustn't, goes the usual way, as if it hadn't been here.
//!
//! It does nothing but what [`Supervisor::access`](ainori_supervisor::Supervisor::access), `sret` and `trap` do, on the same registers.
use ainori_devices::zicsr::{AnyCsrInstruction, CsrAccess};
use ainori_supervisor::{Privileged, Supervisor};

use super::page::Entry;
use super::window::HANDLERS;
use crate::arch::riscv::csr;

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
    /// The first two with a number.
    StatusSetNumber = 8,
    StatusClearNumber = 9,
    /// SRET.
    Return = 10,
    /// `csrr` of `sstatus`.
    ReadStatus = 11,
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

/// What to do at a breakpoint that stands for an instruction; without a tag.
pub(super) fn entry(bits: u32) -> Entry {
    let (handler, source, target) = match Privileged::decode(bits) {
        Privileged::Return => (Handler::Return, 0, 0),
        Privileged::Csr(instruction) => of_register(instruction),
        _ => (Handler::None, 0, 0),
    };
    let handler = HANDLERS.get(handler as usize).copied().unwrap_or(HANDLERS[0]);
    Entry { tag: 0, handler, source, target, bits }
}

fn of_register(instruction: AnyCsrInstruction) -> (Handler, u8, u8) {
    const NONE: (Handler, u8, u8) = (Handler::None, 0, 0);
    let (number, rd) = (instruction.number(), instruction.rd());
    // Of an instruction that has a number, this tells which.
    let access = instruction.access(1);
    if access == CsrAccess::Read {
        if number == csr::SSTATUS {
            return (Handler::ReadStatus, 0, rd);
        }
        return plain(number).map_or(NONE, |place| (Handler::Read, place as u8, rd));
    }
    match (number, access, instruction.source()) {
        (csr::SSTATUS, CsrAccess::Set(_), Some(source)) => (Handler::StatusSet, source, rd),
        (csr::SSTATUS, CsrAccess::Clear(_), Some(source)) => (Handler::StatusClear, source, rd),
        (csr::SSTATUS, CsrAccess::Write(_), Some(source)) => (Handler::StatusWrite, source, rd),
        (csr::SSTATUS, CsrAccess::Set(value), None) => (Handler::StatusSetNumber, value as u8, rd),
        (csr::SSTATUS, CsrAccess::Clear(value), None) => (Handler::StatusClearNumber, value as u8, rd),
        (csr::SSCRATCH, CsrAccess::Write(_), Some(source)) if rd != 0 => (Handler::Swap, source, rd),
        (csr::SEPC, CsrAccess::Write(_), Some(source)) if rd == 0 => {
            (Handler::WritePc, source, Supervisor::OFFSETS.sepc as u8)
        }
        (_, CsrAccess::Write(_), Some(source)) if rd == 0 => {
            plain(number).map_or(NONE, |place| (Handler::Write, source, place as u8))
        }
        _ => NONE,
    }
}
