//! Linux comes up and does its job, on as many vCPUs and harts as it is given; a board that won't do is refused.
use ainori_tests::{Clock, Guest, System, timeline::timeline, whole_trace};

/// Linux with 4 vCPUs on 4 harts, measuring itself.
fn four_vcpus() -> System {
    System::on(4).with(Guest::linux("hackbench").vcpus(4))
}

#[test]
fn linux_on_four_harts_passes_hackbench() {
    let run = four_vcpus().run(Clock::Lockstep { q: 250 });
    run.good();
    assert_eq!(run.number("linux", "cpus"), 4);
}

#[test]
fn linux_on_four_harts_passes_hackbench_with_harts_in_parallel() {
    let run = four_vcpus().run(Clock::Host);
    run.good();
    assert_eq!(run.number("linux", "cpus"), 4);
}

#[test]
fn eight_vcpus_share_four_harts() {
    let run = System::on(4)
        .with(Guest::linux("hackbench").vcpus(8))
        .quantum("10ms")
        .run(Clock::Lockstep { q: 250 });
    run.good();
    assert_eq!(run.number("linux", "cpus"), 8);
}

#[test]
fn two_linux_guests_share_four_harts() {
    let guest = |name| Guest::linux("hackbench").named(name).vcpus(4);
    let run = System::on(4).with(guest("linux-a")).with(guest("linux-b")).run(Clock::Lockstep { q: 250 });
    run.good();
    for name in ["linux-a", "linux-b"] {
        assert_eq!(run.number(name, "cpus"), 4);
    }
}

#[test]
fn guests_use_only_the_harts_that_they_are_given() {
    let run = System::on(4)
        .with(Guest::linux("hackbench").named("linux-a").vcpus(2).harts([2, 3]))
        .with(Guest::linux("boot").named("linux-b").vcpus(1).harts([1]))
        .run(Clock::Lockstep { q: 250 });
    run.good();
    assert_eq!(run.number("linux-a", "cpus"), 2);
    assert_eq!(run.number("linux-b", "cpus"), 1);
    for (name, cores) in [("linux-a", &[2, 3][..]), ("linux-b", &[1])] {
        let found: Vec<u32> = run.guest(name).vcpus.iter().map(|vcpu| vcpu.core).collect();
        run.check(found == cores, format_args!("{name} should be on the cores {cores:?}, not {found:?}"));
    }
    run.check(run.core(0).switches == 0, "hart 0 belongs to nobody, so nothing should have run there");
}

#[test]
fn harts_that_lack_what_the_hypervisor_needs_are_refused_with_a_message() {
    for (cpu, lacking) in [
        ("rv64,h=false", "H extension"),
        ("rv64,c=false,zca=true", "C extension"),
        // It took no notice, and guests ran in the machine's own memory, each other's and the hypervisor's.
        ("rv64,sv39=off", "Sv39"),
    ] {
        // A manifest that says so is refused before: QEMU takes the last CPU that it is told.
        let cpu = ["-cpu", cpu].map(String::from);
        let board = System::on(2).with_h().qemu_args(cpu);
        let run = board.with(Guest::probe("selfshutdown", "")).run(Clock::Host);
        run.refused(lacking);
        assert_ne!(run.report.outcome.exit_code(), 0);
    }
}

/// The hart that boots has written its memory, and another may have cached what was there before. (QEMU caches nothing of that kind: what is looked for
/// is that the fences are carried out.)
#[test]
fn a_vcpu_begins_with_fences() {
    let system = System::on(2)
        .with(Guest::probe("timer", "n=10").named("first").harts([0]))
        .with(Guest::probe("timer", "n=10").named("second").harts([1]));
    let (_, trace) = system.run_with_trace(Clock::Lockstep { q: 250 }, whole_trace());
    for guest in ["first", "second"] {
        let events = timeline(&trace, guest);
        let fences = events.iter().filter(|event| event.name == "fence applied").count();
        assert_eq!(fences, 1, "{guest}: {events:?}");
    }
}
