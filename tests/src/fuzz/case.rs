//! One run with random inputs.
use super::{BEGIN_MS, Expected, SPARE_MS, Trial, measuring};
use crate::{Guest, System};
use ainori_sched::Policy;

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
    /// Virtual milliseconds that the fuzzing guest goes on for.
    pub ms: u64,
    /// Kinds of inputs (guests/fuzz/README.md); `None`: all that a guest isn't stopped for.
    pub kinds: Option<u32>,
    /// Instructions of a slice in lockstep time.
    pub q: u32,
}

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
}

/// Are two vCPUs of one guest never on one hart under this preset? Neither the quantum nor the clock matters for that.
fn keeps_apart(preset: &str) -> bool {
    Policy::preset(preset, 1, 1_000).is_some_and(|policy| policy.keeps_apart())
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

    /// Case number `index`.
    pub fn case(&self, index: u64) -> Case {
        let seed = scramble(self.seed ^ scramble(index));
        let pick = |nth: u64, below: u64| scramble(seed ^ scramble(nth)) % below;
        let preset = self.presets[(index % self.presets.len() as u64) as usize];
        // A partition gives each guest harts of its own.
        let harts = if preset == "partition" {
            3 + pick(1, 2)
        } else {
            [1, 2, 2, 2, 3, 4, 4, 8][pick(1, 8) as usize]
        };
        let (least, most) = self.vcpus;
        // Nor are there more vCPUs than harts where they are kept apart.
        let most = if keeps_apart(preset) { most.min(harts as u32) } else { most };
        let least = least.min(most);
        Case {
            seed,
            preset,
            vcpus: least + pick(2, u64::from(most - least + 1)) as u32,
            harts: harts as u32,
            cpu: CPUS[pick(4, CPUS.len() as u64) as usize],
            ms: self.ms,
            kinds: self.kinds,
            q: [250, 250, 149, 199][pick(3, 4) as usize],
        }
    }
}

impl Case {
    /// Its system: the fuzzing guest on all harts, FreeRTOS on one of them, a guest that looks at its registers on another.
    pub fn trial(&self) -> Trial {
        let Self { seed, preset, vcpus, harts, cpu, ms, .. } = *self;
        let alone = preset == "partition";
        let rtos_hart = if alone { 0 } else { (scramble(seed ^ 7) % u64::from(harts)) as u32 };
        let keeper_hart = harts - 1;
        let kinds = self.kinds.map_or(String::new(), |kinds| format!(" kinds={kinds}"));
        let fuzz = Guest::fuzz(&format!("seed={seed} inputs=1000000000 begin_ms={BEGIN_MS} ms={ms}{kinds}"))
            .vcpus(vcpus)
            .harts(if alone { 1..harts - 1 } else { 0..harts });
        let burn = [0, 20, 50][(scramble(seed ^ 8) % 3) as usize];
        let keeper_ms = BEGIN_MS + ms + SPARE_MS;
        let keeper = Guest::probe("fpkeep", &format!("seed={} ms={keeper_ms} period_us=700", seed | 1));
        let system = System::on(harts)
            .policy(preset)
            .cpu(cpu)
            .with(fuzz)
            .with(Guest::freertos(&measuring(ms, burn)).harts([rtos_hart]))
            .with(keeper.harts([keeper_hart]));
        Trial {
            name: format!("{preset}-{vcpus}-vcpus-{harts}-harts-{seed:016x}"),
            preset,
            system,
            hostile: vec![("fuzz".into(), Expected::Done)],
            rtoses: vec![("freertos".into(), rtos_hart)],
            neighbours: vec!["fpkeep".into()],
        }
    }
}
