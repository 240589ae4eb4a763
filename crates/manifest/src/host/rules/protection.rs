//! Places that the manifest gives guests' memory, and guests that nothing keeps from others' memory: these need such a place, can have nothing that takes a trap, and need everybody's trust.
use super::{
    super::{
        findings::Finding,
        reader::{At, suggest},
        schema::{Draft, GuestDraft, TranslationDraft},
        units::show_size,
    },
    BoardView, memory,
};
use crate::config::{GUEST_MEMORY_ALIGN, Guest, OnWildAccess, Translation};
use crate::host::{GuestPaths, reader::Address};
use std::ops::Range;

/// What loaders leave at the end of main memory: QEMU puts the board's device tree into the last large page.
const AT_THE_END: u64 = 2 << 20;

/// Checks the places of guests' memory, and who is without protection.
pub fn check(
    draft: &Draft,
    guests: &[Option<(Guest, GuestPaths)>],
    translations: &[Option<Translation>],
    board: BoardView,
    findings: &mut Vec<Finding>,
) {
    check_places(&draft.guests, guests, board, findings);
    let unprotected: Vec<&GuestDraft> = draft
        .guests
        .iter()
        .zip(translations)
        .filter(|(_, translation)| translation.is_some_and(|translation| !translation.confines()))
        .map(|(guest, _)| guest)
        .collect();
    for guest in &unprotected {
        check_unprotected(guest, draft, board, findings);
    }
    check_trust(&draft.guests, &unprotected, findings);
}

/// Where the memory of a guest may be, on a board with so much: not where firmware, the hypervisor with its guests' files, and the board's device tree are.
fn room(guests: &[Option<(Guest, GuestPaths)>], board: BoardView) -> Option<Range<u64>> {
    let base = board.kind?.memory_base;
    let begin = base.checked_add(memory::of_image(guests.iter().flatten().map(|(guest, _)| guest)))?;
    let begin = begin.checked_next_multiple_of(GUEST_MEMORY_ALIGN)?;
    Some(begin..base.checked_add(board.memory?)?.saturating_sub(AT_THE_END))
}

fn check_places(
    drafts: &[GuestDraft],
    guests: &[Option<(Guest, GuestPaths)>],
    board: BoardView,
    findings: &mut Vec<Finding>,
) {
    let room = room(guests, board);
    let mut taken: Vec<(Range<u64>, &At<Address>)> = Vec::new();
    for draft in drafts {
        let Some(place) = &draft.memory_at else { continue };
        let at = place.value.0;
        if !at.is_multiple_of(GUEST_MEMORY_ALIGN) {
            let align = show_size(GUEST_MEMORY_ALIGN);
            let help = at.checked_next_multiple_of(GUEST_MEMORY_ALIGN);
            let help = help.map_or_else(|| "choose less".into(), |next| format!("the next is {next:#x}"));
            let message = format!("{at:#x} is no place for a guest's memory: not a multiple of {align}");
            findings.push(Finding::at(place.span.clone(), message).help(help));
            continue;
        }
        let Some(size) = draft.memory.as_ref().map(|memory| memory.value.0) else { continue };
        let own = at..at.saturating_add(size);
        if let Some(room) = room.as_ref().filter(|room| own.start < room.start || own.end > room.end) {
            let message =
                format!("a guest's memory can't be at {:#x}..{:#x} of this board", own.start, own.end);
            let last = room.end.saturating_sub(size);
            let help = if last >= room.start {
                format!(
                    "from {:#x} to {last:#x}: before are the firmware, the hypervisor and guests' files, behind is the board's device tree",
                    room.start
                )
            } else {
                "the board hasn't so much memory in one piece: give it more, or the guest less".into()
            };
            findings.push(Finding::at(place.span.clone(), message).help(help));
        }
        if let Some((_, other)) =
            taken.iter().find(|(other, _)| own.start < other.end && other.start < own.end)
        {
            let message = "two guests' memory would be at the same place";
            let finding =
                Finding::at(place.span.clone(), message).saying("this").and(other.span.clone(), "and this");
            findings.push(finding.help("choose another place for one of them"));
        }
        taken.push((own, place));
    }
}

/// What to do where a guest's memory has no place and needs one.
pub(super) fn help_to_place(guest: &GuestDraft, board: BoardView) -> String {
    possible_place(guest, board).map_or_else(
        || "add memory_at = ADDRESS, within the board's main memory".into(),
        |at| format!("e.g. memory_at = {at:#x}; its program has to be linked for that, or be position-independent, as Linux is"),
    )
}

/// The place that one guest could have, as far as it is known.
fn possible_place(draft: &GuestDraft, board: BoardView) -> Option<u64> {
    let end = board.kind?.memory_base.checked_add(board.memory?)?.checked_sub(AT_THE_END)?;
    Some(end.checked_sub(draft.memory.as_ref()?.value.0)? / GUEST_MEMORY_ALIGN * GUEST_MEMORY_ALIGN)
}

/// Its accesses don't come to the hypervisor: it can have nothing that lives by that.
fn check_unprotected(guest: &GuestDraft, draft: &Draft, board: BoardView, findings: &mut Vec<Finding>) {
    let confine = "or remove translation = \"none\": with two stages it has it";
    if guest.memory_at.is_none() && !guest.lost.has("memory_at") {
        let span = guest.translation.as_ref().map_or(&guest.span, |translation| &translation.span);
        let message = "without a translation of the hypervisor's, this guest's addresses are the board's: somebody has to say where on the board its memory is";
        findings.push(Finding::at(span.clone(), message).help(help_to_place(guest, board)));
    }
    if let Some(device) = guest.devices.first() {
        let message = "a guest with translation = \"none\" can't own devices: it has no interrupt controller, as its accesses to a virtual one don't come to the hypervisor";
        findings.push(Finding::at(device.span.clone(), message).help(format!("remove the key, {confine}")));
    }
    if let Some(answer) = guest.on_wild_access.as_ref().filter(|answer| answer.value == OnWildAccess::Stop) {
        let message = "nobody can stop this guest for an access outside its memory: with translation = \"none\" none comes to the hypervisor";
        findings.push(Finding::at(answer.span.clone(), message).help(format!("remove the key, {confine}")));
    }
    let asks = |args: &str| args.split_whitespace().any(|word| word.starts_with("console=ttyS"));
    if let Some(args) = guest.args.as_ref().filter(|args| asks(&args.value)) {
        let message = "nothing will be seen of this guest: with translation = \"none\" it has no serial port for console=ttyS";
        let help = "a Linux can print by the SBI instead: docs/manifest.md has the arguments, under \"A place for memory, and guests without protection\"";
        findings.push(Finding::at(args.span.clone(), message).warning().help(help));
    }
    let Some(name) = &guest.name else { return };
    let ends =
        draft.channels.iter().filter_map(|channel| channel.guests.as_ref()).flat_map(|ends| &ends.value);
    if let Some(end) = ends.into_iter().find(|end| end.value == name.value) {
        let message = format!(
            "{} can have no channel: with translation = \"none\" its accesses to a virtual PCI bus don't come to the hypervisor",
            name.value
        );
        findings.push(Finding::at(end.span.clone(), message).help(format!("remove the channel, {confine}")));
    }
}

/// Each guest says whom it trusts, and has to trust each other one without protection.
fn check_trust(guests: &[GuestDraft], unprotected: &[&GuestDraft], findings: &mut Vec<Finding>) {
    let name_of = |guest: &GuestDraft| guest.name.as_ref().map(|name| name.value.clone());
    // A guest whose name nobody knows may be any.
    let Some(names) = guests.iter().map(name_of).collect::<Option<Vec<String>>>() else { return };
    let without: Vec<String> = unprotected.iter().filter_map(|guest| name_of(guest)).collect();
    // Also one that can't be so on this board, or whose key can't be read: what is wrong with it is told there.
    let may_be_without = |name: &String| {
        let named = guests.iter().zip(&names).find(|(_, own)| *own == name);
        named.is_some_and(|(guest, _)| {
            let wanted = guest.translation.as_ref().map(|translation| translation.value);
            wanted == Some(TranslationDraft::None) || guest.lost.has("translation")
        })
    };
    for (guest, own) in guests.iter().zip(&names) {
        for (index, trusted) in guest.trusts.iter().enumerate() {
            let name = &trusted.value;
            if !names.contains(name) {
                let others: Vec<&str> = names.iter().map(|name| &**name).collect();
                let message = format!("there is no guest {name:?} to trust");
                findings.push(Finding::at(trusted.span.clone(), message).help(suggest(name, &others)));
                continue;
            }
            let before = guest.trusts.get(..index).unwrap_or_default();
            let (message, help) = if name == own {
                (
                    format!("{own} names itself among those that it trusts"),
                    "remove the name: who could reach its memory are others",
                )
            } else if before.iter().any(|earlier| earlier.value == *name) {
                (format!("{own} says twice that it trusts {name}"), "remove the name: once is enough")
            } else if !may_be_without(name) {
                (
                    format!("{own} says that it trusts {name}, which can't reach its memory anyhow"),
                    "remove the name: it matters only for guests with translation = \"none\"",
                )
            } else {
                continue;
            };
            findings.push(Finding::at(trusted.span.clone(), message).warning().help(help));
        }
        let is_trusted = |name: &String| guest.trusts.iter().any(|trusted| trusted.value == *name);
        if guest.lost.has("trusts") {
            continue;
        }
        for name in without.iter().filter(|name| *name != own && !is_trusted(name)) {
            let span = guest.name.as_ref().map_or(&guest.span, |own| &own.span);
            let message = format!(
                "{name} can read and change all memory of {own}, as it has translation = \"none\", and {own} doesn't say that it trusts it"
            );
            let help = format!(
                "add trusts = [{name:?}] to {own}, or give {name} two stages: remove its key `translation`"
            );
            findings.push(Finding::at(span.clone(), message).help(help));
        }
    }
}
