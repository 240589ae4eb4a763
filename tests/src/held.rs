//! Interrupts of many sources that are held back while more urgent guests have the harts, and whose vCPUs move meanwhile: each is taken once. They are counted by
//! the probe `held`, one by one.
use ainori::report::Outcome;
use ainori_sched::{Policy, presets};
use serde::{Deserialize, Serialize};

use crate::random::rng::Rng;
use crate::{APLIC, Clock, Guest, IMSIC, PLIC, Run, System};

/// The guest whose interrupts are counted.
pub const BELOW: &str = "below";

/// Policies under which they are held back again and again: the harts are shared.
const POLICIES: [&str; 10] = [
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
];

/// The kinds of interrupts that each board has, as the probe calls them.
const KINDS: [&str; 5] = ["ipis", "timers", "bells", "alarms", "serial"];
/// Those that only a board with interrupt files has.
const MESSAGES: &str = "messages";

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
        let system = System::on(harts).policy(self.policy).interrupts(self.controller).quantum("1ms");
        let system = system.with(below.device("/soc/rtc@101000"));
        (0..self.taken).fold(system, |system, hart| {
            if self.freertos && hart + 1 == self.taken {
                let args = "period_us=1000 burn_percent=40 burn_period_us=500 end=forever report_ms=0";
                return system.with(Guest::freertos(args).harts([hart]).background());
            }
            let name = format!("above-{hart}");
            let above = Guest::probe("held", &format!("role=above seed={}", hart + 1)).named(&name);
            system.with(above.harts([hart]).priority(9).background()).channel([&name, BELOW], "4KiB")
        })
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
        let number = |path: &str| result.pointer(path).and_then(|value| value.as_u64()).unwrap_or_default();
        let counts = Counts {
            taken: number("/taken"),
            held: number("/held"),
            migrations: run.migrations(BELOW),
            latest_ns: KINDS
                .iter()
                .chain([&MESSAGES])
                .map(|kind| number(&format!("/{kind}/latest_ns")))
                .max()
                .unwrap_or(0),
        };
        for key in ["lost", "twice", "spurious"] {
            if number(&format!("/{key}")) != 0 {
                findings.push(format!("{key}: {}", number(&format!("/{key}"))));
            }
        }
        if number("/sent") != counts.taken || counts.held < self.n {
            findings.push(format!(
                "of {} sent {} were taken, {} had been held back",
                number("/sent"),
                counts.taken,
                counts.held
            ));
        }
        let has_messages = self.controller == IMSIC;
        for kind in KINDS.iter().chain(has_messages.then_some(&MESSAGES)) {
            if number(&format!("/{kind}/held")) == 0 {
                findings.push(format!("none of the {kind} was held back"));
            }
        }
        if moves(self.policy) && counts.migrations == 0 {
            findings.push("no vCPU moved".into());
        }
        (counts, findings)
    }
}

/// Do vCPUs move by this preset?
fn moves(policy: &str) -> bool {
    let preset = presets().iter().find(|preset| preset.name == policy);
    preset.and_then(|preset| Policy::preset(preset.name, 1, 10_000_000)).is_some_and(|policy| policy.moves())
}

/// What has been counted in a run.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Interrupts that were taken, as many as were sent.
    pub taken: u64,
    /// Of these, held back.
    pub held: u64,
    /// How often the vCPUs that took them went to another core.
    pub migrations: u64,
    /// The longest that one of them ran on, free to be interrupted, before it was, in nanoseconds.
    pub latest_ns: u64,
}

impl Counts {
    /// Counts those of another run as well.
    pub fn add(&mut self, other: Self) {
        self.taken += other.taken;
        self.held += other.held;
        self.migrations += other.migrations;
        self.latest_ns = self.latest_ns.max(other.latest_ns);
    }
}
