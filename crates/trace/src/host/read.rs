//! Reads the rings of all cores out of an image of the machine's memory.

use std::vec::Vec;

use thiserror::Error;

use crate::{
    event::Event,
    record::{Kind, Record, UnknownKind},
    ring::Header,
};

/// A record and the core that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamped {
    /// Dense index of the core.
    pub core: u8,
    /// The record.
    pub record: Record,
}

/// What is known of one core's ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreTrace {
    /// Dense index.
    pub core: u8,
    /// Hart id.
    pub hart: u64,
    /// Records that the core wrote.
    pub written: u64,
    /// Those of them that were overwritten.
    pub lost: u64,
}

/// The records of all cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Ticks of a record's time per second.
    pub timebase_hz: u64,
    /// The cores, by index.
    pub cores: Vec<CoreTrace>,
    /// The records of all cores by time, those of one core in the order in which they were written. Where a core lost
    /// records, its first one is [`Event::Lost`].
    pub records: Vec<Stamped>,
}

impl Trace {
    /// How many records of `kind` there are.
    pub fn count(&self, kind: Kind) -> usize {
        self.records.iter().filter(|stamped| stamped.record.kind == kind).count()
    }

    /// When a record was written, in nanoseconds. Exact for any record: 48 bits of ticks times 10^9 fit into 128 bits.
    pub fn nanoseconds(&self, stamped: &Stamped) -> u64 {
        (u128::from(stamped.record.time) * 1_000_000_000 / u128::from(self.timebase_hz)) as u64
    }

    /// Records that were overwritten, on all cores.
    pub fn lost(&self) -> u64 {
        self.cores.iter().map(|core| core.lost).sum()
    }
}

/// Why an image holds no trace that can be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// There is no ring.
    #[error(
        "no trace in these {bytes} bytes of memory: was tracing on (`[trace]` in the manifest), and does the image \
         contain the hypervisor's memory?"
    )]
    NoRing {
        /// Size of the image.
        bytes: usize,
    },
    /// A ring goes beyond the end of the image.
    #[error(
        "the trace of core {core} is cut off: it needs {needed} bytes from its header on, the image has {present}; dump \
         more memory"
    )]
    Truncated {
        /// The core.
        core: u64,
        /// Bytes that the ring takes, the header included.
        needed: u128,
        /// Bytes from the header to the end of the image.
        present: usize,
    },
    /// The rings don't belong together.
    #[error("core {core} has {what}; are there traces of more than one run in the image?")]
    Mixed {
        /// The core whose ring doesn't fit to the others.
        core: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A record that this version doesn't know.
    #[error(
        "record {index} of core {core} is of the unknown kind {kind}: the trace is newer than this tool, or damaged"
    )]
    UnknownKind {
        /// The core.
        core: u64,
        /// Number of the record since the start of the run.
        index: u64,
        /// The kind's number.
        kind: u8,
    },
}

/// One core's ring, decoded.
struct Ring {
    header: Header,
    records: Vec<Record>,
}

/// Finds the rings in pieces of memory (each starts at a multiple of 8 bytes, none splits a ring), and merges them by time.
///
/// A core writes, and the reader finds its ring in what the machine's memory was:
///
/// ```
/// use ainori_trace::{Event, Mask, Ring, host::read};
///
/// let mut memory = vec![[0; 2]; Ring::slots(4)];
/// let (core, hart, timebase_hz) = (0, 0, 10_000_000);
/// let mut ring = Ring::new(&mut memory, core, hart, timebase_hz, Mask::ALL).unwrap();
/// for value in 0..6 {
///     ring.event(value * 10, Event::Mark { vcpu: 3, value });
/// }
///
/// let image: Vec<u8> = memory.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
/// let trace = read(&[&image]).unwrap();
/// assert_eq!(trace.lost(), 2, "the ring has room for four");
/// assert_eq!(trace.records[0].record.event(), Event::Lost { count: 2 });
/// assert_eq!(trace.records[1].record.event(), Event::Mark { vcpu: 3, value: 2 });
/// assert_eq!(trace.nanoseconds(&trace.records[1]), 2_000);
/// ```
pub fn read(memory: &[&[u8]]) -> Result<Trace, ReadError> {
    let mut rings = Vec::new();
    for piece in memory {
        find_rings(piece, &mut rings)?;
    }
    rings.sort_by_key(|ring| ring.header.core);
    let Some(first) = rings.first() else {
        return Err(ReadError::NoRing { bytes: memory.iter().map(|piece| piece.len()).sum() });
    };
    let timebase_hz = first.header.timebase_hz;
    check_together(&rings, timebase_hz)?;

    let mut cores = Vec::new();
    let mut records = Vec::new();
    for Ring { header, records: of_core } in rings {
        let core = header.core as u8;
        let lost = header.head.saturating_sub(header.capacity);
        cores.push(CoreTrace { core, hart: header.hart, written: header.head, lost });
        if let (1.., Some(oldest)) = (lost, of_core.first()) {
            records.push(Stamped { core, record: Event::Lost { count: lost }.at(oldest.time) });
        }
        records.extend(of_core.into_iter().map(|record| Stamped { core, record }));
    }
    records.sort_by_key(|stamped| stamped.record.time); // Stable: a core's order is kept.
    Ok(Trace { timebase_hz, cores, records })
}

fn check_together(rings: &[Ring], timebase_hz: u64) -> Result<(), ReadError> {
    let mixed = |core, what| Err(ReadError::Mixed { core, what });
    for ring in rings {
        let core = ring.header.core;
        if core > u8::MAX.into() {
            return mixed(core, "an impossible index");
        }
        if ring.header.timebase_hz != timebase_hz || timebase_hz == 0 {
            return mixed(core, "another time base than core 0, or none");
        }
    }
    match rings.windows(2).find(|pair| pair[0].header.core == pair[1].header.core) {
        Some(pair) => mixed(pair[0].header.core, "two rings"),
        None => Ok(()),
    }
}

/// Adds the rings in one piece of memory.
fn find_rings(memory: &[u8], rings: &mut Vec<Ring>) -> Result<(), ReadError> {
    let mut at = 0;
    while let Some(rest) = memory.get(at..).filter(|rest| rest.len() >= Header::BYTES) {
        let header = Header::decode(std::array::from_fn(|slot| words(rest, slot)));
        if header.is_valid() {
            let ring = read_ring(header, rest)?;
            at += Header::BYTES + ring.records.len() * 16;
            rings.push(ring);
        } else {
            at += 8;
        }
    }
    Ok(())
}

/// Reads the ring whose header starts `memory`.
fn read_ring(header: Header, memory: &[u8]) -> Result<Ring, ReadError> {
    let Header { core, capacity, head, .. } = header;
    let needed = Header::BYTES as u128 + u128::from(capacity) * 16;
    if needed > memory.len() as u128 {
        return Err(ReadError::Truncated { core, needed, present: memory.len() });
    }
    let oldest = head.saturating_sub(capacity);
    let records = (oldest..head).map(|index| {
        let slot = Header::SLOTS + (index % capacity) as usize;
        Record::decode(words(memory, slot)).map_err(|UnknownKind(kind)| ReadError::UnknownKind {
            core,
            index,
            kind,
        })
    });
    Ok(Ring { header, records: records.collect::<Result<_, _>>()? })
}

/// The pair of words number `slot`.
fn words(memory: &[u8], slot: usize) -> [u64; 2] {
    [0, 8].map(|at| {
        let mut word = [0; 8];
        word.copy_from_slice(&memory[slot * 16 + at..][..8]);
        u64::from_le_bytes(word)
    })
}
