//! Devices that read and write memory by themselves, where nothing confines them: a guest has them only if the manifest says that it is trusted, and
//! with the board's addresses.
use super::{BoardView, protection::help_to_place};
use crate::config::{Guest, Translation};
use crate::host::{
    GuestPaths,
    boards::Owner,
    findings::Finding,
    schema::{Draft, GuestDraft},
};

/// Checks guests with `dma = "trusted"`. Disks and networks are among the devices of `guests` already.
pub fn check(
    draft: &Draft,
    guests: &[Option<(Guest, GuestPaths)>],
    translations: &[Option<Translation>],
    board: BoardView,
    findings: &mut Vec<Finding>,
) {
    for (index, owner) in draft.guests.iter().enumerate() {
        if owner.dma.is_none() {
            continue;
        }
        let is_confined = translations[index].is_none_or(Translation::confines);
        let Some((guest, _)) = &guests[index] else { continue };
        if has_dma(guest, board) {
            check_trusted(owner, draft, is_confined, board, findings);
        } else if let Some(dma) = &owner.dma {
            let message = format!("{} is trusted with devices that it hasn't", guest.name);
            let help = "remove the key: it matters only for guests with a disk, a network, or a place for virtio devices";
            findings.push(Finding::at(dma.span.clone(), message).warning().help(help));
        }
    }
}

/// Does it own a device that nothing confines?
fn has_dma(guest: &Guest, board: BoardView) -> bool {
    let devices = board.kind.map_or(&[][..], |kind| kind.devices);
    guest
        .devices
        .iter()
        .any(|path| devices.iter().any(|device| device.path == path && device.owner == Owner::TrustedGuest))
}

fn check_trusted(
    owner: &GuestDraft,
    draft: &Draft,
    is_confined: bool,
    board: BoardView,
    findings: &mut Vec<Finding>,
) {
    let (Some(dma), Some(name)) = (&owner.dma, &owner.name) else { return };
    let name = &name.value;
    if !is_confined {
        let message = format!(
            "{name} can own no disk, network or other device: with translation = \"none\" it has no interrupt controller"
        );
        let help = "remove translation = \"none\": with two stages it has one";
        findings.push(Finding::at(dma.span.clone(), message).help(help));
    } else if owner.memory_at.is_none() && !owner.lost.has("memory_at") {
        let message = format!(
            "the addresses that {name} gives its devices are the board's, as nothing translates them: somebody has to say where on the board its memory is"
        );
        findings.push(Finding::at(dma.span.clone(), message).help(help_to_place(owner, board)));
    }
    let others: Vec<&str> = (draft.guests.iter())
        .filter_map(|guest| Some(guest.name.as_ref()?.value.as_str()))
        .filter(|other| *other != name)
        .collect();
    let others = if others.is_empty() { String::new() } else { format!(", of {}", others.join(", ")) };
    let message = format!(
        "the devices of {name} can read and change all memory of the board: of the hypervisor, of the firmware{others}"
    );
    let help = format!(
        "that is what dma = \"trusted\" means: nothing on the board confines them, so whoever controls {name}'s kernel controls the machine"
    );
    findings.push(Finding::at(dma.span.clone(), message).saying("trusted with that").warning().help(help));
}
