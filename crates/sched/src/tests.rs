//! Tests that read like documentation (here), and comparisons with a plain model (`against_model`).

mod against_model;
mod calendars;
mod gangs;
mod levels;
mod spins;
mod weights;

use ainori_limits::{MAX_VCPUS, PRIORITIES};

use super::*;

/// The quantum in these tests, in ticks.
const QUANTUM: Time = 100;

const LINUX: Class = Class { priority: 1, guest: 0 };
const RTOS: Class = Class { priority: 9, guest: 1 };

const LINUX_A: VcpuId = VcpuId(0);
const LINUX_B: VcpuId = VcpuId(1);
const LINUX_C: VcpuId = VcpuId(2);
const RT: VcpuId = VcpuId(MAX_VCPUS as u8);

fn policy(name: &str) -> Policy {
    Policy::preset(name, QUANTUM, 1000).expect("a preset")
}

/// A scheduling point, as the kernel has it.
fn decide(core: &mut Scheduler, now: Time) -> Decision {
    if core.policy().co_schedules() {
        core.co_schedule(now);
    }
    core.schedule(now)
}

/// Gives all of them this level, in parts of so many.
fn set_levels(core: &mut Scheduler, some: VcpuSet, level: Option<u8>, most: usize) -> AskAgain {
    let (mut again, mut rest) = (AskAgain::default(), some);
    while !rest.is_empty() {
        let before = rest.len();
        let (more, left) = core.set_levels(rest, level, most);
        assert!(left.len() < before, "each part is one");
        again |= more;
        rest = left;
    }
    again
}

/// A core with three vCPUs of Linux and one of the RTOS, all asleep.
fn core(preset: &str) -> Scheduler {
    let mut core = Scheduler::new(policy(preset));
    for v in [LINUX_A, LINUX_B, LINUX_C] {
        core.adopt(v, LINUX);
    }
    core.adopt(RT, RTOS);
    core
}

/// The same at time 0, where those vCPUs are awake, in this order, and the first has the core.
fn core_with(preset: &str, awake: &[VcpuId]) -> Scheduler {
    let mut core = core(preset);
    awake.iter().for_each(|&v| core.wake(v));
    let decision = core.schedule(0);
    assert_eq!(decision.run, awake.first().copied());
    core
}

#[test]
fn a_core_without_work_idles() {
    let mut core = core("spumone");
    let nothing = Decision { run: None, previous: None, preempted: false, alarm: None };
    assert_eq!(core.schedule(0), nothing);
    assert_eq!(core.schedule(Time::MAX / 2), nothing);
    assert_eq!(core.running(), None);
}

#[test]
fn a_vcpu_is_sleeping_suspended_running() {
    let mut core = core("spumone");
    assert_eq!(core.state(LINUX_A), State::Sleeping);
    core.wake(LINUX_A);
    assert_eq!(core.state(LINUX_A), State::Suspended);
    let decision = core.schedule(0);
    assert_eq!(decision, Decision { run: Some(LINUX_A), previous: None, preempted: false, alarm: None });
    assert_eq!(core.state(LINUX_A), State::Running);
    core.sleep(LINUX_A);
    assert_eq!(core.state(LINUX_A), State::Sleeping);
    let decision = core.schedule(5);
    assert_eq!(decision, Decision { run: None, previous: Some(LINUX_A), preempted: false, alarm: None });
}

#[test]
fn a_higher_priority_takes_the_core_at_once_and_gives_it_back() {
    let mut core = core_with("spumone", &[LINUX_A]);
    core.wake(RT);
    let decision = core.schedule(10);
    assert_eq!(decision, Decision { run: Some(RT), previous: Some(LINUX_A), preempted: true, alarm: None });
    assert_eq!(core.state(LINUX_A), State::Suspended);
    core.sleep(RT);
    let decision = core.schedule(20);
    assert_eq!(decision, Decision { run: Some(LINUX_A), previous: Some(RT), preempted: false, alarm: None });
}

#[test]
fn a_lower_priority_waits_and_sets_no_alarm() {
    let mut core = core_with("spumone", &[RT]);
    core.wake(LINUX_A);
    let decision = core.schedule(10);
    assert_eq!(decision, Decision { run: Some(RT), previous: Some(RT), preempted: false, alarm: None });
    assert_eq!(core.schedule(1000 * QUANTUM).run, Some(RT), "no quantum takes the core from the RTOS");
}

#[test]
fn equals_take_turns() {
    let mut core = core_with("spumone", &[LINUX_A, LINUX_B, LINUX_C]);
    let mut order = Vec::new();
    for turn in 1..=6 {
        let decision = core.schedule(turn * QUANTUM);
        assert_eq!(decision.alarm, Some((turn + 1) * QUANTUM));
        assert!(decision.preempted);
        order.extend(decision.run);
    }
    assert_eq!(order, [LINUX_B, LINUX_C, LINUX_A, LINUX_B, LINUX_C, LINUX_A]);
}

/// One that has come from elsewhere goes before those that wait and have waited less, but not before who has the core, nor where many have waited longer.
#[test]
fn who_has_waited_longer_elsewhere_goes_first() {
    let order = |looked_at, waits_for_it: &[VcpuId]| {
        let mut core = core_with("spumone", &[LINUX_A, LINUX_B]);
        core.wake(LINUX_C);
        core.move_ahead(LINUX_C, looked_at, |other| waits_for_it.contains(&other));
        assert_eq!(core.schedule(1).run, Some(LINUX_A), "it isn't preempted");
        [1, 2].map(|turn| core.schedule(turn * QUANTUM).run)
    };
    for looked_at in 0..4 {
        assert_eq!(order(looked_at, &[]), [Some(LINUX_B), Some(LINUX_C)]);
    }
    assert_eq!(order(0, &[LINUX_B]), [Some(LINUX_B), Some(LINUX_C)]);
    assert_eq!(order(1, &[LINUX_B]), [Some(LINUX_C), Some(LINUX_B)]);
    assert_eq!(order(4, &[LINUX_A, LINUX_B]), [Some(LINUX_C), Some(LINUX_B)]);
    let mut asleep = core_with("spumone", &[LINUX_A]);
    asleep.move_ahead(LINUX_C, 4, |_| true);
    assert_eq!(asleep.state(LINUX_C), State::Sleeping);
}

#[test]
fn a_quantum_does_not_end_early() {
    let mut core = core_with("spumone", &[LINUX_A, LINUX_B]);
    let decision = core.schedule(QUANTUM - 1);
    assert_eq!((decision.run, decision.alarm), (Some(LINUX_A), Some(QUANTUM)));
    assert_eq!(core.schedule(QUANTUM).run, Some(LINUX_B));
}

#[test]
fn a_preempted_vcpu_keeps_its_place_and_the_rest_of_its_quantum() {
    let mut core = core_with("spumone", &[LINUX_A, LINUX_B]);
    core.wake(RT);
    assert_eq!(core.schedule(30).run, Some(RT));
    core.sleep(RT);
    let decision = core.schedule(500);
    assert_eq!((decision.run, decision.alarm), (Some(LINUX_A), Some(500 + QUANTUM - 30)));
}

#[test]
fn an_alarm_is_due_only_while_an_equal_waits() {
    let mut core = core_with("spumone", &[LINUX_A]);
    core.wake(LINUX_B);
    assert_eq!(core.schedule(40).alarm, Some(QUANTUM));
    core.sleep(LINUX_B);
    assert_eq!(core.schedule(50).alarm, None);
}

#[test]
fn who_had_the_core_alone_starts_a_new_quantum_when_an_equal_wakes() {
    let mut core = core_with("spumone", &[LINUX_A]);
    core.wake(LINUX_B);
    let decision = core.schedule(7 * QUANTUM + 1);
    assert_eq!((decision.run, decision.alarm), (Some(LINUX_A), Some(8 * QUANTUM + 1)));
    assert_eq!(core.schedule(8 * QUANTUM + 1).run, Some(LINUX_B));
}

#[test]
fn to_yield_is_to_go_behind_the_equals() {
    let mut core = core_with("spumone", &[LINUX_A, LINUX_B]);
    core.yield_now();
    assert_eq!((core.running(), core.state(LINUX_A)), (None, State::Suspended));
    let decision = core.schedule(10);
    let expected =
        Decision { run: Some(LINUX_B), previous: Some(LINUX_A), preempted: false, alarm: Some(10 + QUANTUM) };
    assert_eq!(decision, expected);
}

#[test]
fn to_step_aside_is_to_let_an_equal_go_first_for_a_moment() {
    let mut core = core_with("spumone", &[LINUX_A, LINUX_B]);
    // At 1000 ticks a second, a help of 50 us is the least that there is.
    let help = core.policy().help;
    assert_eq!(help, 1);
    core.step_aside(|v| v != RT);
    let decision = core.schedule(10);
    assert_eq!((decision.run, decision.alarm), (Some(LINUX_B), Some(10 + help)));
    let decision = core.schedule(10 + help);
    assert_eq!(
        (decision.run, decision.alarm),
        (Some(LINUX_A), Some(10 + help + QUANTUM)),
        "a turn of its own"
    );
    let decision = core.schedule(10 + help + QUANTUM);
    assert_eq!(
        (decision.run, decision.alarm),
        (Some(LINUX_B), Some(10 + help + 2 * QUANTUM)),
        "the other's too"
    );
}

/// A guest that said again and again that it spins had six times the share of its equal.
#[test]
fn to_step_aside_does_not_shorten_the_turn_of_another_guest() {
    let mut core = core_with("spumone", &[LINUX_A, LINUX_B]);
    core.step_aside(|_| false);
    let decision = core.schedule(10);
    assert_eq!((decision.run, decision.alarm), (Some(LINUX_B), Some(10 + QUANTUM)));
}

#[test]
fn to_step_aside_does_not_shorten_the_turn_of_a_higher_one() {
    let mut core = core_with("spumone", &[LINUX_A, LINUX_B]);
    core.adopt(LINUX_C, RTOS);
    core.wake(RT);
    core.wake(LINUX_C);
    core.step_aside(|v| v != RT);
    let decision = core.schedule(10);
    assert_eq!((decision.run, decision.alarm), (Some(RT), Some(10 + QUANTUM)));
}

#[test]
fn to_yield_alone_changes_nothing() {
    let mut core = core_with("spumone", &[RT]);
    core.wake(LINUX_A);
    core.yield_now();
    let decision = core.schedule(10);
    assert_eq!(decision, Decision { run: Some(RT), previous: Some(RT), preempted: false, alarm: None });
}

#[test]
fn who_sleeps_and_wakes_goes_behind_its_equals() {
    let mut core = core_with("spumone", &[LINUX_A, LINUX_B]);
    core.sleep(LINUX_A);
    core.wake(LINUX_A);
    assert_eq!(core.state(LINUX_A), State::Suspended);
    let decision = core.schedule(10);
    assert_eq!((decision.run, decision.previous, decision.preempted), (Some(LINUX_B), Some(LINUX_A), false));
}

#[test]
fn to_wake_twice_is_to_wake_once() {
    let mut core = core_with("spumone", &[LINUX_A, LINUX_B]);
    core.wake(LINUX_A);
    core.wake(LINUX_B);
    core.sleep(LINUX_B);
    assert_eq!(core.schedule(10).alarm, None);
}

#[test]
fn a_vcpu_leaves_and_another_core_adopts_it() {
    let (mut here, mut there) =
        (core_with("spumone", &[LINUX_A, LINUX_B]), Scheduler::new(policy("spumone")));
    assert_eq!(here.release(LINUX_B), State::Suspended);
    assert!(!here.owns(LINUX_B));
    assert_eq!(here.owned().into_iter().collect::<Vec<_>>(), [LINUX_A, LINUX_C, RT]);
    here.wake(LINUX_B);
    assert_eq!(here.schedule(10).alarm, None, "a vCPU of another core can't be woken here");

    there.adopt(LINUX_B, LINUX);
    assert_eq!(there.state(LINUX_B), State::Sleeping);
    there.wake(LINUX_B);
    assert_eq!(there.schedule(10).run, Some(LINUX_B));
}

#[test]
fn a_running_vcpu_that_is_released_is_forgotten() {
    let mut core = core_with("spumone", &[LINUX_A]);
    assert_eq!(core.release(LINUX_A), State::Running);
    let decision = core.schedule(10);
    assert_eq!(decision, Decision { run: None, previous: None, preempted: false, alarm: None });
}

#[test]
#[should_panic(expected = "vCPU 0: priority 32 is not below 32")]
fn a_priority_without_a_level_is_refused() {
    core("spumone").adopt(LINUX_A, Class { priority: PRIORITIES, guest: 0 });
}

#[test]
fn the_first_timer_of_each_level_is_told_from_the_highest_down() {
    let mut core = core("spumone");
    core.set_timer(LINUX_A, 30);
    core.set_timer(LINUX_B, 20);
    core.set_timer(LINUX_C, 20);
    core.set_timer(RT, 50);
    let timers = |core: &Scheduler, lowest| core.timers(lowest).collect::<Vec<_>>();
    assert_eq!(timers(&core, 0), [(RT, 50), (LINUX_B, 20)]);
    assert_eq!(timers(&core, LINUX.priority), [(RT, 50), (LINUX_B, 20)]);
    assert_eq!(timers(&core, LINUX.priority + 1), [(RT, 50)]);
    core.wake(LINUX_B);
    assert_eq!(timers(&core, 0), [(RT, 50), (LINUX_C, 20)]);
    core.clear_timer(RT);
    core.set_timer(LINUX_C, 40);
    assert_eq!(timers(&core, 0), [(LINUX_A, 30)]);
    assert_eq!(core.release(LINUX_A), State::Sleeping);
    assert_eq!(timers(&core, 0), [(LINUX_C, 40)]);
    core.sleep(LINUX_B);
    assert_eq!(timers(&core, 0), [(LINUX_C, 40)], "who sleeps again has no timer yet");
}

#[test]
fn a_running_vcpu_is_hidden_from_lower_levels() {
    assert_eq!(policy("spumone").threshold(RTOS.priority), RTOS.priority);
    assert_eq!(policy("round-robin").threshold(policy("round-robin").level(RTOS)), 0, "there is one level");
    assert_eq!(policy("spumone-without-split").threshold(RTOS.priority), 0, "whatever the levels");
    assert_eq!(policy("partition").threshold(RTOS.priority), 0, "nobody else is there");
    assert!(!policy("partition").shares_cores());
    assert!(policy("spumone").shares_cores());
}

#[test]
fn round_robin_knows_no_priority() {
    // 1000 ticks a second: the 10 ms of the preset are 10 ticks.
    let mut core = core_with("round-robin", &[LINUX_A]);
    core.wake(RT);
    let decision = core.schedule(3);
    assert_eq!((decision.run, decision.alarm), (Some(LINUX_A), Some(10)), "a wake-up never takes the core");
    let decision = core.schedule(10);
    assert_eq!((decision.run, decision.alarm), (Some(RT), Some(20)));
    assert_eq!(core.schedule(20).run, Some(LINUX_A), "nor does the RTOS keep it");
}

#[test]
fn presets_are_found_by_name() {
    for preset in presets() {
        let policy = Policy::preset(preset.name, QUANTUM, 10_000_000).expect(preset.name);
        assert_eq!(policy.quantum, if preset.name == "round-robin" { 100_000 } else { QUANTUM });
        assert!(preset.summary.ends_with("."), "{}: a sentence", preset.name);
    }
    assert_eq!(Policy::preset("fair", QUANTUM, 10_000_000), None);
}

#[test]
fn a_set_of_vcpus() {
    let mut set: VcpuSet = [VcpuId(63), VcpuId(0), VcpuId(5)].into_iter().collect();
    assert_eq!(set.into_iter().collect::<Vec<_>>(), [VcpuId(0), VcpuId(5), VcpuId(63)]);
    set.remove(VcpuId(5));
    assert_eq!((set.len(), set.contains(VcpuId(5)), set.contains(VcpuId(63))), (2, false, true));
    assert_eq!(VcpuSet::from_words(set.words()), set);
    assert!(VcpuSet::EMPTY.is_empty());

    let mut circle = VcpuSet::from_bits_at(1 << 63 | 0b1001, 0);
    let turns = [4, 64, 1, 0].map(|first| circle.pop_from(first).map(|id| id.0));
    assert_eq!(turns, [Some(63), Some(0), Some(3), None]);

    let many = VcpuSet::from_bits_at(0b1011_0100, 0) | VcpuSet::of(VcpuId(MAX_VCPUS as u8));
    assert_eq!(many.lowest::<0>(), VcpuSet::EMPTY);
    assert_eq!(many.lowest::<3>(), VcpuSet::from_bits_at(0b0011_0100, 0));
    assert_eq!(many.lowest::<5>(), many);
    assert_eq!(many.lowest::<9>(), many);
}
