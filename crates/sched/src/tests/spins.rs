//! Which programs the detector takes for spinning, and how often it wants to look at them.

use proptest::prelude::*;

use crate::{SpinDetector, Time};

/// A tick is a microsecond.
const HZ: u64 = 1_000_000;

/// States of a loop that the detector remembers.
const REMEMBERED: u64 = 8;

const FINE: Time = SpinDetector::FINE_US;
const COARSE: Time = SpinDetector::COARSE_US;

/// Somewhere in a kernel.
const LOOP: u64 = 0xffff_ffff_8000_1000;

fn detector() -> SpinDetector {
    SpinDetector::new(HZ)
}

/// Samples of a program that is at instruction `pc` in a state that has this number.
fn feed(detector: &mut SpinDetector, samples: impl IntoIterator<Item = (u64, u64)>) -> Option<usize> {
    samples.into_iter().position(|(pc, state)| detector.sample(pc, state))
}

#[test]
fn the_same_state_again_in_the_same_place_is_a_spin() {
    assert_eq!(feed(&mut detector(), [(LOOP, 1), (LOOP, 1)]), Some(1));
    assert_eq!(feed(&mut detector(), [(LOOP, 1), (LOOP + 4, 2), (LOOP + 8, 3), (LOOP + 4, 2)]), Some(3));
}

#[test]
fn who_repeats_a_system_call_does_not_spin() {
    let call = [(LOOP, 1), (LOOP + 0x4000, 2)];
    assert_eq!(feed(&mut detector(), call.into_iter().cycle().take(100)), None);
}

#[test]
fn what_was_seen_before_user_mode_counts_no_more() {
    let mut detector = detector();
    for _ in 0..10 {
        assert!(!detector.sample(LOOP, 1));
        detector.works();
    }
}

#[test]
fn a_spin_is_found_again_as_soon_as_before() {
    let mut detector = detector();
    for _ in 0..10 {
        assert_eq!(feed(&mut detector, [(LOOP, 1); 2]), Some(1));
        assert_eq!(detector.pause(), FINE);
    }
}

#[test]
fn who_works_is_looked_at_less_and_less() {
    let mut detector = detector();
    let pauses: Vec<Time> = (0..6)
        .map(|call| {
            assert!(!detector.sample(LOOP + call * 0x1000, 0));
            detector.pause()
        })
        .collect();
    assert_eq!(pauses, [20, 40, 80, 100, 100, 100]);
    assert!(!detector.sample(LOOP + 5 * 0x1000 + 4, 1));
    assert_eq!(detector.pause(), FINE, "it has been met where it was before");
}

#[test]
fn a_long_loop_that_works_is_looked_at_less_and_less() {
    let mut detector = detector();
    let mut pauses = (0..20).map(|round| {
        assert!(!detector.sample(LOOP, round));
        detector.pause()
    });
    assert!(pauses.by_ref().skip(1).take(REMEMBERED as usize - 1).all(|pause| pause == FINE));
    assert_eq!(pauses.next(), Some(2 * FINE));
    assert_eq!(pauses.last(), Some(COARSE));
}

#[test]
fn a_vcpu_that_gets_its_core_is_looked_at_soon_if_that_is_wanted() {
    for (soon, pause) in [(true, FINE), (false, COARSE)] {
        let mut detector = detector();
        assert!(!detector.sample(LOOP, 1));
        detector.restart(soon);
        assert_eq!(detector.pause(), pause);
        assert!(!detector.sample(LOOP, 1), "what another one was seen doing counts no more");
    }
}

#[test]
fn while_nobody_waits_it_rests() {
    let mut detector = detector();
    for _ in 0..4 {
        detector.works();
    }
    assert!(!detector.sample(LOOP, 1));
    assert_eq!(detector.rest(), SpinDetector::REST_US);
    assert_eq!(detector.pause(), FINE, "once somebody waits");
    assert!(!detector.sample(LOOP, 1), "what was seen before counts no more");
}

#[test]
fn a_slow_clock_makes_no_pause_of_nothing() {
    let mut detector = SpinDetector::new(1000);
    assert_eq!(detector.pause(), 1);
    assert!(!detector.sample(LOOP, 0));
    assert_eq!(detector.pause(), 1);
}

/// A sample of a loop of so many instructions that spins: its state depends only on which of them is next.
fn phases(length: u64) -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0..length, REMEMBERED as usize + 1)
}

proptest! {
    /// Wherever in the loop the samples fall.
    #[test]
    fn a_short_loop_is_found_in_time(phases in (1..=REMEMBERED).prop_flat_map(phases), base in any::<u16>()) {
        let states = phases.iter().max().unwrap() + 1;
        let samples = phases.iter().map(|phase| (LOOP + u64::from(base) + 4 * phase, *phase));
        let found = feed(&mut detector(), samples);
        prop_assert!(found.is_some_and(|sample| sample as u64 <= states), "{found:?}");
    }

    /// However short the loop, if a register has another value each time.
    #[test]
    fn a_loop_that_advances_is_never_found(steps in prop::collection::vec((0..16_u64, 1..1000_u64), 1..200)) {
        let mut pointer = 0;
        let samples = steps.into_iter().map(|(phase, steps)| {
            pointer += steps;
            (LOOP + 4 * phase, pointer)
        });
        prop_assert_eq!(feed(&mut detector(), samples), None);
    }

    /// Whatever it is shown, the next look is neither at once nor in the far future.
    #[test]
    fn pauses_stay_in_their_bounds(samples in prop::collection::vec((any::<u64>(), 0..4_u64, 0..4_u8), 0..200)) {
        let mut detector = detector();
        for (pc, state, what) in samples {
            match what {
                0 => detector.works(),
                1 => { let _ = detector.sample(pc, state); }
                _ => { let _ = detector.sample(LOOP + pc % 512, state); }
            }
            prop_assert!((FINE..=COARSE).contains(&detector.pause()));
        }
    }
}
