//! Harts without H that don't tell address spaces apart (ASIDs of less than 16 bits): they go by a window of their own, which forgets all translations behind each change of tables. QEMU's
//! harts have all 16 bits, and no property for less; so a hypervisor is run whose other window has been overwritten with this one. (QEMU forgets by itself at each change: that no fence is
//! missing is looked for in the code.)
use std::io::Write;

use ainori_tests::{Clock, Guest, System, harts::hypervisor_without_h, symbols::Program};
use tempfile::NamedTempFile;

const TAGGED: &str = "window_tagged";
const UNTAGGED: &str = "window_untagged";
/// Bytes of each, which assembly makes without compressed instructions, and without addresses outside.
const SIZE: usize = 4 * 4096;

/// The instructions of a window.
fn words(program: &Program, window: &str) -> Vec<u32> {
    let bytes = &program.bytes()[program.place_of(window, SIZE)];
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes"))).collect()
}

/// Does it change `satp`? (Those that read a CSR alone are CSRRS and CSRRC with the zero register.)
fn changes_tables(word: u32) -> bool {
    const SATP: u32 = 0x180;
    let (number, function, source) = (word >> 20, word >> 12 & 7, word >> 15 & 31);
    let is_write = matches!(function, 1 | 5) || !matches!(function, 0 | 4) && source != 0;
    word & 0x7f == 0x73 && number == SATP && is_write
}

/// An instruction without the offset of a jump, a branch or an address, and, if it is one, how many instructions are before the one that it leads to.
type Instruction = (u32, Option<usize>);

/// The instructions without those that are `what`, and without the zeros that fill the gaps between parts: what is left is the same wherever in a window it is.
fn without(words: &[u32], what: u32) -> Vec<Instruction> {
    /// Whatever it adds to the upper bits: what is behind the window is as far from the same place in each.
    const AUIPC: u32 = 0x17;
    let is_kept = |word: &u32| *word != what && *word != 0;
    let instruction = |(at, word): (usize, &u32)| {
        let (kept, offset) = match word & 0x7f {
            // JAL
            0x6f => {
                let upper = (*word as i32 >> 31) << 20;
                let offset = word & 0xf_f000 | word >> 9 & 0x800 | word >> 20 & 0x7fe;
                (word & 0xfff, upper | offset as i32)
            }
            // BEQ and its like
            0x63 => {
                let upper = (*word as i32 >> 31) << 12;
                let offset = word << 4 & 0x800 | word >> 20 & 0x7e0 | word >> 7 & 0x1e;
                (word & 0x01ff_f07f, upper | offset as i32)
            }
            // ADDI behind an AUIPC: an address
            0x13 if at > 0
                && words[at - 1] & 0xfff == AUIPC | word >> 15 << 7 & 0xf80
                && word >> 12 & 7 == 0 =>
            {
                (word & 0xf_ffff, (*word as i32 >> 20) - 4)
            }
            _ => return (*word, None),
        };
        let target = usize::try_from(at as i32 + offset / 4).expect("it leads to within the window");
        (kept, Some(words[..target].iter().filter(|word| is_kept(word)).count()))
    };
    words.iter().enumerate().filter(|(_, word)| is_kept(word)).map(instruction).collect()
}

#[test]
fn behind_each_change_of_tables_all_is_forgotten() {
    /// SFENCE.VMA x0, x0.
    const FORGET: u32 = 0x1200_0073;
    let program = Program::open(&hypervisor_without_h());
    let [tagged, untagged] = [TAGGED, UNTAGGED].map(|window| words(&program, window));
    let changes = |words: &[u32]| words.iter().filter(|word| changes_tables(**word)).count();
    assert!(changes(&untagged) > 5, "only {} changes are seen", changes(&untagged));
    assert_eq!(changes(&untagged), changes(&tagged));
    for (at, pair) in untagged.windows(2).enumerate() {
        assert!(!changes_tables(pair[0]) || pair[1] == FORGET, "no fence behind {:#x}", at * 4);
    }
    assert!(!tagged.contains(&FORGET));
    // Nothing else is different.
    let [tagged, untagged] = [tagged, untagged].map(|window| without(&window, FORGET));
    assert!(tagged.len() > 100, "only {} instructions are seen", tagged.len());
    for (at, pair) in tagged.iter().zip(&untagged).enumerate() {
        assert_eq!(pair.0, pair.1, "instruction {at} but for fences");
    }
    assert_eq!(tagged.len(), untagged.len());
}

/// The hypervisor with one window for all harts: that of those without ASIDs.
fn hypervisor() -> NamedTempFile {
    let program = Program::open(&hypervisor_without_h());
    let mut bytes = program.bytes().to_vec();
    let (from, to) = (program.place_of(UNTAGGED, SIZE), program.place_of(TAGGED, SIZE));
    assert_ne!(bytes[from.clone()], bytes[to.clone()]);
    bytes.copy_within(from, to.start);
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(&bytes).expect("it can be written");
    file
}

#[test]
fn guests_do_there_what_they_do_elsewhere() {
    const CLOCK: Clock = Clock::Lockstep { q: 250 };
    let kernel = hypervisor();
    let on = |harts| System::on(harts).cpu("rv64,h=false").kernel(kernel.path());
    for (probe, args) in [("fast", "strict=1 times=8"), ("rows", "times=4000"), ("reach", "strict=1")] {
        let run = on(1).with(Guest::probe(probe, args)).run(Clock::Icount);
        run.good().result(probe);
        if probe == "fast" {
            let fast = run.fast_path(probe);
            // Calls, and most of the returns before them.
            run.check(fast > run.number(probe, "calls") * 3 / 2, format_args!("{fast} by the fast path"));
        }
    }
    let tables = Guest::probe("tables", "n=4000").vcpus(2);
    on(2).with(tables).run(CLOCK).good().result("tables");
    let linux = Guest::linux("hackbench").args("ainori.loops=5").vcpus(2);
    let freertos = Guest::freertos("period_us=1000 periods=200 burn_percent=30 report_ms=0").harts([1]);
    let run = on(2).policy("ainori").with(linux).with(freertos.priority(10)).run(CLOCK);
    run.good();
    run.lost_no_tick("freertos", 200);
}
