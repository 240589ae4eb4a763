//! One run with random inputs.
use super::{BEGIN_MS, BURN_PERIOD_US, Expected, SPARE_MS, Trial, measuring};
use crate::{APLIC, Guest, IMSIC, PLIC, System, harts::usual_lack_h, mode::Mode};
use ainori_manifest::config::{FEWEST_SHADOW_TABLES_WITHOUT_H, SHADOW_TABLES};
use ainori_sched::{Policy, presets};
use std::collections::BTreeSet;

/// A random run. Everything about it follows from these values, so it can be run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// Of the inputs.
    pub seed: u64,
    /// The preset.
    pub preset: &'static str,
    /// vCPUs of the fuzzing guest.
    pub vcpus: u32,
    /// Harts of the board.
    pub harts: u32,
    /// Their model, as QEMU names it.
    pub cpu: &'static str,
    /// Virtual milliseconds that the fuzzing guest goes on for, if it has one life; the RTOS measures as long anyhow.
    pub ms: u64,
    /// Kinds of inputs (guests/fuzz/README.md); `None`: all.
    pub kinds: Option<u32>,
    /// Instructions of a slice in lockstep time.
    pub q: u32,
    /// How the fuzzing guest's lives end.
    pub lives: Lives,
    /// How the fuzzing guest's addresses are translated, and on which harts; `None`: as tests are run.
    pub mode: Option<Mode>,
}

/// How often a fuzzing guest begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lives {
    /// Once: it is waited for, and says that all was well.
    One,
    /// Again and again: each life ends after [`LIFE_MS`], and says so, too.
    Many,
    /// The same, but it is stopped for the first access that goes beyond what it has, which is one of its first inputs.
    Faults,
}

/// Microseconds of a turn, where a manifest doesn't say otherwise.
const QUANTUM_US: u64 = 500;

/// Milliseconds of one of many lives, without the time to load it.
const LIFE_MS: u64 = 10;

/// Harts of a case, some more often than others.
const HARTS: [u32; 8] = [1, 2, 2, 2, 3, 4, 4, 8];

/// Models of harts: most have vector registers, of two lengths, and some have CSRs that others haven't.
const CPUS: [&str; 5] = [
    "rv64,v=true",
    "rv64,v=true,vlen=512",
    "rv64",
    "rv64,v=true,smaia=true,ssaia=true",
    "rv64,v=true,smstateen=true,svinval=true",
];

/// What cases are drawn from.
#[derive(Debug, Clone)]
pub struct Range {
    /// Of the whole campaign.
    pub seed: u64,
    /// Presets, by turns.
    pub presets: Vec<&'static str>,
    /// Least and most vCPUs of the fuzzing guest.
    pub vcpus: (u32, u32),
    /// As in [`Case`].
    pub ms: u64,
    /// As in [`Case`].
    pub kinds: Option<u32>,
    /// As in [`Case`].
    pub mode: Option<Mode>,
}

/// Are two vCPUs of one guest never on one hart under this preset? Neither the quantum nor the clock matters for that.
fn keeps_apart(preset: &str) -> bool {
    Policy::preset(preset, 1, 1_000).is_some_and(|policy| policy.keeps_apart())
}

/// Does a turn under this preset take [`QUANTUM_US`]? Else it may be longer than a case.
fn takes_short_turns(preset: &str) -> bool {
    !has_windows(preset)
        && presets().iter().any(|known| known.name == preset && known.fixed_quantum_ms.is_none())
}

/// Has each guest windows in time under this preset?
fn has_windows(preset: &str) -> bool {
    Policy::preset(preset, 1, 1_000).is_some_and(|policy| policy.has_windows())
}

/// One step of splitmix64.
pub fn scramble(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Range {
    /// Least and most vCPUs that a guest can have.
    pub const ALL_VCPUS: (u32, u32) = (1, ainori_limits::MAX_GUEST_VCPUS as u32);

    /// Least and most vCPUs under a preset on so many harts: there are no more than harts where they are kept apart.
    fn vcpus_on(&self, preset: &str, harts: u32) -> (u32, u32) {
        let (least, most) = self.vcpus;
        let most = if keeps_apart(preset) { most.min(harts) } else { most };
        (least.min(most), most)
    }

    /// Pairs of a preset and a number of vCPUs that can occur.
    pub fn pairs(&self) -> usize {
        let numbers = |preset: &&str| {
            let ranges = HARTS.map(|harts| self.vcpus_on(preset, harts));
            ranges.into_iter().flat_map(|(least, most)| least..=most).collect::<BTreeSet<_>>().len()
        };
        self.presets.iter().map(numbers).sum()
    }

    /// Case number `index`.
    pub fn case(&self, index: u64) -> Case {
        let seed = scramble(self.seed ^ scramble(index));
        let pick = |nth: u64, below: u64| scramble(seed ^ scramble(nth)) % below;
        let preset = self.presets[(index % self.presets.len() as u64) as usize];
        // A partition gives each guest harts of its own.
        let harts = if preset == "partition" {
            3 + pick(1, 2)
        } else {
            u64::from(HARTS[pick(1, HARTS.len() as u64) as usize])
        };
        let (least, most) = self.vcpus_on(preset, harts as u32);
        Case {
            seed,
            preset,
            vcpus: least + pick(2, u64::from(most - least + 1)) as u32,
            harts: harts as u32,
            cpu: CPUS[pick(4, CPUS.len() as u64) as usize],
            ms: self.ms,
            kinds: self.kinds,
            q: [250, 250, 149, 199][pick(3, 4) as usize],
            lives: [Lives::One, Lives::One, Lives::One, Lives::Many, Lives::Faults][pick(5, 5) as usize],
            mode: self.mode,
        }
    }
}

impl Case {
    /// Its system: the fuzzing guest on all harts, FreeRTOS on one of them, a guest that looks at its registers on another.
    pub fn trial(&self) -> Trial {
        let Self { seed, preset, vcpus, harts, cpu, ms, lives, .. } = *self;
        let alone = preset == "partition";
        let rtos_hart = if alone { 0 } else { (scramble(seed ^ 7) % u64::from(harts)) as u32 };
        let keeper_hart = harts - 1;
        let kinds = self.kinds.map_or(String::new(), |kinds| format!(" kinds={kinds}"));
        // Its jobs end between two ticks: one that ends just when a tick comes holds up the RTOS's own switch to the task (2.5 us without any neighbour).
        let burn = [0, 25, 45][(scramble(seed ^ 8) % 3) as usize];
        // The turns of all that may be on its hart, and the RTOS's time; twice, as both may come together again meanwhile.
        let turns_us = 2 * (u64::from(vcpus + 1) * QUANTUM_US + BURN_PERIOD_US * burn / 100);
        let turns_ms = takes_short_turns(preset).then(|| turns_us.div_ceil(1_000));
        let (begin_ms, life_ms) = if lives == Lives::One { (BEGIN_MS, ms) } else { (0, LIFE_MS) };
        // One with a vCPU that is lost is to say so while somebody listens.
        let patience =
            turns_ms.map_or(String::new(), |turns| format!(" patience_ms={}", 2 * turns + LIFE_MS));
        let args = format!("seed={seed} inputs=1000000000 begin_ms={begin_ms} ms={life_ms}{patience}{kinds}");
        let fuzz = Guest::fuzz(&args).vcpus(vcpus).harts(if alone { 1..harts - 1 } else { 0..harts });
        // The first of its lives ends long before the run does, if each vCPU has its turn at its begin, for its inputs, and at its end.
        let is_long = turns_ms.is_some_and(|turns| LIFE_MS + 3 * turns <= ms);
        let least = usize::from(is_long && self.kinds.is_none());
        let again = |guest: Guest| guest.restart("always", 32, "1us").background();
        let (fuzz, expected) = match lives {
            Lives::One => (fuzz, Expected::Done),
            Lives::Many => (again(fuzz), Expected::Again(least)),
            Lives::Faults => (again(fuzz.strict()), Expected::FaultAgain(least)),
        };
        let fuzz = match self.mode {
            Some(mode) => in_mode(fuzz, mode, seed),
            None => fuzz,
        };
        let keeper_ms = BEGIN_MS + ms + SPARE_MS;
        let keeper = Guest::probe("fpkeep", &format!("seed={} ms={keeper_ms} period_us=700", seed | 1));
        let lack_h = self.mode.map_or_else(usual_lack_h, |mode| !mode.has_h);
        let system = System::on(harts);
        let system = match self.mode {
            Some(mode) => mode.board(system, cpu),
            None => system.cpu(cpu),
        };
        let system = system
            .policy(preset)
            .interrupts(match scramble(seed ^ 9) % 9 {
                // Without H a board with IMSICs counts as one without an interrupt controller: an IPI is a call of the firmware then, which takes 13 us with interrupts off.
                0 if !lack_h => IMSIC,
                3 | 6 => APLIC,
                _ => PLIC,
            })
            .with(fuzz)
            .with(Guest::freertos(&measuring(ms, burn)).harts([rtos_hart]))
            .with(keeper.harts([keeper_hart]));
        let system = if has_windows(preset) {
            with_windows(system, vcpus.min(harts), rtos_hart, keeper_hart)
        } else {
            system
        };
        Trial {
            name: format!("{preset}-{vcpus}-vcpus-{harts}-harts-{seed:016x}"),
            preset,
            system,
            hostile: vec![("fuzz".into(), expected)],
            rtoses: vec![("freertos".into(), rtos_hart)],
            neighbours: vec!["fpkeep".into()],
            patience_ms: turns_ms,
        }
    }
}

/// Few tables, and more than the guest can fill: what a vCPU can have at least, some more, and as many as nobody says. Whose are taken is one choice of two, where there is one.
fn in_mode(guest: Guest, mode: Mode, seed: u64) -> Guest {
    let guest = mode.of(guest);
    if mode.translation == "two-stage" {
        return guest;
    }
    let fewest: u32 = if mode.has_h { *SHADOW_TABLES.start() } else { FEWEST_SHADOW_TABLES_WITHOUT_H }.into();
    let guest = match scramble(seed ^ 10) % 3 {
        0 => guest.shadow_tables(fewest),
        1 => guest.shadow_tables(2 * fewest),
        _ => guest,
    };
    guest.shadow_reclaim(["fifo", "page-directory-lru"][(scramble(seed ^ 11) % 2) as usize])
}

/// The system with a third of each millisecond for each guest on the harts where it has vCPUs: the fuzzing one on the first of them.
fn with_windows(system: System, fuzzed_harts: u32, rtos_hart: u32, keeper_hart: u32) -> System {
    const THIRD_US: u64 = 333;
    let fuzz = |system: System, hart| system.window(hart, "fuzz", 0, THIRD_US);
    (0..fuzzed_harts)
        .fold(system.major_frame("1ms"), fuzz)
        .window(rtos_hart, "freertos", THIRD_US, THIRD_US)
        .window(keeper_hart, "fpkeep", 2 * THIRD_US, THIRD_US)
}
