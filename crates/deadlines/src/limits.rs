//! Where nothing can be said about a guest's tasks, and why: from the choices of the policy and who may be met on the hart.
use crate::system::{Guest, System, bit};
use ainori_limits::IRQ_LEVELS;
use ainori_sched::Admission;
use std::collections::BTreeSet;

/// Why nothing can be said about the tasks of a guest on a hart, in words that tell what to do about it; `None` if the analysis holds.
#[must_use]
pub fn reason(system: &System, guest: usize, hart: u32) -> Option<String> {
    let own = &system.guests[guest];
    if system.needs_other_build {
        return Some(
            "the system needs another build of the hypervisor than the usual one (the large build, that for shadow tables, or those for harts without H or Sstc), of which it isn't known how long it takes".into(),
        );
    }
    if let Some(why) = unclear(system, own, hart) {
        return Some(why);
    }
    if system.has_windows() {
        // Nobody else runs, nor is heard, in the guest's windows.
        let has_any = system.windows.iter().any(|window| (window.guest, window.hart) == (guest, hart));
        return (!has_any).then(|| format!("{} has no window on hart {hart}", own.name));
    }
    if let Some(why) = waits_for_ever(system, guest, hart) {
        return Some(why);
    }
    let others = || system.guests.iter().enumerate().filter(move |(index, _)| *index != guest);
    let met: Vec<&Guest> =
        others().map(|(_, other)| other).filter(|other| system.may_be_met(other, hart) > 0).collect();
    let first = met.first()?;
    if !system.has_priorities() {
        return Some(format!("under this policy {} takes turns with {}", own.name, first.name));
    }
    // Whose interrupts come while somebody else runs: no bound is known of how many.
    if matches!(system.policy.admission, Admission::Any) {
        return Some(format!(
            "under this policy the interrupts of {} reach its hart at any time",
            first.name
        ));
    }
    if let Some(other) = asks_its_siblings(system, guest, hart) {
        return Some(format!(
            "under this policy what a vCPU of {other} asks of another one reaches hart {hart} at any time: give it one vCPU, or harts of its own"
        ));
    }
    let level = own.priority_on(hart);
    if let Some(owner) = interrupts_all(system, level) {
        return Some(format!(
            "there are so many priorities above that of {} that the devices of {owner} may interrupt it",
            own.name
        ));
    }
    met.into_iter().find_map(|other| {
        let theirs = other.priority_on(hart);
        let name = &other.name;
        if theirs < level {
            None
        } else if theirs == level {
            Some(format!("{} takes turns with {name}, which has the same priority on hart {hart}", own.name))
        } else if other.tasks_on(hart).next().is_none() {
            Some(format!(
                "{name} has a higher priority on hart {hart}, and no task there says for how long it computes"
            ))
        } else {
            unclear(system, other, hart)
        }
    })
}

/// Who waits on a hart, with this guest or ahead of it, for a vCPU on another hart that may be kept from running for nobody knows how long. Where it is known for how long, the analysis counts it.
fn waits_for_ever(system: &System, guest: usize, hart: u32) -> Option<String> {
    system.waiting(guest, hart).find_map(|waiting| {
        let name = &system.guests[waiting].name;
        system.siblings(waiting, hart).find_map(|sibling| {
            let home = sibling.home;
            let why = system.ahead_of(waiting, home).find_map(|other| why_kept(system, waiting, other, home))?;
            Some(format!(
                "a task of {name} on hart {hart} waits for its vCPU on hart {home} (`remote_blocking`), and that one {why}"
            ))
        })
    })
}

/// Why it isn't known for how long a guest keeps the vCPU of another one from a hart.
fn why_kept(system: &System, kept: usize, by: usize, hart: u32) -> Option<String> {
    let (kept, other) = (&system.guests[kept], &system.guests[by]);
    let name = &other.name;
    if !system.has_priorities() || other.priority_on(hart) == kept.priority_on(hart) {
        Some(format!("takes turns with {name}"))
    } else if other.tasks_on(hart).next().is_none() {
        Some(format!("waits there for {name}, of which no task says for how long it computes"))
    } else if system.waiting(by, hart).next().is_some() {
        Some(format!(
            "waits there for {name}, which itself, or through one ahead of it, waits for a vCPU that others keep from its hart"
        ))
    } else {
        // As nobody ahead there waits so, this doesn't come back here.
        let why = reason(system, by, hart).or_else(|| unclear(system, kept, hart))?;
        Some(format!("waits there for {name}: {why}"))
    }
}

/// Another guest with several vCPUs, of which some may be met on a hart, under a policy that keeps them apart: who runs elsewhere asks the hart for one that
/// it keeps waiting, and that one may be anywhere. Each time that takes the hart as much as a look at what is deferred, every 30 us at worst.
fn asks_its_siblings(system: &System, guest: usize, hart: u32) -> Option<&str> {
    let others = system.guests.iter().enumerate().filter(|(index, _)| *index != guest);
    let mut asking = others
        .map(|(_, other)| other)
        .filter(|other| other.vcpus.len() > 1 && system.may_be_met(other, hart) > 0);
    asking.next().filter(|_| system.policy.keeps_apart()).map(|other| &*other.name)
}

/// A guest whose devices may interrupt those of this priority, though it is less urgent: the board's interrupts have fewer levels than there are
/// priorities, and the lowest share one.
fn interrupts_all(system: &System, level: u8) -> Option<&str> {
    let priorities = || system.guests.iter().flat_map(|guest| &guest.priorities);
    let above: BTreeSet<u8> = priorities().copied().filter(|priority| *priority > level).collect();
    let is_below = |guest: &&Guest| guest.priorities.iter().any(|priority| *priority < level);
    let mut owners = system.guests.iter().filter(|guest| guest.has_devices).filter(is_below);
    // Its own level is among those that have to be apart.
    owners.next().filter(|_| above.len() + 1 >= IRQ_LEVELS as usize).map(|guest| &*guest.name)
}

/// What may interrupt a guest from outside, as often as others like, although no task of it is said to handle that.
fn unheard(guest: &Guest) -> Option<&'static str> {
    let source = match (guest.has_channels, guest.has_devices) {
        (false, false) => return None,
        (true, false) => "a channel's bell",
        (false, true) => "a device",
        (true, true) => "a channel's bell, or a device,",
    };
    guest.tasks.iter().all(|task| !task.is_handler).then_some(source)
}

/// Why it isn't clear what a guest that declares tasks does on a hart.
fn unclear(system: &System, guest: &Guest, hart: u32) -> Option<String> {
    let name = &guest.name;
    if let Some(source) = unheard(guest) {
        return Some(format!(
            "{source} may interrupt {name}, and none of its tasks handles that: declare what it takes as a task with `handler = true`"
        ));
    }
    if system.may_be_met(guest, hart) > 1 {
        return Some(format!("several vCPUs of {name} may be on hart {hart}, and take turns"));
    }
    let moves = guest
        .vcpus
        .iter()
        .filter(|vcpu| system.reach(vcpu) & bit(hart) != 0)
        .any(|vcpu| system.reach(vcpu) != bit(hart));
    moves.then(|| {
        format!("the vCPU of {name} may leave hart {hart}, or come to it: give it `harts` of its own")
    })
}
