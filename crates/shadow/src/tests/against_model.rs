//! Random guests: stores to tables, accesses, switches and fences on several harts.
use proptest::prelude::*;

use super::guest::{
    A, D, G, MEMORY, N, R, SHARED, SHARED_READ_ONLY, U, UNCACHED, W, WHOLE, X, leaf, pointer, table,
};
use super::machine::Machine;
use crate::*;

/// Tables by the level at which they mostly are: three roots, two of large pages, two of pages. Any of them can be met at any level.
const TABLES: u64 = 7;
const ROOTS: u64 = 3;
/// Roots of four levels: so many, from this table on. They lead to those of three levels.
const DEEP_ROOTS: u64 = 20;

#[derive(Debug, Clone)]
enum Op {
    Store {
        at: u64,
        entry: u64,
    },
    Access {
        hart: usize,
        address: u64,
        access: Access,
        mode: Mode,
    },
    Activate {
        hart: usize,
        satp: Satp,
    },
    Fence {
        hart: usize,
        scope: Scope,
    },
    /// The same, and then an interrupt comes in.
    BeginFence {
        hart: usize,
        scope: Scope,
    },
    Migrate {
        hart: usize,
    },
    Disturb,
    /// As [`Self::BeginFence`].
    BeginAccess {
        hart: usize,
        address: u64,
        access: Access,
        mode: Mode,
    },
    /// Likewise.
    BeginActivate {
        hart: usize,
        satp: Satp,
    },
    /// Of which nobody comes back for the rest.
    FenceOnce {
        hart: usize,
        scope: Scope,
    },
    Restart {
        hart: usize,
    },
    /// The guest's mode changes, as far as one step does that.
    BeginMode {
        hart: usize,
        mode: Mode,
    },
    MoveWindow {
        hart: usize,
    },
    /// The same access in several modes.
    AccessIn {
        hart: usize,
        address: u64,
        access: Access,
        modes: Vec<Mode>,
    },
    /// It is fenced between them.
    FenceBetween {
        hart: usize,
        address: u64,
        asid: Option<u16>,
        modes: Vec<Mode>,
    },
}

/// Few, so that they meet: the first ones and the last.
fn index() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![0_u64, 1, 511])
}

/// Of a root: also where windows are.
fn top() -> impl Strategy<Value = u64> {
    prop_oneof![6 => index(), 1 => prop::sample::select(vec![256_u64, 257])]
}

/// Of a page: also those of a range of 64 KiB.
fn page() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0_u64..2, 1 => 2_u64..18]
}

/// Mostly one that tables of the usual format cover.
fn address(usual: Format) -> impl Strategy<Value = u64> {
    let sv39 = (top(), index(), page()).prop_map(|(i2, i1, i0)| {
        let at = i2 << 30 | i1 << 21 | i0 << 12;
        ((at << 25) as i64 >> 25) as u64
    });
    let sv48 = (top(), top(), index(), page()).prop_map(|(i3, i2, i1, i0)| {
        let at = i3 << 39 | i2 << 30 | i1 << 21 | i0 << 12;
        ((at << 16) as i64 >> 16) as u64
    });
    // As physical ones, when nothing is translated.
    let plain = (0_u64..0x1100).prop_map(|number| MEMORY - 0x4_0000 + number * 0x4_0000);
    let (of_sv39, of_sv48) = if usual == Format::Sv39 { (20, 2) } else { (4, 18) };
    prop_oneof![of_sv39 => sv39, of_sv48 => sv48, 2 => plain, 1 => any::<u64>()]
}

/// A leaf's flags, mostly of those that one may use.
fn flags() -> impl Strategy<Value = u64> {
    let rights = prop_oneof![
        4 => Just(R | W | X),
        2 => Just(R | W),
        3 => prop::sample::select(vec![R, X, R | X, W, W | X]),
    ];
    let used = prop_oneof![6 => Just(A | D), 1 => Just(A), 1 => Just(0), 1 => Just(D)];
    let memory_type = prop_oneof![8 => Just(0_u64), 1 => 1_u64..4];
    (rights, used, any::<bool>(), prop::bool::weighted(0.4), memory_type).prop_map(
        |(rights, used, user, global, memory_type)| {
            rights | used | if user { U } else { 0 } | if global { G } else { 0 } | memory_type << 61
        },
    )
}

/// An entry for a table that is mostly of this level.
fn entry(level: u64) -> BoxedStrategy<u64> {
    let size = 0x1000_u64 << (9 * level);
    // The first 2 MiB of the guest's memory are pages in the second stage, so that a large page has pieces; a page of 1 GiB always has.
    let at = prop_oneof![
        8 => (0_u64..4).prop_map(move |number| MEMORY + number * size),
        1 => Just(WHOLE),
        1 => Just(MEMORY + 0x3000_0000),
        1 => Just(0x1000_0000),
        1 => prop::sample::select(vec![SHARED, SHARED_READ_ONLY, UNCACHED]),
    ];
    let contiguous =
        (0_u64..2, flags()).prop_map(|(range, flags)| N | leaf(MEMORY + range * 0x1_0000 + 0x8000, flags));
    let below = if level == 0 { 0..TABLES } else { ROOTS + 4 - 2 * level..ROOTS + 6 - 2 * level };
    // Global, or with a bit that pointers can't have.
    let more = prop_oneof![16 => Just(0), 2 => Just(G), 1 => prop::sample::select(vec![U, A, D, N, 1 << 61])];
    let (leaves, pointers) = match level {
        0 => (12, 1),
        1 => (6, 6),
        _ => (3, 8),
    };
    prop_oneof![
        leaves => (at, flags()).prop_map(|(at, flags)| leaf(at, flags)),
        pointers => (below, more).prop_map(|(number, more)| pointer(number) | more),
        if level == 0 { 4 } else { 1 } => contiguous,
        1 => Just(0),
        1 => any::<u64>(),
    ]
    .boxed()
}

fn store(usual: Format) -> impl Strategy<Value = Op> {
    let store = |first: u64, level: u64| {
        let index = match level {
            0 => page().boxed(),
            1 => index().boxed(),
            _ => top().boxed(),
        };
        (first..first + if level == 2 { ROOTS } else { 2 }, index, entry(level))
            .prop_map(|(number, index, entry)| Op::Store { at: table(number) + index * 8, entry })
    };
    let to_root = prop_oneof![4 => (0..ROOTS).prop_map(pointer), 1 => Just(0), 1 => entry(3)];
    let deep = (0..ROOTS, top(), to_root)
        .prop_map(|(number, index, entry)| Op::Store { at: table(DEEP_ROOTS + number) + index * 8, entry });
    let to_deep = if usual == Format::Sv39 { 0 } else { 1 };
    prop_oneof![1 => store(0, 2), 2 => store(ROOTS, 1), 3 => store(ROOTS + 2, 0), to_deep => deep]
}

/// Of all 16 bits.
fn asid(number: u64) -> u64 {
    number * 0x7f00
}

fn satp(usual: Format) -> impl Strategy<Value = Satp> {
    let (of_sv39, of_sv48) = if usual == Format::Sv39 { (20, 1) } else { (6, 15) };
    let mode =
        prop_oneof![of_sv39 => Just(8_u64), of_sv48 => Just(9), 1 => Just(10), 1 => Just(0), 1 => Just(5)];
    (mode, 0..ROOTS, prop::bool::weighted(0.2)).prop_map(|(mode, root, other)| {
        // Mostly each root has an ASID of its own.
        let asid = asid(if other { 0 } else { root });
        let first = if mode == 9 { DEEP_ROOTS } else { 0 };
        Satp(mode << 60 | asid << 44 | (table(first + root) / 0x1000))
    })
}

fn mode() -> impl Strategy<Value = Mode> {
    (prop::bool::weighted(0.3), prop::bool::weighted(0.8), any::<bool>()).prop_map(|(user, sum, mxr)| Mode {
        user,
        sum,
        mxr,
    })
}

fn any_access() -> impl Strategy<Value = Access> {
    prop_oneof![4 => Just(Access::Load), 2 => Just(Access::Store), 1 => Just(Access::Fetch)]
}

fn own_asid() -> impl Strategy<Value = Option<u16>> {
    prop::option::weighted(0.5, (0..ROOTS).prop_map(|number| asid(number) as u16))
}

/// With divided views also what is about them.
fn op(is_divided: bool, usual: Format) -> impl Strategy<Value = Op> {
    let of_views = if is_divided { 2 } else { 0 };
    let scope = (prop::option::weighted(0.85, address(usual)), own_asid())
        .prop_map(|(address, asid)| Scope { address: address.map(Virtual), asid });
    let hart = prop_oneof![3 => Just(0_usize), 1 => Just(1)];
    prop_oneof![
        6 => store(usual),
        28 => (hart.clone(), address(usual), any_access(), mode(), prop::bool::weighted(0.7)).prop_map(
            |(hart, address, access, mode, ends)| {
                if ends {
                    Op::Access { hart, address, access, mode }
                } else {
                    Op::BeginAccess { hart, address, access, mode }
                }
            }
        ),
        4 => (hart.clone(), satp(usual), prop::bool::weighted(0.6)).prop_map(|(hart, satp, ends)| {
            if ends { Op::Activate { hart, satp } } else { Op::BeginActivate { hart, satp } }
        }),
        9 => (hart.clone(), scope, 0..10_u32).prop_map(|(hart, scope, way)| match way {
            0..5 => Op::Fence { hart, scope },
            5..7 => Op::BeginFence { hart, scope },
            _ => Op::FenceOnce { hart, scope },
        }),
        1 => prop_oneof![Just(0_usize), Just(1)].prop_map(|hart| Op::Migrate { hart }),
        1 => Just(Op::Disturb),
        1 => hart.clone().prop_map(|hart| Op::Restart { hart }),
        of_views => (hart.clone(), mode(), prop::bool::weighted(0.2)).prop_map(|(hart, mode, moves)| {
            if moves { Op::MoveWindow { hart } } else { Op::BeginMode { hart, mode } }
        }),
        4 * of_views => (hart.clone(), address(usual), any_access(), prop::collection::vec(mode(), 2..5))
            .prop_map(|(hart, address, access, modes)| Op::AccessIn { hart, address, access, modes }),
        2 * of_views => (hart, address(usual), own_asid(), prop::collection::vec(mode(), 2..5))
            .prop_map(|(hart, address, asid, modes)| Op::FenceBetween { hart, address, asid, modes }),
    ]
}

/// Tables that map something to begin with, so that not all of a run is page faults.
fn set_up(machine: &mut Machine<impl View>) {
    for root in 0..ROOTS {
        machine.store(table(root), pointer(3));
        machine.store(table(root) + 8, leaf(MEMORY, R | W | X | U | A | D));
        for top in [256, 257, 511] {
            machine.store(table(root) + top * 8, pointer(4));
        }
        for top in [0, 1, 256, 257, 511] {
            machine.store(table(DEEP_ROOTS + root) + top * 8, pointer(root));
        }
    }
    machine.store(table(3), pointer(5));
    machine.store(table(3) + 8, leaf(MEMORY, R | W | X | U | A | D));
    machine.store(table(3) + 511 * 8, leaf(MEMORY + 0x40_0000, R | W | X | A | D));
    machine.store(table(4), pointer(6));
    machine.store(table(4) + 8, leaf(MEMORY + 0x20_0000, R | W | X | A | D | G));
    machine.store(table(4) + 511 * 8, leaf(MEMORY, R | W | A | D | G));
    for index in 0..2 {
        machine.store(table(5) + index * 8, leaf(table(8 + index), R | W | X | A | D | (U * index)));
        machine.store(table(6) + index * 8, leaf(table(10 + index), R | W | X | A | D | G));
    }
}

/// Of harts that have this format at least.
fn choices(least: Format) -> impl Strategy<Value = Choices> {
    let reclaim = prop::sample::select(vec![Reclaim::Fifo, Reclaim::LeastRecentlyUsed]);
    let formats = [Format::Sv39, Format::Sv48, Format::Sv57].into_iter().filter(|format| *format >= least);
    let greatest = prop::sample::select(formats.collect::<Vec<_>>());
    (reclaim, any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), greatest).prop_map(
        |(reclaim, shares_global, memory_types, contiguous, updates, greatest)| Choices {
            reclaim,
            shares_global,
            features: Features { memory_types, contiguous, updates },
            greatest,
            window: None,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 3 / 2, ..ProptestConfig::default() })]

    #[test]
    fn what_a_hart_may_use_is_what_a_walk_gave(
        choices in choices(Format::Sv39),
        spaces in 1_usize..4,
        spare in 0_usize..8,
        ops in prop::collection::vec(op(false, Format::Sv39), 1..200),
    ) {
        run::<Undivided>(choices, spaces, spare, ops);
    }

    #[test]
    fn in_each_view_a_hart_may_use_what_a_walk_gave_in_its_mode(
        choices in choices(Format::Sv39),
        slot in prop::option::weighted(0.9, prop::sample::select(vec![256_u16, 257, 510, 511])),
        spaces in 1_usize..10,
        spare in 0_usize..8,
        ops in prop::collection::vec(op(true, Format::Sv39), 1..200),
    ) {
        run::<Divided>(Choices { window: slot.map(super::hart::window), ..choices }, spaces, spare, ops);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 2, ..ProptestConfig::default() })]

    /// Guests with address spaces of four levels, and some of three beside them: the window is elsewhere in each.
    #[test]
    fn address_spaces_of_four_levels_are_no_different(
        choices in choices(Format::Sv48),
        slot in prop::sample::select(vec![256_u16, 257, 510, 511]),
        spaces in 1_usize..10,
        spare in 0_usize..8,
        ops in prop::collection::vec(op(true, Format::Sv48), 1..200),
    ) {
        run::<Divided>(Choices { window: Some(super::hart::window(slot)), ..choices }, spaces, spare, ops);
    }
}

fn run<V: View>(choices: Choices, spaces: usize, spare: usize, ops: Vec<Op>) {
    let tables = Shadow::<super::hart::Pool, V>::tables_needed(spaces) + spare;
    let mut machine = Machine::<V>::new(2, spaces, tables, choices);
    set_up(&mut machine);
    for hart in 0..2 {
        machine.activate(hart, Satp((8 << 60) | (table(0) / 0x1000)));
    }
    for op in ops {
        match op {
            Op::Store { at, entry } => machine.store(at, entry),
            Op::Access { hart, address, access, mode } => {
                let _ = machine.access(hart, address, access, mode);
            }
            Op::Activate { hart, satp } => machine.activate(hart, satp),
            Op::Fence { hart, scope } => machine.fence(hart, scope),
            Op::BeginFence { hart, scope } => machine.begin_fence(hart, scope),
            Op::Migrate { hart } => machine.migrate(hart),
            Op::BeginAccess { hart, address, access, mode } => {
                machine.begin_access(hart, address, access, mode)
            }
            Op::BeginActivate { hart, satp } => machine.begin_activate(hart, satp),
            Op::FenceOnce { hart, scope } => machine.fence_once(hart, scope),
            Op::Restart { hart } => machine.restart(hart),
            Op::BeginMode { hart, mode } => machine.begin_change_mode(hart, mode),
            Op::MoveWindow { hart } => machine.move_window(hart),
            Op::AccessIn { hart, address, access, modes } => {
                access_in(&mut machine, hart, address, access, &modes)
            }
            Op::FenceBetween { hart, address, asid, modes } => {
                access_in(&mut machine, hart, address, Access::Load, &modes);
                machine.fence(hart, Scope { address: Some(Virtual(address)), asid });
                access_in(&mut machine, hart, address, Access::Load, &modes);
            }
            Op::Disturb => *machine.guest.disturbed.borrow_mut() = true,
        }
    }
}

fn access_in(machine: &mut Machine<impl View>, hart: usize, address: u64, access: Access, modes: &[Mode]) {
    for mode in modes {
        let _ = machine.access(hart, address, access, *mode);
    }
}
