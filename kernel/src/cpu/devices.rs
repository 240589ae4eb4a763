//! Interrupts for guests that are handed on one in a while: those of the board's devices that are theirs, and [bells](super::bells).
//!
//! A guest that serves its device on other cores can make it interrupt again faster than this core can hand that on. So interrupts of
//! each guest's devices have [turns](Pace), one in a while; the next one is claimed, and waits for its turn. Until it is handed on nobody can
//! complete it, and so it can't come again. Nor is it handed on beside a vCPU that the interrupt controller would keep
//! it from. A guest's bells have turns of their own, so that they put off no device.
use alloc::boxed::Box;

use ainori_devices::bus;
use ainori_devices::channel::Endpoint;
use ainori_guest::Devices;
use ainori_handover::Pace;
use ainori_limits::bits::lowest_bit_out_of_line;
use ainori_limits::{IRQ_SOURCES, MAX_GUESTS};

use super::{Cpu, guard};
use crate::arch::clock;
use crate::guest::Guest;

// A guest's controller has the numbers of the board's, so there are no others.
const _: () = assert!(IRQ_SOURCES <= u128::BITS as usize);
const _: () = assert!(QUEUES <= u32::BITS as usize);

/// Of each guest's devices, and behind these of each guest's bells.
const QUEUES: usize = 2 * MAX_GUESTS;

/// What waits on this core.
pub struct Waiting {
    /// Apart from what is asked for on the RTOS's way.
    queues: Box<[Queue; QUEUES]>,
    /// Those in which sources wait, a bit each.
    waiting: u32,
}

/// The sources of one kind of one guest.
#[derive(Clone, Copy)]
struct Queue {
    /// Those that wait, a bit each.
    waiting: u128,
    /// When the turn of the next one begins, if some do.
    turn: u64,
    /// Which of them was handed on last: the others have their turns before it.
    last: u32,
    /// The level of all of them: of devices, that in the interrupt controller; of bells, the greatest of those for which they wait.
    level: u32,
    /// The life of the guest that they are for: the next one finds its sources completed.
    life: u32,
    /// The one whose turn it was has [gone back](Cpu::hand_on_unless_interrupted).
    gave_way: bool,
}

/// The turns of a guest's sources that wait in this queue.
fn pace_of(guest: &Guest, queue: usize) -> &Pace {
    if queue < MAX_GUESTS { &guest.device_turns } else { &guest.bell_turns }
}

/// Where a source of a guest's controller waits.
fn queue_of(guest: &Guest, source: u32) -> usize {
    usize::from(guest.index) + if bus::channel_of(source).is_some() { MAX_GUESTS } else { 0 }
}

impl Waiting {
    /// Nothing waits. Allocates: only at boot.
    pub fn new() -> Self {
        let queues =
            Box::new([Queue { turn: 0, waiting: 0, last: 0, level: 0, life: 0, gave_way: false }; QUEUES]);
        Self { queues, waiting: 0 }
    }

    /// Does something wait?
    pub(super) fn are_waiting(&self) -> bool {
        self.waiting != 0
    }

    /// All sources of a guest that wait have this level from now on.
    pub(super) fn set_level(&mut self, guest: usize, level: u32) {
        // BOUND: 2.
        for index in [guest, guest + MAX_GUESTS] {
            if let Some(queue) = self.queues.get_mut(index) {
                queue.level = level;
            }
        }
    }

    /// When the next one is to be handed on beside a vCPU that keeps away levels up to `threshold`, in ticks of `time`; `u64::MAX` if never.
    fn next_due(&self, threshold: u32) -> u64 {
        let mut due = u64::MAX;
        let mut rest = self.waiting;
        // BOUND: two for each guest, 10 instructions for each in which something waits.
        while rest != 0 {
            if let Some(queue) = self.queues.get(lowest_bit_out_of_line(rest.into()) as usize)
                && queue.level > threshold
            {
                due = due.min(queue.turn);
            }
            rest &= rest - 1;
        }
        due
    }

    /// The most urgent queue of which one is to be handed on by `now`: of a guest's, that of its devices.
    fn choose(&self, threshold: u32, now: u64) -> Option<usize> {
        let mut chosen = None;
        let mut above = threshold;
        let mut rest = self.waiting;
        // BOUND: as above.
        while rest != 0 {
            let index = lowest_bit_out_of_line(rest.into()) as usize;
            if let Some(queue) = self.queues.get(index)
                && queue.level > above
                && queue.turn <= now
            {
                (chosen, above) = (Some(index), queue.level);
            }
            rest &= rest - 1;
        }
        chosen
    }
}

impl Queue {
    /// Takes the next source out of those that wait.
    fn take(&mut self) -> Option<u32> {
        let after = self.last + 1;
        let steps = self.waiting.rotate_right(after).trailing_zeros();
        let source = (after + steps) % u128::BITS;
        (self.waiting != 0).then(|| {
            self.waiting &= !(1 << source);
            self.last = source;
            source
        })
    }
}

impl Cpu {
    /// A source of this guest has been claimed.
    pub(super) fn take_owned_source(&mut self, guest: &'static Guest, source: u32) {
        // If the guest has stopped, whoever starts it again completes it, behind that.
        if guest.lifecycle.is_running() {
            let level = self.device_level_now(guest);
            self.hand_on_in_turn(guest, source, level);
        }
    }

    /// Hands a source of this guest on, when it has its turn. Those who keep away devices of this level have it wait longer.
    #[inline(never)]
    pub(super) fn hand_on_in_turn(&mut self, guest: &'static Guest, source: u32, level: u32) {
        let index = queue_of(guest, source);
        let Some(queue) = self.devices.queues.get_mut(index) else { return };
        let life = guest.lifecycle.life();
        if queue.life != life {
            (queue.life, queue.waiting) = (life, 0);
        }
        let (is_first, now) = (queue.waiting == 0, clock::now());
        let turn = self.wait_for_turn(guest, source, level, now);
        // To hand it on takes up to half the guard, most of it in the guest's interrupt controller.
        if !is_first || turn != now || self.gives_way_if_long() {
            self.review_waiting();
        } else if self.take_waiting(index, now).is_some() {
            self.hand_on_unless_interrupted(index, guest, source);
        }
    }

    /// A source waits for the next turn, which its queue has if others wait there. When that is.
    fn wait_for_turn(&mut self, guest: &Guest, source: u32, level: u32, now: u64) -> u64 {
        let index = queue_of(guest, source);
        let Some(queue) = self.devices.queues.get_mut(index) else { return now };
        if queue.waiting == 0 {
            queue.turn = pace_of(guest, index).take_turn(now, self.scheduler.policy().patience);
            queue.level = level;
        }
        queue.waiting |= 1 << source;
        queue.level = queue.level.max(level);
        self.devices.waiting |= 1 << index;
        queue.turn
    }

    /// One request has come, so one is passed on. If it is one of the board, whose line is still high when the guest completes it, or asks for it, the controller tells of
    /// it again.
    pub(super) fn hand_on(&mut self, guest: &'static Guest, source: u32) {
        let Devices { irqchip, channels, .. } = &guest.devices;
        let harts = match bus::channel_of(source) {
            None => irqchip.request(source, &mut self.sources_of(guest)),
            // Nothing is known of its hearer's next life, which looks itself.
            Some(_) if !guest.lifecycle.is_running() => return,
            Some(slot) => {
                self.ring_by_file(guest, slot);
                // Its hearer may have looked while it waited.
                if !channels.get(slot).is_some_and(Endpoint::take_due) {
                    return;
                }
                irqchip.pulse(source)
            }
        };
        if irqchip.has_files() {
            // To look at whose file has got the message takes its time as well.
            let _ = self.gives_way_if_long();
        }
        self.look_at_harts(guest, harts);
    }

    /// Hands on one of those that wait, if its turn has come. Is there one?
    #[inline(never)]
    pub(super) fn hand_on_waiting(&mut self, now: u64) -> bool {
        let chosen = self.devices.choose(self.machine.irq_level(self.irq_threshold.number()), now);
        let source = chosen.and_then(|index| self.take_waiting(index, now));
        // If there is none, who is next keeps them away, or what was due belonged to a former life, or has missed its turn.
        self.review_waiting();
        if let (Some(index), Some((guest, source))) = (chosen, source) {
            self.hand_on_unless_interrupted(index, guest, source);
        }
        source.is_some()
    }

    /// Hands on a source that has been taken out of a queue. Where that sends a message to a file it takes three quarters of the guard: if an interrupt has come in by now, the source goes back, for
    /// the next turn, but once only, so that it doesn't wait for as long as others keep this core busy.
    fn hand_on_unless_interrupted(&mut self, index: usize, guest: &'static Guest, source: u32) {
        if guest.devices.irqchip.has_files() {
            let gives_way = self.has_taken(guard::brief(self.guard)) && self.gives_way();
            let Some(queue) = self.devices.queues.get_mut(index) else { return };
            if gives_way && !queue.gave_way {
                (queue.gave_way, queue.turn) = (true, clock::now());
                queue.waiting |= 1 << source;
                self.devices.waiting |= 1 << index;
                return self.review_waiting();
            }
            queue.gave_way = false;
        }
        self.hand_on(guest, source);
    }

    /// Takes the next source out of a queue whose turn has come.
    fn take_waiting(&mut self, index: usize, now: u64) -> Option<(&'static Guest, u32)> {
        let guest = self.machine.guests.get(index % MAX_GUESTS)?;
        let queue = self.devices.queues.get_mut(index)?;
        let length = self.scheduler.policy().patience;
        if !guest.lifecycle.is_running() || queue.life != guest.lifecycle.life() {
            queue.waiting = 0;
        }
        let pace = pace_of(guest, index);
        if queue.waiting != 0 && Pace::is_missed(queue.turn, now, length) {
            queue.turn = pace.take_turn(now, length);
            if queue.turn > now {
                return None;
            }
        }
        let source = queue.take();
        if queue.waiting == 0 {
            self.devices.waiting &= !(1 << index);
        } else {
            queue.turn = pace.take_turn(now, length);
        }
        source.map(|source| (guest, source))
    }

    /// What waits, or what it waits behind, has changed.
    #[inline(never)]
    pub(super) fn review_waiting(&mut self) {
        let threshold = self.machine.irq_level(self.irq_threshold.number());
        self.set_device_due(self.devices.next_due(threshold));
    }
}
