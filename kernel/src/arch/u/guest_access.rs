//! Reading a guest's memory through the guest's own translation: through the tables that the hart walks for it, from within the [window](super::window).
use core::arch::asm;

use super::per_hart::per_hart;
use super::trap::{Access, Exception, Origin};
use super::window::READ;
use crate::arch::riscv::csr::{self, status};
use ainori_limits::cause::exception;

/// How wide a read is.
#[derive(Clone, Copy)]
enum Width {
    Doubleword = 0,
    Halfword = 1,
}

impl Width {
    const fn bytes(self) -> u64 {
        match self {
            Self::Doubleword => 8,
            Self::Halfword => 2,
        }
    }
}

fn read(address: u64, width: Width, also: u64) -> Option<u64> {
    let hart = per_hart();
    let window = hart.window.get();
    if window.wrapping_sub(address) < width.bytes() || address.wrapping_sub(window) < super::window::SIZE {
        return refuse(address.max(window));
    }
    let (failed, value): (u64, u64);
    // SAFETY: the routine is in the window, which is in the hypervisor's map and in the loaded vCPU's tables at the same place. It reads the guest's memory, which no Rust object
    // lies in, and changes what is named here. A fault in it is a trap of the hypervisor itself, which changes `scause`, `sepc`, `stval` and SPP and SPIE of
    // `sstatus` as well: the callers read what they want of the former before it, or put it back, and the way to the guest sets the latter.
    unsafe {
        asm!("jalr {}", in(reg) window + READ, inout("a0") address => failed, inout("a1") hart.walked.get() => value,
             in("a2") status::SUM | also, out("a3") _, in("a4") width as u64, out("t0") _, out("ra") _, options(nostack, readonly));
    }
    (failed == 0).then_some(value)
}

/// The hypervisor could read its own pages in the window: it fails there as its guest would, who may have memory of its own at this address.
#[cold]
fn refuse(address: u64) -> Option<u64> {
    // SAFETY: as for a read that fails.
    unsafe {
        csr::write!(csr::SCAUSE, exception::LOAD_PAGE_FAULT.into());
        csr::write!(csr::STVAL, address);
    }
    None
}

/// Why a load from the guest's memory failed that the hypervisor made for it.
#[derive(Debug, Clone, Copy)]
pub enum FailedLoad {
    /// The guest has no memory there.
    #[expect(dead_code, reason = "its page fault says so only later")]
    NoMemory(Access),
    /// The guest's own translation refuses it.
    Refused(Exception),
}

/// The doubleword at a guest virtual address of the guest that is loaded on this core, with the privilege that it had at its last trap.
///
/// # Errors
/// The fault that the guest itself would have made with it.
pub fn load_doubleword(address: u64) -> Result<u64, FailedLoad> {
    let origin = Origin::current();
    let mxr = super::per_hart::loaded(|registers| registers.sstatus() & status::MXR).unwrap_or(0);
    match read(address, Width::Doubleword, mxr) {
        Some(value) => Ok(value),
        None => {
            let failure = FailedLoad::current();
            origin.put_back();
            Err(failure)
        }
    }
}

/// The instruction at a guest virtual address of the guest that is loaded on this core, with the privilege that it
/// had at its last trap. A compressed one has zeros in its upper half. None if the guest itself could not fetch it: then the trap's
/// [origin](Origin) has to be put back.
#[inline(never)]
pub(super) fn fetch_instruction(pc: u64) -> Option<u32> {
    // What can only be executed is read as well.
    let halfword = |at| read(at, Width::Halfword, status::MXR);
    let low = halfword(pc)?;
    if low & 0b11 != 0b11 {
        return Some(low as u32);
    }
    let high = halfword(pc.wrapping_add(2))?;
    Some((high << 16 | low) as u32)
}
