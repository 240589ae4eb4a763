//! FreeRTOS beside Linux: it loses no tick and is punctual, whatever Linux does.
use ainori_tests::{Clock, Guest, System, harts::up_by_ms};

/// Periods of 1 ms.
const TEN_SECONDS: u64 = 10_000;
/// The same of a job that does the same all the time.
const FOUR_SECONDS: u64 = 4_000;

/// Busy itself for a third of the time.
fn freertos(periods: u64) -> Guest {
    Guest::freertos(&format!("period_us=1000 periods={periods} burn_percent=30")).harts([1])
}

#[test]
fn freertos_alone_loses_no_tick() {
    let run = System::on(1).with(freertos(TEN_SECONDS).harts([0])).run(Clock::Icount);
    run.good().lost_no_tick("freertos", TEN_SECONDS);
}

/// Four harts, all of them busy with Linux, and FreeRTOS before it on hart 1.
fn beside_linux(job: &str, periods: u64) {
    let run = System::on(4)
        .with(Guest::linux(job).vcpus(4).background())
        .with(freertos(periods))
        .run(Clock::Lockstep { q: 250 });
    run.good().lost_no_tick("freertos", periods);
    assert_eq!(run.number("linux", "cpus"), 4); // it was up, and at its job
    run.was_in_time("freertos", job);
}

#[test]
fn freertos_loses_no_tick_beside_a_busy_linux() {
    beside_linux("busy", up_by_ms(FOUR_SECONDS));
}

#[test]
fn freertos_loses_no_tick_beside_hackbench() {
    beside_linux("hackbench-loop", TEN_SECONDS);
}

#[test]
fn freertos_and_linux_share_one_hart_and_every_run_is_the_same() {
    let system = System::on(1)
        .with(Guest::linux("hackbench"))
        .with(Guest::freertos("period_us=1000 periods=5000 burn_percent=30"));
    let first = system.run(Clock::Icount);
    first.good().lost_no_tick("freertos", 5_000);
    let second = system.run(Clock::Icount);
    second.good();
    let facts = |run: &ainori_tests::Run| {
        let mut json = serde_json::to_value(&run.report).expect("a report can be written as JSON");
        json.as_object_mut()
            .and_then(|report| report.remove("host"))
            .expect("the one part that depends on the host");
        json
    };
    second.check(facts(&first) == facts(&second), format_args!("two runs differ: first {:#}", facts(&first)));
}

/// vCPUs that an RTOS's jobs send from hart to hart and back again and again get as much of the cores as their equals: one that has waited elsewhere has
/// waited. (It began anew with each move, so some had no core at all, 0 ms of 300, while the first of their hart had it all.)
#[test]
fn equals_that_are_moved_to_and_fro_get_their_share() {
    for (preset, quantum, job, vcpus, q) in [
        ("ainori", "500us", "burn_percent=50 burn_period_us=1000", 4, 250),
        ("ainori", "10ms", "burn_percent=20 burn_period_us=5000", 2, 230),
        ("ainori", "500us", "burn_percent=20 burn_period_us=5000", 16, 250),
        ("spumone-on-demand", "500us", "burn_percent=20 burn_period_us=5000", 12, 285),
    ] {
        let busy = |name: &str| {
            Guest::probe("bursts", "n=0").vcpus(vcpus).harts([0, 1]).priority(2).named(name).background()
        };
        let args = format!("period_us=1000 periods=300 report_ms=0 {job}");
        let run = System::on(2)
            .policy(preset)
            .quantum(quantum)
            .with(Guest::freertos(&args).harts([0]))
            .with(busy("a"))
            .with(busy("b"))
            .run(Clock::Lockstep { q });
        run.good().was_in_time("freertos", preset);
        // vCPUs of one home, which have the same to expect.
        for home in 0..2 {
            let at_home = |name| run.guest(name).vcpus.iter().filter(move |vcpu| vcpu.vcpu % 2 == home);
            let shares: Vec<u64> =
                ["a", "b"].into_iter().flat_map(at_home).map(|vcpu| vcpu.running).collect();
            let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
            run.check(
                2 * least >= *most,
                format_args!(
                    "{preset}, {quantum}, {job}: ticks of equals at home on hart {home}: {shares:?}"
                ),
            );
        }
    }
}

/// vCPUs of one priority that compute for ever have their hart by weight, each to within a turn of its own, though an RTOS takes the hart from them at any
/// time.
#[test]
fn equals_share_a_hart_by_weight() {
    /// Ticks of a turn with the weight 1: 500 us.
    const QUANTUM: u64 = 5_000;
    for (preset, vcpus, q) in [("spumone", 1, 250), ("spumone", 2, 230), ("ainori", 1, 270)] {
        let busy = |weight: u32| {
            let guest = Guest::probe("bursts", "n=0").named(&format!("weight-{weight}"));
            guest.vcpus(if weight == 2 { vcpus } else { 1 }).weight(weight).priority(2).background()
        };
        let args = "period_us=1000 periods=500 report_ms=0 burn_percent=20 burn_period_us=7000";
        let run = System::on(1)
            .policy(preset)
            .with(Guest::freertos(args))
            .with(busy(1))
            .with(busy(2))
            .with(busy(4))
            .run(Clock::Lockstep { q });
        run.good().was_in_time("freertos", preset);
        let shares = |weight: u64| {
            let vcpus = &run.guest(&format!("weight-{weight}")).vcpus;
            vcpus.iter().map(move |vcpu| (weight, vcpu.running))
        };
        let shares: Vec<(u64, u64)> = [1, 2, 4].into_iter().flat_map(shares).collect();
        let (weights, time) = shares.iter().fold((0, 0), |sum, share| (sum.0 + share.0, sum.1 + share.1));
        println!("{preset}: weights and ticks: {shares:?}");
        for (weight, ran) in &shares {
            let ideal = time * weight / weights;
            run.check(
                ran.abs_diff(ideal) <= weight * QUANTUM,
                format_args!("{preset}: weight {weight}, {ran} ticks, ideally {ideal}: {shares:?}"),
            );
        }
    }
}
