//! Many consoles on one line: no line is mixed with another's, what has no end yet is shown, what is typed arrives.
use ainori_tests::{Clock, Guest, System, terminal::Terminal};

/// Guests that print at the same time, two of them from several vCPUs, harts in parallel.
#[test]
fn lines_of_guests_are_never_mixed() {
    let run = System::on(4)
        .with(Guest::linux("hackbench").named("linux-a").vcpus(2).harts([0, 1]))
        .with(Guest::linux("hackbench").named("linux-b").vcpus(2).harts([2, 3]))
        .with(Guest::freertos("periods=2000 report_ms=1").harts([1]))
        .with(Guest::probe("sbi", "strict=1").harts([3]))
        .run(Clock::Lockstep { q: 250 });
    run.good();
    let unmarked = run.unmarked_lines();
    run.check(unmarked.is_empty(), format_args!("lines without a mark: {unmarked:?}"));
    for name in ["linux-a", "linux-b", "freertos", "sbi", "ainori"] {
        let marks = ["linux-a| ", "linux-b| ", "freertos| ", "sbi| ", "ainori| "];
        let mixed = run.lines(name).find(|line| marks.iter().any(|mark| line.contains(mark)));
        run.check(mixed.is_none(), format_args!("a line of {name} has another's within it: {mixed:?}"));
    }
    // The same text as without company: every byte is there, in order.
    let alone = System::on(1).with(Guest::probe("sbi", "strict=1")).run(Clock::Icount);
    run.check(
        run.lines("sbi").eq(alone.lines("sbi")),
        "the probe's lines should be those that it prints alone",
    );
    run.check(
        run.report.end.as_ref().is_some_and(|end| end.console_bytes_lost == 0),
        "no byte should be lost",
    );
}

/// A terminal with `ainori run` of a system.
fn terminal(system: &System) -> Terminal {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let manifest = folder.path().join("system.toml");
    std::fs::write(&manifest, system.to_string()).expect("the temporary folder can be written");
    Terminal::run(folder, &manifest)
}

#[test]
fn what_is_typed_reaches_linux() {
    let mut terminal = terminal(&System::on(2).with(Guest::linux("shell").vcpus(2)));
    terminal.wait_for("Leave with exit.");
    terminal.wait_for("# "); // the prompt: a line without an end
    terminal.type_in("echo hello-$((6*7))\r");
    terminal.wait_for("hello-42");
    terminal.type_in("poweroff -f\r");
    let (status, seen) = terminal.end();
    assert!(status.success(), "{status}:\n{seen}");
    assert!(seen.contains("every guest did its job"), "{seen}");
}

#[test]
fn control_c_ends_a_run() {
    let mut terminal = terminal(&System::on(1).with(Guest::freertos("end=forever")));
    terminal.wait_for("FreeRTOS V");
    terminal.type_in("\x03");
    let (status, seen) = terminal.end();
    assert_eq!(status.code(), Some(130), "{seen}");
    assert!(seen.contains("interrupted"), "{seen}");
}
