//! Two vCPUs of a guest on two cores: never on one.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use crate::{Seat, Seats};

const CORES: u32 = 2;

/// The seats, and how many vCPUs are at each.
struct Guest {
    seats: Seats,
    present: [AtomicU32; CORES as usize],
}

impl Guest {
    /// A vCPU wakes, goes to where there is a seat, and to another if there is one there, and sleeps.
    fn life(&self, first: u32) {
        let seat = Seat::new();
        let mut at = None;
        for core in [first, 1 - first] {
            let left = at;
            if let Some(core) = left {
                self.present[core as usize].fetch_sub(1, Ordering::Relaxed);
            }
            if seat.take(&self.seats, core) {
                at = Some(core);
            }
            if let Some(core) = at {
                let others = self.present[core as usize].fetch_add(1, Ordering::Relaxed);
                assert_eq!(others, 0, "two vCPUs on core {core}");
            }
        }
        if let Some(core) = at {
            self.present[core as usize].fetch_sub(1, Ordering::Relaxed);
        }
        seat.leave(&self.seats);
    }
}

/// Fails if the former seat is given back before the new one is had, or if a seat that is taken is taken once more.
#[test]
fn a_core_has_one_vcpu_of_a_guest() {
    loom::model(|| {
        let guest = Arc::new(Guest { seats: Seats::new(), present: [AtomicU32::new(0), AtomicU32::new(0)] });
        let other = thread::spawn({
            let guest = guest.clone();
            move || guest.life(0)
        });
        guest.life(1);
        other.join().unwrap();
        let seat = Seat::new();
        assert_eq!(seat.free(&guest.seats) & 0b11, 0b11, "all are given back");
    });
}
