//! One hart: what it can do for guests, and setting it up for them.
use super::context::trap_entry;
use super::fence;
use super::files;
use super::hgatp::MODE_SV39X4;
use super::timer;
use crate::arch::hart::{Interrupts, pending_own_interrupts};
use crate::arch::riscv::csr::{self, envcfg, stateen, status, virtual_interrupt};
use crate::arch::riscv::vector::VectorRegisters;
use ainori_board::{Environment, INTERRUPT_FILE, Isa};
use ainori_limits::cause::exception;

/// What all harts of the board offer to guests.
#[derive(Debug, Clone)]
pub struct Features {
    /// Extensions that guests are told of.
    pub isa: Isa,
    /// `henvcfg` for every guest.
    henvcfg: u64,
    /// Bytes of a vector register, where there are any.
    pub(super) vlenb: Option<usize>,
    /// The fields of `sstatus` that switch those units on that there are: F, V.
    pub(super) units: u64,
    /// Its floating-point registers are 64 bits wide.
    pub(super) double: bool,
    /// It can hide from guests the registers that extensions add (Smstateen).
    hides: bool,
    /// Of those, the ones that it doesn't hide, as in `hstateen0`.
    shown: u64,
    /// It has registers that are reached through `siselect`, and doesn't hide it: it is switched.
    pub(super) indirect: bool,
    /// It has the registers by which a hypervisor gives guests further interrupts, and priorities (Ssaia); what firmware or a boot loader has left in them
    /// is taken back.
    aia: bool,
    /// The messages that an IMSIC takes for the hypervisor can be reached, if there is one (Ssaia).
    pub messages: bool,
    /// Guest interrupt files of each hart, if guests are to have such.
    guest_files: u8,
    /// VMIDs that the hart tells apart, less one.
    pub(super) vmid_mask: u16,
}

/// Exceptions that go straight to the guest: those that an OS handles itself and that tell the hypervisor nothing.
/// Illegal instructions are not among them: the first use of a switched-off register file comes as one.
pub(super) const DELEGATED: u64 = 1 << exception::MISALIGNED_FETCH
    | 1 << exception::FETCH_ACCESS
    | 1 << exception::BREAKPOINT
    | 1 << exception::MISALIGNED_LOAD
    | 1 << exception::LOAD_ACCESS
    | 1 << exception::MISALIGNED_STORE
    | 1 << exception::STORE_ACCESS
    | 1 << exception::CALL_FROM_USER
    | 1 << exception::FETCH_PAGE_FAULT
    | 1 << exception::LOAD_PAGE_FAULT
    | 1 << exception::STORE_PAGE_FAULT;

impl Features {
    /// Can guests have interrupt files: do their accesses to the registers of one come to the hypervisor, or reach one?
    pub fn has_interrupt_files(&self) -> bool {
        self.shown != 0
    }

    /// How many guest interrupt files each hart has.
    pub fn guest_files(&self) -> u8 {
        self.guest_files
    }

    /// Do guests say themselves that they spin (WRS.NTO)?
    pub fn has_spin_hints(&self) -> bool {
        self.isa.has("zawrs")
    }

    /// Tries out what a hart with this ISA string really does, and whether guests' harts can have interrupt files, if they are to: the board's
    /// harts have IMSICs then, in which there is room for so many files of guests. Only at boot.
    pub fn probe(board: &Isa, room_for_files: Option<u8>) -> Self {
        timer::check(board);
        // SAFETY: no guest runs yet; every register is written again by `setup`.
        unsafe {
            // All bits but the reserved encoding of CBIE (10); what stays is what the hart has.
            csr::write!(csr::HENVCFG, !0b10_0000);
            let possible = csr::read!(csr::HENVCFG);
            let mut henvcfg = envcfg::STCE;
            if board.has("zicbom") {
                henvcfg |= envcfg::CBIE_FLUSH | envcfg::CBCFE;
            }
            if board.has("zicboz") {
                henvcfg |= envcfg::CBZE;
            }
            if board.has("svpbmt") {
                henvcfg |= envcfg::PBMTE;
            }
            if board.has("svadu") {
                henvcfg |= envcfg::ADUE;
            }
            henvcfg &= possible;

            // With a mode, as Bare allows nothing else in the register (privileged specification, hgatp). No guest is loaded yet that it could be for.
            csr::write!(csr::HGATP, MODE_SV39X4 << 60 | u64::from(u16::MAX >> 2) << 44);
            let vmid_mask = (csr::read!(csr::HGATP) >> 44) as u16 & (u16::MAX >> 2);
            csr::write!(csr::HGATP, 0);

            let hides = board.hides_registers();
            // Firmware may keep registers to itself: then their bits can't be set (Smstateen).
            let reaches = |bits: u64| {
                !hides || {
                    csr::write!(csr::HSTATEEN0, bits);
                    csr::read!(csr::HSTATEEN0) & bits == bits
                }
            };
            let aia = board.has(INTERRUPT_FILE) && reaches(stateen::AIA);
            let messages = aia && reaches(stateen::FOR_FILES);
            let shown = if room_for_files.is_some() && messages { stateen::FOR_FILES } else { 0 };
            // QEMU has no unit to switch on for the parts of V (Zve*) by themselves: their instructions are illegal there.
            csr::set!(csr::SSTATUS, status::VS);
            let is_on = csr::read!(csr::SSTATUS) & status::VS != 0;
            let vlenb = (board.has_vectors() && is_on).then(|| VectorRegisters::hart_vlenb());
            csr::clear!(csr::SSTATUS, status::VS);
            let environment = Environment {
                cleans_blocks: henvcfg & envcfg::CBCFE != 0,
                zeros_blocks: henvcfg & envcfg::CBZE != 0,
                memory_types: henvcfg & envcfg::PBMTE != 0,
                updates_bits: henvcfg & envcfg::ADUE != 0,
                vectors: vlenb.is_some(),
            };
            Self {
                isa: board.for_guests(environment),
                henvcfg,
                units: if board.has("f") { status::FS } else { 0 }
                    | if vlenb.is_some() { status::VS } else { 0 },
                vlenb,
                double: board.has("d"),
                hides,
                shown,
                indirect: shown != 0 || !hides && (aia || board.has("sscsrind")),
                aia,
                messages,
                guest_files: if shown != 0 { files::count().min(room_for_files.unwrap_or(0)) } else { 0 },
                vmid_mask,
            }
        }
    }
}

/// The hypervisor's own interrupts that are pending and enabled.
#[inline(always)]
pub fn pending_interrupts() -> Interrupts {
    // Only files that are watched are pending here.
    pending_own_interrupts()
        | Interrupts::from_bits_retain(csr::read!(csr::HIP) & Interrupts::GUEST_FILE.bits())
}

/// Sets this hart up: traps come to the hypervisor, guests' own interrupts and exceptions go to them.
pub fn setup(features: &Features) {
    const CYCLE_TIME_INSTRET: u64 = 0b111;
    // SAFETY: no guest runs on this hart yet: what concerns only guests concerns nobody, and `World::load` loads a table before one is entered.
    // `trap_entry` is aligned and handles traps with sscratch = 0; the hypervisor runs without translation.
    unsafe {
        csr::write!(csr::VSATP, 0);
        csr::write!(csr::HGATP, 0);
        csr::write!(csr::SSCRATCH, 0);
        csr::write!(csr::STVEC, trap_entry as *const () as u64);
        csr::clear!(csr::SSTATUS, status::SIE | status::FS | status::VS);
        csr::write!(csr::SATP, 0);
        csr::write!(csr::HEDELEG, DELEGATED);
        csr::write!(csr::HIDELEG, virtual_interrupt::ALL);
        csr::write!(csr::HVIP, 0);
        csr::write!(csr::HIE, 0);
        csr::write!(csr::HCOUNTEREN, CYCLE_TIME_INSTRET);
        csr::write!(csr::HENVCFG, features.henvcfg);
        csr::write!(csr::HTIMEDELTA, 0);
        if features.aia {
            csr::write!(csr::HVIEN, 0);
            csr::write!(csr::HVICTL, 0);
            csr::write!(csr::HVIPRIO1, 0);
            csr::write!(csr::HVIPRIO2, 0);
        }
        if features.hides {
            csr::write!(csr::HSTATEEN0, stateen::ENVCFG | features.shown);
        }
        timer::reset();
        csr::write!(csr::SIE, (Interrupts::all() - Interrupts::GUEST_FILE).bits());
    }
    // Of whoever had the hart before, now that no walk can begin any more. What each guest's own fence is for, it carries out before it is first
    // entered (`boot::cores::make`): it acts on the VMID in `hgatp` only.
    fence::guest_physical_all();
}

/// Are this hart's vector registers as long as those of the one that the features are of? What vCPUs save has room for those.
pub fn has_vectors_of(features: &Features) -> bool {
    let Some(expected) = features.vlenb else { return true };
    // SAFETY: no guest runs on this hart yet, and the unit is switched on for the look.
    unsafe {
        csr::set!(csr::SSTATUS, status::VS);
        let own = VectorRegisters::hart_vlenb();
        csr::clear!(csr::SSTATUS, status::VS);
        own == expected
    }
}

/// Lets guests take their own traps, of the exceptions [those](super::VcpuState::delegation), or has all of them come to the hypervisor.
pub fn delegate_to_guests(delegate: bool, delegated: u64) {
    // SAFETY: concerns only where guests' traps go; `Trap::current` knows them all.
    unsafe {
        csr::write!(csr::HEDELEG, if delegate { delegated } else { 0 });
        csr::write!(csr::HIDELEG, if delegate { virtual_interrupt::ALL } else { 0 });
    }
}

/// Has this hart, with the H extension, the second stage that guests are kept apart by? Where it hasn't, `hgatp` keeps another mode, and guests would run
/// in the machine's own memory.
fn translates() -> bool {
    // SAFETY: the register acts on guests only, of which none runs yet, and `Features::probe` clears it. It is there: `lacks` has asked for H before.
    unsafe {
        csr::write!(csr::HGATP, MODE_SV39X4 << 60);
        csr::read!(csr::HGATP) >> 60 == MODE_SV39X4
    }
}

/// What harts with this ISA lack of what this back end needs. It asks the board's description where it can, since at boot nobody could
/// answer a trap.
pub fn lacks(isa: &Isa) -> Option<&'static str> {
    match () {
        () if !isa.has("h") => Some("the H extension"),
        () if timer::NEED_SSTC && !isa.has("sstc") => Some("the Sstc extension (stimecmp)"),
        // Harts with Zca only execute nearly all of this program.
        () if !isa.has("c") => Some("the C extension"),
        () if !translates() => Some("Sv39x4 (second-stage translation)"),
        () => None,
    }
}
