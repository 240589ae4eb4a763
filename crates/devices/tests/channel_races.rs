//! A bell under every interleaving and every memory order of two cores.
//! `RUSTFLAGS="--cfg loom" cargo test -p ainori-devices --test channel_races --release`
#![cfg(loom)]

use ainori_devices::channel::{Effect, Endpoint, layout};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

fn unmasked() -> Arc<Endpoint> {
    let end = Arc::new(Endpoint::new(0, 0, 4096));
    assert_eq!(end.write(layout::MASK, 4, 1), Effect::Nothing);
    end
}

/// A bell is heard by the look at the status that comes just then, or interrupts once more.
#[test]
fn no_bell_is_lost_while_the_last_is_heard() {
    loom::model(|| {
        let end = unmasked();
        assert!(end.ring());
        let ringer = thread::spawn({
            let end = end.clone();
            move || end.ring()
        });
        assert_eq!(end.read(layout::STATUS, 4), 1);
        let interrupts = ringer.join().unwrap();
        assert_eq!(end.read(layout::STATUS, 4), u32::from(interrupts));
    });
}

/// One of the two makes the interrupt, whichever comes last.
#[test]
fn a_bell_that_is_just_being_unmasked_interrupts_once() {
    loom::model(|| {
        let end = Arc::new(Endpoint::new(0, 0, 4096));
        let ringer = thread::spawn({
            let end = end.clone();
            move || end.ring()
        });
        let unmasking = end.write(layout::MASK, 4, 1) == Effect::Interrupt;
        assert!(unmasking ^ ringer.join().unwrap());
    });
}

/// Two cores have it to hand on, as a bell can ring by a register and by a page: one of them makes the interrupt.
#[test]
fn a_bell_that_two_cores_hand_on_interrupts_once() {
    loom::model(|| {
        let end = unmasked();
        let other = thread::spawn({
            let end = end.clone();
            move || {
                let _ = end.ring();
                end.take_due()
            }
        });
        let _ = end.ring();
        let here = end.take_due();
        assert!(here ^ other.join().unwrap());
    });
}

/// What was written into the channel's memory before the bell is there when it is heard.
#[test]
fn a_bell_comes_behind_what_it_is_about() {
    loom::model(|| {
        let (end, message) = (unmasked(), Arc::new(AtomicU32::new(0)));
        let ringer = thread::spawn({
            let (end, message) = (end.clone(), message.clone());
            move || {
                message.store(1, Ordering::Relaxed);
                end.ring()
            }
        });
        if end.read(layout::STATUS, 4) == 1 {
            assert_eq!(message.load(Ordering::Relaxed), 1);
        }
        ringer.join().unwrap();
    });
}
