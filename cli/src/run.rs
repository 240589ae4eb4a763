//! `ainori run`: builds a system's image, runs it on QEMU, and watches it until its end.
mod command;
pub(crate) mod files;
mod input;
mod keyboard;
mod monitor;
mod power;
pub(crate) mod qemu;
mod refusal;
mod screen;
pub(crate) mod streams;
mod trace;
mod typist;
pub mod version;
mod virtio;

pub use command::LOCKSTEP;
pub use files::KEPT;
pub use input::Input;
pub use screen::Console;
pub use trace::Tracing;

use crate::{
    image::{self, Kernel},
    report::{Clock, GuestReport, Host, Outcome, RunReport},
};
use ainori_manifest::{Manifest, PowerButton};
use files::Files;
use indicatif::ProgressBar;
use input::{Attached, Prepared};
use miette::{Report, Result, miette};
use monitor::Monitor;
use qemu::Qemu;
use screen::Screen;
use std::{
    ffi::OsString,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::RecvTimeoutError,
    },
    time::{Duration, Instant},
};
use streams::Event;

/// How long QEMU may take to end by itself once the hypervisor has said its last word, or to print the rest of a panic.
const GRACE: Duration = Duration::from_secs(2);
/// How often the loop looks at the clock and at what the user wants.
const TICK: Duration = Duration::from_millis(40);

/// What to run, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The manifest.
    pub system: PathBuf,
    /// The hypervisor's ELF file; `None`: the checkout's own.
    pub kernel: Option<PathBuf>,
    /// What time is measured in.
    pub clock: ClockChoice,
    /// Where the machine's random numbers begin, for runs in virtual time.
    pub seed: u32,
    /// Most host time that the run may take.
    pub timeout: Option<Duration>,
    /// More arguments for QEMU.
    pub qemu_args: Vec<OsString>,
    /// Where the image, the serial log and QEMU's messages are kept; `None`: nowhere.
    pub record_dir: Option<PathBuf>,
    /// What is shown while it runs.
    pub console: Console,
    /// What is typed, for the guest that has the console's input. Only with [`ClockChoice::Host`]: when a key arrives would depend
    /// on the host.
    pub input: Option<Input>,
    /// Set it to end the run early.
    pub stop: Arc<AtomicBool>,
    /// Nobody wants the run any more once nobody reads what it shows (`| head`).
    pub ends_with_reader: bool,
    /// A trace to be taken.
    pub trace: Option<Tracing>,
}

impl Options {
    /// See [`Self::seed`].
    pub const DEFAULT_SEED: u32 = 1;

    /// A quiet run in host time without limit: for programs.
    pub fn new(system: impl Into<PathBuf>) -> Self {
        Self {
            system: system.into(),
            kernel: None,
            clock: ClockChoice::Host,
            seed: Self::DEFAULT_SEED,
            timeout: None,
            qemu_args: Vec::new(),
            record_dir: None,
            console: Console::Quiet,
            input: None,
            stop: Arc::default(),
            ends_with_reader: false,
            trace: None,
        }
    }
}

/// What time is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockChoice {
    /// Host time, all harts in parallel: fast, and different each time.
    Host,
    /// Virtual time by counting instructions: exact, one hart only.
    Icount,
    /// Lockstep virtual time: repeatable, several harts.
    Lockstep {
        /// Instructions of each hart's slice.
        q: u32,
    },
}

impl ClockChoice {
    /// Virtual nanoseconds of one instruction, where time is virtual.
    const NS: u32 = 4;

    /// As it stands in a report, before the run.
    pub(crate) fn in_report(self) -> Clock {
        match self {
            Self::Host => Clock::Host,
            Self::Icount => Clock::Icount,
            Self::Lockstep { q } => Clock::Lockstep { q, ns: Self::NS, stuck: None, hash: None },
        }
    }
}

/// Runs a system to its end, in the time that [`Options::clock`] says. An error means that it could not be started; all else is
/// in the report.
pub fn run(options: &Options) -> Result<RunReport> {
    let manifest = Manifest::load(&options.system).map_err(|findings| Report::new(*findings))?;
    run_manifest(options, &manifest)
}

/// Runs a manifest that is loaded already; [`Options::system`] only names it in messages.
pub fn run_manifest(options: &Options, manifest: &Manifest) -> Result<RunReport> {
    let harts = manifest.board.harts;
    if options.clock == ClockChoice::Icount && harts != 1 {
        return Err(miette!(
            help = "use --clock lockstep, or a system with harts = 1",
            "--clock icount counts the instructions of one hart, but the board of {} has {harts}",
            options.system.display()
        ));
    }
    if options.clock != ClockChoice::Host && options.input.is_some() {
        return Err(miette!(
            help = "use --clock host; a command that Linux shall run by itself can be an argument in the manifest",
            "typing needs the host's clock: in virtual time, when a key arrives would be different in each run"
        ));
    }
    // A limit that no clock comes to is none.
    let deadline = options.timeout.and_then(|limit| Instant::now().checked_add(limit));
    let input = options.input.as_ref().map(Input::prepare).transpose()?;
    let files = Files::new(options.record_dir.as_deref())?;
    let Some(version) = version::version(deadline, &options.stop)? else {
        return Ok(not_begun(&options.stop, report(options, manifest, "unknown".into())));
    };
    let mut manifest = manifest.clone();
    let mut recording =
        options.trace.as_ref().map(|wanted| trace::Recording::prepare(wanted, &mut manifest)).transpose()?;

    let progress = match options.console {
        Console::Quiet => ProgressBar::hidden(),
        Console::Guests | Console::Everything => ProgressBar::new_spinner(),
    };
    let devices = virtio::Devices::prepare(&manifest)?;
    progress.enable_steady_tick(Duration::from_millis(100));
    progress.set_message(format!("building the image of {}", manifest.system.name));
    let kernel = Kernel::load(options.kernel.as_deref(), manifest.needs())?;
    let room = kernel.has.room;
    let bytes = image::build(&manifest, kernel)?.bytes;
    let image = files.write("image.bin", &bytes)?;
    progress.finish_and_clear();
    let tracing = recording.as_mut().map(|recording| {
        recording.image(bytes.len(), room);
        recording.qemu_args(manifest.board.memory)
    });
    let tracing = tracing.as_ref().map_or(&[][..], |arguments| arguments);

    if options.console != Console::Quiet {
        // To where what this program says of itself goes: the guests have stdout.
        devices.told.iter().for_each(|line| anstream::eprintln!("{line}"));
    }

    let started = Instant::now();
    let wanted = qemu::Wanted {
        board: &manifest.board,
        devices: &devices.arguments,
        has_power_button: manifest.power.is_some(),
        image: &image.path,
    };
    let mut machine = Qemu::start(options, tracing, wanted, files)?;
    let mut monitor = Monitor::new(&manifest.system);
    let names: Vec<String> = manifest.system.guests.iter().map(|guest| guest.name.clone()).collect();
    let mut screen = Screen::new(options.console, names);
    let power = manifest.power.map(|button| Power { button, pressed: None, stopped: None });
    let watched = watch(options, deadline, input, &mut machine, &mut monitor, &mut screen, power)?;
    screen.finish();
    if watched.cause == Cause::Ended && !machine.has_spoken {
        return Err(refusal::refusal(machine.messages.first(), &machine.status(), &manifest.board));
    }

    let mut report = report(options, &manifest, version);
    report.host.seconds = started.elapsed().as_secs_f64();
    monitor.into_report(&mut report);
    conclude(&mut report, &watched, &machine);
    if let Some(recording) = recording {
        recording.save(&mut report);
    }
    report.keep_telling_consoles();
    Ok(report)
}

/// The report of a run that has not begun.
fn report(options: &Options, manifest: &Manifest, qemu: String) -> RunReport {
    RunReport {
        system: manifest.system.name.clone(),
        outcome: Outcome::Good,
        problems: Vec::new(),
        clock: options.clock.in_report(),
        qemu,
        board: None,
        guests: manifest.system.guests.iter().map(GuestReport::new).collect(),
        cores: Vec::new(),
        end: None,
        console: Default::default(),
        trace: None,
        host: Host::default(),
    }
}

/// Of a run that was ended while QEMU was asked for its version.
fn not_begun(stop: &AtomicBool, report: RunReport) -> RunReport {
    let interrupted = stop.load(Ordering::Relaxed);
    RunReport {
        outcome: if interrupted { Outcome::Interrupted } else { Outcome::TimeLimit },
        problems: vec![format!("{} had not told its version by then, so nothing was started", qemu::PROGRAM)],
        ..report
    }
}

/// Why the watching ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// QEMU ended, or was ended after the hypervisor's last word.
    Ended,
    TimeLimit,
    Interrupted,
}

/// How the watching ended.
struct Watched {
    cause: Cause,
    /// What of the input nobody was there to take, in words.
    not_typed: Option<String>,
}

/// The power button of a guest, and when it was pressed.
struct Power {
    button: PowerButton,
    pressed: Option<Instant>,
    /// When its guest was seen to have shut down.
    stopped: Option<Instant>,
}

impl Power {
    /// The user wants the run to end. Is there still something to wait for? The second time that the user wants it, there isn't.
    fn is_waited_for(&mut self, options: &Options, machine: &mut Qemu, monitor: &Monitor) -> bool {
        let guest = self.button.guest;
        if monitor.is_over() {
            return false;
        }
        if monitor.has_stopped(guest) {
            // Unless others run on, the hypervisor is about to tell its end.
            return self.stopped.get_or_insert_with(Instant::now).elapsed() < GRACE;
        }
        let Some(pressed) = self.pressed else {
            options.stop.store(false, Ordering::Relaxed);
            self.pressed = Some(Instant::now());
            machine.press_power_button();
            if options.console != Console::Quiet {
                anstream::eprintln!(
                    "{} is asked to shut down, and has {} s for that; Ctrl-C once more ends the run at once",
                    monitor.name(guest),
                    self.button.patience.as_secs()
                );
            }
            return true;
        };
        !options.stop.load(Ordering::Relaxed) && pressed.elapsed() < self.button.patience
    }
}

/// Feeds everything that the machine says to the monitor and the screen until the machine has ended. Nothing that QEMU does, or
/// leaves undone, holds it up: when it is to end, it gets the time to do so, and then it is ended.
fn watch(
    options: &Options,
    deadline: Option<Instant>,
    input: Option<Prepared>,
    machine: &mut Qemu,
    monitor: &mut Monitor,
    screen: &mut Screen,
    mut power: Option<Power>,
) -> Result<Watched> {
    let (sender, events) = streams::channel();
    machine.listen(sender)?;
    let mut input = input.zip(machine.keys.take()).map(|(input, keys)| Attached::new(input, keys));
    let mut last_words: Option<Instant> = None;
    let mut ended: Option<Instant> = None;
    let mut cause = None;
    loop {
        match events.recv_timeout(TICK) {
            Ok(Event::Serial(bytes)) => {
                machine.record(&bytes);
                let heard = monitor
                    .feed(&bytes, |source, part, text, meaning| screen.line(source, part, text, meaning));
                screen.partial(monitor.partial());
                if let Some(input) = &mut input {
                    input.lives(monitor.life_of_listener());
                    if let Some((text, whole)) = heard {
                        input.hear(&text, whole);
                    }
                }
            }
            Ok(Event::Message(line)) => machine.messages.push(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if machine.poll() {
            // What is left in the pipes still comes. But who knows who else has them.
            if ended.get_or_insert_with(Instant::now).elapsed() >= GRACE {
                break;
            }
            continue;
        }
        if let Some(input) = input.as_mut().filter(|_| !monitor.is_over()) {
            input.go_on();
        }
        if monitor.is_over() && last_words.is_none() {
            last_words = Some(Instant::now());
        }
        if cause.is_none() {
            let is_asked = power.as_ref().is_some_and(|power| power.pressed.is_some());
            if is_asked
                || options.stop.load(Ordering::Relaxed)
                || options.ends_with_reader && screen.is_gone()
            {
                let waits =
                    power.as_mut().is_some_and(|power| power.is_waited_for(options, machine, monitor));
                // Who has been asked to shut down has done so, and the machine ends by itself.
                let is_ending = is_asked && last_words.is_some_and(|since| since.elapsed() < GRACE);
                if !waits && !is_ending {
                    cause = Some(Cause::Interrupted);
                }
            } else if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                cause = Some(Cause::TimeLimit);
            } else if last_words.is_some_and(|since| since.elapsed() >= GRACE) {
                cause = Some(Cause::Ended);
            }
        }
        if cause.is_some() {
            machine.ask_to_end();
        }
    }
    machine.finish();
    if power.is_some_and(|power| power.pressed.is_some()) {
        // Whoever asks later finds that the user has ended the run.
        options.stop.store(true, Ordering::Relaxed);
        cause.get_or_insert(Cause::Interrupted);
    }
    let not_typed = input.and_then(|mut input| input.left());
    Ok(Watched { cause: cause.unwrap_or(Cause::Ended), not_typed })
}

/// Decides the outcome of the whole run.
fn conclude(report: &mut RunReport, watched: &Watched, machine: &Qemu) {
    let cause = watched.cause;
    let problems = &mut report.problems;
    let told = report.outcome;
    let mut clock_valid = true;
    if let Clock::Lockstep { stuck, hash, .. } = &mut report.clock {
        (*stuck, *hash) = qemu::lockstep_summary(&machine.messages);
        if cause == Cause::Ended && *stuck != Some(0) {
            clock_valid = false;
            problems.push(match stuck {
                Some(times) => format!("the lockstep clock was stuck {times} times"),
                None => "the lockstep plugin did not print its last line".into(),
            });
        }
    }
    problems.extend(machine.log_problem.clone());
    if let Some(lines) = &watched.not_typed {
        problems.push(format!("{lines} not typed: the guest that gets them, or the run, ended first"));
    }
    if report.clock == Clock::Host {
        problems.extend(report.guests.iter().filter(|guest| guest.missed()).map(|guest| {
            format!(
                "{} missed deadlines, but by the host's clock, by which delays mean nothing: whether it misses any is seen with \
                 clock = \"lockstep\" in [run] of the manifest, or --clock lockstep",
                guest.name
            )
        }));
    }
    if cause != Cause::Ended && report.board.is_none() {
        problems.push("the hypervisor had not told of its board by then, so no guest was started".into());
    }
    report.outcome = match cause {
        Cause::Interrupted => Outcome::Interrupted,
        Cause::TimeLimit => Outcome::TimeLimit,
        Cause::Ended if told != Outcome::Good => told,
        Cause::Ended if report.end.is_none() => {
            problems.push(machine.last_words());
            Outcome::QemuDied
        }
        Cause::Ended if !clock_valid => Outcome::ClockInvalid,
        Cause::Ended => Outcome::of(&report.guests),
    };
}
