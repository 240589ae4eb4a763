//! Housekeeping: what the hypervisor itself has to do that is slow, and that no guest waits for within microseconds.
//!
//! One core does it all, the one with the least urgent guests, a *piece* at a time. Any core may ask for work ([`Cpu::ask_housekeeper`]), which takes
//! it a few instructions; the housekeeping core then calls the work's function again and again, until that says that there is no more.
//!
//! A piece takes as long as any section with interrupts off may, 5 us on an RTOS's hart, and lies between two instructions of a guest, like an interrupt. (To clear a
//! part of a guest's memory took 1,548 instructions with the trap that leads there and back.)
//! - While the core runs somebody more urgent than its own least urgent guest, housework is *hidden*: nobody sends the core an IPI for it. The core looks
//!   when it lowers its threshold, and some time behind a deadline. So an RTOS that shares it isn't disturbed. But what is due is gone on with
//!   [`HIDDEN_US`] later also while it is hidden: that one may never sleep, or for no longer than a piece takes. Then there is a piece each
//!   [`INTERVAL_US`](super::given_way::INTERVAL_US) until all is done, so that who is more urgent silences nobody.
//! - Nor is it interrupted at its own deadlines, of which the core isn't told: after one the guest sets its timer anew, and goes on. So before the next one
//!   the core looks what that is ([`Housework::look`]), and has a piece some time behind one of them only.
//! - Just before the deadline of a vCPU no piece is begun, nor while it waits for the core. Who has deadlines again and again can't keep housework from
//!   being done: it [gives way](super::given_way) to each level for a moment only, and then not again before a time in which an RTOS has one deadline. (Guests that
//!   are timed to the microsecond make it slower all the same.)
//! - Between two pieces the guests of this core go on for [`PAUSE_US`] at least, and where the way there and back may take longer than that, for
//!   [as much more](Cpu::least_pause).
//!
//! To add a kind of work: a variant of [`Chore`], with its places in [`Chore::ALL`], [`Housekeeper::due`] and `due_mut`; and its function in
//! [`Cpu::do_piece`].
use super::given_way::GivenWay;
use super::guard::near;
use super::mail::{MACHINE, NO_VCPU};
use super::threshold::{IDLE, extent};
use super::{Cpu, Machine};
use crate::arch::hart::Interrupts;
use crate::arch::{clock, world};
use ainori_sched::VcpuSet;

/// How long the guests of the housekeeping core go on between two pieces, in microseconds: with a piece of 5 us and the way there and back, housework has
/// some third of a busy core at most.
const PAUSE_US: u64 = 12;
/// How long hidden housework waits for a core that is never free for it, in microseconds. Not a multiple of an RTOS's usual period, near whose end it
/// began to wait.
const HIDDEN_US: u64 = 10_300;
/// A time that no clock ever adds up to.
const NEVER: u64 = u64::MAX / 2;
/// How far hidden housework keeps behind a deadline, in microseconds, so that a short job isn't interrupted, and it isn't the next deadline yet. Once it
/// has given way for [`HIDDEN_US`] it comes as soon as it can: else the next one could always have its deadline just then.
const DISTANCE_US: u64 = 300;

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chore {
    /// Reports on guests that have stopped.
    Reports,
    /// What is typed, and the guests' output.
    Console,
    /// Guests that are started again; and those that are to be, as they hang.
    Restarts,
}

impl Chore {
    const ALL: [Self; 3] = [Self::Reports, Self::Console, Self::Restarts];

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// When a kind of work is to be gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// As soon as the guests have had their pause.
    Soon,
    /// At this time, or when somebody asks.
    At(u64),
    /// When somebody asks.
    WhenAsked,
}

/// What the housekeeping core knows of its work.
pub struct Housekeeper {
    /// When each kind of work is due. By [`Chore`].
    due: [u64; Chore::ALL.len()],
    /// The kind whose piece was the last: those that are due have their turns one after the other.
    last: usize,
    pause: u64,
    given_way: GivenWay,
}

impl Housekeeper {
    /// Nothing is due.
    pub fn new(machine: &Machine) -> Self {
        let due = [u64::MAX; Chore::ALL.len()];
        Self { due, last: 0, pause: machine.ticks(PAUSE_US), given_way: GivenWay::new(machine) }
    }

    fn due_mut(&mut self, chore: Chore) -> &mut u64 {
        let [reports, console, restarts] = &mut self.due;
        match chore {
            Chore::Reports => reports,
            Chore::Console => console,
            Chore::Restarts => restarts,
        }
    }

    /// For how long what is under way rests at most, in ticks.
    #[inline(always)]
    const fn longest_pause(&self) -> u64 {
        if cfg!(feature = "sbi-timer") { self.given_way.interval } else { self.pause }
    }

    fn earliest(&self) -> u64 {
        // BOUND: the kinds of work: 3.
        self.due.iter().fold(u64::MAX, |earliest, due| earliest.min(*due))
    }

    #[inline(never)]
    fn choose(&self, now: u64) -> Option<Chore> {
        let count = Chore::ALL.len();
        // BOUND: the kinds of work: 3.
        (1..=count)
            .map(|step| (self.last + step) % count)
            .find(|&i| self.due.get(i).is_some_and(|due| *due <= now))
            .and_then(|i| Chore::ALL.get(i).copied())
    }
}

/// When a core is interrupted for housework. A core that does none has one too, in which nothing is ever due: that costs less on the RTOS's way than to ask whether there is one.
pub struct Housework {
    /// When the next piece is due, in ticks of `time`.
    pub(super) due: u64,
    /// Since when it counts as waiting, if a vCPU hides it: this patience later it is gone on with all the same.
    waits_since: u64,
    /// The time of the next look at hidden housework, for which the core is interrupted although the running vCPU hides it. It is set
    /// [`DISTANCE_US`] behind a deadline of the running vCPU, because the guest sets its next timer in that time without a trap (Sstc):
    /// from the look on the core knows the next deadline, and keeps clear of that. A guest that sets its timer later, or twice, can be
    /// interrupted by a look or a piece at its deadline.
    look: u64,
    /// The loaded vCPU's own deadline when the core looked last, or when that got the core.
    seen: u64,
    /// How long hidden housework waits, in ticks.
    patience: u64,
    /// [`DISTANCE_US`] in ticks.
    distance: u64,
    /// When the next piece gave way first; [`NEVER`] if it didn't.
    gives_way_since: u64,
    /// The level from which on vCPUs hide it: none on cores that do none.
    hidden_from: u8,
}

impl Housework {
    /// Nothing is due on core `id`.
    pub fn new(machine: &Machine, id: u32) -> Self {
        let patience = machine.ticks(HIDDEN_US);
        let now = clock::now();
        Self {
            due: u64::MAX,
            waits_since: now,
            look: now + patience,
            seen: u64::MAX,
            patience,
            distance: machine.ticks(DISTANCE_US),
            gives_way_since: NEVER,
            hidden_from: if id == machine.console_core { machine.housework_threshold + 1 } else { u8::MAX },
        }
    }

    /// From when on it is gone on with although a vCPU hides it.
    fn latest(&self) -> u64 {
        self.waits_since.wrapping_add(self.patience)
    }

    fn set_latest(&mut self, latest: u64) {
        self.waits_since = latest.wrapping_sub(self.patience);
    }

    /// The time of the next look, if the running vCPU's deadline `own` is still to come. If `own` is before [`Self::latest`], or less than
    /// `near` behind that, the look is `distance` behind `own`. If `own` is further from now than the patience, the vCPU may not have set
    /// its timer yet: then the look comes after as long again as housework has waited, but after `distance` at least, and not after
    /// `latest`. Else the look is at `latest`.
    fn behind(&self, own: u64, distance: u64, near: u64, now: u64) -> u64 {
        let latest = self.latest();
        if own <= latest + near {
            own + distance
        } else if own > now + self.patience {
            latest.min(now + distance.max(now.saturating_sub(self.waits_since)))
        } else {
            latest
        }
    }
}

impl Machine {
    /// Does the housekeeping core run somebody more urgent at this moment?
    fn hides_housework(&self) -> bool {
        let threshold = self.thresholds[self.console_core].level();
        threshold != IDLE && threshold > self.housework_threshold
    }
}

/// When the loaded vCPU's own timer interrupts it; [`u64::MAX`] if it doesn't.
#[inline(never)]
pub(super) fn own_deadline() -> u64 {
    world::loaded_deadline().unwrap_or(u64::MAX)
}

impl Cpu {
    /// Any core: there is work of this kind. What it is has been written before.
    pub fn ask_housekeeper(&mut self, chore: Chore) {
        if self.note_chore(chore) {
            self.look_for_housework();
        }
    }

    /// The same in the midst of what takes long by itself: if it is this core's work, it looks behind the present event.
    pub fn ask_housekeeper_later(&mut self, chore: Chore) {
        if self.note_chore(chore) {
            self.put_unread(VcpuSet::of(NO_VCPU));
        }
    }

    /// Notes that there is work of this kind, and tells the core whose it is. Is it this one's, which has yet to look?
    fn note_chore(&mut self, chore: Chore) -> bool {
        let machine = self.machine;
        if !machine.housework.ask(chore.bit()) {
            return false;
        }
        if machine.console_core != self.id && !machine.hides_housework() {
            self.post(machine.console_core, MACHINE);
        }
        machine.console_core == self.id
    }

    /// From now on housework may be hidden here, where `before` is the threshold that was published until now: its patience begins, and it is looked at
    /// behind a deadline that is just now. If it was hidden already, it is due when it was; and so it is if it was shown for a moment only, in which
    /// nothing of what is due was done: then false.
    ///
    /// This is on the way to the RTOS, on all cores.
    #[inline(always)]
    pub(super) fn begin_patience(&mut self, before: u8, now: u64) -> bool {
        let housework = &mut self.housework;
        if extent(before) > housework.hidden_from
            || housework.due <= now
            || self.machine.housework.asked() != 0
        {
            return false;
        }
        (housework.waits_since, housework.look) = (now, now + housework.distance);
        true
    }

    /// A vCPU of this level, which may hide housework, has just got the core, or will in a moment: isn't to be interrupted at once. `own` is its deadline.
    #[cold]
    #[inline(never)]
    pub(super) fn spare_beginning(&mut self, level: u8, own: u64, now: u64) {
        if level < self.housework.hidden_from {
            return;
        }
        if self.housework.latest() <= now {
            self.puts_off_for(level, own, now, now);
        } else {
            self.look_later(own, now);
        }
    }

    /// Puts housework off for this level until `later`, if it may. `own` is the deadline of who will run here then.
    #[inline(never)]
    fn puts_off_for(&mut self, level: u8, own: u64, later: u64, now: u64) -> bool {
        let levels = self.may_give_way_to(level, now);
        if levels != 0 {
            self.give_way(levels, own, later, now);
        }
        levels != 0
    }

    /// The next piece gives way to these levels, a bit each, until `later` at least; and if it is hidden, for a while more: what a vCPU does at its
    /// deadline isn't to be disturbed either.
    #[inline(never)]
    fn give_way(&mut self, levels: u64, own: u64, later: u64, now: u64) {
        let distance = self.distance(now);
        if let Some(housekeeper) = &mut self.housekeeper {
            housekeeper.given_way.note(levels, now);
        }
        let housework = &mut self.housework;
        if housework.gives_way_since == NEVER {
            housework.gives_way_since = now;
        }
        housework.set_latest(later + distance);
        housework.seen = own;
        // Behind the next deadline as well: not before long may it give way to that.
        housework.look = if now < own {
            housework.behind(own, distance, near(self.guard), now)
        } else {
            housework.latest()
        };
    }

    /// The bit of this level, if a piece may give way to it now; else 0.
    fn may_give_way_to(&self, level: u8, now: u64) -> u64 {
        self.housekeeper.as_ref().map_or(0, |housekeeper| housekeeper.given_way.may(level, now))
    }

    /// These interrupts aren't taken, as somebody is woken first. A device's may be the serial port's, which isn't heard while somebody more urgent has
    /// the core: it counts as asked for, like what waits for its turn.
    #[cold]
    #[inline(never)]
    pub(super) fn note_put_off(&mut self, interrupts: Interrupts) {
        if interrupts.contains(Interrupts::EXTERNAL) && self.console.is_some() {
            // Not `ask_housekeeper`: this is on the way to who is woken, who waits for no look at what there is to do.
            let _ = self.machine.housework.ask(Chore::Console.bit());
            // An alarm at once, as when housework is shown: who is woken may be an equal, who hides nothing.
            self.housework.due = self.since;
            self.pending.alarm = true;
        }
    }

    /// What was hidden isn't any more, at the last switch, or is by a vCPU of a lower level. This is on the way from the RTOS to others, on all cores.
    #[inline(always)]
    pub(super) fn show_housework(&mut self) {
        if self.housework.hidden_from == u8::MAX {
            return;
        }
        if self.is_housework_hidden() {
            self.spare_beginning(self.threshold.level, own_deadline(), clock::now());
        }
        if self.machine.housework.asked() != 0 {
            // An alarm at once, which looks what it is.
            self.housework.due = self.since;
        }
    }

    /// Something may have been asked for. Called when somebody has sent an IPI, and when what was hidden isn't any more.
    #[inline(never)]
    pub(super) fn look_for_housework(&mut self) {
        let now = clock::now();
        self.note_housework(now);
        let Some(housekeeper) = &self.housekeeper else { return };
        let earliest = housekeeper.earliest();
        // It need not interrupt a vCPU to find out that it must wait. That doesn't count as giving way, since who is asked already isn't asked again.
        // To look at all sleepers takes a while, for which there is none if a trap has taken long and an interrupt waits.
        let may_look = !self.is_crowded || !self.gives_way_if_long();
        let later = may_look
            .then(|| self.must_hurry(now))
            .flatten()
            .map(|(later, _)| later)
            .filter(|_| earliest <= now && !self.is_housework_hidden());
        self.housework.due = self.clear_of_deadline(later.unwrap_or(earliest));
        self.pending.alarm = true;
    }

    /// What has been asked for is due from now on.
    fn note_housework(&mut self, now: u64) {
        let Some(housekeeper) = &mut self.housekeeper else { return };
        let asked = self.machine.housework.asked();
        // BOUND: the kinds of work: 3.
        for chore in Chore::ALL {
            let pause = housekeeper.longest_pause();
            let due = housekeeper.due_mut(chore);
            // What is under way keeps its pauses.
            if asked & chore.bit() != 0 && *due > now + pause {
                *due = now;
                // If it is hidden now, it hasn't waited since then.
                if self.housework.latest() <= now {
                    self.housework.waits_since = now;
                }
            }
        }
    }

    /// Housework would interrupt who has been woken just now. What is hidden and can wait is looked at later.
    pub(super) fn defer_housework(&mut self, now: u64) {
        if !self.puts_off_look(now) {
            self.puts_off_housework(now);
        }
    }

    /// Puts housework off if it [must](Self::must_hurry) be.
    fn puts_off_housework(&mut self, now: u64) -> bool {
        let Some((later, levels)) = self.must_hurry(now) else { return false };
        self.give_way(levels, own_deadline(), later, now);
        // What is due at a time only counts as asked for from now on: else it would be forgotten when it is hidden, as `due` is later.
        if let Some(chore) = self.housekeeper.as_ref().and_then(|housekeeper| housekeeper.choose(now)) {
            let _ = self.machine.housework.ask(chore.bit());
        }
        self.housework.due = self.clear_of_deadline(later);
        true
    }

    /// Just before a more urgent deadline no piece is begun, so an alarm for it would only cost the way to it a trap. Nor is the running vCPU
    /// interrupted when its own timer is near, or has just woken what waits for that: it may be an RTOS.
    #[inline(never)]
    fn clear_of_deadline(&self, due: u64) -> u64 {
        let near = near(self.guard);
        let collides = due < self.next_deadline && self.next_deadline <= due.saturating_add(near);
        let due = if collides { self.next_deadline + self.guard } else { due };
        let own =
            world::loaded_deadline().filter(|at| self.threshold.level != IDLE && at.abs_diff(due) < near);
        own.map_or(due, |at| at.saturating_add(near))
    }

    /// When to interrupt the vCPU that is about to be entered for housework. Never, on cores that do none.
    #[inline(always)]
    pub(super) fn housework_alarm(&self) -> u64 {
        if self.is_housework_hidden() { self.housework.look } else { self.housework.due }
    }

    /// Is what runs here too urgent to be disturbed by housework?
    #[inline(always)]
    fn is_housework_hidden(&self) -> bool {
        extent(self.threshold.level) > self.housework.hidden_from
    }

    /// Hidden housework isn't to interrupt what begins at `due` before `look`, if it [may](super::given_way) give way. What isn't hidden looks for itself, just before
    /// it begins, whether it has to give way.
    pub(super) fn hold_off_housework(&mut self, due: u64, look: u64) {
        if !self.is_housework_hidden() || self.housework.look >= look {
            return;
        }
        let now = clock::now();
        if self.housework.latest() <= now {
            self.puts_off_for(self.threshold.level, due, due, now);
        } else {
            self.housework.look = due + self.distance(now);
        }
    }

    /// Is it time for a piece although the vCPU that runs here hides it? If not, the core looks again later.
    fn must_work_now(&mut self, now: u64) -> bool {
        let own = own_deadline();
        let seen = self.housework.seen;
        // Had it another one ahead, it has set its timer anew since then, and nobody knows whether for what it has just begun.
        let is_known = own == seen || seen.saturating_add(near(self.guard)) <= now;
        let is_overdue = self.housework.latest() <= now;
        if is_overdue && (is_known || !self.puts_off_for(self.threshold.level, own, now, now)) {
            return true;
        }
        if !is_overdue {
            self.look_later(own, now);
        }
        false
    }

    /// Puts the look at hidden housework off if that isn't overdue.
    #[inline]
    pub(super) fn puts_off_look(&mut self, now: u64) -> bool {
        let may_wait = self.is_housework_hidden() && now < self.housework.latest();
        if may_wait {
            self.look_later(own_deadline(), now);
        }
        may_wait
    }

    /// How far to keep behind a deadline now: [`DISTANCE_US`] says when less.
    #[inline(never)]
    fn distance(&self, now: u64) -> u64 {
        let is_short = now >= self.housework.gives_way_since.saturating_add(self.housework.patience);
        if is_short { near(self.guard) } else { self.housework.distance }
    }

    /// When to look next at what is hidden, for a while after the loaded vCPU's `own` deadline: at that it sets the next one, of which this core isn't
    /// told.
    fn look_later(&mut self, own: u64, now: u64) {
        let distance = self.distance(now);
        let housework = &mut self.housework;
        housework.seen = own;
        housework.look = if own <= now {
            (now + distance).min(housework.latest().max(now + near(self.guard)))
        } else {
            housework.behind(own, distance, near(self.guard), now)
        };
    }

    /// Does one piece of what is due.
    #[inline(never)]
    pub(super) fn keep_house(&mut self, now: u64) {
        let least_pause = self.least_pause(self.housework_alarm(), now);
        if self.is_housework_hidden() && !self.must_work_now(now) {
            self.pending.alarm = true;
            return;
        }
        // To look whether it gives way may take half the guard. What comes of an interrupt is decided below.
        let _ = self.gives_way_if_long();
        if self.puts_off_housework(now) {
            return;
        }
        let now = clock::now();
        self.note_housework(now);
        // What led here is a section of its own: a piece may take as long as a section at all. But nobody keeps it from being done for ever.
        if self.gives_way() && self.puts_off_for(GivenWay::ANYBODY, own_deadline(), now, now) {
            self.pending.alarm = true;
            return;
        }
        let is_overdue = self.is_housework_hidden() && self.housework.latest() <= now;
        let Some(housekeeper) = &mut self.housekeeper else { return };
        let chore = match housekeeper.choose(now) {
            Some(chore) => chore,
            // What is typed may wait, since its interrupt was hidden, too.
            None if is_overdue => Chore::Console,
            None => {
                // What is under way has its pause.
                let earliest = housekeeper.earliest();
                self.housework.due = self.clear_of_deadline(earliest);
                self.pending.alarm = true;
                return;
            }
        };
        self.housework.gives_way_since = NEVER;
        housekeeper.last = chore as usize;
        let housework = &self.machine.housework;
        housework.take(chore.bit());
        let next = self.do_piece(chore);
        let now = clock::now();
        let is_idle = self.threshold.level == IDLE;
        let Some(housekeeper) = &mut self.housekeeper else { return };
        *housekeeper.due_mut(chore) = match next {
            Next::Soon => {
                // Nobody need ask for what is under way.
                let _ = housework.ask(chore.bit());
                if is_idle { now } else { now + housekeeper.pause.max(least_pause) }
            }
            Next::At(time) => time,
            Next::WhenAsked => u64::MAX,
        };
        let due = housekeeper.earliest();
        // What is under way need not wait as long again: that would be 16 bytes of all consoles each time.
        let is_under_way = due <= now + housekeeper.longest_pause();
        let waits = if is_under_way { housekeeper.given_way.interval } else { self.housework.patience };
        self.housework.set_latest(now + waits);
        self.look_later(own_deadline(), now);
        self.housework.due = self.clear_of_deadline(due);
    }

    fn do_piece(&mut self, chore: Chore) -> Next {
        match chore {
            Chore::Reports => self.write_reports(),
            Chore::Console => self.serve_console(),
            #[cfg(not(feature = "watchdog"))]
            Chore::Restarts => self.restart_guests(),
            #[cfg(feature = "watchdog")]
            Chore::Restarts => {
                let next = self.restart_guests();
                self.watch_guests(next)
            }
        }
    }

    /// Is somebody about to get the core, or the running vCPU about to be interrupted by its timer? Then says until when housework waits at
    /// least, and to which levels it gives way, a bit each. The least urgent guest of this core may be an RTOS as well.
    pub(super) fn must_hurry(&self, now: u64) -> Option<(u64, u64)> {
        let given_way = &self.housekeeper.as_ref()?.given_way;
        // A piece, and then the way to a guest, take no longer.
        let soon = now + near(self.guard);
        let is_awaited = self.is_awaited() || self.pending.woken && self.scheduler.first() != self.holder();
        let awaited = self.scheduler.first().filter(|_| is_awaited);
        let first = awaited.map_or(0, |id| self.may_give_way_to_vcpu(id, given_way, now));
        if first != 0 {
            return Some((soon, first));
        }
        let (mut at, mut levels) = self.sleepers_due_by(soon, given_way, now);
        if levels == 0 {
            at = self.own_timer_near(now).filter(|_| self.threshold.level != IDLE)?;
            levels = self.loaded.map_or(0, |id| self.may_give_way_to_vcpu(id, given_way, now));
        }
        (levels != 0).then_some(((at + self.guard).max(soon), levels))
    }
}
