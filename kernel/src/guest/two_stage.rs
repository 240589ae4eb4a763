//! What [`translation`](super) is in a kernel whose guests all have two stages: nothing but that. All of this goes when it is compiled.
use ainori_board::{Board, Isa};
use ainori_handover::Fence;
use ainori_sbi::Range;
use ainori_sched::VcpuId;

use crate::arch::fence as hart_fence;
use crate::arch::shadow::{AddressSpaceAccess, GuestFence, OwnShadow, PageFault};
use crate::arch::trap::Exception;
use crate::cpu::{Cpu, Machine};
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

    #[inline(always)]
    pub const fn restrict(&self, _: &mut Isa) {}

    #[inline(always)]
    pub fn mmu<'a>(&self, board: &'a Board) -> &'a str {
        &board.mmu
    }

    #[inline(always)]
    pub const fn shadow(&self, _: VcpuId, _: &Machine) -> OwnShadow {
        OwnShadow
    }

    /// As what a fence of its translations is recorded.
    #[inline(always)]
    pub const fn fence(&self, _: Option<u64>) -> Fence {
        Fence::TRANSLATIONS
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
