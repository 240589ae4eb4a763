//! The bare hart: QEMU with a firmware that hands over all traps (`guests/differ/firmware.c`).
use super::console::Console;
use crate::checkout;
use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::Duration,
};

/// The guest.
pub(super) const PROGRAM: &str = ".cache/guests/differ/differ.elf";
const FIRMWARE: &str = ".cache/guests/differ/firmware.elf";
const QEMU: &str = "qemu-system-riscv64";
/// Silence after which it is taken for hung, in the host's time. A program takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs programs; what they print.
///
/// # Errors
/// It can't be started, or says nothing any more.
pub(super) fn run(model: &str, args: &str) -> Result<Console, String> {
    let mut child = Command::new(QEMU)
        .args(["-M", "virt", "-cpu", model, "-smp", "1", "-m", "128M", "-no-reboot"])
        .args(["-display", "none", "-monitor", "none", "-serial", "stdio", "-append", args])
        .arg("-bios")
        .arg(checkout(FIRMWARE))
        .arg("-kernel")
        .arg(checkout(PROGRAM))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{QEMU} can't be started: {error}"))?;
    let lines = follow(&mut child);
    if lines.is_none() {
        let _ = child.kill();
    }
    let mut complaint = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut complaint);
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    match lines {
        Some(lines) if status.success() => Ok(Console::new(lines.iter().map(String::as_str))),
        Some(_) => Err(format!("the bare hart: QEMU ended with {status}: {complaint}")),
        None => Err(format!("the bare hart has said nothing for {} s (args {args:?})", PATIENCE.as_secs())),
    }
}

/// Its lines until it ends. `None` if it falls silent.
fn follow(child: &mut Child) -> Option<Vec<String>> {
    let stdout = child.stdout.take()?;
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    let mut lines = Vec::new();
    loop {
        match receiver.recv_timeout(PATIENCE) {
            Ok(line) => lines.push(line),
            Err(RecvTimeoutError::Disconnected) => return Some(lines),
            Err(RecvTimeoutError::Timeout) => return None,
        }
    }
}
