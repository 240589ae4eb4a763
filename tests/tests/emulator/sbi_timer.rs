//! Harts without Sstc: the firmware sets the one timer that a hart has, for the hypervisor and for guests, whose timers are calls to the SBI.
use ainori_tests::{Clock, Guest, System, checkout};

/// A board with such harts.
fn on(harts: u32) -> System {
    System::on(harts).cpu("rv64,sstc=false")
}

/// FreeRTOS whose tick is the SBI's.
pub fn freertos(args: &str) -> Guest {
    Guest::freertos(args).file(&checkout(".cache/guests/freertos/freertos-sbi-timer.elf"))
}

/// Longest delay of a 1 ms task, and of its tick handler: as elsewhere, and behind it what the firmware takes for the timer's interrupt and for a call.
const TASK_NS: u64 = 6_500;
const HANDLER_NS: u64 = 4_200;

#[test]
fn an_rtos_beside_linux_loses_no_tick() {
    let rtos = freertos("period_us=1000 periods=1000 burn_percent=30 burn_period_us=20000 report_ms=0");
    let run = on(1).with(Guest::linux("boot").harts([0])).with(rtos).run(Clock::Lockstep { q: 250 });
    run.good().lost_no_tick("freertos", 1000);
    let [task, handler] = ["delay_ns/max", "handler_delay_ns/max"].map(|key| run.number("freertos", key));
    println!("task {task} ns, handler {handler} ns late at most");
    run.check(task <= TASK_NS, format_args!("a task is {task} ns late"));
    run.check(handler <= HANDLER_NS, format_args!("a tick handler is {handler} ns late"));
    // A call for each tick, and the timer for each that came while the RTOS ran.
    let calls = run.exits_for("freertos", "sbi-time");
    run.check((1000..1100).contains(&calls), format_args!("{calls} calls for 1000 ticks"));
}

/// One that sleeps between ticks of a millisecond, so many, on a hart where nothing else would wake it.
pub fn a_guest_is_woken_by_its_timer(board: System, hart: u32, ticks: u32) {
    let timer = Guest::probe("timer", &format!("period_us=1000 n={ticks}"))
        .file(&checkout(".cache/guests/probes/timer-sbi-timer.elf"))
        .harts([hart]);
    let run = board.with(timer).run(Clock::Icount);
    run.good();
    assert_eq!(run.number("timer", "ticks_lost"), 0);
    println!("{} ns late at most", run.number("timer", "handler_delay_ns/max"));
}

#[test]
fn a_guest_alone_on_its_hart_is_woken_by_its_timer() {
    a_guest_is_woken_by_its_timer(on(1), 0, 500);
}

/// Calls of the SBI's timer: not before its time, and taken back by a later one; by HSM's start and stop, too.
#[test]
fn the_sbi_is_as_the_specification_has_it() {
    on(2).with(Guest::probe("sbi", "").vcpus(2).harts([0, 1])).run(Clock::Lockstep { q: 250 }).good();
}

#[test]
fn two_linux_guests_share_two_harts() {
    let linux = |name| Guest::linux("boot").named(name).vcpus(2).harts([0, 1]);
    let system = on(2).with(linux("linux-a")).with(linux("linux-b")).policy("ainori");
    system.run(Clock::Lockstep { q: 250 }).good();
}

/// With harts that have it, guests would be told of a timer that they can't set; and the hypervisor would ask for what it has.
#[test]
fn each_build_is_for_its_own_harts() {
    let small = || Guest::probe("selfshutdown", "");
    // The tool doesn't let these be run: the machine's harts are others than the manifest's.
    let other = |system: System, cpu: &str| {
        system.with(small()).qemu_args(["-cpu".into(), cpu.into()]).run(Clock::Icount)
    };
    other(System::on(1), "rv64,sstc=false").refused("lack the Sstc extension (stimecmp)");
    other(on(1), "rv64")
        .refused("have the Sstc extension (stimecmp): this is the hypervisor for those that lack it");
}
