//! Which vCPUs have a guest interrupt file of their hart, so that their interrupts reach them without the hypervisor; and which bells are files.
use alloc::vec::Vec;

use ainori_board::Board;
use ainori_devices::bus::{IMSIC_BASE, bell_page};
use ainori_devices::irqchip::Irqchip;
use ainori_limits::PAGE;
use ainori_sched::{Policy, VcpuId};

use super::sharing::cores_of;
use crate::arch::hart::Features;
use crate::guest::vcpu::{GuestFile, Vcpu};
use crate::guest::{BellFile, Guest, Peer};
use crate::memory::{GuestPhysical, HostPhysical};

/// Gives the files of each hart to those vCPUs that never leave it, the most urgent first. All others have theirs in memory: what is in a file of a hart
/// nobody but that hart could move. What is left is for bells that are heard there.
pub fn assign(
    vcpus: &mut [Vcpu],
    guests: &mut [Guest],
    board: &Board,
    features: &Features,
    policy: &Policy,
) -> Vec<BellFile> {
    let mut bells = Vec::new();
    // The hart would tell of all files of the most urgent vCPUs, also of those outside of their windows.
    if policy.has_windows() {
        return bells;
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
            let page = HostPhysical(own.get() + u64::from(number) * PAGE);
            let Some(vcpu) = most_urgent else {
                let Some((hearer, peer)) = add_bell(vcpus, guests, page, 1 << core, policy) else { break };
                bells.push(BellFile { core: core as u32, number, hearer, slot: peer.slot });
                continue;
            };
            if let Some(Guest { space, devices, .. }) = guests.get_mut(usize::from(vcpu.guest))
                && let Irqchip::Aia(aia) = &devices.irqchip
                && space.add_file(GuestPhysical(IMSIC_BASE + u64::from(vcpu.index) * PAGE), page)
            {
                aia.leave_to_hardware(vcpu.index as usize);
                vcpu.file = Some(GuestFile { number });
            }
        }
    }
    bells
}

/// Has a bell that is heard on this core, and on no other, rung by the page of a file. The first vCPU of the guest that hears it, and how that is reached; none if there is no such bell
/// any more.
fn add_bell(
    vcpus: &[Vcpu],
    guests: &mut [Guest],
    page: HostPhysical,
    core: u64,
    policy: &Policy,
) -> Option<(VcpuId, Peer)> {
    for guest in guests {
        for (slot, (peer, end)) in guest.peers.iter().zip(guest.devices.channels).enumerate() {
            let is_its_own = |vcpu: &&Vcpu| vcpu.guest == peer.guest;
            let first = VcpuId(vcpus.iter().position(|vcpu| is_its_own(&vcpu))? as u8);
            let is_heard_here = vcpus.iter().filter(is_its_own).all(|vcpu| cores_of(vcpu, policy) == core);
            if is_heard_here && !end.has_page() && guest.space.add_file(GuestPhysical(bell_page(slot)), page)
            {
                end.add_page();
                return Some((first, *peer));
            }
        }
    }
    None
}
