//! `balance`: two vCPUs of one guest never wait on one hart, and yet none waits where a hart is free.
use ainori::run::Tracing;
use ainori_tests::{
    Clock, Guest, System,
    timeline::{Event, timeline},
    whole_trace,
};
use ainori_trace::host::perfetto::messages::EventType;
use std::collections::BTreeMap;

/// A vCPU that wakes where another one of its guest has come meanwhile goes on with the next decision of the scheduler, in nanoseconds.
const ON_THE_WAY_NS: u64 = 10_000;

/// Times, in nanoseconds, that a vCPU ran on a hart, or waited for it.
struct Stay {
    vcpu: usize,
    hart: u64,
    from: u64,
    to: u64,
}

impl Stay {
    /// For how long both were on one hart.
    fn together(&self, other: &Self) -> u64 {
        let is_met = self.hart == other.hart && self.vcpu != other.vcpu;
        if is_met { self.to.min(other.to).saturating_sub(self.from.max(other.from)) } else { 0 }
    }
}

/// The longest time that a vCPU of `guest` has waited for a hart, which it then got, while another one of that guest ran there; and how often one
/// of them migrated.
fn longest_together(trace: &[u8], guest: &str) -> (u64, u64) {
    let (mut runs, mut waits) = (Vec::new(), Vec::new());
    // By vCPU: since when it waits where it is; since when it runs, and where.
    let (mut waiting, mut running): (BTreeMap<usize, u64>, BTreeMap<usize, (u64, u64)>) = Default::default();
    let mut migrations = 0;
    for event in timeline(trace, guest) {
        let Event { vcpu, at, .. } = event;
        match event.kind {
            EventType::SliceBegin => {
                if let Some((hart, from)) = running.remove(&vcpu) {
                    runs.push(Stay { vcpu, hart, from, to: at });
                }
                let waited = waiting.remove(&vcpu);
                if event.name == "suspended" {
                    waiting.insert(vcpu, at);
                } else if let Some(hart) = event.hart() {
                    waits.extend(waited.map(|from| Stay { vcpu, hart, from, to: at }));
                    running.insert(vcpu, (hart, at));
                }
            }
            // It waited elsewhere.
            EventType::Instant if event.name.starts_with("migrates") => {
                migrations += 1;
                waiting.remove(&vcpu);
            }
            _ => {}
        }
    }
    let together = waits.iter().flat_map(|wait| runs.iter().map(|run| wait.together(run)));
    (together.max().unwrap_or_default(), migrations)
}

/// FreeRTOS takes two of the harts now and then, and a busy guest has turns on a third: so there is always one to go to, and often one where another
/// vCPU of the guest would be met.
fn crowded(preset: &'static str) -> System {
    let rtos = |name: &str, hart| {
        let args = "period_us=1000 periods=200 burn_percent=50 burn_period_us=5000 report_ms=0";
        Guest::freertos(args).named(name).harts([hart])
    };
    System::on(4)
        .policy(preset)
        .with(Guest::probe("locks", "ms=150").vcpus(3).harts(0..4))
        .with(rtos("first", 0).priority(10))
        .with(rtos("second", 1).priority(10))
        .with(Guest::probe("busyloop", "").named("busy").harts([2]).background())
}

fn traced(system: &System) -> (u64, u64) {
    let part = Tracing { records: Some(1 << 16), ..whole_trace() };
    let (report, file) = system.run_with_trace(Clock::Lockstep { q: 250 }, part);
    assert!(report.problems.is_empty(), "{}: {:?}", report.outcome.words(), report.problems);
    assert_eq!(report.trace.as_ref().expect("a trace was taken").lost, 0);
    longest_together(&file, "locks")
}

#[test]
fn vcpus_of_one_guest_never_wait_on_one_hart() {
    let (longest, migrations) = traced(&crowded("balance"));
    println!("together for {longest} ns at most, {migrations} migrations");
    assert!(longest <= ON_THE_WAY_NS, "two were on one hart for {longest} ns");
    assert!(migrations > 20, "{migrations} migrations: the harts that are free are not used");
    let (longest, _) = traced(&crowded("spumone-on-demand"));
    assert!(longest > ON_THE_WAY_NS, "this test can't see two vCPUs on one hart");
}

/// Each guest does its job where there is one hart for each vCPU, and RTOSes on some.
#[test]
fn a_guest_has_its_harts_apart() {
    let rtos = Guest::freertos("period_us=1000 periods=2000 burn_percent=40").harts([1]);
    let run = System::on(4)
        .policy("balance")
        .with(Guest::linux("hackbench"))
        .with(rtos.priority(10))
        .run(Clock::Lockstep { q: 250 });
    run.good();
    run.lost_no_tick("freertos", 2000);
}
