//! What the services of a guest ([`ainori_guest`]) want of the hypervisor, on behalf of the vCPU whose trap is being served.

use ainori_devices::irqchip::{Board, Msi};
use ainori_guest::{Devices, Host};
use ainori_handover::{Fence, Recorded, Requests};
use ainori_lifecycle::{Cause, Hart, HartState};
use ainori_sbi::{Range, RemoteFence};
use ainori_sched::{VcpuId, VcpuSet};
use ainori_trace::Event;

use super::{Guest, stop, translation};
use crate::arch::fence;
use crate::arch::world::{self, Lines};
use crate::cpu::Cpu;
use crate::guest::vcpu::Hold;
use crate::memory::GuestPhysical;

/// The running vCPU, with its core and its guest.
pub struct Caller<'a> {
    /// The core.
    pub cpu: &'a mut Cpu,
    /// The vCPU.
    pub vcpu: VcpuId,
    /// Its guest.
    pub guest: &'static Guest,
    /// Of what it had stored, something was an instruction that a breakpoint had stood for.
    #[cfg(feature = "no-h")]
    stored_in_text: bool,
}

impl<'a> Caller<'a> {
    /// The vCPU that runs on a core.
    #[inline(always)]
    pub fn new(cpu: &'a mut Cpu, vcpu: VcpuId) -> Self {
        let guest = cpu.machine.guest_of(vcpu);
        Self {
            cpu,
            vcpu,
            guest,
            #[cfg(feature = "no-h")]
            stored_in_text: false,
        }
    }

    /// Its call is over.
    #[inline(always)]
    pub fn end(self) {
        #[cfg(feature = "no-h")]
        if self.stored_in_text {
            super::text::forget_everywhere(self.cpu, self.vcpu);
        }
    }
}

impl Board for Caller<'_> {
    fn complete(&mut self, source: u32, is_edge: bool) {
        self.cpu.sources_of(self.guest).complete(source, is_edge);
    }

    fn redirect(&mut self, source: u32, msi: Msi) -> bool {
        self.cpu.sources_of(self.guest).redirect(source, msi)
    }

    fn recall(&mut self, source: u32) {
        self.cpu.sources_of(self.guest).recall(source);
    }

    fn rearm(&mut self, word: usize, sources: u32) {
        self.cpu.sources_of(self.guest).rearm(word, sources);
    }

    fn ask_again(&mut self, word: usize, sources: u32) {
        self.cpu.sources_of(self.guest).ask_again(word, sources);
    }

    fn inputs(&mut self, word: usize) -> u32 {
        self.cpu.sources_of(self.guest).inputs(word)
    }

    fn send_later(&mut self) {
        self.cpu.ask_later(self.vcpu, Requests::SEND);
    }
}

impl<'a> Host for Caller<'a> {
    #[inline(always)]
    fn devices(&self) -> &'static Devices {
        &self.guest.devices
    }

    fn hart(&self, hart: u32) -> Option<&'static Hart> {
        self.guest.vcpu(u64::from(hart)).map(|id| &self.cpu.machine.vcpu(id).hart)
    }

    fn stop_caller(&mut self) -> bool {
        let machine = self.cpu.machine;
        self.cpu.resident(self.vcpu).hold = Hold::Stopped;
        self.cpu.rest(self.vcpu);
        let all = self.guest.vcpus().map(|index| &machine.vcpu(VcpuId(index)).hart);
        machine.vcpu(self.vcpu).hart.stop_among(all)
    }

    fn is_alone(&self) -> bool {
        let state = |index| self.cpu.machine.vcpu(VcpuId(index)).hart.state();
        // BOUND: the vCPUs of one guest, some 10 instructions each.
        self.guest.vcpus().filter(|index| state(*index) != HartState::Stopped).count() == 1
    }

    fn start(&mut self, hart: u32) {
        if let Some(target) = self.guest.vcpu(u64::from(hart)) {
            // To find the vCPU and to make its registers anew takes long.
            self.cpu.ask_later(target, Requests::START);
        }
    }

    fn suspend(&mut self) {
        self.cpu.wait_for_interrupt(self.vcpu);
    }

    fn resume_at(&mut self, address: u64, opaque: u64) {
        let hart = u64::from(self.cpu.machine.vcpu(self.vcpu).index);
        let me = core::ptr::from_mut(self.cpu).cast();
        // SAFETY: the caller's world is in the hart. `me` is this core, as in `Cpu::dispatch`.
        unsafe { self.cpu.state(self.vcpu).resume_at(hart, address, opaque, me) };
    }

    fn yield_now(&mut self) {
        self.cpu.yield_now();
    }

    fn stop_guest(&mut self, reason: &'static str, cause: Cause) {
        stop::stop(self.cpu, self.vcpu, reason, cause, |_| None);
    }

    #[inline(always)]
    fn set_timer(&mut self, at: u64) {
        world::set_timer(at);
    }

    #[inline(always)]
    fn send_ipi(&mut self, harts: u64) {
        let targets = self.guest.vcpu_set(harts);
        if targets.contains(self.vcpu) {
            world::raise(Lines::SOFTWARE);
        }
        let others = targets.without(self.vcpu);
        if !others.is_empty() {
            self.cpu.ask_all(others, Requests::SOFTWARE);
        }
    }

    fn take_software_interrupt(&mut self) -> bool {
        world::take_software_interrupt()
    }

    /// It is carried out here for the caller, recorded for vCPUs that don't run, and asked of the owners of those that do. The caller goes on when these
    /// have answered; meanwhile its core does other things.
    fn remote_fence(&mut self, harts: u64, what: RemoteFence) {
        let machine = self.cpu.machine;
        let targets = self.guest.vcpu_set(harts);
        let awaited = &machine.vcpu(self.vcpu).fences_awaited;
        let is_own = targets.contains(self.vcpu);
        let asked: translation::Recordable = match what {
            RemoteFence::Instructions => {
                if is_own {
                    fence::instructions();
                }
                Fence::INSTRUCTIONS.into()
            }
            RemoteFence::Translations(range, asid) => {
                if is_own {
                    translation::fence_own(self.cpu, self.vcpu, range, asid);
                }
                self.guest.space.translation.fence(range, asid)
            }
        };
        awaited.begin();
        let mut present = VcpuSet::EMPTY;
        // BOUND: the vCPUs of one guest, some 25 instructions each.
        for target in targets.without(self.vcpu) {
            if asked.record(self.cpu, &machine.vcpu(target).fences, self.vcpu, awaited) == Recorded::Awaited {
                present.insert(target);
            }
        }
        if !present.is_empty() {
            self.cpu.ask_for_fences(present);
        }
        if !awaited.answer() {
            self.cpu.resident(self.vcpu).hold = Hold::Fences;
            self.cpu.rest(self.vcpu);
        }
    }

    #[inline(always)]
    fn look_at_harts(&mut self, harts: u64) {
        self.cpu.look_at_harts(self.guest, harts);
    }

    fn ring(&mut self, slot: usize) {
        if let Some(peer) = self.guest.peers.get(slot) {
            self.cpu.ring(self.guest, *peer);
        }
    }

    fn has_looked(&mut self, slot: usize) {
        self.cpu.tell_of_bell(self.guest, slot);
    }

    fn hear(&mut self, slot: usize) {
        self.cpu.hand_on_bell(self.guest, self.guest, slot);
    }

    fn has_memory(&self, address: u64, size: u64) -> bool {
        self.guest.space.locate(GuestPhysical(address), size).is_some()
    }

    fn load(&self, address: u64, size: usize) -> Option<impl Iterator<Item = u8> + use<'a>> {
        let from = self.guest.space.locate(GuestPhysical(address), size as u64)?.0 as *const u8;
        // SAFETY: the range lies in the guest's memory, which no Rust object shares; the guest may change it at any time, so it is read by volatile bytes.
        let bytes = (0..size).map(move |index| unsafe { from.add(index).read_volatile() });
        Some(self.guest.space.seen(address, bytes))
    }

    fn store(&mut self, address: u64, byte: u8) {
        let (space, address) = (&self.guest.space, GuestPhysical(address));
        #[cfg(feature = "no-h")]
        {
            self.stored_in_text |= super::text::make_way(space, address);
        }
        if let Some(at) = space.locate(address, 1) {
            // SAFETY: as above, for writing.
            unsafe { (at.0 as *mut u8).write_volatile(byte) };
        }
    }

    fn input_waits(&self) -> bool {
        self.cpu.machine.input_waits.is_set()
    }

    fn wake_console(&mut self) {
        self.cpu.wake_console();
    }

    fn relieve_console(&mut self) {
        self.cpu.relieve_console();
    }

    fn mark(&mut self, value: u64) {
        self.cpu.trace(Event::Mark { vcpu: self.vcpu.0, value });
    }

    fn note_lock(&mut self, holds_lock: bool) {
        self.cpu.resident(self.vcpu).holds_lock = holds_lock;
    }
}

/// The caller's own part of a remote SFENCE.VMA: as narrow as it was asked for.
pub(super) fn translations(range: Range, asid: Option<u64>) {
    let Some(pages) = range.pages() else {
        return asid.map_or_else(fence::guest_all, fence::guest_asid);
    };
    // BOUND: `MOST_PAGES` and one, some 8 instructions each.
    for page in pages {
        match asid {
            None => fence::guest_page(page),
            Some(asid) => fence::guest_page_asid(page, asid),
        }
    }
}
