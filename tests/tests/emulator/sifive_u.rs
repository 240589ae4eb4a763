//! QEMU's `sifive_u`, a board with other harts, contexts, timers and another serial port than `virt`: U54, which have neither H nor Sstc nor Zawrs, nor `senvcfg`. Hart 0 is the
//! firmware's. A look at the clock traps to the firmware there, and tells microseconds: so all is slower than on `virt`.
use ainori::image::Kernel;
use ainori_limits::Room;
use ainori_manifest::Needs;
use ainori_tests::{
    Clock, Guest, Run, System, checkout,
    harts::{hypervisor_without_h, hypervisor_without_h_and_sstc},
};

const CLOCK: Clock = Clock::Lockstep { q: 250 };

/// Longest delay of a task of FreeRTOS, whatever Linux or a hostile guest does beside it.
const TASK_NS: u64 = 150_000;

fn on(harts: u32) -> System {
    System::on_sifive_u(harts)
}

/// One that reports nothing before its end.
fn freertos(args: &str) -> Guest {
    crate::sbi_timer::freertos(&format!("report_ms=0 {args}"))
}

#[track_caller]
fn is_in_time(run: &Run, ticks: u64) {
    run.lost_no_tick("freertos", ticks);
    let [task, handler] = ["delay_ns/max", "handler_delay_ns/max"].map(|key| run.number("freertos", key));
    println!("task {task} ns, handler {handler} ns late at most");
    run.check(task <= TASK_NS, format_args!("a task is {task} ns late"));
}

/// Hart 0 has no supervisor mode, and the others have contexts 2, 4, 6 and 8 of the PLIC. IPIs are the firmware's, and so is the timer. QEMU has the board with other harts, too.
#[test]
fn guests_run_on_harts_1_to_4() {
    for system in [on(4), on(4).cpu("rv64,sstc=false")] {
        let three = Guest::probe("smp", "rounds=0020").vcpus(3).harts([1, 3, 4]);
        let run = system.with(freertos("period_us=10000 periods=20").harts([2])).with(three).run(CLOCK);
        run.good().result("smp");
        is_in_time(&run, 20);
        let harts: Vec<u64> = run.report.cores.iter().map(|core| core.hart).collect();
        run.check(harts == [1, 2, 3, 4], format_args!("{harts:?}"));
        let board = run.report.board.as_ref().map(|board| board.model.as_str());
        run.check(board == Some("SiFive HiFive Unleashed A00"), format_args!("{board:?}"));
    }
}

/// As in systems/sifive-u.toml.
#[test]
fn smp_linux_shares_all_harts_with_an_rtos() {
    let linux = Guest::linux("hackbench").args("ainori.loops=5").vcpus(4).harts(1..5);
    let rtos = freertos("period_us=10000 periods=100 burn_percent=20").harts([2]).priority(10);
    let run = on(4).policy("ainori").with(linux).with(rtos).run(CLOCK);
    run.good();
    assert_eq!(run.number("linux", "cpus"), 4);
    is_in_time(&run, 100);
}

/// Two CPUs on one hart, which spin for each other. The way to a look at a spinning one's registers and back takes longer on U54 than the pause between two: each look was due before the CPU had
/// executed an instruction, found it where it had been, and let the other one go on, to which the same happened, for ever.
#[test]
fn who_is_looked_at_gets_on() {
    for policy in ["ainori", "spumone"] {
        for system in [on(1), on(1).cpu("rv64,sstc=false")] {
            let two = Guest::probe("smp", "rounds=0020").vcpus(2).harts([1]);
            system.policy(policy).with(two).run(CLOCK).good().result("smp");
        }
    }
}

/// The same with the console's work for a guest on another hart, which writes without end: who was beside that work came to nothing within a minute.
#[test]
fn who_is_beside_housework_gets_on() {
    for system in [on(2), on(2).cpu("rv64,sstc=false")] {
        let flood = Guest::probe("flood", "").harts([2]).background();
        let run = system.policy("spumone").with(Guest::probe("smp", "").harts([1])).with(flood).run(CLOCK);
        run.good().result("smp");
    }
}

#[test]
fn a_hostile_guest_disturbs_nobody() {
    let fuzz = Guest::fuzz("seed=14 inputs=1000000000 begin_ms=0 ms=150")
        .vcpus(2)
        .harts([1, 2])
        .background()
        .restart("always", 32, "1us");
    let rtos = freertos("period_us=10000 periods=15 burn_percent=20").harts([2]).priority(10);
    let run = on(2).policy("ainori").with(fuzz).with(rtos).run(CLOCK);
    run.good();
    is_in_time(&run, 15);
}

#[test]
fn a_guest_is_started_again() {
    let again = Guest::probe("lives", "end=failure until_ms=600").restart("on-failure", 32, "10s").harts([2]);
    let run = on(2)
        .with(again)
        .with(freertos("period_us=10000 periods=45 burn_percent=0").harts([2]).priority(10))
        .run(CLOCK);
    run.good();
    let former = run.report.guests[0].former_lives.len();
    run.check(former >= 2, format_args!("{former} lives before the last one"));
    is_in_time(&run, 45);
}

/// Time is what one hart executes; the firmware's stands still meanwhile.
#[test]
fn one_hart_can_be_the_clock() {
    crate::sbi_timer::a_guest_is_woken_by_its_timer(on(1), 1, 200);
}

/// Calls of the SBI's timer: not before its time, and taken back by a later one; by HSM's start and stop, too.
#[test]
fn the_sbi_is_as_the_specification_has_it() {
    on(2).with(Guest::probe("sbi", "").vcpus(2).harts([1, 2])).run(CLOCK).good().result("sbi");
}

/// The tool tells builds apart before anything runs.
#[test]
fn no_other_build_is_taken_for_this_board() {
    let needs = Needs {
        room: Room::USUAL,
        memory_modes: true,
        without_h: true,
        without_sstc: true,
        more_uarts: true,
        watchdogs: false,
    };
    assert!(Kernel::load(Some(&hypervisor_without_h_and_sstc()), needs).is_ok());
    for (kernel, needs, why) in [
        (hypervisor_without_h(), needs, "is for harts with the Sstc extension; the board's harts lack it"),
        (
            checkout(".cache/kernel/ainori-sbi-timer-uarts.elf"),
            needs,
            "is for harts with the H extension; the board's harts lack it",
        ),
        (
            hypervisor_without_h(),
            Needs { without_sstc: false, ..needs },
            "doesn't drive the serial port of this board",
        ),
    ] {
        let error = Kernel::load(Some(&kernel), needs).expect_err("it is for others").to_string();
        assert!(error.contains(why), "{error}");
    }
}

/// So does the boot. On `virt`, where each build's first words are seen.
#[test]
fn each_build_is_for_its_own_harts() {
    let other = |system: System, cpu: &str| {
        let system = system.with(Guest::probe("selfshutdown", ""));
        system.qemu_args(["-cpu".into(), cpu.into()]).run(Clock::Icount)
    };
    other(System::on(1).cpu("rv64,h=false,sstc=false"), "rv64,h=false")
        .refused("have the Sstc extension (stimecmp): this is the hypervisor for those that lack it");
    other(System::on(1).cpu("rv64,h=false,sstc=false"), "rv64,sstc=false")
        .refused("they have the H extension");
    other(System::on(1).cpu("rv64,h=false"), "rv64,h=false,sstc=false")
        .refused("lack the Sstc extension (stimecmp)");
}
