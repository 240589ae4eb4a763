//! The APLIC under every interleaving and every memory order that two cores can produce.
//! `RUSTFLAGS="--cfg loom" cargo test -p ainori-devices --test aplic_races --release`
#![cfg(loom)]

use ainori_devices::aplic::{Aplic, Board, Delivery, Msi, Outside, RelayedTo};
use core::ops::RangeInclusive;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::{sync::Arc, thread};

const DOMAINCFG: u64 = 0x0000;
const SOURCECFG: u64 = 0x0004;
const SETIPNUM: u64 = 0x1cdc;
const CLRIPNUM: u64 = 0x1ddc;
const SETIE: u64 = 0x1e00;
const SETIENUM: u64 = 0x1edc;
const CLRIENUM: u64 = 0x1fdc;
const TARGET: u64 = 0x3004;
const IDELIVERY: u64 = 0x4000;
const ITHRESHOLD: u64 = 0x4008;
const CLAIMI: u64 = 0x401c;

const IE: u32 = 1 << 8;
const EDGE1: u32 = 4;
const LEVEL1: u32 = 6;
const SOURCE: u32 = 1;
const SECOND: u32 = 2;
const PRIORITY: u32 = 3;
const TOP: u32 = SOURCE << 16 | PRIORITY;

/// What the controller does to others, counted.
#[derive(Default)]
struct Count {
    sent: u32,
    completed: u32,
    leaves_some: bool,
}

impl Outside for Count {
    fn send(&mut self, msi: Msi) {
        assert_eq!(msi.identity, PRIORITY);
        self.sent += 1;
    }

    fn board(&mut self) -> &mut dyn Board {
        self
    }
}

impl Board for Count {
    fn complete(&mut self, source: u32, _: bool) {
        assert_eq!(source, SOURCE);
        self.completed += 1;
    }

    fn rearm(&mut self, _: usize, sources: u32) {
        assert_eq!(sources, 1 << SOURCE);
        self.completed += 1;
    }

    fn send_later(&mut self) {
        self.leaves_some = true;
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

/// Sends what a store has left.
fn send_all(aplic: &Aplic) -> u32 {
    let mut count = Count::default();
    while aplic.send_next(&mut count) {}
    count.sent
}

/// A store has left the messages of two sources. One core sends them, while another one does something: how many are sent by both.
fn sent_beside(other: fn(&Aplic) -> u32, expected: RangeInclusive<u32>) {
    loom::model(move || {
        let aplic = domain(Delivery::Msi, EDGE1, false, SETIENUM);
        aplic.add(SECOND, false);
        let second = [(SOURCECFG + 4, EDGE1), (TARGET + 4, PRIORITY)];
        for (offset, value) in second.into_iter().chain([SOURCE, SECOND].map(|source| (SETIPNUM, source))) {
            assert_eq!(write(&aplic, offset, value).1.sent, 0);
        }
        let store = write(&aplic, SETIE, 1 << SOURCE | 1 << SECOND).1;
        assert!(store.sent == 0 && store.leaves_some);
        let (theirs, ours) = both(&Arc::new(aplic), other, send_all);
        assert!(expected.contains(&(theirs + ours)), "{theirs} and {ours}");
    });
}

#[test]
fn messages_that_a_store_leaves_are_sent_once_though_two_cores_send_them() {
    sent_beside(send_all, 2..=2);
}

/// One of the two asks once more meanwhile: that is a third message, unless its first one hasn't been sent yet.
#[test]
fn messages_that_a_store_leaves_are_all_sent_though_one_asks_again() {
    sent_beside(|aplic| write(aplic, SETIPNUM, SECOND).1.sent, 2..=3);
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
        let aplic = domain(Delivery::Direct, LEVEL1, true, 0xfff);
        drive(&aplic, true);
        let claim = |aplic: &Aplic| {
            let mut count = Count::default();
            aplic.read(CLAIMI, 4, &mut count);
            count.completed
        };
        assert_eq!(claim(&aplic), 0, "it has yet to be served");
        let (first, second) = both(&Arc::new(aplic), claim, claim);
        assert_eq!(first + second, 1);
    });
}

/// One core has it sent, while another one takes back that it is pending.
#[test]
fn a_relayed_source_that_sends_messages_is_completed_once() {
    for mode in [EDGE1, LEVEL1] {
        loom::model(move || {
            let aplic = domain(Delivery::Msi, mode, true, SETIENUM);
            assert_eq!(drive(&aplic, true).1.completed, 0);
            let (sent, cleared) = both(
                &Arc::new(aplic),
                |aplic| write(aplic, SETIENUM, SOURCE).1,
                |aplic| write(aplic, CLRIPNUM, SOURCE).1,
            );
            assert_eq!(sent.completed + cleared.completed, 1);
            assert_eq!(sent.sent, sent.completed);
        });
    }
}

/// A board that can send a source's messages to where a domain would: where it does, as `target` has it, or 0.
struct Redirected<'a>(&'a AtomicU32);

impl Outside for Redirected<'_> {
    fn send(&mut self, _: Msi) {}

    fn board(&mut self) -> &mut dyn Board {
        self
    }
}

impl Board for Redirected<'_> {
    fn complete(&mut self, _: u32, _: bool) {}

    fn redirect(&mut self, _: u32, msi: Msi) -> bool {
        let before = self.0.swap((msi.hart as u32) << 18 | msi.identity, Ordering::Relaxed);
        assert_eq!(before, 0, "who has the source in hand finds it relayed");
        true
    }

    fn recall(&mut self, _: u32) {
        assert_ne!(self.0.swap(0, Ordering::Relaxed), 0, "one of those who recall it does");
    }
}

/// A relayed source is sent, served and sent once more, while its guest writes a register: in the end the board sends it to where the guest has it sent, or not at all.
fn goes_where_the_guest_says(offset: u64, value: u32) {
    loom::model(move || {
        let shared = Arc::new((domain(Delivery::Msi, LEVEL1, true, 0xfff), AtomicU32::new(0)));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            theirs.0.drive(SOURCE, true, &mut Redirected(&theirs.1));
            theirs.0.write(SETIPNUM, 4, SOURCE, &mut Redirected(&theirs.1));
        });
        let (aplic, aim) = &*shared;
        let mut outside = Redirected(aim);
        aplic.write(offset, 4, value, &mut outside);
        other.join().unwrap();
        let aim = aim.load(Ordering::Relaxed);
        if aim != 0 {
            let mut read = |offset| aplic.read(offset, 4, &mut outside).0;
            assert_eq!(read(TARGET), aim);
            assert_ne!(read(DOMAINCFG) & IE, 0);
            assert_ne!(read(SETIE) & 1 << SOURCE, 0);
            assert_ne!(read(SOURCECFG), 0);
        }
    });
}

#[test]
fn a_source_that_is_redirected_follows_its_target() {
    goes_where_the_guest_says(TARGET, 1 << 18 | PRIORITY);
}

#[test]
fn a_source_that_is_redirected_follows_its_enable_bit() {
    goes_where_the_guest_says(CLRIENUM, SOURCE);
}

#[test]
fn a_source_that_is_redirected_follows_its_mode() {
    goes_where_the_guest_says(SOURCECFG, EDGE1);
}

#[test]
fn a_source_that_is_redirected_follows_the_domain() {
    goes_where_the_guest_says(DOMAINCFG, 0);
}

/// Where the board sends the source, as its `target` has it: to the hart of the hypervisor, and to a guest interrupt file.
const OWN: u32 = 1 << 18 | 7;
const FILE: u32 = 1 << 18 | 1 << 12 | PRIORITY;

/// A board that sends a source's messages where it is told to, as the kernel tells it. The wire is high all the time, so each question sends one.
struct Asking {
    target: AtomicU32,
    relayed_to: RelayedTo,
    /// Messages that the hypervisor has to hand on, and those that have reached the guest.
    told: AtomicU32,
    arrived: AtomicU32,
}

/// The same while it is driven by one core.
struct AskingOn<'a>(&'a Asking);

impl Asking {
    fn new() -> Self {
        let [target, told, arrived] = [OWN, 0, 0].map(AtomicU32::new);
        Self { target, relayed_to: RelayedTo::default(), told, arrived }
    }

    fn asks(&self) {
        let to = if self.target.load(Ordering::Relaxed) == OWN { &self.told } else { &self.arrived };
        to.fetch_add(1, Ordering::Relaxed);
    }

    /// Hands on what there is.
    fn hand_on(&self, aplic: &Aplic) {
        while self.told.load(Ordering::Relaxed) != 0 {
            self.told.fetch_sub(1, Ordering::Relaxed);
            aplic.drive(SOURCE, true, &mut AskingOn(self));
        }
    }
}

impl Outside for AskingOn<'_> {
    fn send(&mut self, _: Msi) {
        self.0.arrived.fetch_add(1, Ordering::Relaxed);
    }

    fn board(&mut self) -> &mut dyn Board {
        self
    }
}

impl Board for AskingOn<'_> {
    fn complete(&mut self, source: u32, _: bool) {
        panic!("no hart claims {source}");
    }

    fn redirect(&mut self, _: u32, _: Msi) -> bool {
        self.0.relayed_to.note(self.0.target.load(Ordering::Relaxed));
        self.0.target.store(FILE, Ordering::Relaxed);
        true
    }

    fn recall(&mut self, _: u32) {
        self.0.target.store(self.0.relayed_to.get(), Ordering::Relaxed);
        self.0.asks();
    }

    fn ask_again(&mut self, _: usize, _: u32) {
        self.0.asks();
    }
}

/// A source has come once, and has been redirected. One core makes these `writes`, while this one does `here`; and `then` what has become of it is looked at.
fn redirected(
    writes: &'static [(u64, u32)],
    here: impl FnOnce(&Aplic, &Asking),
    then: impl FnOnce(&Aplic, &Asking),
) {
    let shared = Arc::new((domain(Delivery::Msi, LEVEL1, true, 0xfff), Asking::new()));
    shared.0.drive(SOURCE, true, &mut AskingOn(&shared.1));
    let theirs = shared.clone();
    let thread = thread::spawn(move || {
        for (offset, value) in writes {
            theirs.0.write(*offset, 4, *value, &mut AskingOn(&theirs.1));
        }
    });
    here(&shared.0, &shared.1);
    thread.join().unwrap();
    then(&shared.0, &shared.1);
}

/// One core has served the source while the other one recalls it, so that its next message may go where the guest doesn't want it any more. It asks still: who switches it on
/// again, and asks the wire as a driver does that has served a level, is interrupted.
#[test]
fn a_level_that_is_served_while_it_is_recalled_is_heard() {
    loom::model(|| {
        redirected(
            &[(SETIPNUM, SOURCE)],
            |aplic, board| _ = aplic.write(CLRIENUM, 4, SOURCE, &mut AskingOn(board)),
            |aplic, board| {
                board.hand_on(aplic);
                let before = board.arrived.load(Ordering::Relaxed);
                aplic.write(SETIENUM, 4, SOURCE, &mut AskingOn(board));
                aplic.write(SETIPNUM, 4, SOURCE, &mut AskingOn(board));
                if board.arrived.load(Ordering::Relaxed) == before {
                    board.hand_on(aplic);
                }
                assert_ne!(board.arrived.load(Ordering::Relaxed), before, "nobody ever hears of it");
            },
        );
    });
}

/// One that was on its way when the source was redirected comes while that is recalled, and has it redirected once more: where it is relayed to isn't forgotten.
#[test]
fn a_source_that_comes_while_it_is_recalled_is_never_relayed_to_a_file() {
    loom::model(|| {
        redirected(
            &[(SETIPNUM, SOURCE), (TARGET, 1 << 18 | PRIORITY)],
            |aplic, board| _ = aplic.drive(SOURCE, true, &mut AskingOn(board)),
            |aplic, board| {
                aplic.write(CLRIENUM, 4, SOURCE, &mut AskingOn(board));
                assert_eq!(board.target.load(Ordering::Relaxed), OWN);
            },
        );
    });
}
