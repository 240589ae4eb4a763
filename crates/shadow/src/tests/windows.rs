//! The window, as one would try it by hand.
use super::examples::{ALL, KERNEL, LARGE, choices, one, satp};
use super::guest::{MEMORY, leaf, pointer, table};
use super::hart::{Pool, window};
use super::machine::Machine;
use crate::entry::Entry;
use crate::tree::Tree;
use crate::*;

/// One hart, with a window.
fn machine(spaces: usize, spare: usize, slot: u16) -> Machine<Divided> {
    machine_with(Format::Sv39, spaces, spare, slot)
}

fn machine_with(greatest: Format, spaces: usize, spare: usize, slot: u16) -> Machine<Divided> {
    let choices = Choices { window: Some(window(slot)), greatest, ..choices(Reclaim::Fifo) };
    Machine::new(1, spaces, Shadow::<Pool, Divided>::tables_needed(spaces) + spare, choices)
}

fn load(machine: &mut Machine<Divided>, address: u64) -> Result<u32, Outcome> {
    machine.access(0, address, Access::Load, KERNEL)
}

/// Where a slot of a root of this format begins.
fn of_slot(slot: u64, format: Format) -> u64 {
    let unused = if format == Format::Sv39 { 25 } else { 16 };
    ((slot << 55) as i64 >> unused) as u64
}

/// The same with Sv39.
fn in_slot(slot: u64) -> u64 {
    of_slot(slot, Format::Sv39)
}

#[test]
fn it_begins_where_its_slot_does() {
    for (slot, format, start) in [
        (256, Format::Sv39, 0xffff_ffc0_0000_0000),
        (511, Format::Sv39, 0xffff_ffff_c000_0000),
        (256, Format::Sv48, 0xffff_8000_0000_0000),
        (511, Format::Sv48, 0xffff_ff80_0000_0000),
        (256, Format::Sv57, 0xff00_0000_0000_0000),
        (257, Format::Sv57, 0xff01_0000_0000_0000),
    ] {
        assert_eq!(window(slot).start(format), Virtual(start), "{slot}, {format:?}");
    }
}

#[test]
fn it_is_in_the_upper_half_and_in_views_alone() {
    fn is_right<V: View>(slot: u16) -> bool {
        let choices = Choices { window: Some(window(slot)), ..choices(Reclaim::Fifo) };
        let states = vec![TableState::NEW; Shadow::<Pool, V>::tables_needed(1)].leak();
        let spaces = vec![AddressSpace::UNUSED; 1].leak();
        Shadow::<_, V>::new(choices, Pool::default(), states, spaces).is_some()
    }
    assert!(is_right::<Divided>(256) && is_right::<Divided>(511));
    assert!(!is_right::<Divided>(255) && !is_right::<Divided>(512) && !is_right::<Undivided>(256));
}

/// An instruction that wants a page in the window's slot, and in each of the next three ones to which it moves.
#[test]
fn each_instruction_is_made_though_the_window_is_in_its_way() {
    for (first, format) in [256, 300, 510].into_iter().flat_map(|first| FORMATS.map(|format| (first, format)))
    {
        let mut machine = machine_with(format, 4, 0, first);
        everywhere(&mut machine);
        machine.activate(0, satp_of(format));
        let slots = (0..4).map(|more| 256 + (u64::from(first) + more) % 256);
        let wanted: Vec<u64> = slots.map(|slot| of_slot(slot, format)).collect();
        let is_made = |machine: &mut Machine<Divided>| wanted.iter().all(|at| load(machine, *at) == Ok(0));
        assert!((0..20).any(|_| is_made(&mut machine)), "the first slot is {first}, {format:?}");
        assert_eq!(machine.vcpus[0].shadow.window().unwrap().slot, 256 + (first + 4) % 256);
        assert!(is_made(&mut machine));
    }
}

const FORMATS: [Format; 2] = [Format::Sv39, Format::Sv48];

/// An address space of each format, all of whose entries lead to a page.
fn everywhere(machine: &mut Machine<Divided>) {
    for slot in 0..512 {
        machine.store(table(0) + slot * 8, leaf(MEMORY, ALL));
        machine.store(table(1) + slot * 8, pointer(0));
    }
}

fn satp_of(format: Format) -> Satp {
    let number = format as u64;
    Satp(format.mode() << 60 | (number + 1) << 44 | (table(number) / 0x1000))
}

/// A guest that goes from three levels to four and back: its window begins elsewhere each time, and it finds its own pages there in both.
#[test]
fn address_spaces_of_both_depths_have_it_each_in_its_own_place() {
    for first in [256, 511] {
        let mut machine = machine_with(Format::Sv48, 4, 16, first);
        everywhere(&mut machine);
        for _ in 0..3 {
            for format in FORMATS {
                machine.activate(0, satp_of(format));
                let before = machine.vcpus[0].shadow.window().unwrap().slot;
                let at = of_slot(before.into(), format);
                // It is in the way, moves, and the page is there.
                assert!((0..9).any(|_| load(&mut machine, at) == Ok(0)), "{first}, {format:?}");
                let window = machine.vcpus[0].shadow.window().unwrap();
                let active = machine.vcpus[0].shadow.active();
                assert_eq!(active.format, format);
                assert_ne!(window.slot, before);
                assert_eq!(window.start(format), Virtual(of_slot(window.slot.into(), format)));
            }
        }
        // What isn't translated is walked in the greatest format.
        machine.activate(0, Satp::BARE);
        assert_eq!(machine.vcpus[0].shadow.active().format, Format::Sv48);
    }
}

#[test]
fn what_a_guest_has_no_right_to_in_it_moves_nothing() {
    let mut machine = machine(4, 0, 300);
    // A device, a page to which there is no right, and nothing.
    machine.store(table(0) + 300 * 8, pointer(1));
    machine.store(table(1), leaf(0x1000_0000, ALL));
    machine.store(table(1) + 8, leaf(MEMORY, ALL | super::guest::U));
    machine.activate(0, satp(0));
    let device = ainori_space::GuestPhysical(0x1000_0000);
    machine.store(table(1), pointer(2));
    machine.store(table(2), leaf(device.0, ALL));
    assert_eq!(load(&mut machine, in_slot(300)), Err(Outcome::Elsewhere(device)));
    for more in [LARGE, 2 * LARGE] {
        assert_eq!(load(&mut machine, in_slot(300) + more), Err(Outcome::Fault(Fault::Page)));
    }
    // Nor does a fence there do anything. (Each root is looked at.)
    for asid in [None, Some(satp(0).asid())] {
        machine.fence(0, one(in_slot(300), asid));
    }
    assert_eq!(machine.vcpus[0].shadow.window().unwrap().slot, 300);
}

/// No memory is in the upper half of what isn't translated.
#[test]
fn without_translation_it_is_in_nobodys_way() {
    let mut machine = machine(4, 0, 256);
    for slot in [256, 511] {
        let at = in_slot(slot);
        assert_eq!(load(&mut machine, at), Err(Outcome::Elsewhere(ainori_space::GuestPhysical(at))));
    }
    assert_eq!(machine.vcpus[0].shadow.window().unwrap().slot, 256);
}

/// However few tables there are: a fill leaves some for a new root, but a tree doesn't count on that.
#[test]
fn a_root_that_is_emptied_in_place_keeps_it() {
    let tables = Pool::default();
    let mut pool = crate::pool::Pool::new(tables.clone(), vec![TableState::NEW; 2].leak());
    let mut tree = Tree { root: pool.take_clean().unwrap(), ..Tree::ROOTLESS };
    let (format, root) = (Format::Sv39, pool.address(tree.root));
    pool.open(tree.root, window(300).opening(format));
    pool.take(&mut tree.owned, tree.root, 5, 1).unwrap();
    pool.write(tree.root, 5, Entry::pointer(root));
    // In the same slot, and in another one.
    for slot in [300, 301, 301] {
        pool.write(tree.root, 7, Entry::pointer(root));
        tree.renew(&mut pool, window(slot).opening(format));
        assert_eq!(pool.address(tree.root), root);
        assert!(tables.has_window(root, format, window(slot)) && pool.is_unused(tree.root));
    }
    // A table that is a root no more is cleared before it is taken for something else.
    let number = tree.root;
    tree.give_back(&mut pool);
    assert!((0..9).any(|_| pool.prepare(2)));
    assert!(tables.is_clean(number));
}

/// With H, and in the global tree: no entry is a window's, not the first one either.
#[test]
fn a_root_without_one_is_all_zeros_once_it_is_emptied_in_place() {
    let tables = Pool::default();
    let mut pool = crate::pool::Pool::new(tables.clone(), vec![TableState::NEW; 2].leak());
    let mut tree = Tree { root: pool.take_clean().unwrap(), ..Tree::ROOTLESS };
    let root = pool.address(tree.root);
    for index in [0, 7, 511] {
        pool.take(&mut tree.owned, tree.root, 5, 1);
        pool.write(tree.root, index, Entry::pointer(root));
        tree.renew(&mut pool, crate::window::Opening::NONE);
        assert_eq!(pool.address(tree.root), root);
        assert!(tables.is_clean(tree.root) && pool.is_unused(tree.root), "entry {index}");
    }
}
