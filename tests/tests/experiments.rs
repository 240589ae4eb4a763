//! The experiments of the checkout (experiments/README.md), with their guests: planned, not run.
use ainori::bench::{
    experiment::{Experiment, Form},
    plan::Plan,
};
use ainori_tests::checkout;
use std::fs;

/// What is wrong with the full form of one, somebody finds who has hours for it; with a form that is never run, nobody does.
#[test]
fn every_experiment_of_the_checkout_can_be_planned_in_both_forms() {
    let files = fs::read_dir(checkout("experiments")).unwrap().map(|entry| entry.unwrap().path());
    let experiments: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    assert!(!experiments.is_empty());
    let mut wrong = Vec::new();
    for path in experiments {
        for form in [Form::Full, Form::Short] {
            let experiment = Experiment::load(&path).unwrap_or_else(|error| panic!("{error:?}"));
            if let Err(error) = Plan::new(experiment, form, &[]) {
                wrong.push(format!("{}, {form:?}: {error:?}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
