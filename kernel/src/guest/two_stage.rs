//! What [`translation`](super) is in a kernel whose guests all have two stages: nothing but that. All of this goes when it is compiled.
use ainori_board::{Board, Isa};
use ainori_handover::{Answers, Fence, Fences, Recorded};
use ainori_manifest::config::{GUEST_MEMORY_ALIGN, GUEST_MEMORY_BASE, System};
use ainori_sbi::Range;
use ainori_sched::VcpuId;

use super::vcpu::Vcpu;
use crate::arch::fence as hart_fence;
use crate::arch::shadow::{AddressSpaceAccess, GuestFence, OwnShadow, PageFault};
use crate::arch::trap::Exception;
use crate::cpu::{Cpu, Machine};
use crate::memory::{self, HostPhysical};
use crate::stats::Exit;

/// Called by the trap entry for all but the core's timer.
pub use crate::cpu::event::handle_exception as trapped;

/// How the addresses of a guest are translated.
pub struct GuestTranslation;

impl GuestTranslation {
    #[inline(always)]
    pub const fn of(_: &[u8], _: u8) -> Self {
        Self
    }

    /// Guests' memory is where there is room, and begins for all of them at the same address.
    #[inline(always)]
    pub const fn set_places_apart(_: &[u8], _: &System) {}

    /// Where its memory begins for the guest.
    #[inline(always)]
    pub const fn base(&self) -> u64 {
        GUEST_MEMORY_BASE
    }

    /// Where something is for the guest that would be at `address` if its memory began at [`GUEST_MEMORY_BASE`].
    #[inline(always)]
    pub const fn moved(&self, address: u64) -> u64 {
        address
    }

    /// Takes its memory.
    #[inline(always)]
    pub fn take_memory(&self, size: u64) -> Option<HostPhysical> {
        memory::take_for_guest(size, GUEST_MEMORY_ALIGN)
    }

    /// Do accesses to what isn't its own come to the hypervisor?
    #[inline(always)]
    pub const fn confines(&self) -> bool {
        true
    }

    #[inline(always)]
    pub const fn extend(&self, _: &mut Isa) {}

    #[inline(always)]
    pub fn mmu<'a>(&self, board: &'a Board) -> &'a str {
        &board.mmu
    }

    #[inline(always)]
    pub const fn shadow(&self, _: VcpuId, _: &Machine) -> OwnShadow {
        OwnShadow
    }

    /// What a fence of its translations is to others.
    #[inline(always)]
    pub const fn fence(&self, _: Range, _: Option<u64>) -> Recordable {
        Recordable(Fence::TRANSLATIONS)
    }
}

/// What this hart lacks for the guests of this system. Only at boot.
#[inline(always)]
pub const fn lacks(_: &Machine) -> Option<&'static str> {
    None
}

/// A fence that is to be recorded for some vCPUs.
#[derive(Clone, Copy)]
pub struct Recordable(Fence);

impl From<Fence> for Recordable {
    #[inline(always)]
    fn from(fence: Fence) -> Self {
        Self(fence)
    }
}

impl Recordable {
    /// Records it for a vCPU, as [`Fences::record`].
    #[inline(always)]
    pub fn record(self, _: &mut Cpu, fences: &Fences, sender: VcpuId, answers: &Answers) -> Recorded {
        fences.record(self.0, sender, answers)
    }
}

#[inline(always)]
pub const fn page_fault(_: &mut Cpu, _: VcpuId, fault: PageFault) -> Exit {
    fault.never()
}

#[inline(always)]
pub const fn address_space(_: &mut Cpu, _: VcpuId, access: AddressSpaceAccess) -> Exit {
    access.never()
}

#[inline(always)]
pub const fn fence(_: &mut Cpu, _: VcpuId, fence: GuestFence) -> Exit {
    fence.never()
}

#[inline(always)]
pub const fn answers_load(_: &mut Cpu, _: VcpuId, _: Exception) -> bool {
    false
}

/// Carries out the part of a remote fence that is the caller's own.
#[inline(always)]
pub fn fence_own(_: &mut Cpu, _: VcpuId, range: Range, asid: Option<u64>) {
    super::caller::translations(range, asid);
}

/// Somebody has a core look at a vCPU.
#[inline(always)]
pub fn look_at(cpu: &mut Cpu, vcpu: VcpuId) {
    ainori_handover::look_at(cpu, vcpu);
}

#[inline(always)]
pub const fn answered(_: &mut Cpu, _: bool) {}

#[inline(always)]
pub const fn is_owed(_: &Vcpu) -> bool {
    false
}

#[inline(always)]
pub const fn gives_way(_: &mut Cpu, _: VcpuId) -> bool {
    false
}

/// Carries out what has been recorded for the translations of a vCPU that is about to be entered.
#[inline(always)]
pub fn carry_out(_: &mut Cpu, _: VcpuId, recorded: Fence) {
    if recorded.contains(Fence::TRANSLATIONS) {
        hart_fence::guest_all();
    }
}
