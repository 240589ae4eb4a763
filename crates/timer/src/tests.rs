//! Against a hart whose timer is the firmware's.
use super::{Multiplexer, NEVER, Step};
use proptest::prelude::*;
use std::vec::Vec;

/// The hart, and its clock.
struct Hart {
    now: u64,
    timer: u64,
    enabled: bool,
    calls: u32,
}

impl Hart {
    fn carry_out(&mut self, step: Step) {
        match step {
            Step::Leave => {}
            Step::Program(at) => {
                (self.timer, self.enabled) = (at, true);
                self.calls += 1;
            }
            Step::Silence => self.enabled = false,
        }
    }

    fn is_interrupted(&self) -> bool {
        self.enabled && self.timer <= self.now
    }
}

#[derive(Debug, Clone)]
enum Act {
    Alarm(Option<u64>),
    Guest(Option<u64>),
    /// To a guest or to sleep, and so long there, if nothing comes.
    Go(u64),
    /// Something takes its time.
    Work(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let at = || prop::option::weighted(0.8, 0_u64..60);
    let act = prop_oneof![
        at().prop_map(Act::Alarm),
        at().prop_map(Act::Guest),
        (0_u64..80).prop_map(Act::Go),
        (0_u64..20).prop_map(Act::Work),
    ];
    prop::collection::vec(act, 0..200)
}

proptest! {
    #[test]
    fn whoever_is_due_is_told_in_time_and_nobody_is_told_for_ever(acts in acts()) {
        let mut hart = Hart { now: 0, timer: 0, enabled: false, calls: 0 };
        let mut timer = Multiplexer::new();
        let (mut alarm, mut guest) = (NEVER, NEVER);
        for act in acts {
            match act {
                Act::Alarm(after) => {
                    alarm = after.map_or(NEVER, |after| hart.now + after);
                    timer.set_alarm(alarm);
                }
                Act::Guest(after) => guest = after.map_or(NEVER, |after| hart.now + after),
                Act::Work(time) => hart.now += time,
                Act::Go(most) => {
                    let end = hart.now + most;
                    // The guest's timer counts as taken from its interrupt on, which is held up for it then, until it sets it anew.
                    let mut rounds = 0;
                    loop {
                        if guest <= hart.now {
                            guest = NEVER;
                        }
                        let before = hart.is_interrupted().then_some(hart.calls);
                        let pending = before.is_some();
                        // What the hart's interrupt says is what the clock says.
                        let by_interrupt = timer.is_alarm_due_by(pending);
                        prop_assert!(by_interrupt.is_none_or(|due| due == (alarm <= hart.now)), "{by_interrupt:?}");
                        if timer.is_settled_by(pending, guest) {
                            prop_assert!(alarm.min(guest) > hart.now);
                            prop_assert_eq!({ timer }.settle(hart.now, guest), Step::Leave);
                        }
                        let step = timer.settle(hart.now, guest);
                        hart.carry_out(step);
                        prop_assert_eq!(timer.is_alarm_due(hart.now), alarm <= hart.now);
                        let next = alarm.min(guest);
                        if next <= hart.now {
                            prop_assert!(hart.is_interrupted(), "an alarm at {alarm} isn't heard at {}", hart.now);
                            prop_assert!(before.is_none_or(|calls| calls == hart.calls), "what is pending needs no call");
                            break;
                        }
                        prop_assert!(!hart.is_interrupted(), "an interrupt for nobody, again and again");
                        prop_assert!(next == NEVER || hart.enabled && hart.timer <= next, "{next} comes too late");
                        // Until the hart is interrupted, or something else happens.
                        if !hart.enabled || hart.timer > end {
                            hart.now = end;
                            break;
                        }
                        hart.now = hart.timer;
                        rounds += 1;
                        // One that was left from before, the guest's, and the alarm.
                        prop_assert!(rounds <= 3);
                    }
                }
            }
        }
    }
}

#[test]
fn a_time_that_stays_the_earliest_is_told_once() {
    let mut timer = Multiplexer::new();
    timer.set_alarm(100);
    assert_eq!(timer.settle(0, NEVER), Step::Program(100));
    // The guest's is later, the alarm moves away and comes back: nothing of it concerns the firmware.
    assert_eq!(timer.settle(1, 200), Step::Leave);
    timer.set_alarm(150);
    assert_eq!(timer.settle(2, 200), Step::Leave);
    timer.set_alarm(NEVER);
    assert_eq!(timer.settle(3, NEVER), Step::Leave);
    timer.set_alarm(100);
    assert_eq!(timer.settle(4, 200), Step::Leave);
    // An earlier one does.
    assert_eq!(timer.settle(5, 50), Step::Program(50));
}

#[test]
fn one_that_came_for_nobody_is_set_to_the_next_or_silenced() {
    let mut timer = Multiplexer::new();
    timer.set_alarm(100);
    assert_eq!(timer.settle(0, NEVER), Step::Program(100));
    timer.set_alarm(300);
    assert_eq!(timer.settle(100, NEVER), Step::Program(300));
    timer.set_alarm(NEVER);
    assert_eq!(timer.settle(300, NEVER), Step::Silence);
    assert_eq!(timer.settle(301, NEVER), Step::Leave);
    assert_eq!(timer.settle(302, 400), Step::Program(400));
}

/// Where a look at the clock is dear, most ways need none.
#[test]
fn the_interrupt_alone_says_what_is_due_most_of_the_time() {
    let mut timer = Multiplexer::new();
    assert_eq!((timer.is_alarm_due_by(false), timer.is_settled_by(false, NEVER)), (Some(false), true));
    timer.set_alarm(100);
    assert_eq!(
        (timer.is_alarm_due_by(false), timer.is_settled_by(false, NEVER)),
        (None, false),
        "it isn't set yet"
    );
    assert_eq!(timer.settle(0, NEVER), Step::Program(100));
    assert_eq!((timer.is_alarm_due_by(false), timer.is_alarm_due_by(true)), (Some(false), Some(true)));
    assert_eq!((timer.is_settled_by(false, 100), timer.is_settled_by(false, 99)), (true, false));
    assert!(!timer.is_settled_by(true, NEVER), "it may have been for nobody");
    timer.set_alarm(150);
    assert_eq!((timer.is_alarm_due_by(false), timer.is_alarm_due_by(true)), (Some(false), None));
    timer.set_alarm(50);
    assert_eq!((timer.is_alarm_due_by(false), timer.is_alarm_due_by(true)), (None, Some(true)));
}

#[test]
fn one_that_is_late_already_is_left_pending() {
    let mut timer = Multiplexer::new();
    timer.set_alarm(100);
    assert_eq!(timer.settle(0, NEVER), Step::Program(100));
    assert_eq!(timer.settle(120, NEVER), Step::Leave);
    timer.set_alarm(110);
    assert_eq!(timer.settle(120, NEVER), Step::Leave);
}
