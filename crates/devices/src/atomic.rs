//! The atomics that [`crate::plic`] is built from: those of `core`, or loom's in its race tests.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// `N` atomics of value zero.
#[cfg(not(loom))]
pub(crate) const fn zeros<const N: usize>() -> [AtomicU32; N] {
    [const { AtomicU32::new(0) }; N]
}

/// `N` atomics of value zero. Loom registers each of them at run time, so this can't be `const`.
#[cfg(loom)]
pub(crate) fn zeros<const N: usize>() -> [AtomicU32; N] {
    core::array::from_fn(|_| AtomicU32::new(0))
}

/// The same of words with a bit for each hart.
#[cfg(not(loom))]
pub(crate) const fn no_harts<const N: usize>() -> [AtomicU64; N] {
    [const { AtomicU64::new(0) }; N]
}

/// The same under loom.
#[cfg(loom)]
pub(crate) fn no_harts<const N: usize>() -> [AtomicU64; N] {
    core::array::from_fn(|_| AtomicU64::new(0))
}

/// Defines a constructor that is `const`, except under loom, whose atomics have none.
macro_rules! const_constructor {
    ($(#[$attribute:meta])* pub fn $($rest:tt)*) => {
        #[cfg(not(loom))]
        $(#[$attribute])* pub const fn $($rest)*
        #[cfg(loom)]
        $(#[$attribute])* pub fn $($rest)*
    };
}
