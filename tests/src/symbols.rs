//! Addresses in ELF files by name.
use elf::{
    ElfBytes,
    abi::{PT_LOAD, STT_FUNC},
    endian::LittleEndian,
};
use std::{
    ops::Range,
    path::{Path, PathBuf},
};

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

    /// The name of the function that an instruction belongs to. One in assembly language may have no size: it ends at the next one.
    pub fn function_at(&self, address: u64) -> Option<String> {
        let mut nearest: Option<(Range<u64>, String)> = None;
        self.symbol(|found, range| {
            // Names with $ say what kind of code follows; they aren't functions.
            let candidate = range.start <= address && !found.is_empty() && !found.starts_with('$');
            if candidate && nearest.as_ref().is_none_or(|(best, _)| best.start < range.start) {
                nearest = Some((range, found.to_owned()));
            }
            false
        });
        nearest.filter(|(range, _)| range.is_empty() || range.contains(&address)).map(|(_, name)| name)
    }

    /// Addresses of all 4-byte instructions that equal `bits` under `mask`.
    pub fn instructions(&self, mask: u32, bits: u32) -> Vec<u64> {
        let file = self.file();
        let header = file.section_header_by_name(".text").expect("readable section names");
        let header = header.unwrap_or_else(|| panic!("{} has no .text", self.path.display()));
        let (code, _) = file.section_data(&header).expect("the section is in the file");
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(word) = code.get(at..at + 4) {
            let word = u32::from_le_bytes(word.try_into().expect("4 bytes"));
            if word & mask == bits {
                found.push(header.sh_addr + at as u64);
            }
            // The lowest two bits say whether an instruction has four bytes or, compressed, two.
            at += if word & 0b11 == 0b11 { 4 } else { 2 };
        }
        found
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
