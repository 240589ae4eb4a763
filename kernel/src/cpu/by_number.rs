//! Tables by the number of a vCPU or of a core. They have room for all that there can be, a power of two, so that an access needs no check,
//! and can't fail.
#![expect(clippy::indexing_slicing, reason = "no remainder is too large")]
use core::ops::{Index, IndexMut};

use ainori_manifest::config::MAX_HARTS;
use ainori_sched::{MAX_VCPUS, VcpuId};

/// Something of each vCPU.
pub struct ByVcpu<T>(pub [T; MAX_VCPUS]);

impl<T> Index<VcpuId> for ByVcpu<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, id: VcpuId) -> &T {
        &self.0[usize::from(id.0) % MAX_VCPUS]
    }
}

impl<T> IndexMut<VcpuId> for ByVcpu<T> {
    #[inline(always)]
    fn index_mut(&mut self, id: VcpuId) -> &mut T {
        &mut self.0[usize::from(id.0) % MAX_VCPUS]
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
