//! What a system needs of the board's memory: guests, the files that they are loaded from, and the hypervisor.
use super::BoardView;
use crate::config::{Channel, Guest, SHADOW_TABLE_SIZE, System, Trace, Translation};
use crate::host::{GuestPaths, findings::Finding, schema::GuestDraft};

/// What the firmware and the hypervisor take: 2 MiB of OpenSBI, the hypervisor's image, stacks, page tables.
const HYPERVISOR: u64 = 32 << 20;
/// What the hypervisor takes of memory that its image isn't in: stacks and page tables of what it makes at boot, and, where that is the last of the board's memory, the device tree.
const OBJECTS: u64 = 16 << 20;
/// Bytes of a trace record.
const TRACE_RECORD: u64 = 16;
/// Bytes of a trace ring's header, rounded up.
const TRACE_HEADER: u64 = 4096;

/// Bytes of the trace rings on a board with so many harts.
fn of_rings(harts: u32, trace: &Trace) -> u64 {
    let ring = match trace.records {
        0 => 0,
        records => TRACE_HEADER + u64::from(records) * TRACE_RECORD,
    };
    u64::from(harts) * ring
}

/// Bytes that a guest needs: its memory, the files in the image that it is loaded from, and the shadow tables of its vCPUs.
fn of_guest(guest: &Guest, translation: Translation) -> u64 {
    let tables = translation.shadow().map_or(0, |shadow| u64::from(shadow.tables));
    guest
        .memory
        .saturating_add(files_of(guest))
        .saturating_add(guest.vcpus.len() as u64 * tables * SHADOW_TABLE_SIZE)
}

/// Bytes that the firmware, the hypervisor and the files of such guests take from the begin of the board's memory on: what is loaded as one image.
pub(super) fn of_image<'a>(guests: impl Iterator<Item = &'a Guest>) -> u64 {
    guests.map(files_of).fold(HYPERVISOR, u64::saturating_add)
}

/// Bytes of the files that a guest is loaded from.
fn files_of(guest: &Guest) -> u64 {
    guest.image.stored().saturating_add(guest.initrd.map_or(0, |initrd| initrd.len))
}

/// Bytes that channels need.
fn of_channels(channels: &[Channel]) -> u64 {
    channels.iter().map(|channel| channel.size).sum()
}

/// Bytes that a system needs on a board with so many harts.
pub fn of_system(system: &System, translations: &[Translation], harts: u32) -> u64 {
    let hypervisor = HYPERVISOR + of_rings(harts, &system.trace) + of_channels(&system.channels);
    let guests = system.guests.iter().zip(translations);
    guests.map(|(guest, translation)| of_guest(guest, *translation)).fold(hypervisor, u64::saturating_add)
}

/// Checks that everything fits the board. The first guest that doesn't is told, and what all of them need.
pub(super) fn check(
    drafts: &[GuestDraft],
    guests: &[Option<(Guest, GuestPaths)>],
    translations: &[Option<Translation>],
    channels: &[Channel],
    trace: &Trace,
    board: BoardView,
    findings: &mut Vec<Finding>,
) {
    let (Some(all_memory), Some(harts)) = (board.memory, board.harts) else { return };
    let files = guests.iter().flatten().map(|(guest, _)| files_of(guest)).fold(0, u64::saturating_add);
    let Piece { size: has, has_image } = piece_of_guests(drafts, board, all_memory, files);
    let in_pieces = drafts.iter().any(|draft| draft.memory_at.is_some());
    let own = if has_image { HYPERVISOR } else { OBJECTS };
    let hypervisor = own + of_rings(harts, trace) + of_channels(channels);
    let known = drafts.iter().zip(guests).zip(translations).filter_map(|((draft, guest), translation)| {
        let guest = &guest.as_ref()?.0;
        // What has a place isn't in the piece that is left.
        let memory = if draft.memory_at.is_some() { guest.memory } else { 0 };
        let files = if has_image { 0 } else { files_of(guest) };
        let all = of_guest(guest, translation.unwrap_or_default());
        Some((draft, all.saturating_sub(memory).saturating_sub(files)))
    });
    let all = known.clone().map(|(_, bytes)| bytes).fold(hypervisor, u64::saturating_add);
    let mut needed = hypervisor;
    for (draft, bytes) in known {
        needed = needed.saturating_add(bytes);
        if needed > has {
            let place = draft.memory.as_ref().map_or(&draft.span, |memory| &memory.span);
            let message =
                format!("there is no room for this guest: the system needs {} MiB", all.div_ceil(1 << 20));
            let files = if has_image { ", their files" } else { "" };
            let mut others: Vec<&str> = Vec::new();
            others.extend((trace.records != 0).then_some(" and its trace rings"));
            others.extend((!channels.is_empty()).then_some(" and the channels"));
            let others = others.concat();
            let has_shadow = translations.iter().flatten().any(|translation| translation.shadow().is_some());
            let tables = if has_shadow { ", shadow tables" } else { "" };
            findings.push(Finding::at(place.clone(), message).saying("no room for this").help(format!(
                "{} {} MiB; guests{files}{tables} and {} MiB for the hypervisor{others} must fit",
                if in_pieces {
                    "beside the memory that has places, the piece of the board's that has most left has"
                } else {
                    "the board has"
                },
                has >> 20,
                hypervisor.div_ceil(1 << 20)
            )));
            return;
        }
    }
}

/// A piece of a board's memory that no guest has by a place of its own.
#[derive(Clone, Copy)]
struct Piece {
    /// Bytes.
    size: u64,
    /// The hypervisor's image, which guests' files are in, is in it: it is the first.
    has_image: bool,
}

impl Piece {
    /// Bytes that guests can have of it.
    fn left(self, files: u64) -> u64 {
        self.size.saturating_sub(if self.has_image { HYPERVISOR.saturating_add(files) } else { OBJECTS })
    }
}

/// The piece that the hypervisor gives guests without a place their memory from, and takes its own from: the one that has most left (`set_apart` in the kernel's memory.rs, which looks only at
/// what is free: the image isn't). With `files` bytes of guests' files in the image, of `all` bytes of memory.
fn piece_of_guests(drafts: &[GuestDraft], board: BoardView, all: u64, files: u64) -> Piece {
    let whole = Piece { size: all, has_image: true };
    let Some(base) = board.kind.map(|kind| kind.memory_base) else { return whole };
    let mut places: Vec<(u64, u64)> = drafts
        .iter()
        .filter_map(|draft| {
            let start = draft.memory_at.as_ref()?.value.0.saturating_sub(base);
            Some((start, start.saturating_add(draft.memory.as_ref()?.value.0)))
        })
        .collect();
    places.sort_unstable();
    let mut best = Piece { size: 0, has_image: true };
    let mut free_from = 0;
    for (start, end) in places.iter().copied().chain([(all, all)]) {
        let piece = Piece { size: start.min(all).saturating_sub(free_from), has_image: free_from == 0 };
        if piece.left(files) > best.left(files) || piece.has_image {
            best = piece;
        }
        free_from = free_from.max(end);
    }
    best
}
