//! The large build of the hypervisor: more harts, vCPUs, and vCPUs of one guest than the usual one has room for.
use ainori_limits::Room;
use ainori_tests::{Clock, Guest, System, checkout};

fn on(harts: u32) -> System {
    System::on(harts).kernel(&checkout(".cache/kernel/ainori-large.elf"))
}

/// All that a small system has to do, it does as well: an RTOS beside a guest that sends interrupts to all of its vCPUs.
#[test]
fn a_small_system_is_none_the_worse() {
    let run = on(2)
        .policy("ainori")
        .with(Guest::probe("smp", "rounds=5").vcpus(4).harts([0, 1]))
        .with(
            Guest::freertos("period_us=1000 periods=50 burn_percent=30 report_ms=0").harts([1]).priority(10),
        )
        .run(Clock::Lockstep { q: 250 });
    run.good();
    run.lost_no_tick("freertos", 50);
}

/// More harts, and more vCPUs of a guest, than fit into the usual build; and together more than a word has bits for.
#[test]
fn many_harts_and_vcpus_do_their_jobs() {
    let run = on(17)
        .policy("ainori")
        .with(Guest::probe("smp", "rounds=1 patience_ms=100000").vcpus(33).named("one"))
        .with(Guest::probe("storm", "n=20").vcpus(33).named("two"))
        .run(Clock::Host);
    run.good();
    const { assert!(2 * 33 > Room::USUAL.vcpus) }
}

/// Linux has a CPU on each of 32 harts, beside FreeRTOS on one of them, and all of them have work.
#[test]
#[ignore = "soak: minutes"]
fn linux_has_32_vcpus_on_32_harts() {
    let run = on(32)
        .policy("ainori")
        .with(Guest::linux("hackbench").args("ainori.loops=20").vcpus(32).memory_mib(512))
        .with(
            Guest::freertos("period_us=1000 periods=1000 begin_ms=10 burn_percent=30 report_ms=0")
                .harts([31])
                .priority(10),
        )
        .run(Clock::Lockstep { q: 250 });
    run.good();
    run.lost_no_tick("freertos", 1000);
    assert_eq!(run.number("linux", "cpus"), 32);
    let idle = run.guest("linux").vcpus.iter().position(|vcpu| vcpu.running == 0);
    run.check(idle.is_none(), format_args!("vCPU {idle:?} of Linux never ran"));
}

/// The usual build is told to have too little room before anything runs.
#[test]
#[should_panic(expected = "has room for 16 harts")]
fn a_build_with_too_little_room_is_told() {
    let system = System::on(17).with(Guest::probe("ends", ""));
    system.kernel(&ainori_tests::hypervisor()).run(Clock::Host);
}
