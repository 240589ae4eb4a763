//! Traces of a run.
//!
//! Each core writes small binary [`Record`]s to a [`Ring`] of its own, in memory that nobody else writes: no lock, no
//! allocation, at most 30 instructions a record, and three where the record's kind is masked out. When the ring is full the
//! oldest record goes. After the run a host tool finds the rings in an image of the memory by their headers
//! (`host::read`, with the feature `host`), merges them by time, and writes a file for the Perfetto UI
//! (`host::perfetto`).
//!
//! | layer | what it is |
//! |---|---|
//! | [`Event`] | what happened, typed |
//! | [`Record`] | an event with its time, as two words |
//! | [`Ring`] | the records of one core, newest last |
//! | [`Mask`] | which kinds are recorded |
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "host")]
extern crate std;

mod event;
#[cfg(feature = "host")]
pub mod host;
mod mask;
mod record;
mod ring;

pub use event::{Cause, Event, Line};
pub use mask::{DEFAULT_MASK, Mask};
pub use record::{Kind, Record, TIME_BITS, UnknownKind};
pub use ring::{Header, Ring};
