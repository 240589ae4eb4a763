//! The command line of `ainori bench`.
use super::{only::Condition, shard::Shard, verify::minutes};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Run experiments: figures with their error bars, against bars that they must keep
///
/// An experiment is a file experiments/NAME.toml. Finished runs are kept in .cache/bench under a hash of everything that
/// they depend on, so an interrupted bench goes on where it stopped, and only what a change concerns is run again.
/// The report is a table here, and JSON, charts (SVG) and one HTML file in target/bench. The last line of the report says where.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_long_help = "\
Examples:
  ainori bench --short                       all experiments in their short form, at most 10 minutes on 2 cores
  ainori bench jitter --only case=bare,alone two cases of one experiment
  ainori bench lhp --only policy=ainori --only f=0,50 --only q=250
                                             some values of what is varied, and one slice: one run of each
  ainori bench overhead --save               full form, report into docs/results
  ainori bench lhp --shard 3/8               the third of eight parts of the runs, each for a machine of its own
  ainori bench merge part-*                  brings the machines' runs together; then `ainori bench lhp` makes the report
  ainori bench report                        pages and charts of all committed results, without a run
  ainori bench verify --sample 5             are they of what is built now, and do five runs give the same bytes?
  ainori bench compare old.json new.json     what changed beyond the error bar
  ainori bench judge docs/results/lhp.json   what the bars of today say to results of before

Exit code:
  0    the experiments ran, whether their bars hold or not (see --check)
  1    a run failed, or with --check a bar fails; verify: a run gave something else
  2    nothing was run: an experiment is wrong, or something is not built; with --no-run: a run is missing
  3    with --check: no bar fails, but one is undecided: it takes three q's or repetitions, or more
  130  interrupted; the same command goes on"
)]
pub struct Bench {
    /// What to do other than to run experiments
    #[command(subcommand)]
    pub action: Option<Action>,
    /// The experiments: names, or paths of TOML files [default: all in experiments/]
    pub experiments: Vec<String>,
    /// The quick form: fewer values and shorter runs
    #[arg(long)]
    pub short: bool,
    /// Only a part of the experiment: the runs whose NAME has one of the values; can be given several times
    ///
    /// NAME is `case`, a parameter, `q` (the slice of the lockstep clock) or `repetition` (with icount). All conditions must
    /// hold, but one on a parameter doesn't concern a case that hasn't got it. Bars and charts that need what is left out are
    /// left out as well. The report is called EXPERIMENT-part, see --name.
    #[arg(long, value_name = "NAME=VALUE,...")]
    pub only: Vec<Condition>,
    /// Run again what has been run before
    #[arg(long)]
    pub fresh: bool,
    /// Runs at the same time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Only the part NUMBER of OF parts, that together are all runs and take about the same time each; no report
    ///
    /// For several machines, or the tasks of an array: each does its part, and `ainori bench merge` brings their runs together. Times
    /// are those that the store knows of like runs, or a guess. The parts are written down in the store when they are first
    /// made, so that the same command goes on with the same part. Give all machines stores that know the same, or nothing.
    #[arg(long, value_name = "NUMBER/OF", conflicts_with_all = ["json", "save", "name", "check", "no_run"])]
    pub shard: Option<Shard>,
    /// The folder of finished runs [default: .cache/bench of the checkout]
    #[arg(long, value_name = "FOLDER")]
    pub store: Option<PathBuf>,
    /// Make the report of finished runs alone; it is an error if one is missing
    #[arg(long, conflicts_with = "fresh")]
    pub no_run: bool,
    /// The hypervisor's ELF file, for all runs [default: the one of .cache/kernel that a run's system needs]
    #[arg(long, value_name = "ELF", env = "AINORI_KERNEL")]
    pub kernel: Option<PathBuf>,
    /// Also write the results of one experiment to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Also write the JSON, and those charts that a page of the documentation shows, to docs/results, as the project's last ones
    #[arg(long)]
    pub save: bool,
    /// What the files of one experiment's report are called [default: as the experiment, with -part if it is not all of it]
    #[arg(long, value_name = "NAME", value_parser = file_name)]
    pub name: Option<String>,
    /// Fail if a bar fails (exit code 1) or is undecided (3)
    #[arg(long)]
    pub check: bool,
}

/// Other things that `ainori bench` does.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Show what changed between two results, beyond the range of their samples
    Compare {
        /// Results of before
        before: PathBuf,
        /// Results of after
        after: PathBuf,
    },
    /// Make the figures in README.md and docs/ from docs/results anew: what stands between `<!-- quote ... -->` and `<!-- /quote -->`
    Quote {
        /// Write nothing: exit code 1 if a page is not as it should be
        #[arg(long)]
        check: bool,
        /// The pages [default: README.md and those in docs/ and experiments/]
        pages: Vec<PathBuf>,
    },
    /// Judge results that were taken before by the bars of today: the exit code is that of --check
    Judge {
        /// Results, as target/bench and docs/results have them: NAME.json
        #[arg(required = true)]
        results: Vec<PathBuf>,
    },
    /// Make pages (HTML) and charts (SVG) of results, without a run
    Report(Report),
    /// Bring finished runs of several machines together by their keys
    Merge(Merge),
    /// Tell which results are of what is built now, and do some of their runs again
    Verify(Verify),
}

/// Pages and charts of results.
///
/// A result that isn't of the hypervisor, guests and plugins that are built now is marked so in its page. Where nothing is built, nothing is
/// marked, and a message says so.
#[derive(Debug, Args)]
pub struct Report {
    /// Results as JSON [default: all in docs/results]
    pub files: Vec<PathBuf>,
    /// Where the pages go [default: target/results of the checkout]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Also write those charts to docs/results that a page of the documentation shows
    #[arg(long)]
    pub save: bool,
}

/// Finished runs of several machines.
///
/// Two results of one run that differ are refused: one of the machines is wrong. Then nothing is written.
#[derive(Debug, Args)]
pub struct Merge {
    /// Folders of finished runs: what --store named on each machine
    #[arg(required = true, value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,
    /// Where all of them go [default: .cache/bench of the checkout]
    #[arg(long, value_name = "FOLDER")]
    pub into: Option<PathBuf>,
}

/// Results, compared with what is built now.
///
/// Nothing is built. A result is old if any of its runs would be another one today: the hypervisor, a guest, a plugin, QEMU, or its experiment has
/// changed. Of the runs that would be the same today a sample is done again, and metrics, schedule and the hash of the whole document
/// (histograms, counters) must be the same to the byte.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Exit code:
  0    all that was taken again is the same
  1    a run gave something else; with --all: or a result is old, or no run, or not all of the sample, could be taken again
  2    a result can't be read, or something is not built
  130  interrupted")]
pub struct Verify {
    /// Results as JSON [default: all in docs/results]
    pub files: Vec<PathBuf>,
    /// How many runs are done again, of all results together
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub sample: usize,
    /// Which runs these are: the same ones for the same number
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Most minutes of the host that these runs may take together; what doesn't fit in is left out, and told
    #[arg(long, value_name = "MINUTES", default_value = "10", value_parser = minutes)]
    pub minutes: f64,
    /// Old results, and a sample that isn't done in full, are errors (exit code 1)
    #[arg(long)]
    pub all: bool,
    /// The hypervisor's ELF file, for all runs [default: the one of .cache/kernel that a run's system needs]
    #[arg(long, value_name = "ELF", env = "AINORI_KERNEL")]
    pub kernel: Option<PathBuf>,
}

/// A name that is safe as a file's.
fn file_name(name: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => Ok(name.to_owned()),
        false => Err("it must be made of letters, digits, - and _".into()),
    }
}
