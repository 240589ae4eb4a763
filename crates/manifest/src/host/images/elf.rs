//! Statically linked ELF files for riscv64: at fixed addresses, or position-independent.
use super::relocations;
use super::{Places, Problem, Program, Segment, linux};
use elf::{
    ElfBytes,
    abi::{DT_NEEDED, EM_RISCV, ET_DYN, ET_EXEC, PF_X, PT_INTERP, PT_LOAD},
    endian::LittleEndian,
    file::Class,
    segment::ProgramHeader,
    to_str::e_machine_to_human_str,
};

/// An ELF file, little-endian as RISC-V is.
pub type File<'a> = ElfBytes<'a, LittleEndian>;

const WANTED: &str = "link it statically for riscv64 (S-mode), e.g. with riscv64-unknown-elf-gcc";

/// Most segments that are loaded. Programs have a handful, and each relocation looks for the one that it is in.
const MAX_SEGMENTS: usize = 64;

/// A file of which the parser says that it makes no sense.
pub fn damaged(error: elf::ParseError) -> Problem {
    Problem::new(format!("is a damaged ELF file ({error})"), "build it again")
}

/// A segment to be loaded, by its header and its place.
struct Loaded {
    header: ProgramHeader,
    address: u64,
}

/// Places the file's segments: at their physical addresses if these lie in the guest's `memory` bytes; those of a position-independent
/// file that is linked elsewhere as `places` says, with its relocations done.
pub fn read(bytes: &[u8], memory: u64, places: Places) -> Result<Program<'_>, Problem> {
    let file = parse(bytes)?;
    let headers: Vec<ProgramHeader> = file.segments().into_iter().flatten().collect();
    refuse_dynamic(&file, &headers)?;
    let loaded: Vec<ProgramHeader> =
        headers.iter().filter(|segment| segment.p_type == PT_LOAD && segment.p_memsz != 0).copied().collect();
    if loaded.is_empty() {
        return Err(Problem::new("has nothing to load", WANTED));
    }
    if loaded.len() > MAX_SEGMENTS {
        return Err(Problem::new(
            format!("has {} segments to load", loaded.len()),
            format!("at most {MAX_SEGMENTS}: correct the linker script"),
        ));
    }
    let bias = bias(&file, &loaded, memory, places)?;
    let loaded: Vec<Loaded> = loaded
        .into_iter()
        .map(|header| Loaded {
            header,
            address: bias.map_or(header.p_paddr, |bias| header.p_vaddr.wrapping_add(bias)),
        })
        .collect();
    let segments = loaded.iter().map(|part| segment(&file, part)).collect::<Result<Vec<_>, _>>()?;
    let entry = match places.entry {
        Some(entry) => entry,
        None => entry(file.ehdr.e_entry, &loaded, bias.unwrap_or(0))?,
    };
    let mut program = Program { entry, segments };
    if let Some(bias) = bias {
        relocations::apply(&file, bias, &mut program)?;
    }
    Ok(program)
}

fn parse(bytes: &[u8]) -> Result<File<'_>, Problem> {
    if !bytes.starts_with(b"\x7fELF") {
        let help = if linux::is_image(bytes) {
            "this is a Linux Image: set kind = \"linux\""
        } else {
            "set kind = \"raw\" if it is a flat binary"
        };
        return Err(Problem::new("is not an ELF file", help));
    }
    // The class and the byte order come before anything that depends on them.
    if bytes.get(5) == Some(&2) {
        return Err(Problem::new("is a big-endian ELF file", WANTED));
    }
    let file = File::minimal_parse(bytes).map_err(damaged)?;
    if file.ehdr.class != Class::ELF64 || file.ehdr.e_machine != EM_RISCV {
        let bits = if file.ehdr.class == Class::ELF64 { 64 } else { 32 };
        let machine = file.ehdr.e_machine;
        let found =
            e_machine_to_human_str(machine).map_or_else(|| format!("machine {machine}"), str::to_owned);
        return Err(Problem::new(format!("is a {bits}-bit ELF file for {found}, not for riscv64"), WANTED));
    }
    if file.ehdr.e_type != ET_EXEC && file.ehdr.e_type != ET_DYN {
        return Err(Problem::new("is not an executable", WANTED));
    }
    Ok(file)
}

/// A guest has no dynamic linker.
fn refuse_dynamic(file: &File<'_>, headers: &[ProgramHeader]) -> Result<(), Problem> {
    let interpreted = headers.iter().any(|header| header.p_type == PT_INTERP);
    let needs = match file.dynamic().map_err(damaged)? {
        Some(table) => table.iter().any(|entry| entry.d_tag == DT_NEEDED),
        None => false,
    };
    if interpreted || needs {
        return Err(Problem::new("is dynamically linked", "link it with -static, or with -static-pie"));
    }
    Ok(())
}

/// By how much the addresses in a position-independent file have to be moved; `None` for a file that stays where it is linked.
fn bias(
    file: &File<'_>,
    loaded: &[ProgramHeader],
    memory: u64,
    places: Places,
) -> Result<Option<u64>, Problem> {
    let memory = places.memory(memory);
    let fits = loaded.iter().all(|segment| memory.contains(&segment.p_paddr));
    match places.load {
        Some(_) if file.ehdr.e_type != ET_DYN => Err(Problem::new(
            "is linked at a fixed address, so it can't be loaded at another",
            "remove `load_address`, or link it with -static-pie",
        )),
        None if file.ehdr.e_type != ET_DYN || fits => Ok(None),
        load => {
            let load = load.unwrap_or_else(|| places.usual_load_address());
            let align = loaded.iter().map(|segment| segment.p_align).max().unwrap_or(1).max(1);
            let first = loaded.iter().map(|segment| segment.p_vaddr).min().unwrap_or(0);
            let bias = load.wrapping_sub(first);
            if bias % align != 0 {
                return Err(Problem::new(
                    format!("can't be loaded at {load:#x}: its segments are aligned to {align:#x}"),
                    "choose another `load_address`",
                ));
            }
            Ok(Some(bias))
        }
    }
}

fn segment<'a>(file: &File<'a>, part: &Loaded) -> Result<Segment<'a>, Problem> {
    let (header, address) = (&part.header, part.address);
    let bytes = file.segment_data(header).map_err(damaged)?;
    if header.p_filesz > header.p_memsz {
        return Err(Problem::new(
            format!("has a segment at {address:#x} with more bytes in the file than in memory"),
            "build it again",
        ));
    }
    Ok(Segment { address, bytes: bytes.into(), memory: header.p_memsz })
}

/// The guest-physical entry. ELF's is a virtual address; as a guest starts without translation, it counts through the segment that
/// it lies in. Some linker scripts give a physical address all the same.
fn entry(entry: u64, loaded: &[Loaded], bias: u64) -> Result<u64, Problem> {
    let code = || loaded.iter().filter(|part| part.header.p_flags & PF_X != 0);
    let inside =
        |start: u64, part: &Loaded| entry.checked_sub(start).filter(|offset| *offset < part.header.p_memsz);
    let virtually =
        code().find_map(|part| Some(part.address.wrapping_add(inside(part.header.p_vaddr, part)?)));
    let physically = || code().any(|part| inside(part.header.p_paddr, part).is_some());
    virtually.or_else(|| physically().then(|| entry.wrapping_add(bias))).ok_or_else(|| {
        Problem::new(
            format!("starts at {entry:#x}, where it has no code"),
            "set ENTRY in the linker script, or the key `entry`, to the address of its first instruction",
        )
    })
}
