//! What one thread can see of the mailboxes. What several see is in `model.rs`.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// The numbers of the items in a set, lowest first.
fn numbers(items: Items) -> impl Iterator<Item = u32> {
    (0..).step_by(64).zip(items).flat_map(|(first, word)| ones(word).map(move |bit| first + bit))
}

/// All that `me` finds in its mail.
fn mail<const N: usize>(boxes: &Mailboxes<N>, me: usize) -> Vec<(usize, u32)> {
    let mut found = Vec::new();
    boxes.of(me).take(|from, items| found.extend(numbers(items).map(|item| (from, item))));
    found
}

#[test]
fn a_core_that_looks_is_sent_no_ipi() {
    let boxes = Mailboxes::<4>::new();
    assert_eq!(boxes.post(1, 0, 7), Delivery::WillLook);
    assert!(boxes.of(0).has_mail());
    assert_eq!(mail(&boxes, 0), [(1, 7)]);
    assert!(!boxes.of(0).has_mail());
}

#[test]
fn an_absence_is_ended_by_one_ring() {
    let boxes = Mailboxes::<4>::new();
    assert!(boxes.of(0).leave());
    assert!(!boxes.of(0).has_mail(), "being away is not mail");
    assert_eq!(boxes.post(1, 0, 7), Delivery::SendIpi);
    assert_eq!(boxes.post(1, 0, 8), Delivery::WillLook, "same slot");
    assert_eq!(boxes.post(2, 0, 7), Delivery::WillLook, "another slot");

    assert!(boxes.of(0).enter(), "mail is there");
    assert_eq!(boxes.post(3, 0, 63), Delivery::WillLook);
    assert_eq!(mail(&boxes, 0), [(1, 7), (1, 8), (2, 7), (3, 63)]);

    assert!(boxes.of(0).leave());
    assert_eq!(boxes.post(2, 0, 7), Delivery::SendIpi, "the next absence has an IPI of its own");
}

#[test]
fn nobody_leaves_with_mail() {
    let boxes = Mailboxes::<2>::new();
    assert_eq!(boxes.post(1, 0, 0), Delivery::WillLook);
    assert!(!boxes.of(0).leave());
    assert_eq!(boxes.post(1, 0, 1), Delivery::WillLook, "it stayed, so it looks");
    assert_eq!(mail(&boxes, 0), [(1, 0), (1, 1)]);
    assert!(boxes.of(0).leave());
}

#[test]
fn a_short_trap_needs_neither_enter_nor_leave() {
    let boxes = Mailboxes::<2>::new();
    assert!(boxes.of(0).leave());
    // The trap is handled here, without a word to the others: they send IPIs as before.
    assert_eq!(boxes.post(1, 0, 5), Delivery::SendIpi);
    assert!(!boxes.of(0).leave(), "if the core does ask, it learns of the mail");
    assert_eq!(mail(&boxes, 0), [(1, 5)]);
}

#[test]
fn a_core_may_take_its_mail_and_stay_away() {
    let boxes = Mailboxes::<2>::new();
    assert!(boxes.of(0).leave());
    assert_eq!(boxes.post(1, 0, 5), Delivery::SendIpi);
    boxes.of(0).take_away(|from, items| assert!(from == 1 && numbers(items).eq([5])));
    assert!(!boxes.of(0).has_mail());
    assert_eq!(boxes.post(1, 0, 5), Delivery::SendIpi, "it is away still");
}

#[test]
fn each_receiver_has_an_absence_of_its_own() {
    let boxes = Mailboxes::<3>::new();
    assert!(boxes.of(0).leave());
    assert_eq!(boxes.post(2, 1, 4), Delivery::WillLook);
    assert_eq!(boxes.post(2, 0, 4), Delivery::SendIpi);
    assert_eq!(mail(&boxes, 1), [(2, 4)]);
    assert_eq!(mail(&boxes, 2), []);
}

#[test]
fn a_core_may_post_to_itself() {
    let boxes = Mailboxes::<1>::new();
    assert_eq!(boxes.post(0, 0, 9), Delivery::WillLook);
    assert_eq!(mail(&boxes, 0), [(0, 9)]);
}

#[test]
fn a_message_sent_while_visiting_waits_for_the_next_look() {
    let boxes = Mailboxes::<1>::new();
    assert_eq!(boxes.post(0, 0, 1), Delivery::WillLook);
    let mut visits = 0;
    boxes.of(0).take(|_, items| {
        visits += 1;
        for item in numbers(items) {
            assert_eq!(boxes.post(0, 0, item), Delivery::WillLook);
        }
    });
    assert_eq!(visits, 1);
    assert!(!boxes.of(0).leave());
}

/// The last two have one bit between them to say that they have posted.
#[test]
fn as_many_cores_as_there_can_be_are_told_apart() {
    let boxes = Mailboxes::<MAX_CORES>::new();
    for from in 0..MAX_CORES {
        assert!(boxes.of(0).leave());
        assert_eq!(boxes.post(from, 0, ITEMS - 1), Delivery::SendIpi);
        assert_eq!(mail(&boxes, 0), [(from, ITEMS - 1)]);
    }
    let (one, other) = (MAX_CORES - 2, MAX_CORES - 1);
    assert!(boxes.of(0).leave());
    assert_eq!(boxes.post(one, 0, 3), Delivery::SendIpi);
    assert_eq!(boxes.post(other, 0, 4), Delivery::WillLook);
    assert_eq!(mail(&boxes, 0), [(one, 3), (other, 4)]);
}

/// Cores of the table in the property test.
const CORES: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Post { from: usize, to: usize, item: u32 },
    Take(usize),
    TakeAway(usize),
    Leave(usize),
    Enter(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let core = || 0..CORES;
    prop_oneof![
        3 => (core(), core(), 0..ITEMS).prop_map(|(from, to, item)| Step::Post { from, to, item }),
        1 => core().prop_map(Step::Take),
        1 => core().prop_map(Step::TakeAway),
        2 => core().prop_map(Step::Leave),
        1 => core().prop_map(Step::Enter),
    ]
}

proptest! {
    /// The table is a set of (sender, item) for each receiver, and an IPI for the first message of an
    /// absence.
    #[test]
    fn behaves_like_sets(steps in prop::collection::vec(step(), 0..200)) {
        let boxes = Mailboxes::<CORES>::new();
        let mut sets = [const { BTreeSet::new() }; CORES];
        let mut away = [false; CORES];
        for step in steps {
            match step {
                Step::Post { from, to, item } => {
                    let first = away[to] && sets[to].is_empty();
                    let due = if first { Delivery::SendIpi } else { Delivery::WillLook };
                    prop_assert_eq!(boxes.post(from, to, item), due);
                    sets[to].insert((from, item));
                }
                Step::Take(me) => {
                    let expected: Vec<_> = std::mem::take(&mut sets[me]).into_iter().collect();
                    prop_assert_eq!(mail(&boxes, me), expected);
                    away[me] = false;
                }
                // Only who is away has a reason to.
                Step::TakeAway(me) => {
                    if away[me] {
                        let mut taken = BTreeSet::new();
                        boxes.of(me).take_away(|from, items| {
                            taken.extend(numbers(items).map(|item| (from, item)));
                        });
                        prop_assert_eq!(taken, std::mem::take(&mut sets[me]));
                    }
                }
                Step::Leave(me) => {
                    away[me] = sets[me].is_empty();
                    prop_assert_eq!(boxes.of(me).leave(), away[me]);
                }
                Step::Enter(me) => {
                    prop_assert_eq!(boxes.of(me).enter(), !sets[me].is_empty());
                    away[me] = false;
                }
            }
            for (me, set) in sets.iter().enumerate() {
                prop_assert_eq!(boxes.of(me).has_mail(), !set.is_empty());
            }
        }
    }
}
