//! Responses on one hart: known examples, and random sets against the schedule of a synchronous start.
use crate::response::{Load, Unknown, at_most, worst};
use crate::schedule::{Stream, Timetable, synchronous};
use crate::supply::Supply;
use proptest::prelude::*;

fn load(rank: u32, period: u64, cost: u64) -> Load {
    Load { rank, period, cost, deadline: period, jitter: 0, blocking: 0 }
}

fn responses(loads: &[Load]) -> Vec<u64> {
    (0..loads.len()).map(|task| worst(loads, task, &Supply::always()).unwrap().response).collect()
}

/// Burns and Wellings, "Real-Time Systems and Programming Languages", response-time analysis: task set C.
#[test]
fn a_set_that_uses_a_hart_fully() {
    let set = [load(3, 80, 40), load(1, 40, 10), load(2, 20, 5)];
    // Rate monotonic: the shortest period is the most urgent.
    let set = [Load { rank: 1, ..set[0] }, Load { rank: 2, ..set[1] }, Load { rank: 3, ..set[2] }];
    assert_eq!(responses(&set), [80, 15, 5]);
}

/// The same book, task set B: three tasks with periods of 7, 12 and 20.
#[test]
fn a_set_of_three() {
    assert_eq!(responses(&[load(3, 7, 3), load(2, 12, 3), load(1, 20, 5)]), [3, 6, 20]);
}

/// Lehoczky 1990: the first job doesn't have the longest response.
#[test]
fn a_later_job_may_be_the_latest() {
    let set = [load(2, 70, 26), load(1, 100, 62)];
    let latest = worst(&set, 1, &Supply::always()).unwrap();
    assert_eq!((latest.response, latest.jobs), (118, 5));
    assert_eq!(latest.others, [8, 0]);
    // Seven jobs in the busy period end after 114, 102, 116, 104, 118, 106 and 94.
    assert_eq!(latest.window, 4 * 100 + 118);
}

#[test]
fn who_asks_for_too_much_has_no_bound() {
    let set = [load(2, 10, 6), load(1, 20, 9)];
    assert_eq!(worst(&set, 0, &Supply::always()).unwrap().response, 6);
    assert_eq!(worst(&set, 1, &Supply::always()), Err(Unknown::Overload));
    // All of it is just enough, unless jobs come late.
    let set = [load(2, 10, 6), load(1, 20, 8)];
    assert_eq!(worst(&set, 1, &Supply::always()).unwrap().response, 20);
    let late = [Load { jitter: 1, ..set[0] }, set[1]];
    assert_eq!(worst(&late, 1, &Supply::always()), Err(Unknown::TooLong));
    let huge = [load(2, u64::MAX, u64::MAX), load(1, 2, 1)];
    assert_eq!(worst(&huge, 1, &Supply::always()), Err(Unknown::Overload));
}

/// A busy period of forty thousand jobs is looked at as a whole; one of more has a bound all the same.
#[test]
fn long_busy_periods_have_a_bound() {
    let blocked = |blocking| Load { blocking, deadline: u64::MAX, ..load(1, 10, 5) };
    let long = worst(&[blocked(200_000)], 0, &Supply::always()).unwrap();
    assert_eq!((long.response, long.jobs), (200_005, 1));
    let set = [load(2, 1_000, 499), blocked(1 << 40)];
    assert_eq!(worst(&set, 1, &Supply::always()), Err(Unknown::TooLong));
    let bound = at_most(&set, 1, &Supply::always()).unwrap();
    // Of each 1,000 it has 501, and a job of the other one comes on top.
    let least = (1u64 << 40) * 1_000 / 501;
    assert!((least..least + 2_000).contains(&bound), "{bound} {least}");
    assert_eq!(at_most(&[load(2, 10, 6), load(1, 20, 9)], 1, &Supply::always()), None);
}

/// Tindell, Burns and Wellings: jitter of the more urgent brings its jobs nearer to each other, and one's own counts as response.
#[test]
fn jitter_and_blocking_are_a_part_of_it() {
    let mut set = [load(2, 10, 3), load(1, 20, 5)];
    assert_eq!(worst(&set, 1, &Supply::always()).unwrap().response, 8);
    set[0].jitter = 3;
    assert_eq!(worst(&set, 1, &Supply::always()).unwrap().response, 11);
    set[1].jitter = 2;
    assert_eq!(worst(&set, 1, &Supply::always()).unwrap().response, 13);
    set[1].blocking = 4;
    assert_eq!(worst(&set, 1, &Supply::always()).unwrap().response, 17);
    assert_eq!(worst(&set, 0, &Supply::always()).unwrap().response, 6, "who is less urgent doesn't matter");
}

#[test]
fn equals_wait_for_each_other() {
    assert_eq!(responses(&[load(1, 10, 2), load(1, 15, 3)]), [5, 5]);
}

fn sets() -> impl Strategy<Value = Vec<Load>> {
    // Divisors of 240, so that a hyperperiod is short.
    let periods = prop::sample::select(vec![8u64, 10, 12, 15, 16, 20, 24, 30, 40, 48, 60, 80, 120, 240]);
    let task = (periods, 1..25u64, 0..5u64, 0..5u64);
    prop::collection::vec(task, 1..6).prop_map(|tasks| {
        let all = tasks.into_iter().enumerate();
        all.map(|(index, (period, cost, jitter, blocking))| Load {
            rank: index as u32,
            period,
            cost: cost.min(period),
            deadline: period,
            jitter,
            blocking,
        })
        .collect()
    })
}

/// The longest response of a task by running what the theory says is the worst, a unit at a time: who is less urgent has just begun what blocks, and of each task a job
/// that has arrived as early as it may becomes ready then, and the next ones as soon as they can. Equals go first.
fn exact(loads: &[Load], task: usize) -> u64 {
    let counts: Vec<usize> =
        (0..loads.len()).filter(|other| *other == task || loads[*other].rank >= loads[task].rank).collect();
    let mut ended = vec![0; loads.len()];
    let mut left: Vec<u64> = loads.iter().map(|load| load.cost).collect();
    let mut longest = 0;
    for now in loads[task].blocking.. {
        let is_ready = |other: &usize| ended[*other] * loads[*other].period <= now + loads[*other].jitter;
        let ready = counts.iter().copied().filter(is_ready);
        let Some(runs) = ready.max_by_key(|other| (loads[*other].rank, *other != task)) else { break };
        left[runs] -= 1;
        if left[runs] == 0 {
            if runs == task {
                longest = longest.max(now + 1 + loads[task].jitter - ended[task] * loads[task].period);
            }
            ended[runs] += 1;
            left[runs] = loads[runs].cost;
            // All who are ahead were done when it got its last turn: if it has no other job by now, its busy period is over.
            if runs == task && ended[task] * loads[task].period >= now + 1 + loads[task].jitter {
                break;
            }
        }
    }
    longest
}

proptest! {
    /// The bound is what comes in the worst case, and no more; the bound without a search isn't less.
    #[test]
    fn the_bound_is_exact(set in sets()) {
        for task in 0..set.len() {
            let coarse = at_most(&set, task, &Supply::always());
            if let Ok(bound) = worst(&set, task, &Supply::always()) {
                prop_assert_eq!(bound.response, exact(&set, task), "{:?} {}", set, task);
                prop_assert!(coarse.is_none_or(|coarse| coarse >= bound.response), "{:?} {}", set, task);
            }
        }
    }

    /// Without jitter and blocking a synchronous start is the worst case.
    #[test]
    fn a_synchronous_start_shows_the_bound(set in sets()) {
        let plain: Vec<Load> = set.iter().map(|load| Load { jitter: 0, blocking: 0, ..*load }).collect();
        let stream = |load: &Load| Stream { rank: load.rank, period: load.period, cost: load.cost, guest: 0, switch: 0 };
        let streams: Vec<Stream> = plain.iter().map(stream).collect();
        let schedule = synchronous(&streams, &Timetable::default(), 4 * 240);
        for task in 0..set.len() {
            if let Ok(bound) = worst(&plain, task, &Supply::always()) {
                prop_assert_eq!(bound.response, schedule.longest[task], "{:?} {}", plain, task);
            }
        }
    }

    /// More of anything never makes a response shorter.
    #[test]
    fn responses_are_monotone(set in sets(), which: prop::sample::Index, what in 0..4u8) {
        let changed = which.index(set.len());
        let mut more = set.clone();
        match what {
            0 => more[changed].cost += 1,
            1 => more[changed].jitter += 3,
            2 => more[changed].blocking += 3,
            _ => more[changed].period -= 1,
        }
        for task in 0..set.len() {
            let before = worst(&set, task, &Supply::always()).map_or(u64::MAX, |bound| bound.response);
            let after = worst(&more, task, &Supply::always()).map_or(u64::MAX, |bound| bound.response);
            prop_assert!(after >= before, "{:?} {:?} {}", set, more, task);
        }
    }

    /// A window is what its parts are.
    #[test]
    fn a_window_is_the_sum_of_its_parts(set in sets()) {
        for task in 0..set.len() {
            let Ok(bound) = worst(&set, task, &Supply::always()) else { continue };
            let others: u64 = bound.others.iter().zip(&set).map(|(jobs, load)| jobs * load.cost).sum();
            prop_assert_eq!(bound.window, set[task].blocking + bound.jobs * set[task].cost + others);
            prop_assert_eq!(bound.response, bound.window + set[task].jitter - (bound.jobs - 1) * set[task].period);
        }
    }

    #[test]
    fn no_numbers_are_too_large(raw in prop::collection::vec((1..u64::MAX, 0..u64::MAX, 0..u64::MAX, 0..u64::MAX), 1..4)) {
        let set: Vec<Load> = raw
            .iter()
            .zip(0..)
            .map(|((period, cost, jitter, blocking), rank)| Load {
                rank,
                period: *period,
                cost: *cost,
                deadline: *period,
                jitter: *jitter,
                blocking: *blocking,
            })
            .collect();
        for task in 0..set.len() {
            let _ = worst(&set, task, &Supply::always());
        }
    }
}
