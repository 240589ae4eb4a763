//! The machine that guests see, asked by probes that know the specifications.
use ainori::report::Outcome;
use ainori_report::StopReason;
use ainori_tests::bounds::{Rtos, findings};
use ainori_tests::{Clock, Guest, System, terminal::Terminal};

fn probe_alone(name: &str, args: &str) {
    System::on(1).with(Guest::probe(name, args)).run(Clock::Icount).good().result(name);
}

#[test]
fn the_sbi_is_that_of_the_specification() {
    probe_alone("sbi", "strict=1");
}

#[test]
fn the_interrupt_controller_and_the_serial_port_are_those_of_the_board() {
    probe_alone("plic", "strict=1");
}

/// Where programs made for `virt` don't ask: the tree at the top of memory, PLIC contexts, virtio slots, the finisher.
#[test]
fn the_machine_is_that_of_qemus_virt() {
    for (end, outcome, reason) in [
        ("poweroff", Outcome::Good, StopReason::Shutdown),
        ("failure", Outcome::GuestFailed, StopReason::Failure),
        ("reboot", Outcome::GuestFailed, StopReason::Reboot),
    ] {
        let guest = Guest::probe("virt", &format!("end={end} strict=1"));
        let cpu = if end == "reboot" { "rv64,v=true" } else { "rv64" };
        let run = System::on(1).cpu(cpu).with(guest.memory_mib(128)).run(Clock::Icount);
        run.ended(outcome).stopped("virt", reason);
        assert_eq!(run.number("virt", "failures"), 0);
    }
}

/// A position-independent ELF, which doesn't relocate itself, where the manifest says or by default; with relocations of both kinds.
#[test]
fn a_position_independent_program_runs_wherever_it_is_loaded() {
    for file in ["pie", "pie-relr"] {
        for (load, at) in [(None, 0x8020_0000), (Some(0x80c3_5000), 0x80c3_5000)] {
            let guest = Guest::probe(file, &format!("at={at:#x}"));
            let guest = load.into_iter().fold(guest, Guest::load_address);
            let run = System::on(1).with(guest).run(Clock::Icount);
            run.good();
            assert_eq!(run.number(file, "start"), at);
        }
    }
}

/// With two harts, so that the second one wakes the first; and with one, which nobody else has, where WFI doesn't trap.
#[test]
fn a_hart_resumes_where_it_has_asked_to() {
    for vcpus in [1, 2] {
        let guest = Guest::probe("resume", "n=40").vcpus(vcpus).harts(0..vcpus);
        System::on(vcpus).with(guest).run(Clock::Lockstep { q: 250 }).good().result("resume");
    }
    let beside = Guest::freertos("periods=100 report_ms=0").harts([0]);
    let guest = Guest::probe("resume", "n=40").vcpus(2).harts([0]);
    System::on(1).with(guest).with(beside).run(Clock::Icount).good().result("resume");
}

/// Beside the program, at an odd address, in each of its lives.
#[test]
fn a_file_is_loaded_beside_the_program_in_each_life() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("table.bin");
    let bytes: Vec<u8> = (0..5000_u32).map(|index| (index * 7 % 251) as u8).collect();
    std::fs::write(&file, bytes).expect("the file is written");
    let at = 0x8080_0123_u64;
    let guest = Guest::probe("loaded", &format!("at={at:#x} bytes=5000 until_ms=200"));
    let guest = guest.load(&file, at).restart("on-failure", 32, "10s");
    let run = System::on(1).with(guest).run(Clock::Icount);
    run.good();
    assert!(!run.guest("loaded").former_lives.is_empty(), "it was never started again");
}

/// Linked for this address, but told so only in the manifest.
#[test]
fn a_flat_binary_starts_where_the_manifest_says() {
    let run = System::on(1).with(Guest::raw_probe("selfshutdown", 0x8040_0000)).run(Clock::Icount);
    run.good().stopped("selfshutdown", StopReason::Shutdown);
}

#[test]
fn timer_interrupts_come_in_time() {
    probe_alone("timer", "period_us=100 n=10000");
}

/// Four vCPUs on some of the harts. Their patience with each other is long: in host time, a busy host takes harts away for seconds.
fn smp(harts: &[u32], clock: Clock) {
    let run = System::on(4)
        .with(Guest::probe("smp", "rounds=100 patience_ms=100000").vcpus(4).harts(harts.iter().copied()))
        .quantum("1ms")
        .run(clock);
    run.good();
    assert_eq!(run.number("smp", "harts"), 4);
}

#[test]
fn four_vcpus_work_together_on_four_harts() {
    smp(&[0, 1, 2, 3], Clock::Lockstep { q: 250 });
}

#[test]
fn four_vcpus_work_together_on_four_harts_in_parallel() {
    smp(&[0, 1, 2, 3], Clock::Host);
}

#[test]
fn four_vcpus_work_together_on_two_harts() {
    smp(&[1, 3], Clock::Lockstep { q: 250 });
}

#[test]
fn four_vcpus_work_together_on_two_harts_in_parallel() {
    smp(&[0, 2], Clock::Host);
}

#[test]
fn four_vcpus_work_together_on_one_hart() {
    smp(&[2], Clock::Lockstep { q: 250 });
}

/// WRS.NTO, which QEMU leaves out of `stval`, in a page that is gone when the hypervisor would fetch it: the guest gets its page fault. (It was an illegal
/// instruction.) It traps only where others wait for the hart. (Not so with shadow tables: they have the page until the guest fences, as a TLB may.)
#[test]
fn an_instruction_whose_page_is_gone_is_not_illegal() {
    let run = System::on(1)
        .with_h()
        .with(Guest::probe("gone", "n=1000").translation("two-stage"))
        .with(Guest::probe("busyloop", "").background())
        .run(Clock::Icount);
    run.good();
    assert_eq!(run.number("gone", "faults"), 1000);
    run.check(run.exits_for("gone", "illegal") > 900, "the instruction should have come to the hypervisor");
}

/// Two guests that fill all registers with patterns, by turns on one hart, and FreeRTOS between them.
fn registers_are_kept(cpu: &str) {
    let probe = |name, seed| Guest::probe("fpkeep", &format!("seed={seed} ms=1000")).named(name);
    let run = System::on(1)
        .cpu(cpu)
        .with(probe("keep-a", 1))
        .with(probe("keep-b", 2))
        .with(Guest::freertos("periods=1000 burn_percent=20 burn_period_us=5000"))
        .quantum("1ms")
        .run(Clock::Icount);
    run.good();
    for name in ["keep-a", "keep-b"] {
        let dispatches = run.guest(name).vcpus[0].dispatches;
        run.check(
            dispatches > 200,
            format_args!("{name} was dispatched only {dispatches} times: too few to show anything"),
        );
    }
}

#[test]
fn floating_point_registers_are_kept_apart() {
    registers_are_kept("rv64");
}

#[test]
fn vector_registers_are_kept_apart() {
    registers_are_kept("rv64,v=true,vlen=256");
}

/// A vCPU that is started again: its registers are zero, whoever has filled those of the hart meanwhile, and however long they are, this
/// keeps an RTOS on the hart of both vCPUs waiting no longer than anything else.
#[test]
fn a_vcpu_that_is_started_again_finds_zeros() {
    for cpu in ["rv64", "rv64,v=true,vlen=128", "rv64,v=true,vlen=1024"] {
        let run = System::on(1)
            .cpu(cpu)
            .with(Guest::probe("reborn", "n=20").vcpus(2))
            .with(Guest::probe("fpkeep", "seed=1 ms=100"))
            .with(Guest::freertos("periods=100 burn_percent=20 burn_period_us=5000"))
            .quantum("1ms")
            .run(Clock::Icount);
        run.good();
        let rtos = Rtos { name: "freertos", hart: 0, periods: 100 };
        let findings = findings(&run.report, "ainori", &[rtos]);
        run.check(findings.is_empty(), format_args!("{cpu}: {findings:?}"));
    }
}

/// FreeRTOS is not among them: it was built for double precision.
#[test]
fn registers_of_single_precision_are_kept_apart() {
    let probe = |name, seed| Guest::probe("fpkeep", &format!("seed={seed} ms=500")).named(name);
    let run = System::on(1)
        .cpu("rv64,d=false")
        .with(probe("keep-a", 1))
        .with(probe("keep-b", 2))
        .quantum("1ms")
        .run(Clock::Icount);
    run.good();
}

/// QEMU's harts with only a part of V can't switch it on. Guests aren't told of it.
#[test]
fn vectors_that_do_not_work_are_not_offered() {
    registers_are_kept("rv64,zve64d=true");
}

/// There is nothing to switch.
#[test]
fn harts_without_floating_point_will_do() {
    let run = System::on(1)
        .cpu("rv64,f=false,d=false,zfa=off")
        .with(Guest::probe("timer", "n=100"))
        .run(Clock::Icount);
    run.good();
}

/// By the call of today, and by the legacy one.
#[test]
fn a_shutdown_is_the_end_of_a_guest() {
    for args in ["ms=10", "legacy=1"] {
        let run = System::on(1).with(Guest::probe("selfshutdown", args)).run(Clock::Icount);
        run.good().stopped("selfshutdown", StopReason::Shutdown);
    }
}

#[test]
fn legacy_calls_read_what_is_typed() {
    let system = System::on(1).with(Guest::probe("echo", "legacy=1")).input("echo");
    let mut terminal = Terminal::run(&system);
    terminal.wait_for("type a line");
    terminal.type_in("a line of more than sixteen bytes\r");
    terminal.wait_for("heard: a line of more than sixteen bytes");
    let (status, seen) = terminal.end();
    assert!(status.success(), "{status}:\n{seen}");
}

#[test]
fn a_shutdown_for_a_failure_is_reported_as_one() {
    let run = System::on(1).with(Guest::probe("shutdown-failure", "ms=10")).run(Clock::Icount);
    run.ended(Outcome::GuestFailed).stopped("shutdown-failure", StopReason::Failure);
    assert_ne!(run.report.outcome.exit_code(), 0);
}
