//! The calls of before SBI 0.2 (chapter "Legacy Extensions"), which old and small programs make. Each is an extension of its own, answers in
//! `a0` alone, and does what a call of today does, to which it is translated; two have no such counterpart.
use super::{Call, DBCN, IPI, RFENCE, Result, SRST, TIME};
use crate::arch::guest_access::load_doubleword;
use crate::arch::trap::FailedLoad;
use crate::cpu::Cpu;

const SET_TIMER: u64 = 0;
const PUTCHAR: u64 = 1;
pub const GETCHAR: u64 = 2;
pub const CLEAR_IPI: u64 = 3;
const SEND_IPI: u64 = 4;
const REMOTE_FENCE_I: u64 = 5;
const REMOTE_SFENCE_VMA_ASID: u64 = 7;
const SHUTDOWN: u64 = 8;

/// Is this one of them?
pub const fn is_legacy(extension: u64) -> bool {
    extension <= SHUTDOWN
}

/// Makes a legacy call one of today.
///
/// # Errors
/// If its hart mask can't be loaded.
#[cold]
pub fn translate(call: &mut Call) -> core::result::Result<(), FailedLoad> {
    let legacy = call.extension;
    (call.extension, call.function) = match legacy {
        SET_TIMER => (TIME, 0),
        PUTCHAR => (DBCN, 2),
        SEND_IPI => (IPI, 0),
        REMOTE_FENCE_I..=REMOTE_SFENCE_VMA_ASID => (RFENCE, legacy - REMOTE_FENCE_I),
        SHUTDOWN => (SRST, 0),
        _ => return Ok(()),
    };
    let [address, start, size, asid, _] = call.a;
    match legacy {
        SEND_IPI..=REMOTE_SFENCE_VMA_ASID => {
            let (mask, base) = hart_mask(call, address)?;
            call.a = [mask, base, start, size, asid];
        }
        SHUTDOWN => call.a = [0; 5],
        _ => {}
    }
    Ok(())
}

/// A hart mask of today, from the address of a legacy one in the guest's own translation: none stands for all harts. Harts that aren't
/// there are left out, as OpenSBI does it.
fn hart_mask(call: &Call, address: u64) -> core::result::Result<(u64, u64), FailedLoad> {
    if address == 0 {
        return Ok((0, u64::MAX));
    }
    let mask = load_doubleword(address)?;
    Ok((mask & call.guest.harts(), 0))
}

/// What was typed next; -1 if nothing was. None if the call has to be tried again.
#[cold]
pub fn getchar(cpu: &mut Cpu, call: &Call) -> Option<Result> {
    let mut typed = 0;
    // SAFETY: there is room for one byte.
    let read = unsafe { super::read(cpu, call.guest, &raw mut typed, 1)? };
    Some(Ok(if read == 0 { u64::MAX } else { u64::from(typed) }))
}
