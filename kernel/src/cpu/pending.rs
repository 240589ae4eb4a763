//! What has changed since the running vCPU was entered.
use super::Cpu;
use crate::guest::translation;

/// What is to be seen to before the running vCPU goes on. A trap that leaves none of it behind has changed nothing for the core, and its
/// service may return at once.
///
/// Each has a byte of its own, so that one instruction sets it; and one looks for all of them.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(8))]
pub(super) struct Pending {
    /// Some vCPU woke since the last decision of the scheduler.
    pub(super) woken: bool,
    /// Who waits for fences of vCPUs has been answered: they are to be carried out.
    pub(super) fences: bool,
    /// When the next sleeper is due must be computed again.
    pub(super) deadlines: bool,
    /// The core has got work that it wants an alarm for.
    pub(super) alarm: bool,
    /// The [backlog](super::backlog) is to be looked at. If not, but there is something in it, an alarm is set for it.
    pub(super) backlog: bool,
    /// A vCPU [may have to go](super::Cpu::settle) to another core.
    pub(super) unsettled: bool,
    /// The policy has something to decide whenever the running vCPU traps: it is confined, or has the core for a grace only.
    pub(super) policy: bool,
    /// Makes it eight bytes.
    nothing: bool,
}

impl Pending {
    /// Is there nothing?
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        // SAFETY: eight bytes, each of which has a value, as none is padding.
        let flags: u64 = unsafe { core::mem::transmute(self) };
        flags == 0
    }
}

impl Cpu {
    /// Who waits for fences of a vCPU of this core is answered, if there is anybody.
    #[inline(always)]
    pub(super) fn note_answered(&mut self, is_anybody: bool) {
        self.pending.fences |= is_anybody;
        translation::answered(self, is_anybody);
    }
}
