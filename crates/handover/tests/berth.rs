//! A berth between threads that run as they like, for Miri (`tools/soak miri`): it sees data races, what is freed twice or never, and
//! pointers that mean nothing any more. The orders of all atomics are tried by loom, in `src/model`.
#![cfg(not(loom))]
use std::thread;

use ainori_handover::Berth;

const ROUNDS: u64 = 20;

/// What one thread has written, the next one that takes the box reads, and nothing is lost.
#[test]
fn each_taker_sees_what_the_last_owner_wrote() {
    let berth = Berth::new(0);
    berth.lay_down(Box::new(0_u64), 0);
    thread::scope(|scope| {
        for core in 0..2 {
            let berth = &berth;
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let mut vcpu = loop {
                        if let Some(vcpu) = berth.take(core) {
                            break vcpu;
                        }
                        thread::yield_now();
                    };
                    *vcpu += 1;
                    berth.lay_down(vcpu, core);
                }
            });
        }
    });
    assert_eq!(*berth.take(0).unwrap(), 2 * ROUNDS);
}

#[test]
fn what_lies_is_freed_with_its_berth() {
    let berth = Berth::new(0);
    berth.lay_down(Box::new([7_u64; 4]), 0);
    drop(berth);
}
