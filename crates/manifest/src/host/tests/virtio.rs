//! `dma`, `[[disk]]` and `[[network]]`.
use super::*;
use crate::{Disk, Forward, Network, PowerButton};

const TRUSTED: &str = "dma = \"trusted\"\nmemory_at = 0xa0000000";
/// A file of whole sectors that `parse` makes.
const FILE: &str = "disk";

/// `GOOD`, whose Linux has these keys beside its own, with these tables at its end.
fn with(linux: &str, tables: &str) -> String {
    assert!(GOOD.contains("priority = 1\n"));
    format!("{}{tables}\n", GOOD.replace("priority = 1\n", &format!("priority = 1\n{linux}\n")))
}

fn disk(more: &str) -> String {
    format!("[[disk]]\nguest = \"linux\"\nfile = {FILE:?}\n{more}\n")
}

fn network(more: &str) -> String {
    format!("[[network]]\nguest = \"linux\"\n{more}\n")
}

/// There is an error that has these words, and help with those.
fn is_told(text: &str, message: &str, help: &str) {
    let found = errors(text);
    assert!(
        found.iter().any(|told| told.contains(message) && told.contains(help)),
        "{message} ({help}): {found:?}"
    );
}

#[test]
fn a_trusted_guest_has_disks_and_networks_in_the_boards_slots() {
    let text = with(
        TRUSTED,
        &[
            disk("snapshot = true"),
            network("forward = [\"2222:22\", \"80\"]"),
            disk("read_only = true\nformat = \"raw\""),
        ]
        .concat(),
    );
    let manifest = parse(&text).unwrap();
    let linux = &manifest.system.guests[0];
    // To the hypervisor they are devices that it owns.
    assert_eq!(
        linux.devices,
        ["/soc/virtio_mmio@10001000", "/soc/virtio_mmio@10002000", "/soc/virtio_mmio@10003000"]
    );
    assert_eq!(manifest.spaces()[0].memory_at, Some(0xa000_0000));
    let [first, second] = &manifest.disks[..] else { panic!("{:?}", manifest.disks) };
    assert!(matches!(first, Disk { guest: 0, slot: 0, read_only: false, snapshot: true, .. }), "{first:?}");
    assert!(matches!(second, Disk { guest: 0, slot: 1, read_only: true, snapshot: false, .. }), "{second:?}");
    assert!(first.path.ends_with(FILE) && !first.is_written() && !second.is_written());
    let forwards = vec![Forward { host: Some(2222), guest: 22 }, Forward { host: None, guest: 80 }];
    let mac = "52:54:00:41:49:01".to_owned();
    assert_eq!(manifest.networks, [Network { guest: 0, slot: 2, mac, forwards }]);
}

/// Whoever reads the manifest is told what such a device can do.
#[test]
fn what_a_device_could_reach_is_a_warning() {
    let manifest = parse(&with(TRUSTED, &disk(""))).unwrap();
    let warnings = manifest.warnings.unwrap();
    let told: Vec<&str> = warnings.iter().map(|finding| &*finding.message).collect();
    let [one] = &told[..] else { panic!("{told:?}") };
    assert!(one.contains("can read and change all memory of the board"), "{one}");
    assert!(one.contains("of the hypervisor, of the firmware, of freertos"), "{one}");
    // Not of who is trusted with nothing.
    let manifest = parse(&with("dma = \"trusted\"", "")).unwrap();
    let warnings = manifest.warnings.unwrap();
    assert!(warnings.iter().all(|finding| finding.message.contains("devices that it hasn't")));
    assert!(parse(GOOD).unwrap().warnings.is_none());
}

/// Nobody sees what such a device loads and stores, so nothing is put in a guest's text unless the manifest says so.
#[test]
fn a_guest_with_such_devices_has_breakpoints_only_if_it_says_so() {
    let check = |keys: &str| {
        let text = with(&format!("{TRUSTED}\n{keys}"), &disk("")).replacen(
            "harts = 4",
            "cpu = \"rv64,h=false\"\nharts = 4",
            1,
        );
        let manifest = parse(&text).unwrap();
        let warnings = manifest.warnings.unwrap();
        let is_told = warnings.iter().any(|finding| finding.message.contains("devices can load breakpoints"));
        let breakpoints: Vec<bool> = manifest
            .translations
            .iter()
            .map(|translation| translation.shadow().unwrap().breakpoints)
            .collect();
        (breakpoints, is_told)
    };
    assert_eq!(check(""), (vec![false, true], false));
    assert_eq!(check("breakpoints = false"), (vec![false, true], false));
    assert_eq!(check("breakpoints = true"), (vec![true, true], true));
}

#[test]
fn no_guest_has_such_devices_unless_it_is_trusted() {
    let untrusted = "reads and writes memory by itself (DMA), and nothing on the board confines it";
    is_told(
        &with("", &disk("")),
        &format!("linux can't have a disk: its card {untrusted}"),
        "add dma = \"trusted\" to it",
    );
    is_told(&with("", &network("")), "linux can't have a network", "add dma = \"trusted\" to it");
    let slot = "devices = [\"/soc/virtio_mmio@10008000\"]";
    is_told(&with(slot, ""), untrusted, "add dma = \"trusted\" to it, and memory_at");
    // Others that do so have no way to be anybody's.
    let pci = format!("{TRUSTED}\ndevices = [\"/soc/pci@30000000\"]");
    is_told(&with(&pci, ""), "no guest can own /soc/pci@30000000", "a guest can own: ");
    is_told(
        &with("dma = \"confined\"", &disk("")),
        "there is no way to let a guest's devices reach memory \"confined\"",
        "trusted",
    );
    is_told(&with("dma = true", &disk("")), "`dma` must be \"trusted\"", "");
}

#[test]
fn addresses_that_devices_get_are_the_boards() {
    is_told(
        &with("dma = \"trusted\"", &disk("")),
        "the addresses that linux gives its devices are the board's",
        "e.g. memory_at = 0xdfe00000",
    );
    let none = format!("{TRUSTED}\ntranslation = \"none\"");
    is_told(&with(&none, &disk("")), "linux can own no disk", "remove translation");
}

/// A place that a guest names itself is nobody's disk, and there are eight.
#[test]
fn places_are_given_once() {
    let own = format!("{TRUSTED}\ndevices = [\"/soc/virtio_mmio@10001000\"]");
    let manifest = parse(&with(&own, &disk("snapshot = true"))).unwrap();
    assert_eq!(manifest.disks[0].slot, 1);
    let seven = disk("snapshot = true").repeat(7);
    assert_eq!(parse(&with(&own, &seven)).unwrap().disks[6].slot, 7);
    let nine = disk("snapshot = true").repeat(9);
    let found = errors(&with(&own, &nine));
    assert_eq!(found.iter().filter(|told| told.contains("no place for this")).count(), 1, "{found:?}");
    is_told(&with(&own, &nine), "the board has no place for this disk", "eight places");
}

#[test]
fn what_is_wrong_with_a_disk_is_told() {
    for (tables, message, help) in [
        (
            "[[disk]]\nguest = \"linux\"\nfile = \"nothing\"",
            "nothing can't be read: it doesn't exist",
            "relative to the manifest",
        ),
        (
            "[[disk]]\nguest = \"linux\"\nfile = \"pipe\"",
            "pipe can't be read: it is a pipe",
            "name the file itself",
        ),
        (
            "[[disk]]\nguest = \"linux\"\nfile = \"initrd\"",
            "initrd is no disk: it has 1000 bytes",
            "truncate",
        ),
        (
            "[[disk]]\nguest = \"linus\"\nfile = \"disk\"",
            "there is no guest \"linus\" for this disk",
            "linux",
        ),
        (
            "[[disk]]\nguest = \"linux\"\nfile = \"disk\"\nformat = \"qcow2\"",
            "there is no format of disks \"qcow2\"",
            "raw",
        ),
        (
            "[[disk]]\nguest = \"linux\"\nfile = \"disk\"\nread_only = true\nsnapshot = true",
            "nothing is thrown away",
            "remove one",
        ),
        ("[[disk]]\nguest = \"linux\"", "`file`", ""),
        ("disk = 1", "`disk`", ""),
    ] {
        let (linux, text) = (TRUSTED, tables);
        let text =
            if text.starts_with("disk") { format!("{text}\n{}", with(linux, "")) } else { with(linux, text) };
        is_told(&text, message, help);
    }
    let twice = [disk(""), disk("read_only = true")].concat();
    is_told(&with(TRUSTED, &twice), "is a disk already, and one of the two is written", "copy the file");
    assert!(parse(&with(TRUSTED, &disk("read_only = true").repeat(2))).is_ok());
}

#[test]
fn what_is_wrong_with_a_network_is_told() {
    for (more, message, help) in [
        ("mac = \"53:54:00:00:00:01\"", "is not the address of a network card", "six bytes"),
        ("mac = \"52:54:00:00:00\"", "is not the address of a network card", "six bytes"),
        ("mac = \"00:00:00:00:00:00\"", "is not the address of a network card", "six bytes"),
        ("mac = \"52-54-00-00-00-01\"", "is not the address of a network card", "six bytes"),
        ("forward = [\"22:0\"]", "\"22:0\" doesn't say which port leads where", "2222:22"),
        ("forward = [\"65536:22\"]", "doesn't say which port leads where", "2222:22"),
        ("forward = [\"tcp:22\"]", "doesn't say which port leads where", "2222:22"),
        ("forward = [\"1:2\", \"1:3\"]", "the host's port 1 would lead to two places", "another port"),
        ("forwards = [\"1:2\"]", "`forwards`", "forward"),
    ] {
        is_told(&with(TRUSTED, &network(more)), message, help);
    }
    let text = with(TRUSTED, &network("mac = \"52:54:00:AB:cd:01\""));
    assert_eq!(parse(&text).unwrap().networks[0].mac, "52:54:00:ab:cd:01");
}

#[test]
fn other_boards_have_no_places() {
    let text = with("dma = \"trusted\"", &disk("snapshot = true")).replacen(
        "machine = \"qemu-virt\"",
        "machine = \"sifive_u\"",
        1,
    );
    is_told(&text, "the board has no place for this disk", "other boards have none");
}

/// The button is in the place behind disks and networks, whatever the order in the manifest.
#[test]
fn one_guest_has_a_power_button() {
    let shutdown = format!("{TRUSTED}\nshutdown = \"20s\"");
    let tables = [network(""), disk("snapshot = true")].concat();
    let manifest = parse(&with(&shutdown, &tables)).unwrap();
    let patience = std::time::Duration::from_secs(20);
    assert_eq!(manifest.power, Some(PowerButton { guest: 0, slot: 2, patience }));
    assert_eq!(manifest.system.guests[0].devices.len(), 3);
    assert_eq!(parse(&with(TRUSTED, &tables)).unwrap().power, None);

    is_told(
        &with("shutdown = \"20s\"", ""),
        "linux can't have a power button",
        "add dma = \"trusted\" to it",
    );
    let never = shutdown.replace("20s", "0s");
    is_told(&with(&never, ""), "can't shut down in no time", "leave the key out");
    let both = with(&shutdown, "").replace("priority = 10\n", "priority = 10\nshutdown = \"1s\"\n");
    is_told(&both, "two guests would be asked to shut down", "there is one power button");
}

/// A command that loads a manifest must not write what it reads.
#[test]
fn disks_are_among_the_files_of_a_manifest() {
    let folder = guest_files();
    let path = folder.path().join("system.toml");
    std::fs::write(&path, with(TRUSTED, &disk(""))).unwrap();
    let files = Manifest::files(&path);
    assert!(files.contains(&("a disk", folder.path().join(FILE))), "{files:?}");
}
