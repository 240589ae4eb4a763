//! Manifests on the host: read, checked, ready to be built into an image.
mod boards;
mod cpus;
pub mod files;
mod findings;
mod images;
mod reader;
mod rules;
mod schema;
mod tasks;
mod units;
mod virtio;

pub use findings::{Finding, Findings, Place, Span};
pub use images::{Places, Problem, Program};
pub use rules::{DEFAULT_TRACE_RECORDS, MAX_TRACE_RECORDS};
pub use tasks::Task;
pub use units::show_size;
pub use virtio::{Disk, Forward, Network, PowerButton};

use crate::blob::Space;
use crate::config::{System, Trace, Translation};
use ainori_limits::Room;
use schema::Draft;
use serde::Serialize;
use std::{
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

/// Longest manifest in bytes: many times what the largest possible system needs.
const MAX_TEXT: u64 = 1 << 20;
/// Longest line of a manifest in bytes: far more than one can read. What is shown of a line with an error has no room for columns beyond 2^16.
const MAX_LINE: usize = 1 << 14;

/// A manifest that keeps all rules.
#[derive(Debug, Clone, Serialize)]
pub struct Manifest {
    /// The system. Its payloads have their lengths, but no offsets yet: [`crate::blob::encode`] places them.
    pub system: System,
    /// The board that the system is for.
    pub board: Board,
    /// Each guest's files, in the order of the guests.
    pub files: Vec<GuestPaths>,
    /// How each guest's addresses are translated, in the order of the guests.
    pub translations: Vec<Translation>,
    /// Each guest's tasks, in the order of the guests, as far as they are declared. The hypervisor doesn't know them: they are for the analysis of deadlines.
    pub tasks: Vec<Vec<Task>>,
    /// Guests' disks, in the order of the manifest. To the hypervisor they are devices of the board that guests own.
    pub disks: Vec<Disk>,
    /// Guests' networks, in the order of the manifest; as above.
    pub networks: Vec<Network>,
    /// The guest that is asked to shut down before the run is ended early; as above.
    pub power: Option<PowerButton>,
    /// How `ainori run` runs it unless its arguments say otherwise.
    pub run: RunSettings,
    /// What keeps all rules, and is hardly meant so.
    #[serde(skip)]
    pub warnings: Option<Box<Findings>>,
}

/// What a system needs of the hypervisor's build, or what a build has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// For how much there is room.
    pub room: Room,
    /// Guests can have shadow tables, memory at places that the manifest gives, or no protection.
    pub memory_modes: bool,
    /// It is for harts without the H extension, on which all guests have shadow tables. No build is for both kinds of harts.
    pub without_h: bool,
    /// It is for harts without Sstc, whose timer the firmware sets. No build is for both kinds of harts.
    pub without_sstc: bool,
    /// It drives more kinds of serial ports.
    pub more_uarts: bool,
    /// Guests can have watchdogs.
    pub watchdogs: bool,
}

impl Manifest {
    /// What it needs of the hypervisor's build.
    #[must_use]
    pub fn needs(&self) -> Needs {
        let vcpus = || self.system.guests.iter().map(|guest| guest.vcpus.len());
        let room = Room {
            harts: self.board.harts as usize,
            vcpus: vcpus().sum(),
            guest_vcpus: vcpus().max().unwrap_or_default(),
        };
        // Places and guests without protection come with them.
        let memory_modes = self.spaces().iter().any(|space| *space != Space::default());
        Needs {
            room,
            memory_modes,
            without_h: !self.board.has_h(),
            without_sstc: !self.board.has_sstc(),
            more_uarts: boards::kind_of(&self.board.machine).is_some_and(|kind| kind.has_other_uart),
            watchdogs: self.system.guests.iter().any(|guest| guest.watchdog_us != 0),
        }
    }
}

/// `[run]` of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct RunSettings {
    /// What time is measured in.
    pub clock: Clock,
    /// Most time of the host that a run may take.
    pub time_limit: Option<Duration>,
}

/// What time is measured in when a system runs on an emulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The host's time: for watching and typing; delays and speeds mean nothing.
    #[default]
    Host,
    /// Instructions of the only hart.
    Icount,
    /// Virtual time in which several harts go on in parallel.
    Lockstep,
}

/// Kinds of interrupt controllers that a board can be built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interrupts {
    /// A PLIC.
    #[default]
    Plic,
    /// An APLIC that interrupts harts itself (AIA).
    Aplic,
    /// An APLIC that sends messages to an IMSIC of each hart (AIA).
    Imsic,
}

/// The board of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Board {
    /// Kind of board, e.g. `qemu-virt`.
    pub machine: String,
    /// CPU model with its properties as QEMU takes it, e.g. `rv64,v=true`.
    pub cpu: String,
    /// Number of harts. Which, [`Self::hart_ids`] says.
    pub harts: u32,
    /// Main memory in bytes.
    pub memory: u64,
    /// Its interrupt controller.
    pub interrupts: Interrupts,
}

impl Board {
    /// The ids of its harts: from 0, unless there are others ahead of them that have no supervisor mode.
    #[must_use]
    pub fn hart_ids(&self) -> Range<u32> {
        let first = boards::kind_of(&self.machine).map_or(0, |kind| kind.first_hart);
        first..first + self.harts
    }

    /// Have its harts the H extension?
    #[must_use]
    pub fn has_h(&self) -> bool {
        has_h(&self.cpu)
    }

    /// Have its harts the Sstc extension, timers of their own?
    #[must_use]
    pub fn has_sstc(&self) -> bool {
        has_sstc(&self.cpu)
    }
}

/// Have harts of this model the Sstc extension, as `cpu` in `[board]` names it? One that isn't known, which no manifest can have, is taken to have it.
#[must_use]
pub fn has_sstc(cpu: &str) -> bool {
    cpus::has(cpu, "sstc").unwrap_or(true)
}

/// Have harts of this model the H extension, as `cpu` in `[board]` names it? One that isn't known, which no manifest can have, is taken to have it.
#[must_use]
pub fn has_h(cpu: &str) -> bool {
    cpus::has(cpu, "h").unwrap_or(true)
}

/// Where a guest's files are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuestPaths {
    /// The guest's program.
    #[serde(serialize_with = "files::serialize_path")]
    pub image: PathBuf,
    /// Initial RAM disk.
    #[serde(serialize_with = "serialize_path_or_none")]
    pub initrd: Option<PathBuf>,
    /// Where the program goes, as far as the manifest says so.
    pub places: Places,
    /// Files that are loaded beside the program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<Load>,
}

/// A file that lies in a guest's memory when it starts, as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Load {
    /// The file.
    #[serde(serialize_with = "files::serialize_path")]
    pub file: PathBuf,
    /// Guest-physical address of its first byte.
    pub address: u64,
}

impl GuestPaths {
    /// All files, each with what it is.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let loads = self.loads.iter().map(|load| (LOADED, &*load.file));
        let image = std::iter::once((IMAGE, &*self.image));
        image.chain(self.initrd.as_deref().map(|initrd| (INITRD, initrd))).chain(loads)
    }
}

// What files of a guest are, in messages.
const IMAGE: &str = "a guest's image";
const INITRD: &str = "a guest's initrd";
const LOADED: &str = "a file that a guest finds loaded";
// And of what else a manifest names.
const DISK: &str = "a disk";

fn serialize_path_or_none<S: serde::Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.display().to_string()).serialize(serializer)
}

impl Manifest {
    /// Each guest's memory space, in the order of the guests.
    #[must_use]
    pub fn spaces(&self) -> Vec<Space> {
        let places = self.files.iter().map(|files| files.places.memory_at);
        let all = self.translations.iter().zip(places);
        all.map(|(translation, memory_at)| Space { translation: *translation, memory_at }).collect()
    }

    /// A guest's program, from the bytes of its image's file.
    pub fn program<'a>(&self, guest: usize, file: &'a [u8]) -> Result<Program<'a>, Problem> {
        let config = &self.system.guests[guest];
        let initrd_len = config.initrd.map(|initrd| initrd.len);
        images::read(config.kind, file, config.memory, initrd_len, self.files[guest].places)
    }

    /// Puts the bytes of one of a guest's [`loads`](GuestPaths::loads) beside its program.
    pub fn add_load<'a>(
        &self,
        guest: usize,
        load: &Load,
        file: &'a [u8],
        program: &mut Program<'a>,
    ) -> Result<(), Problem> {
        let memory = self.files[guest].places.memory(self.system.guests[guest].memory);
        program.add(load.address, file, memory)
    }

    /// Traces other than the manifest says. The error tells in words why that is not possible.
    pub fn set_trace(&mut self, trace: Trace) -> Result<(), String> {
        if !rules::is_ring_size(trace.records) {
            let records = trace.records;
            return Err(format!(
                "{records} trace records per core is not possible: a power of two up to {MAX_TRACE_RECORDS}"
            ));
        }
        self.system.trace = trace;
        let of_system = rules::memory::of_system;
        let (needed, has) =
            (of_system(&self.system, &self.translations, self.board.harts), self.board.memory);
        if needed > has {
            return Err(format!(
                "with these trace rings the system needs {} MiB, but the board has {} MiB: fewer records, or more memory in \
                 the manifest",
                needed.div_ceil(1 << 20),
                has >> 20
            ));
        }
        Ok(())
    }

    /// Reads and checks a manifest and the guest images that it names. All errors are found at once.
    pub fn load(path: &Path) -> Result<Self, Box<Findings>> {
        let file = path.display().to_string();
        let unreadable = |why: String| {
            let with_extension = path.with_extension("toml");
            let help = match !path.exists() && with_extension.is_file() {
                true => format!("did you mean {}?", with_extension.display()),
                false => "give the path of a TOML file; this project's own are in systems/".into(),
            };
            let finding = Finding::of_file(format!("the manifest {file} can't be read: {why}")).help(help);
            Box::new(Findings::unread(&file, finding))
        };
        let bytes = files::read(path, MAX_TEXT).map_err(|error| unreadable(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..good].iter().filter(|byte| **byte == b'\n').count() + 1;
            unreadable(format!("line {line} is not UTF-8"))
        })?;
        let name = path.file_stem().map_or_else(|| "system".into(), |stem| stem.to_string_lossy());
        Self::parse(&file, &text, path.parent().unwrap_or(Path::new(".")), &name)
    }

    /// What a command reads that loads this manifest: the manifest itself, and the files that it names, each with what it is. As far as they
    /// can be known: a manifest may be wrong, and what it names missing.
    pub fn files(path: &Path) -> Vec<(&'static str, PathBuf)> {
        let mut all = vec![("the manifest", path.to_owned())];
        let text = files::read(path, MAX_TEXT).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        if let Some(text) = text.filter(|text| too_long(text).is_none()) {
            let folder = path.parent().unwrap_or(Path::new("."));
            let draft = Draft::read(&text, &mut Vec::new());
            for file in draft.disks.into_iter().filter_map(|disk| disk.file) {
                all.push((DISK, folder.join(file.value)));
            }
            for guest in draft.guests {
                let named = [(IMAGE, guest.image), (INITRD, guest.initrd)].into_iter();
                let named = named.chain(guest.loads.into_iter().map(|load| (LOADED, load.file)));
                all.extend(named.filter_map(|(what, name)| Some((what, folder.join(name?.value)))));
            }
        }
        all
    }

    /// Checks the text of a manifest. `file` names it in messages, paths in it are relative to `directory`, and
    /// `name` is the system's if the text gives none.
    pub fn parse(file: &str, text: &str, directory: &Path, name: &str) -> Result<Self, Box<Findings>> {
        if let Some((length, number)) = too_long(text) {
            let finding =
                Finding::of_file(format!("line {number} of the manifest {file} has {length} bytes"))
                    .help(format!("at most {MAX_LINE}"));
            return Err(Box::new(Findings::new(file, "", vec![finding])));
        }
        let mut findings = Vec::new();
        let draft = Draft::read(text, &mut findings);
        match rules::check(&draft, directory, name, &mut findings) {
            Some(mut manifest) if findings.iter().all(|finding| finding.is_warning) => {
                let drafts = draft.guests.iter().flat_map(|guest| &guest.tasks);
                for (task, draft) in manifest.tasks.iter_mut().flatten().zip(drafts) {
                    task.line = text[..draft.span.start].matches('\n').count() + 1;
                }
                if !findings.is_empty() {
                    manifest.warnings = Some(Box::new(Findings::new(file, text, findings)));
                }
                Ok(manifest)
            }
            _ => {
                assert!(!findings.is_empty(), "a manifest without findings is complete");
                Err(Box::new(Findings::new(file, text, findings)))
            }
        }
    }
}

/// Length and number of the first line that is longer than a line may be.
fn too_long(text: &str) -> Option<(usize, usize)> {
    text.lines().map(str::len).zip(1..).find(|(length, _)| *length > MAX_LINE)
}

#[cfg(test)]
mod tests;
