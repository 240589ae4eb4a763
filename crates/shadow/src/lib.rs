//! Shadow page tables: the first stage of a vCPU's address translation and the second one in one table, which the hart walks instead of the guest's.
//!
//! A guest's tables lead from virtual to guest-physical addresses. With two stages the hart walks both, which takes up to 15 loads (Sv39 on Sv39x4) for a miss
//! of its TLB. A shadow leads from virtual to host-physical addresses, in 3 loads. The idea is
//! old (VM/370); this is Gandalf's (Ito and Oikawa 2008, docs/decisions.md) for RISC-V: entries are filled in when the guest faults, and go when it fences.
//!
//! The kernel uses it if it is built with the feature `shadow`, on harts with H, whose second stage is switched off then. It is made for harts without H as well, on which a
//! guest's kernel runs in user mode as its programs do: then it has several [views](#views) of each address space.
//!
//! # A shadow is a TLB
//! Each vCPU has a [`Shadow`] of its own, and to its guest that is a large TLB of its hart, with tags of 16 bits (ASIDs). All that the privileged specification lets a TLB
//! do it may do, and nothing else: it may keep what a walk gave since the last SFENCE.VMA that covers it, and forget at any time. So no store of the guest to its tables
//! has to be seen, and vCPUs share nothing: what one vCPU fences on another is a call or an interrupt by which the guest says so, as between harts.
//!
//! | what happens | what to call | what it does |
//! |---|---|---|
//! | the guest writes `satp` | [`Shadow::activate`] | finds the address space, or makes an empty one |
//! | its mode changes, or SUM or MXR (without H) | [`Shadow::enter_view`] | the same for another view of the address space |
//! | an access faults in the hart's walk | [`Shadow::fault`] | walks the guest's tables: fills in what it found, or says what the guest is to be told |
//! | the guest executes SFENCE.VMA, or another vCPU has it fence | [`Shadow::fence`] | forgets what is covered |
//! | the vCPU comes to another hart | [`Shadow::distrust`] | remembers that each of its tags is to be fenced there |
//!
//! Each says which fence is [due](Due) on the hart. That is one for the tag of the active address space; what is due for others is told when they are activated.
//!
//! # Address spaces
//! There is a tree of tables for each address space, which is what the guest has in `satp`. Those that aren't active keep theirs, so that a guest which comes back
//! to one doesn't fault all of it in again. If there is one alone, a change of `satp` empties it. Pages that the guest calls global
//! (bit G) are in a tree of their own, to which those of all address spaces lead by entries of their roots: so Linux's kernel, which is in each of its address spaces, is
//! filled in once, and a fence for one process leaves it there.
//!
//! A fence for all of an address space takes its tables out by a splice of lists, whatever their number. At most one address space has an ASID: with another root the guest has
//! another one, and the first is forgotten.
//!
//! A fence for an address of all of them, as Linux executes one behind each page fault, is carried out at once in the active one, and what is global. The others are told when they are activated:
//! they get nothing new before, and most are of processes that have ended. One that has more of them before it than are kept is forgotten.
//!
//! What wasn't valid is never kept: where the shadow has nothing, each access comes to it, and it walks the guest's tables as they stand. So what a guest makes valid, in leaves and above them, is seen at
//! once, and the guest may be told of Svvptc, whatever its harts have: to keep no invalid entries is one of the ways to implement it that its specification names. Linux leaves out the fence
//! behind each page fault then.
//!
//! With a page that faults some of its neighbours are filled in, of those whose leaves are in a row of 64 bytes with its own: as far as a walk would find them now, without a bit A or D to be set for it, and of the
//! same kind as the one that faulted. A hart may do as much, as it may walk at any time.
//!
//! # Views
//! On a hart with H a tree is for all modes of the guest, as each leaf has the guest's own bit U ([`Undivided`]). On one without H all of the guest is in user mode, so each leaf
//! has U, and there is a tree for each [view](Divided) of an address space: what programs may use, what the kernel may use, and what it may use with SUM. A page is filled in as a
//! walk allows in that mode. In what follows, and wherever spaces are counted, each view is an address space: with a tree and a tag of its own, that is active or isn't. What they
//! have in common:
//! - A fence for an address space covers all of its views, and if its ASID gets another root, all of them go.
//! - What is global of the kernel's is in the global tree for all views of kernels, which have the same rights to it. What is global of programs' pages is filled in as if it weren't.
//! - What isn't translated is the same in all modes, and is one address space.
//!
//! They know each other, so that the way from one to another, which traps and returns from them take, is some 30 instructions.
//!
//! # The window
//! Without H a trap of the guest is taken with the guest's tables in `satp`, so the entry of the hypervisor has to be mapped in them. The upper half of each root has an entry for
//! that, the [window](Window), which leads to tables that are the hypervisor's: it is in each root as long as a hart may walk that, in new ones from the beginning. The guest's
//! pages aren't filled in where it is, and where they should be the caller is [told](Outcome::Window) to [move it](Shadow::move_window) to the next slot, which forgets all. An
//! instruction needs four pages at most, so it is made at last, and a guest that leaves a slot free has the window there in the end.
//!
//! # Large pages
//! A large page of the guest that isn't in one piece in the second stage is filled in as smaller ones, its *splinters* (Xen's word). A fence for any address of it covers all of them, so a table
//! of splinters has nothing else, and goes as a whole.
//!
//! # When tables run out
//! They are of a fixed pool. [`Reclaim`] says whose is taken. An instruction can need four pages at once, and none of those that were filled in last is taken for another, unless all is: so each instruction
//! is made at last.
//!
//! # How long things take
//! Each call is bounded by the levels, the number of address spaces, and 24 rows of entries that it clears. Where that isn't enough, a call does a step and says so (`NotYet`, or `None`): the instruction of the guest for which
//! it was made hasn't been executed then, and asks once more. So whoever calls can see to other things between two steps. To forget all is one step, always.
//!
//! # What whoever uses it has to see to
//! - With H, `hgatp` is Bare, so that all guests have VMID 0. With and without, the tags of all vCPUs of a hart need different ASIDs.
//! - Where the second stage has a memory type, the hart takes it from the shadow: `henvcfg.PBMTE` is on (without H `menvcfg.PBMTE`), whatever the guest is told.
//! - Without H, the hart's `sstatus.MXR` is the guest's while this runs, the active view is [that of its mode](View::of), and the tables behind the window have no U.
//! - SINVAL.VMA is a fence like others.
//! - A change of the second stage is a fence of all.
//!
//! # How it is checked
//! Property tests compare it with a plain model of what harts may use: random edits of the guest's tables (all levels, all bits), accesses, switches, moves,
//! fences of all scopes, small pools. Each translation that the shadow allows, by any entries that a hart may have kept, is one that a walk gave since the last fence that covers it; and whatever the hart keeps, an access that was
//! filled in is made. With views, what the shadow allows in the active one is compared with what its mode allows; and each root is looked at for its window, whenever the hart may walk it.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod deferred;
mod entry;
mod fence;
mod format;
mod global;
mod memory;
mod numbered;
mod pool;
mod set;
mod shadow;
mod slots;
mod space;
#[cfg(test)]
mod tests;
mod tree;
mod view;
mod walk;
mod window;

pub use entry::Features;
pub use fence::{Due, Scope};
pub use format::{Format, Satp};
pub use memory::{Memory, ROW, Tables};
pub use pool::{Reclaim, TableState};
pub use shadow::{Activation, Active, Choices, Outcome, Shadow, UpToDate};
pub use space::AddressSpace;
pub use view::{Divided, Undivided, View};
pub use walk::{Access, Fault, Mode};
pub use window::Window;

/// An address as the guest's programs see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Virtual(pub u64);
