//! Harts without the H extension, whatever the tests are run with: guests' kernels run in user mode there. (All other tests can be run on such harts: `tools/test --harts no-h`.)
use ainori_tests::{Clock, Guest, System};

const WITHOUT_H: &str = "rv64,h=false";
const CLOCK: Clock = Clock::Lockstep { q: 250 };

/// Linux with four vCPUs beside an RTOS on one of their harts, as in the demo.
#[track_caller]
fn linux_beside_an_rtos(harts: u32) {
    let linux = Guest::linux("hackbench").args("ainori.loops=10").vcpus(4).harts(0..harts);
    let freertos = Guest::freertos("period_us=1000 periods=2000 burn_percent=30 report_ms=0");
    let freertos = freertos.harts([1]).priority(10);
    let run = System::on(harts).cpu(WITHOUT_H).with(linux).with(freertos).run(CLOCK);
    run.good().result("linux");
    run.lost_no_tick("freertos", 2000);
}

#[test]
fn smp_linux_beside_an_rtos_on_two_harts() {
    linux_beside_an_rtos(2);
}

#[test]
fn smp_linux_beside_an_rtos_on_four_harts() {
    linux_beside_an_rtos(4);
}

/// Harts that start, stop, interrupt and fence each other, and an RTOS before them.
#[test]
fn four_vcpus_work_together_beside_an_rtos() {
    let smp = Guest::probe("smp", "rounds=20").vcpus(4).harts([0, 1]);
    let freertos = Guest::freertos("period_us=1000 periods=200 burn_percent=30 report_ms=0");
    let freertos = freertos.harts([1]).priority(10);
    let run = System::on(2).cpu(WITHOUT_H).policy("ainori").with(smp).with(freertos).run(CLOCK);
    run.good().result("smp");
    run.lost_no_tick("freertos", 200);
}

/// One page of the hypervisor is in each table that such a hart walks. No guest finds it, and each finds its own memory at the same place. A device isn't reached by an access
/// that begins in memory.
#[test]
fn a_guest_reaches_what_its_tables_have_and_nothing_else() {
    for cpu in ["rv64", WITHOUT_H] {
        let run = System::on(1).cpu(cpu).with(Guest::probe("reach", "strict=1")).run(Clock::Icount);
        run.good().result("reach");
    }
}
