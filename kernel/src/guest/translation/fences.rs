//! Fences of vCPUs with shadows that others, or calls of their own, have them execute: recorded until a vCPU is about to be entered, and carried out then in steps.
use ainori_handover::{Answers, Fence, Fences, PageFence, PageFences, Recorded};
use ainori_sched::VcpuId;

use crate::arch::fence as hart_fence;
use crate::cpu::Cpu;
use crate::guest::caller;
use crate::guest::vcpu::Vcpu;

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
    pub(super) fn own(range: ainori_sbi::Range, asid: Option<u64>) -> Self {
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

/// Carries out the part of a remote fence that is the caller's own; where it has a shadow, before it is entered, as what others want of it.
pub fn fence_own(cpu: &mut Cpu, vcpu: VcpuId, range: ainori_sbi::Range, asid: Option<u64>) {
    if !cpu.state(vcpu).has_shadow() {
        return caller::translations(range, asid);
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
