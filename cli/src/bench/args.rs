//! The command line of `ainori bench`.
use super::only::Condition;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Run experiments: figures with their error bars, against bars that they must keep
///
/// An experiment is a file experiments/NAME.toml. Finished runs are kept in .cache/bench under a hash of everything that
/// they depend on, so an interrupted bench goes on where it stopped, and only what a change concerns is run again.
/// The report is a table here, and JSON, charts (SVG) and one HTML file in target/bench.
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
  ainori bench compare old.json new.json     what changed beyond the error bar
  ainori bench judge docs/results/lhp.json   what the bars of today say to results of before

Exit code:
  0    the experiments ran, whether their bars hold or not (see --check)
  1    a run failed, or with --check a bar fails
  2    nothing was run: an experiment is wrong, or something is not built
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
    /// The hypervisor's ELF file [default: .cache/kernel/ainori.elf of the checkout]
    #[arg(long, value_name = "ELF", env = "AINORI_KERNEL")]
    pub kernel: Option<PathBuf>,
    /// Also write the results of one experiment to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Put the report into docs/results, as the project's last one, instead of target/bench
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
}

/// A name that is safe as a file's.
fn file_name(name: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    match !name.is_empty() && name.chars().all(is_plain) {
        true => Ok(name.to_owned()),
        false => Err("it must be made of letters, digits, - and _".into()),
    }
}
