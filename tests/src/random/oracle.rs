//! What a system promises: plain rules, from its description alone.
//!
//! | promise | whose |
//! |---|---|
//! | it comes to its end | every guest whose job ends ([`all_can_finish`] refuses systems where one may wait for ever) |
//! | it says that all was well | each of them; but one that judges how soon it is served only if it is entitled to that ([`Promise::good`]) |
//! | no deadline missed, no tick lost | one that keeps time and is [`alone_on_top`], where priorities count |
//! | delay of its task, of its tick's handler | the same under presets that promise it ([`bounds::promise`]), with a long enough advance, unless the hypervisor keeps house beside it |
//! | longest time in the hypervisor between two looks for interrupts | each core: [`longest_irqs_off_ns`] |
//!
//! *May run on*: under a policy that moves vCPUs each hart of the guest's list, otherwise the homes of its vCPUs.
use super::description::{Description, Guest, Job, LinuxJob};
use crate::bounds::{self, IRQS_OFF_BESIDE_RTOS_NS, IRQS_OFF_NS};
use ainori_sched::{Policy, presets};

/// Shortest advance with which these hold: a switch takes nearly as long.
const LEAST_ADVANCE_US: u32 = 6;
/// Most of the machine's time that a system may be given, in milliseconds: the emulator takes three to ten times as long.
const MOST_MS: u64 = 40_000;
/// The same where guests have windows in time: their harts work for them for a part of that only, so that it takes the emulator as long.
const MOST_WINDOWED_MS: u64 = 12_000;
/// Most of a hart that RTOSes may burn together, in percent, where others are to come to their end.
const MOST_BURNT: u32 = 70;

/// What one guest is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// It comes to its end before the run does.
    pub ends: bool,
    /// It finds nothing wrong.
    pub good: bool,
    /// Its task and its tick's handler are punctual: [`TASK_NS`](crate::bounds::TASK_NS), [`HANDLER_NS`](crate::bounds::HANDLER_NS).
    pub punctual: bool,
}

/// The policy of a system, for its choices only: its times are not those of the system.
pub fn policy(system: &Description) -> Policy {
    Policy::preset(system.preset, 1, 1_000).expect("a description names one of the presets")
}

/// Do priorities decide who has a hart? If not, all take turns.
pub fn priorities_count(system: &Description) -> bool {
    policy(system).takes_cores()
}

/// Do two guests take turns where they meet?
pub fn are_of_one_level(system: &Description, guest: &Guest, other: &Guest) -> bool {
    !priorities_count(system) || other.priority == guest.priority
}

/// Microseconds of a turn with the weight 1.
pub fn turn_us(system: &Description) -> u32 {
    let fixed_ms = presets()
        .iter()
        .find(|preset| preset.name == system.preset)
        .and_then(|preset| preset.fixed_quantum_ms);
    fixed_ms.map_or(system.quantum_us.unwrap_or(QUANTUM_US), |ms| ms * 1_000)
}

/// The longest that all who may take turns on a hart can have it one after the other, in milliseconds.
pub fn longest_round_ms(system: &Description) -> u64 {
    let turns_of = |guest: &Guest, hart: u32| {
        let harts = may_run_on(system, guest);
        let here = if policy(system).moves() {
            if harts.contains(&hart) { guest.vcpus as usize } else { 0 }
        } else {
            guest.homes(system.harts).iter().filter(|home| **home == hart).count()
        };
        here as u64 * u64::from(guest.weight)
    };
    let round = |hart: u32, of: &Guest| {
        let equals = system.guests.iter().filter(|other| are_of_one_level(system, of, other));
        equals.map(|guest| turns_of(guest, hart)).sum::<u64>()
    };
    let rounds = (0..system.harts).flat_map(|hart| system.guests.iter().map(move |guest| round(hart, guest)));
    rounds.max().unwrap_or(0) * u64::from(turn_us(system)) / 1_000
}

/// Harts where vCPUs of the guest may be met.
pub fn may_run_on(system: &Description, guest: &Guest) -> Vec<u32> {
    if policy(system).moves() { guest.allowed(system.harts) } else { guest.homes(system.harts) }
}

/// The other guests that may be met on a home of this one; or, under a policy that leaves who waits where it is, on any hart to which this one may go.
pub fn neighbours<'a>(system: &'a Description, guest: &'a Guest) -> impl Iterator<Item = &'a Guest> {
    let homes =
        if policy(system).waits_at_home() { guest.allowed(system.harts) } else { guest.homes(system.harts) };
    system
        .guests
        .iter()
        .filter(move |other| !std::ptr::eq(*other, guest))
        .filter(move |other| may_run_on(system, other).iter().any(|hart| homes.contains(hart)))
}

/// No neighbour is as urgent.
pub fn alone_on_top(system: &Description, guest: &Guest) -> bool {
    neighbours(system, guest).all(|other| other.priority < guest.priority)
}

/// Is it an RTOS, or a probe that keeps time as one does?
pub fn keeps_time(job: &Job) -> bool {
    matches!(job, Job::FreeRtos { .. } | Job::Timer { .. })
}

/// Can it be met on one hart only? If not, and nobody else ever is on its home, the hypervisor neither leaves it to itself, so that its timer
/// would cost nothing, nor serves it ahead of time, as it takes its hart from nobody.
fn stays_at_home(system: &Description, guest: &Guest) -> bool {
    may_run_on(system, guest).len() == 1
}

/// The hart that keeps house, as the hypervisor chooses it (docs/manifest.md): where the least urgent guest is the least urgent; then the most urgent
/// one; then the number of vCPUs.
fn housekeeping_hart(system: &Description) -> u32 {
    let rank = |hart: &u32| {
        let at_home = |guest: &Guest| guest.homes(system.harts).iter().filter(|home| *home == hart).count();
        let priorities: Vec<u32> =
            system.guests.iter().flat_map(|guest| vec![guest.priority; at_home(guest)]).collect();
        (priorities.iter().min().copied(), priorities.iter().max().copied(), priorities.len())
    };
    (0..system.harts).min_by_key(rank).unwrap_or(0)
}

/// Is this guest at home on the hart that keeps house?
pub fn keeps_house(system: &Description, guest: &Guest) -> bool {
    guest.homes(system.harts).contains(&housekeeping_hart(system))
}

/// Does the hypervisor's housework lie beside this guest, as there is none less urgent at home on the hart that keeps house? Then it may be
/// interrupted at any time, but shortly before its own timer.
fn has_housework_beside_it(system: &Description, guest: &Guest) -> bool {
    let hart = housekeeping_hart(system);
    keeps_house(system, guest) && least_at_home(system, hart) >= Some(guest.priority)
}

/// Is it an RTOS that computes from its start on, on the hart that keeps house? Then nobody foresees its first tick, which may meet a look at what
/// housework there is (docs/manifest.md, "What an RTOS is promised").
pub fn begins_unseen(system: &Description, guest: &Guest) -> bool {
    keeps_house(system, guest) && matches!(guest.job, Job::FreeRtos { burn_percent: 1.., .. })
}

/// The least priority of those at home on a hart; `None` if there are none.
fn least_at_home(system: &Description, hart: u32) -> Option<u32> {
    let at_home = system.guests.iter().filter(|guest| guest.homes(system.harts).contains(&hart));
    at_home.map(|guest| guest.priority).min()
}

/// Does it ask for an answer within a second? It gets it only if nobody more urgent has its hart for long.
fn is_impatient(job: &Job) -> bool {
    matches!(job, Job::Plic { .. } | Job::Sbi)
}

/// Does somebody type to it?
fn is_typed_to(system: &Description, guest: &Guest) -> bool {
    system.typing.is_some() && std::ptr::eq(&system.guests[system.input], guest)
}

/// What a guest is promised.
pub fn promise(system: &Description, guest: &Guest) -> Promise {
    let alone = neighbours(system, guest).next().is_none();
    let on_top = alone || priorities_count(system) && alone_on_top(system, guest);
    let nobody_above = alone
        || !priorities_count(system)
        || neighbours(system, guest).all(|other| other.priority <= guest.priority);
    let enough_advance = alone || system.advance_us.is_none_or(|us| us >= LEAST_ADVANCE_US);
    // Outside of its windows nobody is served.
    let always = system.frame_us.is_none();
    let good = match &guest.job {
        job if keeps_time(job) => on_top && always,
        // It reads from a console to which nothing has been typed.
        Job::Sbi if is_typed_to(system, guest) => false,
        job if is_impatient(job) => nobody_above,
        _ => true,
    };
    Promise {
        ends: guest.job.ends() && !guest.background,
        good,
        punctual: matches!(guest.job, Job::FreeRtos { .. })
            && on_top
            && always
            && enough_advance
            && (!alone || stays_at_home(system, guest))
            && !has_housework_beside_it(system, guest)
            && bounds::promise(system.preset) == bounds::Promise::Bound,
    }
}

/// The longest time that the hypervisor may take on a hart between two looks for interrupts, in nanoseconds. Where an RTOS is served ahead of time, its core
/// waits for its deadline in the hypervisor: there it looks all the time.
pub fn longest_irqs_off_ns(system: &Description, hart: u32) -> u64 {
    let has_rtos = |guest: &Guest| {
        matches!(guest.job, Job::FreeRtos { .. }) && guest.homes(system.harts).contains(&hart)
    };
    if system.guests.iter().any(has_rtos) { IRQS_OFF_BESIDE_RTOS_NS } else { IRQS_OFF_NS }
}

/// Can each guest come to its end while somebody waits for it? Not beside a more urgent one that never does, nor where RTOSes burn nearly all of a hart.
pub fn all_can_finish(system: &Description) -> bool {
    let foreground = system.guests.iter().filter(|guest| !guest.background);
    foreground.clone().count() > 0
        && machine_limit_ms(system) <= if system.frame_us.is_some() { MOST_WINDOWED_MS } else { MOST_MS }
        && !is_restart_slow(system)
        && foreground.into_iter().all(|guest| {
            let above: Vec<&Guest> = neighbours(system, guest)
                .filter(|other| !priorities_count(system) || other.priority >= guest.priority)
                .collect();
            let starves = |other: &&&Guest| {
                priorities_count(system) && other.priority > guest.priority && !rests(&other.job)
            };
            let burnt: u32 = above.iter().map(|other| burns(&other.job)).sum::<u32>() + burns(&guest.job);
            !above.iter().any(|other| starves(&other)) && burnt <= MOST_BURNT
        })
}

/// Is a guest started again while somebody who never rests, and is more urgent than the least urgent guest of the hart that keeps house, leaves little time for
/// housework? Then its memory is loaded at some 2 MiB a second (kernel/src/cpu/housekeeping.rs).
fn is_restart_slow(system: &Description) -> bool {
    if !system.guests.iter().any(|guest| matches!(guest.job, Job::Lives { .. })) {
        return false;
    }
    let hart = housekeeping_hart(system);
    priorities_count(system)
        && least_at_home(system, hart).is_some_and(|least| {
            system.guests.iter().any(|guest| {
                !rests(&guest.job) && guest.priority > least && may_run_on(system, guest).contains(&hart)
            })
        })
}

/// The machine's time, in milliseconds, after which a system that has not come to its end hangs: twice what its guests' jobs take one
/// after the other, and more where others compute for ever.
pub fn machine_limit_ms(system: &Description) -> u64 {
    let jobs: u64 = system.guests.iter().map(work_ms).sum();
    let endless: u64 =
        system.guests.iter().filter(|guest| !rests(&guest.job)).map(|guest| u64::from(guest.weight)).sum();
    let typing = system.typing.as_ref().map_or(0, |typing| typing.at.as_millis() as u64);
    let turns: u64 = system.guests.iter().map(|guest| turns_ms(system, guest)).sum();
    if let Some(frame_us) = system.frame_us {
        // Each has the part of its harts that its windows are, and where it pauses it waits for the next one.
        let pauses: u64 = system.guests.iter().map(pauses).sum();
        let boots =
            2 * system.guests.iter().filter(|guest| guest.job.is_linux() && guest.vcpus > 1).count() as u64;
        let parts = system.guests.len() as u64 + 1;
        return 2_000
            + typing
            + 2 * parts * jobs
            + (pauses + boots * LINUX_PAUSES) * u64::from(frame_us) / 1_000;
    }
    1_000 + typing + (2 + endless) * jobs + turns
}

/// What a guest waits, at most, for those that compute for ever and that it takes turns with: each time that it has paused, for a turn of each.
fn turns_ms(system: &Description, guest: &Guest) -> u64 {
    let endless = neighbours(system, guest)
        .filter(|other| !rests(&other.job))
        .filter(|other| are_of_one_level(system, guest, other))
        .map(|other| {
            u64::from(other.weight) * u64::from(other.vcpus).div_ceil(may_run_on(system, other).len() as u64)
        })
        .sum::<u64>();
    // Under co-scheduling, once for two rounds of all.
    let rounds = 2 * system.guests.len() as u64;
    let endless = if policy(system).co_schedules() { endless.min(1) * rounds } else { endless };
    endless * pauses(guest) * u64::from(turn_us(system)) / 1_000
}

/// How often a guest sleeps in the middle of its job, roughly.
fn pauses(guest: &Guest) -> u64 {
    let vcpus = u64::from(guest.vcpus);
    match &guest.job {
        // A line is the turn of another vCPU each time, which sleeps until then.
        Job::Talk(talk) => {
            let each = u64::from(talk.gap_us > 0) + u64::from(vcpus > 1);
            each * super::text::lines(talk.bytes.into()) + u64::from(talk.alarms)
        }
        // Barriers of all, then pings and answers between each two.
        Job::Smp { rounds } => SMP_BARRIERS * vcpus + vcpus * vcpus * (1 + u64::from(*rounds)),
        // It waits for room in its port now and then.
        Job::Linux(LinuxJob::Talk { bytes, .. }) => super::text::lines((*bytes).into()),
        Job::Timer { ticks, .. } => u64::from(*ticks),
        Job::FreeRtos { periods, .. } => u64::from(*periods),
        _ => 0,
    }
}

/// What a guest's job takes alone on a hart, roughly, in milliseconds.
fn work_ms(guest: &Guest) -> u64 {
    let text = |bytes: u32| u64::from(bytes) / 200;
    match &guest.job {
        Job::FreeRtos { period_us, periods, .. } => u64::from(*period_us) * u64::from(*periods) / 1_000,
        Job::Timer { period_us, ticks } => u64::from(*period_us) * u64::from(*ticks) / 1_000,
        Job::Talk(talk) => {
            let gaps = super::text::lines(talk.bytes.into()) * u64::from(talk.gap_us) / 1_000;
            text(talk.bytes) + gaps + u64::from(talk.alarms) * u64::from(talk.alarm_us) / 1_000
        }
        Job::Smp { rounds } => 200 + u64::from(guest.vcpus * guest.vcpus) * u64::from(10 + rounds),
        Job::Plic { repeats } => 300 + u64::from(*repeats) / 10,
        Job::Sbi => 100,
        Job::FpKeep { ms, .. } => u64::from(*ms),
        Job::Locks { ms } | Job::Bells { ms } => u64::from(*ms),
        // All lives, but for what remains of the last one but one, end before the last one begins.
        Job::Lives { ms, until_ms, .. } => u64::from(until_ms + ms) + 100,
        Job::Crowd { .. } | Job::Chaos { .. } | Job::Busy => 0,
        Job::Linux(LinuxJob::Talk { bytes, .. }) => 2_000 + 2 * text(*bytes),
        Job::Linux(_) => 3_000,
    }
}

/// A turn in microseconds, where neither the preset nor the manifest gives another.
const QUANTUM_US: u32 = 500;
/// How often the vCPUs of a Linux wait for each other while it boots.
const LINUX_PAUSES: u64 = 500;
/// How often all vCPUs of the probe `smp` wait for each other, for each of them, apart from the pings.
const SMP_BARRIERS: u64 = 60;

/// Does it leave its harts to others in the end, for good or again and again?
fn rests(job: &Job) -> bool {
    !matches!(job, Job::Busy | Job::Linux(LinuxJob::Storm))
}

/// Percent of a hart that it takes for as long as it runs.
fn burns(job: &Job) -> u32 {
    match job {
        Job::FreeRtos { burn_percent, .. } => *burn_percent,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{description::Talk, generate};

    fn guest(name: &str, job: Job, priority: u32, harts: &[u32]) -> Guest {
        Guest {
            name: name.into(),
            job,
            vcpus: 1,
            harts: harts.to_vec(),
            priority,
            weight: 1,
            background: false,
        }
    }

    fn rtos() -> Job {
        Job::FreeRtos {
            period_us: 1_000,
            periods: 100,
            burn_percent: 30,
            burn_period_us: 10_000,
            tick_us: None,
            report_ms: 0,
        }
    }

    fn system(preset: &'static str, guests: Vec<Guest>) -> Description {
        let mut system = generate::system(1);
        (system.harts, system.preset, system.advance_us, system.guests) = (2, preset, None, guests);
        system.input = 0;
        system
    }

    fn promised(preset: &'static str, guests: Vec<Guest>) -> Promise {
        let system = system(preset, guests);
        promise(&system, &system.guests[0])
    }

    #[test]
    fn an_rtos_on_top_is_punctual() {
        let guests = vec![guest("a", rtos(), 10, &[1]), guest("b", Job::Busy, 1, &[1])];
        assert_eq!(promised("ainori", guests.clone()), Promise { ends: true, good: true, punctual: true });
        assert_eq!(promised("delayed", guests.clone()), Promise { ends: true, good: true, punctual: false });
        assert!(!promised("round-robin", guests).good);
    }

    #[test]
    fn only_a_first_tick_that_nobody_foresees_is_not_measured() {
        let measures_all = |burn_percent, hart| {
            let job = Job::FreeRtos {
                period_us: 1_000,
                periods: 1,
                burn_percent,
                burn_period_us: 1,
                tick_us: None,
                report_ms: 0,
            };
            let guests = vec![
                guest("a", job, 10, &[hart]),
                guest("b", Job::Busy, 1, &[0]),
                guest("c", Job::Busy, 2, &[1]),
            ];
            let system = system("ainori", guests);
            !begins_unseen(&system, &system.guests[0])
        };
        assert!(!measures_all(30, 0));
        assert!(measures_all(30, 1), "the house is kept on the other hart");
        assert!(measures_all(0, 0), "it sleeps first");
    }

    #[test]
    fn who_is_left_where_its_kernel_went_may_be_starved_there() {
        let finishes = |preset| {
            let guests = vec![guest("a", Job::Sbi, 1, &[0, 1]), guest("b", Job::Busy, 5, &[1])];
            all_can_finish(&system(preset, guests))
        };
        assert!(finishes("spumone-trap-based-strict"));
        assert!(!finishes("spumone-trap-based-uncured"));
    }

    #[test]
    fn an_rtos_beside_an_equal_is_promised_nothing_but_its_end() {
        let guests = vec![guest("a", rtos(), 10, &[1]), guest("b", rtos(), 10, &[1])];
        assert_eq!(promised("ainori", guests), Promise { ends: true, good: false, punctual: false });
    }

    #[test]
    fn an_rtos_alone_that_may_go_elsewhere_is_not_punctual() {
        let guests = |harts: &[u32]| vec![guest("a", rtos(), 6, harts), guest("b", Job::Sbi, 1, &[0])];
        assert!(promised("ainori", guests(&[1])).punctual);
        assert!(!promised("ainori", guests(&[1, 0])).punctual);
        assert!(promised("spumone", guests(&[1, 0])).punctual);
    }

    #[test]
    fn an_rtos_with_housework_beside_it_is_not_punctual() {
        let guests = |least| {
            vec![guest("a", rtos(), 6, &[1]), guest("b", rtos(), 10, &[0]), guest("c", Job::Sbi, least, &[0])]
        };
        assert!(promised("ainori", guests(1)).punctual, "the house is kept beside c");
        assert_eq!(promised("ainori", guests(7)), Promise { ends: true, good: true, punctual: false });
        let mut system = system("ainori", guests(7));
        assert!(promise(&system, &system.guests[1]).punctual, "the house is kept on the other hart");
        system.harts = 3;
        assert!(promise(&system, &system.guests[0]).punctual, "the house is kept where nobody is");
    }

    #[test]
    fn an_equal_that_stays_elsewhere_does_not_matter() {
        let guests = vec![guest("a", rtos(), 10, &[1]), guest("b", rtos(), 10, &[0, 1])];
        assert!(promised("spumone", guests.clone()).punctual, "its home is hart 0, and it stays there");
        assert!(!promised("ainori", guests).punctual, "it may be met on hart 1");
    }

    /// Random system 6185 (and 9128): two that compute for ever have a turn of 10 ms each before the next line is printed.
    #[test]
    fn a_text_that_vcpus_print_in_turns_takes_a_turn_of_each_endless_guest_per_line() {
        let talk = Talk {
            seed: 1,
            bytes: 10_000,
            by_uart: true,
            gap_us: 0,
            ears: None,
            alarms: 0,
            alarm_us: 1_000,
            flash: false,
        };
        let talker = Guest { vcpus: 8, ..guest("talk", Job::Talk(talk), 1, &[0]) };
        let busy = |name, priority| guest(name, Job::Busy, priority, &[0]);
        let limit = |preset, quantum_us, priority| {
            let guests = vec![talker.clone(), busy("b", priority), busy("c", priority)];
            machine_limit_ms(&Description { quantum_us, ..system(preset, guests) })
        };
        assert!(limit("round-robin", None, 0) > 162 * 2 * 10);
        assert!(limit("spumone", Some(10_000), 1) > 162 * 2 * 10);
        assert!(limit("spumone", Some(10_000), 0) < 3_000, "who is less urgent has no turn");
    }

    #[test]
    fn nobody_can_finish_below_one_that_never_rests() {
        let guests = |priority| vec![guest("a", Job::Sbi, 1, &[0]), guest("b", Job::Busy, priority, &[0])];
        let finish = |preset, priority| {
            let mut system = system(preset, guests(priority));
            system.guests[1].background = true;
            all_can_finish(&system)
        };
        assert!(!finish("spumone", 2));
        assert!(finish("spumone", 1));
        assert!(finish("round-robin", 2));
    }
}
