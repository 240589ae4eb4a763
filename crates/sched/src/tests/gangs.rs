//! Co-scheduling: the vCPUs of a guest get their cores together.

use proptest::prelude::*;

use super::*;
use crate::gangs::turn_of;

/// Cores of the machines in these tests.
const CORES: u8 = 3;

/// The vCPU of this guest on this core.
fn of(guest: u8, core: u8) -> VcpuId {
    VcpuId(guest * CORES + core)
}

/// Cores where each of so many guests has a vCPU, and all of them are awake; an RTOS above sleeps on each.
fn cores(guests: u8) -> Vec<Scheduler> {
    let policy = policy("co-schedule");
    let linux = |guest| Class { priority: 1, guest };
    let all = (0..guests).flat_map(|guest| (0..CORES).map(move |_| linux(guest)));
    let gangs = Gangs::new(&policy, all.chain([Class { guest: guests, ..RTOS }]));
    let core = |core| {
        let mut scheduler = Scheduler::new(policy).with_gangs(gangs);
        for guest in 0..guests {
            scheduler.adopt(of(guest, core), linux(guest));
            scheduler.wake(of(guest, core));
        }
        scheduler.adopt(RT, Class { guest: guests, ..RTOS });
        scheduler
    };
    (0..CORES).map(core).collect()
}

/// The guest that runs in each turn, on a core that has nothing else.
fn turns(core: &mut Scheduler, from: Time, count: Time) -> Vec<u8> {
    let turn = |turn| {
        let decision = decide(core, turn * QUANTUM);
        assert_eq!(decision.alarm, Some((turn + 1) * QUANTUM), "the turn's end");
        decision.run.expect("all are awake").0 / CORES
    };
    (from..from + count).map(turn).collect()
}

#[test]
fn all_cores_run_the_same_guest() {
    let mut cores = cores(2);
    let first = turns(&mut cores[0], 7, 100);
    assert_eq!(turns(&mut cores[1], 7, 100), first);
    assert_eq!(turns(&mut cores[2], 7, 100), first);
    assert!(first.contains(&0) && first.contains(&1));
}

#[test]
fn a_core_joins_the_turn_that_the_others_have() {
    let mut cores = cores(2);
    let whose = turns(&mut cores[0], 5, 1)[0];
    // The RTOS has had the other core until now.
    let decision = decide(&mut cores[1], 5 * QUANTUM + 70);
    assert_eq!((decision.run, decision.alarm), (Some(of(whose, 1)), Some(6 * QUANTUM)));
}

#[test]
fn who_wakes_in_its_turn_has_the_core_at_once_and_who_waited_goes_on() {
    let mut cores = cores(2);
    let whose = turns(&mut cores[0], 5, 1)[0];
    let (its, others) = (of(whose, 0), of(1 - whose, 0));
    let core = &mut cores[0];
    core.sleep(its);
    let decision = decide(core, 5 * QUANTUM + 10);
    assert_eq!((decision.run, decision.alarm), (Some(others), None), "nothing of that guest is to run");
    core.wake(its);
    let decision = decide(core, 5 * QUANTUM + 30);
    let expected =
        Decision { run: Some(its), previous: Some(others), preempted: true, alarm: Some(6 * QUANTUM) };
    assert_eq!(decision, expected);
}

#[test]
fn who_wakes_in_the_turn_of_another_waits() {
    let mut cores = cores(2);
    let whose = turns(&mut cores[0], 5, 1)[0];
    let core = &mut cores[0];
    core.sleep(of(1 - whose, 0));
    assert_eq!(decide(core, 5 * QUANTUM + 10).alarm, None);
    core.wake(of(1 - whose, 0));
    let decision = decide(core, 5 * QUANTUM + 20);
    assert_eq!((decision.run, decision.alarm), (Some(of(whose, 0)), Some(6 * QUANTUM)));
}

#[test]
fn who_yields_lets_others_go_first_until_the_turn_ends() {
    let mut cores = cores(2);
    let whose = turns(&mut cores[0], 5, 1)[0];
    let core = &mut cores[0];
    core.yield_now();
    let decision = decide(core, 5 * QUANTUM + 10);
    assert_eq!((decision.run, decision.alarm), (Some(of(1 - whose, 0)), Some(6 * QUANTUM)));
    core.yield_now();
    assert_eq!(decide(core, 5 * QUANTUM + 20).run, Some(of(whose, 0)), "all have, the other one later");
    let after: Vec<_> = turns(core, 6, 50);
    assert_eq!(after, turns(&mut cores[1], 6, 50));
}

#[test]
fn a_guest_of_another_level_has_no_turn() {
    let mut cores = cores(2);
    let guests = turns(&mut cores[0], 0, 2);
    assert!(guests == [0, 1] || guests == [1, 0], "the RTOS is not one of those that take turns: {guests:?}");
    cores[0].wake(RT);
    let decision = decide(&mut cores[0], 2 * QUANTUM + 1);
    assert_eq!((decision.run, decision.alarm), (Some(RT), None));
}

#[test]
fn a_turn_is_had_by_each_once_in_a_round() {
    for count in 1..=16 {
        for round in 0..100 {
            let mut had: Vec<_> = (0..count).map(|turn| turn_of(round * count + turn, count)).collect();
            had.sort();
            assert_eq!(had, (0..count).collect::<Vec<_>>());
        }
    }
}

/// An RTOS takes its core whenever the clock is a multiple of some turns: were the order the same in each round, it might always be the turn of
/// the same guest. (One that comes more seldom, and leaves a tenth, leaves whole rounds between two times.)
#[test]
fn no_period_meets_the_turns_of_the_same_guest_only() {
    for count in 2..=16 {
        for period in 1..=20 * count {
            for phase in 0..period.min(4) {
                // As many as it takes to see each of them a hundred times, were they drawn.
                let met = (0..100 * count).map(|n| turn_of(phase + n * period, count));
                let mut times = [0; 16];
                met.for_each(|place| times[place as usize] += 1);
                let least = times[..count as usize].iter().min();
                assert!(least >= Some(&50), "{count} guests, each {period} turns: {times:?}");
            }
        }
    }
}

/// A core, and for how long each guest has had it.
struct Run {
    core: Scheduler,
    had: Vec<Time>,
}

impl Run {
    /// Lets it run; whoever has it computes, and it comes to a scheduling point when it asks for one, and at these times.
    fn until(&mut self, now: &mut Time, end: Time) {
        while *now < end {
            let decision = decide(&mut self.core, *now);
            let next = decision.alarm.map_or(end, |alarm| alarm.min(end));
            let guest = usize::from(decision.run.expect("all are awake").0 / CORES);
            self.had[guest] += next - *now;
            *now = next;
        }
    }
}

proptest! {
    /// All the time, whatever scheduling points there are besides.
    #[test]
    fn guests_that_never_sleep_run_together_all_the_time(
        guests in 1..6u8,
        start in 0..Time::MAX / 4,
        points in prop::collection::vec((0..CORES, 0..QUANTUM), 0..200),
    ) {
        let mut cores = cores(guests);
        let mut alarms = vec![start; cores.len()];
        let mut now = start;
        for (core, after) in points {
            let end = now + after;
            // All alarms on the way, and then a scheduling point of some core.
            while let Some(at) = alarms.iter().copied().filter(|at| *at <= end).min() {
                now = at;
                for (core, alarm) in cores.iter_mut().zip(&mut alarms).filter(|(_, alarm)| **alarm == at) {
                    *alarm = decide(core, now).alarm.unwrap_or(Time::MAX);
                }
                let running: Vec<_> = cores.iter().map(|core| core.running().expect("all are awake").0 / CORES).collect();
                prop_assert!(running.iter().all(|guest| *guest == running[0]), "{:?} at {}", running, now);
            }
            now = end;
            let before = cores[usize::from(core)].running();
            prop_assert_eq!(decide(&mut cores[usize::from(core)], now).run, before);
        }
    }

    /// Over whole rounds each guest has the same, and none waits for longer than two rounds less two turns.
    #[test]
    fn each_guest_has_its_share(guests in 2..6u8, from in 0..1_000_000u64) {
        let round = Time::from(guests);
        let had = turns(&mut cores(guests)[0], from * round, 20 * round);
        for guest in 0..guests {
            let its: Vec<_> = had.iter().enumerate().filter(|(_, had)| **had == guest).map(|(turn, _)| turn).collect();
            prop_assert_eq!(its.len(), 20);
            prop_assert!(its.windows(2).all(|two| two[1] - two[0] < 2 * usize::from(guests)), "{:?}", its);
        }
    }

    /// Not even if an RTOS takes the core again and again: each guest has at least half of its share of what that leaves.
    #[test]
    fn nobody_starves_below_an_rtos(
        guests in 2..5u8,
        period in QUANTUM / 2..20 * QUANTUM,
        percent in 1..90u64,
        phase in 0..20 * QUANTUM,
    ) {
        let burst = (period * percent / 100).max(1);
        let mut run = Run { core: cores(guests).remove(0), had: vec![0; usize::from(guests)] };
        let mut now = 0;
        run.until(&mut now, phase);
        run.had.fill(0);
        for _ in 0..4_000 {
            run.core.wake(RT);
            prop_assert_eq!(decide(&mut run.core, now).run, Some(RT), "it has the core at once");
            let end = now + period;
            now += burst;
            run.core.sleep(RT);
            run.until(&mut now, end);
        }
        let share = run.had.iter().sum::<Time>() / Time::from(guests);
        prop_assert!(run.had.iter().all(|had| *had >= share / 2), "{:?}", run.had);
    }

    /// A guest that isn't everywhere, or sleeps, costs the others no fairness: its turns are shared by those that are there.
    #[test]
    fn the_turn_of_one_that_has_nothing_to_run_is_shared(guests in 3..6u8, sleeps in 0..6u8, from in 0..1_000_000u64) {
        let sleeps = sleeps % guests;
        let mut cores = cores(guests);
        for (core, scheduler) in cores.iter_mut().enumerate() {
            scheduler.sleep(of(sleeps, core as u8));
        }
        let rounds = Time::from(guests - 1);
        let all = rounds * Time::from(guests);
        let had: Vec<_> = cores.iter_mut().map(|core| turns(core, from * all, 10 * all)).collect();
        prop_assert!(had.iter().all(|turns| *turns == had[0]), "all cores agree");
        for guest in (0..guests).filter(|guest| *guest != sleeps) {
            prop_assert_eq!(had[0].iter().filter(|had| **had == guest).count() as Time, 10 * Time::from(guests));
        }
    }
}

/// Two vCPUs of one guest on one core, and one of another: the guests have the same, and of the first one both.
#[test]
fn vcpus_of_a_guest_on_one_core_share_its_turns() {
    let policy = policy("co-schedule");
    let classes = [0, 0, 1].map(|guest| Class { priority: 1, guest });
    let mut core = Scheduler::new(policy).with_gangs(Gangs::new(&policy, classes.into_iter()));
    for (v, class) in (0..).map(VcpuId).zip(classes) {
        core.adopt(v, class);
        core.wake(v);
    }
    let mut had = [0; 3];
    for turn in 0..400 {
        let run = decide(&mut core, turn * QUANTUM).run.expect("all are awake");
        had[usize::from(run.0)] += 1;
    }
    assert_eq!(had, [100, 100, 200]);
}
