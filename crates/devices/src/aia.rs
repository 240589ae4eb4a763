//! What a guest has of the Advanced Interrupt Architecture: a domain of an APLIC, and, where its interrupts are messages, an interrupt file for each of
//! its harts.
use crate::aplic::{Aplic, Delivery, HARTS, Msi, Outside};
use crate::imsic::{InterruptFile, PAGE, SETEIPNUM_LE};

/// Both together. Shared by the vCPUs of one guest; all methods take `&self`, as those of the parts do. Sets of harts have a bit each, by their ids.
pub struct Aia {
    domain: Aplic,
    files: [InterruptFile; HARTS],
    /// How many of the files there are: none where the domain interrupts harts itself.
    file_count: usize,
}

/// What becomes of the domain's messages, and of what it has served.
struct Outwards<'a, C> {
    aia: &'a Aia,
    /// The harts whose files have got something that may interrupt them.
    harts: u64,
    completed: C,
}

impl<C: FnMut(u32)> Outside for Outwards<'_, C> {
    fn send(&mut self, msi: Msi) {
        self.harts |= self.aia.post(msi.hart, msi.identity);
    }

    fn complete(&mut self, source: u32) {
        (self.completed)(source);
    }
}

impl Aia {
    /// After reset, without any source. The domain interrupts harts itself.
    pub const fn direct() -> Self {
        Self::new(Delivery::Direct, 0)
    }

    /// The same with messages, for so many harts: at most as many as a guest can have.
    pub const fn with_files(harts: usize) -> Self {
        Self::new(Delivery::Msi, if harts < HARTS { harts } else { HARTS })
    }

    const fn new(delivery: Delivery, file_count: usize) -> Self {
        Self { domain: Aplic::new(delivery), files: [const { InterruptFile::new() }; HARTS], file_count }
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

    /// Does any of this interrupt a hart? False for harts that don't exist.
    pub fn is_pending(&self, hart: usize) -> bool {
        self.file(hart).map_or_else(|| self.domain.is_pending(hart), InterruptFile::is_signaled)
    }

    /// As [`Aplic::drive`]. Tells `completed` of a source that has been served, as all that follows does.
    pub fn drive(&self, source: u32, high: bool, completed: impl FnMut(u32)) -> u64 {
        self.with_outwards(completed, |outwards| ((), self.domain.drive(source, high, outwards))).1
    }

    /// A load from the domain's registers: the value, and the harts to look at again. As [`Aplic::read`].
    pub fn read(&self, offset: u64, width: u8, completed: impl FnMut(u32)) -> (u32, u64) {
        self.with_outwards(completed, |outwards| self.domain.read(offset, width, outwards))
    }

    /// A store to the domain's registers. As [`Aplic::write`].
    pub fn write(&self, offset: u64, width: u8, value: u32, completed: impl FnMut(u32)) -> u64 {
        self.with_outwards(completed, |outwards| ((), self.domain.write(offset, width, value, outwards))).1
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
    pub fn reset(&self, part: usize) -> bool {
        if self.domain.reset(part) {
            return true;
        }
        // BOUND: the vCPUs of one guest, some 10 instructions each.
        self.files.iter().for_each(InterruptFile::reset);
        false
    }

    fn post(&self, hart: usize, identity: u32) -> u64 {
        let interrupts = self.file(hart).is_some_and(|file| file.post(identity));
        u64::from(interrupts) << (hart % u64::BITS as usize)
    }

    /// An operation of the domain, and the harts to look at again for it and for its messages.
    fn with_outwards<T, C: FnMut(u32)>(
        &self,
        completed: C,
        operation: impl FnOnce(&mut Outwards<'_, C>) -> (T, u64),
    ) -> (T, u64) {
        let mut outwards = Outwards { aia: self, harts: 0, completed };
        let (value, harts) = operation(&mut outwards);
        (value, harts | outwards.harts)
    }
}
