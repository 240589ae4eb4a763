//! A vCPU that spins without a word. On harts without Zawrs, a Linux that spins for a vCPU whose core was taken from it is found by its
//! registers, and only looked at where that can happen and can be helped. Where there is Zawrs, loops that don't use it are
//! seen by nobody, so nobody may have to wait in one for long.
use ainori_tests::{Clock, Guest, Run, System};

const WITHOUT_ZAWRS: &str = "rv64,zawrs=off";

/// FreeRTOS takes nine tenths of hart 1, in long pieces, for as long as Linux needs.
fn busy_rtos() -> Guest {
    Guest::freertos("burn_percent=90 burn_period_us=50000 report_ms=0 end=forever").harts([1]).background()
}

fn hackbench(vcpus: u32) -> Guest {
    Guest::linux("hackbench").vcpus(vcpus)
}

fn run(system: &System) -> Run {
    let run = system.run(Clock::Lockstep { q: 250 });
    run.good().result("linux");
    run
}

/// Exits of all vCPUs of Linux for this cause.
fn exits(run: &Run, cause: &str) -> u64 {
    let exits = run.exits_for("linux", cause);
    println!("{cause}: {exits}");
    exits
}

#[test]
fn a_spinner_is_found_without_its_help() {
    let run = run(&System::on(4).cpu(WITHOUT_ZAWRS).policy("ainori").with(hackbench(4)).with(busy_rtos()));
    run.check(exits(&run, "spin") > 0, "hackbench spins, and nothing was found");
    run.check(run.migrations("linux") > 0, "nobody was fetched");
    run.check(run.exits_for("freertos", "sample") == 0, "the RTOS is none of those that are looked at");
}

#[test]
fn equals_on_one_hart_yield_when_they_spin() {
    let run = run(&System::on(1).cpu(WITHOUT_ZAWRS).with(hackbench(2)));
    run.check(exits(&run, "spin") > 0, "two vCPUs on one hart spin for each other, and nothing was found");
}

/// Who says so, executes `wrs.nto`, which traps where `hstatus.VTW` says so.
#[test]
fn who_says_that_it_spins_is_not_looked_at() {
    let run = run(&System::on(4).with_h().policy("ainori").with(hackbench(4)).with(busy_rtos()));
    run.check(exits(&run, "spin") > 0, "hackbench spins, and says so");
    run.check(exits(&run, "sample") == 0, "its registers need not be looked at");
}

#[test]
fn nobody_is_looked_at_who_shares_no_hart() {
    let run = run(&System::on(2).cpu(WITHOUT_ZAWRS).policy("ainori").with(hackbench(2)));
    run.check(exits(&run, "sample") == 0, "no core is ever taken from a vCPU of this system");
}

#[test]
fn nobody_is_looked_at_who_cannot_be_helped() {
    let run = run(&System::on(2).cpu(WITHOUT_ZAWRS).with(hackbench(2)).with(
        Guest::freertos("burn_percent=10 burn_period_us=50000 report_ms=0 end=forever")
            .harts([1])
            .background(),
    ));
    run.check(
        exits(&run, "sample") == 0,
        "under spumone no vCPU can be fetched, and none has an equal to yield to",
    );
}

/// The RTOS has hart 1 for 45 ms of each 50 ms, and takes it from a vCPU that often holds a lock. The other one waits in a plain loop,
/// as for Linux's bit spin locks.
#[test]
fn nobody_waits_for_the_rtos_in_a_plain_loop() {
    const PIECE_NS: u64 = 45_000_000;
    let longest_wait = |policy| {
        let locks = Guest::probe("locks", "ms=1000 section=25000 rest=75000 says=0").vcpus(2).harts([0, 1]);
        let run = System::on(2).policy(policy).with(locks).with(busy_rtos()).run(Clock::Lockstep { q: 250 });
        run.good();
        let longest = run.result("locks").get("wait_ns").and_then(|wait| wait["max"].as_u64());
        longest.unwrap_or_else(|| run.fail("the probe told no times"))
    };
    let [alone, fetched] = [longest_wait("spumone"), longest_wait("ainori")];
    println!("longest wait under spumone {alone} ns, under ainori {fetched} ns");
    assert!(alone > PIECE_NS / 2, "the RTOS never took the hart from a lock's holder, so this shows nothing");
    // On the other hart they take turns of 0.5 ms; the lock isn't a fair one, so it may take a few.
    assert!(fetched < PIECE_NS / 4, "the holder of the lock was left alone: {fetched} ns");
}
