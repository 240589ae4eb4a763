//! Boards other than QEMU's `virt`.
use super::*;

const VIRT: &str = "machine = \"qemu-virt\"";
const SIFIVE: &str = "machine = \"sifive_u\"";
const DEVICES: &str = "devices = [\"/soc/rtc@101000\"]\n";

/// A system of `GOOD`'s guests on harts 1 to 4, none of which owns a device.
fn on_sifive() -> String {
    [
        (VIRT, SIFIVE),
        ("memory = \"2GiB\"", "memory = \"1GiB\""),
        ("harts = [0, 1, 2, 3]", "harts = [1, 2, 3, 4]"),
        (DEVICES, ""),
    ]
    .into_iter()
    .fold(GOOD.to_owned(), |text, (old, new)| text.replacen(old, new, 1))
}

#[test]
fn harts_of_sifive_u_are_1_to_4() {
    let manifest = parse(&on_sifive()).unwrap();
    assert_eq!((manifest.board.hart_ids(), manifest.board.cpu.as_str()), (1..5, "sifive-u54"));
    let homes: Vec<u32> = manifest.system.guests[0].vcpus.iter().map(|vcpu| vcpu.home).collect();
    assert_eq!(homes, [1, 2, 3, 4]);
    let needs = manifest.needs();
    assert!(needs.without_h && needs.without_sstc && needs.more_uarts && needs.memory_modes, "{needs:?}");
    let usual = parse(GOOD).unwrap();
    assert!(usual.board.hart_ids() == (0..4) && !usual.needs().more_uarts);
    // A guest that names none has all of them.
    let all = parse(&on_sifive().replacen("harts = [1, 2, 3, 4]\n", "", 1)).unwrap();
    assert_eq!(all.system.guests[0].vcpus[0].harts, 0b1_1110);
}

#[test]
fn what_sifive_u_has_not_is_told() {
    for (old, new, message, help) in [
        ("harts = [1, 2, 3, 4]", "harts = [0, 1, 2, 3]", "hart 0 is not on the board", "4 harts, 1 to 4"),
        ("harts = 4", "harts = 5", "can't have 5 harts", "from 1 to 4"),
        (
            SIFIVE,
            "machine = \"sifive_u\"\ninterrupts = \"imsic\"",
            "hasn't this interrupt controller",
            "PLIC",
        ),
    ] {
        let found = errors(&on_sifive().replacen(old, new, 1));
        assert!(
            found.iter().any(|told| told.contains(message) && told.contains(help)),
            "{message}: {found:?}"
        );
    }
}

#[test]
fn no_guest_owns_a_device_of_sifive_u() {
    for (path, why) in [
        ("/soc/serial@10010000", "the hypervisor uses it itself"),
        ("/soc/gpio@10060000", "it acts on the whole board"),
        ("/soc/rtc@101000", "has no device"),
    ] {
        let owned = format!("priority = 10\ndevices = [{path:?}]\n");
        let text = on_sifive().replacen("priority = 10\n", &owned, 1);
        let found = errors(&text);
        let is_told =
            |told: &String| told.contains(why) && told.contains("no guest can own a device of sifive_u");
        assert!(found.iter().any(is_told), "{path}: {found:?}");
    }
}
