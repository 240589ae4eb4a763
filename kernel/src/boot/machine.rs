//! What the cores share.
use alloc::{boxed::Box, vec::Vec};
use core::array::from_fn;
use core::sync::atomic::{AtomicBool, AtomicU32};

use ainori_board::Board;
use ainori_console::{InputWaits, Source};
use ainori_handover::{PublishedHousework, PublishedThreshold, Seats};
use ainori_limits::{IRQ_LEVELS, VCPU_SLOTS};
use ainori_mailbox::Mailboxes;
use ainori_manifest::config::{self, System};
use ainori_manifest::housekeeping_core;
use ainori_sched::{Calendar, Class, Policy, VcpuId, Window};

use super::channels;
use super::files;
use super::guests::Placed;
use super::sharing::{class_on, order, shares_home_with_higher};
use crate::arch::hart::Features;
use crate::chip::ipi::Ipi;
use crate::chip::irqchip::{Irqchip, Levels};
use crate::cpu::order::Order;
use crate::cpu::threshold::IDLE;
use crate::cpu::{ByCore, ByVcpu, Machine};
use crate::guest::Guest;
use crate::guest::vcpu::Vcpu;
use crate::panic::refuse;

/// Puts together what all cores see. It stays for ever.
pub fn share(
    board: Board,
    harts: Vec<u64>,
    features: Features,
    system: &System,
    policy: &Policy,
    mut placed: Placed,
) -> &'static Machine {
    let mut vcpus = placed.vcpus;
    let class = |core: usize, guest| class_on(harts[core], guest, &system.guests, policy);
    // Where priorities don't count, one's devices must not wait for another one to leave, who may never do so.
    let guests = 0..system.guests.len() as u8;
    let levels =
        (0..harts.len()).flat_map(|core| guests.clone().map(move |guest| policy.level(class(core, guest))));
    let levels = Levels::of(levels, policy);
    let orders: Vec<Order> = (0..harts.len())
        .map(|core| {
            // Where no source arrives, none is kept away either.
            let irqchip = board.irqchip.filter(|_| board.harts[core].irq_target.is_some());
            order(&vcpus, &|guest| class(core, guest), levels, irqchip, policy)
        })
        .collect();
    let orders: &'static [Order] = orders.leak();
    for index in 0..vcpus.len() {
        let id = VcpuId(index as u8);
        let home = &orders[vcpus[index].home as usize];
        vcpus[index].confined = policy.confines() && shares_home_with_higher(&vcpus, id, home);
        for (core, order) in (0..).zip(orders) {
            let level = if policy.has_windows() { Policy::OUTSIDE } else { order.rank(id).level };
            vcpus[index].publish_level(core, level);
        }
    }
    channels::set_turns(&mut placed.guests, &vcpus, orders, policy);
    let bell_files = files::assign(&mut vcpus, &mut placed.guests, &board, &features, policy);
    let at_home = |vcpu: &Vcpu| (vcpu.home as usize, class(vcpu.home as usize, vcpu.guest).priority);
    let at_home: Vec<(usize, u8)> = vcpus.iter().map(at_home).collect();
    let console_core = housekeeping_core(harts.len(), at_home.iter().copied());
    let least =
        at_home.iter().copied().filter(|(home, _)| *home == console_core).map(|(_, priority)| priority).min();
    // Where nobody has a home, there are only visitors.
    let visitors = || guests.clone().map(|guest| class(console_core, guest).priority);
    let housework_priority = least.or_else(|| visitors().min()).unwrap_or(0);
    let housework_level = policy.level(Class { priority: housework_priority, guest: 0 });
    let console_core = console_core as u32;

    let guests: &'static [Guest] = placed.guests.leak();
    Box::leak(Box::new(Machine {
        // Those of cores that aren't there mean nothing.
        orders: ByCore(from_fn(|core| orders.get(core).unwrap_or(&orders[0]))),
        calendars: calendars(&harts, system, board.timebase_hz),
        features,
        guests,
        bell_files,
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
        housework: PublishedHousework::new(),
        housework_threshold: policy.threshold(housework_level),
        housework_level,
        levels,
        console_input: system.console_input,
        input_waits: InputWaits::new(),
        // SAFETY: the board says that it is there; the firmware doesn't use the supervisor's part. `boot` has disregarded one whose messages can't be reached.
        irqchip: board.irqchip.map(|chip| unsafe { Irqchip::new(chip) }.unwrap_or_else(|| refuse_irqchip())),
        source_owner: placed.source_owner.into_boxed_slice(),
        awaited_guests: AtomicU32::new(system.guests.iter().filter(|guest| !guest.background).count() as u32),
        finishing: AtomicBool::new(false),
        thresholds: ByCore(from_fn(|_| PublishedThreshold::new(IDLE))),
        restarting: AtomicU32::new(0),
        ended: AtomicU32::new(0),
        turn: AtomicU32::new(0),
        board,
    }))
}

/// The cores' calendars. They stay for ever.
fn calendars(harts: &[u64], system: &System, timebase_hz: u64) -> Box<ByCore<Calendar<'static>>> {
    let ticks = |us: u32| ainori_limits::ticks(us.into(), timebase_hz);
    let calendar = |core: usize| {
        let here = |window: &&config::Window| harts.get(core) == Some(&window.hart.into());
        let windows = system.windows.iter().filter(here).map(|window| Window {
            start: ticks(window.start_us),
            // So that windows that follow each other in microseconds do in ticks.
            length: ticks(window.start_us.saturating_add(window.length_us)) - ticks(window.start_us),
            guest: window.guest as u8,
        });
        let windows: Vec<Window> = windows.collect();
        if windows.is_empty() {
            return Calendar::EMPTY;
        }
        let calendar = Calendar::new(ticks(system.policy.frame_us), windows.leak());
        calendar.unwrap_or_else(|error| refuse(format_args!("the windows of core {core}: {error}")))
    };
    Box::new(ByCore(from_fn(calendar)))
}

#[cold]
fn refuse_irqchip() -> ! {
    refuse(format_args!(
        "the board's interrupt controller has fewer than {IRQ_LEVELS} priorities, or sends no messages though its device tree says so"
    ))
}

/// The vCPUs, and behind them ones that run nowhere.
fn by_vcpu(mut vcpus: Vec<Vcpu>) -> Box<[Vcpu; VCPU_SLOTS]> {
    let seats = Box::leak(Box::new(Seats::new()));
    vcpus.resize_with(VCPU_SLOTS, || Vcpu::new(0, 0, 0, 0, seats));
    // Where they are: boot's stack hasn't room for all of the large build.
    Box::try_from(vcpus).unwrap_or_else(|_| refuse(format_args!("there are more than {VCPU_SLOTS} vCPUs")))
}
