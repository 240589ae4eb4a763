use super::*;
use crate::bench::{experiment::Form, fixture::Fixture};
use ainori_manifest::config::{Shadow, ShadowReclaim, ShadowSpaces};

fn keys(fixture: &Fixture) -> Vec<String> {
    fixture.keys(&fixture.plan(Form::Full)).concat()
}

#[test]
fn each_run_has_a_key_of_its_own_that_stays() {
    let fixture = Fixture::new();
    let first = keys(&fixture);
    assert_eq!(first, keys(&fixture));
    let mut different = first.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), first.len());
    assert!(first.iter().all(|key| key.len() == 32));
}

/// Which keys change when a file does: (those of runs on Ainori, the bare machine's).
fn changes(name: &str, bytes: &[u8]) -> (bool, bool) {
    let fixture = Fixture::new();
    let before = keys(&fixture);
    fixture.write(name, bytes);
    let after = keys(&fixture);
    let differ: Vec<bool> = before.iter().zip(&after).map(|(before, after)| before != after).collect();
    let (bare, shared) = differ.split_last().unwrap();
    assert!(shared.iter().all(|differs| differs == &shared[0]));
    (shared[0], *bare)
}

#[test]
fn a_key_changes_with_what_the_run_depends_on_and_nothing_else() {
    assert_eq!(changes("kernel.elf", b"another"), (true, false));
    assert_eq!(changes("lockstep.so", b"another"), (true, false));
    assert_eq!(changes("paths.so", b"another"), (false, false), "nothing is counted");
    let fixture = Fixture::new();
    let read = |name: &str| std::fs::read(fixture.folder.path().join(name)).unwrap();
    let mut image = read("Image");
    image.push(0);
    assert_eq!(changes("Image", &image), (true, true));
    let commented = [b"# a comment\n", &read("linux.toml")[..]].concat();
    assert_eq!(changes("linux.toml", &commented), (false, false));
}

#[test]
fn a_key_changes_with_what_is_counted_and_how_addresses_are_translated() {
    let fixture = Fixture::new();
    let tools = fixture.tools();
    let mut run = fixture.plan(Form::Full).points.swap_remove(0).runs.swap_remove(0);
    let mut seen = Vec::new();
    let mut look = |run: &Run| seen.push(key(run, &tools, &mut Hashes::default()).unwrap());
    look(&run);
    run.windows = vec![Window { name: "pipe".into(), number: 2 }];
    look(&run);
    for (sets, since) in [(["p550"].as_slice(), None), (&["p550"], Some(2)), (&["p550", "c910"], None)] {
        let sets = sets.iter().map(|&set| set.to_owned()).collect();
        run.tlb = Some(Tlb { sets, models: vec!["as-is".into()], since });
        look(&run);
    }
    run.tlb = None;
    for (spaces, tables) in [(ShadowSpaces::Single, 36), (ShadowSpaces::Multi, 36), (ShadowSpaces::Multi, 48)]
    {
        for reclaim in [ShadowReclaim::Fifo, ShadowReclaim::PageDirectoryLru] {
            for breakpoints in [false, true] {
                let shadow = Shadow { spaces, tables, reclaim, breakpoints };
                run.manifest.translations = vec![Translation::Shadow(shadow)];
                look(&run);
            }
        }
    }
    for (translation, memory_at) in [
        (Translation::TwoStage, Some(0xa000_0000)),
        (Translation::None, Some(0xa000_0000)),
        (Translation::None, Some(0xb000_0000)),
    ] {
        run.manifest.translations = vec![translation];
        run.manifest.files[0].places.memory_at = memory_at;
        look(&run);
    }
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all);
}

#[test]
fn a_kernel_that_is_asked_for_is_that_of_all_runs() {
    let fixture = Fixture::new();
    let run = fixture.plan(Form::Full).points.swap_remove(0).runs.swap_remove(0);
    assert_eq!(fixture.tools().kernel(&run).unwrap(), fixture.folder.path().join("kernel.elf"));
}
