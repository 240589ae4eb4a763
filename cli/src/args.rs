//! The command line.
use ainori::bench::args::Bench;
use ainori_manifest::Clock;
use ainori_trace::Mask;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::{ffi::OsString, path::PathBuf, time::Duration};

/// Ainori, a real-time hypervisor for multicore RISC-V: Linux and real-time OSes on the same cores.
///
/// A system is described by a manifest, a TOML file that names the board, the guests and the policy that shares the
/// harts among them. See systems/ for examples and docs/ for the reference.
#[derive(Parser)]
#[command(version, name = "ainori", arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    Check(Check),
    Build(Build),
    Run(Run),
    Trace(Trace),
    Policies(Policies),
    Bench(Bench),
}

/// Check a manifest and show the system that it describes
///
/// All errors are shown at once, each with its line and with what would be right. Nothing is run.
///
/// Where the manifest declares tasks ([[guest.task]]), it is analysed whether they keep their deadlines: what the longest time from a job's arrival
/// to its end is, what bounds it, and what is left of each hart.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ainori check systems/demo.toml
  ainori check systems/demo.toml --json findings.json
  ainori check systems/tasks.toml --gantt tasks.svg
  ainori check systems/tasks.toml --mips 1000

Exit code: 0 if all is right, 1 if the manifest has errors or a task may miss its deadline, 2 if the tool was called wrongly.")]
pub struct Check {
    /// The manifest
    pub system: PathBuf,
    /// Also write what was found to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Also draw how the tasks run if all arrive at once, as SVG
    #[arg(long, value_name = "FILE")]
    pub gantt: Option<PathBuf>,
    /// How fast the harts are, in millions of instructions per second; what the hypervisor takes for itself depends on it
    #[arg(long, value_name = "N", default_value_t = ainori_deadlines::costs::MIPS, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub mips: u32,
}

/// Build one bootable image of the hypervisor, the system and its guests
///
/// The image is a RISC-V Image (as Linux is): QEMU's -kernel and U-Boot's booti start it.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ainori build systems/demo.toml -o demo.bin
  ainori build systems/demo.toml -o demo.bin --json sizes.json --kernel mine.elf

Exit code: 0 if it was built, 1 if the manifest has errors, 2 for anything else.")]
pub struct Build {
    /// The manifest
    pub system: PathBuf,
    /// Where the image goes
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// The hypervisor's ELF file [default: .cache/kernel/ainori.elf of the checkout, or the one of its builds that the system needs]
    #[arg(long, value_name = "ELF", env = "AINORI_KERNEL")]
    pub kernel: Option<PathBuf>,
    /// Also write the sizes of the image's parts to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Run a system on QEMU
///
/// All consoles appear on this terminal, each line marked with its guest; what is typed goes to one guest (see
/// [console] in the manifest). The run ends when every guest that is not in the background has stopped. Then a table
/// tells what each guest reported and what the hypervisor counted, and in what time. Ctrl-C ends the run early.
///
/// Delays and speeds mean something only in virtual time (--clock lockstep or icount). In host time they tell how
/// busy this computer was: it is for watching and typing.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ainori run systems/demo.toml
  ainori run systems/shell.toml
  ainori run systems/demo.toml --timeout 2min --json report.json
  printf 'uname -a\\nexit\\n' | ainori run systems/shell.toml
  ainori run systems/demo.toml --clock lockstep --q 251
  ainori run systems/one-linux.toml --clock icount --record-dir /tmp/run
  ainori run systems/demo.toml --trace demo.perfetto-trace --trace-mask default,posted,received

Exit code:
  0    every guest that the run waits for did its job, or shut itself down and printed no result
  1    a guest failed, faulted or did not finish; or the manifest has errors
  2    the run could not be started
  3    time limit, panic of the hypervisor, a machine on which it doesn't start, early end of QEMU, a clock that can't be relied on, or no trace
  130  interrupted, or nobody reads the output any more")]
pub struct Run {
    #[command(flatten)]
    pub how: How,
    /// Take a trace, and write it to FILE for the Perfetto UI (https://ui.perfetto.dev)
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Record only these kinds, separated by commas [default: as the manifest says, or `default`]
    #[arg(long, value_name = "NAMES", requires = "trace", value_parser = mask)]
    pub trace_mask: Option<Mask>,
    /// Records that fit for each core, a power of two [default: as the manifest says, or 65536]
    #[arg(long, value_name = "N", requires = "trace")]
    pub trace_records: Option<u32>,
}

/// Run a system on QEMU and write what its cores did as a trace
///
/// The same as `ainori run SYSTEM --trace FILE`. The Perfetto UI (https://ui.perfetto.dev) shows the file: a track
/// for each hart and for each vCPU, and arrows from an interrupt to its handler. With --from and --to the file shows only
/// that part of the run; it begins with what ran where at that moment.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ainori trace systems/demo.toml -o demo.perfetto-trace
  ainori trace systems/demo.toml -o demo.perfetto-trace --mask all --records 1048576
  ainori trace systems/freertos.toml -o ticks.perfetto-trace --clock icount --mask switch,trap,mark
  ainori trace systems/demo.toml -o part.perfetto-trace --from 1.2s --to 1250ms

Exit code: that of `ainori run`.")]
pub struct Trace {
    #[command(flatten)]
    pub how: How,
    /// Where the trace goes
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Record only these kinds, separated by commas [default: as the manifest says, or `default`]
    #[arg(long, value_name = "NAMES", value_parser = mask)]
    pub mask: Option<Mask>,
    /// Records that fit for each core, a power of two [default: as the manifest says, or 65536]
    #[arg(long, value_name = "N")]
    pub records: Option<u32>,
    /// Show the run only from this time of the machine on, e.g. 1.2s; a whole number alone is in seconds
    #[arg(long, value_name = "TIME", requires = "to", allow_hyphen_values = true, value_parser = duration)]
    pub from: Option<Duration>,
    /// Show the run only up to this time
    #[arg(long, value_name = "TIME", requires = "from", allow_hyphen_values = true, value_parser = duration)]
    pub to: Option<Duration>,
}

/// List the policies that a manifest can name
///
/// docs/policies.md says how they work, and what each costs.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ainori policies
  ainori policies --json policies.json

Exit code: 0, or 2 if the tool was called wrongly.")]
pub struct Policies {
    /// Also write the list to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What to run, and how.
#[derive(Args)]
pub struct How {
    /// The manifest
    pub system: PathBuf,
    /// Also write everything that is known after the run to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// What time is measured in [default: as the manifest says in [run], or host]
    #[arg(long, value_enum)]
    pub clock: Option<ClockMode>,
    /// Instructions of a slice in lockstep; vary it (240 to 260) to learn the error bar [default: 250]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub q: Option<u32>,
    /// End the run after so much time of the host, e.g. 40s; a whole number alone is in seconds [default: as the manifest says in
    /// [run], or never]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = time_limit)]
    pub timeout: Option<Duration>,
    /// Type the lines of FILE, each when the guest waits at a prompt (what is piped to standard input is typed without it)
    #[arg(long = "type", value_name = "FILE")]
    pub type_file: Option<PathBuf>,
    /// The hypervisor's ELF file [default: .cache/kernel/ainori.elf of the checkout, or the one of its builds that the system needs]
    #[arg(long, value_name = "ELF", env = "AINORI_KERNEL")]
    pub kernel: Option<PathBuf>,
    /// One more argument for QEMU; can be given several times
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub qemu_arg: Vec<OsString>,
    /// Keep the image, the serial log and QEMU's command line in DIR
    #[arg(long, value_name = "DIR")]
    pub record_dir: Option<PathBuf>,
    /// Show every counter at the end; and the firmware's banner, and the records that are made into tables
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Show no consoles, only the tables at the end
    #[arg(long)]
    pub quiet: bool,
}

/// Reads a duration with its unit, as in a manifest, or a number of seconds.
fn duration(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => {
            humantime::parse_duration(text).map_err(|error| format!("{error}; for example 40s or 250ms"))
        }
    }
}

/// Reads a duration that isn't zero.
fn time_limit(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if time.is_zero() { Err("a run can't have a time limit of zero".into()) } else { Ok(time) }
}

/// Reads kinds of trace records.
fn mask(names: &str) -> Result<Mask, String> {
    Mask::from_names(names.split(',').map(str::trim)).map_err(|unknown| {
        let known: Vec<_> = Mask::names().collect();
        format!("there is no kind {unknown:?}; known: {}", known.join(", "))
    })
}

/// What time is measured in.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClockMode {
    /// The host's clock, harts in parallel: for watching and typing; delays and speeds mean nothing
    Host,
    /// Instructions of one hart, 4 ns each: exact and repeatable
    Icount,
    /// Virtual time for several harts: repeatable; 2 to 4 host seconds per virtual second
    Lockstep,
}

impl From<Clock> for ClockMode {
    fn from(clock: Clock) -> Self {
        match clock {
            Clock::Host => Self::Host,
            Clock::Icount => Self::Icount,
            Clock::Lockstep => Self::Lockstep,
        }
    }
}
