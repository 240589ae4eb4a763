//! Calendars, and cores that keep to them.

use ainori_limits::VCPU_SLOTS;
use proptest::prelude::*;

use super::*;

fn window(start: Time, length: Time, level: impl Into<Option<u8>>) -> Window {
    Window { start, length, level: level.into() }
}

#[test]
fn a_level_is_that_of_the_window_or_the_other_one() {
    let windows = [window(0, 10, 3), window(10, 5, None), window(40, 10, 5)];
    let calendar = Calendar::new(50, &windows, Some(1)).expect("a calendar");
    let level = |time| calendar.level_at(time);
    assert_eq!(
        [0, 9, 10, 14, 15, 39, 40, 49].map(level),
        [3, 3, 0, 0, 1, 1, 5, 5].map(|n| (n > 0).then_some(n))
    );
    assert_eq!([50, 64, 65, 99].map(level), [Some(3), None, Some(1), Some(5)]);
    let next = |time| calendar.next_change(time);
    assert_eq!([0, 9, 10, 15, 39, 40, 49, 50].map(next), [10, 10, 15, 40, 40, 50, 50, 60].map(Some));
}

#[test]
fn a_window_that_changes_nothing_is_no_change() {
    let windows = [window(0, 10, 3), window(20, 5, 1), window(40, 10, 3)];
    let calendar = Calendar::new(50, &windows, Some(1)).expect("a calendar");
    assert_eq!(calendar.next_change(10), Some(40));
    assert_eq!(calendar.next_change(40), Some(60), "the last window goes on in the next period");
    let always = [window(0, 50, 1)];
    assert_eq!(Calendar::new(50, &always, Some(2)).expect("a calendar").next_change(7), None);
    assert_eq!(Calendar::new(50, &[], Some(2)).expect("a calendar").next_change(7), None);
}

#[test]
fn beyond_the_end_of_time_nothing_changes() {
    let windows = [window(0, 3, 1)];
    let calendar = Calendar::new(10, &windows, None).expect("a calendar");
    let last = Time::MAX - Time::MAX % 10;
    assert_eq!(calendar.next_change(last), Some(last + 3));
    assert_eq!(calendar.next_change(last + 3), None);
}

#[test]
fn what_is_wrong_with_a_calendar_is_said() {
    let why = |period, windows: &[Window], otherwise| {
        Calendar::new(period, windows, otherwise).expect_err("no calendar").to_string()
    };
    assert_eq!(why(0, &[], None), "the period of 0 ticks is not from 1 to 9223372036854775807");
    assert_eq!(
        why(1 << 63, &[], None),
        "the period of 9223372036854775808 ticks is not from 1 to 9223372036854775807"
    );
    assert_eq!(why(50, &[], Some(32)), "outside of all windows: level 32 is not below 32");
    assert_eq!(why(50, &[window(0, 10, 1), window(10, 5, 32)], None), "window 1: level 32 is not below 32");
    assert_eq!(why(50, &[window(10, 0, 1)], None), "window 0 is shorter than a tick");
    assert_eq!(
        why(50, &[window(10, 41, 1)], None),
        "window 0 ends after the period; the rest is a window of its own"
    );
    assert_eq!(
        why(50, &[window(0, 5, 1), window(49, Time::MAX, 1)], None),
        "window 1 ends after the period; the rest is a window of its own"
    );
    assert_eq!(
        why(50, &[window(0, 10, 1), window(9, 5, 1)], None),
        "window 1 begins before the one ahead of it ends"
    );
    assert_eq!(
        why(50, &[window(20, 10, 1), window(0, 5, 1)], None),
        "window 1 begins before the one ahead of it ends"
    );
}

fn level() -> impl Strategy<Value = Option<u8>> {
    prop_oneof![Just(None), Just(Some(1)), Just(Some(2))]
}

/// Windows, whose starts are counted from the ends of those before, what is left of the period behind them, and the level in between.
fn pieces() -> impl Strategy<Value = (Vec<Window>, Time, Option<u8>)> {
    let window = (0..4u64, 1..4u64, level()).prop_map(|(gap, length, level)| window(gap, length, level));
    (prop::collection::vec(window, 0..5), 0..4u64, level())
        .prop_filter("a period isn't 0", |(pieces, rest, _)| !pieces.is_empty() || *rest != 0)
}

proptest! {
    /// A calendar says the same as a list of its ticks.
    #[test]
    fn a_calendar_is_a_list_of_ticks((pieces, rest, otherwise) in pieces()) {
        let mut ticks = Vec::new();
        let mut windows = Vec::new();
        for piece in pieces {
            ticks.extend((0..piece.start).map(|_| otherwise));
            windows.push(Window { start: ticks.len() as Time, ..piece });
            ticks.extend((0..piece.length).map(|_| piece.level));
        }
        ticks.extend((0..rest).map(|_| otherwise));

        let period = ticks.len();
        let calendar = Calendar::new(period as Time, &windows, otherwise).expect("a calendar");
        let level = |time: usize| ticks[time % period];
        for time in 0..2 * period {
            prop_assert_eq!(calendar.level_at(time as Time), level(time));
            let next = (time + 1..=time + period).find(|next| level(*next) != level(time));
            prop_assert_eq!(calendar.next_change(time as Time), next.map(|next| next as Time));
        }
    }

    /// A core that asks the calendar whenever that says so runs its vCPUs in their windows only, and there all the time; and they
    /// have equal shares of that, however short the windows are.
    #[test]
    fn vcpus_keep_to_their_windows_and_take_turns_in_them(
        equals in 1..4u8,
        gap in 1..3 * QUANTUM,
        length in 1..3 * QUANTUM,
    ) {
        let windows = [window(gap, length, 5)];
        let calendar = Calendar::new(gap + length, &windows, None).expect("a calendar");
        let mut core = Scheduler::new(policy("spumone"));
        let gated: VcpuSet = (0..equals).map(VcpuId).collect();
        for v in gated {
            core.adopt(v, Class { priority: 5, guest: 0 });
            core.wake(v);
        }
        core.adopt(RT, Class { priority: 2, guest: 1 });
        core.wake(RT);

        let (mut now, mut change) = (0, 0);
        let mut ran = [0; VCPU_SLOTS];
        let end = 30 * (gap + length);
        while now < end {
            if now == change {
                let again = core.set_levels(gated, calendar.level_at(now));
                prop_assert!(again.schedule);
                change = calendar.next_change(now).expect("it changes");
            }
            let decision = core.schedule(now);
            let v = decision.run.expect("somebody is awake");
            prop_assert_eq!(gated.contains(v), calendar.level_at(now).is_some());
            let next = decision.alarm.unwrap_or(Time::MAX).min(change);
            ran[v.index()] += next - now;
            now = next;
        }
        prop_assert_eq!(ran[RT.index()], 30 * gap);
        let shares: Vec<Time> = gated.into_iter().map(|v| ran[v.index()]).collect();
        let (least, most) = (shares.iter().min().expect("one"), shares.iter().max().expect("one"));
        prop_assert!(most - least <= 2 * QUANTUM, "{:?}", shares);
    }
}
