//! Guests that do what they may not: each is stopped and reported, and its neighbours don't notice.
use ainori::report::{GuestOutcome, Outcome};
use ainori_report::{Fault, StopReason};
use ainori_tests::{
    Clock, Guest, Run, System, bounds::IRQS_OFF_BESIDE_RTOS_NS, checkout, hypervisor, symbols::Program,
};

/// `scause` (privileged specification, "Supervisor cause register values after trap").
const ILLEGAL_INSTRUCTION: u64 = 2;
const FETCH_GUEST_PAGE_FAULT: u64 = 20;
const STORE_GUEST_PAGE_FAULT: u64 = 23;

/// Where guests' memory starts, and how much the probes have (see `Guest::probe`).
const MEMORY: u64 = 0x8000_0000;
const MEMORY_SIZE: u64 = 16 << 20;

/// A wild guest between FreeRTOS and Linux on one hart, going wild once all three run. The neighbours do their jobs.
fn beside_neighbours(probe: &str) -> Run {
    let run = System::on(1)
        .with(Guest::probe(probe, "ms=1000").strict())
        .with(Guest::freertos("periods=3000 burn_percent=30"))
        .with(Guest::linux("hackbench"))
        .run(Clock::Icount);
    run.ended(Outcome::GuestFailed).lost_no_tick("freertos", 3_000).result("linux");
    assert_ne!(run.report.outcome.exit_code(), 0);
    for neighbour in ["freertos", "linux"] {
        run.check(
            run.guest(neighbour).outcome == GuestOutcome::Done,
            format_args!("{neighbour} should have done its job"),
        );
    }
    run
}

/// What every report on a fault in a probe's `guest_main` has in common.
fn looks_right(run: &Run, probe: &str, fault: &Fault, cause: u64) {
    run.check(
        run.guest(probe).outcome == GuestOutcome::Faulted,
        "the wild guest should be reported as faulted",
    );
    run.check(fault.cause == cause, format_args!("scause should be {cause}, not {}", fault.cause));
    run.check(fault.mode == "VS", format_args!("it was in VS-mode, not {}", fault.mode));
    run.check(fault.x.len() == 32 && fault.x[0] == 0, "there should be 32 registers, the first of them 0");
    let [sp, memory_end] = [fault.x[2], MEMORY + MEMORY_SIZE];
    run.check(
        (MEMORY..memory_end).contains(&sp),
        format_args!("the stack pointer {sp:#x} isn't in the guest's memory"),
    );
    for name in ["vsstatus", "vstvec", "vsepc", "vscause", "vstval", "vsatp"] {
        run.check(fault.csr.contains_key(name), format_args!("the report has no {name}"));
    }
}

fn program(probe: &str) -> Program {
    Program::open(&checkout(&format!(".cache/guests/probes/{probe}.elf")))
}

fn is_in_guest_main(run: &Run, probe: &str, pc: u64) {
    let function = program(probe).function_at(pc);
    run.check(
        function.as_deref() == Some("guest_main"),
        format_args!("pc {pc:#x} is in {function:?}, not in guest_main"),
    );
}

#[test]
fn a_wild_store_stops_its_guest_only() {
    let run = beside_neighbours("wild-store");
    let fault = run.fault("wild-store");
    looks_right(&run, "wild-store", fault, STORE_GUEST_PAGE_FAULT);
    is_in_guest_main(&run, "wild-store", fault.pc);
    assert_eq!(fault.address, MEMORY + MEMORY_SIZE);
    assert_eq!(
        fault.x.iter().filter(|x| **x == 0x0060_0dba_d600_dbad).count(),
        1,
        "the register that was to be stored"
    );
    assert!(fault.what.contains("store"), "{}", fault.what);
    assert_ne!(fault.instruction, 0);
}

#[test]
fn a_wild_jump_stops_its_guest_only() {
    let run = beside_neighbours("wild-jump");
    let fault = run.fault("wild-jump");
    looks_right(&run, "wild-jump", fault, FETCH_GUEST_PAGE_FAULT);
    assert_eq!(fault.pc, MEMORY + MEMORY_SIZE);
    assert_eq!(fault.address, MEMORY + MEMORY_SIZE);
    is_in_guest_main(&run, "wild-jump", fault.x[1]); // where the jump would have returned to
    assert!(fault.what.contains("fetch"), "{}", fault.what);
}

#[test]
fn an_illegal_instruction_without_a_handler_stops_its_guest_only() {
    let run = beside_neighbours("wild-illegal");
    let fault = run.fault("wild-illegal");
    looks_right(&run, "wild-illegal", fault, ILLEGAL_INSTRUCTION);
    is_in_guest_main(&run, "wild-illegal", fault.pc);
    assert_eq!(fault.csr["vstvec"], 0);
    assert!(fault.what.contains("illegal instruction"), "{}", fault.what);
}

/// Where the hypervisor hands traps on itself, as where the hart does.
#[test]
fn a_trap_in_user_mode_without_a_handler_stops_its_guest_only() {
    for policy in ["spumone", "spumone-trap-based-strict", "spumone-trap-based-uncured"] {
        let rtos = Guest::freertos("periods=100 burn_percent=30 report_ms=0").harts([0]).priority(10);
        let run = System::on(2)
            .policy(policy)
            .with(Guest::probe("wild-user", "").harts([0, 1]))
            .with(rtos)
            .run(Clock::Lockstep { q: 250 });
        run.ended(Outcome::GuestFailed).lost_no_tick("freertos", 100);
        let outcome = run.guest("wild-user").outcome;
        run.check(outcome == GuestOutcome::Faulted, format_args!("{policy}: {outcome:?}"));
    }
}

/// What a guest might reach for, at the addresses where the board has it.
pub const OTHERS: [(&str, u64); 7] = [
    ("the clock", 0x0010_1000),
    ("the timers of all harts", 0x0200_0000),
    ("a device behind the virtio slots", 0x1000_9000),
    ("the flash memory", 0x2000_0000),
    ("memory behind the guest's own", 0x8800_0000),
    ("the board's last memory", 0x8000_0000 + (2 << 30) - 8),
    ("an address too large for any guest", 1 << 45),
];

/// What a guest might reach for, at the address where the board has it: its store ends there, and FreeRTOS, which shares the
/// hart, goes on.
#[test]
fn no_guest_reaches_the_boards_devices_or_anothers_memory() {
    for (what, address) in OTHERS {
        let run = beside_freertos(address);
        let found = run.fault("wild-store").address;
        run.check(found == address, format_args!("{what}: reported as {found:#x}, not {address:#x}"));
    }
}

/// At the hypervisor's address a guest has memory of its own: its store goes there, and the hypervisor goes on.
#[test]
fn no_guest_reaches_the_hypervisor() {
    let kernel = Program::open(&hypervisor());
    for symbol in ["__image_start", "trap_entry"] {
        beside_freertos(kernel.address(symbol)).stopped("wild-store", StopReason::Failure);
    }
}

fn beside_freertos(address: u64) -> Run {
    let run = System::on(1)
        .with(Guest::probe("wild-store", &format!("addr={address:#x}")).strict())
        .with(Guest::freertos("periods=50 burn_percent=10 burn_period_us=10000"))
        .run(Clock::Icount);
    run.ended(Outcome::GuestFailed).lost_no_tick("freertos", 50);
    run
}

/// Unless its manifest says otherwise, a guest gets the access fault that a machine of its own would give it, and goes on.
#[test]
fn a_wild_access_is_the_guests_own_affair() {
    let run = System::on(1)
        .with(Guest::probe("virt", "strict=1"))
        .with(Guest::probe("virt", "beyond=0x20000000").named("flash"))
        .with(Guest::probe("virt", "beyond=0x30000000").named("pci"))
        .with(Guest::probe("virt", "beyond=0x1000").named("low"))
        .with(Guest::freertos("periods=50 burn_percent=10 burn_period_us=10000"))
        .run(Clock::Icount);
    run.good().lost_no_tick("freertos", 50);
    for guest in ["virt", "flash", "pci", "low"] {
        let wild = run.guest(guest).vcpus[0].exits["access-fault"];
        run.check(wild >= 5, format_args!("{guest} made only {wild} wild accesses"));
    }
}

/// In Linux, only the process ends.
#[test]
fn a_wild_access_of_a_process_ends_only_the_process() {
    let run = System::on(1).with(Guest::linux("devmem")).run(Clock::Icount);
    run.good();
    run.check(run.guest("linux").vcpus[0].exits["access-fault"] >= 2, "both accesses should have come here");
}
/// Many guests that fault at once, or one after the other, on both harts of the board: each is reported with all its registers, and FreeRTOS doesn't notice. (A
/// report was written with interrupts off, in 139 us: tasks were 3.28 ms late.)
#[test]
fn many_faults_delay_no_task_and_each_is_reported() {
    for (policy, apart_ms) in [("ainori", 0), ("ainori", 7), ("spumone-on-demand", 0)] {
        let mut system = System::on(2)
            .policy(policy)
            .with(Guest::freertos("periods=300 burn_percent=50 burn_period_us=50000 report_ms=0"));
        for index in 0..14 {
            let wild = Guest::probe("wild-store", &format!("ms={}", index * apart_ms));
            system = system.with(wild.strict().named(&format!("wild-{index}")).harts([index % 2]));
        }
        let run = system.run(Clock::Lockstep { q: 250 });
        run.ended(Outcome::GuestFailed).lost_no_tick("freertos", 300);
        for index in 0..14 {
            looks_right(
                &run,
                &format!("wild-{index}"),
                run.fault(&format!("wild-{index}")),
                STORE_GUEST_PAGE_FAULT,
            );
        }
        run.was_in_time("freertos", format_args!("{policy}, {apart_ms} ms apart"));
    }
}

/// Who stops on the hart that keeps house, among sleepers of many levels, looks at what there is to do there. (With two looks, one behind the other, that was
/// an irqs-off section of 5.1 us.)
#[test]
fn the_end_of_a_guest_among_many_levels_is_no_long_section() {
    let sleeper = |number: u32| {
        Guest::freertos("periods=60 burn_percent=0 report_ms=10")
            .named(&format!("sleeper-{number}"))
            .priority(5 + number)
    };
    let system = System::on(1)
        .with(Guest::probe("talk", "bytes=10000 way=dbcn").vcpus(4))
        // It refuses these words, and says why.
        .with(Guest::freertos("period_us=1001").named("refuses").priority(31));
    let run = (0..5).map(sleeper).fold(system, System::with).run(Clock::Lockstep { q: 1_000 });
    run.ended(Outcome::GuestFailed);
    let longest = run.longest_irqs_off_ns(0);
    run.check(longest <= IRQS_OFF_BESIDE_RTOS_NS, format_args!("a section took {longest} ns"));
}
