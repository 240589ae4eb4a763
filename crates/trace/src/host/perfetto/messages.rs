//! The few messages of Perfetto's trace format that are written, with the field numbers of its schema
//! (`protos/perfetto/trace/trace.proto`, `trace_packet.proto`, `track_event/*.proto` of google/perfetto).
//! Fields that aren't used here are left out; protocol buffers allow that.

use std::{string::String, vec::Vec};

/// The whole file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Trace {
    /// In any order; the reader sorts them by time.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// Describes a track, or something that happened on one.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracePacket {
    /// Nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Names the writer; packets of one writer with the same time keep their order.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// Something that happened.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// A track.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

/// A row in the user interface.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackDescriptor {
    /// The track's identity in this file.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// What the row is called.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// The row that it is shown under.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// Set on a track of counter values.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    /// How the rows under this one are sorted.
    #[prost(enumeration = "ChildOrdering", optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// Place among its siblings, if their parent's order is explicit.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

/// Order of the rows under a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum ChildOrdering {
    /// Not said.
    Unknown = 0,
    /// By [`TrackDescriptor::sibling_order_rank`].
    Explicit = 3,
}

/// Marks a track of counter values.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CounterDescriptor {
    /// What is counted.
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}

/// Something that happened on a track.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackEvent {
    /// Details, shown when the event is selected.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// What sort of event.
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub r#type: Option<i32>,
    /// The track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// What the event is called.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    /// The new value of a counter.
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    /// Flows (arrows) that start here or go on from here.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// Flows that end here.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// Sort of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum EventType {
    /// Not said.
    Unspecified = 0,
    /// A slice begins; it lies within the one that is open on its track.
    SliceBegin = 1,
    /// The innermost slice that is open on the track ends.
    SliceEnd = 2,
    /// A point in time.
    Instant = 3,
    /// A counter has a new value.
    Counter = 4,
}

/// A detail of an event.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DebugAnnotation {
    /// What it is called.
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
    /// Its value.
    #[prost(oneof = "AnnotationValue", tags = "6, 7")]
    pub value: Option<AnnotationValue>,
}

/// Value of a detail.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum AnnotationValue {
    /// A text.
    #[prost(string, tag = "6")]
    Text(String),
    /// A number, shown in hexadecimal.
    #[prost(uint64, tag = "7")]
    Address(u64),
}
