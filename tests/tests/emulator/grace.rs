//! The policies `delayed` and `safe-unsafe`: a vCPU that has marked that it holds a lock, or is in its kernel, keeps its hart, and who would take it waits, but
//! not longer than the grace.
use ainori_tests::bounds::DELAY_NS;
use ainori_tests::{Clock, Guest, Run, System};

/// How long the probe holds its lock: 12,500 instructions of 4 ns.
const SECTION_NS: u64 = 50_000;
/// The shorter grace. It begins in the advance, so ticks are late by less than the grace, or than the section.
const GRACE_NS: u64 = 20_000;

/// FreeRTOS takes hart 0 for 300 us of each 1 ms from a probe whose two vCPUs take one lock. A section that FreeRTOS cuts takes
/// more than 300 us.
fn beside_locks(system: System) -> Run {
    let run = system
        .with(Guest::probe("locks", "ms=300 section=12500 rest=50000 cut_us=150").vcpus(2).harts([0, 1]))
        .with(Guest::freertos("period_us=1000 periods=310 burn_percent=30 burn_period_us=1000 report_ms=0"))
        .run(Clock::Lockstep { q: 250 });
    run.good().lost_no_tick("freertos", 310);
    let sections = run.number("locks", "sections");
    run.check(
        sections > 1000,
        format_args!("both vCPUs take the lock all the time, but only {sections} times"),
    );
    println!("{sections} sections, {} cut; task {} ns late", run.number("locks", "cut"), task_late(&run));
    run
}

/// How late FreeRTOS's task began in all but 1 % of its periods, in ns. A single tick may be late for another reason.
fn task_late(run: &Run) -> u64 {
    run.number("freertos", "delay_ns/p99")
}

#[test]
fn a_lock_holder_keeps_its_hart_until_the_lock_is_free_or_the_grace_is_over() {
    let at_once = beside_locks(System::on(2));
    let cut = at_once.number("locks", "cut");
    at_once.check(cut > 10, format_args!("without a grace FreeRTOS cuts many sections, not {cut}"));

    let enough = beside_locks(System::on(2).policy("delayed").grace("200us"));
    let cut = enough.number("locks", "cut");
    enough.check(cut == 0, format_args!("{cut} sections were cut, though they are shorter than the grace"));
    let waited = task_late(&enough).saturating_sub(task_late(&at_once));
    enough.check(
        (SECTION_NS / 2..SECTION_NS).contains(&waited),
        format_args!(
            "FreeRTOS waits until the lock is free, at most one section, but it waited for {waited} ns"
        ),
    );

    let short = beside_locks(System::on(2).policy("delayed").grace("20us"));
    let cut = short.number("locks", "cut");
    short.check(cut > 0, "a section that is longer than the grace is cut");
    let waited = task_late(&short).saturating_sub(task_late(&at_once));
    short.check(
        (15_000..GRACE_NS).contains(&waited),
        format_args!("FreeRTOS waits for the grace of 20 us, but it waited for {waited} ns"),
    );
}

/// One vCPU starts another one, which waits for a probe's kernel, and sends it interrupts as fast as it can: whenever the probe was about to go on there was
/// mail, so that nobody had the hart until the grace was over.
#[test]
fn who_keeps_its_hart_for_a_grace_has_it_however_much_mail_comes_in() {
    let system = System::on(2)
        .policy("safe-unsafe")
        .grace("1ms")
        .with(Guest::probe("busyloop", "").harts([0]).background())
        .with(Guest::probe("starts", "ms=20").vcpus(2).harts([1, 0]).priority(3));
    // Its period is longer than the grace and what comes behind that until its task has begun: they were 1.018 ms on harts without H.
    let rtos =
        Guest::freertos("period_us=2000 periods=10 burn_percent=0 report_ms=0").harts([0]).priority(10);
    for (what, system) in [("alone", system.clone()), ("behind FreeRTOS", system.with(rtos))] {
        let run = system.run(Clock::Lockstep { q: 250 });
        run.good();
        let delay = run.longest_delay_ns(0);
        let (asked, started) = (run.number("starts", "asked"), run.number("starts", "started"));
        println!("{what}: nobody was entered for {delay} ns; asked {asked} times, started {started} times");
        run.check(delay <= DELAY_NS, format_args!("{what}: nobody was entered for {delay} ns"));
        run.check(asked > 1000 && started > 0, format_args!("asked {asked} times, started {started} times"));
    }
}
