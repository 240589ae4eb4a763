//! A guest did what it may not do: it gets an access fault, or is stopped and reported with its registers. The others go on.
use ainori_lifecycle::Cause;
use ainori_manifest::config::OnWildAccess;
use ainori_sched::VcpuId;

use super::{stop, translation};
use crate::arch::guest_access::FailedLoad;
use crate::arch::shadow;
use crate::arch::trap::{Access, Exception, fetch};
use crate::cpu::Cpu;
use crate::stats::Exit;

/// What a guest did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Fetched where it has no memory.
    Fetch,
    /// Loaded from where it has neither memory nor a device.
    Load,
    /// Stored to where it has neither memory nor a device.
    Store,
    /// Accessed a device with an instruction that devices don't take.
    Access,
    /// Executed an illegal instruction, with no trap handler of its own.
    IllegalInstruction,
    /// Trapped in user mode, with no trap handler of its own.
    Unhandled,
    /// A trap that the hypervisor doesn't know.
    Unknown,
    /// It showed no sign of life in time, and this vCPU could run.
    #[cfg(feature = "watchdog")]
    Hang,
    /// It showed no sign of life in time, and all of its vCPUs slept.
    #[cfg(feature = "watchdog")]
    Sleep,
    /// Accessed what its tables don't have, in whichever mode, with no trap handler of its own.
    #[cfg(feature = "shadow")]
    Translation,
}

impl What {
    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Fetch => "instruction fetch from an address that is not the guest's",
            Self::Load => "load from an address that is not the guest's",
            Self::Store => "store to an address that is not the guest's",
            Self::Access => "access to a device with an instruction or a width that devices do not take",
            Self::IllegalInstruction => "illegal instruction, and no trap handler set (stvec is 0)",
            Self::Unhandled => "trap in user mode, and no trap handler set (stvec is 0)",
            Self::Unknown => "trap with a cause that the hypervisor does not know",
            #[cfg(feature = "watchdog")]
            Self::Hang => "no sign of life in time, while it computes",
            #[cfg(feature = "watchdog")]
            Self::Sleep => "no sign of life in time, while it sleeps",
            #[cfg(feature = "shadow")]
            Self::Translation => "page fault or access fault, and no trap handler set (stvec is 0)",
        }
    }
}

/// The circumstances of a fault, and the guest's registers at that moment.
pub struct Fault {
    /// What the guest did.
    pub what: What,
    /// Guest-virtual address of the instruction.
    pub pc: u64,
    /// Number of the trap, as the hart has it.
    pub cause: u64,
    /// Guest-physical address, or what else belongs to the trap.
    pub address: u64,
    /// The instruction, or 0.
    pub instruction: u32,
    /// The mode that it was in.
    pub mode: &'static str,
    /// General registers.
    pub x: [u64; 32],
    /// Registers of its kernel, by name.
    pub system: [(&'static str, u64); 6],
}

/// The running vCPU has accessed what it doesn't have: it gets the access fault that it would have got from a machine of its own, or,
/// if the manifest wants that or it has no trap handler that it could reach, its guest is stopped.
pub fn wild(cpu: &mut Cpu, vcpu: VcpuId, what: What, access: Access) -> Exit {
    let traps = cpu.machine.guest_of(vcpu).config.on_wild_access == OnWildAccess::Trap;
    if traps && cpu.state(vcpu).deliver_access_fault(&access) {
        return Exit::Wild;
    }
    stop(cpu, vcpu, what, access.exception())
}

/// A load from the guest's memory that the hypervisor made for the running vCPU has just failed: the vCPU gets the fault that it would have
/// got for it.
#[cold]
pub fn of_load(cpu: &mut Cpu, vcpu: VcpuId, failed: FailedLoad) -> Exit {
    match failed {
        FailedLoad::NoMemory(access) => wild(cpu, vcpu, What::Load, access),
        FailedLoad::Refused(exception)
            if shadow::BUILT && translation::answers_load(cpu, vcpu, exception) =>
        {
            Exit::SbiOther
        }
        FailedLoad::Refused(exception) if cpu.state(vcpu).deliver(exception) => Exit::SbiOther,
        FailedLoad::Refused(exception) => stop(cpu, vcpu, What::Load, exception),
    }
}

/// Stops the guest of the running vCPU for a fault that this vCPU has just made.
pub fn stop(cpu: &mut Cpu, vcpu: VcpuId, what: What, exception: Exception) -> Exit {
    stop::stop(cpu, vcpu, "fault", Cause::Failure, |cpu| {
        let state = cpu.state(vcpu);
        Some(Fault {
            what,
            pc: state.pc(),
            cause: exception.cause,
            address: exception.value,
            instruction: if what == What::Fetch { 0 } else { fetch(state, exception.cause).unwrap_or(0) },
            mode: state.mode(),
            x: *state.registers(),
            system: state.system_registers(),
        })
    });
    Exit::Fault
}
