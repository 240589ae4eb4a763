//! Guests that are started again: a kind of housework.
//!
//! When the last vCPU of a guest has come to rest, and its manifest has it started again, the housekeeping core puts everything of the guest
//! back to what it was when the machine booted, a piece at a time. The vCPUs themselves are put back by the cores that have them. Nothing
//! that was under way for the former life reaches the next, but for an interrupt that the board's controller had still to deliver:
//!
//! | of the former life | why it doesn't |
//! |---|---|
//! | requests of its vCPUs to each other | all of them rest, so there are no new ones; each core that has one throws away what is left ([`Requests::RESET`]) |
//! | messages of its interrupt controller that a store has left | they aren't sent once the guest has stopped, and who is asked to forgets it with all other requests |
//! | fences and their answers | a life begins only after all answers have been given |
//! | interrupts of its devices | the virtual controller is cleared, devices that the guest owns are silenced; the board's controller is told that they are completed when the next life begins, as they may come until then |
//! | loads and stores of its devices | each has come to rest before anything of the memory is put back; one that doesn't keeps the guest from its next life |
//! | what harts have cached of its memory | recorded as fences that each vCPU carries out before it runs |
//! | bells of its channels that have rung | each end is put back to reset; who rings later is heard by the next life. The channels' memory isn't this guest's alone: it stays as it is |
//! | what it has printed | a life begins only after all of that, and the record of the new life, are on the serial line |
use core::sync::atomic::Ordering;

use ainori_devices::irqchip::Board;
use ainori_handover::{Core, Requests};
use ainori_limits::MAX_GUESTS;
use ainori_limits::bits::lowest_bit_out_of_line;
use ainori_sched::VcpuId;

use super::Cpu;
use super::housekeeping::{Chore, Next};
use super::threshold::IDLE;
use crate::arch::{clock, hart};
use crate::chip;
use crate::guest::Guest;
use crate::guest::stop::{self, Happened, Record};
use crate::stats::Exit;

/// How often a core looks whether what it waits for has come, in microseconds.
const POLL_US: u64 = 50;
/// So many guests that wait are asked in one piece whether they may go on, each of which takes half a microsecond: the vCPUs of each are looked at.
const ASKED_AT_ONCE: usize = 2;
/// How long a piece of loading may take, in microseconds.
const PIECE_US: u64 = 2;
/// The same on a core that idles.
const ROW_US: u64 = 20;

/// How far a guest that is started again has come. Each is a piece, or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Clears its serial port. Before the interrupt controller, which would see that; and so is the next.
    Port,
    /// Silences the devices that it owns: from this one on.
    Devices(usize),
    /// Resets its interrupt controller: from this part on.
    Irqchip(usize),
    /// Has its vCPUs put back. Behind all that may interrupt them: what has come into a guest interrupt file of a hart goes with them.
    Vcpus,
    /// Clears its memory and loads its program: from this offset on.
    Memory(u64),
    /// Waits until its vCPUs are put back and its output is sent.
    Rest,
    /// Announces its next life: a piece of its own, as it takes long to look at all of its vCPUs.
    Announce,
    /// Waits until that is sent, then starts it.
    Start,
}

/// What the housekeeping core knows of the guests that it starts again.
pub(super) struct Restarter {
    steps: [Step; MAX_GUESTS],
    /// Who was asked last: they have their turns one after the other.
    last: u32,
}

impl Restarter {
    /// No guest is being started again.
    pub(super) const fn new() -> Self {
        Self { steps: [Step::Port; MAX_GUESTS], last: 0 }
    }
}

impl Cpu {
    /// A piece of the work on guests that are started again.
    pub(super) fn restart_guests(&mut self) -> Next {
        let mut next = Next::WhenAsked;
        // From the one behind the last on, which comes at the end itself.
        let mut rest = self.machine.restarting.load(Ordering::Acquire).rotate_right(self.restarter.last + 1);
        let mut index = self.restarter.last;
        let mut asked = 0;
        // BOUND: `ASKED_AT_ONCE` guests, some 140 instructions for each.
        while rest != 0 && asked < ASKED_AT_ONCE {
            asked += 1;
            let step = lowest_bit_out_of_line(rest.into()) + 1;
            (index, rest) = ((index + step) % u32::BITS, rest.unbounded_shr(step));
            let place = index as usize;
            let (Some(guest), Some(step)) =
                (self.machine.guests.get(place), self.restarter.steps.get(place).copied())
            else {
                break;
            };
            self.restarter.last = index;
            match self.take_step(guest, step) {
                Some(step) => {
                    if let Some(place) = self.restarter.steps.get_mut(place) {
                        *place = step;
                    }
                    return Next::Soon;
                }
                None => next = Next::At(clock::now() + self.machine.ticks(POLL_US)),
            }
        }
        next
    }

    /// Does a piece of work on a guest. What comes next; `None` if there is something to wait for.
    fn take_step(&mut self, guest: &'static Guest, step: Step) -> Option<Step> {
        let machine = self.machine;
        Some(match step {
            Step::Port => {
                guest.devices.reset_port()?;
                Step::Devices(0)
            }
            Step::Devices(index) => match guest.owned_devices.get(index) {
                Some(device) => {
                    // Once more if it has to be waited for, which changes nothing.
                    chip::quiet::silence(device);
                    if !chip::quiet::is_at_rest(device) {
                        return None;
                    }
                    Step::Devices(index + 1)
                }
                None => Step::Irqchip(0),
            },
            Step::Irqchip(part) if guest.devices.irqchip.reset(part, &mut self.sources_of(guest)) => {
                Step::Irqchip(part + 1)
            }
            Step::Irqchip(_) => {
                // BOUND: `GUEST_CHANNELS`, a store each.
                guest.devices.channels.iter().for_each(|end| end.reset());
                Step::Vcpus
            }
            Step::Vcpus => {
                self.ask_all(guest.vcpu_set(u64::MAX), Requests::RESET);
                Step::Memory(0)
            }
            #[cfg(feature = "no-h")]
            Step::Memory(0) if !guest.space.text.reset_some() => Step::Memory(0),
            Step::Memory(offset) if offset < guest.config.memory => {
                Step::Memory(self.load_memory(guest, offset))
            }
            Step::Memory(_) => {
                // If its ring is full, the life ends later: the next one's first line must not be the rest of this one's.
                let ended = guest.devices.serial.output.end_line();
                self.ask_housekeeper_later(Chore::Console);
                ended.ok()?;
                Step::Rest
            }
            Step::Rest => {
                let is_reset = guest.lifecycle.all_reset() && guest.devices.serial.output.is_empty();
                let answered = |index| machine.vcpu(VcpuId(index)).fences_awaited.all_given();
                // BOUND: the vCPUs of one guest, some 8 instructions each.
                if !(is_reset && self.is_told(guest) && guest.vcpus().all(answered)) {
                    return None;
                }
                Step::Announce
            }
            Step::Announce => {
                let life = guest.lifecycle.life() + 1;
                stop::tell(self, guest, Record { life, time: clock::now(), happened: Happened::Restarted });
                Step::Start
            }
            Step::Start => {
                if !(self.is_told(guest) && machine.log.is_empty()) {
                    return None;
                }
                let vcpu = VcpuId(guest.vcpus().start);
                machine.vcpu(vcpu).hart.prepare_start(guest.program.entry, guest.program.tree);
                machine.restarting.fetch_and(!(1 << guest.index), Ordering::Release);
                #[cfg(feature = "watchdog")]
                if let Some(watchdog) = &guest.watchdog {
                    // It is looked at by the work that this is a piece of.
                    watchdog.begin(clock::now());
                }
                guest.lifecycle.start();
                self.complete_all(guest);
                // Not told at once: with many guests, what led here is long enough for a section.
                self.ask_later(vcpu, Requests::START);
                self.ask_housekeeper_later(Chore::Console);
                Step::Port
            }
        })
    }

    /// Has everything been written to the log that is to be told of the guest?
    fn is_told(&self, guest: &Guest) -> bool {
        self.machine.news.load(Ordering::Acquire) & 1 << guest.index == 0
    }

    /// Tells the board's controller that the interrupts of a guest's devices are completed, now that it runs: those that the former life had not
    /// completed, and those that came since and found nobody ([`Self::take_owned_source`]). Until then none of them comes again.
    fn complete_all(&mut self, guest: &'static Guest) {
        // BOUND: the interrupts of the devices of one guest, mostly one or two, some 80 instructions each.
        for interrupt in guest.owned_devices.iter().flat_map(|device| &device.interrupts) {
            self.sources_of(guest).complete(interrupt.source, false);
        }
    }

    /// Loads some of the guest's memory, from `offset` on: as much as it can until the piece is over, or the core is wanted. Returns where it
    /// has stopped.
    fn load_memory(&mut self, guest: &Guest, mut offset: u64) -> u64 {
        let piece = if self.threshold.level == IDLE { ROW_US } else { PIECE_US };
        let end = clock::now() + self.machine.ticks(piece);
        let begin = offset;
        // BOUND: the piece. Before each step is a preemption point; one is made in any case, so that nobody can keep it from going on for ever.
        loop {
            let now = clock::now();
            let is_interrupted = !hart::pending_interrupts().is_empty();
            let is_wanted =
                is_interrupted || self.next_deadline <= now + self.guard() || self.mailbox.has_mail();
            if offset >= guest.config.memory || offset != begin && (is_wanted || now >= end) {
                return offset;
            }
            if !is_interrupted {
                self.end_irqs_off(Exit::Housekeeping, now);
            }
            // Little if an interrupt is pending, which waits for what led here as well.
            // SAFETY: all vCPUs of the guest rest (`Machine::restarting`), and only this core loads; `offset` was just found to lie in its memory.
            offset = unsafe { guest.program.load_some(guest.space.memory(), offset, is_interrupted) };
        }
    }

    /// Puts a vCPU that this core has back to its reset state. The rest is done when it is started.
    pub(super) fn reset(&mut self, id: VcpuId) {
        let vcpu = self.machine.vcpu(id);
        let waiting = vcpu.fences.take_waiting();
        self.answer(waiting);
        vcpu.hart.note_stop();
        // The program is loaded again, so that nothing of what any hart has cached holds.
        vcpu.fences.distrust_caches();
        self.reset_file(id);
        self.keep_rings(id);
        // Before it can be started: who asks for that finds it parked, or here.
        self.leave_where_it_starts(id);
        if self.machine.guest_of(id).lifecycle.note_reset() {
            self.ask_housekeeper_later(Chore::Restarts);
        }
    }
}
