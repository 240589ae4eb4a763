//! Threads that read what QEMU writes, and send it as events.
//!
//! The channel holds only so much: where QEMU writes faster than its output is taken, it waits at its pipe.
use rustix::fs::FallocateFlags;
use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    process::{ChildStderr, ChildStdout},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

/// How often a growing file is looked at.
const FOLLOW: Duration = Duration::from_millis(20);
/// Events that wait at most; each has at most [`CHUNK`] bytes.
const WAITING: usize = 64;
const CHUNK: usize = 16 * 1024;
/// Longest line of stderr; the rest of a longer one is another line.
const MESSAGE: u64 = 4096;

/// Something that QEMU wrote.
pub enum Event {
    /// Bytes of the serial port.
    Serial(Vec<u8>),
    /// A line of stderr.
    Message(String),
}

/// A channel for events.
pub fn channel() -> (SyncSender<Event>, Receiver<Event>) {
    sync_channel(WAITING)
}

/// Sends the serial port's bytes from a pipe until it closes.
pub fn read_serial(mut pipe: ChildStdout, sender: SyncSender<Event>) {
    thread::spawn(move || {
        while let Some(bytes) = read_some(&mut pipe) {
            if sender.send(Event::Serial(bytes)).is_err() {
                return;
            }
        }
    });
}

/// Sends the serial port's bytes from a file that QEMU writes, until QEMU has `ended` and all is read. What has been read of a
/// file that is not `kept` is given back to the disk.
pub fn follow_serial(mut file: File, kept: bool, ended: Arc<AtomicBool>, sender: SyncSender<Event>) {
    thread::spawn(move || {
        let mut at = 0;
        loop {
            // Asked before reading: what QEMU wrote before it ended is then read in this round or the next.
            let last = ended.load(Ordering::Acquire);
            while let Some(bytes) = read_some(&mut file) {
                let len = bytes.len() as u64;
                if sender.send(Event::Serial(bytes)).is_err() {
                    return;
                }
                if !kept {
                    // Where the file system can't do that, the file takes its place until the run ends.
                    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                    let _ = rustix::fs::fallocate(&file, hole, at, len);
                }
                at += len;
            }
            if last {
                return;
            }
            thread::sleep(FOLLOW);
        }
    });
}

/// Sends the lines of stderr.
pub fn read_messages(stderr: ChildStderr, sender: SyncSender<Event>) {
    thread::spawn(move || {
        let mut reader = BufReader::new(stderr);
        let mut line = Vec::new();
        while let Ok(1..) = (&mut reader).take(MESSAGE).read_until(b'\n', &mut line) {
            let text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
            line.clear();
            if sender.send(Event::Message(text)).is_err() {
                return;
            }
        }
    });
}

/// The next bytes, or `None` at the end. An error counts as the end: nothing more will come.
fn read_some(source: &mut impl Read) -> Option<Vec<u8>> {
    let mut buffer = vec![0; CHUNK];
    let len = loop {
        match source.read(&mut buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            result => break result.ok().filter(|len| *len != 0)?,
        }
    };
    buffer.truncate(len);
    Some(buffer)
}
