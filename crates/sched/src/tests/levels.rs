//! Levels that change, or differ from core to core.

use super::*;

const ABOVE: Option<u8> = Some(RTOS.priority + 1);
const SCHEDULE: AskAgain = AskAgain { schedule: true, timers: false };
const TIMERS: AskAgain = AskAgain { schedule: false, timers: true };
const NOTHING: AskAgain = AskAgain { schedule: false, timers: false };

#[test]
fn a_level_is_the_policys_until_it_changes() {
    let mut core = core("spumone");
    assert_eq!(core.level(LINUX_A), Some(LINUX.priority));
    assert_eq!(core.set_level(LINUX_A, None), NOTHING, "it sleeps, and has no timer");
    assert_eq!(core.level(LINUX_A), None);
    core.adopt(LINUX_A, LINUX);
    assert_eq!(core.level(LINUX_A), Some(LINUX.priority), "another core may have had it meanwhile");
    assert_eq!(core.set_level(LINUX_A, Some(PRIORITIES)), NOTHING);
    assert_eq!(core.level(LINUX_A), Some(PRIORITIES - 1), "there is none higher");
}

#[test]
fn who_waits_takes_the_core_with_a_level_that_is_lent_to_it_and_gives_it_back() {
    let mut core = core_with("spumone", &[RT, LINUX_A, LINUX_B]);
    assert_eq!(core.set_level(LINUX_B, ABOVE), SCHEDULE);
    let decision = core.schedule(10);
    assert_eq!(decision, Decision { run: Some(LINUX_B), previous: Some(RT), preempted: true, alarm: None });
    assert_eq!(core.set_level(LINUX_B, Some(LINUX.priority)), SCHEDULE);
    let decision = core.schedule(20);
    assert_eq!(decision, Decision { run: Some(RT), previous: Some(LINUX_B), preempted: true, alarm: None });
    core.sleep(RT);
    assert_eq!(core.schedule(30).run, Some(LINUX_A), "it is behind its equals");
}

#[test]
fn who_is_raised_to_the_level_of_the_running_one_waits_for_its_turn() {
    let mut core = core_with("spumone", &[RT, LINUX_A]);
    assert_eq!(core.set_level(LINUX_A, Some(RTOS.priority)), SCHEDULE, "the quantum is to end now");
    let decision = core.schedule(10);
    assert_eq!((decision.run, decision.alarm), (Some(RT), Some(QUANTUM)));
    assert_eq!(core.set_level(LINUX_A, Some(RTOS.priority - 1)), SCHEDULE, "and now it isn't any more");
    assert_eq!(core.schedule(20).alarm, None);
    assert_eq!(core.set_level(LINUX_A, Some(0)), NOTHING, "it is still below");
}

#[test]
fn who_runs_keeps_the_core_with_another_level_if_nobody_goes_before_it() {
    let mut core = core_with("spumone", &[RT, LINUX_A]);
    assert_eq!(core.set_level(RT, Some(LINUX.priority + 1)), SCHEDULE, "what others know of it has changed");
    assert_eq!(core.state(RT), State::Running);
    let decision = core.schedule(10);
    assert_eq!(decision, Decision { run: Some(RT), previous: Some(RT), preempted: false, alarm: None });
    let _ = core.set_level(RT, Some(LINUX.priority));
    assert_eq!(core.schedule(20).run, Some(LINUX_A), "its new equal has waited for longer");
}

#[test]
fn who_has_no_level_is_awake_and_never_runs() {
    let mut core = core_with("spumone", &[LINUX_A]);
    assert_eq!(core.set_level(LINUX_A, None), SCHEDULE);
    assert!(core.is_preemption_due());
    let decision = core.schedule(10);
    assert_eq!(decision, Decision { run: None, previous: Some(LINUX_A), preempted: true, alarm: None });
    assert_eq!((core.state(LINUX_A), core.waits_for_equal(LINUX_A)), (State::Suspended, false));
    core.wake(LINUX_B);
    assert_eq!(core.set_level(LINUX_B, None), NOTHING, "nobody runs, and so it stays");
    assert_eq!(core.schedule(20).run, None);
    assert!(core.precedes(LINUX_C, LINUX_B) && !core.precedes(LINUX_A, LINUX_B));
    assert_eq!(core.release(LINUX_B), State::Suspended);
    assert_eq!(core.set_level(LINUX_A, Some(0)), SCHEDULE);
    let decision = core.schedule(30);
    assert_eq!(decision, Decision { run: Some(LINUX_A), previous: None, preempted: false, alarm: None });
}

#[test]
fn a_sleeper_wakes_with_its_new_level_and_its_timer_has_it_already() {
    let mut core = core_with("spumone", &[RT]);
    core.set_timer(LINUX_A, 50);
    assert_eq!(core.timers(RTOS.priority).collect::<Vec<_>>(), []);
    assert_eq!(core.set_level(LINUX_A, ABOVE), TIMERS);
    assert_eq!(core.timers(RTOS.priority).collect::<Vec<_>>(), [(LINUX_A, 50)]);
    assert_eq!(core.set_level(LINUX_A, None), TIMERS);
    assert_eq!(core.timers(0).collect::<Vec<_>>(), [], "it would wake for nothing");
    assert_eq!(core.set_level(LINUX_A, ABOVE), TIMERS);
    core.expire(LINUX_A);
    assert_eq!(core.schedule(50).run, Some(LINUX_A));
}

#[test]
fn a_changed_level_is_no_way_to_more_than_ones_turn() {
    let mut core = core_with("spumone", &[LINUX_A, LINUX_B]);
    let mut ran = [0; 2];
    let mut now = 0;
    while now < 100 * QUANTUM {
        let v = core.running().expect("somebody is awake");
        // Just before its quantum is over.
        now += QUANTUM - 1;
        ran[v.index()] += QUANTUM - 1;
        let _ = core.set_level(v, ABOVE);
        let _ = core.schedule(now);
        let _ = core.set_level(v, Some(LINUX.priority));
        let _ = core.schedule(now);
    }
    assert!(ran[0].abs_diff(ran[1]) <= 2 * QUANTUM, "{ran:?}");
}

#[test]
fn a_vcpu_of_another_core_has_no_level_to_change_here() {
    let mut core = core_with("spumone", &[LINUX_A]);
    core.release(LINUX_B);
    assert_eq!(core.set_level(LINUX_B, ABOVE), NOTHING);
    assert_eq!(core.schedule(0).run, Some(LINUX_A));
}

/// LiSTEE RT: on each core another guest goes first.
#[test]
fn each_core_has_its_own_order() {
    let (mine, others) = (VcpuId(0), VcpuId(1));
    for (core, first) in [(0, mine), (1, others)] {
        let mut scheduler = Scheduler::new(policy("listee-rt"));
        for v in [mine, others] {
            let priority = if u32::from(v.0) == core { 2 } else { 1 };
            scheduler.adopt(v, Class { priority, guest: v.0 });
            scheduler.wake(v);
        }
        assert_eq!(scheduler.schedule(0).run, Some(first), "core {core}");
    }
}
