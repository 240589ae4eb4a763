use crate::{Environment, Isa};
use proptest::prelude::*;

/// All that can be offered works.
const ALL: Environment = Environment {
    cleans_blocks: true,
    zeros_blocks: true,
    memory_types: true,
    updates_bits: true,
    vectors: true,
};

fn isa(string: &str) -> Isa {
    Isa::parse(None, Some(string))
}

#[test]
fn both_properties_say_the_same() {
    let list = Isa::parse(Some(b"i\0m\0A\0zicbom\0sstc\0"), Some("rv64ignored"));
    assert_eq!(list, isa("rv64ima_Zicbom_sstc"));
    assert_eq!(list.string(), "rv64ima_zicbom_sstc");
    assert!(list.has("a") && !list.has("c"));
}

#[test]
fn a_hart_that_says_nothing_has_nothing() {
    assert_eq!(Isa::parse(None, None).names().count(), 0);
    assert_eq!(Isa::parse(Some(b""), Some("rv64i")).names().count(), 0);
}

#[test]
fn guests_are_told_what_works_for_them() {
    let board = isa("rv64imafdcvh_zicbom_zicboz_svpbmt_svadu_zvbb_zba_smstateen_sstc_xvendor");
    assert_eq!(board.for_guests(ALL).string(), "rv64imafdcv_zicbom_zicboz_svpbmt_svadu_zvbb_zba_sstc");
    assert_eq!(board.for_guests(Environment::default()).string(), "rv64imafdc_zba_sstc");
    let zeros = Environment { zeros_blocks: true, ..Environment::default() };
    assert_eq!(board.for_guests(zeros).string(), "rv64imafdc_zicboz_zba_sstc");
}

#[test]
fn harts_whose_registers_can_not_be_kept_apart_are_refused() {
    for (string, is_refused) in [
        ("rv64imafdc", false),
        ("rv64imafdqc", true),
        ("rv64imac_zfinx", true),
        ("rv64imac_zcmt", true),
        ("rv64imac_zcmt_ssstateen", false),
        ("rv64imac_ssctr", true),
        ("rv64imac_ssctr_smstateen", false),
    ] {
        assert_eq!(isa(string).refused().is_some(), is_refused, "{string}");
    }
    assert!(
        isa("rv64i_zve32x").has_vectors() && isa("rv64iv").has_vectors() && !isa("rv64i_zvbb").has_vectors()
    );
}

fn names() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-z]|z[a-z0-9]{2,8}|s[sv][a-z]{2,6}", 0..12)
}

proptest! {
    /// What guests are told, read again, is the same; and harts that differ have in common what each has.
    #[test]
    fn nothing_is_invented(one in names(), other in names(), text in ".{0,40}") {
        let of = |names: &[String]| {
            let list: Vec<u8> = names.iter().flat_map(|name| name.bytes().chain([0])).collect();
            Isa::parse(Some(&list), None)
        };
        let (one, other) = (of(&one), of(&other));
        let common = one.common(&other);
        prop_assert!(common.names().all(|name| one.has(name) && other.has(name)));
        prop_assert!(one.names().all(|name| common.has(name) == other.has(name)));
        let offered = one.for_guests(ALL);
        prop_assert!(offered.names().all(|name| one.has(name)));
        let again = isa(&offered.string());
        prop_assert!(again.names().all(|name| offered.has(name)) && offered.names().all(|name| again.has(name)));
        // Whatever a board says.
        let _ = isa(&text).refused();
    }
}
