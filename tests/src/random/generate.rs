//! Makes a valid system from a seed.
//!
//! What is proposed is valid by construction (`ainori check` accepts it); whether each of its guests can be expected to come to its
//! end at all, e.g. beside one that computes for ever, is the [`oracle`]'s to say, and what it refuses is proposed anew.
//!
//! The emulator takes some 15 ns for an instruction in lockstep time, so most systems last a fraction of a second: what takes long, such
//! as Linux's boot or a text that fills a console's ring, is in some of them only.
use super::{
    description::{Description, Guest, Job, LinuxJob, Talk},
    oracle,
    rng::Rng,
};
use crate::operator::Typing;
use crate::{APLIC, IMSIC, PLIC, harts::usual_lack_h};
use ainori_limits::{MAX_GUEST_VCPUS, MAX_GUESTS, MAX_HARTS, MAX_VCPUS, PRIORITIES};
use ainori_sched::{Policy, Preset, presets};
use clap::ValueEnum;
use std::time::Duration;

/// Most vCPUs of all guests, and with a crowd of sleepers: each costs the host time.
const MOST_VCPUS: u32 = 24;
const MOST_WITH_CROWD: u32 = 40;
const _: () = assert!(MOST_VCPUS < MOST_WITH_CROWD && MOST_WITH_CROWD as usize <= MAX_VCPUS);

/// Each so many seeds may have more harts, guests and priorities than the others, and guests that are started again. The others mean the systems that
/// they meant before there was such a thing.
const EXTREME_EACH: u64 = 5;

/// Of as many seeds, this one may have guests of greater weight. It is that of no former finding.
const WEIGHTED_EACH: u64 = 5;
const WEIGHTED: u64 = 3;
/// Of as many seeds, this one has windows in time if it has one of the presets that share harts by priority. It is that of no former finding.
const WINDOWED_EACH: u64 = 4;
const WINDOWED: u64 = 2;
/// Longest round of those that take turns on a hart, where they have weights, in milliseconds: some ask for an answer within a second.
const LONGEST_ROUND_MS: u64 = 250;

/// Percent of the talking guests that print [`LONG_TEXT`]; one in a system at most.
const LONG_TALKERS: u64 = 15;
/// Bytes of a text that can fill a console's ring.
const LONG_TEXT: u32 = 100_000;
/// Bytes of a text that is not meant to.
const SHORT_TEXT: u32 = 10_000;
/// Longest measurement of most guests that keep time, in microseconds; and that of one in twenty.
const MEASUREMENT_US: u32 = 100_000;
const LONG_MEASUREMENT_US: u32 = 500_000;

/// Advances, in microseconds, that are longer than what was deferred waits, or nearly so.
const LONG_ADVANCES_US: [u32; 4] = [20, 30, 50, 100];
/// Presets that promise an RTOS something, whoever is beside it.
const PROMISING: [&str; 3] = ["ainori", "spumone", "spumone-on-demand"];
/// Those of them that move vCPUs.
const MOVING: [&str; 2] = ["ainori", "spumone-on-demand"];
/// What sleepers do when they wake: kinds of the probe `chaos`, a bit each. They nap, by WFI or the SBI; send interrupts, too; send interrupts and fences; or
/// do all that leaves the console alone and stops nobody.
const SLEEPERS_KINDS: [u32; 4] = [0xc0, 0xc1, 0x3, 0x3f_c7df];

/// Which systems are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Theme {
    /// All that the generator knows.
    Any,
    /// An RTOS on the hart that keeps house, which computes across its ticks for a part of the time, beside guests that print.
    House,
    /// An RTOS, which may compute across its ticks, and many guests of other levels that sleep, and do one thing when they wake.
    Sleepers,
    /// An RTOS whose jobs send the vCPUs of several guests of one priority, which compute for ever, from hart to hart.
    Equals,
}

/// The system of this seed.
pub fn system(seed: u64) -> Description {
    themed(Theme::Any, seed)
}

/// The system of this theme and this seed.
pub fn themed(theme: Theme, seed: u64) -> Description {
    let mut rng = Rng::new(seed);
    loop {
        let proposal = match theme {
            Theme::Any => propose(seed, &mut rng),
            Theme::House => propose_house(seed, &mut rng),
            Theme::Sleepers => propose_sleepers(seed, &mut rng),
            Theme::Equals => propose_equals(seed, &mut rng),
        };
        if oracle::all_can_finish(&proposal) {
            let system = give_weights(Description { interrupts: interrupts(&proposal), ..proposal });
            return match theme {
                Theme::Any => with_bells(&system).unwrap_or(system),
                _ => system,
            };
        }
    }
}

/// The board's interrupt controller: every third system has an APLIC, and every third of these sends messages, if none of its guests asks about a PLIC and the harts have H (elsewhere
/// a board with IMSICs counts as one without an interrupt controller). By the seed itself, so that the system of a seed is otherwise what it was.
fn interrupts(system: &Description) -> &'static str {
    let asks = system.guests.iter().any(|guest| matches!(guest.job, Job::Plic { .. }));
    match system.seed % 9 {
        0 if !asks && !usual_lack_h() => IMSIC,
        3 | 6 if !asks => APLIC,
        _ => PLIC,
    }
}

/// Some systems have guests of greater weight, whether they have equals or not.
fn give_weights(system: Description) -> Description {
    let mut rng = Rng::new(!system.seed);
    if system.seed % WEIGHTED_EACH != WEIGHTED || oracle::policy(&system).co_schedules() {
        return system;
    }
    let mut weighted = system.clone();
    for guest in &mut weighted.guests {
        guest.weight = rng.pick(&[1, 1, 2, 3, 7]);
    }
    let fits = oracle::longest_round_ms(&weighted) <= LONGEST_ROUND_MS && oracle::all_can_finish(&weighted);
    if fits { weighted } else { system }
}

/// Every fifth system has two guests more, who ring each other all the time, if they have room and don't keep others from their ends. By the seed itself, as above.
fn with_bells(system: &Description) -> Option<Description> {
    let is_chosen = system.seed % 5 == 2
        && system.guests.len() + 2 <= MAX_GUESTS
        && oracle::policy(system).shares_cores();
    let mut system = Some(system.clone()).filter(|_| is_chosen)?;
    let rng = &mut Rng::new(system.seed.reverse_bits());
    let (priority, ms) = (rng.pick(&[0, 1, 2]), rng.pick(&[20, 50, 200]));
    for name in ["bells-a", "bells-b"] {
        let harts = vec![rng.below(u64::from(system.harts)) as u32];
        let (name, job) = (name.into(), Job::Bells { ms });
        system.guests.push(Guest { name, job, vcpus: 1, harts, priority, weight: 1, background: false });
    }
    oracle::all_can_finish(&system).then_some(system)
}

/// A system whose last guest is a punctual RTOS on the hart that keeps house.
fn propose_house(seed: u64, rng: &mut Rng) -> Description {
    loop {
        let mut system = propose(seed, rng);
        system.harts = rng.pick(&[1, 1, 2, 3]);
        system.preset = rng.pick(&PROMISING);
        (system.grace_us, system.advance_us, system.frame_us) = (None, None, None);
        system.slice = slice(rng, system.harts);
        for guest in &mut system.guests {
            guest.harts.retain(|hart| *hart < system.harts);
            guest.priority = guest.priority.min(u32::from(PRIORITIES) - 2);
        }
        if system.guests.len() == MAX_GUESTS {
            continue;
        }
        let tick_us = rng.between(500, 2_000) as u32;
        let rtos = top_rtos(rng, system.guests.len(), system.harts, tick_us);
        system.guests.push(rtos);
        let prints = system.guests.iter().any(|guest| guest.job.text().is_some());
        if prints && oracle::keeps_house(&system, &system.guests[system.guests.len() - 1]) {
            return system;
        }
    }
}

/// An RTOS of the highest priority, which computes for a part of the time.
fn top_rtos(rng: &mut Rng, nth: usize, harts: u32, tick_us: u32) -> Guest {
    let period_us = tick_us * rng.pick(&[1, 1, 2, 3]);
    Guest {
        name: format!("freertos-{nth}"),
        job: Job::FreeRtos {
            period_us,
            periods: rng.between(15, u64::from(MEASUREMENT_US / period_us)) as u32,
            burn_percent: rng.pick(&[0, 10, 50, 65]),
            burn_period_us: tick_us * rng.pick(&[1, 2, 5, 20, 50]),
            tick_us: Some(tick_us),
            report_ms: rng.pick(&[0, 0, 1, 10]),
        },
        vcpus: 1,
        harts: vec![rng.below(harts.into()) as u32],
        priority: u32::from(PRIORITIES) - 1,
        weight: 1,
        background: false,
    }
}

/// An RTOS beside many guests that sleep most of the time. Their period is about that of its ticks, so that they pass by each other.
fn propose_sleepers(seed: u64, rng: &mut Rng) -> Description {
    let harts = rng.pick(&[1, 2, 2, 2, 3, 4]);
    let tick_us = rng.between(500, 2_000) as u32;
    let kinds = rng.pick(&SLEEPERS_KINDS);
    let extensions = rng.percent(50);
    let period_us = tick_us + rng.pick(&[0, 1, 7]);
    let window_us = rng.pick(&[20, 100, period_us]);
    let most = rng.pick(&[1, 2, 3, 4]);
    let mut guests = vec![top_rtos(rng, 0, harts, tick_us)];
    let mut vcpus = 0;
    for nth in 1..=rng.between(4, MAX_GUESTS as u64 - 1) as u32 {
        let guest = Guest {
            name: format!("chaos-{nth}"),
            job: Job::Chaos { seed: rng.below(1 << 30) as u32, kinds, period_us, window_us, extensions },
            vcpus: rng.between(1, most) as u32,
            harts: some_harts(rng, harts, false),
            priority: if rng.percent(80) { nth } else { rng.below(u64::from(PRIORITIES) - 2) as u32 },
            weight: 1,
            background: true,
        };
        vcpus += guest.vcpus;
        if vcpus > MOST_WITH_CROWD {
            break;
        }
        guests.push(guest);
    }
    Description {
        seed,
        harts,
        cpu: cpu(rng),
        interrupts: PLIC,
        preset: rng.pick(&PROMISING),
        quantum_us: None,
        grace_us: None,
        advance_us: rng.percent(30).then(|| rng.pick(&LONG_ADVANCES_US)),
        frame_us: None,
        guests,
        by_hart: false,
        input: 0,
        typing: None,
        slice: slice(rng, harts),
    }
}

/// An RTOS that computes for a part of the time beside guests that always have something to do, are of one priority, and may run on all harts.
fn propose_equals(seed: u64, rng: &mut Rng) -> Description {
    let harts = rng.pick(&[2, 2, 3, 4]);
    let mut rtos = top_rtos(rng, 0, harts, 1_000);
    if let Job::FreeRtos { period_us, periods, burn_percent, .. } = &mut rtos.job {
        *periods = LONG_MEASUREMENT_US / *period_us;
        *burn_percent = rng.pick(&[10, 20, 50, 65]);
    }
    let mut guests = vec![rtos];
    let most = rng.pick(&[1, 2, 4, 8, 15]);
    for nth in 1..=rng.between(2, 4) {
        guests.push(Guest {
            name: format!("equal-{nth}"),
            job: Job::Busy,
            vcpus: rng.between(1, most) as u32,
            harts: Vec::new(),
            priority: 1,
            weight: 1,
            background: true,
        });
    }
    Description {
        seed,
        harts,
        cpu: cpu(rng),
        interrupts: PLIC,
        preset: rng.pick(&MOVING),
        quantum_us: Some(rng.pick(&[100, 500, 500, 2_000])),
        grace_us: None,
        advance_us: None,
        frame_us: None,
        guests,
        by_hart: false,
        input: 0,
        typing: None,
        slice: slice(rng, harts),
    }
}

fn propose(seed: u64, rng: &mut Rng) -> Description {
    let harts = rng.pick(&[1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8]);
    let weighted: Vec<_> = presets().iter().map(|preset| (weight(preset), preset)).collect();
    let preset = rng.weighted(&weighted);
    let policy = Policy::preset(preset.name, 1, 1_000).expect("it is one of the presets");
    let grace_us = (policy.defers() && rng.percent(50)).then(|| rng.pick(&[1, 20, 100, 200]));
    let quantum_us = (preset.fixed_quantum_ms.is_none() && rng.percent(40))
        .then(|| rng.pick(&[100, 200, 1_000, 5_000, 10_000]));
    let advance_us = (policy.takes_cores() && rng.percent(20)).then(|| match rng.pick(&[0, 2, 6, 8, 20]) {
        20 => rng.pick(&LONG_ADVANCES_US),
        short => short,
    });
    let guests = guests(rng, harts, policy.shares_cores());
    let input = rng.below(guests.len() as u64) as usize;
    let mut system = Description {
        seed,
        harts,
        cpu: cpu(rng),
        interrupts: PLIC,
        preset: preset.name,
        quantum_us,
        grace_us,
        advance_us,
        frame_us: None,
        guests,
        by_hart: false,
        input,
        typing: None,
        slice: slice(rng, harts),
    };
    if rng.percent(70) {
        type_a_line(rng, &mut system);
    }
    // Drawn last, so that the seeds of former findings still mean the same systems, but for these.
    if system.preset == "ainori" && rng.percent(12) {
        keep_apart(&mut system);
    }
    if seed.is_multiple_of(EXTREME_EACH) {
        let shares = policy.shares_cores();
        if shares && rng.percent(25) {
            system.harts = rng.between(9, MAX_HARTS as u64) as u32;
        }
        if rng.percent(60) {
            start_again(rng, &mut system);
        }
        if shares && rng.percent(50) {
            add_crowd(rng, &mut system);
        }
    }
    // Drawn by itself, for the same reason. What one of these presets allows, so does the other.
    let rng = &mut Rng::new(!seed);
    if system.preset == "spumone" && rng.percent(30) {
        system.preset = "co-schedule";
    }
    if system.preset == "spumone" && rng.percent(30) {
        system.preset = rng.pick(&["listee-rt", "listee-rt", "listee"]);
    }
    system.by_hart = rng.percent(40);
    if matches!(system.preset, "spumone" | "spumone-on-demand") && seed % WINDOWED_EACH == WINDOWED {
        system.preset = "time-window";
        system.advance_us = None;
        system.frame_us = Some(rng.pick(&[2_000, 5_000, 10_000, 10_000]));
    }
    system
}

/// Another preset, under which no guest may have more vCPUs than harts.
fn keep_apart(system: &mut Description) {
    system.preset = "balance";
    for guest in &mut system.guests {
        guest.vcpus = guest.vcpus.min(guest.allowed(system.harts).len() as u32);
    }
}

/// One of the guests, but none who is typed to, ends and is started again while the others go on.
fn start_again(rng: &mut Rng, system: &mut Description) {
    let index = rng.below(system.guests.len() as u64) as usize;
    if index == system.input && system.typing.is_some() {
        return;
    }
    let harts = system.harts;
    let apart = oracle::policy(system).keeps_apart();
    let guest = &mut system.guests[index];
    let end = rng.pick(&["reboot", "warm", "failure", "fault", "stop"]);
    guest.job = Job::Lives { end, ms: rng.pick(&[0, 1, 5]), until_ms: rng.between(150, 300) as u32 };
    if rng.percent(50) {
        let most = if apart { guest.allowed(harts).len() as u32 } else { MAX_GUEST_VCPUS as u32 };
        guest.vcpus = guest.vcpus.max(rng.pick(&[2, 4, 8, MAX_GUEST_VCPUS as u32]).min(most));
    }
    guest.name = format!("lives-{index}");
}

/// Guests of many priorities, all but the most urgent RTOS's, that sleep and wake at the same times.
fn add_crowd(rng: &mut Rng, system: &mut Description) {
    let top = PRIORITIES - 1;
    let is_rtos = |guest: &&mut Guest| matches!(guest.job, Job::FreeRtos { .. });
    if let Some(rtos) = system.guests.iter_mut().filter(is_rtos).max_by_key(|guest| guest.priority) {
        rtos.priority = top.into();
    }
    // Of the printers, each wakes so seldom that all of them leave most of the port to others.
    let (period_us, bytes) = if rng.percent(70) {
        (rng.pick(&[500, 1_000, 5_000]), 0)
    } else {
        (10_000, rng.between(1, 8) as u32)
    };
    let count = rng.between(2, (MAX_GUESTS - system.guests.len()) as u64);
    let apart = oracle::policy(system).keeps_apart();
    for _ in 0..count {
        let has: u32 = system.guests.iter().map(|guest| guest.vcpus).sum();
        let harts = some_harts(rng, system.harts, false);
        let most = if apart && !harts.is_empty() { harts.len() as u32 } else { system.harts };
        let guest = Guest {
            name: format!("crowd-{}", system.guests.len()),
            // One that never wakes has a level as well.
            job: Job::Crowd { period_us: if rng.percent(40) { 60_000_000 } else { period_us }, bytes },
            vcpus: rng.pick(&[1, 1, 1, 2, 4]).min(most),
            harts,
            priority: rng.below(top.into()) as u32,
            weight: 1,
            background: true,
        };
        if has + guest.vcpus > MOST_WITH_CROWD {
            return;
        }
        system.guests.push(guest);
    }
}

/// Instructions of a slice of the lockstep clock. What one hart does reaches another a slice later, so that slices are short; but a hart
/// alone takes its interrupts in time whatever they are, and the emulator is twice as fast with long ones.
fn slice(rng: &mut Rng, harts: u32) -> u32 {
    let slice = rng.between(200, 300) as u32;
    if harts == 1 { 4 * slice } else { slice }
}

/// The presets that make promises come more often than those that are there for comparison.
fn weight(preset: &Preset) -> u64 {
    match preset.name {
        "ainori" => 6,
        "spumone" | "spumone-on-demand" => 3,
        "balance" | "co-schedule" | "listee-rt" | "listee" | "time-window" => 0, // see `propose`
        _ => 1,
    }
}

/// QEMU's `rv64` with some extensions more or less: only such as the hypervisor accepts, and as all guests can do without.
fn cpu(rng: &mut Rng) -> String {
    let mut model = String::from("rv64");
    if rng.percent(40) {
        return model;
    }
    let vectors =
        [",v=true", ",v=true,vlen=256", ",v=true,vlen=512", ",v=true,vlen=1024", ",v=true,zvbb=true"];
    if rng.percent(50) {
        model += rng.pick(&vectors);
    }
    let others = [
        ",zawrs=off",
        ",zicboz=off",
        ",zicbom=off",
        ",sv57=off",
        ",sv57=off,sv48=off",
        ",zba=off,zbb=off,zbc=off,zbs=off",
        ",svnapot=true",
        ",svinval=true",
        ",svpbmt=true",
        ",svadu=off",
        ",zfh=true",
        ",zacas=true",
        ",zicond=true",
        ",smaia=true,ssaia=true",
    ];
    for other in others {
        if rng.percent(15) {
            model += other;
        }
    }
    model
}

fn guests(rng: &mut Rng, harts: u32, share: bool) -> Vec<Guest> {
    let most = if share { 6 } else { 6.min(u64::from(harts)) };
    let count = rng.between(1, most);
    // Where no hart may be shared, they are dealt out first.
    let mut own: Vec<Vec<u32>> = vec![Vec::new(); count as usize];
    if !share {
        let mut all: Vec<u32> = (0..harts).collect();
        rng.shuffle(&mut all);
        for (index, hart) in all.into_iter().enumerate() {
            let to = if index < count as usize { index } else { rng.below(count) as usize };
            own[to].push(hart);
        }
    }
    let mut guests: Vec<Guest> = Vec::new();
    let mut free = Devices { clock: true, flash: true };
    for own in own {
        let harts_of = if share { None } else { Some(own) };
        let has: u32 = guests.iter().map(|guest| guest.vcpus).sum();
        let linux = guests.iter().filter(|guest: &&Guest| guest.job.is_linux()).count();
        let mut guest = guest(rng, harts, harts_of, linux < 2, &mut free);
        guest.vcpus = guest.vcpus.min(MOST_VCPUS.saturating_sub(has)).max(1);
        let mut before = guests.iter().filter_map(|guest| guest.job.text());
        if let Job::Talk(talk) = &mut guest.job
            && before.any(|(_, bytes)| bytes > u64::from(SHORT_TEXT))
        {
            talk.bytes = SHORT_TEXT;
        }
        let number = guests.len();
        guest.name = format!("{}-{number}", guest.name);
        guests.push(guest);
    }
    // Somebody has to end.
    if guests.iter().all(|guest| guest.background) {
        guests[0].job = talk(rng, &mut free);
        guests[0].name = "talk-0".into();
        guests[0].background = false;
    }
    guests
}

/// Devices of the board that no guest owns yet.
struct Devices {
    clock: bool,
    flash: bool,
}

/// One guest, its name without a number.
fn guest(rng: &mut Rng, harts: u32, own: Option<Vec<u32>>, may_be_linux: bool, free: &mut Devices) -> Guest {
    let kinds = [
        (30, "freertos"),
        (30, "talk"),
        (8, "smp"),
        (6, "timer"),
        (5, "plic"),
        (6, "fpkeep"),
        (3, "sbi"),
        (4, "locks"),
        (4, "busy"),
        (if may_be_linux { 2 } else { 0 }, "linux"),
    ];
    let kind = rng.weighted(&kinds);
    let job = match kind {
        "freertos" => free_rtos(rng),
        "talk" => talk(rng, free),
        "smp" => Job::Smp { rounds: rng.pick(&[1, 3, 10]) },
        "timer" => {
            let period_us = rng.pick(&[500, 1_000, 2_000]);
            Job::Timer { period_us, ticks: periods(rng, period_us) }
        }
        "plic" => Job::Plic { repeats: rng.pick(&[0, 100, 2_000]) },
        "fpkeep" => Job::FpKeep { seed: rng.between(1, 1_000_000) as u32, ms: rng.between(20, 80) as u32 },
        "sbi" => Job::Sbi,
        "locks" => Job::Locks { ms: rng.between(20, 80) as u32 },
        "busy" => Job::Busy,
        _ => linux(rng),
    };
    let is_rtos = matches!(job, Job::FreeRtos { .. });
    let smp = matches!(job, Job::Talk(_) | Job::Smp { .. } | Job::Locks { .. });
    let vcpus = if job.is_linux() {
        rng.pick(&[1, 2, 4])
    } else if smp {
        rng.weighted(&[(6, 1), (6, 2), (4, 3), (4, 4), (2, 6), (2, 8), (1, 12), (1, MAX_GUEST_VCPUS as u32)])
    } else {
        1
    };
    let harts = own.unwrap_or_else(|| some_harts(rng, harts, is_rtos));
    let priority = if rng.percent(10) {
        rng.below(PRIORITIES.into()) as u32
    } else if is_rtos {
        rng.between(6, 12) as u32
    } else {
        rng.pick(&[0, 1, 1, 1, 2, 5])
    };
    // What Linux does to others it does while it boots; every other one comes to its end as well.
    let background = !job.ends() || rng.percent(if job.is_linux() { 50 } else { 8 });
    Guest { name: kind.into(), job, vcpus, harts, priority, weight: 1, background }
}

/// A list of harts, in any order; empty stands for all. An RTOS mostly has one.
fn some_harts(rng: &mut Rng, harts: u32, is_rtos: bool) -> Vec<u32> {
    if !is_rtos && rng.percent(35) {
        return Vec::new();
    }
    let mut all: Vec<u32> = (0..harts).collect();
    rng.shuffle(&mut all);
    all.truncate(if is_rtos && rng.percent(80) { 1 } else { rng.between(1, u64::from(harts)) as usize });
    all
}

/// How many periods somebody measures who keeps time.
fn periods(rng: &mut Rng, period_us: u32) -> u32 {
    let most_us = if rng.percent(5) { LONG_MEASUREMENT_US } else { MEASUREMENT_US };
    rng.between(20, u64::from(most_us / period_us)) as u32
}

fn free_rtos(rng: &mut Rng) -> Job {
    let period_us = rng.pick(&[500, 1_000, 1_000, 1_000, 2_000, 5_000]);
    Job::FreeRtos {
        period_us,
        periods: periods(rng, period_us),
        burn_percent: rng.pick(&[0, 0, 10, 30, 50]),
        burn_period_us: rng.pick(&[5_000, 10_000, 50_000, 100_000]),
        tick_us: None,
        report_ms: rng.pick(&[0, 1, 5, 10, 100]),
    }
}

fn talk(rng: &mut Rng, free: &mut Devices) -> Job {
    let clock = rng.percent(40) && std::mem::take(&mut free.clock);
    Job::Talk(Talk {
        seed: rng.between(1, 1_000_000) as u32,
        bytes: if rng.percent(LONG_TALKERS) { LONG_TEXT } else { SHORT_TEXT },
        by_uart: rng.percent(50),
        gap_us: rng.pick(&[0, 0, 0, 50, 500]),
        ears: None,
        alarms: if clock { rng.between(3, 15) as u32 } else { 0 },
        alarm_us: rng.between(500, 20_000) as u32,
        flash: rng.percent(30) && std::mem::take(&mut free.flash),
    })
}

fn linux(rng: &mut Rng) -> Job {
    let seed = rng.between(1, 1_000_000) as u32;
    Job::Linux(match rng.below(5) {
        0 => LinuxJob::Boot,
        1 => LinuxJob::Hackbench(rng.pick(&[10, 30])),
        2 => LinuxJob::Storm,
        _ => LinuxJob::Talk { seed, bytes: LONG_TEXT, hears: false },
    })
}

/// Somebody types: where the guest with the input can hear, it is told to wait for the line.
fn type_a_line(rng: &mut Rng, system: &mut Description) {
    let length = rng.between(1, 40);
    let letters = b"abcdefghijklmnopqrstuvwxyz0123456789-";
    let text: String = (0..length).map(|_| rng.pick(letters) as char).collect();
    // Not before the firmware has booted: it switches the port's FIFO on, which then forgets what it has. A guest need not be ready.
    let booted = Duration::from_millis(150 + 20 * u64::from(system.harts));
    let mut at = booted + Duration::from_nanos(rng.below(150_000_000));
    match &mut system.guests[system.input].job {
        Job::Talk(talk) => talk.ears = Some(rng.pick(&["interrupt", "polling", "dbcn"])),
        Job::Linux(LinuxJob::Talk { hears, .. }) => {
            *hears = true;
            at = Duration::from_secs(12); // what comes before the job has begun is thrown away, as by any Linux
        }
        _ => {}
    }
    system.typing = Some(Typing { text, at });
}

#[cfg(test)]
mod tests {
    use super::*;
    use ainori_manifest::Manifest;
    use std::{collections::BTreeSet, path::Path};

    #[test]
    fn every_system_is_valid() {
        let of = |theme| (0..100).map(move |seed| themed(theme, seed));
        let themes = [Theme::House, Theme::Sleepers, Theme::Equals];
        for system in (0..300).map(system).chain(themes.into_iter().flat_map(of)) {
            let text = system.to_string();
            if let Err(findings) = Manifest::parse("system.toml", &text, Path::new("/"), "random") {
                panic!("{:?}\n{text}", miette::Report::new(*findings));
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_system() {
        assert!((0..100).all(|seed| system(seed) == system(seed)));
    }

    #[test]
    fn an_rtos_beside_sleepers_or_equals_is_punctual() {
        for (theme, seed) in (0..100).flat_map(|seed| [(Theme::Sleepers, seed), (Theme::Equals, seed)]) {
            let system = themed(theme, seed);
            assert!(oracle::promise(&system, &system.guests[0]).punctual, "{system}");
        }
    }

    #[test]
    fn an_rtos_that_keeps_house_is_punctual() {
        for seed in 0..100 {
            let system = themed(Theme::House, seed);
            let punctual = |guest| oracle::promise(&system, guest).punctual;
            assert!(system.guests.last().is_some_and(punctual), "{system}");
        }
    }

    /// Nothing that the generator knows is so rare that a few hundred systems don't have it.
    #[test]
    fn all_kinds_come_up() {
        let systems: Vec<Description> = (0..400).map(system).collect();
        let presets: BTreeSet<&str> = systems.iter().map(|system| system.preset).collect();
        assert_eq!(presets.len(), ainori_sched::presets().len());
        let has = |what: &dyn Fn(&Guest) -> bool| systems.iter().any(|system| system.guests.iter().any(what));
        type Kind = (&'static str, fn(&Guest) -> bool);
        let kinds: [Kind; 15] = [
            ("an owner of the clock", |guest| guest.devices().contains(&"/soc/rtc@101000")),
            ("an owner of the flash", |guest| guest.devices().contains(&"/flash@20000000")),
            ("one who hears", |guest| guest.job.hears()),
            ("a Linux who hears", |guest| guest.job.is_linux() && guest.job.hears()),
            ("a busy one", |guest| guest.job == Job::Busy),
            ("a storm", |guest| guest.job == Job::Linux(LinuxJob::Storm)),
            ("the most vCPUs", |guest| guest.vcpus == MAX_GUEST_VCPUS as u32),
            ("all harts", |guest| guest.harts.is_empty()),
            ("some harts", |guest| guest.harts.len() > 1),
            ("one in the background", |guest| guest.background && guest.job.ends()),
            ("one that is started again", |guest| matches!(guest.job, Job::Lives { .. }) && guest.vcpus > 1),
            ("a weight", |guest| guest.weight > 1),
            ("one who rings", |guest| matches!(guest.job, Job::Bells { .. })),
            ("a crowd", |guest| matches!(guest.job, Job::Crowd { bytes: 0, .. })),
            ("a crowd that prints", |guest| matches!(guest.job, Job::Crowd { bytes, .. } if bytes > 0)),
        ];
        for (name, kind) in kinds {
            assert!(has(&kind), "there is never {name}");
        }
        let punctual =
            |system: &&Description| system.guests.iter().any(|guest| oracle::promise(system, guest).punctual);
        let share = systems.iter().filter(punctual).count();
        assert!(share > 80, "only {share} of 400 systems have an RTOS that must be punctual");
        assert_eq!(systems.iter().map(|system| system.guests.len()).max(), Some(MAX_GUESTS));
        assert_eq!(systems.iter().map(|system| system.harts).max(), Some(MAX_HARTS as u32));
    }
}
