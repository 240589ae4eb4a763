//! Records, events and masks: nothing is lost on the way to memory and back.

use ainori_trace::{Cause, DEFAULT_MASK, Event, Kind, Line, Mask, Record, TIME_BITS, UnknownKind};
use proptest::prelude::*;

fn any_vcpu() -> impl Strategy<Value = u8> {
    0u8..255
}

fn any_line() -> impl Strategy<Value = Line> {
    prop_oneof![Just(Line::Timer), Just(Line::Software), any::<u16>().prop_map(Line::External)]
}

fn any_event() -> impl Strategy<Value = Event> {
    let maybe = || prop::option::of(any_vcpu());
    let interrupt = || (any_vcpu(), any_line());
    prop_oneof![
        (maybe(), maybe()).prop_map(|(from, to)| Event::Switch { from, to }),
        (maybe(), any::<bool>(), 0u8..128, any::<u8>(), any::<i64>()).prop_map(
            |(vcpu, interrupt, code, class, pc)| {
                Event::Trap { vcpu, cause: Cause { interrupt, code }, class, pc: (pc >> 16) as u64 }
            }
        ),
        interrupt().prop_map(|(vcpu, line)| Event::Raised { vcpu, line }),
        interrupt().prop_map(|(vcpu, line)| Event::Injected { vcpu, line }),
        interrupt().prop_map(|(vcpu, line)| Event::Taken { vcpu, line }),
        any::<(u8, u32)>().prop_map(|(to, item)| Event::Posted { to, item }),
        any::<(u8, u32)>().prop_map(|(from, item)| Event::Received { from, item }),
        any::<u8>().prop_map(|to| Event::IpiSent { to }),
        (any_vcpu(), any::<(u8, u8)>()).prop_map(|(vcpu, (from, to))| Event::Migration { vcpu, from, to }),
        any_vcpu().prop_map(|vcpu| Event::Wake { vcpu }),
        any_vcpu().prop_map(|vcpu| Event::Sleep { vcpu }),
        (any_vcpu(), any::<bool>()).prop_map(|(vcpu, applied)| Event::Fence { vcpu, applied }),
        (any_vcpu(), any::<u64>()).prop_map(|(vcpu, value)| Event::Mark { vcpu, value }),
        any::<u64>().prop_map(|count| Event::Lost { count }),
    ]
}

proptest! {
    #[test]
    fn events_survive(event in any_event(), time in 0u64..1 << TIME_BITS) {
        let record = event.at(time);
        prop_assert_eq!(record.event(), event);
        prop_assert_eq!(Record::decode(record.encode()), Ok(record));
    }

    #[test]
    fn all_words_decode_to_the_record_that_encodes_to_them_or_to_an_unknown_kind(words: [u64; 2]) {
        let number = words[0] as u8;
        match Record::decode(words) {
            Ok(record) => {
                prop_assert_eq!(record.encode(), words);
                record.event(); // Total: any bits in the fields mean something.
            }
            Err(UnknownKind(unknown)) => {
                prop_assert_eq!(unknown, number);
                prop_assert_eq!(Kind::from_number(number), None);
            }
        }
    }

    #[test]
    fn a_time_that_is_too_long_spoils_no_other_field(event in any_event(), time: u64) {
        let record = Record::decode(event.at(time).encode()).expect("a known kind");
        prop_assert_eq!(record.event(), event);
        prop_assert_eq!(record.time, time & ((1 << TIME_BITS) - 1));
    }
}

#[test]
fn kinds_are_numbered_by_their_place() {
    for (number, &kind) in (0..).zip(Kind::ALL) {
        assert_eq!(kind as u8, number);
        assert_eq!(Kind::from_number(number), Some(kind));
    }
    assert!(Kind::ALL.len() <= 32, "a mask has 32 bits");
}

#[test]
fn masks_are_made_of_names() {
    assert_eq!(Mask::from_names([]), Ok(Mask::NONE));
    assert_eq!(Mask::from_names(["switch", "mark"]), Ok(Mask::NONE.with(Kind::Switch).with(Kind::Mark)));
    assert_eq!(Mask::from_names(["default"]), Ok(DEFAULT_MASK));
    assert_eq!(Mask::from_names(Mask::names()), Ok(Mask::ALL));
    assert_eq!(Mask::from_names(["switch", "swich"]), Err("swich"));
    assert!(Kind::ALL.iter().all(|&kind| Mask::ALL.has(kind)));
}

#[test]
fn scause_keeps_what_matters() {
    assert_eq!(Cause::from_scause(1 << 63 | 5), Cause { interrupt: true, code: 5 });
    assert_eq!(Cause::from_scause(23), Cause { interrupt: false, code: 23 });
}
