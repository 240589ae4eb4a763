//! Guests that are started again: nothing is left of a former life, neighbours don't notice, and somebody gives up in the end.
use ainori::report::{GuestOutcome, Life, Outcome};
use ainori_report::{Next, StopReason};
use ainori_tests::{Clock, Guest, Run, System, bounds::IRQS_OFF_BESIDE_RTOS_NS, harts::usual_lack_h};

/// The probe that looks for what former lives have left, and leaves all that it can. It ends in this way until so many milliseconds have gone by since
/// the machine was switched on, then it is content.
fn lives(end: &str, until_ms: u32) -> Guest {
    Guest::probe("lives", &format!("end={end} until_ms={until_ms}")).restart("on-failure", 32, "10s")
}

/// Each life but the last ended for this reason, and each has printed one result, which says that nothing was left to it. Returns how many
/// there were.
fn lived_well(run: &Run, name: &str, reason: StopReason) -> usize {
    let guest = run.guest(name);
    for (life, number) in guest.former_lives.iter().zip(1..) {
        let Life { started, stopped, results, problems } = life;
        let Some(stopped) = stopped else { run.fail(format_args!("the end of life {number} isn't told")) };
        run.check(
            (stopped.reason, stopped.next, stopped.life) == (reason, Next::Restart, number),
            format_args!("life {number} should have ended with {reason:?}, not {stopped:?}"),
        );
        run.check(problems.is_empty(), format_args!("problems of life {number}: {problems:?}"));
        run.check(*started < stopped.time, format_args!("life {number} ends before it begins"));
        run.check(
            results.len() == 1 && results[0]["ok"] == true,
            format_args!("results of life {number}: {results:?}"),
        );
    }
    run.check(guest.results.len() == 1, format_args!("the last life's results: {:?}", guest.results));
    // Each life's last word is half a line, which is ended for it. Who runs on although its life is over says something more.
    let begun = run.lines(name).filter(|line| *line == "a line that is begun").count();
    let (lives, more) =
        (guest.former_lives.len() + 1, run.lines(name).find(|line| line.contains("did not end")));
    run.check(
        begun == lives - 1 && more.is_none(),
        format_args!("{begun} begun lines of {lives} lives; after a life's end: {more:?}"),
    );
    lives
}

/// However a life ends: a line that it had begun is a line, and the next life finds the machine as the first one did.
#[test]
fn each_life_is_like_the_first() {
    use StopReason::{AllHartsStopped, Failure, Fault, Reboot};
    for (end, reason) in [
        ("reboot", Reboot),
        ("warm", Reboot),
        ("failure", Failure),
        ("fault", Fault),
        ("stop", AllHartsStopped),
    ] {
        let run = System::on(2).with(lives(end, 250).vcpus(2).harts([0, 1])).run(Clock::Lockstep { q: 250 });
        run.good().stopped("lives", StopReason::Shutdown);
        let lives = lived_well(&run, "lives", reason);
        run.check(lives >= 4, format_args!("{lives} lives are too few to show anything"));
    }
}

/// vCPUs that wait for each other's fences, lie, run or are on their way somewhere else when the life ends; or that are parked for a home where they must not
/// run (crates/handover/src/model/moving.rs has the moment at which a random system
/// never ended: the core of that home asked, and left them to others).
#[test]
fn lives_end_while_vcpus_migrate() {
    for policy in [
        "ainori",
        "spumone-on-demand",
        "spumone-trap-based",
        "spumone-trap-based-uncured",
        "delayed",
        "spumone",
    ] {
        for vcpus in [4, 16] {
            let run = System::on(3)
                .policy(policy)
                .with(lives("reboot", 270).vcpus(vcpus).harts([0, 1, 2]))
                .with(
                    Guest::freertos("periods=150 burn_percent=40 burn_period_us=3000 report_ms=0").harts([1]),
                )
                .run(Clock::Lockstep { q: 250 });
            run.good().lost_no_tick("freertos", 150);
            let lives = lived_well(&run, "lives", StopReason::Reboot);
            run.check(lives >= 4, format_args!("{policy}, {vcpus} vCPUs: only {lives} lives"));
        }
    }
}

/// On the same hart, the guest faults, is cleared, loaded and started, again and again; a task is as punctual as ever.
#[test]
fn neighbours_do_not_notice() {
    for (end, vcpus, harts) in [("fault", 1, 1), ("reboot", 4, 2)] {
        // Without a storm before: what that does to a neighbour, others test.
        let run = System::on(harts)
            .with(lives(&format!("{end} ms=0"), 700).vcpus(vcpus).harts(0..harts))
            .with(Guest::freertos("periods=600 burn_percent=13 burn_period_us=10000 report_ms=0"))
            .run(Clock::Lockstep { q: 250 });
        run.good().lost_no_tick("freertos", 600);
        let reason = if end == "fault" { StopReason::Fault } else { StopReason::Reboot };
        let lives = lived_well(&run, "lives", reason);
        run.check(lives > 10, format_args!("{lives} lives are too few to show anything"));
        run.was_in_time("freertos", format_args!("{lives} lives that end with {end}"));
    }
}

/// An ELF file of a program that asks to be started again, which is all that it does, and of so many parts of 7 bytes each, close together.
fn program_of_parts(count: u64) -> Vec<u8> {
    const BASE: u64 = 0x8000_0000;
    const HEADER: u64 = 64;
    const PROGRAM_HEADER: u64 = 56;
    // li a7, SRST; li a6, 0; li a0, cold reboot; li a1, 0; ecall
    let code = [0x5352_58b7_u32, 0x3548_889b, 0x0000_0813, 0x0010_0513, 0x0000_0593, 0x0000_0073];
    let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    let parts: Vec<(u64, Vec<u8>)> =
        (0..count).map(|part| (BASE + 0x2001 + 8 * part, vec![part as u8 + 1; 7])).collect();
    let segments = [&[(BASE, code)], &parts[..]].concat();
    let numbers =
        |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    // 64 bits, little-endian; executable, RISC-V; entry, program headers, no sections.
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend(numbers(&[2 | 243 << 16 | 1 << 32, BASE, HEADER, 0]));
    file.extend(numbers(&[HEADER << 32 | PROGRAM_HEADER << 48, segments.len() as u64 | 64 << 16]));
    let mut data = HEADER + PROGRAM_HEADER * segments.len() as u64;
    for (address, bytes) in &segments {
        let size = bytes.len() as u64;
        // Loaded; read, write, execute; aligned to bytes.
        file.extend(numbers(&[1 | 7 << 32, data, *address, *address, size, size, 1]));
        data += size;
    }
    segments.into_iter().for_each(|(_, bytes)| file.extend(bytes));
    file
}

/// A guest of so many parts that asks to be started again, at once and without end; its file is in a folder that has to outlast the run.
fn starts_again(folder: &tempfile::TempDir, parts: u64) -> Guest {
    let file = folder.path().join(format!("{parts}.elf"));
    std::fs::write(&file, program_of_parts(parts)).expect("the temporary folder can be written to");
    let guest = Guest::probe("busyloop", "").file(&file).memory_mib(2);
    guest.background().restart("always", 32, "1us")
}

/// However many parts its program has, which is up to whoever built it: each was a round more of a loop with interrupts off.
#[test]
fn neighbours_do_not_notice_how_many_parts_a_program_has() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = System::on(1)
        .with(starts_again(&folder, 63).named("parts"))
        .with(Guest::freertos("periods=200 burn_percent=23 burn_period_us=10000 report_ms=0"))
        .run(Clock::Lockstep { q: 250 });
    run.good().lost_no_tick("freertos", 200).was_in_time("freertos", "63 parts");
    let (lives, section) = (run.guest("parts").former_lives.len(), run.longest_irqs_off_ns(0));
    println!("{lives} lives, {section} ns with interrupts off");
    run.check(lives > 3, format_args!("{lives} lives are too few to show anything"));
    run.check(section <= IRQS_OFF_BESIDE_RTOS_NS, format_args!("{section} ns with interrupts off"));
}

/// The vCPU of a guest that starts again rests on a hart that an RTOS has, and is put back by the hart that keeps house, where it may not run. Its next life begins
/// where there is room for it, though somebody never gives that hart away (it was left there for ever), and without a word to the RTOS (each start
/// was sent to the vCPU's home, past the RTOS's threshold).
#[test]
fn a_guest_starts_again_though_its_vcpu_is_where_it_may_not_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (policy, is_busy, periods) in [("spumone-on-demand", true, 900), ("ainori", false, 400)] {
        let system = System::on(3)
            .policy(policy)
            .with(
                Guest::freertos(&format!(
                    "periods={periods} burn_percent=45 burn_period_us=10000 report_ms=0"
                ))
                .harts([1])
                .priority(10),
            )
            // The least urgent one is on the hart that keeps house.
            .with(
                Guest::probe("bursts", "n=1 pause_us=900000")
                    .named("sleeps")
                    .harts([0])
                    .priority(0)
                    .background(),
            )
            .with(starts_again(&folder, 1).named("again").harts([1, 2]).priority(1));
        let stays = |hart: u32, from_us: u32| {
            Guest::probe("bursts", &format!("n=1 us=1000000 pause_us={from_us}"))
                .named(&format!("stays-{hart}"))
                .harts([hart])
                .priority(5)
                .background()
        };
        let system = system.with(stays(2, 1_000));
        let system = if is_busy { system.with(stays(0, 260_000)) } else { system };
        let run = system.run(Clock::Lockstep { q: 250 });
        run.good().lost_no_tick("freertos", periods).was_in_time("freertos", policy);
        let (lives, disturbed) = (run.guest("again").former_lives.len(), run.exits_for("freertos", "ipi"));
        println!("{policy}, {is_busy}: {lives} lives, the RTOS was disturbed {disturbed} times");
        // The one that stays has come after 260 ms.
        let late = run.guest("again").ends().filter(|end| end.time > 3_000_000).count();
        run.check(lives > 10 && late > 0, format_args!("only {lives} lives, {late} of them late"));
        run.check(disturbed == 0, format_args!("the RTOS was disturbed {disturbed} times"));
    }
}

/// Many guests wait at the same time until all is sent that is to be told of them, to be started again: they are asked a few at a time whether they may go on.
/// (All were asked in one go, with interrupts off for 7.8 us.)
#[test]
fn neighbours_do_not_notice_how_many_start_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let again = |nth: u32| {
        let guest = starts_again(&folder, 1).named(&format!("again-{nth}"));
        guest.vcpus(if nth < 3 { 16 } else { 1 }).harts([0]).priority(1)
    };
    let freertos = "periods=900 burn_percent=23 burn_period_us=10000 report_ms=0";
    let system = System::on(1).policy("spumone").with(Guest::freertos(freertos).priority(10));
    let run = (0..14).map(again).fold(system, System::with).run(Clock::Lockstep { q: 250 });
    run.good().lost_no_tick("freertos", 900).was_in_time("freertos", "14 others");
    let section = run.longest_irqs_off_ns(0);
    let lives: usize = (0..14).map(|nth| run.guest(&format!("again-{nth}")).former_lives.len()).sum();
    println!("{lives} lives, {section} ns with interrupts off");
    run.check(lives >= 14, format_args!("{lives} lives are too few to show anything"));
    run.check(section <= IRQS_OFF_BESIDE_RTOS_NS, format_args!("{section} ns with interrupts off"));
}

/// A guest that fails at once, each time: after so many restarts it stays where it is, and the others go on. The line that it leaves without an end
/// breaks no report (the last one was).
#[test]
fn a_guest_that_always_fails_is_given_up() {
    let run = System::on(1)
        .with(Guest::probe("wild-illegal", "open=1").restart("on-failure", 6, "10s"))
        .with(Guest::freertos("periods=300 burn_percent=13 burn_period_us=10000 report_ms=0"))
        .run(Clock::Icount);
    run.ended(Outcome::GuestFailed).lost_no_tick("freertos", 300);
    let guest = run.guest("wild-illegal");
    run.check(guest.former_lives.len() == 6, format_args!("{} former lives", guest.former_lives.len()));
    run.check(guest.is_given_up(), format_args!("it wasn't given up: {:?}", guest.stopped));
    let faults: Vec<_> = guest.ends().filter_map(|end| Some(end.fault.as_ref()?.pc)).collect();
    run.check(
        faults.len() == 7 && faults.iter().all(|pc| *pc == faults[0]),
        format_args!("each life's fault is reported: {faults:x?}"),
    );
}

/// A line without an end behind which a guest fails breaks no report.
#[test]
fn a_report_at_the_end_of_the_run_is_whole() {
    for guests in [1, 2] {
        let wild = |nth: u32| Guest::probe("wild-illegal", "open=1").named(&format!("wild-{nth}"));
        let run = (0..guests).map(wild).fold(System::on(1), System::with).run(Clock::Icount);
        run.ended(Outcome::GuestFailed);
        for nth in 0..guests {
            let guest = run.guest(&format!("wild-{nth}"));
            run.check(guest.outcome == GuestOutcome::Faulted, "the guest should be reported as faulted");
        }
    }
}

/// With two vCPUs that end their guest at the same moment, neither goes on behind its call, which doesn't return.
#[test]
fn nobody_goes_on_behind_the_end() {
    for (policy, harts) in [("ainori", 2), ("spumone", 4)] {
        // An RTOS on the other's hart, which that has to wait for to be told.
        let rtos = Guest::freertos("periods=100 burn_percent=50 burn_period_us=10000 report_ms=0").harts([1]);
        let run = System::on(harts)
            .policy(policy)
            .with(Guest::probe("ends", "").vcpus(harts).harts(0..harts))
            .with(rtos)
            .run(Clock::Lockstep { q: 250 });
        run.good();
        run.check(
            !run.lines("ends").any(|line| line.contains("goes on")),
            "a hart went on behind the guest's end",
        );
    }
}

/// With `never`, a reboot is the end; with `always`, even a shutdown isn't, and the guest in the background holds nobody up.
#[test]
fn the_manifest_decides() {
    let run = System::on(1).with(Guest::probe("lives", "end=reboot until_ms=1000")).run(Clock::Icount);
    run.ended(Outcome::GuestFailed).stopped("lives", StopReason::Reboot);
    run.check(run.guest("lives").former_lives.is_empty(), "it isn't started again");

    let run = System::on(1)
        .with(Guest::probe("selfshutdown", "ms=10").restart("always", 32, "10s").background())
        .with(Guest::freertos("periods=300 burn_percent=13 burn_period_us=10000 report_ms=0"))
        .run(Clock::Icount);
    run.good();
    let guest = run.guest("selfshutdown");
    run.check(guest.former_lives.len() > 3, format_args!("{} former lives", guest.former_lives.len()));
    run.check(guest.outcome != GuestOutcome::Faulted, "a shutdown is no fault");
}

/// Linux reboots, and does its job in its second life. What tells it that there was a first one is the flash memory, which it leaves in
/// a state that the second life must not find.
#[test]
fn linux_reboots() {
    let run = System::on(2)
        .with(Guest::linux("reboot").vcpus(2).device("/flash@20000000").restart("on-failure", 5, "100s"))
        .run(Clock::Lockstep { q: 250 });
    run.good();
    let linux = run.guest("linux");
    let ends: Vec<_> = linux.ends().map(|end| end.reason).collect();
    run.check(
        ends == [StopReason::Reboot, StopReason::Shutdown],
        format_args!("its lives ended with {ends:?}"),
    );
    assert_eq!((run.number("linux", "cpus"), run.number("linux", "lives")), (2, 2));
}

/// Linux panics, waits for a second, and reboots, which starts it again until its lives have ended so. Its neighbour on the same hart loses nothing.
fn linux_panics(when: &'static str, ends: &[StopReason], outcome: Outcome) {
    let linux = Guest::linux("reboot").args("panic=1 ainori.by=panic").device("/flash@20000000");
    // Without H it boots for so long that it would panic just as FreeRTOS ends.
    let periods = if usual_lack_h() { 3000 } else { 2000 };
    let rtos = format!("periods={periods} begin_ms=3000 burn_percent=13 burn_period_us=10000 report_ms=0");
    let run = System::on(1)
        .with(linux.restart(when, ends.len() as u32 - 1, "1000s"))
        .with(Guest::freertos(&rtos))
        .run(Clock::Icount);
    run.ended(outcome).lost_no_tick("freertos", periods);
    let linux = run.guest("linux");
    let found: Vec<_> = linux.ends().map(|end| end.reason).collect();
    run.check(found == ends, format_args!("its lives ended with {found:?}"));
    run.check(linux.former_lives[0].results.is_empty(), "who panics reports nothing");
    let panic = "Kernel panic - not syncing: sysrq triggered crash";
    assert_eq!(run.lines("linux").filter(|line| line.contains(panic)).count(), 1);
    assert_eq!(run.number("linux", "lives"), 2);
    // All of it while FreeRTOS measured: from 3 s on, a period each millisecond, at 10 MHz.
    let stopped = linux.ends().next().map_or(0, |end| end.time);
    let end = 28_000_000 + 10_000 * periods;
    run.check((32_000_000..end).contains(&stopped), format_args!("it stopped at {stopped}"));
    run.was_in_time("freertos", when);
}

#[test]
fn linux_starts_again_after_a_panic() {
    linux_panics("on-failure", &[StopReason::Reboot, StopReason::Shutdown], Outcome::Good);
}

/// Also when all is well, until that has happened as often as it may: then it is given up.
#[test]
#[ignore = "soak: half a minute of host time"]
fn linux_starts_again_after_a_panic_and_after_all_else() {
    let ends = [StopReason::Reboot, StopReason::Shutdown, StopReason::Shutdown];
    linux_panics("always", &ends, Outcome::GuestFailed);
}

/// An interrupt of a guest's own device that came while the guest was being started again was taken and never completed: the device was dead in all
/// later lives. It comes late as an RTOS holds the hart that it is sent to, which the guest has left meanwhile.
#[test]
fn a_devices_interrupt_comes_in_each_life() {
    for late_us in [2_900, 6_000] {
        let owner = Guest::probe("rtc", &format!("n=1 late_us={late_us}")).device("/soc/rtc@101000");
        let run = System::on(2)
            .policy("ainori")
            .with(owner.harts([0, 1]).memory_mib(32).background().restart("always", 32, "1us"))
            .with(Guest::probe("bursts", "n=40 us=20000 pause_us=22000").harts([0]).priority(9))
            .run(Clock::Lockstep { q: 250 });
        run.good();
        let lives = &run.guest("rtc").former_lives;
        let is_well = |life: &&Life| life.results.first().is_some_and(|result| result["ok"] == true);
        let well = lives.iter().filter(is_well).count();
        println!("{late_us}: {well} of {} lives", lives.len());
        run.check(lives.len() > 5, format_args!("{} lives are too few to show anything", lives.len()));
        run.check(well == lives.len(), format_args!("a life has no interrupt: {lives:?}"));
    }
}
