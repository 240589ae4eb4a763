//! Harts without the H extension: each build is for one kind of harts, and guests do there what they do elsewhere. With `AINORI_HARTS=no-h` all tests are
//! run there that aren't about H; these are, whatever the tests are run with.
use ainori::image::Kernel;
use ainori_limits::Room;
use ainori_manifest::Needs;
use ainori_report::StopReason;
use ainori_tests::{
    Clock, Guest, Run, System, bounds::IRQS_OFF_BESIDE_RTOS_NS, harts::hypervisor_without_h, hypervisor,
    terminal::Terminal,
};

use crate::shadow::each_preset_works_on;

const CLOCK: Clock = Clock::Lockstep { q: 250 };

fn on(harts: u32) -> System {
    System::on(harts).cpu("rv64,h=false")
}

fn shuts_down() -> Guest {
    Guest::probe("selfshutdown", "")
}

#[test]
fn a_guest_has_a_shadow_without_a_word_about_it() {
    let run = on(1).with(shuts_down()).run(Clock::Icount);
    run.good().stopped("selfshutdown", StopReason::Shutdown);
    let run = on(1).with(shuts_down().translation("shadow-single")).run(Clock::Icount);
    run.good().stopped("selfshutdown", StopReason::Shutdown);
}

/// The tool tells them apart before anything runs.
#[test]
fn no_build_is_taken_for_harts_of_the_other_kind() {
    let needs = |without_h| Needs {
        room: Room::USUAL,
        memory_modes: without_h,
        without_h,
        without_sstc: false,
        more_uarts: false,
        watchdogs: false,
    };
    for (kernel, without_h, other) in
        [(hypervisor(), false, "lack it"), (hypervisor_without_h(), true, "have it")]
    {
        let found = Kernel::load(Some(&kernel), needs(without_h)).map(|kernel| kernel.has.without_h);
        assert_eq!(found.expect("it is for these harts"), without_h);
        let error =
            Kernel::load(Some(&kernel), needs(!without_h)).expect_err("it is for other harts").to_string();
        assert!(error.contains("the H extension; the board's harts") && error.contains(other), "{error}");
    }
}

#[test]
#[should_panic(expected = "have no second stage")]
fn no_guest_has_two_stages() {
    on(1).with(shuts_down().translation("two-stage")).run(Clock::Host);
}

/// The manifest says that there is no H: QEMU takes the last CPU that it is told. (The other way round: boot.rs.)
#[test]
fn it_does_not_boot_on_harts_with_h() {
    let cpu = ["-cpu", "rv64"].map(String::from);
    let run = on(2).qemu_args(cpu).with(shuts_down()).run(Clock::Host);
    run.refused("they have the H extension");
    assert_ne!(run.report.outcome.exit_code(), 0);
}

#[test]
fn each_preset_works() {
    each_preset_works_on(on, || Guest::probe("tables", "n=4000").vcpus(2));
}

#[test]
fn the_machine_is_that_of_harts_with_h() {
    for (probe, args) in [
        ("sbi", "strict=1"),
        ("plic", "strict=1"),
        ("virt", "strict=1"),
        ("fpkeep", "ms=100"),
        ("timer", "n=100"),
    ] {
        on(1).with(Guest::probe(probe, args)).run(Clock::Icount).good().result(probe);
    }
    on(2).with(Guest::probe("smp", "rounds=20").vcpus(4).harts([0, 1])).run(CLOCK).good().result("smp");
}

/// Linux with four vCPUs beside an RTOS on one of their harts, as in the demo.
#[track_caller]
fn linux_shares_its_harts(harts: u32, preset: &'static str) {
    let linux = Guest::linux("hackbench").args("ainori.loops=10").vcpus(4).harts(0..harts);
    let freertos =
        Guest::freertos("period_us=1000 periods=400 begin_ms=10 burn_percent=30 report_ms=0").harts([1]);
    let run = on(harts).policy(preset).with(linux).with(freertos.priority(10)).run(CLOCK);
    run.good();
    run.lost_no_tick("freertos", 400).was_in_time("freertos", "beside Linux");
    assert_eq!(run.number("linux", "cpus"), 4);
    for hart in 0..harts as usize {
        looks_for_interrupts(&run, hart);
    }
}

/// Also where nothing but Linux is, a hart looks for interrupts as often as beside an RTOS. (Sections of the shadow's work took up to 6.9 us.)
#[track_caller]
fn looks_for_interrupts(run: &Run, hart: usize) {
    let longest = run.longest_irqs_off_ns(hart);
    println!("hart {hart}: {longest} ns without a look for interrupts");
    run.check(
        longest <= IRQS_OFF_BESIDE_RTOS_NS,
        format_args!("hart {hart}: {longest} ns without a look for interrupts"),
    );
}

#[test]
fn smp_linux_shares_two_harts_with_an_rtos() {
    linux_shares_its_harts(2, "ainori");
}

#[test]
fn smp_linux_shares_four_harts_with_an_rtos() {
    linux_shares_its_harts(4, "spumone");
}

/// Harts that start, stop, interrupt and fence each other, and an RTOS before them.
#[test]
fn four_vcpus_work_together_beside_an_rtos() {
    let smp = Guest::probe("smp", "rounds=20").vcpus(4).harts([0, 1]);
    let freertos =
        Guest::freertos("period_us=1000 periods=200 begin_ms=10 burn_percent=30 report_ms=0").harts([1]);
    let run = on(2).policy("ainori").with(smp).with(freertos.priority(10)).run(CLOCK);
    run.good().result("smp");
    run.lost_no_tick("freertos", 200).was_in_time("freertos", "beside harts that fence");
}

/// What a guest has pending is in no hart there, so that a hart that waits isn't woken by it. (It slept until the core's next alarm.)
#[test]
fn who_has_an_interrupt_pending_does_not_sleep() {
    let run = on(1).with(Guest::probe("pending", "")).run(Clock::Icount);
    run.good().result("pending");
}

/// An RTOS to which nobody else can come waits in its hart, as it does with H: it was put to sleep at each WFI, as if others could have the hart, if anybody elsewhere was less urgent.
#[test]
fn who_has_a_hart_to_itself_waits_in_it() {
    let args = "period_us=1000 periods=200 begin_ms=10 burn_percent=30 report_ms=0";
    for preset in ["partition", "spumone"] {
        let rtos = Guest::freertos(args).harts([1]).priority(10);
        let run = on(2).policy(preset).with(Guest::probe("naps", "").harts([0])).with(rtos).run(CLOCK);
        run.good();
        run.lost_no_tick("freertos", 200).was_in_time("freertos", preset);
        let vcpu = &run.guest("freertos").vcpus[0];
        let (waits, dispatches) = (vcpu.exits["wfi"], vcpu.dispatches);
        run.check(waits >= 50, format_args!("it waited {waits} times: too few to show anything"));
        run.check(dispatches <= 2, format_args!("it came to its hart {dispatches} times"));
    }
}

/// Eight harts put back what was replaced in their guest's text, all at the same time, as one is about to read it. (They waited for each other, up to 110 us without a look for
/// interrupts.)
#[test]
fn harts_that_put_instructions_back_together_look_for_interrupts() {
    let args = "seed=13370292360285111505 inputs=1000000000 begin_ms=0 ms=1 patience_ms=38";
    let fuzz = Guest::fuzz(args).vcpus(8).background().restart("always", 32, "1us");
    let freertos = Guest::freertos("period_us=1000 periods=65 begin_ms=5 burn_percent=25 report_ms=0");
    let run = on(8).policy("ainori").with(fuzz).with(freertos.harts([2]).priority(10)).run(CLOCK);
    run.good();
    run.lost_no_tick("freertos", 65);
    for hart in 0..8 {
        looks_for_interrupts(&run, hart);
    }
}

/// Whatever stands for an instruction, and whoever puts it back meanwhile: a kernel and a program that execute it, and who loads it, have what was stored there. (A kernel got a breakpoint
/// where another hart had just put back its SRET, WFI or SFENCE.VMA, and a program where its kernel's instruction was one.)
#[test]
fn an_instruction_is_what_was_stored_whoever_has_it() {
    for (programs, vcpus, seed) in [(0, 4, 1), (1, 3, 2)] {
        let args = format!("ms=100 programs={programs} seed={seed}");
        let text = Guest::probe("text", &args).memory_mib(64).vcpus(vcpus).harts(0..vcpus);
        let run = on(vcpus).with(text).run(CLOCK);
        run.good();
        let [kernel, user, loads, stores] =
            ["kernel", "user", "loads", "stores"].map(|key| run.number("text", key));
        println!("{kernel} by kernels, {user} by programs, {loads} loads, {stores} stores");
        run.check(kernel >= 1_000 && loads.min(stores) >= 50, "too little was done to show anything");
        run.check(user >= 500 * programs, "programs did too little to show anything");
    }
}

/// Some pages of the hypervisor are in each table that such a hart walks. No guest finds them, and each finds its own memory at the same place. A device isn't reached by an access
/// that begins in memory.
#[test]
fn a_guest_reaches_what_its_tables_have_and_nothing_else() {
    for (cpu, levels) in [
        ("rv64", 4),
        ("rv64,h=false", 4),
        ("rv64,h=false,sv57=off", 4),
        ("rv64,h=false,sv57=off,sv48=off", 3),
    ] {
        let run = System::on(1).cpu(cpu).with(Guest::probe("reach", "strict=1")).run(Clock::Icount);
        run.good().result("reach");
        assert_eq!(run.number("reach", "levels"), levels, "{cpu}");
    }
}

/// Linux uses the greatest format that its hart takes, up to Sv48, and the hypervisor is in these tables as well.
#[test]
fn linux_has_as_many_levels_as_its_harts() {
    for (cpu, mmu) in [("rv64,h=false", "sv48"), ("rv64,h=false,sv57=off,sv48=off", "sv39")] {
        let mut terminal = Terminal::run(&System::on(2).cpu(cpu).with(Guest::linux("shell").vcpus(2)));
        terminal.wait_for("# ");
        terminal.type_in("grep mmu /proc/cpuinfo\r");
        for _ in 0..2 {
            terminal.wait_for(": ");
            terminal.wait_for(mmu);
        }
        terminal.type_in("exit\r");
        let (status, seen) = terminal.end();
        assert!(status.success(), "{status}:\n{seen}");
        assert_eq!(seen.matches(": sv").count(), 2, "{seen}");
    }
}

/// Each instruction that the fast path carries out, and others beside them, with each register: they do what the specification says, and the same, whether breakpoints stand
/// for them or not. With breakpoints most of them go by the fast path, and are no exits; without, calls of programs and the timer's interrupts alone do. (Of what goes by it calls, returns and interrupts are
/// counted.) In two parts, as there are more of these instructions than the hypervisor has places for.
#[test]
fn an_instruction_is_as_specified_with_breakpoints_and_without() {
    for (cpu, seed) in
        [("rv64,h=false", 1), ("rv64,h=false,v=true", 2), ("rv64,h=false", 3), ("rv64,h=false,v=true", 4)]
    {
        let args = format!("strict=1 times=8 seed={seed} parts=2 part={}", (seed - 1) / 2);
        let run = |breakpoints| {
            let guest = Guest::probe("fast", &args).breakpoints(breakpoints);
            System::on(1).cpu(cpu).with(guest).run(Clock::Icount)
        };
        let (with, without) = (run(true), run(false));
        for run in [&with, &without] {
            run.good().result("fast");
        }
        for key in ["steps", "interrupts", "calls", "faults", "ticks"] {
            assert_eq!(with.number("fast", key), without.number("fast", key), "{cpu}: {key}");
            assert_ne!(with.number("fast", key), 0, "{cpu}: {key}");
        }
        let [fast, calls] = [&with, &without].map(|run| run.fast_path("fast"));
        let [few, many] = [&with, &without].map(|run| run.exits_for("fast", "privileged"));
        println!("{cpu}: {fast} on the fast path and {few} exits; without breakpoints {calls} and {many}");
        let returns = with.number("fast", "calls");
        with.check(
            fast > calls + returns / 2,
            format_args!("{fast} went by the fast path, of {returns} returns"),
        );
        with.check(few < many / 2, format_args!("{few} exits, without breakpoints {many}"));
        without.check(
            calls > 0 && calls <= without.number("fast", "calls") + without.number("fast", "ticks"),
            format_args!("{calls} went by the fast path"),
        );
    }
}

/// What is carried out together with the instruction before it, and by what is remembered of address spaces, is what is there at that moment. Of the writes of `satp` many take no exit, though translations that are fenced or
/// filled in have all address spaces forgotten.
#[test]
fn rows_of_instructions_and_changes_of_address_space_are_as_specified() {
    let run = |breakpoints| {
        let guest = Guest::probe("rows", "times=4000").breakpoints(breakpoints);
        let run = on(1).with(guest).run(Clock::Icount);
        run.good().result("rows");
        run
    };
    let (with, without) = (run(true), run(false));
    assert_eq!(with.number("rows", "executed"), without.number("rows", "executed"));
    for (cause, least) in [("satp", 1500), ("privileged", 20_000)] {
        let [few, many] = [&with, &without].map(|run| run.exits_for("rows", cause));
        println!("{few} exits for {cause}, without breakpoints {many}");
        with.check(few + least < many, format_args!("{few} exits for {cause}, without breakpoints {many}"));
    }
}

/// Firmware stores what was typed where a breakpoint is, or behind one in the same instruction.
#[test]
fn text_that_is_typed_is_executed() {
    let rows = Guest::probe("rows", "times=8 typed=1").breakpoints(true);
    let mut terminal = Terminal::run(&on(1).with(rows).input("rows"));
    for key in [" ", "&"] {
        terminal.wait_for("type a key");
        terminal.type_in(key);
    }
    let (status, seen) = terminal.end();
    assert!(status.success(), "{status}:\n{seen}");
}

/// On a hart with H the same probes ask the hart.
#[test]
fn a_hart_with_h_does_the_same() {
    for probe in ["fast", "rows"] {
        System::on(1).cpu("rv64").with(Guest::probe(probe, "")).run(Clock::Icount).good().result(probe);
    }
}

/// A guest that is started again finds nothing of its former life, in its memory or in what harts and shadows have kept of it.
#[test]
fn a_guest_is_started_again() {
    let lives = Guest::probe("lives", "end=reboot until_ms=250").restart("on-failure", 32, "10s");
    let run = on(2).with(lives.vcpus(2).harts([0, 1])).run(CLOCK);
    run.good().stopped("lives", StopReason::Shutdown);
    let lives = run.guest("lives").former_lives.len();
    run.check(lives >= 3, format_args!("{lives} lives are too few to show anything"));
}
