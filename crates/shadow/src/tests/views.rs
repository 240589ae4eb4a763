//! Views, as one would try them by hand.
use super::examples::{ALL, HUGE, KERNEL, LARGE, PAGE, USER, choices, one, satp};
use super::guest::{A, D, G, MEMORY, U, X, leaf, pointer, table};
use super::hart::Pool;
use super::machine::Machine;
use crate::*;

const SUM: Mode = Mode { sum: true, ..KERNEL };
const SUM_MXR: Mode = Mode { mxr: true, ..SUM };
const MODES: [Mode; 4] = [USER, KERNEL, SUM, SUM_MXR];
const REFUSED: Result<u32, Outcome> = Err(Outcome::Fault(Fault::Page));
/// As the kernel of Linux has it: in the upper half.
const IN_KERNEL: u64 = !0 << 30;

/// One hart, with so many views of address spaces in all.
fn machine(spaces: usize) -> Machine<Divided> {
    Machine::new(1, spaces, Shadow::<Pool, Divided>::tables_needed(spaces) + 16, choices(Reclaim::Fifo))
}

/// Two processes that have these pages at 0, and a kernel in common that has those at [`IN_KERNEL`].
fn two_processes(spaces: usize, pages: &[u64], of_kernel: &[u64]) -> Machine<Divided> {
    let mut machine = machine(spaces);
    for root in 0..2 {
        machine.store(table(root), pointer(2));
        machine.store(table(root) + 511 * 8, pointer(4));
    }
    for (first, pages) in [(2, pages), (4, of_kernel)] {
        machine.store(table(first), pointer(first + 1));
        for (index, page) in (0..).zip(pages) {
            machine.store(table(first + 1) + index * 8, *page);
        }
    }
    machine.activate(0, satp(0));
    machine
}

fn load(machine: &mut Machine<Divided>, address: u64, mode: Mode) -> Result<u32, Outcome> {
    machine.access(0, address, Access::Load, mode)
}

#[test]
fn a_page_is_in_a_view_if_its_mode_may_use_it() {
    let at = MEMORY + LARGE;
    let (of_program, of_kernel, to_execute) = (leaf(at, ALL | U), leaf(at, ALL), leaf(at, X | A | D));
    let mut machine = two_processes(5, &[of_program, of_kernel, to_execute, to_execute | U], &[]);
    let mxr = |mode| Mode { mxr: true, ..mode };
    let (r, x) = (Access::Load, Access::Fetch);
    // For each page: the mode, the access, and is it made?
    for (page, mode, access, is_made) in [
        (0, USER, r, true),
        (0, USER, x, true),
        (0, KERNEL, r, false),
        (0, SUM, r, true),
        (0, SUM, Access::Store, true),
        (0, SUM, x, false),
        (0, SUM_MXR, x, false),
        (1, USER, r, false),
        (1, KERNEL, x, true),
        (1, SUM, r, true),
        (1, SUM_MXR, x, true),
        (2, KERNEL, x, true),
        (2, KERNEL, r, false),
        (2, mxr(KERNEL), r, true),
        (2, SUM, r, false),
        (2, SUM_MXR, r, true),
        (3, USER, r, false),
        (3, mxr(USER), r, true),
        (3, SUM, r, false),
        (3, SUM_MXR, r, true),
        (3, SUM_MXR, x, false),
        (3, SUM_MXR, Access::Store, false),
        // That isn't left to it without MXR.
        (3, SUM, r, false),
        (3, USER, x, true),
    ] {
        let result = machine.access(0, page * PAGE, access, mode);
        assert_eq!(result.is_ok(), is_made, "page {page}, {mode:?}, {access:?}: {result:?}");
    }
}

#[test]
fn views_are_kept_beside_each_other() {
    let mut machine = two_processes(9, &[leaf(MEMORY + LARGE, ALL | U)], &[leaf(MEMORY + LARGE, ALL)]);
    for root in [0, 1, 0] {
        machine.activate(0, satp(root));
        for mode in MODES {
            let _ = load(&mut machine, 0, mode);
            let _ = load(&mut machine, IN_KERNEL, mode);
        }
    }
    // All of both, and that of no translation.
    assert_eq!(machine.vcpus[0].shadow.roots().len(), 9);
    let searches = machine.vcpus[0].searches;
    for root in [1, 0] {
        machine.activate(0, satp(root));
        for mode in MODES {
            for (address, is_made) in [(0, mode != KERNEL), (IN_KERNEL, mode != USER)] {
                assert_eq!(
                    load(&mut machine, address, mode),
                    if is_made { Ok(0) } else { REFUSED },
                    "{mode:?}"
                );
            }
        }
    }
    assert_eq!(machine.vcpus[0].searches, searches, "each is known");
}

#[test]
fn an_asid_with_another_root_ends_all_views_of_the_one_before() {
    let mut machine = two_processes(9, &[leaf(MEMORY + LARGE, ALL | U)], &[leaf(MEMORY + LARGE, ALL)]);
    for mode in MODES {
        let _ = load(&mut machine, 0, mode);
    }
    assert_eq!(machine.vcpus[0].shadow.roots().len(), 5);
    let same_asid = Satp((satp(0).0 & !0xfff) | ((table(1) / PAGE) & 0xfff));
    assert!(same_asid != satp(1) && same_asid.asid() == satp(0).asid());
    machine.activate(0, same_asid);
    assert_eq!(machine.vcpus[0].shadow.roots().len(), 2);
    assert_eq!(load(&mut machine, 0, USER), Ok(1));
}

#[test]
fn what_is_not_translated_is_the_same_in_all_views() {
    let mut machine = machine(4);
    for mode in MODES {
        let expected = if mode == USER { 1 } else { 0 };
        assert_eq!(machine.access(0, MEMORY, Access::Load, mode), Ok(expected));
        assert_eq!(machine.access(0, MEMORY, Access::Fetch, mode), Ok(0));
        machine.activate(0, Satp::BARE);
        assert_eq!(machine.vcpus[0].shadow.roots().len(), 1);
    }
    // Nor does another one come of it where it isn't the one that is looked for first.
    machine.activate(0, Satp(satp(0).0 & !(0xffff << 44) | 16 << 44));
    machine.change_mode(0, USER);
    machine.change_mode(0, KERNEL);
    assert_eq!(machine.vcpus[0].shadow.roots().len(), 4);
    machine.activate(0, Satp::BARE);
    assert_eq!((machine.vcpus[0].shadow.roots().len(), load(&mut machine, MEMORY, KERNEL)), (4, Ok(0)));
}

#[test]
fn what_is_global_is_filled_in_once_for_all_views_of_kernels() {
    let page = leaf(MEMORY + LARGE, ALL | G);
    let mut machine = two_processes(9, &[], &[page, page]);
    let kernels = [KERNEL, SUM, SUM_MXR];
    for root in 0..2 {
        machine.activate(0, satp(root));
        // The page, or what leads to it.
        for mode in kernels {
            assert_eq!(load(&mut machine, IN_KERNEL, mode), Ok(1), "{mode:?}");
        }
    }
    // Once for all.
    assert_eq!(load(&mut machine, IN_KERNEL + PAGE, KERNEL), Ok(1));
    for root in 0..2 {
        machine.activate(0, satp(root));
        for mode in kernels {
            assert_eq!(load(&mut machine, IN_KERNEL + PAGE, mode), Ok(0), "{mode:?}");
        }
        assert_eq!(load(&mut machine, IN_KERNEL, USER), REFUSED);
    }
}

/// Kernels have other rights to these than programs.
#[test]
fn global_pages_of_programs_are_in_no_other_view() {
    let mut machine = two_processes(5, &[leaf(MEMORY + LARGE, ALL | U | G)], &[]);
    for mode in [USER, SUM, USER, SUM_MXR] {
        let _ = load(&mut machine, 0, mode);
        let result = machine.access(0, 0, Access::Fetch, mode);
        assert_eq!(result.is_ok(), mode == USER, "{mode:?}: {result:?}");
    }
    assert_eq!(load(&mut machine, 0, KERNEL), REFUSED);
}

#[test]
fn a_fence_covers_all_views() {
    let asid = Some(satp(0).asid());
    for (scope, others) in [
        (one(0, asid), true),
        (one(0, None), false),
        (Scope { address: None, asid }, true),
        (Scope::ALL, false),
    ] {
        // By instructions, and by a call of which nobody comes back for the rest.
        for is_call in [false, true] {
            // (With one more process that has another ASID.)
            let mut machine = two_processes(9, &[leaf(MEMORY + LARGE, ALL | U)], &[]);
            for root in [1, 0] {
                machine.activate(0, satp(root));
                for mode in [USER, SUM, SUM_MXR] {
                    assert_eq!(load(&mut machine, 0, mode), Ok(1));
                }
            }
            machine.store(table(3), 0);
            if is_call {
                machine.fence_once(0, scope)
            } else {
                machine.fence(0, scope)
            }
            for mode in [USER, SUM, SUM_MXR] {
                assert_eq!(load(&mut machine, 0, mode), REFUSED, "{scope:?}, {mode:?}");
            }
            machine.activate(0, satp(1));
            let expected = if others { Ok(0) } else { REFUSED };
            assert_eq!(load(&mut machine, 0, USER), expected, "{scope:?}");
        }
    }
}

/// A fence of one address space that was given up after its first step is no part of one of all of them.
#[test]
fn a_fence_that_was_left_is_no_part_of_a_wider_one() {
    let mut machine = two_processes(9, &[leaf(MEMORY + LARGE, ALL | U)], &[]);
    for root in [1, 0] {
        machine.activate(0, satp(root));
        for mode in [USER, SUM, SUM_MXR] {
            assert_eq!(load(&mut machine, 0, mode), Ok(1));
        }
    }
    machine.begin_fence(0, one(0, Some(satp(0).asid())));
    machine.store(table(3), 0);
    machine.fence(0, one(0, None));
    machine.activate(0, satp(1));
    for mode in [USER, SUM, SUM_MXR] {
        assert_eq!(load(&mut machine, 0, mode), REFUSED);
    }
}

/// Views that are made anew each time: programs and their kernel go on all the same.
#[test]
fn with_room_for_one_view_each_change_empties_it() {
    let (page, of_kernel) = (leaf(MEMORY + LARGE, ALL | U), leaf(MEMORY + LARGE, ALL));
    let mut machine = two_processes(1, &[page], &[of_kernel]);
    for _ in 0..20 {
        assert_eq!(load(&mut machine, 0, USER), Ok(1));
        assert_eq!(load(&mut machine, 0, USER), Ok(0));
        assert_eq!(load(&mut machine, IN_KERNEL, SUM), Ok(1));
        assert_eq!(load(&mut machine, 0, SUM), Ok(1));
        assert_eq!((load(&mut machine, IN_KERNEL, SUM), load(&mut machine, 0, SUM)), (Ok(0), Ok(0)));
    }
}

/// As [`super::examples`] has it for one view: an instruction that needs four pages is made at last, though each is followed by a trap to the kernel, whose own pages take tables as well.
#[test]
fn each_instruction_is_made_at_last_between_traps() {
    for (reclaim, spaces) in [(Reclaim::Fifo, 4), (Reclaim::LeastRecentlyUsed, 4), (Reclaim::Fifo, 2)] {
        let tables = Shadow::<Pool, Divided>::tables_needed(spaces);
        let mut machine = Machine::<Divided>::new(1, spaces, tables, choices(reclaim));
        // Each GiB has the same pages: those of programs in the lower half, those of the kernel in the upper one.
        for index in 0..512 {
            machine.store(table(0) + index * 8, pointer(if index < 256 { 1 } else { 2 }));
        }
        for (number, flags) in [(1, ALL | U), (2, ALL)] {
            for index in [0, 511] {
                machine.store(table(number) + index * 8, pointer(number + 2));
                machine.store(table(number + 2) + index * 8, leaf(MEMORY + LARGE, flags));
            }
        }
        machine.activate(0, satp(0));
        let of_instruction =
            |base: u64| [HUGE - PAGE, HUGE, 3 * HUGE - PAGE, 3 * HUGE].map(|at| base.wrapping_add(at));
        let upper = (256_u64 << 30) | !0 << 39;
        let mut is_made = |base: u64, mode: Mode| {
            let made = |machine: &mut Machine<Divided>| {
                of_instruction(base).into_iter().all(|at| load(machine, at, mode).unwrap() == 0)
            };
            (0..100).any(|_| made(&mut machine))
        };
        for gib in 0..20 {
            assert!(is_made(gib * HUGE, USER), "{reclaim:?}, {spaces}");
            assert!(is_made(upper + 5 * HUGE, KERNEL), "{reclaim:?}, {spaces}");
            assert!(is_made(upper + 9 * HUGE, SUM), "{reclaim:?}, {spaces}");
        }
    }
}
