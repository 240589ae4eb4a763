//! When fences that others want of a vCPU may wait until its instruction has been made.
//!
//! A hart takes no interrupt amid an instruction, however many tables it has to walk for it. A vCPU whose tables the hypervisor makes is out of its guest for each page of an instruction:
//! if all is forgotten each time, it never has all of them at once. So who waits for a fence is answered a little later, and the fence is carried out then. Nothing else may wait: one that
//! somebody has been answered for, or that was recorded while the vCPU was away.

/// Of a vCPU. A *stint* is a time for which it runs on a core without a break; each has a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The instruction that it has trapped at, or was to execute when it was fenced for long, by its address.
    amid: Option<u64>,
    /// All that anybody was answered for has been carried out in this stint.
    settled: Option<u64>,
    /// Somebody waits.
    waits: bool,
    /// How often they may be told to wait, until they are answered.
    left: u8,
}

impl Progress {
    /// How often who waits for a fence waits for an instruction. One has four pages at most, and for each there are a few steps.
    pub const PATIENCE: u8 = 16;

    /// Of a vCPU that hasn't run.
    pub const NONE: Self = Self { amid: None, settled: None, waits: false, left: Self::PATIENCE };

    /// It has trapped at this address and tries again, or is to go on there.
    pub const fn tries(&mut self, pc: u64) {
        self.amid = Some(pc);
    }

    /// Somebody wants it fenced, and it is out of its guest, at this address. May they wait? Else they are to be answered.
    #[must_use]
    pub fn puts_off(&mut self, pc: u64, stint: u64) -> bool {
        let may_wait = self.left > 0 && self.settled == Some(stint) && self.amid == Some(pc);
        self.waits = may_wait;
        if may_wait {
            self.left -= 1;
        }
        may_wait
    }

    /// It is about to be entered: is it without what is recorded, as who wants that waits?
    #[must_use]
    pub fn waits(&self, pc: u64, stint: u64) -> bool {
        self.waits && self.settled == Some(stint) && self.amid == Some(pc)
    }

    /// Somebody has been answered, or it wants a fence itself.
    pub const fn owes(&mut self) {
        (self.settled, self.waits, self.left) = (None, false, Self::PATIENCE);
    }

    /// All that was recorded has been carried out.
    pub const fn settles(&mut self, stint: u64) {
        self.settled = Some(stint);
    }
}
