//! The hypervisor's ELF file, flattened to the bytes that stand in memory.
use crate::checkout;
use ainori_limits::Room;
use ainori_manifest::{Needs, blob::PAGE};
use elf::{
    ElfBytes,
    abi::{PT_LOAD, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_NOBITS},
    endian::LittleEndian,
    segment::ProgramHeader,
};
use miette::{Result, WrapErr, miette};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The symbol behind the last byte of the hypervisor's memory image, bss included.
const IMAGE_END: &str = "__image_end";
/// The symbols that say what it has room for.
const ROOM: [&str; 3] = ["__room_harts", "__room_vcpus", "__room_guest_vcpus"];
/// The symbol of one whose guests can have shadow tables.
const SHADOW: &str = "__has_shadow";
/// The symbol of one that is for harts without the H extension, and for no others.
const WITHOUT_H: &str = "__for_harts_without_h";
/// The symbol of one that is for harts without the Sstc extension, and for no others.
const WITHOUT_SSTC: &str = "__for_harts_without_sstc";
/// The symbol of one that drives more kinds of serial ports.
const MORE_UARTS: &str = "__has_more_uarts";
/// The symbol of one whose guests can have watchdogs.
const WATCHDOGS: &str = "__has_watchdogs";
/// What is said of one without [`SHADOW`] to a system that needs it. It doesn't say which of the three the system has: it may be several, each of another guest.
const LACKS_MEMORY_MODES: &str = "isn't built for shadow tables, memory at places or guests without protection; a guest of the system has one of these \
     (`translation`, `memory_at`)";
/// How the names of sections begin that only boot needs.
const BOOT: &str = ".boot.";
/// Longest image that is taken for a hypervisor's: guards against an ELF file with segments far apart.
const MAX_LEN: u64 = 64 << 20;

/// The hypervisor as it stands in memory before its first instruction.
#[derive(Debug)]
pub struct Kernel {
    /// All segments at their distance from the first, with bss as zeros, up to `__image_end`.
    pub bytes: Vec<u8>,
    /// Sizes of the sections.
    pub sections: Sections,
    /// What its build has.
    pub has: Needs,
}

/// Sizes of the hypervisor's sections in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Sections {
    /// Code that stays after boot.
    pub text: u64,
    /// Constants that stay after boot.
    pub rodata: u64,
    /// Code and constants that only boot needs: their memory is cleared then.
    pub boot: u64,
    /// Variables with a value at the start.
    pub data: u64,
    /// Variables that start as zero, and stacks.
    pub bss: u64,
}

/// A build of the hypervisor in the checkout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Build {
    /// Where it is, below the checkout.
    pub file: String,
    /// What makes it there.
    pub command: String,
}

impl Build {
    /// The smallest that has all of that.
    pub fn for_needs(needs: Needs) -> Self {
        let Needs { room, memory_modes, without_h, without_sstc, more_uarts, watchdogs } = needs;
        // In the order in which tools/build-kernel takes them. All guests have shadow tables where there is no H.
        let features = [
            ("large", !Room::USUAL.holds(room)),
            ("shadow", memory_modes && !without_h),
            ("no-h", without_h),
            ("sbi-timer", without_sstc),
            ("uarts", more_uarts),
            // Where guests can have shadow tables, they can have watchdogs anyhow.
            ("watchdog", watchdogs && !memory_modes && !without_h),
        ];
        let with = |before: &str| -> String {
            let named = features.iter().filter(|(_, is_needed)| *is_needed);
            named.map(|(feature, _)| format!("{before}{feature}")).collect()
        };
        let command = match with(" --") {
            none if none.is_empty() => "make build".into(),
            options => format!("tools/build-kernel{options}"),
        };
        Self { file: format!(".cache/kernel/ainori{}.elf", with("-")), command }
    }
}

impl Kernel {
    /// Where firmware on RISC-V boards starts the next stage: 2 MiB behind the start of memory.
    pub const LOAD_ADDRESS: u64 = 0x8020_0000;

    /// Where [`Self::load`] loads it from.
    pub fn path(path: Option<&Path>, needs: Needs) -> Result<PathBuf> {
        let Build { file, command } = Build::for_needs(needs);
        match path {
            Some(path) => Ok(path.to_owned()),
            None => {
                checkout::find(&file, "the hypervisor", &format!("run `{command}`, or give --kernel FILE"))
            }
        }
    }

    /// Loads the hypervisor from `path`, or the checkout's own that has what a system `needs`.
    pub fn load(path: Option<&Path>, needs: Needs) -> Result<Self> {
        let path = Self::path(path, needs)?;
        let kernel = Self::from_elf(&checkout::read(&path)?)
            .wrap_err_with(|| format!("{} is not a hypervisor that can be used", path.display()))?;
        let Needs { room, memory_modes, without_h, without_sstc, more_uarts, watchdogs } = kernel.has;
        let refuse = |kind: &str, why: String| {
            let Build { command, .. } = Build::for_needs(needs);
            let help =
                format!("build the {kind} one with `{command}`; then leave --kernel and AINORI_KERNEL out");
            Err(miette!(help = help, "{} {why}", path.display()))
        };
        // Before all else: whatever else it has, it wouldn't run there.
        let kinds = [
            (needs.without_h, without_h, "the H extension"),
            (needs.without_sstc, without_sstc, "the Sstc extension"),
        ];
        for (needed, is, what) in kinds {
            let [build_for, have] = match (needed, is) {
                (true, false) => ["with", "lack"],
                (false, true) => ["without", "have"],
                (true, true) | (false, false) => continue,
            };
            let why =
                format!("is for harts {build_for} {what}; the board's harts {have} it (`cpu` in [board])");
            return refuse("right", why);
        }
        if !room.holds(needs.room) {
            let words = |room: Room| {
                format!("{} harts, {} vCPUs, and {} of one guest", room.harts, room.vcpus, room.guest_vcpus)
            };
            let why = format!("has room for {}; the system has {}", words(room), words(needs.room));
            return refuse("large", why);
        }
        if needs.memory_modes && !memory_modes {
            return refuse("right", LACKS_MEMORY_MODES.into());
        }
        if needs.more_uarts && !more_uarts {
            let why = "doesn't drive the serial port of this board (`machine` in [board])";
            return refuse("right", why.into());
        }
        if needs.watchdogs && !watchdogs {
            return refuse(
                "right",
                "isn't built for watchdogs; a guest of the system has one (`watchdog`)".into(),
            );
        }
        Ok(kernel)
    }

    /// Flattens an ELF file.
    pub fn from_elf(bytes: &[u8]) -> Result<Self> {
        let damaged = |error: elf::ParseError| miette!("damaged ELF file: {error}");
        let file = ElfBytes::<LittleEndian>::minimal_parse(bytes).map_err(damaged)?;
        let segments: Vec<ProgramHeader> = file
            .segments()
            .into_iter()
            .flatten()
            .filter(|segment| segment.p_type == PT_LOAD && segment.p_memsz != 0)
            .collect();
        let first = segments
            .iter()
            .min_by_key(|segment| segment.p_paddr)
            .ok_or_else(|| miette!("the ELF file has nothing to load"))?;
        if first.p_paddr != Self::LOAD_ADDRESS {
            return Err(miette!("it is linked at {:#x}, not at {:#x}", first.p_paddr, Self::LOAD_ADDRESS));
        }

        let len = symbol(&file, IMAGE_END)?
            .checked_sub(first.p_vaddr)
            .filter(|len| *len <= MAX_LEN && *len % PAGE as u64 == 0)
            .ok_or_else(|| miette!("the symbol {IMAGE_END} is not on a page boundary behind the image"))?;
        let mut flat = vec![0; usize::try_from(len).expect("at most MAX_LEN")];
        for segment in &segments {
            let data = file.segment_data(segment).map_err(damaged)?;
            let offset = usize::try_from(segment.p_paddr - first.p_paddr).ok();
            let target = offset.and_then(|offset| flat.get_mut(offset..offset.checked_add(data.len())?));
            let target = target
                .ok_or_else(|| miette!("the segment at {:#x} lies behind {IMAGE_END}", segment.p_paddr))?;
            target.copy_from_slice(data);
        }
        if flat.get(56..60) != Some(b"RSC\x05") {
            return Err(miette!("it doesn't start with the header of a RISC-V Image"));
        }
        let [harts, vcpus, guest_vcpus] = ROOM.map(|name| symbol(&file, name).ok());
        let number =
            |value: Option<u64>, usual| value.and_then(|value| usize::try_from(value).ok()).unwrap_or(usual);
        // One that doesn't say so is of a time when there was only the usual build.
        let room = Room {
            harts: number(harts, Room::USUAL.harts),
            vcpus: number(vcpus, Room::USUAL.vcpus),
            guest_vcpus: number(guest_vcpus, Room::USUAL.guest_vcpus),
        };
        let [memory_modes, without_h, without_sstc, more_uarts, watchdogs] =
            [SHADOW, WITHOUT_H, WITHOUT_SSTC, MORE_UARTS, WATCHDOGS].map(|name| symbol(&file, name).is_ok());
        let has = Needs { room, memory_modes, without_h, without_sstc, more_uarts, watchdogs };
        Ok(Self { bytes: flat, sections: sections(&file)?, has })
    }
}

fn symbol(file: &ElfBytes<'_, LittleEndian>, name: &str) -> Result<u64> {
    let table = file.symbol_table().map_err(|error| miette!("damaged symbol table: {error}"))?;
    table
        .and_then(|(symbols, names)| {
            symbols
                .iter()
                .find(|symbol| names.get(symbol.st_name as usize).is_ok_and(|found| found == name))
                .map(|symbol| symbol.st_value)
        })
        .ok_or_else(|| miette!("it has no symbol {name}"))
}

fn sections(file: &ElfBytes<'_, LittleEndian>) -> Result<Sections> {
    let mut sizes = Sections::default();
    let (headers, names) =
        file.section_headers_with_strtab().map_err(|error| miette!("damaged section table: {error}"))?;
    let headers = headers.ok_or_else(|| miette!("it has no section table"))?;
    for section in headers.iter().filter(|section| section.sh_flags & u64::from(SHF_ALLOC) != 0) {
        let has = |flag: u32| section.sh_flags & u64::from(flag) != 0;
        let name = names.and_then(|names| names.get(section.sh_name as usize).ok());
        let size = match () {
            () if section.sh_type == SHT_NOBITS => &mut sizes.bss,
            () if name.is_some_and(|name| name.starts_with(BOOT)) => &mut sizes.boot,
            () if has(SHF_EXECINSTR) => &mut sizes.text,
            () if !has(SHF_WRITE) => &mut sizes.rodata,
            () => &mut sizes.data,
        };
        *size += section.sh_size;
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a system needs, and the build that it gets.
    #[test]
    fn each_system_has_its_build() {
        for (room, [memory_modes, without_h, without_sstc, more_uarts, watchdogs], file) in [
            (Room::USUAL, [false; 5], "ainori"),
            (Room::USUAL, [true, false, false, false, false], "ainori-shadow"),
            (Room::USUAL, [true, true, false, false, false], "ainori-no-h"),
            (Room::USUAL, [false, false, true, false, false], "ainori-sbi-timer"),
            (Room::USUAL, [true, true, true, true, false], "ainori-no-h-sbi-timer-uarts"),
            (Room::LARGE, [false; 5], "ainori-large"),
            (Room::LARGE, [true, false, false, false, false], "ainori-large-shadow"),
            (Room::LARGE, [true, true, false, false, false], "ainori-large-no-h"),
            (Room::LARGE, [true, false, true, false, false], "ainori-large-shadow-sbi-timer"),
            (Room::LARGE, [false, false, false, true, false], "ainori-large-uarts"),
            (Room::USUAL, [false, false, false, false, true], "ainori-watchdog"),
            (Room::USUAL, [true, false, false, false, true], "ainori-shadow"),
            (Room::USUAL, [true, true, false, false, true], "ainori-no-h"),
            (Room::LARGE, [false, false, true, false, true], "ainori-large-sbi-timer-watchdog"),
        ] {
            let needs = Needs { room, memory_modes, without_h, without_sstc, more_uarts, watchdogs };
            let build = Build::for_needs(needs);
            assert_eq!(build.file, format!(".cache/kernel/{file}.elf"));
            // The options of tools/build-kernel are the parts of the name.
            let options =
                file.trim_start_matches("ainori").replace("no-h", "no_h").replace("sbi-timer", "sbi_timer");
            let options = options.replace('-', " --").replace('_', "-");
            let made = build.command == format!("tools/build-kernel{options}");
            assert!(made || (options.is_empty() && build.command == "make build"), "{}", build.command);
        }
    }
}
