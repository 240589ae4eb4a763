use super::*;
use crate::bench::{
    experiment::Form,
    fixture::{EXPERIMENT, Fixture},
};
use std::fs;

/// A checkout with the fixture's experiment, and a result of it.
fn checkout(form: Form) -> (Fixture, Results) {
    let fixture = Fixture::new();
    fixture.write("throughput.toml", EXPERIMENT.as_bytes());
    let results = fixture.results(&fixture.plan(form), 1.0);
    (fixture, results)
}

fn standing(fixture: &Fixture, results: &Results) -> Result<Standing> {
    let folder = fixture.folder.path();
    Standing::of(results, &folder.join("throughput.json"), folder, &mut Today::new(fixture.tools()))
}

#[test]
fn a_result_of_what_is_there_is_not_old() {
    for form in [Form::Short, Form::Full] {
        let (fixture, results) = checkout(form);
        let standing = standing(&fixture, &results).unwrap();
        assert_eq!(standing.old, [""; 0]);
        assert_eq!(standing.today.len(), standing.runs);
        let cell = standing.today[1];
        assert_eq!(cell.in_results(&results).1.sample, standing.run(cell).sample);
    }
}

#[test]
fn what_has_changed_is_named_and_what_it_does_not_concern_stays() {
    let (fixture, results) = checkout(Form::Short);
    fixture.write("kernel.elf", b"another");
    let standing = standing(&fixture, &results).unwrap();
    let [old] = &standing.old[..] else { panic!("{:?}", standing.old) };
    assert!(old.starts_with("hypervisor ") && old.contains(", now "), "{old}");
    assert_eq!((standing.today.len(), standing.runs), (1, 5), "the bare machine has no hypervisor");
}

#[test]
fn a_change_of_the_experiment_is_told_as_one() {
    let (fixture, results) = checkout(Form::Short);
    let manifest = fs::read_to_string(fixture.folder.path().join("linux.toml")).unwrap();
    fixture.write("linux.toml", manifest.replace("64MiB", "80MiB").as_bytes());
    let standing = standing(&fixture, &results).unwrap();
    assert!(standing.old[0].contains("a manifest"), "{:?}", standing.old);
}

#[test]
fn an_experiment_that_is_gone_is_told() {
    let (fixture, mut results) = checkout(Form::Short);
    results.experiment = "gone".into();
    let error = standing(&fixture, &results).unwrap_err().to_string();
    assert!(error.contains("there is no gone.toml"), "{error}");
}

#[test]
fn the_commit_is_told_only_of_a_checkout_without_changes() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(commit(folder.path()), None, "no checkout");
    let git = |arguments: &[&str]| {
        let status = Command::new("git").arg("-C").arg(folder.path()).args(arguments).output().unwrap();
        assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    };
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    git(&["init", "-q"]);
    write("file", "1");
    git(&["add", "."]);
    git(&["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "-m", "x"]);
    assert_eq!(commit(folder.path()).map(|commit| commit.len()), Some(40));
    fs::create_dir_all(folder.path().join("docs/results")).unwrap();
    write("docs/results/NAME.json", "{}");
    assert!(commit(folder.path()).is_some(), "results make no figures");
    write("file", "2");
    assert_eq!(commit(folder.path()), None);
}
