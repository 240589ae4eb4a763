//! Rules about windows in time: which guest has a hart when, under the policies that divide time so.
use super::{
    BoardView, harts,
    policy::{MAX_QUANTUM_US, shown},
};
use crate::config::{Guest, MIN_WINDOW_US, Window};
use crate::host::{
    GuestPaths,
    findings::{Finding, Span},
    reader::{At, suggest},
    schema::{Draft, GuestDraft, PolicyDraft, WindowDraft},
};
use ainori_sched::{Policy, Preset, presets};
use std::collections::BTreeSet;

/// Most windows of one hart: a longer list is hardly meant.
const MOST_ON_A_HART: usize = 256;

/// Checks the windows of all harts, under a preset with frames so long, as far as they are known. Returns them by hart and time. `guests` has those in which there is no error.
pub fn check(
    draft: &Draft,
    guests: &[Option<(Guest, GuestPaths)>],
    board: BoardView,
    (preset, frame_us): (Option<&Preset>, Option<u32>),
    findings: &mut Vec<Finding>,
) -> Vec<Window> {
    let Some(preset) = preset else { return Vec::new() };
    if !has_windows(preset) {
        if let Some(window) = draft.windows.first() {
            let message = format!("under the policy {:?} there are no windows in time", preset.name);
            let help = format!("remove them, or choose {}", with_windows());
            findings.push(Finding::at(window.span.clone(), message).help(help));
        }
        return Vec::new();
    }
    let before = findings.len();
    let mut windows: Vec<(Window, &WindowDraft)> = draft
        .windows
        .iter()
        .filter_map(|window| {
            Some((check_one(window, &draft.guests, guests, (board, frame_us), findings)?, window))
        })
        .collect();
    windows.sort_by_key(|(window, _)| (window.hart, window.start_us));
    check_overlaps(&windows, &draft.guests, findings);
    if let Some((_, excess)) = windows
        .iter()
        .enumerate()
        .skip(MOST_ON_A_HART)
        .find(|(index, (window, _))| windows[index - MOST_ON_A_HART].0.hart == window.hart)
        .map(|(_, window)| window)
    {
        let message = "a hart can't have so many windows";
        findings.push(Finding::at(excess.span.clone(), message).help(format!("at most {MOST_ON_A_HART}")));
    }
    // A window in which there is an error may be the one that is missed.
    if findings.len() == before && !draft.windows_are_wrong {
        check_homes(draft, guests, &windows, findings);
    }
    windows.into_iter().map(|(window, _)| window).collect()
}

/// The length of the frame, in microseconds; `None` if there is an error in it, or the policy has no windows.
pub fn check_frame(draft: &PolicyDraft, preset: Option<&Preset>, findings: &mut Vec<Finding>) -> Option<u32> {
    let preset = preset?;
    let Some(frame) = &draft.major_frame else {
        if let Some(name) = draft.preset.as_ref().filter(|_| has_windows(preset) && !draft.frame_is_lost) {
            let message = format!("the policy {:?} needs a major frame", preset.name);
            let help = format!("policy = {{ preset = {:?}, major_frame = \"10ms\" }}", preset.name);
            findings.push(Finding::at(name.span.clone(), message).help(help));
        }
        return None;
    };
    if !has_windows(preset) {
        let message = format!("under the policy {:?} there are no windows in time", preset.name);
        let help = format!("remove the key, or choose {}", with_windows());
        findings.push(Finding::at(frame.span.clone(), message).help(help));
        return None;
    }
    let valid = u32::try_from(frame.value.0).ok().filter(|us| (MIN_WINDOW_US..=MAX_QUANTUM_US).contains(us));
    if valid.is_none() {
        let message = format!("major_frame: {} us is out of range", frame.value.0);
        let help = format!("from {} to {}", shown(MIN_WINDOW_US), shown(MAX_QUANTUM_US));
        findings.push(Finding::at(frame.span.clone(), message).help(help));
    }
    valid
}

fn has_windows(preset: &Preset) -> bool {
    // Neither the quantum nor the clock matters for that.
    Policy::preset(preset.name, 1, 1_000).is_some_and(|policy| policy.has_windows())
}

/// The policies that have them.
fn with_windows() -> String {
    let names: Vec<_> = presets().iter().filter(|preset| has_windows(preset)).map(|one| one.name).collect();
    names.join(" or ")
}

/// Checks a window by itself; `None` if there is an error in it.
fn check_one(
    draft: &WindowDraft,
    drafts: &[GuestDraft],
    guests: &[Option<(Guest, GuestPaths)>],
    (board, frame_us): (BoardView, Option<u32>),
    findings: &mut Vec<Finding>,
) -> Option<Window> {
    let before = findings.len();
    let guest = draft.guest.as_ref().and_then(|name| find_guest(name, drafts, findings));
    let hart = draft.hart.as_ref();
    let is_there = hart.filter(|hart| harts::check(hart, board, findings));
    if let (Some((guest, _)), Some(hart)) = (guest.and_then(|index| guests[index].as_ref()), is_there) {
        check_hart(guest, hart, findings);
    }
    let length = draft.length.as_ref();
    if let Some(length) = length.filter(|length| length.value.0 < MIN_WINDOW_US.into()) {
        let message = format!("a window of {} us is too short", length.value.0);
        let help = format!("from {}: switching to its guest takes some microseconds", shown(MIN_WINDOW_US));
        findings.push(Finding::at(length.span.clone(), message).help(help));
    }
    let (start, length) = (draft.start.as_ref()?.value.0, length?.value.0);
    let end = start.saturating_add(length);
    if let Some(frame_us) = frame_us.filter(|frame| end > u64::from(*frame)) {
        let message = format!("this window ends {} us behind the major frame", end - u64::from(frame_us));
        let help = format!(
            "a frame is {} long; what is to go on in the next one is a window of its own, from \"0us\" on",
            shown(frame_us)
        );
        findings.push(Finding::at(draft.span.clone(), message).help(help));
    }
    let window = Window {
        hart: hart?.value,
        guest: guest? as u32,
        start_us: u32::try_from(start).ok()?,
        length_us: u32::try_from(length).ok()?,
    };
    (findings.len() == before).then_some(window)
}

fn find_guest(name: &At<String>, drafts: &[GuestDraft], findings: &mut Vec<Finding>) -> Option<usize> {
    let name_of = |draft: &GuestDraft| draft.name.as_ref().map(|name| name.value.clone());
    let found = drafts.iter().position(|draft| name_of(draft).as_ref() == Some(&name.value));
    let names: Option<Vec<String>> = drafts.iter().map(name_of).collect();
    // A guest whose name nobody knows may be it.
    if let (None, Some(names)) = (found, names) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let message = format!("there is no guest {:?} to have this window", name.value);
        findings.push(Finding::at(name.span.clone(), message).help(suggest(&name.value, &names)));
    }
    found
}

/// vCPUs stay at home, so that is where their windows are.
fn check_hart(guest: &Guest, hart: &At<u32>, findings: &mut Vec<Finding>) {
    let homes: BTreeSet<u32> = guest.vcpus.iter().map(|vcpu| vcpu.home).collect();
    if !homes.contains(&hart.value) {
        let message = format!("no vCPU of {} has its home on hart {}", guest.name, hart.value);
        let all = homes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        findings.push(Finding::at(hart.span.clone(), message).help(format!("they are on {all}")));
    }
}

/// Of windows by hart and time, each has to end before the next one of its hart begins.
fn check_overlaps(windows: &[(Window, &WindowDraft)], drafts: &[GuestDraft], findings: &mut Vec<Finding>) {
    let told = |window: &Window| {
        let name = drafts[window.guest as usize].name.as_ref().map_or("", |name| &name.value);
        let end = window.start_us.saturating_add(window.length_us);
        format!("{name}: {} to {}", shown(window.start_us), shown(end))
    };
    // The one that ends last of those before, on the same hart: a long one may cover several.
    let mut longest: Option<&(Window, &WindowDraft)> = None;
    for next in windows {
        let end = |window: &Window| window.start_us.saturating_add(window.length_us);
        if let Some(first) = longest.filter(|first| first.0.hart == next.0.hart) {
            if next.0.start_us < end(&first.0) {
                findings.push(
                    Finding::at(next.1.span.clone(), format!("two windows of hart {} overlap", next.0.hart))
                        .saying(told(&next.0))
                        .and(first.1.span.clone(), told(&first.0))
                        .help("at any time a hart is one guest's: shorten one of them, or move it"),
                );
            }
            if end(&next.0) <= end(&first.0) {
                continue;
            }
        }
        longest = Some(next);
    }
}

/// A vCPU whose guest has no window where it lives would never run.
fn check_homes(
    draft: &Draft,
    guests: &[Option<(Guest, GuestPaths)>],
    windows: &[(Window, &WindowDraft)],
    findings: &mut Vec<Finding>,
) {
    for (index, guest) in guests.iter().enumerate() {
        let Some((guest, _)) = guest else { continue };
        let homes: BTreeSet<u32> = guest.vcpus.iter().map(|vcpu| vcpu.home).collect();
        let has_window =
            |hart: u32| windows.iter().any(|(one, _)| (one.guest as usize, one.hart) == (index, hart));
        let place: &Span = &draft.guests[index].span;
        let missing: Vec<String> =
            homes.into_iter().filter(|hart| !has_window(*hart)).map(|hart| hart.to_string()).collect();
        let harts = match &missing[..] {
            [] => continue,
            [one] => format!("hart {one}"),
            _ => format!("each of the harts {}", missing.join(", ")),
        };
        let message = format!("{} has a vCPU on {harts}, and no window there", guest.name);
        let help = format!(
            "add [[window]] with guest = {:?}, hart = {}, and a start and a length with which it overlaps no other; or give it other `harts`",
            guest.name, missing[0]
        );
        findings.push(Finding::at(place.clone(), message).help(help));
    }
}
