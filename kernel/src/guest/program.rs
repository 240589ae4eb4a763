//! What a guest's memory holds when a life of it begins. All of it stays as it is, outside the guest's memory, so that a guest can be
//! started again.
use alloc::vec::Vec;

use ainori_board::Range;

/// Bytes that [`Program::load_chunk`] loads: some 100 instructions where they are zeros, 400 where they are a part's.
pub const CHUNK: u64 = 512;

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
    // BOUND: 8 rounds.
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

/// Copies bytes. Where words lie otherwise in `to` than in `from`, the compiler's own routine takes twice as long as this one.
///
/// # Safety
/// As many bytes from `to` on may be written, and only the caller knows of them. None of them are in `from`.
unsafe fn copy(from: &[u8], to: *mut u8) {
    if (to.addr() ^ from.as_ptr().addr()).is_multiple_of(size_of::<u64>()) {
        // SAFETY: the caller vouches for it.
        // BOUND: a chunk at most.
        unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        return;
    }
    // SAFETY: the caller vouches for these bytes; all that memory may hold are bytes.
    let to = unsafe { core::slice::from_raw_parts_mut(to, from.len()) };
    let head = to.as_ptr().align_offset(size_of::<u64>()).min(from.len());
    let (from_head, from) = from.split_at(head);
    let (to_head, to) = to.split_at_mut(head);
    copy_bytes(from_head, to_head);
    // SAFETY: any eight bytes are a word, and any word is eight bytes.
    let ((before, words, _), (_, places, _)) = unsafe { (from.align_to::<u64>(), to.align_to_mut::<u64>()) };
    // Of 1 to 7 bytes, if there are any words.
    let shift = 8 * before.len() as u32;
    // BOUND: 7 bytes, 14 if there are no words.
    let mut carry = before.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    // BOUND: the words of a chunk, some 7 instructions each.
    for (word, place) in words.iter().zip(places) {
        *place = carry | word.wrapping_shl(shift);
        carry = word.wrapping_shr(shift.wrapping_neg());
    }
    let done = size_of_val(words);
    copy_bytes(from.get(done..).unwrap_or_default(), to.get_mut(done..).unwrap_or_default());
}

/// Less than two words.
fn copy_bytes(from: &[u8], to: &mut [u8]) {
    // BOUND: 14 bytes, some 6 instructions each.
    for (byte, place) in from.iter().zip(to) {
        *place = *byte;
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
                let to = (memory.start + from) as *mut u8;
                // SAFETY: `from..to` lies in the chunk, which the caller vouches for: while no vCPU runs, nobody else knows of it. The part lies
                // elsewhere: nothing of the hypervisor's is in a guest's memory.
                unsafe { copy(bytes, to) };
            }
        }
    }
}
