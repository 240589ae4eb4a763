//! Sets of tasks: what the analysis of deadlines says of a few random ones, against their runs (any number: `tools/soak tasks`); and what Linux's program for them tells.
use ainori_tests::{
    Clock, Guest, Run, System,
    task_sets::{generate, judge},
};
use serde_json::{Map, Value};
use std::fmt::Write;

/// Ends the test unless nothing that was said of these sets is wrong.
fn hold(seeds: impl IntoIterator<Item = u64>) {
    let (mut wrong, mut met) = (String::new(), 0);
    for seed in seeds {
        let set = generate::set(seed);
        let outcome = judge::judge(&set);
        met += u32::from(outcome.is_met);
        for finding in outcome.findings {
            let _ = writeln!(wrong, "seed {seed} ({}): {finding}", set.summary);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(met > 0, "who never promises anything is never wrong");
}

#[test]
fn tasks_keep_the_deadlines_that_are_said_to_be_met_1() {
    hold([1, 2, 3, 4]);
}

#[test]
fn tasks_keep_the_deadlines_that_are_said_to_be_met_2() {
    hold([5, 6, 7, 8]);
}

/// The first seeds of sets with windows in time: two of them are said to meet all deadlines.
#[test]
fn tasks_in_windows_keep_the_deadlines_that_are_said_to_be_met() {
    let seeds = (1..).filter(|seed| generate::set(*seed).preset == generate::WINDOWS);
    hold(seeds.take(6));
}

/// Sets of which a guest has tasks on two harts, whose cores wait for each other's locks.
#[test]
fn tasks_on_two_harts_keep_the_deadlines_that_are_said_to_be_met() {
    hold((1..).filter(|seed| generate::is_spread(*seed)).take(6));
}

/// Jobs arrive for so many milliseconds.
const RUN_MS: u64 = 400;

/// A Linux with one CPU, alone on its hart, that runs a set of tasks with these words of its command line.
fn linux(words: &str) -> Run {
    let guest =
        Guest::linux("task-set").with_job("task-set").args(&format!("ainori.run_ms={RUN_MS} {words}"));
    System::on(1).with(guest).run(Clock::Icount)
}

/// What it has told, whether it was content or not.
#[track_caller]
fn told(run: &Run) -> &Map<String, Value> {
    let results = &run.guest("linux").results;
    let found = results.iter().find(|result| result.get("tasks").is_some());
    found.unwrap_or_else(|| run.fail("Linux has told nothing of its tasks"))
}

/// Task 1 computes 1 ms of each 10, task 2 takes 5 ms of each 20, between: what they take is known, and there are as many jobs as periods.
#[test]
fn linux_tells_what_its_tasks_took() {
    let run = linux("ainori.task1=10000,250000,10000,2,0 ainori.task2=20000,1250000,20000,1,0");
    run.good();
    let result = told(&run);
    println!("{result:?}");
    let tasks = &result["tasks"];
    for (task, period_ms, least_ns) in [(0, 10, 1_000_000), (1, 20, 6_000_000)] {
        let task = &tasks[task];
        run.check(task["jobs"] == RUN_MS / period_ms, format_args!("{task} of {period_ms} ms each"));
        run.check(task["missed"] == 0, format_args!("it has missed: {task}"));
        let worst = task["worst_ns"].as_u64();
        // Both begin at once, and the first is more urgent. Linux itself takes some microseconds.
        run.check(
            worst.is_some_and(|ns| (least_ns..least_ns + 1_000_000).contains(&ns)),
            format_args!("the longest job of {least_ns} ns at least is {task}"),
        );
    }
    run.check(result["missed"] == 0 && result["throttled"] == 0, format_args!("{result:?}"));
    // Each response is in the histogram.
    let hist = |name: &str| {
        let pieces = run
            .guest("linux")
            .results
            .iter()
            .filter(|piece| piece.get("hist").is_some_and(|own| own == name));
        let buckets = pieces.flat_map(|piece| piece["buckets"].as_array().into_iter().flatten());
        buckets.filter_map(|bucket| bucket[1].as_u64()).sum::<u64>()
    };
    run.check(hist("task1_ns") == RUN_MS / 10, "the histogram of task 1 has all its jobs");
    run.check(hist("task2_ns") == RUN_MS / 20, "the histogram of task 2 has all its jobs");
}

/// The first job is done with the others, as the second task waits for it, but tells nothing: neither of itself nor of its being late.
#[test]
fn linux_leaves_out_the_first_jobs_that_it_is_told_to() {
    let words = "ainori.task1=10000,250000,10000,2,0 ainori.task2=20000,1250000,5500,1,0";
    let run = linux(&format!("ainori.uncounted=1 {words}"));
    // Task 2 takes 5 ms and, in each of its jobs, 1 ms of task 1: all miss a deadline of 5.5 ms.
    run.ended(ainori::report::Outcome::GuestFailed);
    let result = told(&run);
    let [first, second] = [0, 1].map(|task| &result["tasks"][task]);
    let counted = |period_ms| RUN_MS / period_ms - 1;
    run.check(first["jobs"] == counted(10) && first["missed"] == 0, format_args!("{first}"));
    run.check(second["jobs"] == counted(20) && second["missed"] == counted(20), format_args!("{second}"));
    run.check(first["worst_job"] != 0 && second["worst_job"] != 0, "the first job isn't the longest of any");
}

#[test]
fn linux_refuses_to_count_no_job() {
    for (uncounted, message) in [("20", "no job of a task would count"), ("-1", "usage: task-set")] {
        let run = linux(&format!("ainori.uncounted={uncounted} ainori.task1=20000,1250000,20000,1,0"));
        run.ended(ainori::report::Outcome::GuestFailed);
        let says_why = run.lines("linux").any(|line| line.contains(message));
        run.check(says_why, format_args!("it doesn't say why {uncounted} is wrong"));
    }
}

/// Task 2 asks for 25 ms of each 20, of which task 1 leaves it 18: all of its jobs are late, each more than the one before, and none is left out. The first one isn't concerned. Linux's kernel has its
/// command line in its log: it stands there for the message that real-time tasks are throttled, which this kernel has no more.
#[test]
fn linux_counts_what_is_missed_and_messages_of_throttling() {
    let run = linux(
        "ainori.task1=10000,250000,10000,2,0 ainori.task2=20000,6250000,20000,1,0 ainori.note=\\\"RT throttling activated\\\"",
    );
    run.ended(ainori::report::Outcome::GuestFailed);
    let result = told(&run);
    println!("{result:?}");
    let late = RUN_MS / 20;
    let [first, second] = [0, 1].map(|task| &result["tasks"][task]);
    run.check(first["missed"] == 0, format_args!("the more urgent one has missed: {first}"));
    run.check(
        second["jobs"] == late && second["missed"] == late,
        format_args!("not all {late} jobs: {second}"),
    );
    let worst = second["worst_ns"].as_u64();
    // So much work, of which 1 ms of each 10 is the other one's, from the last arrival on.
    run.check(worst.is_some_and(|ns| ns > 150_000_000), format_args!("what is late adds up: {second}"));
    run.check(result["missed"] == late, format_args!("the sum of all tasks: {result:?}"));
    run.check(result["ok"] == false, format_args!("a missed deadline is a bad result: {result:?}"));
    run.check(result["throttled"] == 1, format_args!("one line of the log tells of throttling: {result:?}"));
}
