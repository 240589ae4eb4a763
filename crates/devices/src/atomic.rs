//! The atomics that the interrupt controllers are built from: those of `core`, or loom's in their race tests.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

/// Defines a function that makes `N` atomics of value zero. It is `const`, except under loom, which registers each of them at run time.
macro_rules! zeros {
    ($(#[$attribute:meta])* $name:ident: $Atomic:ident) => {
        #[cfg(not(loom))]
        $(#[$attribute])*
        pub(crate) const fn $name<const N: usize>() -> [$Atomic; N] {
            [const { $Atomic::new(0) }; N]
        }
        #[cfg(loom)]
        $(#[$attribute])*
        pub(crate) fn $name<const N: usize>() -> [$Atomic; N] {
            core::array::from_fn(|_| $Atomic::new(0))
        }
    };
}

zeros!(
    /// `N` words of value zero.
    zeros: AtomicU32
);
zeros!(
    /// `N` words with a bit for each hart, of which none is set.
    no_harts: AtomicU64
);

/// Defines a constructor that is `const`, except under loom, whose atomics have none.
macro_rules! const_constructor {
    ($(#[$attribute:meta])* pub fn $($rest:tt)*) => {
        #[cfg(not(loom))]
        $(#[$attribute])* pub const fn $($rest)*
        #[cfg(loom)]
        $(#[$attribute])* pub fn $($rest)*
    };
}

/// A word of a table whose length is a power of two. All indices are below it, and the compiler need not check that.
#[inline(always)]
#[expect(clippy::indexing_slicing, reason = "no remainder is too large")]
pub(crate) fn at<T, const N: usize>(table: &[T; N], index: usize) -> &T {
    debug_assert!(index < N);
    &table[index % N]
}
