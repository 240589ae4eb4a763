//! The newest kernel that Debian has. It isn't in `make test`, which would need the network, and change from day to day.
use super::{freertos, is_in_time};
use ainori_tests::{Clock, Guest, System};

#[test]
#[ignore = "soak: guests/linux/build sid fetches it"]
fn debians_newest_kernel_works_beside_freertos() {
    let linux = Guest::linux("hackbench").sid().vcpus(4);
    let run =
        System::on(4).policy("ainori").with(freertos(2000, 1500)).with(linux).run(Clock::Lockstep { q: 250 });
    // What was tested is to be in the log, since it isn't the same each time.
    println!("{}", run.lines("linux").find(|line| line.starts_with("Linux ")).unwrap_or_default());
    run.good();
    assert_eq!(run.number("linux", "cpus"), 4);
    is_in_time(&run, 1500);
}

#[test]
#[ignore = "soak: guests/linux/build sid fetches it"]
fn cpus_go_and_come_under_debians_newest_kernel() {
    let run = System::on(4).with(Guest::linux("hotplug").sid().vcpus(4)).run(Clock::Host);
    run.good();
    assert_eq!(run.number("linux", "switched"), 8);
}
