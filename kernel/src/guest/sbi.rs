//! The firmware that a guest sees: SBI 2.0 (<https://github.com/riscv-non-isa/riscv-sbi-doc>) with the extensions
//! BASE, TIME, IPI, RFENCE, HSM, SRST and DBCN, the legacy ones, and one of the hypervisor's own that no guest has to use.
mod legacy;

use core::sync::atomic::{Ordering, fence as order};

use ainori_handover::{Fence, Recorded, Requests};
use ainori_lifecycle::Cause;
use ainori_limits::sbi::{AINORI, BASE, DBCN, HSM, IPI, RFENCE, SRST, TIME, VERSION_2_0, ainori};
use ainori_sched::{VcpuId, VcpuSet};
use ainori_trace::Event;

use super::vcpu::{Hold, hsm};
use super::{Guest, fault, serial, stop};
use crate::arch::context::reg::{A0, A1};
use crate::arch::csr::virtual_interrupt;
use crate::arch::{fence, world};
use crate::cpu::Cpu;
use crate::memory::GuestPhysical;
use crate::stats::Exit;

/// Not an assigned number: the list of the specification has none for us.
const IMPLEMENTATION: u64 = 0x41_494e;

/// Error codes of the specification, chapter 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Error {
    NotSupported = -2,
    InvalidParameter = -3,
    InvalidAddress = -5,
    AlreadyAvailable = -6,
}

type Result = core::result::Result<u64, Error>;

/// The call that the running vCPU has just made.
struct Call {
    vcpu: VcpuId,
    guest: &'static Guest,
    extension: u64,
    function: u64,
    a: [u64; 5],
}

/// Answers a call of the running vCPU.
#[inline(always)]
pub fn call(cpu: &mut Cpu, vcpu: VcpuId) -> Exit {
    let x = &cpu.context(vcpu).x;
    let (extension, function, mask) = (x[A0 + 7], x[A0 + 6], (x[A0], x[A0 + 1]));
    // What guests ask for all the time, and what takes the hypervisor least, doesn't go the long way.
    let (exit, result) = match extension {
        TIME => (Exit::SbiTime, set_timer(function, mask.0)),
        IPI => (Exit::SbiIpi, send_ipi(cpu, vcpu, function, mask)),
        BASE => (Exit::SbiOther, base(function, mask.0)),
        _ => return other_call(cpu, vcpu),
    };
    cpu.context(vcpu).pc += 4;
    let (error, value) = registers(result);
    let x = &mut cpu.context(vcpu).x;
    (x[A0], x[A1]) = (error, value);
    exit
}

/// What a call leaves behind in `a0` and `a1`.
fn registers(result: Result) -> (u64, u64) {
    match result {
        Ok(value) => (0, value),
        Err(error) => (error as i64 as u64, 0),
    }
}

#[inline(never)]
fn other_call(cpu: &mut Cpu, vcpu: VcpuId) -> Exit {
    let x = &cpu.context(vcpu).x;
    let (extension, function) = (x[A0 + 7], x[A0 + 6]);
    let a = [x[A0], x[A0 + 1], x[A0 + 2], x[A0 + 3], x[A0 + 4]];
    let mut call = Call { vcpu, guest: cpu.machine.guest_of(vcpu), extension, function, a };
    let is_legacy = legacy::is_legacy(extension);
    if is_legacy && legacy::translate(&mut call).is_none() {
        return fault::of_load(cpu, vcpu);
    }
    let (exit, result) = answer(cpu, &call);
    let Some(result) = result else { return exit };
    let (error, value) = registers(result);
    let context = cpu.context(vcpu);
    context.pc += 4;
    if is_legacy {
        // One of them is zero.
        context.x[A0] = error | value;
    } else {
        (context.x[A0], context.x[A1]) = (error, value);
    }
    exit
}

/// Carries out a call. No result if it has to be tried again.
fn answer(cpu: &mut Cpu, call: &Call) -> (Exit, Option<Result>) {
    let (exit, result) = match call.extension {
        TIME => (Exit::SbiTime, set_timer(call.function, call.a[0])),
        IPI => (Exit::SbiIpi, send_ipi(cpu, call.vcpu, call.function, (call.a[0], call.a[1]))),
        RFENCE => (Exit::SbiRfence, remote_fence(cpu, call)),
        HSM => (Exit::SbiHsm, hart_state(cpu, call)),
        SRST => (Exit::SbiReset, system_reset(cpu, call)),
        DBCN => return (Exit::SbiConsole, console(cpu, call)),
        AINORI => (Exit::SbiVendor, own(cpu, call)),
        legacy::GETCHAR => return (Exit::SbiConsole, legacy::getchar(cpu, call)),
        legacy::CLEAR_IPI => (Exit::SbiIpi, Ok(u64::from(world::take_software_interrupt()))),
        _ => (Exit::SbiOther, Err(Error::NotSupported)),
    };
    (exit, Some(result))
}

fn base(function: u64, extension: u64) -> Result {
    match function {
        0 => Ok(VERSION_2_0),
        1 => Ok(IMPLEMENTATION),
        2 => Ok(0),
        3 => {
            let is_today = matches!(extension, BASE | TIME | IPI | RFENCE | HSM | SRST | DBCN | AINORI);
            Ok(u64::from(is_today || legacy::is_legacy(extension)))
        }
        // Vendor, architecture and implementation of the hart: a guest has no business with them.
        4..=6 => Ok(0),
        _ => Err(Error::NotSupported),
    }
}

fn set_timer(function: u64, at: u64) -> Result {
    if function != 0 {
        return Err(Error::NotSupported);
    }
    world::set_timer(at);
    Ok(0)
}

/// The vCPUs that a hart mask (`a0`, `a1`) names; [`Error::InvalidParameter`] if one of them isn't there (chapter 3.1 of the
/// specification).
fn hart_mask(guest: &Guest, (mask, base): (u64, u64)) -> core::result::Result<VcpuSet, Error> {
    const ALL: u64 = u64::MAX;
    if base == ALL {
        return Ok(guest.vcpu_set(u64::MAX));
    }
    if mask == 0 {
        return Ok(VcpuSet::EMPTY);
    }
    // Shifted there and back, it has lost nothing if there is room for it.
    let harts = if base < 64 { mask << base } else { 0 };
    if harts == 0 || harts >> base != mask || harts & !guest.harts() != 0 {
        return Err(Error::InvalidParameter);
    }
    Ok(guest.vcpu_set(harts))
}

/// A set of one.
fn only(vcpu: VcpuId) -> VcpuSet {
    VcpuSet::from_iter([vcpu])
}

fn send_ipi(cpu: &mut Cpu, vcpu: VcpuId, function: u64, mask: (u64, u64)) -> Result {
    if function != 0 {
        return Err(Error::NotSupported);
    }
    let targets = hart_mask(cpu.machine.guest_of(vcpu), mask)?;
    if targets.contains(vcpu) {
        world::set_lines(virtual_interrupt::SOFTWARE, 0);
    }
    let others = targets - only(vcpu);
    if !others.is_empty() {
        cpu.ask_all(others, Requests::SOFTWARE);
    }
    Ok(0)
}

/// A fence is carried out here for the caller, recorded for vCPUs that don't run, and asked of the owners of those that do. The
/// caller goes on when these have answered; meanwhile its core does other things.
fn remote_fence(cpu: &mut Cpu, call: &Call) -> Result {
    let what = match call.function {
        0 => Fence::INSTRUCTIONS,
        1 | 2 => Fence::TRANSLATIONS,
        _ => return Err(Error::NotSupported),
    };
    let machine = cpu.machine;
    let awaited = &machine.vcpu(call.vcpu).fences_awaited;
    let targets = hart_mask(call.guest, (call.a[0], call.a[1]))?;
    if targets.contains(call.vcpu) {
        match what {
            Fence::INSTRUCTIONS => fence::instructions(),
            _ => translations(call),
        }
    }
    awaited.begin();
    let mut present = VcpuSet::EMPTY;
    // BOUND: the vCPUs of one guest, some 25 instructions each.
    for target in targets - only(call.vcpu) {
        if machine.vcpu(target).fences.record(what, call.vcpu, awaited) == Recorded::Awaited {
            present.insert(target);
        }
    }
    if !present.is_empty() {
        cpu.ask_all(present, Requests::FENCE);
    }
    if !awaited.answer() {
        cpu.resident(call.vcpu).hold = Hold::Fences;
        cpu.rest(call.vcpu);
    }
    Ok(0)
}

/// The caller's own part of a remote SFENCE.VMA: as narrow as it was asked for.
fn translations(call: &Call) {
    const PAGE: u64 = 4096;
    /// More pages than this are not worth a fence each.
    const MOST_PAGES: u64 = 8;
    let (start, size, asid) = (call.a[2], call.a[3], (call.function == 2).then_some(call.a[4]));
    let everything = size == u64::MAX || (start == 0 && size == 0) || size > MOST_PAGES * PAGE;
    if everything {
        return asid.map_or_else(fence::guest_all, fence::guest_asid);
    }
    let mut page = start & !(PAGE - 1);
    // BOUND: `MOST_PAGES` and one, some 8 instructions each.
    while page < start.saturating_add(size) {
        match asid {
            None => fence::guest_page(page),
            Some(asid) => fence::guest_page_asid(page, asid),
        }
        page = page.saturating_add(PAGE);
    }
}

fn hart_state(cpu: &mut Cpu, call: &Call) -> Result {
    let machine = cpu.machine;
    match call.function {
        0 => {
            let target = call.guest.vcpu(call.a[0]).ok_or(Error::InvalidParameter)?;
            call.guest.locate(GuestPhysical(call.a[1]), 2).ok_or(Error::InvalidAddress)?;
            let vcpu = machine.vcpu(target);
            vcpu.hsm
                .compare_exchange(hsm::STOPPED, hsm::START_PENDING, Ordering::AcqRel, Ordering::Relaxed)
                .map_err(|_| Error::AlreadyAvailable)?;
            vcpu.start_address.store(call.a[1], Ordering::Relaxed);
            vcpu.start_opaque.store(call.a[2], Ordering::Relaxed);
            cpu.ask(target, Requests::START);
            Ok(0)
        }
        1 => {
            cpu.resident(call.vcpu).hold = Hold::Stopped;
            cpu.rest(call.vcpu);
            machine.vcpu(call.vcpu).hsm.store(hsm::STOPPED, Ordering::Release);
            // Of two that stop at once, at least one sees that both have.
            order(Ordering::SeqCst);
            let stopped = |index| machine.vcpu(VcpuId(index)).hsm.load(Ordering::Acquire) == hsm::STOPPED;
            // BOUND: the vCPUs of one guest, some 8 instructions each.
            if call.guest.vcpus().all(stopped) {
                stop::stop(cpu, call.vcpu, "all-harts-stopped", Cause::Failure, |_| None);
            }
            Ok(0)
        }
        2 => {
            let target = call.guest.vcpu(call.a[0]).ok_or(Error::InvalidParameter)?;
            Ok(u64::from(machine.vcpu(target).hsm.load(Ordering::Acquire)))
        }
        // Suspend: the default retentive one is a WFI. The default non-retentive one would keep less than a vCPU that doesn't run keeps anyway.
        3 => match call.a[0] & 0xffff_ffff {
            0 => {
                cpu.wait_for_interrupt(call.vcpu);
                Ok(0)
            }
            0x8000_0000 => Err(Error::NotSupported),
            _ => Err(Error::InvalidParameter),
        },
        _ => Err(Error::NotSupported),
    }
}

fn system_reset(cpu: &mut Cpu, call: &Call) -> Result {
    const SYSTEM_FAILURE: u64 = 1;
    const VENDOR: u64 = 0xe000_0000;
    let (kind, reason) = (call.a[0] & 0xffff_ffff, call.a[1] & 0xffff_ffff);
    if call.function != 0 {
        return Err(Error::NotSupported);
    }
    let (told, cause) = match (kind, reason) {
        (0, 0) => ("shutdown", Cause::Shutdown),
        (1 | 2, 0) => ("reboot", Cause::Reboot),
        (0..=2, SYSTEM_FAILURE | VENDOR..) => ("failure", Cause::Failure),
        _ => return Err(Error::InvalidParameter),
    };
    stop::stop(cpu, call.vcpu, told, cause, |_| None);
    Ok(0)
}

/// Bytes that one call moves at most, so that none takes long: the specification lets a call do less than was asked for.
const CONSOLE_PIECE: u64 = 16;

/// None if the call has to be tried again.
fn console(cpu: &mut Cpu, call: &Call) -> Option<Result> {
    let memory = || {
        let size = call.a[0].min(CONSOLE_PIECE);
        let whole =
            (call.a[2] == 0).then(|| call.guest.locate(GuestPhysical(call.a[1]), call.a[0])).flatten();
        whole.map(|at| (at.0 as *mut u8, size as usize))
    };
    let done = match (call.function, memory()) {
        (0, Some((from, size))) => {
            // SAFETY: the range lies in the guest's memory, which no Rust object shares; the guest may change it at
            // any time, so it is read byte by byte, as volatile.
            serial::print(cpu, call.guest, (0..size).map(|index| unsafe { from.add(index).read_volatile() }))?
        }
        // SAFETY: as above, for writing.
        (1, Some((to, size))) => unsafe { read(cpu, call.guest, to, size)? },
        (0 | 1, None) => return Some(Err(Error::InvalidParameter)),
        // This one blocks until there is room.
        (2, _) => match serial::print(cpu, call.guest, core::iter::once(call.a[0] as u8))? {
            0 => return None,
            _ => 0,
        },
        _ => return Some(Err(Error::NotSupported)),
    };
    Some(Ok(done))
}

/// Takes what was typed, at most `size` bytes. Returns how much that was, or None if it has to be tried again.
///
/// # Safety
/// Nobody minds if `size` bytes are written at `to`.
#[inline(never)]
unsafe fn read(cpu: &mut Cpu, guest: &'static Guest, to: *mut u8, size: usize) -> Option<u64> {
    serial::scan(cpu, guest, size, |index, byte| {
        // SAFETY: `index` is below `size`.
        unsafe { to.add(index).write_volatile(byte) }
    })
}

/// The hypervisor's own extension.
fn own(cpu: &mut Cpu, call: &Call) -> Result {
    match call.function {
        ainori::YIELD => {
            cpu.yield_now();
            Ok(0)
        }
        ainori::LOCK_TAKEN | ainori::LOCK_RELEASED => {
            cpu.resident(call.vcpu).holds_lock = call.function == ainori::LOCK_TAKEN;
            Ok(0)
        }
        ainori::MARK => {
            cpu.trace(Event::Mark { vcpu: call.vcpu.0, value: call.a[0] });
            Ok(0)
        }
        _ => Err(Error::NotSupported),
    }
}
