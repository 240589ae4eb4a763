//! QEMU: its process, and how it ends. Its command line is in [`super::command`].
use super::{
    ClockChoice, Options,
    command::command,
    files::{Files, RunFile},
    power::Line,
    streams::{self, Event},
};
use ainori_manifest::Board;
use miette::{Result, miette};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::{
    collections::VecDeque,
    ffi::OsString,
    io,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::SyncSender,
    },
    time::{Duration, Instant},
};

/// QEMU for 64-bit RISC-V.
pub const PROGRAM: &str = "qemu-system-riscv64";
/// How long QEMU may take to end when it is asked to.
const STOP_TIME: Duration = Duration::from_secs(5);
/// Lines of QEMU's messages that are kept: the first ones tell why it did not start, the last ones why it ended.
const FIRST_MESSAGES: usize = 20;
const LAST_MESSAGES: usize = 100;

/// The machine that QEMU is to be.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Its board.
    pub board: &'a Board,
    /// Arguments for what guests have beside the board.
    pub devices: &'a [OsString],
    /// One of these is a power button.
    pub has_power_button: bool,
    /// What it boots.
    pub image: &'a Path,
}

/// A running QEMU. It never outlives this value, nor the program.
pub struct Qemu {
    child: Child,
    status: Option<ExitStatus>,
    /// When it was asked to end.
    asked: Option<Instant>,
    /// Set when QEMU has ended, for those who follow its serial file.
    ended: Arc<AtomicBool>,
    /// Where QEMU writes the serial port's output with virtual clocks: a pipe that is full for a moment would let the host's speed
    /// into the run.
    serial: Option<RunFile>,
    /// The serial port's output as it is kept.
    log: Option<RunFile>,
    /// Why the log is not whole.
    pub log_problem: Option<String>,
    /// Where keys go, in runs with input.
    pub keys: Option<ChildStdin>,
    /// By which a guest is asked to shut down.
    power: Option<Line>,
    /// What QEMU and its plugins printed to stderr.
    pub messages: Messages,
    /// The machine has printed something.
    pub has_spoken: bool,
}

/// The first and the last lines of what may be very many.
#[derive(Debug, Default)]
pub struct Messages {
    first: Vec<String>,
    last: VecDeque<String>,
}

impl Messages {
    /// Adds a line.
    pub fn push(&mut self, line: String) {
        if self.first.len() < FIRST_MESSAGES {
            self.first.push(line);
            return;
        }
        if self.last.len() == LAST_MESSAGES {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    /// The first lines.
    pub fn first(&self) -> &[String] {
        &self.first
    }

    /// The lines that are kept, the last one first.
    pub fn backwards(&self) -> impl Iterator<Item = &String> {
        self.last.iter().rev().chain(self.first.iter().rev())
    }
}

impl Qemu {
    /// Starts QEMU. `tracing`: what it must be told for a trace, with a file that nobody else has.
    pub fn start(
        options: &Options,
        tracing: &[String],
        wanted: Wanted<'_>,
        files: Files<'_>,
    ) -> Result<Self> {
        let serial = match options.clock {
            ClockChoice::Host => None,
            // Never the log itself: QEMU would not tell that the disk is full.
            ClockChoice::Icount | ClockChoice::Lockstep { .. } => {
                Some(Files::new(None)?.create("serial.out")?)
            }
        };
        let log = if files.are_kept() { Some(files.create("serial.log")?) } else { None };
        let path = serial.as_ref().map(|file| &*file.path);
        let mut command = command(options, wanted, path, files)?;
        command.args(tracing);
        if files.are_kept() {
            // For whoever runs it again, when this program's own files are gone.
            let serial = path.map(|_| files.only_if_kept("serial.out"));
            let again = self::command(options, wanted, serial.as_deref(), files)?;
            files.write("command.txt", format!("{again:?}\n").as_bytes())?;
        }
        let keys = options.input.is_some() && options.clock == ClockChoice::Host;
        command
            .stdin(if keys { Stdio::piped() } else { Stdio::null() })
            .stdout(if serial.is_none() { Stdio::piped() } else { Stdio::null() })
            .stderr(Stdio::piped())
            // A group of its own: the terminal's Ctrl-C reaches only this program, which then ends QEMU in order.
            .process_group(0);
        die_with_parent(&mut command);
        let power = wanted.has_power_button.then(|| Line::open(&mut command)).transpose();
        let power = power.map_err(|error| miette!("no line to {PROGRAM} can be had: {error}"))?;
        let mut child = command.spawn().map_err(|error| miette!("{PROGRAM} can't be started: {error}"))?;
        let keys = child.stdin.take();
        Ok(Self {
            child,
            status: None,
            asked: None,
            ended: Arc::default(),
            serial,
            log,
            log_problem: None,
            keys,
            power,
            messages: Messages::default(),
            has_spoken: false,
        })
    }

    /// Starts to send what QEMU says. The channel closes when QEMU has ended and all has been sent.
    pub fn listen(&mut self, sender: SyncSender<Event>) -> Result<()> {
        match &self.serial {
            None => {
                let stdout = self.child.stdout.take().expect("piped, and taken only here");
                streams::read_serial(stdout, sender.clone());
            }
            Some(serial) => {
                let failed = |error| miette!("the serial port's output can't be read: {error}");
                let file = serial.file.try_clone().map_err(failed)?;
                streams::follow_serial(file, false, self.ended.clone(), sender.clone());
            }
        }
        let stderr = self.child.stderr.take().expect("piped, and taken only here");
        streams::read_messages(stderr, sender);
        Ok(())
    }

    /// Writes serial output to the log if one is kept. A log that can't be written does not end the run.
    pub fn record(&mut self, bytes: &[u8]) {
        self.has_spoken = true;
        if let Some(Err(why)) = self.log.as_mut().map(|log| log.append(bytes)) {
            self.log_problem = Some(why.to_string());
            self.log = None;
        }
    }

    /// Presses the power button, if there is one.
    pub fn press_power_button(&mut self) {
        if let Some(line) = &mut self.power {
            line.press();
        }
    }

    /// True if QEMU has ended.
    pub fn poll(&mut self) -> bool {
        if self.status.is_none() {
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            if let Ok(None) = waitid(WaitId::Pid(Pid::from_child(&self.child)), look) {
                return false;
            }
            // It is not waited for yet, so its number is still its group's: whatever it started ends with it.
            kill_group(&self.child);
            // An error would mean that somebody else has waited for it: it has ended as well.
            self.status = Some(self.child.wait().unwrap_or_else(|_| ExitStatus::from_raw(0)));
            self.ended.store(true, Ordering::Release);
        }
        true
    }

    /// Asks QEMU to end, and forces it once it has had the time. To be called again and again until [`Self::poll`] says so.
    pub fn ask_to_end(&mut self) {
        match self.asked {
            None => {
                self.asked = Some(Instant::now());
                // It fails only if QEMU has just ended, which is what is wanted.
                let _ = kill_process_group(Pid::from_child(&self.child), Signal::TERM);
            }
            Some(asked) if asked.elapsed() >= STOP_TIME => kill_group(&self.child),
            Some(_) => {}
        }
    }

    /// Waits until QEMU has ended; for when it has said all it had to say. Should it not end, it is stopped.
    pub fn finish(&mut self) {
        let deadline = Instant::now() + STOP_TIME;
        while !self.poll() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.stop();
    }

    /// Ends QEMU, in order if it does so in time. Returns when it has ended.
    pub fn stop(&mut self) {
        while !self.poll() {
            self.ask_to_end();
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// How QEMU ended.
    pub fn status(&self) -> String {
        self.status.map_or_else(|| "running".into(), |status| status.to_string())
    }

    /// Why QEMU ended, for a run that should have ended otherwise.
    pub fn last_words(&self) -> String {
        let mut messages: Vec<&str> = self.messages.backwards().take(5).map(String::as_str).collect();
        messages.reverse();
        let messages = if messages.is_empty() { "it printed nothing".into() } else { messages.join("; ") };
        let status = self.status();
        format!("QEMU ended ({status}) before the hypervisor had reported its end: {messages}")
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Kills a child and what it has started, if it has a group of its own and was not waited for yet.
pub fn kill_group(child: &Child) {
    // It fails only if all of them have ended, which is what is wanted.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

/// Lets the system end QEMU should this program be killed, so that no emulator is left behind.
pub fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let ask = move || -> io::Result<()> {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // The parent may have died before that: then nobody would send the signal any more.
        if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    };
    // SAFETY: between fork and exec the closure makes two system calls (prctl, getppid). It takes no lock, does not
    // allocate (an `ErrorKind` and an errno are stored inline) and touches no memory but its own.
    unsafe { command.pre_exec(ask) };
}

/// What the lockstep plugin says in its last line: times stuck, and the hash of the schedule.
pub fn lockstep_summary(messages: &Messages) -> (Option<u64>, Option<String>) {
    let fields = |line: &str| -> Option<(u64, String)> {
        let field = |name: &str| {
            line.split_whitespace().filter_map(|word| word.split_once('=')).find(|(key, _)| *key == name)
        };
        line.strip_prefix("lockstep: ")?;
        Some((field("stuck")?.1.parse().ok()?, field("hash")?.1.to_owned()))
    };
    messages.backwards().find_map(|line| fields(line)).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages<'a>(lines: impl IntoIterator<Item = &'a str>) -> Messages {
        let mut messages = Messages::default();
        lines.into_iter().for_each(|line| messages.push(line.to_owned()));
        messages
    }

    #[test]
    fn the_last_line_of_the_lockstep_plugin_counts() {
        let lines = [
            "lockstep: T=5 hash=00aa",
            "lockstep: T=1 q=250 ns=4 harts=4 slices=9 rounds=3 jumps=0 timers=1 stuck=0 hash=00000000deadbeef",
            "something else",
        ];
        assert_eq!(lockstep_summary(&messages(lines)), (Some(0), Some("00000000deadbeef".into())));
        assert_eq!(lockstep_summary(&messages([lines[0]])), (None, None));
        let many = std::iter::repeat_n("rubbish", 10_000);
        let all = messages(many.clone().chain(lines));
        assert_eq!(lockstep_summary(&all).0, Some(0));
        assert_eq!(all.backwards().count(), FIRST_MESSAGES + LAST_MESSAGES, "no more are kept");
    }
}
