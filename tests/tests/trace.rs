//! A trace of a real run, as the file that the Perfetto UI gets: complete, and in agreement with the run's own counters.
use ainori::{report::Outcome, run::Tracing};
use ainori_tests::{Clock, Guest, System, whole_trace};
use ainori_trace::{
    Mask,
    host::{
        Window,
        perfetto::messages::{self, EventType},
    },
};
use prost::Message;
use std::collections::BTreeMap;

/// Slices and points on the tracks of a file.
struct File {
    /// How many points there are, by track and name.
    points: BTreeMap<(String, String), u64>,
    /// Slices that begin, by track.
    slices: BTreeMap<String, u64>,
}

impl File {
    fn parse(bytes: &[u8]) -> Self {
        let file = messages::Trace::decode(bytes).expect("the file is a trace");
        let mut tracks = BTreeMap::new();
        let (mut points, mut slices) = (BTreeMap::new(), BTreeMap::new());
        for packet in file.packet {
            if let Some(track) = packet.track_descriptor {
                tracks.insert(track.uuid, track.name.expect("a track has a name"));
            }
            let Some(event) = packet.track_event else { continue };
            let track = tracks[&event.track_uuid].clone();
            match (event.r#type(), &event.name) {
                (EventType::Instant, Some(name)) => *points.entry((track, name.clone())).or_default() += 1,
                (EventType::SliceBegin, _) => *slices.entry(track).or_default() += 1,
                _ => {}
            }
        }
        Self { points, slices }
    }

    /// Points on a track whose names begin so.
    fn count(&self, track: &str, name: &str) -> u64 {
        let found = self.points.iter().filter(|((on, called), _)| on == track && called.starts_with(name));
        found.map(|(_, count)| count).sum()
    }
}

#[test]
fn a_trace_agrees_with_the_counters() {
    let system = System::on(2)
        .with(Guest::linux("hackbench").vcpus(2))
        .with(Guest::freertos("period_us=1000 periods=2000 burn_percent=30"));
    let (report, file) = system.run_with_trace(Clock::Lockstep { q: 250 }, whole_trace());
    assert!(report.problems.is_empty(), "{}: {:?}", report.outcome.words(), report.problems);

    let taken = report.trace.as_ref().expect("a trace was taken");
    assert_eq!(taken.lost, 0, "nothing is lost with the default mask");
    let written: u64 = report.cores.iter().filter_map(|core| core.trace).map(|ring| ring.written).sum();
    assert_eq!(taken.records, written);
    let trace = File::parse(&file);

    for vcpu in report.guests.iter().flat_map(|guest| &guest.vcpus) {
        let track = format!("{}/{}", vcpu.guest, vcpu.vcpu);
        for (cause, exits) in &vcpu.exits {
            let found = trace.points.get(&(track.clone(), cause.to_string())).copied().unwrap_or(0);
            assert_eq!(found, *exits, "traps of {track} for {cause}");
        }
        assert_eq!(trace.count(&track, "migrates"), vcpu.migrations, "migrations of {track}");
        assert!(trace.slices[&track] >= vcpu.dispatches, "each time that {track} ran is a slice");
    }
    for core in &report.cores {
        let track = format!("hart {}", core.hart);
        assert_eq!(trace.count(&track, "IPI to"), core.ipis_sent, "IPIs of {track}");
    }
}

#[test]
fn a_trace_can_show_a_part_of_the_run() {
    // Its lines on the console are nearly all that it traps for.
    let guest = Guest::freertos("period_us=1000 periods=200 burn_percent=0 report_ms=10");
    let system = System::on(1).with(guest);
    let traced = |window: Option<(u64, u64)>| {
        let window = window.map(|(from, to)| Window::new(from, to).expect("it ends later than it begins"));
        system.run_with_trace(Clock::Icount, Tracing { window, ..whole_trace() })
    };
    let (whole, _) = traced(None);
    let end = whole.end.expect("the hypervisor came to its end").time * 100; // at 10 MHz
    let (from, to) = (end / 2, end / 2 + 20_000_000);
    let (part, bytes) = traced(Some((from, to)));
    assert_eq!(part.outcome, Outcome::Good, "{:?}", part.problems);
    let times: Vec<u64> = messages::Trace::decode(&*bytes)
        .expect("the file is a trace")
        .packet
        .iter()
        .filter_map(|packet| packet.timestamp)
        .collect();
    assert_eq!((times.first(), times.last()), (Some(&from), Some(&to)), "states are shown from end to end");
    let (records, all) = (part.trace.map(|trace| trace.records), whole.trace.map(|trace| trace.records));
    assert!(Some(0) < records && records < all, "{records:?} of {all:?}");

    let (beyond, _) = traced(Some((end, end + 1_000_000_000)));
    assert_eq!(beyond.outcome, Outcome::NoTrace);
    assert!(beyond.problems[0].contains("the window ends at"), "{:?}", beyond.problems);
}

#[test]
fn a_full_ring_keeps_the_newest_records() {
    // Alone on its core, FreeRTOS traps for little more than its console.
    const ROOM: u64 = 8;
    let system = System::on(1).with(Guest::freertos("period_us=1000 periods=200 burn_percent=0"));
    let mask = Mask::from_names(["trap"]).expect("a known kind");
    let newest = Tracing { mask: Some(mask), records: Some(ROOM as u32), ..whole_trace() };
    let (report, file) = system.run_with_trace(Clock::Icount, newest);
    let taken = report.trace.as_ref().expect("a trace was taken");
    let exits: u64 = report.guests[0].vcpus[0].exits.values().sum();
    assert_eq!((taken.records, taken.lost), (ROOM, exits - ROOM));
    let trace = File::parse(&file);
    assert_eq!(
        trace.points.iter().filter(|((on, _), _)| on == "freertos/0").map(|(_, count)| count).sum::<u64>(),
        ROOM
    );
    assert_eq!(trace.count("hart 0", &format!("{} older records lost", exits - ROOM)), 1);
}
