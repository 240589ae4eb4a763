//! The Perfetto file, parsed back: slices nest, arrows have both ends, counts agree with the trace.

use std::collections::{BTreeMap, BTreeSet};

use ainori_trace::{
    Cause, Event, Kind, Line,
    host::{
        CoreTrace, Stamped, Trace,
        perfetto::{
            Names, encode,
            messages::{self, EventType, TrackEvent},
        },
    },
};
use proptest::prelude::*;
use prost::Message;

const CORES: u8 = 3;
const VCPUS: u8 = 5;

/// A trace at 10 MHz of [`CORES`] cores, of events at (core, time).
fn trace(events: impl IntoIterator<Item = (u8, u64, Event)>) -> Trace {
    let cores = (0..CORES).map(|core| CoreTrace { core, hart: core.into(), written: 0, lost: 0 }).collect();
    let mut records: Vec<Stamped> =
        events.into_iter().map(|(core, time, event)| Stamped { core, record: event.at(time) }).collect();
    records.sort_by_key(|stamped| stamped.record.time);
    Trace { timebase_hz: 10_000_000, cores, records }
}

/// A file, parsed.
struct File {
    tracks: BTreeMap<u64, String>,
    /// (nanoseconds, event), as in the file.
    events: Vec<(u64, TrackEvent)>,
}

impl File {
    fn of(trace: &Trace, names: &Names) -> Self {
        let file = messages::Trace::decode(&*encode(trace, names)).expect("a file that can be parsed");
        let mut tracks = BTreeMap::new();
        let mut events = Vec::new();
        for packet in file.packet {
            if let Some(track) = packet.track_descriptor {
                let before = tracks.insert(track.uuid.expect("a uuid"), track.name.expect("a name"));
                assert_eq!(before, None, "a track is described once");
                assert!(
                    track.parent_uuid.is_none_or(|parent| tracks.contains_key(&parent)),
                    "its parent comes first"
                );
            }
            if let Some(event) = packet.track_event {
                events.push((packet.timestamp.expect("a time"), event));
            }
        }
        Self { tracks, events }
    }

    fn track(&self, event: &TrackEvent) -> &str {
        &self.tracks[&event.track_uuid.expect("a track")]
    }

    /// (track, begin, end, name) of all slices, by their end. Fails unless at most one is open on a track at any time.
    fn slices(&self) -> Vec<(&str, u64, u64, &str)> {
        let mut open = BTreeMap::new();
        let mut slices = Vec::new();
        for (time, event) in &self.events {
            let track = self.track(event);
            match event.r#type() {
                EventType::SliceBegin => {
                    let name = event.name.as_deref().expect("a slice has a name");
                    assert_eq!(open.insert(track, (*time, name)), None, "two slices are open on {track}");
                }
                EventType::SliceEnd => {
                    let (begin, name) = open.remove(track).expect("a slice that ends has begun");
                    assert!(begin <= *time);
                    slices.push((track, begin, *time, name));
                }
                _ => {}
            }
        }
        assert!(open.is_empty(), "slices stay open: {open:?}");
        slices
    }

    fn named(&self, name: &str) -> &TrackEvent {
        let (_, event) = self
            .events
            .iter()
            .find(|(_, event)| event.name.as_deref() == Some(name))
            .expect("an event of that name");
        event
    }

    /// The last value of each counter.
    fn counters(&self) -> BTreeMap<&str, i64> {
        let values = self.events.iter().filter(|(_, event)| event.r#type() == EventType::Counter);
        values.map(|(_, event)| (self.track(event), event.counter_value.expect("a value"))).collect()
    }
}

fn any_line() -> impl Strategy<Value = Line> {
    prop_oneof![Just(Line::Timer), Just(Line::Software), (0u16..3).prop_map(Line::External)]
}

/// Any event of few vCPUs and cores: also such as make no sense together, as when records were lost.
fn any_event() -> impl Strategy<Value = Event> {
    let vcpu = || 0..VCPUS;
    let maybe = || prop::option::of(0..VCPUS);
    let core = || 0..CORES;
    prop_oneof![
        4 => (maybe(), maybe()).prop_map(|(from, to)| Event::Switch { from, to }),
        4 => (maybe(), any::<bool>(), 0u8..30, 0u8..4).prop_map(|(vcpu, interrupt, code, class)| Event::Trap {
            vcpu, cause: Cause { interrupt, code }, class, pc: 0x8000_0000
        }),
        1 => (vcpu(), any_line()).prop_map(|(vcpu, line)| Event::Raised { vcpu, line }),
        1 => (vcpu(), any_line()).prop_map(|(vcpu, line)| Event::Injected { vcpu, line }),
        1 => (vcpu(), any_line()).prop_map(|(vcpu, line)| Event::Taken { vcpu, line }),
        1 => (core(), 0u32..3).prop_map(|(to, item)| Event::Posted { to, item }),
        1 => (core(), 0u32..3).prop_map(|(from, item)| Event::Received { from, item }),
        1 => core().prop_map(|to| Event::IpiSent { to }),
        1 => (vcpu(), core(), core()).prop_map(|(vcpu, from, to)| Event::Migration { vcpu, from, to }),
        1 => (maybe(), 0u32..3, any::<u32>()).prop_map(|(vcpu, choice, argument)| Event::Decision { vcpu, choice, argument }),
        1 => vcpu().prop_map(|vcpu| Event::Wake { vcpu }),
        1 => vcpu().prop_map(|vcpu| Event::Sleep { vcpu }),
        1 => (vcpu(), any::<bool>()).prop_map(|(vcpu, applied)| Event::Fence { vcpu, applied }),
        1 => (vcpu(), any::<u64>()).prop_map(|(vcpu, value)| Event::Mark { vcpu, value }),
        1 => any::<u64>().prop_map(|count| Event::Lost { count }),
    ]
}

proptest! {
    #[test]
    fn any_trace_makes_a_sound_file(events in prop::collection::vec((0..CORES, 0u64..500, any_event()), 0..300)) {
        let trace = trace(events);
        let file = File::of(&trace, &Names::default());

        prop_assert!(file.events.is_sorted_by_key(|(time, _)| *time));
        file.slices();

        // One point in time for each record but those that are slices, and one value for each that is counted.
        let of_type = |sort| file.events.iter().filter(|(_, event)| event.r#type() == sort).count();
        let slices_only = trace.count(Kind::Switch) + trace.count(Kind::Sleep);
        prop_assert_eq!(of_type(EventType::Instant), trace.records.len() - slices_only);
        prop_assert_eq!(of_type(EventType::Counter), trace.count(Kind::Trap) + trace.count(Kind::IpiSent));
        let counted: i64 = file.counters().values().sum();
        prop_assert_eq!(counted as usize, trace.count(Kind::Trap) + trace.count(Kind::IpiSent));

        // A flow begins once, goes on, and ends at most once.
        let mut begun = BTreeSet::new();
        let mut ended = BTreeSet::new();
        for (_, event) in &file.events {
            for flow in &event.flow_ids {
                prop_assert!(*flow != 0 && !ended.contains(flow));
                begun.insert(*flow);
            }
            for flow in &event.terminating_flow_ids {
                prop_assert!(begun.contains(flow) && ended.insert(*flow));
            }
        }
    }

    /// On a trace whose switches fit together, the slices of a hart are exactly the stretches between them.
    #[test]
    fn harts_show_what_ran_and_when(
        first in prop::option::of(0..VCPUS),
        switches in prop::collection::vec((1u64..100, prop::option::of(0..VCPUS)), 1..50),
    ) {
        let mut events = vec![(0, 0, Event::Mark { vcpu: 0, value: 0 })];
        let mut expected = Vec::new();
        let (mut begin, mut running) = (0, first);
        for (length, to) in switches {
            let end = begin + length;
            expected.extend(running.map(|vcpu| (begin * 100, end * 100, format!("vCPU {vcpu}"))));
            events.push((0, end, Event::Switch { from: running, to }));
            (begin, running) = (end, to);
        }
        expected.extend(running.map(|vcpu| (begin * 100, begin * 100, format!("vCPU {vcpu}"))));
        let trace = trace(events);
        let file = File::of(&trace, &Names::default());
        let shown: Vec<_> = file
            .slices()
            .into_iter()
            .filter(|(track, ..)| *track == "hart 0")
            .map(|(_, begin, end, name)| (begin, end, name.to_owned()))
            .collect();
        prop_assert_eq!(shown, expected);
    }
}

/// A timer interrupt for a sleeping RTOS vCPU, which preempts a Linux vCPU on its hart.
#[test]
fn tells_the_story_of_a_preemption() {
    const LINUX: u8 = 0;
    const RTOS: u8 = 1;
    let timer = Cause { interrupt: true, code: 5 };
    let trace = trace([
        (0, 100, Event::Trap { vcpu: Some(LINUX), cause: timer, class: 0, pc: 0xffff_ffff_8000_1234 }),
        (0, 101, Event::Raised { vcpu: RTOS, line: Line::Timer }),
        (0, 102, Event::Wake { vcpu: RTOS }),
        (0, 103, Event::Switch { from: Some(LINUX), to: Some(RTOS) }),
        (0, 104, Event::Injected { vcpu: RTOS, line: Line::Timer }),
        (0, 105, Event::Taken { vcpu: RTOS, line: Line::Timer }),
        (0, 200, Event::Sleep { vcpu: RTOS }),
        (0, 201, Event::Switch { from: Some(RTOS), to: Some(LINUX) }),
        (0, 300, Event::Mark { vcpu: LINUX, value: 7 }),
    ]);
    let names = Names {
        vcpus: vec!["linux.0".to_owned(), "rtos.0".to_owned()],
        exits: vec!["timer".to_owned()],
        ..Names::default()
    };
    let file = File::of(&trace, &names);

    let mut slices = file.slices();
    slices.sort();
    assert_eq!(
        slices,
        [
            ("hart 0", 10_000, 10_300, "linux.0"),
            ("hart 0", 10_300, 20_100, "rtos.0"),
            ("hart 0", 20_100, 30_000, "linux.0"),
            ("linux.0", 10_000, 10_300, "running on hart 0"),
            ("linux.0", 10_300, 20_100, "suspended"),
            ("linux.0", 20_100, 30_000, "running on hart 0"),
            ("rtos.0", 10_200, 10_300, "suspended"),
            ("rtos.0", 10_300, 20_000, "running on hart 0"),
            ("rtos.0", 20_000, 30_000, "sleeping"),
        ]
    );

    let raised = file.named("timer interrupt raised for rtos.0");
    let injected = file.named("timer interrupt injected");
    let taken = file.named("timer interrupt taken");
    assert_eq!((file.track(raised), file.track(taken)), ("hart 0", "rtos.0"));
    assert_eq!(raised.flow_ids, injected.flow_ids);
    assert_eq!(raised.flow_ids, taken.terminating_flow_ids);
    assert_eq!(file.counters(), BTreeMap::from([("hart 0: exits", 1)]));
    assert_eq!(file.track(file.named("timer")), "linux.0");
}

#[test]
fn messages_have_arrows_from_sender_to_receiver() {
    let trace = trace([
        (0, 1, Event::Posted { to: 2, item: 5 }),
        (0, 2, Event::IpiSent { to: 2 }),
        (0, 3, Event::Posted { to: 2, item: 5 }),
        (2, 4, Event::Received { from: 0, item: 5 }),
        (2, 5, Event::Received { from: 1, item: 5 }),
    ]);
    let file = File::of(&trace, &Names::default());
    let flows: Vec<(&[u64], &[u64])> = file
        .events
        .iter()
        .filter(|(_, event)| event.name.as_deref().is_some_and(|name| name.contains("message 5")))
        .map(|(_, event)| (&*event.flow_ids, &*event.terminating_flow_ids))
        .collect();
    assert_eq!(flows, [(&[1][..], &[][..]), (&[1], &[]), (&[], &[1]), (&[], &[])]);
    assert_eq!(file.counters(), BTreeMap::from([("hart 0: IPIs sent", 1)]));
}
