//! What a guest's memory holds when a life of it begins. All of it stays as it is, outside the guest's memory, so that a guest can be
//! started again.
use alloc::vec::Vec;

use crate::memory::Range;

/// Bytes that [`Program::load_chunk`] loads; some 500 instructions.
pub const CHUNK: u64 = 1024;

/// Bytes that lie in a guest's memory.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Where, from the start of its memory.
    pub offset: u64,
    /// What. They fit into its memory.
    pub bytes: &'static [u8],
}

/// A guest's program with all that it finds beside it: RAM disk and device tree. The rest of its memory is zero.
#[derive(Debug, Default)]
pub struct Program {
    /// Guest-physical address of its first instruction.
    pub entry: u64,
    /// Guest-physical address of its device tree.
    pub tree: u64,
    /// In any order, without overlaps.
    pub parts: Vec<Part>,
}

/// Clears a chunk, with nothing but stores: the compiler's own routine takes twice as long.
///
/// # Safety
/// [`CHUNK`] bytes from `at` on, which is a multiple of 8, may be written.
unsafe fn clear(at: *mut u64) {
    const ROW: usize = 8;
    // BOUND: 16 rounds.
    for row in 0..CHUNK as usize / 8 / ROW {
        // SAFETY: by the condition of the loop, they lie in the chunk.
        unsafe {
            let at = at.add(row * ROW);
            at.write_volatile(0);
            at.add(1).write_volatile(0);
            at.add(2).write_volatile(0);
            at.add(3).write_volatile(0);
            at.add(4).write_volatile(0);
            at.add(5).write_volatile(0);
            at.add(6).write_volatile(0);
            at.add(7).write_volatile(0);
        }
    }
}

impl Program {
    /// Puts [`CHUNK`] bytes of a guest's memory, which starts at `memory`, to what they are when a life begins. `offset` is a multiple of
    /// [`CHUNK`].
    ///
    /// # Safety
    /// That memory is the guest's, and none of its vCPUs runs.
    pub unsafe fn load_chunk(&self, memory: Range, offset: u64) {
        let end = offset + CHUNK;
        let chunk = (memory.start + offset) as *mut u64;
        let covers = |part: &Part| part.offset <= offset && end <= part.offset + part.bytes.len() as u64;
        // BOUND: the parts of the program, some 8 instructions each; there are about five.
        if !self.parts.iter().any(covers) {
            // SAFETY: the caller vouches for the chunk, which is aligned as guests' memory is.
            unsafe { clear(chunk) };
        }
        // BOUND: the same, some 15 instructions for each that isn't in the chunk.
        for part in &self.parts {
            let (from, to) = (part.offset.max(offset), (part.offset + part.bytes.len() as u64).min(end));
            if from < to
                && let Some(bytes) =
                    part.bytes.get((from - part.offset) as usize..(to - part.offset) as usize)
            {
                // SAFETY: `from..to` lies in the chunk. The part lies elsewhere: nothing of the hypervisor's is in a guest's memory.
                unsafe {
                    // BOUND: a chunk at most.
                    core::ptr::copy_nonoverlapping(
                        bytes.as_ptr(),
                        (memory.start + from) as *mut u8,
                        bytes.len(),
                    );
                }
            }
        }
    }
}
