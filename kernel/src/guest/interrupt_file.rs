//! Instructions of guests that reach their interrupt files (AIA, chapter 3), which trap as the hart has no file for them.
use ainori_devices::irqchip::Irqchip;
use ainori_devices::zicsr::{CsrAccess, CsrInstruction, CsrRegister};
use ainori_sched::VcpuId;

use crate::arch::trap::Exception;
use crate::arch::world;
use crate::cpu::Cpu;
use crate::stats::Exit;

/// Carries out the instruction that has just trapped as an illegal one. `None` if it is that: it isn't one of these, there is no such register, or no
/// file, or it isn't the guest's kernel that wants it.
pub fn access(cpu: &mut Cpu, vcpu: VcpuId, trapped: Exception) -> Option<Exit> {
    let machine = cpu.machine;
    let guest = machine.guest_of(vcpu);
    let Irqchip::Aia(aia) = &guest.devices.irqchip else { return None };
    let hart = machine.vcpu(vcpu).index;
    let file = aia.file(hart as usize)?;
    let instruction = CsrInstruction::decode(trapped.value as u32)?;
    let state = cpu.state(vcpu);
    if !state.is_in_kernel() {
        return None;
    }
    let access = instruction.access(|number| state.register(number));
    let value = match instruction.register {
        CsrRegister::Top => file.access_top(access).into(),
        CsrRegister::Indirect => file.access(world::indirect_register(), access)?,
        #[cfg(feature = "shadow")]
        CsrRegister::AddressSpace => return None,
    };
    state.set_register(instruction.rd, value);
    state.skip(CsrInstruction::LENGTH);
    if access != CsrAccess::Read {
        cpu.look_at_harts(guest, 1 << hart);
    }
    Some(Exit::InterruptFile)
}
