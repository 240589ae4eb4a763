//! Channels between guests: what goes in comes out once, only the two see it, and who rings all the time hurts nobody.
use ainori::report::{GuestOutcome, Outcome};
use ainori_tests::{APLIC, Clock, Guest, IMSIC, PLIC, Run, System, harts::usual_lack_h};

const LOCKSTEP: Clock = Clock::Lockstep { q: 250 };

/// A probe of this name that has a part in a channel.
fn bell(name: &str, args: &str) -> Guest {
    Guest::probe("bell", args).named(name)
}

/// All numbers came back in their order. Each bell that was heard stood for one number at least: none came twice. (One that is less urgent on the same hart may have
/// its answers before it hears of them.)
fn all_came_back(run: &Run, sent: u64) {
    run.good();
    for (guest, key, expected) in [
        ("ping", "sent", sent),
        ("ping", "back", sent),
        ("ping", "wrong", 0),
        ("echo", "first", 1),
        ("echo", "last", sent),
        ("echo", "wrong", 0),
    ] {
        run.check(run.number(guest, key) == expected, format_args!("{guest}'s {key} isn't {expected}"));
    }
    for guest in ["ping", "echo"] {
        let bells = run.number(guest, "bells");
        run.check(
            bells <= sent && (guest == "ping" || bells > 0),
            format_args!("{guest} heard {bells} bells"),
        );
    }
}

/// On two harts, and on one, whoever goes first there.
#[test]
fn numbers_go_there_and_back_under_each_policy() {
    for (preset, controller) in [
        ("ainori", PLIC),
        ("ainori", IMSIC),
        ("spumone", APLIC),
        ("spumone", IMSIC),
        ("listee-rt", PLIC),
        ("co-schedule", APLIC),
        ("round-robin", IMSIC),
    ] {
        for (harts, burst) in [([0, 1], 1), ([0, 0], 1), ([1, 1], 9), ([0, 1], 64)] {
            let run = System::on(2)
                .policy(preset)
                .interrupts(controller)
                .with(bell("ping", &format!("role=ping n=400 burst={burst}")).harts([harts[0]]))
                .with(bell("echo", "role=echo n=400").harts([harts[1]]).priority(7))
                .channel(["ping", "echo"], "64KiB")
                .run(LOCKSTEP);
            all_came_back(&run, 400);
        }
    }
}

#[test]
fn harts_that_are_partitioned_ring_each_other() {
    for controller in [PLIC, APLIC, IMSIC] {
        let run = System::on(2)
            .policy("partition")
            .interrupts(controller)
            .with(bell("ping", "role=ping n=400"))
            .with(bell("echo", "role=echo n=400").harts([1]))
            .channel(["echo", "ping"], "4KiB")
            .run(LOCKSTEP);
        all_came_back(&run, 400);
    }
}

/// Stock Debian, its own UIO driver and a program. Bells come one by one, and in one for many numbers.
#[test]
fn a_program_on_linux_talks_to_freertos() {
    for (controller, burst) in [(PLIC, 1), (APLIC, 16), (IMSIC, 1)] {
        let items = 300 * burst;
        let linux = Guest::linux("channel").with_job("channel").vcpus(2);
        let run = System::on(2)
            .policy("ainori")
            .interrupts(controller)
            .with(linux.args(&format!("ainori.rounds=300 ainori.burst={burst}")))
            .with(Guest::freertos(&format!("periods=1000 echo={items}")).harts([1]))
            .channel(["linux", "freertos"], "64KiB")
            .run(LOCKSTEP);
        run.good().lost_no_tick("freertos", 1000);
        for (key, expected) in [("sent", items), ("back", items), ("wrong", 0), ("lost", 0)] {
            run.check(run.number("linux", key) == expected, format_args!("{key} isn't {expected}"));
        }
        let echo = run.guest("freertos").results.iter().find(|result| result["job"] == "echo");
        let echo = echo.unwrap_or_else(|| run.fail("FreeRTOS says nothing of the channel"));
        run.check(echo["items"] == items && echo["wrong"] == 0, "FreeRTOS had others");
    }
}

/// FreeRTOS answers behind its next tick, when Linux sleeps, on the same hart or on another one: each answer takes a bell, and what FreeRTOS has kept is no part of a round. Nor is the first
/// round among the times.
#[test]
fn who_is_answered_after_a_pause_is_woken() {
    for (controller, hart) in [(PLIC, 0), (APLIC, 1), (IMSIC, 1)] {
        let linux = Guest::linux("channel").with_job("channel").harts([hart]);
        let run = System::on(2)
            .policy("listee-rt")
            .interrupts(controller)
            .with(linux.args("ainori.rounds=100 ainori.uncounted=1"))
            .with(Guest::freertos("periods=500 echo=100 echo_pause_us=2000").harts([1]).priority(7))
            .channel(["linux", "freertos"], "64KiB")
            .run(LOCKSTEP);
        run.good();
        let expected =
            [("sent", 100), ("back", 100), ("wrong", 0), ("lost", 0), ("bells", 100), ("counted", 99)];
        for (key, expected) in expected {
            run.check(run.number("linux", key) == expected, format_args!("{key} isn't {expected}"));
        }
        let round = &run.result("linux")["round_ns"];
        let [min, max] = ["min", "max"].map(|key| round[key].as_u64().unwrap());
        // Without H some of the rounds are longer: what is executed for the first time traps by the firmware.
        let most = if usual_lack_h() { 2_000_000 } else { 1_000_000 };
        run.check(min > 10_000 && max < most, format_args!("a round has a pause in it: {round}"));
    }
}

#[test]
fn a_pause_for_which_nobody_waits_is_refused() {
    for (args, why) in [
        ("echo=1 echo_pause_us=1000000", "gives up after a second"),
        ("echo=1 echo_pause_us=1500", "a number of whole ticks"),
        ("echo=1 echo_polls=1 echo_pause_us=1000", "without echo_polls"),
        ("echo_pause_us=1000", "sent back"),
    ] {
        let run = System::on(1).with(Guest::freertos(args)).run(Clock::Icount);
        run.ended(Outcome::GuestFailed);
        run.check(
            run.lines("freertos").any(|line| line.contains(why)),
            format_args!("{args}: not for {why}"),
        );
    }
}

/// The first number doesn't come back, so there are no more: all times are those of the round that there was.
#[test]
fn a_program_whose_numbers_do_not_come_back_tells_what_there_was() {
    let linux = Guest::linux("channel").with_job("channel").args("ainori.rounds=300");
    let run = System::on(1)
        .policy("ainori")
        .with(linux)
        .with(Guest::freertos("periods=10").priority(7))
        .channel(["linux", "freertos"], "64KiB")
        .run(Clock::Icount);
    run.check(run.guest("linux").outcome == GuestOutcome::Failed, "a number that is lost is no failure");
    let result = &run.guest("linux").results[0];
    run.check(result["lost"] == 1, "nothing is lost");
    let round = &result["round_ns"];
    let [min, mean, p50, p999, max] =
        ["min", "mean", "p50", "p999", "max"].map(|key| round[key].as_u64().unwrap());
    run.check(min == max && mean == max, "more rounds than one");
    // Buckets of 1/32.
    run.check(p50 == p999 && (max..=max + max / 32 + 1).contains(&p50), format_args!("{p50} isn't {max}"));
}

/// Neither the memory nor the registers, nor the bus; and what is in the memory can't be executed.
#[test]
fn nobody_else_sees_a_channel() {
    let run = System::on(2)
        .with(bell("ping", "role=ping n=10"))
        .with(bell("echo", "role=echo n=10").harts([1]))
        .with(bell("peek", "role=peek"))
        .with(bell("caught", "role=peek").strict())
        .with(bell("fetch", "role=fetch"))
        .with(bell("mute", "role=echo n=1").background())
        .channel(["ping", "echo"], "2MiB")
        .channel(["fetch", "mute"], "4KiB")
        .run(LOCKSTEP);
    run.ended(Outcome::GuestFailed);
    for (guest, faults) in [("peek", 14), ("fetch", 1)] {
        run.check(run.number(guest, "faults") == faults, format_args!("{guest} has not had {faults} faults"));
    }
    run.check(run.guest("caught").outcome == GuestOutcome::Faulted, "it was not caught");
    let fault = run.fault("caught");
    run.check(fault.address == 0x5000_0000, format_args!("it is told for {:#x}", fault.address));
    run.check(run.number("ping", "back") == 10, "the two have noticed");
}

/// Both ends ring as fast as they can, on the hart of an RTOS and on another. The RTOS, which has no part in that, is as punctual as ever.
#[test]
fn an_rtos_beside_a_flood_of_bells_is_in_time() {
    for (preset, controller) in
        [("ainori", PLIC), ("ainori", IMSIC), ("spumone", APLIC), ("spumone", IMSIC), ("listee-rt", PLIC)]
    {
        let run = System::on(2)
            .policy(preset)
            .interrupts(controller)
            .with(bell("one", "role=flood us=250000").harts([0]))
            .with(bell("two", "role=flood us=250000").harts([1]).priority(2))
            .with(Guest::freertos("periods=200 burn_percent=20 burn_period_us=5000").harts([1]))
            .channel(["one", "two"], "64KiB")
            .run(LOCKSTEP);
        run.good()
            .lost_no_tick("freertos", 200)
            .was_in_time("freertos", format_args!("{preset}, {controller}"));
    }
}

/// The RTOS is the one that is rung for, from a hart of its own and beside it. That takes of its time, but no more than one bell in 25 us does: none of its
/// ticks is lost, and its task still runs in each period.
#[test]
fn an_rtos_that_is_rung_for_all_the_time_loses_no_tick() {
    for (controller, hart) in [(PLIC, 0), (APLIC, 0), (IMSIC, 0), (PLIC, 1), (IMSIC, 1)] {
        let run = System::on(2)
            .policy("ainori")
            .interrupts(controller)
            .with(bell("flood", "role=flood us=250000").harts([hart]))
            .with(Guest::freertos("periods=200 burn_percent=20 burn_period_us=5000 echo=1").harts([1]))
            .channel(["flood", "freertos"], "64KiB")
            .run(LOCKSTEP);
        run.good().lost_no_tick("freertos", 200);
        let latest = run.number("freertos", "delay_ns/max");
        let echo = run.guest("freertos").results.iter().find(|result| result["job"] == "echo");
        let bells = echo.and_then(|echo| echo["bells"].as_u64()).unwrap_or_default();
        println!("{controller}, hart {hart}: {bells} bells, latest {latest} ns");
        // 250 ms are 10,000 times 25 us, and from one hart.
        run.check((FEWEST..=10_000).contains(&bells), format_args!("{bells} bells"));
        // Two turns: a handler and the task that it wakes, which is the more urgent one, may take most of one, and begin anew when the next one comes. Without H both take longer than a turn, and no
        // number of turns is promised (114 us were measured).
        let most = if usual_lack_h() { u64::MAX } else { 50_000 };
        run.check(latest < most, format_args!("a task is {latest} ns late"));
    }
}

/// The memory stays as it is, and what was in it isn't lost; the bell is the new life's own.
#[test]
fn a_guest_that_is_started_again_goes_on_where_the_channel_is() {
    for controller in [PLIC, APLIC, IMSIC] {
        let run = System::on(2)
            .policy("ainori")
            .interrupts(controller)
            .with(bell("ping", "role=ping n=200 burst=1"))
            .with(bell("echo", "role=echo n=200 dies=50").harts([1]).restart("on-failure", 5, "10s"))
            .channel(["ping", "echo"], "64KiB")
            .run(LOCKSTEP);
        run.good();
        run.check(
            run.number("ping", "back") == 200 && run.number("ping", "wrong") == 0,
            "something was lost",
        );
        run.check(run.guest("echo").former_lives.len() == 1, "it hasn't been started again");
        let [first, last] = ["first", "last"].map(|key| run.number("echo", key));
        run.check((first, last) == (51, 200), format_args!("the second life had {first} to {last}"));
    }
}

/// The nearest that two bells may be. A turn that hasn't begun by its half, 12.5 us, is taken again, and the next one is 12.5 us later. The first one may then be late by what the
/// hearer's hart had begun, and by its own way, which are sections of 5 us at most each.
const NEAREST_NS: u64 = 12_500 - 2 * 5_000;
/// The fewest bells in 40 ms or more, of one that rings all the time: of each 16 turns one. It is for a bell that is lost, after which there are a few or none.
const FEWEST: u64 = 100;

/// What bells that come as fast as they may leave of their hearer's time: one in each 25 us, of whichever channel. Each of them has its share.
fn were_in_turn(run: &Run, fewest: u64) {
    let [us, bells, nearest, of_one] =
        ["us", "bells", "nearest_ns", "fewest"].map(|key| run.number("hearer", key));
    println!("{bells} bells in {us} us, {nearest} ns apart at least; {of_one} from the one that rang least");
    run.good();
    // Some more than turns, as the first ones and the last ones aren't whole.
    run.check((FEWEST..=us / 25 + 5).contains(&bells), format_args!("{bells} bells in {us} us"));
    run.check(nearest >= NEAREST_NS, format_args!("two bells are {nearest} ns apart"));
    run.check(of_one >= fewest, format_args!("one has rung {of_one} times"));
}

/// Two others on its hart ring for a guest all the time, whose device interrupts it as well: it is heard as soon as if nobody rang, but for the handler of a bell that has just begun.
/// (It waited for the turn of a bell of each channel: an alarm was 65 us late. And with a PLIC the core took the alarm for what waits again and again, and the device never.)
#[test]
fn a_bell_puts_off_no_device_of_its_hearer() {
    for controller in [IMSIC, APLIC, PLIC] {
        let run = System::on(2)
            .with_h()
            .policy("ainori")
            .interrupts(controller)
            .with(bell("one", "role=flood us=60000").harts([1]).background())
            .with(bell("two", "role=flood us=60000").harts([1]).background())
            .with(
                bell("hearer", "role=listen us=50000 alarm_us=90")
                    .harts([1])
                    .priority(7)
                    .device("/soc/rtc@101000"),
            )
            .channel(["one", "hearer"], "4KiB")
            .channel(["two", "hearer"], "4KiB")
            .run(LOCKSTEP);
        run.good();
        let [alarms, bells, latest] = ["alarms", "bells", "latest_ns"].map(|key| run.number("hearer", key));
        println!("{controller}: {alarms} alarms beside {bells} bells, the latest {latest} ns late");
        // One of 90 us and what it takes: in 50 ms there are at most 555. A device that is kept waiting for each bell's turn has half as many.
        run.check(alarms > 300 && bells > 300, format_args!("{alarms} alarms, {bells} bells"));
        // An alarm of its device may wait for the turn of one that came before, 25 us, and for two handlers of bells with their ways, 10 us each: not for the turn of a bell, 25 us more.
        run.check(latest < 45_000, format_args!("an alarm is {latest} ns late"));
    }
}

/// Each is its own hart's most urgent, as under LiSTEE RT: for the one that is rung for, the one that rings isn't more urgent. (It was asked on the wrong hart: 3,406 bells in 50 ms.)
#[test]
fn whose_bell_waits_is_asked_where_it_is_heard() {
    for controller in [PLIC, IMSIC] {
        let run = System::on(2)
            .policy("listee-rt")
            .interrupts(controller)
            .with(bell("flood", "role=flood us=60000").harts([0]).priority(1).priority_on(0, 7).background())
            .with(bell("hearer", "role=listen us=50000").harts([1]).priority(1).priority_on(1, 7))
            .channel(["flood", "hearer"], "4KiB")
            .run(LOCKSTEP);
        were_in_turn(&run, FEWEST);
    }
}

/// Three harts ring for a fourth, by a channel each. They have their turns. (Those whose bells waited rang together: 3,987 bells in 50 ms.)
#[test]
fn bells_of_several_harts_come_one_by_one() {
    for controller in [PLIC, APLIC, IMSIC] {
        let flood = |name, hart| bell(name, "role=flood us=60000").harts([hart]).background();
        let run = System::on(4)
            .policy("ainori")
            .interrupts(controller)
            .with(flood("one", 0))
            .with(flood("two", 2))
            .with(flood("three", 3))
            .with(bell("hearer", "role=listen us=50000").harts([1]).priority(7))
            .channel(["one", "hearer"], "4KiB")
            .channel(["two", "hearer"], "4KiB")
            .channel(["three", "hearer"], "4KiB")
            .run(LOCKSTEP);
        // A third of 2,000 turns is 667; who has less than two thirds of that is passed over. But without H the hearer's handler, whose accesses to registers take 4 to 6 us each, is
        // as long as a turn: the next bell is there when it is over, and of those that are pending it claims the one with the least number, whoever has had its turn.
        were_in_turn(&run, if usual_lack_h() { 1 } else { 400 });
    }
}

/// A guest that masks its bell while it looks is rung for just before it unmasks it. (That interrupted at once: 2,460 bells in 50 ms, and the guest did nothing else.)
#[test]
fn a_bell_that_is_unmasked_has_its_turn() {
    for controller in [PLIC, APLIC, IMSIC] {
        let run = System::on(2)
            .policy("ainori")
            .interrupts(controller)
            .with(bell("flood", "role=flood us=60000").harts([0]).background())
            .with(bell("hearer", "role=listen us=50000 deaf_us=2").harts([1]).priority(7))
            .channel(["flood", "hearer"], "4KiB")
            .run(LOCKSTEP);
        were_in_turn(&run, FEWEST);
    }
}

/// Where the hearer's hart has interrupt files to spare, a store rings. The one that rings never traps for that, and what it rings without end comes no more often than elsewhere;
/// nor does it when the hearer, or somebody more urgent on its hart, is busy.
#[test]
fn a_bell_that_is_a_file_rings_without_a_trap() {
    // Three files: with the RTOS all of hart 1 are vCPUs' if the one that rings is there as well.
    for (hart, has_rtos, rings_by_trap) in [(0, true, false), (1, false, false), (1, true, true)] {
        let mut system = System::on(2)
            .with_h()
            .policy("ainori")
            .interrupts(IMSIC)
            .with(bell("flood", "role=flood us=40000").harts([hart]))
            .with(bell("hearer", "role=listen us=50000").harts([1]).priority(7))
            .channel(["flood", "hearer"], "4KiB");
        if has_rtos {
            let rtos = Guest::freertos("periods=50 burn_percent=30 burn_period_us=5000");
            system = system.with(rtos.harts([1]));
        }
        let run = system.run(LOCKSTEP);
        run.good();
        if has_rtos {
            run.was_in_time("freertos", "beside it");
        }
        let [us, bells] = ["us", "bells"].map(|key| run.number("hearer", key));
        let (rung, traps) = (run.number("flood", "rung"), run.exits("flood", 0));
        println!("hart {hart}: {rung} rings, {bells} bells in {us} us, {traps} traps");
        run.check((FEWEST..=us / 25 + 5).contains(&bells), format_args!("{bells} bells in {us} us"));
        // Of whatever cause. Between 64 rings the probe loads or stores some register, which traps. On its hart each bell takes the core from it for the hearer, and
        // each turn is an alarm.
        let others = if hart == 1 { 2 * bells } else { 0 };
        let is_right = if rings_by_trap { traps >= rung } else { traps <= rung / 48 + others };
        run.check(is_right, format_args!("{traps} traps for {rung} rings"));
    }
}
