//! A slot between threads that run as they like, for Miri (`tools/soak miri`): it sees data races, what is freed twice or never, and
//! pointers that mean nothing any more. The orders of all atomics are tried by loom, in `src/model`.
#![cfg(not(loom))]
use std::thread;

use ainori_handover::ParkingSlot;

const ROUNDS: u64 = 20;

/// What one thread has written, the next one that takes the box reads, and nothing is lost.
#[test]
fn each_taker_sees_what_the_last_owner_wrote() {
    let slot = ParkingSlot::new(0);
    slot.park(Box::new(0_u64), 0);
    thread::scope(|scope| {
        for core in 0..2 {
            let slot = &slot;
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let mut vcpu = loop {
                        if let Some(vcpu) = slot.claim(core) {
                            break vcpu;
                        }
                        thread::yield_now();
                    };
                    *vcpu += 1;
                    slot.park(vcpu, core);
                }
            });
        }
    });
    assert_eq!(*slot.claim(0).unwrap(), 2 * ROUNDS);
}

#[test]
fn what_is_parked_is_freed_with_its_slot() {
    let slot = ParkingSlot::new(0);
    slot.park(Box::new([7_u64; 4]), 0);
    drop(slot);
}
