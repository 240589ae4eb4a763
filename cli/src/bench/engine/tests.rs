use super::*;
use crate::bench::{
    experiment::Form,
    fixture::{Fixture, document},
    plan::Plan,
};
use miette::miette;

/// Runs a plan, where only so many runs succeed before it is interrupted. Returns the runs that were begun, and what
/// came of it.
fn bench(
    fixture: &Fixture,
    plan: &Plan,
    interrupted_after: usize,
    fresh: bool,
    failing: &str,
) -> (Vec<String>, Done) {
    let begun = Mutex::new(Vec::new());
    let stop = AtomicBool::new(false);
    let execute = |run: &Run| {
        let mut begun = lock(&begun);
        if begun.len() == interrupted_after {
            stop.store(true, Ordering::Relaxed);
            return Ok(None);
        }
        begun.push(run.shown());
        if run.label == failing { Err(miette!("no luck")) } else { Ok(Some(document(begun.len() as f64))) }
    };
    let store = Store::open(fixture.folder.path().join("store")).unwrap();
    let engine = Engine {
        execute: &execute,
        store: &store,
        fresh,
        jobs: 1,
        stop: &stop,
        progress: &Progress::hidden(),
    };
    let keys = fixture.keys(plan);
    let runs: Vec<_> =
        plan.points.iter().zip(keys).flat_map(|(point, keys)| keys.into_iter().zip(&point.runs)).collect();
    let done = engine.run(&runs).unwrap();
    (begun.into_inner().unwrap(), done)
}

#[test]
fn an_interrupted_bench_goes_on_where_it_stopped() {
    let fixture = Fixture::new();
    let plan = fixture.plan(Form::Short);
    let (first, done) = bench(&fixture, &plan, 2, false, "");
    assert_eq!((first.len(), done.documents.len()), (2, 2));
    let (second, all) = bench(&fixture, &plan, usize::MAX, false, "");
    assert_eq!((second.len(), all.documents.len()), (3, 5));
    assert!(first.iter().all(|run| !second.contains(run)));
    assert!(done.documents.iter().all(|(key, document)| all.documents[key] == *document));
    let (third, _) = bench(&fixture, &plan, usize::MAX, false, "");
    assert!(third.is_empty(), "all is known");
    let (fourth, _) = bench(&fixture, &plan, usize::MAX, true, "");
    assert_eq!(fourth.len(), 5, "asked to forget");
    let (fifth, _) = bench(&fixture, &plan, 1, true, "");
    let (sixth, _) = bench(&fixture, &plan, usize::MAX, false, "");
    assert_eq!((fifth.len(), sixth.len()), (1, 4), "what was forgotten stays so if it is interrupted");
}

#[test]
fn a_run_that_fails_is_told_not_kept_and_stops_no_other() {
    let fixture = Fixture::new();
    let plan = fixture.plan(Form::Short);
    let (_, done) = bench(&fixture, &plan, usize::MAX, false, "native");
    assert_eq!(done.documents.len(), 4);
    assert_eq!(done.failures.values().collect::<Vec<_>>(), ["no luck"]);
    let (again, _) = bench(&fixture, &plan, usize::MAX, false, "");
    assert_eq!(again, ["native, run 1"]);
}
