//! What a guest's memory holds when a life of it begins. All of it stays as it is, outside the guest's memory, so that a guest can be
//! started again.
use alloc::vec::Vec;

use ainori_board::Range;

/// Bytes that [`Program::load_some`] loads at most: some 100 instructions where they are zeros, 600 where they are a part's.
const CHUNK: u64 = 512;
/// The same where little has to do: some 80 instructions.
const LITTLE: u64 = 64;

/// Bytes that lie in a guest's memory.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Where, from the start of its memory.
    pub offset: u64,
    /// What. They fit into its memory.
    pub bytes: &'static [u8],
}

impl Part {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// A guest's program with all that it finds beside it: RAM disk and device tree. The rest of its memory is zero.
#[derive(Debug, Default)]
pub struct Program {
    /// Guest-physical address of its first instruction.
    pub entry: u64,
    /// Guest-physical address of its device tree.
    pub tree: u64,
    /// In the order of their places, without overlaps.
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
    /// Puts some bytes of a guest's memory, which starts at `memory`, to what they are when a life begins: from `offset` on, to the end
    /// of its [`CHUNK`], or only of its [`LITTLE`], and of one part only, however many there are. Returns where it has stopped.
    ///
    /// # Safety
    /// That memory is the guest's, `offset` lies in it, and none of its vCPUs runs.
    pub unsafe fn load_some(&self, memory: Range, offset: u64, is_little: bool) -> u64 {
        let last = if is_little { LITTLE - 1 } else { CHUNK - 1 };
        let chunk_end = (offset | last) + 1;
        let to = (memory.start + offset) as *mut u8;
        // 7 rounds for as many parts as a program may have, some 10 instructions each.
        let next = self.parts.partition_point(|part| part.end() <= offset);
        let part = self.parts.get(next);
        if let Some(part) = part
            && let Some(rest) =
                offset.checked_sub(part.offset).and_then(|from| part.bytes.get(from as usize..))
        {
            let bytes = rest.get(..(chunk_end - offset) as usize).unwrap_or(rest);
            // SAFETY: `to` and as many bytes behind it are the guest's, as the part fits into its memory: while no vCPU runs, nobody else knows of them. The part
            // lies elsewhere: nothing of the hypervisor's is in a guest's memory.
            unsafe { copy(bytes, to) };
            return offset + bytes.len() as u64;
        }
        let end = part.map_or(chunk_end, |part| part.offset.min(chunk_end));
        if end == offset + CHUNK {
            // SAFETY: as above, since memory is a multiple of chunks; a whole chunk is aligned as guests' memory is.
            unsafe { clear(to.cast()) };
        } else {
            // SAFETY: the same, for less than a chunk.
            unsafe { to.write_bytes(0, (end - offset) as usize) };
        }
        end
    }
}
