//! Programs without any format: the file is what memory shall hold.
use super::{Places, Problem, Program, Segment};

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
    if is_text(file) {
        return Err(Problem::new("is a text, not a program", "give the program as a flat binary"));
    }
    let address = places.load.unwrap_or_else(|| places.usual_load_address());
    let segment = Segment { address, bytes: file.into(), memory: file.len() as u64 };
    Ok(Program { entry: places.entry.unwrap_or(address), segments: vec![segment] })
}

/// Nothing but characters that people read. A program has zeros or other control characters in nearly each of its instructions.
fn is_text(file: &[u8]) -> bool {
    let readable = |c: char| !c.is_control() || c.is_whitespace();
    str::from_utf8(file).is_ok_and(|text| text.chars().all(readable))
}
