//! What is typed on the terminal, byte by byte, for the machine's serial port.
//!
//! QEMU doesn't get the terminal itself: it would set it to non-blocking, which this program's own output shares.
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::getpgrp,
    stdio::stdin,
    termios::{
        InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
    },
};
use std::{
    io::Write,
    process::ChildStdin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

/// How often the thread looks whether it is still wanted.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The terminal in the mode for single keys; dropped, it is as before.
pub struct Keyboard {
    before: Option<Termios>,
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keyboard {
    /// Sends keys to the machine until this value is dropped. Ctrl-C remains what it is.
    pub fn attach(keys: ChildStdin) -> Self {
        let before = single_keys();
        let done = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let done = done.clone();
            move || forward(keys, &done)
        });
        Self { before, done, thread: Some(thread) }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some(before) = &self.before {
            // At once: a terminal that doesn't take its output would never be done with it.
            let _ = tcsetattr(stdin(), OptionalActions::Now, before);
        }
    }
}

/// Sets the terminal to give single keys, unseen, and returns how it was. A job in the background must not touch it.
fn single_keys() -> Option<Termios> {
    if tcgetpgrp(stdin()).ok()? != getpgrp() {
        return None;
    }
    let before = tcgetattr(stdin()).ok()?;
    let mut keys = before.clone();
    keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
    // Enter sends a carriage return, Ctrl-S and Ctrl-Z go to the guest: as on a serial terminal.
    keys.input_modes.remove(InputModes::ICRNL | InputModes::IXON);
    keys.special_codes[SpecialCodeIndex::VSUSP] = 0;
    keys.special_codes[SpecialCodeIndex::VMIN] = 1;
    keys.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(stdin(), OptionalActions::Now, &keys).ok()?;
    Some(before)
}

fn forward(mut keys: ChildStdin, done: &AtomicBool) {
    let mut buffer = [0; 256];
    while !done.load(Ordering::Relaxed) {
        let mut fds = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
        match poll(&mut fds, Some(&TICK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return,
        }
        let len = match rustix::io::read(stdin(), &mut buffer) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(0) | Err(_) => return,
            Ok(len) => len,
        };
        if keys.write_all(&buffer[..len]).is_err() {
            return;
        }
    }
}
