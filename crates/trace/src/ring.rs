//! The ring of records that one core writes.
//!
//! Its memory starts with a [`Header`], by which a host tool finds it in an image of the machine's memory; the records
//! follow at once. All words are little-endian, as the harts are.

use crate::{
    event::Event,
    mask::Mask,
    record::{Kind, Record},
};

/// The head of a ring, as words in memory in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// [`Header::MAGIC`].
    pub magic: u64,
    /// Dense index of the core that writes.
    pub core: u64,
    /// Its hart id.
    pub hart: u64,
    /// Records that fit, a power of two.
    pub capacity: u64,
    /// Ticks of the `time` CSR per second.
    pub timebase_hz: u64,
    /// The kinds that are recorded.
    pub mask: u64,
    /// [`Header::checksum`], so that a stray magic number in memory is not taken for a ring.
    pub check: u64,
    /// Records written so far. It only grows; record *n* is in slot *n* modulo capacity.
    pub head: u64,
}

impl Header {
    /// The text `AINORIT1`: name and version of the format.
    pub const MAGIC: u64 = u64::from_le_bytes(*b"AINORIT1");
    /// Bytes in memory.
    pub const BYTES: usize = 8 * 8;
    /// Room that it takes, in records.
    pub const SLOTS: usize = Self::BYTES / 16;

    /// The words in memory, in pairs like the records.
    pub const fn encode(self) -> [[u64; 2]; Self::SLOTS] {
        [
            [self.magic, self.core],
            [self.hart, self.capacity],
            [self.timebase_hz, self.mask],
            [self.check, self.head],
        ]
    }

    /// The header that these words stand for. [`Self::is_valid`] tells whether it is one.
    pub const fn decode(words: [[u64; 2]; Self::SLOTS]) -> Self {
        let [[magic, core], [hart, capacity], [timebase_hz, mask], [check, head]] = words;
        Self { magic, core, hart, capacity, timebase_hz, mask, check, head }
    }

    /// What [`Self::check`] must be: a mix of the words that never change.
    #[expect(clippy::indexing_slicing, reason = "the loop ends at the array's length")]
    pub const fn checksum(&self) -> u64 {
        let mut sum = self.magic;
        let words = [self.core, self.hart, self.capacity, self.timebase_hz];
        let mut index = 0;
        // BOUND: only at boot: 4 words.
        while index < words.len() {
            // FNV-1a with words for bytes.
            sum = (sum ^ words[index]).wrapping_mul(0x100_0000_01b3);
            index += 1;
        }
        sum
    }

    /// Whether these words were written by [`Ring::new`].
    pub const fn is_valid(&self) -> bool {
        self.magic == Self::MAGIC && self.check == self.checksum() && self.capacity.is_power_of_two()
    }
}

/// The writing end of a core's ring.
#[derive(Debug)]
pub struct Ring<'a> {
    mask: Mask,
    /// [`Header::head`] in memory; `None` if there is no ring.
    head: Option<&'a mut u64>,
    /// A power of two of them, unless there is no ring.
    records: &'a mut [[u64; 2]],
}

impl<'a> Ring<'a> {
    /// A ring without memory, which records nothing.
    pub const fn disabled() -> Self {
        Self { mask: Mask::NONE, head: None, records: &mut [] }
    }

    /// The length of memory, in pairs of words, for a ring of `capacity` records.
    pub const fn slots(capacity: usize) -> usize {
        Header::SLOTS + capacity
    }

    /// An empty ring in `memory`, for the core with the dense index `core` on the hart with id `hart`; `timebase_hz` is
    /// the frequency of `time`.
    ///
    /// `None` unless the length of `memory` is [`Self::slots`] of a power of two.
    pub fn new(
        memory: &'a mut [[u64; 2]],
        core: u64,
        hart: u64,
        timebase_hz: u64,
        mask: Mask,
    ) -> Option<Self> {
        let (place, records) = memory.split_first_chunk_mut::<{ Header::SLOTS }>()?;
        if !records.len().is_power_of_two() {
            return None;
        }
        let mut header = Header {
            magic: Header::MAGIC,
            core,
            hart,
            capacity: records.len() as u64,
            timebase_hz,
            mask: mask.0.into(),
            check: 0,
            head: 0,
        };
        header.check = header.checksum();
        *place = header.encode();
        let [.., [_, head]] = place;
        Some(Self { mask, head: Some(head), records })
    }

    /// Writes a record if the mask has its kind. `time` is the `time` CSR, `a` and `b` are the fields of
    /// [`Event::fields`].
    #[inline]
    pub fn record(&mut self, time: u64, kind: Kind, a: u8, b: u64) {
        if self.mask.has(kind) {
            self.write(time, kind, a, b);
        }
    }

    /// Writes a record whose kind the mask [has](Self::wants).
    #[inline(always)]
    pub fn write(&mut self, time: u64, kind: Kind, a: u8, b: u64) {
        let Some(head) = &mut self.head else { return };
        let position = **head;
        let slot = position as usize & self.records.len().wrapping_sub(1);
        if let Some(slot) = self.records.get_mut(slot) {
            *slot = Record { time, kind, a, b }.encode();
            **head = position + 1;
        }
    }

    /// Writes the record of `event` if the mask has its kind.
    #[inline]
    pub fn event(&mut self, time: u64, event: Event) {
        let (kind, a, b) = event.fields();
        self.record(time, kind, a, b);
    }

    /// Whether records of this kind are written: for those whose fields cost something to find out.
    #[inline]
    pub const fn wants(&self, kind: Kind) -> bool {
        self.mask.has(kind)
    }

    /// Where the ring is in memory, header included: address and bytes. `None` if there is no ring.
    pub fn memory(&self) -> Option<(u64, u64)> {
        self.head.as_ref()?;
        let records = self.records.as_ptr() as u64;
        Some((records - Header::BYTES as u64, (Header::BYTES + size_of_val(self.records)) as u64))
    }

    /// Records written so far, those that were overwritten included.
    pub fn head(&self) -> u64 {
        self.head.as_deref().copied().unwrap_or(0)
    }
}
