//! Guest interrupt files of the harts (AIA): what is stored there by a guest reaches its vCPU without the hypervisor, waits without disturbing anybody where
//! that one mustn't run, and wakes it where it may.
use ainori_devices::aplic::MOST_REDIRECTED;
use ainori_limits::GUEST_CHANNELS;
use ainori_tests::{
    Clock, Guest, IMSIC, Run, System,
    bounds::{IRQS_OFF_BESIDE_RTOS_NS, TASK_NS},
};

const LOCKSTEP: Clock = Clock::Lockstep { q: 100 };

/// Of the board's clock.
const TICKS_PER_US: u64 = 10;

/// No section of an RTOS's core is longer than it may be.
#[track_caller]
fn has_no_long_section(run: &Run, core: usize, what: impl std::fmt::Display) {
    let (ns, report) = (run.longest_irqs_off_ns(core), run.core(core));
    println!("{what}: {:?}", report.irqs_off_max);
    run.check(
        ns <= IRQS_OFF_BESIDE_RTOS_NS,
        format_args!("{what}: {ns} ns ({})", report.longest_irqs_off_cause),
    );
}

/// A board on which each hart has files enough: guests' files in harts are a part of the H extension.
fn on(harts: u32) -> System {
    System::on(harts).with_h().interrupts(IMSIC)
}

/// Sends from hart 0 to hart 1.
fn messages(args: &str) -> Guest {
    Guest::probe("messages", args).vcpus(2).harts([0, 1])
}

/// The same beside others that come first on hart 1.
fn less_urgent_messages(args: &str) -> Guest {
    messages(args).priority(3)
}

/// Exits of the vCPU whatever for.
fn all_exits(run: &Run, guest: &str, vcpu: usize) -> u64 {
    run.exits(guest, vcpu)
}

/// Neither one vCPU's store nor the other one's interrupt concerns the hypervisor, while both run.
#[test]
fn a_message_between_running_vcpus_costs_no_exit() {
    let exits = |n: u64| {
        let run = on(2).with(messages(&format!("n={n} period_us=20 busy=1"))).run(LOCKSTEP);
        run.good();
        [0, 1].map(|vcpu| all_exits(&run, "messages", vcpu))
    };
    let (few, many) = (exits(200), exits(2_200));
    println!("200 messages: {few:?} exits, 2,200: {many:?}");
    assert_eq!(few, many, "2,000 more messages should change nothing");
}

/// Whom a message is for waits for its hart: it comes as soon as the urgent guest leaves that, which has noticed nothing. In two rounds of three nothing is sent:
/// the hart idles, and the urgent guest goes on from there.
#[test]
fn a_held_back_message_costs_the_running_guest_nothing() {
    // Bursts take 800 us of each of 300 ms. Messages are sent 300 us into one, and so for 500 us held back; the last few when the bursts are over, so that the end of
    // who hears them disturbs nobody.
    let beside = |n: u64, period_us: u64| {
        let hearer = format!("n={n} period_us={period_us} phase_us=300");
        let run = on(2)
            .with(Guest::probe("bursts", "n=300 us=800 pause_us=1000").harts([1]).priority(9))
            .with(less_urgent_messages(&hearer))
            .run(LOCKSTEP);
        run.good();
        let exits = &run.guest("bursts").vcpus[0].exits;
        println!("a message each {period_us} us: {exits:?}, core {:?}", run.core(1));
        let heard = run.number("messages", "taken");
        run.check(heard == n, format_args!("of {n} messages {heard} were heard"));
        run
    };
    // None but the first comes while the bursts last.
    let quiet = beside(1, 1_000_000);
    for (n, period_us) in [(320, 1_000), (110, 3_000)] {
        let run = beside(n, period_us);
        let usual = run.number("messages", "delay_ns/p50");
        run.check(usual >= 450_000, format_args!("half of them are held back for at most {usual} ns"));
        let [alone, beside] = [&quiet, &run].map(|run| &run.guest("bursts").vcpus[0]);
        run.check(beside.exits == alone.exits, format_args!("beside one: {:?}", alone.exits));
        // Bursts end at a certain time: what they get less of it is their way to the hart, from who has just had a message instead of from nobody: a microsecond each.
        let less_us = alone.running.saturating_sub(beside.running) / TICKS_PER_US;
        println!("half of {n} messages were held back for {usual} ns, bursts ran {less_us} us less");
        run.check(less_us <= n, format_args!("beside {n} messages bursts ran {less_us} us less"));
    }
}

/// To load a guest that is started again takes long; where the hart idles otherwise, in long pieces. (When messages weren't looked for there, the latest took 27.7 us.)
#[test]
fn housework_gives_way_to_a_message() {
    let again = Guest::probe("selfshutdown", "ms=0").memory_mib(64).harts([1]).priority(1);
    let run = on(2)
        .with(messages("n=3000 period_us=50 spread_us=50").priority(9))
        .with(again.restart("always", 32, "1us").background())
        .run(LOCKSTEP);
    run.good();
    let latest = run.number("messages", "delay_ns/max");
    println!("{latest} ns, {:?}", run.core(1));
    // What was begun when it came, and its own way: two sections of the guard, 5 us each.
    run.check(latest <= 10_000, format_args!("a message takes {latest} ns"));
}

/// Messages for three guests come to a hart at the same moment: those for the less urgent two wait in their files until the most urgent one has had its own. (When they were
/// taken first, that one was 2.2 us later than alone.)
#[test]
fn whom_a_message_has_woken_does_not_wait_for_others_messages() {
    let at_once = |args: &str| Guest::probe("messages", &format!("{args} period_us=200"));
    let alone = on(4)
        .with(at_once("n=400").vcpus(2).harts([0, 1]).priority(9).named("first"))
        .with(Guest::probe("busyloop", "").harts([1]).background());
    let others = [(2, 5), (3, 4)].map(|(hart, priority)| {
        let guest = at_once("n=1000000").vcpus(2).harts([hart, 1]).priority(priority);
        guest.named(&format!("level-{priority}")).background()
    });
    let beside = others.into_iter().fold(alone.clone(), System::with);
    let [alone, beside] = [alone, beside].map(|system| {
        let run = system.run(LOCKSTEP);
        run.good();
        run.number("first", "delay_ns/max")
    });
    println!("the latest message took {alone} ns alone, {beside} ns beside others");
    assert!(beside <= alone + 1_000, "{beside} ns beside others, {alone} ns alone");
}

/// What comes in for a vCPU that doesn't want it, or has stopped, interrupts once, and not again at each switch between the others of its hart.
#[test]
fn a_message_that_nobody_takes_disturbs_once() {
    for args in ["deaf=1", "deaf=1 busy=1", "ends=1"] {
        let hearer = messages(&format!("n=1000 period_us=100 {args}")).priority(9).background();
        let run = on(2)
            .with(hearer)
            .with(Guest::probe("bursts", "n=100 us=300 pause_us=1000").harts([1]).priority(2))
            .with(Guest::probe("naps", "n=100 period_us=1000 busy_us=300").harts([1]).priority(3))
            .run(LOCKSTEP);
        run.good();
        let core = run.core(1);
        println!("{args}: {core:?}");
        let taken = core.interrupts["external"];
        // Once; and once more at the most for each time that the hearer, as it begins, is put on its hart anew.
        run.check(
            (1..=5).contains(&taken),
            format_args!("{args}: {taken} messages in {} switches", core.switches),
        );
    }
}

/// A device of the board interrupts the vCPU that its driver has chosen by itself, from its second interrupt on. That a level has been served, its driver tells the
/// interrupt controller, which is an exit of its own.
#[test]
fn a_device_interrupts_a_running_vcpu_without_an_exit() {
    let exits = |n: u64| {
        let owner = Guest::probe("rtc", &format!("n={n}")).device("/soc/rtc@101000");
        let run = on(1).with(owner).run(LOCKSTEP);
        run.good();
        run.check(run.number("rtc", "interrupts") == n, format_args!("of {n} alarms"));
        println!("{n} alarms: {:?}, {:?}", run.guest("rtc").vcpus[0].exits, run.core(0).interrupts);
        (run.exits_for("rtc", "external"), run.core(0).interrupts["external"])
    };
    assert_eq!(exits(3), exits(23), "20 more alarms should interrupt nobody else");
}

/// Its driver has its interrupts go elsewhere, or switches them off and on, while it asks and its last interrupt isn't served: so the board's controller, which has sent that
/// straight to a vCPU's file, is to tell the hypervisor once more, or nobody would ever hear of it. They come where the driver says from then on, and nowhere else.
#[test]
fn a_device_that_asks_is_heard_when_its_interrupts_go_elsewhere() {
    for harts in 1..=2 {
        let owner = Guest::probe("recall", "n=64").vcpus(harts).harts(0..harts).device("/soc/rtc@101000");
        let run = on(harts).with(owner).run(LOCKSTEP);
        run.good();
        run.check(run.number("recall", "turns") == 64, format_args!("{harts} harts"));
    }
}

/// One store of a guest recalls all of its sources that come straight to its files. This board has one such source; each more would take as long as that, and so many as there
/// may be are within the guard of 5 us, 1,250 instructions.
#[test]
fn a_store_that_recalls_all_sources_is_a_short_section() {
    let owner = Guest::probe("recall", "n=4").device("/soc/rtc@101000");
    let run = on(1).with(owner).run(Clock::Icount);
    run.good();
    let [one, none] = ["recall_instructions", "write_instructions"].map(|what| run.number("recall", what));
    let all = none + u64::from(MOST_REDIRECTED) * (one - none);
    println!("a store takes {none} instructions, {one} if it recalls one source: {all} with all");
    run.check(one > none, "nothing was recalled");
    run.check(all <= 1_250, format_args!("{all} instructions in one section"));
}

/// One store of a guest on the RTOS's hart has all of its sources send their messages: each is sent once, and each is a section of its own. (When they were one with the store, its four
/// channels, its serial port and its clock made that 6.3 us, and each more source would have made it longer.)
#[test]
fn a_store_that_sends_many_messages_is_no_long_section() {
    let sends = Guest::probe("words", "n=600").device("/soc/rtc@101000").harts([1]).priority(5);
    let other = Guest::probe("bell", "role=listen us=1000000").named("other").harts([0]).background();
    let system = on(2)
        .policy("ainori")
        .with(Guest::freertos("periods=60 burn_percent=0 report_ms=0").harts([1]))
        .with(sends)
        .with(other);
    let system = (0..GUEST_CHANNELS).fold(system, |system, _| system.channel(["words", "other"], "4KiB"));
    for q in [100, 250] {
        let run = system.clone().run(Clock::Lockstep { q });
        run.good();
        let sources = run.number("words", "sources");
        run.check(sources == GUEST_CHANNELS as u64 + 2, format_args!("{sources} sources"));
        has_no_long_section(&run, 1, format_args!("q = {q}"));
    }
}

/// A bell that is a file is rung by somebody more urgent than the one that hears it, who stores there without end, from another hart: the RTOS of the hearer's hart,
/// which is more urgent than both, notices nothing, and the hearer is interrupted once in 25 us.
#[test]
fn who_rings_without_end_keeps_nobody_from_the_hearers_hart() {
    let us = 30_000;
    let run = on(2)
        .policy("ainori")
        .with(Guest::probe("bell", "role=flood us=20000").named("flood").harts([0]).priority(8))
        .with(Guest::probe("bell", &format!("role=listen us={us}")).named("hearer").harts([1]).priority(5))
        .with(Guest::freertos("periods=25 burn_percent=0 report_ms=0").harts([1]))
        .channel(["flood", "hearer"], "4KiB")
        .run(LOCKSTEP);
    run.good().lost_no_tick("freertos", 25);
    let [bells, latest] = [run.number("hearer", "bells"), run.number("freertos", "delay_ns/max")];
    println!("{bells} bells in {us} us, a task {latest} ns late");
    run.check(latest <= TASK_NS, format_args!("a task is {latest} ns late"));
    run.check((100..=us / 25 + 5).contains(&bells), format_args!("{bells} bells in {us} us"));
}

/// A device interrupts a vCPU whose file is in memory, as it may be on either hart, or shares its hart with a sibling: to claim it, to find that it has its turn, to make a message of it, and to look
/// at whom that interrupts was one irqs-off section of 5.6 us on the RTOS's hart, for each of its interrupts.
#[test]
fn an_interrupt_of_a_device_for_a_file_in_memory_is_no_long_section() {
    for (policy, vcpus) in [("ainori", 1), ("ainori", 3), ("spumone", 3), ("listee-rt", 4)] {
        for args in ["n=20 busy=1", "n=20", "n=20 edge=1 busy=1"] {
            let owner = Guest::probe("rtc", args).vcpus(vcpus).harts([0, 1]).device("/soc/rtc@101000");
            let run = on(2)
                .policy(policy)
                .with(Guest::freertos("periods=60 burn_percent=30 report_ms=0").harts([0]))
                .with(owner)
                .run(LOCKSTEP);
            run.good();
            run.check(run.number("rtc", "interrupts") == 20, format_args!("{policy}, {args}"));
            has_no_long_section(&run, 0, format_args!("{policy}, {vcpus} vCPUs, {args}"));
        }
    }
}

/// Two guests on the RTOS's hart ring each other's bells. To unmask a bell that has rung, to find that it has its turn, to make a message of it and to put that into
/// the hearer's file was one irqs-off section of 5.3 us.
#[test]
fn a_bell_is_no_long_section() {
    let bell = |role: &str, priority| {
        Guest::probe("bell", &format!("role={role} n=400")).named(role).harts([1]).priority(priority)
    };
    for (policy, echo) in [("ainori", 6), ("ainori", 7), ("listee-rt", 5)] {
        let run = on(2)
            .policy(policy)
            .with(Guest::freertos("periods=60 burn_percent=0 report_ms=0").harts([1]))
            .with(bell("ping", 6))
            .with(bell("echo", echo))
            .channel(["ping", "echo"], "4KiB")
            .run(LOCKSTEP);
        run.good();
        has_no_long_section(&run, 1, format_args!("{policy}, {echo}"));
    }
}

/// A message for a sleeper comes in as a core goes on to a vCPU whose place it keeps, though that is on another core: the hypervisor panicked, as it asked which files
/// are to be watched beside one that wasn't there.
#[test]
fn a_message_comes_in_for_a_core_whose_next_vcpu_is_elsewhere() {
    let owner = Guest::probe("talk", "seed=5 bytes=3000 alarms=40 alarm_us=2000 gap_us=100 way=uart");
    for q in [237, 250, 263] {
        let wakes = Guest::fuzz("attack=wakes begin_ms=10 ms=30").vcpus(8).harts([0, 1]);
        let run = on(2)
            .policy("spumone-trap-based")
            .with(
                Guest::freertos("periods=120 begin_ms=5 burn_percent=25 burn_period_us=10000 report_ms=0")
                    .harts([0]),
            )
            .with(wakes.restart("always", 32, "1us").background())
            .with(owner.clone().vcpus(2).harts([1]).priority(6).device("/soc/rtc@101000"))
            .run(Clock::Lockstep { q });
        run.good();
        run.check(run.number("talk", "alarms") == 40, format_args!("of 40 alarms"));
    }
}
