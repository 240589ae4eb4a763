//! Rules about weights: for how long each guest has a hart that it shares with equals.
use super::{
    complete,
    policy::{MAX_QUANTUM_US, shown},
    sharing::{may_run_on, priority_on},
};
use crate::config::{self, Guest};
use crate::host::{GuestPaths, findings::Finding, reader::At, schema::GuestDraft};
use ainori_limits::HART_IDS;
use ainori_sched::{Class, Policy, Preset};

/// Checks the weights of all guests. `guests` has those in which there is no error; `times` are those of the policy.
pub fn check(
    drafts: &[GuestDraft],
    guests: &[Option<(Guest, GuestPaths)>],
    preset: Option<&Preset>,
    times: Option<&config::Policy>,
    findings: &mut Vec<Finding>,
) {
    // Neither the quantum nor the clock matters for its choices.
    let Some((preset, policy)) = preset.and_then(|one| Some((one, Policy::preset(one.name, 1, 1_000)?)))
    else {
        return;
    };
    let all: Vec<(&GuestDraft, &Guest)> = complete(drafts, guests).collect();
    for (draft, guest) in all.iter().copied() {
        let Some(weight) = &draft.weight else { continue };
        if policy.co_schedules() {
            findings.push(refuse_gangs(weight, preset));
            continue;
        }
        let turn_us = times.map_or(0, |times| times.quantum_us).saturating_mul(guest.weight.get().into());
        if turn_us > MAX_QUANTUM_US {
            let message = format!("with this weight a turn of {} would last {}", guest.name, shown(turn_us));
            let help =
                format!("at most {}: choose a smaller weight, or a shorter quantum", shown(MAX_QUANTUM_US));
            findings.push(Finding::at(weight.span.clone(), message).help(help));
        }
        // One of which nothing is known may be its equal.
        if all.len() == drafts.len() && !all.iter().any(|(_, other)| are_equals(guest, other, &policy)) {
            let message =
                format!("the weight of {} decides nothing: it takes turns with no other guest", guest.name);
            let help = how_to_mend(preset, &policy);
            findings.push(Finding::at(weight.span.clone(), message).warning().help(help));
        }
    }
}

/// What to do about a weight that decides nothing.
fn how_to_mend(preset: &Preset, policy: &Policy) -> String {
    let name = preset.name;
    if policy.has_windows() {
        format!(
            "remove it: under the policy {name:?} each guest has windows of its own, and more of a hart by longer ones"
        )
    } else if !policy.shares_cores() {
        format!("remove it: under the policy {name:?} no guests share a hart")
    } else {
        "remove it, or give guests that share a hart the same priority: equals take turns by weight".into()
    }
}

/// The clock gives all guests turns of one length, so that all cores know without a message whose turn it is.
fn refuse_gangs(weight: &At<u32>, preset: &Preset) -> Finding {
    let message = format!(
        "under the policy {:?} all turns are of one length: a guest can't have a weight",
        preset.name
    );
    Finding::at(weight.span.clone(), message).help("remove the key, or choose another policy")
}

/// May these two, if they are two, meet on a hart and take turns there? Guests with windows in time don't.
fn are_equals(guest: &Guest, other: &Guest, policy: &Policy) -> bool {
    if policy.has_windows() {
        return false;
    }
    let level = |guest: &Guest, hart| {
        let priority = priority_on(guest, hart, policy);
        policy.level(Class { priority, ..Class::default() })
    };
    let shared = may_run_on(guest, policy) & may_run_on(other, policy);
    let mut harts = (0..HART_IDS).filter(|hart| shared >> hart & 1 != 0);
    !std::ptr::eq(guest, other) && harts.any(|hart| level(guest, hart) == level(other, hart))
}
