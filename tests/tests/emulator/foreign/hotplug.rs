//! Linux's CPUs go and come back (HSM's `hart_stop` and `hart_start`) while all of them have work to do.
use super::{freertos, is_in_time};
use ainori_tests::{Clock, Guest, System};

/// Each CPU goes `rounds` times, also the one that shares its hart with FreeRTOS.
fn cpus_go_and_come(policy: &'static str, rounds: u32, periods: u64) {
    let linux = Guest::linux("hotplug").args(&format!("ainori.rounds={rounds}")).vcpus(4);
    let run = System::on(4)
        .policy(policy)
        .with(freertos(2000, periods))
        .with(linux)
        .run(Clock::Lockstep { q: 250 });
    run.good();
    assert_eq!(run.number("linux", "switched"), u64::from(rounds) * 4);
    is_in_time(&run, periods);
}

#[test]
fn cpus_go_and_come_under_load_beside_freertos() {
    cpus_go_and_come("ainori", 1, 1500);
}

#[test]
#[ignore = "soak: minutes"]
fn cpus_go_and_come_for_long_under_other_policies() {
    for policy in ["ainori", "spumone", "spumone-on-demand"] {
        cpus_go_and_come(policy, 5, 8000);
    }
}

/// More vCPUs than harts, all of which come and go.
#[test]
#[ignore = "soak: minutes"]
fn cpus_go_and_come_where_they_are_more_than_harts() {
    let run = System::on(4)
        .policy("ainori")
        .with(Guest::linux("hotplug").args("ainori.rounds=1").vcpus(8))
        .run(Clock::Lockstep { q: 250 });
    run.good();
    assert_eq!(run.number("linux", "switched"), 8);
}
