//! What the analysis of deadlines says of a few random sets of tasks, against their runs (any number: `tools/soak tasks`).
use ainori_tests::task_sets::{generate, judge};
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
