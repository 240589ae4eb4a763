//! Any system survives the way through a blob; any other bytes are refused without a panic.
use super::*;
use crate::config::{
    Channel, HartPriority, Image, Kind, OnWildAccess, Policy, Restarts, Segment, Trace, Vcpu, Window,
};
use ainori_limits::MAX_HARTS;
use alloc::{string::String, vec, vec::Vec};
use core::num::NonZeroU8;
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
        priority_on: vec![HartPriority { hart: 3, priority: 2 }],
        weight: NonZeroU8::MIN,
        devices: vec![],
        background: false,
        restart: Restarts::default(),
        on_wild_access: OnWildAccess::Trap,
        watchdog_us: 0,
    };
    System {
        name: "test".into(),
        policy: Policy {
            preset: "spumone".into(),
            quantum_us: 10_000,
            grace_us: 100,
            advance_us: 6,
            frame_us: 0,
        },
        guests: (0..guests).map(guest).collect(),
        channels: Vec::new(),
        console_input: Some(0),
        windows: vec![],
        trace: Trace { mask: 0, records: 0 },
    }
}

fn blob_of(files: &[(Vec<u8>, Option<Vec<u8>>)], args: String) -> Vec<u8> {
    let guest_files: Vec<_> = files
        .iter()
        .map(|(image, initrd)| GuestFiles { segments: vec![image], initrd: initrd.as_deref() })
        .collect();
    encode(system(files.len(), args), &vec![Space::default(); files.len()], &guest_files)
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

/// Numbers at the edges of what is allowed, and of what their type holds.
fn edge(limits: &'static [u64]) -> impl Strategy<Value = u64> {
    let near =
        prop::sample::select(limits).prop_flat_map(|limit| limit.saturating_sub(1)..=limit.saturating_add(1));
    prop_oneof![8 => near, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

const PAGES: &[u64] = &[0, PAGE as u64, 2 * PAGE as u64, 3 * PAGE as u64];

prop_compose! {
    fn any_payload()(offset in edge(PAGES), len in edge(PAGES)) -> Payload {
        Payload { offset, len }
    }
}

/// Addresses in and around a guest's memory.
const PLACES: &[u64] =
    &[GUEST_MEMORY_BASE, GUEST_MEMORY_BASE + GUEST_MEMORY_ALIGN, GUEST_MEMORY_BASE + 2 * GUEST_MEMORY_ALIGN];

prop_compose! {
    fn any_segment()(address in edge(PLACES), data in any_payload(), memory in edge(&[0, PAGE as u64, GUEST_MEMORY_ALIGN])) -> Segment {
        Segment { address, data, memory }
    }
}

/// What a field of a description may be set to.
#[derive(Debug, Clone)]
enum Change {
    Entry(u64),
    Segment(Segment),
    Initrd(Option<Payload>),
    Memory(u64),
    Vcpus(Vec<(u64, u64)>),
    Priority(u64),
    Quantum(u64),
    Grace(u64),
    Advance(u64),
    Window(u64),
    Input(Option<u64>),
    Records(u64),
    Guests(usize),
    Channels(Vec<(u64, u64, u64)>),
}

fn any_change() -> impl Strategy<Value = Change> {
    let vcpus = || {
        proptest::collection::vec(
            (edge(&[1, MAX_HARTS as u64 - 1, HART_IDS as u64 - 1]), edge(&[1, 0xffff, u64::MAX])),
            0..=MAX_GUEST_VCPUS + 1,
        )
    };
    let channels = || {
        let end = || prop_oneof![8 => 0u64..4, 1 => edge(&[MAX_GUESTS as u64])];
        let size = prop_oneof![4 => Just(4096), 1 => edge(&[0, 4096, 128 << 20])];
        let few = proptest::collection::vec((end(), end(), size), 0..4);
        // Each pair once more than a guest may have, or as many as there may be in all and one more.
        let many = (0..=MAX_CHANNELS as u64 + 1).prop_map(|count| {
            (0..count).map(|index| (index % 8 * 2, index % 8 * 2 + 1, 4096)).collect::<Vec<_>>()
        });
        let of_one = (0..=GUEST_CHANNELS as u64 + 1)
            .prop_map(|count| (0..count).map(|index| (0, 1 + index, 4096)).collect());
        prop_oneof![4 => few, 1 => many, 1 => of_one]
    };
    prop_oneof![
        edge(PLACES).prop_map(Change::Entry),
        any_segment().prop_map(Change::Segment),
        proptest::option::of(any_payload()).prop_map(Change::Initrd),
        edge(&[0, GUEST_MEMORY_ALIGN, 8 * GUEST_MEMORY_ALIGN]).prop_map(Change::Memory),
        vcpus().prop_map(Change::Vcpus),
        edge(&[0, PRIORITIES as u64]).prop_map(Change::Priority),
        edge(&[0, MIN_QUANTUM_US as u64]).prop_map(Change::Quantum),
        edge(&[0, MAX_GRACE_US as u64]).prop_map(Change::Grace),
        edge(&[MAX_ADVANCE_US as u64]).prop_map(Change::Advance),
        edge(&[0, 1, MAX_GUESTS as u64]).prop_map(Change::Window),
        proptest::option::of(edge(&[0, 1, MAX_GUESTS as u64])).prop_map(Change::Input),
        edge(&[0, 1, 4096]).prop_map(Change::Records),
        (0..=MAX_GUESTS + 1).prop_map(Change::Guests),
        channels().prop_map(Change::Channels),
    ]
}

/// A good system with some fields changed.
fn changed(changes: Vec<Change>) -> System {
    let mut made = system(1, String::new());
    for change in changes {
        let some_guest = &mut made.guests[0];
        match change {
            Change::Entry(address) => some_guest.image.entry = address,
            Change::Segment(segment) => some_guest.image.segments.push(segment),
            Change::Initrd(payload) => some_guest.initrd = payload,
            Change::Memory(bytes) => some_guest.memory = bytes,
            Change::Vcpus(list) => {
                let vcpu = |(home, harts)| Vcpu { home: home as u32, harts };
                some_guest.vcpus = list.into_iter().map(vcpu).collect();
            }
            Change::Priority(value) => some_guest.priority = value as u8,
            Change::Quantum(value) => made.policy.quantum_us = value as u32,
            Change::Grace(value) => made.policy.grace_us = value as u32,
            Change::Advance(value) => made.policy.advance_us = value as u32,
            Change::Window(guest) => {
                made.windows.push(Window { hart: 3, guest: guest as u32, start_us: 0, length_us: 1 });
            }
            Change::Input(value) => made.console_input = value.map(|value| value as u32),
            Change::Records(value) => made.trace.records = value as u32,
            Change::Guests(0) => return System { guests: vec![], ..made },
            Change::Channels(list) => {
                let channel = |(first, second, size)| Channel { ends: [first as u32, second as u32], size };
                made.channels = list.into_iter().map(channel).collect();
            }
            Change::Guests(number) => made.guests = vec![made.guests[0].clone(); number],
        }
    }
    made
}

/// Each segment of its program lies in its memory, behind the one before.
fn is_in_memory(guest: &Guest) -> bool {
    let base = u128::from(GUEST_MEMORY_BASE);
    let end = base + u128::from(guest.memory);
    let bounds = |segment: &Segment| {
        let start = u128::from(segment.address);
        start..start + u128::from(segment.memory)
    };
    let segments = &guest.image.segments;
    guest.image.entry.is_multiple_of(2)
        && (base..end).contains(&u128::from(guest.image.entry))
        && segments.iter().map(bounds).all(|range| base <= range.start && range.end <= end)
        && segments.windows(2).all(|pair| bounds(&pair[0]).end <= bounds(&pair[1]).start)
        && segments.iter().all(|segment| segment.data.len <= segment.memory)
}

/// All that the kernel relies on, said once more.
fn can_be_relied_on(system: &System, blob_len: u64) -> bool {
    let guests = system.guests.len();
    let in_blob = |payload: &Payload| {
        let end = u128::from(payload.offset) + u128::from(payload.len);
        end <= u128::from(blob_len) && payload.offset.is_multiple_of(4096)
    };
    let policy = &system.policy;
    (1..=16).contains(&guests)
        && system.guests.iter().map(|guest| guest.vcpus.len()).sum::<usize>() <= 63
        && policy.quantum_us >= 100
        && (1..=100_000).contains(&policy.grace_us)
        && policy.advance_us <= 100
        && system.windows.iter().all(|window| (window.guest as usize) < guests)
        && system.console_input.is_none_or(|input| (input as usize) < guests)
        && system.trace.records.count_ones() <= 1
        && system.channels.len() <= 16
        && system.channels.iter().all(|channel| {
            let [first, second] = channel.ends.map(|end| end as usize);
            let size = channel.size;
            first != second
                && first < guests
                && second < guests
                && size % 4096 == 0
                && size > 0
                && size <= 128 << 20
        })
        && (0..guests as u32)
            .all(|guest| system.channels.iter().filter(|channel| channel.ends.contains(&guest)).count() <= 4)
        && system.guests.iter().all(|guest| {
            (1..=16).contains(&guest.vcpus.len())
                && guest.priority < 32
                && guest.memory != 0
                && guest.memory % (2 << 20) == 0
                && guest.vcpus.iter().all(|vcpu| vcpu.home < HART_IDS && vcpu.harts >> vcpu.home & 1 != 0)
                && is_in_memory(guest)
                && guest.image.segments.iter().all(|segment| in_blob(&segment.data))
                && guest.initrd.as_ref().is_none_or(in_blob)
        })
}

/// A blob with a header that fits, around a description that says anything.
fn framed(description: &[u8], len: usize) -> Vec<u8> {
    let mut blob = Vec::from(MAGIC);
    blob.extend(VERSION.to_le_bytes());
    blob.extend((description.len() as u32).to_le_bytes());
    let total = len.max(HEADER_LEN + description.len());
    blob.extend((total as u64).to_le_bytes());
    blob.extend(description);
    blob.resize(total, 0x5a);
    blob
}

proptest! {
    /// What a description may say is exactly what can be relied on.
    #[test]
    fn a_description_is_accepted_if_all_holds_and_only_then(changes in proptest::collection::vec(any_change(), 0..4), pages in 0usize..4) {
        let system = changed(changes);
        let blob = framed(&postcard::to_allocvec(&system).unwrap(), pages * PAGE);
        let holds = can_be_relied_on(&system, blob.len() as u64);
        let found = decode(&blob);
        prop_assert_eq!(found.is_ok(), holds, "{:?}", found);
        for guest in found.iter().flat_map(|found| &found.guests) {
            for found in payloads_of(guest) {
                prop_assert_eq!(payload(&blob, found).len() as u64, found.len);
            }
        }
    }

    /// Bytes of a description taken out, put in and changed, with lengths that fit again.
    #[test]
    fn a_changed_description_is_safe(changes in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..4, proptest::collection::vec(prop_oneof![any::<u8>(), Just(0xff), Just(0x80), Just(0)], 0..12)), 1..4), pages in 0usize..4) {
        let mut description = postcard::to_allocvec(&system(3, "console=ttyS0".into())).unwrap();
        for (at, taken, new) in changes {
            let start = at.index(description.len() + 1);
            let end = (start + taken).min(description.len());
            description.splice(start..end, new);
        }
        let blob = framed(&description, pages * PAGE);
        if let Ok(found) = decode(&blob) {
            prop_assert!(can_be_relied_on(&found, blob.len() as u64), "{:?}", found);
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
        decode(&encode(system, &[Space::default()], &[GuestFiles { segments, initrd: None }]))
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

/// A board's hart ids have 64 bits, and a manifest names the first 64 of them: the others are none of these.
#[test]
fn a_vcpu_may_run_on_no_hart_that_has_no_bit() {
    let vcpu = Vcpu { home: 1, harts: 1 << 1 | 1 << 63 };
    let harts = [0, 1, 2, 63, 64, 65, 127, 1 << 32, (1 << 32) + 1, u64::MAX];
    let allowed: Vec<u64> = harts.into_iter().filter(|hart| vcpu.may_run_on(*hart)).collect();
    assert_eq!(allowed, [1, 63]);
}
