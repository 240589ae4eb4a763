//! Address spaces: what the guest has, or had, in `satp`.
use crate::Satp;
use crate::format::Format;
use crate::set::Set;
use crate::tree::Tree;
use crate::view::{Undivided, View};

/// An address space of the guest, or a view of one, and its shadow.
#[derive(Debug, Clone)]
pub struct AddressSpace<V = Undivided> {
    /// Means something only if it is one: else there may be something in its tree still.
    pub(crate) satp: Satp,
    /// Likewise.
    pub(crate) view: V,
    /// Of its tree.
    pub(crate) format: Format,
    pub(crate) tree: Tree,
    /// The entries of the root that are copies of the global tree's, by their places there.
    pub(crate) shared: Set,
    /// All views of its address space, by their numbers. Some may be none any more.
    pub(crate) views: Set,
    /// If it is behind: the number of the first fence that it has before it.
    pub(crate) fenced: u64,
    /// When it was activated last: activations are numbered.
    pub(crate) activated: u64,
}

impl<V: View> AddressSpace<V> {
    /// None, and without a root.
    pub const UNUSED: Self = Self {
        satp: Satp::BARE,
        view: V::BARE,
        format: Format::Sv39,
        tree: Tree::ROOTLESS,
        shared: Set::EMPTY,
        views: Set::EMPTY,
        fenced: 0,
        activated: 0,
    };

    /// Does the guest translate in it?
    pub(crate) fn is_translated(&self) -> bool {
        self.satp != Satp::BARE
    }

    /// Does it have this ASID?
    pub(crate) fn has_asid(&self, asid: u16) -> bool {
        self.is_translated() && self.satp.asid() == asid
    }
}
