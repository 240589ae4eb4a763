use super::*;

#[test]
fn the_verdict_does_not_claim_more_than_was_done() {
    let words = |same, differ, left, all| verdict(&Tally { same, differ, left }, 2, 13, all);
    assert_eq!(
        words(0, 0, 0, 0),
        "No run could be taken again: none of the results has one that would be the same today. 2 of 13 results are old."
    );
    assert_eq!(
        words(0, 0, 3, 9),
        "No run was taken again: there was no time (--minutes). For 3 there was no time (--minutes). 2 of 13 results are old."
    );
    assert_eq!(words(3, 0, 0, 9), "Taken again: 3 runs, all the same to the byte. 2 of 13 results are old.");
    assert!(words(2, 1, 0, 9).starts_with("Taken again: 3 runs, 1 of them DIFFER."));
}

#[test]
fn minutes_are_a_number() {
    assert_eq!(minutes("0.5"), Ok(0.5));
    for wrong in ["-1", "x", "inf", "NaN", "1e9"] {
        assert!(minutes(wrong).is_err(), "{wrong}");
    }
}
