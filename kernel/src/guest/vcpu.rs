//! A vCPU: the part that anyone may touch, and the part that belongs to the core where it lives.
use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use ainori_handover::{Answers, Fences, ParkingSlot, RequestWord, Requests, Seat, Seats};
use ainori_lifecycle::Hart;
use ainori_limits::MAX_HARTS;

use crate::arch::{VcpuState, clock};
use crate::cpu::ByCore;
use crate::stats::VcpuCounters;

// A set of cores is a word with a bit for each.
const _: () = assert!(MAX_HARTS <= u64::BITS as usize);

/// The part of a vCPU that all cores share: words that are only ever changed atomically.
///
/// Whoever wants something of a vCPU writes it here first, then posts "look at it" to the owner. As these words
/// travel with the vCPU, a message that finds it gone is passed on, and nothing can be lost on the way.
///
/// Cores that change the words of one vCPU don't take lines of the cache from those that read another one's; and a shift finds it in a table.
#[repr(align(128))]
pub struct Vcpu {
    /// Index of its guest.
    pub guest: u8,
    /// Its hart id in the guest's eyes.
    pub index: u32,
    /// Where it is parked, not running, for whichever core claims it first; and who owns it.
    pub parking: ParkingSlot<Resident>,
    /// Bits of [`Requests`].
    pub requests: RequestWord,
    /// When an interrupt was last asked for, in ticks of `time`.
    asked_at: AtomicU64,
    /// Its state in SBI HSM, and where it starts.
    pub hart: Hart,
    /// Fences that others want of it.
    pub fences: Fences,
    /// Fences of others that this one still waits for.
    pub fences_awaited: Answers,
    /// Since when it could run but doesn't, in ticks of `time`; 0 if it runs or sleeps.
    waiting_since: AtomicU64,
    /// It was in its guest's kernel when it was parked, or when its core last asked where it should be; or, unless it is confined, about to be, as an
    /// interrupt was due. Told only under a policy to which that matters ([`asks_for_mode`](ainori_sched::Policy::asks_for_mode)).
    in_kernel: AtomicBool,
    /// Its seat among those of its guest: none but under a policy that keeps a guest's vCPUs apart.
    seat: Seat,
    seats: &'static Seats,
    /// The core that wants to run it ([`Requests::WANTED`]).
    pub wanted_by: AtomicU32,
    /// The core where it belongs.
    pub home: u32,
    /// The cores where it may run, as a bit set.
    pub cores: u64,
    /// At home it runs in user mode only.
    pub confined: bool,
    /// The guest interrupt file that its home has for it, for good.
    pub file: Option<GuestFile>,
    /// At which level it waits on each core: whoever looks for a core for it needs all of them.
    levels: ByCore<AtomicU8>,
}

/// A guest interrupt file of a hart (AIA, chapter 3).
#[derive(Debug, Clone, Copy)]
pub struct GuestFile {
    /// By which the hart knows it, from 1 on.
    pub number: u8,
}

impl Vcpu {
    /// A vCPU that is stopped, at home on core `home`, which is among `cores`. `seats` are its guest's.
    pub fn new(guest: u8, index: u32, home: u32, cores: u64, seats: &'static Seats) -> Self {
        Self {
            guest,
            index,
            parking: ParkingSlot::new(home),
            requests: RequestWord::new(),
            asked_at: AtomicU64::new(0),
            hart: Hart::new(),
            fences: Fences::new(),
            fences_awaited: Answers::new(),
            waiting_since: AtomicU64::new(0),
            in_kernel: AtomicBool::new(false),
            seat: Seat::new(),
            seats,
            wanted_by: AtomicU32::new(0),
            home,
            cores,
            confined: false,
            file: None,
            levels: ByCore([const { AtomicU8::new(0) }; MAX_HARTS]),
        }
    }

    /// The core to ask for it ([`ParkingSlot::owner`]).
    #[inline]
    pub fn owner(&self) -> u32 {
        self.parking.owner()
    }

    /// At which level it waits on a core, as that has told others: [`Rank::level`](crate::cpu::order::Rank) there, or
    /// [`Policy::OUTSIDE`](ainori_sched::Policy::OUTSIDE) while it is outside of its guest's windows.
    #[inline]
    pub fn level_on(&self, core: u32) -> u8 {
        self.levels[core].load(Ordering::Relaxed)
    }

    /// Tells others that. If it is a higher level than before, the caller then executes a full fence and looks at its requests
    /// ([`PublishedThreshold`](ainori_handover::PublishedThreshold)): who has read the lower one has kept quiet.
    #[inline]
    pub fn publish_level(&self, core: u32, level: u8) {
        self.levels[core].store(level, Ordering::Relaxed);
    }

    /// Tells others that it runs or sleeps (0), or since when it waits for a core.
    #[inline]
    pub fn publish_waiting(&self, since: u64) {
        self.waiting_since.store(since, Ordering::Relaxed);
    }

    /// Since when it waits for a core, if it does. By now that may have changed.
    #[inline]
    pub fn waiting_since(&self) -> Option<u64> {
        Some(self.waiting_since.load(Ordering::Relaxed)).filter(|since| *since != 0)
    }

    /// May it run on this core, as things are now?
    #[inline]
    pub fn may_run_on(&self, core: u32) -> bool {
        self.cores_now() >> core & 1 != 0
    }

    /// The same, were it alone with its guest.
    #[inline]
    pub fn is_allowed_on(&self, core: u32) -> bool {
        self.allowed() >> core & 1 != 0
    }

    /// The cores where it may run, as things are now.
    #[inline]
    pub fn cores_now(&self) -> u64 {
        self.allowed() & self.seat.free(self.seats)
    }

    fn allowed(&self) -> u64 {
        if self.confined && self.is_in_kernel() { self.cores & !(1 << self.home) } else { self.cores }
    }

    /// It joins the run queue of a core: takes the seat there. False if another vCPU of its guest has that.
    #[inline]
    pub fn take_seat(&self, core: u32) -> bool {
        self.seat.take(self.seats, core)
    }

    /// It is in no run queue any more.
    #[inline]
    pub fn leave_seat(&self) {
        self.seat.leave(self.seats);
    }

    /// Tells others whether it is in its kernel, or about to be. They hear of it by the parking.
    #[inline]
    pub fn publish_mode(&self, in_kernel: bool) {
        self.in_kernel.store(in_kernel, Ordering::Relaxed);
    }

    /// Was it in its kernel, or about to be, when it was parked?
    #[inline]
    pub fn is_in_kernel(&self) -> bool {
        self.in_kernel.load(Ordering::Relaxed)
    }

    /// Parks it for others to claim; `owner` is the core to ask for it. It is not running. The caller then looks at its
    /// requests, or has `owner` do so.
    #[inline]
    pub fn park(&self, resident: Box<Resident>, owner: u32) {
        self.parking.park(resident, owner);
    }

    /// True if it is parked at this moment.
    #[inline]
    pub fn is_parked(&self) -> bool {
        self.parking.is_parked()
    }

    /// Claims it for core `me`, if it is parked and nobody was faster. The caller then looks at its requests: after this, whoever
    /// wants something of it either is seen there, or sees the new owner.
    #[inline]
    pub fn claim(&self, me: u32) -> Option<Box<Resident>> {
        self.parking.claim(me)
    }

    /// When the interrupt that is asked for was asked for last.
    #[inline]
    pub fn asked_at(&self) -> u64 {
        self.asked_at.load(Ordering::Relaxed)
    }

    /// Notes what is wanted; the caller then looks who owns the vCPU, and tells that core.
    #[inline]
    pub fn request(&self, what: Requests) {
        if what.intersects(Requests::SOFTWARE.union(Requests::EXTERNAL)) {
            self.note_asked();
        }
        self.requests.request(what.bits());
    }

    /// From now on somebody wants an interrupt of it.
    #[inline]
    pub fn note_asked(&self) {
        self.asked_at.store(clock::now(), Ordering::Relaxed);
    }

    /// Is anything wanted?
    #[inline]
    pub fn has_requests(&self) -> bool {
        self.requests.any()
    }

    /// All that is wanted at this moment.
    #[inline]
    pub fn wanted(&self) -> Requests {
        Requests::from_bits_truncate(self.requests.wanted())
    }
}

/// Why a vCPU doesn't run although it wasn't put to sleep by WFI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It may run.
    None,
    /// It waits for fences of others.
    Fences,
    /// It is stopped (HSM), or its guest is.
    Stopped,
}

/// The part of a vCPU that only its owner touches: whoever has the box is the owner.
pub struct Resident {
    /// The part that all cores share.
    pub shared: &'static Vcpu,
    /// Interrupts of the board up to this level stay away from the core while it runs: the controller's [threshold](ainori_board::BoardIrqchip::threshold)
    /// for it.
    pub irq_threshold: u16,
    /// What its core publishes while it runs: messages for vCPUs of lower levels wait.
    pub threshold: u8,
    /// While nobody else wants its core, nobody can tell whether it sleeps or has the core: it is among the least urgent vCPUs of all, and none moves to a
    /// core that idles; or nobody else ever comes there.
    pub may_doze: bool,
    /// What a hart holds of it.
    pub state: VcpuState,
    /// How long before its timer it is woken for that, in ticks of `time`. If its core is in the hypervisor anyhow, before that begins
    /// something else, still a [guard](crate::cpu::Cpu::guard) earlier.
    pub advance: u64,
    /// Why it must not run, if so.
    pub hold: Hold,
    /// Its home core has asked for it.
    pub called_home: bool,
    /// Confined, it has just returned to user mode elsewhere.
    pub returns_home: bool,
    /// Its guest has marked that it holds a lock.
    pub holds_lock: bool,
    /// It is parked, but could run.
    pub suspended: bool,
    /// The core where it ran last: what that one has cached of its translations is kept up to date.
    pub last_core: u32,
    /// Since when an interrupt is due that its guest has not seen yet, in ticks of `time`; 0 if there is none.
    pub due: u64,
    /// Since when the interrupt was due that was delivered last, and when it was, if that isn't counted yet.
    delivered: Option<(u64, u64)>,
    /// Counters.
    pub counters: VcpuCounters,
}

impl Resident {
    /// A stopped vCPU. Allocates: only at boot.
    pub fn new(shared: &'static Vcpu, state: VcpuState, may_doze: bool) -> Box<Self> {
        Box::new(Self {
            shared,
            irq_threshold: 0,
            threshold: 0,
            may_doze,
            state,
            advance: 0,
            hold: Hold::Stopped,
            called_home: false,
            returns_home: false,
            holds_lock: false,
            suspended: false,
            last_core: 0,
            due: 0,
            delivered: None,
            counters: VcpuCounters::default(),
        })
    }

    /// When to wake it for its timer, while it sleeps. Not at all, if it doesn't just sleep.
    #[inline]
    pub fn wake_at(&self) -> Option<u64> {
        if self.hold != Hold::None {
            return None;
        }
        Some(self.state.deadline()?.saturating_sub(self.advance))
    }

    /// Does what comes into its guest interrupt file wake it, while it sleeps?
    pub fn listens_to_file(&self) -> bool {
        self.hold == Hold::None && self.state.listens_to_file()
    }

    /// An interrupt that somebody asked for is raised: it has been due since then, unless another one has been for longer.
    #[inline]
    pub fn note_request(&mut self) {
        if self.due == 0 {
            self.due = self.shared.asked_at();
        }
    }

    /// It is about to be entered with an interrupt due: if it has interrupts enabled, its handler starts now.
    #[inline]
    pub fn note_delivery(&mut self) {
        if self.state.takes_interrupts() {
            self.count_latency();
            self.delivered = Some((self.due, clock::now()));
        }
        self.due = 0;
    }

    /// Counts the delay of the interrupt that was delivered when it was last entered. Done when it leaves the core, not on the
    /// way to the guest's handler.
    #[inline]
    pub fn count_latency(&mut self) {
        if let Some((due, delivered)) = self.delivered {
            self.delivered = None;
            self.counters.latency.record(delivered.saturating_sub(due));
        }
    }

    /// Puts it to the state in which SBI HSM starts a hart.
    pub fn start(&mut self, hart: u64, address: u64, opaque: u64) {
        self.state.start(hart, address, opaque);
        self.hold = Hold::None;
        self.called_home = false;
        self.returns_home = false;
        self.holds_lock = false;
        self.due = 0;
        self.delivered = None;
    }
}
