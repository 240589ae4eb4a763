//! What a trace tells of the vCPUs of a guest, in the order of time.
use ainori_trace::host::perfetto::messages::{self, EventType};
use prost::Message;
use std::collections::BTreeMap;

/// Something on the track of a vCPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its index in the guest.
    pub vcpu: usize,
    /// When, in nanoseconds.
    pub at: u64,
    /// Whether a slice begins or ends, or it is a point.
    pub kind: EventType,
    /// What: `suspended`, `running on hart 2`.
    pub name: String,
}

impl Event {
    /// The hart on which the vCPU runs from now on, if this says so.
    pub fn hart(&self) -> Option<u64> {
        Some(self.name.strip_prefix("running on hart ")?.parse().expect("a hart"))
    }
}

/// The named events on the tracks of the vCPUs of `guest`, of a file for the Perfetto UI.
pub fn timeline(trace: &[u8], guest: &str) -> Vec<Event> {
    let file = messages::Trace::decode(trace).expect("the file is a trace");
    let (mut tracks, mut events) = (BTreeMap::new(), Vec::new());
    for packet in file.packet {
        if let Some(track) = packet.track_descriptor {
            let name = track.name.expect("a track has a name");
            let vcpu =
                name.strip_prefix(guest).and_then(|rest| rest.strip_prefix('/')?.parse::<usize>().ok());
            tracks.extend(vcpu.map(|vcpu| (track.uuid, vcpu)));
            continue;
        }
        let (Some(event), Some(at)) = (packet.track_event, packet.timestamp) else { continue };
        let kind = event.r#type();
        if let (Some(&vcpu), Some(name)) = (tracks.get(&event.track_uuid), event.name) {
            events.push(Event { vcpu, at, kind, name });
        }
    }
    events
}
