use super::*;
use crate::bench::{
    again::{self, By},
    experiment::Form,
    fixture::{EXPERIMENT, Fixture},
};

#[test]
fn a_page_and_its_charts_are_made_from_the_json_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (out, file) = (folder.path().join("out"), folder.path().join("throughput.json"));
    {
        let fixture = Fixture::new();
        fs::write(&file, fixture.results(&fixture.plan(Form::Full), 1.0).json()).unwrap();
    } // no experiment and no guest is there any more
    let results = Results::load(&file).unwrap();
    let page = write_page(&out, "throughput", &results, &[], By::Then).unwrap();
    let page = fs::read_to_string(page).unwrap();
    for (name, svg) in charts("throughput", &results).unwrap() {
        assert_eq!(fs::read_to_string(out.join(&name)).unwrap(), svg);
        assert!(page.contains(&svg), "{name}");
    }
    assert!(page.contains("ideal"), "the line that is computed");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 3);
}

#[test]
fn only_charts_that_a_page_shows_are_saved() {
    let fixture = Fixture::new();
    let results = fixture.results(&fixture.plan(Form::Full), 1.0);
    let root = fixture.folder.path();
    fs::create_dir_all(root.join(COMMITTED)).unwrap();
    fixture.write("README.md", b"![x](docs/results/NAME-2.svg)");
    fixture.write("docs/NAME.md", b"[other](results/other-1.svg)");
    assert_eq!(save_charts(root, "NAME", &results).unwrap(), ["NAME-2.svg"]);
    assert_eq!(fs::read_dir(root.join(COMMITTED)).unwrap().count(), 1);
}

/// The charts in docs/results are those that pages show, and what their JSON gives.
#[test]
fn committed_charts_are_what_the_committed_json_gives() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let shown = pages::shown_charts(&root).unwrap();
    let mut given = std::collections::BTreeSet::new();
    for file in committed(&root).unwrap() {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let (results, _) = again::for_page(Results::load(&file).unwrap(), &root.join("experiments")).unwrap();
        for (name, svg) in
            charts(&name, &results).unwrap().into_iter().filter(|(name, _)| shown.contains(name))
        {
            let there = fs::read_to_string(root.join(COMMITTED).join(&name)).unwrap_or_default();
            assert!(there == svg, "{name} is not what its JSON gives: ./ainori bench report --save");
            given.insert(name);
        }
    }
    assert_eq!(given, shown, "charts that pages show, and that results have");
    for entry in fs::read_dir(root.join(COMMITTED)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // Peers' results are no experiments': `tools/peers/table --check` looks at them.
        let is_wanted =
            name.ends_with(".json") || ["README.md", "peers"].contains(&&*name) || shown.contains(&name);
        assert!(is_wanted, "docs/results/{name} is neither a result nor shown by a page: remove it");
    }
}

/// A page said "holds" of a bar that today is stricter, or there no more, and its ideal was one of before.
#[test]
fn a_page_of_old_results_has_the_bars_and_lines_of_today() {
    let fixture = Fixture::new();
    let results = fixture.results(&fixture.plan(Form::Full), 1.0);
    let today = EXPERIMENT
        .replace("at_least = 0.5", "at_least = 0.7")
        .replace("{ title = \"ideal\", value = \"", "{ title = \"ideal\", value = \"2 * ");
    fixture.write("throughput.toml", today.as_bytes());
    let (again, by) = again::for_page(results.clone(), fixture.folder.path()).unwrap();
    assert_eq!((by, again.bars[2].limit), (By::Today, 0.7));
    let ideal = |results: &Results| results.charts[0].computed[0].points.clone();
    let twice: Vec<_> = ideal(&results).into_iter().map(|(x, y)| (x, 2.0 * y)).collect();
    assert_eq!(ideal(&again), twice);
    assert!(html::report(&again, &[], &[], by).contains("as it is today"));
    let (then, by) = again::for_page(results.clone(), &fixture.folder.path().join("none")).unwrap();
    assert_eq!((&then, by), (&results, By::Then));
}
