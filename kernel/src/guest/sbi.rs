//! The firmware that a guest sees: what its calls ask for (`crates/sbi` decodes and checks them) is carried out here.
use core::sync::atomic::{Ordering, fence as order};

use ainori_handover::{Fence as Recordable, Recorded, Requests};
use ainori_lifecycle::Cause;
use ainori_sbi::legacy::{self, is_legacy};
use ainori_sbi::{
    AINORI, BASE, Call, DBCN, Error, Fence, HSM, IPI, RFENCE, Range, Reason, Request, Result, SRST, TIME,
    base, decode, hart_mask, is_first, registers,
};
use ainori_sched::{VcpuId, VcpuSet};
use ainori_trace::Event;

use super::vcpu::{Hold, hsm};
use super::{Guest, fault, serial, stop};
use crate::arch::fence;
use crate::arch::guest_access::load_doubleword;
use crate::arch::world::{self, Lines};
use crate::cpu::Cpu;
use crate::memory::GuestPhysical;
use crate::stats::Exit;

/// Answers a call of the running vCPU.
#[inline(always)]
pub fn call(cpu: &mut Cpu, vcpu: VcpuId) -> Exit {
    let [first, second, .., function, extension] = cpu.state(vcpu).arguments();
    // What guests ask for all the time, and what takes the hypervisor least, doesn't go the long way.
    let (exit, result) = match extension {
        TIME => (Exit::SbiTime, is_first(function).map(|()| set_timer(first))),
        IPI => (Exit::SbiIpi, is_first(function).and_then(|()| send_ipi_to(cpu, vcpu, (first, second)))),
        BASE => (Exit::SbiOther, base(function, first)),
        _ => return other_call(cpu, vcpu),
    };
    cpu.state(vcpu).finish_call(registers(result));
    exit
}

#[inline(never)]
fn other_call(cpu: &mut Cpu, vcpu: VcpuId) -> Exit {
    let guest = cpu.machine.guest_of(vcpu);
    let [a0, a1, a2, a3, a4, _, function, extension] = cpu.state(vcpu).arguments();
    let mut call = Call { extension, function, a: [a0, a1, a2, a3, a4] };
    let is_legacy = is_legacy(call.extension);
    if is_legacy {
        match legacy::translate(call, guest.harts(), load_doubleword) {
            Ok(today) => call = today,
            Err(failed) => return fault::of_load(cpu, vcpu, failed),
        }
    }
    let exit = exit_of(call.extension);
    let answer = match decode(&call, guest.harts()) {
        Ok(request) => carry_out(cpu, vcpu, guest, request),
        Err(error) => Some(Err(error)),
    };
    let Some(result) = answer else { return exit };
    let (error, value) = registers(result);
    if is_legacy {
        // One of them is zero.
        cpu.state(vcpu).finish_legacy_call(error | value);
    } else {
        cpu.state(vcpu).finish_call((error, value));
    }
    exit
}

/// As what a call is counted.
fn exit_of(extension: u64) -> Exit {
    match extension {
        TIME => Exit::SbiTime,
        IPI | legacy::CLEAR_IPI => Exit::SbiIpi,
        RFENCE => Exit::SbiRfence,
        HSM => Exit::SbiHsm,
        SRST => Exit::SbiReset,
        DBCN | legacy::GETCHAR => Exit::SbiConsole,
        AINORI => Exit::SbiVendor,
        _ => Exit::SbiOther,
    }
}

/// Carries out what the running vCPU asks for. None if it has to ask again.
#[inline(never)]
fn carry_out(cpu: &mut Cpu, vcpu: VcpuId, guest: &'static Guest, request: Request) -> Option<Result<u64>> {
    let value = match request {
        Request::Answer(value) => value,
        Request::SetTimer(at) => set_timer(at),
        Request::SendIpi(harts) => send_ipi(cpu, vcpu, guest, harts),
        Request::ClearIpi => u64::from(world::take_software_interrupt()),
        Request::RemoteFence(harts, fence) => remote_fence(cpu, vcpu, guest.vcpu_set(harts), fence),
        Request::HartStart { hart, address, opaque } => {
            return Some(hart_start(cpu, guest, hart, address, opaque));
        }
        Request::HartStop => hart_stop(cpu, vcpu, guest),
        Request::HartStatus(hart) => {
            let state =
                guest.vcpu(u64::from(hart)).map(|id| cpu.machine.vcpu(id).hsm.load(Ordering::Acquire));
            return Some(state.map(u64::from).ok_or(Error::InvalidParameter));
        }
        Request::Suspend => {
            cpu.wait_for_interrupt(vcpu);
            0
        }
        Request::Reset(reason) => {
            let (told, cause) = match reason {
                Reason::Shutdown => ("shutdown", Cause::Shutdown),
                Reason::Reboot => ("reboot", Cause::Reboot),
                Reason::Failure => ("failure", Cause::Failure),
            };
            stop::stop(cpu, vcpu, told, cause, |_| None);
            0
        }
        Request::Write { from, size } => match piece(guest, from, size) {
            Some((from, size)) => {
                // SAFETY: the range lies in the guest's memory, which no Rust object shares; the guest may change it at
                // any time, so it is read byte by byte, as volatile.
                let bytes = (0..size).map(|index| unsafe { from.add(index).read_volatile() });
                serial::print(cpu, guest, bytes)?
            }
            None => return Some(Err(Error::InvalidParameter)),
        },
        Request::Read { to, size } => match piece(guest, to, size) {
            // SAFETY: as above, for writing.
            Some((to, size)) => unsafe { read(cpu, guest, to, size)? },
            None => return Some(Err(Error::InvalidParameter)),
        },
        Request::WriteByte(byte) => match serial::print(cpu, guest, core::iter::once(byte))? {
            0 => return None,
            _ => 0,
        },
        Request::ReadByte => {
            let mut typed = 0;
            // SAFETY: there is room for one byte.
            match unsafe { read(cpu, guest, &raw mut typed, 1)? } {
                0 => u64::MAX,
                _ => u64::from(typed),
            }
        }
        Request::Yield => {
            cpu.yield_now();
            0
        }
        Request::Mark(value) => {
            cpu.trace(Event::Mark { vcpu: vcpu.0, value });
            0
        }
        Request::HoldsLock(holds_lock) => {
            cpu.resident(vcpu).holds_lock = holds_lock;
            0
        }
    };
    Some(Ok(value))
}

fn set_timer(at: u64) -> u64 {
    world::set_timer(at);
    0
}

fn send_ipi_to(cpu: &mut Cpu, vcpu: VcpuId, mask: (u64, u64)) -> Result<u64> {
    let guest = cpu.machine.guest_of(vcpu);
    let harts = hart_mask(guest.harts(), mask)?;
    Ok(send_ipi(cpu, vcpu, guest, harts))
}

fn send_ipi(cpu: &mut Cpu, vcpu: VcpuId, guest: &Guest, harts: u64) -> u64 {
    let targets = guest.vcpu_set(harts);
    if targets.contains(vcpu) {
        world::raise(Lines::SOFTWARE);
    }
    let others = targets.without(vcpu);
    if !others.is_empty() {
        cpu.ask_all(others, Requests::SOFTWARE);
    }
    0
}

/// A fence is carried out here for the caller, recorded for vCPUs that don't run, and asked of the owners of those that do. The
/// caller goes on when these have answered; meanwhile its core does other things.
fn remote_fence(cpu: &mut Cpu, vcpu: VcpuId, targets: VcpuSet, what: Fence) -> u64 {
    let machine = cpu.machine;
    let awaited = &machine.vcpu(vcpu).fences_awaited;
    let is_own = targets.contains(vcpu);
    let recordable = match what {
        Fence::Instructions => {
            if is_own {
                fence::instructions();
            }
            Recordable::INSTRUCTIONS
        }
        Fence::Translations(range, asid) => {
            if is_own {
                translations(range, asid);
            }
            Recordable::TRANSLATIONS
        }
    };
    awaited.begin();
    let mut present = VcpuSet::EMPTY;
    // BOUND: the vCPUs of one guest, some 25 instructions each.
    for target in targets.without(vcpu) {
        if machine.vcpu(target).fences.record(recordable, vcpu, awaited) == Recorded::Awaited {
            present.insert(target);
        }
    }
    if !present.is_empty() {
        cpu.ask_for_fences(present);
    }
    if !awaited.answer() {
        cpu.resident(vcpu).hold = Hold::Fences;
        cpu.rest(vcpu);
    }
    0
}

/// The caller's own part of a remote SFENCE.VMA: as narrow as it was asked for.
fn translations(range: Range, asid: Option<u64>) {
    let Some(pages) = range.pages() else {
        return asid.map_or_else(fence::guest_all, fence::guest_asid);
    };
    // BOUND: `MOST_PAGES` and one, some 8 instructions each.
    for page in pages {
        match asid {
            None => fence::guest_page(page),
            Some(asid) => fence::guest_page_asid(page, asid),
        }
    }
}

fn hart_start(cpu: &mut Cpu, guest: &Guest, hart: u32, address: u64, opaque: u64) -> Result<u64> {
    let target = guest.vcpu(u64::from(hart)).ok_or(Error::InvalidParameter)?;
    guest.space.locate(GuestPhysical(address), 2).ok_or(Error::InvalidAddress)?;
    let vcpu = cpu.machine.vcpu(target);
    vcpu.hsm
        .compare_exchange(hsm::STOPPED, hsm::START_PENDING, Ordering::AcqRel, Ordering::Relaxed)
        .map_err(|_| Error::AlreadyAvailable)?;
    vcpu.start_address.store(address, Ordering::Relaxed);
    vcpu.start_opaque.store(opaque, Ordering::Relaxed);
    // To find the vCPU and to make its registers anew takes long.
    cpu.ask_later(target, Requests::START);
    Ok(0)
}

fn hart_stop(cpu: &mut Cpu, vcpu: VcpuId, guest: &Guest) -> u64 {
    let machine = cpu.machine;
    cpu.resident(vcpu).hold = Hold::Stopped;
    cpu.rest(vcpu);
    machine.vcpu(vcpu).hsm.store(hsm::STOPPED, Ordering::Release);
    // Of two that stop at once, at least one sees that both have.
    order(Ordering::SeqCst);
    let stopped = |index| machine.vcpu(VcpuId(index)).hsm.load(Ordering::Acquire) == hsm::STOPPED;
    // BOUND: the vCPUs of one guest, some 8 instructions each.
    if guest.vcpus().all(stopped) {
        stop::stop(cpu, vcpu, "all-harts-stopped", Cause::Failure, |_| None);
    }
    0
}

/// Bytes that one call moves at most, so that none takes long: the specification lets a call do less than was asked for.
const CONSOLE_PIECE: u64 = 16;

/// Where a range of a guest's memory is, and how much of it one call moves. None if it isn't all there.
fn piece(guest: &Guest, address: u64, size: u64) -> Option<(*mut u8, usize)> {
    let at = guest.space.locate(GuestPhysical(address), size)?;
    Some((at.0 as *mut u8, size.min(CONSOLE_PIECE) as usize))
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
