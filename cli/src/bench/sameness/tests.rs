use super::*;
use crate::bench::{
    experiment::Form,
    fixture::{EXPERIMENT, Fixture, document},
    provenance::Today,
};

/// Compares a cell of the fixture's results with a document of its run, done again.
fn compared(form: Form, cell: usize, again: Value, change: impl FnOnce(&mut SampleResult)) -> Vec<String> {
    let fixture = Fixture::new();
    fixture.write("throughput.toml", EXPERIMENT.as_bytes());
    let mut results = fixture.results(&fixture.plan(form), 1.0);
    let folder = fixture.folder.path();
    let standing = |results: &Results| {
        let file = folder.join("throughput.json");
        Standing::of(results, &file, folder, &mut Today::new(fixture.tools())).unwrap()
    };
    let standing = standing(&results);
    let cell = standing.today[cell];
    change(&mut results.cases[cell.case].samples[cell.sample]);
    differences(&results, &standing, cell, again).unwrap()
}

#[test]
fn the_same_document_does_not_differ() {
    assert_eq!(compared(Form::Short, 0, document(1000.0), |_| ()), [""; 0]);
    // The second sample of a case with three.
    assert_eq!(compared(Form::Full, 1, document(1001.0), |_| ()), [""; 0]);
}

#[test]
fn a_figure_that_differs_is_told_with_both() {
    let differ = compared(Form::Short, 0, document(1000.5), |_| ());
    assert!(differ.contains(&"rate is 1000.5, the result has 1000".to_owned()), "{differ:?}");
}

#[test]
fn a_histogram_alone_differs_too() {
    let mut again = document(1000.0);
    again["delay"][0][1] = 91.into();
    let told = compared(Form::Short, 0, again.clone(), |_| ()).join("; ");
    assert!(
        told.contains("metrics and schedule are the same, but not the rest")
            && told.contains("the histogram delay")
    );
    // Without the hash of the document, as in older results, the histogram of a single sample still tells.
    assert_eq!(
        compared(Form::Short, 0, again, |sample| sample.document = None),
        ["the histogram delay is another one"]
    );
}

#[test]
fn the_seed_chooses_and_the_same_run_is_taken_once() {
    let candidates =
        || -> Vec<(String, usize)> { (0..100).map(|n| (format!("key {}", n % 50), n)).collect() };
    let order =
        |seed| -> Vec<String> { shuffled(candidates(), seed).into_iter().map(|(key, _)| key).collect() };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
    assert_eq!(order(1).len(), 50);
}
