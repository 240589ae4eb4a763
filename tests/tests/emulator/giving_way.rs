//! Guests that give their core away, by a call or by a load: others have it until an interrupt for them, and the priority of the task that does it says how much.
use ainori_tests::{APLIC, Clock, Guest, IMSIC, PLIC, Run, System, harts::up_by_ms};

const LOCKSTEP: Clock = Clock::Lockstep { q: 250 };
/// Of all instructions that a hart executes in a millisecond.
const MILLISECOND: u64 = 250_000;
/// Of the board's clock.
const TICKS_PER_MS: u64 = 10_000;

/// Computes whenever it has the hart.
fn filler() -> Guest {
    Guest::probe("busyloop", "").background()
}

/// What a guest's job `work` has computed, of what a hart can in so many milliseconds, in percent.
fn percent(run: &Run, guest: &str, ms: u64) -> u64 {
    let counted = run.guest(guest).results.iter().find_map(|result| result.get("instructions")?.as_u64());
    let counted =
        counted.unwrap_or_else(|| run.fail(format_args!("{guest} doesn't say what it has computed")));
    counted * 100 / (ms * MILLISECOND)
}

/// For so long a guest's vCPUs had harts, in milliseconds.
fn ran_ms(run: &Run, guest: &str) -> u64 {
    run.guest(guest).vcpus.iter().map(|vcpu| vcpu.running).sum::<u64>() / TICKS_PER_MS
}

#[test]
fn who_gives_way_comes_back_with_an_interrupt_and_no_sooner() {
    for (preset, controller, vcpus) in [
        ("ainori", PLIC, 1),
        ("ainori", IMSIC, 2),
        ("spumone", APLIC, 2),
        ("spumone-trap-based", PLIC, 2),
        ("listee-rt", PLIC, 2),
        ("listee-rt", IMSIC, 1),
    ] {
        let run = System::on(2)
            .policy(preset)
            .interrupts(controller)
            .with(Guest::probe("give-way", "").vcpus(vcpus).harts((0..vcpus).rev()).priority(7))
            .with(filler().named("below").harts([0]))
            .with(filler().harts([1]))
            .run(LOCKSTEP);
        run.good();
        let exits = run.exits_for("give-way", "sbi-ainori");
        run.check(exits >= 9, format_args!("{exits} calls"));
        // In three rounds each of four ways gives the first vCPU's core away twice, for 3 ms: 72 ms, less what the switches take. Whoever is on the other hart has that all the time, or nearly.
        for filler in ["below", "busyloop"] {
            let ran = ran_ms(&run, filler);
            println!("{preset}, {controller}, {vcpus}: {filler} ran {ran} ms");
            run.check(ran >= 68, format_args!("{filler} ran {ran} ms of 72"));
        }
    }
}

/// On a hart of its own nobody wants the core.
#[test]
fn who_gives_way_to_nobody_comes_back_as_well() {
    for (preset, vcpus) in [("partition", 1), ("ainori", 2)] {
        let guest = Guest::probe("give-way", "").vcpus(vcpus);
        System::on(vcpus).policy(preset).with(guest.harts(0..vcpus)).run(LOCKSTEP).good();
    }
}

/// Table 2 of LiSTEE RT with FreeRTOS first. Its real-time task is in time, whoever has the rest.
#[test]
fn a_transition_task_of_freertos_gives_by_its_priority() {
    for (preset, give_way, from, to) in
        [("listee-rt", 0, 0, 0), ("listee-rt", 1, 45, 50), ("ainori", 1, 45, 50), ("listee-rt", 2, 95, 100)]
    {
        let args =
            format!("periods=400 burn_percent=0 work=1 work_from_ms=150 work_ms=300 give_way={give_way}");
        let run = System::on(1)
            .policy(preset)
            .with(Guest::freertos(&args))
            .with(
                Guest::freertos(
                    "period_us=10000 periods=1 burn_percent=0 work=1 work_from_ms=150 work_ms=300",
                )
                .named("other")
                .priority(1),
            )
            .run(LOCKSTEP);
        run.lost_no_tick("freertos", 400).was_in_time("freertos", format_args!("give_way={give_way}"));
        let shares = ["freertos", "other"].map(|guest| percent(&run, guest, 300));
        println!("{preset}, give_way={give_way}: {shares:?} %");
        run.check((from..=to).contains(&shares[1]), format_args!("the other has {} %", shares[1]));
        run.check(shares[0] + shares[1] >= 97, "some of the hart is nobody's");
    }
}

/// The same with Linux first: a process, and Linux's own scheduler.
#[test]
fn a_process_on_linux_gives_by_its_nice_value_or_class() {
    for (controller, class, from, to) in [
        (PLIC, "nice ainori.nice=0", 45, 51),
        (IMSIC, "nice ainori.nice=5", 20, 27),
        (PLIC, "idle", 0, 1),
        (PLIC, "fifo", 90, 96),
    ] {
        let begin_ms = up_by_ms(4000);
        let args = format!("ainori.begin_ms={begin_ms} ainori.run_ms=1000 ainori.class={class}");
        let run = System::on(1)
            .policy("listee-rt")
            .interrupts(controller)
            .with(Guest::linux("give-way").with_give_way().args(&args).priority(7))
            .with(
                Guest::freertos(&format!(
                    "period_us=10000 periods=1 burn_percent=0 work=1 work_from_ms={begin_ms}"
                ))
                .priority(1),
            )
            .run(LOCKSTEP);
        let [linux, freertos] = ["linux", "freertos"].map(|guest| percent(&run, guest, 1000));
        println!("{class}: Linux {linux} %, FreeRTOS {freertos} %");
        run.result("linux");
        run.check((from..=to).contains(&freertos), format_args!("FreeRTOS has {freertos} %"));
        run.check(linux + freertos >= 96, "some of the hart is nobody's");
    }
}

/// A Linux one of whose processes, a real-time one, gives way all the time, beside an RTOS that goes first on one of its harts.
#[test]
fn an_rtos_beside_programs_that_give_way_is_in_time() {
    for (preset, controller) in [("ainori", PLIC), ("listee-rt", IMSIC)] {
        let run = System::on(2)
            .policy(preset)
            .interrupts(controller)
            .with(
                Guest::linux("give-way")
                    .with_give_way()
                    .vcpus(2)
                    .args("ainori.begin_ms=6000 ainori.run_ms=500 ainori.class=fifo"),
            )
            .with(Guest::freertos("periods=6000 burn_percent=30").harts([1]))
            .run(LOCKSTEP);
        run.good().lost_no_tick("freertos", 6000).was_in_time("freertos", preset);
        // Each load gives the core away until an interrupt. Linux has a tick in 4 ms, and its programs at least 3 s before FreeRTOS ends: 750 in all, less those in which others have a turn.
        let given = run.exits_for("linux", "mmio-other");
        println!("{preset}: Linux gave way {given} times");
        run.check(given >= 500, format_args!("Linux gave way {given} times"));
    }
}
