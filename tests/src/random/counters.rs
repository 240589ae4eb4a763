//! The counters of a run must agree with each other, and with where vCPUs may have been.
use super::{
    check::Violations,
    description::{Description, Guest, Job},
    oracle,
};
use crate::Run;
use crate::bounds::ticks_to_ns;
use ainori::report::GuestReport;
use ainori_report::{CoreStats, VcpuStats};

/// How much the times of two cores may differ, in ticks: they begin and end one after the other. (1 ms.)
const SKEW: u64 = 10_000;

/// How much later than its end another guest's window may begin, in microseconds.
const LATE_US: u64 = 20;
/// Kinds of the probe `chaos` after which it sleeps until its next window all the same: IPIs, fences, short naps.
const SLEEPS_ON: u32 = 0xc3;

/// Checks all of them.
pub fn check(system: &Description, run: &Run, found: &mut Violations) {
    check_completeness(system, run, found);
    let vcpus = || run.report.guests.iter().flat_map(|guest| &guest.vcpus);
    for (guest, report) in system.guests.iter().zip(&run.report.guests) {
        for vcpu in &report.vcpus {
            check_vcpu(system, guest, vcpu, found);
        }
        check_nobody_starved(guest, report, found);
    }
    check_sleepers_wake(system, run, found);
    check_windows(system, run, found);
    check_places(system, run, found);
    check_times(system, run, found);
    check_interrupts(run, found);

    let dispatches: u64 = vcpus().map(|vcpu| vcpu.dispatches).sum();
    let switches: u64 = run.report.cores.iter().map(|core| core.switches).sum();
    found.expect(switches <= dispatches, "each world switch is a dispatch", || {
        format!("{switches} switches, {dispatches} dispatches")
    });
    let posted: u64 = run.report.cores.iter().map(|core| core.ipis_sent + core.ipis_saved).sum();
    let taken: u64 = run.report.cores.iter().map(|core| core.messages).sum();
    found.expect(taken <= posted, "no message is taken that was not posted", || {
        format!("{taken} taken, {posted} posted")
    });
    check_fair_turns(system, run, found);
    check_fair_moves(system, run, found);
}

/// There is one record for each core and each vCPU.
fn check_completeness(system: &Description, run: &Run, found: &mut Violations) {
    let harts: Vec<u64> = run.report.cores.iter().map(|core| core.hart).collect();
    let mut sorted = harts.clone();
    sorted.sort_unstable();
    let all = (0..u64::from(system.harts)).eq(sorted);
    found.expect(all, "no record is lost", || format!("records of the harts {harts:?}"));
    for (guest, report) in system.guests.iter().zip(&run.report.guests) {
        let has: Vec<u32> = report.vcpus.iter().map(|vcpu| vcpu.vcpu).collect();
        found.expect((0..guest.vcpus).eq(has.iter().copied()), "no record is lost", || {
            format!("{}: records of the vCPUs {has:?}", guest.name)
        });
    }
}

/// Nobody runs where it may not.
fn check_places(system: &Description, run: &Run, found: &mut Violations) {
    let may_have = |guest: &Guest, core: u32| guest.allowed(system.harts).contains(&core);
    for core in &run.report.cores {
        let is_anybodys = system.guests.iter().any(|guest| may_have(guest, core.core));
        found.expect(is_anybodys || core.switches == 0, "a core that no guest may have runs none", || {
            format!("core {}: {} switches", core.core, core.switches)
        });
    }
    // Between two lives the core that keeps house takes a vCPU to put it back, and has it until the vCPU is started.
    let guests = system.guests.iter().zip(&run.report.guests);
    for (guest, report) in guests.filter(|(_, report)| report.former_lives.is_empty()) {
        for vcpu in &report.vcpus {
            found.expect(may_have(guest, vcpu.core), "a vCPU runs where it may", || {
                format!("{}/{}: core {}", guest.name, vcpu.vcpu, vcpu.core)
            });
        }
    }
}

fn check_vcpu(system: &Description, guest: &Guest, vcpu: &VcpuStats, found: &mut Violations) {
    let name = || format!("{}/{}", guest.name, vcpu.vcpu);
    let home = guest.homes(system.harts)[vcpu.vcpu as usize];
    let pinned = !oracle::policy(system).moves();
    // Cores are numbered by rising hart ids, and the boards here have all of 0 to n.
    let stays = !pinned || (vcpu.core == home && vcpu.migrations == 0);
    found.expect(stays, "a pinned vCPU stays at home", || {
        format!("{}: home {home}, core {}, {} migrations", name(), vcpu.core, vcpu.migrations)
    });
    found.expect(vcpu.preemptions <= vcpu.dispatches, "who is preempted was dispatched", || {
        format!("{}: {} preemptions, {} dispatches", name(), vcpu.preemptions, vcpu.dispatches)
    });
    // Who is confined may be chosen where it must not run: to send it away is done in its time.
    let was_chosen = vcpu.dispatches > 0 || oracle::policy(system).confines();
    found.expect(vcpu.running == 0 || was_chosen, "who ran was dispatched", name);
    let exits: u64 = vcpu.exits.values().sum();
    found.expect((exits > 0) <= (vcpu.dispatches > 0), "who trapped was dispatched", name);
    let latency = &vcpu.latency;
    let in_buckets: u64 = latency.buckets.iter().map(|(_, count)| u64::from(*count)).sum();
    let adds_up = latency.count == in_buckets
        && latency.count * latency.min <= latency.sum
        && latency.sum <= latency.count * latency.max;
    found.expect(adds_up, "a histogram adds up", || format!("{}: {latency:?}", name()));
}

/// Each vCPU of a guest that uses all of them had its core.
fn check_nobody_starved(guest: &Guest, report: &GuestReport, found: &mut Violations) {
    let uses_all = matches!(guest.job, Job::Talk(_) | Job::Smp { .. } | Job::Locks { .. });
    if guest.background || !(uses_all || guest.vcpus == 1) {
        return;
    }
    for vcpu in &report.vcpus {
        found.expect(vcpu.running > 0, "no vCPU is starved", || format!("{}/{}", guest.name, vcpu.vcpu));
    }
}

/// Where there is time, who sleeps from period to period wakes again and again: a timer that was lost leaves its vCPU asleep for ever, and a guest in the
/// background isn't asked what it has done.
fn check_sleepers_wake(system: &Description, run: &Run, found: &mut Violations) {
    let (Some(end), Some(board)) = (&run.report.end, &run.report.board) else { return };
    let end_us = ticks_to_ns(end.time, board.timebase_hz) / 1_000;
    // Guests that sleep are there for at least as long as an RTOS measures; before that, harts idle while images are loaded.
    let measured = |guest: &Guest| match guest.job {
        Job::FreeRtos { period_us, periods, .. } => u64::from(period_us) * u64::from(periods),
        _ => 0,
    };
    let measured_us = system.guests.iter().map(measured).max().unwrap_or(0).min(end_us);
    let homes: Vec<u32> = system.guests.iter().flat_map(|guest| guest.homes(system.harts)).collect();
    for (guest, report) in system.guests.iter().zip(&run.report.guests) {
        // What else one can do ends its own sleep, or makes it longer.
        let Job::Chaos { kinds, period_us, .. } = guest.job else { continue };
        let (Some(vcpu), home) = (report.vcpus.first(), guest.homes(system.harts)[0]) else { continue };
        let idle_us = |core: &CoreStats| ticks_to_ns(core.idle, board.timebase_hz) / 1_000;
        let mut there = run.report.cores.iter().filter(|core| core.core == home);
        let has_time = there.any(|core| idle_us(core) > end_us - measured_us + measured_us / 4);
        // Who is alone on its core sleeps there without a trap.
        let has_company = homes.iter().filter(|other| **other == home).count() > 1;
        if kinds & !SLEEPS_ON != 0 || !has_time || !has_company {
            continue;
        }
        // It wakes once in a frame at least.
        let periods = measured_us / u64::from(period_us).max(system.frame_us.unwrap_or(0).into());
        let exits: u64 = vcpu.exits.values().sum();
        found.expect(exits >= periods / 4, "who sleeps from period to period wakes again and again", || {
            format!("{}/0: {exits} exits in {periods} periods", guest.name)
        });
    }
}

/// Nobody has a hart for longer than its windows there are.
fn check_windows(system: &Description, run: &Run, found: &mut Violations) {
    let (Some(end), Some(board)) = (&run.report.end, &run.report.board) else { return };
    let windows = system.windows();
    let frames =
        ticks_to_ns(end.time, board.timebase_hz) / 1_000 / u64::from(system.frame_us.unwrap_or(1)) + 1;
    for (guest, report) in system.guests.iter().zip(&run.report.guests).filter(|_| system.frame_us.is_some())
    {
        for hart in 0..system.harts {
            let its = windows.iter().filter(|window| window.hart == hart && window.guest == guest.name);
            // A window may begin, and end, so much late.
            let most_us: u64 = its.map(|window| window.length_us + LATE_US).sum::<u64>() * frames;
            let homes = guest.homes(system.harts);
            let here = report.vcpus.iter().zip(homes).filter(|(_, home)| *home == hart);
            let ran: u64 = here.map(|(vcpu, _)| vcpu.running).sum();
            let ran_us = ticks_to_ns(ran, board.timebase_hz) / 1_000;
            found.expect(ran_us <= most_us, "nobody has more of a hart than its windows", || {
                format!("{} had hart {hart} for {ran_us} us, its windows are {most_us} us", guest.name)
            });
        }
    }
}

/// Of each core's time, all is some vCPU's or idle.
fn check_times(system: &Description, run: &Run, found: &mut Violations) {
    let Some(end) = &run.report.end else { return };
    let vcpus = || run.report.guests.iter().flat_map(|guest| &guest.vcpus);
    let cores = &run.report.cores;
    let each = vcpus().map(|vcpu| vcpu.running).chain(cores.iter().map(|core| core.idle));
    let longest = each.max().unwrap_or(0);
    found.expect(longest <= end.time, "nobody runs or idles for longer than the machine", || {
        format!("{longest} ticks of {}", end.time)
    });
    let accounted: u64 =
        vcpus().map(|vcpu| vcpu.running).sum::<u64>() + cores.iter().map(|core| core.idle).sum::<u64>();
    found.expect(accounted <= end.time * cores.len() as u64, "time is counted once", || {
        format!("{accounted} ticks on {} cores in {}", cores.len(), end.time)
    });
    if !oracle::policy(system).moves() {
        let of = |core: &CoreStats| {
            core.idle + vcpus().filter(|vcpu| vcpu.core == core.core).map(|vcpu| vcpu.running).sum::<u64>()
        };
        let times: Vec<u64> = cores.iter().map(of).collect();
        let (least, most) = (times.iter().min().unwrap_or(&0), times.iter().max().unwrap_or(&0));
        found.expect(most - least <= SKEW, "all time of a core is some vCPU's or idle", || {
            format!("{times:?} ticks")
        });
    }
    for core in cores {
        let in_hypervisor: u64 = core.irqs_off_total.values().sum();
        found.expect(in_hypervisor <= end.time, "time is counted once", || {
            format!("hart {}: {in_hypervisor} ticks in the hypervisor of {}", core.hart, end.time)
        });
        let longest = core.irqs_off_max.values().max().copied().unwrap_or(0);
        let known = core
            .irqs_off_max
            .iter()
            .all(|(cause, max)| core.irqs_off_total.get(cause).is_some_and(|total| max <= total));
        found.expect(longest == core.longest_irqs_off && known, "irqs-off sections add up", || {
            format!("hart {}: {:?}, {:?}", core.hart, core.irqs_off_max, core.irqs_off_total)
        });
    }
}

/// An exit for an interrupt is an interrupt of its core. (Cores take interrupts while they idle as well.) A device's that has to wait for its turn is an exit when it comes, and another one when the alarm
/// hands it on.
fn check_interrupts(run: &Run, found: &mut Violations) {
    for (exit, interrupt, exits_of_one) in
        [("timer", "timer", 1), ("ipi", "software", 1), ("external", "external", 2)]
    {
        let exits: u64 = run
            .report
            .guests
            .iter()
            .flat_map(|guest| &guest.vcpus)
            .filter_map(|vcpu| vcpu.exits.get(exit))
            .sum();
        let interrupts: u64 = run.report.cores.iter().filter_map(|core| core.interrupts.get(interrupt)).sum();
        found.expect(exits <= exits_of_one * interrupts, "each exit for an interrupt is one", || {
            format!("{exits} exits for {exit}, {interrupts} interrupts")
        });
    }
}

/// Where vCPUs move, each that always has something to do has at least a quarter of its part of what others leave to its equals of its home, or of all their
/// harts: none is always where it has no turn. Its part is what is left to it if all those equals have the greatest weight of them.
fn check_fair_moves(system: &Description, run: &Run, found: &mut Violations) {
    let Some(board) = &run.report.board else { return };
    let policy = oracle::policy(system);
    if !policy.moves() || policy.asks_for_mode() {
        return;
    }
    let heaviest = system.guests.iter().map(|guest| u64::from(guest.weight)).max().unwrap_or(1);
    let turns = 3 * heaviest * u64::from(oracle::turn_us(system)) * board.timebase_hz / 1_000_000;
    let all = || system.guests.iter().zip(&run.report.guests);
    // What a hart has done since boot, which nobody could have: for 16 guests and their memory it takes as long as a short run.
    let had: u64 = all().flat_map(|(_, report)| &report.vcpus).map(|vcpu| vcpu.running).sum();
    let of_cores = |core: &CoreStats| core.idle + core.irqs_off_total.values().sum::<u64>();
    let time = (had + run.report.cores.iter().map(of_cores).sum::<u64>()) / u64::from(system.harts);
    for (guest, report) in all().filter(|(guest, _)| guest.job == Job::Busy) {
        let is_equal = |other: &Guest| {
            other.job == Job::Busy
                && other.allowed(system.harts) == guest.allowed(system.harts)
                && oracle::are_of_one_level(system, guest, other)
        };
        let left = |hart: u32| {
            let idle = run.report.cores.iter().find(|core| core.core == hart).map_or(0, |core| core.idle);
            let may_be_there = |other: &Guest| other.allowed(system.harts).contains(&hart);
            let others = all().filter(|(other, _)| !is_equal(other) && may_be_there(other));
            let taken: u64 = others.flat_map(|(_, report)| &report.vcpus).map(|vcpu| vcpu.running).sum();
            time.saturating_sub(idle + taken)
        };
        let homes: Vec<u32> = all()
            .filter(|(other, _)| is_equal(other))
            .flat_map(|(other, _)| other.homes(system.harts))
            .collect();
        let of_all = guest.allowed(system.harts).into_iter().map(left).sum::<u64>() / homes.len() as u64;
        for (home, vcpu) in guest.homes(system.harts).into_iter().zip(&report.vcpus) {
            let of_home = left(home) / homes.iter().filter(|other| **other == home).count() as u64;
            let part = of_home.min(of_all) * u64::from(guest.weight) / heaviest;
            found.expect(part <= 4 * vcpu.running + turns, "no equal is starved where vCPUs move", || {
                format!("{}/{}: {} ticks, its part is {part}", guest.name, vcpu.vcpu, vcpu.running)
            });
        }
    }
}

/// Two guests that compute for ever, equals on one hart: both have had as much as their weights say, but for a turn and the rest of one (or some).
fn check_fair_turns(system: &Description, run: &Run, found: &mut Violations) {
    let Some(board) = &run.report.board else { return };
    if oracle::policy(system).moves() || system.frame_us.is_some() {
        return;
    }
    let turn = u64::from(oracle::turn_us(system)) * board.timebase_hz / 1_000_000;
    // Where a guest has a turn in each round only: two rounds that were cut off, and in one of them turns of those that sleep.
    let turns = if oracle::policy(system).co_schedules() { 3 * system.guests.len() as u64 } else { 2 };
    let busy: Vec<(&Guest, &GuestReport)> =
        system.guests.iter().zip(&run.report.guests).filter(|(guest, _)| guest.job == Job::Busy).collect();
    for (index, (a, of_a)) in busy.iter().enumerate() {
        for (b, of_b) in &busy[index + 1..] {
            let equal =
                a.homes(system.harts) == b.homes(system.harts) && oracle::are_of_one_level(system, a, b);
            // With the weight 1.
            let ran = |guest: &Guest, report: &GuestReport| {
                report.vcpus.iter().map(|vcpu| vcpu.running).sum::<u64>() / u64::from(guest.weight)
            };
            let (a_ran, b_ran) = (ran(a, of_a), ran(b, of_b));
            found.expect(
                !equal || a_ran.abs_diff(b_ran) <= turns * turn + a_ran / 10,
                "equals have shares by weight",
                || format!("{}: {a_ran} ticks for each unit of weight, {}: {b_ran}", a.name, b.name),
            );
        }
    }
}
