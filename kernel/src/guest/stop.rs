//! The end of a guest: what is kept of it for the report, which the housekeeping core writes later.
use core::sync::atomic::Ordering;

use ainori_sched::VcpuId;

use super::fault::Fault;
use crate::arch::csr::time;
use crate::cpu::Cpu;
use crate::cpu::housekeeping::Chore;

/// How a guest stopped.
pub struct Record {
    /// Index of the vCPU that caused it, within the guest.
    pub vcpu: u32,
    /// Why, as reports call it.
    pub reason: &'static str,
    /// When, in ticks of `time`.
    pub time: u64,
    /// What it did that it may not do, if that is why.
    pub fault: Option<Fault>,
}

/// Stops the guest of the running vCPU, unless it is stopped already. Takes constant time: all the rest is done later, or by others.
pub fn stop(
    cpu: &mut Cpu,
    vcpu: VcpuId,
    reason: &'static str,
    fault: impl FnOnce(&mut Cpu) -> Option<Fault>,
) {
    let machine = cpu.machine;
    let guest = machine.guest_of(vcpu);
    if !guest.stop() {
        return;
    }
    let fault = fault(cpu);
    // It is free: only who stops the guest comes here, and no report has been asked for before.
    if let Some(mut record) = guest.record.try_lock() {
        *record = Some(Record { vcpu: machine.vcpu(vcpu).index, reason, time: time(), fault });
    }
    machine.stopped_guests.fetch_or(1 << guest.index, Ordering::Release);
    cpu.ask_housekeeper(Chore::Reports);
    cpu.stop_guest(guest);
}
