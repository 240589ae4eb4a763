use super::*;
use crate::bench::{
    experiment::Form,
    fixture::{EXPERIMENT, Fixture},
    plan::Plan,
};

const LEAST: MustBe = MustBe::AtLeast;

#[test]
fn three_pairs_on_one_side_decide_and_two_do_not() {
    assert_eq!(decide(&[1.02, 1.01, 1.03], LEAST, 1.0), (Verdict::Holds, Some(0.125)));
    assert_eq!(decide(&[0.98, 0.99, 0.97], LEAST, 1.0), (Verdict::Fails, Some(0.125)));
    assert_eq!(decide(&[1.02, 1.01, 0.999], LEAST, 1.0).0, Verdict::Undecided);
    assert_eq!(decide(&[1.5, 1.5], LEAST, 1.0), (Verdict::Undecided, None));
    assert_eq!(decide(&[], LEAST, 1.0), (Verdict::Undecided, None));
    assert_eq!(decide(&[0.98, 0.99, 0.97], MustBe::AtMost, 1.0), (Verdict::Holds, Some(0.125)));
}

#[test]
fn more_pairs_must_be_as_clear_as_one_in_twenty() {
    assert_eq!(decide(&[1.1; 5], LEAST, 1.0), (Verdict::Holds, Some(1.0 / 32.0)));
    // 2 of 32 are as great: the smallest may have either sign.
    assert_eq!(decide(&[1.1, 1.1, 1.1, 1.1, 0.99], LEAST, 1.0), (Verdict::Undecided, Some(2.0 / 32.0)));
    // 2 of 64 are.
    assert_eq!(decide(&[1.1, 1.1, 1.1, 1.1, 1.1, 0.99], LEAST, 1.0).0, Verdict::Holds);
}

#[test]
fn what_is_at_the_limit_to_the_digit_holds() {
    assert_eq!(decide(&[0.0; 3], MustBe::AtMost, 0.0), (Verdict::Holds, None));
    assert_eq!(decide(&[0.0; 2], MustBe::AtMost, 0.0).0, Verdict::Undecided);
}

/// Bars of the fixture, whose rate of the n-th run is 1000 - 5 f + n.
fn judged_as(value: &str, form: Form) -> Vec<BarResult> {
    let fixture = Fixture::new();
    let text = EXPERIMENT.replace("{lhp[policy=spumone].rate} / {native.rate}", value);
    let plan = Plan::new(fixture.experiment(&text).unwrap(), form, &[]).unwrap();
    fixture.results(&plan, 1.0).bars
}

#[test]
fn runs_with_the_same_q_are_compared_with_each_other() {
    // Medians are 1.25 apart, ranges meet: but each pair differs by the same.
    let bars = judged_as("{lhp[policy=spumone].rate} - {lhp[policy=round-robin].rate} + 1", Form::Full);
    let found: Vec<_> = bars.iter().map(|bar| (bar.value, bar.range, bar.pairs, bar.verdict)).collect();
    assert_eq!(found, [(Some(1.0), Some([1.0, 1.0]), 3, Verdict::Holds); 3]);
    let bars = judged_as("{lhp[policy=spumone].rate} / 1001.5", Form::Full);
    assert_eq!(bars[0].range, Some([1000.0 / 1001.5, 1002.0 / 1001.5]));
}

#[test]
fn one_slice_leaves_a_comparison_undecided_but_not_a_worst_case() {
    let verdicts = |value| -> Vec<_> {
        judged_as(value, Form::Short).iter().map(|bar| (bar.verdict, bar.pairs)).collect()
    };
    assert_eq!(verdicts("{lhp[policy=spumone].rate} / {native.rate}"), [(Verdict::Undecided, 1); 2]);
    assert_eq!(verdicts("{lhp[policy=spumone].rate.min} / 1000"), [(Verdict::Holds, 0); 2]);
    assert_eq!(verdicts("{lhp[policy=spumone].rate.min} / 10000"), [(Verdict::Fails, 0); 2]);
}

#[test]
fn a_missing_run_keeps_a_bar_from_holding() {
    let fixture = Fixture::new();
    let plan = fixture.plan(Form::Full);
    let mut results = fixture.results(&plan, 1.0);
    let more = |case: &CaseResult| {
        let mut sample = case.samples[0].clone();
        sample.sample = Sample::Q(270);
        sample.metrics.values_mut().for_each(|value| *value += 3.0);
        sample
    };
    for case in &mut results.cases {
        if case.clock == ClockKind::Lockstep {
            case.samples.push(more(case));
        }
    }
    let verdict = |cases: &[CaseResult]| bars(&plan.experiment, cases, true).unwrap()[0].verdict;
    assert_eq!(verdict(&results.cases), Verdict::Holds);
    results.cases[0].samples[3].metrics.clear();
    assert_eq!(verdict(&results.cases), Verdict::Undecided);
}

/// On one hart slices change nothing: 23 figures of `give-way` were thrice the same run, and counted as three.
#[test]
fn the_same_run_once_more_decides_nothing() {
    let fixture = Fixture::new();
    let plan = fixture.plan(Form::Full);
    let mut results = fixture.results(&plan, 1.0);
    for case in &mut results.cases {
        let first = case.samples[0].metrics.clone();
        if let Some(second) = case.samples.get_mut(1) {
            second.metrics = first;
        }
    }
    let bar = &bars(&plan.experiment, &results.cases, true).unwrap()[0];
    assert_eq!((bar.pairs, bar.verdict), (2, Verdict::Undecided));
}

/// A repetition that counts in another window in time has another document, whatever its figures are.
#[test]
fn repetitions_with_the_same_figures_are_one_run_only_if_their_documents_are_the_same() {
    let fixture = Fixture::new();
    let text = EXPERIMENT.replace("q = {", "repetitions = 3\nq = {").replace("lockstep", "icount");
    let plan = Plan::new(fixture.experiment(&text).unwrap(), Form::Full, &[]).unwrap();
    let mut results = fixture.results(&plan, 1.0);
    let pairs = |cases: &[CaseResult]| bars(&plan.experiment, cases, true).unwrap()[0].pairs;
    for case in &mut results.cases {
        let first = case.samples[0].metrics.clone();
        case.samples.iter_mut().for_each(|sample| sample.metrics = first.clone());
    }
    assert_eq!(pairs(&results.cases), 3);
    for case in &mut results.cases {
        case.samples[1].document = case.samples[0].document.clone();
    }
    assert_eq!(pairs(&results.cases), 2);
}

#[test]
fn derived_figures_are_medians_over_pairs() {
    let fixture = Fixture::new();
    let text = format!(
        "definitions.left = \"{{lhp[policy=spumone].rate}} / {{native.rate}}\"\n{EXPERIMENT}\n\
         [[derived]]\nname = \"lost\"\nvalue = \"1 - left\"\nunit = \"x\"\neach = [\"f\"]\nonly = {{ f = 50 }}"
    );
    let plan = Plan::new(fixture.experiment(&text).unwrap(), Form::Full, &[]).unwrap();
    let results = fixture.results(&plan, 1.0);
    let [lost] = &results.derived[..] else { panic!("one figure: {:?}", results.derived) };
    assert_eq!((&*lost.name, lost.pairs), ("lost (f = 50)", 3));
    assert!((lost.value.median - 0.249).abs() < 1e-9 && (lost.value.max - 0.25).abs() < 1e-9, "{lost:?}");
}

/// The experiment has got a case since the results were taken: nine of twelve bars of lhp-scale were left out of reports without a word.
#[test]
fn a_bar_that_needs_a_case_which_the_results_do_not_have_is_told_as_one_without_data() {
    let fixture = Fixture::new();
    let plan = fixture.plan(Form::Short);
    let mut results = fixture.results(&plan, 1.0);
    results.cases.retain(|case| case.name != "native");
    let all = bars(&plan.experiment, &results.cases, true).unwrap();
    let found: Vec<_> = all.iter().map(|bar| (&*bar.name, bar.value, bar.verdict)).collect();
    let wanted = ["throughput (f = 0)", "throughput (f = 50)"].map(|name| (name, None, Verdict::Missing));
    assert_eq!(found, wanted);
    assert_eq!(crate::bench::verdict::code(&all), crate::bench::verdict::FAILED);
    assert!(bars(&plan.experiment, &results.cases, false).unwrap().is_empty(), "`--only` has left it out");
    results.bars = all;
    assert!(crate::bench::table::results(&results).contains("NO DATA"));
}
