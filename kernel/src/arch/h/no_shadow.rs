//! What [`shadow`](super) is in a kernel whose guests all have two stages: nothing. All of this goes when it is compiled.
use super::VcpuState;
use super::fence;
use super::hart::DELEGATED;
use super::trap::Trap;
use crate::arch::riscv::csr;

/// Can guests have shadow tables?
pub const BUILT: bool = false;

/// What there is none of.
#[derive(Debug, Clone, Copy)]
enum Never {}

/// The shadow of a vCPU.
#[derive(Debug)]
pub struct OwnShadow;

/// See [`Trap::PageFault`].
#[derive(Debug, Clone, Copy)]
pub struct PageFault(Never);

/// See [`Trap::AddressSpace`].
#[derive(Debug, Clone, Copy)]
pub struct AddressSpaceAccess(Never);

/// See [`Trap::Fence`].
#[derive(Debug, Clone, Copy)]
pub struct GuestFence(Never);

/// What this hart has cached of the loaded guest's own translations.
#[derive(Debug)]
pub struct Cached;

impl Cached {
    #[inline(always)]
    pub const fn of(_: &VcpuState) -> Self {
        Self
    }

    #[inline(always)]
    pub fn forget(self) {
        fence::guest_all();
    }
}

/// What a hart has in `hgatp` when no vCPU is loaded any more: what the last one had.
#[inline(always)]
pub const fn forget_second_stage() {}

#[expect(clippy::unused_self, reason = "as there is one to ask elsewhere")]
impl OwnShadow {
    #[inline(always)]
    pub(super) const fn hstatus(&self) -> u64 {
        0
    }

    #[inline(always)]
    pub(super) const fn hgatp(&self, two_stage: u64) -> u64 {
        two_stage
    }

    #[inline(always)]
    pub(super) const fn vsatp(&self) -> u64 {
        0
    }

    #[inline(always)]
    pub(super) const fn satp(&self, hart: u64) -> u64 {
        hart
    }

    #[inline(always)]
    pub(super) const fn reset(&mut self) {}

    #[inline(always)]
    pub(super) const fn modes_are_switched(&self) -> bool {
        false
    }

    #[inline(always)]
    pub(super) const fn delegated(&self) -> u64 {
        DELEGATED
    }

    #[inline(always)]
    pub(super) const fn enter(&mut self, _: &mut u64) {}
}

impl VcpuState {
    /// Of the loaded one: its translation is off.
    #[inline(always)]
    pub(super) fn leave_address_space(&mut self) {
        // SAFETY: the register concerns only guests; without tables of its own this one reaches its memory, and nothing else.
        unsafe { csr::write!(csr::VSATP, 0) }
    }
}

impl PageFault {
    #[inline(always)]
    pub(super) fn of<'a>(_: u64, _: impl FnOnce() -> &'a mut VcpuState) -> Option<Self> {
        None
    }
}

impl Trap {
    #[inline(always)]
    pub(super) fn of_shadow(_: &VcpuState, _: u64) -> Option<Self> {
        None
    }
}

/// There is none of these.
macro_rules! never {
    ($($name:ident)*) => {$(
        impl $name {
            #[inline(always)]
            pub const fn never(self) -> crate::stats::Exit {
                match self.0 {}
            }
        }
    )*};
}

never! { PageFault AddressSpaceAccess GuestFence }
