//! One core and its kernel. Each core has its own scheduler, its own stack and the vCPUs that live here; no other
//! core ever touches any of that. What concerns another core goes there as a message ([`mail`]).
mod backlog;
mod bells;
mod by_number;
pub mod console;
mod devices;
pub mod dispatch;
pub mod event;
mod files;
pub mod finish;
mod given_way;
mod guard;
pub mod housekeeping;
pub mod irq;
mod later;
mod lines;
pub mod mail;
pub mod mechanism;
pub mod order;
mod pending;
mod preemption;
mod reports;
mod restart;
mod sleepers;
pub mod sources;
pub mod threshold;
mod trace;
mod wanted;
#[cfg(feature = "watchdog")]
mod watchdogs;

use alloc::{boxed::Box, vec, vec::Vec};
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicU32};

use ainori_board::{Board, Interrupt, OwnedInterrupt};
use ainori_console::{InputWaits, Source};
use ainori_devices::aplic::RelayedTo;
use ainori_handover::{PublishedHousework, PublishedThreshold};
use ainori_limits::{MAX_HARTS, STACK_SIZE, VCPU_SLOTS};
use ainori_mailbox::{Mailbox, Mailboxes};
use ainori_sched::{Calendar, Scheduler, VcpuId, VcpuSet};
use ainori_trace::Ring;

use self::backlog::Backlog;
use self::by_number::of_vcpu;
pub use self::by_number::{ByCore, ByVcpu};
use self::devices::Waiting;
use self::files::Files;
use self::later::Later;
use crate::arch::VcpuState;
use crate::arch::hart::Features;
use crate::chip::ipi::Ipi;
use crate::chip::irqchip::{CoreIrqs, IrqThreshold, Irqchip, Levels};
use crate::guest::vcpu::{Resident, Vcpu};
use crate::guest::{BellFile, Guest};
use crate::stats::CoreCounters;
use console::Console;
use housekeeping::{Housekeeper, Housework};
use mechanism::Mechanisms;
use order::Order;
use pending::Pending;
use reports::ReportWriter;
use restart::Restarter;
use threshold::Threshold;

/// What all cores share. Made at boot; afterwards only its atomics change.
pub struct Machine {
    /// The board.
    pub board: Board,
    /// What guests are offered.
    pub features: Features,
    /// The guests.
    pub guests: &'static [Guest],
    /// Bells that are guest interrupt files.
    pub bell_files: Vec<BellFile>,
    /// The vCPUs of all guests; and behind them places for as many as there can be.
    pub vcpu_places: Box<[Vcpu; VCPU_SLOTS]>,
    /// How many there are.
    pub vcpu_count: usize,
    /// Their guests.
    pub guests_of: ByVcpu<&'static Guest>,
    /// Hart ids by core.
    pub harts: Box<[u64]>,
    /// How urgent the vCPUs are on each core.
    pub orders: ByCore<&'static Order>,
    /// Whose each core is at which time, under a policy with windows in time.
    pub calendars: Box<ByCore<Calendar<'static>>>,
    /// How cores interrupt each other.
    pub ipi: Ipi,
    /// Messages between cores.
    pub mail: Box<Mailboxes<MAX_HARTS>>,
    /// The hypervisor's own lines. Only the housekeeping core writes them while guests run.
    pub log: Source,
    /// Guests of which something is still to be told, a bit each ([`stop::Record`](crate::guest::stop::Record)).
    pub news: AtomicU32,
    /// The core that drives the serial port, and does all other [housekeeping].
    pub console_core: u32,
    /// What it is asked to do.
    pub housework: PublishedHousework,
    /// The level of its least urgent guest: housework doesn't disturb those above (see [`Machine::thresholds`]).
    pub housework_threshold: u8,
    /// The level of that guest.
    pub housework_level: u8,
    /// The board's interrupt levels of guests.
    pub levels: Levels,
    /// Guest that gets what is typed.
    pub console_input: Option<u32>,
    /// Something typed waits for room in that guest's port.
    pub input_waits: InputWaits,
    /// The board's interrupt controller.
    pub irqchip: Option<Irqchip>,
    /// Owners of the board's interrupt sources, by source.
    pub source_owner: Box<[Option<SourceOwner>]>,
    /// Guests that the run still waits for.
    pub awaited_guests: AtomicU32,
    /// The run is over: every core comes to an end.
    pub finishing: AtomicBool,
    /// Per core: the level below which messages must not disturb what it runs, or [`threshold::IDLE`].
    pub thresholds: ByCore<PublishedThreshold>,
    /// The guests all of whose vCPUs rest, and that are to be started again: a bit each.
    pub restarting: AtomicU32,
    /// How many cores have come to an end.
    pub ended: AtomicU32,
    /// Core whose turn it is to report.
    pub turn: AtomicU32,
}

/// Who handles an interrupt source of the board.
#[derive(Debug)]
pub struct SourceOwner {
    /// Index of the guest.
    pub guest: u8,
    /// Where the board's controller sends the source ([`BoardHart::irq_target`](ainori_board::BoardHart::irq_target)).
    pub target: u32,
    /// The source, as its guest has it ask.
    pub interrupt: OwnedInterrupt,
    /// Where it [went](Irqchip::redirect) before it went to a guest interrupt file.
    pub relayed_to: RelayedTo,
}

impl SourceOwner {
    /// A guest, and the target of its hart, to which an interrupt of its own is sent.
    pub fn new(guest: u8, target: u32, interrupt: Interrupt) -> Self {
        Self { guest, target, interrupt: OwnedInterrupt::new(interrupt), relayed_to: RelayedTo::default() }
    }
}

impl Machine {
    /// Who handles an interrupt source of the board; none if that is the hypervisor, whose serial port it is.
    pub fn owner_of(&self, source: u32) -> Option<&SourceOwner> {
        self.source_owner.get(source as usize)?.as_ref()
    }

    /// So many microseconds in ticks of `time`.
    #[inline]
    pub fn ticks(&self, us: u64) -> u64 {
        ainori_limits::ticks(us, self.board.timebase_hz)
    }

    /// A vCPU's shared part.
    #[inline]
    pub fn vcpu(&self, id: VcpuId) -> &Vcpu {
        of_vcpu(&self.vcpu_places, id)
    }

    /// The level of the interrupts of a guest's devices on the core that handles them.
    #[inline(never)]
    pub fn device_level(&self, guest: &Guest, core: u32) -> u32 {
        self.levels.level(self.orders[core].rank(VcpuId(guest.vcpus().start)).level)
    }

    /// The level of a [threshold](ainori_board::BoardIrqchip::threshold) of the board's interrupt controller.
    pub fn irq_level(&self, threshold: u16) -> u32 {
        self.board.irqchip.map_or(0, |chip| chip.level(threshold.into()))
    }

    /// The guest of a vCPU.
    #[inline]
    pub fn guest_of(&self, id: VcpuId) -> &'static Guest {
        self.guests_of[id]
    }

    /// The vCPUs of all guests, by [`VcpuId`].
    #[inline]
    pub fn vcpus(&self) -> &[Vcpu] {
        self.vcpu_places.get(..self.vcpu_count).unwrap_or_default()
    }
}

// Not `expect`: 80 places would each name the text.
#[cold]
#[inline(never)]
#[track_caller]
#[expect(clippy::panic, reason = "docs/trap.md, What can still panic")]
fn not_here() -> ! {
    panic!("a vCPU is asked of the core that owns it")
}

/// A piece of a stack.
#[derive(Clone)]
#[repr(align(16))]
struct Stack(#[expect(dead_code, reason = "read through stack_top only")] [u64; 2]);

/// What words of a stack hold until they are used.
const NEVER_USED: u64 = 0x5afe_57ac_5afe_57ac;

/// A core: its number, its stack, and all that belongs to it alone.
#[repr(C)]
pub struct Cpu {
    /// Where its stack starts, for the trap entry.
    stack_top: u64,
    /// Its number, `0..`.
    pub id: u32,
    /// Its hart id.
    pub hart: u64,
    /// What all cores share.
    pub machine: &'static Machine,
    /// Where others put messages for this core.
    mailbox: Mailbox<'static, MAX_HARTS>,
    /// The vCPU whose world is in the hart, running or not.
    loaded: Option<VcpuId>,
    /// The vCPU whose extension registers are in the hart.
    extensions: Option<VcpuId>,
    /// When the alarm is set to fire, in ticks of `time`, as are all times here; `u64::MAX` if it is off.
    alarm: u64,
    /// Earliest deadline of a sleeping vCPU that may disturb the running one; `u64::MAX` if there is none.
    next_deadline: u64,
    /// Whose that is.
    next_sleeper: VcpuId,
    /// What is to be seen to before the running vCPU goes on.
    pending: Pending,
    /// How long before a more urgent deadline nothing else is begun, in ticks.
    guard: u64,
    /// How long it takes at most to find a core for a vCPU and to kick it, in ticks.
    kick_time: u64,
    /// How long after its deadline a timer may be seen, in ticks.
    settling: u64,
    /// Until then nobody need look again whether one that takes the core from others is due within the guard.
    none_urgent_until: u64,
    /// There are so many vCPUs or levels that to look through timers takes a while.
    is_crowded: bool,
    /// When the hypervisor was entered, came back from waiting, or was last at a preemption point, in ticks of `time`.
    entered: u64,
    /// The same but for preemption points: since then no guest has had the core.
    busy_since: u64,
    /// When nobody was ready here, though the core had been busy for long.
    nobody_ready_at: u64,
    threshold: Threshold,
    /// vCPUs that take cores from others: what concerns them can't wait.
    urgent: VcpuSet,
    /// How urgent vCPUs are here.
    pub order: &'static Order,
    /// When it looks at what it has left for later, of the backlog and of other things.
    later: Later,
    /// When the alarm is due for work of the hypervisor's own: what was left for later, or housework.
    own_work_due: u64,
    /// When the running vCPU was dispatched, or the idle time began, in ticks of `time`.
    since: u64,
    /// Work of many parts that isn't done yet.
    backlog: Backlog,
    /// What the board's interrupt controller sends to it, and the threshold that holds for that now.
    pub irqs: Option<CoreIrqs>,
    irq_threshold: IrqThreshold,
    /// IPIs come by the board's interrupt controller as well.
    ipis_are_messages: bool,
    /// Interrupts of guests' devices, and their bells.
    devices: Waiting,
    /// Guest interrupt files of vCPUs that live here, and of bells.
    pub files: Files,
    /// Serial port (console core only).
    console: Option<Box<Console>>,
    /// Reports on guests that have stopped, and what is known of all such work (console core only).
    reports: ReportWriter,
    housekeeper: Option<Box<Housekeeper>>,
    housework: Housework,
    /// vCPUs of stopped guests that come to rest here with the present event.
    resting: VcpuSet,
    trace: Ring<'static>,
    counters: Box<CoreCounters>,
    // The large ones come last, so that an instruction's offset reaches all others.
    /// What the policy is made of.
    mechanisms: Mechanisms,
    /// The vCPUs that live here.
    residents: ByVcpu<Option<Box<Resident>>>,
    scheduler: Scheduler,
    /// The guests that it starts again (console core only).
    restarter: Restarter,
}

impl Cpu {
    /// Where the trap entry finds the stack.
    pub const STACK_OFFSET: usize = offset_of!(Cpu, stack_top);

    /// A core with no vCPU yet. Allocates its stack: only at boot.
    // In the frame of who makes all cores each access to a local would take several instructions.
    #[inline(never)]
    pub fn new(
        id: u32,
        machine: &'static Machine,
        scheduler: Scheduler,
        irqs: Option<CoreIrqs>,
        console: Option<Box<Console>>,
        trace: Ring<'static>,
    ) -> Self {
        let hart = machine.board.harts.get(id as usize);
        let target = machine.irqchip.zip(hart.and_then(|hart| hart.irq_target));
        let irq_threshold = target.map_or(IrqThreshold::open(), |(chip, target)| chip.threshold(target));
        let stack = vec![Stack([NEVER_USED; 2]); STACK_SIZE / size_of::<Stack>()].leak();
        Self {
            stack_top: stack.as_mut_ptr_range().end as u64,
            id,
            hart: machine.harts.get(id as usize).copied().unwrap_or_default(),
            machine,
            mailbox: machine.mail.of(id as usize),
            loaded: None,
            extensions: None,
            alarm: u64::MAX,
            next_deadline: u64::MAX,
            next_sleeper: VcpuId(0),
            none_urgent_until: 0,
            pending: Pending::default(),
            guard: machine.ticks(guard::GUARD_US),
            kick_time: guard::kick_time(machine.ticks(guard::GUARD_US), machine.harts.len()),
            settling: machine.ticks(guard::SETTLING_US),
            is_crowded: machine.levels.count() > guard::FEW_LEVELS || machine.vcpu_count > guard::FEW_VCPUS,
            mechanisms: Mechanisms::new(machine, id, scheduler.policy()),
            threshold: Threshold::new(&machine.thresholds[id]),
            urgent: machine.orders[id].urgent,
            order: machine.orders[id],
            backlog: Backlog::EMPTY,
            later: Later::new(),
            own_work_due: u64::MAX,
            entered: 0,
            busy_since: 0,
            nobody_ready_at: 0,
            since: 0,
            irqs,
            irq_threshold,
            ipis_are_messages: machine.irqchip.is_some_and(Irqchip::sends_ipis),
            devices: Waiting::new(),
            files: Files::of(id, machine),
            housekeeper: console.is_some().then(|| Box::new(Housekeeper::new(machine))),
            console,
            reports: ReportWriter::default(),
            housework: Housework::new(machine, id),
            resting: VcpuSet::EMPTY,
            trace,
            counters: Box::default(),
            scheduler,
            restarter: Restarter::new(),
            residents: ByVcpu([const { None }; VCPU_SLOTS]),
        }
    }

    /// Most bytes of its stack that were ever in use: the rest is as it was made. Only at the end of the run.
    fn stack_used(&self) -> u64 {
        let bottom = self.stack_top - STACK_SIZE as u64;
        // SAFETY: the words of the stack, which `new` has leaked.
        let is_unused = |at: &u64| unsafe { (*at as *const u64).read_volatile() == NEVER_USED };
        let used = (bottom..self.stack_top).step_by(8).find(|at| !is_unused(at));
        used.map_or(0, |at| self.stack_top - at)
    }

    /// How long before a more urgent deadline nothing else is begun, in ticks.
    pub fn guard(&self) -> u64 {
        self.guard
    }

    /// Gives the core a vCPU, asleep.
    pub fn adopt(&mut self, id: VcpuId, mut resident: Box<Resident>) {
        let rank = self.order.rank(id);
        self.scheduler.adopt(id, rank.class);
        resident.threshold = rank.threshold;
        resident.irq_threshold = rank.irq_threshold;
        resident.state.watch_files(self.files.watched_beside(id, rank.level));
        resident.advance = if self.urgent.contains(id) { self.scheduler.policy().advance } else { 0 };
        self.note_adopted(id);
        self.residents[id] = Some(resident);
    }

    /// A vCPU that lives here.
    #[inline]
    #[track_caller]
    pub fn resident(&mut self, id: VcpuId) -> &mut Resident {
        match &mut self.residents[id] {
            Some(resident) => resident,
            None => not_here(),
        }
    }

    /// Does the vCPU live here at this moment?
    #[inline]
    fn has(&self, id: VcpuId) -> bool {
        self.residents[id].is_some()
    }

    /// The registers of a vCPU that lives here.
    #[inline]
    pub fn state(&mut self, id: VcpuId) -> &mut VcpuState {
        &mut self.resident(id).state
    }
}
