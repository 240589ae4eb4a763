//! Rules about disks and networks. Each gets a place for virtio devices of the board, which its guest then owns.
use super::{BoardView, find_guest, missing};
use crate::config::Guest;
use crate::host::{
    GuestPaths,
    files::File,
    findings::{Finding, Span},
    reader::At,
    schema::{DiskDraft, Draft, GuestDraft, NetworkDraft},
    virtio::{Disk, Forward, Network, PowerButton},
};
use std::{collections::BTreeMap, io, path::Path, time::Duration};

/// Bytes of a sector: a disk is a whole number of them (virtio 1.2, 5.2.4).
const SECTOR: u64 = 512;
/// The address of a guest's card if nobody says: of those that are QEMU's to give (52:54:00), the number of the network is the last byte.
const MAC_PREFIX: &str = "52:54:00:41:49";

/// Disks, networks, and the one power button that there can be.
pub type Devices = (Vec<Disk>, Vec<Network>, Option<PowerButton>);

/// Checks all disks, networks and power buttons, and gives guests the places where they are. Returns them if there is no error in any.
pub fn check(
    draft: &Draft,
    guests: &mut [Option<(Guest, GuestPaths)>],
    board: BoardView,
    directory: &Path,
    findings: &mut Vec<Finding>,
) -> Option<Devices> {
    let before = findings.len();
    let mut slots = Slots::new(&draft.guests, board);
    let mut disks = Vec::new();
    for disk in &draft.disks {
        let place = slots.take(disk.guest.as_ref(), &disk.span, "disk", draft, guests, findings);
        disks.extend(check_disk(disk, place, directory, findings));
    }
    check_shared(&draft.disks, &disks, findings);
    let mut networks = Vec::new();
    let mut ports = BTreeMap::new();
    for (number, network) in draft.networks.iter().enumerate() {
        let place = slots.take(network.guest.as_ref(), &network.span, "network", draft, guests, findings);
        networks.extend(check_network(network, number, place, &mut ports, findings));
    }
    let power = check_power(draft, &mut slots, guests, findings);
    (findings.len() == before && !draft.virtio_is_wrong).then_some((disks, networks, power))
}

/// A guest, and a place for virtio devices that is its own.
#[derive(Clone, Copy)]
struct Place {
    guest: usize,
    slot: usize,
}

/// The places for virtio devices that nobody has.
struct Slots {
    /// Their numbers and paths in the board's device tree; the next one is the last.
    free: Vec<(usize, &'static str)>,
    /// It isn't known which board that is.
    is_unknown: bool,
    /// That there are too few has been told.
    is_told: bool,
}

impl Slots {
    /// Those that no guest names itself among its `devices`.
    fn new(guests: &[GuestDraft], board: BoardView) -> Self {
        let owned =
            |path: &str| guests.iter().flat_map(|guest| &guest.devices).any(|device| device.value == path);
        let all = board.kind.map_or(&[][..], |kind| kind.virtio_slots).iter().copied().enumerate();
        let mut free: Vec<_> = all.filter(|(_, path)| !owned(path)).collect();
        free.reverse();
        Self { free, is_unknown: board.kind.is_none(), is_told: false }
    }

    /// Gives the next one to a guest for what stands at `span`.
    fn take(
        &mut self,
        name: Option<&At<String>>,
        span: &Span,
        what: &str,
        draft: &Draft,
        guests: &mut [Option<(Guest, GuestPaths)>],
        findings: &mut Vec<Finding>,
    ) -> Option<Place> {
        let name = name?;
        let guest = find_guest(name, &draft.guests, &format!("for this {what}"), findings)?;
        let owner = &draft.guests[guest];
        if owner.dma.is_none() && !owner.lost.has("dma") {
            let message = format!(
                "{} can't have a {what}: its card reads and writes memory by itself (DMA), and nothing on the board confines it to one guest",
                name.value
            );
            let help = format!(
                "if you trust {} and all that runs in it, add dma = \"trusted\" to it, and memory_at, as the card has the board's addresses",
                name.value
            );
            findings.push(Finding::at(name.span.clone(), message).help(help));
        }
        let Some((slot, path)) = self.free.pop() else {
            if !self.is_unknown && !self.is_told {
                self.is_told = true;
                let message = format!("the board has no place for this {what}");
                let help = "QEMU's virt has eight places for disks, networks and power buttons; other boards have none";
                findings.push(Finding::at(span.clone(), message).help(help));
            }
            return None;
        };
        if let Some((guest, _)) = &mut guests[guest] {
            guest.devices.push(path.to_owned());
        }
        Some(Place { guest, slot })
    }
}

fn check_disk(
    draft: &DiskDraft,
    place: Option<Place>,
    directory: &Path,
    findings: &mut Vec<Finding>,
) -> Option<Disk> {
    let named = draft.file.as_ref()?;
    let path = directory.join(&named.value);
    let (read_only, snapshot) = (is_set(draft.read_only.as_ref()), is_set(draft.snapshot.as_ref()));
    if read_only && let Some(snapshot) = draft.snapshot.as_ref().filter(|snapshot| snapshot.value) {
        let message = "nothing is written to a disk that can only be read, so nothing is thrown away either";
        findings.push(Finding::at(snapshot.span.clone(), message).help("remove one of the two keys"));
    }
    let mut report = |message: String, help: String| {
        findings.push(Finding::at(named.span.clone(), message).help(help));
    };
    let shown = path.display();
    match File::open(&path) {
        Ok(file) if file.len == 0 || !file.len.is_multiple_of(SECTOR) => {
            let bytes = file.len;
            report(
                format!(
                    "{shown} is no disk: it has {bytes} bytes, which isn't a number of sectors of {SECTOR}"
                ),
                "make one, e.g. `truncate -s 1G disk.img`".into(),
            );
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            report(format!("the disk {shown} can't be read: it doesn't exist"), missing::help(&path));
        }
        Err(error) => report(format!("the disk {shown} can't be read: {error}"), missing::help(&path)),
    }
    let Place { guest, slot } = place?;
    Some(Disk { guest, slot, path, read_only, snapshot })
}

/// QEMU presses a key on one keyboard, whichever of several is the last, so no two guests can have one.
fn check_power(
    draft: &Draft,
    slots: &mut Slots,
    guests: &mut [Option<(Guest, GuestPaths)>],
    findings: &mut Vec<Finding>,
) -> Option<PowerButton> {
    let mut all = draft.guests.iter().filter_map(|guest| Some((guest, guest.shutdown.as_ref()?)));
    let (owner, patience) = all.next()?;
    if patience.value.0 == 0 {
        let message = "a guest can't shut down in no time";
        let help = "from 1 us, e.g. \"60s\"; leave the key out to have the guest stopped at once";
        findings.push(Finding::at(patience.span.clone(), message).help(help));
    }
    if let Some((_, second)) = all.next() {
        let message = "two guests would be asked to shut down";
        let finding = Finding::at(second.span.clone(), message).saying("the second");
        let help = "leave the key out of one of them: there is one power button";
        findings.push(finding.and(patience.span.clone(), "the first").help(help));
    }
    let name = owner.name.as_ref();
    let Place { guest, slot } = slots.take(name, &patience.span, "power button", draft, guests, findings)?;
    Some(PowerButton { guest, slot, patience: Duration::from_micros(patience.value.0) })
}

fn is_set(key: Option<&At<bool>>) -> bool {
    key.is_some_and(|key| key.value)
}

/// Two that write the same file would destroy what is in it; so would one that is read meanwhile.
fn check_shared(drafts: &[DiskDraft], disks: &[Disk], findings: &mut Vec<Finding>) {
    for (index, disk) in disks.iter().enumerate() {
        let is_same = |other: &&Disk| other.path == disk.path && (other.is_written() || disk.is_written());
        if disks[..index].iter().any(|other| is_same(&other))
            && let Some(file) = drafts.iter().filter_map(|draft| draft.file.as_ref()).nth(index)
        {
            let message = format!("{} is a disk already, and one of the two is written", disk.path.display());
            let help = "copy the file, or make both read_only = true or snapshot = true";
            findings.push(Finding::at(file.span.clone(), message).help(help));
        }
    }
}

fn check_network(
    draft: &NetworkDraft,
    number: usize,
    place: Option<Place>,
    ports: &mut BTreeMap<u16, Span>,
    findings: &mut Vec<Finding>,
) -> Option<Network> {
    let mac = match &draft.mac {
        Some(mac) => check_mac(mac, findings),
        None => Some(format!("{MAC_PREFIX}:{:02x}", number + 1)),
    };
    let mut forwards = Vec::new();
    for text in &draft.forward {
        let Some(forward) = read_forward(&text.value) else {
            let message = format!("{:?} doesn't say which port leads where", text.value);
            let help = "write \"2222:22\" for the host's port 2222 to the guest's port 22, or \"22\" for any free one of the host";
            findings.push(Finding::at(text.span.clone(), message).help(help));
            continue;
        };
        if let Some(host) = forward.host
            && let Some(first) = ports.insert(host, text.span.clone())
        {
            let message = format!("the host's port {host} would lead to two places");
            let finding =
                Finding::at(text.span.clone(), message).saying("the second").and(first, "the first");
            findings.push(finding.help("choose another port for one of them"));
        }
        forwards.push(forward);
    }
    let Place { guest, slot } = place?;
    Some(Network { guest, slot, mac: mac?, forwards })
}

/// `HOST:GUEST` or `GUEST`, each 1 to 65535.
fn read_forward(text: &str) -> Option<Forward> {
    let port = |text: &str| text.parse().ok().filter(|port| *port != 0);
    match text.split_once(':') {
        Some((host, guest)) => Some(Forward { host: Some(port(host)?), guest: port(guest)? }),
        None => Some(Forward { host: None, guest: port(text)? }),
    }
}

fn check_mac(mac: &At<String>, findings: &mut Vec<Finding>) -> Option<String> {
    let is_byte = |part: &str| part.len() == 2 && part.chars().all(|c| c.is_ascii_hexdigit());
    let bytes: Vec<&str> = mac.value.split(':').collect();
    let is_group =
        || bytes.first().and_then(|byte| u8::from_str_radix(byte, 16).ok()).is_none_or(|byte| byte & 1 != 0);
    let is_zero = || bytes.iter().all(|byte| *byte == "00");
    if bytes.len() == 6 && bytes.iter().all(|byte| is_byte(byte)) && !is_group() && !is_zero() {
        return Some(mac.value.to_ascii_lowercase());
    }
    let message = format!("{:?} is not the address of a network card", mac.value);
    let help = format!(
        "six bytes, e.g. \"{MAC_PREFIX}:01\"; the first is even, as others are those of groups; or leave the key out"
    );
    findings.push(Finding::at(mac.span.clone(), message).help(help));
    None
}
