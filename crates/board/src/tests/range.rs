use crate::{Range, Ranges, largest_free};
use proptest::prelude::*;

#[test]
fn a_list_says_when_it_is_full() {
    let mut ranges = Ranges::new();
    let range = |start| Range { start, end: start + 1 };
    assert!((0..Ranges::MOST as u64).all(|start| ranges.add(range(start))));
    assert!(!ranges.add(range(99)));
    assert_eq!(ranges.as_slice().len(), Ranges::MOST);
    assert_eq!(ranges.as_slice().last(), Some(&range(Ranges::MOST as u64 - 1)));
}

#[test]
fn ranges_that_only_touch_have_nothing_in_common() {
    let [low, high] = [(0, 10), (10, 20)].map(|(start, end)| Range { start, end });
    assert!(!low.overlaps(high) && !high.overlaps(low) && low.overlaps(low));
}

fn ranges(most: usize) -> impl Strategy<Value = Vec<Range>> {
    let one = (0..60u64, 1..20u64).prop_map(|(start, size)| Range { start, end: start + size });
    prop::collection::vec(one, 0..=most)
}

proptest! {
    /// As long as the longest run of free bytes that a walk over all of them finds within one range of memory.
    #[test]
    fn no_free_part_is_larger(memory in ranges(3), reserved in ranges(5)) {
        let is_free = |byte: u64| !reserved.iter().any(|range| (range.start..range.end).contains(&byte));
        let longest = memory.iter().map(|range| {
            let mut run = 0;
            (range.start..range.end).map(|byte| { run = if is_free(byte) { run + 1 } else { 0 }; run }).max().unwrap_or(0)
        });
        let longest: u64 = longest.max().unwrap_or(0);
        let found = largest_free(&memory, &reserved);
        prop_assert_eq!(found.map_or(0, Range::size), longest);
        if let Some(found) = found {
            prop_assert!((found.start..found.end).all(is_free));
            prop_assert!(memory.iter().any(|range| range.start <= found.start && found.end <= range.end));
        }
    }
}
