//! What one would try by hand.
use super::guest::{A, D, G, MEMORY, N, R, U, W, WHOLE, X, leaf, pointer, table};
use super::hart::Pool;
use super::machine::Machine;
use crate::*;

pub const ALL: u64 = R | W | X | A | D;
pub const KERNEL: Mode = Mode { user: false, sum: false, mxr: false };
pub const USER: Mode = Mode { user: true, ..KERNEL };
pub const PAGE: u64 = 0x1000;
pub const LARGE: u64 = 0x20_0000;
pub const HUGE: u64 = 0x4000_0000;

pub fn choices(reclaim: Reclaim) -> Choices {
    let features = Features { contiguous: true, ..Features::default() };
    Choices { reclaim, shares_global: true, features, greatest: Format::Sv39, window: None }
}

/// One hart, with so many address spaces and so many tables beside what these need.
fn machine(spaces: usize, spare: usize, reclaim: Reclaim) -> Machine {
    Machine::new(1, spaces, Shadow::<Pool, Undivided>::tables_needed(spaces) + spare, choices(reclaim))
}

pub fn satp(root: u64) -> Satp {
    Satp(8 << 60 | (root + 1) << 44 | (table(root) / PAGE))
}

pub fn one(address: u64, asid: Option<u16>) -> Scope {
    Scope { address: Some(Virtual(address)), asid }
}

/// How often an access of the kernel comes to the shadow.
fn load(machine: &mut Machine, address: u64) -> u32 {
    machine.access(0, address, Access::Load, KERNEL).unwrap()
}

#[test]
fn a_page_is_copied_when_it_is_met() {
    let mut machine = machine(2, 4, Reclaim::Fifo);
    machine.store(table(0), pointer(1));
    machine.store(table(1), pointer(2));
    machine.store(table(2) + 8, leaf(MEMORY + LARGE, R | W | A | U));
    machine.activate(0, satp(0));
    let store = |machine: &mut Machine| machine.access(0, PAGE, Access::Store, USER);
    assert_eq!(machine.access(0, PAGE, Access::Load, USER), Ok(1));
    assert_eq!(machine.access(0, PAGE + 8, Access::Load, USER), Ok(0));
    assert_eq!(machine.access(0, PAGE, Access::Load, KERNEL), Err(Outcome::Fault(Fault::Page)));
    // D isn't set: the guest's own affair.
    assert_eq!(store(&mut machine), Err(Outcome::Fault(Fault::Page)));
    machine.store(table(2) + 8, leaf(MEMORY + LARGE, R | W | A | D | U));
    assert_eq!(store(&mut machine), Ok(1));
}

#[test]
fn what_is_no_memory_is_told() {
    let mut machine = machine(1, 4, Reclaim::Fifo);
    machine.store(table(0), leaf(0, ALL));
    machine.activate(0, satp(0));
    let elsewhere = |at| Err(Outcome::Elsewhere(ainori_space::GuestPhysical(at)));
    assert_eq!(machine.access(0, 0x1000_0005, Access::Store, KERNEL), elsewhere(0x1000_0005));
    // Nor is an address that no table has room for, while nothing is translated.
    machine.activate(0, Satp::BARE);
    assert_eq!(machine.access(0, 1 << 40, Access::Load, KERNEL), elsewhere(1 << 40));
    assert_eq!(machine.access(0, MEMORY, Access::Load, USER), Ok(1));
}

#[test]
fn a_fence_for_any_address_in_a_large_page_forgets_all_of_its_pieces() {
    for (size, root, page) in [
        // In the second stage it is of pages, of large pages, and in one piece.
        (LARGE, pointer(1), leaf(MEMORY, ALL)),
        (HUGE, leaf(MEMORY, ALL), 0),
        (HUGE, leaf(WHOLE, ALL), 0),
    ] {
        let mut machine = machine(2, 8, Reclaim::Fifo);
        machine.store(table(0), root);
        machine.store(table(1), page);
        machine.activate(0, satp(0));
        let (first, last) = (0, size - PAGE);
        load(&mut machine, first);
        load(&mut machine, last);
        machine.store(table(0), 0);
        machine.store(table(1), 0);
        machine.fence(0, one(size / 2, None));
        for address in [first, last] {
            let result = machine.access(0, address, Access::Load, KERNEL);
            assert_eq!(result, Err(Outcome::Fault(Fault::Page)));
        }
    }
}

#[test]
fn a_large_page_that_became_pages_is_not_left_in_the_hart() {
    let mut machine = machine(2, 8, Reclaim::Fifo);
    machine.store(table(0), pointer(1));
    machine.store(table(1), leaf(MEMORY + LARGE, R | A | D));
    machine.activate(0, satp(0));
    load(&mut machine, 0);
    // The page that it was can be used until its fence. Another page of it is copied from what there is now.
    machine.store(table(1), pointer(2));
    machine.store(table(2), leaf(MEMORY + 2 * LARGE, ALL));
    assert_eq!(machine.access(0, 0, Access::Fetch, KERNEL), Ok(1));
    machine.fence(0, one(PAGE, None));
    assert_eq!(load(&mut machine, 0), 0);
}

#[test]
fn a_range_of_64_kib_goes_as_one() {
    let mut machine = machine(2, 8, Reclaim::Fifo);
    machine.store(table(0), pointer(1));
    machine.store(table(1), pointer(2));
    for page in 16..32 {
        machine.store(table(2) + page * 8, N | leaf(MEMORY + LARGE + 0x8000, ALL));
    }
    machine.activate(0, satp(0));
    load(&mut machine, 0x1_0000);
    load(&mut machine, 0x1_f000);
    for page in 16..32 {
        machine.store(table(2) + page * 8, 0);
    }
    machine.fence(0, one(0x1_8000, None));
    for address in [0x1_0000, 0x1_f000] {
        let result = machine.access(0, address, Access::Load, KERNEL);
        assert_eq!(result, Err(Outcome::Fault(Fault::Page)));
    }
}

/// Two address spaces that have a kernel in common, as Linux's processes have.
fn two_processes(spaces: usize, spare: usize, kernel: u64, page: u64) -> Machine {
    let mut machine = machine(spaces, spare, Reclaim::Fifo);
    for root in 0..2 {
        machine.store(table(root), pointer(4 + root));
        machine.store(table(root) + 511 * 8, kernel);
        machine.store(table(4 + root), pointer(6 + root));
        machine.store(table(6 + root), leaf(MEMORY + (root + 1) * LARGE, ALL));
    }
    machine.store(table(2), pointer(3));
    machine.store(table(3), page);
    machine
}

const IN_KERNEL: u64 = !0 << 30;

#[test]
fn what_is_global_is_copied_once() {
    let page = leaf(MEMORY + 4 * LARGE, ALL);
    for (kernel, page) in [(pointer(2), page | G), (pointer(2) | G, page), (leaf(WHOLE, ALL | G), 0)] {
        let mut machine = two_processes(3, 8, kernel, page);
        machine.activate(0, satp(0));
        assert_eq!((load(&mut machine, 0), load(&mut machine, IN_KERNEL)), (1, 1));
        machine.activate(0, satp(1));
        // What leads to it is copied for each.
        assert_eq!((load(&mut machine, 0), load(&mut machine, IN_KERNEL)), (1, 1));
        // A process goes, and the kernel stays; for itself the other one has lost nothing.
        machine.fence(0, Scope { address: None, asid: Some(satp(1).asid()) });
        assert_eq!((load(&mut machine, 0), load(&mut machine, IN_KERNEL)), (1, 0));
        machine.activate(0, satp(0));
        assert_eq!((load(&mut machine, 0), load(&mut machine, IN_KERNEL)), (0, 0));
        // A page of the kernel goes, in all.
        machine.store(table(3), 0);
        for root in 0..2 {
            machine.store(table(root) + 511 * 8, if page == 0 { 0 } else { kernel });
        }
        machine.fence(0, one(IN_KERNEL, None));
        for root in 0..2 {
            machine.activate(0, satp(root));
            let result = machine.access(0, IN_KERNEL, Access::Load, KERNEL);
            assert_eq!(result, Err(Outcome::Fault(Fault::Page)));
        }
    }
}

#[test]
fn what_a_kernel_has_mapped_when_it_fences_is_there() {
    let mut machine = two_processes(3, 8, pointer(2), pointer(3) | G);
    machine.store(table(3), leaf(MEMORY + 4 * LARGE, ALL | G));
    machine.activate(0, satp(0));
    // So there is a table for it.
    assert_eq!(load(&mut machine, IN_KERNEL), 1);
    let map = |machine: &mut Machine, place: u64, entry| {
        machine.store(table(3) + 8 * place, entry);
        machine.fence(0, one(IN_KERNEL + place * PAGE, None));
    };
    map(&mut machine, 1, leaf(MEMORY + 5 * LARGE, ALL | G));
    assert_eq!(machine.access(0, IN_KERNEL + PAGE, Access::Store, KERNEL), Ok(0));
    // What was never used is left alone, as A would have to be set; and so is what isn't global.
    map(&mut machine, 2, leaf(MEMORY + 5 * LARGE, R | W | D | G));
    assert_eq!(
        machine.access(0, IN_KERNEL + 2 * PAGE, Access::Load, KERNEL),
        Err(Outcome::Fault(Fault::Page))
    );
    // What was never written to isn't to be written.
    map(&mut machine, 4, leaf(MEMORY + 5 * LARGE, R | W | A | G));
    assert_eq!(load(&mut machine, IN_KERNEL + 4 * PAGE), 0);
    assert_eq!(
        machine.access(0, IN_KERNEL + 4 * PAGE, Access::Store, KERNEL),
        Err(Outcome::Fault(Fault::Page))
    );
    // It goes again.
    map(&mut machine, 1, 0);
    assert_eq!(machine.access(0, IN_KERNEL + PAGE, Access::Load, KERNEL), Err(Outcome::Fault(Fault::Page)));
}

/// Has both processes see what the kernel has at [`IN_KERNEL`]. The second one is active.
fn both_see(machine: &mut Machine) {
    for root in 0..2 {
        machine.activate(0, satp(root));
        load(machine, IN_KERNEL);
    }
}

#[test]
fn a_global_page_of_1_gib_that_became_smaller_ones_is_not_left_to_others() {
    let mut machine = two_processes(3, 8, leaf(WHOLE, R | A | D | G), 0);
    both_see(&mut machine);
    for root in 0..2 {
        machine.store(table(root) + 511 * 8, pointer(2));
    }
    machine.store(table(2) + 8, leaf(MEMORY + 4 * LARGE, ALL | G));
    machine.store(table(2), 0);
    // This one finds the smaller ones, and nobody sees the large one any more.
    assert_eq!(machine.access(0, IN_KERNEL + LARGE, Access::Store, KERNEL), Ok(1));
    machine.fence(0, one(IN_KERNEL, None));
    for root in 0..2 {
        machine.activate(0, satp(root));
        let result = machine.access(0, IN_KERNEL, Access::Load, KERNEL);
        assert_eq!(result, Err(Outcome::Fault(Fault::Page)));
    }
}

#[test]
fn a_global_large_page_that_became_pages_is_not_left_to_others() {
    let mut machine = two_processes(3, 8, pointer(2), 0);
    machine.store(table(2), leaf(MEMORY + 4 * LARGE, R | A | D | G));
    both_see(&mut machine);
    machine.store(table(2), pointer(3));
    machine.store(table(3), leaf(MEMORY + 5 * LARGE, ALL | G));
    assert_eq!(machine.access(0, IN_KERNEL, Access::Store, KERNEL), Ok(1));
    machine.fence(0, one(IN_KERNEL + PAGE, None));
    for root in 0..2 {
        machine.activate(0, satp(root));
        load(&mut machine, IN_KERNEL);
    }
}

#[test]
fn a_table_of_global_pages_that_is_given_back_is_left_to_nobody() {
    let mut machine = two_processes(3, 0, pointer(2), leaf(MEMORY + 4 * LARGE, R | A | D | G));
    both_see(&mut machine);
    // The pages become a large one, and their table one of the second process.
    machine.store(table(2), leaf(MEMORY + 8 * LARGE, ALL | G));
    assert_eq!(machine.access(0, IN_KERNEL + PAGE, Access::Store, KERNEL), Ok(1));
    for index in 1..16 {
        machine.store(table(1) + index * 8, pointer(5));
        load(&mut machine, index * HUGE);
    }
    machine.activate(0, satp(0));
    load(&mut machine, IN_KERNEL);
}

#[test]
fn with_one_address_space_alone_each_change_empties_it() {
    let mut machine = two_processes(1, 8, pointer(2), leaf(MEMORY, ALL | G));
    for _ in 0..2 {
        for root in 0..2 {
            machine.activate(0, satp(root));
            assert_eq!(load(&mut machine, 0), 1);
        }
    }
    machine.activate(0, satp(1));
    assert_eq!(load(&mut machine, 0), 0);
}

/// Gandalf's figure 12: process A has ten tables of pages, B and C two each, and there is room for 13.
fn faults_of(reclaim: Reclaim, turn: &[u64]) -> u32 {
    // Each has a table above these as well.
    let mut machine = machine(3, 0, reclaim);
    for root in 0..3 {
        machine.store(table(root), pointer(3 + root));
        for index in 0..10 {
            machine.store(table(3 + root) + index * 8, pointer(6));
        }
    }
    machine.store(table(6), leaf(MEMORY + LARGE, ALL));
    let mut faults = 0;
    for round in 0..10 {
        for process in turn {
            machine.activate(0, satp(*process));
            for index in 0..if *process == 0 { 10 } else { 2 } {
                let more = load(&mut machine, index * LARGE);
                faults += if round > 1 { more } else { 0 };
            }
        }
    }
    faults
}

#[test]
fn which_way_to_reclaim_is_better_depends_on_the_turns() {
    use Reclaim::{Fifo, LeastRecentlyUsed};
    let (a, b, c) = (0, 1, 2);
    let abc = [Fifo, LeastRecentlyUsed].map(|reclaim| faults_of(reclaim, &[a, b, c]));
    let abac = [Fifo, LeastRecentlyUsed].map(|reclaim| faults_of(reclaim, &[a, b, a, c]));
    println!("ABC: {abc:?}, ABAC: {abac:?} faults (FIFO, least recently used)");
    assert!(0 < abc[0] && abc[0] <= abc[1], "{abc:?}");
    assert!(abac[1] < abac[0], "{abac:?}");
}

#[test]
fn too_few_tables_are_refused() {
    let needed = Shadow::<Pool, Undivided>::tables_needed(2);
    let make = |tables: usize, spaces: usize| {
        let states = vec![TableState::NEW; tables].leak();
        let spaces = vec![AddressSpace::UNUSED; spaces].leak();
        Shadow::<_, Undivided>::new(choices(Reclaim::Fifo), Pool::default(), states, spaces).is_some()
    };
    assert!(make(needed, 2) && !make(needed - 1, 2) && !make(needed, 0) && !make(1000, 65));
}

/// An instruction that is fetched from two pages, and stores to two others, none of which shares a table with another one. It is made at last, however full the pool is, and of what.
#[test]
fn each_instruction_is_made_at_last() {
    for reclaim in [Reclaim::Fifo, Reclaim::LeastRecentlyUsed] {
        for (global, gibs) in [(0, 50), (0, 53), (0, 54), (0, 55), (G, 50), (G, 54)] {
            let mut machine = machine(1, 40, reclaim);
            // Each table leads to the next one, so that each GiB has the same pages.
            for index in 0..512 {
                machine.store(table(0) + index * 8, pointer(1));
            }
            machine.store(table(1), pointer(2));
            machine.store(table(1) + 511 * 8, pointer(2));
            machine.store(table(2), leaf(MEMORY + LARGE, ALL | global));
            machine.store(table(2) + 511 * 8, leaf(MEMORY + LARGE, ALL | global));
            machine.activate(0, satp(0));
            for gib in 0..gibs {
                load(&mut machine, gib * HUGE);
            }
            let wanted = [HUGE - PAGE, HUGE, 3 * HUGE - PAGE, 3 * HUGE];
            let is_made = (0..100).any(|_| wanted.iter().all(|at| load(&mut machine, *at) == 0));
            assert!(is_made, "{reclaim:?}, global: {global}, {gibs} GiB");
        }
    }
}

#[test]
fn what_is_no_mode_has_no_effect() {
    let mut machine = machine(2, 0, Reclaim::Fifo);
    machine.store(table(0), leaf(MEMORY, ALL));
    machine.activate(0, satp(0));
    for mode in [1_u64, 9, 10, 15] {
        // The machine looks at what is said of it.
        machine.activate(0, Satp(mode << 60 | (table(1) / PAGE)));
        load(&mut machine, 0);
    }
}

#[test]
fn a_page_to_execute_is_read_where_the_guest_says_so_and_its_memory_lets_it() {
    let mut machine = machine(2, 0, Reclaim::Fifo);
    let mxr = Mode { mxr: true, ..KERNEL };
    for (at, may_read) in [(MEMORY, true), (super::guest::SHARED, false)] {
        machine.store(table(0), leaf(MEMORY, 0));
        machine.store(table(0), pointer(1));
        machine.store(table(1), leaf(at, X | A | D));
        machine.activate(0, satp(0));
        machine.fence(0, Scope { address: None, asid: None });
        let result = machine.access(0, 0, Access::Load, mxr);
        assert_eq!(result.is_ok(), may_read, "{at:#x}: {result:?}");
    }
}

#[test]
fn splinters_of_1_gib_go_without_the_rest() {
    let mut machine = machine(1, 0, Reclaim::Fifo);
    // In the second stage they are large pages, and pages in the first of these.
    for (at, is_left) in [(MEMORY + HUGE / 2, true), (MEMORY, false)] {
        machine.store(table(0), leaf(MEMORY, ALL));
        machine.store(table(0) + 8, leaf(WHOLE, ALL));
        machine.activate(0, satp(0));
        machine.fence(0, Scope { address: None, asid: None });
        load(&mut machine, at - MEMORY);
        load(&mut machine, HUGE);
        machine.fence(0, one(LARGE, None));
        assert_eq!(load(&mut machine, HUGE) == 0, is_left);
        assert_eq!(load(&mut machine, at - MEMORY), 1);
    }
}

#[test]
fn splinters_of_1_gib_become_large_pages() {
    for at in [HUGE / 2, 0] {
        let mut machine = machine(1, 0, Reclaim::Fifo);
        machine.store(table(0), leaf(MEMORY, ALL));
        machine.activate(0, satp(0));
        load(&mut machine, at);
        machine.store(table(0), pointer(1));
        machine.store(table(1) + HUGE / LARGE / 2 * 8, leaf(MEMORY + 3 * LARGE, ALL));
        machine.store(table(1) + 8, leaf(MEMORY + 2 * LARGE, ALL));
        load(&mut machine, LARGE);
        machine.fence(0, one(LARGE, None));
        load(&mut machine, HUGE / 2);
        load(&mut machine, LARGE);
    }
}

#[test]
fn another_hart_is_not_trusted() {
    let mut machine = two_processes(3, 8, 0, 0);
    machine.activate(0, satp(0));
    load(&mut machine, 0);
    machine.activate(0, satp(1));
    // On the other hart the page of the first process goes elsewhere, and that is fenced there.
    machine.migrate(0);
    machine.activate(0, satp(0));
    machine.store(table(6), leaf(MEMORY + 4 * LARGE, ALL));
    machine.fence(0, one(0, Some(satp(0).asid())));
    machine.activate(0, satp(1));
    machine.migrate(0);
    machine.activate(0, satp(0));
    load(&mut machine, 0);
}

#[test]
fn a_bit_that_cannot_be_set_is_an_access_fault() {
    let features = Features { updates: true, ..Features::default() };
    let choices = Choices { features, ..choices(Reclaim::Fifo) };
    let mut machine = Machine::new(1, 1, Shadow::<Pool, Undivided>::tables_needed(1), choices);
    let root = super::guest::READ_ONLY;
    machine.store(root, leaf(MEMORY, R | W | A));
    machine.activate(0, Satp(8 << 60 | (root / PAGE)));
    load(&mut machine, 0);
    let result = machine.access(0, 0, Access::Store, KERNEL);
    assert_eq!(result, Err(Outcome::Fault(Fault::Access)));
}

#[test]
fn a_start_leaves_nothing_of_the_life_before() {
    let mut machine = two_processes(3, 8, pointer(2), leaf(MEMORY + 4 * LARGE, ALL | G));
    both_see(&mut machine);
    load(&mut machine, 0);
    machine.restart(0);
    // Nothing is translated now.
    assert_eq!(machine.access(0, MEMORY, Access::Load, KERNEL), Ok(1));
    machine.store(table(3), 0);
    for root in 0..2 {
        machine.activate(0, satp(root));
        let result = machine.access(0, IN_KERNEL, Access::Load, KERNEL);
        assert_eq!(result, Err(Outcome::Fault(Fault::Page)));
        assert_eq!(load(&mut machine, 0), 1);
    }
}

/// Fences of all address spaces are carried out in the others when these are activated: some of them one by one, and with many the address space is forgotten.
#[test]
fn deferred_fences_are_carried_out_before_an_address_space_is_activated() {
    for others in [0, 2, 40] {
        let mut machine = two_processes(4, 16, pointer(2), leaf(MEMORY + 4 * LARGE, ALL | G));
        machine.store(table(7) + 8, leaf(MEMORY + LARGE, ALL));
        machine.activate(0, satp(1));
        load(&mut machine, 0);
        load(&mut machine, PAGE);
        machine.activate(0, satp(0));
        machine.store(table(7), 0);
        machine.fence(0, one(0, None));
        for _ in 0..others {
            machine.fence(0, one(LARGE, None));
        }
        // The first step, which isn't made again: it is in the first one still.
        machine.begin_activate(0, satp(1));
        machine.fence(0, one(LARGE, None));
        machine.activate(0, satp(1));
        assert_eq!(machine.access(0, 0, Access::Load, KERNEL), Err(Outcome::Fault(Fault::Page)), "{others}");
        assert_eq!(load(&mut machine, PAGE), u32::from(others == 40), "{others}: what wasn't fenced");
        // It has none before it any more.
        machine.activate(0, satp(0));
        assert_eq!(machine.vcpus[0].shadow.activate_known(satp(1), Undivided), Some(Due::Nothing));
    }
}

/// What an address space gets after a fence of all of them goes with the next one.
#[test]
fn a_fence_covers_what_came_since_the_last_one() {
    let mut machine = two_processes(4, 16, pointer(2), leaf(MEMORY + 4 * LARGE, ALL | G));
    let third = Satp(8 << 60 | 9 << 44 | (table(0) / PAGE));
    for satp in [satp(0), satp(1), third] {
        machine.activate(0, satp);
        assert_eq!(load(&mut machine, 0), 1);
    }
    // That of no translation, and one of the first two.
    machine.begin_fence(0, one(0, None));
    machine.begin_fence(0, one(0, None));
    // It gets the page once more.
    for root in 0..2 {
        machine.activate(0, satp(root));
        load(&mut machine, 0);
    }
    machine.activate(0, third);
    for root in 0..2 {
        machine.store(table(6 + root), 0);
    }
    machine.fence(0, one(0, None));
    for satp in [satp(0), satp(1), third] {
        machine.activate(0, satp);
        assert_eq!(machine.access(0, 0, Access::Load, KERNEL), Err(Outcome::Fault(Fault::Page)));
    }
}

/// An emptied tree needs a clean table, and the fill that had it emptied was given up after its first step, with the last one taken: the root of what came next was none, which is an
/// address outside of the pool. That was the guest's own memory (an attacker's finding).
#[test]
fn a_root_is_one_of_the_tables_however_few_are_clean() {
    let mut machine = machine(4, 12, Reclaim::Fifo);
    let shared = 2 * HUGE;
    machine.store(table(10), leaf(MEMORY + LARGE, ALL | G));
    for root in [0, 1, 2] {
        machine.store(table(root) + 16, pointer(10));
    }
    machine.store(table(0), pointer(3));
    machine.store(table(3), pointer(4));
    machine.store(table(4), leaf(MEMORY + LARGE, ALL));
    machine.store(table(1), pointer(5));
    for n in 0..20 {
        machine.store(table(5) + 8 * n, pointer(6));
    }
    machine.store(table(6), leaf(MEMORY + LARGE, ALL));
    machine.activate(0, satp(1));
    for _ in 0..3 {
        for n in 0..16 {
            load(&mut machine, n * LARGE);
        }
        machine.fence(0, Scope::ALL);
    }
    machine.activate(0, satp(0));
    load(&mut machine, 0);
    load(&mut machine, shared);
    machine.activate(0, satp(1));
    for n in 0..4 {
        load(&mut machine, n * LARGE);
    }
    machine.activate(0, satp(2));
    load(&mut machine, shared);
    machine.activate(0, satp(0));
    load(&mut machine, shared);
    machine.store(table(0), leaf(MEMORY, ALL));
    // The machine looks at each root that it is to walk.
    machine.begin_access(0, 5 * LARGE, Access::Load, KERNEL);
    machine.fence_once(0, Scope::ALL);
}

/// A row is the entries in 64 bytes. What is of another kind, or would have to be written for, is left to a fault of its own.
#[test]
fn what_stands_in_a_row_with_a_page_is_filled_in_with_it() {
    let mut machine = machine(2, 4, Reclaim::Fifo);
    machine.store(table(0), pointer(1));
    machine.store(table(1), pointer(2));
    let page = |n: u64| MEMORY + LARGE + n * PAGE;
    let user = R | W | A | D | U;
    let rest =
        [user, user, R | A | U, R | W | A | U, R | W | D | U, R | W | A | D, user | G, 0, user, X | A | U];
    for (n, flags) in rest.into_iter().enumerate() {
        machine.store(table(2) + n as u64 * 8, if flags == 0 { 0 } else { leaf(page(n as u64), flags) });
    }
    machine.activate(0, satp(0));
    let faults = |machine: &mut Machine, n: u64, access| machine.access(0, n * PAGE, access, USER);
    assert_eq!(faults(&mut machine, 0, Access::Load), Ok(1));
    assert_eq!(faults(&mut machine, 1, Access::Store), Ok(0));
    assert_eq!(faults(&mut machine, 2, Access::Load), Ok(0));
    assert_eq!(faults(&mut machine, 2, Access::Store), Err(Outcome::Fault(Fault::Page)));
    // D isn't set: it is there to be read.
    assert_eq!(faults(&mut machine, 3, Access::Load), Ok(0));
    assert_eq!(faults(&mut machine, 3, Access::Store), Err(Outcome::Fault(Fault::Page)));
    for n in [4, 5, 7] {
        assert_eq!(faults(&mut machine, n, Access::Load), Err(Outcome::Fault(Fault::Page)));
    }
    assert_eq!(faults(&mut machine, 6, Access::Load), Ok(1));
    assert_eq!(faults(&mut machine, 8, Access::Load), Ok(1));
    assert_eq!(faults(&mut machine, 9, Access::Fetch), Ok(0));
    // As all else that is there, it is what a fence covers.
    machine.store(table(2) + 16, 0);
    machine.fence(0, one(2 * PAGE, None));
    assert_eq!(faults(&mut machine, 2, Access::Load), Err(Outcome::Fault(Fault::Page)));
    // What comes to be valid is seen without one.
    machine.store(table(2) + 16, leaf(page(2), user));
    assert_eq!(faults(&mut machine, 2, Access::Load), Ok(1));
}
