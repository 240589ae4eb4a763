//! What a priority does for tasks under windows in time. Nobody waits for a more urgent guest there; but the hypervisor does its own slow work beside the least
//! urgent guest of a hart, and that may be more of the windows than deadlines bear.
use super::micros;
use ainori_deadlines::{Answer, Guest, HartAnswer, System, Verdict};
use ainori_limits::PRIORITIES;
use ainori_manifest::housekeeping_core;
use ainori_sched::Class;
use std::collections::BTreeMap;

/// Advice for tasks, by the index of the guest and the place among its tasks.
pub type Advice = BTreeMap<(usize, usize), String>;

/// The hart that keeps house.
pub fn house(harts: u32, guests: &[Guest]) -> u32 {
    let residents = guests.iter().flat_map(|guest| {
        guest.vcpus.iter().map(move |vcpu| (vcpu.home as usize, guest.priority_on(vcpu.home)))
    });
    housekeeping_core(harts as usize, residents) as u32
}

/// For each task that may be late: another priority of its guest, if with that it is late no more, or for a shorter time, and each task that keeps its deadline
/// does so still. `analyse` answers for a system, as it did with `answers` for this one.
pub fn advice(
    system: &System,
    answers: &[HartAnswer],
    analyse: impl Fn(&System) -> Vec<HartAnswer>,
) -> Advice {
    let mut advice = Advice::new();
    if !system.has_windows() {
        return advice;
    }
    let hart = system.housekeeping_hart;
    let here = answers.iter().filter(|answer| answer.hart == hart).flat_map(|answer| &answer.tasks);
    let late: Vec<&Answer> = here.filter(|answer| is_late(&answer.verdict)).collect();
    for guest in 0..system.guests.len() {
        let its: Vec<&Answer> = late.iter().copied().filter(|answer| answer.guest == guest).collect();
        let Some((other, change)) = others(system, guest, hart).filter(|_| !its.is_empty()) else { continue };
        let raised = raised(system, guest, other, &change);
        let then = analyse(&raised);
        let after = |before: &Answer| tasks(&then).find(|one| same(one, before));
        let is_met = |answer: &Answer| answer.verdict == Verdict::Met;
        if tasks(answers).any(|before| is_met(before) && !after(before).is_some_and(is_met)) {
            continue;
        }
        let (own, name) = (&system.guests[guest].name, &system.guests[other].name);
        let priorities = match change {
            Change { its, theirs: None } => format!("give {own} `priority = {its}`, above {name}"),
            Change { its, theirs: Some(theirs) } => {
                format!("give {own} `priority = {its}` and {name} `priority = {theirs}`")
            }
        };
        let place = if raised.housekeeping_hart == hart {
            format!("beside {name}")
        } else {
            format!("on hart {}", raised.housekeeping_hart)
        };
        for before in its {
            if let Some(gain) = after(before).and_then(|after| gain(&before.verdict, &after.verdict)) {
                let text =
                    format!("{priorities}: the hypervisor does its housework {place} then, and {gain}");
                advice.insert((before.guest, before.task), text);
            }
        }
    }
    advice
}

/// Priorities with which a guest isn't among the least urgent of a hart any more.
struct Change {
    its: u8,
    /// That of the other guest, if there is none above what it has.
    theirs: Option<u8>,
}

/// The guest that would be the least urgent at home on a hart if this one were more urgent, and how that is made so. `None` if this one isn't the least urgent now, or is alone.
fn others(system: &System, guest: usize, hart: u32) -> Option<(usize, Change)> {
    let level = |index: usize| {
        let priority = system.guests[index].priority_on(hart);
        system.policy.level(Class { priority, ..Class::default() })
    };
    let is_home = |index: &usize| system.guests[*index].vcpus.iter().any(|vcpu| vcpu.home == hart);
    let others = (0..system.guests.len()).filter(|other| *other != guest).filter(is_home);
    // Who has no tasks there bears it best.
    let other = others.min_by_key(|other| (level(*other), system.guests[*other].tasks_on(hart).count()))?;
    let change = match level(other).checked_add(1).filter(|next| *next < PRIORITIES) {
        Some(its) => Change { its, theirs: None },
        None => Change { its: PRIORITIES - 1, theirs: Some(PRIORITIES - 2) },
    };
    (level(guest) <= level(other)).then_some((other, change))
}

fn raised(system: &System, guest: usize, other: usize, change: &Change) -> System {
    let mut raised = system.clone();
    raised.guests[guest].priorities.fill(change.its);
    if let Some(theirs) = change.theirs {
        raised.guests[other].priorities.fill(theirs);
    }
    raised.housekeeping_hart = house(raised.harts, &raised.guests);
    raised
}

fn tasks(answers: &[HartAnswer]) -> impl Iterator<Item = &Answer> {
    answers.iter().flat_map(|answer| &answer.tasks)
}

fn same(one: &Answer, other: &Answer) -> bool {
    (one.guest, one.task) == (other.guest, other.task)
}

fn is_late(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Missed { .. } | Verdict::Unbounded(_))
}

/// What is better then, in words; `None` if it is hardly so.
fn gain(before: &Verdict, after: &Verdict) -> Option<String> {
    let late = |by_ns: u64| Some(format!("this task is late by {} us at most", micros(by_ns)));
    match (before, after) {
        (_, Verdict::Met) => Some("this task keeps its deadline".into()),
        (Verdict::Unbounded(_), Verdict::Missed { by_ns }) => late(*by_ns),
        (Verdict::Missed { by_ns: before }, Verdict::Missed { by_ns }) if *by_ns <= before - before / 10 => {
            late(*by_ns)
        }
        _ => None,
    }
}
