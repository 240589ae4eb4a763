//! Weights: who always has something to do gets time in proportion, whatever the others do.

use std::num::NonZeroU8;

use proptest::prelude::*;

use super::{LINUX, LINUX_A, LINUX_B, LINUX_C, QUANTUM, RT, core, core_with, policy};
use crate::*;

fn weight(weight: u8) -> NonZeroU8 {
    NonZeroU8::new(weight).expect("a weight")
}

/// A core whose vCPUs, of these weights, are awake in this order.
fn core_of(weights: &[(VcpuId, u8)]) -> Scheduler {
    let mut core = core("spumone");
    for (v, its) in weights.iter().copied() {
        core.set_weight(v, weight(its));
        core.wake(v);
    }
    core
}

#[test]
fn a_turn_is_as_many_quanta_as_the_weight_says() {
    let mut core = core_of(&[(LINUX_A, 1), (LINUX_B, 2), (LINUX_C, 4)]);
    let (mut now, mut order) = (0, Vec::new());
    for _ in 0..6 {
        let decision = core.schedule(now);
        let alarm = decision.alarm.expect("equals wait");
        order.push((decision.run.expect("equals are awake"), alarm - now));
        now = alarm;
    }
    let round = [(LINUX_A, QUANTUM), (LINUX_B, 2 * QUANTUM), (LINUX_C, 4 * QUANTUM)];
    assert_eq!(order, round.repeat(2));
}

#[test]
fn a_preempted_vcpu_keeps_the_rest_of_a_long_turn() {
    let mut core = core_of(&[(LINUX_A, 4), (LINUX_B, 1)]);
    assert_eq!(core.schedule(0).alarm, Some(4 * QUANTUM));
    core.wake(RT);
    assert_eq!(core.schedule(QUANTUM).run, Some(RT));
    core.sleep(RT);
    let decision = core.schedule(10 * QUANTUM);
    assert_eq!((decision.run, decision.alarm), (Some(LINUX_A), Some(13 * QUANTUM)));
}

/// Who is alone has had its turn already. An equal that wakes then waits for a quantum at most.
#[test]
fn who_has_been_alone_for_a_turn_goes_on_by_single_quanta() {
    let mut core = core_of(&[(LINUX_A, 4)]);
    core.set_weight(LINUX_B, weight(2));
    assert_eq!(core.schedule(0).alarm, None);
    assert_eq!(core.schedule(4 * QUANTUM).alarm, None, "nobody waits for the end of its turn");
    core.wake(LINUX_B);
    assert_eq!(core.schedule(4 * QUANTUM + 1).alarm, Some(5 * QUANTUM));
    let decision = core.schedule(5 * QUANTUM);
    assert_eq!((decision.run, decision.alarm), (Some(LINUX_B), Some(7 * QUANTUM)));
    let decision = core.schedule(7 * QUANTUM);
    assert_eq!((decision.run, decision.alarm), (Some(LINUX_A), Some(11 * QUANTUM)), "a whole turn again");
}

#[test]
fn a_turn_that_has_begun_is_as_long_as_it_was_to_be() {
    let mut core = core_with("spumone", &[LINUX_A, LINUX_B]);
    core.set_weight(LINUX_A, weight(3));
    core.set_weight(LINUX_B, weight(3));
    assert_eq!(core.schedule(1).alarm, Some(QUANTUM));
    assert_eq!(core.schedule(QUANTUM).alarm, Some(2 * QUANTUM), "so is one that waits");
    assert_eq!(core.schedule(2 * QUANTUM).alarm, Some(5 * QUANTUM));
}

#[test]
fn a_weight_counts_for_a_vcpu_that_comes_later_and_comes_again() {
    let mut core = core_with("spumone", &[LINUX_A]);
    core.release(LINUX_B);
    core.set_weight(LINUX_B, weight(2));
    for _ in 0..2 {
        core.adopt(LINUX_B, LINUX);
        core.wake(LINUX_B);
        let begin = core.schedule(100 * QUANTUM).alarm.expect("an equal waits");
        let decision = core.schedule(begin);
        assert_eq!((decision.run, decision.alarm), (Some(LINUX_B), Some(begin + 2 * QUANTUM)));
        core.release(LINUX_B);
    }
}

/// What a vCPU does until it computes for ever.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// It computes for so long and lets its equals go first.
    Yield { after: Time },
    /// It computes for so long and sleeps for so long.
    Sleep { after: Time, pause: Time },
    /// It computes until so long before its turn ends and sleeps for so long: thus it would gain if a sleep paid.
    SleepAtEnd { before: Time, pause: Time },
}

/// A vCPU of a level: it comes at a time, and does its deeds one after the other; `again`: without end.
#[derive(Clone, Debug)]
struct Equal {
    weight: u8,
    comes: Time,
    deeds: Vec<Deed>,
    again: bool,
}

impl Equal {
    fn deed(&self, nth: usize) -> Option<Deed> {
        let nth = if self.again && !self.deeds.is_empty() { nth % self.deeds.len() } else { nth };
        self.deeds.get(nth).copied()
    }
}

/// A level of a core, and somebody above who takes that away again and again.
struct Simulation {
    core: Scheduler,
    equals: Vec<Equal>,
    now: Time,
    /// Of each: deeds done, the time that it has computed since the last one, and in all; when it wakes, if it sleeps.
    done: Vec<usize>,
    computed: Vec<Time>,
    served: Vec<Time>,
    wakes: Vec<Option<Time>>,
    /// At each event: the time that each has had until then, and which of them will be awake from then on.
    history: Vec<(Vec<Time>, Vec<bool>)>,
}

fn id(index: usize) -> VcpuId {
    VcpuId(index as u8)
}

impl Simulation {
    fn new(equals: Vec<Equal>) -> Self {
        let mut core = Scheduler::new(policy("spumone"));
        core.adopt(RT, Class { priority: 5, guest: 1 });
        for (index, equal) in equals.iter().enumerate() {
            core.set_weight(id(index), weight(equal.weight));
            core.adopt(id(index), Class { priority: 2, guest: 0 });
        }
        let nothing = vec![0; equals.len()];
        let wakes = equals.iter().map(|equal| Some(equal.comes)).collect();
        let (done, computed, served) = (vec![0; equals.len()], nothing.clone(), nothing);
        Self { core, equals, now: 0, done, computed, served, wakes, history: Vec::new() }
    }

    /// Runs to the end of each of these, while the one above has the core in the second of them.
    fn run(&mut self, parts: &[(Time, Time)]) {
        for (gap, burst) in parts {
            self.run_until(self.now + gap);
            self.core.wake(RT);
            self.run_until(self.now + burst);
            self.core.sleep(RT);
        }
    }

    fn run_until(&mut self, end: Time) {
        loop {
            self.wake_those_that_are_due();
            let decision = self.core.schedule(self.now);
            let for_ever = (0..self.equals.len()).map(|index| {
                self.wakes[index].is_none() && self.equals[index].deed(self.done[index]).is_none()
            });
            self.history.push((self.served.clone(), for_ever.collect()));
            if self.now == end {
                return;
            }
            let running = decision.run.filter(|v| *v != RT).map(|v| usize::from(v.0));
            let acts = running.and_then(|index| self.acts_in(index, decision.alarm));
            let events = self.wakes.iter().flatten().chain(decision.alarm.iter()).chain([&end]);
            let next = events.copied().chain(acts.map(|(at, _)| at)).min().expect("there is the end");
            if let Some(index) = running {
                self.computed[index] += next - self.now;
                self.served[index] += next - self.now;
            }
            self.now = next;
            if let (Some(index), Some((_, deed))) = (running, acts.filter(|(at, _)| *at == next)) {
                self.act(index, deed);
            }
        }
    }

    fn wake_those_that_are_due(&mut self) {
        for (index, wakes) in self.wakes.iter_mut().enumerate() {
            if wakes.is_some_and(|at| at <= self.now) {
                *wakes = None;
                self.core.wake(id(index));
            }
        }
    }

    /// When the one that runs will do something, if it has the core for so long, and what.
    fn acts_in(&self, index: usize, alarm: Option<Time>) -> Option<(Time, Deed)> {
        let deed = self.equals[index].deed(self.done[index])?;
        let at = match deed {
            Deed::Yield { after } | Deed::Sleep { after, .. } => {
                self.now + after.saturating_sub(self.computed[index])
            }
            Deed::SleepAtEnd { before, .. } => alarm?.saturating_sub(before).max(self.now),
        };
        // At least a tick, or the time would stand still.
        Some((at + Time::from(self.computed[index] == 0 && at == self.now), deed))
    }

    fn act(&mut self, index: usize, deed: Deed) {
        self.done[index] += 1;
        self.computed[index] = 0;
        match deed {
            Deed::Yield { .. } => self.core.yield_now(),
            Deed::Sleep { pause, .. } | Deed::SleepAtEnd { pause, .. } => {
                self.core.sleep(id(index));
                self.wakes[index] = Some(self.now + pause);
            }
        }
    }

    /// By how many ticks, times both weights, one gained on another at most over any interval from which on that one computes for ever.
    fn greatest_gain(&self, who: usize, on: usize) -> i128 {
        let [own, others] = [who, on].map(|index| i128::from(self.equals[index].weight));
        let lead = |served: &[Time]| i128::from(served[who]) * others - i128::from(served[on]) * own;
        let (mut least, mut gain) = (i128::MAX, 0);
        for (served, _) in self.history.iter().filter(|(_, for_ever)| for_ever[on]) {
            least = least.min(lead(served));
            gain = gain.max(lead(served) - least);
        }
        gain
    }
}

fn deed() -> impl Strategy<Value = Deed> {
    let pause = || prop_oneof![1..5u64, 1..5 * QUANTUM];
    prop_oneof![
        (1..3 * QUANTUM).prop_map(|after| Deed::Yield { after }),
        (1..3 * QUANTUM, pause()).prop_map(|(after, pause)| Deed::Sleep { after, pause }),
        (0..3u64, pause()).prop_map(|(before, pause)| Deed::SleepAtEnd { before, pause }),
    ]
}

fn equal() -> impl Strategy<Value = Equal> {
    let comes = prop_oneof![2 => Just(0), 1 => 0..20 * QUANTUM];
    let deeds = prop_oneof![2 => Just(Vec::new()), 2 => prop::collection::vec(deed(), 1..12)];
    let weight = prop_oneof![3 => 1..=10u8, 1 => Just(u8::MAX)];
    (weight, comes, deeds, any::<bool>()).prop_map(|(weight, comes, deeds, again)| Equal {
        weight,
        comes,
        deeds,
        again,
    })
}

proptest! {
    /// Over any interval in which a vCPU always has something to do, none of its equals gains more than a turn of its own on it: neither those that
    /// compute for ever, nor by sleeping, also a moment before its turn ends, nor by yielding. It doesn't matter what it has done itself before, nor how
    /// often a higher one takes the core.
    #[test]
    fn nobody_gains_more_than_a_turn(
        equals in prop::collection::vec(equal(), 2..6),
        parts in prop::collection::vec((0..30 * QUANTUM, 0..3 * QUANTUM), 1..40),
    ) {
        let mut simulation = Simulation::new(equals);
        simulation.run(&parts);
        for who in 0..simulation.equals.len() {
            for on in (0..simulation.equals.len()).filter(|on| *on != who) {
                let [own, others] = [who, on].map(|index| simulation.equals[index].weight);
                let a_turn = i128::from(QUANTUM) * i128::from(own) * i128::from(others);
                let gain = simulation.greatest_gain(who, on);
                prop_assert!(gain <= a_turn, "{who} gained {gain} of {a_turn} on {on}");
            }
        }
    }

    /// Of those that compute for ever, each has its ideal share of what they have together, to within a turn of its own, over any interval.
    #[test]
    fn shares_are_within_a_turn_of_the_ideal(
        weights in prop::collection::vec(1..=20u8, 2..6),
        parts in prop::collection::vec((0..30 * QUANTUM, 0..3 * QUANTUM), 1..40),
    ) {
        let equals = weights.iter().map(|weight| Equal { weight: *weight, comes: 0, deeds: Vec::new(), again: false });
        let mut simulation = Simulation::new(equals.collect());
        simulation.run(&parts);
        let whole: i128 = weights.iter().copied().map(i128::from).sum();
        for (index, weight) in weights.iter().copied().map(i128::from).enumerate() {
            // Ahead of its ideal, times all weights.
            let ahead = |served: &[Time]| {
                let all: i128 = served.iter().copied().map(i128::from).sum();
                i128::from(served[index]) * whole - all * weight
            };
            let ahead: Vec<i128> = simulation.history.iter().map(|(served, _)| ahead(served)).collect();
            let (least, most) = (ahead.iter().min().expect("events"), ahead.iter().max().expect("events"));
            prop_assert!(most - least <= i128::from(QUANTUM) * weight * whole);
        }
    }
}
