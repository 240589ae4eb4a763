//! The policies that have a name.

use crate::{Admission, Placement, Policy, Preemption, Ranking, Time};

/// A policy that a system description can name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Preset {
    /// Its name in a system description.
    pub name: &'static str,
    /// What it does and where it comes from, in one sentence.
    pub summary: &'static str,
    /// See [`Policy::placement`].
    pub placement: Placement,
    /// See [`Policy::preemption`].
    pub preemption: Preemption,
    /// See [`Policy::admission`].
    pub admission: Admission,
    /// See [`Policy::ranking`].
    pub ranking: Ranking,
    /// The quantum in milliseconds if it is part of the preset; otherwise the system description gives it.
    pub fixed_quantum_ms: Option<u32>,
}

const PRESETS: [Preset; 16] = [
    Preset {
        name: "ainori",
        summary: "As spumone, but a preempted vCPU is pulled by another core when one of its guest spins or sends it an \
                  interrupt, or when it has waited for a while; the default.",
        placement: Placement::SpinTriggered,
        preemption: Preemption::Immediate,
        admission: Admission::ByPriority,
        ranking: Ranking::PerCore,
        fixed_quantum_ms: None,
    },
    Preset {
        name: "spumone",
        summary: "Fixed priorities between guests, the higher takes the core at once, equals take turns \
                  (SPUMONE thesis, 3.2 and 3.4.1).",
        placement: Placement::Pinned,
        preemption: Preemption::Immediate,
        admission: Admission::ByPriority,
        ranking: Ranking::Everywhere,
        fixed_quantum_ms: None,
    },
    Preset {
        name: "spumone-on-demand",
        summary: "As spumone, but while a higher vCPU has a core, the others of that core live on another one \
                  (SPUMONE thesis, 4.3.1).",
        placement: Placement::OnDemand,
        preemption: Preemption::Immediate,
        admission: Admission::ByPriority,
        ranking: Ranking::Everywhere,
        fixed_quantum_ms: None,
    },
    Preset {
        name: "spumone-trap-based",
        summary: "As spumone, but while a higher vCPU has a core, only user mode of others waits there; what is in its kernel, or \
                  gets an interrupt, moves to another core at once (SPUMONE thesis, 4.3.2, with a cure for 6.2).",
        placement: Placement::TrapBased { confined: false, cured: true },
        preemption: Preemption::Immediate,
        admission: Admission::ByPriority,
        ranking: Ranking::Everywhere,
        fixed_quantum_ms: None,
    },
    Preset {
        name: "spumone-trap-based-strict",
        summary: "As spumone-trap-based, but a guest is kept to user mode on a core that it shares with a higher one even \
                  while that sleeps, as in the thesis: each trap into its kernel moves it.",
        placement: Placement::TrapBased { confined: true, cured: true },
        preemption: Preemption::Immediate,
        admission: Admission::ByPriority,
        ranking: Ranking::Everywhere,
        fixed_quantum_ms: None,
    },
    Preset {
        name: "spumone-trap-based-uncured",
        summary: "As spumone-trap-based-strict, but interrupts for a preempted vCPU wait: the thesis's own.",
        placement: Placement::TrapBased { confined: true, cured: false },
        preemption: Preemption::Immediate,
        admission: Admission::ByPriority,
        ranking: Ranking::Everywhere,
        fixed_quantum_ms: None,
    },
    Preset {
        name: "listee-rt",
        summary: "As spumone, but each core has its own order of guests, and so a priority OS: who has deadlines on a core goes first \
                  there, and gives way elsewhere (LiSTEE RT).",
        placement: Placement::Pinned,
        preemption: Preemption::Immediate,
        admission: Admission::ByPriority,
        ranking: Ranking::PerCore,
        fixed_quantum_ms: None,
    },
    Preset {
        name: "listee",
        summary: "As listee-rt, but one OS goes first on all cores (LiSTEE, on which LiSTEE RT is built); for comparison.",
        placement: Placement::Pinned,
        preemption: Preemption::Immediate,
        admission: Admission::ByPriority,
        ranking: Ranking::Everywhere,
        fixed_quantum_ms: None,
    },
    Preset {
        name: "balance",
        summary: "As spumone, but a vCPU that waits is pulled to a core where it gets a turn, and two of one guest never wait on one core \
                  (balance scheduling: Sukwong and Kim; SPUMONE thesis, 2.2.2).",
        placement: Placement::Apart,
        preemption: Preemption::Immediate,
        admission: Admission::ByPriority,
        ranking: Ranking::Everywhere,
        fixed_quantum_ms: None,
    },
    Preset {
        name: "co-schedule",
        summary: "As spumone, but equals of one guest get their cores at the same time, in turns by the clock that all cores read \
                  (co-scheduling: Ousterhout; SPUMONE thesis, 2.2.2); for comparison.",
        placement: Placement::CoScheduled,
        preemption: Preemption::Immediate,
        admission: Admission::ByPriority,
        ranking: Ranking::Everywhere,
        fixed_quantum_ms: None,
    },
    Preset {
        name: "delayed",
        summary: "As spumone, but a preemption waits, for a bounded while, until the guest has left the section that it marks as \
                  locked (Uhlig et al.; SPUMONE thesis, 2.2.2); for comparison, as it delays the RTOS.",
        placement: Placement::Pinned,
        preemption: Preemption::Delayed,
        admission: Admission::ByPriority,
        ranking: Ranking::Everywhere,
        fixed_quantum_ms: None,
    },
    Preset {
        name: "safe-unsafe",
        summary: "As spumone, but a preemption waits, for a bounded while, until the guest has left its kernel (Uhlig et al.; SPUMONE \
                  thesis, 2.2.2); for comparison, as it delays the RTOS.",
        placement: Placement::Pinned,
        preemption: Preemption::SafeUnsafe,
        admission: Admission::ByPriority,
        ranking: Ranking::Everywhere,
        fixed_quantum_ms: None,
    },
    Preset {
        name: "spumone-without-split",
        summary: "As spumone, but everybody's interrupts reach a core whoever runs there (SPUMONE thesis, figure 3.5); for \
                  comparison, as it disturbs the RTOS.",
        placement: Placement::Pinned,
        preemption: Preemption::Immediate,
        admission: Admission::Any,
        ranking: Ranking::Everywhere,
        fixed_quantum_ms: None,
    },
    Preset {
        name: "partition",
        summary: "Each core belongs to one guest, and nothing of another guest reaches it \
                  (OS partitioning in LiSTEE RT's table 4; Bao, Jailhouse).",
        placement: Placement::Pinned,
        preemption: Preemption::Immediate,
        admission: Admission::Exclusive,
        ranking: Ranking::Everywhere,
        fixed_quantum_ms: None,
    },
    Preset {
        name: "time-window",
        summary: "Each core has windows in time, in each of which it is one guest's, whether that has something to do or not \
                  (ARINC 653's time partitioning); for comparison.",
        placement: Placement::Pinned,
        preemption: Preemption::AtWindow,
        admission: Admission::ByPriority,
        ranking: Ranking::Everywhere,
        fixed_quantum_ms: None,
    },
    Preset {
        name: "round-robin",
        summary: "All guests are equal and take turns of 10 ms; not real-time, for comparison \
                  (case 3 of the RT-VMM study of timer jitter).",
        placement: Placement::Pinned,
        preemption: Preemption::AtQuantum,
        admission: Admission::ByPriority,
        ranking: Ranking::Everywhere,
        fixed_quantum_ms: Some(10),
    },
];

/// The same without the texts, which are for people: the kernel's image has no room for them.
#[expect(clippy::indexing_slicing, reason = "only when it is compiled")]
const CHOICES: [Preset; PRESETS.len()] = {
    let mut choices = PRESETS;
    let mut i = 0;
    while i < choices.len() {
        choices[i].summary = "";
        i += 1;
    }
    choices
};

/// All presets.
#[must_use]
pub const fn presets() -> &'static [Preset] {
    &PRESETS
}

impl Policy {
    /// Bound of a deferred preemption, in microseconds, unless the system description gives another: longer than most of
    /// Linux's locks are held.
    pub const GRACE_US: u64 = 100;

    /// The preset of that name, or `None` if there is none.
    ///
    /// `quantum` is in ticks, of which a second has `timebase_hz`; a preset with a quantum of its own takes
    /// that instead. The other times are the defaults.
    #[must_use]
    pub fn preset(name: &str, quantum: Time, timebase_hz: u64) -> Option<Self> {
        let preset = CHOICES.iter().find(|preset| preset.name == name)?;
        let ticks = |us: u64| ainori_limits::ticks(us, timebase_hz);
        let quantum = preset.fixed_quantum_ms.map_or(quantum, |ms| ticks(u64::from(ms) * 1000));
        Some(Self {
            placement: preset.placement,
            preemption: preset.preemption,
            admission: preset.admission,
            ranking: preset.ranking,
            quantum,
            grace: ticks(Self::GRACE_US),
            patience: ticks(Self::PATIENCE_US),
            advance: ticks(Self::ADVANCE_US),
            help: ticks(Self::HELP_US).clamp(1, quantum.max(1)),
        })
    }
}
