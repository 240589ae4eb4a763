//! A guest did what it may not do: it is stopped and reported with its registers, the others go on.
use ainori_manifest::config::OnWildAccess;
use ainori_sched::VcpuId;

use crate::arch::csr::status;
use crate::arch::guest_access::fetch_instruction;
use crate::arch::trap::GuestPageFault;
use crate::arch::{Exception, world};
use crate::cpu::Cpu;
use crate::report;
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
    /// A trap that the hypervisor doesn't know.
    Unknown,
}

impl What {
    const fn text(self) -> &'static str {
        match self {
            Self::Fetch => "instruction fetch from an address that is not the guest's",
            Self::Load => "load from an address that is not the guest's",
            Self::Store => "store to an address that is not the guest's",
            Self::Access => "access to a device with an instruction or a width that devices do not take",
            Self::IllegalInstruction => "illegal instruction, and no trap handler set (stvec is 0)",
            Self::Unknown => "trap with a cause that the hypervisor does not know",
        }
    }
}

/// The running vCPU has accessed what it doesn't have: it gets the access fault that it would have got from a machine of its own, or,
/// if the manifest wants that or it has no trap handler that it could reach, its guest is stopped.
pub fn wild(cpu: &mut Cpu, vcpu: VcpuId, what: What, cause: Exception, fault: &GuestPageFault) -> Exit {
    let traps = cpu.machine.guest_of(vcpu).config.on_wild_access == OnWildAccess::Trap;
    let context = cpu.context(vcpu);
    let handler_is_wild = what == What::Fetch && world::is_at_trap_vector(context);
    if traps && !handler_is_wild && world::deliver(context, cause.access_fault(), fault.value) {
        return Exit::Wild;
    }
    stop(cpu, vcpu, what, cause.code(), fault.address)
}

/// Stops the guest of the running vCPU for a fault that this vCPU has just made. `address`: guest-physical where the fault has one, else
/// `stval`.
pub fn stop(cpu: &mut Cpu, vcpu: VcpuId, what: What, cause: u64, address: u64) -> Exit {
    let machine = cpu.machine;
    let guest = machine.guest_of(vcpu);
    if guest.stop() {
        let context = cpu.context(vcpu);
        let fault = report::Fault {
            what: what.text(),
            pc: context.pc,
            cause,
            address,
            instruction: if what == What::Fetch { 0 } else { fetch_instruction(context.pc).unwrap_or(0) },
            mode: if context.sstatus & status::SPP != 0 { "VS" } else { "VU" },
            x: &context.x,
            csr: world::report_registers(),
        };
        report::stopped(machine, vcpu, "fault", crate::arch::csr::time(), Some(&fault));
        cpu.wake_console();
        cpu.stop_guest(guest);
    }
    Exit::Fault
}
