//! The program `ainori`: arguments in, exit code out. The work is in the library.
mod args;

use ainori::{
    apart::Apart,
    check::CheckReport,
    deadlines::{Deadlines, Problem, Weight},
    gantt,
    image::{self, Kernel},
    output::Output,
    policies::Policy,
    report::{NotStarted, RunReport},
    run::{self, ClockChoice, Console, Input, Options, Tracing},
    table::{self, Detail},
};
use ainori_manifest::{Findings, Manifest};
use ainori_trace::host::Window;
use args::{Build, Check, Cli, ClockMode, Command, How, Policies, Run, Trace};
use clap::{CommandFactory, Parser, error::ErrorKind};
use miette::{Report, Result, Severity, miette};
use serde::Serialize;
use std::{
    io::{self, Write},
    path::Path,
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// Exit code for a manifest with errors.
const WRONG_MANIFEST: u8 = 1;
/// Exit code if what was asked for could not be started.
const NOT_STARTED: u8 = 2;
/// Instructions of a lockstep slice: 1 us at 4 ns each.
const DEFAULT_Q: u32 = 250;

fn main() -> ExitCode {
    let done = match Cli::try_parse() {
        Ok(cli) => command(cli.command),
        Err(wrong) if wrong.use_stderr() => wrong.exit(),
        // Help and the version are output like any other.
        Err(told) => show(&told.render().ansi().to_string()).map(|()| 0),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(report) => {
            let code = if report.downcast_ref::<Findings>().is_some() { WRONG_MANIFEST } else { NOT_STARTED };
            // Where nobody reads the message, the exit code still tells.
            let _ = write!(anstream::stderr(), "{report:?}");
            ExitCode::from(code)
        }
    }
}

fn command(command: Command) -> Result<u8> {
    match command {
        Command::Check(arguments) => check(&arguments),
        Command::Build(arguments) => build(&arguments),
        Command::Run(arguments) => run(&arguments),
        Command::Trace(arguments) => trace(&arguments),
        Command::Policies(arguments) => policies(&arguments),
        Command::Bench(arguments) => {
            stop_on_signals().and_then(|stop| ainori::bench::command(&arguments, &stop))
        }
    }
}

fn check(arguments: &Check) -> Result<u8> {
    Apart::of_system(&arguments.system)
        .writes("--json", arguments.json.as_deref())
        .writes("--gantt", arguments.gantt.as_deref())
        .check()?;
    let (json, gantt) = (prepare(arguments.json.as_deref())?, prepare(arguments.gantt.as_deref())?);
    let checked = Manifest::load(&arguments.system);
    let deadlines =
        checked.as_ref().ok().map(|manifest| Deadlines::of(manifest, arguments.mips)).transpose()?;
    let file = arguments.system.display().to_string();
    let found = checked.as_ref().map_err(|findings| &**findings);
    write_json(json, &CheckReport::new(&file, found, deadlines.as_ref()))?;
    let mut manifest = checked.map_err(|findings| Report::new(*findings))?;
    show(&table::system(&manifest))?;
    let Some(deadlines) = deadlines else { return Ok(0) };
    show(&table::deadlines(&deadlines))?;
    if let Some(gantt) = gantt {
        gantt.write(gantt::svg(&deadlines)?.as_bytes())?;
    }
    warn(&mut manifest);
    tell(&file, &deadlines);
    Ok(if deadlines.is_missed() { WRONG_MANIFEST } else { 0 })
}

/// Deadlines that may be missed, and those of which nothing can be said.
fn tell(file: &str, deadlines: &Deadlines) {
    for Problem { weight, line, message, help } in deadlines.problems() {
        let severity = if weight == Weight::Error { Severity::Error } else { Severity::Warning };
        let report = miette!(severity = severity, help = help, "{file}:{line}: {message}");
        // Where nobody reads them, the exit code tells.
        let _ = write!(anstream::stderr(), "{report:?}");
    }
}

/// What the system may not be meant to be.
fn warn(manifest: &mut Manifest) {
    if let Some(warnings) = manifest.warnings.take() {
        // Where nobody reads them, the system is right all the same.
        let _ = write!(anstream::stderr(), "{:?}", Report::new(*warnings));
    }
}

fn build(arguments: &Build) -> Result<u8> {
    Apart::of_system(&arguments.system)
        .reads_hypervisor(arguments.kernel.as_deref())
        .writes("--output", Some(&arguments.output))
        .writes("--json", arguments.json.as_deref())
        .check()?;
    let (output, json) = (Output::prepare(&arguments.output)?, prepare(arguments.json.as_deref())?);
    let manifest = Manifest::load(&arguments.system).map_err(|findings| Report::new(*findings))?;
    let image = image::build(&manifest, Kernel::load(arguments.kernel.as_deref(), manifest.needs())?)?;
    output.write(&image.bytes)?;
    write_json(json, &image.sizes)?;
    show(&table::sizes(&image.sizes))?;
    Ok(0)
}

fn run(arguments: &Run) -> Result<u8> {
    let tracing = arguments.trace.as_ref().map(|file| Tracing {
        file: file.clone(),
        mask: arguments.trace_mask,
        records: arguments.trace_records,
        window: None,
    });
    run_system(&arguments.how, "--trace", tracing)
}

fn trace(arguments: &Trace) -> Result<u8> {
    let Trace { how, output, mask, records, from, to } = arguments;
    let window = from.zip(*to).map(|(from, to)| window(from, to));
    let tracing = Tracing { file: output.clone(), mask: *mask, records: *records, window };
    run_system(how, "--output", Some(tracing))
}

fn policies(arguments: &Policies) -> Result<u8> {
    let json = prepare(arguments.json.as_deref())?;
    let policies = Policy::all();
    write_json(json, &policies)?;
    show(&table::policies(&policies))?;
    Ok(0)
}

/// The part of the run that a trace shall show.
fn window(from: Duration, to: Duration) -> Window {
    // More nanoseconds than 64 bits have no trace can reach, which is told after the run.
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let backwards = "--to must be later than --from";
    Window::new(nanoseconds(from), nanoseconds(to))
        .unwrap_or_else(|| refuse(ErrorKind::ValueValidation, backwards))
}

/// `output` is the option that names the trace.
fn run_system(how: &How, output: &str, trace: Option<Tracing>) -> Result<u8> {
    Apart::of_system(&how.system)
        .reads_hypervisor(how.kernel.as_deref())
        .reads("the file of --type", how.type_file.as_deref())
        .reads("standard input", Some(Path::new("/dev/stdin")))
        .reads_plugin()
        .writes(output, trace.as_ref().map(|trace| &*trace.file))
        .writes("--json", how.json.as_deref())
        .keeps(how.record_dir.as_deref())
        .check()?;
    let json = prepare(how.json.as_deref())?;
    let ends_with_reader = json.is_none() && trace.is_none() && how.record_dir.is_none();
    let report = match start(how, trace, ends_with_reader) {
        Ok(report) => report,
        Err(why) => {
            // What stands in the file is of another run. Why this one wasn't started counts more than that the file can't be written.
            let _ = write_json(json, &NotStarted::new(&why));
            return Err(why);
        }
    };
    let detail = if how.verbose { Detail::Everything } else { Detail::Summary };
    // The file first: should nobody be there to read the table, or the disk under it be full, the file is there.
    write_json(json, &report)?;
    show(&format!("\n{}", table::run(&report, detail)))?;
    Ok(report.outcome.exit_code())
}

/// Runs a system to its end. `ends_with_reader`: see [`Options::ends_with_reader`].
fn start(how: &How, trace: Option<Tracing>, ends_with_reader: bool) -> Result<RunReport> {
    let mut manifest = Manifest::load(&how.system).map_err(|findings| Report::new(*findings))?;
    warn(&mut manifest);
    let clock = clock(how, &manifest);
    let options = Options {
        system: how.system.clone(),
        kernel: how.kernel.clone(),
        clock,
        seed: Options::DEFAULT_SEED,
        timeout: how.timeout.or(manifest.run.time_limit),
        qemu_args: how.qemu_arg.clone(),
        input: match &how.type_file {
            Some(file) => Some(Input::File(file.clone())),
            None => Input::of_stdin().filter(|_| clock == ClockChoice::Host),
        },
        record_dir: how.record_dir.clone(),
        console: match how {
            How { quiet: true, .. } => Console::Quiet,
            How { verbose: true, .. } => Console::Everything,
            _ => Console::Guests,
        },
        stop: stop_on_signals()?,
        ends_with_reader,
        trace,
    };
    run::run_manifest(&options, &manifest)
}

/// Ends with an error in the arguments that only several of them together make, and with the usage of the command that they were given to.
fn refuse(kind: ErrorKind, message: &str) -> ! {
    let mut cli = Cli::command();
    cli.build();
    let name = std::env::args().nth(1).unwrap_or_default();
    match cli.find_subcommand_mut(&name) {
        Some(command) => command.error(kind, message).exit(),
        None => cli.error(kind, message).exit(),
    }
}

/// The clock that the arguments ask for, or else the manifest.
fn clock(how: &How, manifest: &Manifest) -> ClockChoice {
    let conflict = "--q goes only with the clock lockstep: add --clock lockstep, or leave --q out";
    match (how.clock.unwrap_or(manifest.run.clock.into()), how.q) {
        (ClockMode::Lockstep, q) => ClockChoice::Lockstep { q: q.unwrap_or(DEFAULT_Q) },
        (_, Some(_)) => refuse(ErrorKind::ArgumentConflict, conflict),
        (ClockMode::Host, None) => ClockChoice::Host,
        (ClockMode::Icount, None) => ClockChoice::Icount,
    }
}

/// A flag that Ctrl-C and a polite kill set, so that the run ends in order.
fn stop_on_signals() -> Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    let ignored = if is_ignored(SIGHUP) { Some(SIGHUP) } else { None };
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT].into_iter().filter(|signal| Some(*signal) != ignored) {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| miette!("signals can't be caught: {error}"))?;
    }
    Ok(stop)
}

/// Was this program started so that the signal does nothing? `nohup` does that with SIGHUP. If the system can't tell: no.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 != 0
}

fn prepare(file: Option<&Path>) -> Result<Option<Output>> {
    file.map(Output::prepare).transpose()
}

fn write_json(output: Option<Output>, value: &impl Serialize) -> Result<()> {
    let Some(output) = output else { return Ok(()) };
    let json = serde_json::to_string_pretty(value)
        .map_err(|error| miette!("the report has no JSON form: {error}"))?;
    output.write((json + "\n").as_bytes())
}

/// Prints to standard output. A reader who has seen enough (`| head`) is no error.
fn show(text: &str) -> Result<()> {
    let mut out = anstream::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(miette!("standard output can't be written: {error}"))
        }
        _ => Ok(()),
    }
}
