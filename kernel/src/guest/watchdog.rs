//! A guest's watchdog, as its vCPUs reach it: in a kernel with the feature `watchdog`.
use ainori_devices::bus::WATCHDOG;
use ainori_sched::VcpuId;

use super::mmio::carry_out;
use crate::arch::clock;
use crate::arch::trap::Access;
use crate::cpu::Cpu;
use crate::cpu::housekeeping::Chore;
use crate::stats::Exit;

/// Carries out a load or store of the running vCPU, if it is one of its guest's watchdog.
pub fn access(cpu: &mut Cpu, vcpu: VcpuId, access: Access) -> Option<Exit> {
    let watchdog = cpu.machine.guest_of(vcpu).watchdog.as_ref()?;
    let offset = WATCHDOG.offset(access.address)?;
    let mut is_sooner = false;
    let exit = carry_out(
        cpu,
        vcpu,
        access,
        Exit::Device,
        |_, width| Some(u64::from(watchdog.read(offset, width))),
        |_, width, value| {
            is_sooner = watchdog.write(offset, width, value, clock::now());
            Some(())
        },
    );
    if is_sooner {
        cpu.ask_housekeeper_later(Chore::Restarts);
    }
    Some(exit)
}
