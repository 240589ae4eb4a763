//! A trace file, read back: what is on each track.
use ainori_trace::host::perfetto::messages::{self, AnnotationValue, EventType, TrackEvent};
use miette::{Result, miette};
use prost::Message;
use std::{collections::BTreeMap, path::Path};

/// A state that lasted, in nanoseconds.
pub struct Slice {
    pub begin: u64,
    pub end: u64,
    pub name: String,
}

/// Something that happened.
pub struct Point {
    /// Nanoseconds.
    pub time: u64,
    pub name: String,
    /// Where the vCPU was, if it was a trap.
    pub pc: Option<u64>,
}

/// Slices and points by track, each in the order of time.
#[derive(Default)]
pub struct Timeline {
    pub slices: BTreeMap<String, Vec<Slice>>,
    pub points: BTreeMap<String, Vec<Point>>,
}

impl Timeline {
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|error| miette!("{}: {error}", path.display()))?;
        let file = messages::Trace::decode(&*bytes)
            .map_err(|error| miette!("{} is not a trace: {error}", path.display()))?;
        let mut tracks = BTreeMap::new();
        let mut timeline = Self::default();
        let mut open = BTreeMap::new();
        for packet in file.packet {
            if let Some(track) = packet.track_descriptor {
                tracks.insert(track.uuid, track.name.unwrap_or_default());
            }
            let (Some(event), Some(time)) = (packet.track_event, packet.timestamp) else { continue };
            let track = tracks
                .get(&event.track_uuid)
                .ok_or_else(|| miette!("{}: an event is on no track", path.display()))?;
            let name = event.name.clone().unwrap_or_default();
            match event.r#type() {
                EventType::SliceBegin => {
                    open.insert(track.clone(), (time, name));
                }
                EventType::SliceEnd => {
                    if let Some((begin, name)) = open.remove(track) {
                        timeline.slices.entry(track.clone()).or_default().push(Slice {
                            begin,
                            end: time,
                            name,
                        });
                    }
                }
                EventType::Instant => {
                    let point = Point { time, name, pc: pc(&event) };
                    timeline.points.entry(track.clone()).or_default().push(point);
                }
                EventType::Counter | EventType::Unspecified => {}
            }
        }
        Ok(timeline)
    }

    pub fn slices(&self, track: &str) -> &[Slice] {
        self.slices.get(track).map_or(&[], Vec::as_slice)
    }

    pub fn points(&self, track: &str) -> &[Point] {
        self.points.get(track).map_or(&[], Vec::as_slice)
    }
}

fn pc(event: &TrackEvent) -> Option<u64> {
    let detail = event.debug_annotations.iter().find(|detail| detail.name.as_deref() == Some("pc"))?;
    match detail.value {
        Some(AnnotationValue::Address(pc)) => Some(pc),
        _ => None,
    }
}
