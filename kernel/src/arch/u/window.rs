//! The window: the one page of the hypervisor that is in all tables that a hart walks, at the same place in a vCPU's as in the hypervisor's own. In it the hart changes from
//! the one to the other. A guest, in U-mode, can't reach it.
//!
//! Where it is, each vCPU may choose among the entries of a root for the upper half of addresses: in one that its guest doesn't use. It is at the beginning of what that entry covers, which
//! depends on the format of the guest's tables.
use alloc::boxed::Box;
use core::arch::global_asm;
use core::cell::UnsafeCell;
use core::mem::offset_of;

use ainori_limits::PAGE;
use ainori_limits::cause::{exception, interrupt};
use ainori_supervisor::Supervisor;

use super::page::{ASID_SHIFT, Entry, Fast, GOES_ON, PLACES, Page, SPACES, Space, TRAPS_PLACE, WAYS};
use super::per_hart::{AT, PerHart};
use super::senvcfg;
use crate::arch::riscv::csr::{self, status};

const ENTRIES: usize = 512;
/// Bytes of its code, in pages: what comes first, the handlers, and behind them what there is for each general register.
pub(super) const CODE: u64 = CODE_PAGES as u64 * PAGE;
const CODE_PAGES: usize = 4;
/// Bytes of it: the code, and the [page](Page) of a vCPU.
pub(super) const SIZE: u64 = CODE + size_of::<Page>() as u64;
/// Where in the window the usual way of a trap goes on, where the way to a guest begins, and where a guest's memory is read. A trap is taken at its first byte.
const USUAL: u64 = 0x58;
pub(super) const LEAVE: u64 = 0x120;
pub(super) const READ: u64 = 0x1e0;

/// Where the handlers of the [fast path](super::fast) are that are for all registers.
mod handler {
    pub(super) const SWAP: u64 = 0x300;
    pub(super) const READ_STATUS: u64 = 0x340;
    pub(super) const ENABLE: u64 = 0x370;
    pub(super) const ENABLE_ONLY: u64 = 0x3b0;
    pub(super) const STATUS_SET: u64 = 0x400;
    pub(super) const STATUS_CLEAR: u64 = 0x430;
    pub(super) const STATUS_WRITE: u64 = 0x460;
    pub(super) const WRITE_TIMER: u64 = 0x720;
    pub(super) const CLEAR_PENDING: u64 = 0x780;
    pub(super) const CLEAR_PENDING_NUMBER: u64 = 0x7b0;
    pub(super) const SET_PENDING: u64 = 0x800;
    pub(super) const SET_PENDING_NUMBER: u64 = 0x814;
    pub(super) const RETURN: u64 = 0x8c0;
}

/// They, from the address that the fast path has in `a0`, in the order of their numbers there. The first is the usual way.
pub(super) const HANDLERS: [i16; 14] = [
    from_base(USUAL),
    from_base(handler::SWAP),
    from_base(handler::STATUS_SET),
    from_base(handler::STATUS_CLEAR),
    from_base(handler::STATUS_WRITE),
    from_base(handler::ENABLE),
    from_base(handler::ENABLE_ONLY),
    from_base(handler::RETURN),
    from_base(handler::READ_STATUS),
    from_base(handler::WRITE_TIMER),
    from_base(handler::CLEAR_PENDING),
    from_base(handler::CLEAR_PENDING_NUMBER),
    from_base(handler::SET_PENDING),
    from_base(handler::SET_PENDING_NUMBER),
];

/// Where the code is that reads and writes a general register of the guest by its number, 8 bytes for each; the second kind of the latter goes on with the next instruction.
/// A jump reaches them from `a0`.
const GET_PLACE: u64 = CODE - 0x800;
const PUT_PLACE: u64 = CODE - 0x700;
const PUT_ON_PLACE: u64 = CODE - 0x600;

/// Handlers of which there is one for each general register.
mod family {
    /// Reads of a plain register of the supervisor, 32 of each, in the order of [`plain`](super::super::fast); behind them the same which go on with the next instruction.
    pub(super) const READ: u64 = 0x1000;
    pub(super) const READ_ON: u64 = 0x1800;
    /// Writes of one, in the same order.
    pub(super) const WRITE: u64 = 0x2000;
    /// `csrrw` of `sscratch` with the same register as its source and its target.
    pub(super) const SWAP_SAME: u64 = 0x2800;
    /// `csrs` and `csrc` of `sstatus`.
    pub(super) const SET: u64 = 0x2a00;
    pub(super) const CLEAR: u64 = 0x2c00;
    /// `csrw` of `satp`.
    pub(super) const SPACE: u64 = 0x2e00;
    /// `csrrci` of SIE in `sstatus`: there is more room for each of these.
    pub(super) const DISABLE_INTO: u64 = 0x3000;
}

/// They, from the address that the fast path has in `a0`, in the order of their numbers there; and how many bytes there are for each register, as a power of two.
pub(super) const FAMILIES: [(i16, u8); 8] = [
    (from_base(family::READ), NARROW),
    (from_base(family::READ_ON), NARROW),
    (from_base(family::WRITE), NARROW),
    (from_base(family::SWAP_SAME), NARROW),
    (from_base(family::SET), NARROW),
    (from_base(family::CLEAR), NARROW),
    (from_base(family::SPACE), NARROW),
    (from_base(family::DISABLE_INTO), WIDE),
];
const NARROW: u8 = 4;
const WIDE: u8 = 6;

/// The address that the fast path has in `a0` is that of the page behind the code.
const BASE: u64 = CODE;

const fn from_base(place: u64) -> i16 {
    place as i16 - BASE as i16
}

const fn of_registers(offset: usize) -> i64 {
    offset as i64
}

const fn of_fast(offset: usize) -> i64 {
    of_registers(offset_of!(Page, fast) + offset)
}

const fn of_entry(offset: usize) -> i64 {
    of_registers(offset_of!(Page, entries) + offset)
}

const fn of_space(offset: usize) -> i64 {
    of_fast(offset_of!(Fast, spaces) + offset)
}

const _: () = assert!(
    offset_of!(Page, registers) == 0
        && offset_of!(Page, entries) < 2048 - size_of::<Entry>()
        && size_of::<Entry>() == 16
        && size_of::<Space>() == 32
        && (PLACES - 1) << 1 < 2048
        && WAYS == 2
);

#[repr(C, align(4096))]
struct Table(UnsafeCell<[u64; ENTRIES]>);

// SAFETY: they are written once, by the hart that boots, before others run.
unsafe impl Sync for Table {}

/// The formats of tables that an entry of a root leads to the window in: so many levels less one.
pub(super) const FORMATS: usize = 3;

static UPPER: Table = Table(UnsafeCell::new([0; ENTRIES]));
static MIDDLE: Table = Table(UnsafeCell::new([0; ENTRIES]));
static LEAVES: Table = Table(UnsafeCell::new([0; ENTRIES]));

global_asm!(
    include_str!("../riscv/all_but_a0.S"),
    include_str!("window.S"),
    USUAL = const USUAL,
    LEAVE = const LEAVE,
    READ = const READ,
    CODE = const CODE,
    SWAP = const handler::SWAP,
    READ_STATUS = const handler::READ_STATUS,
    ENABLE = const handler::ENABLE,
    ENABLE_ONLY = const handler::ENABLE_ONLY,
    STATUS_SET = const handler::STATUS_SET,
    STATUS_CLEAR = const handler::STATUS_CLEAR,
    STATUS_WRITE = const handler::STATUS_WRITE,
    WRITE_TIMER = const handler::WRITE_TIMER,
    CLEAR_PENDING = const handler::CLEAR_PENDING,
    CLEAR_PENDING_NUMBER = const handler::CLEAR_PENDING_NUMBER,
    SET_PENDING = const handler::SET_PENDING,
    SET_PENDING_NUMBER = const handler::SET_PENDING_NUMBER,
    RETURN = const handler::RETURN,
    GET_PLACE = const GET_PLACE,
    PUT_PLACE = const PUT_PLACE,
    PUT_ON_PLACE = const PUT_ON_PLACE,
    READ_FAMILY = const family::READ,
    READ_ON_FAMILY = const family::READ_ON,
    WRITE_FAMILY = const family::WRITE,
    SWAP_SAME_FAMILY = const family::SWAP_SAME,
    SET_FAMILY = const family::SET,
    CLEAR_FAMILY = const family::CLEAR,
    SPACE_FAMILY = const family::SPACE,
    DISABLE_INTO_FAMILY = const family::DISABLE_INTO,
    GOES_ON = const GOES_ON,
    GET = const from_base(GET_PLACE),
    PUT = const from_base(PUT_PLACE),
    PUT_ON = const from_base(PUT_ON_PLACE),
    ENTRY_TAG = const of_entry(offset_of!(Entry, tag)),
    ENTRY_SIZE = const size_of::<Entry>(),
    ENTRY_HANDLER = const of_entry(offset_of!(Entry, handler)),
    ENTRY_SOURCE = const of_entry(offset_of!(Entry, source)),
    ENTRY_TARGET = const of_entry(offset_of!(Entry, target)),
    UNITS_SHIFT = const status::VS.trailing_zeros(),
    BOTH_MASK = const (status::FS & status::FS << 1 | status::VS & status::VS << 1) >> 1 >> status::VS.trailing_zeros(),
    UNITS_MASK = const (status::FS | status::VS) >> status::VS.trailing_zeros(),
    LOADED = const of_fast(offset_of!(Fast, loaded)),
    WRITTEN = const of_fast(offset_of!(Fast, written)),
    ALARM = const of_fast(offset_of!(Fast, alarm)),
    IS_FIRMWARES = const cfg!(feature = "sbi-timer") as usize,
    STIMECMP = const csr::STIMECMP,
    TIMER = const interrupt::SUPERVISOR_TIMER,
    TIMER_BIT = const 1 << interrupt::SUPERVISOR_TIMER,
    SOFTWARE = const interrupt::SUPERVISOR_SOFTWARE,
    SOFTWARE_BIT = const 1 << interrupt::SUPERVISOR_SOFTWARE,
    BREAKPOINT = const exception::BREAKPOINT,
    CALL = const exception::CALL_FROM_USER,
    PLACES = const PLACES,
    SIE_BIT = const status::SIE,
    SPIE_BIT = const status::SPIE,
    SPP_BIT = const status::SPP,
    SUM_SHIFT = const status::SUM.trailing_zeros(),
    T0 = const of_fast(offset_of!(Fast, saved)),
    T1 = const of_fast(offset_of!(Fast, saved) + 8),
    T2 = const of_fast(offset_of!(Fast, saved) + 16),
    T3 = const of_fast(offset_of!(Fast, saved) + 24),
    T4 = const of_fast(offset_of!(Fast, saved) + 32),
    KERNEL = const of_fast(offset_of!(Fast, kernel)),
    WALKED_USER = const of_fast(offset_of!(Fast, walked)),
    WALKED_KERNEL = const of_fast(offset_of!(Fast, walked) + 8),
    WALKED_SUM = const of_fast(offset_of!(Fast, walked) + 16),
    SATP = const of_fast(offset_of!(Fast, satp)),
    SPACES = const SPACES,
    ASID_SHIFT = const ASID_SHIFT,
    SPACE_SATP = const of_space(offset_of!(Space, satp)),
    SPACE_USER = const of_space(offset_of!(Space, walked)),
    SPACE_KERNEL = const of_space(offset_of!(Space, walked) + 8),
    SPACE_SUM = const of_space(offset_of!(Space, walked) + 16),
    COUNTERS_USER = const of_fast(offset_of!(Fast, counters)),
    COUNTERS_KERNEL = const of_fast(offset_of!(Fast, counters) + 8),
    ENVIRONMENT_USER = const of_fast(offset_of!(Fast, environment)),
    ENVIRONMENT_KERNEL = const of_fast(offset_of!(Fast, environment) + 8),
    CHANGES = const of_fast(offset_of!(Fast, changes)),
    STAMP = const of_fast(offset_of!(Fast, stamp)),
    STAMP_OF_KERNEL = const of_fast(offset_of!(Fast, stamp_of_kernel)),
    WATCHES = const of_fast(offset_of!(Fast, watches)),
    WATCHES_TRAPS = const of_fast(offset_of!(Fast, watches) + TRAPS_PLACE),
    COUNT = const of_fast(offset_of!(Fast, count)),
    SSTATUS = const of_registers(Supervisor::OFFSETS.sstatus),
    SSCRATCH = const of_registers(Supervisor::OFFSETS.sscratch),
    SEPC = const of_registers(Supervisor::OFFSETS.sepc),
    SCAUSE = const of_registers(Supervisor::OFFSETS.scause),
    STVAL = const of_registers(Supervisor::OFFSETS.stval),
    STVEC = const of_registers(Supervisor::OFFSETS.stvec),
    DEADLINE = const of_registers(Supervisor::OFFSETS.deadline),
    LINES = const of_registers(Supervisor::OFFSETS.lines),
    SIE = const of_registers(Supervisor::OFFSETS.sie),
    PRIVILEGE = const of_registers(Supervisor::OFFSETS.privilege),
    WALKED = const AT + offset_of!(PerHart, walked) as i64,
    CONTEXT = const AT + offset_of!(PerHart, context) as i64,
    TAKEN = const AT + offset_of!(PerHart, taken) as i64,
    BUG = const AT + offset_of!(PerHart, bug) as i64,
);

unsafe extern "C" {
    static window_tagged: u8;
    static window_untagged: u8;
}

/// V, R, X, A: no page of user mode.
const EXECUTABLE: u64 = 0b100_1011;
/// V, R, W, A, D.
const DATA: u64 = 0b1100_0111;
const POINTER: u64 = 1;

/// The tables of a window in each format, from that of the middle and that above it. No root has Sv57.
const fn by_format(middle: u64, upper: u64) -> [u64; FORMATS] {
    [middle, upper, upper]
}

/// The window of a vCPU: with its [page](Page) behind the code. Its tables in each format. Allocates: only at boot, behind [`prepare`].
pub(super) fn of_page(page: &'static Page) -> [u64; FORMATS] {
    let [upper, middle, leaves]: [&'static mut Table; 3] =
        core::array::from_fn(|_| Box::leak(Box::new(Table(UnsafeCell::new([0; ENTRIES])))));
    let at = core::ptr::from_ref(page) as u64;
    let pages = size_of::<Page>() as u64 / PAGE;
    // SAFETY: it was written at boot, before this, and isn't any more.
    let code = unsafe { &*LEAVES.0.get() };
    let entries = leaves.0.get_mut();
    // BOUND: a few pages, at boot.
    for (entry, of_code) in entries.iter_mut().zip(code).take(CODE_PAGES) {
        *entry = *of_code;
    }
    // BOUND: likewise.
    for (number, entry) in (0..pages).zip(entries.iter_mut().skip(CODE_PAGES)) {
        *entry = (at + number * PAGE) >> 12 << 10 | DATA;
    }
    middle.0.get_mut()[0] = (core::ptr::from_ref(leaves) as u64) >> 12 << 10 | POINTER;
    upper.0.get_mut()[0] = (core::ptr::from_ref(middle) as u64) >> 12 << 10 | POINTER;
    by_format(core::ptr::from_ref(middle) as u64, core::ptr::from_ref(upper) as u64)
}

/// Makes the tables of the window as the hypervisor's own map has it. Only at boot, before any hart has a map.
pub(super) fn prepare(has_asids: bool) {
    let page = if has_asids { &raw const window_tagged } else { &raw const window_untagged } as u64;
    senvcfg::leave_out(page as *mut u32, CODE as usize);
    // SAFETY: no other hart runs yet, and none has these tables.
    unsafe {
        (*UPPER.0.get())[0] = (MIDDLE.0.get() as u64) >> 12 << 10 | POINTER;
        (*MIDDLE.0.get())[0] = (LEAVES.0.get() as u64) >> 12 << 10 | POINTER;
        // BOUND: a few pages, at boot.
        for (number, entry) in (0..CODE_PAGES as u64).zip((*LEAVES.0.get()).iter_mut()) {
            *entry = (page + number * PAGE) >> 12 << 10 | EXECUTABLE;
        }
    }
}

/// Do vCPUs' translations stay apart by the ASIDs of harts alone? Only behind [`prepare`].
pub(super) fn relies_on_asids() -> bool {
    let tagged = (&raw const window_tagged) as u64;
    // SAFETY: it was written at boot, before this, and isn't any more.
    unsafe { (*LEAVES.0.get())[0] == tagged >> 12 << 10 | EXECUTABLE }
}

/// The tables that the window's entry of a root leads to in each format, in the hypervisor's own map.
pub(super) fn tables() -> [u64; FORMATS] {
    by_format(MIDDLE.0.get() as u64, UPPER.0.get() as u64)
}

/// Where the entry of the first of them leads to, for whoever has something else there as well.
pub(super) fn leaves() -> u64 {
    LEAVES.0.get() as u64
}
