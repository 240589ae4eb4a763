//! What [`timer`](super) is on a hart without Sstc: the firmware sets the one timer that there is.
//!
//! Nothing is told to the firmware when somebody changes a time, but once, before the hart goes to a guest or to sleep ([`Multiplexer`]). On such harts `time` may be the
//! firmware's as well (QEMU's `sifive_u`): so wherever the hart's pending interrupt says enough, nobody asks what time it is.
use ainori_board::Isa;
use ainori_supervisor::{Line, Supervisor};
use ainori_timer::NEVER;

use super::per_hart::{loaded, per_hart};
use crate::arch::clock;
use crate::arch::riscv::hart::{self, Interrupts};
use crate::arch::riscv::{csr, firmware_timer};

pub(super) use crate::arch::riscv::firmware_timer::FirmwareTimer as Timer;

/// No alarm is set, whatever a boot loader has left there.
pub(super) fn reset() {
    per_hart().timer.reset();
}

/// Sets the core's own alarm; `u64::MAX` is never.
#[inline]
pub fn set_alarm(at: u64) {
    per_hart().timer.set_alarm(at);
}

/// Is the core's own alarm due?
#[inline(always)]
fn is_due(pending: Interrupts) -> bool {
    let multiplexer = per_hart().timer.multiplexer();
    multiplexer
        .is_alarm_due_by(pending.contains(Interrupts::TIMER))
        .unwrap_or_else(|| multiplexer.is_alarm_due(clock::now()))
}

/// Is the core's own alarm due? The interrupt of the hart's timer is pending.
#[inline(always)]
pub(super) fn is_alarm_due() -> bool {
    is_due(Interrupts::TIMER)
}

/// The hart's interrupts that are pending and enabled, whoever they are for.
#[inline(always)]
fn pending_interrupts() -> Interrupts {
    Interrupts::from_bits_retain(csr::read!(csr::SIP) & csr::read!(csr::SIE))
}

/// The hypervisor's own interrupts that are pending and enabled. The hart's timer may be the loaded vCPU's, and the alarm be due before it.
#[inline(always)]
pub fn pending_own_interrupts() -> Interrupts {
    let mut pending = pending_interrupts();
    pending.set(Interrupts::TIMER, is_due(pending));
    pending
}

/// The interrupt of the hart's timer has come, and the alarm isn't due: that of the vCPU is looked at when that is [entered](settle).
#[inline(always)]
pub(super) const fn go_on() {}

/// A time has changed: the hart is told when the vCPU is [entered](settle), or the hart [waits](wait).
#[inline(always)]
pub(super) const fn program_timer() {}

/// The loaded vCPU has been interrupted by its timer: likewise.
#[inline(always)]
pub(super) const fn program_alarm() {}

/// When the timer of the vCPU with these registers is due, if it may interrupt or wake it, and hasn't yet; else [`NEVER`].
#[inline(always)]
fn next_of(registers: &Supervisor) -> u64 {
    registers.deadline().filter(|_| !registers.is_up(Line::Timer)).unwrap_or(NEVER)
}

/// The loaded vCPU, which has these registers, is about to be entered: its timer is looked at, and whoever waits is interrupted in time.
#[inline(always)]
pub(super) fn settle(registers: &mut Supervisor) {
    let pending = pending_interrupts().contains(Interrupts::TIMER);
    if !per_hart().timer.multiplexer().is_settled_by(pending, next_of(registers)) {
        settle_now(registers);
    }
}

#[inline(never)]
fn settle_now(registers: &mut Supervisor) {
    // One look at the clock for both: between two, the guest's time would come, and nobody would tell it.
    let now = clock::now();
    registers.check_timer(now);
    per_hart().timer.settle(now, next_of(registers));
}

/// The alarm is told to the hart ahead of the next guest's entry, while there is time: the vCPU's own timer is waited for.
#[inline(never)]
pub fn settle_alarm() {
    per_hart().timer.settle(clock::now(), NEVER);
}

/// Lets the hart rest until it has an interrupt, of its own or of the loaded vCPU's timer, or for a shorter while: it may return at any time.
#[inline]
pub fn wait() {
    let (now, guest) = (clock::now(), loaded(|registers| next_of(registers)).unwrap_or(NEVER));
    // A timer that is due already is nowhere in the hart: nothing would wake it.
    if guest > now {
        per_hart().timer.settle(now, guest);
        hart::wait();
    }
}

/// Harts with this ISA have the right build, or the boot ends here: it lacks nothing that they haven't.
pub(super) fn lacks(isa: &Isa) -> bool {
    firmware_timer::check(isa);
    false
}
