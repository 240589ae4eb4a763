//! `[[window]]`, and `major_frame`.
use super::*;
use crate::config::Window;

/// Linux on two harts, FreeRTOS on one of them.
const WINDOWS: &str = r#"[[window]]
guest = "freertos"
hart = 1
start = "0ms"
length = "4ms"
[[window]]
guest = "linux"
hart = 1
start = "4ms"
length = "5ms"
[[window]]
guest = "freertos"
hart = 1
start = "9ms"
length = "1ms"
[[window]]
guest = "linux"
hart = 0
start = "0ms"
length = "10ms"
"#;

fn with(windows: &str) -> String {
    let policy = "policy = { preset = \"time-window\", major_frame = \"10ms\" }";
    GOOD.replace("policy = { preset = \"spumone\", quantum = \"5ms\" }", policy)
        .replace("vcpus = 4\nharts = [0, 1, 2, 3]", "vcpus = 2\nharts = [0, 1]")
        + windows
}

/// The same manifest but for this.
fn changed(from: &str, to: &str) -> Vec<String> {
    let good = with(WINDOWS);
    assert!(good.contains(from), "{from}");
    errors(&good.replacen(from, to, 1))
}

fn window(hart: u32, guest: u32, start_us: u32, length_us: u32) -> Window {
    Window { hart, guest, start_us, length_us }
}

#[test]
fn windows_are_in_the_order_of_harts_and_time() {
    let manifest = parse(&with(WINDOWS)).unwrap();
    assert!(manifest.warnings.is_none());
    assert_eq!(manifest.system.policy.frame_us, 10_000);
    let windows = [
        window(0, 0, 0, 10_000),
        window(1, 1, 0, 4_000),
        window(1, 0, 4_000, 5_000),
        window(1, 1, 9_000, 1_000),
    ];
    assert_eq!(manifest.system.windows, windows);
    assert_eq!(parse(GOOD).unwrap().system.windows, []);
}

#[test]
fn windows_of_a_hart_that_overlap_are_told_with_their_times() {
    let start = |from: &str, to: &str| changed(&format!("start = \"{from}\""), &format!("start = \"{to}\""));
    let overlap = "two windows of hart 1 overlap / at any time a hart is one guest's";
    assert_told(&start("4ms", "3999us"), &[&format!("36: {overlap}")]);
    assert_told(&start("9ms", "8ms"), &[&format!("41: {overlap}")]);
    // A long one, and two within it.
    assert_told(
        &changed("length = \"4ms\"", "length = \"10ms\""),
        &[&format!("36: {overlap}"), &format!("41: {overlap}")],
    );
    let findings = parse(&with(WINDOWS).replace("\"9ms\"", "\"8500us\"")).expect_err("they overlap");
    let places = findings.iter().flat_map(|finding| finding.places.iter().map(|place| place.text.clone()));
    assert_eq!(
        places.collect::<Vec<_>>(),
        ["freertos: 8500 us to 9500 us", "linux: 4 ms to 9 ms"],
        "the later one first"
    );
}

#[test]
fn a_window_ends_within_the_frame() {
    assert_told(
        &changed("length = \"1ms\"", "length = \"1001us\""),
        &["41: this window ends 1 us behind the major frame / a frame is 10 ms long"],
    );
    assert_eq!(changed("length = \"10ms\"", "length = \"9h\"").len(), 1);
    assert_eq!(changed("start = \"9ms\"", "start = \"2000h\"").len(), 1);
    assert_told(
        &changed("length = \"1ms\"", "length = \"99us\""),
        &["45: a window of 99 us is too short / from 100 us"],
    );
    for (frame, line) in [("\"99us\"", "99 us"), ("\"11s\"", "11000000 us")] {
        let told = changed("\"10ms\"", frame);
        assert!(
            told[0].starts_with(&format!("2: major_frame: {line} is out of range / from 100 us to 10 s"))
        );
    }
}

#[test]
fn a_window_is_of_a_guest_that_has_a_vcpu_there() {
    assert_told(
        &changed("guest = \"freertos\"", "guest = \"freertoz\""),
        &["32: there is no guest \"freertoz\" to have this window / did you mean `freertos`?"],
    );
    assert_told(
        &changed("hart = 0", "hart = 3"),
        &["48: no vCPU of linux has its home on hart 3 / they are on 0, 1"],
    );
    assert_told(
        &changed("guest = \"linux\"\nhart = 0", "guest = \"freertos\"\nhart = 1"),
        &[
            "36: two windows of hart 1 overlap",
            "41: two windows of hart 1 overlap",
            "46: two windows of hart 1",
        ],
    );
}

#[test]
fn a_vcpu_without_a_window_would_never_run() {
    let (rest, _) = WINDOWS.rsplit_once("[[window]]").unwrap();
    assert_told(
        &errors(&with(rest)),
        &[
            "9: linux has a vCPU on hart 0, and no window there / add [[window]] with guest = \"linux\", hart = 0",
        ],
    );
    assert_told(
        &errors(&with("")),
        &[
            "9: linux has a vCPU on each of the harts 0, 1, and no",
            "19: freertos has a vCPU on hart 1, and no",
        ],
    );
}

/// The one that can't be read may be the one that is missed: nothing is concluded from it.
#[test]
fn a_window_that_cannot_be_read_is_the_only_error() {
    let last = "guest = \"linux\"\nhart = 0\nstart = \"0ms\"\nlength = \"10ms\"";
    for (from, to, told) in [
        ("length", "lenght", "[[window]] has no key `lenght`"),
        ("start = \"0ms\"", "start = 0", "`start` must be a duration"),
        ("hart = 0\n", "", "[[window]] needs the key `hart`"),
        ("guest = \"linux\"", "guest = 3", "`guest` must be a string"),
    ] {
        let found = changed(last, &last.replace(from, to));
        assert!(found.len() == 1 && found[0].contains(told), "{found:#?}");
    }
    let windows = changed("[[window]]", "[[windows]]");
    let all = errors(&with(&WINDOWS.replace("[[window]]", "[[windows]]")));
    for found in [&all, &windows] {
        assert!(found.len() == 1 && found[0].contains("did you mean `window`?"), "{found:#?}");
    }
    for table in ["window = 3", "window = [3]", "window = {}"] {
        let found = errors(&with("").replace("[board]", &format!("{table}\n[board]")));
        assert_eq!(found.len(), 1, "{found:#?}");
    }
}

/// It says a frame: that one is needed is no news.
#[test]
fn a_frame_that_cannot_be_read_is_the_only_error() {
    for (frame, told) in [
        ("major_frame = 10", "`major_frame` must be a duration"),
        ("major_frame = \"10\"", "is not a duration"),
        ("major_fram = \"10ms\"", "did you mean `major_frame`?"),
        ("major-frame = \"10ms\"", "did you mean `major_frame`?"),
    ] {
        let found = changed("major_frame = \"10ms\"", frame);
        assert!(found.len() == 1 && found[0].contains(told), "{found:#?}");
    }
}

#[test]
fn windows_and_their_frame_belong_to_a_policy_that_has_them() {
    let spumone = "under the policy \"spumone\" there are no windows in time / remove";
    let (key, list) = (format!("2: {spumone} the key"), format!("31: {spumone} them, or choose time-window"));
    assert_told(&changed("\"time-window\"", "\"spumone\""), &[&key, &list]);
    let without = with(WINDOWS).replace(", major_frame = \"10ms\"", "");
    assert_told(&errors(&without), &["2: the policy \"time-window\" needs a major frame / policy = {"]);
    assert_told(
        &changed("major_frame = \"10ms\"", "major_frame = \"10ms\", advance = \"3us\""),
        &["2: under the policy time-window no vCPU takes the core of another"],
    );
}

#[test]
fn what_a_window_must_say_is_told() {
    assert_told(&changed("length = \"1ms\"\n", ""), &["41: "]);
    let table = with("").replace("[board]", "window = 3\n[board]");
    assert!(errors(&table)[0].contains("`window` must be a list of tables"), "{:?}", errors(&table));
}
