//! An RTOS on several harts: FreeRTOS's SMP build.
use ainori_tests::{Clock, Guest, Run, System, harts::usual_lack_h};
use serde_json::Value;

const CLOCK: Clock = Clock::Lockstep { q: 250 };

/// Two tasks of 150 us each millisecond, each on a core of its own, for 200 ms.
const PINNED: &str = "begin_ms=20 run_ms=200 task1=1000,36500,1000,3 core1=0 task2=1000,36500,1000,3 core2=1";
const JOBS: u64 = 200;

/// What the guest has told of a job of its program, whether it was content or not.
#[track_caller]
fn told<'a>(run: &'a Run, guest: &str, job: &str) -> impl Fn(&str) -> &'a Value {
    let results = &run.guest(guest).results;
    let Some(result) = results.iter().find(|result| result.get("job").is_some_and(|name| name == job)) else {
        run.fail(format_args!("{guest} has told nothing of {job}"))
    };
    |key| result.get(key).unwrap_or(&Value::Null)
}

/// The tasks of its set.
#[track_caller]
fn tasks<'a>(run: &'a Run, guest: &str) -> &'a [Value] {
    match told(run, guest, "task-set")("tasks") {
        Value::Array(tasks) => tasks,
        other => run.fail(format_args!("{guest}: its tasks are {other}")),
    }
}

/// The set has met its deadlines and lost no tick; each task that has a core stayed there.
#[track_caller]
fn kept_all(run: &Run, guest: &str, what: &str) {
    run.good();
    run.check(
        told(run, guest, "task-set")("ticks_lost") == 0,
        format_args!("{what}: {guest} has lost ticks"),
    );
    for task in tasks(run, guest) {
        println!("{what}: {guest}: {task}");
        run.check(task["missed"] == 0, format_args!("{what}: missed: {task}"));
        run.check(task["core"].is_null() || task["moves"] == 0, format_args!("{what}: it has moved: {task}"));
    }
}

/// Alone, and beside somebody who wants all of both harts.
#[test]
fn pinned_tasks_keep_their_deadlines() {
    let busy = || Guest::probe("bursts", "").vcpus(2).harts([0, 1]).background();
    let linux = || Guest::linux("busy").vcpus(2).background();
    for (what, other) in [("alone", None), ("beside a probe", Some(busy())), ("beside Linux", Some(linux()))]
    {
        let system = System::on(2).policy("ainori").with(Guest::freertos_smp(2, PINNED));
        let run = other.into_iter().fold(system, System::with).run(CLOCK);
        kept_all(&run, "freertos", what);
        for (task, core) in tasks(&run, "freertos").iter().zip(0..) {
            run.check(
                task["core"] == core && task["jobs"] == JOBS,
                format_args!("{what}: not {JOBS} jobs on core {core}: {task}"),
            );
            // Its tick's handler on core 0, an interrupt to core 1, and the way there.
            let latest = task["latest_ns"].as_u64();
            run.check(
                latest.is_some_and(|ns| ns < 25_000),
                format_args!("{what}: a job has begun late: {task}"),
            );
        }
    }
}

/// The first core is taken from the third task each millisecond, the second one each two: it goes on where there is room, with its floating-point
/// registers. So it ends sooner than it could on either.
#[test]
fn a_task_without_a_core_goes_where_there_is_room() {
    let args = "begin_ms=20 run_ms=100 float=1 task1=1000,125000,1000,3 core1=0 task2=2000,250000,2000,2 core2=1 \
                task3=10000,625000,10000,1";
    let run = System::on(2)
        .policy("ainori")
        .with(Guest::freertos_smp(2, args))
        .with(Guest::probe("bursts", "").vcpus(2).harts([0, 1]).background())
        .run(CLOCK);
    kept_all(&run, "freertos", "with a task for any core");
    let task = &tasks(&run, "freertos")[2];
    run.check(task["moves"].as_u64().is_some_and(|moves| moves >= 20), format_args!("it stays: {task}"));
    // It computes for 2.5 ms, and each core has half of its time left.
    run.check(
        task["worst_ns"].as_u64().is_some_and(|ns| ns < 4_000_000),
        format_args!("it takes long: {task}"),
    );
}

/// A queue, a semaphore and a mutex between two cores, while each core has something more urgent to do. The build for four cores has its tasks on the
/// first and the last.
#[test]
fn cores_exchange_items_under_load() {
    for cores in [2, 4] {
        let args = format!("{PINNED} run_ms=60 items=2000");
        let run = System::on(cores)
            .policy("ainori")
            .with(Guest::freertos_smp(cores, &args))
            .with(Guest::probe("bursts", "").vcpus(cores).harts(0..cores).background())
            .run(CLOCK);
        kept_all(&run, "freertos", "with an exchange");
        let told = told(&run, "freertos", "exchange");
        println!("{cores} cores: {} ns for an item", told("item_ns"));
        run.check(
            told("ok") == true && told("items") == 2000 && told("wrong") == 0 && told("counted") == 4000,
            format_args!("{cores} cores: items were lost or changed"),
        );
    }
}

/// More vCPUs than cores: the others stay stopped. And cores that share a hart, by turns.
#[test]
fn other_numbers_of_harts_do_as_well() {
    let args = format!("{PINNED} run_ms=50 items=500");
    let more = System::on(4).with(Guest::freertos_smp(2, &args).vcpus(4).harts(0..4)).run(CLOCK);
    kept_all(&more, "freertos", "four vCPUs");
    let running = more.guest("freertos").vcpus.iter().map(|vcpu| vcpu.running > 0);
    more.check(running.eq([true, true, false, false]), "two of the four vCPUs should have been started");
    let fewer = System::on(1).with(Guest::freertos_smp(2, &args).harts([0])).run(CLOCK);
    kept_all(&fewer, "freertos", "one hart");
}

/// Each of two RTOSes goes first on one of two harts. The second one takes its hart from a vCPU of the first one, which may hold a lock of its
/// kernel then: the first one's other core spins, also in the handler of its tick. `ainori` sees that it does, and has the holder go on; where vCPUs
/// stay, it is late by as much as the second one's job is long, 1.6 ms.
#[test]
fn who_holds_a_lock_of_the_rtos_is_brought_back() {
    for (policy, is_late) in [("ainori", false), ("listee-rt", true)] {
        let first =
            Guest::freertos_smp(2, "begin_ms=20 run_ms=150 task1=1000,25000,2500,4 core1=0 items=7500");
        let second = Guest::freertos("begin_ms=20 run_ms=170 tick_us=700 task1=4900,400000,4900,4");
        let run = System::on(2)
            .policy(policy)
            .with(first.priority(8).priority_on(0, 12))
            .with(second.named("second").harts([1]))
            .run(CLOCK);
        let latest = tasks(&run, "freertos")[0]["latest_ns"].as_u64();
        println!("{policy}: {latest:?} ns");
        // Without H it doesn't say that it spins: samples find out, later.
        let seen_by = if usual_lack_h() { 500_000 } else { 300_000 };
        run.check(
            latest.is_some_and(|ns| if is_late { ns > 700_000 } else { ns < seen_by }),
            format_args!("{policy}: its task began {latest:?} ns late"),
        );
    }
}

/// Each with the words that say what is wrong.
#[test]
fn wrong_use_is_refused() {
    let on = |guest: Guest| System::on(2).with(guest).run(CLOCK);
    let said = |run: Run, words: &str| {
        run.ended(ainori::report::Outcome::GuestFailed);
        run.check(
            run.lines("freertos").any(|line| line.contains(words)),
            format_args!("nothing is said of {words:?}"),
        );
    };
    said(on(Guest::freertos_smp(2, PINNED).vcpus(1)), "is built for 2 cores, and has 1 hart");
    for (args, words) in [
        ("task1=1000,36500,1000,3 core1=2", "core1=2: expected a number from 0 to 1"),
        ("task1=1000,36500,1000,3 core2=0", "no parameter \"core2=0\""),
        ("task1=1000,36500,1000,14", "task1: a priority from 1 to 13"),
        ("run_ms=10", "nothing to do"),
    ] {
        said(on(Guest::freertos_smp(2, args)), words);
    }
}
