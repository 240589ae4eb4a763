//! Page faults of vCPUs with shadow tables: what the hart found, and what is to become of it.
use ainori_limits::cause::exception;
use ainori_shadow::{Access, Fault};

use super::trap::Exception;

/// A page fault: by what the hart found there.
#[derive(Debug, Clone, Copy)]
pub struct PageFault {
    pub(super) access: Access,
    /// As in `stval`.
    pub(super) address: u64,
}

/// What is to become of it.
#[derive(Debug, Clone, Copy)]
pub enum Answer {
    /// The vCPU tries again.
    Again,
    /// It has to be asked for once more: a step of it has been done.
    NotYet,
    /// It is its guest's.
    Guest(Exception),
    /// The access doesn't go to memory. The present trap is the one that it would have been with two stages: a guest-page fault.
    Elsewhere,
}

impl PageFault {
    /// One that the hart has found, with this cause.
    #[inline(always)]
    pub(super) const fn new(cause: u64, address: u64) -> Self {
        Self { access: access_of(cause), address }
    }

    /// What the hypervisor has met with as it loaded something for the guest.
    pub fn of_load(failed: Exception) -> Option<Self> {
        let is_one = failed.cause == u64::from(exception::LOAD_PAGE_FAULT);
        is_one.then_some(Self { access: Access::Load, address: failed.value })
    }
}

const fn access_of(cause: u64) -> Access {
    const FETCH: u64 = exception::FETCH_PAGE_FAULT as u64;
    const LOAD: u64 = exception::LOAD_PAGE_FAULT as u64;
    match cause {
        FETCH => Access::Fetch,
        LOAD => Access::Load,
        _ => Access::Store,
    }
}

/// The numbers of what a guest gets for an access, and of the guest-page fault that a second stage would have given.
pub(super) fn causes_of(access: Access, fault: Fault) -> (u32, u32) {
    let (page, no_memory, elsewhere) = match access {
        Access::Fetch => {
            (exception::FETCH_PAGE_FAULT, exception::FETCH_ACCESS, exception::FETCH_GUEST_PAGE_FAULT)
        }
        Access::Load => {
            (exception::LOAD_PAGE_FAULT, exception::LOAD_ACCESS, exception::LOAD_GUEST_PAGE_FAULT)
        }
        Access::Store => {
            (exception::STORE_PAGE_FAULT, exception::STORE_ACCESS, exception::STORE_GUEST_PAGE_FAULT)
        }
    };
    (if fault == Fault::Page { page } else { no_memory }, elsewhere)
}

/// Is the instruction one that cleans, flushes or invalidates a cache block (Zicbom)? Its faults are those of stores, but it needs no more than a right to load.
pub(super) const fn is_block_operation(bits: u32) -> bool {
    /// CBO.INVAL, CBO.CLEAN and CBO.FLUSH without their operand, and the number of the next one, CBO.ZERO, which is a store.
    const OPERATION: u32 = 0x200f;
    const MASK: u32 = 0x7fff;
    const ZERO: u32 = 4;
    bits & MASK == OPERATION && bits >> 20 < ZERO
}
