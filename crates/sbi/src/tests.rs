//! Each extension as the specification's tables have it, and what must hold of any call.
use ainori_limits::PAGE;
use proptest::prelude::*;

use super::*;

fn call(extension: u64, function: u64, a: [u64; 5]) -> Call {
    Call { extension, function, a }
}

/// A guest's harts: 0 to a number.
fn harts(count: u32) -> u64 {
    u64::MAX >> (64 - count)
}

fn any_extension() -> impl Strategy<Value = u64> {
    let known = proptest::sample::select(vec![BASE, TIME, IPI, RFENCE, HSM, SRST, DBCN, AINORI]);
    prop_oneof![8 => known, 2 => 0u64..=9, 1 => any::<u64>()]
}

fn any_argument() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..70,
        any::<u64>(),
        Just(u64::MAX),
        Just(1 << 63),
        Just(0x8000_0000),
        (0u64..64).prop_map(|bit| 1 << bit)
    ]
}

fn any_call() -> impl Strategy<Value = Call> {
    let a = [any_argument(), any_argument(), any_argument(), any_argument(), any_argument()];
    (any_extension(), prop_oneof![5 => 0u64..8, 1 => any::<u64>()], a)
        .prop_map(|(extension, function, a)| call(extension, function, a))
}

#[test]
fn the_base_extension_knows_what_is_there() {
    let probe = |id| decode(&call(BASE, 3, [id, 0, 0, 0, 0]), 1);
    for id in [BASE, TIME, IPI, RFENCE, HSM, SRST, SUSP, DBCN, AINORI, 0, 8] {
        assert_eq!(probe(id), Ok(Request::Answer(1)), "{id:#x}");
    }
    for id in [9, 0x0050_4d55, 0x4350_5043, u64::MAX, BASE | 1 << 32] {
        assert_eq!(probe(id), Ok(Request::Answer(0)), "{id:#x}");
    }
    assert_eq!(decode(&call(BASE, 0, [0; 5]), 1), Ok(Request::Answer(0x0200_0000)));
    assert_eq!(decode(&call(BASE, 7, [0; 5]), 1), Err(Error::NotSupported));
}

#[test]
fn resets_have_types_and_reasons_of_32_bits() {
    let reset = |kind, reason| decode(&call(SRST, 0, [kind, reason, 0, 0, 0]), 1);
    use Reason::{Failure, Reboot, Shutdown};
    for (kind, reason, expected) in [
        (0, 0, Shutdown),
        (1, 0, Reboot),
        (2, 0, Reboot),
        (0, 1, Failure),
        (2, 0xe000_0000, Failure),
        (0, 0xffff_ffff, Failure),
        (7 << 32, 9 << 32, Shutdown),
    ] {
        assert_eq!(reset(kind, reason), Ok(Request::Reset(expected)), "{kind:#x} {reason:#x}");
    }
    for (kind, reason) in [(3, 0), (0, 2), (0, 0xdfff_ffff), (0xf000_0000, 0)] {
        assert_eq!(reset(kind, reason), Err(Error::InvalidParameter), "{kind:#x} {reason:#x}");
    }
    assert_eq!(decode(&call(SRST, 1, [0; 5]), 1), Err(Error::NotSupported));
}

#[test]
fn a_range_is_fenced_page_by_page_or_whole() {
    let pages = |start, size| Range { start, size }.pages().map(|pages| pages.collect::<Vec<_>>());
    assert_eq!(pages(0, 0), None);
    assert_eq!(pages(0x5000, u64::MAX), None);
    assert_eq!(pages(0x5000, 8 * PAGE + 1), None);
    assert_eq!(pages(0x5000, 0), Some(vec![]));
    assert_eq!(pages(0x5fff, 2), Some(vec![0x5000, 0x6000]));
    assert_eq!(pages(0x5001, 8 * PAGE).map(|pages| pages.len()), Some(9));
    assert_eq!(pages(u64::MAX - 5, 100), Some(vec![u64::MAX - 4095]));
}

#[test]
fn suspension_is_a_wait_if_it_keeps_all() {
    let suspend = |kind| decode(&call(HSM, 3, [kind, 7, 9, 0, 0]), 1);
    let resumes = |alone| Ok(Request::SuspendAndResume { address: 7, opaque: 9, alone });
    assert_eq!(suspend(0), Ok(Request::Suspend));
    assert_eq!(suspend(0x8000_0000), resumes(false));
    // As a sign-extended register has it.
    assert_eq!(suspend(0xffff_ffff_8000_0000), resumes(false));
    for reserved_or_unknown in [1, 0x1000_0000, 0x7fff_ffff, 0x8000_0001, 0xffff_ffff] {
        assert_eq!(suspend(reserved_or_unknown), Err(Error::InvalidParameter), "{reserved_or_unknown:#x}");
    }
    let sleep = |function, kind| decode(&call(SUSP, function, [kind, 7, 9, 0, 0]), 1);
    assert_eq!(sleep(0, 0), resumes(true));
    assert_eq!(sleep(0, 1 << 32), resumes(true), "32 bits of it count");
    for reserved_or_unknown in [1, 0x8000_0000] {
        assert_eq!(sleep(0, reserved_or_unknown), Err(Error::InvalidParameter), "{reserved_or_unknown:#x}");
    }
    assert_eq!(sleep(1, 0), Err(Error::NotSupported));
}

proptest! {
    /// A mask names exactly the harts of which each bit says so, and no others. Its base is a hart, even if the mask names none.
    #[test]
    fn a_mask_names_its_harts(count in 1u32..=64, mask in prop_oneof![Just(0), any_argument()], base in any_argument()) {
        let named = hart_mask(harts(count), (mask, base));
        let each: Vec<u128> = (0..64).filter(|bit| mask >> bit & 1 != 0).map(|bit| u128::from(base) + bit).collect();
        if base == u64::MAX {
            prop_assert_eq!(named, Ok(harts(count)));
        } else if base < u64::from(count) && each.iter().all(|hart| *hart < u128::from(count)) {
            prop_assert_eq!(named, Ok(each.iter().fold(0, |set, hart| set | 1 << hart)));
        } else {
            prop_assert_eq!(named, Err(Error::InvalidParameter));
        }
    }

    /// No request names a hart that isn't there.
    #[test]
    fn requests_name_harts_that_are_there(count in 1u32..=64, call in any_call()) {
        match decode(&call, harts(count)) {
            Ok(Request::SendIpi(set) | Request::RemoteFence(set, _)) => prop_assert_eq!(set & !harts(count), 0),
            Ok(Request::HartStart { hart, .. } | Request::HartStatus(hart)) => prop_assert!(hart < count),
            _ => {}
        }
    }

    /// The pages of a range are those that it touches, each once; and never many.
    #[test]
    fn pages_are_those_that_a_range_touches(start in any_argument(), size in prop_oneof![0u64..40_000, any_argument()]) {
        let Some(pages) = (Range { start, size }).pages() else { return Ok(()) };
        let pages: Vec<u64> = pages.collect();
        prop_assert!(pages.len() as u64 <= range::MOST_PAGES + 1);
        prop_assert!(pages.iter().all(|page| page % PAGE == 0));
        prop_assert!(pages.windows(2).all(|pair| pair[0] + PAGE == pair[1]));
        // The last byte of the address space has no end that could be told.
        if size > 0 && start < u64::MAX {
            let last = start.saturating_add(size) - 1;
            prop_assert_eq!(pages.first().copied(), Some(start & !(PAGE - 1)));
            prop_assert_eq!(pages.last().copied(), Some(last & !(PAGE - 1)));
        }
    }

    /// What a legacy call is translated to is a call of today, or one of the two that have no counterpart; and says what its mask in memory says.
    #[test]
    fn legacy_calls_become_calls_of_today(extension in 0u64..=8, a0 in any_argument(), in_memory in any::<u64>()) {
        let old = call(extension, 77, [a0, 1, 2, 3, 4]);
        let mut asked = None;
        let new = legacy::translate(old, harts(5), |address| { asked = Some(address); Ok::<_, ()>(in_memory) });
        let new = new.expect("it could be loaded");
        let has_mask = matches!(extension, 4..=7);
        prop_assert_eq!(asked, Some(a0).filter(|address| has_mask && *address != 0));
        prop_assert!(!legacy::is_legacy(new.extension) || matches!(extension, legacy::GETCHAR | legacy::CLEAR_IPI));
        let named = if a0 == 0 { harts(5) } else { in_memory & harts(5) };
        match decode(&new, harts(5)) {
            Ok(Request::SendIpi(set) | Request::RemoteFence(set, _)) => prop_assert_eq!(set, named),
            Ok(Request::SetTimer(at)) => prop_assert_eq!((extension, at), (0, a0)),
            Ok(Request::WriteByte(byte)) => prop_assert_eq!((extension, byte), (1, a0 as u8)),
            Ok(Request::Reset(reason)) => prop_assert_eq!((extension, reason), (8, Reason::Shutdown)),
            Ok(Request::ReadByte) => prop_assert_eq!(extension, 2),
            Ok(Request::ClearIpi) => prop_assert_eq!(extension, 3),
            other => prop_assert!(false, "{:?}", other),
        }
        if has_mask && a0 != 0 {
            prop_assert_eq!(legacy::translate(old, harts(5), |_| Err("nothing there")), Err("nothing there"));
        }
    }
}
