//! Rules about what guests share: names, devices, harts, and the number of vCPUs.
use super::complete;
use crate::config::{Guest, Kind};
use crate::host::{
    GuestPaths,
    findings::{Finding, Span},
    schema::GuestDraft,
};
use ainori_limits::{HART_IDS, MAX_GUESTS, Room};
use ainori_sched::{Policy, Preset, Ranking, presets};
use std::{cmp::Reverse, collections::HashMap};

/// Checks all guests together. `guests` has those in which there is no error.
pub fn check(
    drafts: &[GuestDraft],
    guests: &[Option<(Guest, GuestPaths)>],
    preset: Option<&Preset>,
    findings: &mut Vec<Finding>,
) {
    check_counts(drafts, guests, findings);
    check_background(drafts, findings);
    check_names(drafts, findings);
    check_devices(drafts, findings);
    // Neither the quantum nor the clock matters for its choices.
    if let Some((preset, policy)) = preset.and_then(|one| Some((one, Policy::preset(one.name, 1, 1_000)?))) {
        if !policy.shares_cores() {
            check_exclusive_harts(drafts, guests, preset, findings);
        }
        if policy.ranks_by_core() {
            check_ranked_harts(drafts, guests, (preset, &policy), findings);
        } else {
            check_ranks(drafts, preset, findings);
        }
        check_priorities(drafts, guests, &policy, findings);
        if policy.keeps_apart() {
            check_seats(drafts, guests, preset, findings);
        }
    }
}

/// Most vCPUs of a system, in any build of the hypervisor.
const MOST_VCPUS: usize = Room::LARGE.vcpus;

fn check_counts(drafts: &[GuestDraft], guests: &[Option<(Guest, GuestPaths)>], findings: &mut Vec<Finding>) {
    if let Some(excess) = drafts.get(MAX_GUESTS) {
        let message = format!("{} guests are too many", drafts.len());
        findings.push(Finding::at(excess.span.clone(), message).help(format!("at most {MAX_GUESTS}")));
    }
    let mut vcpus = 0;
    for (draft, guest) in complete(drafts, guests) {
        vcpus += guest.vcpus.len();
        if vcpus > MOST_VCPUS && guest.vcpus.len() <= MOST_VCPUS {
            let message = format!("with this guest the system has {vcpus} vCPUs");
            let place = draft.vcpus.as_ref().map_or(&draft.span, |vcpus| &vcpus.span);
            findings.push(
                Finding::at(place.clone(), message)
                    .help(format!("at most {MOST_VCPUS} in all guests together")),
            );
            return;
        }
    }
}

/// A run ends when the last guest that isn't in the background stops.
fn check_background(drafts: &[GuestDraft], findings: &mut Vec<Finding>) {
    let background = |draft: &GuestDraft| Some(draft.background.as_ref().filter(|is| is.value)?.span.clone());
    let spans: Vec<Span> = drafts.iter().filter_map(background).collect();
    if let Some(first) = spans.first().filter(|_| spans.len() == drafts.len()) {
        let message = "every guest is in the background, so the run would have nothing to wait for";
        findings.push(Finding::at(first.clone(), message).help("remove `background` from one of them"));
    }
}

fn check_names(drafts: &[GuestDraft], findings: &mut Vec<Finding>) {
    let mut seen: HashMap<&str, &Span> = HashMap::new();
    for name in drafts.iter().filter_map(|draft| draft.name.as_ref()) {
        if let Some(first) = seen.insert(&name.value, &name.span) {
            findings.push(
                Finding::at(name.span.clone(), format!("two guests have the name {:?}", name.value))
                    .saying("the second")
                    .and(first.clone(), "the first")
                    .help("give each guest a name of its own"),
            );
        }
    }
}

fn check_devices(drafts: &[GuestDraft], findings: &mut Vec<Finding>) {
    let mut owners: HashMap<&str, (usize, &Span)> = HashMap::new();
    let all = drafts.iter().enumerate();
    for (guest, device) in all.flat_map(|(guest, draft)| draft.devices.iter().map(move |one| (guest, one))) {
        if let Some((owner, first)) = owners.insert(&device.value, (guest, &device.span)) {
            let path = &device.value;
            let (message, help) = if owner == guest {
                (format!("the device {path} is in this list twice"), "name each device once")
            } else {
                let help = "a device belongs to one guest: remove it from one of the lists";
                (format!("the device {path} has two owners"), help)
            };
            findings.push(
                Finding::at(device.span.clone(), message)
                    .saying("the second")
                    .and(first.clone(), "the first")
                    .help(help),
            );
        }
    }
}

fn check_exclusive_harts(
    drafts: &[GuestDraft],
    guests: &[Option<(Guest, GuestPaths)>],
    preset: &Preset,
    findings: &mut Vec<Finding>,
) {
    let place = |index: usize| {
        let draft: &GuestDraft = &drafts[index];
        draft.harts.as_ref().map_or(&draft.span, |harts| &harts.span).clone()
    };
    let harts_of =
        |guest: &Option<(Guest, GuestPaths)>| guest.as_ref().map_or(0, |(guest, _)| allowed(guest));
    let sets: Vec<u64> = guests.iter().map(harts_of).collect();
    for (second, set) in sets.iter().enumerate() {
        for (first, earlier) in sets[..second].iter().enumerate().filter(|(_, earlier)| *earlier & set != 0) {
            let hart = (earlier & set).trailing_zeros();
            findings.push(
                Finding::at(
                    place(second),
                    format!("under the policy {:?}, two guests can't share hart {hart}", preset.name),
                )
                .saying("the second guest")
                .and(place(first), "the first")
                .help("give each guest harts of its own, or choose another policy"),
            );
        }
    }
}

/// Where two vCPUs of a guest never wait on one hart, there must be a hart for each.
fn check_seats(
    drafts: &[GuestDraft],
    guests: &[Option<(Guest, GuestPaths)>],
    preset: &Preset,
    findings: &mut Vec<Finding>,
) {
    for (draft, guest) in complete(drafts, guests) {
        let harts = allowed(guest).count_ones() as usize;
        if guest.vcpus.len() > harts {
            let place = draft.vcpus.as_ref().map_or(&draft.span, |vcpus| &vcpus.span);
            findings.push(
                Finding::at(
                    place.clone(),
                    format!(
                        "under the policy {:?}, a guest can't have more vCPUs than harts: two of {} would wait on one",
                        preset.name, guest.name
                    ),
                )
                .saying(format!("{} vCPUs on {harts} harts", guest.vcpus.len()))
                .help(format!("give it {harts} vCPUs at most, or more harts, or choose another policy")),
            );
        }
    }
}

/// A guest may be allowed on a hart and yet never be there, as it has too few vCPUs and these stay at home: a priority of its own there means nothing.
fn check_ranked_harts(
    drafts: &[GuestDraft],
    guests: &[Option<(Guest, GuestPaths)>],
    (preset, policy): (&Preset, &Policy),
    findings: &mut Vec<Finding>,
) {
    for (draft, guest) in complete(drafts, guests) {
        let reach = guest.vcpus.iter().fold(0, |all, vcpu| all | policy.reach(vcpu.home, vcpu.harts));
        let ranked = draft.priority_on.iter().flat_map(|priorities| &priorities.value.0);
        for (hart, _) in ranked.filter(|(hart, _)| reach.checked_shr(hart.value).unwrap_or(0) & 1 == 0) {
            let message = format!(
                "under the policy {:?} no vCPU of {} comes to hart {}: its priority there doesn't count",
                preset.name, guest.name, hart.value
            );
            let help =
                "remove it, or put the hart before others in the guest's `harts`, or give it more vCPUs";
            findings.push(Finding::at(hart.span.clone(), message).warning().help(help));
        }
    }
}

/// Who has given a guest priorities of its own on some harts should know when they don't count.
fn check_ranks(drafts: &[GuestDraft], preset: &Preset, findings: &mut Vec<Finding>) {
    for priorities in drafts.iter().filter_map(|draft| draft.priority_on.as_ref()) {
        let message = format!(
            "under the policy {:?} a guest has the same priority on all harts: `priority_on` doesn't count",
            preset.name
        );
        let others: Vec<_> = presets()
            .iter()
            .filter(|preset| preset.ranking == Ranking::PerCore)
            .map(|one| one.name)
            .collect();
        let help = format!("it does under {}", others.join(" and "));
        findings.push(Finding::at(priorities.span.clone(), message).warning().help(help));
    }
}

/// What isn't Linux may be an RTOS. It loses its deadlines where it takes turns with a guest of its own priority, or waits for a Linux of a higher one.
/// (That one RTOS waits for another is what priorities are for, and Linux doesn't mind.) Not if it goes first on another hart that they share: then
/// somebody has decided where it has its deadlines. One warning for each guest is enough: it says what to do.
/// Where priorities don't count, nobody is promised a time.
fn check_priorities(
    drafts: &[GuestDraft],
    guests: &[Option<(Guest, GuestPaths)>],
    policy: &Policy,
    findings: &mut Vec<Finding>,
) {
    if !policy.takes_cores() {
        return;
    }
    let all: Vec<(&GuestDraft, &Guest)> = complete(drafts, guests).collect();
    let place =
        |draft: &GuestDraft| draft.priority.as_ref().map_or(&draft.span, |priority| &priority.span).clone();
    for (index, (draft, guest)) in all.iter().enumerate() {
        let loss = all.iter().enumerate().find_map(|(place, (met, other))| {
            let shared = may_run_on(guest, policy) & may_run_on(other, policy);
            let is_linux = |guest: &Guest| guest.kind == Kind::Linux;
            let harts = (0..HART_IDS).filter(|hart| shared >> hart & 1 != 0);
            // The one where the guest is the most urgent, beside the other.
            let (_, hart, its, theirs) = harts
                .map(|hart| (hart, priority_on(guest, hart, policy), priority_on(other, hart, policy)))
                .map(|(hart, its, theirs)| (Reverse(its.cmp(&theirs)), hart, its, theirs))
                .min()?;
            let name = &guest.name;
            if is_linux(guest) && is_linux(other) {
                None
            } else if its == theirs && place < index {
                Some((
                    (met, &other.name),
                    format!("{} and {name} take turns on hart {hart}: both have priority {its}", other.name),
                ))
            } else if its < theirs && is_linux(other) {
                Some((
                    (met, &other.name),
                    format!(
                        "{name} waits for {} on hart {hart}: priority {its} is below {theirs}",
                        other.name
                    ),
                ))
            } else {
                None
            }
        });
        if let Some(((met, met_name), message)) = loss {
            findings.push(
                Finding::at(place(draft), message)
                    .warning()
                    .saying(&guest.name)
                    .and(place(met), met_name)
                    .help("an RTOS misses deadlines so: if one of them is one, give it the higher priority, or a hart of its own"),
            );
        }
    }
}

/// The priority of the guest's vCPUs on a hart.
pub fn priority_on(guest: &Guest, hart: u32, policy: &Policy) -> u8 {
    policy.priority(guest.priority, guest.priority_on(hart.into()))
}

/// The set of harts that the guest's vCPUs are allowed on.
fn allowed(guest: &Guest) -> u64 {
    guest.vcpus.iter().fold(0, |set, vcpu| set | vcpu.harts)
}

/// The set of harts where vCPUs of the guest may be met.
pub fn may_run_on(guest: &Guest, policy: &Policy) -> u64 {
    guest.vcpus.iter().fold(0, |set, vcpu| set | policy.reach(vcpu.home, vcpu.harts))
}
