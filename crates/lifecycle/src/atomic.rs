//! The atomics that everything here is made of: those of `core`, or loom's in its model.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
