//! Guests that are more urgent on one hart than on another, so that each hart has a priority OS (LiSTEE RT).
use ainori_tests::{Clock, Guest, Run, System};

const PERIODS: u64 = 300;

/// A FreeRTOS whose task has the period `period_us`, and whose job takes a part of it.
fn freertos(period_us: u32, burn_percent: u32) -> Guest {
    Guest::freertos(&format!(
        "period_us={period_us} tick_us={period_us} periods={PERIODS} burn_percent={burn_percent} burn_period_us={period_us} report_ms=0"
    ))
}

fn latest_ns(run: &Run, name: &str) -> u64 {
    run.number(name, "delay_ns/max")
}

/// Two RTOSes have one hart, and the other one is its priority OS than their priorities say. Their periods differ, so that each comes while the
/// other one's job runs, whenever they start.
#[test]
fn the_priority_os_of_a_hart_is_in_time() {
    for (policy, first, second) in [
        ("listee-rt", "first-here", "usually-first"),
        ("ainori", "first-here", "usually-first"),
        ("listee", "usually-first", "first-here"),
        ("spumone", "usually-first", "first-here"),
    ] {
        let run = System::on(1)
            .policy(policy)
            .with(freertos(1250, 40).named("usually-first"))
            .with(freertos(1000, 40).named("first-here").priority(1).priority_on(0, 12))
            .run(Clock::Icount);
        run.good();
        run.was_in_time(first, policy);
        let late = latest_ns(&run, second);
        println!("{policy}: {second}: {late} ns");
        // They meet in steps of 250 us, and a job takes at least 400: one comes at the latest when 150 of them are left.
        run.check(late > 100_000, format_args!("{policy}: {second} is only {late} ns late"));
    }
}

/// One guest is on both harts, and goes first on one of them. Its period differs from that of the RTOSes, so that each of them meets all of its
/// phases.
#[test]
fn a_guest_goes_first_on_one_hart_and_gives_way_on_another() {
    for (policy, late) in [("listee-rt", true), ("listee", false)] {
        let run = System::on(2)
            .policy(policy)
            .with(
                Guest::probe("naps", "period_us=970 busy_us=300 n=300")
                    .vcpus(2)
                    .harts([0, 1])
                    .priority_on(1, 12),
            )
            .with(freertos(1000, 10).named("first").harts([0]))
            .with(freertos(1000, 10).named("second").harts([1]))
            .run(Clock::Lockstep { q: 250 });
        run.good();
        run.was_in_time("first", policy);
        let second = latest_ns(&run, "second");
        println!("{policy}: second: {second} ns");
        run.check((second > 100_000) == late, format_args!("{policy}: the second one is {second} ns late"));
    }
}

/// A vCPU whose hart is taken from it goes where it gets its turn, which depends on what its guest is there.
#[test]
fn who_comes_to_a_hart_has_the_priority_that_its_guest_has_there() {
    for (there, gets_turns) in [(8, true), (5, true), (4, false)] {
        let burst =
            Guest::probe("bursts", "n=1 us=100000 pause_us=1000 phase_us=1000").harts([0]).priority(12);
        let run = System::on(2)
            .policy("ainori")
            .with(burst)
            .with(
                Guest::probe("bursts", "n=0").named("moves").harts([0, 1]).priority_on(1, there).background(),
            )
            .with(Guest::probe("bursts", "n=0").named("stays").harts([1]).priority(5).background())
            .run(Clock::Lockstep { q: 250 });
        run.good();
        let [moves, stays] = ["moves", "stays"].map(|name| run.guest(name).vcpus[0].running);
        println!("priority {there} there: {moves} and {stays} ticks");
        // 100 ms are a million ticks.
        run.check(
            (moves > 300_000) == gets_turns,
            format_args!("with {there} there it ran for {moves} ticks"),
        );
        run.check((stays < 700_000) == gets_turns, format_args!("the other one ran for {stays} ticks"));
    }
}
