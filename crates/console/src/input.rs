//! What is typed, on its way to the port of the guest that gets it.
use crate::atomic::{AtomicBool, Ordering};

/// What was typed and doesn't fit into the guest's port yet, at most `N` bytes. The core that drives the serial line has it.
pub struct Input<const N: usize> {
    bytes: [u8; N],
    /// Bytes ever put in and taken out.
    typed: usize,
    passed_on: usize,
}

/// Says to the vCPUs of that guest that something waits for room in its port.
#[derive(Default)]
pub struct InputWaits(AtomicBool);

impl InputWaits {
    /// Nothing waits.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// A vCPU has read from the port, and has given it free: must it tell the core that drives the serial line?
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<const N: usize> Input<N> {
    /// Nothing has been typed.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; N], typed: 0, passed_on: 0 }
    }

    /// Bytes that find room.
    #[must_use]
    pub fn room(&self) -> usize {
        N - (self.typed - self.passed_on)
    }

    /// True if nothing waits to be passed on.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.typed == self.passed_on
    }

    /// Something was typed. False if there was no room for it.
    pub fn push(&mut self, byte: u8) -> bool {
        let has_room = self.room() > 0;
        if has_room {
            if let Some(place) = self.bytes.get_mut(self.typed % N) {
                *place = byte;
            }
            self.typed += 1;
        }
        has_room
    }

    /// Passes on what was typed for as long as `accept` takes it.
    ///
    /// The caller has the guest's port to itself, and so has a vCPU that reads from it. So a vCPU that makes room after this sees what is said
    /// in `waits` before, and asks for more.
    pub fn pass_on(&mut self, waits: &InputWaits, mut accept: impl FnMut(u8) -> bool) {
        // BOUND: until the guest's port is full, after 16 bytes.
        while !self.is_empty() && self.bytes.get(self.passed_on % N).is_some_and(|byte| accept(*byte)) {
            self.passed_on += 1;
        }
        waits.0.store(!self.is_empty(), Ordering::Relaxed);
    }
}

impl<const N: usize> Default for Input<N> {
    fn default() -> Self {
        Self::new()
    }
}
