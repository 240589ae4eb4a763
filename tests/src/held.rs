//! Interrupts of many sources that are held back while more urgent guests have the harts, and whose vCPUs move meanwhile: each is taken once. They are counted by
//! the probe `held`, one by one.
use ainori::report::Outcome;
use ainori_sched::{Policy, Preemption, Preset, presets};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

use crate::random::rng::Rng;
use crate::{APLIC, Clock, Guest, IMSIC, PLIC, Run, System};

/// The guest whose interrupts are counted.
pub const BELOW: &str = "below";

/// Policies under which they are held back again and again: the harts are shared.
const POLICIES: [&str; 11] = [
    "ainori",
    "spumone-on-demand",
    "spumone-trap-based",
    "spumone",
    "balance",
    "listee-rt",
    "co-schedule",
    "delayed",
    "safe-unsafe",
    "spumone-without-split",
    "time-window",
];

/// The kinds of interrupts that each board has, as the probe calls them.
const KINDS: [&str; 5] = ["ipis", "timers", "bells", "alarms", "serial"];
/// Those that only a board with interrupt files has.
const MESSAGES: &str = "messages";

/// Under windows in time, in microseconds: what each hart's more urgent guest has of a frame, one hart after the other.
const FRAME_US: u64 = 500;
const TAKEN_US: u64 = 100;

/// Those that wait at the vCPU that they are for, and come in when it has a hart. (Those of devices come in where it is at home, and wait there for who has that hart.)
const AT_THE_VCPU: [&str; 3] = ["ipis", "timers", MESSAGES];
/// For so long a vCPU may run on before it has one. What was begun when that came, and its own way, are sections of the guard, 5 us each; and that a vCPU doesn't run for less
/// than 15 us the probe doesn't see. (22.9 us were seen in the short forms.)
const LATEST_NS: u64 = 15_000 + 2 * 5_000;
/// Of so many of a kind, some are held back, or none can be. (Where messages are many, all of a system's are together before 14 of the serial port have come.)
const NO_CHANCE: u64 = 50;
/// Where vCPUs move, they do so once at least while so many are held back: else it isn't about moving. (From one for 21, under `balance` beside FreeRTOS, to four for each.)
const HELD_PER_MIGRATION: u64 = 40;

/// A system, and how long it runs.
#[derive(Debug, Clone)]
pub struct Case {
    /// The preset.
    pub policy: &'static str,
    /// The board's interrupt controller.
    pub controller: &'static str,
    /// Harts that more urgent guests take, one each: 1 to 4.
    pub taken: u32,
    /// Harts that nobody takes.
    pub free: u32,
    /// FreeRTOS takes the last of the taken harts, not one that rings.
    pub freertos: bool,
    /// The serial port tells by edges, where a controller knows these.
    pub edges: bool,
    /// Interrupts to hold back.
    pub n: u64,
    /// The slice of lockstep time.
    pub q: u32,
}

impl Case {
    /// On three harts, all of which are taken.
    pub fn new(policy: &'static str, controller: &'static str, n: u64) -> Self {
        Self { policy, controller, taken: 3, free: 0, freertos: false, edges: false, n, q: 250 }
    }

    /// One of those that are tried for long.
    pub fn of_seed(seed: u64, n: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut below = |n: u64| rng.below(n);
        Self {
            policy: POLICIES[(seed / 3) as usize % POLICIES.len()],
            controller: [PLIC, APLIC, IMSIC][seed as usize % 3],
            taken: 2 + below(3) as u32,
            free: below(2) as u32,
            freertos: below(4) == 0,
            edges: below(3) == 0,
            n,
            q: 150 + below(200) as u32,
        }
    }

    /// What it is, in a line.
    pub fn summary(&self) -> String {
        let Self { policy, controller, taken, free, freertos, edges, n, q } = self;
        let with = if *freertos { ", FreeRTOS" } else { "" };
        let edges = if *edges { ", edges" } else { "" };
        format!("{controller}, {policy}, {taken} + {free} harts{with}{edges}, {n} held back, q = {q}")
    }

    /// As a system.
    pub fn system(&self) -> System {
        let harts = self.taken + self.free;
        let args = format!("n={} edges={}", self.n, u8::from(self.edges));
        let below = Guest::probe("held", &args).named(BELOW).vcpus(harts).harts(0..harts);
        // Only harts with H have interrupt files.
        let board = if self.controller == IMSIC { System::on(harts).with_h() } else { System::on(harts) };
        let system = board.policy(self.policy).interrupts(self.controller);
        let system = system.with(below.device("/soc/rtc@101000"));
        let mut above: Vec<String> = Vec::new();
        let system = (0..self.taken).fold(system, |system, hart| {
            if self.freertos && hart + 1 == self.taken {
                let args = "period_us=1000 burn_percent=40 burn_period_us=500 end=forever report_ms=0";
                above.push("freertos".into());
                return system.with(Guest::freertos(args).harts([hart]).background());
            }
            let name = format!("above-{hart}");
            above.push(name.clone());
            let guest = Guest::probe("held", &format!("role=above seed={}", hart + 1)).named(&name);
            system.with(guest.harts([hart]).priority(9).background()).channel([&name, BELOW], "4KiB")
        });
        if preset(self.policy).is_some_and(|preset| preset.preemption == Preemption::AtWindow) {
            in_windows(system, harts, &above)
        } else {
            system.quantum("1ms")
        }
    }

    /// Runs it, or the same with another hypervisor.
    pub fn run_on(&self, system: &System) -> Run {
        system.run(Clock::Lockstep { q: self.q })
    }

    /// What doesn't hold in a run of it.
    pub fn judge(&self, run: &Run) -> (Counts, Vec<String>) {
        let mut findings = Vec::new();
        if run.report.outcome != Outcome::Good {
            let last: Vec<String> = run.lines(BELOW).collect();
            findings.push(format!("{}: {:?}", run.report.outcome.words(), last.last()));
        }
        findings.extend(run.report.problems.iter().cloned());
        let Some(result) =
            run.report.guests.iter().find(|guest| guest.name == BELOW).and_then(|guest| {
                guest.results.first().map(|result| serde_json::Value::Object(result.clone()))
            })
        else {
            findings.push("nothing was counted".into());
            return (Counts::default(), findings);
        };
        let kinds: Vec<&str> =
            KINDS.iter().copied().chain((self.controller == IMSIC).then_some(MESSAGES)).collect();
        let told = match Told::of(&result, &kinds) {
            Ok(told) => told,
            Err(error) => {
                findings.push(format!("{BELOW} doesn't say all that it should: {error}"));
                return (Counts::default(), findings);
            }
        };
        for (key, number) in [("lost", told.lost), ("twice", told.twice), ("spurious", told.spurious)] {
            if number != 0 {
                findings.push(format!("{key}: {number}"));
            }
        }
        if told.sent != told.taken || told.held < self.n {
            findings.push(format!(
                "of {} sent {} were taken, {} had been held back",
                told.sent, told.taken, told.held
            ));
        }
        for (name, kind) in &told.kinds {
            if kind.held == 0 && kind.taken >= NO_CHANCE {
                findings.push(format!("none of {} {name} was held back", kind.taken));
            }
            if AT_THE_VCPU.contains(&name.as_str()) && kind.latest_ns > LATEST_NS {
                findings.push(format!(
                    "one of the {name} came {} ns after its vCPU was free to take it, {LATEST_NS} ns are right",
                    kind.latest_ns
                ));
            }
        }
        let counts = Counts {
            taken: told.taken,
            held: told.held,
            migrations: run.migrations(BELOW),
            latest_ns: told.kinds.into_iter().map(|(name, kind)| (name, kind.latest_ns)).collect(),
        };
        if moves(self.policy) && counts.migrations * HELD_PER_MIGRATION < counts.held {
            findings.push(format!(
                "its vCPUs moved {} times while {} were held back",
                counts.migrations, counts.held
            ));
        }
        (counts, findings)
    }
}

/// What the probe says at its end. A number that isn't there is an error, and no 0.
#[derive(Debug, Deserialize)]
struct Told {
    sent: u64,
    taken: u64,
    held: u64,
    lost: u64,
    twice: u64,
    spurious: u64,
    #[serde(skip)]
    kinds: BTreeMap<String, OfKind>,
}

/// And of one kind of interrupts.
#[derive(Debug, Deserialize)]
struct OfKind {
    taken: u64,
    held: u64,
    latest_ns: u64,
}

impl Told {
    fn of(result: &Value, kinds: &[&str]) -> Result<Self, String> {
        let mut told = Self::deserialize(result).map_err(|error| error.to_string())?;
        for name in kinds {
            let kind = result.get(name).ok_or_else(|| format!("missing field `{name}`"))?;
            let kind = OfKind::deserialize(kind).map_err(|error| format!("{name}: {error}"))?;
            told.kinds.insert((*name).into(), kind);
        }
        Ok(told)
    }
}

/// Each hart has windows in time: one of who takes it, in each frame later than that of the hart before; all else is of who is interrupted.
fn in_windows(system: System, harts: u32, above: &[String]) -> System {
    (0..harts).fold(system.major_frame("500us"), |system, hart| {
        let Some(name) = above.get(hart as usize) else { return system.window(hart, BELOW, 0, FRAME_US) };
        let begin = u64::from(hart) * TAKEN_US;
        let end = begin + TAKEN_US;
        let system = system.window(hart, name, begin, TAKEN_US).window(hart, BELOW, end, FRAME_US - end);
        if begin == 0 { system } else { system.window(hart, BELOW, 0, begin) }
    })
}

fn preset(name: &str) -> Option<&'static Preset> {
    presets().iter().find(|preset| preset.name == name)
}

/// Do vCPUs move by this preset?
fn moves(policy: &str) -> bool {
    preset(policy)
        .and_then(|preset| Policy::preset(preset.name, 1, 10_000_000))
        .is_some_and(|policy| policy.moves())
}

/// What has been counted in a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Interrupts that were taken, as many as were sent.
    pub taken: u64,
    /// Of these, held back.
    pub held: u64,
    /// How often the vCPUs that took them went to another core.
    pub migrations: u64,
    /// The longest that one of them ran on, free to be interrupted, before it was, in nanoseconds; by the kind of interrupt.
    pub latest_ns: BTreeMap<String, u64>,
}

impl Counts {
    /// Counts those of another run as well.
    pub fn add(&mut self, other: &Self) {
        self.taken += other.taken;
        self.held += other.held;
        self.migrations += other.migrations;
        for (kind, latest) in &other.latest_ns {
            let own = self.latest_ns.entry(kind.clone()).or_default();
            *own = (*own).max(*latest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_probe_does_not_say_is_no_zero() {
        let whole = serde_json::json!({
            "sent": 2, "taken": 2, "held": 1, "lost": 0, "twice": 0, "spurious": 0, "ipis": {"taken": 2, "held": 1, "latest_ns": 0},
        });
        assert!(Told::of(&whole, &["ipis"]).is_ok());
        assert!(Told::of(&whole, &["timers"]).is_err_and(|error| error.contains("timers")));
        for key in ["sent", "taken", "held", "lost", "twice", "spurious"] {
            let mut result = whole.clone();
            result.as_object_mut().and_then(|keys| keys.remove(key));
            assert!(Told::of(&result, &["ipis"]).is_err_and(|error| error.contains(key)), "{key}");
        }
    }
}
