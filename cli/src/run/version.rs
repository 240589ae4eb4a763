//! Which QEMU is installed: asked within a time limit, since what answers may not be QEMU at all.
use super::qemu::{PROGRAM, die_with_parent, kill_group};
use miette::{Result, miette};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use std::{
    io::Read,
    os::unix::process::CommandExt,
    process::{ChildStdout, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// Oldest QEMU that the project is tested with.
const MIN_MAJOR: u32 = 10;
/// How long it may take to tell its version, whatever the run's time limit is. It takes 50 ms; on a computer that is very busy, seconds.
const TIME: Duration = Duration::from_secs(30);
/// Most bytes of an answer that are looked at.
const MOST: usize = 4096;
/// How often it is looked whether somebody still waits.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 40_000_000 };

/// The version of the installed QEMU, e.g. `10.0.2 (Debian 1:10.0.2+ds-2)`. `None` if `stop` was set or `deadline` passed before it
/// had told; that it takes longer than any QEMU does is an error.
pub fn version(deadline: Option<Instant>, stop: &AtomicBool) -> Result<Option<String>> {
    ask(Command::new(PROGRAM), TIME, deadline, stop)
}

fn ask(
    mut command: Command,
    limit: Duration,
    deadline: Option<Instant>,
    stop: &AtomicBool,
) -> Result<Option<String>> {
    let help =
        "`make setup` installs it: Debian's qemu-system-riscv and opensbi, on Debian 12 from its backports";
    command
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    die_with_parent(&mut command);
    let mut child =
        command.spawn().map_err(|error| miette!(help = help, "{PROGRAM} can't be started: {error}"))?;
    let patience = Instant::now() + limit;
    let is_unwanted =
        || stop.load(Ordering::Relaxed) || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let answer =
        read_answer(&mut child.stdout.take().expect("piped"), || is_unwanted() || Instant::now() >= patience);
    kill_group(&child);
    let _ = child.wait();
    let Some(answer) = answer else {
        if is_unwanted() {
            return Ok(None);
        }
        let seconds = limit.as_secs_f64();
        return Err(miette!(help = help, "{PROGRAM} --version did not end within {seconds} s: is it QEMU?"));
    };
    let text = String::from_utf8_lossy(&answer);
    let version =
        text.lines().next().and_then(|line| line.split_once("version ")).map(|(_, version)| version.trim());
    let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    match (version, major) {
        (Some(version), Some(major)) if major >= MIN_MAJOR => Ok(Some(version.to_owned())),
        (Some(version), Some(_)) => {
            Err(miette!(help = help, "{PROGRAM} has version {version}, but {MIN_MAJOR}.0 or later is needed"))
        }
        _ => {
            let start: String = text.lines().next().unwrap_or_default().chars().take(60).collect();
            Err(miette!(help = help, "{PROGRAM} --version said something unexpected: {start:?}"))
        }
    }
}

/// What comes through the pipe until it is closed, or until it is enough. `None` if nobody waits for it any more.
fn read_answer(pipe: &mut ChildStdout, is_over: impl Fn() -> bool) -> Option<Vec<u8>> {
    let mut answer = Vec::new();
    while answer.len() < MOST {
        if is_over() {
            return None;
        }
        match poll(&mut [PollFd::new(&*pipe, PollFlags::IN)], Some(&TICK)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => break,
        }
        let mut buffer = [0; MOST];
        match pipe.read(&mut buffer) {
            Ok(len @ 1..) => answer.extend_from_slice(&buffer[..len]),
            Ok(0) => break,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that answers `--version` with nothing for a long time.
    fn silent() -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600"]);
        command
    }

    #[test]
    fn silence_is_an_error_unless_the_run_has_ended() {
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(600));
        let told = ask(silent(), short, None, &AtomicBool::new(false)).unwrap_err().to_string();
        assert!(told.ends_with("--version did not end within 0.05 s: is it QEMU?"), "{told}");
        let deadline = Some(Instant::now() + short);
        assert!(ask(silent(), long, deadline, &AtomicBool::new(false)).unwrap().is_none());
        assert!(ask(silent(), long, None, &AtomicBool::new(true)).unwrap().is_none());
    }
}
