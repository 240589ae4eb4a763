//! Hostile guests: a small fixed set of random inputs, and the attacks that have hurt somebody. Many more: the binary `fuzz` (guests/fuzz/README.md).
//!
//! Where the RTOS's bounds are looked at, its burner ends between two ticks (23 % of 10 ms): FreeRTOS takes no tick while it puts a task to sleep, which would
//! make that task 0.5 us later by FreeRTOS's own doing.
use ainori_tests::{
    Clock, Guest, Run, System,
    bounds::{IRQS_OFF_BESIDE_RTOS_NS, Kind},
    fuzz::{
        Expected, Trial, attacks,
        case::{Case, Lives, Range},
    },
    harts::usual_lack_h,
    mode::{MODES, Mode},
};

/// Slice of the attacks, in instructions.
const Q: u32 = 250;

#[track_caller]
fn holds(trial: &Trial, q: u32) -> u64 {
    let (run, findings) = trial.run(q);
    let texts: Vec<String> =
        findings.iter().map(|finding| format!("{:?}: {}", finding.kind, finding.text)).collect();
    run.check(findings.is_empty(), format_args!("{}: {}", trial.name, texts.join("; ")));
    run.report.guests.iter().filter_map(|guest| ainori_tests::bounds::number(guest, "inputs")).sum()
}

/// One random run under each preset.
#[test]
fn random_inputs_hurt_nobody() {
    let presets: Vec<&'static str> = ainori_sched::presets().iter().map(|preset| preset.name).collect();
    let count = presets.len() as u64;
    let range = Range { seed: 10, presets, vcpus: Range::ALL_VCPUS, ms: 40, kinds: None, mode: None };
    let inputs: u64 =
        (0..count).map(|index| range.case(index)).map(|case: Case| holds(&case.trial(), case.q)).sum();
    // Random or not, a fuzzer that does nothing finds nothing.
    assert!(inputs > 50_000, "only {inputs} inputs");
}

/// The same in a mode. Without H sections are longer than an RTOS is promised elsewhere: 7.0 us were measured.
#[track_caller]
fn holds_in(mode: Mode, trial: &Trial, q: u32) -> Run {
    let (run, mut findings) = trial.run(q);
    if !mode.has_h {
        findings.retain(|finding| finding.kind != Kind::IrqsOff);
        for hart in 0..run.report.cores.len() {
            let longest = run.longest_irqs_off_ns(hart);
            let most = IRQS_OFF_BESIDE_RTOS_NS * 3 / 2;
            run.check(longest <= most, format_args!("{}: a section of {longest} ns", trial.name));
        }
    }
    let texts: Vec<String> =
        findings.iter().map(|finding| format!("{:?}: {}", finding.kind, finding.text)).collect();
    run.check(findings.is_empty(), format_args!("{}: {}", trial.name, texts.join("; ")));
    run
}

/// Each way to translate a guest's addresses, and each kind of inputs for which the fuzzer has translations of its own: it gets to try them. (Where a hypervisor shadows its tables, the way
/// to what it tries took longer than its watchdog waits, and it tried none of these.)
#[test]
fn random_inputs_in_each_mode_are_tried_and_hurt_nobody() {
    const KINDS: [&str; 4] = ["instructions", "user", "wild", "paging"];
    for mode in MODES {
        // One with a single life, which tells what it has tried, with few vCPUs, so that each has time.
        let case = Case {
            seed: 1,
            preset: "ainori",
            vcpus: 2,
            harts: 2,
            cpu: "rv64,v=true",
            ms: 60,
            kinds: None,
            q: Q,
            lives: Lives::One,
            mode: Some(mode),
        };
        let run = holds_in(mode, &case.trial(), case.q);
        let tried = KINDS.map(|kind| run.number("fuzz", &format!("kinds/{kind}")));
        println!("{mode}: {tried:?}");
        run.check(tried.iter().all(|tried| *tried >= 10), format_args!("{mode}: {tried:?} of {KINDS:?}"));
    }
}

/// Address spaces by the dozen, tables that change all the time, the whole upper half of a root, views of a kernel, and text that is loaded and stored to.
#[test]
fn attacks_on_translations_hurt_nobody_in_any_mode() {
    for mode in MODES {
        for attack in ["spaces", "changes", "windows", "views", "texts"] {
            let name = format!("{attack}-3-ainori-");
            let trials = attacks::in_mode(mode);
            let trial = trials.iter().find(|trial| trial.name.starts_with(&name)).expect("it is there");
            let run = holds_in(mode, trial, Q);
            let steps = run.number("fuzz", "inputs");
            println!("{}: {steps} steps", trial.name);
            run.check(steps >= 200, format_args!("{}: only {steps} steps", trial.name));
        }
    }
}

/// So it was with many vCPUs: the RTOS had measured before they began, and nothing said so.
#[test]
fn an_attack_that_the_rtos_did_not_measure_is_told() {
    let fuzz = Guest::fuzz("attack=ipis begin_ms=20 ms=10").vcpus(2);
    let trial = Trial {
        name: "unmeasured".into(),
        preset: "ainori",
        system: System::on(1)
            .with(fuzz)
            .with(Guest::freertos("periods=10 burn_percent=0 report_ms=0").harts([0])),
        hostile: vec![("fuzz".into(), Expected::Done)],
        rtoses: vec![("freertos".into(), 0)],
        neighbours: Vec::new(),
        patience_ms: None,
    };
    let (run, findings) = trial.run(Q);
    let told = findings.iter().any(|finding| finding.kind == Kind::Emulator);
    run.check(told, format_args!("the attack was not measured, but that was not found: {findings:?}"));
}

/// Random runs of campaigns that have found something: each under its preset, with its seed.
///
/// - An RTOS's core kicked another one for who had just lost it before it looked for interrupts: an irqs-off section of 5.9 us.
/// - What led to a switch, the switch, the exchange of extension registers and the parking of who had lost the core were one irqs-off section of 5.1 us.
/// - An illegal instruction kept the alarm in the firmware, and registers were exchanged and mail was read on the RTOS's way: its handler was 1.8 us
///   late (which slices show it is chance).
/// - The same, where it was also reckoned three times when to look for whom a vCPU had left: 1.3 us late.
#[test]
fn random_inputs_that_have_hurt_somebody_hurt_nobody() {
    for (preset, seed, vcpus, harts, q) in [
        ("spumone-on-demand", 0x40cf_5e82_8fe8_0ff0, 14, 4, 199),
        ("spumone-on-demand", 0x40cf_5e82_8fe8_0ff0, 14, 4, 211),
        ("spumone-on-demand", 0x40cf_5e82_8fe8_0ff0, 14, 4, 265),
        ("spumone-on-demand", 0x62f7_4e38_9d0c_8d0e, 15, 3, 250),
        ("ainori", 0x34cb_ada6_e45e_f173, 9, 4, 149),
        ("ainori", 0x34cb_ada6_e45e_f173, 9, 4, 199),
        ("spumone-on-demand", 0xaa41_0515_c91b_28a4, 16, 2, 250),
    ] {
        let case = Case {
            seed,
            preset,
            vcpus,
            harts,
            cpu: "rv64",
            ms: 100,
            kinds: None,
            q,
            lives: Lives::One,
            mode: None,
        };
        holds(&case.trial(), case.q);
    }
}

/// A guest whose vCPUs do at random what they can to each other, and which is restarted again and again, beside an RTOS. In an examination:
/// - on-demand, 15 vCPUs: behind a less urgent vCPU's timer, the RTOS's was within the guard and nobody saw it: its task was 3.6 us late. And to start a
///   vCPU took an RTOS's core up to 5.7 us;
/// - 4 and 15 vCPUs that write each other's enable bits in the interrupt controller while they start and stop: 5.5 to 5.9 us.
#[test]
fn restarted_guests_in_chaos_hurt_nobody() {
    for (preset, harts, rtos, vcpus, args, periods, slices) in [
        ("spumone-on-demand", 4, 2, 15, "seed=19753834 ends_in=1000", 500, [247, 254]),
        ("ainori", 2, 1, 15, "seed=837245413 ends_in=0 only=0x23c", 200, [241, 248]),
        ("spumone-on-demand", 2, 0, 4, "seed=11 ends_in=0 source=2", 200, [237, 244]),
    ] {
        let chaos = Guest::probe("chaos", args).vcpus(vcpus).memory_mib(8).background();
        let freertos = format!(
            "period_us=1000 periods={periods} begin_ms=5 burn_percent=33 report_ms=0 burn_period_us=10000"
        );
        let trial = Trial {
            name: format!("{preset}: chaos {args}"),
            preset,
            system: System::on(harts)
                .policy(preset)
                .cpu("rv64,v=true")
                .with(chaos.restart("always", 32, "1us"))
                .with(Guest::freertos(&freertos).harts([rtos]).priority(10))
                .with(Guest::probe("fpkeep", "ms=100").harts([rtos])),
            hostile: vec![("chaos".into(), Expected::Nothing)],
            rtoses: vec![("freertos".into(), rtos)],
            neighbours: vec!["fpkeep".into()],
            patience_ms: None,
        };
        for q in slices {
            holds(&trial, q);
        }
    }
}

/// Fifteen levels of guests that sleep, and do one thing when they wake: at any time, or shortly before or after an RTOS's deadline. An attacker's:
/// - what a message asked for, a look at the timers of all levels, and the waking of one of them were one irqs-off section of 5.4 us;
/// - with their vector registers in use: to wake one, to switch to it, to exchange the registers, and to park who had the core were one of 5.7 us, and an RTOS's
///   task was 3.2 us late;
/// - what was deferred for the deadline of an RTOS that computes went on when another alarm came before that: its task was 4.8 us late.
#[test]
fn a_crowd_of_sleepers_hurts_nobody() {
    const TICKS_PER_PERIOD: u64 = 10_000;
    const RTOS: u32 = 1;
    let trial = |preset, first: u32, cpu: &str, what: &str, periods: u32| {
        let sleeper = |level: u32| {
            let harts = if level == 1 { first..2 } else { 0..2 };
            let args = format!("seed={level} ends_in=0 {what}");
            let guest = Guest::probe("chaos", &args).named(&format!("sleeper-{level}")).harts(harts);
            guest.priority(level).memory_mib(8).background().restart("always", 32, "1us")
        };
        let args = format!(
            "period_us=1000 periods={periods} begin_ms=5 burn_percent=23 report_ms=0 burn_period_us=20000"
        );
        let system = System::on(2).policy(preset).cpu(cpu);
        let system = system.with(Guest::freertos(&args).harts([RTOS]).priority(31));
        let vcpus = if cpu == "rv64" { 3 } else { 4 };
        Trial {
            name: format!("{preset}: {what}"),
            preset,
            system: (1..=15).map(|level| sleeper(level).vcpus(vcpus)).fold(system, System::with),
            hostile: (1..=15).map(|level| (format!("sleeper-{level}"), Expected::Nothing)).collect(),
            rtoses: vec![("freertos".into(), RTOS)],
            neighbours: Vec::new(),
            patience_ms: None,
        }
    };
    // Interrupts and fences only, or all kinds.
    for (preset, kinds, q) in [("ainori", 3, 250), ("ainori", 0, 257), ("spumone-on-demand", 3, 253)] {
        let around =
            |phase: u64, periods| trial(preset, 0, "rv64", &format!("only={kinds} phase={phase}"), periods);
        // When the RTOS's deadlines are is not known before it has begun.
        let phase = around(0, 1).run(q).0.number("freertos", "span/from") % TICKS_PER_PERIOD;
        holds(&around(phase, 150), q);
    }
    // Naps, with and without interrupts to each other.
    for (kinds, q) in [(0xc1, 262), (0xc0, 271)] {
        let what = format!("only={kinds} phase=0 before_us=1000 after_us=0 extensions=1");
        holds(&trial("spumone-on-demand", 1, "rv64,v=true,vlen=256", &what, 150), q);
    }
}

/// A core waits for an RTOS's deadline for longer than what it has deferred may wait: its alarm for that was taken as soon as the RTOS was entered, whose
/// task was 12.8 us late.
#[test]
fn a_long_advance_hurts_nobody() {
    for (preset, advance, q) in
        [("ainori", "30us", 250), ("ainori", "100us", 257), ("spumone-on-demand", "40us", 241)]
    {
        let args = "period_us=1000 periods=100 burn_percent=0 report_ms=0 begin_ms=5";
        let system = System::on(2).policy(preset).advance(advance);
        let hostile = Guest::probe("chaos", "seed=1 ends_in=0").vcpus(4).harts([0, 1]).priority(1);
        let trial = Trial {
            name: format!("{preset} with an advance of {advance}"),
            preset,
            system: system.with(Guest::freertos(args).harts([0]).priority(31)).with(hostile.background()),
            hostile: vec![("chaos".into(), Expected::Nothing)],
            rtoses: vec![("freertos".into(), 0)],
            neighbours: Vec::new(),
            patience_ms: None,
        };
        holds(&trial, q);
    }
}

/// A guest that sleeps for moments again and again keeps its core from nothing: each wait for its next deadline put off what the core had deferred, so that it
/// never read that the run was over.
#[test]
fn a_chain_of_naps_does_not_keep_the_run_from_its_end() {
    for (preset, q) in [("spumone", 200), ("spumone", 241), ("ainori", 223)] {
        let naps = Guest::probe("naps", "period_us=6 busy_us=1 n=1000000000").harts([1]).priority(9);
        System::on(2)
            .policy(preset)
            .with(naps.background())
            .with(Guest::probe("busyloop", "").harts([1]).background())
            .with(Guest::probe("timer", "period_us=1000 n=20").harts([0]))
            .run(Clock::Lockstep { q })
            .good();
    }
}

/// FreeRTOS on hart 0 beside guests that sleep, wake together, print and are started again. In an examination:
/// - up to 14 levels of sleepers, and 16 timers at one moment below them: handler 2.7 us late, sections with interrupts off of 17.4 us;
/// - 14 guests that print beginnings of lines on one hart: 6.1 us;
/// - a guest that is started again on the RTOS's hart: 7.2 us; fences of 16 vCPUs on 16 harts: 5.1 us;
/// - 14 guests that take turns (`co-schedule`), of which a random system had some: 6.1 us;
/// - three guests of 16 vCPUs, of three levels, that sleep for moments, wake, stop and start each other: 5.2 us;
/// - six guests of ten vCPUs on one hart whose last vCPUs come to rest together, as all are started again: up to 6.7 us;
/// - seven guests with 52 vCPUs that fence and interrupt all of theirs: task 3.8 us late, handler 2.6 us, sections of 5.5 us.
#[test]
fn a_crowd_hurts_nobody() {
    const PERIODS: u32 = 200;
    let args = format!(
        "period_us=1000 periods={PERIODS} begin_ms=5 burn_percent=23 report_ms=0 burn_period_us=10000"
    );
    let beside = |name: &str, preset, harts: u32, guests: Vec<Guest>, q| {
        let hostile = guests.iter().map(|guest| (guest.name().to_owned(), Expected::Nothing)).collect();
        let system = System::on(harts).policy(preset).with(Guest::freertos(&args).harts([0]).priority(31));
        let trial = Trial {
            name: format!("{preset}: {name}"),
            preset,
            system: guests.into_iter().fold(system, System::with),
            hostile,
            rtoses: vec![("freertos".into(), 0)],
            neighbours: Vec::new(),
            patience_ms: None,
        };
        holds(&trial, q);
    };
    let crowd =
        |name: String, args: &str| Guest::probe("crowd", args).named(&name).memory_mib(6).background();
    let levels = |harts: u32| {
        let sleeper =
            |nth: u32| crowd(format!("level-{nth}"), "period_us=60000000").harts([0]).priority(3 + nth);
        let low = crowd("low".into(), "period_us=100").vcpus(16).harts(0..harts);
        (0..14).map(sleeper).chain([low]).collect::<Vec<_>>()
    };
    beside("levels", "spumone", 1, levels(1), 233);
    beside("levels", "spumone-on-demand", 2, levels(2), 250);
    let printer = |nth: u32| crowd(format!("printer-{nth}"), "period_us=900 bytes=3").harts([0]);
    beside("beginnings of lines", "ainori", 1, (0..14).map(printer).collect(), 250);
    let again = || Guest::probe("lives", "until_ms=150").restart("always", 32, "1ms").background().harts([0]);
    beside("restarts", "ainori", 1, vec![again()], 250);
    let many = (0..14).map(printer).chain([again()]).collect();
    beside("restarts among many", "round-robin", 1, many, 250);
    let restless = |nth: u32| {
        let args = format!("seed={nth}");
        Guest::probe("restless", &args).named(&format!("restless-{nth}")).vcpus(16).priority(nth).background()
    };
    for preset in ["ainori", "spumone-on-demand"] {
        beside("three levels of the restless", preset, 2, (1..=3).map(restless).collect(), 250);
    }
    let member = |nth: u32| crowd(format!("member-{nth}"), "period_us=300").vcpus(4).harts([0]);
    beside("turns of many guests", "co-schedule", 1, (0..14).map(member).collect(), 250);
    let again = |(period_us, nth): (u32, u32)| {
        let args = format!("period_us={period_us} reboot_us=40000");
        let guest = crowd(format!("again-{nth}"), &args).vcpus(10).harts([0]).priority(nth);
        guest.restart("always", 32, "1us")
    };
    let many = [850, 1_000, 100_000].into_iter().cycle().zip(1..=6).map(again).collect();
    beside("ends of many guests", "spumone", 1, many, 241);
    // Harts, level, period, what each hart does in it: fences all, interrupts all, prints, and whether it reboots.
    let calls = [
        (2, 13, 100_000, "fences=1"),
        (10, 19, 850, "fences=1 ipis=1 bytes=8 reboot_us=40000"),
        (6, 5, 850, "reboot_us=40000"),
        (10, 6, 300, "fences=1 ipis=1"),
        (16, 1, 500, "fences=1 ipis=1 bytes=8"),
        (2, 14, 1_000, "ipis=1 bytes=8 reboot_us=40000"),
        (6, 11, 850, "fences=1 bytes=8 reboot_us=40000"),
    ];
    let caller = |(vcpus, level, period_us, what): (u32, u32, u32, &str)| {
        let guest = crowd(format!("caller-{level}"), &format!("period_us={period_us} {what}"));
        guest.vcpus(vcpus).harts([1, 0]).priority(level).restart("always", 32, "1us")
    };
    for (preset, q) in [("ainori", 271), ("spumone-on-demand", 257)] {
        beside("calls to all", preset, 2, calls.map(caller).into(), q);
    }
    let smp = Guest::probe("smp", "rounds=6").vcpus(16).harts(0..16).background();
    beside("fences", "spumone", 16, vec![smp], 250);
}

/// What a vCPU's interrupt controller asked for before the vCPU was started again was lost.
#[test]
fn a_start_loses_no_external_interrupt() {
    System::on(2).with(Guest::probe("late", "").vcpus(2)).run(Clock::Lockstep { q: Q }).good();
}

/// The attacks whose names begin so, under the default policy, and under those that an attack was made for (`tools/soak fuzz` has all).
fn attacks_hold(prefix: &str) {
    attacks_hold_in_slices(prefix, Q);
}

fn attacks_hold_in_slices(prefix: &str, q: u32) {
    let trials: Vec<Trial> =
        attacks::all().into_iter().filter(|trial| trial.name.starts_with(prefix)).collect();
    let trials: Vec<Trial> = trials
        .into_iter()
        .filter(|trial| ["ainori", "spumone-trap-based-strict", "delayed"].contains(&trial.preset))
        .collect();
    assert!(!trials.is_empty(), "no attack begins with {prefix}");
    for trial in trials {
        holds(&trial, q);
    }
}

/// Messages of all identities that had come for a vCPU were stored to its hart's file one by one: 5.4 us were one section.
#[test]
fn messages_that_wait_in_great_numbers_hurt_nobody() {
    let all = attacks::all();
    let trial = all.iter().find(|trial| trial.name == "aplic-4-spumone-imsic").expect("it is there");
    holds(trial, Q);
}

#[test]
fn vcpus_that_stop_and_start_each_other_hurt_nobody() {
    attacks_hold("restarts-4-");
    attacks_hold("restarts-8-");
}

#[test]
fn sixteen_vcpus_that_stop_and_start_each_other_hurt_nobody() {
    attacks_hold("restarts-16-");
}

/// An attacker's. An idle core looked for work while its RTOS was about to wake: a task 3.0 us late, a handler 1.6 us. And where to bring the one that is
/// spun for was searched among 16 cores twice in one section, 5.6 us.
#[test]
#[ignore = "soak: minutes"]
fn many_vcpus_on_many_harts_hurt_nobody() {
    attacks_hold("many-harts-3000c0-");
}

/// Was 288 ms where the guest in the middle left its timer alone.
#[test]
fn sleepers_below_two_guests_are_looked_after() {
    attacks_hold("sleepers");
}

/// Each was entered and left within one decision, and looked as if it waited: idle cores asked for it without end.
#[test]
fn vcpus_that_wake_before_they_have_been_left_hurt_nobody() {
    attacks_hold("wakes");
}

/// Two guests under a policy that defers preemption: a vCPU that had just been chosen was stopped, and the hypervisor panicked.
#[test]
#[ignore = "soak: minutes"]
fn two_guests_of_random_inputs_hurt_nobody_where_preemption_is_deferred() {
    attacks_hold("pair");
}

#[test]
fn ipis_to_all_hurt_nobody() {
    attacks_hold("ipis");
}

/// Harts that send interrupts to one as fast as they can: however many they are, it takes them, and has half of its hart for that. (It took 4,000 in 249 ms
/// from two, and did not end with five; and delays were told that were as long as the run.)
#[test]
fn who_gets_more_interrupts_than_can_be_handed_on_goes_on() {
    for vcpus in [3, 6] {
        for q in [199, 250] {
            let storm = Guest::probe("storm", "n=1000").vcpus(vcpus).harts(0..vcpus);
            let run = System::on(vcpus).with(storm).run(Clock::Lockstep { q });
            run.good();
            let (taken, ns) = (run.number("storm", "taken"), run.number("storm", "ns"));
            // Measured: 47,500 to 48,800.
            run.check(ns / taken <= 55_000, format_args!("{taken} interrupts in {ns} ns"));
            let longest = run.guest("storm").vcpus[0].latency.max;
            // Measured: 243 to 253. Others are kept quiet for 25 us.
            run.check(
                longest <= 350,
                format_args!("an interrupt is told to be {longest} ticks of 100 ns late"),
            );
        }
    }
}

/// A core that has more to do for equals of the vCPU that it runs than it can still hears at once of somebody more urgent. (It was left to look by itself:
/// an answer that takes 10 us took 34. Without H one takes 16 in the mean and 24 at most, but for the first ones, in which each privileged instruction still traps by the firmware.)
#[test]
fn an_interrupt_for_an_rtos_passes_those_for_others() {
    let (args, most_ns) = if usual_lack_h() {
        ("n=0 pings=150 ping_sleeps=1 uncounted=10", 32_000)
    } else {
        ("n=0 pings=150 ping_sleeps=1", 20_000)
    };
    for q in [211, 250] {
        let rtos = Guest::probe("cost", args).vcpus(2).harts([0, 1]).priority(10);
        let storm = Guest::probe("storm", "n=1000000000").vcpus(5).harts(1..6).background();
        let run = System::on(6).policy("spumone").with(rtos).with(storm).run(Clock::Lockstep { q });
        run.good();
        let longest = run.number("cost", "ipi_round_trip_ns/max");
        println!("q = {q}: an answer comes after {longest} ns at most");
        run.check(longest <= most_ns, format_args!("an answer comes after {longest} ns"));
    }
}

/// With the second slice ten vCPUs that waited for an equal were seen to beside the RTOS, just when its own timer was due: its handler was 5.8 us late.
#[test]
fn fences_of_all_hurt_nobody() {
    attacks_hold("fences");
    attacks_hold_in_slices("fences-16", 211);
    attacks_hold("page-fences");
}

#[test]
fn interrupt_controller_registers_hurt_nobody() {
    attacks_hold("plic");
    attacks_hold("aplic");
    attacks_hold("imsic");
}

#[test]
fn faults_hurt_nobody() {
    attacks_hold("faults");
}

#[test]
fn consoles_hurt_nobody() {
    attacks_hold("flood");
    attacks_hold("newlines");
}

#[test]
#[ignore = "soak: minutes"]
fn a_crowd_under_the_strict_policy_hurts_nobody() {
    attacks_hold("crowd");
}

/// What is left beside an urgent vCPU is taken up a part at a time, and a message for a more urgent one that comes in during such a part isn't left with the
/// rest, though nobody says it again.
#[test]
fn a_message_during_deferred_work_is_not_deferred_with_it() {
    for (policy, q) in [("spumone", 211), ("spumone-on-demand", 250), ("ainori", 250)] {
        let most_urgent =
            Guest::probe("cost", "n=0 pings=300 ping_sleeps=1").vcpus(2).harts([0, 1]).priority(10);
        // It has the hart most of the time, and what others want of it is taken up each 25 us.
        let urgent =
            Guest::freertos("period_us=1000 periods=1000000 burn_percent=60 burn_period_us=500 report_ms=0");
        let urgent = urgent.harts([1]).priority(5).background();
        let others = Guest::probe("storm", "n=1000000000").vcpus(12).harts(1..4).background();
        let run = System::on(4)
            .policy(policy)
            .with(most_urgent)
            .with(urgent)
            .with(others)
            .run(Clock::Lockstep { q });
        run.good();
        let longest = run.number("cost", "ipi_round_trip_ns/max");
        println!("{policy}, q = {q}: an answer comes after {longest} ns at most");
        run.check(longest <= 25_000, format_args!("an answer comes after {longest} ns"));
    }
}

/// While there is no core for a vCPU that is being started, the one where it is parked isn't told, whatever else is wanted of it meanwhile: an RTOS has that.
/// (Each interrupt for it was told, past the RTOS's threshold: 652 times. Then each start was, just as the RTOS's tick came: a task 6.8 us late.)
#[test]
fn a_start_that_finds_no_core_disturbs_nobody() {
    // Under `balance` the hart of the one that asks isn't for the other one. Elsewhere it is, but for the moments in which a third one takes it.
    for (policy, pause_us) in [("balance", 0), ("ainori", 61), ("spumone-on-demand", 61)] {
        let system = System::on(2)
            .policy(policy)
            .with(Guest::probe("starts", "ms=100").vcpus(2).harts([1, 0]).background())
            .with(
                Guest::freertos("period_us=1000 periods=150 burn_percent=50 burn_period_us=5000 report_ms=0")
                    .harts([0])
                    .priority(10),
            );
        let takes =
            Guest::probe("bursts", &format!("n=1000000 us=10 pause_us={pause_us}")).harts([1]).priority(5);
        let system = if pause_us != 0 { system.with(takes.background()) } else { system };
        let run = system.run(Clock::Lockstep { q: 250 });
        run.good().was_in_time("freertos", policy);
        let (asked, disturbed) = (run.number("starts", "asked"), run.exits_for("freertos", "ipi"));
        println!("{policy}: asked {asked} times, the RTOS was disturbed {disturbed} times");
        run.check(asked > 10_000, format_args!("asked only {asked} times"));
        run.check(disturbed == 0, format_args!("the RTOS was disturbed {disturbed} times"));
    }
}

/// A device that its guest serves on other harts, and makes ask again, as fast as they can: the hart where its interrupt comes in has more to do than it
/// can. An RTOS there was 12 us late: its alarm was taken, and then one interrupt after the other. A guest whose vCPUs need each other goes on, too.
#[test]
#[ignore = "soak: minutes"]
fn a_device_that_asks_again_and_again_hurts_nobody() {
    is_asked_again_and_again("spumone", 16, 15, "roles=2", 250);
    is_asked_again_and_again("ainori", 8, 7, "idle=1", 250);
    is_asked_again_and_again("ainori", 2, 1, "roles=0", 250);
}

#[test]
#[ignore = "soak: minutes"]
fn a_device_that_asks_other_harts_again_and_again_hurts_nobody() {
    is_asked_again_and_again("ainori", 16, 15, "roles=0", 241);
    is_asked_again_and_again("spumone-on-demand", 8, 7, "roles=2", 211);
}

fn is_asked_again_and_again(preset: &'static str, harts: u32, servers: u32, how: &str, q: u32) {
    let clamour = Guest::probe("clamour", &format!("ms=120 servers={servers} {how}"));
    let freertos = "period_us=1000 periods=80 begin_ms=5 burn_percent=23 report_ms=0 burn_period_us=10000";
    let trial = Trial {
        name: format!("{preset}: {servers} serve a device"),
        preset,
        system: System::on(harts)
            .policy(preset)
            .with(clamour.vcpus(16).harts(0..harts).device("/soc/rtc@101000"))
            .with(Guest::freertos(freertos).harts([0]).priority(10))
            .with(Guest::probe("cost", "n=0 pings=3 ping_sleeps=1").vcpus(2).harts([0, 1])),
        hostile: vec![("clamour".into(), Expected::Nothing)],
        rtoses: vec![("freertos".into(), 0)],
        neighbours: vec!["cost".into()],
        patience_ms: None,
    };
    holds(&trial, q);
}

/// What has been claimed for such a guest waits, like what the interrupt controller holds back, while somebody more urgent runs: an RTOS was interrupted
/// for it whenever it ran for longer than such a one waits.
#[test]
fn a_device_of_a_less_urgent_guest_interrupts_no_rtos() {
    let clamour = Guest::probe("clamour", "ms=120 servers=7 roles=0");
    let freertos = "period_us=1000 periods=80 begin_ms=5 burn_percent=23 report_ms=0 burn_period_us=10000";
    let run = System::on(8)
        .policy("ainori")
        .with(clamour.vcpus(16).harts(0..8).device("/soc/rtc@101000"))
        .with(Guest::freertos(freertos).harts([0]).priority(10))
        .run(Clock::Lockstep { q: 250 });
    run.good();
    let (claimed, disturbed) = (run.exits_for("clamour", "external"), run.exits_for("freertos", "external"));
    println!("{claimed} times beside its own guest, {disturbed} beside the RTOS");
    run.check(claimed > 100, format_args!("the device interrupted only {claimed} times"));
    run.check(
        disturbed == 0,
        format_args!("the RTOS was interrupted {disturbed} times for a device of another guest"),
    );
}
