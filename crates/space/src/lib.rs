//! The second stage of a guest's address translation: guest-physical to host-physical, by page tables of the formats Sv39x4, Sv48x4 and
//! Sv57x4 (privileged specification, "Two-Stage Address Translation").
//!
//! Of this the kernel uses so far [`Space::map`] with [`Format::Sv39x4`], at boot. The rest is not used yet: it is for memory that guests
//! get, share or give back while they run (docs/decisions.md, Memory spaces).
//!
//! # Changes while the guest runs
//! A hart may keep any entry that it could have read since its last fence, valid or not, and goes on using it. So each change answers with a
//! `#[must_use]` value that says what is due before the change can be relied on:
//!
//! | change | answer | until the fence | what the fence is for |
//! |---|---|---|---|
//! | [`Space::map`] | [`Mapped`] | a hart may use the new translation, or fault | nothing that could be used wrongly: the fence may come late |
//! | [`Space::protect`] | [`Protected`] | a hart has the old rights, or the new | relying on what rights were taken away |
//! | [`Space::unmap`] | [`Unmapped`] | a hart may use the frames, and read the tables | using frames and tables for something else |
//!
//! What was unmapped comes back only from [`Unmapped::fenced`]. Until then the frames are still named by the entries, which are only marked
//! invalid, and the tables above them stay where they are: so nothing has to be remembered elsewhere, however much is unmapped. Nothing can be
//! mapped there in the meantime.
//!
//! # The fence
//! [`TableFence`] says which HFENCE.GVMA is due. It is due on every hart that has loaded the table since its last such fence, for each VMID
//! that the guest has there, behind those or together with those that are due there from earlier changes. A hart that has another VMID in
//! `hgatp` uses nothing of what it has cached for this one: there it is enough if the fence comes before the guest runs there again.
//! HFENCE.GVMA also drops what a hart has cached of both stages together; no HFENCE.VVMA is needed.
//!
//! # A fence for what was mapped
//! The specification lets a hart keep invalid entries, too. Then it faults on what has just been mapped, until its fence. There are two ways:
//! each hart fences before the guest is told of the memory; or the handler of guest-page faults asks [`Space::translate`], and if the access is
//! allowed there, it executes HFENCE.GVMA with rs1 = x0 (an upper table may be what the hart has missed) and returns. With Svvptc harts see a new
//! entry within bounded time. They may fault until then: the handler still has to ask, but it needs no fence. Svvptc says nothing about
//! [`Space::protect`] and [`Space::unmap`].
//!
//! # What harts see meanwhile
//! Each entry is written by one atomic store, and before it the table that it leads to is complete. So every store leaves a table that translates
//! each address as before the change or as after it. The bits A and D are set from the start: harts never write an entry.
//!
//! # How it is checked
//! Property tests (`src/tests/`) compare it with a plain model, and with harts that use, at every step of a walk, any entry that the
//! specification still lets them have: none of them reaches a frame or a table that has come back.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod attributes;
mod entry;
mod error;
mod fence;
mod format;
mod space;
mod tables;
#[cfg(test)]
mod tests;

pub use attributes::{Attributes, MemoryType, Rights};
pub use error::{Error, Obstacle};
pub use fence::{Frames, Mapped, Protected, Reach, TableFence, Unmapped};
pub use format::Format;
pub use space::{Space, Translation};
pub use tables::{Table, Tables};

/// An address as a guest sees its memory ("guest-physical").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GuestPhysical(pub u64);

/// An address on the board's bus ("supervisor-physical").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPhysical(pub u64);

/// Bytes of a page, the smallest range that can be mapped.
pub use ainori_limits::PAGE;
