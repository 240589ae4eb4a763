//! Tables by the number of a vCPU or of a core. They have room for all that there can be, a power of two, so that an access needs no check,
//! and can't fail.
#![expect(clippy::indexing_slicing, reason = "no remainder is too large")]
use core::ops::{Index, IndexMut};

use ainori_limits::{MAX_HARTS, VCPU_SLOTS};
use ainori_sched::VcpuId;

/// Something of each vCPU.
pub struct ByVcpu<T>(pub [T; VCPU_SLOTS]);

impl<T> Index<VcpuId> for ByVcpu<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, id: VcpuId) -> &T {
        of_vcpu(&self.0, id)
    }
}

/// The one that is a vCPU's.
#[inline(always)]
pub fn of_vcpu<T>(all: &[T; VCPU_SLOTS], id: VcpuId) -> &T {
    &all[usize::from(id.0) % VCPU_SLOTS]
}

impl<T> IndexMut<VcpuId> for ByVcpu<T> {
    #[inline(always)]
    fn index_mut(&mut self, id: VcpuId) -> &mut T {
        &mut self.0[usize::from(id.0) % VCPU_SLOTS]
    }
}

/// Something of each core.
pub struct ByCore<T>(pub [T; MAX_HARTS]);

impl<T> Index<u32> for ByCore<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, core: u32) -> &T {
        &self.0[core as usize % MAX_HARTS]
    }
}
