//! Views of an address space: which of its pages a hart finds in a tree of the shadow, and with which rights.
use crate::walk::{Found, Mode};

/// What a [`Shadow`](crate::Shadow) has of each address space: one tree for all modes of its guest ([`Undivided`]), or one for each view ([`Divided`]).
///
/// The hart decides which, so it is a type: what one of them doesn't need is in no code for it.
pub trait View: Copy + Eq + core::fmt::Debug + sealed::Sealed + 'static {
    /// Has an address space several views?
    const IS_DIVIDED: bool;
    /// The view of what isn't translated, in all modes.
    const BARE: Self;

    /// The view in which an access in a mode is made.
    #[must_use]
    fn of(mode: Mode) -> Self;

    /// If it is one of several, which.
    #[must_use]
    fn divided(self) -> Option<Divided>;
}

/// The only view on a hart with the H extension. Its guest's modes are modes of the hart's as well (VS and VU), and each leaf of the shadow has the guest's own bit U.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undivided;

/// A view on a hart without the H extension, where all of a guest runs in user mode. Each leaf has U, and what the guest's own bit U, its mode, `sstatus.SUM` and `sstatus.MXR`
/// make of a page is decided when it is filled in. The hart's own `sstatus.MXR` is as the guest's; its SUM is no matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Divided {
    /// User mode: pages of programs (U).
    User,
    /// Supervisor mode without SUM: pages of the kernel alone.
    Kernel,
    /// Supervisor mode with SUM: also those of programs, but not to execute.
    KernelSum,
    /// The same with MXR: pages of programs to execute can be read. For these the hart's own MXR can't do that, as its kernel can't execute them. (The other views have pages to
    /// execute as such.)
    KernelSumMxr,
}

impl View for Undivided {
    const IS_DIVIDED: bool = false;
    const BARE: Self = Self;

    #[inline(always)]
    fn of(_: Mode) -> Self {
        Self
    }

    #[inline(always)]
    fn divided(self) -> Option<Divided> {
        None
    }
}

impl View for Divided {
    const IS_DIVIDED: bool = true;
    const BARE: Self = Self::User;

    #[inline(always)]
    fn of(mode: Mode) -> Self {
        match mode {
            Mode { user: true, .. } => Self::User,
            Mode { sum: false, .. } => Self::Kernel,
            Mode { mxr: false, .. } => Self::KernelSum,
            Mode { mxr: true, .. } => Self::KernelSumMxr,
        }
    }

    #[inline(always)]
    fn divided(self) -> Option<Divided> {
        Some(self)
    }
}

/// Views of an address space, at most.
pub(crate) const MOST_VIEWS: usize = 4;

/// A view's number, below [`MOST_VIEWS`].
#[inline(always)]
pub(crate) fn number(view: impl View) -> usize {
    view.divided().map_or(0, |view| view as usize % MOST_VIEWS)
}

/// The mode in which an access in a view is made, where the hart's is `mode`. What the hart finds in a view doesn't depend on what it is told in which mode its guest is.
#[inline(always)]
pub(crate) fn mode(view: impl View, mode: Mode) -> Mode {
    match view.divided() {
        None => mode,
        Some(Divided::User) => Mode { user: true, ..mode },
        Some(Divided::Kernel) => Mode { user: false, sum: false, ..mode },
        Some(Divided::KernelSum) => Mode { user: false, sum: true, mxr: false },
        Some(Divided::KernelSumMxr) => Mode { user: false, sum: true, mxr: true },
    }
}

/// What a walk found, as it is filled in for a view.
///
/// Kernels' pages are the same in all of their views, so that these can have what is global in common; programs' pages are in each of its own.
#[inline(always)]
pub(crate) fn seen(view: impl View, mut found: Found) -> Found {
    if view.divided().is_none() {
        return found;
    }
    (found.reads, found.writes, found.executes) =
        rights(view, (found.reads, found.writes, found.executes), found.user);
    found.global &= !found.user;
    found.user = true;
    found
}

/// What may be done to a page in a view that has such pages, of programs or of the kernel: to read, to write, to execute.
#[inline(always)]
pub(crate) fn rights(view: impl View, of_guest: (bool, bool, bool), is_user: bool) -> (bool, bool, bool) {
    let (reads, writes, executes) = of_guest;
    match view.divided() {
        Some(view) if is_user => {
            (reads || view == Divided::KernelSumMxr && executes, writes, executes && view == Divided::User)
        }
        _ => of_guest,
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Undivided {}
    impl Sealed for super::Divided {}
}
