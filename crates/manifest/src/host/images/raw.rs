//! Programs without any format: the file is what memory shall hold.
use super::{DEFAULT_LOAD_ADDRESS, Places, Problem, Program, Segment};

/// One segment, entered at its first byte unless the manifest says otherwise.
pub fn read(file: &[u8], places: Places) -> Result<Program<'_>, Problem> {
    if file.is_empty() {
        return Err(Problem::new("is empty", "give the program as a flat binary"));
    }
    if file.starts_with(b"\x7fELF") {
        return Err(Problem::new(
            "is an ELF file, not a flat binary",
            "set kind = \"elf\", or make one with `objcopy -O binary`",
        ));
    }
    let address = places.load.unwrap_or(DEFAULT_LOAD_ADDRESS);
    let segment = Segment { address, bytes: file.into(), memory: file.len() as u64 };
    Ok(Program { entry: places.entry.unwrap_or(address), segments: vec![segment] })
}
