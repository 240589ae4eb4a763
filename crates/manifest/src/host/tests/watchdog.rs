//! Watchdogs of guests.
use super::*;

fn with(key: &str) -> String {
    GOOD.replacen("background = true", &format!("background = true\n{key}"), 1)
}

#[test]
fn who_has_a_watchdog_needs_a_build_with_watchdogs() {
    let manifest = parse(&with("watchdog = \"250ms\"")).unwrap();
    assert_eq!(
        manifest.system.guests.iter().map(|guest| guest.watchdog_us).collect::<Vec<_>>(),
        [0, 250_000]
    );
    assert!(manifest.needs().watchdogs);
    assert!(!parse(GOOD).unwrap().needs().watchdogs);
}

#[test]
fn its_time_is_in_range() {
    for (time, is_good) in
        [("20ms", true), ("86400s", true), ("19ms", false), ("86401s", false), ("0us", false)]
    {
        let read = parse(&with(&format!("watchdog = \"{time}\"")));
        assert_eq!(read.is_ok(), is_good, "{time}");
    }
    let [error] = &errors(&with("watchdog = \"19999us\""))[..] else { panic!("one finding") };
    assert!(error.contains("watchdog: 19999 us is out of range / from 20 ms to 86400 s"), "{error}");
}
