//! Relocations of a position-independent file that is loaded elsewhere than it was linked (RISC-V ELF psABI, "Relocations").
//!
//! Many programs do them themselves when they start. Doing those of a table with addends here as well does no harm: each is a store of the same value.
//! The compact table adds to what is there, so the program is told that its table is empty.
use super::elf::{File, damaged};
use super::{Problem, Program};
use elf::abi::{
    DT_JMPREL, DT_PLTRELSZ, DT_RELA, DT_RELASZ, PT_DYNAMIC, R_RISCV_64, R_RISCV_JUMP_SLOT, R_RISCV_NONE,
    R_RISCV_RELATIVE, SHN_ABS, SHN_UNDEF, STB_WEAK,
};

/// Address and size of the compact table (ELF gABI, "Relative Relocation Table"), which the parser has no names for.
const DT_RELRSZ: i64 = 35;
const DT_RELR: i64 = 36;

/// Bytes of an entry of a table with addends.
const RELA_SIZE: u64 = 24;
/// Bytes of an entry of the dynamic section, whose second half is its value.
const DYNAMIC_SIZE: u64 = 16;

/// Moves all addresses in the program's memory by `bias`, by which it is loaded above where it was linked.
pub fn apply(file: &File<'_>, bias: u64, program: &mut Program<'_>) -> Result<(), Problem> {
    let Some(dynamic) = file.dynamic().map_err(damaged)? else { return Ok(()) };
    let entries: Vec<_> = dynamic.iter().map(|entry| (entry.d_tag, entry.d_val())).collect();
    let value = |tag: i64| entries.iter().find(|(found, _)| *found == tag).map_or(0, |(_, value)| *value);
    for (table, size) in [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)] {
        for index in 0..value(size) / RELA_SIZE {
            let at = value(table).wrapping_add(bias).wrapping_add(index * RELA_SIZE);
            let [target, info, addend] = [0, 8, 16].map(|field| load(program, at.wrapping_add(field)));
            let (target, info, addend) = (target?, info?, addend?);
            let moved = match info as u32 {
                R_RISCV_NONE => continue,
                R_RISCV_RELATIVE => bias.wrapping_add(addend),
                R_RISCV_64 | R_RISCV_JUMP_SLOT => symbol(file, info >> 32, bias)?.wrapping_add(addend),
                other => {
                    return Err(Problem::new(
                        format!("needs relocations of type {other}, which take a dynamic linker"),
                        "link it with -static-pie, or at a fixed address",
                    ));
                }
            };
            store(program, target.wrapping_add(bias), moved)?;
        }
    }
    relative(value(DT_RELR).wrapping_add(bias), value(DT_RELRSZ) / 8, bias, program)?;
    let mut headers = file.segments().into_iter().flatten();
    let Some(section) = headers.find(|header| header.p_type == PT_DYNAMIC) else { return Ok(()) };
    let sizes = entries.iter().zip(0..).filter(|((tag, value), _)| *tag == DT_RELRSZ && *value != 0);
    for (_, index) in sizes {
        let entry = section.p_vaddr.wrapping_add(bias).wrapping_add(index * DYNAMIC_SIZE);
        store(program, entry.wrapping_add(DYNAMIC_SIZE / 2), 0)?;
    }
    Ok(())
}

/// The compact table of relative relocations: an address, or with the lowest bit set a map of which of the 63 words behind the last
/// one are meant.
fn relative(table: u64, words: u64, bias: u64, program: &mut Program<'_>) -> Result<(), Problem> {
    let mut next = 0u64;
    for index in 0..words {
        let entry = load(program, table.wrapping_add(index * 8))?;
        if entry & 1 == 0 {
            next = entry.wrapping_add(bias);
            add(program, next, bias)?;
            next = next.wrapping_add(8);
            continue;
        }
        for bit in (1..64).filter(|bit| entry >> bit & 1 != 0) {
            add(program, next.wrapping_add(8 * (bit - 1)), bias)?;
        }
        next = next.wrapping_add(8 * 63);
    }
    Ok(())
}

fn add(program: &mut Program<'_>, at: u64, bias: u64) -> Result<(), Problem> {
    let value = load(program, at)?;
    store(program, at, value.wrapping_add(bias))
}

/// Address of a symbol where it is loaded. One that is weak and not there has the address 0.
fn symbol(file: &File<'_>, index: u64, bias: u64) -> Result<u64, Problem> {
    let undefined = || Problem::new("uses a symbol that it doesn't define", "link it with -static-pie");
    let (symbols, names) = file.dynamic_symbol_table().map_err(damaged)?.ok_or_else(undefined)?;
    let symbol = usize::try_from(index).map_err(|_| undefined())?;
    let symbol = symbols.get(symbol).map_err(damaged)?;
    match symbol.st_shndx {
        SHN_UNDEF if symbol.st_bind() == STB_WEAK => Ok(0),
        SHN_UNDEF => {
            let name = names.get(symbol.st_name as usize).unwrap_or("without a name");
            Err(Problem::new(
                format!("uses the symbol {name}, which it doesn't define"),
                "link it with -static-pie",
            ))
        }
        SHN_ABS => Ok(symbol.st_value),
        _ => Ok(symbol.st_value.wrapping_add(bias)),
    }
}

fn outside(at: u64) -> Problem {
    Problem::new(format!("has a relocation at {at:#x}, which is not in its file"), "build it again")
}

fn load(program: &Program<'_>, at: u64) -> Result<u64, Problem> {
    program.bytes_at(at).first_chunk().map(|bytes| u64::from_le_bytes(*bytes)).ok_or_else(|| outside(at))
}

fn store(program: &mut Program<'_>, at: u64, value: u64) -> Result<(), Problem> {
    let place = program.segments.iter_mut().find_map(|segment| {
        let offset = usize::try_from(at.checked_sub(segment.address)?).ok()?;
        segment.bytes.get(offset..)?.first_chunk::<8>()?;
        segment.bytes.to_mut()[offset..].first_chunk_mut::<8>()
    });
    *place.ok_or_else(|| outside(at))? = value.to_le_bytes();
    Ok(())
}
