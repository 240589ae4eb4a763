use super::*;
use crate::bench::{
    experiment::Form,
    fixture::{EXPERIMENT, Fixture},
    plan::Plan,
    verdict::Verdict,
};

fn results(speed: f64) -> Results {
    let fixture = Fixture::new();
    let plan = fixture.plan(Form::Full);
    fixture.results(&plan, speed)
}

#[test]
fn what_lies_within_the_error_bar_has_not_changed() {
    // The samples of a case are about 2 in 1000 apart.
    let comparison = compare(&results(1.0), &results(1.0005));
    let changed: Vec<_> = comparison.changes.iter().map(|change| &*change.case).collect();
    assert_eq!(changed, ["bare machine"], "one sample has no range, so any difference counts");
    assert_eq!(comparison.compared, 13);
    assert!(comparison.unmatched.is_empty() && comparison.bars.is_empty());
}

#[test]
fn changes_beyond_it_are_told() {
    let (before, after) = (results(1.0), results(0.9));
    let comparison = compare(&before, &after);
    assert_eq!(comparison.changes.len(), comparison.compared);
    let text = show(&comparison, &before, &after);
    assert!(text.contains("-10.0 %"), "{text}");
    assert!(
        text.ends_with("13 of 13 metrics changed beyond the error bar (the range over the samples).\n"),
        "{text}"
    );
}

#[test]
fn what_only_one_side_has_and_bars_that_turned_are_told() {
    let (mut before, mut after) = (results(1.0), results(1.0));
    before.cases.remove(0);
    after.cases.pop();
    after.bars[1].verdict = Verdict::Fails;
    let comparison = compare(&before, &after);
    assert_eq!(
        comparison.unmatched,
        ["bare machine: only before", "shared, f = 0, policy = spumone: only after"]
    );
    assert_eq!(comparison.bars.len(), 1);
    let text = show(&comparison, &before, &after);
    let wanted =
        "Bar throughput (f = 50): FAILS (p = 0.125, 3 pairs) (0.751 (0.75 to 0.752)), was holds (p = 0.125";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn another_part_of_the_experiment_is_told() {
    let fixture = Fixture::new();
    let experiment = fixture.experiment(EXPERIMENT).unwrap();
    let plan = Plan::new(experiment, Form::Full, &["f=0".parse().unwrap()]).unwrap();
    let (before, after) = (results(1.0), fixture.results(&plan, 1.0));
    let text = show(&compare(&before, &after), &before, &after);
    assert!(text.contains("Not the same part of it was run: all, and f = 0."), "{text}");
    assert!(text.contains("shared, f = 50, policy = spumone: only before"), "{text}");
}

#[test]
fn other_programs_and_single_samples_are_told() {
    let (before, mut after) = (results(1.0), results(1.0));
    let text = show(&compare(&before, &after), &before, &after);
    assert!(!text.contains("Not of the same programs"), "{text}");
    assert!(text.contains("has a single sample: 1 of the metrics"), "the bare machine's: {text}");
    after.versions.kernel = "0123".into();
    after.versions.files["Image"].hash.clone_into(&mut after.versions.lockstep);
    let text = show(&compare(&before, &after), &before, &after);
    let kernel = &before.versions.kernel;
    assert!(
        text.contains(&format!("Not of the same programs: hypervisor {kernel}, after 0123; lockstep.so ")),
        "{text}"
    );
    // Where neither has a hypervisor, it doesn't matter which is there.
    let bare = |mut results: Results| {
        results.cases.retain(|case| case.name == "native");
        results.versions.q.clear();
        results
    };
    let (before, after) = (bare(before), bare(after));
    let text = show(&compare(&before, &after), &before, &after);
    assert!(!text.contains("Not of the same programs"), "{text}");
}
