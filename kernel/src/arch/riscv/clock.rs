//! The clock that all harts share.
use super::csr;

/// Now, in ticks of `time`.
#[inline(always)]
pub fn now() -> u64 {
    csr::read!(csr::TIME)
}
