//! Linux with few and many vCPUs, with little and much memory.
use super::{freertos, is_in_time};
use ainori_tests::{Clock, Guest, System};

/// Linux with `vcpus` on four harts passes hackbench.
fn linux_works_with(vcpus: u32) {
    let linux = Guest::linux("hackbench").args("ainori.loops=20").vcpus(vcpus);
    let run = System::on(4).policy("ainori").with(linux).run(Clock::Lockstep { q: 250 });
    println!("{vcpus} vCPUs: {:.1} s", run.report.host.seconds);
    run.good();
    assert_eq!(run.number("linux", "cpus"), u64::from(vcpus));
}

#[test]
fn linux_has_one_two_or_three_vcpus() {
    [1, 2, 3].into_iter().for_each(linux_works_with);
}

#[test]
#[ignore = "soak: a minute or two each"]
fn linux_has_more_vcpus_than_there_are_harts() {
    [5, 8].into_iter().for_each(linux_works_with);
}

#[test]
fn linux_has_four_times_as_many_vcpus_as_there_are_harts() {
    linux_works_with(16);
}

/// Sixteen threads of one process on sixteen CPUs, each of which has all of them forget a page, again and again, beside FreeRTOS on one of their harts. To
/// carry the fences of one such call to all of them took 10 us and more in one go, and made FreeRTOS's tick handler 5 us late.
fn fences_of_16_cpus_delay_no_task(policy: &'static str) {
    let linux = Guest::linux("shootdown").args("ainori.ms=200").vcpus(16);
    let run =
        System::on(4).policy(policy).with(freertos(1500, 800)).with(linux).run(Clock::Lockstep { q: 250 });
    run.good();
    // In the same time Linux does less without H: 448 then.
    let fewest = if ainori_tests::harts::usual_lack_h() { 300 } else { 500 };
    run.check(run.number("linux", "shootdowns") > fewest, "the CPUs should make each other forget pages");
    is_in_time(&run, 800);
}

#[test]
fn fences_of_16_cpus_delay_no_task_under_ainori() {
    fences_of_16_cpus_delay_no_task("ainori");
}

#[test]
#[ignore = "soak: a minute"]
fn fences_of_16_cpus_delay_no_task_under_others() {
    ["spumone", "spumone-on-demand"].into_iter().for_each(fences_of_16_cpus_delay_no_task);
}

/// Memory that begins below 4 GiB, guest-physical, and ends above: every word of four fifths of it is written and read.
fn linux_uses(memory_mib: u32, board_gib: u32) {
    let run = System::on(2)
        .memory_gib(board_gib)
        .with(Guest::linux("memory").memory_mib(memory_mib).vcpus(2))
        .run(Clock::Host);
    println!("{memory_mib} MiB: {:.1} s", run.report.host.seconds);
    run.good();
    let found = run.number("linux", "total_mib");
    // The kernel keeps its image, and 1/64 of all for the pages' own descriptions.
    run.check(
        found > u64::from(memory_mib) * 94 / 100,
        format_args!("Linux should see {memory_mib} MiB, not {found}"),
    );
    let high = run.number("linux", "above_4_gib_mib");
    run.check(high > 256, format_args!("only {high} MiB above 4 GiB were used"));
}

#[test]
fn linux_uses_memory_above_4_gib() {
    linux_uses(3 << 10, 4);
}

#[test]
#[ignore = "soak: needs 8 GiB of the host's memory"]
fn linux_uses_8_gib() {
    linux_uses(8 << 10, 10);
}
