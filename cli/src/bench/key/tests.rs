use crate::bench::{experiment::Form, fixture::Fixture};

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
