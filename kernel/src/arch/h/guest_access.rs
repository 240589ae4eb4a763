//! Reading a guest's memory through the guest's own translation.
use super::trap::{Access, Exception, Origin};
use core::arch::{asm, global_asm};

// `hlvx.hu` reads like an instruction fetch of the guest. A fault in it is no bug: another vCPU may have changed the
// page table since. The trap entry then continues at `guest_access_failed`.
global_asm!(
    r#"
    .section .text.trap, "ax"
    .option push
    .option arch, +h
    .balign 4
guest_access_begin:
guest_fetch_halfword:
    hlvx.hu a0, (a0)
    ret
guest_load_doubleword:
    hlv.d   a1, (a0)
    li      a0, 0
    ret
guest_access_end:
guest_access_failed:
    li      a0, -1
    ret
    .option pop
    "#
);

fn halfword(address: u64) -> Option<u16> {
    let value: u64;
    // SAFETY: the routine reads the memory of the guest that is loaded on this core, which no Rust object lies in; it changes only `a0` and
    // `ra`. A fault in it ends in the value -1. That fault is a trap of the hypervisor itself, which changes more:
    // - `scause`, `sepc`, `stval`, `htval` and `htinst`: the callers read what they want of them before it, or put it back.
    // - SPP and SPIE of `sstatus`, SPV and GVA of `hstatus` (the trap, and the SRET behind it): nobody reads them. The guest's are in its
    //   `Context`, from which the way back loads both registers. SPVP, by which these instructions choose the guest's privilege, is left as
    //   it is by a trap that doesn't come from a guest.
    // - the 64 bytes below `sp`, where nothing lies, as the ABI has no red zone (`hypervisor_trap` writes 16 of them).
    unsafe {
        asm!("call guest_fetch_halfword", inout("a0") address => value, out("ra") _, options(nostack, readonly));
    }
    u16::try_from(value).ok()
}

/// Why a load from the guest's memory failed that the hypervisor made for it.
#[derive(Debug, Clone, Copy)]
pub enum FailedLoad {
    /// The guest has no memory there.
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
    let (failed, value): (u64, u64);
    // SAFETY: as in `halfword`; this one changes `a1` too.
    unsafe {
        asm!("call guest_load_doubleword", inout("a0") address => failed, out("a1") value, out("ra") _, options(nostack, readonly));
    }
    if failed == 0 {
        return Ok(value);
    }
    let failure = FailedLoad::current();
    origin.put_back();
    Err(failure)
}

/// The instruction at a guest virtual address of the guest that is loaded on this core, with the privilege that it
/// had at its last trap. A compressed one has zeros in its upper half. None if the guest itself could not fetch it: then the trap's
/// [origin](Origin) has to be put back.
#[inline(never)]
pub(super) fn fetch_instruction(pc: u64) -> Option<u32> {
    let low = halfword(pc)?;
    if low & 0b11 != 0b11 {
        return Some(u32::from(low));
    }
    let high = halfword(pc.wrapping_add(2))?;
    Some(u32::from(high) << 16 | u32::from(low))
}
