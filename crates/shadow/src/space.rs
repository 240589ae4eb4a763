//! Address spaces: what the guest has, or had, in `satp`.
use crate::pool::Pool;
use crate::slots::Slots;
use crate::tree::Tree;
use crate::{Satp, Tables};

/// An address space of the guest, and its shadow.
#[derive(Debug, Clone)]
pub struct AddressSpace {
    /// `None`: it is of none. Then there may be something in its tree still.
    pub(crate) satp: Option<Satp>,
    pub(crate) tree: Tree,
    /// The entries of the root that are copies of the global tree's.
    pub(crate) shared: Slots,
    /// When it was activated last: activations are numbered.
    pub(crate) activated: u64,
    /// Something was taken out since the hart has fenced its tag.
    pub(crate) fence: bool,
}

impl AddressSpace {
    /// None, and without a root.
    pub const UNUSED: Self =
        Self { satp: None, tree: Tree::ROOTLESS, shared: Slots::NONE, activated: 0, fence: true };

    /// Does the guest translate in it?
    pub(crate) fn is_translated(&self) -> bool {
        self.satp.is_some_and(|satp| satp != Satp::BARE)
    }

    /// It is of none from now on, and has no tables but its root, which is cleared when it is of one again. No fence is due before that.
    pub(crate) fn leave(&mut self, pool: &mut Pool<impl Tables>) {
        self.satp = None;
        self.shared = Slots::NONE;
        pool.give_back_all(&mut self.tree.owned);
    }

    /// Is it the one that has this ASID?
    pub(crate) fn has_asid(&self, asid: u16) -> bool {
        self.is_translated() && self.satp.is_some_and(|satp| satp.asid() == asid)
    }
}
