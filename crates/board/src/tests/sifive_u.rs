//! QEMU's `sifive_u` (HiFive Unleashed), as OpenSBI hands it over: `sifive_u.dtb` is what is at `a1` behind OpenSBI 1.5 on QEMU 10.0.2 with
//! `-M sifive_u -smp 5 -m 1G -bios default`.
use crate::{Board, BoardIrqchip, BoardUart, Interrupt, Range, Trigger};
use dtoolkit::fdt::Fdt;

const TREE: &[u8] = include_bytes!("sifive_u.dtb");

fn board() -> Board {
    Board::read(Fdt::new(TREE).unwrap()).unwrap()
}

/// Hart 0 has no supervisor mode: the firmware keeps it, and says so.
#[test]
fn its_harts_are_1_to_4_and_each_has_its_own_context() {
    let board = board();
    let harts: Vec<_> = board.harts.iter().map(|hart| (hart.id, hart.irq_target, hart.sswi_index)).collect();
    assert_eq!(harts, [1, 2, 3, 4].map(|id| (id, Some(2 * id as u32), None)));
    assert!(matches!(board.irqchip, Some(BoardIrqchip::Plic { .. })), "{:?}", board.irqchip);
    for (extension, has) in
        [("f", true), ("d", true), ("c", true), ("h", false), ("sstc", false), ("zawrs", false)]
    {
        assert_eq!(board.isa.has(extension), has, "{extension}");
    }
    assert_eq!((board.mmu.as_str(), board.timebase_hz), ("riscv,sv48", 1_000_000));
}

#[test]
fn its_memory_is_whole_but_for_the_firmware() {
    let tree = Fdt::new(TREE).unwrap();
    assert_eq!(Board::memory_of(tree).unwrap().as_slice(), [Range { start: 0x8000_0000, end: 0xc000_0000 }]);
    let reserved = Board::reserved_of(tree).unwrap();
    let firmware = [(0x8000_0000, 0x4_0000), (0x8004_0000, 0x2_0000)]
        .map(|(start, size)| Range { start, end: start + size });
    let is_free = |range: &Range| !reserved.as_slice().iter().any(|other| other.overlaps(*range));
    assert!(!firmware.iter().any(is_free) && is_free(&Range { start: 0x8006_0000, end: 0xbfe0_0000 }));
}

/// SiFive's port is for kernels that drive more than a 16550A.
#[test]
fn its_console_is_sifives() {
    let interrupt = Interrupt { source: 4, trigger: Trigger::LevelHigh };
    #[cfg(feature = "uarts")]
    let expected = Some(BoardUart { base: 0x1001_0000, shift: crate::uarts::SIFIVE, interrupt });
    #[cfg(not(feature = "uarts"))]
    let expected = None::<BoardUart>.filter(|uart| uart.interrupt == interrupt);
    assert_eq!(board().uart, expected);
}
