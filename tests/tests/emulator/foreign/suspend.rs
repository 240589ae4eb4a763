//! A Linux that suspends itself, without the firmware's help (s2idle): the interrupts that it has enabled for that wake it, and nothing else.
use ainori_tests::{Guest, System, terminal::Terminal};

#[test]
fn a_key_wakes_linux() {
    let mut terminal = Terminal::run(&System::on(2).with(Guest::linux("suspend").vcpus(2)));
    terminal.wait_for("suspends, until a key is typed");
    // What is typed too early is only read.
    terminal.type_until("\r", "woken by: ttyS0");
    let (status, seen) = terminal.end();
    assert!(status.success(), "{status}:\n{seen}");
}
