//! The firmware that a guest sees: its calls come in here. `crates/sbi` decodes and checks them, `crates/guest` carries them out.
use ainori_guest::Host;
use ainori_guest::sbi::carry_out;
use ainori_sbi::legacy::{self, is_legacy};
use ainori_sbi::{
    AINORI, BASE, Call, DBCN, HSM, IPI, RFENCE, SRST, TIME, base, decode, hart_mask, is_first, registers,
};
use ainori_sched::VcpuId;

use super::caller::Caller;
use super::fault;
use crate::arch::guest_access::load_doubleword;
use crate::arch::world;
use crate::cpu::Cpu;
use crate::stats::Exit;

/// Answers a call of the running vCPU.
#[inline(always)]
pub fn call(cpu: &mut Cpu, vcpu: VcpuId) -> Exit {
    let [first, second, .., function, extension] = cpu.state(vcpu).arguments();
    // What guests ask for all the time, and what takes the hypervisor least, doesn't go the long way.
    let (exit, result) = match extension {
        TIME => (Exit::SbiTime, is_first(function).map(|()| set_timer(first))),
        IPI => (Exit::SbiIpi, send_ipi(cpu, vcpu, function, (first, second))),
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
        Ok(request) => {
            let mut caller = Caller::new(cpu, vcpu);
            let answer = carry_out(&mut caller, request);
            caller.end();
            answer
        }
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

fn set_timer(at: u64) -> u64 {
    world::set_timer(at);
    0
}

#[inline(always)]
fn send_ipi(cpu: &mut Cpu, vcpu: VcpuId, function: u64, mask: (u64, u64)) -> ainori_sbi::Result<u64> {
    is_first(function)?;
    let mut caller = Caller::new(cpu, vcpu);
    caller.send_ipi(hart_mask(caller.guest.harts(), mask)?);
    Ok(0)
}
