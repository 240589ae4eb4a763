//! Calendars, and cores that keep to them.

use ainori_limits::VCPU_SLOTS;
use proptest::prelude::*;

use super::*;

fn window(start: Time, length: Time, guest: u8) -> Window {
    Window { start, length, guest }
}

#[test]
fn a_core_is_the_windows_guests_or_nobodys() {
    let windows = [window(0, 10, 3), window(10, 5, 4), window(40, 10, 5)];
    let calendar = Calendar::new(50, &windows).expect("a calendar");
    let guests = |times: [Time; 8]| times.map(|time| calendar.at(time).guest);
    assert_eq!(
        guests([0, 9, 10, 14, 15, 39, 40, 49]),
        [3, 3, 4, 4, 0, 0, 5, 5].map(|n| (n > 0).then_some(n))
    );
    assert_eq!(
        guests([50, 64, 65, 99, 100, 110, 115, 140]),
        [3, 4, 0, 5, 3, 4, 0, 5].map(|n| (n > 0).then_some(n))
    );
    assert_eq!(
        [0, 9, 10, 15, 39, 40, 49, 50].map(|time| calendar.at(time).until),
        [10, 10, 15, 40, 40, 50, 50, 60]
    );
    assert_eq!(Calendar::EMPTY.at(7), Piece { guest: None, until: Time::MAX });
}

#[test]
fn a_piece_may_last_to_the_end_of_time() {
    let windows = [window(0, 3, 1)];
    let calendar = Calendar::new(10, &windows).expect("a calendar");
    let last = Time::MAX - Time::MAX % 10;
    assert_eq!(calendar.at(last), Piece { guest: Some(1), until: last + 3 });
    assert_eq!(calendar.at(last + 3), Piece { guest: None, until: Time::MAX });
}

#[test]
fn what_is_wrong_with_a_calendar_is_said() {
    let why = |frame, windows: &[Window]| Calendar::new(frame, windows).expect_err("no calendar").to_string();
    assert_eq!(why(0, &[]), "the frame is shorter than a tick");
    assert_eq!(why(50, &[window(10, 0, 1)]), "window 0 is shorter than a tick");
    let late = "ends after the frame; the rest is a window of its own";
    assert_eq!(why(50, &[window(10, 41, 1)]), format!("window 0 {late}"));
    assert_eq!(why(50, &[window(0, 5, 1), window(49, Time::MAX, 1)]), format!("window 1 {late}"));
    let overlaps = "window 1 begins before the one ahead of it ends";
    assert_eq!(why(50, &[window(0, 10, 1), window(9, 5, 1)]), overlaps);
    assert_eq!(why(50, &[window(20, 10, 1), window(0, 5, 1)]), overlaps);
}

/// A frame: windows, whose starts are counted from the ends of those before, and what is left behind them.
fn frame() -> impl Strategy<Value = (Vec<Window>, Time)> {
    let window = (0..4u64, 1..4u64, 0..3u8).prop_map(|(gap, length, guest)| window(gap, length, guest));
    (prop::collection::vec(window, 0..5), 0..4u64)
        .prop_filter("a frame isn't 0", |(pieces, rest)| !pieces.is_empty() || *rest != 0)
}

/// The frame's windows, `scale` times as long, and whose each `scale` of its ticks is.
fn unfolded((pieces, rest): &(Vec<Window>, Time), scale: Time) -> (Vec<Window>, Vec<Option<u8>>) {
    let (mut owners, mut windows) = (Vec::new(), Vec::new());
    for piece in pieces {
        owners.extend((0..piece.start).map(|_| None));
        windows.push(window(owners.len() as Time * scale, piece.length * scale, piece.guest));
        owners.extend((0..piece.length).map(|_| Some(piece.guest)));
    }
    owners.extend((0..*rest).map(|_| None));
    (windows, owners)
}

/// What happens to a vCPU at a time.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Wake(u8),
    Sleep(u8),
    /// It sleeps for so long.
    Nap(u8, Time),
    Yield,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        3 => (0..VCPUS).prop_map(Deed::Wake),
        1 => (0..VCPUS).prop_map(Deed::Sleep),
        2 => (0..VCPUS, 0..3 * QUANTUM).prop_map(|(v, time)| Deed::Nap(v, time)),
        1 => Just(Deed::Yield),
    ]
}

/// vCPUs of three guests, dealt out in turn.
const VCPUS: u8 = 7;

fn guest_of(v: u8) -> u8 {
    v % 3
}

/// The level of a guest's vCPUs in its windows.
fn level_of(guest: u8) -> u8 {
    policy("time-window").level(Class { priority: 5 * guest, guest })
}

fn vcpus_of(guest: Option<u8>) -> VcpuSet {
    (0..VCPUS).filter(|v| Some(guest_of(*v)) == guest).map(VcpuId).collect()
}

/// A window begins: these vCPUs have this level, and all others none.
fn open_window(core: &mut Scheduler, whose: VcpuSet, level: u8) -> AskAgain {
    let mut again = set_levels(core, core.owned() - whose, None, 2);
    again |= set_levels(core, whose, Some(level), 2);
    again
}

proptest! {
    /// A calendar says the same as a list of its ticks.
    #[test]
    fn a_calendar_is_a_list_of_ticks(frame in frame()) {
        let (windows, owners) = unfolded(&frame, 1);
        let length = owners.len();
        let calendar = Calendar::new(length as Time, &windows).expect("a calendar");
        for time in 0..2 * length {
            let piece = calendar.at(time as Time);
            prop_assert_eq!(piece.guest, owners[time % length]);
            let until = piece.until as usize;
            prop_assert!(until > time && until <= time + length);
            prop_assert!((time..until).all(|time| owners[time % length] == piece.guest));
        }
    }

    /// A core that asks the calendar when that says so, against a model that has no run queue. In a window somebody of its guest runs if anybody of it has something
    /// to do, and nobody else ever; who is woken outside, or whose timer runs out there, has not forgotten it when a window begins; and a timer outside is none that the
    /// core is to be woken for.
    #[test]
    fn a_core_runs_each_guest_in_its_windows_only_and_nothing_is_lost(
        frame in frame(),
        deeds in prop::collection::vec((0..2 * QUANTUM, deed()), 0..60),
    ) {
        let (windows, owners) = unfolded(&frame, QUANTUM);
        let length = owners.len() as Time * QUANTUM;
        let calendar = Calendar::new(length, &windows).expect("a calendar");
        let owner = |now: Time| owners[(now % length / QUANTUM) as usize];

        let mut core = Scheduler::new(policy("time-window"));
        for v in 0..VCPUS {
            core.adopt(VcpuId(v), Class { priority: 5 * guest_of(v), guest: guest_of(v) });
        }
        let (mut awake, mut timers) = ([false; VCPUS as usize], [None::<Time>; VCPUS as usize]);
        let (mut now, mut until) = (0, 0);
        let mut waiting: Vec<(Time, Deed)> = Vec::new();
        let mut at = 0;
        for (gap, deed) in deeds {
            at += gap;
            waiting.push((at, deed));
        }
        let end = at + 2 * length;
        let mut deeds = waiting.into_iter().peekable();
        while now < end {
            if now >= until {
                let piece = calendar.at(now);
                let level = piece.guest.map_or(0, level_of);
                let _ = open_window(&mut core, vcpus_of(piece.guest), level);
                until = piece.until;
            }
            while let Some((_, deed)) = deeds.next_if(|(at, _)| *at <= now) {
                match deed {
                    Deed::Wake(v) => {
                        core.wake(VcpuId(v));
                        (awake[usize::from(v)], timers[usize::from(v)]) = (true, None);
                    }
                    Deed::Sleep(v) => {
                        core.sleep(VcpuId(v));
                        awake[usize::from(v)] = false;
                    }
                    Deed::Nap(v, time) => {
                        core.sleep(VcpuId(v));
                        core.set_timer(VcpuId(v), now + time);
                        (awake[usize::from(v)], timers[usize::from(v)]) = (false, Some(now + time));
                    }
                    Deed::Yield => core.yield_now(),
                }
            }
            // As the kernel: whoever the core sees is woken when it is due.
            let first_due = |core: &Scheduler| core.timers(0).find(|(_, at)| *at <= now).map(|(v, _)| v);
            while let Some(v) = first_due(&core) {
                core.expire(v);
                prop_assert_eq!(Some(guest_of(v.0)), owner(now));
                prop_assert!(timers[v.index()].take().is_some_and(|at| at <= now));
                awake[v.index()] = true;
            }
            let due = |v: u8| timers[usize::from(v)].is_some_and(|at| at <= now);
            prop_assert!(!(0..VCPUS).any(|v| Some(guest_of(v)) == owner(now) && due(v)), "a timer was forgotten");

            let decision = core.schedule(now);
            let ready = (0..VCPUS).any(|v| Some(guest_of(v)) == owner(now) && awake[usize::from(v)]);
            prop_assert_eq!(decision.run.is_some(), ready);
            if let Some(v) = decision.run {
                prop_assert!(awake[v.index()]);
                prop_assert_eq!(Some(guest_of(v.0)), owner(now));
            }
            let timer = core.timers(0).map(|(_, at)| at).min();
            let events = [decision.alarm, timer, deeds.peek().map(|(at, _)| *at)];
            now = events.into_iter().flatten().chain([until, end]).min().expect("there is the end");
        }
    }

    /// The vCPUs of a guest have equal shares of its windows, however short those are.
    #[test]
    fn vcpus_of_a_guest_take_turns_in_its_windows(
        equals in 1..4u8,
        gap in 1..3 * QUANTUM,
        length in 1..3 * QUANTUM,
    ) {
        let windows = [window(gap, length, 0)];
        let calendar = Calendar::new(gap + length, &windows).expect("a calendar");
        let mut core = Scheduler::new(policy("time-window"));
        let its: VcpuSet = (0..equals).map(VcpuId).collect();
        for v in its {
            core.adopt(v, Class { priority: 5, guest: 0 });
            core.wake(v);
        }
        core.adopt(RT, Class { priority: 9, guest: 1 });
        core.wake(RT);

        let (mut now, mut until) = (0, 0);
        let mut ran = [0; VCPU_SLOTS];
        let end = 30 * (gap + length);
        while now < end {
            if now == until {
                let piece = calendar.at(now);
                let whose = if piece.guest.is_some() { its } else { VcpuSet::EMPTY };
                prop_assert!(open_window(&mut core, whose, 5).schedule || now == 0);
                until = piece.until;
            }
            let decision = core.schedule(now);
            prop_assert_eq!(decision.run.is_some(), calendar.at(now).guest.is_some());
            let next = decision.alarm.unwrap_or(Time::MAX).min(until);
            if let Some(v) = decision.run {
                ran[v.index()] += next - now;
            }
            now = next;
        }
        prop_assert_eq!(ran[RT.index()], 0);
        let shares: Vec<Time> = its.into_iter().map(|v| ran[v.index()]).collect();
        prop_assert_eq!(shares.iter().sum::<Time>(), 30 * length);
        let (least, most) = (shares.iter().min().expect("one"), shares.iter().max().expect("one"));
        prop_assert!(most - least <= 2 * QUANTUM, "{:?}", shares);
    }
}
