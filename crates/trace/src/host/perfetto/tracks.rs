//! The tracks of the file, and the packets on them.

use std::{
    string::{String, ToString},
    vec::Vec,
};

use super::messages::{
    AnnotationValue, ChildOrdering, CounterDescriptor, DebugAnnotation, EventType, TracePacket,
    TrackDescriptor, TrackEvent,
};

/// A row of the user interface. Its place in the file's numbering is its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Track {
    /// Parent of the harts.
    Harts,
    /// Parent of the vCPUs.
    Vcpus,
    /// Parent of the counters.
    Counters,
    /// Which vCPU runs on the core.
    Hart(u8),
    /// In which state the vCPU is.
    Vcpu(u8),
    /// Exits on the core so far.
    Exits(u8),
    /// IPIs that the core has sent so far.
    Ipis(u8),
}

impl Track {
    /// Never zero, which is the track of the whole trace.
    pub const fn uuid(self) -> u64 {
        match self {
            Self::Harts => 1,
            Self::Vcpus => 2,
            Self::Counters => 3,
            Self::Hart(core) => 0x100 + core as u64,
            Self::Vcpu(vcpu) => 0x200 + vcpu as u64,
            Self::Exits(core) => 0x300 + core as u64,
            Self::Ipis(core) => 0x400 + core as u64,
        }
    }

    const fn parent(self) -> Option<Self> {
        match self {
            Self::Harts | Self::Vcpus | Self::Counters => None,
            Self::Hart(_) => Some(Self::Harts),
            Self::Vcpu(_) => Some(Self::Vcpus),
            Self::Exits(_) | Self::Ipis(_) => Some(Self::Counters),
        }
    }

    /// Place among its siblings.
    const fn rank(self) -> i32 {
        match self {
            Self::Harts => 0,
            Self::Vcpus => 1,
            Self::Counters => 2,
            Self::Hart(index) | Self::Vcpu(index) => index as i32,
            Self::Exits(core) => 2 * core as i32,
            Self::Ipis(core) => 2 * core as i32 + 1,
        }
    }

    const fn unit(self) -> Option<&'static str> {
        match self {
            Self::Exits(_) => Some("exits"),
            Self::Ipis(_) => Some("IPIs"),
            _ => None,
        }
    }
}

/// A detail of an event.
pub fn detail(name: &str, value: AnnotationValue) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_string()), value: Some(value) }
}

/// Collects packets.
#[derive(Default)]
pub struct Packets {
    packets: Vec<TracePacket>,
    /// While events are hidden: the last of them, which becomes part of no packet.
    hidden: Option<TrackEvent>,
}

impl Packets {
    /// Events are not shown from now on; descriptions of tracks are.
    pub fn hide(&mut self) {
        self.hidden = Some(TrackEvent::default());
    }

    /// Events are shown from now on.
    pub fn show(&mut self) {
        self.hidden = None;
    }

    /// Describes a track.
    pub fn describe(&mut self, track: Track, name: String) {
        let children_ranked = track.parent().is_none();
        self.packets.push(TracePacket {
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(track.uuid()),
                name: Some(name),
                parent_uuid: track.parent().map(Track::uuid),
                counter: track.unit().map(|unit| CounterDescriptor { unit_name: Some(unit.to_string()) }),
                child_ordering: children_ranked.then_some(ChildOrdering::Explicit.into()),
                sibling_order_rank: Some(track.rank()),
            }),
            ..packet()
        });
    }

    /// A slice begins.
    pub fn begin(&mut self, time: u64, track: Track, name: String) {
        self.event(time, track, EventType::SliceBegin).name = Some(name);
    }

    /// The slice that is open on the track ends.
    pub fn end(&mut self, time: u64, track: Track) {
        self.event(time, track, EventType::SliceEnd);
    }

    /// A point in time, to which the caller may add details and flows.
    pub fn instant(&mut self, time: u64, track: Track, name: String) -> &mut TrackEvent {
        let event = self.event(time, track, EventType::Instant);
        event.name = Some(name);
        event
    }

    /// A counter has a new value.
    pub fn counter(&mut self, time: u64, track: Track, value: i64) {
        self.event(time, track, EventType::Counter).counter_value = Some(value);
    }

    /// All packets so far.
    pub fn finish(self) -> Vec<TracePacket> {
        self.packets
    }

    fn event(&mut self, time: u64, track: Track, sort: EventType) -> &mut TrackEvent {
        let event =
            TrackEvent { r#type: Some(sort.into()), track_uuid: Some(track.uuid()), ..TrackEvent::default() };
        if let Some(hidden) = &mut self.hidden {
            *hidden = event;
            return hidden;
        }
        let packets = self.packets.len();
        self.packets.push(TracePacket { timestamp: Some(time), ..packet() });
        self.packets[packets].track_event.insert(event)
    }
}

fn packet() -> TracePacket {
    TracePacket { trusted_packet_sequence_id: Some(1), ..TracePacket::default() }
}
