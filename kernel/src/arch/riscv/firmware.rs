//! Calls down to the firmware (SBI, <https://github.com/riscv-non-isa/riscv-sbi-doc>, version 2.0).
use core::arch::asm;

use ainori_sbi::{BASE, HSM, IPI, SRST, base, hsm, ipi, srst};
#[cfg(feature = "sbi-timer")]
use ainori_sbi::{TIME, time};

/// An SBI error code (negative).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error(pub i64);

fn call(eid: u64, fid: u64, args: [u64; 3]) -> Result<u64, Error> {
    let (error, value): (i64, u64);
    // SAFETY: an SBI call changes only a0 and a1; memory that it may write is named by none of the calls below.
    unsafe {
        asm!("ecall", inout("a0") args[0] => error, inout("a1") args[1] => value, in("a2") args[2],
             in("a6") fid, in("a7") eid, options(nostack));
    }
    if error == 0 { Ok(value) } else { Err(Error(error)) }
}

/// Version of the SBI specification: major number in bits 24 to 30, minor below.
pub fn version() -> u64 {
    call(BASE, base::VERSION, [0; 3]).unwrap_or(0)
}

/// Starts a stopped hart in S-mode at a physical address, with its hart id in a0 and `opaque` in a1.
///
/// # Errors
/// What HSM answers, e.g. a hart that doesn't exist or runs already.
pub fn hart_start(hart: u64, address: u64, opaque: u64) -> Result<(), Error> {
    call(HSM, hsm::START, [hart, address, opaque]).map(drop)
}

/// Sends a software interrupt to one hart. The firmware has no reason to refuse, as the hart is one of the board's; a debug build looks. If
/// it did, what the interrupt is about would wait until that hart looks by itself, however late.
pub fn send_ipi(hart: u64) {
    let sent = call(IPI, ipi::SEND, [1, hart, 0]);
    debug_assert!(sent.is_ok(), "IPI to hart {hart}: {sent:?}");
}

/// Sets this hart's timer, and takes its interrupt back. `u64::MAX`: it doesn't interrupt any more.
#[cfg(feature = "sbi-timer")]
pub fn set_timer(at: u64) {
    let set = call(TIME, time::SET, [at, 0, 0]);
    debug_assert!(set.is_ok(), "timer: {set:?}");
}

/// Switches the machine off. `failure` is told to whoever watches it.
pub fn shutdown(failure: bool) -> ! {
    let reason = if failure { srst::SYSTEM_FAILURE } else { srst::NO_REASON };
    let _ = call(SRST, srst::RESET, [srst::SHUTDOWN, reason, 0]);
    // BOUND: none: the machine is lost, or off in a moment.
    loop {
        super::hart::wait();
    }
}
