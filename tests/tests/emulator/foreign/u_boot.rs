//! U-Boot, as Debian has packaged it for S-mode on QEMU's `virt`: typed into, until it boots Linux.
use ainori_tests::{Guest, System, terminal::Terminal};

/// U-Boot that owns the board's clock, at its prompt.
fn u_boot() -> Terminal {
    let guest = Guest::u_boot("boot").vcpus(2).harts([0, 1]).device("/soc/rtc@101000");
    let mut terminal = Terminal::run(&System::on(2).with(guest));
    terminal.wait_for("U-Boot 20");
    terminal.wait_for("Hit any key to stop autoboot");
    terminal.type_in("\r");
    terminal.wait_for("=> ");
    terminal
}

/// Types a command, and waits until U-Boot has answered so and is ready for another.
fn ask(terminal: &mut Terminal, command: &str, answer: &str) {
    terminal.type_in(&format!("{command}\r"));
    terminal.wait_for(answer);
    terminal.wait_for("=> ");
}

/// The guest shut itself down.
#[track_caller]
fn ended(terminal: Terminal) {
    let (status, seen) = terminal.end();
    assert_eq!(status.code(), Some(0), "{seen}");
}

#[test]
fn u_boot_answers_at_its_prompt_and_powers_off() {
    let mut terminal = u_boot();
    // Sums that can't be in the echo of what is typed; memory that is written and read; its timer; the SBI.
    ask(&mut terminal, "setexpr sum 0x1234 + 0x4321; echo sum=$sum", "sum=5555");
    ask(
        &mut terminal,
        "mw.q 90000000 0123456789abcdef 2; md.q 90000000 2",
        "90000000: 0123456789abcdef 0123456789abcdef",
    );
    ask(&mut terminal, "crc32 90000000 10", "==> 3092976a");
    ask(&mut terminal, "sleep 1; echo slept-$sum", "slept-5555");
    ask(&mut terminal, "sbi", "SBI 2.0");
    terminal.type_in("poweroff\r");
    ended(terminal);
}

#[test]
fn u_boot_boots_linux_from_memory() {
    let mut terminal = u_boot();
    ask(&mut terminal, "env import -t ${scriptaddr} -", "input data size");
    terminal.type_in("run linux\r");
    terminal.wait_for("Starting kernel");
    // What the kernel learned from U-Boot: as many CPUs as the tree has, and the initramfs.
    terminal.wait_for(", 2 CPUs, up after");
    ended(terminal);
}

/// U-Boot's own test of its EFI services: events, timers, memory, variables, protocols, ExitBootServices. On QEMU's `virt` without a
/// network and a random number generator it finds these two missing, and nothing else. So it should here.
#[test]
#[ignore = "soak: half a minute of host time"]
fn u_boot_passes_its_efi_selftest() {
    let mut terminal = u_boot();
    terminal.type_in("bootefi selftest\r");
    // Ended however many there are; without that it would start the machine again.
    terminal.wait_for("Summary: ");
    terminal.wait_for("Press any key");
    terminal.type_in("\x03");
    let (_, seen) = terminal.end();
    assert!(seen.contains("Summary: 2 failures"), "{seen}");
    for missing in
        ["Executing 'random number generator' failed", "Setting up 'simple network protocol' failed"]
    {
        assert!(seen.contains(missing), "{missing}?\n{seen}");
    }
}
