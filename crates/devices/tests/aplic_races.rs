//! The APLIC under every interleaving and every memory order that two cores can produce.
//! `RUSTFLAGS="--cfg loom" cargo test -p ainori-devices --test aplic_races --release`
#![cfg(loom)]

use ainori_devices::aplic::{Aplic, Delivery, Msi, Outside};
use loom::{sync::Arc, thread};

const DOMAINCFG: u64 = 0x0000;
const SOURCECFG: u64 = 0x0004;
const SETIPNUM: u64 = 0x1cdc;
const CLRIPNUM: u64 = 0x1ddc;
const SETIENUM: u64 = 0x1edc;
const TARGET: u64 = 0x3004;
const IDELIVERY: u64 = 0x4000;
const ITHRESHOLD: u64 = 0x4008;
const CLAIMI: u64 = 0x401c;

const IE: u32 = 1 << 8;
const EDGE1: u32 = 4;
const LEVEL1: u32 = 6;
const SOURCE: u32 = 1;
const PRIORITY: u32 = 3;
const TOP: u32 = SOURCE << 16 | PRIORITY;

/// What the controller does to others, counted.
#[derive(Default)]
struct Count {
    sent: u32,
    completed: u32,
}

impl Outside for Count {
    fn send(&mut self, msi: Msi) {
        assert_eq!(msi.identity, PRIORITY);
        self.sent += 1;
    }

    fn complete(&mut self, source: u32) {
        assert_eq!(source, SOURCE);
        self.completed += 1;
    }
}

fn write(aplic: &Aplic, offset: u64, value: u32) -> (u64, Count) {
    let mut count = Count::default();
    let harts = aplic.write(offset, 4, value, &mut count);
    (harts, count)
}

fn drive(aplic: &Aplic, high: bool) -> (u64, Count) {
    let mut count = Count::default();
    let harts = aplic.drive(SOURCE, high, &mut count);
    (harts, count)
}

/// A domain with source 1 for hart 0, in a mode, as all `but` one write leaves it.
fn domain(delivery: Delivery, mode: u32, relayed: bool, but: u64) -> Aplic {
    let aplic = Aplic::new(delivery);
    aplic.add(SOURCE, relayed);
    for (offset, value) in
        [(SOURCECFG, mode), (TARGET, PRIORITY), (DOMAINCFG, IE), (IDELIVERY, 1), (SETIENUM, SOURCE)]
    {
        if offset != but {
            write(&aplic, offset, value);
        }
    }
    aplic
}

/// Runs `other` on a second core while `here` runs on this one.
fn both<A: 'static, B>(
    aplic: &Arc<Aplic>,
    other: impl FnOnce(&Aplic) -> A + 'static,
    here: impl FnOnce(&Aplic) -> B,
) -> (A, B) {
    let shared = aplic.clone();
    let thread = thread::spawn(move || other(&shared));
    let here = here(aplic);
    (thread.join().unwrap(), here)
}

/// A wire rises while what still held its message back is written: it is sent by one of the two.
fn is_sent_once(offset: u64, value: u32) {
    loom::model(move || {
        let aplic = Arc::new(domain(Delivery::Msi, EDGE1, false, offset));
        let (wire, write) =
            both(&aplic, |aplic| drive(aplic, true).1.sent, |aplic| write(aplic, offset, value).1.sent);
        assert_eq!(wire + write, 1);
    });
}

#[test]
fn a_message_is_sent_once_though_its_source_is_just_enabled() {
    is_sent_once(SETIENUM, SOURCE);
}

#[test]
fn a_message_is_sent_once_though_the_domain_is_just_enabled() {
    is_sent_once(DOMAINCFG, IE);
}

/// A wire rises while what still held its interrupt back is written: one of the two finds the hart interrupted.
fn is_seen(aplic: Aplic, offset: u64, value: u32) {
    let aplic = Arc::new(aplic);
    let (told, seen) = both(
        &aplic,
        |aplic| drive(aplic, true).0 & 1 != 0 && aplic.is_pending(0),
        |aplic| write(aplic, offset, value).0 & 1 != 0 && aplic.is_pending(0),
    );
    assert!(told || seen);
    assert!(aplic.is_pending(0), "whoever looks later sees it, too");
}

#[test]
fn a_wire_and_what_lets_its_interrupt_through_do_not_miss_one_another() {
    for (offset, value) in [(SETIENUM, SOURCE), (DOMAINCFG, IE), (IDELIVERY, 1)] {
        loom::model(move || is_seen(domain(Delivery::Direct, LEVEL1, false, offset), offset, value));
    }
    loom::model(|| {
        let aplic = domain(Delivery::Direct, LEVEL1, false, 0xfff);
        write(&aplic, ITHRESHOLD, PRIORITY);
        is_seen(aplic, ITHRESHOLD, 0);
    });
}

/// A hart that finds a source quiet takes it out of the set of those that may ask: not if it has just begun to.
#[test]
fn a_source_that_is_ready_again_is_found() {
    loom::model(|| {
        let aplic = domain(Delivery::Direct, EDGE1, false, 0xfff);
        drive(&aplic, true);
        write(&aplic, CLRIPNUM, SOURCE);
        drive(&aplic, false);
        let aplic = Arc::new(aplic);
        both(&aplic, |aplic| drive(aplic, true), |aplic| aplic.is_pending(0));
        assert!(aplic.is_pending(0));
    });
}

#[test]
fn one_of_two_claims_wins() {
    loom::model(|| {
        let aplic = domain(Delivery::Direct, EDGE1, false, 0xfff);
        drive(&aplic, true);
        let aplic = Arc::new(aplic);
        let claim = |aplic: &Aplic| aplic.read(CLAIMI, 4, &mut Count::default()).0;
        let (first, second) = both(&aplic, claim, claim);
        assert_eq!(first + second, TOP);
    });
}

/// The board's interrupt must not be completed twice: it could have come again in between.
#[test]
fn a_relayed_source_is_completed_once() {
    loom::model(|| {
        let aplic = domain(Delivery::Msi, LEVEL1, true, 0xfff);
        assert_eq!(drive(&aplic, true).1.sent, 1);
        let aplic = Arc::new(aplic);
        let complete = |aplic: &Aplic| write(aplic, SETIPNUM, SOURCE).1.completed;
        let (first, second) = both(&aplic, complete, complete);
        assert_eq!(first + second, 1);
    });
}
