//! A set of tasks from a seed.
//!
//! The tasks are FreeRTOS's (`task1=...` of guests/freertos); all of a guest arrive at once at first. Beside them somebody less urgent computes or traps on all harts, as a Linux
//! does that has always something to do.
use super::spread;
use crate::{Guest, System, random::rng::Rng, system::Task};

/// What tasks and RTOS ask of the hart, in percent: by turns, so that as many sets are easy as are near the edge.
pub const UTILISATIONS: [u64; 8] = [30, 45, 60, 70, 78, 85, 90, 95];
/// Periods in microseconds: their hyperperiod is 40 ms, of which a run has more than two.
const PERIODS_US: [u64; 7] = [1_000, 2_000, 4_000, 5_000, 8_000, 10_000, 20_000];
/// What FreeRTOS does for a job, in microseconds: its task becomes ready in the tick's handler, is switched to, asks for the next period, and the next task is
/// switched to. Some 900 instructions of 4 ns.
const JOB_US: u64 = 4;
/// Its tick's handler that finds nothing to do: some 250 instructions.
const TICK_US: u64 = 2;
/// When the tick's handler has to have ended where others may have the hart when it is due: it catches up.
const LATE_TICK_US: u64 = 20_000;
/// Shortest window that a manifest may have.
const LEAST_WINDOW_US: u64 = 100;
/// The longest gap at the begin of a frame that is nobody's.
const GAP_US: u64 = 50;
/// For how long one of its tasks holds back the switch to another one, where it asks for the next period: some 500 instructions.
const BLOCKING_US: u64 = 3;
/// Instructions in a microsecond of lockstep time.
pub(super) const MIPS: u64 = 250;
/// Most tasks of a guest that the demo takes.
const MOST_TASKS: u64 = 8;
/// What is measured, in milliseconds.
pub(super) const RUN_MS: u64 = 100;
/// From when on, after the guest's start: all guests have booted by then.
pub(super) const BEGIN_MS: u64 = 20;
/// A more urgent guest goes on for so much longer in milliseconds, as it prints its result then, of which the analysis knows nothing.
pub(super) const LONGER_MS: u64 = 60;

/// Presets under which something can be said, and how often there is one of them.
const PRESETS: [(u64, &str); 12] = [
    (6, "ainori"),
    (4, "spumone"),
    (2, "spumone-on-demand"),
    (2, "co-schedule"),
    (1, "listee-rt"),
    (1, "listee"),
    (1, "delayed"),
    (2, "safe-unsafe"),
    (1, "spumone-trap-based"),
    (1, "spumone-trap-based-strict"),
    (1, "spumone-trap-based-uncured"),
    (1, "balance"),
];

/// Of as many seeds, this one has windows in time instead of the preset that was drawn. It is that of no former finding.
const WINDOWED_EACH: u64 = 9;
const WINDOWED: u64 = 4;
/// The preset of these.
pub const WINDOWS: &str = "time-window";

/// Of as many seeds, this one has a guest with tasks on two harts ([`spread`]). It is that of no former finding.
const SPREAD_EACH: u64 = 9;
const SPREAD: u64 = 0;

/// A guest that computes all the time.
pub(super) const BUSY: &str = "bursts";

/// A set, and how it is run.
#[derive(Debug, Clone)]
pub struct TaskSet {
    /// The system.
    pub system: System,
    /// Instructions of a slice.
    pub q: u32,
    /// What tasks and RTOS ask of the hart, in percent.
    pub utilisation: u64,
    /// The policy.
    pub preset: &'static str,
    /// In a line.
    pub summary: String,
    /// The guests with tasks, and how many each has beside its tick.
    pub guests: Vec<(String, usize)>,
}

/// The policies under which there are sets.
pub fn presets() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(_, preset)| *preset).chain([WINDOWS])
}

/// Has the set of this seed a guest with tasks on two harts?
pub fn is_spread(seed: u64) -> bool {
    seed % SPREAD_EACH == SPREAD
}

/// The set of this seed.
pub fn set(seed: u64) -> TaskSet {
    let utilisation = UTILISATIONS[(seed % UTILISATIONS.len() as u64) as usize];
    if is_spread(seed) {
        return spread::set(seed, utilisation);
    }
    let mut rng = Rng::new(seed);
    let harts = if rng.percent(70) { 1 } else { 2 };
    let preset = match rng.weighted(&PRESETS) {
        // Nothing is said where a guest that it keeps apart has several vCPUs.
        "balance" if harts > 1 => "ainori",
        preset => preset,
    };
    let has_windows = seed % WINDOWED_EACH == WINDOWED;
    let preset = if has_windows { WINDOWS } else { preset };
    let mut system = System::on(harts).with_h().policy(preset);
    if matches!(preset, "delayed" | "safe-unsafe") {
        system = system.grace(rng.pick(&["20us", "100us", "300us"]));
    }
    let rtoses = rng.between(1, 2);
    // Two may share a hart, or have one each: then each hart is as busy.
    let are_apart = (rtoses, harts) == (2, 2) && rng.percent(50);
    let shares: Vec<Vec<u64>> = if are_apart {
        (0..rtoses).flat_map(|_| shares(&mut rng, utilisation, 1)).collect()
    } else {
        shares(&mut rng, utilisation, rtoses)
    };
    let mut guests = Vec::new();
    for index in 0..rtoses {
        // The tick may come while another guest has its window.
        let tick_deadline_us = if has_windows { LATE_TICK_US } else { 1_000 };
        // The more urgent guest outlasts the other one.
        let run_ms = RUN_MS + LONGER_MS * (rtoses - 1 - index);
        let name = format!("rtos{}", index + 1);
        let (guest, count) =
            rtos(&mut rng, (&name, 10 - 2 * index as u32), run_ms, &shares[index as usize], tick_deadline_us);
        guests.push((guest.name().to_owned(), count));
        system = system.with(guest.harts([if are_apart { index as u32 } else { 0 }]));
    }
    let busy = match rng.below(3) {
        0 => Guest::probe("chaos", &format!("seed={}", rng.below(1 << 32))).restart("always", 32, "1s"),
        _ => Guest::probe(BUSY, ""),
    };
    let busy = busy.vcpus(harts).harts(0..harts).background();
    if has_windows {
        let share = |index: u64| shares[index as usize].iter().sum::<u64>();
        let homes = (0..rtoses).map(|index| {
            (format!("rtos{}", index + 1), if are_apart { index as u32 } else { 0 }, share(index))
        });
        system = windows(&mut Rng::new(!seed), system, harts, &homes.collect::<Vec<_>>(), busy.name());
    }
    let summary = format!(
        "{utilisation} %, {preset} on {harts} harts: {}{} beside {}",
        guests.iter().map(|(name, count)| format!("{name} with {count}")).collect::<Vec<_>>().join(", "),
        if are_apart { " on a hart each" } else { "" },
        busy.name()
    );
    TaskSet { system: system.with(busy), q: rng.pick(&[149, 199, 250]), utilisation, preset, summary, guests }
}

/// Windows for RTOSes, of which each has a hart and what its tasks ask of that, in millionths; and for who is busy what is left. Mostly there are more than they ask for, so that some of
/// these sets are met.
fn windows(rng: &mut Rng, system: System, harts: u32, rtoses: &[(String, u32, u64)], busy: &str) -> System {
    let (frame, frame_us) =
        rng.pick(&[("1ms", 1_000), ("2ms", 2_000), ("2ms", 2_000), ("5ms", 5_000), ("10ms", 10_000)]);
    let mut system = system.major_frame(frame);
    for hart in 0..harts {
        let mut at = rng.between(0, GAP_US);
        let here: Vec<_> = rtoses.iter().filter(|(_, home, _)| *home == hart).collect();
        let mut lengths = Vec::new();
        for (name, _, share) in &here {
            // Others need a window, too.
            let most = (frame_us - LEAST_WINDOW_US - GAP_US) / here.len() as u64;
            let wanted = frame_us * (share + 1_000 * rng.between(50, 350)) / 1_000_000 + LEAST_WINDOW_US / 2;
            lengths.push((name.as_str(), wanted.clamp(LEAST_WINDOW_US, most)));
        }
        lengths.push((busy, frame_us - at - lengths.iter().map(|(_, length)| length).sum::<u64>()));
        // In any order, and some of them in two pieces.
        let mut pieces = Vec::new();
        for (name, length) in lengths {
            let first = if length >= 2 * LEAST_WINDOW_US && rng.percent(40) {
                rng.between(LEAST_WINDOW_US, length - LEAST_WINDOW_US)
            } else {
                length
            };
            pieces.extend(
                [(name, first), (name, length - first)].into_iter().filter(|(_, length)| *length > 0),
            );
        }
        rng.shuffle(&mut pieces);
        for (name, length_us) in pieces {
            system = system.window(hart, name, at, length_us);
            at += length_us;
        }
    }
    system
}

/// The shares of tasks, in millionths of the hart, for each guest: uniform among all with this sum (Bini and Buttazzo, "Measuring the performance of
/// schedulability tests", 2005: UUniFast).
pub(super) fn shares(rng: &mut Rng, utilisation: u64, rtoses: u64) -> Vec<Vec<u64>> {
    let count = rng.between(2, 6).max(rtoses);
    // Ticks are a part of it.
    let mut left = utilisation as f64 / 100.0 - 0.004 * rtoses as f64;
    let mut all = vec![Vec::new(); rtoses as usize];
    for index in 0..count {
        let others = count - index - 1;
        let uniform = (rng.below(1 << 32) as f64 + 1.0) / (1u64 << 32) as f64;
        let rest = if others == 0 { 0.0 } else { left * uniform.powf(1.0 / others as f64) };
        // Each guest has one, and the others are anybody's.
        let guest = if index < rtoses { index } else { rng.below(rtoses) };
        all[guest as usize].push(((left - rest) * 1e6) as u64);
        left = rest;
    }
    all
}

/// A task of this share, in millionths of the hart. What its RTOS does for a job is a part of that.
pub(super) fn task(rng: &mut Rng, index: usize, share: u64, job_us: u64) -> Task {
    let period_us = rng.pick(&PERIODS_US);
    // Nothing shorter than the job of an RTOS that only looks at something.
    let execution_us = (period_us * share / 1_000_000).clamp(job_us + 10, period_us);
    let deadline_us = match rng.below(5) {
        0 => rng.between(execution_us.max(period_us / 2), period_us),
        1 => rng.between(period_us, 2 * period_us),
        _ => period_us,
    };
    Task {
        name: format!("task{}", index + 1),
        period_us,
        execution_us,
        deadline_us,
        priority: 0,
        blocking_us: BLOCKING_US,
        spread: None,
    }
}

/// What FreeRTOS is told of its tasks.
pub(super) fn words<'a>(tasks: impl Iterator<Item = &'a Task>, job_us: u64) -> String {
    let word = |(task, number): (&Task, usize)| {
        let instructions = (task.execution_us - job_us) * MIPS;
        let Task { period_us, deadline_us, priority, .. } = task;
        format!("task{number}={period_us},{instructions},{deadline_us},{priority}")
    };
    tasks.zip(1..).map(word).collect::<Vec<_>>().join(" ")
}

/// A FreeRTOS of this name and priority with tasks of these shares, and how many they are.
pub(super) fn rtos(
    rng: &mut Rng,
    (name, priority): (&str, u32),
    run_ms: u64,
    shares: &[u64],
    tick_deadline_us: u64,
) -> (Guest, usize) {
    let shares = shares.iter().take(MOST_TASKS as usize).enumerate();
    let mut tasks: Vec<Task> = shares.map(|(index, share)| task(rng, index, *share, JOB_US)).collect();
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|task| std::cmp::Reverse(tasks[*task].deadline_us));
    if rng.percent(25) {
        rng.shuffle(&mut order);
    }
    for (priority, task) in order.into_iter().enumerate() {
        tasks[task].priority = priority as u32 + 1;
    }
    let words = words(tasks.iter(), JOB_US);
    let args = format!("begin_ms={BEGIN_MS} run_ms={run_ms} report_ms=0 {words}");
    let count = tasks.len();
    let tick = Task {
        name: "tick".into(),
        period_us: 1_000,
        execution_us: TICK_US,
        deadline_us: tick_deadline_us,
        priority: 255,
        blocking_us: BLOCKING_US,
        spread: None,
    };
    let guest = Guest::freertos(&args).named(name).priority(priority);
    (tasks.into_iter().chain([tick]).fold(guest, Guest::task), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_one_set() {
        let windowed = (0..100).filter(|seed| set(*seed).preset == WINDOWS);
        assert!(windowed.count() >= 10, "sets with windows in time");
        let spread = (0..100).filter(|seed| set(*seed).guests.iter().any(|(name, _)| name == "cores"));
        assert!(spread.count() >= 10, "sets of which a guest has tasks on two harts");
        for seed in 0..100 {
            let one = set(seed);
            assert_eq!(one.system.to_string(), set(seed).system.to_string());
            assert!(one.guests.iter().all(|(_, count)| *count > 0), "{}", one.summary);
        }
    }
}
