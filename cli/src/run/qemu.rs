//! QEMU: its command line, its process, and how it ends.
use super::{
    ClockChoice, Options,
    streams::{self, Event},
};
use crate::checkout;
use ainori_manifest::Board;
use miette::{Result, miette};
use std::{
    fs::File,
    io::{self, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::Sender,
    },
    time::{Duration, Instant},
};

/// QEMU for 64-bit RISC-V.
pub const PROGRAM: &str = "qemu-system-riscv64";
/// Oldest QEMU that the project is tested with.
const MIN_MAJOR: u32 = 10;
/// How long QEMU may take to end when it is asked to.
const STOP_TIME: Duration = Duration::from_secs(5);

/// A running QEMU. It never outlives this value, nor the program.
pub struct Qemu {
    child: Child,
    status: Option<ExitStatus>,
    /// Set when QEMU has ended, for those who follow its serial file.
    ended: Arc<AtomicBool>,
    serial: SerialPort,
    /// Where keys go, in interactive runs.
    pub keys: Option<ChildStdin>,
    /// What QEMU and its plugins printed to stderr.
    pub messages: Vec<String>,
}

/// Where the serial port's output goes.
enum SerialPort {
    /// To QEMU's stdout, and from here to a log if there is one.
    Pipe(Option<File>),
    /// To a file. Used with virtual clocks: a pipe that is full for a moment would let the host's speed into the run.
    File(PathBuf),
}

/// The version of the installed QEMU, e.g. `10.0.2 (Debian 1:10.0.2+ds-2)`.
pub fn version() -> Result<String> {
    let help = "install Debian's qemu-system-misc (qemu-system-riscv in Debian 13); `make setup` does it";
    let output = Command::new(PROGRAM)
        .arg("--version")
        .output()
        .map_err(|error| miette!(help = help, "{PROGRAM} can't be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version =
        text.lines().next().and_then(|line| line.split_once("version ")).map(|(_, version)| version.trim());
    let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    match (version, major) {
        (Some(version), Some(major)) if major >= MIN_MAJOR => Ok(version.to_owned()),
        (Some(version), Some(_)) => {
            Err(miette!(help = help, "{PROGRAM} has version {version}, but {MIN_MAJOR}.0 or later is needed"))
        }
        _ => Err(miette!(help = help, "{PROGRAM} --version said something unexpected: {text:?}")),
    }
}

impl Qemu {
    /// Starts QEMU with an image. Files that it writes go to `folder`.
    pub fn start(options: &Options, board: &Board, image: &Path, folder: &Path) -> Result<Self> {
        let log = folder.join("serial.log");
        let serial = match options.clock {
            ClockChoice::Host if options.record_dir.is_some() => SerialPort::Pipe(Some(create(&log)?)),
            ClockChoice::Host => SerialPort::Pipe(None),
            ClockChoice::Icount | ClockChoice::Lockstep { .. } => {
                create(&log)?; // empty, so that it can be followed from now on
                SerialPort::File(log)
            }
        };
        let keys = options.interactive && options.clock == ClockChoice::Host;
        let mut command = command(options, board, image, folder, &serial)?;
        if options.record_dir.is_some() {
            checkout::write(&folder.join("command.txt"), format!("{command:?}\n").as_bytes())?;
        }
        command
            .stdin(if keys { Stdio::piped() } else { Stdio::null() })
            .stdout(if matches!(serial, SerialPort::Pipe(_)) { Stdio::piped() } else { Stdio::null() })
            .stderr(Stdio::piped())
            // A group of its own: the terminal's Ctrl-C reaches only this program, which then ends QEMU in order.
            .process_group(0);
        die_with_parent(&mut command);
        let mut child = command.spawn().map_err(|error| miette!("{PROGRAM} can't be started: {error}"))?;
        let keys = child.stdin.take();
        Ok(Self { child, status: None, ended: Arc::default(), serial, keys, messages: Vec::new() })
    }

    /// Starts to send what QEMU says. The channel closes when QEMU has ended and all has been sent.
    pub fn listen(&mut self, sender: Sender<Event>) -> Result<()> {
        match &self.serial {
            SerialPort::Pipe(_) => {
                let stdout = self.child.stdout.take().expect("piped, and taken only here");
                streams::read_serial(stdout, sender.clone());
            }
            SerialPort::File(path) => {
                let file = File::open(path).map_err(|error| miette!("{}: {error}", path.display()))?;
                streams::follow_serial(file, self.ended.clone(), sender.clone());
            }
        }
        let stderr = self.child.stderr.take().expect("piped, and taken only here");
        streams::read_messages(stderr, sender);
        Ok(())
    }

    /// Writes serial output to the log if there is one that QEMU doesn't write itself.
    pub fn record(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.serial {
            SerialPort::Pipe(Some(log)) => {
                log.write_all(bytes).map_err(|error| miette!("the serial log can't be written: {error}"))
            }
            SerialPort::Pipe(None) | SerialPort::File(_) => Ok(()),
        }
    }

    /// True if QEMU has ended.
    pub fn poll(&mut self) -> bool {
        if self.status.is_none() {
            // An error would mean that somebody else has waited for it: it has ended as well.
            self.status = self.child.try_wait().unwrap_or_else(|_| Some(ExitStatus::from_raw(0)));
            self.ended.store(self.status.is_some(), Ordering::Release);
        }
        self.status.is_some()
    }

    /// Waits until QEMU has ended; for when it has said all it had to say. Should it not end, it is stopped.
    pub fn finish(&mut self) {
        if !self.ends_within(STOP_TIME) {
            self.stop();
        }
    }

    fn ends_within(&mut self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        while !self.poll() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.poll()
    }

    /// Ends QEMU, in order if it does so in time. Returns when it has ended.
    pub fn stop(&mut self) {
        if self.poll() {
            return;
        }
        let group = rustix::process::Pid::from_child(&self.child);
        // It fails only if QEMU has just ended, which is what is wanted.
        let _ = rustix::process::kill_process(group, rustix::process::Signal::TERM);
        if !self.ends_within(STOP_TIME) {
            let _ = self.child.kill();
            self.status = self.child.wait().ok();
            self.ended.store(true, Ordering::Release);
        }
    }

    /// Why QEMU ended, for a run that should have ended otherwise.
    pub fn last_words(&self) -> String {
        let status = self.status.map_or_else(|| "running".into(), |status| status.to_string());
        let messages = self.messages[self.messages.len().saturating_sub(5)..].join("; ");
        let messages = if messages.is_empty() { "it printed nothing".into() } else { messages };
        format!("QEMU ended ({status}) before the hypervisor had reported its end: {messages}")
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        self.stop();
    }
}

fn create(path: &Path) -> Result<File> {
    File::create(path).map_err(|error| miette!("{} can't be written: {error}", path.display()))
}

/// QEMU's command line.
fn command(
    options: &Options,
    board: &Board,
    image: &Path,
    folder: &Path,
    serial: &SerialPort,
) -> Result<Command> {
    let mut command = Command::new(PROGRAM);
    let machine = match board.machine.as_str() {
        // With ACLINT, harts can ring each other from supervisor mode, without the firmware.
        "qemu-virt" => "virt,aclint=on",
        other => {
            return Err(miette!("ainori run can't run on the board {other:?}: copy the image there instead"));
        }
    };
    command.args(["-M", machine, "-cpu", &board.cpu]);
    command.args(["-smp", &board.harts.to_string(), "-m", &format!("{}M", board.memory >> 20)]);
    command.args(["-display", "none", "-monitor", "none", "-no-reboot", "-bios", "default"]);
    command.arg("-kernel").arg(image);
    match serial {
        SerialPort::Pipe(_) => command.args(["-serial", "stdio"]),
        SerialPort::File(path) => command.arg("-serial").arg(format!("file:{}", escaped(path))),
    };
    let virtual_time = ["-seed", &options.seed.to_string(), "-rtc", "base=2025-01-01,clock=vm"];
    match options.clock {
        ClockChoice::Host => {}
        ClockChoice::Icount => {
            let journal = escaped(&folder.join("replay.bin"));
            // shift=2: 4 ns per instruction. Without rr=record a guest that sleeps is not quite repeatable.
            command
                .args(["-icount", &format!("shift=2,sleep=off,rr=record,rrfile={journal}")])
                .args(virtual_time);
        }
        ClockChoice::Lockstep { q } => {
            let plugin =
                checkout::find(".cache/plugins/lockstep.so", "the lockstep clock", "run `make build`")?;
            let plugin = format!("{},q={q},ns={}", escaped(&plugin), ClockChoice::NS);
            command.args(["-accel", "tcg,thread=single", "-plugin", &plugin]).args(virtual_time);
        }
    }
    command.args(&options.qemu_args);
    Ok(command)
}

/// A path as a value in QEMU's option lists, where a comma is written twice.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// Lets the system end QEMU should this program be killed, so that no emulator is left behind.
fn die_with_parent(command: &mut Command) {
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
pub fn lockstep_summary(messages: &[String]) -> (Option<u64>, Option<String>) {
    let fields = |line: &str| -> Option<(u64, String)> {
        let field = |name: &str| {
            line.split_whitespace().filter_map(|word| word.split_once('=')).find(|(key, _)| *key == name)
        };
        line.strip_prefix("lockstep: ")?;
        Some((field("stuck")?.1.parse().ok()?, field("hash")?.1.to_owned()))
    };
    messages.iter().rev().find_map(|line| fields(line)).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_the_lockstep_plugin_counts() {
        let lines = [
            "lockstep: T=5 hash=00aa".to_owned(),
            "lockstep: T=1 q=250 ns=4 harts=4 slices=9 rounds=3 jumps=0 timers=1 stuck=0 hash=00000000deadbeef".into(),
            "something else".into(),
        ];
        assert_eq!(lockstep_summary(&lines), (Some(0), Some("00000000deadbeef".into())));
        assert_eq!(lockstep_summary(&lines[..1]), (None, None));
    }

    #[test]
    fn commas_in_paths_are_escaped() {
        assert_eq!(escaped(Path::new("/a,b")), "/a,,b");
    }
}
