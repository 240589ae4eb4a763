//! From the firmware to the first guest: learns the board, places the guests, starts the other harts.
#![expect(clippy::indexing_slicing, reason = "before the first guest")]
use alloc::{boxed::Box, format, string::String, vec, vec::Vec};
use core::array::from_fn;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32};

use ainori_board::{Board, Device, Error, Range, largest_free};
use ainori_console::{InputWaits, Source};
use ainori_devices::irqchip::Irqchip as GuestIrqchip;
use ainori_handover::{Housework, Seats, Threshold};
use ainori_limits::{MAX_GUESTS, MAX_HARTS, PAGE, VCPU_SLOTS};
use ainori_mailbox::Mailboxes;
use ainori_manifest::config::{self, System};
use ainori_manifest::layout::TREE_SIZE;
use ainori_manifest::{blob, housekeeping_core};
use ainori_sched::{Class, Gangs, Policy, Scheduler, VcpuId};
use ainori_trace::{Mask, Ring};
use dtoolkit::error::FdtErrorKind;
use dtoolkit::fdt::Fdt;

use crate::arch::clear::Clearer;
use crate::arch::hart::{self, Features};
use crate::arch::start::{leave_boot, start_secondary};
use crate::arch::world::Translation;
use crate::arch::{VcpuState, firmware};
use crate::chip::ipi::Ipi;
use crate::chip::irqchip::{Irqchip, Levels};
use crate::chip::uart::Uart;
use crate::cpu::console::Console;
use crate::cpu::mechanism::threshold::IDLE;
use crate::cpu::{ByCore, ByVcpu, Cpu, Machine, SourceOwner};
use crate::guest::program::Program;
use crate::guest::space::Space;
use crate::guest::vcpu::{Resident, Vcpu};
use crate::guest::{Guest, device_tree, loader};
use crate::memory;
use crate::panic::{refuse, use_port};
use crate::report;

unsafe extern "C" {
    static __image_start: u8;
    static __image_end: u8;
}

fn image() -> Range {
    Range { start: &raw const __image_start as u64, end: &raw const __image_end as u64 }
}

/// The first hart, from the firmware.
pub extern "C" fn boot(boot_hart: u64, tree_at: *const u8) -> ! {
    let give_up = |error: Error| -> ! { refuse(format_args!("{error}")) };
    if tree_at.is_null() {
        give_up(Error::Missing("address"))
    }
    // SAFETY: the firmware enters with `a1` pointing to a device tree (SBI, HSM), in memory that it doesn't use any more.
    let tree = unsafe { Fdt::from_raw_unchecked(tree_at) };
    match Fdt::new(tree.data()) {
        Ok(_) => {}
        // Some boards' trees have names of more than the 31 characters that the specification allows. The check ends there, so that damage
        // behind it can still end in a panic.
        Err(error)
            if matches!(error.kind, FdtErrorKind::InvalidNodeName | FdtErrorKind::InvalidPropertyName) => {}
        Err(error) => give_up(Error::Tree(error)),
    }
    let blob = find_blob(tree);
    let mut reserved = Board::reserved_of(tree).unwrap_or_else(|error| give_up(error));
    let own = Range { start: image().start, end: blob.as_ptr() as u64 + blob.len() as u64 };
    let trees = Range { start: tree_at as u64, end: tree_at as u64 + tree.data().len() as u64 };
    if !reserved.add(own) || !reserved.add(trees) {
        give_up(Error::TooManyRanges)
    }
    let memory = Board::memory_of(tree).unwrap_or_else(|error| give_up(error));
    let Some(free) = largest_free(memory.as_slice(), reserved.as_slice()) else {
        refuse(format_args!("the firmware's device tree shows no free memory"))
    };
    let free = Range { start: free.start.next_multiple_of(PAGE), ..free };
    // SAFETY: the range is main memory that neither the firmware, nor this image, nor the tree uses.
    unsafe { memory::provide(free) };

    let board = Board::read(tree).unwrap_or_else(|error| give_up(error));
    if let Some((base, shift, _)) = board.uart {
        use_port(base, shift);
    }
    if let Some(what) = hart::lacks(&board.isa) {
        let isa = board.isa.string();
        refuse(format_args!("the harts of this board ({isa}) lack {what}, which Ainori needs"));
    }
    if let Some(what) = board.isa.refused() {
        refuse(format_args!(
            "the harts of this board have registers that can't be kept apart between guests ({what})"
        ));
    }
    if firmware::version() < ainori_sbi::VERSION_2_0 {
        refuse(format_args!("the firmware's SBI is older than 2.0: OpenSBI 1.4 or newer is needed"));
    }
    let system = blob::decode(blob)
        .unwrap_or_else(|error| refuse(format_args!("the system after the kernel's image: {error}")));
    let cpus = build(tree, board, system, blob);
    start(cpus, boot_hart, free.start)
}

/// The blob lies right after the image; how long it may be, only its header says, so all memory behind it is offered.
fn find_blob(tree: Fdt<'_>) -> &'static [u8] {
    let start = image().end;
    let memory = Board::memory_of(tree).unwrap_or_else(|error| refuse(format_args!("{error}")));
    let mut ranges = memory.as_slice().iter();
    let end = ranges.find(|m| m.start <= start && start < m.end).map_or(start, |m| m.end);
    // SAFETY: this is main memory that the boot loader filled with the image file and that nobody writes to.
    let rest = unsafe { core::slice::from_raw_parts(start as *const u8, (end - start) as usize) };
    match blob::length(rest) {
        Ok(length) => &rest[..length],
        Err(error) => refuse(format_args!(
            "there is no system after the kernel's image ({error}): make one with `ainori build`"
        )),
    }
}

/// Makes everything that the cores share, and the cores.
#[expect(clippy::mut_from_ref, reason = "the cores are new, no part of the blob")]
fn build(tree: Fdt<'_>, board: Board, system: System, blob: &'static [u8]) -> &'static mut [Cpu] {
    let features = Features::probe(&board.isa);
    let harts: Vec<u64> = board.harts.iter().map(|hart| hart.id).take(MAX_HARTS).collect();
    let core_of = |hart: u32| harts.iter().position(|&id| id == u64::from(hart));
    let ticks = |us: u32| u64::from(us) * board.timebase_hz / 1_000_000;
    let quantum = ticks(system.policy.quantum_us);
    let Some(preset) = Policy::preset(&system.policy.preset, quantum, board.timebase_hz) else {
        refuse(format_args!("there is no policy `{}`", system.policy.preset))
    };
    let policy =
        Policy { grace: ticks(system.policy.grace_us), advance: ticks(system.policy.advance_us), ..preset };

    let mut guests = Vec::new();
    let mut vcpus = Vec::new();
    let mut homes = Vec::new();
    let mut source_owner = vec![None; board.irqchip.map_or(0, |chip| chip.last_source() as usize + 1)];
    for (index, config) in system.guests.iter().enumerate().take(MAX_GUESTS) {
        let guest_index = index as u8;
        let first = vcpus.len() as u8;
        let seats = Box::leak(Box::new(Seats::new()));
        for (hart, vcpu) in config.vcpus.iter().enumerate() {
            let Some(home) = core_of(vcpu.home) else {
                refuse(format_args!(
                    "guest `{}` wants hart {}, but this board has {}",
                    config.name,
                    vcpu.home,
                    board.hart_names()
                ))
            };
            let class = Class { priority: config.priority, guest: guest_index };
            let cores = (0..harts.len())
                .filter(|&core| vcpu.harts >> harts[core] & 1 != 0)
                .fold(0, |set, core| set | 1 << core);
            vcpus.push(Vcpu::new(guest_index, hart as u32, class, home as u32, cores, seats));
            homes.push(home);
        }
        let target = board.harts[homes[usize::from(first)]].irq_target.unwrap_or(0);
        let mut guest = place(tree, guest_index, config, first, board.timebase_hz);
        guest.program = load(&guest, &board, &features, blob);
        for source in guest.owned_devices.iter().flat_map(|device| &device.interrupts) {
            if let Some(owner) = source_owner.get_mut(*source as usize) {
                *owner = Some(SourceOwner { guest: guest_index, target });
            }
        }
        guests.push(guest);
    }

    for index in 0..vcpus.len() {
        let confined = policy.confines() && shares_home_with_higher(&vcpus, VcpuId(index as u8), &policy);
        vcpus[index].confined = confined;
    }
    let priority = |vcpu: &Vcpu| vcpu.class.priority;
    let console_core = housekeeping_core(harts.len(), homes.iter().copied().zip(vcpus.iter().map(priority)));
    let at_home = vcpus.iter().filter(|vcpu| vcpu.home == console_core as u32).map(priority);
    // Where nobody has a home, there are only visitors.
    let all = || vcpus.iter().map(priority);
    let housework_priority = at_home.min().or(all().min()).unwrap_or(0);
    let housework_threshold =
        policy.threshold(policy.level(Class { priority: housework_priority, guest: 0 }));
    // Where priorities don't count, one's devices must not wait for another one to leave, who may never do so.
    let levels = Levels::of(vcpus.iter().map(|vcpu| policy.level(vcpu.class)));
    let console_core = console_core as u32;

    let guests: &'static [Guest] = guests.leak();
    let ids = (0..vcpus.len() as u8).map(VcpuId);
    let machine: &'static Machine = Box::leak(Box::new(Machine {
        from_priority: from_fn(|least| {
            ids.clone().filter(|id| usize::from(vcpus[usize::from(id.0)].class.priority) >= least).collect()
        }),
        urgent: ids.filter(|id| policy.takes_cores() && takes_cores(&vcpus, *id, &policy)).collect(),
        features,
        guests,
        vcpu_count: vcpus.len(),
        guests_of: ByVcpu(from_fn(|index| {
            &guests[vcpus.get(index).map_or(0, |vcpu| usize::from(vcpu.guest))]
        })),
        vcpu_places: by_vcpu(vcpus),
        ipi: Ipi::new(&board, &harts),
        harts: harts.into_boxed_slice(),
        mail: Box::new(Mailboxes::new()),
        log: Source::new(ainori_report::MARK, ainori_guest::serial::OUTPUT),
        news: AtomicU32::new(0),
        console_core,
        housework: Housework::new(),
        housework_threshold,
        housework_priority,
        levels,
        console_input: system.console_input,
        input_waits: InputWaits::new(),
        // SAFETY: the board says that it is there; the firmware doesn't use the supervisor's part.
        irqchip: board.irqchip.map(|chip| unsafe { Irqchip::new(chip) }),
        source_owner: source_owner.into_boxed_slice(),
        awaited_guests: AtomicU32::new(system.guests.iter().filter(|guest| !guest.background).count() as u32),
        finishing: AtomicBool::new(false),
        thresholds: ByCore(from_fn(|_| Threshold::new(IDLE))),
        ended: AtomicU32::new(0),
        turn: AtomicU32::new(0),
        board,
    }));

    let gangs = Gangs::new(&policy, machine.vcpus().iter().map(|vcpu| vcpu.class));
    let cpus: &'static mut [Cpu] = (0..machine.harts.len() as u32)
        .map(|id| {
            let console = (id == console_core).then(|| Console::new(port(&machine.board), machine));
            let target = machine.board.harts[id as usize].irq_target;
            let irqs = machine.irqchip.zip(target).and_then(|(chip, target)| chip.core(target));
            let trace = trace_ring(machine, id, &system.trace);
            Cpu::new(id, machine, Scheduler::new(policy).with_gangs(gangs), irqs, console, trace)
        })
        .collect::<Vec<_>>()
        .leak();
    for guest in machine.guests {
        for id in guest.vcpus().map(VcpuId) {
            let translation =
                Translation::new(guest.space.tables(), id.0, machine.vcpu_count, &machine.features);
            let cpu = &mut cpus[homes[usize::from(id.0)]];
            let alone = is_alone(machine.vcpus(), id, &policy);
            let advance = if machine.urgent.contains(id) { policy.advance } else { 0 };
            let state = VcpuState::new(&translation, alone, &machine.features);
            let resident = Resident::new(machine.vcpu(id), state, &policy, advance, machine);
            cpu.adopt(id, resident);
            if machine.vcpu(id).index == 0 {
                machine.vcpu(id).hart.prepare_start(guest.program.entry, guest.program.tree);
                cpu.start(id);
            }
        }
    }
    cpus
}

/// The vCPUs, and behind them ones that run nowhere.
fn by_vcpu(mut vcpus: Vec<Vcpu>) -> Box<ByVcpu<Vcpu>> {
    let seats = Box::leak(Box::new(Seats::new()));
    vcpus.resize_with(VCPU_SLOTS, || Vcpu::new(0, 0, Class::default(), 0, 0, seats));
    let Ok(places) = Box::try_from(vcpus) else {
        refuse(format_args!("there are more than {VCPU_SLOTS} vCPUs"))
    };
    Box::new(ByVcpu(*places))
}

/// The cores that a vCPU can come to, a bit each.
fn cores_of(vcpu: &Vcpu, policy: &Policy) -> u64 {
    if policy.moves() { vcpu.cores } else { 1 << vcpu.home }
}

/// Can no other vCPU ever come to the core of this one, and this one to no other?
fn is_alone(vcpus: &[Vcpu], id: VcpuId, policy: &Policy) -> bool {
    let own = cores_of(&vcpus[usize::from(id.0)], policy);
    let others = vcpus.iter().enumerate().filter(|(index, _)| *index != usize::from(id.0));
    own.is_power_of_two() && others.map(|(_, other)| cores_of(other, policy)).all(|set| set & own == 0)
}

/// Can a vCPU take a core from one of a lower level, at home or as a visitor?
fn takes_cores(vcpus: &[Vcpu], id: VcpuId, policy: &Policy) -> bool {
    let own = &vcpus[usize::from(id.0)];
    let meets = |other: &&Vcpu| cores_of(other, policy) & cores_of(own, policy) != 0;
    vcpus.iter().filter(meets).any(|other| policy.level(other.class) < policy.level(own.class))
}

/// Has a vCPU its home where one of a higher level has it too, and another core to go to?
fn shares_home_with_higher(vcpus: &[Vcpu], id: VcpuId, policy: &Policy) -> bool {
    let own = &vcpus[usize::from(id.0)];
    let mut others = vcpus.iter().filter(|other| other.home == own.home);
    own.cores & !(1 << own.home) != 0
        && others.any(|other| policy.level(other.class) > policy.level(own.class))
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
    // SAFETY: the board says that a 16550A is there. The firmware may still write to it, which does no harm.
    board.uart.map(|(base, shift, _)| unsafe { Uart::new(base, shift) })
}

/// Takes memory for a guest and builds its translation.
// Not within `build`, whose frame is so large that each access to a local takes several instructions.
#[inline(never)]
fn place(tree: Fdt<'_>, index: u8, config: &config::Guest, first_vcpu: u8, timebase_hz: u64) -> Guest {
    let name = &config.name;
    let Some(mut space) = Space::new(config.memory) else {
        refuse(format_args!(
            "not enough memory on this board for guest `{name}` ({} MiB)",
            config.memory >> 20
        ))
    };
    let devices: Vec<Device> = config.devices.iter().map(|path| device(tree, name, path)).collect();
    for (device, path) in devices.iter().zip(&config.devices) {
        for range in &device.registers {
            let pages = Range { start: range.start & !(PAGE - 1), end: range.end.next_multiple_of(PAGE) };
            if !space.add_device(pages) {
                refuse_device(name, path, format_args!("that address isn't free in its space"))
            }
            if let Some(other) = Board::neighbour(tree, path, pages) {
                refuse_device(name, path, format_args!("`{other}` has registers in the same page of 4 KiB"))
            }
        }
    }
    Guest::new(index, config.clone(), first_vcpu, space, devices, timebase_hz)
}

fn device(tree: Fdt<'_>, guest: &str, path: &str) -> Device {
    let device = Board::device(tree, path)
        .unwrap_or_else(|| refuse_device(guest, path, format_args!("this board doesn't have it")));
    if let Some(source) = device.interrupts.iter().find(|source| **source as usize >= GuestIrqchip::SOURCES) {
        let most = GuestIrqchip::SOURCES;
        refuse_device(
            guest,
            path,
            format_args!("its interrupt is source {source}, and a guest's controller has those below {most}"),
        )
    }
    device
}

#[cold]
#[inline(never)]
fn refuse_device(guest: &str, path: &str, why: fmt::Arguments<'_>) -> ! {
    refuse(format_args!("guest `{guest}` can't own device `{path}`: {why}"))
}

// As `place`.
#[inline(never)]
fn load(guest: &Guest, board: &Board, features: &Features, blob: &'static [u8]) -> Program {
    let fail = |why: String| -> ! { refuse(format_args!("guest `{}`: {why}", guest.config.name)) };
    let (layout, mut parts) = loader::load(guest, blob, &Clearer::new(board.zeroing_block()))
        .unwrap_or_else(|| fail("its memory is too small for its image, RAM disk and device tree".into()));
    let tree = device_tree::make(guest, &layout, board, features);
    let tree = Some(tree).filter(|tree| tree.len() as u64 <= TREE_SIZE);
    let tree = tree.and_then(|tree| loader::write(guest, layout.tree.start, tree.leak()));
    parts.push(tree.unwrap_or_else(|| fail(format!("its device tree is larger than {TREE_SIZE} bytes"))));
    Program { entry: guest.config.image.entry, tree: layout.tree.start, parts }
}

/// Starts all cores, and ends boot.
fn start(cpus: &'static mut [Cpu], boot_hart: u64, heap: u64) -> ! {
    let machine = cpus[0].machine;
    let Some(own) = cpus.iter().position(|cpu| cpu.hart == boot_hart) else {
        let harts = machine.board.hart_names();
        refuse(format_args!("the boot hart {boot_hart} is not among the harts of the board: {harts}"))
    };
    report::board(machine, memory::end() - heap + image().size());
    for cpu in cpus.iter_mut().filter(|cpu| cpu.hart != boot_hart) {
        let hart = cpu.hart;
        if let Err(error) =
            firmware::hart_start(hart, start_secondary as *const () as u64, &raw mut *cpu as u64)
        {
            refuse(format_args!("hart {hart} does not start: SBI error {}", error.0));
        }
    }
    // SAFETY: this is the hart; it doesn't come back. The others are on their cores' stacks, in code that stays.
    unsafe { leave_boot(boot_hart, (&raw mut cpus[own]).cast()) }
}

/// Has a core's own part of the board's interrupts come to it. By the core itself and after its start: starting a hart, the firmware
/// (OpenSBI) sets its part of the controller anew.
fn route_interrupts(cpu: &Cpu) {
    let machine = cpu.machine;
    let hart = |core: u32| machine.board.harts.get(core as usize);
    let Some(irqchip) = machine.irqchip else { return };
    let Some(target) = hart(cpu.id).and_then(|hart| hart.irq_target) else { return };
    irqchip.reset_target(target);
    for (source, owner) in machine.source_owner.iter().enumerate() {
        if let Some(owner) = owner.filter(|owner| owner.target == target)
            && let Some(guest) = machine.guests.get(usize::from(owner.guest))
        {
            irqchip.route(source as u32, target, machine.levels.level(guest.config.priority));
        }
    }
    // The serial port interrupts the least urgent guest of its core, and nobody else.
    if let Some((_, _, source)) = machine.board.uart
        && cpu.id == machine.console_core
    {
        irqchip.route(source, target, machine.levels.level(machine.housework_priority));
    }
}

/// Every hart ends here: as the core that it was made.
pub extern "C" fn secondary(cpu: &'static mut Cpu) -> ! {
    hart::setup(&cpu.machine.features);
    route_interrupts(cpu);
    cpu.run()
}
