//! Addresses in ELF files by name.
use elf::{
    ElfBytes,
    abi::{PT_LOAD, STT_FUNC},
    endian::LittleEndian,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    path::{Path, PathBuf},
};

/// The opcode of AUIPC: the upper bits of an address, relative to the instruction.
const AUIPC: u32 = 0x17;

/// The register that an instruction writes.
fn register(word: u32) -> u32 {
    word >> 7 & 31
}

/// What an AUIPC at `address` computes.
fn pc_relative(address: u64, word: u32) -> u64 {
    address.wrapping_add((word & !0xfff) as i32 as u64)
}

/// Where a jump goes that says so itself (JAL, C.J): calls and tail calls that the linker could shorten.
fn jump_target(address: u64, word: u32) -> Option<u64> {
    // Bits of the instruction: from which one, how many, and where they belong in the offset.
    let gather = |parts: &[(u32, u32, u32)]| {
        parts.iter().fold(0, |offset, (from, count, to)| offset | (word >> from & ((1 << count) - 1)) << to)
    };
    let (offset, bits) = match word {
        _ if word & 0x7f == 0x6f => (gather(&[(31, 1, 20), (21, 10, 1), (20, 1, 11), (12, 8, 12)]), 21),
        _ if word & 0xe003 == 0xa001 => (
            gather(&[
                (12, 1, 11),
                (11, 1, 4),
                (9, 2, 8),
                (8, 1, 10),
                (7, 1, 6),
                (6, 1, 7),
                (3, 3, 1),
                (2, 1, 5),
            ]),
            12,
        ),
        _ => return None,
    };
    Some(address.wrapping_add(((offset << (32 - bits)) as i32 >> (32 - bits)) as u64))
}

/// An ELF file in memory.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Program {
    /// Reads a file.
    pub fn open(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { path: path.to_owned(), bytes }
    }

    /// The address of a symbol.
    pub fn address(&self, name: &str) -> u64 {
        self.symbol(|found, _| found == name)
            .unwrap_or_else(|| panic!("{} has no symbol {name}", self.path.display()))
            .start
    }

    /// The file, byte for byte.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where in the file so many bytes are that are loaded to a symbol's address.
    pub fn place_of(&self, symbol: &str, length: usize) -> Range<usize> {
        let address = self.address(symbol);
        let file = self.file();
        let mut loaded = file.segments().into_iter().flatten().filter(|segment| segment.p_type == PT_LOAD);
        let segment = loaded.find(|segment| {
            (segment.p_vaddr..segment.p_vaddr + segment.p_filesz).contains(&(address + length as u64 - 1))
        });
        let segment = segment.unwrap_or_else(|| panic!("{} loads nothing for {symbol}", self.path.display()));
        let start = (segment.p_offset + (address - segment.p_vaddr)) as usize;
        start..start + length
    }

    /// The name of the function that an instruction belongs to. One in assembly language may have no size: it ends at the next one.
    pub fn function_at(&self, address: u64) -> Option<String> {
        let mut nearest: Option<(Range<u64>, String)> = None;
        self.symbol(|found, range| {
            // Names with $ say what kind of code follows, those with a dot are labels of the compiler.
            let candidate = range.start <= address && !found.is_empty() && !found.starts_with(['$', '.']);
            if candidate && nearest.as_ref().is_none_or(|(best, _)| best.start < range.start) {
                nearest = Some((range, found.to_owned()));
            }
            false
        });
        nearest.filter(|(range, _)| range.is_empty() || range.contains(&address)).map(|(_, name)| name)
    }

    /// Calls from function to function: the names of both. Those through pointers aren't among them.
    pub fn calls(&self) -> BTreeSet<(String, String)> {
        let functions = self.functions();
        let function_at = |address: u64| {
            let (_, (range, name)) = functions.range(..=address).next_back()?;
            range.contains(&address).then_some((range.start, name))
        };
        let mut found = BTreeSet::new();
        let mut upper = None;
        for (address, word) in self.code(".text") {
            let mut target = None;
            match word & 0x7f {
                AUIPC => upper = Some((register(word), pc_relative(address, word))),
                // JALR, the second half of a call
                0x67 => {
                    let base = upper.take().filter(|(register, _)| *register == word >> 15 & 31);
                    target = base.map(|(_, base)| base.wrapping_add((word as i32 >> 20) as u64));
                }
                _ => {
                    upper = None;
                    target = jump_target(address, word);
                }
            }
            if let Some(target) = target
                && let Some((start, callee)) = function_at(target)
                && start == target
                && let Some((_, caller)) = function_at(address)
            {
                found.insert((caller.clone(), callee.clone()));
            }
        }
        found
    }

    /// The instructions in a section whose code refers to something in `range`. AUIPC has only the upper bits of an address, so what is less than 2 KiB
    /// off `range` counts for it, too.
    pub fn code_that_refers_to(&self, section: &str, range: &Range<u64>) -> Vec<u64> {
        let near = range.start - 0x800..range.end + 0x800;
        let refers = |&(at, word): &(u64, u32)| match word & 0x7f {
            AUIPC => near.contains(&pc_relative(at, word)),
            _ => jump_target(at, word).is_some_and(|target| range.contains(&target)),
        };
        self.code(section).filter(refers).map(|(at, _)| at).collect()
    }

    /// The words in a section of data that are addresses in `range`.
    pub fn pointers_to(&self, section: &str, range: &Range<u64>) -> Vec<u64> {
        let Some((bytes, begin)) = self.section(section) else { return Vec::new() };
        let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
        let addresses = words.zip((begin..).step_by(8));
        addresses.filter(|(word, _)| range.contains(word)).map(|(_, address)| address).collect()
    }

    /// The addresses and names of the functions in a section.
    pub fn functions_in(&self, section: &str) -> Vec<(u64, String)> {
        let functions = self.functions();
        let found = functions.range(self.range_of(section));
        found.map(|(start, (_, name))| (*start, name.clone())).collect()
    }

    /// The addresses of a section that has contents.
    pub fn range_of(&self, section: &str) -> Range<u64> {
        let (bytes, begin) = self.section(section).unwrap_or_default();
        begin..begin + bytes.len() as u64
    }

    /// The functions that have a size, by their addresses.
    fn functions(&self) -> BTreeMap<u64, (Range<u64>, String)> {
        let file = self.file();
        let (symbols, names) = file.symbol_table().expect("a readable table").expect("a symbol table");
        let functions = symbols.iter().filter(|symbol| symbol.st_symtype() == STT_FUNC && symbol.st_size > 0);
        functions
            .filter_map(|symbol| {
                let range = symbol.st_value..symbol.st_value + symbol.st_size;
                let name = names.get(symbol.st_name as usize).ok()?;
                Some((range.start, (range, name.to_owned())))
            })
            .collect()
    }

    /// The bytes of a section, and its address.
    fn section(&self, name: &str) -> Option<(&[u8], u64)> {
        let file = self.file();
        let header = file.section_header_by_name(name).expect("readable section names")?;
        let (bytes, _) = file.section_data(&header).expect("the section is in the file");
        Some((bytes, header.sh_addr))
    }

    /// The instructions of a section with their addresses. One of two bytes comes with those behind it.
    fn code(&self, section: &str) -> impl Iterator<Item = (u64, u32)> {
        let found = self.section(section);
        let (code, begin) = found.unwrap_or_else(|| panic!("{} has no {section}", self.path.display()));
        let mut at = 0;
        std::iter::from_fn(move || {
            let word = u32::from_le_bytes(code.get(at..at + 4)?.try_into().expect("4 bytes"));
            let address = begin + at as u64;
            // The lowest two bits say whether an instruction has four bytes or, compressed, two.
            at += if word & 0b11 == 0b11 { 4 } else { 2 };
            Some((address, word))
        })
    }

    /// Addresses of all 4-byte instructions that equal `bits` under `mask`.
    pub fn instructions(&self, mask: u32, bits: u32) -> Vec<u64> {
        let found = self.code(".text").filter(|(_, word)| word & mask == bits);
        found.map(|(address, _)| address).collect()
    }

    /// Is this in what the file loads into memory? What it says for debuggers doesn't count.
    pub fn loads(&self, what: &[u8]) -> bool {
        let file = self.file();
        let segments = file.segments().into_iter().flatten().filter(|segment| segment.p_type == PT_LOAD);
        let contents =
            segments.map(|segment| file.segment_data(&segment).expect("the segment is in the file"));
        let mut contents = contents.peekable();
        assert!(contents.peek().is_some(), "{} loads nothing", self.path.display());
        contents.any(|bytes| bytes.windows(what.len()).any(|window| window == what))
    }

    fn file(&self) -> ElfBytes<'_, LittleEndian> {
        ElfBytes::minimal_parse(&self.bytes)
            .unwrap_or_else(|error| panic!("{}: {error}", self.path.display()))
    }

    fn symbol(&self, mut is_it: impl FnMut(&str, Range<u64>) -> bool) -> Option<Range<u64>> {
        let file = self.file();
        let (symbols, names) = file.symbol_table().ok()??;
        symbols.iter().find_map(|symbol| {
            let range = symbol.st_value..symbol.st_value + symbol.st_size;
            let name = names.get(symbol.st_name as usize).ok()?;
            // Labels and mapping symbols have no size, so no address is within them.
            let wanted = symbol.st_symtype() == STT_FUNC || symbol.st_size == 0;
            (wanted && is_it(name, range.clone())).then_some(range)
        })
    }
}
