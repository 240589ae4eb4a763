use crate::{
    Board, BoardIrqchip, BoardUart, Error, IPI_IDENTITY, Interrupt, Isa, Range, Trigger, aplic_number,
    identities_of,
};
use dtoolkit::fdt::Fdt;
use dtoolkit::memreserve::MemoryReservation;
use dtoolkit::model::{DeviceTree, DeviceTreeNode, DeviceTreeProperty};
use proptest::prelude::*;

const PHANDLES: u32 = 0x10;

fn node(name: &str, properties: Vec<DeviceTreeProperty>) -> DeviceTreeNode {
    let mut node = DeviceTreeNode::new(name).unwrap();
    properties.into_iter().for_each(|property| node.add_property(property));
    node
}

fn text(name: &str, value: &str) -> DeviceTreeProperty {
    DeviceTreeProperty::new(name, value).unwrap()
}

fn words(name: &str, value: &[u32]) -> DeviceTreeProperty {
    DeviceTreeProperty::new(name, value).unwrap()
}

/// One range with addresses and sizes of two words.
fn reg(start: u64, size: u64) -> DeviceTreeProperty {
    words("reg", &[start, size].map(|value| [(value >> 32) as u32, value as u32]).concat())
}

fn cells(address: u32, size: u32) -> [DeviceTreeProperty; 2] {
    [words("#address-cells", &[address]), words("#size-cells", &[size])]
}

/// A hart; the phandle of its interrupt controller is [`PHANDLES`] and its id.
fn hart(id: u32, isa: &str) -> DeviceTreeNode {
    let properties = vec![
        text("device_type", "cpu"),
        words("reg", &[id]),
        text("riscv,isa", isa),
        text("mmu-type", "riscv,sv48"),
        words("riscv,cboz-block-size", &[64]),
    ];
    let mut hart = node(&format!("cpu@{id:x}"), properties);
    hart.add_child(node("interrupt-controller", vec![words("phandle", &[PHANDLES + id])]));
    hart
}

/// A board like QEMU's `virt`. Its controllers name the harts in this order, the PLIC for machine mode (11) and supervisor mode (9) each.
fn virt(harts: &[DeviceTreeNode], order: &[u32]) -> DeviceTree {
    let mut tree = DeviceTree::new();
    cells(2, 2).into_iter().for_each(|property| tree.root.add_property(property));
    tree.root.add_property(text("model", "riscv-virtio,qemu"));
    let mut cpus = node("cpus", cells(1, 0).into());
    cpus.add_property(words("timebase-frequency", &[10_000_000]));
    harts.iter().for_each(|hart| cpus.add_child(hart.clone()));
    tree.root.add_child(cpus);
    tree.root.add_child(node(
        "memory@80000000",
        vec![text("device_type", "memory"), reg(0x8000_0000, 0x1000_0000)],
    ));
    let mut soc = node("soc", cells(2, 2).into());
    let contexts: Vec<u32> = order.iter().flat_map(|id| [PHANDLES + id, 11, PHANDLES + id, 9]).collect();
    soc.add_child(node(
        "plic@c000000",
        vec![
            text("compatible", "riscv,plic0"),
            reg(0x0c00_0000, 0x60_0000),
            words("riscv,ndev", &[95]),
            words("interrupts-extended", &contexts),
        ],
    ));
    let software: Vec<u32> = order.iter().flat_map(|id| [PHANDLES + id, 1]).collect();
    soc.add_child(node(
        "sswi@2f00000",
        vec![
            text("compatible", "riscv,aclint-sswi"),
            reg(0x02f0_0000, 0x4000),
            words("interrupts-extended", &software),
        ],
    ));
    soc.add_child(node(
        "serial@10000000",
        vec![text("compatible", "ns16550a"), reg(0x1000_0000, 0x100), words("interrupts", &[10])],
    ));
    soc.add_child(node(
        "rtc@101000",
        vec![text("compatible", "google,goldfish-rtc"), reg(0x0010_1000, 0x1000), words("interrupts", &[11])],
    ));
    tree.root.add_child(soc);
    tree.root.add_child(node("chosen", vec![text("stdout-path", "/soc/serial@10000000")]));
    tree
}

fn plain() -> DeviceTree {
    virt(&[hart(0, "rv64imafdch_zicboz_sstc"), hart(1, "rv64imafdch_sstc_zicboz")], &[0, 1])
}

fn read(tree: &DeviceTree) -> Result<Board, Error> {
    let bytes = tree.to_dtb();
    Board::read(Fdt::new(&bytes).unwrap())
}

#[test]
fn a_board_like_virt_is_understood() {
    let board = read(&plain()).unwrap();
    assert_eq!(
        (&*board.model, &*board.mmu, board.timebase_hz),
        ("riscv-virtio,qemu", "riscv,sv48", 10_000_000)
    );
    assert_eq!(board.isa, Isa::parse(None, Some("rv64imafdch_zicboz_sstc")));
    let harts: Vec<_> = board.harts.iter().map(|hart| (hart.id, hart.irq_target, hart.sswi_index)).collect();
    assert_eq!(harts, [(0, Some(1), Some(0)), (1, Some(3), Some(1))]);
    assert!(matches!(board.irqchip, Some(BoardIrqchip::Plic { base: 0x0c00_0000, sources: 95 })));
    assert_eq!((board.sswi, board.uart), (Some(0x02f0_0000), port(0x1000_0000, 0, 10)));
    assert_eq!((board.memory_bytes(), board.zeroing_block()), (0x1000_0000, Some(64)));
    assert_eq!((&board.seed, &*board.hart_names()), (&None, "0, 1"));
}

#[test]
fn harts_that_are_switched_off_do_not_count() {
    let mut off = hart(1, "rv64i");
    off.add_property(text("status", "disabled"));
    let board = read(&virt(&[hart(0, "rv64imafdch_sstc"), off], &[0, 1])).unwrap();
    assert_eq!(board.harts.len(), 1);
    assert!(board.isa.has("h"), "nor does what they lack");
}

#[test]
fn of_what_harts_differ_in_guests_get_what_all_can_do() {
    let differing = |mmu: &str, block: &[u32]| {
        let mut other = hart(1, "rv64imafdch");
        other.add_property(text("mmu-type", mmu));
        other.remove_property("riscv,cboz-block-size");
        block.iter().for_each(|block| other.add_property(words("riscv,cboz-block-size", &[*block])));
        other
    };
    for (mmu, block, expected) in [
        ("riscv,sv39", vec![64], ("riscv,sv39", 1)),
        ("riscv,sv57", vec![128], ("riscv,sv48", 0)),
        ("riscv,sv48", vec![], ("riscv,sv48", 0)),
    ] {
        let other = differing(mmu, &block);
        for order in [[hart(0, "rv64imafdch"), other.clone()], [other, hart(0, "rv64imafdch")]] {
            let board = read(&virt(&order, &[0, 1])).unwrap();
            assert_eq!((&*board.mmu, board.cache_blocks.len()), expected);
        }
    }
}

#[test]
fn what_can_not_be_done_without_is_named() {
    let names = |change: fn(&mut DeviceTreeNode), message: &str| {
        let mut tree = plain();
        change(&mut tree.root);
        let error = read(&tree).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    };
    names(|root| drop(root.remove_child("cpus")), "has no /cpus");
    names(
        |root| drop(root.child_mut("cpus").unwrap().remove_property("timebase-frequency")),
        "timebase-frequency",
    );
    names(
        |root| {
            ["cpu@0", "cpu@1"]
                .iter()
                .for_each(|name| drop(root.child_mut("cpus").unwrap().remove_child(name)))
        },
        "cpu that is switched on",
    );
}

#[test]
fn a_board_may_lack_a_controller_and_a_console() {
    let mut tree = plain();
    tree.root.remove_child("soc");
    tree.root.remove_child("chosen");
    let board = read(&tree).unwrap();
    assert!(board.irqchip.is_none() && board.sswi.is_none() && board.uart.is_none());
    assert!(board.harts.iter().all(|hart| hart.irq_target.is_none() && hart.sswi_index.is_none()));
}

/// [`plain`] with another serial port, behind the first one and chosen by an alias.
fn with_second_port(properties: &[DeviceTreeProperty]) -> DeviceTree {
    let mut tree = plain();
    tree.root.child_mut("chosen").unwrap().property_mut("stdout-path").unwrap().set_value("serial1:115200n8");
    tree.root.add_child(node("aliases", vec![text("serial1", "/soc/serial@10010000")]));
    let mut port = node("serial@10010000", vec![reg(0x1001_0000, 0x100), words("interrupts", &[20])]);
    properties.iter().for_each(|property| port.add_property(property.clone()));
    tree.root.child_mut("soc").unwrap().add_child(port);
    tree
}

const fn port(base: u64, shift: usize, source: u32) -> Option<BoardUart> {
    Some(BoardUart { base, shift, interrupt: high(source) })
}

const fn high(source: u32) -> Interrupt {
    Interrupt { source, trigger: Trigger::LevelHigh }
}

const FIRST_PORT: Option<BoardUart> = port(0x1000_0000, 0, 10);

#[test]
fn the_console_is_what_is_chosen_if_it_can_be_driven() {
    let taken = |properties: &[DeviceTreeProperty]| read(&with_second_port(properties)).unwrap().uart;
    let is = |name| text("compatible", name);
    for name in ["ns16550a", "ns16550", "snps,dw-apb-uart"] {
        assert_eq!(taken(&[is(name)]), port(0x1001_0000, 0, 20), "{name}");
    }
    let ns16550a = || is("ns16550a");
    let either = DeviceTreeProperty::new("compatible", b"vendor,uart\0ns16550a\0".to_vec()).unwrap();
    assert_eq!(taken(&[either]), port(0x1001_0000, 0, 20));
    let (shift, offset, width) =
        (words("reg-shift", &[2]), words("reg-offset", &[0x40]), words("reg-io-width", &[1]));
    for on in ["okay", "ok"] {
        let laid_out = [ns16550a(), shift.clone(), offset.clone(), width.clone(), text("status", on)];
        assert_eq!(taken(&laid_out), port(0x1001_0040, 2, 20), "{on}");
    }

    for name in ["arm,pl011", "litex,liteuart", "ns8250"] {
        assert_eq!(taken(&[is(name)]), FIRST_PORT, "{name} has other registers");
    }
    assert_eq!(taken(&[ns16550a(), words("reg-io-width", &[4])]), FIRST_PORT, "words, but a byte apart");
    let of_words = [ns16550a(), words("reg-io-width", &[4]), words("reg-shift", &[2])];
    #[cfg(feature = "uarts")]
    {
        assert_eq!(
            taken(&of_words),
            port(0x1001_0000, crate::uarts::WORDS | 2, 20),
            "its registers are words"
        );
        assert_eq!(taken(&[is("sifive,uart0")]), port(0x1001_0000, crate::uarts::SIFIVE, 20));
        let off = [is("sifive,uart0"), text("status", "disabled")];
        assert_eq!(taken(&off), FIRST_PORT, "it is off");
    }
    #[cfg(not(feature = "uarts"))]
    {
        assert_eq!(taken(&of_words), FIRST_PORT, "its registers are words");
        assert_eq!(taken(&[is("sifive,uart0")]), FIRST_PORT, "it has other registers");
    }
    assert_eq!(taken(&[ns16550a(), text("status", "disabled")]), FIRST_PORT, "it is off");
    for (name, value) in [("reg-shift", 6), ("reg-shift", u32::MAX), ("reg-offset", 0xf9)] {
        assert_eq!(taken(&[ns16550a(), words(name, &[value])]), FIRST_PORT, "registers beyond its own");
    }
}

#[test]
fn without_a_choice_the_console_is_the_first_that_can_be_driven() {
    let mut tree = with_second_port(&[text("compatible", "ns16550a")]);
    tree.root.remove_child("aliases");
    assert_eq!(read(&tree).unwrap().uart, FIRST_PORT);
    let first = |tree: &mut DeviceTree, property| {
        tree.root.child_mut("soc").unwrap().child_mut("serial@10000000").unwrap().add_property(property);
    };
    first(&mut tree, text("compatible", "arm,pl011"));
    assert_eq!(read(&tree).unwrap().uart, port(0x1001_0000, 0, 20));
    let mut tree = plain();
    first(&mut tree, text("compatible", "arm,pl011"));
    assert_eq!(read(&tree).unwrap().uart, None, "the one that is chosen has other registers");
}

#[test]
fn a_seed_of_nothing_is_none() {
    for (seed, found) in [(vec![], None), (vec![1u8, 2], Some(vec![1, 2]))] {
        let mut tree = plain();
        tree.root
            .child_mut("chosen")
            .unwrap()
            .add_property(DeviceTreeProperty::new("rng-seed", seed).unwrap());
        assert_eq!(read(&tree).unwrap().seed, found);
    }
}

#[test]
fn memory_that_is_not_free_is_known_from_both_places() {
    let mut tree = plain();
    let mut reserved = node("reserved-memory", cells(2, 2).into());
    reserved.add_child(node("mmode@80000000", vec![reg(0x8000_0000, 0x8_0000)]));
    tree.root.add_child(reserved);
    tree.memory_reservations.push(MemoryReservation::new(0x8800_0000, 0x1000));
    let bytes = tree.to_dtb();
    let found = Board::reserved_of(Fdt::new(&bytes).unwrap()).unwrap();
    let range = |start, size| Range { start, end: start + size };
    assert_eq!(found.as_slice(), [range(0x8000_0000, 0x8_0000), range(0x8800_0000, 0x1000)]);

    (0..40).for_each(|_| tree.memory_reservations.push(MemoryReservation::new(0x8900_0000, 0x1000)));
    let bytes = tree.to_dtb();
    assert!(matches!(Board::reserved_of(Fdt::new(&bytes).unwrap()), Err(Error::TooManyRanges)));
}

#[test]
fn a_device_is_described_and_so_are_its_neighbours() {
    let mut tree = plain();
    tree.root.child_mut("soc").unwrap().add_child(node("other@101800", vec![reg(0x0010_1800, 0x100)]));
    let bytes = tree.to_dtb();
    let tree = Fdt::new(&bytes).unwrap();
    let board = Board::read(tree).unwrap();
    let rtc = board.device(tree, "/soc/rtc@101000").unwrap();
    assert_eq!(
        (&*rtc.name, &*rtc.compatible, &*rtc.interrupts),
        ("rtc@101000", &b"google,goldfish-rtc\0"[..], &[high(11)][..])
    );
    assert_eq!(rtc.registers, [Range { start: 0x0010_1000, end: 0x0010_2000 }]);
    assert_eq!(Board::neighbour(tree, "/soc/rtc@101000", rtc.registers[0]), Some("other@101800"));
    let serial = board.device(tree, "/soc/serial@10000000").unwrap();
    assert_eq!(Board::neighbour(tree, "/soc/serial@10000000", serial.registers[0]), None);
    assert!(board.device(tree, "/soc/none").is_none());
}

#[test]
fn registers_beyond_all_addresses_are_none() {
    let mut tree = plain();
    let soc = tree.root.child_mut("soc").unwrap();
    soc.add_child(node(
        "odd@ffff",
        vec![text("compatible", "odd"), reg(u64::MAX - 0xff, 0x1000), words("interrupts", &[1])],
    ));
    tree.memory_reservations.push(MemoryReservation::new(u64::MAX - 0xff, 0x1000));
    let bytes = tree.to_dtb();
    let tree = Fdt::new(&bytes).unwrap();
    assert_eq!(Board::read(tree).unwrap().device(tree, "/soc/odd@ffff").unwrap().registers, []);
    let reserved = Board::reserved_of(tree).unwrap();
    assert_eq!(reserved.as_slice(), [Range { start: u64::MAX - 0xff, end: u64::MAX }]);
}

proptest! {
    /// Harts in any order, and controllers that name them in any other: each hart has its own places there.
    #[test]
    fn each_hart_has_its_places(order in Just((0..12u32).collect::<Vec<_>>()).prop_shuffle(), named in Just((0..12u32).collect::<Vec<_>>()).prop_shuffle()) {
        let harts: Vec<_> = order.iter().map(|id| hart(*id, "rv64imafdch_sstc")).collect();
        let board = read(&virt(&harts, &named)).unwrap();
        prop_assert!(board.harts.iter().map(|hart| hart.id).eq(0..12));
        for hart in &board.harts {
            let place = named.iter().position(|id| u64::from(*id) == hart.id).unwrap();
            prop_assert_eq!(hart.irq_target, Some(2 * place as u32 + 1));
            prop_assert_eq!(hart.sswi_index, Some(place as u32));
        }
    }

    /// What is damaged, but still a tree, is read or refused.
    #[test]
    fn damage_is_no_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = plain().to_dtb();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(tree) = Fdt::new(&bytes) {
            let _ = (Board::read(tree).map(|board| board.device(tree, "/soc/rtc@101000")), Board::reserved_of(tree));
            let _ = Board::neighbour(tree, "/soc/rtc@101000", Range { start: 0, end: 1 << 32 });
        }
    }
}

/// [`plain`] as QEMU has it with `aia=aplic` (dumped with QEMU 10.0.2): a node for each domain, that of the supervisors first.
fn with_aplic() -> DeviceTree {
    let mut tree = plain();
    let soc = tree.root.child_mut("soc").unwrap();
    soc.remove_child("plic@c000000");
    for (base, interrupt) in [(0x0d00_0000, 9), (0x0c00_0000, 11)] {
        let targets: Vec<u32> = (0..2).flat_map(|hart| [PHANDLES + hart, interrupt]).collect();
        let either = DeviceTreeProperty::new("compatible", b"qemu,aplic\0riscv,aplic\0".to_vec()).unwrap();
        soc.add_child(node(
            &format!("interrupt-controller@{base:x}"),
            vec![
                either,
                reg(base, 0x8000),
                words("riscv,num-sources", &[96]),
                words("interrupts-extended", &targets),
                words("#interrupt-cells", &[2]),
            ],
        ));
    }
    for (name, source) in [("serial@10000000", 10), ("rtc@101000", 11)] {
        let device = soc.child_mut(name).unwrap();
        device.remove_property("interrupts");
        device.add_property(words("interrupts", &[source, 4]));
    }
    tree
}

const SUPERVISORS: &str = "interrupt-controller@d000000";

#[test]
fn of_an_aplic_the_supervisors_domain_is_taken() {
    let board = read(&with_aplic()).unwrap();
    assert_eq!(board.irqchip, Some(BoardIrqchip::Aplic { base: 0x0d00_0000, sources: 96 }));
    assert_eq!(board.uart, FIRST_PORT);
    let targets: Vec<_> = board.harts.iter().map(|hart| hart.irq_target).collect();
    assert_eq!(targets, [Some(0), Some(1)]);

    let mut tree = with_aplic();
    let soc = tree.root.child_mut("soc").unwrap();
    soc.child_mut(SUPERVISORS).unwrap().add_property(words("riscv,hart-indexes", &[5, 3]));
    let targets: Vec<_> = read(&tree).unwrap().harts.iter().map(|hart| hart.irq_target).collect();
    assert_eq!(targets, [Some(5), Some(3)]);
}

/// The phandles of the IMSICs: of the supervisors', then of machine level.
const IMSICS: [u32; 2] = [0x40, 0x41];
const SUPERVISORS_FILES: &str = "interrupt-controller@28000000";

/// [`plain`] as QEMU has it with `aia=aplic-imsic,aia-guests=3` (dumped with QEMU 10.0.2), with files of the supervisors where `reg` says: the domains don't name
/// the harts' interrupts, but the IMSICs, which do.
fn with_imsics_at(registers: DeviceTreeProperty) -> DeviceTree {
    let mut tree = with_aplic();
    let soc = tree.root.child_mut("soc").unwrap();
    for (domain, parent) in [SUPERVISORS, "interrupt-controller@c000000"].into_iter().zip(IMSICS) {
        let domain = soc.child_mut(domain).unwrap();
        domain.remove_property("interrupts-extended");
        domain.add_property(words("msi-parent", &[parent]));
    }
    let machine_level = reg(0x2400_0000, 0x2000);
    for (name, phandle, registers, interrupt, guest_bits) in [
        (SUPERVISORS_FILES, IMSICS[0], registers, 9, 2),
        ("interrupt-controller@24000000", IMSICS[1], machine_level, 11, 0),
    ] {
        let targets: Vec<u32> = (0..2).flat_map(|hart| [PHANDLES + hart, interrupt]).collect();
        let either = DeviceTreeProperty::new("compatible", b"qemu,imsics\0riscv,imsics\0".to_vec()).unwrap();
        soc.add_child(node(
            name,
            vec![
                either,
                registers,
                words("phandle", &[phandle]),
                words("riscv,num-ids", &[255]),
                words("riscv,guest-index-bits", &[guest_bits]),
                words("interrupts-extended", &targets),
            ],
        ));
    }
    tree
}

fn with_imsics() -> DeviceTree {
    with_imsics_at(reg(0x2800_0000, 0x8000))
}

/// The supervisors' files of [`with_imsics`], changed.
fn with_files(change: impl FnOnce(&mut DeviceTreeNode)) -> DeviceTree {
    let mut tree = with_imsics();
    change(tree.root.child_mut("soc").unwrap().child_mut(SUPERVISORS_FILES).unwrap());
    tree
}

/// What lies behind the room that the device tree tells of is the next hart's own file, which no guest may write to.
#[test]
fn there_is_room_for_as_many_files_of_guests_as_the_tree_says() {
    let room = |tree: &DeviceTree| match read(tree).unwrap().irqchip {
        Some(BoardIrqchip::Imsic { guest_files, .. }) => guest_files,
        other => panic!("{other:?}"),
    };
    assert_eq!(room(&with_imsics()), 3);
    let close = with_files(|files| drop(files.remove_property("riscv,guest-index-bits")));
    assert_eq!(room(&close), 0);
}

/// All of them are cleared between two lives of a guest, and no others, which a hart need not have.
#[test]
fn files_of_guests_have_as_many_identities_as_the_tree_says() {
    let identities = |tree: &DeviceTree| match read(tree).unwrap().irqchip {
        Some(BoardIrqchip::Imsic { identities, guest_identities, .. }) => (identities, guest_identities),
        other => panic!("{other:?}"),
    };
    assert_eq!(identities(&with_imsics()), (255, 255), "as many as the supervisor's");
    for (told, expected) in [(511, 511), (63, 63), (31, 255), (4095, 255)] {
        let tree = with_files(|files| files.add_property(words("riscv,num-guest-ids", &[told])));
        assert_eq!(identities(&tree), (255, expected), "{told}");
    }
}

/// Hart indices and places of messages.
fn message_targets(board: &Board) -> Vec<(Option<u32>, Option<u64>)> {
    board.harts.iter().map(|hart| (hart.irq_target, hart.messages.map(u64::from))).collect()
}

#[test]
fn an_aplic_that_sends_messages_is_taken_with_the_supervisors_imsics() {
    let mut board = read(&with_imsics()).unwrap();
    let imsic = BoardIrqchip::Imsic {
        base: 0x0d00_0000,
        sources: 96,
        identities: 255,
        guest_files: 3,
        guest_identities: 255,
    };
    assert_eq!((board.irqchip, board.uart), (Some(imsic), FIRST_PORT));
    assert_eq!(
        message_targets(&board),
        [(Some(0), Some(0x2800_0000)), (Some(1), Some(0x2800_4000))],
        "a file of the supervisor is followed by those of three guests"
    );

    board.disregard_irqchip();
    assert!(board.irqchip.is_none());
    assert_eq!(message_targets(&board), [(None, None); 2]);
}

/// The index is that of the address, whatever the order is in which harts are named (AIA, section 4.9.1).
#[test]
fn an_imsic_is_known_by_its_address() {
    let swapped = with_files(|files| {
        files.add_property(words("interrupts-extended", &[PHANDLES + 1, 9, PHANDLES, 9]));
    });
    let board = read(&swapped).unwrap();
    assert_eq!(message_targets(&board), [(Some(1), Some(0x2800_4000)), (Some(0), Some(0x2800_0000))]);

    // In two groups, as QEMU has sockets: a range for each.
    let ranges = [0, 0x2800_0000, 0, 0x4000, 0, 0x2900_0000, 0, 0x4000];
    let mut tree = with_imsics_at(words("reg", &ranges));
    let files = tree.root.child_mut("soc").unwrap().child_mut(SUPERVISORS_FILES).unwrap();
    files.add_property(words("riscv,hart-index-bits", &[2]));
    files.add_property(words("riscv,group-index-bits", &[1]));
    files.add_property(words("riscv,group-index-shift", &[24]));
    let board = read(&tree).unwrap();
    assert_eq!(message_targets(&board), [(Some(0), Some(0x2800_0000)), (Some(4), Some(0x2900_0000))]);
}

#[test]
fn an_aplic_whose_messages_have_no_place_is_not_taken() {
    let mut nobody = with_imsics();
    let soc = nobody.root.child_mut("soc").unwrap();
    soc.child_mut(SUPERVISORS).unwrap().add_property(words("msi-parent", &[7]));
    for (why, tree) in [
        ("there is no such parent", nobody),
        ("it is switched off", with_files(|files| files.add_property(text("status", "disabled")))),
        ("it is no IMSIC", with_files(|files| files.add_property(text("compatible", "arm,gic-v3-its")))),
        ("it has too few identities", with_files(|files| files.add_property(words("riscv,num-ids", &[31])))),
        ("it has too many", with_files(|files| files.add_property(words("riscv,num-ids", &[4095])))),
        ("a hart's file isn't told", with_imsics_at(reg(0x2800_0000, 0x4000))),
        (
            "files are larger than addresses",
            with_files(|files| files.add_property(words("riscv,guest-index-bits", &[60]))),
        ),
    ] {
        let board = read(&tree).unwrap();
        assert!(board.irqchip.is_none(), "{why}: {:?}", board.irqchip);
        assert_eq!(message_targets(&board), [(None, None); 2], "{why}");
    }
}

#[test]
fn an_aplic_is_told_when_a_device_asks() {
    for (cell, trigger) in
        [(1, Trigger::EdgeRising), (2, Trigger::EdgeFalling), (4, Trigger::LevelHigh), (8, Trigger::LevelLow)]
    {
        let mut tree = with_aplic();
        let device = tree.root.child_mut("soc").unwrap().child_mut("rtc@101000").unwrap();
        device.add_property(words("interrupts", &[11, cell, 20, 4]));
        let (board, bytes) = (read(&tree).unwrap(), tree.to_dtb());
        let rtc = board.device(Fdt::new(&bytes).unwrap(), "/soc/rtc@101000").unwrap();
        assert_eq!(rtc.interrupts, [Interrupt { source: 11, trigger }, high(20)]);
    }
}

proptest! {
    /// A source gets through a threshold if its level is above it, whichever numbers stand for both (AIA, section 4.8.1.3; PLIC, "Priority Thresholds").
    #[test]
    fn numbers_of_levels_mean_the_same_in_any_controller(level in 1u32..=7, threshold in 0u32..=7) {
        let aplic = BoardIrqchip::Aplic { base: 0, sources: 1 };
        let (priority, ithreshold) = (aplic_number(level), aplic.threshold(threshold));
        prop_assert!((1..=7).contains(&priority), "an APLIC's priority isn't 0");
        prop_assert!(ithreshold <= 7, "three bits");
        prop_assert_eq!(ithreshold == 0 || priority < ithreshold, level > threshold);
        prop_assert_eq!((aplic_number(priority), aplic.level(ithreshold)), (level, threshold));
        let plic = BoardIrqchip::Plic { base: 0, sources: 1 };
        prop_assert_eq!((plic.threshold(threshold), plic.level(threshold)), (threshold, threshold));
    }

    /// So it is with the identities of IMSICs (AIA, section 3.8.2), of which each level has some of its own. What cores send to each other gets through any
    /// threshold.
    #[test]
    fn identities_of_levels_are_told_apart_by_thresholds(
        identities in 63u32..=2047,
        level in 1u32..=7,
        threshold in 0u32..=7,
    ) {
        let imsic = BoardIrqchip::Imsic {
            base: 0,
            sources: 1,
            identities,
            guest_files: 0,
            guest_identities: identities,
        };
        let eithreshold = imsic.threshold(threshold);
        prop_assert_eq!(imsic.level(eithreshold), threshold);
        let gets_through = |identity| eithreshold == 0 || identity < eithreshold;
        prop_assert!(gets_through(IPI_IDENTITY));
        let own = identities_of(level, identities);
        prop_assert!(own.len() >= 8 && own.end <= identities + 1 && !own.contains(&IPI_IDENTITY));
        for identity in own {
            prop_assert_eq!(gets_through(identity), level > threshold);
            let of_others = (1..=7).filter(|other| identities_of(*other, identities).contains(&identity));
            prop_assert_eq!(of_others.count(), 1);
        }
    }
}
