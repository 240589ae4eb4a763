//! What [`timer`](super) is on a hart without Sstc: one timer, which only the firmware sets, for the hypervisor's alarm and for the loaded vCPU's timer. Guests
//! set theirs by calls to the SBI, and the hypervisor holds their interrupt up, as it does the other two.
//!
//! What is due is found by the clock ([`Multiplexer`]). The hart's `tp`, which no compiled code uses, points to the hart's [`Timer`] while the hypervisor runs.
use core::arch::asm;
use core::cell::Cell;

use ainori_limits::MAX_HARTS;
use ainori_timer::NEVER;

use crate::arch::riscv::clock;
use crate::arch::riscv::csr::{self, virtual_interrupt};
use crate::arch::riscv::firmware_timer::FirmwareTimer;
use crate::arch::riscv::hart::{self, Interrupts};
use crate::cpu::Cpu;
use crate::cpu::event::conclude_event;
use crate::guest::translation;
use crate::stats::Exit;

/// Reads a register of the world switch, of which the vCPU's timer is one in memory.
macro_rules! read {
    (VSTIMECMP) => {
        $crate::arch::h::timer::deadline()
    };
    ($CSR:ident) => {
        $crate::arch::riscv::csr::read!($crate::arch::riscv::csr::$CSR)
    };
}
/// Writes one.
macro_rules! write {
    (VSTIMECMP, $value:expr) => {
        _ = $crate::arch::h::timer::replace_deadline($value)
    };
    ($CSR:ident, $value:expr) => {
        $crate::arch::riscv::csr::write!($crate::arch::riscv::csr::$CSR, $value)
    };
}
/// Reads one, and writes another value to it.
macro_rules! swap {
    (VSTIMECMP, $value:expr) => {
        $crate::arch::h::timer::replace_deadline($value)
    };
    ($CSR:ident, $value:expr) => {
        $crate::arch::riscv::csr::swap!($crate::arch::riscv::csr::$CSR, $value)
    };
}
pub(super) use {read, swap, write};

pub(super) use crate::arch::riscv::firmware_timer::check;

/// The timers of a hart.
#[derive(Debug)]
pub struct Timer {
    hart: FirmwareTimer,
    /// When that of the loaded vCPU is due, or was: its interrupt is pending since.
    guest: Cell<u64>,
}

// SAFETY: only its hart comes to it (`adopt`).
unsafe impl Sync for Timer {}

/// Those of all harts, by core.
static TIMERS: [Timer; MAX_HARTS] =
    [const { Timer { hart: FirmwareTimer::new(), guest: Cell::new(NEVER) } }; MAX_HARTS];

/// This hart has the timers of this core, from now on until a guest is entered.
///
/// # Safety
/// It is this hart's and no other's.
#[inline(always)]
pub unsafe fn adopt(core: u32) {
    let timer = TIMERS.as_ptr().wrapping_add(core as usize).expose_provenance();
    // SAFETY: the compiler leaves this register alone (RISC-V calling convention: it is unallocatable), and who comes from a guest has saved the guest's.
    unsafe { asm!("mv tp, {}", in(reg) timer, options(nomem, nostack, preserves_flags)) };
}

/// The timers of this hart.
#[inline(always)]
fn this() -> &'static Timer {
    let timer: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mv {}, tp", out(reg) timer, options(nomem, nostack, preserves_flags)) };
    // SAFETY: each way into the hypervisor has put it there: `secondary`, and the two below.
    unsafe { &*core::ptr::with_exposed_provenance::<Timer>(timer) }
}

/// Called by the trap entry for the hart's timer.
pub extern "C" fn fired(cpu: &mut Cpu, event: Exit) -> ! {
    // SAFETY: this is the core's hart.
    unsafe { adopt(cpu.id) };
    if this().hart.multiplexer().is_alarm_due(clock::now()) {
        conclude_event(cpu, event)
    }
    cpu.go_on_from_timer()
}

/// Called by the trap entry for all else.
pub extern "C" fn trapped(cpu: &mut Cpu) -> ! {
    // SAFETY: this is the core's hart.
    unsafe { adopt(cpu.id) };
    translation::trapped(cpu)
}

/// When the timer of the loaded vCPU is due, or was.
#[inline(always)]
pub(super) fn deadline() -> u64 {
    this().guest.get()
}

/// Sets that, and tells what it was before. Its interrupt line isn't touched: the world switch has it with the others.
#[inline(always)]
pub(super) fn replace_deadline(at: u64) -> u64 {
    this().guest.replace(at)
}

/// The interrupt of the loaded vCPU's timer is pending if that is due.
#[inline(always)]
pub(super) fn refresh() {
    if deadline() <= clock::now() {
        raise();
    }
}

/// The interrupt of the loaded vCPU's timer is pending.
#[inline(always)]
fn raise() {
    // SAFETY: concerns only the guest.
    unsafe { csr::set!(csr::HVIP, virtual_interrupt::TIMER) }
}

/// Sets the timer of the loaded vCPU, which takes the former interrupt back (SBI 2.0, "Timer Extension").
#[inline(always)]
pub(super) fn set_deadline(at: u64) {
    replace_deadline(at);
    // SAFETY: concerns only the guest.
    unsafe { csr::clear!(csr::HVIP, virtual_interrupt::TIMER) }
}

/// No vCPU is loaded any more.
#[inline(always)]
pub(super) fn forget() {
    this().guest.set(NEVER);
}

/// A guest is entered, or the hart goes to sleep: whoever waits is interrupted in time.
#[inline(never)]
pub(super) fn settle() {
    // One look at the clock for both: between two, the guest's time would come, and nobody would tell it.
    let (now, mut guest) = (clock::now(), deadline());
    if guest <= now {
        raise();
        guest = NEVER;
    }
    this().hart.settle(now, guest);
}

/// The alarm is told to the hart ahead of the next guest's entry, while there is time: the vCPU's own timer is waited for.
#[inline(never)]
pub fn settle_alarm() {
    this().hart.settle(clock::now(), NEVER);
}

/// Sets the core's own alarm; `u64::MAX` is never.
#[inline]
pub fn set_alarm(at: u64) {
    this().hart.set_alarm(at);
}

/// The hypervisor's own interrupts that are pending and enabled. The hart's timer may be the loaded vCPU's, and the alarm be due before it.
#[inline(always)]
pub fn pending_own_interrupts() -> Interrupts {
    let mut pending = hart::pending_own_interrupts();
    pending.set(Interrupts::TIMER, this().hart.multiplexer().is_alarm_due(clock::now()));
    pending
}

/// Lets the hart rest until it has an interrupt, of its own or of a guest, or for a shorter while: it may return at any time.
#[inline]
pub fn wait() {
    settle();
    hart::wait();
}

/// The hart's timer, whatever a boot loader has set it to.
pub(super) fn reset() {
    this().hart.reset();
}

/// Must harts have Sstc? They must not.
pub(super) const NEED_SSTC: bool = false;
