//! What one thread can see of it, as documentation, and against a plain model. What several see is in `model.rs`.

use proptest::prelude::*;

use super::*;

fn rules(restart: Restart, limit: u32, interval: u64) -> Rules {
    Rules { restart, limit, interval }
}

/// Ends a life of a guest with so many vCPUs, and begins the next one if there is to be one.
fn live_on(guest: &Lifecycle, vcpus: u32, cause: Cause, now: u64) -> Next {
    let next = guest.stop(cause, now).expect("it runs");
    for _ in 1..vcpus {
        assert_eq!(guest.note_rest(), None);
    }
    let last = guest.note_rest().expect("the last vCPU is at rest");
    assert_eq!(last == Next::Restart, next == Next::Restart);
    if next == Next::Restart {
        for vcpu in 0..vcpus {
            assert!(!guest.all_reset());
            assert_eq!(guest.note_reset(), vcpu + 1 == vcpus);
        }
        assert!(guest.all_reset());
        guest.start();
    }
    next
}

#[test]
fn what_follows_an_end_is_what_the_manifest_says() {
    use {Cause::*, Next::End};
    const AGAIN: Next = Next::Restart;
    let table = [
        (Restart::Never, [End, End, End]),
        (Restart::OnFailure, [End, AGAIN, AGAIN]),
        (Restart::Always, [AGAIN, AGAIN, AGAIN]),
    ];
    for (restart, expected) in table {
        for (cause, expected) in [Shutdown, Reboot, Failure].into_iter().zip(expected) {
            let guest = Lifecycle::new(2, rules(restart, 5, 100));
            assert_eq!(live_on(&guest, 2, cause, 7), expected, "{restart:?} after {cause:?}");
            assert_eq!(guest.is_running(), expected == AGAIN);
            assert_eq!(guest.life(), if expected == AGAIN { 2 } else { 1 });
        }
    }
}

#[test]
fn the_first_reason_counts() {
    let guest = Lifecycle::new(2, rules(Restart::OnFailure, 5, 100));
    assert_eq!(guest.stop(Cause::Shutdown, 7), Some(Next::End));
    assert_eq!(guest.stop(Cause::Failure, 7), None, "it is being stopped already");
    assert_eq!(guest.note_rest(), None);
    assert_eq!(guest.stop(Cause::Failure, 8), None);
    assert_eq!(guest.note_rest(), Some(Next::End));
    assert_eq!(guest.stop(Cause::Failure, 9), None, "it has ended");
    assert!(!guest.is_resetting());
}

#[test]
fn a_guest_that_is_being_restarted_can_not_be_stopped() {
    let guest = Lifecycle::new(1, rules(Restart::Always, 5, 100));
    assert_eq!(guest.stop(Cause::Reboot, 7), Some(Next::Restart));
    assert!(!guest.is_resetting(), "its vCPU still runs");
    assert_eq!(guest.note_rest(), Some(Next::Restart));
    assert!(guest.is_resetting() && !guest.all_reset());
    assert_eq!(guest.stop(Cause::Failure, 8), None);
    assert!(guest.note_reset());
    assert_eq!(guest.stop(Cause::Failure, 9), None);
    assert_eq!(guest.start(), 2);
    assert_eq!(guest.stop(Cause::Failure, 9), Some(Next::Restart), "the new life can");
}

#[test]
fn a_guest_that_fails_at_once_is_given_up() {
    let guest = Lifecycle::new(1, rules(Restart::OnFailure, 3, 100));
    let ends = [10, 20, 30, 40].map(|now| live_on(&guest, 1, Cause::Failure, now));
    assert_eq!(ends, [Next::Restart, Next::Restart, Next::Restart, Next::GiveUp]);
    assert_eq!(guest.life(), 4);
    assert!(!guest.is_running());
}

#[test]
fn restarts_that_are_long_ago_do_not_count() {
    let guest = Lifecycle::new(1, rules(Restart::OnFailure, 2, 100));
    let ends = [0, 99, 100, 198].map(|now| live_on(&guest, 1, Cause::Failure, now));
    // At 100 that of 0 is over; at 198 those of 99 and 100 are not.
    assert_eq!(ends[..3], [Next::Restart; 3]);
    assert_eq!(ends[3], Next::GiveUp);
}

proptest! {
    /// In no interval are there more restarts than the limit, and none is refused that would keep it.
    #[test]
    fn the_limit_is_that_of_every_interval(
        limit in 1..=MAX_LIMIT as u32,
        interval in 1..1000u64,
        pauses in prop::collection::vec(0..200u64, 1..200),
        vcpus in 1..5u32,
    ) {
        let guest = Lifecycle::new(vcpus, rules(Restart::OnFailure, limit, interval));
        let mut restarts: Vec<u64> = Vec::new();
        let mut now = 0;
        for pause in pauses {
            now += pause;
            let recent = restarts.iter().filter(|at| now - **at < interval).count() as u32;
            let next = live_on(&guest, vcpus, Cause::Failure, now);
            prop_assert_eq!(next, if recent < limit { Next::Restart } else { Next::GiveUp });
            if next == Next::GiveUp {
                prop_assert_eq!(guest.stop(Cause::Reboot, u64::MAX), None, "for good");
                return Ok(());
            }
            restarts.push(now);
            prop_assert_eq!(guest.life() as usize, restarts.len() + 1);
        }
    }

    /// Whatever the rules, nothing panics or overflows.
    #[test]
    fn rules_from_elsewhere_do_no_harm(limit: u32, interval: u64, times: [u64; 8]) {
        let guest = Lifecycle::new(1, rules(Restart::Always, limit, interval));
        for now in times {
            if live_on(&guest, 1, Cause::Shutdown, now) != Next::Restart {
                break;
            }
        }
    }
}
