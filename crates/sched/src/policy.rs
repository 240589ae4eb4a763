//! The three choices that make a policy, and what they decide.
//!
//! A choice is an enum; what it decides are pure functions of [`Policy`], which say what they decide from
//! in their arguments. The scheduler and the kernel ask them and know no policy by name. A new policy is a
//! new variant here, an arm in the functions that it answers differently, and a [preset](crate::presets).

use crate::{Class, Time};

/// How a core's scheduler decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Where may a vCPU run when its core is taken from it?
    pub placement: Placement,
    /// May a wake-up take the core now?
    pub preemption: Preemption,
    /// Whose interrupts may reach a core while another vCPU runs there?
    pub admission: Admission,
    /// For how long a vCPU runs before the next of its level gets its turn. Not 0.
    pub quantum: Time,
}

/// Where may a vCPU run when its core is taken from it?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// Only on the core that it was given to.
    Pinned,
    /// On another core from the moment that its own is taken from it (SPUMONE thesis, 4.3.1).
    OnDemand,
    /// It stays where it is until another vCPU of its guest spins, as that one may be waiting for a lock that it
    /// holds, or sends it an interrupt; then it is fetched (Ainori). No contention, no migration.
    SpinTriggered,
}

/// What may be the reason to fetch a vCPU that could run, but whose core was taken from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occasion {
    /// Its core has just been taken from it.
    Preempted,
    /// Another vCPU of its guest spins.
    Spin,
    /// An interrupt is waiting for it.
    Interrupt,
    /// Its core has been taken from it for longer than [`Policy::PATIENCE_US`]: somebody should watch its timer if it sleeps,
    /// and run it if a core idles.
    Unattended,
    /// A core has nothing else to do.
    Idle,
}

/// May a wake-up take the core now?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preemption {
    /// At once, if the priority is higher (SPUMONE thesis, 3.2).
    Immediate,
    /// Never: priorities don't count, and all vCPUs of a core take turns. Not real-time.
    AtQuantum,
}

/// Whose interrupts may reach a core while another vCPU runs there?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Those of vCPUs that then get the core, or a turn (SPUMONE's split of interrupt levels; thesis,
    /// 3.4.1).
    ByPriority,
    /// Those of the same guest: the core is a partition.
    Exclusive,
}

impl Policy {
    /// The level of the run queue at which a vCPU of this class waits, below
    /// [`PRIORITIES`](crate::PRIORITIES); a higher level goes first. Equals are vCPUs of one level.
    #[inline]
    #[must_use]
    pub const fn level(&self, class: Class) -> u8 {
        match self.preemption {
            Preemption::Immediate => class.priority,
            Preemption::AtQuantum => 0,
        }
    }

    /// May an interrupt for `candidate` disturb the core while `running` has it?
    #[inline]
    #[must_use]
    pub const fn admits(&self, candidate: Class, running: Class) -> bool {
        match self.admission {
            Admission::ByPriority => self.level(candidate) >= self.level(running),
            Admission::Exclusive => candidate.guest == running.guest,
        }
    }

    /// For how long a vCPU whose core was taken from it may be left alone, in microseconds. Most jobs of an RTOS are shorter, so
    /// that it need not be moved at all.
    pub const PATIENCE_US: u64 = 50;

    /// Can a vCPU that may run on several cores leave the one that was taken from it?
    #[inline]
    #[must_use]
    pub const fn moves(&self) -> bool {
        !matches!(self.placement, Placement::Pinned)
    }

    /// Is this the occasion to fetch a vCPU whose core was taken from it?
    #[inline]
    #[must_use]
    pub const fn fetches(&self, occasion: Occasion) -> bool {
        match self.placement {
            Placement::Pinned => false,
            Placement::OnDemand => matches!(occasion, Occasion::Preempted | Occasion::Spin | Occasion::Idle),
            Placement::SpinTriggered => !matches!(occasion, Occasion::Preempted),
        }
    }

    /// While a vCPU of this class runs, messages for vCPUs of a lower level than this wait until the core looks by itself.
    #[inline]
    #[must_use]
    pub const fn shield(&self, running: Class) -> u8 {
        match self.admission {
            Admission::ByPriority => self.level(running),
            Admission::Exclusive => 0,
        }
    }

    /// May vCPUs of several guests have one core? If not, the one that does not run would miss its
    /// interrupts.
    #[must_use]
    pub const fn shares_cores(&self) -> bool {
        match self.admission {
            Admission::ByPriority => true,
            Admission::Exclusive => false,
        }
    }
}
