//! A set of which one guest has tasks on two harts: FreeRTOS's build for two cores, mostly beside an RTOS on the second hart that goes before it or behind it there.
//!
//! Its cores wait for each other's spin locks, also for those of a core that has lost its hart to the other RTOS, and core 1 is told by core 0's tick what is due. So what the analysis says of `siblings`, of
//! `remote_blocking` and of jitter is tried here.
use super::{
    generate::{self, BEGIN_MS, BUSY, LONGER_MS, RUN_MS, TaskSet},
    judge,
};
use crate::{
    Guest, System,
    random::rng::Rng,
    system::{Spread, Task},
};

/// Presets that rank guests and let vCPUs stay, and how often there is one of them.
const PRESETS: [(u64, &str); 4] = [(6, "listee-rt"), (2, "listee"), (2, "spumone"), (1, "co-schedule")];

/// What the build for two cores does for a job, in microseconds.
const JOB_US: u64 = 20;
/// Its tick's handler, and how much longer that takes for each task that becomes ready.
const TICK_US: u64 = 6;
const READY_US: u64 = 3;
/// For how long a less urgent task of a core holds back a more urgent one, in a critical section, and what follows.
const BLOCKING_US: u64 = 10 + REMOTE_US;
/// For how long the other core keeps its locks in all, for one job: some five sections of the kernel.
const REMOTE_US: u64 = 20;
/// Behind the tick's handler: the interrupt from core 0 to core 1.
const TOLD_US: u64 = 10;
/// When the tick's handler has to have ended: whoever goes before it on the other hart may keep it waiting.
const LATE_TICK_US: u64 = 40_000;

/// Name of the guest with two cores, and of the other RTOS.
const CORES: &str = "cores";
const OTHER: &str = "other";

/// The set of this seed.
pub fn set(seed: u64, utilisation: u64) -> TaskSet {
    let mut rng = Rng::new(seed);
    let preset = rng.weighted(&PRESETS);
    let other = rng.percent(75).then(|| if rng.percent(60) { 12 } else { 5 });
    let own =
        [1, 1 + u64::from(other.is_some())].map(|rtoses| generate::shares(&mut rng, utilisation, rtoses));
    let [mut first, mut second] = own;
    let others = other.map(|priority| (priority, second.pop().unwrap_or_default()));
    let on = |hart, shares: Vec<u64>| shares.into_iter().map(move |share| (hart, share));
    // The demo takes eight tasks.
    let shares: Vec<(u32, u64)> = on(0, first.pop().unwrap_or_default())
        .take(4)
        .chain(on(1, second.pop().unwrap_or_default()).take(4))
        .collect();
    let count = shares.len();
    let mut guests = vec![(CORES.to_owned(), count)];
    let mut system = System::on(2).with_h().policy(preset);
    let mut summary = format!("{utilisation} % of each hart, {preset}: {CORES} with {count} on two harts");
    if let Some((priority, shares)) = others {
        let (guest, count) = generate::rtos(&mut rng, (OTHER, priority), RUN_MS + LONGER_MS, &shares, 1_000);
        summary += &format!(", {OTHER} with {count} {} it", if priority > 10 { "before" } else { "behind" });
        guests.push((OTHER.to_owned(), count));
        system = system.with(guest.harts([1]));
    }
    let tasks = tasks(&mut rng, &shares);
    system = system.with(Guest::probe(BUSY, "").vcpus(2).harts(0..2).background());
    let whole = |jitter_us| system.clone().with(cores(&tasks, RUN_MS, jitter_us));
    // When core 1 is told, the analysis says: what is on core 1 is in no part of that.
    let mut set =
        TaskSet { system: whole(0), q: rng.pick(&[149, 199, 250]), utilisation, preset, summary, guests };
    let told_us = judge::analyse(&set).ok().and_then(|deadlines| {
        let mut tasks = deadlines.harts.into_iter().flat_map(|hart| hart.tasks);
        tasks.find(|task| task.guest == CORES && task.task == "tick")?.response_ns
    });
    set.system = whole(told_us.unwrap_or_default().div_ceil(1_000) + TOLD_US);
    set
}

/// Tasks of these shares, in millionths of their harts; the hart is the core as well. On each the shorter deadline is the more urgent one.
fn tasks(rng: &mut Rng, shares: &[(u32, u64)]) -> Vec<(u32, Task)> {
    let mut tasks: Vec<_> = shares
        .iter()
        .enumerate()
        .map(|(index, (hart, share))| (*hart, generate::task(rng, index, *share, JOB_US)))
        .collect();
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(tasks[*index].1.deadline_us));
    for (priority, index) in order.into_iter().enumerate() {
        tasks[index].1.blocking_us = BLOCKING_US;
        tasks[index].1.priority = priority as u32 + 1;
    }
    tasks
}

/// The guest with two cores. `jitter_us`: when core 1 is told at the latest that a task is due, after that.
fn cores(tasks: &[(u32, Task)], run_ms: u64, jitter_us: u64) -> Guest {
    let words = generate::words(tasks.iter().map(|(_, task)| task), JOB_US);
    let places: String =
        tasks.iter().zip(1..).map(|((hart, _), number)| format!(" core{number}={hart}")).collect();
    let args = format!("begin_ms={BEGIN_MS} run_ms={run_ms} {words}{places}");
    let tick = Task {
        name: "tick".into(),
        period_us: 1_000,
        execution_us: TICK_US + READY_US * tasks.len() as u64,
        deadline_us: LATE_TICK_US,
        priority: 255,
        blocking_us: BLOCKING_US,
        spread: None,
    };
    let all = tasks.iter().cloned().chain([(0, tick)]);
    all.fold(Guest::freertos_smp(2, &args).named(CORES), |guest, (hart, task)| {
        let jitter_us = if hart == 0 { 0 } else { jitter_us };
        guest.task(Task { spread: Some(Spread { hart, remote_blocking_us: REMOTE_US, jitter_us }), ..task })
    })
}
