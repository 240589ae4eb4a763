//! Where a vCPU lies that no core has.
use alloc::boxed::Box;
use core::ptr;

use crate::atomic::{AtomicPtr, AtomicU32, Ordering, fence};

/// The place of one vCPU while no core has it, and the number of the core to ask for it.
///
/// `T` is the part of the vCPU that only its owner touches. It travels as a box: who has the box is the owner, and needs no
/// lock. Neither laying down nor taking ever waits, and the box's memory stays where it is.
///
/// ```
/// use ainori_handover::Berth;
///
/// let berth = Berth::new(1);
/// berth.lay_down(Box::new("registers"), 1); // core 1 has somebody more urgent to run
/// assert_eq!(berth.take(2).as_deref(), Some(&"registers"));
/// assert_eq!((berth.take(3), berth.owner()), (None, 2), "the first taker has it");
/// ```
pub struct Berth<T> {
    owner: AtomicU32,
    /// The box that lies here, or null.
    lying: AtomicPtr<T>,
}

impl<T: Send> Berth<T> {
    /// An empty berth; the vCPU will be found at core `owner`.
    #[must_use]
    pub fn new(owner: u32) -> Self {
        Self { owner: AtomicU32::new(owner), lying: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The core to ask: the one that has the vCPU, or if it lies, the one that it was laid down for. By now that may have
    /// changed; an asker who has made its [request](crate::RequestWord::request) before it looks here need not care.
    #[inline]
    pub fn owner(&self) -> u32 {
        self.owner.load(Ordering::Relaxed)
    }

    /// Lays a vCPU that doesn't run down for others to take; `owner` is the core to ask for it from now on.
    ///
    /// The caller must have taken it, or be the first to have it. Then it looks at the vCPU's requests: an asker who has not found it
    /// lying is seen there.
    #[inline]
    pub fn lay_down(&self, vcpu: Box<T>, owner: u32) {
        self.owner.store(owner, Ordering::Relaxed);
        let before = self.lying.swap(Box::into_raw(vcpu), Ordering::Release);
        debug_assert!(before.is_null(), "two boxes for one berth");
        fence(Ordering::SeqCst);
    }

    /// Does it lie here? If so, all that its last owner did with it comes before what the caller does next.
    #[inline]
    pub fn lies(&self) -> bool {
        !self.lying.load(Ordering::Acquire).is_null()
    }

    /// Takes it for core `me`, if it lies and nobody was faster.
    ///
    /// Then the caller looks at its requests: an asker is either seen there, or sees the new owner.
    #[inline]
    pub fn take(&self, me: u32) -> Option<Box<T>> {
        // Acquire here, though the fence below would do for the box: the new owner must come after the one that was laid down for.
        let taken = self.lying.swap(ptr::null_mut(), Ordering::Acquire);
        if taken.is_null() {
            return None;
        }
        self.owner.store(me, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Some(reclaim(taken))
    }
}

impl<T> Drop for Berth<T> {
    fn drop(&mut self) {
        let lying = self.lying.swap(ptr::null_mut(), Ordering::Relaxed);
        if !lying.is_null() {
            drop(reclaim(lying));
        }
    }
}

/// The box of a pointer that was swapped out of [`Berth::lying`].
#[inline]
#[expect(unsafe_code, reason = "a box has no atomic form; this is the only place")]
fn reclaim<T>(pointer: *mut T) -> Box<T> {
    // SAFETY: only `lay_down` puts pointers there, each from a box that it consumes; both callers swap it for null in
    // one atomic step, so that it is handed out once, and they have checked that it isn't null.
    unsafe { Box::from_raw(pointer) }
}
