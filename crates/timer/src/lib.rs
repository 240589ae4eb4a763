//! One timer of a hart for two who want it: the hypervisor's alarm, and the timer of the vCPU that is loaded.
//!
//! Where the supervisor has no timer of its own (no Sstc), the firmware sets the hart's for it, and takes its interrupt first: hundreds of instructions
//! each time. So nothing is told to the firmware when somebody changes a time, but once, before the hart goes to a guest or to sleep
//! ([`Multiplexer::settle`]); and then only if what it has been told last would come too late, or has come already. A time that turned out to be too
//! early is left: it costs an interrupt for nobody, seldom, rather than a call each time.
//!
//! Until then the clock says what is due. In the terms of the hart: the alarm is pending from its time on until it is set anew, and so is the vCPU's timer.
#![no_std]

#[cfg(test)]
extern crate std;

#[cfg(test)]
mod tests;

/// No time.
pub const NEVER: u64 = u64::MAX;

/// The hart's timer, as it was set last, and the alarm. Times are in ticks of `time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Multiplexer {
    alarm: u64,
    /// What the hart's timer was set to last: from then on, it interrupts. [`NEVER`]: it doesn't, as it was never set, or is [silent](Step::Silence).
    programmed: u64,
}

/// What is to be done with the hart's timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing: it interrupts at the right time, or is about to.
    Leave,
    /// It is set to this time, which takes back an interrupt that is pending; and may interrupt.
    Program(u64),
    /// It may not interrupt: nobody waits for it, and an interrupt is pending that only the firmware could take back.
    Silence,
}

impl Default for Multiplexer {
    fn default() -> Self {
        Self::new()
    }
}

impl Multiplexer {
    /// Of a hart whose timer isn't set, or may not interrupt.
    pub const fn new() -> Self {
        Self { alarm: NEVER, programmed: NEVER }
    }

    /// Sets the alarm.
    #[inline(always)]
    pub fn set_alarm(&mut self, at: u64) {
        self.alarm = at;
    }

    /// Is the alarm due?
    #[inline(always)]
    pub fn is_alarm_due(&self, now: u64) -> bool {
        self.alarm <= now
    }

    /// Is the alarm due, as far as the hart's interrupt says it, which is pending or isn't? `None`: the clock has to be [asked](Self::is_alarm_due).
    #[inline(always)]
    pub fn is_alarm_due_by(&self, pending: bool) -> Option<bool> {
        match (self.alarm, self.programmed) {
            (NEVER, _) => Some(false),
            (_, NEVER) => None,
            (alarm, programmed) if pending && alarm <= programmed => Some(true),
            (alarm, programmed) if !pending && programmed <= alarm => Some(false),
            _ => None,
        }
    }

    /// Would [`Self::settle`] say that there is nothing to do, and is nothing of `guest` due, as far as the hart's interrupt says it, which is pending or isn't? Then the clock
    /// needn't be asked.
    #[inline(always)]
    pub fn is_settled_by(&self, pending: bool, guest: u64) -> bool {
        let next = self.alarm.min(guest);
        self.programmed <= next && (!pending || self.programmed == NEVER)
    }

    /// The hart is about to go to a guest, or to sleep. `guest`: when the timer of the loaded vCPU is due; [`NEVER`] if there is none, or if its interrupt is
    /// pending by now.
    #[inline]
    pub fn settle(&mut self, now: u64, guest: u64) -> Step {
        let next = self.alarm.min(guest);
        let is_set = if self.programmed > now { self.programmed <= next } else { next <= now };
        if is_set {
            return Step::Leave;
        }
        self.programmed = next;
        if next == NEVER { Step::Silence } else { Step::Program(next) }
    }
}
