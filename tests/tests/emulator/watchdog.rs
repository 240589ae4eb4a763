//! Guests that hang: their watchdog has them stopped, with their registers, and started again; neighbours don't notice.
use ainori::report::Outcome;
use ainori_report::{NO_TRAP, Next, StopReason};
use ainori_tests::bounds::IRQS_OFF_BESIDE_RTOS_NS;
use ainori_tests::{Clock, Guest, Run, System, checkout, symbols::Program};

/// For how long housework may be late (kernel/src/cpu/housekeeping.rs).
const LATE_MS: u64 = 15;

fn hang(args: &str) -> Guest {
    Guest::probe("hang", args).restart("on-failure", 32, "10s")
}

/// Each former life ended by the watchdog, so long after the guest had fed it last. Returns how many there were.
fn hung(run: &Run, interval_ms: u64) -> usize {
    let guest = run.guest("hang");
    let ticks_per_ms = run.report.board.as_ref().expect("the board is told").timebase_hz / 1000;
    for life in &guest.former_lives {
        let Some(stopped) = &life.stopped else { run.fail(format_args!("the end of a life isn't told")) };
        run.check(
            (stopped.reason, stopped.next) == (StopReason::Watchdog, Next::Restart),
            format_args!("a life ended otherwise: {stopped:?}"),
        );
        let fed = life.results[0]["fed_us"].as_u64().expect("a number") * ticks_per_ms / 1000;
        let silent_ms = (stopped.time - fed) / ticks_per_ms;
        run.check(
            (interval_ms - 1..=interval_ms + LATE_MS).contains(&silent_ms),
            format_args!("it was stopped {silent_ms} ms after its last sign of life"),
        );
    }
    guest.former_lives.len()
}

/// It computes with its interrupts off: the report has the place where that is.
#[test]
fn who_computes_for_ever_is_stopped_where_it_does_and_started_again() {
    let program = Program::open(&checkout(".cache/guests/probes/hang.elf"));
    let run = System::on(1).with(hang("until_ms=900").watchdog("100ms")).run(Clock::Icount);
    run.good().stopped("hang", StopReason::Shutdown);
    let lives = hung(&run, 100);
    run.check(lives >= 3, format_args!("{lives} lives"));
    for life in &run.guest("hang").former_lives {
        let fault = life.stopped.as_ref().and_then(|stopped| stopped.fault.as_ref()).expect("its registers");
        assert_eq!((fault.cause, &*fault.what), (NO_TRAP, "no sign of life in time, while it computes"));
        assert_eq!(program.function_at(fault.pc).as_deref(), Some("hang_busy"), "{:#x}", fault.pc);
        assert!(fault.x[2] != 0 && fault.csr["vstvec"] != 0, "its registers are told: {fault:?}");
    }
}

/// It sleeps, on a hart where its WFI traps or not; its second hart was never started.
#[test]
fn who_sleeps_for_ever_is_stopped() {
    for vcpus in [1, 2] {
        let guest = hang("way=sleep until_ms=400").watchdog("100ms").vcpus(vcpus);
        let run = System::on(1).with(guest).run(Clock::Icount);
        run.good().stopped("hang", StopReason::Shutdown);
        assert!(hung(&run, 100) >= 1);
        let life = &run.guest("hang").former_lives[0];
        let fault = life.stopped.as_ref().and_then(|stopped| stopped.fault.as_ref()).expect("its registers");
        assert_eq!(fault.mode, "VS");
    }
}

/// As Linux's driver does it: the guest's own interval counts then; and if it switches the watchdog off, nobody looks any more.
#[test]
fn a_guest_makes_its_watchdog_its_own() {
    let run = System::on(1).with(hang("until_ms=1000 seconds=1").watchdog("100ms")).run(Clock::Icount);
    run.good();
    assert_eq!(hung(&run, 1000), 1);
    let run = System::on(1).with(hang("off=1 until_ms=500").watchdog("100ms")).run(Clock::Icount);
    run.good();
    assert_eq!(run.guest("hang").former_lives.len(), 0);
}

/// One that hangs before it has fed it once; it isn't started again.
#[test]
fn a_guest_that_hangs_from_the_begin_fails() {
    let guest = Guest::probe("hang", "feeds=0 until_ms=100000").watchdog("50ms");
    let run = System::on(1).with(guest).run(Clock::Icount);
    run.ended(Outcome::GuestFailed).stopped("hang", StopReason::Watchdog);
}

/// The guest that hangs is the less urgent one on the RTOS's hart, or the more urgent one of all: it is stopped either way, and the RTOS loses no tick.
#[test]
fn an_rtos_beside_a_guest_that_hangs_loses_nothing() {
    for priority in [1, 20] {
        let rtos = Guest::freertos("periods=400 burn_percent=20 burn_period_us=5000 report_ms=0").harts([0]);
        // The more urgent one hangs asleep: one that computes for ever keeps its hart, which is what priorities are.
        let way = if priority == 1 { "busy" } else { "sleep" };
        let guest = hang(&format!("feeds=3 way={way} until_ms=450")).watchdog("50ms").priority(priority);
        let run = System::on(2).with(rtos).with(guest.harts([0])).run(Clock::Lockstep { q: 250 });
        run.good().lost_no_tick("freertos", 400);
        assert!(hung(&run, 50) >= 2);
        let longest = run.longest_irqs_off_ns(0);
        run.check(longest <= IRQS_OFF_BESIDE_RTOS_NS, format_args!("{longest} ns with interrupts off"));
    }
}

/// Debian's kernel with its own driver: fed each second it lives, closed as one does that it lives as well, and else it is stopped after the driver's interval, in its second life too.
#[test]
fn stock_linux_drives_its_watchdog() {
    let linux = |args: &str| Guest::linux("watchdog").with_job("watchdog").args(args).watchdog("30s");
    let run = System::on(1).with(linux("ainori.close=1")).run(Clock::Icount);
    run.good();
    let run = System::on(1).with(linux("").restart("on-failure", 1, "1000s")).run(Clock::Icount);
    run.ended(Outcome::GuestFailed).stopped("linux", StopReason::Watchdog);
    let guest = run.guest("linux");
    assert_eq!(guest.former_lives.len(), 1);
    let first = guest.former_lives[0].stopped.as_ref().expect("its end is told");
    assert_eq!((first.reason, first.next), (StopReason::Watchdog, Next::Restart));
    for results in [&guest.former_lives[0].results, &guest.results] {
        assert_eq!((results.len(), results[0]["feeds"].as_u64()), (1, Some(4)), "{results:?}");
    }
    // The last sign of life came just before the result, so much behind the begin of its kernel's clock, which is a moment behind that of its life.
    let fed = guest.former_lives[0].results[0]["fed_s"].as_f64().expect("a number");
    let stopped =
        first.time as f64 / run.report.board.as_ref().expect("the board is told").timebase_hz as f64;
    run.check(
        (1.9..4.0).contains(&(stopped - fed)),
        format_args!("stopped at {stopped} s, fed at {fed} s of its own"),
    );
}
