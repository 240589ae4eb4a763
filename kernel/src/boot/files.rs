//! Which vCPUs have a guest interrupt file of their hart, so that their interrupts reach them without the hypervisor.
use ainori_board::Board;
use ainori_devices::bus::IMSIC_BASE;
use ainori_devices::irqchip::Irqchip;
use ainori_limits::PAGE;
use ainori_sched::Policy;

use super::sharing::cores_of;
use crate::arch::hart::Features;
use crate::guest::Guest;
use crate::guest::vcpu::{GuestFile, Vcpu};
use crate::memory::{GuestPhysical, HostPhysical};

/// Gives the files of each hart to those vCPUs that never leave it, the most urgent first. All others have theirs in memory: what is in a file of a hart
/// nobody but that hart could move.
pub fn assign(vcpus: &mut [Vcpu], guests: &mut [Guest], board: &Board, features: &Features, policy: &Policy) {
    // The hart would tell of all files of the most urgent vCPUs, also of those outside of their windows.
    if policy.has_windows() {
        return;
    }
    for (core, hart) in board.harts.iter().enumerate() {
        let Some(own) = hart.messages else { continue };
        for number in 1..=features.guest_files() {
            let may_have_one = |vcpu: &Vcpu, guest: &Guest| {
                cores_of(vcpu, policy) == 1 << core
                    && vcpu.file.is_none()
                    && matches!(&guest.devices.irqchip, Irqchip::Aia(aia) if aia.file(vcpu.index as usize).is_some())
            };
            let most_urgent = vcpus
                .iter_mut()
                .filter(|vcpu| may_have_one(vcpu, &guests[usize::from(vcpu.guest)]))
                // Of equals the last one would be taken.
                .rev()
                .max_by_key(|vcpu| vcpu.level_on(core as u32));
            let Some(vcpu) = most_urgent else { break };
            let guest = &mut guests[usize::from(vcpu.guest)];
            let Irqchip::Aia(aia) = &guest.devices.irqchip else { break };
            let file = GuestFile { number, page: HostPhysical(own.get() + u64::from(number) * PAGE) };
            if guest.space.add_file(GuestPhysical(IMSIC_BASE + u64::from(vcpu.index) * PAGE), file.page) {
                aia.leave_to_hardware(vcpu.index as usize);
                vcpu.file = Some(file);
            }
        }
    }
}
