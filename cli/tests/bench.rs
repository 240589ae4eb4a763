//! The experiments of the checkout, and `ainori bench` from outside.
use ainori::bench::{
    again,
    experiment::{Bar, Experiment},
    results::Results,
    slack::{self, slack},
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn bench(arguments: &[&str]) -> Output {
    let program = Command::new(env!("CARGO_BIN_EXE_ainori"))
        .arg("bench")
        .args(arguments)
        .current_dir(checkout())
        .output();
    program.expect("the program can be started")
}

#[test]
fn every_experiment_of_the_checkout_can_be_read_and_is_listed() {
    let folder = checkout().join("experiments");
    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let experiments: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    assert!(!experiments.is_empty());
    for path in experiments {
        let experiment = Experiment::load(&path).unwrap_or_else(|error| panic!("{error:?}"));
        assert!(
            readme.contains(&format!("({}.toml)", experiment.name)),
            "{} is not in the README",
            experiment.name
        );
        for case in &experiment.cases {
            for file in case.system.files() {
                assert!(folder.join(file).is_file(), "{} of the case {}", file.display(), case.name);
            }
        }
    }
}

#[test]
fn an_unknown_experiment_is_refused_with_those_that_there_are() {
    let output = bench(&["jiter"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("there is no experiment \"jiter\"") && errors.contains("jitter"), "{errors}");
}

#[test]
fn results_that_are_none_can_not_be_compared() {
    let output = bench(&["compare", "Cargo.toml", "Cargo.toml"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("Cargo.toml does not hold the results of a bench"), "{errors}");
}

#[test]
fn results_of_two_experiments_can_not_be_compared() {
    let output = bench(&["compare", "docs/results/jitter.json", "docs/results/lhp.json"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]), "{errors}");
    assert!(errors.contains("of the experiment jitter") && errors.contains("of lhp"), "{errors}");
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_anything_runs() {
    for bad in ["-", "no/folder/x"] {
        let output = bench(&["demo", "--json", bad]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]), "{errors}");
        assert!(errors.contains(&format!("{bad} can't be written: ")), "{errors}");
    }
}

#[test]
fn saved_results_can_be_read_and_have_not_changed_from_themselves() {
    let Ok(files) = fs::read_dir(checkout().join("docs/results")) else { return };
    let files = files.map(|entry| entry.unwrap().path());
    for path in files.filter(|path| path.extension().is_some_and(|end| end == "json")) {
        let path = path.display().to_string();
        let output = bench(&["compare", &path, &path]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("\n0 of "), "{text}");
    }
}

#[test]
fn a_part_that_is_asked_for_wrongly_is_refused_before_anything_runs() {
    let output = bench(&["lhp", "--only", "ainori"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("it must be NAME=VALUE"), "{errors}");
    let output = bench(&["lhp", "--only", "q=250", "--name", "../lhp"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("it must be made of letters"), "{errors}");
}

#[test]
fn saved_results_can_be_judged_by_the_bars_of_today() {
    let output = bench(&["judge", "docs/results/lhp-500ms.json"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("ainori, of a partition") && text.contains("derived figure"), "{text}");
    // Three slices, and each of them is above the limit.
    assert!(text.contains("p = 0.125, 3 pairs"), "{text}");
}

/// A bar that holds when things are three times as bad says nothing; `why` in its experiment says why it is there all the same.
#[test]
fn each_bar_could_fail() {
    let experiments = checkout().join("experiments");
    let files = fs::read_dir(checkout().join("docs/results")).unwrap().map(|entry| entry.unwrap().path());
    let mut loose = Vec::new();
    for path in files.filter(|path| path.extension().is_some_and(|end| end == "json")) {
        let saved = Results::load(&path).unwrap_or_else(|error| panic!("{error:?}"));
        let file = experiments.join(&saved.experiment).with_extension("toml");
        let reasons = Experiment::load(&file).unwrap().bars;
        let has_reason = |name: &str| {
            let own = |bar: &&Bar| name == bar.name || name.starts_with(&format!("{} (", bar.name));
            reasons.iter().find(own).is_some_and(|bar| bar.why.as_ref().is_some_and(|why| !why.is_empty()))
        };
        let judged = again::judge(saved, &experiments).unwrap_or_else(|error| panic!("{error:?}"));
        for bar in judged.bars.iter().filter(|bar| !has_reason(&bar.name)) {
            if let Some(slack) = slack(bar).filter(|slack| *slack > slack::MOST) {
                let value = bar.value.unwrap_or_default();
                loose.push(format!(
                    "{}: {}: {value} {} {}, which is {slack:.1} times as far",
                    path.display(),
                    bar.name,
                    bar.must_be.words(),
                    bar.limit
                ));
            }
        }
    }
    assert!(loose.is_empty(), "{loose:#?}");
}

/// They judge the same runs: one asked for 1.5 and the other for 1.4.
#[test]
fn the_demo_asks_for_as_much_as_lhp() {
    let limit = |experiment: &str, bar: &str| {
        let file = checkout().join("experiments").join(experiment);
        let bars = Experiment::load(&file).unwrap().bars;
        bars.into_iter().find(|own| own.name == bar).and_then(|bar| bar.at_least)
    };
    let demo = limit("demo.toml", "the cure: spumone's time, of ainori's");
    assert!(demo.is_some());
    assert_eq!(demo, limit("lhp.toml", "50 and 5 ms: ainori, of spumone"));
}

#[test]
fn the_figures_of_the_pages_are_those_of_the_results() {
    let output = bench(&["quote", "--check"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "run `./ainori bench quote`: {}{errors}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[test]
fn a_report_is_made_of_committed_json_without_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let output = bench(&["report", "docs/results/split.json", "--out", &out]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("Report: ") && text.contains("split.html"), "{text}");
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["split-1.svg", "split-2.svg", "split.html"]);
}

#[test]
fn what_is_asked_of_several_machines_wrongly_is_refused() {
    for (arguments, told) in [
        (&["demo", "--shard", "9/8"][..], "it must be NUMBER/OF"),
        (&["demo", "--shard", "1/2", "--save"], "cannot be used with"),
        (&["demo", "--no-run", "--fresh"], "cannot be used with"),
        (&["merge"], "FOLDER"),
        (&["merge", "no/such/folder"], "no/such/folder can't be read"),
        (&["merge", "docs"], "there are no finished runs in docs"),
        (&["verify", "Cargo.toml"], "Cargo.toml does not hold the results of a bench"),
        (&["verify", "--minutes=-1"], "--minutes"),
        (&["report", "Cargo.toml"], "Cargo.toml does not hold the results of a bench"),
    ] {
        let output = bench(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(told), "{arguments:?}: {errors}");
    }
}
