//! Guests whose first stage the hypervisor shadows ([`ainori_shadow`]): the hart walks one table that the hypervisor makes of the guest's own and of where
//! its memory is. So their page faults, their fences and what they do to `satp` come here.
//!
//! In a kernel without the feature `shadow` there is [another file](../two_stage.rs) with the same names, and next to nothing behind them.
#[cfg(not(feature = "no-h"))]
mod shortcut;

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use ainori_board::{Board, Isa, Range};
use ainori_handover::{Answers, Fence, Fences, PageFence, PageFences, Recorded};
#[cfg(feature = "no-h")]
use ainori_limits::PAGE;
use ainori_manifest::blob;
use ainori_manifest::config::{
    self, GUEST_MEMORY_ALIGN, GUEST_MEMORY_BASE, MOST_SHADOW_SPACES, ShadowReclaim, System, Translation,
};
use ainori_sched::VcpuId;
use ainori_shadow::{Choices, Features, Format, Memory, ROW, Reclaim};
use ainori_space::{Attributes, GuestPhysical, HostPhysical, Rights, Translation as Translated};

use super::fault::{self, What};
use super::space::Space;
use super::vcpu::Vcpu;
use crate::arch::fence as hart_fence;
use crate::arch::shadow::{AddressSpaceAccess, Answer, GuestFence, Modes, OwnShadow, PageFault};
use crate::arch::trap::{Access, Exception};
use crate::cpu::event::handle_exception;
use crate::cpu::{Cpu, Machine};
use crate::memory;
use crate::panic::refuse;
use crate::stats::Exit;

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

/// A fence that is to be recorded for some vCPUs.
#[derive(Clone, Copy)]
pub enum Recordable {
    /// This.
    Whole(Fence),
    /// Of pages of what is shadowed.
    Pages(PageFence),
}

impl From<Fence> for Recordable {
    fn from(fence: Fence) -> Self {
        Self::Whole(fence)
    }
}

impl Recordable {
    /// Of what is shadowed: of the pages of a range, or where they had better go at once, of all.
    fn own(range: ainori_sbi::Range, asid: Option<u64>) -> Self {
        let asid = asid.map(|asid| asid as u16);
        let whole = Self::Whole(Fence::own(asid));
        let Some(mut pages) = range.pages() else { return whole };
        let Some(first) = pages.next() else { return Self::Whole(Fence::empty()) };
        // BOUND: `ainori_sbi::MOST_PAGES`.
        PageFence::new(first, 1 + pages.count() as u64, asid).map_or(whole, Self::Pages)
    }

    /// Records it for a vCPU, as [`Fences::record`].
    ///
    /// To put pages into the words of 15 others takes longer than a section may, so there is a preemption point before each: if an interrupt has come in, those that are left forget more than
    /// they would have to, which is said at once.
    #[inline]
    pub fn record(self, cpu: &mut Cpu, fences: &Fences, sender: VcpuId, answers: &Answers) -> Recorded {
        let fence = match self {
            Self::Pages(pages) if cpu.gives_way() => Fence::own(pages.asid()),
            recordable => recordable.noted(fences),
        };
        fences.record(fence, sender, answers)
    }

    /// As what it is recorded for a vCPU, in whose fences it says which pages it is about.
    fn noted(self, fences: &Fences) -> Fence {
        match self {
            Self::Whole(fence) => fence,
            Self::Pages(pages) => fences.note_pages(pages),
        }
    }
}

/// The greatest format of a shadow: Sv57 would be a table more for each.
fn format(board: &Board) -> Format {
    let told = if board.mmu.as_str() < SV48 { Format::Sv39 } else { Format::Sv48 };
    #[cfg(feature = "no-h")]
    let told = told.min(OwnShadow::greatest_format());
    told
}

/// What a shadow is made of, beside the guest's `satp`.
pub struct GuestMemory<'a>(pub(crate) &'a Space);

impl GuestMemory<'_> {
    /// Where an address of its main memory is on the board. That begins and ends at a large page.
    #[inline(always)]
    pub(super) fn main(&self, at: GuestPhysical) -> Option<u64> {
        let (memory, offset) = (self.0.memory(), at.0.wrapping_sub(self.0.translation.base()));
        (offset < memory.size()).then(|| memory.start + offset)
    }

    /// A word of the guest's main memory: no table of it is elsewhere.
    fn word(&self, at: GuestPhysical) -> Option<&AtomicU64> {
        let host = self.main(at)?;
        // SAFETY: the word lies in the guest's memory, which no Rust object shares and which stays the guest's for ever. To the hypervisor
        // its address is itself, without translation or by its own map. The guest changes it at any time, by other instructions than Rust's: so it is only read and changed by atomic ones. A table's entries
        // are at multiples of 8.
        Some(unsafe { AtomicU64::from_ptr(host as *mut u64) })
    }
}

impl Memory for GuestMemory<'_> {
    #[inline]
    fn load(&self, at: GuestPhysical) -> Option<u64> {
        // What an entry leads to is loaded behind it, as its address is made of what was loaded here (RVWMO, "Syntactic Dependencies", rule 9): so walks of harts are ordered, too.
        #[cfg(not(feature = "no-h"))]
        return Some(self.word(at)?.load(Ordering::Relaxed));
        #[cfg(feature = "no-h")]
        return Some(self.0.text.doubleword(at, self.word(at)?.load(Ordering::Acquire)));
    }

    #[cfg(not(feature = "no-h"))]
    #[inline(always)]
    fn load_row(&self, at: GuestPhysical, mut each: impl FnMut(usize, u64)) {
        let Some(host) = self.main(at) else { return };
        // SAFETY: as of a single word. Main memory is whole pages, and a row is part of one, as it begins at a multiple of its size.
        let row = unsafe { &*(host as *const [AtomicU64; ROW]) };
        // BOUND: `ROW`.
        for (offset, word) in row.iter().enumerate() {
            each(offset, word.load(Ordering::Relaxed));
        }
    }

    #[cfg(feature = "no-h")]
    #[inline(always)]
    fn load_row(&self, at: GuestPhysical, mut each: impl FnMut(usize, u64)) {
        let Some(host) = self.main(at) else { return };
        // SAFETY: as of a single word. Main memory is whole pages, and a row is part of one, as it begins at a multiple of its size.
        let row = unsafe { &*(host as *const [AtomicU64; ROW]) };
        let row = row.each_ref().map(|word| word.load(Ordering::Acquire));
        // All of a row is in one page. What is text by now may have had breakpoints in it, and is no table.
        if !self.0.text.is_text(at) {
            // BOUND: `ROW`.
            for (offset, word) in row.into_iter().enumerate() {
                each(offset, word);
            }
        }
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
    // What the hart is told before the vCPU is entered is a step as well.
    #[cfg(feature = "no-h")]
    let _ = cpu.gives_way();
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
        Answer::Again | Answer::NotYet => true,
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

/// Carries out the part of a remote fence that is the caller's own; where it has a shadow, before it is entered, as what others want of it.
pub fn fence_own(cpu: &mut Cpu, vcpu: VcpuId, range: ainori_sbi::Range, asid: Option<u64>) {
    if !cpu.state(vcpu).has_shadow() {
        return super::caller::translations(range, asid);
    }
    let what = Recordable::own(range, asid).noted(&cpu.machine.vcpu(vcpu).fences);
    cpu.fence_before_entry(vcpu, what);
}

/// Is something recorded that has to be [seen to](gives_way) before the vCPU is entered?
#[inline(always)]
pub fn is_owed(vcpu: &Vcpu) -> bool {
    vcpu.fences.has_own()
}

/// Somebody has a core look at a vCPU. Who wants no more of it than a fence may have to wait until it has made the instruction that it is amid.
pub fn look_at(cpu: &mut Cpu, vcpu: VcpuId) {
    if !cpu.puts_off_fences(vcpu) {
        ainori_handover::look_at(cpu, vcpu);
    }
}

/// Somebody, perhaps, is answered who waits for fences of a vCPU that this core has.
pub fn answered(cpu: &mut Cpu, is_anybody: bool) {
    if is_anybody {
        cpu.owes_fences();
    }
}

/// Sees to what has been recorded of the shadow of a vCPU that is about to be entered, as long as nothing more urgent comes up. Has it? Then the vCPU isn't to be entered yet.
#[inline(always)]
pub fn gives_way(cpu: &mut Cpu, vcpu: VcpuId) -> bool {
    cpu.resume_put_off();
    cpu.machine.vcpu(vcpu).fences.has_own()
        && !cpu.leaves_fences(vcpu)
        && (cpu.gives_way() || !carry_out_own(cpu, vcpu))
}

/// Steps for pages that are fenced one by one: with more than that, all is forgotten.
const MOST_STEPS: u32 = 32;

/// With so many, others get on as fast as they fence.
const FEW_STEPS: u32 = 8;

/// Between two steps is a preemption point. False if it was ended there: what is left is recorded still.
#[inline(never)]
fn carry_out_own(cpu: &mut Cpu, vcpu: VcpuId) -> bool {
    let fences = &cpu.machine.vcpu(vcpu).fences;
    // Whoever comes later finds the vCPU present, and waits for it.
    let recorded = fences.take_own();
    if recorded.contains(Fence::OWN) {
        let asid = recorded.own_asid();
        forget(cpu, vcpu, asid);
        if cpu.stops_between_steps() {
            fences.record_own(Fence::OWN_PAGES);
            return false;
        }
    }
    let mut steps = 0;
    // BOUND: the places, for each its pages, and of all no more than `MOST_STEPS`.
    for place in 0..PageFences::PLACES {
        let mut pages = fences.pages().get(place);
        // BOUND: as above.
        while let Some(first) = pages {
            if steps >= MOST_STEPS {
                forget(cpu, vcpu, None);
                pages = None;
            } else if cpu.state(vcpu).forget_page(first.address(), first.asid()) {
                pages = first.rest();
                fences.pages().leave(place, pages);
            }
            steps += 1;
            if cpu.stops_between_steps() {
                fences.record_own(Fence::OWN_PAGES);
                return false;
            }
        }
    }
    cpu.has_fenced(vcpu);
    if steps > FEW_STEPS {
        // By the end of that the next ones may be there.
        cpu.is_amid_instruction(vcpu);
    }
    true
}

/// Forgets an address space, or all: then the pages, too, that are to be fenced by now.
fn forget(cpu: &mut Cpu, vcpu: VcpuId, asid: Option<u16>) {
    let pages = cpu.machine.vcpu(vcpu).fences.pages();
    let taken = pages.taken();
    let is_all = cpu.state(vcpu).forget_translations(asid);
    if is_all {
        pages.leave_nothing(taken);
    }
}

/// Carries out what has been recorded for what the hart has cached of the translations of a vCPU that is about to be entered.
pub fn carry_out(cpu: &mut Cpu, vcpu: VcpuId, recorded: Fence) {
    if recorded.contains(Fence::TRANSLATIONS) {
        let state = cpu.state(vcpu);
        if state.has_shadow() { state.distrust_hart() } else { hart_fence::guest_all() }
    }
}
