//! Boards with an APLIC (AIA), which interrupts harts itself or sends messages to their IMSICs: guests have the same there, and what is promised holds as with
//! a PLIC. On harts with H: without it no guest has interrupt files, nor a device where the board has IMSICs.
use ainori::report::Life;
use ainori_tests::{APLIC, Clock, Guest, IMSIC, PLIC, System, bounds::TASK_NS, terminal::Terminal};

const LOCKSTEP: Clock = Clock::Lockstep { q: 250 };
const RTC: &str = "/soc/rtc@101000";

/// Boards of both kinds, with so many harts.
fn on(harts: u32) -> impl Iterator<Item = (&'static str, System)> {
    [APLIC, IMSIC].into_iter().map(move |kind| (kind, System::on(harts).with_h().interrupts(kind)))
}

/// With more vCPUs than harts. What is typed comes through the board's APLIC and the guest's.
#[test]
fn linux_is_interrupted_through_its_own_driver() {
    for ((kind, system), driver) in on(2).zip(["APLIC-DIRECT", "APLIC-MSI"]) {
        let mut terminal = Terminal::run(&system.with(Guest::linux("shell").vcpus(3)));
        terminal.wait_for("# ");
        terminal.type_in("grep ttyS0 /proc/interrupts; echo hello-$((6*7))\r");
        terminal.wait_for("hello-42");
        terminal.type_in("exit\r");
        let (status, seen) = terminal.end();
        assert!(status.success(), "{kind}: {status}:\n{seen}");
        assert!(seen.contains(driver), "{kind}: its console's interrupts aren't {driver}'s: {seen}");
    }
}

#[test]
fn a_task_beside_linux_is_no_later_than_with_a_plic() {
    for (kind, system) in on(2) {
        for preset in ["spumone", "ainori"] {
            let system = system.clone().policy(preset).with(Guest::linux("hackbench").vcpus(2));
            let rtos = Guest::freertos("periods=3000 burn_percent=30").harts([1]);
            let run = system.with(rtos).run(LOCKSTEP);
            run.good().lost_no_tick("freertos", 3000);
            let latest = run.number("freertos", "delay_ns/max");
            println!("{kind}, {preset}: {latest} ns");
            run.check(latest <= TASK_NS, format_args!("{kind}, {preset}: a task is {latest} ns late"));
        }
    }
}

/// Its handler claims once.
#[test]
fn a_device_interrupts_its_owner_on_any_hart() {
    for (kind, system) in on(2) {
        for hart in 0..2 {
            let owner = Guest::probe("rtc", "n=6").harts([hart]).device(RTC);
            let run = system.clone().with(owner).run(LOCKSTEP);
            run.good();
            run.check(run.number("rtc", "interrupts") == 6, format_args!("{kind}, on hart {hart}"));
        }
    }
}

/// An alarm is set when the last one has come: if a wire that is low again interrupted once more, half of them would count twice, and the last come sooner.
#[test]
fn an_alarm_comes_once() {
    let owner = Guest::probe("rtc", "n=40").device(RTC);
    let took = |system: System, kind: &str| {
        let run = system.with(owner.clone()).run(LOCKSTEP);
        run.good();
        run.check(run.number("rtc", "interrupts") == 40, kind);
        run.guest("rtc").vcpus.iter().map(|vcpu| vcpu.running).sum::<u64>()
    };
    let usual = took(System::on(1), PLIC);
    for (kind, system) in on(1) {
        let ticks = took(system, kind);
        println!("{kind}: {ticks} ticks, with a PLIC {usual}");
        assert!(ticks.abs_diff(usual) < usual / 40, "{kind}: {ticks} ticks, with a PLIC {usual}");
    }
}

/// Its driver may have it as an edge, although the wire says by itself how long it asks: an alarm is one edge. (With an APLIC that interrupts harts itself it came again and
/// again until the handler had served it.)
#[test]
fn an_alarm_that_is_taken_for_an_edge_comes_once() {
    each_alarm_comes("edge=1");
}

/// Where interrupts are messages, a level sends one each time that its wire rises (AIA 4.7), also to a handler that has cleared the cause and asks for nothing more.
#[test]
fn an_alarm_comes_to_a_handler_that_does_not_ask_for_the_wire() {
    each_alarm_comes("completes=0");
}

/// To a driver with these arguments, once.
fn each_alarm_comes(args: &str) {
    for (kind, system) in on(1) {
        let run = system.with(Guest::probe("rtc", &format!("n=40 {args}")).device(RTC)).run(LOCKSTEP);
        run.good();
        run.check(run.number("rtc", "interrupts") == 40, kind);
    }
}

/// With registers that hide from guests what is new to them (Smstateen), which could hide it from the hypervisor, too.
#[test]
fn a_device_interrupts_its_owner_where_registers_can_be_hidden() {
    for (kind, system) in on(1) {
        let run = system.cpu("rv64,smstateen=on").with(Guest::probe("rtc", "n=6").device(RTC)).run(LOCKSTEP);
        run.good();
        run.check(run.number("rtc", "interrupts") == 6, kind);
    }
}

/// Neither kind of board has anything slow on the way from hart to hart: not the firmware, which takes thousands of instructions. (QEMU's boards with IMSICs have no
/// device for software interrupts.)
#[test]
fn harts_interrupt_each_other_as_fast_as_with_a_plic() {
    let guest = Guest::probe("cost", "n=1 pings=1000").vcpus(2).harts([0, 1]);
    let round_trip = |system: System| {
        let run = system.with(guest.clone()).run(Clock::Lockstep { q: 10 });
        run.good();
        run.number("cost", "ipi_round_trip_ns/max")
    };
    let usual = round_trip(System::on(2));
    for (kind, system) in on(2) {
        let found = round_trip(system);
        println!("{kind}: {found} ns, with a PLIC {usual} ns");
        assert!(found <= usual + usual / 4, "{kind}: {found} ns, with a PLIC {usual} ns");
    }
}

/// As with a PLIC (restart.rs).
#[test]
fn a_devices_interrupt_comes_in_each_life() {
    for (kind, system) in on(2) {
        let owner = Guest::probe("rtc", "n=1 late_us=2900").device(RTC);
        let run = system
            .policy("ainori")
            .with(owner.harts([0, 1]).memory_mib(32).background().restart("always", 32, "1us"))
            .with(Guest::probe("bursts", "n=40 us=20000 pause_us=22000").harts([0]).priority(9))
            .run(LOCKSTEP);
        run.good();
        let lives = &run.guest("rtc").former_lives;
        let is_well = |life: &&Life| life.results.first().is_some_and(|result| result["ok"] == true);
        let well = lives.iter().filter(is_well).count();
        run.check(
            lives.len() > 5 && well == lives.len(),
            format_args!("{kind}: {well} of {} lives are well", lives.len()),
        );
    }
}

/// More than a ring holds, from a guest that has its hart to itself.
#[test]
fn a_guest_alone_on_the_board_is_heard_to_the_end() {
    for (kind, system) in on(1) {
        let run = system.with(Guest::probe("flood", "bytes=100000 line=100 way=uart")).run(LOCKSTEP);
        run.good();
        let lines = run.lines("flood").filter(|line| line.len() == 99).count();
        run.check(lines == 1000, format_args!("{kind}: {lines} lines of 1000"));
    }
}
