//! The hypervisor's own map, one for each hart: all physical addresses where they are, the [window](super::window) wherever a vCPU may have it, and what is the hart's own at the end.
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ainori_limits::{MAX_HARTS, PAGE};
use ainori_shadow::{Format, Satp};

use crate::arch::riscv::csr;

use super::per_hart::{AT, PerHart, per_hart};
use super::window;

const ENTRIES: usize = 512;
/// V, R, W, X, A, D.
const ALL: u64 = 0b1100_1111;
/// V, R, W, A, D.
const DATA: u64 = 0b1100_0111;
/// V.
const POINTER: u64 = 1;
/// Entries of a root for physical addresses: half of all, 1 GiB (Sv39) or 512 GiB (Sv48) each.
const PHYSICAL: usize = ENTRIES / 2;

/// What there is for a hart.
#[repr(C, align(4096))]
struct Own {
    root: [u64; ENTRIES],
    /// Between these two with four levels alone.
    upper: [u64; ENTRIES],
    middle: [u64; ENTRIES],
    leaves: [u64; ENTRIES],
    /// Before the hart's own, in its page. That is reached by another address ([`per_hart`](super::per_hart::per_hart)).
    unused: [u8; PAGE as usize / 2],
    per_hart: [u8; PAGE as usize / 2],
}

const _: () = assert!(size_of::<PerHart>() <= PAGE as usize / 2 && AT as u64 == u64::MAX - PAGE / 2 + 1);

struct All(UnsafeCell<[Own; MAX_HARTS]>);

// SAFETY: each hart has one of these, which it takes by a counter.
unsafe impl Sync for All {}

const EMPTY: Own = Own {
    root: [0; ENTRIES],
    upper: [0; ENTRIES],
    middle: [0; ENTRIES],
    leaves: [0; ENTRIES],
    unused: [0; PAGE as usize / 2],
    per_hart: [0; PAGE as usize / 2],
};
static OWN: All = All(UnsafeCell::new([EMPTY; MAX_HARTS]));
static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// Does the hart that boots translate in Sv48?
static HAS_SV48: AtomicBool = AtomicBool::new(false);

/// The entry that leads to a table, or maps a page.
const fn entry(address: u64, bits: u64) -> u64 {
    address >> 12 << 10 | bits
}

/// Makes the map of the hart that calls this, once, and has the hart walk it: in Sv48 if it has that, else in Sv39. What is in `satp` then. `None`: there are more harts than there can be.
///
/// Wherever a vCPU may have its window, in tables of the map's format or of one with fewer levels, this has it as well.
///
/// # Safety
/// The hart translates nothing.
pub(super) unsafe fn make() -> Option<u64> {
    let number = TAKEN.fetch_add(1, Ordering::Relaxed);
    if number >= MAX_HARTS {
        return None;
    }
    // SAFETY: it is in the array, and nobody else has this number.
    let own = unsafe { &mut *OWN.0.get().cast::<Own>().add(number) };
    let at = core::ptr::from_ref(own) as u64;
    let [upper, middle, leaves, page] =
        [offset_of!(Own, upper), offset_of!(Own, middle), offset_of!(Own, leaves), offset_of!(Own, unused)]
            .map(|offset| at + offset as u64);
    own.middle[0] = entry(window::leaves(), POINTER);
    own.middle[ENTRIES - 1] = entry(leaves, POINTER);
    own.leaves[ENTRIES - 1] = entry(page, DATA);
    let [of_sv39, of_sv48, ..] = window::tables();
    // The last entry of the root is the upper half of Sv39's addresses, and a window's as well.
    map_windows(&mut own.upper, of_sv39, middle);
    own.upper[0] = entry(of_sv39, POINTER);
    map_physical(&mut own.root, 1 << 39);
    map_windows(&mut own.root, of_sv48, upper);
    let satp = Satp::new(Format::Sv48, 0, at).0;
    // SAFETY: with it all physical addresses are where they are, so that what is executed and used here stays where it is.
    if unsafe { walk(satp) } == satp {
        return Some(satp);
    }
    // A mode that the hart hasn't leaves all of `satp` as it was (privileged specification, "Supervisor Address Translation and Protection Register").
    map_physical(&mut own.root, 1 << 30);
    map_windows(&mut own.root, of_sv39, middle);
    let satp = Satp::new(Format::Sv39, 0, at).0;
    // SAFETY: as above.
    unsafe { walk(satp) };
    Some(satp)
}

/// Has the hart walk this. What is in `satp` then.
///
/// # Safety
/// What is executed and used from here on, until another is walked, is mapped by it where it is, or it is 0, and was.
unsafe fn walk(satp: u64) -> u64 {
    // What has been stored into tables comes before walks of them only by a fence, and what the hart has cached of them before it, even ahead of any use, is forgotten behind it (privileged
    // specification, "Supervisor Memory-Management Fence Instruction").
    super::fence::guest_all();
    // SAFETY: as demanded.
    let taken = unsafe {
        csr::write!(csr::SATP, satp);
        csr::read!(csr::SATP)
    };
    super::fence::guest_all();
    taken
}

/// Maps physical addresses where they are: so many bytes by each entry of a root's lower half.
fn map_physical(root: &mut [u64; ENTRIES], size: u64) {
    // BOUND: half of a table, at boot.
    for (index, place) in (0_u64..).zip(root.iter_mut().take(PHYSICAL)) {
        *place = entry(index * size, ALL);
    }
}

/// Each entry of a table's upper half leads to a table of the window, but for the last one, which leads to a table that has the hart's own at its end.
fn map_windows(table: &mut [u64; ENTRIES], window: u64, last: u64) {
    // BOUND: half of a table, at boot.
    for place in table.iter_mut().skip(PHYSICAL) {
        *place = entry(window, POINTER);
    }
    table[ENTRIES - 1] = entry(last, POINTER);
}

/// ASIDs that the hart tells apart, less one. Only at boot, on the hart that boots.
pub(super) fn asids() -> u16 {
    let own = OWN.0.get().cast::<Own>();
    // SAFETY: no hart has taken this map yet, and who takes it writes all that is in it. With it, physical addresses are where they are, as without translation.
    unsafe {
        map_physical(&mut (*own).root, 1 << 30);
        let asids = Satp(walk(Satp::new(Format::Sv39, u16::MAX, own as u64).0)).asid();
        walk(0);
        asids
    }
}

/// Has this hart, which has its map, all ASIDs that there are? Only at boot.
pub(super) fn has_all_asids() -> bool {
    let own = Satp(per_hart().kernel.get());
    let Ok(Some(format)) = own.format() else { return false };
    // SAFETY: the same tables under another ASID, and again under the former one.
    unsafe {
        let taken = Satp(walk(Satp::new(format, u16::MAX, own.root().0).0));
        walk(own.0);
        taken.asid() == u16::MAX
    }
}

/// The greatest format of tables that the hart that boots has, of those that a shadow can have: a device tree may say more (that of QEMU's `sifive_u` does).
pub(super) fn greatest_format() -> Format {
    if HAS_SV48.load(Ordering::Relaxed) { Format::Sv48 } else { Format::Sv39 }
}

/// Tries it. Only at boot, on the hart that boots.
pub(super) fn probe_formats() {
    let own = OWN.0.get().cast::<Own>();
    // SAFETY: as in `asids`. A mode that the hart hasn't leaves all of `satp` as it was.
    let is_taken = unsafe {
        map_physical(&mut (*own).root, 1 << 39);
        let satp = Satp::new(Format::Sv48, 0, own as u64).0;
        let is_taken = walk(satp) == satp;
        walk(0);
        is_taken
    };
    HAS_SV48.store(is_taken, Ordering::Relaxed);
}
