//! Guests whose first stage the hypervisor shadows ([`ainori_shadow`]): the hart walks one table that the hypervisor makes of the guest's own and of where
//! its memory is. So their page faults, their fences and what they do to `satp` come here.
//!
//! In a kernel without the feature `shadow` there is [another file](../two_stage.rs) with the same names, and next to nothing behind them.
#[cfg(not(feature = "no-h"))]
mod shortcut;

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use ainori_board::{Board, Isa};
use ainori_handover::Fence;
#[cfg(feature = "no-h")]
use ainori_limits::PAGE;
use ainori_manifest::blob::translations;
use ainori_manifest::config::{
    GUEST_MEMORY_ALIGN, GUEST_MEMORY_BASE, MOST_SHADOW_SPACES, ShadowReclaim, Translation,
};
use ainori_sbi::Range;
use ainori_sched::VcpuId;
use ainori_shadow::{Choices, Features, Format, Memory, Reclaim};
use ainori_space::{Attributes, GuestPhysical, HostPhysical, Rights, Translation as Translated};

use super::fault::{self, What};
use super::space::Space;
use crate::arch::fence as hart_fence;
use crate::arch::shadow::{AddressSpaceAccess, Answer, GuestFence, OwnShadow, PageFault};
use crate::arch::trap::{Access, Exception};
use crate::cpu::event::handle_exception;
use crate::cpu::{Cpu, Machine};
use crate::panic::refuse;
use crate::stats::Exit;

#[cfg(not(feature = "no-h"))]
pub use self::shortcut::trapped;

/// What guests with a shadow aren't told of: with Svvptc they could expect to see without a fault what they map.
const NOT_SHADOWED: &str = "svvptc";
const SV39: &str = "riscv,sv39";
const SV48: &str = "riscv,sv48";

/// How the addresses of a guest are translated.
#[derive(Clone, Copy)]
pub struct GuestTranslation(Translation);

impl GuestTranslation {
    /// That of the guest with this index, as the blob says. Only at boot.
    pub fn of(blob: &[u8], guest: u8) -> Self {
        let all = translations(blob)
            .unwrap_or_else(|error| refuse(format_args!("the system after the kernel's image: {error}")));
        Self(all.get(usize::from(guest)).copied().unwrap_or_default())
    }

    /// Do breakpoints stand for privileged instructions of its kernel that have trapped?
    #[cfg(feature = "no-h")]
    pub fn has_breakpoints(self) -> bool {
        self.0.shadow().is_some_and(|shadow| shadow.breakpoints)
    }

    /// Leaves out of its harts' extensions what it isn't told of. Only at boot.
    pub fn restrict(&self, isa: &mut Isa) {
        if self.0.shadow().is_some() {
            let names: Vec<&str> = isa.names().filter(|name| *name != NOT_SHADOWED).collect();
            *isa = Isa::parse(Some(names.join("\0").as_bytes()), None);
        }
    }

    /// The greatest format of tables that it is told of.
    pub fn mmu<'a>(&self, board: &'a Board) -> &'a str {
        match (self.0, format(board)) {
            (Translation::TwoStage, _) => &board.mmu,
            (_, Format::Sv39) => SV39,
            _ => SV48,
        }
    }

    /// The shadow of one of its vCPUs, if that has one. Allocates: only at boot.
    pub fn shadow(&self, vcpu: VcpuId, machine: &Machine) -> OwnShadow {
        let Some(shadow) = self.0.shadow() else {
            let has_shadow = |guest: &super::Guest| guest.space.translation.0.shadow().is_some();
            return OwnShadow::none(machine.guests.iter().any(has_shadow));
        };
        if !OwnShadow::has_asids_for(machine.vcpu_count) {
            refuse(format_args!(
                "the harts of this board tell too few address spaces apart for shadow tables: {MOST_SHADOW_SPACES} are needed for each vCPU"
            ));
        }
        let isa = &machine.features.isa;
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
        OwnShadow::new(vcpu.0, choices, shadow.tables, shadow.space_count())
            .unwrap_or_else(|| refuse(format_args!("a vCPU needs more shadow tables than {}", shadow.tables)))
    }

    /// As what a fence of its translations is recorded: of an address space, or of all.
    #[inline(always)]
    pub fn fence(&self, asid: Option<u64>) -> Fence {
        if self.0.shadow().is_some() { own(asid) } else { Fence::TRANSLATIONS }
    }
}

fn own(asid: Option<u64>) -> Fence {
    Fence::own(asid.map(|asid| asid as u16))
}

/// The greatest format of a shadow: Sv57 would be a table more for each. (Where guests' kernels run in user mode, it is the hypervisor's own.)
fn format(board: &Board) -> Format {
    if cfg!(feature = "no-h") || board.mmu.as_str() < SV48 { Format::Sv39 } else { Format::Sv48 }
}

/// What a shadow is made of, beside the guest's `satp`.
pub(super) struct GuestMemory<'a>(pub(super) &'a Space);

impl GuestMemory<'_> {
    /// Where an address of its main memory is on the board. That begins and ends at a large page.
    #[inline(always)]
    pub(super) fn main(&self, at: GuestPhysical) -> Option<u64> {
        let (memory, offset) = (self.0.memory(), at.0.wrapping_sub(GUEST_MEMORY_BASE));
        (offset < memory.size()).then(|| memory.start + offset)
    }

    /// A word of the guest's main memory: no table of it is elsewhere.
    fn word(&self, at: GuestPhysical) -> Option<&AtomicU64> {
        let host = self.main(at)?;
        // SAFETY: the word lies in the guest's memory, which no Rust object shares and which stays the guest's for ever. The hypervisor runs without
        // translation. The guest changes it at any time, by other instructions than Rust's: so it is only read and changed by atomic ones. A table's entries
        // are at multiples of 8.
        Some(unsafe { AtomicU64::from_ptr(host as *mut u64) })
    }
}

impl Memory for GuestMemory<'_> {
    #[inline]
    fn load(&self, at: GuestPhysical) -> Option<u64> {
        let found = self.word(at)?.load(Ordering::Acquire);
        #[cfg(feature = "no-h")]
        let found = self.0.text.doubleword(at, found);
        Some(found)
    }

    fn exchange(&self, at: GuestPhysical, old: u64, new: u64) -> Option<bool> {
        Some(self.word(at)?.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok())
    }

    #[inline]
    fn translate(&self, at: GuestPhysical) -> Option<Translated> {
        // Nearly always it is main memory: where that is, is known without the tables of the second stage.
        let Some(host) = self.main(at).map(HostPhysical) else { return self.0.tables().translate(at) };
        #[cfg(feature = "no-h")]
        let rights = if self.0.text.is_text(at) { Rights::Execute } else { Rights::ReadWriteExecute };
        #[cfg(not(feature = "no-h"))]
        let rights = Rights::ReadWriteExecute;
        #[cfg(feature = "no-h")]
        let size = if self.0.text.is_plain(at) { GUEST_MEMORY_ALIGN } else { PAGE };
        #[cfg(not(feature = "no-h"))]
        let size = GUEST_MEMORY_ALIGN;
        Some(Translated { host, attributes: Attributes::new(rights), size })
    }
}

/// Answers a page fault of the running vCPU, or does a step of that.
#[inline(never)]
pub fn page_fault(cpu: &mut Cpu, vcpu: VcpuId, fault: PageFault) -> Exit {
    // A step can take as long as a section may: what led here isn't to be added to it.
    if cpu.gives_way() {
        return Exit::Shadow;
    }
    match answer(cpu, vcpu, fault) {
        Answer::Again | Answer::NotYet => Exit::Shadow,
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
            answer => return answer,
        }
    }
}

fn hand_over(cpu: &mut Cpu, vcpu: VcpuId, exception: Exception) -> Exit {
    if cpu.state(vcpu).deliver(exception) {
        Exit::PageFault
    } else {
        fault::stop(cpu, vcpu, What::Unhandled, exception)
    }
}

/// Carries out an instruction of the running vCPU that says, or asks, in which address space it is.
pub fn address_space(cpu: &mut Cpu, vcpu: VcpuId, access: AddressSpaceAccess) -> Exit {
    if cpu.gives_way() {
        return Exit::AddressSpace;
    }
    // BOUND: a few tables that are cleared, or that are taken from somebody. As above.
    while !cpu.state(vcpu).access_address_space(access) && !cpu.stops_between_steps() {}
    Exit::AddressSpace
}

/// Carries out a fence of the running vCPU.
pub fn fence(cpu: &mut Cpu, vcpu: VcpuId, fence: GuestFence) -> Exit {
    if cpu.gives_way() {
        return Exit::Fence;
    }
    // BOUND: the address spaces, or a few tables that are cleared. As above.
    while !cpu.state(vcpu).carry_out_fence(fence) && !cpu.stops_between_steps() {}
    Exit::Fence
}

/// A load that the hypervisor has made for the running vCPU was refused: has that been answered, as of one with a shadow? Then the vCPU makes its call once more, or
/// has got what its own load would have led to.
pub fn answers_load(cpu: &mut Cpu, vcpu: VcpuId, refused: Exception) -> bool {
    let Some(fault) = PageFault::of_load(refused).filter(|_| cpu.state(vcpu).has_shadow()) else {
        return false;
    };
    match answer(cpu, vcpu, fault) {
        Answer::Again | Answer::NotYet => true,
        Answer::Guest(exception) => cpu.state(vcpu).deliver(exception),
        #[cfg(feature = "no-h")]
        Answer::Elsewhere if super::text::is_memory(cpu, vcpu) => {
            super::text::give_up(cpu, vcpu);
            true
        }
        Answer::Elsewhere => {
            fault::wild(cpu, vcpu, What::Load, Access::again());
            true
        }
    }
}

/// Carries out the part of a remote fence that is the caller's own.
pub fn fence_own(cpu: &mut Cpu, vcpu: VcpuId, range: Range, asid: Option<u64>) {
    let state = cpu.state(vcpu);
    if !state.has_shadow() {
        return super::caller::translations(range, asid);
    }
    let pages = range.pages().map(|mut pages| (pages.next(), pages.next()));
    let address = match pages {
        Some((None, _)) => return,
        Some((page, None)) => page,
        // One by one they could take longer than a section may.
        _ => None,
    };
    state.note_fence(address, asid);
    cpu.fence_before_entry(vcpu, Fence::OWN_CALL);
}

/// What has been recorded for a vCPU that is about to be entered takes a while: has an interrupt come in, for which that waits?
#[inline(always)]
pub fn gives_way(cpu: &mut Cpu, vcpu: VcpuId) -> bool {
    cpu.machine.vcpu(vcpu).fences.has_own() && cpu.gives_way()
}

/// Carries out what has been recorded for the translations of a vCPU that is about to be entered.
pub fn carry_out(cpu: &mut Cpu, vcpu: VcpuId, recorded: Fence) {
    let state = cpu.state(vcpu);
    if recorded.contains(Fence::OWN_CALL) {
        state.carry_out_noted();
    }
    if recorded.contains(Fence::OWN) {
        state.forget_translations(recorded.own_asid());
    }
    if recorded.contains(Fence::TRANSLATIONS) {
        if state.has_shadow() { state.distrust_hart() } else { hart_fence::guest_all() }
    }
}
