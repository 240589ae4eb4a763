//! Any system survives the way through a blob; any other bytes are refused without a panic.
use super::*;
use crate::config::{Image, Kind, OnWildAccess, Policy, Segment, Trace, Vcpu};
use alloc::{string::String, vec, vec::Vec};
use proptest::prelude::*;

fn files() -> impl Strategy<Value = Vec<(Vec<u8>, Option<Vec<u8>>)>> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..10_000);
    proptest::collection::vec((bytes(), proptest::option::of(bytes())), 1..5)
}

fn system(guests: usize, args: String) -> System {
    let nowhere = Payload { offset: 0, len: 0 };
    let guest = |index| Guest {
        name: alloc::format!("guest-{index}"),
        kind: Kind::Elf,
        image: Image {
            entry: GUEST_MEMORY_BASE,
            segments: vec![Segment { address: GUEST_MEMORY_BASE, data: nowhere, memory: GUEST_MEMORY_ALIGN }],
        },
        initrd: None,
        args: args.clone(),
        memory: 2 * GUEST_MEMORY_ALIGN,
        vcpus: vec![Vcpu { home: 3, harts: 0b1010 }],
        priority: 1,
        devices: vec![],
        background: false,
        on_wild_access: OnWildAccess::Trap,
    };
    System {
        name: "test".into(),
        policy: Policy { preset: "spumone".into(), quantum_us: 10_000, grace_us: 100, advance_us: 5 },
        guests: (0..guests).map(guest).collect(),
        console_input: Some(0),
        trace: Trace { mask: 0, records: 0 },
    }
}

fn blob_of(files: &[(Vec<u8>, Option<Vec<u8>>)], args: String) -> Vec<u8> {
    let guest_files: Vec<_> = files
        .iter()
        .map(|(image, initrd)| GuestFiles { segments: vec![image], initrd: initrd.as_deref() })
        .collect();
    encode(system(files.len(), args), &guest_files)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_goes_in_comes_out(files in files(), args in "[a-z]{0,5000}", behind in 0usize..100) {
        let mut blob = blob_of(&files, args.clone());
        prop_assert_eq!(blob.len() % PAGE, 0);
        prop_assert_eq!(length(&blob), Ok(blob.len()));
        blob.resize(blob.len() + behind, 0xff);
        let found = decode(&blob).unwrap();
        for (guest, (image, initrd)) in found.guests.iter().zip(&files) {
            prop_assert_eq!(payload(&blob, guest.image.segments[0].data), image);
            prop_assert_eq!(guest.initrd.map(|initrd| payload(&blob, initrd)), initrd.as_deref());
        }
        let mut expected = system(files.len(), args);
        for (guest, found) in expected.guests.iter_mut().zip(&found.guests) {
            (guest.image, guest.initrd) = (found.image.clone(), found.initrd);
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
        let mut framed = Vec::from(MAGIC);
        framed.extend(VERSION.to_le_bytes());
        framed.extend((bytes.len() as u32).to_le_bytes());
        framed.extend((HEADER_LEN as u64 + bytes.len() as u64).to_le_bytes());
        framed.extend(&bytes);
        let _ = decode(&framed);
    }

    /// A damaged blob is refused, or what it says can still be relied on.
    #[test]
    fn a_damaged_blob_is_safe(files in files(), changes in proptest::collection::vec((0usize..400, any::<u8>()), 1..4), keep in any::<prop::sample::Index>()) {
        let mut blob = blob_of(&files, "x".into());
        for (at, value) in changes {
            blob[at] = value;
        }
        blob.truncate(keep.index(blob.len() * 2).min(blob.len()));
        if let Ok(system) = decode(&blob) {
            for guest in &system.guests {
                for found in payloads_of(guest) {
                    let _ = payload(&blob, found);
                }
                assert!(guest.image.end() <= GUEST_MEMORY_BASE + guest.memory);
            }
        }
    }
}

#[test]
fn equal_files_are_stored_once() {
    let image = vec![7u8; 100_000];
    let one = blob_of(&[(image.clone(), None)], String::new());
    let two = blob_of(&[(image.clone(), None), (image, None)], String::new());
    assert_eq!(one.len(), two.len());
}

#[test]
fn each_error_is_told_apart() {
    let good = blob_of(&[(vec![1; 5000], None)], String::new());
    assert_eq!(decode(&good[..HEADER_LEN - 1]), Err(Error::Truncated));
    assert_eq!(decode(&good[..good.len() - 1]), Err(Error::Truncated));
    let changed = |at: usize, value: u8| {
        let mut blob = good.clone();
        blob[at] = value;
        decode(&blob)
    };
    assert_eq!(changed(0, b'B'), Err(Error::Magic));
    assert_eq!(changed(8, 99), Err(Error::Version(99)));
    assert_eq!(changed(15, 0x7f), Err(Error::Header));
    assert_eq!(changed(12, 3), Err(Error::Description));

    let broken = |change: &dyn Fn(&mut System)| {
        let mut system = system(1, String::new());
        change(&mut system);
        let segments = system.guests[0].image.segments.iter().map(|_| &[7u8; 9][..]).collect();
        decode(&encode(system, &[GuestFiles { segments, initrd: None }]))
    };
    let misplaced = Err(Error::Limit("an image that doesn't fit its guest's memory"));
    let moved = |address: u64, memory: u64| {
        broken(&|system| {
            let segments = &mut system.guests[0].image.segments;
            segments.push(Segment { address, memory, ..segments[0] });
        })
    };
    let (first_end, memory_end) =
        (GUEST_MEMORY_BASE + GUEST_MEMORY_ALIGN, GUEST_MEMORY_BASE + 2 * GUEST_MEMORY_ALIGN);
    assert!(moved(first_end, GUEST_MEMORY_ALIGN).is_ok());
    assert_eq!(moved(first_end - 1, 9), misplaced, "overlaps");
    assert_eq!(moved(memory_end, 9), misplaced, "behind the memory");
    assert_eq!(moved(first_end, GUEST_MEMORY_ALIGN + 1), misplaced, "too long");
    assert_eq!(moved(u64::MAX, u64::MAX), misplaced, "wraps around");
    assert_eq!(moved(first_end, 8), misplaced, "more bytes than room");
    assert_eq!(broken(&|system| system.guests[0].image.entry = memory_end), misplaced);
    assert_eq!(broken(&|system| system.guests[0].image.entry += 1), misplaced);
    assert_eq!(
        broken(&|system| system.guests[0].priority = PRIORITIES),
        Err(Error::Limit("priority out of range"))
    );
    assert_eq!(
        broken(&|system| system.guests[0].vcpus[0].home = 200),
        Err(Error::Limit("a vCPU's home is not in its harts"))
    );
    assert_eq!(
        broken(&|system| system.guests[0].memory += 1),
        Err(Error::Limit("guest memory not a multiple of 2 MiB"))
    );
    for grace_us in [0, MAX_GRACE_US + 1] {
        assert_eq!(
            broken(&|system| system.policy.grace_us = grace_us),
            Err(Error::Limit("grace out of range"))
        );
    }
    assert_eq!(
        broken(&|system| system.policy.advance_us = MAX_ADVANCE_US + 1),
        Err(Error::Limit("advance out of range"))
    );
    assert_eq!(
        broken(&|system| system.console_input = Some(1)),
        Err(Error::Limit("console input goes to no guest"))
    );
}
