//! Random harts against what the guest itself has stored.
use core::cell::RefCell;
use std::collections::BTreeMap;

use ainori_limits::PAGE;
use ainori_space::GuestPhysical;
use proptest::prelude::*;

use crate::{Advice, BLOCK, BREAKPOINT, Code, Look, Progress, Text, is_own_breakpoint};

const START: u64 = 0x8000_0000;
const BLOCKS: u64 = 2;
const HARTS: u8 = 3;
/// CSRRCI a0, sstatus, 2.
const PRIVILEGED: u32 = 0x1001_7573;

/// Memory as it stands, by halves of instructions.
#[derive(Default)]
struct Memory(RefCell<BTreeMap<u64, u16>>);

impl Memory {
    /// A whole instruction.
    fn put(&self, at: GuestPhysical, bits: u32) {
        self.store(at, bits as u16);
        self.store(GuestPhysical(at.0 + 2), (bits >> 16) as u16);
    }
}

impl Code for Memory {
    fn load(&self, at: GuestPhysical) -> Option<u16> {
        Some(self.0.borrow().get(&at.0).copied().unwrap_or(0))
    }

    fn store(&self, at: GuestPhysical, half: u16) {
        self.0.borrow_mut().insert(at.0, half);
    }
}

fn text() -> Text {
    Text::new(START, BLOCKS * BLOCK, true)
}

/// Traps there until the region is text.
fn make_text(text: &Text, memory: &Memory, at: GuestPhysical, hart: u8) {
    while text.note(at, PRIVILEGED, hart, memory) == Advice::Nothing {}
}

#[test]
fn a_breakpoint_stands_for_an_instruction_after_all_harts_have_forgotten_what_they_had() {
    let (text, memory, at) = (text(), Memory::default(), GuestPhysical(START + 0x1002));
    memory.put(at, PRIVILEGED);
    make_text(&text, &memory, at, 1);
    assert!(text.is_text(at));
    assert_eq!(memory.load(at), Some(PRIVILEGED as u16), "others may still load it");
    // Another hart's trap says nothing about that.
    assert_eq!(text.note(at, PRIVILEGED, 0, &memory), Advice::Nothing);
    assert_eq!(memory.load(at), Some(PRIVILEGED as u16));
    assert_eq!(text.note(at, PRIVILEGED, 1, &memory), Advice::Nothing);
    assert_eq!(memory.load(at), Some(BREAKPOINT));
    assert_eq!(text.instruction(at), Some(PRIVILEGED));
    assert_eq!(text.doubleword(GuestPhysical(START + 0x1000), u64::from(BREAKPOINT) << 16), 0x7573 << 16);
    assert_eq!(text.byte(GuestPhysical(at.0 + 1), 0x90), 0x75);
    assert_eq!(text.byte(GuestPhysical(at.0 + 2), 0x17), 0x17);
}

/// It did, for looks at many places by one hart after the other: a section of 17.8 us.
#[test]
fn a_hart_at_a_breakpoint_waits_for_nobody_who_changes_others() {
    let (text, memory, at) = (text(), Memory::default(), GuestPhysical(START));
    memory.put(at, PRIVILEGED);
    make_text(&text, &memory, at, 0);
    let _ = text.note(at, PRIVILEGED, 0, &memory);
    let others = text.inner.lock();
    assert_eq!(text.look(at), Look::Busy);
    assert_eq!(
        text.look(GuestPhysical(START + BLOCK)),
        Look::Nothing,
        "none is in data, whoever changes what"
    );
    drop(others);
    assert_eq!(text.look(at), Look::Instruction(PRIVILEGED));
    assert_eq!(text.look(GuestPhysical(START + 4)), Look::Nothing);
}

#[test]
fn an_instruction_that_is_another_by_now_is_left() {
    let (text, memory, at) = (text(), Memory::default(), GuestPhysical(START));
    make_text(&text, &memory, at, 0);
    memory.store(at, 0x1234);
    assert_eq!(text.note(at, PRIVILEGED, 0, &memory), Advice::Nothing);
    assert_eq!((memory.load(at), text.instruction(at)), (Some(0x1234), None));
}

/// A hart that says in `stval` what it has said before; and an instruction of which half is on another page, of which nothing is known.
#[test]
fn what_is_not_all_there_is_left() {
    const SRET: u32 = 0x1020_0073;
    const MRET: u32 = 0x3020_0073;
    for (at, bits) in [(START, MRET), (START + PAGE - 2, SRET)] {
        let (text, memory, at) = (text(), Memory::default(), GuestPhysical(at));
        memory.put(at, bits);
        make_text(&text, &memory, at, 0);
        assert_eq!(text.note(at, SRET, 0, &memory), Advice::Nothing);
        assert_eq!((memory.load(at), text.instruction(at)), (Some(0x0073), None));
    }
}

/// A hart that has fetched a breakpoint finds the instruction in its place, as another hart has put it back: that isn't the guest's own breakpoint, whatever it begins with. (SRET, WFI and SFENCE.VMA
/// begin as EBREAK does, and a kernel got a breakpoint that it didn't have.)
#[test]
fn what_was_put_back_is_no_breakpoint_of_the_guests_own() {
    const SRET: u32 = 0x1020_0073;
    const WFI: u32 = 0x1050_0073;
    const SFENCE_VMA: u32 = 0x1200_0073;
    const SFENCE_INVAL_IR: u32 = 0x1810_0073;
    const ECALL: u32 = 0x0000_0073;
    for bits in [SRET, WFI, SFENCE_VMA, SFENCE_INVAL_IR, PRIVILEGED, ECALL] {
        let (text, memory, at) = (text(), Memory::default(), GuestPhysical(START));
        memory.put(at, bits);
        make_text(&text, &memory, at, 0);
        let _ = text.note(at, bits, 0, &memory);
        assert_eq!(text.look(at), Look::Instruction(bits));
        while text.look(at) != Look::Nothing {
            let _ = text.give_up(at, 1, &memory);
        }
        assert!(!is_own_breakpoint(at, &memory), "{bits:#x}");
    }
    const LONG: u32 = 0x0010_0073;
    for (at, bits, is_own) in [
        (START, LONG, true),
        (START, u32::from(BREAKPOINT), true),
        // Its other half is in another page, of which nothing is known; but nothing was put back there.
        (START + PAGE - 2, LONG, true),
        (START + PAGE - 2, SRET, true),
        (START + PAGE - 2, PRIVILEGED, false),
        (START, LONG | 1 << 7, false),
    ] {
        let (memory, at) = (Memory::default(), GuestPhysical(at));
        memory.put(at, bits);
        assert_eq!(is_own_breakpoint(at, &memory), is_own, "{bits:#x} at {at:?}");
    }
}

/// Traps there until all harts are to forget what they had of its page, but for the last one, which finds the page emptied.
fn traps_until_text(text: &Text, memory: &Memory, at: GuestPhysical) -> u32 {
    let mut traps = 0;
    while text.note(at, PRIVILEGED, 0, memory) == Advice::Nothing {
        traps += 1;
    }
    traps
}

/// Another hart stores there, until it can. How often have all forgotten what they know?
fn give_up(text: &Text, memory: &Memory, at: GuestPhysical) -> u32 {
    let mut forgotten = 0;
    loop {
        match text.give_up(at, 1, memory) {
            Progress::Done => return forgotten,
            Progress::Step => {}
            Progress::Forget => forgotten += 1,
        }
    }
}

#[test]
fn each_time_that_a_region_is_given_up_it_takes_twice_as_many_traps() {
    let (text, memory, at) = (text(), Memory::default(), GuestPhysical(START));
    let mut before = 0;
    for _ in 0..4 {
        let traps = traps_until_text(&text, &memory, at);
        assert!(before == 0 || traps == 2 * before, "{traps} after {before}");
        before = traps;
        assert_eq!(give_up(&text, &memory, at), 1);
        assert!(!text.is_text(at));
    }
}

/// A kernel that rewrites all of its text now and then, as one with a function tracer does: it gets its breakpoints back. (After 16 times it took two million traps for 32 pages, each of
/// them by way of the firmware: with Debian's function tracer on, a program took minutes to start.)
#[test]
fn what_is_rewritten_again_and_again_is_text_again_after_some_thousand_traps() {
    const MOST: u32 = 5000;
    let (text, memory) = (text(), Memory::default());
    for round in 0..100 {
        let at = GuestPhysical(START + round % 16 * PAGE);
        let traps = traps_until_text(&text, &memory, at);
        assert!(traps < MOST, "{traps} traps after {round} times");
        give_up(&text, &memory, at);
    }
}

#[test]
fn there_is_room_for_many_and_again_after_they_are_gone() {
    let (text, memory) = (text(), Memory::default());
    for _ in 0..3 {
        for page in 0..4 {
            make_text(&text, &memory, GuestPhysical(START + page * PAGE), 0);
        }
        for number in 0..4000 {
            let at = GuestPhysical(START + 4 * number);
            memory.put(at, PRIVILEGED);
            let _ = text.note(at, PRIVILEGED, 0, &memory);
        }
        let replaced =
            (0..4000).filter(|number| text.instruction(GuestPhysical(START + 4 * number)).is_some());
        assert!(replaced.count() > 1000);
        for page in 0..4 {
            while text.give_up(GuestPhysical(START + page * PAGE), 0, &memory) != Progress::Done {}
        }
        for number in 0..4000 {
            assert_eq!(memory.load(GuestPhysical(START + 4 * number)), Some(PRIVILEGED as u16));
        }
    }
}

#[test]
fn a_new_life_knows_nothing_of_the_last_one() {
    let (text, memory, at) = (text(), Memory::default(), GuestPhysical(START));
    memory.put(at, PRIVILEGED);
    make_text(&text, &memory, at, 0);
    let _ = text.note(at, PRIVILEGED, 0, &memory);
    while !text.reset_some() {}
    assert!(!text.is_text(at));
    assert_eq!(text.instruction(at), None);
}

#[test]
fn a_guest_that_can_load_what_it_may_fetch_gets_none() {
    let (text, memory, at) = (text(), Memory::default(), GuestPhysical(START + BLOCK));
    memory.put(at, PRIVILEGED);
    make_text(&text, &memory, at, 0);
    let _ = text.note(at, PRIVILEGED, 0, &memory);
    assert!(!text.is_off());
    while text.switch_off(0, &memory) != Progress::Done {}
    assert!(text.is_off());
    assert_eq!(memory.load(at), Some(PRIVILEGED as u16));
    for _ in 0..1_000_000 {
        assert_eq!(text.note(at, PRIVILEGED, 0, &memory), Advice::Nothing);
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// A hart comes by an instruction.
    Execute { hart: u8, slot: u64 },
    /// A hart stores half an instruction.
    Store { hart: u8, slot: u64, kind: u8 },
    /// A hart loads it.
    Load { hart: u8, slot: u64 },
    /// A hart does what another one waits for.
    Forget { hart: u8 },
    /// The hypervisor loads it for the guest.
    LoadFor { slot: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let (hart, slot) = (0..HARTS, 0..8_u64);
    prop_oneof![
        8 => (hart.clone(), slot.clone()).prop_map(|(hart, slot)| Step::Execute { hart, slot }),
        2 => (hart.clone(), slot.clone(), 0..3_u8).prop_map(|(hart, slot, kind)| Step::Store { hart, slot, kind }),
        2 => (hart.clone(), slot.clone()).prop_map(|(hart, slot)| Step::Load { hart, slot }),
        4 => hart.prop_map(|hart| Step::Forget { hart }),
        1 => slot.prop_map(|slot| Step::LoadFor { slot }),
    ]
}

/// In two pages of a block, and in one of another.
fn at(slot: u64) -> GuestPhysical {
    GuestPhysical(START + [0, PAGE, BLOCK][page(slot)] + slot / 3 * 4)
}

fn page(slot: u64) -> usize {
    (slot % 3) as usize
}

const PAGES: usize = 3;

const OTHER: u16 = 0x0001;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_hart_sees_a_difference(steps in prop::collection::vec(step(), 1..400)) {
        let (text, memory) = (text(), Memory::default());
        // What the guest has stored; which harts can load and store in a page by what their tables have; who waits until all have forgotten that.
        let mut stored: BTreeMap<u64, u16> = BTreeMap::new();
        let mut has_all = [[false; PAGES]; HARTS as usize];
        let mut waits: [Option<[bool; HARTS as usize]>; HARTS as usize] = Default::default();
        let mut known = [[false; 8]; HARTS as usize];
        for slot in 0..8 {
            memory.put(at(slot), PRIVILEGED);
            stored.insert(at(slot).0, PRIVILEGED as u16);
        }
        for step in steps {
            // A hart that waits does nothing but what others want of it.
            let waiting = |waits: &[Option<_>; HARTS as usize], hart: u8| waits[usize::from(hart)].is_some();
            match step {
                Step::Execute { hart, slot } if !waiting(&waits, hart) => {
                    let expected = stored[&at(slot).0];
                    match memory.load(at(slot)) {
                        Some(BREAKPOINT) => {
                            let known = &mut known[usize::from(hart)][slot as usize];
                            if *known || text.instruction(at(slot)).is_some() {
                                prop_assert_eq!(expected, PRIVILEGED as u16);
                                *known = true;
                            } else {
                                // The guest's own.
                                prop_assert_eq!(expected, BREAKPOINT);
                            }
                        }
                        found => {
                            prop_assert_eq!(found, Some(expected));
                            if expected == PRIVILEGED as u16
                                && text.note(at(slot), PRIVILEGED, hart, &memory) == Advice::Forget
                            {
                                waits[usize::from(hart)] = Some([false; HARTS as usize]);
                            }
                        }
                    }
                }
                Step::Store { hart, slot, .. } | Step::Load { hart, slot } if !waiting(&waits, hart) => {
                    // It faults, and makes the access again, if not just now.
                    while !has_all[usize::from(hart)][page(slot)] && !waiting(&waits, hart) {
                        match text.give_up(at(slot), hart, &memory) {
                            Progress::Done => has_all[usize::from(hart)][page(slot)] = true,
                            Progress::Step => {}
                            Progress::Forget => waits[usize::from(hart)] = Some([false; HARTS as usize]),
                        }
                    }
                    if waiting(&waits, hart) {
                        continue;
                    }
                    if let Step::Store { kind, .. } = step {
                        let half = [PRIVILEGED as u16, OTHER, BREAKPOINT][usize::from(kind)];
                        memory.store(at(slot), half);
                        stored.insert(at(slot).0, half);
                    } else {
                        prop_assert_eq!(memory.load(at(slot)), Some(stored[&at(slot).0]));
                    }
                }
                Step::Forget { hart } => {
                    has_all[usize::from(hart)] = [false; PAGES];
                    known[usize::from(hart)] = [false; 8];
                    for waiting in &mut waits {
                        if let Some(done) = waiting {
                            done[usize::from(hart)] = true;
                            if done.iter().all(|done| *done) {
                                *waiting = None;
                            }
                        }
                    }
                }
                Step::LoadFor { slot } => {
                    let [low, high] = memory.load(at(slot)).unwrap_or(0).to_le_bytes();
                    let seen = [text.byte(at(slot), low), text.byte(GuestPhysical(at(slot).0 + 1), high)];
                    prop_assert_eq!(u16::from_le_bytes(seen), stored[&at(slot).0]);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn the_hypervisor_stores_for_the_guest() {
    let (text, memory, at) = (text(), Memory::default(), GuestPhysical(START + 8));
    memory.put(at, PRIVILEGED);
    make_text(&text, &memory, at, 0);
    let _ = text.note(at, PRIVILEGED, 0, &memory);
    for offset in [-1_i64, 4] {
        assert!(!text.make_way(GuestPhysical(at.0.wrapping_add_signed(offset)), &memory));
        assert_eq!(memory.load(at), Some(BREAKPOINT), "that is beside it");
    }
    // Whichever byte of it is another one then, it isn't what the breakpoint stood for.
    for offset in 0..4 {
        let _ = text.note(at, PRIVILEGED, 0, &memory);
        assert_eq!(text.instruction(at), Some(PRIVILEGED));
        assert!(text.make_way(GuestPhysical(at.0 + offset), &memory));
        assert_eq!((memory.load(at), text.instruction(at)), (Some(PRIVILEGED as u16), None));
        assert!(!text.make_way(GuestPhysical(at.0 + offset), &memory), "it is done");
    }
}

/// A device's stores are seen by nobody, so it can be that a page is text in which something else is by now.
#[test]
fn what_a_device_has_stored_is_kept() {
    let (text, memory) = (text(), Memory::default());
    let places = [START, START + 16, START + 32].map(GuestPhysical);
    for at in places {
        memory.put(at, PRIVILEGED);
    }
    make_text(&text, &memory, places[0], 0);
    for at in places {
        let _ = text.note(at, PRIVILEGED, 0, &memory);
        assert_eq!(memory.load(at), Some(BREAKPOINT));
    }
    memory.store(places[0], OTHER);
    memory.store(places[1], OTHER);
    let [low, high] = OTHER.to_le_bytes();
    assert_eq!([text.byte(places[0], low), text.byte(GuestPhysical(START + 1), high)], [low, high]);
    assert_eq!(text.doubleword(places[0], u64::from(OTHER)) as u16, OTHER);
    let _ = text.make_way(places[1], &memory);
    give_up(&text, &memory, places[0]);
    let found = places.map(|at| memory.load(at));
    assert_eq!(found, [Some(OTHER), Some(OTHER), Some(PRIVILEGED as u16)]);
}
