//! The cores: making them, starting them, and where each one begins.
use alloc::{vec, vec::Vec};

use ainori_board::Board;
use ainori_manifest::config;
use ainori_sched::{Gangs, Policy, Scheduler, VcpuId};
use ainori_trace::{Mask, Ring};

use super::interrupts;
use super::sharing::is_alone;
use crate::arch::start::{leave_boot, start_secondary};
use crate::arch::world::Translation;
use crate::arch::{VcpuState, firmware};
use crate::arch::{files, hart};
use crate::chip::uart::Uart;
use crate::cpu::console::Console;
use crate::cpu::{Cpu, Machine};
use crate::guest::vcpu::Resident;
use crate::panic::refuse;
use crate::report;

/// Makes the cores, each vCPU at its home, each guest with its first vCPU ready.
pub fn make(machine: &'static Machine, policy: Policy, system: &config::System) -> &'static mut [Cpu] {
    // Who co-schedules has one order on all cores.
    let ids = || (0..machine.vcpu_count as u8).map(VcpuId);
    let gangs = Gangs::new(&policy, ids().map(|id| machine.orders[0].rank(id).class));
    let cpus: &'static mut [Cpu] = (0..machine.harts.len() as u32)
        .map(|id| {
            let console = (id == machine.console_core).then(|| Console::new(port(&machine.board), machine));
            let irqs = interrupts::plan(machine, id, policy.has_windows());
            let trace = trace_ring(machine, id, &system.trace);
            let mut scheduler = Scheduler::new(policy).with_gangs(gangs);
            // Of all: whoever may come here has the same weight on all cores.
            for (vcpu, id) in machine.vcpus().iter().zip(ids()) {
                scheduler.set_weight(id, system.guests[usize::from(vcpu.guest)].weight);
            }
            Cpu::new(id, machine, scheduler, irqs, console, trace)
        })
        .collect::<Vec<_>>()
        .leak();
    for guest in machine.guests {
        for id in guest.vcpus().map(VcpuId) {
            let shadow = guest.space.translation.shadow(id, machine);
            let translation = Translation::new(guest.space.tables(), shadow, id, machine);
            let cpu = &mut cpus[machine.vcpu(id).home as usize];
            let alone = is_alone(machine.vcpus(), id, &policy);
            let priority = |id: VcpuId| cpu.order.rank(id).class.priority;
            // With H the WFI of a vCPU that is alone doesn't trap.
            let may_doze = cfg!(feature = "no-h") && alone
                || !policy.moves() && ids().all(|other| priority(other) >= priority(id));
            let file = machine.vcpu(id).file.map_or(0, |file| file.number);
            let state = VcpuState::new(translation, alone, file, &machine.features);
            let resident = Resident::new(machine.vcpu(id), state, may_doze);
            cpu.adopt(id, resident);
            // The boot hart has written its memory, and who had its hart before may have used its VMID.
            machine.vcpu(id).fences.distrust_caches();
            if machine.vcpu(id).index == 0 {
                machine.vcpu(id).hart.prepare_start(guest.program.entry, guest.program.tree);
                cpu.start(id);
            }
        }
    }
    cpus.iter_mut().for_each(Cpu::begin_outside);
    cpus
}

fn trace_ring(machine: &Machine, core: u32, trace: &config::Trace) -> Ring<'static> {
    if trace.records == 0 {
        return Ring::disabled();
    }
    let memory = vec![[0; 2]; Ring::slots(trace.records as usize)].leak();
    let hart = machine.harts[core as usize];
    Ring::new(memory, u64::from(core), hart, machine.board.timebase_hz, Mask(trace.mask)).unwrap_or_else(
        || refuse(format_args!("a trace ring of {} records: not a power of two", trace.records)),
    )
}

fn port(board: &Board) -> Option<Uart> {
    // SAFETY: `Board::uart` is a node that is on and says it is of the 16550's kind, and all eight registers, a byte each, are within its
    // `reg`. Of the hypervisor, only this core and `panic.rs` drive it, which does so when nobody waits for the transmitter's interrupt any
    // more. The firmware may still write to it, which at worst mixes letters: it looks for room itself.
    board.uart.map(|uart| unsafe { Uart::new(uart.base, uart.shift) })
}

/// Starts all cores, and ends boot. `memory` are the bytes that the hypervisor has taken.
pub fn start(cpus: &'static mut [Cpu], boot_hart: u64, memory: u64) -> ! {
    let machine = cpus[0].machine;
    let Some(own) = cpus.iter().position(|cpu| cpu.hart == boot_hart) else {
        let harts = machine.board.hart_names();
        refuse(format_args!("the boot hart {boot_hart} is none of the board's harts: {harts}"))
    };
    report::board(machine, memory);
    for cpu in cpus.iter_mut().filter(|cpu| cpu.hart != boot_hart) {
        let hart = cpu.hart;
        if let Err(error) =
            firmware::hart_start(hart, start_secondary as *const () as u64, &raw mut *cpu as u64)
        {
            refuse(format_args!("hart {hart} does not start: SBI error {}", error.0));
        }
    }
    // SAFETY: this is the hart; it doesn't come back. The others are in the firmware still, or on their cores' stacks in code that stays (link-kernel).
    unsafe { leave_boot(boot_hart, (&raw mut cpus[own]).cast()) }
}

/// Every hart ends here: as the core that it was made.
pub extern "C" fn secondary(cpu: &'static mut Cpu) -> ! {
    let hart = cpu.hart;
    #[cfg(all(feature = "sbi-timer", not(feature = "no-h")))]
    // SAFETY: made for this core, which is this hart's.
    unsafe {
        hart::adopt(cpu.id);
    }
    hart::setup(&cpu.machine.features);
    let needed = if !hart::has_vectors_of(&cpu.machine.features) {
        "vectors of one length, or none"
    } else if !files::are_as_of(&cpu.machine.features) {
        "as many guest interrupt files"
    } else {
        // As whoever boots may be the only one that has enough.
        crate::guest::translation::lacks(cpu.machine).unwrap_or_default()
    };
    if !needed.is_empty() {
        refuse(format_args!("hart {hart} isn't as the one that booted: all need {needed}"));
    }
    interrupts::route(cpu);
    cpu.run()
}
