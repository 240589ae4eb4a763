//! Some of the random systems (any number: `tools/soak systems`). Each is made from its seed; what must hold for it is derived from its
//! description (`ainori_tests::random::oracle`).
use ainori_tests::random::{generate, run::Runner};
use std::fmt::Write;

/// Ends the test unless the systems of these seeds keep all their promises; all of them are run.
fn hold(seeds: impl IntoIterator<Item = u64>, twice: bool) {
    let runner = Runner { twice, ..Runner::default() };
    let mut broken = String::new();
    for seed in seeds {
        let system = generate::system(seed);
        for violation in runner.judge(&system).violations {
            let _ = writeln!(broken, "seed {seed}: {}: {}", violation.rule, violation.what);
        }
    }
    assert!(broken.is_empty(), "{broken}To have one shrunk: tools/soak systems --seed SEED --count 1");
}

#[test]
fn random_systems_hold_1() {
    hold(1..=3, false);
}

#[test]
fn random_systems_hold_2() {
    hold(4..=6, false);
}

#[test]
fn random_systems_hold_3() {
    hold(7..=9, false);
}

#[test]
fn random_systems_hold_and_are_the_same_twice() {
    hold(10..=12, true);
}
