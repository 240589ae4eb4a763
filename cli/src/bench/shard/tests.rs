use super::*;
use crate::bench::{experiment::Form, fixture::Fixture};
use proptest::prelude::*;
use std::time::Duration;

#[test]
fn a_part_is_written_with_its_number() {
    assert_eq!("3/8".parse(), Ok(Shard { number: 3, of: 8 }));
    assert_eq!(Shard { number: 3, of: 8 }.to_string(), "3/8");
    for wrong in ["3", "0/8", "9/8", "1/0", "a/b", "1/10001", "-1/2"] {
        let error = wrong.parse::<Shard>().unwrap_err();
        assert!(error.starts_with("it must be NUMBER/OF"), "{error}");
    }
}

proptest! {
    /// Each run is in one part, in whatever order they come, and no part has more to do than an even share and the longest run.
    #[test]
    fn parts_are_even_and_together_all(seconds in prop::collection::vec(0.0..1000.0, 0..40), parts in 1..9u32) {
        let keys: Vec<String> = (0..seconds.len()).map(|n| format!("{n:032x}")).collect();
        let mut runs: Vec<(&str, f64)> = keys.iter().map(String::as_str).zip(seconds.iter().copied()).collect();
        let cut = Cut::new(&runs, parts);
        prop_assert_eq!(cut.part.len(), runs.len());
        prop_assert!(cut.part.values().all(|part| (1..=parts).contains(part)));
        let all: f64 = seconds.iter().sum();
        let longest = seconds.iter().copied().fold(0.0, f64::max);
        for number in 1..=parts {
            let mine = runs.iter().filter(|(key, _)| cut.has(Shard { number, of: parts }, key));
            let load: f64 = mine.map(|(_, seconds)| seconds).sum();
            prop_assert!(load <= all / f64::from(parts) + longest + 1e-6, "{} of {}", load, all);
        }
        runs.reverse();
        prop_assert_eq!(cut, Cut::new(&runs, parts));
    }
}

#[test]
fn a_cut_stays_when_more_is_known() {
    let fixture = Fixture::new();
    let plan = fixture.plan(Form::Full);
    let runs: Vec<(String, &Run)> = fixture.keys(&plan).concat().into_iter().zip(plan.runs()).collect();
    let store = fixture.folder.path().join("store");
    let cut = Cut::of(&store, &runs, 3).unwrap();
    // A store that knows that a run is long cuts otherwise: the others do the rest.
    let times = Times::of(&store);
    times.put(runs[0].1, Duration::from_secs(10_000)).unwrap();
    assert_eq!(Cut::of(&store, &runs, 3).unwrap(), cut);
    let other = fixture.folder.path().join("other");
    Times::of(&other).merge(&times).unwrap();
    let long = Cut::of(&other, &runs, 3).unwrap();
    assert_ne!(long, cut);
    // Who brings both together is told.
    assert_eq!(merge(&store, &other).unwrap().len(), 1);
    assert!(merge(&fixture.folder.path().join("new"), &other).unwrap().is_empty());
}

#[test]
fn times_are_known_of_like_runs_and_guessed_of_others() {
    let fixture = Fixture::new();
    let plan = fixture.plan(Form::Short);
    let runs: Vec<&Run> = plan.runs().collect();
    let times = Times::of(&fixture.folder.path().join("store"));
    assert_eq!(times.estimates(&runs), [10.0; 5], "one hart each");
    times.put(runs[0], Duration::from_secs(40)).unwrap();
    times.put(runs[1], Duration::from_secs(60)).unwrap();
    assert_eq!(times.estimates(&runs), [40.0, 60.0, 50.0, 50.0, 10.0], "their case has that mean");
    // Another hypervisor's runs are like them.
    fixture.write("kernel.elf", b"another");
    let full = fixture.plan(Form::Full);
    assert_eq!(times.get(full.runs().next().unwrap()), Some(40.0));
}
