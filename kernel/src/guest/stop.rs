//! The end of a guest's life, and the beginning of the next: what is kept of it for the report, which the housekeeping core writes later.
use core::sync::atomic::Ordering;

use ainori_lifecycle::{Cause, Next};
use ainori_limits::MAX_GUESTS;
use ainori_sched::VcpuId;

use super::Guest;
use super::fault::Fault;
use crate::arch::clock;
use crate::cpu::Cpu;
use crate::cpu::housekeeping::Chore;

// `Machine::news` has a bit for each guest.
const _: () = assert!(MAX_GUESTS <= u32::BITS as usize);

/// Something that is told of a guest.
pub struct Record {
    /// Number of the life that ends or begins.
    pub life: u32,
    /// When, in ticks of `time`.
    pub time: u64,
    /// What.
    pub happened: Happened,
}

/// What is told.
#[expect(clippy::large_enum_variant, reason = "there is one for each guest, where it stays")]
pub enum Happened {
    /// The life ends.
    Stopped(Stopped),
    /// The life begins; not told of the first.
    Restarted,
}

/// How a life ended.
pub struct Stopped {
    /// Index of the vCPU that caused it, within the guest.
    pub vcpu: u32,
    /// Why, as reports call it.
    pub reason: &'static str,
    /// What comes after it.
    pub next: Next,
    /// What it did that it may not do, if that is why.
    pub fault: Option<Fault>,
}

/// Stops the guest of the running vCPU, unless it is stopped already. Takes no longer for a guest with many vCPUs: they are asked one by one behind
/// the present event. All the rest is done later, or by others.
pub fn stop(
    cpu: &mut Cpu,
    vcpu: VcpuId,
    reason: &'static str,
    cause: Cause,
    fault: impl FnOnce(&mut Cpu) -> Option<Fault>,
) {
    let machine = cpu.machine;
    let guest = machine.guest_of(vcpu);
    let time = clock::now();
    let Some(next) = guest.lifecycle.stop(cause, time) else {
        // Another one was faster. This one doesn't go on behind what would have stopped it.
        return cpu.hold_until_stopped(vcpu);
    };
    let stopped = Stopped { vcpu: machine.vcpu(vcpu).index, reason, next, fault: fault(cpu) };
    let life = guest.lifecycle.life();
    tell(cpu, guest, Record { life, time, happened: Happened::Stopped(stopped) });
    cpu.stop_guest(vcpu);
}

/// Has something told of a guest. What was told before has been written.
#[inline(always)] // It is written where it stays rather than copied: with a fault it is 500 bytes.
pub fn tell(cpu: &mut Cpu, guest: &Guest, news: Record) {
    keep(guest, news);
    tell_kept(cpu, guest);
}

/// Keeps what is to be told of a guest.
#[inline(always)] // As above.
pub fn keep(guest: &Guest, news: Record) {
    // It is free: only who stops the guest, or starts it again, comes here.
    if let Some(mut record) = guest.record.try_lock() {
        *record = Some(news);
    }
}

/// Has it told.
#[inline(always)]
pub fn tell_kept(cpu: &mut Cpu, guest: &Guest) {
    cpu.machine.news.fetch_or(1 << guest.index, Ordering::Release);
    cpu.ask_housekeeper_later(Chore::Reports);
}
