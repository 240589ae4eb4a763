//! Windows in time: each guest has its hart in its own windows, all of them, and at no other time.
use ainori_tests::{APLIC, Clock, Guest, PLIC, Run, System};

/// Ticks of a microsecond.
const US: u64 = 10;
/// What beginning a window takes of it at most, in microseconds.
const OPENING_US: u64 = 30;
/// The frame of most of these systems.
const FRAME_US: u64 = 10_000;

fn system(harts: u32) -> System {
    System::on(harts).policy("time-window").major_frame("10ms")
}

/// One that computes for ever on each of its vCPUs.
fn busy(name: &str) -> Guest {
    Guest::probe("bursts", "n=0").named(name).background()
}

/// Ticks of a run, on one hart: who had it, and nobody.
fn whole(run: &Run) -> u64 {
    let vcpus = run.report.guests.iter().flat_map(|guest| &guest.vcpus);
    run.core(0).idle + vcpus.map(|vcpu| vcpu.running).sum::<u64>()
}

/// Ends the test unless the vCPUs of a guest had so many microseconds of each frame together, less what it takes to begin each of so many windows.
#[track_caller]
fn had(run: &Run, guest: &str, of_frame_us: u64, windows: u64, frame_us: u64) {
    let ran: u64 = run.guest(guest).vcpus.iter().map(|vcpu| vcpu.running).sum();
    let frames = whole(run) / (frame_us * US);
    let most = (frames + 2) * of_frame_us * US;
    let least = frames.saturating_sub(2) * (of_frame_us - windows * OPENING_US) * US;
    println!("{guest}: {ran} ticks in {frames} frames, from {least} to {most}");
    run.check(
        (least..=most).contains(&ran),
        format_args!("{guest} ran for {ran} ticks, not {least} to {most}"),
    );
}

/// Each guest computes as long as it may, but the RTOS, whose tasks take 1.2 ms of each frame: what it leaves is nobody's, as is what is in no window.
#[test]
fn each_guest_has_its_windows_and_what_it_leaves_is_nobodys() {
    let tasks = "begin_ms=20 run_ms=300 report_ms=0 task1=5000,50000,10000,2 task2=20000,200000,20000,1";
    let run = system(1)
        .with(Guest::freertos(tasks))
        .with(busy("one").vcpus(3))
        .with(busy("two").priority(31))
        .window(0, "freertos", 0, 3_000)
        .window(0, "one", 3_000, 2_000)
        .window(0, "two", 5_500, 500)
        .window(0, "one", 6_000, 1_000)
        .run(Clock::Icount);
    // Each job is done, though its tick is in other guests' windows.
    run.good();
    had(&run, "one", 3_000, 2, FRAME_US);
    had(&run, "two", 500, 1, FRAME_US);
    let (all, idle) = (whole(&run), run.core(0).idle);
    // 3.5 ms are in no window, and of the RTOS's three it leaves more than a half.
    run.check(idle > all / 2, format_args!("the hart idled for {idle} of {all} ticks"));
}

/// Linux has a hart for itself and a part of another one, where FreeRTOS has its windows. Its vCPUs interrupt each other, and fence, all the time, and one of them mostly
/// can't answer.
#[test]
fn linux_and_freertos_keep_to_their_windows_and_come_to_their_ends() {
    for interrupts in [PLIC, APLIC] {
        let tasks =
            "begin_ms=20 run_ms=5000 report_ms=0 task1=20000,250000,20000,2 task2=40000,500000,40000,1";
        let run = system(2)
            .interrupts(interrupts)
            .with(Guest::freertos(tasks).harts([1]))
            .with(Guest::linux("hackbench").vcpus(2).harts([0, 1]))
            .window(0, "linux", 0, 10_000)
            .window(1, "freertos", 2_000, 4_000)
            .window(1, "linux", 6_000, 6_000 - 2_000)
            .window(1, "linux", 0, 2_000)
            .run(Clock::Lockstep { q: 250 });
        run.good();
        let there = run.guest("linux").vcpus[1].running;
        let rtos = run.guest("freertos").vcpus[0].running;
        let (all, idle) = (run.report.guests[1].vcpus[0].running + run.core(0).idle, run.core(1).idle);
        println!(
            "{interrupts}: of {all} ticks hart 1 had Linux for {there}, FreeRTOS for {rtos}, nobody for {idle}"
        );
        run.check(
            there <= all * 6 / 10 + 2 * FRAME_US * US,
            format_args!("Linux ran for {there} of {all} ticks"),
        );
    }
}

/// A device of the board interrupts its guest at any time. Outside of its windows that is kept in the board's controller: whoever computes there is interrupted by the ends of its
/// own windows only, and none of the interrupts is lost.
#[test]
fn a_device_is_heard_in_its_guests_windows_only() {
    for interrupts in [PLIC, APLIC] {
        let rtc = Guest::probe("rtc", "n=40").device("/soc/rtc@101000");
        // The next alarm is set for 10 ms after the one before.
        let run = System::on(1)
            .policy("time-window")
            .major_frame("7ms")
            .interrupts(interrupts)
            .with(rtc)
            .with(busy("busy"))
            .window(0, "rtc", 0, 1_000)
            .window(0, "busy", 1_000, 6_000)
            .run(Clock::Lockstep { q: 250 });
        run.good();
        had(&run, "busy", 6_000, 1, 7_000);
        let exits = run.exits_for("busy", "external");
        println!("{interrupts}: {} interrupts of devices", run.core(0).interrupts["external"]);
        run.check(run.core(0).interrupts["external"] >= 40, "an alarm wasn't heard");
        run.check(exits == 0, format_args!("{exits} interrupts of a device beside another guest"));
    }
}

/// A vCPU is sent interrupts as fast as another core can, most of the time outside of its windows: nothing of that comes to its hart then.
#[test]
fn interrupts_from_another_hart_wait_for_the_window() {
    let run = system(2)
        .with(Guest::probe("storm", "n=300").vcpus(2).harts([1, 0]))
        .with(busy("busy").harts([1]))
        .window(0, "storm", 0, 10_000)
        .window(1, "storm", 0, 2_000)
        .window(1, "busy", 2_000, 8_000)
        .run(Clock::Lockstep { q: 250 });
    run.good();
    let exits = run.exits_for("busy", "ipi");
    println!("{exits} of {} IPIs beside the other guest", run.core(1).interrupts["software"]);
    // One may have been on its way when the window ended.
    let frames = run.guest("busy").vcpus[0].dispatches;
    run.check(exits <= frames, format_args!("{exits} IPIs in {frames} windows"));
}
