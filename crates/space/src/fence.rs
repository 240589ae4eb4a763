//! What is due after a change, as types. The kernel has only [`Mapped`] so far, from boot; the others are not used yet: for changes while a
//! guest runs.
use crate::{GuestPhysical, HostPhysical, Space, Table, Tables};

/// Which HFENCE.GVMA is due.
#[must_use = "harts may still use what they have cached"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableFence {
    /// Where the range of changed translations begins.
    pub start: GuestPhysical,
    /// Its size in bytes, a multiple of 4 KiB.
    pub size: u64,
    /// What has changed there.
    pub reach: Reach,
}

/// What has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Leaves alone: one HFENCE.GVMA for each page of the range is enough (rs1 holds its address, shifted right by two bits), and so is a single
    /// one with rs1 = x0.
    Leaves,
    /// Pointers to tables as well. Only rs1 = x0 orders these.
    Tables,
}

/// Something has been mapped. A hart may fault there until it has fenced.
#[must_use = "harts may have cached that nothing is there"]
#[derive(Debug, PartialEq, Eq)]
pub struct Mapped(pub(crate) TableFence);

impl Mapped {
    /// The fence after which a hart doesn't fault there.
    pub fn fence(self) -> TableFence {
        self.0
    }

    /// No fence is due now: either no hart has loaded the table into `hgatp` yet, or the handler of guest-page faults executes it as described
    /// [above](crate#a-fence-for-what-was-mapped).
    pub fn later(self) {}
}

/// Rights have been changed. A hart may have the former ones until it has fenced.
#[must_use = "harts may still use the former rights"]
#[derive(Debug, PartialEq, Eq)]
pub struct Protected {
    pub(crate) fence: TableFence,
    pub(crate) takes_away: bool,
}

impl Protected {
    /// The fence that is due on every hart that may have cached the range.
    pub const fn fence(&self) -> TableFence {
        self.fence
    }

    /// Is some right gone that was there? Otherwise the fence may come late, as that of [`Mapped`].
    #[must_use]
    pub const fn takes_away(&self) -> bool {
        self.takes_away
    }

    /// All those harts have fenced, or the fence may come late: from now on what the new rights don't allow doesn't happen.
    pub fn fenced(self) {}
}

/// Something has been unmapped. Harts may use its frames, and read the tables that led there, until they have fenced.
#[must_use = "the frames come back only by `fenced`"]
#[derive(Debug, PartialEq, Eq)]
pub struct Unmapped {
    pub(crate) fence: TableFence,
    /// Of which space.
    pub(crate) root: Table,
}

/// A range that was unmapped, and which no hart uses any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames {
    /// Where the guest had it.
    pub guest: GuestPhysical,
    /// Where it is.
    pub host: HostPhysical,
    /// Bytes.
    pub size: u64,
}

impl Unmapped {
    /// The fence that is due on every hart that may have cached the range.
    pub const fn fence(&self) -> TableFence {
        self.fence
    }

    /// All those harts have fenced since the change: hands out what was mapped, leaf by leaf, and frees the tables that nothing is left in. From
    /// now on something can be mapped there.
    ///
    /// # Errors
    /// If it was another space that it was unmapped from: then nothing happens.
    pub fn fenced<T: Tables>(self, space: &mut Space<T>, frames: impl FnMut(Frames)) -> Result<(), Self> {
        if space.root() != self.root {
            return Err(self);
        }
        space.take_back(self.fence.start, self.fence.size, frames);
        Ok(())
    }
}
