//! Random programs in S- and U-mode see the same on the bare hart and in a guest, with the H extension and without. Many more: `tools/soak differ`.
use ainori_tests::differ::{MACHINES, Programs};

/// On each machine other programs.
#[test]
fn programs_see_what_they_would_see_on_the_bare_hart() {
    const COUNT: u64 = 40;
    for (machine, first) in MACHINES.iter().zip((0..).step_by(COUNT as usize)) {
        let compared = machine.compare(&Programs { seed: 14, first, count: COUNT });
        assert!(compared.findings.is_empty(), "{}", compared.findings.join("\n"));
        // Programs that do nothing see the same anywhere.
        assert!(compared.traps > 20 * COUNT, "only {} traps on {}", compared.traps, machine.name);
    }
}
