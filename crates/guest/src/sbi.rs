//! Carries out what a guest asks its firmware for.
use ainori_lifecycle::Cause;
use ainori_sbi::{Error, Reason, Request, Result};

use crate::{Host, serial};

/// Bytes that one call prints at most, so that none takes long: the specification lets a call do less than was asked for (chapter 12).
pub const MOST_PRINTED: u64 = 16;
/// Bytes that one call reads at most. Each takes twice as long as one that is printed, as the virtual serial port keeps them.
pub const MOST_READ: u64 = 8;

/// Carries out what the caller asks for. `None` if it goes on elsewhere, or has to ask again.
#[inline(always)] // Called in one place.
pub fn carry_out(host: &mut impl Host, request: Request) -> Option<Result<u64>> {
    match request {
        Request::Answer(value) => return Some(Ok(value)),
        Request::ClearIpi => return Some(Ok(u64::from(host.take_software_interrupt()))),
        Request::HartStart { hart, address, opaque } => return Some(hart_start(host, hart, address, opaque)),
        Request::HartStatus(hart) => {
            return Some(host.hart(hart).map(|hart| hart.state() as u64).ok_or(Error::InvalidParameter));
        }
        Request::Write { from, size } => return write(host, from, size),
        Request::Read { to, size } => return read(host, to, size),
        Request::ReadByte => {
            let mut typed = None;
            serial::scan(host, 1, |_, _, byte| typed = Some(byte))?;
            return Some(Ok(typed.map_or(u64::MAX, u64::from)));
        }
        Request::WriteByte(byte) => {
            if serial::print(host, core::iter::once(byte))? == 0 {
                return None;
            }
        }
        Request::SetTimer(at) => host.set_timer(at),
        Request::SendIpi(harts) => host.send_ipi(harts),
        Request::RemoteFence(harts, fence) => host.remote_fence(harts, fence),
        Request::HartStop => {
            if host.stop_caller() {
                host.stop_guest("all-harts-stopped", Cause::Failure);
            }
        }
        Request::Suspend => host.suspend(),
        Request::SuspendAndResume { address, opaque, alone } => {
            // Behind its call it goes on only if that has failed.
            return suspend(host, address, opaque, alone).err().map(Err);
        }
        Request::Reset(reason) => reset(host, reason),
        Request::Yield => host.yield_now(),
        Request::Mark(value) => host.mark(value),
        Request::HoldsLock(holds_lock) => host.note_lock(holds_lock),
    }
    Some(Ok(0))
}

fn hart_start(host: &mut impl Host, hart: u32, address: u64, opaque: u64) -> Result<u64> {
    let target = host.hart(hart).ok_or(Error::InvalidParameter)?;
    // Room for the shortest instruction.
    if !host.has_memory(address, 2) {
        return Err(Error::InvalidAddress);
    }
    if !target.ask_start(address, opaque) {
        return Err(Error::AlreadyAvailable);
    }
    host.start(hart);
    Ok(0)
}

/// The caller sleeps, and goes on at `address` then. If it is to be `alone`, all the machine sleeps.
fn suspend(host: &mut impl Host, address: u64, opaque: u64, alone: bool) -> Result<()> {
    if !host.has_memory(address, 2) {
        return Err(Error::InvalidAddress);
    }
    if alone && !host.is_alone() {
        return Err(Error::Denied);
    }
    host.resume_at(address, opaque);
    host.suspend();
    Ok(())
}

/// The guest ends itself.
pub(crate) fn reset(host: &mut impl Host, reason: Reason) {
    let (told, cause) = match reason {
        Reason::Shutdown => ("shutdown", Cause::Shutdown),
        Reason::Reboot => ("reboot", Cause::Reboot),
        Reason::Failure => ("failure", Cause::Failure),
    };
    host.stop_guest(told, cause);
}

/// How much of a range one call moves, of `most`. None if the range isn't all there.
fn piece(host: &impl Host, address: u64, size: u64, most: u64) -> Option<usize> {
    host.has_memory(address, size).then_some(size.min(most) as usize)
}

fn write(host: &mut impl Host, from: u64, size: u64) -> Option<Result<u64>> {
    let Some(bytes) = piece(host, from, size, MOST_PRINTED).and_then(|size| host.load(from, size)) else {
        return Some(Err(Error::InvalidParameter));
    };
    serial::print(host, bytes).map(Ok)
}

fn read(host: &mut impl Host, to: u64, size: u64) -> Option<Result<u64>> {
    let Some(size) = piece(host, to, size, MOST_READ) else { return Some(Err(Error::InvalidParameter)) };
    serial::scan(host, size, |host, index, byte| host.store(to + index as u64, byte)).map(Ok)
}
