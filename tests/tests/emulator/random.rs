//! Some of the random systems (any number: `tools/soak systems`). Each is made from its seed; what must hold for it is derived from its
//! description (`ainori_tests::random::oracle`).
use ainori_tests::random::{
    description::{Description, Guest, Job, Talk},
    generate,
    run::Runner,
};
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

/// The first that they found: each interrupt of a device that a guest owns came twice.
#[test]
fn each_alarm_interrupts_once() {
    let talk = Talk {
        seed: 1,
        bytes: 1_000,
        by_uart: false,
        gap_us: 0,
        ears: None,
        alarms: 6,
        alarm_us: 2_000,
        flash: true,
    };
    let guest = Guest {
        name: "talk".into(),
        job: Job::Talk(talk),
        vcpus: 1,
        harts: Vec::new(),
        priority: 1,
        background: false,
    };
    let system = Description {
        seed: 0,
        harts: 1,
        cpu: "rv64".into(),
        preset: "ainori",
        quantum_us: None,
        grace_us: None,
        advance_us: None,
        guests: vec![guest],
        input: 0,
        typing: None,
        slice: 250,
    };
    let violations = Runner::default().judge(&system).violations;
    assert!(violations.is_empty(), "{violations:?}");
}
