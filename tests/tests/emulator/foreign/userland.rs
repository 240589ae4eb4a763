//! Programs that everybody has, in the large initramfs, beside FreeRTOS on a shared hart.
use super::{freertos, is_in_time};
use ainori_tests::{Clock, Guest, Run, System};

/// A job of guests/linux/userland on four vCPUs, beside FreeRTOS that has so many periods.
fn beside_freertos(job: &str, args: &str, periods: u64) -> Run {
    let linux = Guest::linux(job).args(args).userland().vcpus(4);
    let run = System::on(4)
        .policy("ainori")
        .with(freertos(4000, periods))
        .with(linux)
        .run(Clock::Lockstep { q: 250 });
    run.good();
    is_in_time(&run, periods);
    run
}

#[test]
#[ignore = "soak: needs guests/linux/build userland"]
fn python_computes_what_it_should() {
    let run = beside_freertos("python", "", 3000);
    assert_eq!(run.number("linux", "checks"), 7);
}

#[test]
#[ignore = "soak: needs guests/linux/build userland"]
fn openssl_signs_and_verifies() {
    let run = beside_freertos("openssl", "", 5000);
    assert!(run.number("linux", "sha256_bytes_per_second") > 0);
}

/// In groups, so that each of them gets enough of the harts to be seen. Neither `mmap` nor `mremap` are among them: one operation takes
/// longer than the three seconds, even of a CPU of its own, and on the bare machine as well.
#[test]
#[ignore = "soak: needs guests/linux/build userland"]
fn stress_ng_finds_nothing_wrong() {
    for stressors in
        ["cpu,vm,mprotect,brk", "futex,sem,pipe,switch,mutex", "fork,timer,clock,signal,membarrier"]
    {
        let args = format!("ainori.seconds=3 ainori.stressors={stressors}");
        let run = beside_freertos("stress-ng", &args, 5000);
        println!("{stressors}: {:?}", run.result("linux").get("operations"));
    }
}

#[test]
#[ignore = "soak: needs guests/linux/build userland"]
fn sysbench_comes_to_its_end() {
    let run = beside_freertos("sysbench", "", 5000);
    println!("{:?}", run.result("linux").get("events"));
}
