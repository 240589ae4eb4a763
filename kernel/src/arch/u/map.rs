//! The hypervisor's own map, one for each hart: all physical addresses where they are, the [window](super::window) wherever a vCPU may have it, and what is the hart's own at the end.
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicUsize, Ordering};

use ainori_limits::{MAX_HARTS, PAGE};
use ainori_shadow::{Format, Satp};

use crate::arch::riscv::csr;

use super::block::{AT, Block};
use super::window;

const ENTRIES: usize = 512;
/// V, R, W, X, A, D.
const ALL: u64 = 0b1100_1111;
/// V, R, W, A, D.
const DATA: u64 = 0b1100_0111;
/// V.
const POINTER: u64 = 1;
/// Entries of a root for physical addresses: half of all, 1 GiB each.
const PHYSICAL: usize = ENTRIES / 2;

/// What there is for a hart.
#[repr(C, align(4096))]
struct Own {
    root: [u64; ENTRIES],
    middle: [u64; ENTRIES],
    leaves: [u64; ENTRIES],
    /// Before the hart's own, in its page. That is reached by another address ([`block`](super::block::block)).
    unused: [u8; PAGE as usize / 2],
    block: [u8; PAGE as usize / 2],
}

const _: () = assert!(size_of::<Block>() <= PAGE as usize / 2 && AT as u64 == u64::MAX - PAGE / 2 + 1);

struct All(UnsafeCell<[Own; MAX_HARTS]>);

// SAFETY: each hart has one of these, which it takes by a counter.
unsafe impl Sync for All {}

const EMPTY: Own = Own {
    root: [0; ENTRIES],
    middle: [0; ENTRIES],
    leaves: [0; ENTRIES],
    unused: [0; PAGE as usize / 2],
    block: [0; PAGE as usize / 2],
};
static OWN: All = All(UnsafeCell::new([EMPTY; MAX_HARTS]));
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The entry that leads to a table, or maps a page.
const fn entry(address: u64, bits: u64) -> u64 {
    address >> 12 << 10 | bits
}

/// Makes the map of the hart that calls this, once. The address of its root. `None`: there are more harts than there can be.
pub(super) fn make() -> Option<u64> {
    let number = TAKEN.fetch_add(1, Ordering::Relaxed);
    if number >= MAX_HARTS {
        return None;
    }
    // SAFETY: it is in the array, and nobody else has this number.
    let own = unsafe { &mut *OWN.0.get().cast::<Own>().add(number) };
    let at = core::ptr::from_ref(own) as u64;
    let (window, end) = (window::table(), entry(at + offset_of!(Own, middle) as u64, POINTER));
    // BOUND: the entries of a table, once.
    for (index, place) in own.root.iter_mut().enumerate() {
        *place = match index {
            0..PHYSICAL => entry((index as u64) << 30, ALL),
            // At the end of the last one is the hart's own.
            _ if index == ENTRIES - 1 => end,
            _ => entry(window, POINTER),
        };
    }
    own.middle[0] = entry(window::leaves(), POINTER);
    own.middle[ENTRIES - 1] = entry(at + offset_of!(Own, leaves) as u64, POINTER);
    own.leaves[ENTRIES - 1] = entry(at + offset_of!(Own, unused) as u64, DATA);
    Some(at)
}

/// ASIDs that the hart tells apart, less one. Only at boot, on the hart that boots.
pub(super) fn asids() -> u16 {
    let own = OWN.0.get().cast::<Own>();
    // SAFETY: no hart has taken this map yet, and who takes it writes all that is in it. With it, physical addresses are where they are, as without translation.
    unsafe {
        for (index, place) in (*own).root.iter_mut().enumerate().take(PHYSICAL) {
            *place = entry((index as u64) << 30, ALL);
        }
        csr::write!(csr::SATP, Satp::new(Format::Sv39, u16::MAX, own as u64).0);
        let asids = Satp(csr::read!(csr::SATP)).asid();
        csr::write!(csr::SATP, 0);
        super::fence::guest_all();
        asids
    }
}
