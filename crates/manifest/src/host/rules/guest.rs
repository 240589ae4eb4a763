//! Rules that concern one guest alone.
use super::{BoardView, harts, loads, missing, restarts};
use crate::config::{
    GUEST_MEMORY_ALIGN, GUEST_MEMORY_BASE, Guest, HartPriority, Image, Kind, OnWildAccess, Payload, Vcpu,
};
use crate::host::{
    GuestPaths,
    boards::{BoardKind, Owner},
    files::File,
    findings::{Finding, Span},
    images,
    reader::{Address, At, Size, nearest},
    schema::GuestDraft,
    units::show_size,
};
use crate::layout::Layout;
use ainori_limits::{PRIORITIES, Room};
use std::{
    io,
    num::NonZeroU8,
    path::{Path, PathBuf},
};

/// Most vCPUs of a guest, in any build of the hypervisor.
const MOST_VCPUS: usize = Room::LARGE.guest_vcpus;

/// Longest guest name: names stand before every console line.
const MAX_NAME: usize = 16;
/// Longest command line. Linux on RISC-V has 1024 bytes for it, with the NUL (COMMAND_LINE_SIZE).
const MAX_ARGS: usize = 1023;
/// Greatest weight. A greater one is hardly meant: its equals would wait for a hundred quanta and more.
const MAX_WEIGHT: u8 = 100;

/// Checks one guest. Returns it if there is no error in it: with one that has an error nothing can be compared.
pub fn check(
    draft: &GuestDraft,
    board: BoardView,
    directory: &Path,
    findings: &mut Vec<Finding>,
) -> Option<(Guest, GuestPaths)> {
    let before = findings.len();
    if let Some(name) = &draft.name {
        check_name(name, findings);
    }
    let memory = draft.memory.as_ref().and_then(|memory| check_memory(memory, board, findings));
    let args = draft.args.as_ref().map_or("", |args| &args.value);
    if let Some(args) = &draft.args {
        check_args(args, findings);
    }
    let priority = draft.priority.as_ref().map_or(Some(1), |priority| check_priority(priority, findings));
    let vcpus = check_vcpus(draft, board, findings);
    let priority_on = check_priority_on(draft, vcpus.as_deref().unwrap_or_default(), board, findings);
    let weight = draft.weight.as_ref().map_or(Some(NonZeroU8::MIN), |weight| check_weight(weight, findings));
    check_devices(draft, board, findings);
    let restart = restarts::check(draft, findings);
    let watchdog_us = restarts::check_watchdog(draft, findings);

    let image = draft.image.as_ref().and_then(|image| open(image, "image", directory, findings));
    let initrd = draft.initrd.as_ref().and_then(|initrd| open(initrd, "initrd", directory, findings));
    let loads = loads::open_all(&draft.loads, directory, findings);
    let places = check_places(draft, findings);
    let program = check_image(draft, image.as_ref(), initrd.as_ref(), &loads, memory, places, findings);

    if draft.is_wrong || findings.len() > before {
        return None;
    }
    let payload = |file: &Opened| Payload { offset: 0, len: file.file.len };
    let guest = Guest {
        name: draft.name.as_ref()?.value.clone(),
        kind: draft.kind.as_ref()?.value,
        image: program?,
        initrd: initrd.as_ref().map(payload),
        args: args.to_owned(),
        memory: memory?,
        vcpus: vcpus?,
        priority: priority?,
        priority_on,
        weight: weight?,
        devices: draft.devices.iter().map(|device| device.value.clone()).collect(),
        background: draft.background.as_ref().is_some_and(|background| background.value),
        restart: restart?,
        on_wild_access: draft.on_wild_access.as_ref().map_or(OnWildAccess::Trap, |answer| answer.value),
        watchdog_us: watchdog_us?,
    };
    let loads = loads.into_iter().map(loads::Opened::into_load).collect();
    let initrd = initrd.map(|initrd| initrd.path);
    Some((guest, GuestPaths { image: image?.path, initrd, places, loads }))
}

fn check_name(name: &At<String>, findings: &mut Vec<Finding>) {
    let text = &name.value;
    let mut report = |message: String, help: String| {
        findings.push(Finding::at(name.span.clone(), message).help(help));
    };
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if text.is_empty() || text.len() > MAX_NAME || !text.chars().all(allowed) {
        report(
            format!("{text:?} can't be a guest's name"),
            format!("1 to {MAX_NAME} of a-z, 0-9 and -: it marks the guest's console lines"),
        );
    } else if text == ainori_report::MARK {
        report(format!("{text:?} marks the hypervisor's own console lines"), "choose another name".into());
    }
}

fn check_memory(memory: &At<Size>, board: BoardView, findings: &mut Vec<Finding>) -> Option<u64> {
    let bytes = memory.value.0;
    let mut report = |message: String, help: String| {
        findings.push(Finding::at(memory.span.clone(), message).help(help));
    };
    let is_multiple = bytes != 0 && bytes.is_multiple_of(GUEST_MEMORY_ALIGN);
    if !is_multiple {
        let next = bytes.max(1).checked_next_multiple_of(GUEST_MEMORY_ALIGN);
        let help =
            next.map_or_else(|| "choose less".into(), |next| format!("the next is {}", show_size(next)));
        report(format!("a guest's memory must be a multiple of {}", show_size(GUEST_MEMORY_ALIGN)), help);
    }
    let too_small = board.memory.filter(|has| bytes >= *has);
    if let Some(has) = too_small {
        report(
            format!("a guest with {} doesn't fit a board with {}", show_size(bytes), show_size(has)),
            format!("give the guest less, or the board more than {}", show_size(bytes)),
        );
    }
    (is_multiple && too_small.is_none()).then_some(bytes)
}

fn check_args(args: &At<String>, findings: &mut Vec<Finding>) {
    let text = &args.value;
    if text.len() > MAX_ARGS {
        let message = format!("the arguments have {} bytes", text.len());
        findings.push(Finding::at(args.span.clone(), message).help(format!("at most {MAX_ARGS}")));
    }
    if text.contains(|c: char| c.is_control()) {
        let message = "the arguments contain a control character";
        findings.push(
            Finding::at(args.span.clone(), message).help("write them on one line, separated by spaces"),
        );
    }
}

fn check_priority(priority: &At<u32>, findings: &mut Vec<Finding>) -> Option<u8> {
    let valid = u8::try_from(priority.value).ok().filter(|value| *value < PRIORITIES);
    if valid.is_none() {
        let message = format!("there is no priority {}", priority.value);
        let help = format!("from 0 to {}; the higher goes first", PRIORITIES - 1);
        findings.push(Finding::at(priority.span.clone(), message).help(help));
    }
    valid
}

fn check_weight(weight: &At<u32>, findings: &mut Vec<Finding>) -> Option<NonZeroU8> {
    let valid = u8::try_from(weight.value).ok().filter(|value| *value <= MAX_WEIGHT).and_then(NonZeroU8::new);
    if valid.is_none() {
        let message = format!("a guest can't have the weight {}", weight.value);
        let help = format!("from 1 to {MAX_WEIGHT}: with 2 its turns are twice as long as with 1");
        findings.push(Finding::at(weight.span.clone(), message).help(help));
    }
    valid
}

/// A priority for a hart to which the guest never comes is one that somebody has counted on.
fn check_priority_on(
    draft: &GuestDraft,
    vcpus: &[Vcpu],
    board: BoardView,
    findings: &mut Vec<Finding>,
) -> Vec<HartPriority> {
    let allowed = vcpus.iter().fold(0, |set, vcpu| set | vcpu.harts);
    let Some(draft) = &draft.priority_on else { return Vec::new() };
    let mut checked = Vec::new();
    for (hart, priority) in &draft.value.0 {
        let comes = 1u64.checked_shl(hart.value).is_some_and(|bit| allowed & bit != 0);
        if harts::check(hart, board, findings) && allowed != 0 && !comes {
            let message = format!("the guest never runs on hart {}", hart.value);
            let help = "remove it, or add the hart to the guest's `harts`";
            findings.push(Finding::at(hart.span.clone(), message).help(help));
        }
        if let Some(priority) = check_priority(priority, findings) {
            checked.push(HartPriority { hart: hart.value, priority });
        }
    }
    checked
}

fn check_vcpus(draft: &GuestDraft, board: BoardView, findings: &mut Vec<Finding>) -> Option<Vec<Vcpu>> {
    let count = draft.vcpus.as_ref().map_or(1, |vcpus| vcpus.value);
    if let Some(vcpus) = draft.vcpus.as_ref().filter(|_| !(1..=MOST_VCPUS as u32).contains(&count)) {
        let message = format!("a guest can't have {count} vCPUs");
        findings.push(Finding::at(vcpus.span.clone(), message).help(format!("from 1 to {MOST_VCPUS}")));
    }
    let harts: Vec<u32> = match &draft.harts {
        None if draft.lost.has("harts") => return None,
        None => board.hart_ids()?.collect(),
        Some(list) => {
            if list.value.is_empty() {
                let message = "a guest needs at least one hart";
                findings
                    .push(Finding::at(list.span.clone(), message).help("leave the key out for all harts"));
            }
            check_repeated_harts(list, findings);
            // As long as nobody knows how many there are, each might be one.
            board.harts?;
            let there = list.value.iter().filter(|hart| harts::check(hart, board, findings));
            there.map(|hart| hart.value).collect()
        }
    };
    let set = harts.iter().fold(0, |set, hart| set | 1u64 << hart);
    let homes =
        harts.iter().cycle().take(if harts.is_empty() { 0 } else { (count as usize).min(MOST_VCPUS) });
    Some(homes.map(|home| Vcpu { home: *home, harts: set }).collect())
}

/// A hart that is there twice would be the home of more vCPUs than others, which nobody means who writes it twice.
fn check_repeated_harts(list: &At<Vec<At<u32>>>, findings: &mut Vec<Finding>) {
    for (index, hart) in list.value.iter().enumerate() {
        if let Some(first) = list.value[..index].iter().find(|earlier| earlier.value == hart.value) {
            findings.push(
                Finding::at(hart.span.clone(), format!("hart {} is in this list twice", hart.value))
                    .saying("the second time")
                    .and(first.span.clone(), "the first")
                    .help(
                        "name each hart once: vCPUs are dealt out to the list in turn, so two of them share a hart where `vcpus` is larger than \
                         the list is long",
                    ),
            );
        }
    }
}

fn check_devices(draft: &GuestDraft, board: BoardView, findings: &mut Vec<Finding>) {
    let Some(kind) = board.kind else { return };
    for device in &draft.devices {
        let path = &device.value;
        match kind.devices.iter().find(|known| known.path == path) {
            Some(known) => match known.owner {
                Owner::AnyGuest => {}
                Owner::TrustedGuest if draft.dma.is_some() || draft.lost.has("dma") => {}
                Owner::TrustedGuest => {
                    let message = format!(
                        "no guest can own {path} but one that is trusted: it reads and writes memory by itself (DMA), and nothing on the board confines it to one guest"
                    );
                    let help = "if you trust this guest and all that runs in it, add dma = \"trusted\" to it, and memory_at";
                    findings.push(Finding::at(device.span.clone(), message).help(help));
                }
                Owner::Nobody(reason) => {
                    let message = format!("no guest can own {path}: {reason}");
                    findings.push(Finding::at(device.span.clone(), message).help(assignable(kind)));
                }
            },
            None => {
                let names: Vec<_> = free(kind).collect();
                let meant = nearest(path, &names).map(|name| format!("did you mean `{name}`? "));
                let message = format!("{} has no device {path:?}", kind.machine);
                let help = format!("{}{}", meant.unwrap_or_default(), assignable(kind));
                findings.push(Finding::at(device.span.clone(), message).help(help));
            }
        }
    }
}

fn assignable(kind: &BoardKind) -> String {
    let free: Vec<_> = free(kind).collect();
    if free.is_empty() {
        return format!("no guest can own a device of {}", kind.machine);
    }
    format!("a guest can own: {}", free.join(", "))
}

/// The devices that a guest can own.
fn free(kind: &BoardKind) -> impl Iterator<Item = &'static str> {
    kind.devices.iter().filter(|device| device.owner == Owner::AnyGuest).map(|device| device.path)
}

/// A file that exists and can be read.
pub(super) struct Opened {
    pub(super) path: PathBuf,
    pub(super) file: File,
}

pub(super) fn open(
    entry: &At<String>,
    key: &str,
    directory: &Path,
    findings: &mut Vec<Finding>,
) -> Option<Opened> {
    let path = directory.join(&entry.value);
    match File::open(&path) {
        Ok(file) => Some(Opened { path, file }),
        Err(error) => {
            let what = if error.kind() == io::ErrorKind::NotFound {
                "it doesn't exist".into()
            } else {
                error.to_string()
            };
            findings.push(
                Finding::at(
                    entry.span.clone(),
                    format!("the {key} {} can't be read: {what}", path.display()),
                )
                .help(missing::help(&path)),
            );
            None
        }
    }
}

/// What the manifest says of where the program goes. A Linux Image says all of that itself.
fn check_places(draft: &GuestDraft, findings: &mut Vec<Finding>) -> images::Places {
    let kind = draft.kind.as_ref().map(|kind| kind.value);
    let mut place = |key: &str, address: Option<&At<Address>>| {
        if let (Some(Kind::Linux), Some(address)) = (kind, address) {
            let message = format!("a Linux Image has no {key} to choose: its header gives it");
            findings.push(Finding::at(address.span.clone(), message).help("remove it"));
        }
        address.map(|address| address.value.0)
    };
    images::Places {
        load: place("load_address", draft.load_address.as_ref()),
        entry: place("entry", draft.entry.as_ref()),
        memory_at: draft.memory_at.as_ref().map(|at| at.value.0),
    }
}

/// Is the image of the kind that it should be, and does it fit with its RAM disk? Returns where its parts go.
fn check_image(
    draft: &GuestDraft,
    image: Option<&Opened>,
    initrd: Option<&Opened>,
    loads: &[loads::Opened<'_>],
    memory: Option<u64>,
    places: images::Places,
    findings: &mut Vec<Finding>,
) -> Option<Image> {
    let (kind, entry, image, memory) = (draft.kind.as_ref()?.value, draft.image.as_ref()?, image?, memory?);
    // Nobody knows where it goes.
    let is_place = |at: u64| at.is_multiple_of(GUEST_MEMORY_ALIGN) && at.checked_add(memory).is_some();
    if !places.memory_at.is_none_or(is_place)
        || ["load_address", "entry", "memory_at"].iter().any(|key| draft.lost.has(key))
    {
        return None;
    }
    let initrd_len = initrd.map(|initrd| initrd.file.len);
    let base = places.memory_base();
    let mut report = |file: &Path, span: Span, problem: images::Problem| {
        let message = format!("{} {}", file.display(), problem.what);
        findings.push(Finding::at(span, message).help(problem.help));
    };
    let file = read_all(image, memory).map_err(|problem| report(&image.path, entry.span.clone(), problem));
    let file = file.ok()?;
    let read = images::read(kind, &file, memory, initrd_len, places)
        .and_then(|program| check_room(program.end() - base, initrd, memory).map(|()| program));
    let mut program = read.map_err(|problem| report(&image.path, entry.span.clone(), problem)).ok()?;
    let contents: Vec<_> = loads.iter().map(|load| read_all(&load.opened, memory)).collect();
    let mut all_fit = true;
    for (load, bytes) in loads.iter().zip(&contents) {
        let added = match bytes {
            Ok(bytes) => program
                .add(load.address.value.0, bytes, places.memory(memory))
                .and_then(|()| check_room(program.end() - base, initrd, memory)),
            Err(unread) => Err(unread.clone()),
        };
        if let Err(problem) = added {
            report(&load.opened.path, load.address.span.clone(), problem);
            all_fit = false;
        }
    }
    all_fit.then(|| program.describe(base))
}

/// Image, RAM disk and device tree must fit the guest's memory. The image ends so many bytes behind its begin.
fn check_room(image_end: u64, initrd: Option<&Opened>, memory: u64) -> Result<(), images::Problem> {
    let initrd_len = initrd.map(|initrd| initrd.file.len);
    if Layout::of(memory, GUEST_MEMORY_BASE.saturating_add(image_end), initrd_len).is_some() {
        return Ok(());
    }
    let parts = if initrd.is_some() { "initrd and device tree" } else { "device tree" };
    let needed = images::least_memory(image_end, initrd_len);
    Err(images::Problem {
        what: format!("with its {parts} doesn't fit the guest's memory of {}", show_size(memory)),
        help: format!("give the guest at least {needed}"),
    })
}

fn unreadable(error: &io::Error) -> images::Problem {
    images::Problem {
        what: format!("can't be read: {error}"),
        help: "give a file that can be read as a whole, and fits the guest's memory".into(),
    }
}

/// A whole image. One that is longer than the guest's memory isn't read: it doesn't fit.
fn read_all(image: &Opened, memory: u64) -> Result<Vec<u8>, images::Problem> {
    image.file.read_all(memory.max(images::MAX_FILE)).map_err(|error| unreadable(&error))
}
