//! One hart: what it can do for guests, and setting it up for them.
use core::arch::asm;

use super::context::trap_taken;
use super::per_hart::per_hart;
use super::{map, senvcfg, timer, trap, window};
use crate::arch::riscv::csr::{self, status};
use crate::arch::riscv::fence;
use crate::arch::riscv::hart::Interrupts;
use crate::arch::riscv::vector::VectorRegisters;
use crate::panic::refuse;
use ainori_board::{Environment, Isa};
use ainori_shadow::Format;
use ainori_supervisor as supervisor;

/// What all harts of the board offer to guests.
#[derive(Debug, Clone)]
pub struct Features {
    /// Extensions that guests are told of.
    pub isa: Isa,
    /// Their part that changes what a guest's supervisor registers are.
    pub(super) supervisor: supervisor::Features,
    /// Bytes of a vector register, where there are any.
    pub(super) vlenb: Option<usize>,
    /// Its floating-point registers are 64 bits wide.
    pub(super) double: bool,
    /// The messages that an IMSIC takes for the hypervisor can be reached. Not used here.
    pub messages: bool,
}

impl Features {
    /// How many guest interrupt files each hart has.
    #[expect(clippy::unused_self, reason = "as there is one to ask elsewhere")]
    pub const fn guest_files(&self) -> u8 {
        0
    }

    /// Do guests say themselves that they spin (WRS.NTO)? In user mode that traps only if the firmware wants it to (`mstatus.TW`).
    #[expect(clippy::unused_self, reason = "as there is one to ask elsewhere")]
    pub const fn has_spin_hints(&self) -> bool {
        false
    }

    /// Tries out what a hart with this ISA string really does. Only at boot.
    pub fn probe(board: &Isa, _: Option<u8>) -> Self {
        // SAFETY: no guest runs yet; every register is written again before one does.
        unsafe {
            csr::set!(csr::SSTATUS, status::VS);
            let is_on = csr::read!(csr::SSTATUS) & status::VS != 0;
            let vlenb = (board.has_vectors() && is_on).then(|| VectorRegisters::hart_vlenb());
            csr::clear!(csr::SSTATUS, status::VS);
            csr::write!(csr::SCOUNTEREN, u64::MAX);
            let counter_enables = csr::read!(csr::SCOUNTEREN) as u32;
            // Ahead of the window, which is made for the harts.
            let environment = senvcfg::probe();
            map::probe_formats();
            window::prepare(map::asids() == u16::MAX);
            let told = Environment {
                cleans_blocks: board.has("zicbom"),
                zeros_blocks: board.has("zicboz"),
                memory_types: board.has("svpbmt"),
                updates_bits: false,
                vectors: vlenb.is_some(),
            };
            let isa = board.for_guests(told);
            let supervisor = supervisor::Features {
                float: board.has("f"),
                vector: vlenb.is_some(),
                compressed: board.has("c"),
                timer: isa.has("sstc"),
                invalidation: isa.has("svinval"),
                reservation_waits: isa.has("zawrs"),
                counters: supervisor::Features::BASE_COUNTERS,
                counter_enables,
                environment,
            };
            Self { isa, supervisor, vlenb, double: board.has("d"), messages: false }
        }
    }
}

/// The hypervisor's own interrupts that are pending and enabled.
#[inline(always)]
pub fn pending_interrupts() -> Interrupts {
    timer::pending_own_interrupts()
}

/// Sets this hart up: traps come to the hypervisor through the window, and it has a map of its own.
pub fn setup(_: &Features) {
    // Before it was started the one that booted may have changed the code of the window (`senvcfg::leave_out`): its own FENCE.I is nothing to this one.
    fence::instructions();
    // SAFETY: nothing that harts come by before this has set `satp`, but to put it back.
    let Some(own) = (unsafe { map::make() }) else {
        refuse(format_args!("this board has more harts than there is room for"))
    };
    // SAFETY: no guest runs on this hart yet.
    unsafe {
        let hart = per_hart();
        hart.kernel.set(own);
        hart.taken.set(trap_taken as *const () as u64);
        hart.bug.set(trap::unexpected_trap as *const () as u64);
        hart.window.set(super::shadow::first_window(window::tables()).start(Format::Sv39).0);
        csr::write!(csr::SSCRATCH, 0);
        hart.tells_instructions.set(tells_instructions());
        csr::write!(csr::STVEC, hart.window.get());
        csr::clear!(csr::SSTATUS, status::SIE | status::FS | status::VS);
        timer::reset();
        csr::write!(csr::SIE, (Interrupts::all() - Interrupts::GUEST_FILE).bits());
    }
}

/// Does this hart say, or its firmware, which instruction was illegal, or nothing (privileged specification, "Supervisor Trap Value Register")? QEMU 10 says it of most instructions; of
/// MRET it says what it has said before. So that comes behind another one here.
///
/// # Safety
/// No guest runs on this hart yet, and it has the hypervisor's map. `stvec` is to be set behind this.
unsafe fn tells_instructions() -> bool {
    const MRET: u64 = 0x3020_0073;
    let value: u64;
    // SAFETY: both traps go on behind their instructions, with what was in all registers but those that a trap changes: nobody has anything in these yet.
    unsafe {
        asm!(
            "lla    {value}, 2f",
            "csrw   stvec, {value}",
            "csrw   cycle, zero", // can only be read
            ".balign 4",
            "2:",
            "lla    {value}, 3f",
            "csrw   stvec, {value}",
            "mret",
            ".balign 4",
            "3:",
            "csrr   {value}, stval",
            value = out(reg) value,
            options(nostack),
        );
    }
    value == 0 || value == MRET
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

/// What this hart, which is set up, lacks of the registers that the one that booted has. Only at boot.
pub fn lacks_of_first() -> Option<&'static str> {
    (!senvcfg::is_as_on_first()).then_some("senvcfg")
}

/// Lets guests have their own traps, or has the policy be asked for each of their programs' first. All of them come to the hypervisor anyhow.
pub fn delegate_to_guests(delegate: bool, _: u64) {
    per_hart().confines.set(!delegate);
    if let Some(page) = per_hart().loaded.get() {
        page.fast.watch_traps(!delegate);
    }
}

/// What harts with this ISA lack of what this back end needs. The boot ends here if they want the other one.
pub fn lacks(isa: &Isa) -> Option<&'static str> {
    if isa.has("h") {
        let names = isa.string();
        refuse(format_args!(
            "this build of Ainori is for harts without the H extension, but those of this board ({names}) are not: they have the H extension, for which there is another build"
        ));
    }
    match () {
        () if timer::lacks(isa) => Some("the Sstc extension (stimecmp)"),
        // Harts with Zca only execute nearly all of this program.
        () if !isa.has("c") => Some("the C extension"),
        () => None,
    }
}
