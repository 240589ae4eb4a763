//! The calls of before SBI 0.2 (chapter "Legacy Extensions"), which old and small programs make. Each is an extension of its own, answers in
//! `a0` alone, and does what a call of today does, to which it is translated; two have no such counterpart.
use crate::{Call, DBCN, IPI, RFENCE, SRST, TIME};

const SET_TIMER: u64 = 0;
const PUTCHAR: u64 = 1;
/// Takes what was typed.
pub const GETCHAR: u64 = 2;
/// Takes the caller's software interrupt back.
pub const CLEAR_IPI: u64 = 3;
const SEND_IPI: u64 = 4;
const REMOTE_FENCE_I: u64 = 5;
const REMOTE_SFENCE_VMA_ASID: u64 = 7;
const SHUTDOWN: u64 = 8;

/// Is this one of them?
#[inline]
#[must_use]
pub const fn is_legacy(extension: u64) -> bool {
    extension <= SHUTDOWN
}

/// Makes a legacy call of a guest with these `harts` (a bit each) one of today. A hart mask lies in memory: `load` reads a doubleword at an
/// address of the guest's own translation.
///
/// # Errors
/// What `load` says if it can't.
#[cold]
pub fn translate<E>(call: Call, harts: u64, load: impl FnOnce(u64) -> Result<u64, E>) -> Result<Call, E> {
    let [address, start, size, asid, _] = call.a;
    let (extension, function) = match call.extension {
        SET_TIMER => (TIME, 0),
        PUTCHAR => (DBCN, 2),
        SEND_IPI => (IPI, 0),
        fence @ REMOTE_FENCE_I..=REMOTE_SFENCE_VMA_ASID => (RFENCE, fence - REMOTE_FENCE_I),
        SHUTDOWN => (SRST, 0),
        _ => return Ok(call),
    };
    let a = match call.extension {
        SEND_IPI..=REMOTE_SFENCE_VMA_ASID => {
            // No mask stands for all harts. Harts that aren't there are left out, as OpenSBI does it.
            let (mask, base) = if address == 0 { (0, u64::MAX) } else { (load(address)? & harts, 0) };
            [mask, base, start, size, asid]
        }
        SHUTDOWN => [0; 5],
        _ => call.a,
    };
    Ok(Call { extension, function, a })
}
