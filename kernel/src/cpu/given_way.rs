//! Work of the hypervisor's own that isn't begun, or not gone on with, while a vCPU is about to wake or waits. Who has deadlines again and again must not keep
//! it from being done: it gives way to each level for a moment only, and then not again before a time in which an RTOS has one deadline.
use ainori_limits::PRIORITIES;
use ainori_limits::bits::lowest_bit_out_of_line;
use ainori_sched::VcpuId;

use super::{Cpu, Machine};

/// For how long work gives way to a level, in microseconds: from just before the deadline that it has been found to have until its task has begun.
const MOMENT_US: u64 = 25;
/// From when on it gives way to that level again, in microseconds: less than 500, the shortest tick with which promises to an RTOS are tried (they are made for 1000).
pub(super) const INTERVAL_US: u64 = 450;

/// To whom some work has given way lately. By level, as there are more vCPUs of a level than it could wait for; and one more, for
/// [interrupts](Self::ANYBODY) of which isn't known for whom they are.
pub(super) struct GivenWay {
    /// When it did so, in ticks of `time`.
    began: [u64; Self::ANYBODY as usize + 1],
    /// [`MOMENT_US`] and [`INTERVAL_US`] in ticks.
    moment: u64,
    pub(super) interval: u64,
}

impl GivenWay {
    pub(super) const ANYBODY: u8 = PRIORITIES;

    #[inline(never)]
    pub(super) fn new(machine: &Machine) -> Self {
        let (moment, interval) = (machine.ticks(MOMENT_US), machine.ticks(INTERVAL_US));
        // Long ago: more than that has passed since a board's clock began.
        Self { began: [0; Self::ANYBODY as usize + 1], moment, interval }
    }

    /// The bit of this level if the work may give way to it now, else 0.
    pub(super) fn may(&self, level: u8, now: u64) -> u64 {
        let passed = self.began.get(usize::from(level)).map_or(0, |began| now.wrapping_sub(*began));
        if passed < self.moment || passed >= self.interval { 1 << level } else { 0 }
    }

    /// It gives way to these levels, a bit each.
    #[inline(never)]
    pub(super) fn note(&mut self, mut levels: u64, now: u64) {
        // BOUND: the levels to which it gives way now, some 10 instructions each.
        while levels != 0 {
            let level = lowest_bit_out_of_line(levels) as usize;
            levels &= levels - 1;
            if let Some(began) = self.began.get_mut(level)
                && now.wrapping_sub(*began) >= self.interval
            {
                *began = now;
            }
        }
    }
}

const _: () = assert!(GivenWay::ANYBODY < u64::BITS as u8);

impl Cpu {
    /// The bit of a vCPU's level if such work may give way to that now, else 0.
    #[inline(never)]
    pub(super) fn may_give_way_to_vcpu(&self, id: VcpuId, given_way: &GivenWay, now: u64) -> u64 {
        given_way.may(self.order.rank(id).level, now)
    }

    /// When the first sleeper is woken to which such work gives way, if that is `soon`; and the levels of all of those, a bit each.
    #[inline(never)]
    pub(super) fn sleepers_due_by(&self, soon: u64, given_way: &GivenWay, now: u64) -> (u64, u64) {
        let (mut first, mut levels) = (u64::MAX, 0);
        if self.next_deadline > soon {
            return (first, levels);
        }
        // BOUND: the levels that have sleepers, some 45 instructions each.
        for (id, at) in self.scheduler.timers(self.threshold.lowest()).filter(|(_, at)| *at <= soon) {
            let level = self.scheduler.level(id).map_or(0, |level| given_way.may(level, now));
            if level != 0 {
                (first, levels) = (first.min(at), levels | level);
            }
        }
        (first, levels)
    }
}
