//! Runs in which a guest does, on all of its vCPUs, one thing that has hurt its neighbours before.
use ainori_sched::Policy;

use super::{BEGIN_MS, Expected, SPARE_MS, Trial, measuring};
use crate::{APLIC, Guest, IMSIC, PLIC, System, mode::Mode};

/// Virtual milliseconds of an attack.
const MS: u64 = 200;
/// Guests that fault at once.
const FAULTS_AT_ONCE: [u32; 3] = [1, 6, 14];

/// The RTOS that must not notice: a tick each millisecond, and a burner that has its hart now and then, until half a tick is over: one whose job ends just
/// at a tick makes the task late by itself.
fn freertos(hart: u32) -> Guest {
    Guest::freertos(&measuring(MS, 25)).harts([hart])
}

/// Without guests.
fn empty(name: String, preset: &'static str, harts: u32) -> Trial {
    let system = System::on(harts).policy(preset);
    Trial {
        name,
        preset,
        system,
        hostile: Vec::new(),
        rtoses: Vec::new(),
        neighbours: Vec::new(),
        patience_ms: None,
    }
}

/// With the RTOS on the last hart.
fn trial(name: String, preset: &'static str, harts: u32) -> Trial {
    empty(name, preset, harts).rtos(freertos(harts - 1), harts - 1)
}

impl Trial {
    fn rtos(mut self, guest: Guest, hart: u32) -> Self {
        self.rtoses.push((guest.name().into(), hart));
        self.system = self.system.with(guest);
        self
    }

    fn hostile(mut self, guest: Guest, expected: Expected) -> Self {
        self.hostile.push((guest.name().into(), expected));
        self.system = self.system.with(guest);
        self
    }

    /// On a board with this interrupt controller.
    fn interrupts(mut self, kind: &'static str) -> Self {
        self.name = format!("{}-{kind}", self.name);
        self.system = self.system.interrupts(kind);
        self
    }

    fn neighbour(mut self, guest: Guest) -> Self {
        self.neighbours.push(guest.name().into());
        self.system = self.system.with(guest);
        self
    }
}

/// A guest that does `attack` all the time.
fn attacker(attack: &str) -> Guest {
    Guest::fuzz(&format!("attack={attack} begin_ms={BEGIN_MS} ms={MS}"))
}

/// One loop of one thing, by 4, 8 or 16 vCPUs.
fn storm(attack: &str, preset: &'static str, vcpus: u32, harts: u32) -> Trial {
    trial(format!("{attack}-{vcpus}-{preset}"), preset, harts)
        .hostile(attacker(attack).vcpus(vcpus).harts(0..harts), Expected::Done)
}

/// `count` guests on the RTOS's hart that fault: all at once, or each at its own phase of a millisecond.
fn faults(count: u32, spread: bool, preset: &'static str) -> Trial {
    let when = if spread { "phases" } else { "at-once" };
    (0..count).fold(trial(format!("faults-{count}-{when}-{preset}"), preset, 2), |trial, index| {
        let (ms, phase) = if spread {
            // From 20 us before the millisecond to 20 us after it, one each 10 ms.
            (10 + 10 * index, (980 + 40 * index / count) % 1000)
        } else {
            (10, 0)
        };
        let guest = Guest::fuzz(&format!("attack=fault begin_ms={BEGIN_MS} ms={ms} phase_us={phase}"));
        let guest = guest.strict().harts([1]);
        trial.hostile(guest.named(&format!("fault-{index}")), Expected::Fault)
    })
}

/// The attacks of a list, for one preset that the RTOS's bound holds for, and those that belong to another one.
pub fn all() -> Vec<Trial> {
    let mut list = Vec::new();
    for preset in ["ainori", "spumone", "spumone-on-demand"] {
        for attack in ["restarts", "ipis", "fences", "page-fences", "wakes"] {
            list.push(storm(attack, preset, 4, 2));
            list.push(storm(attack, preset, 16, 4));
        }
        list.push(storm("restarts", preset, 8, 2));
        for (attack, kind) in [("plic", PLIC), ("aplic", APLIC), ("aplic", IMSIC), ("imsic", IMSIC)] {
            list.push(storm(attack, preset, 4, 2).interrupts(kind));
            list.push(storm(attack, preset, 16, 4).interrupts(kind));
        }
        for count in FAULTS_AT_ONCE {
            list.push(faults(count, false, preset));
        }
        list.push(faults(14, true, preset));
        list.push(flood(preset));
        list.push(newlines(preset));
        list.extend(CROWDING.map(|kinds| many_harts(preset, kinds)));
    }
    for preset in ["ainori", "spumone-on-demand", "spumone-trap-based"] {
        for top in [Top::Rtos, Top::Often] {
            list.extend(IN_THE_MIDDLE.map(|middle| sleepers(top, middle, preset)));
        }
    }
    for kinds in [3, 0x1f, 0x35f] {
        list.push(crowd("spumone-trap-based-strict", kinds));
    }
    for seed in 1..=4 {
        list.push(pair("delayed", seed));
    }
    list
}

/// Attacks on who keeps translations for a guest, and those of old that are about these, in one of the modes.
const OF_MODES: [&str; 9] =
    ["spaces", "changes", "windows", "views", "texts", "fences", "page-fences", "restarts", "ipis"];
/// Virtual milliseconds of such a one.
const IN_MODE_MS: u64 = 40;

/// The attacks of guests whose addresses are translated so.
pub fn in_mode(mode: Mode) -> Vec<Trial> {
    let attack = |attack: &str, preset, vcpus, harts: u32| {
        let guest = Guest::fuzz(&format!("attack={attack} begin_ms={BEGIN_MS} ms={IN_MODE_MS}"));
        let guest = mode.of(guest).vcpus(vcpus).harts(0..harts);
        let rtos = Guest::freertos(&measuring(IN_MODE_MS, 25)).harts([harts - 1]);
        let system = mode.on(harts).policy(preset);
        let trial = Trial { system, ..empty(format!("{attack}-{vcpus}-{preset}-{mode}"), preset, harts) };
        trial.rtos(rtos, harts - 1).hostile(guest, Expected::Done)
    };
    // Without H all fences that eight have of one before it is entered take up to 190 us (272 us with 16), so there are few.
    let many = if mode.has_h { 8 } else { 4 };
    let both =
        |name: &&'static str| [attack(name, "ainori", 3, 2), attack(name, "spumone-on-demand", many, 4)];
    OF_MODES.iter().flat_map(both).collect()
}

/// What the three guests of [`many_harts`] do, a bit for each kind of the probe `chaos`: 0 sends IPIs, 6 and 7 sleep for moments, 20 computes, 21 spins.
const CROWDING: [[u32; 3]; 2] = [[0x30_00c0, 0x20_0001, 0x20_00c0], [0x20_00c0, 0x00_00c0, 0x30_00c0]];

/// 48 vCPUs that sleep for moments, spin and wake each other on 16 harts, and an RTOS on each of twelve: each hart idles again and again, and looks among
/// all vCPUs for one to run, while its own RTOS is about to wake; and who spins has a core found for who has none among many.
fn many_harts(preset: &'static str, kinds: [u32; 3]) -> Trial {
    const HARTS: u32 = 16;
    let name = format!("many-harts-{:x}-{preset}", kinds[0]);
    let crowd = kinds.into_iter().enumerate().fold(empty(name, preset, HARTS), |trial, (nth, kinds)| {
        let chaos = Guest::probe("chaos", &format!("seed={} ends_in=0 only={kinds}", nth + 1));
        let chaos = chaos.named(&format!("crowd-{nth}")).vcpus(HARTS).harts(0..HARTS).memory_mib(8);
        trial.hostile(chaos.background(), Expected::Nothing)
    });
    // Ticks that come near each other on different harts now and then.
    (2..HARTS - 2).zip([450, 500, 600, 700, 800, 900, 1000, 1100, 1300].into_iter().cycle()).fold(
        crowd,
        |trial, (hart, us)| {
            let args = format!(
                "period_us={us} tick_us={us} periods={} burn_percent=30 burn_period_us={us} report_ms=0",
                MS * 1000 / us
            );
            let rtos = Guest::freertos(&args).named(&format!("rtos-{hart}")).harts([hart]).memory_mib(8);
            trial.rtos(rtos.priority(10), hart)
        },
    )
}

/// Microseconds that a sleeping vCPU may wake late although its hart has been taken, as another one is free.
///
/// Its core looks after it `PATIENCE_US` after it was taken. Each of the two more urgent levels may put that off twice: as it takes the core,
/// and for its own timer. So the fifth look finds it; and each comes up to twice as late, to be clear of the timer of who runs then.
const SLEEPERS_LIMIT_US: u64 = 5 * 2 * Policy::PATIENCE_US;

/// The most urgent guest of three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Top {
    /// FreeRTOS, each millisecond.
    Rtos,
    /// A probe, each 20 us: more often than whom it takes the hart from is looked after.
    Often,
}

/// What a guest in the middle does, which takes the RTOS's hart from others, and whom the RTOS takes it from.
const IN_THE_MIDDLE: [(&str, &str); 5] = [
    // Busy, with a timer that has run out and is left alone.
    ("left", "period_us=5000 busy_us=180000 n=1"),
    // Its timer is always shortly ahead.
    ("ahead-5", "period_us=5000 busy_us=180000 ahead_us=5 n=1"),
    ("ahead-15", "period_us=5000 busy_us=180000 ahead_us=15 n=1"),
    // It comes and goes more often than whom it takes the hart from is looked after.
    ("often", "period_us=30 busy_us=12 n=5000"),
    ("often-and-long", "period_us=23 busy_us=19 n=5000"),
];

/// The least urgent guest's vCPUs sleep, and somebody must watch their timers while guests of two levels have their hart by turns.
fn sleepers(top: Top, middle: (&str, &str), preset: &'static str) -> Trial {
    let (name, args) = middle;
    let label = format!("sleepers-{top:?}-{name}-{preset}").to_lowercase();
    let trial = match top {
        Top::Rtos => trial(label, preset, 2),
        Top::Often => {
            let often = Guest::probe("naps", "period_us=20 busy_us=2 n=8000");
            empty(label, preset, 2).neighbour(often.named("top").harts([1]).priority(9))
        }
    };
    let sleepers = format!("period_us=1000 spread_us=1000 n=100 limit_us={SLEEPERS_LIMIT_US}");
    trial
        .neighbour(Guest::probe("naps", args).named("middle").harts([1]).priority(5))
        .neighbour(Guest::probe("naps", &sleepers).named("sleepers").vcpus(2).harts(0..2).priority(1))
}

/// One guest writes without a newline; the other's result must get through, and the run must end.
fn flood(preset: &'static str) -> Trial {
    trial(format!("flood-{preset}"), preset, 2)
        .hostile(
            Guest::fuzz(&format!("attack=flood begin_ms={BEGIN_MS} ms=10000000"))
                .vcpus(2)
                .harts(0..2)
                .background(),
            Expected::Nothing,
        )
        .neighbour(Guest::probe("fpkeep", "ms=100").harts([0]))
}

/// Two vCPUs store newlines, with an RTOS on each of the harts.
fn newlines(preset: &'static str) -> Trial {
    trial(format!("newlines-{preset}"), preset, 2)
        .hostile(attacker("newlines").vcpus(2).harts(0..2), Expected::Done)
        .rtos(freertos(0).named("freertos-0"), 0)
}

/// Thirteen vCPUs of one level.
fn crowd(preset: &'static str, kinds: u32) -> Trial {
    let args = format!("seed=4 inputs=1000000000 begin_ms={BEGIN_MS} ms={MS} kinds={kinds}");
    trial(format!("crowd-{kinds}-{preset}"), preset, 2)
        .hostile(Guest::fuzz(&args).vcpus(12).harts(0..2), Expected::Done)
        .neighbour(Guest::probe("fpkeep", &format!("ms={}", BEGIN_MS + MS + SPARE_MS)).harts([1]))
}

/// Two random guests of three vCPUs on three harts.
fn pair(preset: &'static str, seed: u64) -> Trial {
    ["one", "other"].into_iter().enumerate().fold(
        trial(format!("pair-{seed}-{preset}"), preset, 3),
        |trial, (nth, name)| {
            let args =
                format!("seed={} inputs=1000000000 begin_ms={BEGIN_MS} ms={MS}", 2 * seed + nth as u64);
            trial.hostile(Guest::fuzz(&args).vcpus(3).harts(0..3).named(name), Expected::Done)
        },
    )
}
