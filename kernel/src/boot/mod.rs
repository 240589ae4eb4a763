//! From the firmware to the first guest: learns the board, then makes the [`guests`], what the cores share
//! ([`machine`]), and the [`cores`].
#![expect(clippy::indexing_slicing, reason = "before the first guest")]
mod channels;
mod cores;
mod files;
mod guests;
mod interrupts;
mod machine;
mod sharing;

use alloc::vec::Vec;

use ainori_board::{Board, BoardIrqchip, Error, Range, largest_free};
use ainori_limits::{MAX_HARTS, PAGE};
use ainori_manifest::{blob, config};
use ainori_sched::Policy;
use dtoolkit::error::FdtErrorKind;
use dtoolkit::fdt::Fdt;

pub use self::cores::secondary;
use crate::arch::firmware;
use crate::arch::hart::{self, Features};
use crate::memory;
use crate::panic::{refuse, use_port};

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
    // SAFETY: the firmware enters the first hart as it does Linux, with `a1` pointing to a device tree (Linux, arch/riscv/boot.rst), in memory that it doesn't use any more.
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

    let mut board = Board::read(tree).unwrap_or_else(|error| give_up(error));
    if let Some(uart) = board.uart {
        use_port(uart.base, uart.shift);
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
    let room_for_files = match board.irqchip {
        Some(BoardIrqchip::Imsic { guest_files, .. }) => Some(guest_files),
        _ => None,
    };
    let features = Features::probe(&board.isa, room_for_files);
    if room_for_files.is_some() && !features.messages {
        board.disregard_irqchip();
    }
    let harts: Vec<u64> = board.harts.iter().map(|hart| hart.id).take(MAX_HARTS).collect();
    let policy = policy(&system.policy, board.timebase_hz);
    clear_stack();
    let guests = guests::place(tree, &board, &harts, places_apart(&system, blob), &features, blob);
    let machine = machine::share(board, harts, features, &system, &policy, guests);
    let cpus = cores::make(machine, policy, &system);
    cores::start(cpus, boot_hart, memory::end() - free.start + image().size())
}

/// Objects that stay are made on the stack, and moved with the gaps between their fields. Makes that these hold zeros, rather than what the
/// calls before have left there: pointers to what only boot needs.
#[inline(never)]
fn clear_stack() {
    core::hint::black_box([0_u64; 4096]);
}

/// The blob lies right after the image; how long it may be, only its header says, so all memory behind it is offered.
fn find_blob(tree: Fdt<'_>) -> &'static [u8] {
    let start = image().end;
    let memory = Board::memory_of(tree).unwrap_or_else(|error| refuse(format_args!("{error}")));
    let mut ranges = memory.as_slice().iter();
    let end = ranges.find(|m| m.start <= start && start < m.end).map_or(start, |m| m.end);
    // SAFETY: this is main memory behind the image. Nobody writes to it before the allocator gets memory; of that, what is returned is kept out.
    let rest = unsafe { core::slice::from_raw_parts(start as *const u8, (end - start) as usize) };
    match blob::length(rest) {
        Ok(length) => &rest[..length],
        Err(error) => refuse(format_args!(
            "there is no system after the kernel's image ({error}): make one with `ainori build`"
        )),
    }
}

/// The system's policy, with its times in ticks.
fn policy(config: &config::Policy, timebase_hz: u64) -> Policy {
    let ticks = |us: u32| ainori_limits::ticks(u64::from(us), timebase_hz);
    let Some(preset) = Policy::preset(&config.preset, ticks(config.quantum_us), timebase_hz) else {
        refuse(format_args!("there is no policy `{}`", config.preset))
    };
    Policy { grace: ticks(config.grace_us), advance: ticks(config.advance_us), ..preset }
}

/// The system, with the memory of guests that have a place kept for them.
fn places_apart<'a>(system: &'a config::System, blob: &[u8]) -> &'a config::System {
    crate::guest::translation::GuestTranslation::set_places_apart(blob, system);
    system
}
