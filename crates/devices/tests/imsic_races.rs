//! An interrupt file under every interleaving and every memory order that two or three cores can produce.
//! `RUSTFLAGS="--cfg loom" cargo test -p ainori-devices --test imsic_races --release`
#![cfg(loom)]

use ainori_devices::imsic::InterruptFile;
use ainori_devices::zicsr::CsrAccess;
use loom::{sync::Arc, thread};

const EIDELIVERY: u64 = 0x70;
const EITHRESHOLD: u64 = 0x72;
const EIE0: u64 = 0xc0;
const IDENTITY: u32 = 5;
const TOP: u32 = IDENTITY << 16 | IDENTITY;

/// A file that delivers, with the identity enabled.
fn listening() -> InterruptFile {
    let file = InterruptFile::new();
    file.access(EIDELIVERY, CsrAccess::Write(1));
    file.access(EIE0, CsrAccess::Write(1 << IDENTITY));
    file
}

/// A message comes while the vCPU does `write` and then looks: one of the two must find the other.
fn is_found(file: InterruptFile, write: impl FnOnce(&InterruptFile)) {
    let file = Arc::new(file);
    let shared = file.clone();
    let sender = thread::spawn(move || shared.post(IDENTITY));
    write(&file);
    let seen = file.is_signaled();
    assert!(sender.join().unwrap() || seen);
}

#[test]
fn a_message_and_its_enabling_do_not_miss_one_another() {
    loom::model(|| {
        let file = InterruptFile::new();
        file.access(EIDELIVERY, CsrAccess::Write(1));
        is_found(file, |file| {
            file.access(EIE0, CsrAccess::Set(1 << IDENTITY));
        });
    });
}

#[test]
fn a_message_and_the_delivery_do_not_miss_one_another() {
    loom::model(|| {
        let file = InterruptFile::new();
        file.access(EIE0, CsrAccess::Set(1 << IDENTITY));
        is_found(file, |file| {
            file.access(EIDELIVERY, CsrAccess::Write(1));
        });
    });
}

#[test]
fn a_message_and_a_threshold_that_is_lifted_do_not_miss_one_another() {
    loom::model(|| {
        let file = listening();
        file.access(EITHRESHOLD, CsrAccess::Write(IDENTITY.into()));
        is_found(file, |file| {
            file.access(EITHRESHOLD, CsrAccess::Write(0));
        });
    });
}

/// A message that comes while another with its identity is claimed is one more interrupt, or has been merged into that; it isn't lost.
#[test]
fn a_message_beside_a_claim_is_seen_by_it_or_told() {
    loom::model(|| {
        let file = Arc::new(listening());
        assert!(file.post(IDENTITY));
        let shared = file.clone();
        let sender = thread::spawn(move || shared.post(IDENTITY));
        assert_eq!(file.claim(), TOP);
        let told = sender.join().unwrap();
        assert_eq!(told, file.claim() == TOP);
    });
}

/// A hart of the board holds the vCPU's file. Messages come from two cores while those are handed on that have come before: each is, once, or is found the next time.
#[test]
fn a_file_whose_messages_are_handed_on_loses_none() {
    loom::model(|| {
        let file = Arc::new(InterruptFile::new());
        let senders = [1, 2].map(|identity| {
            let shared = file.clone();
            thread::spawn(move || {
                let _ = shared.post(identity);
            })
        });
        let first = file.take_pending();
        for sender in senders {
            sender.join().unwrap();
        }
        let second = file.take_pending();
        assert_eq!((first | second, first & second), (0b110, 0));
    });
}
