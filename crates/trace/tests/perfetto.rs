//! The Perfetto file, parsed back: slices nest, arrows have both ends, counts agree with the trace.

use std::collections::{BTreeMap, BTreeSet};

use ainori_trace::{
    Cause, Event, Kind, Line,
    host::{
        CoreTrace, Stamped, Trace, Window, WindowError,
        perfetto::{
            Names, encode, encode_window,
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
        Self::parse(&encode(trace, names))
    }

    /// Of a window in nanoseconds.
    fn within(trace: &Trace, from: u64, to: u64) -> Result<Self, WindowError> {
        let window = Window::new(from, to).expect("it ends later than it begins");
        encode_window(trace, &Names::default(), window).map(|bytes| Self::parse(&bytes))
    }

    fn parse(bytes: &[u8]) -> Self {
        let file = messages::Trace::decode(bytes).expect("a file that can be parsed");
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

    /// The slices of positive length, as far as they lie in a window, in the order of their tracks.
    fn slices_within(&self, from: u64, to: u64) -> Vec<(&str, u64, u64, &str)> {
        let slices = self.slices().into_iter();
        let mut cut: Vec<_> = slices
            .map(|(track, begin, end, name)| (track, begin.max(from), end.min(to), name))
            .filter(|(_, begin, end, _)| begin < end)
            .collect();
        cut.sort();
        cut
    }

    /// (track, time, name) of the points in a window.
    fn points_within(&self, from: u64, to: u64) -> Vec<(&str, u64, &str)> {
        let points = self
            .events
            .iter()
            .filter(|(time, event)| event.r#type() == EventType::Instant && (from..=to).contains(time));
        points.map(|(time, event)| (self.track(event), *time, event.name.as_deref().unwrap_or(""))).collect()
    }

    /// The counters at a time in nanoseconds; those that are zero are left out.
    fn counters_at(&self, at: u64) -> BTreeMap<&str, i64> {
        let values = self.events.iter();
        let values = values.filter(|(time, event)| *time <= at && event.r#type() == EventType::Counter);
        let mut values: BTreeMap<&str, i64> =
            values.map(|(_, event)| (self.track(event), event.counter_value.expect("a value"))).collect();
        values.retain(|_, value| *value != 0);
        values
    }

    /// A flow begins once, goes on, and ends at most once.
    fn check_flows(&self) {
        let mut begun = BTreeSet::new();
        let mut ended = BTreeSet::new();
        for (_, event) in &self.events {
            for flow in &event.flow_ids {
                assert!(*flow != 0 && !ended.contains(flow));
                begun.insert(*flow);
            }
            for flow in &event.terminating_flow_ids {
                assert!(begun.contains(flow) && ended.insert(*flow));
            }
        }
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

        file.check_flows();
    }

    /// Whatever lies before a window, in it is shown what the file of the whole run shows there.
    #[test]
    fn a_window_shows_what_the_whole_shows_there(
        events in prop::collection::vec((0..CORES, 0u64..500, any_event()), 0..300),
        (one, other) in (0u64..50_000, 0u64..50_000),
    ) {
        prop_assume!(one != other);
        let (from, to) = (one.min(other), one.max(other));
        let trace = trace(events.into_iter().chain([(0, 500, Event::Mark { vcpu: 0, value: 0 })]));
        let whole = File::of(&trace, &Names::default());
        let cut = File::within(&trace, from, to).expect("the trace goes on for longer");

        prop_assert!(cut.events.is_sorted_by_key(|(time, _)| *time));
        prop_assert!(cut.events.iter().all(|(time, _)| (from..=to).contains(time)));
        prop_assert_eq!(cut.slices_within(0, u64::MAX), whole.slices_within(from, to));
        prop_assert_eq!(cut.points_within(0, u64::MAX), whole.points_within(from, to));
        for time in [from, from.midpoint(to), to] {
            prop_assert_eq!(cut.counters_at(time), whole.counters_at(time));
        }
        cut.check_flows();
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

#[test]
fn a_window_begins_with_what_ran_then_and_has_no_half_arrows() {
    let raised = |time| (0, time, Event::Raised { vcpu: 1, line: Line::Timer });
    let trace = trace([
        (0, 10, Event::Switch { from: None, to: Some(1) }),
        (1, 20, Event::Switch { from: None, to: Some(2) }),
        raised(30),
        (0, 60, Event::Taken { vcpu: 1, line: Line::Timer }),
        raised(70),
        (0, 80, Event::Taken { vcpu: 1, line: Line::Timer }),
        (1, 100, Event::Sleep { vcpu: 2 }),
    ]);
    let cut = File::within(&trace, 5_050, 9_000).expect("a window of the trace");
    assert_eq!(
        cut.slices_within(0, u64::MAX),
        [
            ("hart 0", 5_050, 9_000, "vCPU 1"),
            ("hart 1", 5_050, 9_000, "vCPU 2"),
            ("vCPU 1", 5_050, 9_000, "running on hart 0"),
            ("vCPU 2", 5_050, 9_000, "running on hart 1"),
        ]
    );
    let arrows = cut.events.iter().filter(|(_, event)| !event.terminating_flow_ids.is_empty());
    assert_eq!(
        arrows.map(|(time, _)| *time).collect::<Vec<_>>(),
        [8_000],
        "the other one began before the window"
    );
}

#[test]
fn a_window_of_which_not_all_is_known_is_refused() {
    let mut trace = trace([
        (0, 10, Event::Mark { vcpu: 0, value: 0 }),
        (1, 50, Event::Lost { count: 7 }),
        (1, 50, Event::Mark { vcpu: 1, value: 0 }),
        (0, 100, Event::Mark { vcpu: 0, value: 1 }),
    ]);
    let refused =
        |trace: &Trace, from, to| File::within(trace, from, to).err().map(|error| error.to_string());
    assert_eq!(refused(&trace, 0, 10_000), None, "up to the last record");
    let late = "the window ends at 0.000010001 s, but the last record is from 0.00001 s";
    assert_eq!(refused(&trace, 0, 10_001).as_deref(), Some(late));
    trace.cores[1].lost = 7;
    let lost = "the window begins at 0.000004999 s, but hart 1 has lost its records before 0.000005 s: begin later, or \
                keep more records for each core";
    assert_eq!(refused(&trace, 4_999, 10_000).as_deref(), Some(lost));
    assert_eq!(refused(&trace, 5_000, 10_000), None);
    assert!(Window::new(5, 5).is_none());
}
