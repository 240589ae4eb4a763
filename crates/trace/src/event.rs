//! What happened, as a type: gives the fields of a [`Record`] their meaning.
//!
//! vCPUs are numbered through the whole machine and cores densely, both from 0 and below 255. "This core" is the one in
//! whose ring the record is.

use ainori_limits::MAX_VCPUS;

use crate::record::{Kind, Record};

/// Stands for "no vCPU" in a record.
const NONE: u8 = u8::MAX;
const _: () = assert!(MAX_VCPUS <= NONE as usize);

/// An interrupt line of a vCPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Line {
    /// Supervisor timer interrupt.
    Timer,
    /// Supervisor software interrupt: an IPI from another vCPU of the guest.
    Software,
    /// Supervisor external interrupt, with the number of the source at the guest's interrupt controller; 0 if that isn't known, as
    /// in all records of the hypervisor: the guest's handler asks which source it was.
    External(u16),
}

impl Line {
    const fn encode(self) -> u64 {
        match self {
            Self::Timer => 0,
            Self::Software => 1,
            Self::External(source) => 2 + source as u64,
        }
    }

    const fn decode(bits: u64) -> Self {
        match bits {
            0 => Self::Timer,
            1 => Self::Software,
            bits => Self::External((bits - 2) as u16),
        }
    }
}

/// Why a hart trapped: `scause` without its unused bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    /// An interrupt rather than an exception.
    pub interrupt: bool,
    /// The exception or interrupt code, below 128.
    pub code: u8,
}

impl Cause {
    const INTERRUPT: u8 = 0x80;

    /// From the value of `scause` on RV64.
    pub const fn from_scause(scause: u64) -> Self {
        Self { interrupt: scause >> 63 != 0, code: scause as u8 & !Self::INTERRUPT }
    }

    const fn encode(self) -> u64 {
        (self.code & !Self::INTERRUPT | if self.interrupt { Self::INTERRUPT } else { 0 }) as u64
    }

    const fn decode(bits: u64) -> Self {
        let bits = bits as u8;
        Self { interrupt: bits & Self::INTERRUPT != 0, code: bits & !Self::INTERRUPT }
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// This core now runs `to` instead of `from`; `None` is the idle vCPU.
    Switch {
        /// The vCPU that ran so far.
        from: Option<u8>,
        /// The vCPU that runs from now on.
        to: Option<u8>,
    },
    /// A vCPU trapped into the hypervisor.
    Trap {
        /// The vCPU that ran; `None` if the core was idle.
        vcpu: Option<u8>,
        /// `scause`.
        cause: Cause,
        /// The kernel's class of exits that it belongs to, by index.
        class: u8,
        /// Guest virtual address of the instruction, its low 48 bits sign-extended.
        pc: u64,
    },
    /// The hypervisor learnt that an interrupt is due for a vCPU.
    Raised {
        /// The vCPU.
        vcpu: u8,
        /// Its line.
        line: Line,
    },
    /// The line was set in the vCPU's registers.
    Injected {
        /// The vCPU.
        vcpu: u8,
        /// Its line.
        line: Line,
    },
    /// The guest's handler took the interrupt, as far as the hypervisor can see it.
    Taken {
        /// The vCPU.
        vcpu: u8,
        /// Its line.
        line: Line,
    },
    /// This core left a message for another.
    Posted {
        /// The other core.
        to: u8,
        /// The message.
        item: u32,
    },
    /// This core took a message.
    Received {
        /// The core that posted it.
        from: u8,
        /// The message.
        item: u32,
    },
    /// This core sent a physical IPI.
    IpiSent {
        /// The core that gets it.
        to: u8,
    },
    /// A vCPU changed its core.
    Migration {
        /// The vCPU.
        vcpu: u8,
        /// The core that owned it.
        from: u8,
        /// The core that owns it now.
        to: u8,
    },
    /// A sleeping vCPU wants a core again.
    Wake {
        /// The vCPU.
        vcpu: u8,
    },
    /// A vCPU gave its core up until something wakes it.
    Sleep {
        /// The vCPU.
        vcpu: u8,
    },
    /// A remote fence for a vCPU.
    Fence {
        /// The vCPU whose translations are fenced.
        vcpu: u8,
        /// Applied now; false: recorded, to be applied when the vCPU is next dispatched. The hypervisor records only the former: fences
        /// that were recorded, when it applies them before it enters the vCPU.
        applied: bool,
    },
    /// A guest's own mark.
    Mark {
        /// The vCPU that set it.
        vcpu: u8,
        /// What the guest passed.
        value: u64,
    },
    /// Records of this core that were overwritten before this moment.
    Lost {
        /// How many.
        count: u64,
    },
}

impl Event {
    /// The kind of record that tells it, and the record's fields `a` and `b`.
    #[inline(always)]
    pub const fn fields(self) -> (Kind, u8, u64) {
        match self {
            Self::Switch { from, to } => (Kind::Switch, vcpu_or_none(to), vcpu_or_none(from) as u64),
            Self::Trap { vcpu, cause, class, pc } => {
                (Kind::Trap, vcpu_or_none(vcpu), cause.encode() | (class as u64) << 8 | pc << 16)
            }
            Self::Raised { vcpu, line } => (Kind::Raised, vcpu, line.encode()),
            Self::Injected { vcpu, line } => (Kind::Injected, vcpu, line.encode()),
            Self::Taken { vcpu, line } => (Kind::Taken, vcpu, line.encode()),
            Self::Posted { to, item } => (Kind::Posted, to, item as u64),
            Self::Received { from, item } => (Kind::Received, from, item as u64),
            Self::IpiSent { to } => (Kind::IpiSent, to, 0),
            Self::Migration { vcpu, from, to } => (Kind::Migration, vcpu, from as u64 | (to as u64) << 8),
            Self::Wake { vcpu } => (Kind::Wake, vcpu, 0),
            Self::Sleep { vcpu } => (Kind::Sleep, vcpu, 0),
            Self::Fence { vcpu, applied } => (Kind::Fence, vcpu, applied as u64),
            Self::Mark { vcpu, value } => (Kind::Mark, vcpu, value),
            Self::Lost { count } => (Kind::Lost, 0, count),
        }
    }

    /// The record that tells it.
    #[inline]
    pub const fn at(self, time: u64) -> Record {
        let (kind, a, b) = self.fields();
        Record { time, kind, a, b }
    }
}

impl Record {
    /// What it tells. Bits that the kind doesn't use are ignored.
    pub const fn event(self) -> Event {
        let Self { kind, a, b, .. } = self;
        match kind {
            Kind::Switch => Event::Switch { from: some_vcpu(b as u8), to: some_vcpu(a) },
            Kind::Trap => Event::Trap {
                vcpu: some_vcpu(a),
                cause: Cause::decode(b),
                class: (b >> 8) as u8,
                pc: (b as i64 >> 16) as u64,
            },
            Kind::Raised => Event::Raised { vcpu: a, line: Line::decode(b) },
            Kind::Injected => Event::Injected { vcpu: a, line: Line::decode(b) },
            Kind::Taken => Event::Taken { vcpu: a, line: Line::decode(b) },
            Kind::Posted => Event::Posted { to: a, item: b as u32 },
            Kind::Received => Event::Received { from: a, item: b as u32 },
            Kind::IpiSent => Event::IpiSent { to: a },
            Kind::Migration => Event::Migration { vcpu: a, from: b as u8, to: (b >> 8) as u8 },
            Kind::Wake => Event::Wake { vcpu: a },
            Kind::Sleep => Event::Sleep { vcpu: a },
            Kind::Fence => Event::Fence { vcpu: a, applied: b & 1 != 0 },
            Kind::Mark => Event::Mark { vcpu: a, value: b },
            Kind::Lost => Event::Lost { count: b },
        }
    }
}

const fn vcpu_or_none(vcpu: Option<u8>) -> u8 {
    match vcpu {
        Some(vcpu) => vcpu,
        None => NONE,
    }
}

const fn some_vcpu(vcpu: u8) -> Option<u8> {
    if vcpu == NONE { None } else { Some(vcpu) }
}
