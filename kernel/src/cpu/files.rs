//! Guest interrupt files of this core's hart. A vCPU that has one is interrupted without the hypervisor while it runs; while it doesn't, the hart tells the
//! core, if the vCPU is at least as urgent as the one that runs: others wait in their files.
use ainori_board::BoardIrqchip;
use ainori_devices::irqchip::Irqchip;
use ainori_limits::bits::lowest_bit_out_of_line;
use ainori_sched::{VcpuId, VcpuSet};
use ainori_trace::{Event, Line};

use super::{Cpu, Machine};
use crate::arch::{clock, files};
use crate::guest::BellFile;
use crate::guest::vcpu::{Hold, Resident};
use crate::stats::{Exit, interrupt};

/// Whose they are.
#[derive(Clone, Copy)]
pub struct Files {
    /// All vCPUs that have one here.
    owners: VcpuSet,
    /// The files of this hart that are bells, a bit each: whoever hears them.
    of_all_bells: u64,
    /// The hart tells of others than it does beside the loaded vCPU: of those of sleepers still, or of fewer.
    pub are_others: bool,
    machine: &'static Machine,
    core: u32,
}

impl Files {
    /// Those of a core.
    pub fn of(core: u32, machine: &'static Machine) -> Self {
        let all = (0..machine.vcpu_count as u8).map(VcpuId);
        let owners = all.filter(|id| machine.vcpu(*id).home == core && machine.vcpu(*id).file.is_some());
        // BOUND: only at boot.
        let files = Self { owners: owners.collect(), of_all_bells: 0, are_others: false, machine, core };
        Self { of_all_bells: files.of_bells(0), ..files }
    }

    /// The files, a bit each, of which the hart tells the core while this vCPU runs there, at that level.
    pub fn watched_beside(&self, id: VcpuId, level: u8) -> u64 {
        self.of_owners(|owner| owner != id && self.machine.vcpu(owner).level_on(self.core) >= level)
            | self.of_bells(level)
    }

    /// Those of bells whose hearers have this level at least.
    fn of_bells(&self, level: u8) -> u64 {
        let heard = |bell: &&BellFile| self.machine.vcpu(bell.hearer).level_on(self.core) >= level;
        // BOUND: the bells of all harts, some 15 instructions each.
        self.bells().filter(heard).fold(0, |files, bell| files | 1 << bell.number)
    }

    /// The bells that are files of this hart.
    pub fn bells(&self) -> impl Iterator<Item = &'static BellFile> + use<> {
        let (core, machine) = (self.core, self.machine);
        machine.bell_files.iter().filter(move |bell| bell.core == core)
    }

    fn of_owners(&self, is_meant: impl Fn(VcpuId) -> bool) -> u64 {
        let mut files = 0;
        // BOUND: the files of one hart, some 15 instructions each.
        for owner in self.owners {
            if let Some(file) = self.machine.vcpu(owner).file.filter(|_| is_meant(owner)) {
                files |= 1 << file.number;
            }
        }
        files
    }

    /// Whose file has this number?
    fn owner(&self, number: u8) -> Option<VcpuId> {
        let has = |id: &VcpuId| self.machine.vcpu(*id).file.is_some_and(|file| file.number == number);
        // BOUND: the files of one hart, some 10 instructions each.
        self.owners.into_iter().find(has)
    }
}

impl Cpu {
    /// The core runs nobody: it is told of all files whose vCPUs wait for an interrupt.
    pub(super) fn watch_files_of_sleepers(&mut self) {
        let of_bells = self.files.of_all_bells;
        if self.files.owners.is_empty() && of_bells == 0 {
            return;
        }
        let waits = |id| self.residents[id].as_deref().is_some_and(Resident::listens_to_file);
        files::watch(self.files.of_owners(waits) | of_bells);
        self.files.are_others = true;
    }

    /// A vCPU goes on that was loaded while the core ran nobody: as if it had just been loaded, it is told of no others than those as urgent as it is.
    #[inline(never)]
    pub(super) fn watch_files_beside(&mut self, id: VcpuId) {
        self.files.are_others = false;
        files::watch(self.files.watched_beside(id, self.order.rank(id).level));
    }

    /// Something has come into a file of a vCPU that doesn't run, or of a bell. If there are more of them, they interrupt once more.
    #[inline(never)]
    pub(super) fn take_guest_file(&mut self) -> Exit {
        self.counters.interrupts[interrupt::EXTERNAL] += 1;
        let pending = files::take_pending(self.files.of_all_bells);
        if pending != 0 {
            let number = lowest_bit_out_of_line(pending) as u8;
            match self.files.owner(number) {
                Some(id) => self.take_message(id, number),
                None => self.take_bell(number),
            }
        }
        Exit::External
    }

    /// The same, found pending at a preemption point. It is left pending if who will have the core next keeps it away, as
    /// [devices](Self::take_external_unless_woken) are.
    #[inline(never)]
    pub(super) fn take_guest_file_unless_woken(&mut self) {
        self.meet_deadline(clock::now());
        // A policy that defers may go on with somebody else, and one that moves vCPUs keeps a place here for some that are elsewhere.
        let first = self.scheduler.first().filter(|id| !self.mechanisms.deferral.is_on && self.has(*id));
        if let Some(id) = first
            && files::watch_only(self.state(id).watched_files())
        {
            // If it is another one that goes on, that one's are watched again then.
            self.files.are_others = true;
        } else {
            self.take_guest_file();
        }
    }

    /// The file of a vCPU that doesn't run has something. If it sleeps, and listens, it wakes. Others find it when they run: until then their files interrupt nobody, or
    /// each switch beside them would be interrupted by them once more.
    fn take_message(&mut self, id: VcpuId, number: u8) {
        if !self.has(id) {
            return;
        }
        if self.resident(id).listens_to_file() && self.scheduler.is_asleep(id) {
            self.trace(Event::Injected { vcpu: id.0, line: Line::External(0) });
            self.wake(id);
        } else if self.loaded != Some(id) {
            // SAFETY: its own, as the caller has found out, and it isn't in the hart.
            unsafe { self.state(id).mute_file(number) };
        }
    }

    /// Messages have come in for a vCPU that has a file of this hart: they are sent there.
    #[inline(never)]
    pub(super) fn hand_on_messages(&mut self, id: VcpuId) {
        // Nor do they come to the next life: what starts it looks here once more, and the guest's controller has been reset then.
        if self.resident(id).hold == Hold::Stopped {
            return;
        }
        let vcpu = self.machine.vcpu(id);
        let (Some(file), Irqchip::Aia(aia)) = (vcpu.file, &self.machine.guest_of(id).devices.irqchip) else {
            return;
        };
        // What was written to memory before a message was sent is seen here once the message is, and so by the vCPU, which is on this hart.
        if let Some(messages) = aia.file(vcpu.index as usize) {
            files::post(file.number, messages.take_pending());
        }
    }

    /// The life of a vCPU is over, and no other one of its guest runs any more: its file is as after reset.
    #[inline(never)]
    pub(super) fn reset_file(&mut self, id: VcpuId) {
        self.state(id).forget_mute();
        if let (Some(file), Some(BoardIrqchip::Imsic { guest_identities, .. })) =
            (self.machine.vcpu(id).file, self.machine.board.irqchip)
        {
            files::reset(&self.machine.features, file.number, guest_identities);
        }
    }
}
