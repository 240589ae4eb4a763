//! Channels: what they must name, and what the kernel is told.
use super::{GOOD, assert_told, errors, parse};
use crate::config::Channel;

const CHANNEL: &str = "[[channel]]\nguests = [\"freertos\", \"linux\"]\nsize = \"64KiB\"\n";

fn with(channels: &str) -> String {
    format!("{GOOD}{channels}")
}

#[test]
fn a_channel_is_between_two_guests() {
    let manifest = parse(&with(CHANNEL)).unwrap();
    let system = &manifest.system;
    assert_eq!(system.channels, [Channel { ends: [1, 0], size: 65_536 }]);
    assert_eq!(system.channels_of(1).collect::<Vec<_>>(), [(0, 0)]);
    assert_eq!(system.channels_of(0).collect::<Vec<_>>(), [(0, 1)]);
    assert!(parse(GOOD).unwrap().system.channels.is_empty());
}

#[test]
fn what_is_wrong_with_a_channel_is_told() {
    let line = GOOD.matches('\n').count() + 1;
    let told = |from: &str, to: &str, below: usize, expected: &str| {
        assert!(CHANNEL.contains(from));
        let found = errors(&with(&CHANNEL.replacen(from, to, 1)));
        assert_told(&found, &[&format!("{}: {expected}", line + below)]);
    };
    told(
        "\"linux\"",
        "\"linus\"",
        1,
        "there is no guest \"linus\" for this end of the channel / did you mean `linux`?",
    );
    told(
        "\"linux\"",
        "\"freertos\"",
        1,
        "both ends of this channel are \"freertos\" / name two different guests",
    );
    told(", \"linux\"", "", 1, "a channel is between two guests, but this one names 1 / e.g.");
    told("\"linux\"", "\"linux\", \"x\"", 1, "a channel is between two guests, but this one names 3");
    told("\"linux\"", "7", 1, "an item of the list must be a string");
    told(
        "64KiB",
        "6000B",
        2,
        "a channel's memory must be whole pages, a multiple of 4KiB / the next is 8KiB",
    );
    told("64KiB", "0KiB", 2, "a channel's memory must be whole pages, a multiple of 4KiB / the next is 4KiB");
    told("64KiB", "129MiB", 2, "a channel can't have so much memory / at most 128MiB");
    told("64KiB", "134217729B", 2, "a channel can't have so much memory / at most 128MiB");
    told("64KiB", "64", 2, "\"64\" ");
    told("size = \"64KiB\"\n", "", 0, "[[channel]] needs the key `size` / e.g. size = \"64KiB\"");
    told("guests", "guest", 1, "[[channel]] has no key `guest`");
    told(
        "[[channel]]",
        "[channel]",
        0,
        "`channel` must be a list of tables / write [[channel]] with two brackets",
    );
    // A guest whose name nobody knows may be meant.
    assert_eq!(errors(&with(CHANNEL).replacen("name = \"linux\"", "name = 7", 1)).len(), 1);
}

#[test]
fn a_guest_has_few_channels_and_a_board_has_room_for_them() {
    assert!(parse(&with(&CHANNEL.repeat(4))).is_ok());
    let found = errors(&with(&CHANNEL.repeat(5)));
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].contains("freertos has more than 4 channels"), "{}", found[0]);
    let found = errors(&with(&CHANNEL.repeat(17)));
    assert!(found.iter().any(|found| found.contains("17 channels are too many / at most 16")), "{found:#?}");

    let large = CHANNEL.replace("64KiB", "128MiB");
    let tight = with(&large).replace("memory = \"2GiB\"", "memory = \"600MiB\"");
    let [only] = &errors(&tight)[..] else { panic!("one finding") };
    assert!(
        only.contains("161 MiB for the hypervisor and its trace rings and the channels must fit"),
        "{only}"
    );
    assert!(parse(&tight.replace("128MiB", "16MiB")).is_ok());
}
