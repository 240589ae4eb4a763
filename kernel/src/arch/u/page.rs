//! What there is of a vCPU in the [window](super::window): its supervisor's registers, and all that the fast path needs which carries out instructions without leaving the guest's tables.
use alloc::alloc::{Layout, alloc, handle_alloc_error};
use alloc::boxed::Box;
use core::cell::Cell;
use core::cell::UnsafeCell;

use ainori_supervisor::{Features, Supervisor, View};

/// Places for instructions that are known, by their addresses; a power of two. Debian's kernel has some 100 where it comes by often. With half as many places, more than a third of these were the second
/// ones at theirs, which takes longer.
pub(super) const PLACES: usize = 1024;
/// Instructions at each place. With one, seven of the 130 that a round trip through two pipes comes by had none.
pub(super) const WAYS: usize = 2;
/// Address spaces that the fast path may know, by the ends of their ASIDs; a power of two.
pub(super) const SPACES: usize = 8;
/// Where an ASID begins in `satp`.
pub(super) const ASID_SHIFT: u32 = 44;
/// The bit of [`Entry::handler`] that says that the fast path goes on with the instruction behind this one, for handlers that are for all registers. (A jump there doesn't see it.)
pub(super) const GOES_ON: i16 = 1;

/// The supervisor's registers of a vCPU. They are in memory that stays for ever, and are touched by the core that has the vCPU, and by none else.
#[repr(transparent)]
pub struct Registers(UnsafeCell<Supervisor>);

impl Registers {
    /// Does something with them.
    #[inline(always)]
    pub(super) fn with<T>(&self, what: impl FnOnce(&mut Supervisor) -> T) -> T {
        // SAFETY: only the core that has the vCPU calls this, and `what` has nothing by which it could come here a second time: none of the closures in this folder does. The fast path
        // touches them only while the vCPU runs.
        what(unsafe { &mut *self.0.get() })
    }
}

/// An instruction that is known: what to do at a breakpoint.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Its virtual address, and when it was entered ([`Breakpoints`](super::breakpoints::Breakpoints)).
    pub tag: u64,
    /// Where the fast path goes on, from the address that it has in `a0`.
    pub handler: i16,
    /// The register that it reads, times 8, for handlers that are for all registers.
    pub source: u8,
    /// Likewise the register that it writes.
    pub target: u8,
    /// The instruction.
    pub bits: u32,
}

/// An address space that the guest has been in, to which the fast path may go.
#[repr(C)]
pub(super) struct Space {
    /// What the guest has in `satp` for it.
    pub satp: Cell<u64>,
    /// What the hart walks there in each view. 0: that isn't known.
    pub walked: [Cell<u64>; VIEWS],
}

/// What the fast path reads and writes, beside the registers.
#[repr(C)]
pub(super) struct Fast {
    /// Registers of the guest that it uses, `t0` to `t4`: the last two only where it needs them.
    pub saved: [Cell<u64>; 5],
    /// The hypervisor's `satp`.
    pub kernel: Cell<u64>,
    /// What the hart walks in each view, by [`number_of`]. 0: that isn't known.
    pub walked: [Cell<u64>; VIEWS],
    /// What the guest has in its `satp`.
    pub satp: Cell<u64>,
    /// Others may have been told of: all that are have equal rights to what is known of breakpoints.
    pub spaces: [Space; SPACES],
    /// Breakpoints are known that aren't in all address spaces.
    pub is_local: Cell<bool>,
    /// `scounteren` and `senvcfg` of user mode, and of the guest's kernel.
    pub counters: [Cell<u64>; 2],
    pub environment: [Cell<u64>; 2],
    /// Bits of `sstatus` that the guest's kernel can change.
    pub changes: Cell<u64>,
    /// Fields of `sstatus` of those units whose registers in the hart are the vCPU's.
    pub loaded: Cell<u64>,
    /// What the hart's `sstatus` had in these fields when it changed them, all in one: a unit that was dirty then has been written to. Cleared by who reads it.
    pub written: Cell<u64>,
    /// The core's own alarm: an interrupt of the hart's timer before it is the vCPU's. 0: each is for the core.
    pub alarm: Cell<u64>,
    /// For the tags of entries: 0 while the guest isn't in its kernel, so that none is found.
    pub stamp: Cell<u64>,
    /// The same in its kernel: not 0.
    pub stamp_of_kernel: Cell<u64>,
    /// Not 0: returns and the timer's interrupts go the usual way, as the policy wants to see something. Calls do where that is all traps ([`watches`]).
    pub watches: Cell<u64>,
    /// Calls and returns that it has carried out, and interrupts of the vCPU's own that it has taken, for a report: a reset leaves it as it is. (To count each instruction would take as long as some of them do.)
    pub count: Cell<u64>,
}

/// Bits of [`Fast::watches`], each in a byte of its own: who asks for one alone loads that.
const RETURNS: u64 = 1 << 0;
const TRAPS: u64 = 1 << (8 * TRAPS_PLACE);
/// Which byte has the second one.
pub(super) const TRAPS_PLACE: usize = 1;

/// What the policy wants to see: returns of the kernel, and all traps of programs.
pub(super) const fn watches(returns: bool, traps: bool) -> u64 {
    (if returns { RETURNS } else { 0 }) | if traps { TRAPS } else { 0 }
}

impl Fast {
    /// It knows no address space any more but the present one.
    pub(super) fn forget_spaces(&self) {
        // BOUND: `SPACES`.
        for space in &self.spaces {
            // In which the kernel is as it goes there.
            if let Some(walked) = space.walked.get(number_of(View::Kernel)) {
                walked.set(0);
            }
        }
    }

    /// The present one, as it is known by now, may be gone to again from others of which that is so.
    pub(super) fn remember_space(&self) {
        let satp = self.satp.get();
        if let Some(space) = self.spaces.get((satp >> ASID_SHIFT) as usize % SPACES) {
            space.satp.set(satp);
            // BOUND: the views.
            for (of_space, walked) in space.walked.iter().zip(&self.walked) {
                of_space.set(walked.get());
            }
        }
    }

    /// From now on the policy wants to see all traps of programs, or not.
    pub(super) fn watch_traps(&self, traps: bool) {
        self.watches.set(self.watches.get() & !TRAPS | watches(false, traps));
    }
}

/// Views that it changes between.
pub(super) const VIEWS: usize = 3;

/// The number of a view.
pub(super) const fn number_of(view: View) -> usize {
    match view {
        View::User => 0,
        View::Kernel => 1,
        View::KernelSum => 2,
    }
}

/// All of them.
pub(super) const ALL_VIEWS: [View; VIEWS] = [View::User, View::Kernel, View::KernelSum];

/// Of a vCPU, in pages of its own.
#[repr(C, align(4096))]
pub(super) struct Page {
    pub registers: Registers,
    pub fast: Fast,
    pub entries: Entries,
}

/// Behind the rest, where an instruction reaches them from the page's start.
#[repr(C, align(512))]
pub(super) struct Entries(pub [[Cell<Entry>; WAYS]; PLACES]);

/// No instruction is at an odd address.
pub(super) const NO_TAG: u64 = 1;
const NOTHING: Entry = Entry { tag: NO_TAG, handler: 0, source: 0, target: 0, bits: 0 };

impl Page {
    /// Of a vCPU that is to be reset yet. It is made where it stays: it has no room on a stack. Allocates: only at boot.
    pub(super) fn new() -> Box<Self> {
        const NOTHING_YET: Features = Features {
            float: false,
            vector: false,
            compressed: true,
            timer: false,
            invalidation: false,
            reservation_waits: false,
            counters: 0,
            counter_enables: 0,
            environment: None,
        };
        let registers = Registers(UnsafeCell::new(Supervisor::new(NOTHING_YET)));
        let fast = Fast {
            saved: [const { Cell::new(0) }; 5],
            kernel: Cell::new(0),
            walked: [const { Cell::new(0) }; VIEWS],
            satp: Cell::new(0),
            spaces: [const { Space { satp: Cell::new(0), walked: [const { Cell::new(0) }; VIEWS] } }; SPACES],
            is_local: Cell::new(false),
            counters: [const { Cell::new(0) }; 2],
            environment: [const { Cell::new(0) }; 2],
            changes: Cell::new(0),
            loaded: Cell::new(0),
            written: Cell::new(0),
            alarm: Cell::new(0),
            stamp: Cell::new(0),
            stamp_of_kernel: Cell::new(0),
            watches: Cell::new(0),
            count: Cell::new(0),
        };
        let layout = Layout::new::<Self>();
        // SAFETY: it isn't empty.
        let page = unsafe { alloc(layout) }.cast::<Self>();
        if page.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: it is memory for a page, and nobody else's. Each of its parts is written before it becomes a box, which is of the allocator that it is from.
        unsafe {
            (&raw mut (*page).registers).write(registers);
            (&raw mut (*page).fast).write(fast);
            let entries = (&raw mut (*page).entries).cast::<Cell<Entry>>();
            for number in 0..PLACES * WAYS {
                entries.add(number).write(Cell::new(NOTHING));
            }
            Box::from_raw(page)
        }
    }
}
