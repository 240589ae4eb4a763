//! The scheduler of one core.
#![expect(
    clippy::indexing_slicing,
    reason = "`VcpuId::index` is below `VCPU_SLOTS`, the length of each table"
)]

use core::num::NonZeroU8;

use ainori_limits::{PRIORITIES, VCPU_SLOTS};

use crate::gangs::{Gangs, Turns};
use crate::lists::{IDLE, List, Lists, Place, place, vcpu_at};
use crate::timers::Timers;
use crate::{AskAgain, Class, Policy, State, Time, VcpuId, VcpuSet};

/// What is to happen at a scheduling point.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// Who has the core from now on; `None`: nobody could run, the core idles.
    pub run: Option<VcpuId>,
    /// Who had it since the last scheduling point, if this core still owns it. May be the same as `run`.
    pub previous: Option<VcpuId>,
    /// `previous` loses the core against its will: it could run and did not yield.
    pub preempted: bool,
    /// When to schedule again at the latest: the end of the quantum, if an equal waits for it.
    pub alarm: Option<Time>,
}

/// Which of the vCPUs that a core owns has the core.
///
/// A vCPU that runs stays at the head of its level. So one that is preempted by a higher level finds its
/// place again, unless one that has waited longer on another core [comes before it](Self::move_ahead), and the
/// rest of its quantum; one that sleeps, yields or comes to the end of its quantum
/// goes to the tail, and its next quantum is a full one, as long as its [weight](Self::set_weight) says. Under a policy that
/// [co-schedules](Policy::co_schedules) the clock says whose turn it is among equals, whatever their places.
#[repr(C)] // What is used most comes first, where it is reached by the short offsets of loads and stores.
pub struct Scheduler {
    /// A vCPU at the head of its list, unless its level has changed since the last `schedule`. `IDLE` also from `sleep` or `yield_now` to
    /// the next `schedule`.
    running: Place,
    /// What the last `schedule` picked. `IDLE` also if that has left this core.
    picked: Place,
    /// An equal has been waiting for that since the last `schedule`.
    shared: bool,
    /// The policy [does](Policy::co_schedules).
    co_schedules: bool,
    /// When the quantum of `running` ends.
    quantum_end: Time,
    policy: Policy,
    owned: VcpuSet,
    /// Those of `owned` that sleep. The others are in the queue.
    asleep: VcpuSet,
    /// Where each waits, awake or asleep: the list of its [level](Scheduler::level).
    lists: [List; VCPU_SLOTS],
    /// What each has left of its quantum. Of the running one: what it had when it was picked. Of one that sleeps, or is of another core: all.
    left: [Time; VCPU_SLOTS],
    queue: Lists,
    /// Of those that sleep.
    timers: Timers,
    /// How long the quantum of each is, by its weight.
    quanta: [Time; VCPU_SLOTS],
    /// Kept only under a policy that co-schedules.
    turns: Turns,
}

/// The longest quantum of a policy, in ticks: with the greatest weight it is half of all time.
const MAX_QUANTUM: Time = Time::MAX / 2 / NonZeroU8::MAX.get() as Time;

impl Scheduler {
    /// A scheduler that owns no vCPU.
    ///
    /// # Panics
    /// If the policy's quantum is 0, or above `Time::MAX / 510`: points in time must not overflow.
    #[must_use]
    pub const fn new(policy: Policy) -> Self {
        assert!(policy.quantum > 0, "a quantum must be at least one tick");
        assert!(policy.quantum <= MAX_QUANTUM, "a quantum must not be longer than all time");
        Self {
            policy,
            queue: Lists::run_queue(),
            timers: Timers::new(),
            turns: Turns::new(Gangs::NONE),
            owned: VcpuSet::EMPTY,
            asleep: VcpuSet::EMPTY,
            lists: [List::of_level(0); VCPU_SLOTS],
            left: [policy.quantum; VCPU_SLOTS],
            quanta: [policy.quantum; VCPU_SLOTS],
            running: IDLE,
            picked: IDLE,
            quantum_end: 0,
            shared: false,
            co_schedules: policy.co_schedules(),
        }
    }

    /// The same one, which knows the guests that take turns: all cores have to know the same.
    #[must_use]
    pub const fn with_gangs(mut self, gangs: Gangs) -> Self {
        self.turns = Turns::new(gangs);
        self
    }

    /// From now on the quantum of `v` on this core is that of the policy, so many times; without this, once. If `v` is in a turn, or waits for one,
    /// that is as long as it was to be. It counts however often `v` comes to this core.
    ///
    /// Equals that always have something to do get time in proportion to their weights: between two turns of one, each of the others has
    /// exactly one. Whoever sleeps or yields gives the rest of its turn away, and goes behind its equals: it gains nothing, and owes nothing
    /// later. (Weighted round robin. Deficit round robin, Shreedhar and Varghese 1995, gives away what an empty queue has left, too; it needs
    /// deficits as a packet can't be cut.)
    ///
    /// Under a policy that [co-schedules](Policy::co_schedules) it has no effect: there turns are those of the clock.
    pub fn set_weight(&mut self, v: VcpuId, weight: NonZeroU8) {
        self.quanta[v.index()] = self.policy.quantum * Time::from(weight.get());
        if !self.is_queued(v) {
            self.renew_quantum(v);
        }
    }

    /// The policy that it decides by.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// `v` now belongs to this core, sleeping. Its level here is the [`Policy::level`] of its class, until [that changes](Self::set_level);
    /// on another core its class may be another.
    ///
    /// # Panics
    /// If the priority is not below [`PRIORITIES`].
    pub fn adopt(&mut self, v: VcpuId, class: Class) {
        assert!(
            class.priority < PRIORITIES,
            "vCPU {}: priority {} is not below {PRIORITIES}",
            v.0,
            class.priority
        );
        self.release(v);
        self.owned.insert(v);
        self.asleep.insert(v);
        let (from, to) = (self.lists[v.index()], List::of_level(self.policy.level(class)));
        self.lists[v.index()] = to;
        if self.co_schedules {
            self.turns.adopt(v, class.guest);
            self.turns.move_to(v, from, to);
        }
    }

    /// `v` leaves this core, because it stops or moves to another. Returns the state that it had here:
    /// sleeping, if it was never here.
    pub fn release(&mut self, v: VcpuId) -> State {
        let state = self.state(v);
        self.sleep(v);
        self.owned.remove(v);
        self.asleep.remove(v);
        self.clear_timer(v);
        if self.picked == place(v) {
            self.picked = IDLE;
        }
        state
    }

    /// Does `v` belong to this core?
    #[inline]
    #[must_use]
    pub const fn owns(&self, v: VcpuId) -> bool {
        self.owned.contains(v)
    }

    /// The vCPUs that belong to this core.
    #[inline]
    #[must_use]
    pub const fn owned(&self) -> VcpuSet {
        self.owned
    }

    /// Those that sleep.
    #[inline]
    #[must_use]
    pub const fn asleep(&self) -> VcpuSet {
        self.asleep
    }

    /// Does `v`, which belongs to this core, sleep?
    #[inline]
    #[must_use]
    pub const fn is_asleep(&self, v: VcpuId) -> bool {
        self.asleep.contains(v)
    }

    /// Is `v`, which runs, the only one that could? If another one could, that is mostly an equal that waits, which is known without a look at the sets.
    #[inline]
    #[must_use]
    pub fn is_alone(&self, v: VcpuId) -> bool {
        !self.shared && self.owned - self.asleep == VcpuSet::of(v)
    }

    /// The state of `v` on this core. Sleeping, if it belongs to another.
    #[inline]
    #[must_use]
    pub fn state(&self, v: VcpuId) -> State {
        if self.running == place(v) {
            State::Running
        } else if self.is_queued(v) {
            State::Suspended
        } else {
            State::Sleeping
        }
    }

    /// The level of `v`, which belongs to this core, here and now. `None`: it has no turn, whether it could run or not.
    ///
    /// All that depends on a level and is not of this core's own queue has to be derived from this: see `docs/policies.md`, Levels that change.
    #[inline]
    #[must_use]
    pub const fn level(&self, v: VcpuId) -> Option<u8> {
        self.lists[v.index()].level()
    }

    /// `v`, of this core, has another level from now on. Nothing happens if it has that already, or belongs to another core.
    ///
    /// | what `v` does | then |
    /// |---|---|
    /// | runs | goes on until the next [`schedule`](Self::schedule), as the last of its new level: it keeps the core only if it is alone there |
    /// | waits, also where others may take it | joins the tail of its new level |
    /// | sleeps | will wake with its new level; its timer is one of that level's |
    ///
    /// In each case it keeps what is left of its quantum. So one whose level is changed again and again, as by windows that are shorter than a
    /// quantum, gets no more than its turn.
    pub fn set_level(&mut self, v: VcpuId, level: Option<u8>) -> AskAgain {
        let (from, to) = (self.lists[v.index()], List::of(level));
        if from == to || !self.owns(v) {
            return AskAgain::default();
        }
        self.lists[v.index()] = to;
        if self.co_schedules {
            self.turns.move_to(v, from, to);
        }
        if self.is_asleep(v) {
            return AskAgain { schedule: false, timers: self.timers.move_to(v, from, to) };
        }
        self.queue.remove(v, from);
        self.queue.push(v, to);
        let is_outdated = self.running == place(v)
            || self.queue.first() != (self.running, self.shared)
            // It may be the one whose turn it is.
            || self.shared && self.co_schedules;
        AskAgain { schedule: is_outdated, timers: false }
    }

    /// Of `some` that belong to this core, so many have this level from now on: first those that are awake, in the order in which they wait. That stays
    /// their order, however many parts it takes, so that they take turns also over many changes. Returns who is left, besides: of those it is to be asked again.
    pub fn set_levels(&mut self, some: VcpuSet, level: Option<u8>, most: usize) -> (AskAgain, VcpuSet) {
        let mut again = AskAgain::default();
        let to = List::of(level);
        let (mut rest, mut more) = (some & self.owned, most);
        // BOUND: 33 lists.
        for list in self.queue.with_members() {
            let mut place = self.queue.first_of(list);
            // BOUND: in all lists together `most` vCPUs, some 60 instructions each, and what it takes to put a timer in; and 8 for each other one of this core that is awake.
            while place != list.end() && more > 0 {
                let v = vcpu_at(place);
                place = self.queue.behind(place);
                if rest.contains(v) {
                    rest.remove(v);
                    if list != to {
                        more -= 1;
                        again |= self.set_level(v, level);
                    }
                }
            }
        }
        // BOUND: `most` of those that sleep, as above.
        for v in rest & self.asleep {
            if more == 0 {
                break;
            }
            more -= 1;
            rest.remove(v);
            again |= self.set_level(v, level);
        }
        (again, rest)
    }

    /// Who has the core. Nobody, after it slept or yielded and before the next
    /// [`schedule`](Self::schedule).
    #[inline]
    #[must_use]
    pub fn running(&self) -> Option<VcpuId> {
        vcpu(self.running)
    }

    /// Whom the last [`schedule`](Self::schedule) picked, if this core still owns it: until the next one it has the core, though
    /// meanwhile it may sleep, or have slept and woken.
    #[inline]
    #[must_use]
    pub fn picked(&self) -> Option<VcpuId> {
        vcpu(self.picked)
    }

    /// The one that was [picked](Self::picked) has left the core ahead of the next decision, which won't name it as the one before.
    #[inline]
    pub fn unpick(&mut self) {
        self.picked = IDLE;
    }

    /// Who goes first of all that could run.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<VcpuId> {
        vcpu(self.queue.first().0)
    }

    /// `v` has something to do: if it sleeps here, it joins the tail of its level. Otherwise nothing
    /// happens.
    #[inline]
    pub fn wake(&mut self, v: VcpuId) {
        if self.asleep.contains(v) {
            self.asleep.remove(v);
            self.clear_timer(v);
            self.queue.push(v, self.lists[v.index()]);
        }
    }

    /// `v` has nothing to do any more. Nothing happens if it sleeps already.
    #[inline]
    pub fn sleep(&mut self, v: VcpuId) {
        if self.is_queued(v) {
            self.asleep.insert(v);
            self.queue.remove(v, self.lists[v.index()]);
            if self.running == place(v) {
                self.running = IDLE;
            }
        }
        // Who sleeps already has a full one anyhow.
        self.renew_quantum(v);
    }

    /// `v`, which sleeps here, is to be woken at `at`.
    #[inline]
    pub fn set_timer(&mut self, v: VcpuId, at: Time) {
        debug_assert!(self.is_asleep(v));
        self.timers.set(v, self.lists[v.index()], at);
    }

    /// The timer of `v`, which sleeps here, has run out: wakes it.
    #[inline(always)] // Called in one place, on the path to the RTOS.
    pub fn expire(&mut self, v: VcpuId) {
        debug_assert!(self.is_asleep(v));
        let list = self.lists[v.index()];
        self.timers.expire(v, list);
        self.asleep.remove(v);
        self.queue.push(v, list);
    }

    /// `v` isn't to be woken by its timer any more. Waking and releasing it do so, too.
    #[inline]
    pub fn clear_timer(&mut self, v: VcpuId) {
        self.timers.clear(v, self.lists[v.index()]);
    }

    /// The timers of sleeping vCPUs: the first one of each level, from the highest level down to `lowest`.
    #[inline]
    pub fn timers(&self, lowest: u8) -> impl Iterator<Item = (VcpuId, Time)> {
        self.timers.firsts(lowest)
    }

    /// `v`, which has just joined its level at the tail, goes before the first of those that wait there and are to wait for it, if that is among the first
    /// `looked_at`. Nothing happens if it sleeps.
    pub fn move_ahead(&mut self, v: VcpuId, looked_at: usize, waits_for_it: impl Fn(VcpuId) -> bool) {
        if !self.is_queued(v) {
            return;
        }
        let list = self.lists[v.index()];
        let first = self.queue.first_of(list);
        let mut next = if first == self.running { self.queue.behind(first) } else { first };
        // BOUND: `looked_at` rounds of some 8 instructions.
        for _ in 0..looked_at {
            if vcpu_at(next) == v {
                return;
            }
            if waits_for_it(vcpu_at(next)) {
                self.queue.remove(v, list);
                return self.queue.insert(v, list, next);
            }
            next = self.queue.behind(next);
        }
    }

    /// The running vCPU lets its equals go first: it is suspended, at the tail of its level. Nothing
    /// happens if none runs.
    #[inline]
    pub fn yield_now(&mut self) {
        if let Some(v) = self.running() {
            self.running = IDLE;
            self.queue.move_last(v, self.lists[v.index()]);
            self.renew_quantum(v);
            if self.co_schedules {
                self.turns.yields(v);
            }
        }
    }

    /// The running vCPU can't go on before a sibling of it has done something: its equals go first. If the first of them is a sibling, it has the
    /// core for no longer than [`Policy::help`]; the turn of another one is as long as ever. Otherwise as [`yield_now`](Self::yield_now).
    #[inline]
    pub fn step_aside(&mut self, is_sibling: impl FnOnce(VcpuId) -> bool) {
        if let Some(v) = self.running() {
            self.yield_now();
            let next = vcpu(self.queue.first_of(self.lists[v.index()]));
            if let Some(next) = next.filter(|next| *next != v && is_sibling(*next)) {
                self.left[next.index()] = self.policy.help;
            }
        }
    }

    /// Does a vCPU of a higher level than the running one want the core?
    #[inline]
    #[must_use]
    pub fn is_preemption_due(&self) -> bool {
        self.running().is_some() && self.queue.first().0 != self.running
    }

    /// Does `first` go before `second`, both of this core, whenever both could run?
    #[inline]
    #[must_use]
    pub const fn precedes(&self, first: VcpuId, second: VcpuId) -> bool {
        self.lists[first.index()].is_before(self.lists[second.index()])
    }

    /// Could `v`, of this core, run now but for an equal that goes first?
    #[inline]
    #[must_use]
    pub fn waits_for_equal(&self, v: VcpuId) -> bool {
        let first = self.queue.first_of(self.lists[v.index()]);
        self.is_queued(v) && self.queue.first().0 == first && first != place(v)
    }

    /// When the turn of the running vCPU ends as the last decision has it; `None` if no equal waited for it.
    #[inline]
    #[must_use]
    pub const fn turn_end(&self) -> Option<Time> {
        if self.shared { Some(self.quantum_end) } else { None }
    }

    /// Whom [`schedule`](Self::schedule) would pick now.
    #[inline]
    pub fn next(&mut self, now: Time) -> Option<VcpuId> {
        if let Some(v) = self.running().filter(|_| now >= self.quantum_end) {
            self.end_quantum(v, now);
        }
        vcpu(self.queue.first().0)
    }

    /// Under a policy that [co-schedules](Policy::co_schedules) this comes ahead of each [`schedule`](Self::schedule), and with the same time: if
    /// equals wait at the level that goes first, the one whose turn it is becomes the first of them, until the turn's end.
    ///
    /// It isn't part of `schedule`, where all policies would pay for the question.
    pub fn co_schedule(&mut self, now: Time) {
        if let Some(v) = self.running().filter(|_| now >= self.quantum_end) {
            self.end_quantum(v, now);
        }
        let (first, shared) = self.queue.first();
        if !shared {
            return;
        }
        let list = self.lists[vcpu_at(first).index()];
        let quantum = self.policy.quantum.max(1);
        let turn = now / quantum;
        let awake = self.owned - self.asleep;
        let first = list.level().and_then(|level| self.turns.first(awake, level, turn, self.picked()));
        // There is one, as at least two are awake.
        let Some(v) = first else { return };
        self.queue.move_first(v, list);
        let end = turn * quantum + quantum;
        if self.running == place(v) {
            self.quantum_end = end;
        } else {
            self.left[v.index()] = end - now;
        }
    }

    /// The scheduling point: picks who has the core from `now` on.
    ///
    /// `now` must not go back from call to call.
    #[inline(always)] // Called in one place, on the path to the RTOS.
    pub fn schedule(&mut self, now: Time) -> Decision {
        let previous = vcpu(self.picked);
        let had = self.running();
        if let Some(v) = had
            && now >= self.quantum_end
        {
            self.end_quantum(v, now);
        }
        let (first, shared) = self.queue.first();
        let run = vcpu(first);
        let mut preempted = false;
        if first != self.running {
            if let Some(v) = had {
                self.left[v.index()] = self.quantum_end - now;
                preempted = true;
            }
            if let Some(v) = run {
                self.quantum_end = now + self.left[v.index()];
            }
        }
        self.running = first;
        self.picked = first;
        self.shared = shared;
        Decision { run, previous, preempted, alarm: self.turn_end() }
    }

    /// `v`, which runs, has used up its quantum. It gets a new one, after its equals if one was waiting.
    /// Who had the core for itself starts a new quantum in its place: an equal that wakes just then waits
    /// as long as any. That one is the policy's, whatever the weight: this is on the way to an RTOS, where a look at a table is four instructions; and `v` has had
    /// its turn, so that nobody is promised another one before the equal's.
    #[inline]
    fn end_quantum(&mut self, v: VcpuId, now: Time) {
        self.quantum_end = now + self.policy.quantum;
        if self.shared {
            self.quantum_end = now + self.quanta[v.index()];
            self.queue.move_last(v, self.lists[v.index()]);
        }
    }

    /// All of its quantum is left to `v`.
    #[inline]
    const fn renew_quantum(&mut self, v: VcpuId) {
        self.left[v.index()] = self.quanta[v.index()];
    }

    #[inline]
    const fn is_queued(&self, v: VcpuId) -> bool {
        self.owned.contains(v) && !self.asleep.contains(v)
    }
}

/// The vCPU at a place of the queue; `None` for the idle one.
#[inline]
fn vcpu(place: Place) -> Option<VcpuId> {
    (place != IDLE).then_some(vcpu_at(place))
}
