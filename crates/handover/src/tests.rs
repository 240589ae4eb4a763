//! What one thread can see of it, as documentation. What several see is in `model.rs`.

use std::sync::Arc;

use ainori_sched::{VcpuId, VcpuSet};
use proptest::prelude::*;

use super::*;

#[test]
fn a_vcpu_that_lies_is_taken_once() {
    let slot = ParkingSlot::new(1);
    assert!(!slot.is_parked());
    assert!(slot.claim(2).is_none(), "core 1 has it");
    assert_eq!(slot.owner(), 1, "who comes in vain changes nothing");

    slot.park(Box::new("registers"), 3);
    assert!(slot.is_parked());
    assert_eq!(slot.owner(), 3, "the core to ask, though it has not taken it yet");

    assert_eq!(*slot.claim(2).unwrap(), "registers");
    assert!(!slot.is_parked());
    assert_eq!(slot.owner(), 2);
    assert!(slot.claim(3).is_none());
}

#[test]
fn the_box_stays_where_it_is() {
    let slot = ParkingSlot::new(0);
    let vcpu = Box::new(7);
    let address = &raw const *vcpu;
    slot.park(vcpu, 0);
    assert_eq!(&raw const *slot.claim(1).unwrap(), address);
}

#[test]
fn what_is_still_parked_is_dropped_with_its_slot() {
    let vcpu = Arc::new(());
    let slot = ParkingSlot::new(0);
    slot.park(Box::new(vcpu.clone()), 0);
    drop(slot);
    assert_eq!(Arc::strong_count(&vcpu), 1);
}

#[test]
fn requests_add_up_until_they_are_taken() {
    let requests = RequestWord::new();
    assert!(!requests.any());
    for bits in [1, 4, 1] {
        requests.request(bits);
    }
    assert!(requests.any());
    assert_eq!(requests.take(), 5);
    assert_eq!(requests.take(), 0);
}

#[test]
fn requests_are_taken_if_there_are_no_others() {
    let requests = RequestWord::new();
    requests.request(5);
    assert_eq!(requests.take_if_only(1), None);
    assert_eq!(requests.take_if_only(4 | 2), None);
    assert_eq!(requests.wanted(), 5, "nothing is lost");
    assert_eq!(requests.take_if_only(4 | 1 | 8), Some(5));
    assert_eq!(requests.take_if_only(1), Some(0));
}

#[test]
fn a_threshold_says_what_was_published_last() {
    let threshold = PublishedThreshold::new(0);
    threshold.raise(9);
    assert_eq!(threshold.level(), 9);
    threshold.lower(3);
    assert_eq!(threshold.level(), 3);
}

#[test]
fn turns_follow_each_other() {
    let pace = Pace::new();
    assert_eq!(pace.take_turn(100, 25), 100);
    assert_eq!([(); 3].map(|()| pace.take_turn(110, 25)), [125, 150, 175]);
    assert_eq!(pace.take_turn(201, 25), 201, "nobody has had the one at 200");
    assert!(
        !Pace::is_missed(100, 100, 25) && !Pace::is_missed(100, 112, 25) && Pace::is_missed(100, 113, 25)
    );
}

const SENDER: VcpuId = VcpuId(5);

#[test]
fn who_fences_a_vcpu_that_does_not_run_goes_on() {
    let (fences, answers) = (Fences::new(), Answers::new());
    answers.begin();
    assert_eq!(fences.record(Fence::TRANSLATIONS, SENDER, &answers), Recorded::ForLater);
    assert!(answers.answer(), "nobody else is awaited");
    fences.arrive();
    assert_eq!(fences.take(), Fence::TRANSLATIONS);
}

#[test]
fn who_fences_a_vcpu_that_runs_waits_for_its_answer() {
    let (fences, answers) = (Fences::new(), Answers::new());
    fences.arrive();
    assert!(fences.take().is_empty());

    answers.begin();
    assert_eq!(fences.record(Fence::INSTRUCTIONS, SENDER, &answers), Recorded::Awaited);
    assert!(!answers.answer(), "the sender has asked all, and waits");

    // A trap: the vCPU's core looks at its mail before it enters the guest again.
    let waiting = fences.take_waiting();
    assert_eq!(waiting, VcpuSet::from_iter([SENDER]));
    assert!(answers.answer(), "this was the last");
    assert_eq!(fences.take(), Fence::INSTRUCTIONS);
}

#[test]
fn an_early_answer_does_not_end_the_wait() {
    let (first, second, answers) = (Fences::new(), Fences::new(), Answers::new());
    first.arrive();
    second.arrive();
    answers.begin();
    assert_eq!(first.record(Fence::TRANSLATIONS, SENDER, &answers), Recorded::Awaited);
    assert!(!answers.answer(), "the first has answered, the second isn't asked yet");
    assert_eq!(second.record(Fence::TRANSLATIONS, SENDER, &answers), Recorded::Awaited);
    assert!(!answers.answer());
    assert!(answers.answer());
}

#[test]
fn a_core_does_not_trust_what_it_has_cached_of_a_newcomer() {
    let fences = Fences::new();
    fences.distrust_caches();
    assert_eq!(fences.take(), Fence::HART);
}

#[derive(Clone, Debug)]
enum Step {
    Record { what: Fence, sender: u8 },
    Arrive,
    Depart,
    Take,
    Answer,
}

fn step() -> impl Strategy<Value = Step> {
    let what = prop_oneof![Just(Fence::INSTRUCTIONS), Just(Fence::TRANSLATIONS)];
    prop_oneof![
        3 => (what, 0..64_u8).prop_map(|(what, sender)| Step::Record { what, sender }),
        1 => Just(Step::Arrive),
        1 => Just(Step::Depart),
        1 => Just(Step::Take),
        1 => Just(Step::Answer),
    ]
}

proptest! {
    /// Fences are two sets, of what is recorded and of who waits; senders wait while the vCPU is present.
    #[test]
    fn fences_behave_like_sets(steps in prop::collection::vec(step(), 0..100)) {
        let (fences, answers) = (Fences::new(), Answers::new());
        answers.begin();
        let (mut present, mut recorded, mut waiting) = (false, Fence::empty(), VcpuSet::EMPTY);
        for step in steps {
            match step {
                Step::Record { what, sender } => {
                    let expected = if present { Recorded::Awaited } else { Recorded::ForLater };
                    prop_assert_eq!(fences.record(what, VcpuId(sender), &answers), expected);
                    recorded |= what;
                    if present {
                        waiting.insert(VcpuId(sender));
                    }
                }
                Step::Arrive => {
                    fences.arrive();
                    present = true;
                }
                Step::Depart => {
                    fences.depart();
                    present = false;
                }
                Step::Take => {
                    prop_assert_eq!(fences.take(), recorded);
                    recorded = Fence::empty();
                }
                Step::Answer => {
                    prop_assert_eq!(fences.take_waiting(), waiting);
                    waiting = VcpuSet::EMPTY;
                }
            }
        }
    }

    /// However often it changes hands, exactly one has it, and all find the same owner.
    #[test]
    fn a_vcpu_is_in_one_place(takers in prop::collection::vec((0..4_u32, any::<bool>()), 0..50)) {
        let slot = ParkingSlot::new(0);
        let mut held = Some(Box::new(()));
        for (core, parks) in takers {
            if parks && let Some(vcpu) = held.take() {
                slot.park(vcpu, core);
                prop_assert_eq!(slot.owner(), core);
            } else if let Some(vcpu) = slot.claim(core) {
                prop_assert!(held.replace(vcpu).is_none());
                prop_assert_eq!(slot.owner(), core);
            }
            prop_assert_eq!(slot.is_parked(), held.is_none());
        }
    }
}

/// One address space is told as long as it is the only one, whatever else is recorded.
#[cfg(feature = "shadow")]
#[test]
fn a_fence_of_one_address_space_is_told_from_one_of_several() {
    let fences = Fences::new();
    for (recorded, told) in [
        (&[Some(0)][..], Some(0)),
        (&[Some(5), Some(5)], Some(5)),
        (&[Some(5), Some(4)], None),
        (&[Some(0x3fff)], Some(0x3fff)),
        (&[Some(0x4000)], None),
        (&[None, Some(1)], None),
    ] {
        fences.distrust_caches();
        for asid in recorded {
            fences.record_own(Fence::own(*asid));
        }
        assert!(fences.has_own());
        assert_eq!(fences.take(), Fence::HART, "what is the hart's is taken by itself");
        let taken = fences.take_own();
        assert!(taken.contains(Fence::OWN) && !taken.intersects(Fence::HART));
        assert_eq!(taken.own_asid(), told, "{recorded:?}");
        assert!(!fences.has_own());
    }
}

#[cfg(feature = "shadow")]
mod pages {
    use super::*;

    const PAGE: u64 = 0x1000;
    /// The last page of the lower half of Sv48's addresses.
    const LAST_OF_LOWER: u64 = (1 << 47) - PAGE;

    fn taken(fences: &Fences) -> Vec<PageFence> {
        (0..PageFences::PLACES).filter_map(|place| fences.pages().get(place)).collect()
    }

    #[test]
    fn pages_are_told_as_they_are_as_long_as_there_are_places() {
        let fences = Fences::new();
        let of = |page: u64| PageFence::new(page * PAGE, 3, Some(7)).unwrap();
        for page in 0..PageFences::PLACES {
            assert_eq!(fences.note_pages(of(page.into())), Fence::OWN_PAGES);
        }
        assert_eq!(fences.note_pages(of(100)), Fence::own(Some(7)), "all of the address space instead");
        assert_eq!(taken(&fences), (0..PageFences::PLACES).map(|page| of(page.into())).collect::<Vec<_>>());
        // The first page of one is fenced, and all of another one: there is a place.
        fences.pages().leave(0, of(0).rest());
        fences.pages().leave(3, None);
        assert_eq!(taken(&fences)[0].address(), PAGE);
        assert_eq!(fences.note_pages(of(100)), Fence::OWN_PAGES);
        let found = fences.pages().taken();
        fences.pages().leave_nothing(found & !1);
        assert_eq!(taken(&fences).len(), 1);
    }

    #[test]
    fn what_is_no_range_of_addresses_is_refused() {
        for (address, pages) in [(0, 0), (0, 17), (1 << 47, 1), (LAST_OF_LOWER, 2), (!0 << 12, 2)] {
            assert_eq!(PageFence::new(address, pages, None), None, "{address:#x} {pages}");
        }
    }

    proptest! {
        #[test]
        fn what_is_put_is_found(
            number in prop_oneof![0..1_u64 << 35, Just((1 << 35) - 16), (1_u64 << 52) - (1 << 35)..(1 << 52) - 16],
            pages in 1..=16_u64,
            asid in prop::option::of(any::<u16>()),
        ) {
            let address = number * PAGE;
            prop_assume!(address >> 63 == (address + pages * PAGE - 1) >> 63);
            let is_one = (((address + (pages - 1) * PAGE) << 16) as i64 >> 16) as u64 == address + (pages - 1) * PAGE;
            let fence = PageFence::new(address, pages, asid);
            prop_assert_eq!(fence.is_some(), is_one);
            let Some(fence) = fence else { return Ok(()) };
            let fences = Fences::new();
            prop_assert_eq!(fences.note_pages(fence), Fence::OWN_PAGES);
            let mut left = Some(fence);
            for page in 0..pages {
                let found = fences.pages().get(0).unwrap();
                prop_assert_eq!(Some(found), left);
                prop_assert_eq!((found.address(), found.asid()), (address + page * PAGE, asid));
                left = found.rest();
                fences.pages().leave(0, left);
            }
            prop_assert_eq!(left, None);
            prop_assert_eq!(fences.pages().get(0), None);
        }
    }

    /// The vCPU has faulted at an instruction, and nobody was answered since all was carried out: only then others wait.
    #[test]
    fn others_wait_for_an_instruction_and_for_nothing_else() {
        const PC: u64 = 0x1000;
        let mut progress = Progress::NONE;
        progress.tries(PC);
        assert!(!progress.puts_off(PC, 1), "it isn't known what came while it was away");
        progress.settles(1);
        assert!(!progress.waits(PC, 1), "nobody was told to wait");
        assert!(progress.puts_off(PC, 1) && progress.waits(PC, 1));
        assert!(!progress.waits(PC + 4, 1) && !progress.waits(PC, 2), "it has gone on, or was away");
        let before = progress;
        progress.owes();
        assert!(!progress.waits(PC, 1) && !progress.puts_off(PC, 1), "somebody was answered");
        progress = before;
        assert!(!progress.puts_off(PC + 4, 1) && !progress.waits(PC, 1), "who is answered waits no more");
        progress.owes();
        progress.settles(1);
        let times = (0..1000).take_while(|_| progress.puts_off(PC, 1)).count();
        assert_eq!(times, usize::from(Progress::PATIENCE));
        assert!(!progress.waits(PC, 1), "they have waited long enough");
    }
}
