//! The choices that make a policy, and what they decide.
//!
//! A choice is an enum; what it decides are pure functions of [`Policy`], which say what they decide from
//! in their arguments. The scheduler and the kernel ask them and know no policy by name. A new policy is a
//! new variant here, an arm in the functions that it answers differently, and a [preset](crate::presets()).

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
    /// May a guest be more urgent on one core than on another?
    pub ranking: Ranking,
    /// For how long a vCPU runs before the next of its level gets its turn. Not 0.
    pub quantum: Time,
    /// For how long a preemption may be deferred at most.
    pub grace: Time,
    /// For how long a vCPU whose core was taken from it may be left alone ([`Self::PATIENCE_US`]).
    ///
    /// The kernel takes the same time for other waits, also under policies that move nobody: until it looks again at what it has deferred
    /// (in `cpu/`: `backlog`, `settle`, `push`, and mail that was left in `guard`); for how long others keep quiet about a core to which
    /// more comes than it can do (`threshold`); how far behind an RTOS's deadline such a look comes (`guard`, `push`); and how often
    /// devices of one guest may interrupt (`devices`).
    pub patience: Time,
    /// How long before its timer a vCPU is given the core that it takes from others ([`Self::ADVANCE_US`]).
    pub advance: Time,
    /// For how long a spinning vCPU lets an equal of its guest go first ([`Self::HELP_US`]). Not 0, and not above the quantum.
    pub help: Time,
}

/// Where may a vCPU run when its core is taken from it?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// Only on the core that it was given to.
    Pinned,
    /// Only there, too; but equals of one guest get their cores at the same time, in turns by the clock (co-scheduling: Ousterhout; SPUMONE
    /// thesis, 2.2.2).
    CoScheduled,
    /// On another core from the moment that its own is taken from it (SPUMONE thesis, 4.3.1).
    OnDemand,
    /// It stays where it is for as long as a short job takes ([`Policy::PATIENCE_US`]), or until another vCPU of its guest
    /// spins, as that one may be waiting for a lock that it holds, or sends it an interrupt; then it is pulled (Ainori).
    SpinTriggered,
    /// On another core where it has waited for a while, or that idles; but never where another vCPU of its guest waits or runs (balance
    /// scheduling: Sukwong and Kim; SPUMONE thesis, 2.2.2).
    Apart,
    /// In user mode on the core that it shares with a higher one, in its kernel on another (SPUMONE thesis, 4.3.2). So
    /// it never waits for the higher one while it holds a lock of its kernel.
    TrapBased {
        /// Whether that holds at any time, as in the thesis: each trap into its kernel moves it to another core, the return to user
        /// mode moves it back. If not, it holds while the higher one has the core: who is in its kernel when the
        /// core is taken moves then, who is in user mode stays until an interrupt brings it into its kernel.
        confined: bool,
        /// Whether an interrupt for a vCPU that was preempted in user mode moves it to another core at once. In the thesis it
        /// doesn't, and the senders of interrupts wait for answers (chapter 6).
        cured: bool,
    },
}

/// What may be the reason to pull a vCPU that could run, but whose core was taken from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occasion {
    /// Its core has just been taken from it.
    Preempted {
        /// It was in its guest's kernel.
        in_kernel: bool,
    },
    /// Another vCPU of its guest spins.
    Spin,
    /// An interrupt is waiting for it.
    Interrupt,
    /// Its core has been taken from it for longer than [`Policy::PATIENCE_US`].
    Starved {
        /// It sleeps: somebody should watch its timer.
        asleep: bool,
        /// It is in its guest's kernel.
        in_kernel: bool,
    },
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
    /// Never: a core has windows in time, in each of which it is one guest's, whether that has something to do or not (temporal partitioning: ARINC
    /// 653). Whose vCPUs take turns then.
    AtWindow,
    /// Not while the guest says that it holds a lock, for a bounded while (Uhlig et al., "Towards Scalable Multiprocessor
    /// Virtual Machines", delayed preemption; thesis, 2.2.2).
    Delayed,
    /// Not while the guest is in its kernel, where it may hold a lock, for a bounded while (Uhlig's safe and unsafe states).
    SafeUnsafe,
}

/// What is known of the running vCPU when a higher one wants its core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// It runs its guest's kernel.
    pub in_kernel: bool,
    /// Its guest has marked that it holds a lock.
    pub holds_lock: bool,
}

/// Whose interrupts may reach a core while another vCPU runs there?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Those of vCPUs that then get the core, or a turn (SPUMONE's split of interrupt levels; thesis,
    /// 3.4.1).
    ByPriority,
    /// Those of the same guest: the core is a partition.
    Exclusive,
    /// Everybody's: interrupt levels are not split (SPUMONE thesis, figure 3.5).
    Any,
}

/// May a guest be more urgent on one core than on another?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ranking {
    /// No: one order of the guests holds on all cores (SPUMONE; LiSTEE).
    Everywhere,
    /// Yes: each core has an order of its own, and thus a *priority OS* (LiSTEE RT). Who comes to another core has the priority that its guest has there.
    PerCore,
}

impl Policy {
    /// The level of the run queue at which a vCPU of this class waits, below
    /// [`PRIORITIES`](ainori_limits::PRIORITIES); a higher level goes first. Equals are vCPUs of one level.
    ///
    /// That is its level at first, and where nothing changes it. What it is now, on the core that owns it, says
    /// [`Scheduler::level`](crate::Scheduler::level).
    #[inline]
    #[must_use]
    pub const fn level(&self, class: Class) -> u8 {
        match self.preemption {
            Preemption::AtQuantum => 0,
            // Nobody waits for another guest at this level. It says, as elsewhere, who hides the hypervisor's own work, and which devices.
            Preemption::AtWindow if class.priority == Self::OUTSIDE => Self::OUTSIDE + 1,
            Preemption::AtWindow => class.priority,
            Preemption::Immediate | Preemption::Delayed | Preemption::SafeUnsafe => class.priority,
        }
    }

    /// What other cores are told instead of a level while a vCPU is outside of its guest's [windows](Self::has_windows): it is below all levels, and so below
    /// the threshold of whoever runs there.
    pub const OUTSIDE: u8 = 0;

    /// For how long a vCPU whose core was taken from it may be left alone, in microseconds. Many jobs of an RTOS are shorter, so
    /// that it need not be moved at all. After that somebody has to watch its timer if it sleeps, and others may be waiting for it
    /// in a loop that the hypervisor doesn't notice.
    pub const PATIENCE_US: u64 = 25;

    /// How long before its timer a vCPU is given the core that it takes from others, in microseconds: what the switch takes, with registers of
    /// floating point and vectors and with mail that has come in (3.8 us), and what the core was doing when its alarm came. If that was in the
    /// firmware, as guests' illegal instructions come by that (1.9 us with OpenSBI), nothing can shorten it. The core waits for the rest of that
    /// time, and the vCPU's timer interrupts it as if it had always been there.
    pub const ADVANCE_US: u64 = 6;

    /// For how long a spinning vCPU lets an equal of its guest go first, in microseconds: longer than most locks are held. A full
    /// quantum would make it a victim in its turn, which often holds a place in the queue for the same lock.
    pub const HELP_US: u64 = 50;

    /// Can a vCPU that may run on several cores leave the one that was taken from it?
    #[inline]
    #[must_use]
    pub const fn moves(&self) -> bool {
        !matches!(self.placement, Placement::Pinned | Placement::CoScheduled)
    }

    /// The cores where a vCPU may be met, a bit each: it is allowed on those of `allowed`, and belongs to `home`, which is less than 64.
    #[inline]
    #[must_use]
    pub const fn reach(&self, home: u32, allowed: u64) -> u64 {
        if self.moves() { allowed } else { 1 << home }
    }

    /// Is this the occasion to pull a vCPU whose core was taken from it?
    #[inline]
    #[must_use]
    pub const fn pulls(&self, occasion: Occasion) -> bool {
        match self.placement {
            Placement::Pinned | Placement::CoScheduled => false,
            Placement::OnDemand => !matches!(occasion, Occasion::Interrupt),
            Placement::SpinTriggered => !matches!(occasion, Occasion::Preempted { .. }),
            Placement::Apart => matches!(occasion, Occasion::Starved { .. } | Occasion::Idle),
            Placement::TrapBased { cured, .. } => {
                let stays = matches!(
                    occasion,
                    Occasion::Preempted { in_kernel: false }
                        | Occasion::Starved { asleep: false, in_kernel: false }
                );
                cured && !stays
            }
        }
    }

    /// Does the clock say which guest goes first among equals, so that its vCPUs run at the same time?
    #[inline]
    #[must_use]
    pub const fn co_schedules(&self) -> bool {
        matches!(self.placement, Placement::CoScheduled)
    }

    /// May only one vCPU of a guest wait or run on a core?
    #[inline]
    #[must_use]
    pub const fn keeps_apart(&self) -> bool {
        matches!(self.placement, Placement::Apart)
    }

    /// Do vCPUs run in user mode only where a higher one has its home too?
    #[inline]
    #[must_use]
    pub const fn confines(&self) -> bool {
        matches!(self.placement, Placement::TrapBased { confined: true, .. })
    }

    /// Does it make a difference whether a vCPU that waits is in its guest's kernel?
    #[inline]
    #[must_use]
    pub const fn asks_for_mode(&self) -> bool {
        matches!(self.placement, Placement::TrapBased { .. })
    }

    /// Does a vCPU that is confined go home when it returns to user mode although a higher one has its home, and wait there?
    #[inline]
    #[must_use]
    pub const fn waits_at_home(&self) -> bool {
        matches!(self.placement, Placement::TrapBased { confined: true, cured: false })
    }

    /// For how long a vCPU in this condition may keep its core although a higher one wants it. None: not at all.
    #[inline]
    #[must_use]
    pub const fn grace(&self, condition: Condition) -> Option<Time> {
        let unsafe_now = match self.preemption {
            Preemption::Immediate | Preemption::AtQuantum | Preemption::AtWindow => false,
            Preemption::Delayed => condition.holds_lock,
            Preemption::SafeUnsafe => condition.in_kernel,
        };
        if unsafe_now { Some(self.grace) } else { None }
    }

    /// Does a vCPU ever take the core from a less urgent one?
    #[inline]
    #[must_use]
    pub const fn takes_cores(&self) -> bool {
        self.shares_cores() && !matches!(self.preemption, Preemption::AtQuantum | Preemption::AtWindow)
    }

    /// Has each core windows in time, in each of which it is one guest's ([`Calendar`](crate::Calendar))?
    #[inline]
    #[must_use]
    pub const fn has_windows(&self) -> bool {
        matches!(self.preemption, Preemption::AtWindow)
    }

    /// May a preemption be deferred at all?
    #[inline]
    #[must_use]
    pub const fn defers(&self) -> bool {
        matches!(self.preemption, Preemption::Delayed | Preemption::SafeUnsafe)
    }

    /// While a vCPU of this level runs, timers and messages of vCPUs of a lower level than what this returns wait until the core looks by itself.
    #[inline]
    #[must_use]
    pub const fn threshold(&self, running: u8) -> u8 {
        match self.admission {
            Admission::ByPriority => running,
            Admission::Exclusive | Admission::Any => 0,
        }
    }

    /// Are the interrupt levels of the board split between guests, so that only devices of guests that are at least as urgent
    /// as the running one reach its core?
    #[inline]
    #[must_use]
    pub const fn splits_levels(&self) -> bool {
        !matches!(self.admission, Admission::Any)
    }

    /// Does each core have an order of the guests of its own?
    #[inline]
    #[must_use]
    pub const fn ranks_by_core(&self) -> bool {
        matches!(self.ranking, Ranking::PerCore)
    }

    /// The priority of a guest's vCPUs on a core: `there` is the one that it has there where each core has an order of its own.
    #[inline]
    #[must_use]
    pub const fn priority(&self, everywhere: u8, there: u8) -> u8 {
        if self.ranks_by_core() { there } else { everywhere }
    }

    /// May vCPUs of several guests have one core? If not, the one that does not run would miss its
    /// interrupts.
    #[must_use]
    pub const fn shares_cores(&self) -> bool {
        match self.admission {
            Admission::ByPriority | Admission::Any => true,
            Admission::Exclusive => false,
        }
    }
}
