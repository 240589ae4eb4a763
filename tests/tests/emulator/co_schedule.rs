//! `co-schedule`: the vCPUs of a guest get their harts together.
use ainori_tests::{Clock, Guest, System, bounds, harts::usual_lack_h, timeline::timeline, whole_trace};
use ainori_trace::host::perfetto::messages::EventType;
use std::collections::BTreeMap;

const PERIODS: u64 = 300;

/// When each vCPU of `guest` ran, in nanoseconds.
fn runs(trace: &[u8], guest: &str) -> BTreeMap<usize, Vec<(u64, u64)>> {
    let mut running = BTreeMap::new();
    let mut runs: BTreeMap<usize, Vec<_>> = BTreeMap::new();
    for event in timeline(trace, guest).into_iter().filter(|event| event.kind == EventType::SliceBegin) {
        if let Some(from) = running.remove(&event.vcpu) {
            runs.entry(event.vcpu).or_default().push((from, event.at));
        }
        if event.hart().is_some() {
            running.insert(event.vcpu, event.at);
        }
    }
    runs
}

/// Percent of the time of one of two vCPUs in which the other one ran, too; of the one that ran for less.
fn together(one: &[(u64, u64)], other: &[(u64, u64)]) -> u64 {
    let total = |runs: &[(u64, u64)]| runs.iter().map(|(from, to)| to - from).sum::<u64>();
    let both = one.iter().flat_map(|a| other.iter().map(|b| a.1.min(b.1).saturating_sub(a.0.max(b.0))));
    100 * both.sum::<u64>() / total(one).min(total(other)).max(1)
}

/// Two guests whose vCPUs never sleep, on three harts; FreeRTOS has one of these now and then.
fn two_guests(preset: &'static str) -> System {
    let busy = |name: &str| Guest::probe("bursts", "").vcpus(3).harts(0..3).named(name).background();
    let args = format!("period_us=1000 periods={PERIODS} burn_percent=40 burn_period_us=7000 report_ms=0");
    System::on(3)
        .policy(preset)
        .with(busy("one"))
        .with(busy("two"))
        .with(Guest::freertos(&args).harts([0]).priority(10))
}

/// Percent of the time that vCPUs of a guest run together, where FreeRTOS is and where it isn't: the least of both guests. FreeRTOS loses no tick.
fn measured(preset: &'static str) -> [u64; 2] {
    let part = ainori::run::Tracing { records: Some(1 << 16), ..whole_trace() };
    let (report, file) = two_guests(preset).run_with_trace(Clock::Lockstep { q: 250 }, part);
    assert!(report.problems.is_empty(), "{}: {:?}", report.outcome.words(), report.problems);
    assert_eq!(report.trace.as_ref().expect("a trace was taken").lost, 0);
    let rtos = report.guests.iter().find(|guest| guest.name == "freertos").expect("it is in the report");
    let told = ["periods", "missed", "ticks_lost"].map(|key| bounds::number(rtos, key));
    assert_eq!(told, [Some(PERIODS), Some(0), Some(0)], "{preset}: FreeRTOS was late");
    let runs = ["one", "two"].map(|guest| runs(&file, guest));
    let percent = [(0, 1), (1, 2)].map(|(one, other)| {
        let of_guest = runs.iter().map(|runs| together(&runs[&one], &runs[&other]));
        of_guest.min().expect("two guests")
    });
    println!("{preset}: together for {percent:?} percent of the time");
    percent
}

#[test]
fn vcpus_of_a_guest_run_together() {
    let together = measured("co-schedule");
    assert!(together.iter().all(|percent| *percent >= 95), "{together:?} percent");
    // Where nobody else comes, vCPUs that began together go on so. (By how much their turns are apart is chance: without H they are together for 81 percent.)
    let [by_chance, _] = measured("spumone");
    let most = if usual_lack_h() { 85 } else { 75 };
    assert!(by_chance <= most, "this test sees no difference: {by_chance} percent");
}

/// Each guest does its job where two take turns, and an RTOS is above them.
#[test]
fn guests_that_take_turns_together_do_their_jobs() {
    let rtos = Guest::freertos("period_us=1000 periods=2000 burn_percent=40").harts([1]);
    let run = System::on(2)
        .policy("co-schedule")
        .with(Guest::linux("hackbench"))
        .with(Guest::probe("smp", "rounds=100").vcpus(2))
        .with(Guest::probe("bursts", "").vcpus(2).background())
        .with(rtos.priority(10))
        .run(Clock::Lockstep { q: 250 });
    run.good();
    run.lost_no_tick("freertos", 2000);
}
