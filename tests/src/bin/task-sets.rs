//! Runs random sets of tasks, and compares each run with what `ainori check` says of the deadlines. See `tests/README.md`.
use ainori_tests::{
    campaign::{self, Campaign, Judged},
    seeds::Seeds,
    task_sets::{
        generate::{self, TaskSet, UTILISATIONS},
        judge::{self, Outcome},
    },
};
use clap::Parser;
use miette::Result;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, path::PathBuf, process::ExitCode};

/// Runs sets of tasks that are made from seeds, and compares them with the analysis of their deadlines.
#[derive(Debug, Parser)]
#[command(name = "task-sets")]
struct Args {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many sets, with seeds that follow each other
    #[arg(long, default_value_t = 200)]
    count: u64,
    /// Only sets under this policy: seeds of others are left out, and don't count
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(generate::presets()))]
    preset: Option<String>,
    /// Only sets of which a guest has tasks on two harts; seeds of others don't count
    #[arg(long)]
    spread: bool,
    /// Begins no further set after so many minutes
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// Runs beside each other; each keeps one core of the host busy
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Folder for results; a set that is in it already, of the same hypervisor, guests, plugins and tool, is not run again
    #[arg(long, value_name = "DIR", default_value = ".cache/task-sets")]
    out: PathBuf,
    /// Only shows the sets as manifests
    #[arg(long)]
    show: bool,
}

/// What came of one set.
#[derive(Debug, Serialize, Deserialize)]
struct Compared {
    utilisation: u64,
    preset: String,
    outcome: Outcome,
}

type Record = campaign::Record<Compared>;

impl Judged for Compared {
    fn findings(&self) -> &[String] {
        &self.outcome.findings
    }
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if args.show {
        for seed in args.seeds() {
            let set = generate::set(seed);
            println!("# seed {seed}: {}, --clock lockstep --q {}\n{}", set.summary, set.q, set.system);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let campaign = Campaign::begin(args.out.clone())?;
    let make = |seed| {
        let TaskSet { summary, system, q, .. } = generate::set(seed);
        campaign::Case { summary, system, q }
    };
    let judge = |seed, system: &_| {
        let set = TaskSet { system: Clone::clone(system), ..generate::set(seed) };
        let outcome = campaign::started(|| judge::judge(&set))
            .unwrap_or_else(|finding| Outcome { findings: vec![finding], ..Outcome::default() });
        Compared { utilisation: set.utilisation, preset: set.preset.into(), outcome }
    };
    let seeds = Seeds { seeds: args.seeds(), count: args.count, jobs: args.jobs, minutes: args.minutes };
    let records = campaign.run(seeds, make, judge)?;
    let summary = Summary::of(&records);
    println!("{}Results: {}", summary.text(), args.out.display());
    campaign.sum_up(&summary)?;
    Ok(match (campaign.is_stopped(), summary.failing) {
        (true, _) => ExitCode::from(130),
        (false, 0) => ExitCode::SUCCESS,
        (false, _) => ExitCode::FAILURE,
    })
}

impl Args {
    fn seeds(&self) -> impl Iterator<Item = u64> + Send {
        let is_preset = |seed| self.preset.as_ref().is_none_or(|wanted| generate::set(seed).preset == wanted);
        let is_wanted = move |seed: &u64| (!self.spread || generate::is_spread(*seed)) && is_preset(*seed);
        (self.seed..).filter(is_wanted).take(usize::try_from(self.count).unwrap_or(usize::MAX))
    }
}

/// All sets, and parts of them.
#[derive(Debug, Serialize)]
struct Summary {
    sets: usize,
    failing: usize,
    /// Nothing could be said of them.
    unsaid: usize,
    /// Those of each utilisation, of each preset, of each preset and utilisation, and all.
    rows: Vec<Row>,
    /// The longest response that was seen, in percent of its bound: the mean over all tasks, and the greatest.
    seen_mean_percent: f64,
    seen_most_percent: f64,
    host_seconds: f64,
}

/// What was said of sets, and what they did.
#[derive(Debug, Default, Clone, Serialize)]
struct Row {
    /// The policy; `None` of all.
    preset: Option<String>,
    /// In percent; `None` of all.
    utilisation: Option<u64>,
    /// Of which something could be said.
    sets: usize,
    met: usize,
    /// Said to be unschedulable: a task may miss its deadline.
    unschedulable: usize,
    /// Of those: ran without a miss.
    pessimistic: usize,
    /// Said to meet all deadlines, and missed one; or a task took longer than its bound.
    wrong: usize,
}

impl Row {
    fn of(preset: Option<&str>, utilisation: Option<u64>, records: &[Record]) -> Self {
        let mut row = Self { preset: preset.map(str::to_owned), utilisation, ..Self::default() };
        let chosen = records
            .iter()
            .filter(|record| preset.is_none_or(|wanted| record.outcome.preset == wanted))
            .filter(|record| utilisation.is_none_or(|wanted| record.outcome.utilisation == wanted))
            .filter(|record| !record.outcome.outcome.is_unsaid);
        for Outcome { is_met, has_missed, is_wrong, .. } in chosen.map(|record| &record.outcome.outcome) {
            row.sets += 1;
            row.met += usize::from(*is_met);
            row.unschedulable += usize::from(!is_met);
            row.pessimistic += usize::from(!is_met && !has_missed);
            row.wrong += usize::from(*is_wrong);
        }
        row
    }

    fn text(&self) -> String {
        let percent = self.utilisation.map(|percent| format!("{percent} %"));
        let name = self.preset.clone().or(percent).unwrap_or_else(|| "all".into());
        let share = match self.unschedulable {
            0 => "-".into(),
            all => format!("{:.0} %", self.pessimistic as f64 * 100.0 / all as f64),
        };
        format!(
            "{name:>26} {:>6} {:>14} {:>16} {share:>10} {:>7}\n",
            self.met, self.unschedulable, self.pessimistic, self.wrong
        )
    }
}

impl Summary {
    fn of(records: &[Record]) -> Self {
        let seen: Vec<u64> =
            records.iter().flat_map(|record| record.outcome.outcome.seen_per_mille.iter().copied()).collect();
        let presets: BTreeSet<&str> = records.iter().map(|record| &*record.outcome.preset).collect();
        let rows = UTILISATIONS.map(|percent| Row::of(None, Some(percent), records)).into_iter();
        let rows = rows.chain(presets.iter().map(|preset| Row::of(Some(preset), None, records)));
        let of_both = presets
            .iter()
            .flat_map(|preset| UTILISATIONS.map(|percent| Row::of(Some(preset), Some(percent), records)));
        let rows = rows.chain(of_both).filter(|row| row.sets > 0).chain([Row::of(None, None, records)]);
        Self {
            sets: records.len(),
            failing: records.iter().filter(|record| !record.outcome.outcome.findings.is_empty()).count(),
            unsaid: records.iter().filter(|record| record.outcome.outcome.is_unsaid).count(),
            rows: rows.collect(),
            seen_mean_percent: seen.iter().sum::<u64>() as f64 / seen.len().max(1) as f64 / 10.0,
            seen_most_percent: seen.iter().copied().max().unwrap_or_default() as f64 / 10.0,
            host_seconds: records.iter().map(|record| record.host_seconds).sum(),
        }
    }

    /// What is of a preset and of a utilisation is told in the file only: these are many rows.
    fn text(&self) -> String {
        let head =
            format!("{:>26}    met  unschedulable  of these no miss  pessimism   wrong\n", "load or policy");
        let is_told = |row: &&Row| row.preset.is_none() || row.utilisation.is_none();
        let rows: String = self.rows.iter().filter(is_told).map(Row::text).collect();
        format!(
            "{head}{rows}The longest response seen is {:.1} % of its bound in the mean, {:.1} % at most.\n{} sets, {} failing, of {} nothing can be \
             said; {:.1} s of host time each. ",
            self.seen_mean_percent,
            self.seen_most_percent,
            self.sets,
            self.failing,
            self.unsaid,
            self.host_seconds / self.sets.max(1) as f64
        )
    }
}
