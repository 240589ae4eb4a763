//! The fast path: instructions of a guest's kernel at breakpoints, and calls of its programs, that are carried out within the [window](super::window), in some 50 instructions. What it can't
//! do, or mustn't, goes the usual way, as if it hadn't been here.
//!
//! It does nothing but what [`Supervisor::access`](ainori_supervisor::Supervisor::access), `sret` and `trap` do, on the same registers.
use ainori_devices::zicsr::{AnyCsrInstruction, CsrAccess};
use ainori_supervisor::{Line, Privileged};

use super::page::{Entry, GOES_ON, NO_TAG};
use super::window::{FAMILIES, HANDLERS};
use crate::arch::riscv::csr::{self, status};

/// What the fast path has code for, with one handler for all registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
enum Handler {
    /// Goes the usual way.
    None = 0,
    /// `csrrw` of `sscratch`.
    Swap = 1,
    /// `csrrs`, `csrrc` and `csrrw` of `sstatus`.
    StatusSet = 2,
    StatusClear = 3,
    StatusWrite = 4,
    /// `csrrsi` of SIE in `sstatus`, and `csrsi`.
    Enable = 5,
    EnableOnly = 6,
    /// SRET.
    Return = 7,
    /// `csrr` of `sstatus`.
    ReadStatus = 8,
    /// `csrw stimecmp`.
    WriteTimer = 9,
    /// `csrc sip`, and with a number.
    ClearPending = 10,
    ClearPendingNumber = 11,
    /// `csrs sip`, and with a number.
    SetPending = 12,
    SetPendingNumber = 13,
}

/// What it has code for with each register: that is shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
enum Family {
    /// `csrr` of a plain register; and where the next instruction is known as well.
    Read = 0,
    ReadOn = 1,
    /// `csrw` of one.
    Write = 2,
    /// `csrrw` of `sscratch` with one register as its source and its target.
    SwapSame = 3,
    /// `csrs` and `csrc` of `sstatus`.
    Set = 4,
    Clear = 5,
    /// `csrw satp`.
    Space = 6,
    /// `csrrci` of SIE in `sstatus`.
    DisableInto = 7,
}

/// General registers.
const REGISTERS: u16 = 32;

impl Handler {
    fn place(self) -> i16 {
        HANDLERS.get(self as usize).copied().unwrap_or(HANDLERS[0])
    }
}

impl Family {
    /// That of a general register; of the families of plain registers, also of one of these.
    fn of(self, register: u8, plain: u16) -> i16 {
        FAMILIES.get(self as usize).map_or(HANDLERS[0], |(first, width)| {
            first + ((plain * REGISTERS + u16::from(register)) << width) as i16
        })
    }
}

/// The number of a register that is nothing but what is written to it.
const fn plain(number: u16) -> Option<u16> {
    Some(match number {
        csr::SSCRATCH => 0,
        csr::SEPC => 1,
        csr::SCAUSE => 2,
        csr::STVAL => 3,
        _ => return None,
    })
}

/// `t0`, `t1`, `t2` and `a0` aren't in their places while it is at work.
const fn is_elsewhere(register: u8) -> bool {
    matches!(register, 5..=7 | 10)
}

/// What to do at a breakpoint that stands for an instruction; with a tag that none has.
/// `has_timer`: the guest has `stimecmp`.
pub(super) fn entry(bits: u32, has_timer: bool) -> Entry {
    let (handler, source, target) = match Privileged::decode(bits) {
        Privileged::Return => (Handler::Return.place(), 0, 0),
        Privileged::Csr(instruction) => of_register(instruction, has_timer),
        _ => (Handler::None.place(), 0, 0),
    };
    Entry { tag: NO_TAG, handler, source, target, bits }
}

/// First places of families, and handlers, of what can go on with the next instruction.
#[expect(clippy::indexing_slicing, reason = "a constant: the compiler looks")]
const READ: i16 = FAMILIES[Family::Read as usize].0;
#[expect(clippy::indexing_slicing, reason = "a constant: the compiler looks")]
const READ_ON: i16 = FAMILIES[Family::ReadOn as usize].0;
const READ_ON_END: i16 = READ_ON + (READ_ON - READ);
#[expect(clippy::indexing_slicing, reason = "a constant: the compiler looks")]
const STATUS_SET: i16 = HANDLERS[Handler::StatusSet as usize];
#[expect(clippy::indexing_slicing, reason = "a constant: the compiler looks")]
const STATUS_CLEAR: i16 = HANDLERS[Handler::StatusClear as usize];
#[expect(clippy::indexing_slicing, reason = "a constant: the compiler looks")]
const STATUS_WRITE: i16 = HANDLERS[Handler::StatusWrite as usize];

/// The same with the instruction behind it carried out as well, if that is known, without a way back to the guest between the two. `None`: it can't.
pub(super) const fn going_on(entry: Entry) -> Option<Entry> {
    let handler = match entry.handler {
        handler @ READ..READ_ON => handler + (READ_ON - READ),
        // Where the code for all registers looks for it.
        handler @ (STATUS_SET | STATUS_CLEAR | STATUS_WRITE) => handler | GOES_ON,
        handler if is_going_on(handler) => handler,
        _ => return None,
    };
    Some(Entry { handler, ..entry })
}

/// Does it go on?
pub(super) const fn goes_on(entry: Entry) -> bool {
    is_going_on(entry.handler)
}

const fn is_going_on(handler: i16) -> bool {
    handler & GOES_ON != 0 || READ_ON <= handler && handler < READ_ON_END
}

/// Bytes of the code for one general register.
const SCALE: u8 = 8;

fn of_register(instruction: AnyCsrInstruction, has_timer: bool) -> (i16, u8, u8) {
    let none = (Handler::None.place(), 0, 0);
    let (number, rd) = (instruction.number(), instruction.rd());
    let target = rd * SCALE;
    // Of an instruction that has a number, this tells which.
    let access = instruction.access(1);
    if access == CsrAccess::Read {
        if number == csr::SSTATUS {
            return (Handler::ReadStatus.place(), 0, target);
        }
        return plain(number).map_or(none, |plain| (Family::Read.of(rd, plain), 0, 0));
    }
    let Some(register) = instruction.source() else {
        return match (number, access) {
            (csr::SSTATUS, CsrAccess::Clear(bits)) if bits & status::SIE != 0 => {
                (Family::DisableInto.of(rd, 0), 0, 0)
            }
            (csr::SSTATUS, CsrAccess::Set(bits)) if bits & status::SIE != 0 => {
                let handler = if rd == 0 { Handler::EnableOnly } else { Handler::Enable };
                (handler.place(), 0, target)
            }
            (csr::SIP, CsrAccess::Clear(bits)) if rd == 0 && bits & Line::Software.bit() != 0 => {
                (Handler::ClearPendingNumber.place(), 0, 0)
            }
            (csr::SIP, CsrAccess::Set(bits)) if rd == 0 && bits & Line::Software.bit() != 0 => {
                (Handler::SetPendingNumber.place(), 0, 0)
            }
            _ => none,
        };
    };
    let source = register * SCALE;
    match (number, access) {
        (csr::SSTATUS, CsrAccess::Set(_)) if rd == 0 => (Family::Set.of(register, 0), source, 0),
        (csr::SSTATUS, CsrAccess::Clear(_)) if rd == 0 => (Family::Clear.of(register, 0), source, 0),
        (csr::SSTATUS, CsrAccess::Set(_)) => (Handler::StatusSet.place(), source, target),
        (csr::SSTATUS, CsrAccess::Clear(_)) => (Handler::StatusClear.place(), source, target),
        (csr::SSTATUS, CsrAccess::Write(_)) => (Handler::StatusWrite.place(), source, target),
        (csr::SSCRATCH, CsrAccess::Write(_)) if rd == register && !is_elsewhere(rd) && rd != 0 => {
            (Family::SwapSame.of(rd, 0), 0, 0)
        }
        (csr::SSCRATCH, CsrAccess::Write(_)) if rd != 0 => (Handler::Swap.place(), source, target),
        _ if rd != 0 => none,
        (csr::SATP, CsrAccess::Write(_)) => (Family::Space.of(register, 0), 0, 0),
        (csr::STIMECMP, CsrAccess::Write(_)) if has_timer => (Handler::WriteTimer.place(), source, 0),
        (csr::SIP, CsrAccess::Clear(_)) => (Handler::ClearPending.place(), source, 0),
        (csr::SIP, CsrAccess::Set(_)) => (Handler::SetPending.place(), source, 0),
        (_, CsrAccess::Write(_)) => {
            plain(number).map_or(none, |plain| (Family::Write.of(register, plain), 0, 0))
        }
        _ => none,
    }
}
