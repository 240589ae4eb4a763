use super::*;
use crate::bench::{
    chart,
    experiment::Form,
    fixture::{EXPERIMENT, Fixture},
    results::Results,
    verdict::Verdict,
};

#[test]
fn metrics_are_medians_with_their_range() {
    let fixture = Fixture::new();
    let plan = fixture.plan(Form::Full);
    let results = fixture.results(&plan, 1.0);
    let case = &results.cases[2];
    assert_eq!(case.shown(&results.cases), "shared, f = 50, policy = spumone");
    let rate = &case.metrics["rate"];
    assert_eq!((rate.min, rate.median, rate.max, &*rate.unit), (750.0, 751.0, 752.0, "1/s"));
    assert_eq!(case.metrics["left"].median, 375.5);
    assert_eq!(case.histograms["delay"].buckets, [(200.0, 270), (300.0, 27), (10_000_000.0, 3)]);
    let native = results.cases.last().unwrap();
    assert_eq!(native.metrics.keys().collect::<Vec<_>>(), ["rate"]);
    assert!(native.histograms.is_empty());
    assert!(problems(&results.cases).is_empty());
}

#[test]
fn bars_are_made_for_each_value_and_say_whether_they_hold() {
    let fixture = Fixture::new();
    let results = fixture.results(&fixture.plan(Form::Full), 1.0);
    let bars: Vec<_> = results.bars.iter().map(|bar| (&*bar.name, bar.value.unwrap(), bar.verdict)).collect();
    assert_eq!(
        bars,
        [
            ("throughput (f = 0)", 1.001, Verdict::Holds),
            ("throughput (f = 50)", 0.751, Verdict::Holds),
            // One in a thousand less would be: (1000 - 450 + 1) / 1000.
            ("throughput (f = 90)", 0.551, Verdict::Holds),
        ]
    );
    let strict = EXPERIMENT.replace("at_least = 0.5", "at_least = 0.7");
    let plan = Plan::new(fixture.experiment(&strict).unwrap(), Form::Full, &[]).unwrap();
    let verdicts: Vec<_> = fixture.results(&plan, 1.0).bars.iter().map(|bar| bar.verdict).collect();
    assert_eq!(verdicts, [Verdict::Holds, Verdict::Holds, Verdict::Fails]);
}

#[test]
fn a_missing_figure_is_a_problem_and_its_bar_does_not_hold() {
    let fixture = Fixture::new();
    let plan = fixture.plan(Form::Short);
    let cases = cases(&plan, &fixture.keys(&plan), &Done::default()).unwrap();
    assert_eq!(problems(&cases).len(), 5);
    let bars = bars(&plan, &cases).unwrap();
    assert!(bars.iter().all(|bar| bar.value.is_none() && bar.verdict == Verdict::Missing));
}

#[test]
fn a_bar_for_values_that_the_form_does_not_have_is_reported_without_a_value() {
    let fixture = Fixture::new();
    let text = EXPERIMENT.replace("each = [\"f\"]", "each = [\"f\"]\nonly = { f = 1 }");
    let plan = Plan::new(fixture.experiment(&text).unwrap(), Form::Short, &[]).unwrap();
    let results = fixture.results(&plan, 1.0);
    let [bar] = &results.bars[..] else { panic!("one bar: {:#?}", results.bars) };
    assert_eq!((&*bar.name, bar.value, bar.verdict), ("throughput", None, Verdict::NotInForm));
    assert!(crate::bench::table::results(&results).contains("no data in this form"));
    let part = ["policy=spumone".parse().unwrap()];
    let plan = Plan::new(fixture.experiment(&text).unwrap(), Form::Short, &part).unwrap();
    assert!(fixture.results(&plan, 1.0).bars.is_empty(), "it is not missed in a part");
}

#[test]
fn bars_of_cases_that_are_left_out_are_left_out() {
    let fixture = Fixture::new();
    let experiment = fixture.experiment(EXPERIMENT).unwrap();
    let plan = Plan::new(experiment, Form::Short, &["case=lhp".parse().unwrap()]).unwrap();
    let results = fixture.results(&plan, 1.0);
    assert_eq!(results.cases.len(), 4);
    assert!(results.bars.is_empty());
    assert!(
        results.json().contains("\"only\": {\n    \"case\": [\n      \"lhp\"\n    ]\n  }"),
        "{}",
        results.json()
    );
    assert!(crate::bench::table::results(&results).contains("Only a part of the experiment: case = lhp"));
}

#[test]
fn what_values_that_are_left_out_would_show_is_left_out() {
    let fixture = Fixture::new();
    let part = |only: &[&str]| {
        let conditions: Vec<_> = only.iter().map(|text| text.parse().unwrap()).collect();
        let plan = Plan::new(fixture.experiment(EXPERIMENT).unwrap(), Form::Full, &conditions).unwrap();
        fixture.results(&plan, 1.0)
    };
    let results = part(&["f=50", "q=240,260"]);
    let bars: Vec<_> = results.bars.iter().map(|bar| (&*bar.name, bar.verdict)).collect();
    assert_eq!(bars, [("throughput (f = 50)", Verdict::Undecided)], "two pairs decide nothing");
    assert_eq!(results.cases.iter().map(|case| case.samples.len()).collect::<Vec<_>>(), [2, 2, 1]);
    assert_eq!(results.versions.q, [240, 260]);
    assert!(problems(&results.cases).is_empty());

    let results = part(&["policy=round-robin"]);
    assert!(results.bars.is_empty(), "the bars are about spumone");

    let results = part(&["case=native"]);
    for chart in &results.charts {
        assert_eq!(chart::svg(chart, &results.cases).unwrap(), None);
    }
    assert!(results.versions.q.is_empty());
}

#[test]
fn results_are_the_same_when_they_are_read_again() {
    let fixture = Fixture::new();
    let results = fixture.results(&fixture.plan(Form::Full), 1.0);
    let file = fixture.folder.path().join("results.json");
    std::fs::write(&file, results.json()).unwrap();
    assert_eq!(Results::load(&file).unwrap(), results);
    assert_eq!(fixture.results(&fixture.plan(Form::Full), 1.0).json(), results.json());
}

#[test]
fn a_metric_can_be_what_is_said_of_a_deadline() {
    let fixture = Fixture::new();
    let task = |name: &str, execution: &str, priority: u32| {
        format!(
            "{{ name = \"{name}\", period = \"1ms\", execution = \"{execution}\", priority = {priority} }}"
        )
    };
    let text = std::fs::read_to_string(fixture.folder.path().join("linux.toml")).unwrap();
    let tasks =
        format!("args = \"\", task = [{}, {}],", task("light", "300us", 2), task("heavy", "800us", 1));
    fixture.write("linux.toml", text.replace("args = \"burn=${f}\",", &tasks).as_bytes());
    let metric = |name: &str, at: &str| {
        format!(
            "[[metric]]\nname = \"{name}\"\ntitle = \"t\"\nunit = \"u\"\nat = \"/check/linux/{at}\"\nmissing = 0\n\n"
        )
    };
    let metrics = ["light/met", "heavy/met", "light/response_ns", "heavy/response_ns", "heavy/late_ns"];
    let metrics: String = metrics.iter().map(|at| metric(&at.replace('/', "_"), at)).collect();
    let bars = EXPERIMENT
        .split_once("[[bar]]")
        .unwrap()
        .0
        .replace("parameters = { f = { full = [0, 50, 90], short = [0, 50] } }", "");
    let experiment = bars.replace("value = \"rate * (1 - f/100)\"", "value = \"rate\"") + &metrics;
    let plan = Plan::new(fixture.experiment(&experiment).unwrap(), Form::Short, &[]).unwrap();
    let results = fixture.results(&plan, 1.0);
    let value = |name: &str| results.cases[0].metrics[name].median;
    assert_eq!((value("light_met"), value("heavy_met")), (1.0, 0.0));
    // What it computes, and what the hypervisor may do meanwhile.
    assert!(value("light_response_ns") >= 300_000.0 && value("light_response_ns") <= 1_000_000.0);
    // Both together ask for more than the hart has: there is no bound.
    assert_eq!((value("heavy_response_ns"), value("heavy_late_ns")), (0.0, 0.0));
    assert!(problems(&results.cases).is_empty());
}

#[test]
fn what_was_done_often_is_divided_by_how_often() {
    let fixture = Fixture::new();
    let metric = |per: &str| {
        format!(
            "\n[[metric]]\nname = \"each\"\ntitle = \"one\"\nunit = \"1\"\nat = \"/rate\"\nper = \"{per}\"\n"
        )
    };
    let text = EXPERIMENT.replace("short = [0, 50]", "short = [50]") + &metric("f");
    let plan = Plan::new(fixture.experiment(&text).unwrap(), Form::Short, &[]).unwrap();
    assert_eq!(fixture.results(&plan, 1.0).cases[0].metrics["each"].median, 750.0 / 50.0);
    let text = EXPERIMENT.to_owned() + &metric("g");
    let error = Plan::new(fixture.experiment(&text).unwrap(), Form::Short, &[]).unwrap_err();
    assert!(format!("{error:?}").contains("parameter"), "{error:?}");
}
