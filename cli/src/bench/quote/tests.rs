use super::*;
use crate::bench::{
    experiment::Form,
    fixture::{EXPERIMENT, Fixture},
    judge,
    verdict::Verdict,
};

/// A checkout with one experiment and its results.
fn checkout(fixture: &Fixture) -> PathBuf {
    let root = fixture.folder.path().join("checkout");
    for folder in ["experiments", "docs/results"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    let text = format!("definitions.left = \"{{native.rate}} - f\"\n{EXPERIMENT}");
    fs::write(root.join("experiments/throughput.toml"), text.replace("at_least = 0.5", "at_least = 0.6"))
        .unwrap();
    let results = fixture.results(&fixture.plan(Form::Full), 1.0);
    fs::write(root.join("docs/results/part.json"), results.json()).unwrap();
    root
}

fn quoted(mark: &str) -> Result<String> {
    let fixture = Fixture::new();
    let page = Quotes::load(&checkout(&fixture))?.page(&format!("<!-- quote {mark} --><!-- /quote -->"))?;
    let (_, from) = page.split_once("-->").unwrap();
    Ok(from.split_once("<!--").unwrap().0.to_owned())
}

#[test]
fn figures_have_their_range() {
    assert_eq!(quoted("value part f=50: {lhp[policy=spumone].rate}").unwrap(), "751 (750 to 752)");
    let mark = "percent part f=50: {lhp[policy=spumone].rate} / left";
    assert_eq!(quoted(mark).unwrap(), "79.1 % (78.9 to 79.2)");
    assert_eq!(quoted("value part f=50: {lhp[policy=spumone].rate.max}").unwrap(), "752");
    assert!(quoted("source part").unwrap().starts_with("q = 240, 250, 260; hypervisor "));
}

#[test]
fn results_of_an_older_hypervisor_are_marked() {
    let fixture = Fixture::new();
    let newest = fixture.results(&fixture.plan(Form::Full), 1.0);
    let mut older = newest.clone();
    older.versions.kernel = "0123456789abcdef".into();
    older.date = "2024-12-31T00:00:00Z".into();
    let table = tables::results(&[("a".into(), older), ("b".into(), newest.clone())]);
    assert!(table.contains("`0123456789abcdef`, older |"), "{table}");
    assert!(table.contains(&format!("`{}` |", newest.versions.kernel)), "{table}");
}

#[test]
fn bars_that_one_slice_leaves_outside_of_their_limit_are_told() {
    let fixture = Fixture::new();
    let mut results = fixture.results(&fixture.plan(Form::Full), 1.0);
    for bar in &mut results.bars {
        (bar.verdict, bar.pairs) = (Verdict::Undecided, 1);
    }
    let outside = &mut results.bars[0];
    outside.limit = outside.value.unwrap() + 0.1;
    let told = outside.name.clone();
    let mut enough = results.clone();
    enough.bars[0].pairs = judge::LEAST_PAIRS;
    let table = tables::doubtful(&[("short".into(), results), ("enough".into(), enough)]);
    assert!(table.contains(&told) && !table.contains("`enough`"), "{table}");
    assert_eq!(table.lines().count(), 4, "{table}");
}

#[test]
fn tables_have_what_fails_by_the_bars_of_today() {
    let table = quoted("bars fails").unwrap();
    assert!(
        table.contains(
            "| `part` | throughput (f = 90) | 0.551 (0.55 to 0.552) x bare machine | at least 0.6 |"
        ),
        "{table}"
    );
    assert_eq!(table.lines().count(), 4, "{table}");
    assert!(quoted("results").unwrap().contains("| `part` | **1** | 0 | 0 | 2 |"));
}

#[test]
fn what_is_not_there_is_refused() {
    for mark in [
        "value other: {lhp.rate}",
        "value part f=51: {lhp[policy=spumone].rate}",
        "value part",
        "figure part",
        "bars",
    ] {
        assert!(quoted(mark).is_err(), "{mark}");
    }
}

#[test]
fn a_page_that_is_not_as_it_should_be_is_told_and_made_anew() {
    let fixture = Fixture::new();
    let root = checkout(&fixture);
    let page = root.join("README.md");
    fs::write(&page, "It is <!-- quote value part f=0: {native.rate} -->5<!-- /quote --> fast.").unwrap();
    let all = std::slice::from_ref(&page);
    assert!(!pages(&root, all, true).unwrap().1);
    assert!(pages(&root, all, false).unwrap().0.contains("made anew"));
    assert_eq!(pages(&root, all, true).unwrap(), (String::new(), true));
    assert!(fs::read_to_string(&page).unwrap().contains("-->1000<!--"));
}
