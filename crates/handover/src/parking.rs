//! Where a vCPU is parked that no core has.
use alloc::boxed::Box;
use core::ptr;

use crate::atomic::{AtomicPtr, AtomicU32, Ordering, fence};

/// The place of one vCPU while no core has it, and the number of the core to ask for it.
///
/// `T` is the part of the vCPU that only its owner touches. It travels as a box: who has the box is the owner, and needs no
/// lock. Neither parking nor claiming ever waits, and the box's memory stays where it is.
///
/// ```
/// use ainori_handover::ParkingSlot;
///
/// let slot = ParkingSlot::new(1);
/// slot.park(Box::new("registers"), 1); // core 1 has somebody more urgent to run
/// assert_eq!(slot.claim(2).as_deref(), Some(&"registers"));
/// assert_eq!((slot.claim(3), slot.owner()), (None, 2), "whoever claims it first has it");
/// ```
pub struct ParkingSlot<T> {
    owner: AtomicU32,
    /// The box that is parked here, or null.
    parked: AtomicPtr<T>,
}

impl<T: Send> ParkingSlot<T> {
    /// An empty slot; the vCPU will be found at core `owner`.
    #[must_use]
    pub fn new(owner: u32) -> Self {
        Self { owner: AtomicU32::new(owner), parked: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The core to ask: the one that has the vCPU, or if it is parked, the one that it was parked for. By now that may have
    /// changed; an asker who has made its [request](crate::RequestWord::request) before it looks here need not care.
    #[inline]
    pub fn owner(&self) -> u32 {
        self.owner.load(Ordering::Relaxed)
    }

    /// Parks a vCPU that doesn't run, for others to claim; `owner` is the core to ask for it from now on.
    ///
    /// The caller must have claimed it, or be the first to have it. Then it looks at the vCPU's requests: an asker who has not found it
    /// parked is seen there.
    #[inline]
    pub fn park(&self, vcpu: Box<T>, owner: u32) {
        self.owner.store(owner, Ordering::Relaxed);
        let before = self.parked.swap(Box::into_raw(vcpu), Ordering::Release);
        debug_assert!(before.is_null(), "two boxes for one slot");
        fence(Ordering::SeqCst);
    }

    /// Is it parked here? If so, all that its last owner did with it comes before what the caller does next.
    #[inline]
    pub fn is_parked(&self) -> bool {
        !self.parked.load(Ordering::Acquire).is_null()
    }

    /// Claims it for core `me`, if it is parked and nobody was faster.
    ///
    /// Then the caller looks at its requests: an asker is either seen there, or sees the new owner.
    #[inline]
    pub fn claim(&self, me: u32) -> Option<Box<T>> {
        // Acquire here, though the fence below would do for the box: the new owner must come after the one that it was parked for.
        let taken = self.parked.swap(ptr::null_mut(), Ordering::Acquire);
        if taken.is_null() {
            return None;
        }
        self.owner.store(me, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Some(reclaim(taken))
    }
}

impl<T> Drop for ParkingSlot<T> {
    fn drop(&mut self) {
        let parked = self.parked.swap(ptr::null_mut(), Ordering::Relaxed);
        if !parked.is_null() {
            drop(reclaim(parked));
        }
    }
}

/// The box of a pointer that was swapped out of [`ParkingSlot::parked`].
#[inline]
#[expect(unsafe_code, reason = "a box has no atomic form; this is the only place")]
fn reclaim<T>(pointer: *mut T) -> Box<T> {
    // SAFETY: only `park` puts pointers there, each from a box that it consumes; both callers swap it for null in
    // one atomic step, so that it is handed out once, and they have checked that it isn't null.
    unsafe { Box::from_raw(pointer) }
}
