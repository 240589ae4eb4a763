//! What cores share of a vCPU: words that let it move from core to core while others want something of it.
//!
//! # The parts
//! - A vCPU that no core has is parked in its [`ParkingSlot`], and whichever core claims it first has it.
//! - What others want of it stands in its [`RequestWord`], and moves with it.
//! - A [`PublishedThreshold`] per core says what that core must not be disturbed for.
//! - [`Fences`] are the remote fences that others want of it, and [`Answers`] those that it waits for itself.
//! - [`PublishedHousework`] is what any core wants of the one that does the hypervisor's own slow work.
//! - A [`Pace`] is how often something is done to a guest, whichever core does it.
//! - [`Seats`] keep the vCPUs of a guest on different cores, under the policy that wants that.
//! - [`tell`], [`look_at`] and [`interrupt_running`] are the rules by which cores use all these.
//!
//! # The rule
//! Whoever wants something of a vCPU looks where it is, in order to tell the right core, or none if that would be a
//! disturbance. Meanwhile the vCPU moves. That nothing is lost then rests on one rule, Dekker's: each side writes, then
//! executes a full fence, and only then reads what the other one writes. At least one of the two sees the other.
//!
//! | who | writes | then reads | method that ends with the fence |
//! |---|---|---|---|
//! | an asker | the request | owner, slot, the owner's threshold | [`RequestWord::request`] |
//! | a core that claims the vCPU | its owner | the requests | [`ParkingSlot::claim`] |
//! | a core that parks it | its slot | the requests | [`ParkingSlot::park`] |
//! | who has work for the housekeeping core | the kind of work | that core's threshold | [`PublishedHousework::ask`] |
//! | a core that lowers its threshold | its threshold | the requests of its vCPUs, the housework | [`PublishedThreshold::lower`] |
//! | a core where a window in time begins | the levels of its vCPUs, which are words as its threshold is, and that | the requests of these vCPUs | [`PublishedThreshold::lower`] |
//! | the sender of a fence | the fence | whether the vCPU is present | within [`Fences::record`] |
//! | who answers for a vCPU of another core | that those who wait are taken out | whether the vCPU is present | within [`Fences::take_waiting_if_absent`] |
//! | a core that enters the vCPU | that it is present | the fences | [`Fences::arrive`] |
//!
//! The reads are the callers'. So an asker who tells a core that has no longer the vCPU, or who finds it parked or hidden and
//! keeps quiet, need not be afraid: the core that claims it, parks it or lowers its threshold sees the request.
//!
//! # How it is checked
//! `loom` tries out every interleaving (of moves, and of two senders of fences: those with two to four switches) and every order that the memory model allows; `src/model.rs` says which
//! mistakes it was seen to find:
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p ainori-handover --lib --release`
#![cfg_attr(not(any(test, loom)), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

mod atomic;
mod atomic_set;
mod fences;
mod housework;
#[cfg(all(test, loom))]
mod model;
mod pace;
mod parking;
mod protocol;
mod requests;
mod seats;
#[cfg(all(test, not(loom)))]
mod tests;
mod threshold;

pub use atomic_set::AtomicVcpuSet;
pub use fences::{Answers, Fence, Fences, Recorded};
#[cfg(feature = "shadow")]
pub use fences::{PageFence, PageFences, Progress};
pub use housework::PublishedHousework;
pub use pace::Pace;
pub use parking::ParkingSlot;
pub use protocol::{Core, Requests, interrupt_running, look_at, tell};
pub use requests::RequestWord;
pub use seats::{Seat, Seats};
pub use threshold::PublishedThreshold;
