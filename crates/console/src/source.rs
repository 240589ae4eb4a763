//! Output of one source on its way to the serial line: a ring with one writer and one reader.
use alloc::{boxed::Box, string::String};

use ainori_report::{CONTINUATION, SEPARATOR};

use crate::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
use crate::multiplexer::LONGEST;

/// A ring has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// A ring of bytes and the mark of its lines. One writer at a time ([`push`](Self::push)), and one reader, the multiplexer.
pub struct Source {
    /// What stands before each of its lines: the mark and the separator.
    prefix: String,
    /// What stands before the rest of a line that was broken.
    continuation: String,
    /// Their number is a power of two.
    bytes: Box<[AtomicU8]>,
    /// Bytes ever written. Only the writer changes it.
    head: AtomicUsize,
    /// Bytes ever taken. Only the reader changes it.
    tail: AtomicUsize,
    /// Line ends ever written.
    lines: AtomicUsize,
    /// Bytes that found no room.
    lost: AtomicU64,
}

impl Source {
    /// An empty ring for `capacity` bytes, rounded up to a power of two. Allocates: only at boot.
    #[must_use]
    pub fn new(mark: &str, capacity: usize) -> Self {
        Self {
            prefix: String::from(mark) + SEPARATOR,
            continuation: String::from(mark) + CONTINUATION,
            bytes: (0..capacity.next_power_of_two()).map(|_| AtomicU8::new(0)).collect(),
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            lines: AtomicUsize::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// Adds a byte, if there is room. True if the reader has to be told, which doesn't look by itself.
    ///
    /// Callers see to it that there is one at a time.
    pub fn push(&self, byte: u8) -> bool {
        if self.room() == 0 {
            self.lost.store(self.lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            return true;
        }
        self.append(core::iter::once(byte)).1
    }

    /// Adds bytes as long as there are some and room for them. Returns how many, and whether the reader has to be told, which doesn't look
    /// by itself.
    ///
    /// A writer, as [`Self::push`].
    #[inline]
    pub fn append(&self, bytes: impl Iterator<Item = u8>) -> (usize, bool) {
        let head = self.head.load(Ordering::Relaxed);
        let room = self.bytes.len() - (head - self.tail.load(Ordering::Acquire));
        let mut added = 0;
        let mut lines = 0;
        // BOUND: the bytes, some 10 instructions each.
        for byte in bytes.take(room) {
            self.put(head + added, byte);
            added += 1;
            lines += usize::from(byte == b'\n');
        }
        self.head.store(head + added, Ordering::Release);
        if lines != 0 {
            // After `head`, so that who sees the line's end counted finds it.
            self.lines.store(self.lines.load(Ordering::Relaxed) + lines, Ordering::Release);
            return (added, true);
        }
        // Dekker's rule, with the fence in `take`: either the reader that has taken all but these bytes finds them, or it is seen here
        // that all but these have been taken.
        fence(Ordering::SeqCst);
        let before = head - self.tail.load(Ordering::Relaxed);
        (added, before == 0 || before < LONGEST && before + added >= LONGEST)
    }

    /// Adds a piece of text, if there is room for all of it. True if the reader has to be told. For what no program reads before its line
    /// is whole: nobody is told of a line's beginning.
    ///
    /// Callers see to it that there is one at a time.
    pub fn write(&self, text: &[u8]) -> bool {
        let head = self.head.load(Ordering::Relaxed);
        if self.bytes.len() - (head - self.tail.load(Ordering::Acquire)) < text.len() {
            self.lost.store(self.lost() + text.len() as u64, Ordering::Relaxed);
            return true;
        }
        let place = self.place(head);
        let cells = self.bytes.get(place..).unwrap_or_default();
        let wrapped = text.get(cells.len()..).unwrap_or_default();
        let lines = fill(cells, text) + fill(&self.bytes, wrapped);
        self.head.store(head + text.len(), Ordering::Release);
        self.lines.store(self.lines.load(Ordering::Relaxed) + lines, Ordering::Release);
        lines != 0
    }

    /// Bytes that find room.
    #[must_use]
    pub fn room(&self) -> usize {
        self.bytes.len() - (self.head.load(Ordering::Relaxed) - self.tail.load(Ordering::Relaxed))
    }

    /// Has everything been taken by the reader? What it has taken, it sends before anything that is written later.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting() == 0
    }

    /// Ends the line that has been begun, if one has: the next one is somebody else's. Returns whether the reader has to be told.
    ///
    /// A writer, as [`Self::push`].
    ///
    /// # Errors
    /// [`Full`]: there is no room for the line's end. Nothing is lost; it is for the caller to try again.
    pub fn end_line(&self) -> Result<bool, Full> {
        let head = self.head.load(Ordering::Relaxed);
        match head.checked_sub(1).map(|last| self.get(last)) {
            None | Some(b'\n') => Ok(false),
            Some(_) if self.room() == 0 => Err(Full),
            Some(_) => Ok(self.push(b'\n')),
        }
    }

    /// Bytes lost so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Reader: line ends ever written.
    pub(crate) fn lines(&self) -> usize {
        self.lines.load(Ordering::Acquire)
    }

    /// Reader: bytes to be taken.
    pub(crate) fn waiting(&self) -> usize {
        self.head.load(Ordering::Acquire) - self.tail.load(Ordering::Relaxed)
    }

    /// Reader: the next byte, if one is waiting.
    pub(crate) fn first(&self) -> u8 {
        self.get(self.tail.load(Ordering::Relaxed))
    }

    /// Reader: what stands before each line, or before the rest of one.
    pub(crate) fn prefix(&self, is_rest: bool) -> &[u8] {
        if is_rest { self.continuation.as_bytes() } else { self.prefix.as_bytes() }
    }

    /// Reader: takes bytes of one line as far as `into` has room, and not beyond the ring's last cell: some of what is waiting in any case. Returns
    /// how many, and whether the last was the line's end.
    pub(crate) fn take(&self, into: &mut [u8]) -> (usize, bool) {
        let tail = self.tail.load(Ordering::Relaxed);
        let most = self.waiting().min(into.len());
        let cells = self.bytes.get(self.place(tail)..).unwrap_or_default();
        let mut taken = 0;
        let mut line_ended = false;
        // BOUND: the room in `into`, some 7 instructions for each byte.
        for (place, cell) in into.get_mut(..most).unwrap_or_default().iter_mut().zip(cells) {
            let byte = cell.load(Ordering::Relaxed);
            *place = byte;
            taken += 1;
            line_ended = byte == b'\n';
            if line_ended {
                break;
            }
        }
        self.tail.store(tail + taken, Ordering::Release);
        fence(Ordering::SeqCst);
        (taken, line_ended)
    }

    /// The byte with this number.
    fn get(&self, number: usize) -> u8 {
        self.cell(number).map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    fn put(&self, number: usize, byte: u8) {
        if let Some(cell) = self.cell(number) {
            cell.store(byte, Ordering::Relaxed);
        }
    }

    /// The cell of the byte with this number. There always is one.
    fn cell(&self, number: usize) -> Option<&AtomicU8> {
        self.bytes.get(self.place(number))
    }

    /// Where the byte with this number is: the number of cells is a power of two.
    fn place(&self, number: usize) -> usize {
        number & (self.bytes.len() - 1)
    }
}

/// Puts bytes into cells, as many as there are of both. Returns how many of them are line ends.
fn fill(cells: &[AtomicU8], bytes: &[u8]) -> usize {
    let mut lines = 0;
    // BOUND: the bytes, some 8 instructions each.
    for (cell, byte) in cells.iter().zip(bytes) {
        cell.store(*byte, Ordering::Relaxed);
        lines += usize::from(*byte == b'\n');
    }
    lines
}
