//! The rules that a manifest must keep, beyond each value's type. Every rule reports into the same list, and goes on.
mod channels;
mod cpu;
mod dma;
mod guest;
mod harts;
mod loads;
pub mod memory;
mod missing;
mod policy;
mod protection;
mod restarts;
mod sharing;
mod tasks;
mod translation;
mod virtio;
mod weights;
mod windows;

use super::{
    Board, Clock, GuestPaths, Manifest, RunSettings, Task,
    boards::{self, BOARDS, BoardKind},
    cpus,
    findings::Finding,
    reader::{At, suggest},
    schema::{BoardDraft, Draft, GuestDraft, RunDraft, TraceDraft},
    units::show_size,
};
use crate::Interrupts;
use crate::config::{Guest, Kind, System, Trace, Translation};
use ainori_trace::{DEFAULT_MASK, Mask};
use std::{ops::Range, path::Path, time::Duration};

/// Records per core when nobody says.
pub const DEFAULT_TRACE_RECORDS: u32 = 65_536;
/// Most records per core: 16 bytes each, so 16 MiB.
pub const MAX_TRACE_RECORDS: u32 = 1 << 20;

/// Most memory of a board in bytes: what is left of the 56 bits of a physical address behind QEMU's devices (privileged specification,
/// "Sv39": a PPN has 44 bits).
const MAX_BOARD_MEMORY: u64 = (1 << 56) - (2 << 30);

/// Longest name of a system in bytes.
const MAX_NAME: usize = 64;

/// What the rules for guests must know of the board, as far as it is known itself.
#[derive(Clone, Copy)]
struct BoardView {
    kind: Option<&'static BoardKind>,
    harts: Option<u32>,
    memory: Option<u64>,
    /// Have its harts the H extension?
    has_h: Option<bool>,
}

impl BoardView {
    /// The ids of its harts, as far as it is known how many it has.
    fn hart_ids(self) -> Option<Range<u32>> {
        let first = self.kind.map_or(0, |kind| kind.first_hart);
        self.harts.map(|harts| first..first + harts)
    }
}

/// Checks everything. `directory` is the manifest's, `fallback_name` the system's name if the manifest has none.
/// Returns a manifest if nothing is missing; it counts only if all findings are warnings.
pub fn check(
    draft: &Draft,
    directory: &Path,
    fallback_name: &str,
    findings: &mut Vec<Finding>,
) -> Option<Manifest> {
    if let Some(name) = &draft.name {
        check_name(name, findings);
    }
    let (view, board) = check_board(&draft.board, findings);
    let preset = policy::check_preset(&draft.policy, findings);
    let policy = policy::check_times(&draft.policy, preset, findings);
    let mut guests: Vec<Option<(Guest, GuestPaths)>> =
        draft.guests.iter().map(|guest| guest::check(guest, view, directory, findings)).collect();
    let tasks: Vec<Option<Vec<Task>>> = draft
        .guests
        .iter()
        .zip(&guests)
        .map(|(draft, guest)| tasks::check(draft, guest.as_ref().map(|(guest, _)| guest), view, findings))
        .collect();
    let translations: Vec<Option<Translation>> =
        draft.guests.iter().map(|guest| translation::check(guest, view, findings)).collect();
    protection::check(draft, &guests, &translations, view, findings);
    let virtio = virtio::check(draft, &mut guests, view, directory, findings);
    dma::check(draft, &guests, &translations, view, findings);
    sharing::check(&draft.guests, &guests, preset, findings);
    let frame_us = policy.as_ref().map(|policy| policy.frame_us).filter(|us| *us != 0);
    let windows = windows::check(draft, &guests, view, (preset, frame_us), findings);
    weights::check(&draft.guests, &guests, preset, policy.as_ref(), findings);
    let channels = channels::check(&draft.channels, &draft.guests, findings);
    let console = check_console(draft, findings);
    let trace = check_trace(draft.trace.as_ref(), findings);
    if let Some(trace) = &trace {
        let channels = channels.as_deref().unwrap_or_default();
        memory::check(&draft.guests, &guests, &translations, channels, trace, view, findings);
    }
    let run = check_run(&draft.run, view, findings);

    let (guests, files): (Vec<_>, Vec<_>) =
        guests.into_iter().collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let tasks = tasks.into_iter().collect::<Option<Vec<_>>>()?;
    let translations = translations.into_iter().collect::<Option<Vec<_>>>()?;
    let name = draft.name.as_ref().map_or(fallback_name, |name| &name.value);
    // Only a file's name can still have one, which nobody thought of as a name for the system.
    let name = name.replace(char::is_control, "\u{fffd}");
    let default_input = guests.iter().position(|guest| guest.kind == Kind::Linux).unwrap_or(0);
    let system = System {
        name,
        policy: policy?,
        guests,
        channels: channels.filter(|_| !draft.channels_are_wrong)?,
        console_input: u32::try_from(console.unwrap_or(default_input)).ok(),
        windows,
        trace: trace?,
    };
    let (disks, networks, power) = virtio?;
    Some(Manifest {
        system,
        board: board?,
        files,
        translations,
        tasks,
        disks,
        networks,
        power,
        run,
        warnings: None,
    })
}

/// The guests in which there is no error, with what the manifest says of them.
fn complete<'a>(
    drafts: &'a [GuestDraft],
    guests: &'a [Option<(Guest, GuestPaths)>],
) -> impl Iterator<Item = (&'a GuestDraft, &'a Guest)> + Clone {
    drafts.iter().zip(guests).filter_map(|(draft, guest)| Some((draft, &guest.as_ref()?.0)))
}

/// The index of the guest with this name, `place` says for what.
fn find_guest(
    name: &At<String>,
    guests: &[GuestDraft],
    place: &str,
    findings: &mut Vec<Finding>,
) -> Option<usize> {
    let is_meant = |guest: &GuestDraft| guest.name.as_ref().is_some_and(|other| other.value == name.value);
    let index = guests.iter().position(is_meant);
    // A guest whose name nobody knows may be it.
    if index.is_none() && !guests.is_empty() && guests.iter().all(|guest| guest.name.is_some()) {
        let names: Vec<&str> =
            guests.iter().filter_map(|guest| Some(guest.name.as_ref()?.value.as_str())).collect();
        let message = format!("there is no guest {:?} {place}", name.value);
        findings.push(Finding::at(name.span.clone(), message).help(suggest(&name.value, &names)));
    }
    index
}

/// The name stands in a line of its own, in tables and in traces.
fn check_name(name: &At<String>, findings: &mut Vec<Finding>) {
    let text = &*name.value;
    let wrong = [
        ("is empty", text.trim().is_empty()),
        ("contains a control character", text.contains(char::is_control)),
        ("is too long", text.len() > MAX_NAME),
    ];
    for (what, _) in wrong.into_iter().filter(|(_, is)| *is) {
        let help = format!(
            "write a name on one line, of at most {MAX_NAME} bytes; or leave the key out: the system is called as the file"
        );
        findings.push(Finding::at(name.span.clone(), format!("the system's name {what}")).help(help));
    }
}

fn check_board(draft: &BoardDraft, findings: &mut Vec<Finding>) -> (BoardView, Option<Board>) {
    let kind = draft.machine.as_ref().and_then(|machine| {
        let kind = boards::kind_of(&machine.value);
        if kind.is_none() {
            let names: Vec<_> = BOARDS.iter().map(|kind| kind.machine).collect();
            let message = format!("there is no board {:?}", machine.value);
            findings.push(Finding::at(machine.span.clone(), message).help(suggest(&machine.value, &names)));
        }
        kind
    });
    let harts = draft.harts.as_ref().and_then(|harts| {
        let allowed = kind.map_or(1..=ainori_limits::Room::LARGE.harts as u32, |kind| kind.harts.clone());
        if allowed.contains(&harts.value) {
            return Some(harts.value);
        }
        let message = format!("a board can't have {} harts", harts.value);
        let help = format!("from {} to {} harts", allowed.start(), allowed.end());
        findings.push(Finding::at(harts.span.clone(), message).help(help));
        None
    });
    let has_h = match &draft.cpu {
        Some(cpu) => cpu::check(cpu, findings),
        None => kind.and_then(|kind| cpus::has(kind.cpu, "h")),
    };
    let memory = draft.memory.as_ref().and_then(|memory| {
        if memory.value.0 <= MAX_BOARD_MEMORY {
            return Some(memory.value.0);
        }
        let message = "a board can't have so much memory";
        let help =
            format!("at most {}: a hart's physical addresses have 56 bits", show_size(MAX_BOARD_MEMORY));
        findings.push(Finding::at(memory.span.clone(), message).help(help));
        None
    });
    let board = || {
        let kind = kind?;
        let cpu = draft.cpu.as_ref().map_or(kind.cpu, |cpu| &cpu.value).to_owned();
        let interrupts = draft.interrupts.as_ref().map_or_else(Interrupts::default, |kind| kind.value);
        Some(Board { machine: kind.machine.to_owned(), cpu, harts: harts?, memory: memory?, interrupts })
    };
    if let (Some(kind), Some(wanted)) = (kind, &draft.interrupts)
        && !kind.interrupts.contains(&wanted.value)
    {
        let message = format!("the board {} hasn't this interrupt controller", kind.machine);
        findings.push(Finding::at(wanted.span.clone(), message).help("leave the key out: it has a PLIC"));
    }
    (BoardView { kind, harts, memory, has_h }, board())
}

fn check_console(draft: &Draft, findings: &mut Vec<Finding>) -> Option<usize> {
    let input = draft.console_input.as_ref()?;
    // A guest whose name nobody knows may be it.
    if draft.guests.is_empty() || draft.guests.iter().any(|guest| guest.name.is_none()) {
        return None;
    }
    let names: Vec<&str> =
        draft.guests.iter().filter_map(|guest| Some(guest.name.as_ref()?.value.as_str())).collect();
    let index = draft
        .guests
        .iter()
        .position(|guest| guest.name.as_ref().is_some_and(|name| name.value == input.value));
    if index.is_none() {
        let message = format!("there is no guest {:?} to get the console's input", input.value);
        findings.push(Finding::at(input.span.clone(), message).help(suggest(&input.value, &names)));
    }
    index
}

/// What is recorded; `None` if there is an error in it.
fn check_trace(draft: Option<&TraceDraft>, findings: &mut Vec<Finding>) -> Option<Trace> {
    let Some(draft) = draft else { return Some(Trace { mask: 0, records: 0 }) };
    let before = findings.len();
    let mut mask = if draft.mask.is_some() { Mask::NONE } else { DEFAULT_MASK };
    for name in draft.mask.iter().flat_map(|list| &list.value) {
        match Mask::from_names([name.value.as_str()]) {
            Ok(more) => mask.0 |= more.0,
            Err(unknown) => {
                let names: Vec<_> = Mask::names().collect();
                let message = format!("there is no kind of trace record {unknown:?}");
                findings.push(Finding::at(name.span.clone(), message).help(suggest(unknown, &names)));
            }
        }
    }
    let records = draft.records.as_ref().map_or(DEFAULT_TRACE_RECORDS, |records| {
        let value = records.value;
        if !is_ring_size(value) {
            let message = format!("{value} trace records per core is not possible");
            let help = format!("a power of two up to {MAX_TRACE_RECORDS}");
            findings.push(Finding::at(records.span.clone(), message).help(help));
        }
        value
    });
    (!draft.is_wrong && findings.len() == before).then_some(Trace { mask: mask.0, records })
}

/// May a core's ring hold so many records?
pub fn is_ring_size(records: u32) -> bool {
    records.is_power_of_two() && records <= MAX_TRACE_RECORDS
}

fn check_run(draft: &RunDraft, board: BoardView, findings: &mut Vec<Finding>) -> RunSettings {
    if let (Some(clock), Some(harts @ 2..)) = (&draft.clock, board.harts)
        && clock.value == Clock::Icount
    {
        let message = format!("the clock \"icount\" is for one hart, but the board has {harts}");
        findings.push(Finding::at(clock.span.clone(), message).help("use \"lockstep\" or \"host\""));
    }
    if let Some(limit) = draft.time_limit.as_ref().filter(|limit| limit.value.0 == 0) {
        findings.push(
            Finding::at(limit.span.clone(), "a run can't have a time limit of zero")
                .help("from 1 us, e.g. \"300s\"; leave the key out for no limit"),
        );
    }
    RunSettings {
        clock: draft.clock.as_ref().map(|clock| clock.value).unwrap_or_default(),
        time_limit: draft.time_limit.as_ref().map(|limit| Duration::from_micros(limit.value.0)),
    }
}
