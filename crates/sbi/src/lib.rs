//! The firmware that a guest sees, as far as it needs nobody else: a call is decoded and checked, and becomes a [`Request`] or an [`Error`].
//!
//! SBI 2.0 (<https://github.com/riscv-non-isa/riscv-sbi-doc>) with the extensions BASE, TIME, IPI, RFENCE, HSM, SRST and DBCN, the
//! [legacy] ones, and one of the hypervisor's own ([`AINORI`]) that no guest has to use. Who carries a request out is the kernel.
//!
//! | module | what |
//! |---|---|
//! | [`request`] | calls to requests |
//! | [`legacy`] | calls of before SBI 0.2 to calls of today |
//! | [`range`] | the pages that a remote fence is about |
//!
//! Every function does a bounded amount of work, whatever the guest passes.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod legacy;
mod numbers;
pub mod range;
pub mod request;
#[cfg(test)]
mod tests;

pub use numbers::*;
pub use range::Range;
pub use request::{Call, Reason, RemoteFence, Request, base, decode, hart_mask, is_first};

/// Error codes of the specification, chapter 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// There is no such extension, function or type.
    NotSupported = -2,
    /// An argument names something that isn't there, or is reserved.
    InvalidParameter = -3,
    /// It may not be done now, as things are.
    Denied = -4,
    /// An address isn't one where the guest can run or be written.
    InvalidAddress = -5,
    /// The hart runs already.
    AlreadyAvailable = -6,
}

/// What a call gives back: a value, or why not.
pub type Result<T> = core::result::Result<T, Error>;

/// What a call leaves behind in `a0` and `a1` (chapter 3).
#[inline]
#[must_use]
pub fn registers(result: Result<u64>) -> (u64, u64) {
    match result {
        Ok(value) => (0, value),
        Err(error) => (error as i64 as u64, 0),
    }
}
