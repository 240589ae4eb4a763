//! The reader: finds the rings of all cores in an image of memory, and says what is wrong with one that it can't read.

use ainori_trace::{
    Event, Header, Kind, Mask, Ring,
    host::{
        CoreTrace, ReadError, Window,
        perfetto::{Names, encode, encode_window},
        read,
    },
};
use proptest::prelude::*;

const TIMEBASE: u64 = 10_000_000;

/// The memory of a core's ring after it has recorded these times, as marks that count up.
fn ring(core: u8, capacity: usize, times: &[u64]) -> Vec<u8> {
    ring_at(TIMEBASE, core, capacity, times)
}

fn ring_at(timebase_hz: u64, core: u8, capacity: usize, times: &[u64]) -> Vec<u8> {
    let mut memory = vec![[0; 2]; Ring::slots(capacity)];
    let hart = u64::from(core) + 100;
    let mut ring = Ring::new(&mut memory, core.into(), hart, timebase_hz, Mask::ALL).expect("a power of two");
    for (value, &time) in (0..).zip(times) {
        ring.event(time, Event::Mark { vcpu: core, value });
    }
    memory.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect()
}

proptest! {
    #[test]
    fn merges_cores_by_time_and_keeps_each_core_s_order(
        cores in prop::collection::vec((0u32..7, prop::collection::vec(0u64..50, 0..100)), 1..6),
        padding in prop::collection::vec(any::<u64>(), 0..20),
    ) {
        let padding: Vec<u8> = padding.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut image = padding.clone();
        let mut expected = Vec::new();
        for (core, (log_capacity, steps)) in (0..).zip(&cores) {
            let capacity = 1 << log_capacity;
            let times: Vec<u64> = steps.iter().scan(0, |now, step| { *now += step; Some(*now) }).collect();
            image.extend(ring(core, capacity, &times));
            image.extend(&padding);
            expected.push((times.len(), times.len().saturating_sub(capacity)));
        }
        let trace = read(&[&image]).expect("a trace");

        prop_assert!(trace.records.is_sorted_by_key(|stamped| stamped.record.time));
        for (core, &(written, lost)) in (0..).zip(&expected) {
            let known = CoreTrace { core, hart: u64::from(core) + 100, written: written as u64, lost: lost as u64 };
            prop_assert_eq!(trace.cores[usize::from(core)], known);
            let events: Vec<Event> =
                trace.records.iter().filter(|stamped| stamped.core == core).map(|stamped| stamped.record.event()).collect();
            let tells_loss = (lost > 0).then_some(Event::Lost { count: lost as u64 });
            let marks = (lost as u64..written as u64).map(|value| Event::Mark { vcpu: core, value });
            prop_assert_eq!(events, tells_loss.into_iter().chain(marks).collect::<Vec<_>>());
        }
        prop_assert_eq!(trace.lost(), expected.iter().map(|(_, lost)| *lost as u64).sum::<u64>());
        prop_assert_eq!(trace.count(Kind::Lost), expected.iter().filter(|(_, lost)| *lost > 0).count());
    }

    #[test]
    fn no_image_makes_it_panic(words in prop::collection::vec(any::<u64>(), 0..64), at in 0usize..64, head: u64, log_capacity in 0u32..64) {
        let mut image: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut header = Header {
            magic: Header::MAGIC, core: 0, hart: 0, capacity: 1 << log_capacity, timebase_hz: 0, mask: 0, check: 0, head,
        };
        header.check = header.checksum();
        let header: Vec<u8> = header.encode().as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
        let at = (at * 8).min(image.len());
        image.splice(at..at, header);
        prop_assert!(read(&[&image]).is_err());
    }
}

#[test]
fn rings_may_come_in_pieces_and_in_any_order() {
    let (first, second) = (ring(0, 4, &[5]), ring(1, 4, &[3]));
    let trace = read(&[&second, &[], &first]).expect("a trace");
    assert_eq!(trace.records.iter().map(|stamped| stamped.core).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn says_what_is_wrong() {
    let whole = ring(0, 4, &[1]);
    let mut unknown = whole.clone();
    unknown[Header::BYTES] = 0xee;
    for (image, error) in [
        (vec![0; 16], ReadError::NoRing { bytes: 16 }),
        (whole[..100].to_vec(), ReadError::Truncated { core: 0, needed: 128, present: 100 }),
        ([whole.clone(), whole.clone()].concat(), ReadError::Mixed { core: 0, what: "two rings" }),
        (
            [whole.clone(), ring_at(TIMEBASE + 1, 1, 4, &[])].concat(),
            ReadError::Mixed { core: 1, what: "another time base than core 0, or none" },
        ),
        (unknown, ReadError::UnknownKind { core: 0, index: 0, kind: 0xee }),
    ] {
        assert_eq!(read(&[&image]), Err(error));
    }
}

proptest! {
    /// A good trace with bytes changed, cut off, or put in gives a trace that is sound in itself, or an error.
    #[test]
    fn a_damaged_trace_is_sound_or_an_error(
        times in prop::collection::vec(0u64..1 << 50, 0..20),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        header in prop::collection::vec((0usize..8, prop_oneof![any::<u64>(), Just(0), Just(1), Just(u64::MAX), Just(1 << 63)]), 0..3),
        mend: bool,
        cut in prop::option::weighted(0.3, any::<prop::sample::Index>()),
    ) {
        let mut image = [ring(0, 8, &times), ring(1, 4, &times)].concat();
        for (word, value) in header {
            image[word * 8..][..8].copy_from_slice(&value.to_le_bytes());
        }
        if mend {
            // A checksum that is right again: what is wrong must be found by looking.
            let pairs = std::array::from_fn(|pair| {
                [0, 8].map(|at| u64::from_le_bytes(image[pair * 16 + at..][..8].try_into().unwrap()))
            });
            let mut header = Header::decode(pairs);
            header.check = header.checksum();
            let bytes: Vec<u8> = header.encode().as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
            image[..bytes.len()].copy_from_slice(&bytes);
        }
        for (at, byte) in changes {
            let at = at.index(image.len());
            image[at] = byte;
        }
        if let Some(cut) = cut {
            image.truncate(cut.index(image.len()));
        }
        let Ok(trace) = read(&[&image]) else { return Ok(()) };
        prop_assert!(trace.timebase_hz != 0 && !trace.cores.is_empty());
        prop_assert!(trace.records.is_sorted_by_key(|stamped| stamped.record.time));
        for core in &trace.cores {
            prop_assert!(core.lost <= core.written);
            let kept = trace.records.iter().filter(|stamped| stamped.core == core.core).count() as u64;
            let told = u64::from(core.lost > 0 && core.written > core.lost);
            prop_assert_eq!(kept, core.written - core.lost + told);
        }
        // What reads it further on takes anything that came through here.
        let names = Names { vcpus: vec![], exits: vec![], messages: vec![] };
        prop_assert!(!encode(&trace, &names).is_empty());
        if let Some(window) = Window::new(0, u64::MAX) {
            let _ = window.records(&trace);
            let _ = encode_window(&trace, &names, window);
        }
        trace.records.iter().for_each(|stamped| { trace.nanoseconds(stamped); });
    }
}
