//! What a guest has of the Advanced Interrupt Architecture: a domain of an APLIC, and, where its interrupts are messages, an interrupt file for each of
//! its harts.
use crate::aplic::{Aplic, Board, Delivery, HARTS, Msi, Outside};
use crate::atomic::{AtomicU64, Ordering};
use crate::imsic::{InterruptFile, PAGE, SETEIPNUM_LE};

/// Both together. Shared by the vCPUs of one guest; all methods take `&self`, as those of the parts do. Sets of harts have a bit each, by their ids.
pub struct Aia {
    domain: Aplic,
    files: [InterruptFile; HARTS],
    /// How many of the files there are: none where the domain interrupts harts itself.
    file_count: usize,
    /// The harts of which a hart of the board holds the file: what comes in here for one of them waits to be handed on to that.
    in_hardware: AtomicU64,
}

/// What becomes of the domain's messages, and of what it has served.
struct Outwards<'a> {
    aia: &'a Aia,
    /// The harts whose files have got something that may interrupt them.
    harts: u64,
    /// One code for all of them: a choice at run time is nothing beside the rest.
    board: &'a mut dyn Board,
}

impl Outside for Outwards<'_> {
    fn send(&mut self, msi: Msi) {
        self.harts |= self.aia.post(msi.hart, msi.identity);
    }

    fn board(&mut self) -> &mut dyn Board {
        self.board
    }
}

/// The board where no source is relayed.
struct Nobody;

impl Board for Nobody {
    fn complete(&mut self, _: u32, _: bool) {}
}

impl Aia {
    /// After reset, without any source. The domain interrupts harts itself.
    pub fn direct() -> Self {
        Self::new(Delivery::Direct, 0)
    }

    /// The same with messages, for so many harts: at most as many as a guest can have.
    pub fn with_files(harts: usize) -> Self {
        Self::new(Delivery::Msi, harts.min(HARTS))
    }

    fn new(delivery: Delivery, file_count: usize) -> Self {
        Self {
            domain: Aplic::new(delivery),
            files: core::array::from_fn(|_| InterruptFile::new()),
            file_count,
            in_hardware: AtomicU64::new(0),
        }
    }

    /// From now on, and for good, a hart of the board holds this hart's file, and only what comes in here is still for the one in memory. Before the guest
    /// runs.
    pub fn leave_to_hardware(&self, hart: usize) {
        self.in_hardware.fetch_or(1 << (hart % u64::BITS as usize), Ordering::Relaxed);
    }

    /// Does a hart of the board hold the file of this hart?
    pub fn is_in_hardware(&self, hart: usize) -> bool {
        self.in_hardware.load(Ordering::Relaxed) >> (hart % u64::BITS as usize) & 1 != 0
    }

    /// As [`Aplic::add`].
    pub fn add(&self, source: u32, relayed: bool) {
        self.domain.add(source, relayed);
    }

    /// How many bytes of addresses the pages of the files take, one behind the other by the ids of their harts; 0 where there are none.
    pub const fn file_bytes(&self) -> u64 {
        self.file_count as u64 * PAGE
    }

    /// The file of a hart. `None` if it has none.
    pub fn file(&self, hart: usize) -> Option<&InterruptFile> {
        self.files.get(hart).filter(|_| hart < self.file_count)
    }

    /// Does any of this interrupt a hart, or wait to be handed on to where its file is? False for harts that don't exist.
    pub fn is_pending(&self, hart: usize) -> bool {
        let Some(file) = self.file(hart) else { return self.domain.is_pending(hart) };
        if self.is_in_hardware(hart) { file.has_pending() } else { file.is_signaled() }
    }

    /// As [`Aplic::drive`]. Relayed sources stand for those of `board`, as in all that follows.
    pub fn drive(&self, source: u32, high: bool, board: &mut dyn Board) -> u64 {
        self.with_outwards(board, |outwards| ((), self.domain.drive(source, high, outwards))).1
    }

    /// The same for a wire of one of the guest's own devices: no other source stands behind it.
    pub fn wire(&self, source: u32, high: bool) -> u64 {
        self.drive(source, high, &mut Nobody)
    }

    /// As [`Aplic::pulse`], also for one of the guest's own devices.
    pub fn pulse(&self, source: u32) -> u64 {
        self.with_outwards(&mut Nobody, |outwards| ((), self.domain.pulse(source, outwards))).1
    }

    /// A load from the domain's registers: the value, and the harts to look at again. As [`Aplic::read`].
    #[inline(never)] // Not on the way of who has a PLIC.
    pub fn read(&self, offset: u64, width: u8, board: &mut dyn Board) -> (u32, u64) {
        self.with_outwards(board, |outwards| self.domain.read(offset, width, outwards))
    }

    /// A store to the domain's registers. As [`Aplic::write`].
    pub fn write(&self, offset: u64, width: u8, value: u32, board: &mut dyn Board) -> u64 {
        self.with_outwards(board, |outwards| ((), self.domain.write(offset, width, value, outwards))).1
    }

    /// As [`Aplic::send_next`]: is another one left, and the harts to look at again.
    pub fn send_next(&self, board: &mut dyn Board) -> (bool, u64) {
        self.with_outwards(board, |outwards| (self.domain.send_next(outwards), 0))
    }

    /// A store of `value`, `width` bytes wide, at `offset` in the pages of the files: a message, if it is an aligned word for the one register
    /// that each has. All else is ignored, and loads read zero (section 3.5).
    pub fn store_to_file(&self, offset: u64, width: u8, value: u32) -> u64 {
        if width != 4 || offset % PAGE != SETEIPNUM_LE {
            return 0;
        }
        self.post((offset / PAGE) as usize, value)
    }

    /// Puts a part of it back to reset, from part 0 on; false if that was the last one. As [`Aplic::reset`].
    pub fn reset(&self, part: usize, board: &mut dyn Board) -> bool {
        if self.domain.reset(part, board) {
            return true;
        }
        // BOUND: as many files as a guest can have, some 15 instructions each.
        self.files.iter().for_each(InterruptFile::reset);
        false
    }

    fn post(&self, hart: usize, identity: u32) -> u64 {
        let Some(file) = self.file(hart) else { return 0 };
        let interrupts = file.post(identity) || self.is_in_hardware(hart) && file.has_pending();
        u64::from(interrupts) << (hart % u64::BITS as usize)
    }

    /// An operation of the domain, and the harts to look at again for it and for its messages.
    fn with_outwards<T>(
        &self,
        board: &mut dyn Board,
        operation: impl FnOnce(&mut Outwards<'_>) -> (T, u64),
    ) -> (T, u64) {
        let mut outwards = Outwards { aia: self, harts: 0, board };
        let (value, harts) = operation(&mut outwards);
        (value, harts | outwards.harts)
    }
}
