//! Interrupts that are held back while a more urgent guest has the hart, from all sources at once, and while vCPUs move: none is lost, none comes twice. A million of
//! them: `tools/soak held`.
use ainori_tests::{APLIC, IMSIC, PLIC, held::Case};

/// Ends the test unless each was taken once, and enough of each kind were held back.
#[track_caller]
fn each_is_taken_once(case: &Case) {
    let run = case.run_on(&case.system());
    let (counts, findings) = case.judge(&run);
    println!("{}: {counts:?}", case.summary());
    run.check(findings.is_empty(), findings.join("; "));
}

/// Under policies by which vCPUs move, and one by which they don't: there a board with IMSICs has files of its own for them.
fn with(controller: &'static str) {
    for policy in ["ainori", "spumone-on-demand", "spumone"] {
        each_is_taken_once(&Case::new(policy, controller, 2_500));
    }
    // Beside FreeRTOS and a hart that nobody takes; the serial port tells by edges.
    let other =
        Case { free: 1, freertos: true, edges: true, q: 211, ..Case::new("balance", controller, 2_500) };
    each_is_taken_once(&other);
    // No priority takes the hart there, but the time.
    each_is_taken_once(&Case::new("time-window", controller, 2_500));
}

#[test]
fn what_a_plic_holds_back_is_taken_once() {
    with(PLIC);
}

#[test]
fn what_an_aplic_holds_back_is_taken_once() {
    with(APLIC);
}

#[test]
fn what_interrupt_files_hold_back_is_taken_once() {
    with(IMSIC);
}

/// A core that is about to enter a vCPU has others spare it for a while, which is no reason to leave what it has been told already: before, IPIs came 25.9 to 26.2 us after
/// their vCPU was free to take them, in three of these phases.
#[test]
fn an_interrupt_for_the_vcpu_that_is_entered_does_not_wait_with_other_mail() {
    for q in [150, 157, 164, 177] {
        each_is_taken_once(&Case { q, ..Case::of_seed(73, 10_000) });
    }
}
