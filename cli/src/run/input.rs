//! What is typed: by a person, or by a [`Typist`] what was written down beforehand.
use super::{
    keyboard::Keyboard,
    typist::{Source, Typist},
};
use ainori_manifest::files;
use miette::{Result, miette};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FileType, fstat},
    io::Errno,
    stdio::stdin,
};
use std::{
    io::{Cursor, IsTerminal, Write},
    path::PathBuf,
    process::ChildStdin,
    time::Instant,
};

/// Longest file that is typed.
const MAX_SCRIPT: u64 = 1 << 20;

/// Where the keys for the machine's serial port come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// From the terminal, key by key.
    Keyboard,
    /// From this program's standard input, line by line.
    Piped,
    /// From a file, line by line.
    File(PathBuf),
}

impl Input {
    /// What standard input is good for. Nothing is read of it yet.
    pub fn of_stdin() -> Option<Self> {
        if std::io::stdin().is_terminal() {
            return Some(Self::Keyboard);
        }
        let kind = FileType::from_raw_mode(fstat(stdin()).ok()?.st_mode);
        // Of the devices, /dev/null at least is there to say that nothing is typed.
        matches!(kind, FileType::Fifo | FileType::RegularFile | FileType::Socket).then_some(Self::Piped)
    }

    /// Opens it; what can't be read is told before the run.
    pub(super) fn prepare(&self) -> Result<Prepared> {
        Ok(match self {
            Self::Keyboard => Prepared::Keyboard,
            Self::Piped => Prepared::Lines(Box::new(Piped)),
            Self::File(path) => {
                let read = files::read(path, MAX_SCRIPT);
                let bytes = read.map_err(|error| miette!("{} can't be read: {error}", path.display()))?;
                Prepared::Lines(Box::new(Cursor::new(bytes)))
            }
        })
    }
}

/// Input that is there.
pub(super) enum Prepared {
    Keyboard,
    Lines(Box<dyn Source>),
}

/// Input that goes to a machine.
pub(super) enum Attached {
    /// Held for as long as keys are wanted: dropped, it restores the terminal.
    Keyboard(#[expect(dead_code, reason = "dropping it is all that is done with it")] Keyboard),
    Lines {
        typist: Typist<Box<dyn Source>>,
        keys: Option<ChildStdin>,
        rest: Vec<u8>,
    },
}

impl Attached {
    pub fn new(input: Prepared, keys: ChildStdin) -> Self {
        match input {
            Prepared::Keyboard => Self::Keyboard(Keyboard::attach(keys)),
            Prepared::Lines(source) => {
                // QEMU takes no more than the serial port does; it must not hold this program up meanwhile.
                let flags = rustix::fs::fcntl_getfl(&keys).unwrap_or(rustix::fs::OFlags::empty());
                let _ = rustix::fs::fcntl_setfl(&keys, flags | rustix::fs::OFlags::NONBLOCK);
                Self::Lines {
                    typist: Typist::new(source, Instant::now()),
                    keys: Some(keys),
                    rest: Vec::new(),
                }
            }
        }
    }

    /// The guest that gets what is typed has said something, see [`Typist::hear`].
    pub fn hear(&mut self, text: &[u8], whole: bool) {
        if let Self::Lines { typist, .. } = self {
            typist.hear(text, whole, Instant::now());
        }
    }

    /// The guest that gets what is typed is in this life, see [`Typist::lives`].
    pub fn lives(&mut self, life: Option<usize>) {
        if let Self::Lines { typist, rest, .. } = self
            && typist.lives(life, Instant::now())
        {
            rest.clear();
        }
    }

    /// Types what is due. The pipe stays open behind the last line: the end of the input is not an end of the run.
    pub fn go_on(&mut self) {
        let Self::Lines { typist, keys, rest } = self else { return };
        if rest.is_empty() {
            rest.extend(typist.next(Instant::now()));
        }
        let Some(pipe) = keys.as_mut().filter(|_| !rest.is_empty()) else { return };
        match pipe.write(rest) {
            Ok(len) => drop(rest.drain(..len)),
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::AGAIN | Errno::INTR)) => {}
            Err(_) => *keys = None, // QEMU has ended.
        }
    }

    /// What was not typed, in words; nothing if all was.
    pub fn left(&mut self) -> Option<String> {
        let Self::Lines { typist, .. } = self else { return None };
        let has_more = typist.has_more();
        match (typist.lines_left(), has_more) {
            (0, _) => None,
            (1, false) => Some("a line of the input was".into()),
            (many, false) => Some(format!("{many} lines of the input were")),
            (many, true) => Some(format!("at least {many} lines of the input were")),
        }
    }
}

/// This program's standard input.
struct Piped;

impl Source for Piped {
    fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)], Some(&now)) {
            Ok(0) | Err(Errno::INTR | Errno::AGAIN) => None,
            Ok(_) => match rustix::io::read(stdin(), buffer) {
                Ok(len) => Some(len),
                Err(Errno::INTR | Errno::AGAIN) => None,
                Err(_) => Some(0),
            },
            Err(_) => Some(0),
        }
    }
}
