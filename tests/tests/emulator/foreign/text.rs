//! A kernel that rewrites its text while it runs, by its own means: modules, static keys, kprobes, the function tracers, tracepoints, compiled BPF programs. Each counts exactly, however
//! the guest's addresses are translated, and where breakpoints of the hypervisor's are in that text.
use ainori_tests::{Clock, Guest, System};

/// For the function tracers, which rewrite all of the text three times and are behind each function's call meanwhile: 1.3 s on the bare machine, 3.1 s without H. When that text had no breakpoints
/// any more, they came to no end within minutes.
const MOST_FUNCTIONS_MS: u64 = 8000;

/// All parts but the last, which takes as long as all others together.
const MOST_PARTS: &str = "ainori.parts=keys,kprobes,functions,tracepoints";
const ALL_PARTS: &str = "ainori.bpf=5";

/// Linux on one hart, which FreeRTOS shares.
#[track_caller]
fn text_changes(system: System, linux: Guest, parts: &str) {
    let linux = linux.with_job("text").args("ainori.load=0").args(parts).memory_mib(512);
    let run = system.with(super::freertos(2000, 1500).harts([0])).with(linux).run(Clock::Icount);
    run.good();
    super::is_in_time(&run, 1500);
    let took = run.number("linux", "functions_ms");
    run.check(took < MOST_FUNCTIONS_MS, format_args!("the function tracers took {took} ms"));
}

#[test]
fn a_kernel_rewrites_its_text_without_h() {
    text_changes(System::on(1).cpu("rv64,h=false"), Guest::linux("text"), MOST_PARTS);
}

#[test]
fn a_kernel_rewrites_its_text_with_a_shadow() {
    text_changes(System::on(1).with_h(), Guest::linux("text").translation("shadow-multi"), MOST_PARTS);
}

#[test]
#[ignore = "soak: minutes"]
fn a_kernel_rewrites_its_text_in_other_modes() {
    for translation in ["two-stage", "shadow-single", "shadow-multi"] {
        text_changes(System::on(1).with_h(), Guest::linux("text").translation(translation), ALL_PARTS);
    }
    for translation in ["shadow-single", "shadow-multi"] {
        let linux = Guest::linux("text").translation(translation);
        text_changes(System::on(1).cpu("rv64,h=false"), linux, ALL_PARTS);
    }
}

/// All of its CPUs fetch what one of them rewrites.
#[test]
#[ignore = "soak: minutes"]
fn a_kernel_rewrites_its_text_while_others_execute_it() {
    for (system, translation) in [
        (System::on(2).cpu("rv64,h=false"), "shadow-multi"),
        (System::on(2).with_h(), "shadow-multi"),
        (System::on(2).with_h(), "two-stage"),
    ] {
        let linux = Guest::linux("text").translation(translation).vcpus(2).memory_mib(512);
        let linux = linux.with_job("text").args(ALL_PARTS);
        let run = system
            .policy("ainori")
            .with(super::freertos(2000, 1500))
            .with(linux)
            .run(Clock::Lockstep { q: 250 });
        run.good();
        super::is_in_time(&run, 1500);
    }
}
