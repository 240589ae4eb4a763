//! The one timer of a hart without Sstc, which the firmware sets, for the hypervisor's alarm and for a guest's timer: what both back ends have of it.
use core::cell::Cell;

use ainori_board::Isa;
use ainori_timer::{Multiplexer, NEVER, Step};

use super::csr;
use super::firmware;
use super::hart::Interrupts;
use crate::panic::refuse;

/// What it is set to, and the core's own alarm.
#[derive(Debug)]
pub struct FirmwareTimer(Cell<Multiplexer>);

impl FirmwareTimer {
    /// Nobody waits for anything.
    pub const fn new() -> Self {
        Self(Cell::new(Multiplexer::new()))
    }

    /// What it is set to now.
    #[inline(always)]
    pub const fn multiplexer(&self) -> Multiplexer {
        self.0.get()
    }

    /// Nobody waits for anything, whatever a boot loader has left in the hart.
    pub fn reset(&self) {
        self.0.swap(&Self::new().0);
        firmware::set_timer(NEVER);
    }

    #[inline(always)]
    fn change<T>(&self, by: impl FnOnce(&mut Multiplexer) -> T) -> T {
        let mut multiplexer = self.0.get();
        let result = by(&mut multiplexer);
        self.0.set(multiplexer);
        result
    }

    /// Sets the core's own alarm; `u64::MAX` is never.
    #[inline]
    pub fn set_alarm(&self, at: u64) {
        self.change(|multiplexer| multiplexer.set_alarm(at));
    }

    /// The hart goes to a guest, whose timer is due then, or to sleep: whoever waits is interrupted in time.
    pub fn settle(&self, now: u64, guest: u64) {
        let own = Interrupts::TIMER.bits();
        match self.change(|multiplexer| multiplexer.settle(now, guest)) {
            Step::Leave => {}
            Step::Program(at) => {
                firmware::set_timer(at);
                // SAFETY: only the hypervisor's own interrupt, which the firmware has taken back.
                unsafe { csr::set!(csr::SIE, own) }
            }
            // SAFETY: only the hypervisor's own interrupt.
            Step::Silence => unsafe { csr::clear!(csr::SIE, own) },
        }
    }
}

/// Harts with this ISA have the right build, or the boot ends here.
pub fn check(isa: &Isa) {
    if isa.has("sstc") {
        let isa = isa.string();
        refuse(format_args!(
            "the harts of this board ({isa}) have the Sstc extension (stimecmp): this is the hypervisor for those that lack it (built with --sbi-timer)"
        ));
    }
}
