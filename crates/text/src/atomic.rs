//! The atomics and the lock that everything here is made of: those of `core` and of [`spin`], or loom's in its model.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, Ordering};
#[cfg(not(loom))]
pub(crate) use spin::Mutex;

#[cfg(loom)]
pub(crate) use self::of_model::Mutex;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, Ordering};

#[cfg(loom)]
mod of_model {
    use loom::sync::MutexGuard;

    /// Loom's, which orders what it guards as [`spin::Mutex`] does, with that one's functions. How that one is made itself isn't tried here.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("nobody panics under it")
        }

        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }
    }
}
