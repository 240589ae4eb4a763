//! Askers who keep quiet.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use super::Plain;
use crate::{ParkingSlot, PublishedThreshold, RequestWord};

/// The level of the vCPU that is asked for, and the core's when it runs nothing more urgent.
const LOW: u8 = 1;
/// The level of what the core runs else.
const HIGH: u8 = 2;

/// Core 0, which owns the vCPU, and the messages to it.
struct Machine {
    threshold: PublishedThreshold,
    parking: ParkingSlot<Plain>,
    requests: RequestWord,
    mail: AtomicU32,
    /// Somebody has found the vCPU parked with a request, and has kicked a core that claims it.
    kicked: AtomicU32,
}

impl Machine {
    fn new(level: u8) -> Arc<Self> {
        let machine = Self {
            threshold: PublishedThreshold::new(level),
            parking: ParkingSlot::new(0),
            requests: RequestWord::new(),
            mail: AtomicU32::new(0),
            kicked: AtomicU32::new(0),
        };
        Arc::new(machine)
    }

    fn ask(&self) {
        self.requests.request(1);
        if self.parking.is_parked() {
            self.kick();
        } else if self.threshold.level() <= LOW {
            self.mail.fetch_or(1, Ordering::Release);
        }
        // Otherwise the core looks when it has done with what is more urgent, or parks the vCPU.
    }

    fn kick(&self) {
        self.kicked.store(1, Ordering::Relaxed);
    }
}

/// Fails without the fence in `PublishedThreshold::lower` or the one in `RequestWord::request`.
#[test]
fn who_lowers_its_threshold_sees_what_was_left_undone() {
    loom::model(|| {
        let machine = Machine::new(HIGH);
        let asker = thread::spawn({
            let machine = machine.clone();
            move || machine.ask()
        });
        machine.threshold.lower(LOW);
        let mut served = machine.requests.any() && machine.requests.take() != 0;
        asker.join().unwrap();
        if machine.mail.load(Ordering::Acquire) != 0 {
            served |= machine.requests.take() != 0;
        }
        assert!(served, "lost");
    });
}

/// Something more urgent takes the core, which parks the vCPU: a request must have it taken now, not when the core has
/// time again.
///
/// Fails without the fence in `ParkingSlot::park`.
#[test]
fn who_lays_down_sees_what_was_left_undone() {
    loom::model(|| {
        let machine = Machine::new(LOW);
        let asker = thread::spawn({
            let machine = machine.clone();
            move || machine.ask()
        });
        machine.threshold.raise(HIGH);
        machine.parking.park(Box::new(Plain::new()), 0);
        if machine.requests.any() {
            machine.kick();
        }
        asker.join().unwrap();
        let told = machine.mail.load(Ordering::Relaxed) != 0;
        assert!(told || machine.kicked.load(Ordering::Relaxed) != 0, "nobody looks");
    });
}
