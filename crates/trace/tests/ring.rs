//! The ring's memory, as a reader will find it.

use ainori_trace::{Event, Header, Kind, Mask, Record, Ring};
use proptest::prelude::*;

fn header(memory: &[[u64; 2]]) -> Header {
    Header::decode(*memory.first_chunk().expect("a header"))
}

proptest! {
    #[test]
    fn holds_the_newest_records(log_capacity in 0u32..6, count in 0u64..200) {
        let capacity = 1 << log_capacity;
        let mut memory = vec![[0; 2]; Ring::slots(capacity)];
        let mut ring = Ring::new(&mut memory, 3, 7, 10_000_000, Mask::ALL).expect("a power of two");
        for value in 0..count {
            ring.event(value, Event::Mark { vcpu: 0, value });
        }
        prop_assert_eq!(ring.head(), count);
        let header = header(&memory);
        prop_assert!(header.is_valid());
        prop_assert_eq!((header.core, header.hart, header.capacity, header.head), (3, 7, capacity as u64, count));
        for value in count.saturating_sub(capacity as u64)..count {
            let slot = Header::SLOTS + value as usize % capacity;
            prop_assert_eq!(Record::decode(memory[slot]), Ok(Event::Mark { vcpu: 0, value }.at(value)));
        }
    }

    #[test]
    fn writes_what_the_mask_has(mask: u32, kind in prop::sample::select(Kind::ALL)) {
        let mut memory = vec![[0; 2]; Ring::slots(4)];
        let mut ring = Ring::new(&mut memory, 0, 0, 1, Mask(mask)).expect("a power of two");
        ring.record(1, kind, 2, 3);
        prop_assert_eq!(ring.wants(kind), Mask(mask).has(kind));
        prop_assert_eq!(ring.head(), u64::from(Mask(mask).has(kind)));
    }
}

#[test]
fn refuses_memory_of_another_size() {
    for slots in [0, 1, Header::SLOTS, Header::SLOTS + 3] {
        assert!(Ring::new(&mut vec![[0; 2]; slots], 0, 0, 1, Mask::ALL).is_none(), "{slots} slots");
    }
}

#[test]
fn a_disabled_ring_takes_everything_and_keeps_nothing() {
    let mut ring = Ring::disabled();
    ring.record(0, Kind::Mark, 0, 0);
    assert_eq!(ring.head(), 0);
}

#[test]
fn a_header_with_a_changed_word_is_no_header() {
    let mut memory = vec![[0; 2]; Ring::slots(4)];
    Ring::new(&mut memory, 0, 0, 1, Mask::ALL);
    for change in [
        |header: &mut Header| header.magic ^= 1,
        |header: &mut Header| header.core = 1,
        |header: &mut Header| header.hart = 1,
        |header: &mut Header| header.capacity = 8,
        |header: &mut Header| header.timebase_hz = 2,
        |header: &mut Header| header.check ^= 1,
    ] {
        let mut header = header(&memory);
        assert!(header.is_valid());
        change(&mut header);
        assert!(!header.is_valid(), "{header:?}");
    }
}
