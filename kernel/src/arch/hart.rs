//! One hart: what it can do, and setting it up for guests.
use super::context::trap_entry;
use super::csr::{self, envcfg, hstatus, interrupt, stateen, status, virtual_interrupt};
use super::fence;
use super::isa::Isa;
use super::vector::VectorRegisters;
use ainori_limits::cause::exception;
use core::arch::asm;

/// What all harts of the board offer to guests.
#[derive(Debug, Clone)]
pub struct Features {
    /// Extensions that guests are told of.
    pub isa: Isa,
    /// `henvcfg` for every guest.
    pub henvcfg: u64,
    /// Bytes of a vector register, where there are any.
    pub vlenb: Option<usize>,
    /// Its floating-point registers are 64 bits wide.
    pub double: bool,
    /// It can hide from guests the registers that extensions add (Smstateen).
    pub hides: bool,
    /// It has registers that are reached through `siselect`, and can't hide it: it is switched.
    pub indirect: bool,
    /// VMIDs that the hart tells apart, less one.
    pub vmid_mask: u16,
}

/// The VMID of a vCPU by its number, among `count`. They start at 1: 0 is for nobody, so that a stray access finds nothing. `None` where
/// the hart doesn't tell so many apart (it may have none at all): then they share VMID 0, and their translations are forgotten at each switch.
pub fn vmid(vcpu: u8, count: usize, mask: u16) -> Option<u16> {
    (count <= usize::from(mask)).then_some(u16::from(vcpu) + 1)
}

/// Exceptions that go straight to the guest: those that an OS handles itself and that tell the hypervisor nothing.
/// Illegal instructions are not among them: the first use of a switched-off register file comes as one.
const DELEGATED: u64 = 1 << exception::MISALIGNED_FETCH
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
    /// Tries out what a hart with this ISA string really does. Only at boot.
    pub fn probe(board: &Isa) -> Self {
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

            csr::write!(csr::HGATP, u64::from(u16::MAX >> 2) << 44);
            let vmid_mask = (csr::read!(csr::HGATP) >> 44) as u16 & (u16::MAX >> 2);
            csr::write!(csr::HGATP, 0);

            let hides = board.has("smstateen") || board.has("ssstateen");
            // QEMU has no unit to switch on for the parts of V (Zve*) by themselves: their instructions are illegal there.
            csr::set!(csr::SSTATUS, status::VS);
            let is_on = csr::read!(csr::SSTATUS) & status::VS != 0;
            let vlenb = (board.has_vectors() && is_on).then(|| VectorRegisters::hart_vlenb());
            csr::clear!(csr::SSTATUS, status::VS);
            Self {
                isa: board.for_guests(henvcfg, vlenb.is_some()),
                henvcfg,
                vlenb,
                double: board.has("d"),
                hides,
                indirect: !hides && ["ssaia", "sscsrind"].iter().any(|name| board.has(name)),
                vmid_mask,
            }
        }
    }
}

/// Sets this hart up: traps come to the hypervisor, guests' own interrupts and exceptions go to them.
pub fn setup(features: &Features) {
    const CYCLE_TIME_INSTRET: u64 = 0b111;
    // SAFETY: no guest runs on this hart yet; `trap_entry` is aligned and handles traps with sscratch = 0.
    unsafe {
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
        if features.hides {
            csr::write!(csr::HSTATEEN0, stateen::ENVCFG);
        }
        csr::write!(csr::STIMECMP, u64::MAX);
        csr::write!(csr::SIE, interrupt::SOFTWARE | interrupt::TIMER | interrupt::EXTERNAL);
    }
    fence::guest_physical_all();
    fence::guest_all();
}

/// `hstatus` and `sstatus` with which a vCPU starts, in VS-mode. `alone`: no other vCPU can ever want its core, so it may wait there
/// by itself; otherwise WFI and spin-wait hints trap.
pub const fn initial_status(alone: bool) -> (u64, u64) {
    (
        hstatus::SPV | hstatus::SPVP | hstatus::VSXL_64 | if alone { 0 } else { hstatus::VTW },
        status::SPP | status::SPIE | status::UXL_64,
    )
}

/// Lets guests take their own traps, or has all of them come to the hypervisor.
pub fn delegate_to_guests(delegate: bool) {
    // SAFETY: concerns only where guests' traps go; `take_trap` knows them all.
    unsafe {
        csr::write!(csr::HEDELEG, if delegate { DELEGATED } else { 0 });
        csr::write!(csr::HIDELEG, if delegate { virtual_interrupt::ALL } else { 0 });
    }
}

/// The hypervisor's own pending and enabled interrupts, as bits of `sip`.
#[inline]
pub fn pending_interrupts() -> u64 {
    csr::read!(csr::SIP) & csr::read!(csr::SIE)
}

/// Takes back a software interrupt that another core sent. What that core wrote before is seen by reads that come after this: were one of them
/// to come first, it might miss what the interrupt is about, and nothing would tell of it again.
#[inline]
pub fn clear_software_interrupt() {
    // SAFETY: only the hypervisor's own pending bit.
    unsafe { csr::clear!(csr::SIP, interrupt::SOFTWARE) }
    fence::after_device();
}

/// Sets the core's own alarm; `u64::MAX` is never.
#[inline]
pub fn set_alarm(at: u64) {
    // SAFETY: only the hypervisor's own timer.
    unsafe { csr::write!(csr::STIMECMP, at) }
}

/// Waits until an interrupt of the hypervisor is pending.
#[inline]
pub fn wait() {
    // SAFETY: with sstatus.SIE = 0 this takes no trap; it returns when `pending_interrupts` isn't 0, or earlier.
    unsafe { asm!("wfi", options(nomem, nostack)) }
}

/// True if this hart has the H extension (then `hgatp` exists). Called with a trap handler that can't tell: so it asks
/// the board's description rather than the hart.
pub fn has_hypervisor_extension(isa: &Isa) -> bool {
    isa.has("h")
}
