//! Threads that read what QEMU writes, and send it as events.
use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    process::{ChildStderr, ChildStdout},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::Sender,
    },
    thread,
    time::Duration,
};

/// How often a growing file is looked at.
const FOLLOW: Duration = Duration::from_millis(20);

/// Something that QEMU wrote.
pub enum Event {
    /// Bytes of the serial port.
    Serial(Vec<u8>),
    /// A line of stderr.
    Message(String),
}

/// Sends the serial port's bytes from a pipe until it closes.
pub fn read_serial(mut pipe: ChildStdout, sender: Sender<Event>) {
    thread::spawn(move || {
        while let Some(bytes) = read_some(&mut pipe) {
            if sender.send(Event::Serial(bytes)).is_err() {
                return;
            }
        }
    });
}

/// Sends the serial port's bytes from a file that QEMU writes, until QEMU has `ended` and all is read.
pub fn follow_serial(mut file: File, ended: Arc<AtomicBool>, sender: Sender<Event>) {
    thread::spawn(move || {
        loop {
            // Asked before reading: what QEMU wrote before it ended is then read in this round or the next.
            let last = ended.load(Ordering::Acquire);
            while let Some(bytes) = read_some(&mut file) {
                if sender.send(Event::Serial(bytes)).is_err() {
                    return;
                }
            }
            if last {
                return;
            }
            thread::sleep(FOLLOW);
        }
    });
}

/// Sends the lines of stderr.
pub fn read_messages(stderr: ChildStderr, sender: Sender<Event>) {
    thread::spawn(move || {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            if sender.send(Event::Message(String::from_utf8_lossy(&line).into_owned())).is_err() {
                return;
            }
        }
    });
}

/// The next bytes, or `None` at the end. An error counts as the end: nothing more will come.
fn read_some(source: &mut impl Read) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 16 * 1024];
    let len = source.read(&mut buffer).ok().filter(|len| *len != 0)?;
    buffer.truncate(len);
    Some(buffer)
}
