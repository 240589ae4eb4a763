//! Random operations on the scheduler and on a plain model of it, side by side.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU8;
use std::rc::Rc;

use ainori_limits::{PRIORITIES, VCPU_SLOTS};
use proptest::prelude::*;

use super::{QUANTUM, decide};
use crate::gangs::turn_of;
use crate::*;

/// vCPUs in the tests; few, so that they meet.
const VCPUS: u8 = 6;

type Level = Option<u8>;

/// A vCPU of the model's core.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Waiting {
    v: VcpuId,
    left: Time,
}

/// What the documentation says, without regard to speed.
#[derive(Clone)]
struct Model {
    policy: Policy,
    /// Of those that have another one than 1.
    weights: BTreeMap<VcpuId, NonZeroU8>,
    /// For co-scheduling: the guests of each level, and of each vCPU that was ever here.
    guests_of_levels: Rc<[BTreeSet<u8>]>,
    guest_of: BTreeMap<VcpuId, u8>,
    /// Those who have let others go first, and in which turn.
    yielded: (Time, Vec<VcpuId>),
    owned: Vec<(VcpuId, Level)>,
    /// Who waits, in the order of his turn: per level, the highest last; before all others those without one.
    levels: Vec<VecDeque<Waiting>>,
    running: Option<VcpuId>,
    picked: Option<VcpuId>,
    /// In the order in which they were set.
    timers: Vec<(VcpuId, Time)>,
    /// When the last `schedule` was, and whether it announced an alarm.
    then: Time,
    alarm: bool,
}

impl Model {
    fn new(policy: Policy, classes: &[Class]) -> Self {
        let at = |level| classes.iter().filter(move |class| policy.level(**class) == level);
        let guests_of_levels = (0..PRIORITIES).map(|level| at(level).map(|class| class.guest).collect());
        let levels = vec![VecDeque::new(); 1 + usize::from(PRIORITIES)];
        Self {
            policy,
            weights: BTreeMap::new(),
            guests_of_levels: guests_of_levels.collect(),
            guest_of: BTreeMap::new(),
            yielded: (0, Vec::new()),
            owned: Vec::new(),
            levels,
            running: None,
            picked: None,
            timers: Vec::new(),
            then: 0,
            alarm: false,
        }
    }

    /// How long a turn of a vCPU is.
    fn quantum(&self, v: VcpuId) -> Time {
        self.policy.quantum * self.weights.get(&v).map_or(1, |weight| Time::from(weight.get()))
    }

    /// Of a vCPU that is owned.
    fn level(&self, v: VcpuId) -> Option<Level> {
        self.owned.iter().find(|owned| owned.0 == v).map(|owned| owned.1)
    }

    fn queue(&mut self, v: VcpuId) -> &mut VecDeque<Waiting> {
        let level = self.level(v).expect("an owned vCPU");
        &mut self.levels[place(level)]
    }

    /// The highest level that somebody waits at.
    fn highest(&self) -> Option<&VecDeque<Waiting>> {
        self.levels.iter().skip(1).rfind(|queue| !queue.is_empty())
    }

    fn is_queued(&self, v: VcpuId) -> bool {
        self.levels.iter().flatten().any(|waiting| waiting.v == v)
    }

    fn state(&self, v: VcpuId) -> State {
        match (self.running == Some(v), self.is_queued(v)) {
            (true, _) => State::Running,
            (false, true) => State::Suspended,
            (false, false) => State::Sleeping,
        }
    }

    fn adopt(&mut self, v: VcpuId, class: Class) {
        self.release(v);
        self.owned.push((v, Some(self.policy.level(class))));
        self.guest_of.insert(v, class.guest);
        self.yielded.1.retain(|yielded| *yielded != v);
    }

    /// Those of `some` that are awake go, in the order in which they wait, to the tail of their new level.
    fn set_levels(&mut self, some: &[VcpuId], level: Level) {
        let is_concerned = |v: VcpuId| some.contains(&v);
        let changes: Vec<_> =
            self.levels.iter().enumerate().rev().filter(|queue| queue.0 != place(level)).collect();
        let moved: Vec<_> =
            changes.into_iter().flat_map(|queue| queue.1).filter(|w| is_concerned(w.v)).copied().collect();
        self.levels.iter_mut().for_each(|queue| queue.retain(|waiting| !moved.contains(waiting)));
        self.levels[place(level)].extend(moved);

        let mut sleepers = Vec::new();
        for (v, its) in self.owned.iter_mut().filter(|owned| is_concerned(owned.0) && owned.1 != level) {
            *its = level;
            sleepers.extend(self.timers.iter().find(|timer| timer.0 == *v).copied());
        }
        // By number: of those with the same time, the first goes first.
        sleepers.sort_by_key(|timer| timer.0);
        self.timers.retain(|timer| !sleepers.contains(timer));
        self.timers.extend(sleepers);
    }

    fn release(&mut self, v: VcpuId) -> State {
        let state = self.state(v);
        self.sleep(v);
        self.owned.retain(|owned| owned.0 != v);
        self.clear_timer(v);
        self.picked = self.picked.filter(|&picked| picked != v);
        state
    }

    fn wake(&mut self, v: VcpuId) {
        if self.level(v).is_some() && !self.is_queued(v) {
            let left = self.quantum(v);
            self.queue(v).push_back(Waiting { v, left });
            self.clear_timer(v);
        }
    }

    fn clear_timer(&mut self, v: VcpuId) {
        self.timers.retain(|timer| timer.0 != v);
    }

    fn set_timer(&mut self, v: VcpuId, at: Time) {
        self.clear_timer(v);
        self.timers.push((v, at));
    }

    /// The first of each level, the highest first, that isn't below `lowest`.
    fn timers(&self, lowest: u8) -> Vec<(VcpuId, Time)> {
        let of_level =
            |wanted| self.timers.iter().filter(move |timer| self.level(timer.0) == Some(Some(wanted)));
        (lowest..PRIORITIES)
            .rev()
            .filter_map(|wanted| of_level(wanted).min_by_key(|timer| timer.1))
            .copied()
            .collect()
    }

    fn sleep(&mut self, v: VcpuId) {
        self.levels.iter_mut().for_each(|level| level.retain(|waiting| waiting.v != v));
        self.running = self.running.filter(|&running| running != v);
    }

    fn yield_now(&mut self) {
        if let Some(v) = self.running {
            self.sleep(v);
            self.wake(v);
            self.yielded.1.push(v);
        }
    }

    fn step_aside(&mut self, siblings: &[VcpuId]) {
        if let Some(v) = self.running {
            self.yield_now();
            let help = self.policy.help;
            let next = self.queue(v).front_mut().expect("the running vCPU is queued");
            if next.v != v && siblings.contains(&next.v) {
                next.left = help;
            }
        }
    }

    fn schedule(&mut self, now: Time) -> Decision {
        let (previous, had) = (self.picked, self.running);
        if let Some(v) = had {
            let (used, alarm) = (now - self.then, self.alarm);
            // Who was alone has had its turn: it goes on by single quanta, whatever its weight.
            let quantum = if alarm { self.quantum(v) } else { self.policy.quantum };
            let level = self.queue(v);
            let index = level.iter().position(|waiting| waiting.v == v).expect("the running vCPU is queued");
            let its = &mut level[index];
            if used < its.left {
                its.left -= used;
            } else {
                its.left = quantum;
                if alarm {
                    let its = level.remove(index).expect("its place");
                    level.push_back(its);
                }
            }
        }
        self.co_schedule(now);
        let level = self.highest();
        let first = level.map(|level| level[0]);
        self.alarm = level.is_some_and(|level| level.len() > 1);
        self.running = first.map(|first| first.v);
        self.picked = self.running;
        self.then = now;
        Decision {
            run: self.running,
            previous,
            preempted: had.is_some() && had != self.running,
            alarm: first.filter(|_| self.alarm).map(|first| now + first.left),
        }
    }
}

impl Model {
    /// The one whose turn it is becomes the first of its equals, and what it has left is the rest of the turn.
    fn co_schedule(&mut self, now: Time) {
        let highest = self.levels.iter().skip(1).rposition(|queue| !queue.is_empty());
        let Some(level) =
            highest.filter(|level| self.policy.co_schedules() && self.levels[1 + level].len() > 1)
        else {
            return;
        };
        let turn = now / self.policy.quantum;
        if turn != self.yielded.0 {
            self.yielded = (turn, Vec::new());
        }
        let mut equals: Vec<_> = self.levels[1 + level].iter().map(|waiting| waiting.v).collect();
        equals.sort();
        if equals.iter().all(|v| self.yielded.1.contains(v)) {
            self.yielded.1 = self.picked.into_iter().collect();
        }
        equals.retain(|v| !self.yielded.1.contains(v));

        // A guest's place is that among the guests of its own level, whose level ever it has now.
        let count = self.guests_of_levels[level].len().max(1) as u64;
        let place = |v: &VcpuId| {
            let guest = self.guest_of[v];
            let of_level = |guests: &&BTreeSet<u8>| guests.contains(&guest);
            let place = self
                .guests_of_levels
                .iter()
                .rfind(of_level)
                .map_or(0, |guests| guests.range(..guest).count());
            place as u64 % count
        };
        let (mut chosen, mut round) = (turn_of(turn, count), turn / count);
        let waiting: BTreeSet<_> = equals.iter().map(place).collect();
        if !waiting.contains(&chosen) {
            let others = waiting.len() as u64;
            chosen = *waiting.iter().nth(turn_of(round, others) as usize).expect("somebody waits");
            round /= others;
        }
        let its: Vec<_> = equals.into_iter().filter(|v| place(v) == chosen).collect();
        let first = its[turn_of(round, its.len() as u64) as usize];

        let left = (turn + 1) * self.policy.quantum - now;
        self.levels[1 + level].retain(|waiting| waiting.v != first);
        self.levels[1 + level].push_front(Waiting { v: first, left });
    }

    /// Is the last decision still the right one?
    fn is_up_to_date(&self) -> bool {
        let first = self.highest();
        self.running == first.map(|first| first[0].v)
            && self.alarm == first.is_some_and(|first| first.len() > 1)
    }

    /// The same, even if time has passed since.
    fn is_up_to_date_at(&self, now: Time) -> bool {
        let decision = self.clone().schedule(now);
        (self.running, self.alarm) == (decision.run, decision.alarm.is_some())
    }

    /// Is it necessary to schedule again since it was like that?
    fn is_outdated(&self, before: &Self, now: Time) -> bool {
        let decision = |model: &Self| {
            let decision = model.clone().schedule(now);
            (decision.run, decision.alarm.is_some())
        };
        decision(self) != decision(before) || self.running.is_some_and(|v| self.level(v) != before.level(v))
    }
}

#[derive(Clone, Debug)]
enum Step {
    Adopt(VcpuId, Class),
    Release(VcpuId),
    SetLevel(VcpuId, Level),
    SetLevels(Vec<VcpuId>, Level),
    SetWeight(VcpuId, NonZeroU8),
    Wake(VcpuId),
    Sleep(VcpuId),
    SetTimer(VcpuId, Time),
    ClearTimer(VcpuId),
    Yield,
    Aside(Vec<VcpuId>),
    Next { after: Time },
    Schedule { after: Time },
}

fn vcpu() -> impl Strategy<Value = VcpuId> {
    // The first and the last numbers that there are.
    (0..VCPUS).prop_map(|n| VcpuId(if n % 2 == 0 { n } else { (VCPU_SLOTS - usize::from(n)) as u8 }))
}

fn class() -> impl Strategy<Value = Class> {
    (prop_oneof![Just(0), Just(7), Just(PRIORITIES - 1)], 0..3u8)
        .prop_map(|(priority, guest)| Class { priority, guest })
}

fn level() -> impl Strategy<Value = Level> {
    prop_oneof![Just(None), Just(Some(0)), Just(Some(7)), Just(Some(PRIORITIES - 1))]
}

/// The place of a level's queue in the model.
fn place(level: Level) -> usize {
    level.map_or(0, |level| 1 + usize::from(level))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (vcpu(), class()).prop_map(|(v, class)| Step::Adopt(v, class)),
        1 => vcpu().prop_map(Step::Release),
        2 => (vcpu(), level()).prop_map(|(v, level)| Step::SetLevel(v, level)),
        1 => (prop::collection::vec(vcpu(), 0..4), level()).prop_map(|(some, level)| Step::SetLevels(some, level)),
        1 => (vcpu(), 1..4u8).prop_map(|(v, weight)| Step::SetWeight(v, NonZeroU8::new(weight).expect("not 0"))),
        6 => vcpu().prop_map(Step::Wake),
        2 => vcpu().prop_map(Step::Sleep),
        4 => (vcpu(), 0..5u64).prop_map(|(v, at)| Step::SetTimer(v, at)),
        1 => vcpu().prop_map(Step::ClearTimer),
        1 => Just(Step::Yield),
        1 => prop::collection::vec(vcpu(), 0..6).prop_map(Step::Aside),
        1 => (0..QUANTUM * 3 / 2).prop_map(|after| Step::Next { after }),
        6 => (0..QUANTUM * 3 / 2).prop_map(|after| Step::Schedule { after }),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    // 10,000 ticks a second: the 10 ms of `round-robin` are QUANTUM too.
    prop::sample::select(presets())
        .prop_map(|preset| Policy::preset(preset.name, QUANTUM, 10_000).expect(preset.name))
}

/// Those under which a vCPU has the level of its priority.
fn of_levels() -> impl Strategy<Value = Policy> {
    policy().prop_filter("priorities count", |policy| policy.level(Class { priority: 1, guest: 0 }) == 1)
}

/// The guests of a machine, of which a core knows some: none has two levels.
fn guests() -> impl Strategy<Value = Vec<Class>> {
    prop::collection::vec(class(), 0..4).prop_map(|mut guests| {
        guests.sort_by_key(|class| class.guest);
        guests.dedup_by_key(|class| class.guest);
        guests
    })
}

proptest! {
    #[test]
    fn the_scheduler_does_what_the_model_does(
        policy in policy(),
        guests in guests(),
        steps in prop::collection::vec(step(), 0..300),
    ) {
        let gangs = Gangs::new(&policy, guests.iter().copied());
        let (mut core, mut model) = (Scheduler::new(policy).with_gangs(gangs), Model::new(policy, &guests));
        let mut now = 0;
        for step in steps {
            let mut changed = None;
            match step {
                Step::Adopt(v, class) => {
                    core.adopt(v, class);
                    model.adopt(v, class);
                }
                Step::SetLevel(v, level) => {
                    changed = Some((core.set_level(v, level), model.clone()));
                    model.set_levels(&[v], level);
                }
                Step::SetLevels(some, level) => {
                    changed = Some((super::set_levels(&mut core, some.iter().copied().collect(), level, 2), model.clone()));
                    model.set_levels(&some, level);
                }
                Step::Release(v) => prop_assert_eq!(core.release(v), model.release(v)),
                Step::SetWeight(v, weight) => {
                    core.set_weight(v, weight);
                    model.weights.insert(v, weight);
                }
                Step::Wake(v) => {
                    core.wake(v);
                    model.wake(v);
                }
                Step::Sleep(v) => {
                    core.sleep(v);
                    model.sleep(v);
                }
                Step::SetTimer(v, at) => {
                    if core.is_asleep(v) {
                        core.set_timer(v, at);
                        model.set_timer(v, at);
                    }
                }
                Step::ClearTimer(v) => {
                    core.clear_timer(v);
                    model.clear_timer(v);
                }
                Step::Yield => {
                    core.yield_now();
                    model.yield_now();
                }
                Step::Aside(siblings) => {
                    core.step_aside(|v| siblings.contains(&v));
                    model.step_aside(&siblings);
                }
                Step::Next { after } => {
                    now += after;
                    if policy.co_schedules() {
                        core.co_schedule(now);
                    }
                    let next = core.next(now);
                    let decision = decide(&mut core, now);
                    prop_assert_eq!(next, decision.run);
                    prop_assert_eq!(decision, model.schedule(now));
                    prop_assert_eq!(core.turn_end(), decision.alarm);
                }
                Step::Schedule { after } => {
                    now += after;
                    prop_assert_eq!(decide(&mut core, now), model.schedule(now));
                }
            }
            for lowest in [0, 7, PRIORITIES - 1] {
                prop_assert_eq!(core.timers(lowest).collect::<Vec<_>>(), model.timers(lowest));
            }
            prop_assert_eq!(core.running(), model.running);
            prop_assert_eq!(core.owned(), model.owned.iter().map(|owned| owned.0).collect::<VcpuSet>());
            for v in (0..VCPU_SLOTS as u8).map(VcpuId) {
                prop_assert_eq!(core.state(v), model.state(v));
            }
            for &(v, level) in &model.owned {
                prop_assert_eq!(core.level(v), level);
                let waits = core.state(v) != State::Sleeping && model.highest() == Some(&model.levels[place(level)]);
                prop_assert_eq!(core.waits_for_equal(v), level.is_some() && waits && model.levels[place(level)][0].v != v);
                for &(other, others) in &model.owned {
                    prop_assert_eq!(core.precedes(v, other), level > others);
                }
            }
            if let Some((again, before)) = changed {
                let has_changed = |timer: &(VcpuId, Time)| model.level(timer.0) != before.level(timer.0);
                prop_assert_eq!(again.timers, model.timers.iter().any(has_changed));
                if !policy.co_schedules() {
                    prop_assert!(!before.is_up_to_date() || again.schedule == model.is_outdated(&before, now));
                } else if before.is_up_to_date_at(now) {
                    // Whose turn it is, is found out when that is asked.
                    prop_assert!(again.schedule || !model.is_outdated(&before, now));
                }
            }
        }
    }

    /// Whatever happened before, the one that is picked has the highest priority of those that could run.
    #[test]
    fn nobody_of_higher_priority_waits(policy in of_levels(), steps in prop::collection::vec(step(), 0..100)) {
        let mut core = Scheduler::new(policy);
        let mut levels = [None; VCPU_SLOTS];
        let mut now = 0;
        for step in steps {
            match step {
                Step::Adopt(v, class) => {
                    core.adopt(v, class);
                    levels[v.index()] = Some(class.priority);
                }
                Step::SetLevel(v, level) => {
                    let _ = core.set_level(v, level);
                    levels[v.index()] = level;
                }
                Step::SetLevels(some, level) => {
                    let _ = super::set_levels(&mut core, some.iter().copied().collect(), level, 1);
                    some.iter().for_each(|v| levels[v.index()] = level);
                }
                Step::Release(v) => _ = core.release(v),
                Step::SetWeight(v, weight) => core.set_weight(v, weight),
                Step::Wake(v) => core.wake(v),
                Step::Sleep(v) => core.sleep(v),
                Step::SetTimer(..) | Step::ClearTimer(_) => {}
                Step::Yield => core.yield_now(),
                Step::Aside(siblings) => core.step_aside(|v| siblings.contains(&v)),
                Step::Next { after } => {
                    now += after;
                    core.next(now);
                }
                Step::Schedule { after } => now += after,
            }
            let decision = decide(&mut core, now);
            let awake: Vec<_> =
                core.owned().into_iter().filter(|&v| core.state(v) != State::Sleeping && levels[v.index()].is_some()).collect();
            let highest = awake.iter().map(|v| levels[v.index()]).max();
            prop_assert_eq!(decision.run.map(|v| levels[v.index()]), highest);
            let running = awake.iter().filter(|&&v| core.state(v) == State::Running).count();
            prop_assert_eq!(running, usize::from(!awake.is_empty()));
        }
    }

    /// Equals that never sleep get the same share, however often and however long a higher one takes the
    /// core: between two turns of one, each of the others has exactly one quantum.
    #[test]
    fn equals_get_equal_shares(
        equals in 2..=VCPUS,
        bursts in prop::collection::vec((0..3 * QUANTUM, 1..3 * QUANTUM), 0..20),
    ) {
        let mut core = Scheduler::new(Policy::preset("spumone", QUANTUM, 10_000).expect("a preset"));
        let high = VcpuId(VCPUS);
        core.adopt(high, Class { priority: 5, guest: 1 });
        for v in (0..equals).map(VcpuId) {
            core.adopt(v, Class { priority: 2, guest: 0 });
            core.wake(v);
        }
        let mut turns = Turns { now: 0, ran: Vec::new() };
        for (gap, burst) in bursts {
            turns.run_until(&mut core, turns.now + gap);
            core.wake(high);
            prop_assert_eq!(core.schedule(turns.now).run, Some(high));
            turns.now += burst;
            core.sleep(high);
        }
        turns.run_until(&mut core, turns.now + QUANTUM * Time::from(equals));

        let last = turns.ran.len() - 1;
        for (turn, &(v, time)) in turns.ran.iter().enumerate() {
            prop_assert_eq!(v, VcpuId((turn % usize::from(equals)) as u8));
            prop_assert!(time == QUANTUM || turn == last && time <= QUANTUM, "{:?}", turns.ran);
        }
        prop_assert!(turns.ran.len() >= usize::from(equals), "each has run");
    }
}

/// A core that schedules at its alarms, and who ran for how long; the parts of an interrupted turn are
/// added up.
struct Turns {
    now: Time,
    ran: Vec<(VcpuId, Time)>,
}

impl Turns {
    fn run_until(&mut self, core: &mut Scheduler, end: Time) {
        while self.now < end {
            let decision = core.schedule(self.now);
            let (v, alarm) = (decision.run.expect("equals are awake"), decision.alarm.expect("equals wait"));
            let time = alarm.min(end) - self.now;
            self.now += time;
            match self.ran.last_mut() {
                Some((last, total)) if *last == v => *total += time,
                _ => self.ran.push((v, time)),
            }
        }
    }
}
