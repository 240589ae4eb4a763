//! Which interrupts of the board come to which core.
use ainori_board::{BoardIrqchip, Interrupt};

use crate::arch::files;
use crate::chip::irqchip::{CLOSED, CoreIrqs};
use crate::cpu::{Cpu, Machine};
use crate::panic::refuse;

/// What is wired to a core, each source with its level.
fn of_core(machine: &Machine, core: u32, target: u32) -> impl Iterator<Item = (Interrupt, u32)> + '_ {
    let owned = machine.source_owner.iter().filter_map(move |owner| {
        let owner = owner.as_ref().filter(|owner| owner.target == target)?;
        let guest = machine.guests.get(usize::from(owner.guest))?;
        Some((owner.interrupt.own(), machine.device_level(guest, core)))
    });
    // The serial port interrupts the least urgent guest of its core, and nobody else.
    let port = machine.board.uart.filter(|_| core == machine.console_core);
    let level = machine.levels.level(machine.housework_level);
    owned.chain(port.map(|uart| (uart.interrupt, level)))
}

/// The target of a core.
fn target(machine: &Machine, core: u32) -> Option<u32> {
    machine.board.harts.get(core as usize)?.irq_target
}

/// The board's controller as a core sees it; none if nothing of it reaches the core. Allocates.
pub fn plan(machine: &Machine, core: u32, has_windows: bool) -> Option<CoreIrqs> {
    let target = target(machine, core)?;
    let mut irqs = machine.irqchip?.core(target);
    for (interrupt, level) in of_core(machine, core, target) {
        // Outside of its owner's windows it has another level.
        let is_planned = irqs.plan(interrupt.source, level)
            && (!has_windows || level == CLOSED || irqs.plan(interrupt.source, CLOSED));
        if !is_planned {
            let hart = machine.harts.get(core as usize).copied().unwrap_or_default();
            refuse(format_args!(
                "hart {hart}'s IMSIC has too few identities for its guests' interrupts of one level"
            ))
        }
    }
    Some(irqs)
}

/// Has a core's own part of the board's interrupts come to it. By the core itself and after its start: starting a hart, the firmware
/// (OpenSBI) sets its part of the controller anew.
pub fn route(cpu: &Cpu) {
    let machine = cpu.machine;
    let Some(irqs) = &cpu.irqs else { return };
    let Some(target) = target(machine, cpu.id) else { return };
    irqs.reset();
    if let Some(BoardIrqchip::Imsic { guest_identities, .. }) = machine.board.irqchip {
        // What is in them after reset, nobody has said (AIA, section 3.5), and somebody else may have had them before.
        for number in 1..=machine.features.guest_files() {
            files::reset(&machine.features, number, guest_identities);
        }
        // From now on they tell of rings.
        cpu.files.bells().for_each(|bell| files::tell_of_bell(bell.number));
    }
    for (interrupt, level) in of_core(machine, cpu.id, target) {
        irqs.route(interrupt, level);
    }
}
