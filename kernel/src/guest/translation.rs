//! Guests whose first stage the hypervisor shadows ([`ainori_shadow`]): the hart walks one table that the hypervisor makes of the guest's own and of where
//! its memory is. So their page faults, their fences and what they do to `satp` come here.
//!
//! In a kernel without the feature `shadow` there is [another file](../two_stage.rs) with the same names, and next to nothing behind them.
mod fences;
mod guest_memory;
#[cfg(not(feature = "no-h"))]
mod shortcut;

use alloc::vec::Vec;

use ainori_board::{Board, Isa, Range};
use ainori_handover::Fence;
use ainori_manifest::blob;
use ainori_manifest::config::{
    self, GUEST_MEMORY_ALIGN, GUEST_MEMORY_BASE, MOST_SHADOW_SPACES, ShadowReclaim, System, Translation,
};
use ainori_sched::VcpuId;
use ainori_shadow::{Choices, Features, Format, Reclaim};
use ainori_space::HostPhysical;

use super::fault::{self, What};
use crate::arch::shadow::{AddressSpaceAccess, Answer, GuestFence, Modes, OwnShadow, PageFault};
use crate::arch::trap::{Access, Exception};
use crate::cpu::event::handle_exception;
use crate::cpu::{Cpu, Machine};
use crate::memory;
use crate::panic::refuse;
use crate::stats::Exit;

pub use self::fences::{Recordable, answered, carry_out, fence_own, gives_way, is_owed, look_at};
pub use self::guest_memory::GuestMemory;
#[cfg(not(feature = "no-h"))]
pub use self::shortcut::trapped;

/// What guests with a shadow have, whatever the hart has: what wasn't valid is never kept, so what a guest makes valid is seen at once ([`ainori_shadow`]). Linux leaves out the fence
/// behind each page fault then.
const SHADOWED: &str = "svvptc";
const SV39: &str = "riscv,sv39";
const SV48: &str = "riscv,sv48";

/// How the addresses of a guest are translated.
#[derive(Clone, Copy)]
pub struct GuestTranslation {
    way: Translation,
    /// Where its memory begins for the guest, and, if it has a place, on the board too.
    base: u64,
    has_place: bool,
}

impl GuestTranslation {
    /// That of the guest with this index, as the blob says. Only at boot.
    pub fn of(blob: &[u8], guest: u8) -> Self {
        let blob::Space { translation, memory_at } =
            spaces(blob).get(usize::from(guest)).copied().unwrap_or_default();
        let base = memory_at.unwrap_or(GUEST_MEMORY_BASE);
        Self { way: translation, base, has_place: memory_at.is_some() }
    }

    /// Keeps everybody else out of the memory of guests that have a place. Only at boot, before the first guest gets memory.
    pub fn set_places_apart(blob: &[u8], system: &System) {
        let place = |(space, guest): (blob::Space, &config::Guest)| {
            let start = space.memory_at?;
            Some(Range { start, end: start.saturating_add(guest.memory) })
        };
        // BOUND: the guests, at boot.
        let places: Vec<Range> = spaces(blob).into_iter().zip(&system.guests).filter_map(place).collect();
        let message = "the memory of a guest that has a place (`memory_at`) isn't free on this board, or is another one's: choose another place";
        if !places.is_empty() && !memory::set_apart(&places) {
            refuse(format_args!("{message}"));
        }
    }

    /// Where its memory begins for the guest.
    #[inline(always)]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Where something is for the guest that would be at `address` if its memory began at [`GUEST_MEMORY_BASE`], as programs are described.
    pub const fn moved(&self, address: u64) -> u64 {
        address.wrapping_sub(GUEST_MEMORY_BASE).wrapping_add(self.base)
    }

    /// Takes its memory: aligned on the board as it is for the guest, so that large leaves can map it. `None` if there isn't so much. Only at boot.
    pub fn take_memory(&self, size: u64) -> Option<HostPhysical> {
        if self.has_place {
            return Some(HostPhysical(self.base));
        }
        memory::take_for_guest(size, GUEST_MEMORY_ALIGN)
    }

    /// Do accesses to what isn't its own come to the hypervisor?
    pub const fn confines(&self) -> bool {
        self.way.confines()
    }

    /// Do breakpoints stand for privileged instructions of its kernel that have trapped?
    #[cfg(feature = "no-h")]
    pub fn has_breakpoints(self) -> bool {
        self.way.shadow().is_some_and(|shadow| shadow.breakpoints)
    }

    /// Adds to its harts' extensions what the hypervisor has in their place. Only at boot.
    pub fn extend(&self, isa: &mut Isa) {
        if self.way.shadow().is_some() && !isa.has(SHADOWED) {
            *isa = isa.with(SHADOWED);
        }
    }

    /// The greatest format of tables that it is told of.
    pub fn mmu<'a>(&self, board: &'a Board) -> &'a str {
        match (self.way, format(board)) {
            (Translation::TwoStage | Translation::None, _) => &board.mmu,
            (_, Format::Sv39) => SV39,
            _ => SV48,
        }
    }

    /// The shadow of one of its vCPUs, if that has one. Allocates: only at boot.
    pub fn shadow(&self, vcpu: VcpuId, machine: &Machine) -> OwnShadow {
        let modes = Modes {
            switched: !machine
                .guests
                .iter()
                .all(|guest| guest.space.translation.way == Translation::TwoStage),
            unconfined: !machine.guests.iter().all(|guest| guest.space.translation.confines()),
        };
        let Some(shadow) = self.way.shadow() else {
            return OwnShadow::none(self.way.confines(), modes);
        };
        let mut isa = machine.features.isa.clone();
        self.extend(&mut isa);
        let features = Features {
            memory_types: isa.has("svpbmt"),
            contiguous: isa.has("svnapot"),
            updates: isa.has("svadu"),
        };
        let reclaim = match shadow.reclaim {
            ShadowReclaim::Fifo => Reclaim::Fifo,
            ShadowReclaim::PageDirectoryLru => Reclaim::LeastRecentlyUsed,
        };
        let greatest = format(&machine.board);
        let choices = Choices { reclaim, shares_global: true, features, greatest, window: None };
        OwnShadow::new(vcpu.0, choices, shadow.tables, shadow.space_count(), modes)
            .unwrap_or_else(|| refuse(format_args!("a vCPU needs more shadow tables than {}", shadow.tables)))
    }

    /// What a fence of its translations is to others.
    #[inline(always)]
    pub fn fence(&self, range: ainori_sbi::Range, asid: Option<u64>) -> Recordable {
        if self.way.shadow().is_some() { Recordable::own(range, asid) } else { Fence::TRANSLATIONS.into() }
    }
}

/// What the blob says of guests' memory spaces.
fn spaces(blob: &[u8]) -> Vec<blob::Space> {
    blob::spaces(blob)
        .unwrap_or_else(|error| refuse(format_args!("the system after the kernel's image: {error}")))
}

/// Has any guest a shadow? Only at boot.
fn is_used(machine: &Machine) -> bool {
    machine.guests.iter().any(|guest| guest.space.translation.way.shadow().is_some())
}

/// What this hart, where no guest runs yet, lacks for the shadows of this system's vCPUs, any of which may come to it. Only at boot.
pub fn lacks(machine: &Machine) -> Option<&'static str> {
    #[cfg(not(feature = "no-h"))]
    const ASIDS: &str = "16 ASIDs for each vCPU of a system with shadow tables";
    // Fewer are enough for harts that boot from one that has fewer: then all forget at each change, and need none.
    #[cfg(feature = "no-h")]
    const ASIDS: &str = "ASIDs of 16 bits, as the first one has them";
    const _: () = assert!(MOST_SHADOW_SPACES == 16);
    #[cfg(feature = "no-h")]
    if !OwnShadow::translates_in(format(&machine.board)) {
        return Some("Sv48, as the first one has it and the firmware's device tree says of all of them");
    }
    #[cfg(feature = "no-h")]
    if let Some(what) = crate::arch::hart::lacks_of_first() {
        return Some(what);
    }
    (is_used(machine) && !OwnShadow::has_asids_for(machine.vcpu_count)).then_some(ASIDS)
}

/// The greatest format of a shadow: Sv57 would be a table more for each.
fn format(board: &Board) -> Format {
    let told = if board.mmu.as_str() < SV48 { Format::Sv39 } else { Format::Sv48 };
    #[cfg(feature = "no-h")]
    let told = told.min(OwnShadow::greatest_format());
    told
}

/// Answers a page fault of the running vCPU, or does a step of that.
#[inline(never)]
pub fn page_fault(cpu: &mut Cpu, vcpu: VcpuId, fault: PageFault) -> Exit {
    // A step can take as long as a section may: what led here isn't to be added to it.
    if cpu.gives_way() {
        return Exit::Shadow;
    }
    match answer(cpu, vcpu, fault) {
        Answer::Again | Answer::NotYet => {
            cpu.is_amid_instruction(vcpu);
            Exit::Shadow
        }
        Answer::Guest(exception) => hand_over(cpu, vcpu, exception),
        #[cfg(feature = "no-h")]
        Answer::Elsewhere if super::text::is_memory(cpu, vcpu) => super::text::give_up(cpu, vcpu),
        // What has been done so far isn't to be added to what comes.
        Answer::Elsewhere if cpu.gives_way() => Exit::Shadow,
        // As if the hart had two stages: a device, or a mistake.
        Answer::Elsewhere => handle_exception(cpu),
    }
}

fn answer(cpu: &mut Cpu, vcpu: VcpuId, fault: PageFault) -> Answer {
    let memory = GuestMemory(&cpu.machine.guest_of(vcpu).space);
    // BOUND: what one page takes: a table on each level, which may have to be taken from somebody and cleared. Between two steps is a preemption point, where an interrupt
    // ends it: the vCPU comes back with the same fault.
    loop {
        match cpu.state(vcpu).answer(fault, &memory) {
            Answer::NotYet if cpu.stops_between_steps() => return Answer::Again,
            Answer::NotYet => {}
            #[cfg(feature = "no-h")]
            Answer::Again => {
                if !cpu.stops_between_steps() {
                    cpu.state(vcpu).fill_neighbours(&memory);
                }
                return Answer::Again;
            }
            answer => return answer,
        }
    }
}

fn hand_over(cpu: &mut Cpu, vcpu: VcpuId, exception: Exception) -> Exit {
    if cpu.state(vcpu).deliver(exception) {
        Exit::PageFault
    } else {
        fault::stop(cpu, vcpu, What::Translation, exception)
    }
}

/// Carries out an instruction of the running vCPU that says, or asks, in which address space it is.
pub fn address_space(cpu: &mut Cpu, vcpu: VcpuId, access: AddressSpaceAccess) -> Exit {
    if cpu.gives_way() {
        return Exit::AddressSpace;
    }
    // BOUND: a few tables that are cleared, or that are taken from somebody. As above.
    while !cpu.state(vcpu).access_address_space(access) {
        if cpu.stops_between_steps() {
            cpu.is_amid_instruction(vcpu);
            break;
        }
    }
    Exit::AddressSpace
}

/// Carries out a fence of the running vCPU.
pub fn fence(cpu: &mut Cpu, vcpu: VcpuId, fence: GuestFence) -> Exit {
    if cpu.gives_way() {
        return Exit::Fence;
    }
    // BOUND: the address spaces, or a few tables that are cleared. As above.
    while !cpu.state(vcpu).carry_out_fence(fence) {
        if cpu.stops_between_steps() {
            cpu.is_amid_instruction(vcpu);
            break;
        }
    }
    Exit::Fence
}

/// The same of one of an address.
#[cfg(feature = "no-h")]
#[inline(always)]
pub fn page_fence(cpu: &mut Cpu, vcpu: VcpuId, fence: GuestFence) -> Exit {
    let memory = GuestMemory(&cpu.machine.guest_of(vcpu).space);
    cpu.state(vcpu).carry_out_page_fence(fence, &memory);
    Exit::Fence
}

/// A load that the hypervisor has made for the running vCPU was refused: has that been answered, as of one with a shadow? Then the vCPU makes its call once more, or
/// has got what its own load would have led to.
pub fn answers_load(cpu: &mut Cpu, vcpu: VcpuId, refused: Exception) -> bool {
    let Some(fault) = PageFault::of_load(refused).filter(|_| cpu.state(vcpu).has_shadow()) else {
        return false;
    };
    // As for a page fault: what led here isn't to be added to it.
    if cpu.gives_way() {
        return true;
    }
    match answer(cpu, vcpu, fault) {
        Answer::Again | Answer::NotYet => {
            // To enter it again is a step as well.
            let _ = cpu.gives_way();
            true
        }
        Answer::Guest(exception) => cpu.state(vcpu).deliver(exception),
        #[cfg(feature = "no-h")]
        Answer::Elsewhere if super::text::is_memory(cpu, vcpu) => {
            super::text::give_up(cpu, vcpu);
            true
        }
        // As above.
        Answer::Elsewhere if cpu.gives_way() => true,
        Answer::Elsewhere => {
            fault::wild(cpu, vcpu, What::Load, Access::again());
            true
        }
    }
}
