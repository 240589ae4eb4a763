//! A small experiment for tests: a folder with everything that it refers to, and documents as its runs would give.
use super::{
    charts,
    engine::Done,
    evaluate,
    experiment::{ClockKind, Experiment, Form},
    judge,
    key::{Hashes, Tools, key},
    plan::Plan,
    results::Results,
    versions,
};
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

/// Hackbench beside an RTOS that takes a share `f` of its hart, under two policies, and on the bare machine.
pub const EXPERIMENT: &str = r#"
title = "Throughput"
question = "How much is left?"
q = { full = [240, 250, 260], short = [250] }
parameters = { f = { full = [0, 50, 90], short = [0, 50] } }

[[case]]
name = "lhp"
title = "shared"
system = "linux.toml"
clock = "lockstep"
with.policy = ["spumone", "round-robin"]

[[case]]
name = "native"
title = "bare machine"
system = "bare.toml"
machine = "bare"
clock = "icount"
histograms = []
metrics = ["rate"]

[[metric]]
name = "rate"
title = "messages in a second"
unit = "1/s"
at = "/rate"

[[metric]]
name = "left"
title = "share"
unit = "%"
value = "rate * (1 - f/100)"

[[histogram]]
name = "delay"
unit = "ns"
at = "/delay"

[[bar]]
name = "throughput"
value = "{lhp[policy=spumone].rate} / {native.rate}"
unit = "x bare machine"
at_least = 0.5
each = ["f"]

[[chart]]
title = "Throughput over f"
cases = ["lhp"]
x = "f"
y = "rate"
x_label = "share of the RTOS, %"
y_label = "messages / s"
line = [{ title = "ideal", value = "(1 - f/100) * {native.rate}" }]

[[chart]]
title = "Delays"
cases = ["lhp"]
histogram = "delay"
x_label = "delay, ns"
y_label = "share, %"
x_log = true
"#;

const BARE: &str = r#"
policy = "spumone"
board = { machine = "qemu-virt", harts = 1, memory = "256MiB" }
guest = [{ name = "linux", kind = "linux", image = "Image", memory = "64MiB", vcpus = 1, priority = 1 }]
"#;

/// A folder with an experiment in it.
pub struct Fixture {
    pub folder: TempDir,
}

impl Fixture {
    pub fn new() -> Self {
        let fixture = Self { folder: tempfile::tempdir().unwrap() };
        let mut image = vec![0; 4096];
        image[16] = 1; // image_size, in the header of a Linux Image
        image[56..60].copy_from_slice(b"RSC\x05");
        fixture.write("Image", &image);
        fixture.write("kernel.elf", b"hypervisor");
        fixture.write("lockstep.so", b"lockstep");
        fixture.write("paths.so", b"paths");
        fixture.write("windows.so", b"windows");
        fixture.write("tlb.so", b"tlb");
        fixture.write("bare.toml", BARE.as_bytes());
        let shared = BARE
            .replace("\"spumone\"", "\"${policy}\"")
            .replace("priority", "args = \"burn=${f}\", priority");
        fixture.write("linux.toml", shared.as_bytes());
        fixture
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    pub fn tools(&self) -> Tools {
        let path = |name: &str| self.folder.path().join(name);
        Tools {
            qemu: "10.0.2".into(),
            kernel: path("kernel.elf"),
            is_asked_for: true,
            lockstep: path("lockstep.so"),
            paths: path("paths.so"),
            windows: path("windows.so"),
            tlb: path("tlb.so"),
        }
    }

    pub fn experiment(&self, text: &str) -> miette::Result<Experiment> {
        Experiment::parse(text, self.folder.path(), "throughput")
    }

    pub fn plan(&self, form: Form) -> Plan {
        Plan::new(self.experiment(EXPERIMENT).unwrap(), form, &[]).unwrap()
    }

    /// Keys of all runs, by point.
    pub fn keys(&self, plan: &Plan) -> Vec<Vec<String>> {
        let mut hashes = Hashes::default();
        let tools = self.tools();
        let keys = |point: &super::plan::Point| {
            point.runs.iter().map(|run| key(run, &tools, &mut hashes).unwrap()).collect()
        };
        plan.points.iter().map(keys).collect()
    }

    /// Results, where the n-th run of a case with the share f has the rate (1000 - 5 f + n) x `speed`.
    pub fn results(&self, plan: &Plan, speed: f64) -> Results {
        let keys = self.keys(plan);
        let mut done = Done::default();
        for (point, keys) in plan.points.iter().zip(&keys) {
            let f = point.values.get("f").and_then(|f| f.number()).unwrap_or(0.0);
            for (n, key) in keys.iter().enumerate() {
                done.documents.insert(key.clone(), document((1000.0 - 5.0 * f + n as f64) * speed));
            }
        }
        let cases = evaluate::cases(plan, &keys, &done).unwrap();
        Results {
            experiment: plan.experiment.name.clone(),
            title: plan.experiment.title.clone(),
            question: plan.experiment.question.clone(),
            form: plan.form,
            only: plan.only.clone(),
            date: "2025-01-01T00:00:00Z".into(),
            command: "./ainori bench throughput".into(),
            machine: "QEMU".into(),
            versions: versions::versions(plan, &self.tools(), &mut Hashes::default()).unwrap(),
            bars: evaluate::bars(plan, &cases).unwrap(),
            derived: judge::derived(&plan.experiment, &cases).unwrap(),
            charts: charts::charts(plan, &cases).unwrap(),
            cases,
        }
    }
}

/// A run's document, as far as the experiment looks into it.
pub fn document(rate: f64) -> Value {
    json!({"rate": rate, "delay": [[200, 90], [300, 9], [10_000_000, 1]], "clock": {"mode": ClockKind::Lockstep}})
}
