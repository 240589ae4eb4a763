//! Twenty boots in a row of Linux on four harts, without one failure: ten with harts that really run in parallel, where
//! races show, ten with slices of different lengths, each of which is another order of events that can be repeated.
use ainori_tests::{Clock, Guest, System};

fn boot(clock: Clock) {
    let run = System::on(4).with(Guest::linux("boot").vcpus(4)).run(clock);
    println!("{clock:?}: {:.1} s", run.report.host.seconds);
    run.good();
    assert_eq!(run.number("linux", "cpus"), 4);
}

#[test]
#[ignore = "soak: minutes"]
fn ten_boots_with_harts_in_parallel() {
    (0..10).for_each(|_| boot(Clock::Host));
}

#[test]
#[ignore = "soak: minutes"]
fn ten_boots_with_slices_of_different_lengths() {
    [50, 97, 149, 211, 250, 307, 401, 503, 997, 2003].into_iter().for_each(|q| boot(Clock::Lockstep { q }));
}
