//! All output of the machine on one serial line: `MARK| TEXT` per line, the mark being a guest's name.
//!
//! Each source has a ring of its own, written under a lock that no other guest ever takes, and read only by the console
//! core. So a guest that writes much can't hold another one up, and the serial port's slowness reaches nobody but
//! the guest that writes. A source whose ring is full loses bytes, as on a real port with a full FIFO; they are counted.
use alloc::{boxed::Box, string::String, vec};
use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use ainori_report::SEPARATOR;
use spin::Mutex;

use crate::chip::uart::{FIFO, Uart};

/// Bytes that a source can be ahead of the serial port.
const CAPACITY: usize = 64 * 1024;

/// Output of one source on its way to the serial port: a single-producer single-consumer ring.
pub struct Channel {
    mark: String,
    bytes: Box<[UnsafeCell<u8>]>,
    /// Bytes ever written.
    head: AtomicUsize,
    /// Bytes ever sent.
    tail: AtomicUsize,
    /// Line ends ever written.
    lines: AtomicUsize,
    /// Bytes that found no room.
    lost: AtomicU64,
}

// SAFETY: a cell is written only by the producer, between `tail + CAPACITY` and `head`, and read only by the consumer,
// between `tail` and `head`; both counters are published with release and read with acquire.
unsafe impl Sync for Channel {}
// SAFETY: it holds plain bytes.
unsafe impl Send for Channel {}

impl Channel {
    /// An empty ring. Allocates: only at boot.
    pub fn new(mark: &str) -> Self {
        let bytes = vec![0u8; CAPACITY].into_iter().map(UnsafeCell::new).collect();
        Self {
            mark: String::from(mark),
            bytes,
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            lines: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// Adds a byte. True if the console core has to be told: a line is complete, or one begins that may stay incomplete.
    ///
    /// Callers hold the lock of the source (a guest's serial port, or the log), so there is one producer at a time.
    pub fn push(&self, byte: u8) -> bool {
        let head = self.head.load(Ordering::Relaxed);
        let waiting = head - self.tail.load(Ordering::Acquire);
        if waiting == CAPACITY {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        // SAFETY: this cell isn't the consumer's until `head` moves, and the caller is the only producer.
        unsafe { *self.bytes[head % CAPACITY].get() = byte };
        if byte == b'\n' {
            self.lines.fetch_add(1, Ordering::Relaxed);
        }
        self.head.store(head + 1, Ordering::Release);
        byte == b'\n' || waiting == 0
    }

    /// True if there is room for a whole FIFO of a guest's serial port.
    pub fn has_room(&self) -> bool {
        CAPACITY - (self.head.load(Ordering::Relaxed) - self.tail.load(Ordering::Relaxed)) >= 2 * FIFO
    }

    /// Bytes lost so far.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn waiting(&self) -> usize {
        self.head.load(Ordering::Acquire) - self.tail.load(Ordering::Relaxed)
    }

    /// Takes at most `most` bytes of one line. Returns how many, and whether the last was the line's end.
    fn drain(&self, most: usize, mut take: impl FnMut(u8)) -> (usize, bool) {
        let tail = self.tail.load(Ordering::Relaxed);
        let waiting = self.head.load(Ordering::Acquire) - tail;
        let mut taken = 0;
        let mut line_ended = false;
        while taken < most.min(waiting) && !line_ended {
            // SAFETY: the producer released this cell with `head`, and doesn't touch it again before `tail` moves.
            let byte = unsafe { *self.bytes[(tail + taken) % CAPACITY].get() };
            take(byte);
            taken += 1;
            line_ended = byte == b'\n';
        }
        self.tail.store(tail + taken, Ordering::Release);
        (taken, line_ended)
    }
}

/// The sending end: only the console core has it.
pub struct Console {
    uart: Option<Uart>,
    /// What was typed and doesn't fit into the guest's port yet: a ring, with the numbers of bytes put in and taken out.
    input: [u8; INPUT],
    typed: usize,
    passed_on: usize,
    /// Channel whose line is under way.
    current: Option<usize>,
    /// Bytes of its mark and separator that have been sent.
    marked: usize,
    /// Lines sent per channel.
    sent_lines: [usize; CHANNELS],
    /// Since when some channel has only an incomplete line.
    stale_since: Option<u64>,
}

/// Bytes that can be typed ahead of the guest.
const INPUT: usize = 1024;
const CHANNELS: usize = ainori_manifest::config::MAX_GUESTS + 1;

/// What is left to do after a piece of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Nothing.
    Nothing,
    /// More, as soon as the port takes it.
    Now,
    /// An incomplete line, to be shown at this time.
    Later(u64),
}

impl Console {
    /// The end that drives `uart`.
    pub const fn new(uart: Option<Uart>) -> Self {
        Self {
            uart,
            input: [0; INPUT],
            typed: 0,
            passed_on: 0,
            current: None,
            marked: 0,
            sent_lines: [0; CHANNELS],
            stale_since: None,
        }
    }

    /// The port.
    pub fn uart(&self) -> Option<&Uart> {
        self.uart.as_ref()
    }

    /// Takes what was typed from the port. What finds no room is lost, as on a real port that nobody reads.
    pub fn collect_input(&mut self) {
        while let Some(byte) = self.uart.as_ref().and_then(Uart::receive) {
            if self.typed - self.passed_on < INPUT {
                self.input[self.typed % INPUT] = byte;
                self.typed += 1;
            }
        }
    }

    /// Passes on what was typed for as long as `accept` takes it. Returns whether something is left.
    pub fn pass_input_on(&mut self, mut accept: impl FnMut(u8) -> bool) -> bool {
        while self.passed_on != self.typed && accept(self.input[self.passed_on % INPUT]) {
            self.passed_on += 1;
        }
        self.passed_on != self.typed
    }

    /// True if what was sent last is not the end of a line.
    pub fn is_mid_line(&self) -> bool {
        self.current.is_some()
    }

    /// Sends at most a FIFO's worth. An incomplete line is sent once it is `patience` ticks old.
    pub fn send_piece<'a>(
        &mut self,
        channels: &impl Fn(usize) -> Option<&'a Channel>,
        now: u64,
        patience: u64,
    ) -> Rest {
        let Some(uart) = self.uart else { return Rest::Nothing };
        if !uart.can_send() {
            return Rest::Now;
        }
        let mut room = FIFO;
        while room > 0 {
            let Some((index, channel)) = self.current.and_then(|index| Some((index, channels(index)?)))
            else {
                self.current = self.choose(channels, now, patience);
                self.marked = 0;
                if self.current.is_none() {
                    return self.stale_since.map_or(Rest::Nothing, |since| Rest::Later(since + patience));
                }
                continue;
            };
            let mark = channel.mark.as_bytes();
            if let Some(&byte) = mark.iter().chain(SEPARATOR.as_bytes()).nth(self.marked) {
                self.marked += 1;
                uart.send(byte);
                room -= 1;
                continue;
            }
            let (sent, line_ended) = channel.drain(room, |byte| uart.send(byte));
            room -= sent;
            if line_ended {
                self.sent_lines[index] += 1;
                self.current = None;
            } else if room > 0 {
                // The line is incomplete and its channel empty: it stays open until another one has a whole line.
                if !(0..CHANNELS).any(|other| self.has_line(channels, other)) {
                    return Rest::Nothing;
                }
                self.current = None;
                uart.send(b'\n');
                room -= 1;
            }
        }
        Rest::Now
    }

    fn has_line<'a>(&self, channels: &impl Fn(usize) -> Option<&'a Channel>, index: usize) -> bool {
        channels(index).is_some_and(|channel| channel.lines.load(Ordering::Acquire) != self.sent_lines[index])
    }

    fn choose<'a>(
        &mut self,
        channels: &impl Fn(usize) -> Option<&'a Channel>,
        now: u64,
        patience: u64,
    ) -> Option<usize> {
        if let Some(index) = (0..CHANNELS).find(|&index| self.has_line(channels, index)) {
            self.stale_since = None;
            return Some(index);
        }
        let Some(partial) = (0..CHANNELS).find(|&i| channels(i).is_some_and(|channel| channel.waiting() > 0))
        else {
            self.stale_since = None;
            return None;
        };
        let since = *self.stale_since.get_or_insert(now);
        if now - since < patience {
            return None;
        }
        self.stale_since = None;
        Some(partial)
    }
}

/// The hypervisor's own lines. Any core may write; they are rare (boot, faults, the report at the end).
pub struct Log(Mutex<()>, Channel);

impl Log {
    /// An empty log. Allocates: only at boot.
    pub fn new() -> Self {
        Self(Mutex::new(()), Channel::new(ainori_report::MARK))
    }

    /// Its ring.
    pub fn channel(&self) -> &Channel {
        &self.1
    }

    /// Adds one whole line.
    pub fn line(&self, text: fmt::Arguments<'_>) {
        struct Writer<'a>(&'a Channel);
        impl fmt::Write for Writer<'_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                for byte in text.bytes() {
                    self.0.push(byte);
                }
                Ok(())
            }
        }
        let _one_producer = self.0.lock();
        // A ring can't fail to be written to; what has no room is counted.
        let _ = fmt::Write::write_fmt(&mut Writer(&self.1), format_args!("{text}\n"));
    }
}
