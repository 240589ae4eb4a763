//! Windows in time: what they supply, and tasks in them.
use super::analysis::{US, guest, hart, paths, system, task, unsaid};
use crate::analysis::{Part, Verdict, analyse};
use crate::costs::MIPS;
use crate::response::{Load, Unknown, at_most, worst};
use crate::schedule::{Slot, Stream, Timetable, synchronous};
use crate::supply::{self, Supply};
use crate::system::{System, Vcpu, Window};
use proptest::prelude::*;

fn supply(frame: u64, windows: &[(u64, u64)]) -> Supply {
    let windows = windows.iter().map(|(start, length)| supply::Window { start: *start, length: *length });
    Supply::of(frame, windows.collect()).unwrap()
}

fn load(rank: u32, period: u64, cost: u64) -> Load {
    Load { rank, period, cost, deadline: period, jitter: 0, blocking: 0 }
}

/// Lipari and Bini: a task that comes when its server has just ended waits for the rest of the period.
#[test]
fn what_is_asked_for_is_there_after_the_longest_gap() {
    let third = supply(30, &[(5, 10)]);
    assert_eq!([0, 1, 10, 11, 20, 21].map(|amount| third.wait(amount)), [0, 21, 30, 51, 60, 81]);
    // Two windows of 4 and 6: gaps of 6 and of 14.
    let two = supply(30, &[(0, 4), (10, 6)]);
    assert_eq!([1, 4, 5, 10, 11].map(|amount| two.wait(amount)), [15, 18, 25, 30, 45]);
    assert_eq!([0, 1, 1 << 40].map(|amount| Supply::always().wait(amount)), [0, 1, 1 << 40]);
}

#[test]
fn windows_that_are_none_supply_nothing() {
    let of = |frame, windows: &[(u64, u64)]| {
        let list = windows.iter().map(|(start, length)| supply::Window { start: *start, length: *length });
        Supply::of(frame, list.collect())
    };
    assert_eq!(of(10, &[]), None);
    assert_eq!(of(10, &[(0, 0)]), None);
    assert_eq!(of(10, &[(0, 6), (5, 2)]), None);
    assert_eq!(of(10, &[(6, 5)]), None);
    assert_eq!(of(10, &[(6, u64::MAX)]), None);
    assert!(of(10, &[(6, 4)]).is_some());
}

#[test]
fn a_task_waits_for_its_window() {
    let third = supply(30, &[(5, 10)]);
    // 4 of 10 in each frame, and the next job is on time.
    let latest = worst(&[load(1, 60, 4)], 0, &third).unwrap();
    assert_eq!((latest.response, latest.outside), (24, 20));
    // With two of the other one, 3 each, these are 15, which are there behind two gaps.
    let latest = worst(&[load(2, 40, 3), load(1, 100, 9)], 1, &third).unwrap();
    assert_eq!((latest.response, latest.others[0], latest.outside), (55, 2, 40));
    // All that the windows have is enough for one, and no more.
    assert!(worst(&[load(1, 30, 10)], 0, &third).is_ok());
    assert_eq!(worst(&[load(1, 30, 11)], 0, &third), Err(Unknown::Overload));
    assert_eq!(at_most(&[load(1, 30, 11)], 0, &third), None);
}

/// An RTOS with 4 ms of each 10, and Linux with the rest.
fn windowed(tasks: &[crate::system::Task], windows: &[(usize, u64, u64)]) -> System {
    let windows = windows.iter().map(|(guest, start, length)| Window {
        hart: 0,
        guest: *guest,
        start_ns: start * US,
        length_ns: length * US,
    });
    System {
        frame_ns: 10_000 * US,
        windows: windows.collect(),
        ..system("time-window", &[guest("rtos", 10, tasks), guest("linux", 1, &[])])
    }
}

#[test]
fn a_response_counts_the_time_outside_of_windows_and_their_beginning() {
    let system = windowed(&[task(1, 20_000, 300)], &[(0, 0, 4_000), (1, 4_000, 6_000)]);
    let answer = hart(&system);
    let task = &answer.tasks[0];
    let opening = paths().on(&system, 0, 10, MIPS).opening_ns;
    assert!((15 * US..30 * US).contains(&opening), "{opening}");
    // 6 ms are Linux's.
    assert!(task.parts.contains(&Part::Outside { ns: 6_000 * US + opening }), "{task:?}");
    assert_eq!(task.parts.iter().map(Part::ns).sum::<u64>(), task.response_ns.unwrap());
    assert_eq!(task.verdict, Verdict::Met);
    // What is left is Linux's windows, without their beginning.
    assert_eq!(answer.left_ppm(), 600_000 - opening / 10);
    // What other presets say of the same tasks.
    let plain = System { policy: ainori_sched::Policy::preset("spumone", 1, 1_000).unwrap(), ..system };
    assert!(hart(&plain).tasks[0].response_ns < Some(400 * US));
}

#[test]
fn a_deadline_shorter_than_a_gap_is_missed() {
    let short = task(1, 5_000, 300);
    let system = windowed(std::slice::from_ref(&short), &[(0, 0, 4_000), (1, 4_000, 6_000)]);
    assert!(matches!(hart(&system).tasks[0].verdict, Verdict::Missed { .. }));
    let often = [(0, 0, 2_000), (1, 2_000, 3_000), (0, 5_000, 2_000), (1, 7_000, 3_000)];
    assert_eq!(hart(&windowed(&[short], &often)).tasks[0].verdict, Verdict::Met);
}

#[test]
fn other_guests_tasks_have_windows_of_their_own() {
    let mut both = windowed(&[task(1, 20_000, 300)], &[(0, 0, 4_000), (1, 4_000, 6_000)]);
    let alone = hart(&both).tasks[0].response_ns;
    both.guests[1].tasks = vec![task(9, 10_000, 5_000)];
    let answer = hart(&both);
    assert_eq!(answer.tasks[0].response_ns, alone, "whatever the other one does");
    assert_eq!(answer.left_ppm(), 0);
}

#[test]
fn who_has_no_window_or_one_that_is_over_at_once_has_no_bound() {
    let tasks = [task(1, 20_000, 300)];
    assert!(unsaid(&windowed(&tasks, &[(1, 0, 6_000)]), 0).contains("rtos has no window on hart 0"));
    let short = windowed(&tasks, &[(0, 0, 5), (1, 4_000, 6_000)]);
    assert_eq!(hart(&short).tasks[0].verdict, Verdict::Unbounded(Unknown::Overload));
    let mut two = windowed(&tasks, &[(0, 0, 4_000)]);
    two.guests[0].vcpus.push(Vcpu { home: 0, harts: 1 });
    assert!(unsaid(&two, 0).contains("several vCPUs of rtos"));
}

/// An RTOS with a vCPU on each of two harts, a task of 300 us on the first, and these windows of its own.
fn spread(blocking: u64, here: (u64, u64), there: (u64, u64)) -> System {
    let rtos = (0, here.0, here.1);
    let mut system = windowed(&[task(1, 20_000, 300)], &[rtos]);
    system.guests[0].tasks[0].blocking_ns = blocking * US;
    system.guests[0].tasks[0].remote_blocking_ns = blocking * US;
    system.guests[0].vcpus.push(Vcpu { home: 1, harts: 2 });
    system.windows.push(Window { hart: 1, guest: 0, start_ns: there.0 * US, length_ns: there.1 * US });
    system
}

/// Who holds a lock may lose its hart, until its next window begins: who wants that lock spins for so long, if it is in a window.
#[test]
fn a_guest_waits_for_its_vcpus_that_are_outside_of_their_windows() {
    let response = |system: &System| hart(system).tasks[0].response_ns.unwrap();
    let together = spread(10, (0, 4_000), (0, 4_000));
    let apart = spread(10, (0, 4_000), (1_000, 3_000));
    let siblings = |system: &System| {
        let parts = hart(system).tasks[0].parts.clone();
        parts.iter().find_map(|part| if let Part::Siblings { ns } = part { Some(*ns) } else { None })
    };
    assert_eq!(siblings(&together), None);
    // Both windows take as long to begin.
    assert_eq!(siblings(&apart), Some(1_000 * US));
    assert_eq!(response(&apart), response(&together) + 1_000 * US);
    // Before and behind: all but what both have.
    assert_eq!(siblings(&spread(10, (2_000, 4_000), (3_000, 2_000))), Some(2_000 * US));
    // Who needs nobody is never kept waiting.
    assert_eq!(
        response(&spread(0, (0, 4_000), (1_000, 3_000))),
        response(&spread(0, (0, 4_000), (0, 4_000)))
    );
    // Another one that has no window at all is waited for all the time.
    let mut never = apart.clone();
    never.windows.pop();
    assert_eq!(hart(&never).tasks[0].verdict, Verdict::Unbounded(Unknown::Overload));
}

/// Beside the least urgent guest the hypervisor's work comes most often, and guests of priority 0 and 1 are that alike there.
#[test]
fn who_is_least_urgent_is_who_hides_no_housework() {
    let response = |priority: u8| {
        let mut system = windowed(&[task(1, 20_000, 300)], &[(0, 0, 4_000), (1, 4_000, 6_000)]);
        system.housekeeping_hart = 0;
        system.guests[0].priorities = vec![priority; 2];
        system.guests[1].priorities = vec![0; 2];
        hart(&system).tasks[0].response_ns.unwrap()
    };
    assert_eq!(response(0), response(1));
    assert!(response(2) < response(1));
}

/// Windows by their gaps and lengths, and what is left of the frame behind them.
fn frame() -> impl Strategy<Value = (u64, Vec<(u64, u64)>)> {
    (prop::collection::vec((0..12u64, 1..12u64), 1..5), 0..12u64).prop_map(|(pieces, rest)| {
        let mut end = 0;
        let mut windows = Vec::new();
        for (gap, length) in pieces {
            windows.push((end + gap, length));
            end += gap + length;
        }
        (end + rest, windows)
    })
}

proptest! {
    /// What a supply has without others, moment by moment.
    #[test]
    fn what_is_there_without_others_is_counted_by_moments((length, windows) in frame(), others in prop::collection::vec(frame(), 0..3)) {
        let is_in = |windows: &[(u64, u64)], time: u64| windows.iter().any(|(start, length)| (*start..start + length).contains(&time));
        let longest = others.iter().map(|(length, _)| *length).fold(length, u64::max);
        let supplies: Vec<Supply> = others.iter().map(|(_, windows)| supply(longest, windows)).collect();
        let moments = (0..longest).filter(|time| is_in(&windows, *time) && !others.iter().all(|(_, windows)| is_in(windows, *time)));
        prop_assert_eq!(supply(longest, &windows).without(&supplies), moments.count() as u64);
    }

    /// The wait is the longest of those from each moment of the frame on, and the steady supply behind the delay is never more than there is.
    #[test]
    fn a_wait_is_the_longest_from_any_time((frame, windows) in frame(), amount in 1..200u64) {
        let is_there = |time: u64| windows.iter().any(|(start, length)| (*start..start + length).contains(&(time % frame)));
        let from = |begin: u64| {
            let mut left = amount;
            let mut time = begin;
            while left > 0 {
                left -= u64::from(is_there(time));
                time += 1;
            }
            time - begin
        };
        let supply = supply(frame, &windows);
        let longest = (0..frame).map(from).max().unwrap();
        prop_assert_eq!(supply.wait(amount), longest);
        let in_frame: u64 = windows.iter().map(|(_, length)| length).sum();
        prop_assert!(longest <= supply.delay() + (amount * frame).div_ceil(in_frame));
    }

    /// No job of a start at any moment of the frame ends later than its bound, nor than the coarse one.
    #[test]
    fn no_schedule_in_windows_is_worse_than_the_bound(
        (frame, windows) in frame(),
        all in prop::collection::vec((prop::sample::select(vec![20u64, 30, 40, 60, 120]), 1..15u64), 1..4),
        phase in any::<prop::sample::Index>(),
    ) {
        let loads: Vec<Load> = all.iter().zip(0..).map(|((period, cost), rank)| load(rank, *period, *cost)).collect();
        let streams: Vec<Stream> = loads
            .iter()
            .map(|load| Stream { rank: load.rank, period: load.period, cost: load.cost, guest: 0, switch: 0 })
            .collect();
        // The same windows in a frame that begins so much later.
        let phase = phase.index(frame as usize) as u64;
        let mut slots = Vec::new();
        for (start, length) in &windows {
            let (from, to) = ((start + frame - phase) % frame, (start + length + frame - phase) % frame);
            match to {
                0 => slots.push((from, frame)),
                _ if from < to => slots.push((from, to)),
                _ => slots.extend([(0, to), (from, frame)]),
            }
        }
        slots.sort_unstable();
        let timetable = Timetable {
            frame,
            windows: slots.into_iter().map(|(from, to)| Slot { guest: 0, from, to }).collect(),
        };
        let schedule = synchronous(&streams, &timetable, 8 * 120 * frame);
        let supply = supply(frame, &windows);
        for (task, seen) in schedule.longest.iter().enumerate() {
            if let Ok(bound) = worst(&loads, task, &supply) {
                prop_assert!(*seen <= bound.response, "{}: {} of {}", task, seen, bound.response);
                let coarse = at_most(&loads, task, &supply);
                prop_assert!(coarse.is_none_or(|coarse| bound.response <= coarse), "{:?} {:?}", bound, coarse);
            }
        }
    }
}

/// The system's windows are those of the picture.
#[test]
fn the_picture_has_the_windows() {
    let system = windowed(&[task(1, 20_000, 300)], &[(0, 6_000, 4_000)]);
    let answer = &analyse(&system, &paths(), MIPS)[0];
    let slices = synchronous(&answer.streams, &answer.windows, 20_000 * US).slices;
    assert_eq!(slices[0].from, 6_000 * US);
}

/// Windows that come and go while nobody has a job are no work: a day of them took a picture minutes.
#[test]
fn a_day_of_short_windows_is_soon_drawn() {
    let day = 86_400_000_000 * US;
    let stream = Stream { rank: 1, period: day, cost: 50 * US, guest: 0, switch: 0 };
    let slot = Slot { guest: 0, from: 0, to: 100 * US };
    let timetable = Timetable { frame: 200 * US, windows: vec![slot] };
    let schedule = synchronous(&[stream], &timetable, 2 * day);
    assert_eq!(schedule.ended, [2]);
    // One that waits for a window that never comes is given up.
    let timetable = Timetable { windows: vec![Slot { guest: 1, ..slot }], ..timetable };
    assert_eq!(synchronous(&[stream], &timetable, 2 * day).ended, [0]);
}
