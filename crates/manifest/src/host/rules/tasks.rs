//! Rules about the tasks that a guest declares.
use super::{BoardView, harts};
use crate::config::Guest;
use crate::host::{
    Task,
    findings::{Finding, Span},
    reader::{At, Micros},
    schema::{GuestDraft, TaskDraft},
};
use std::collections::{BTreeSet, HashMap};

/// Longest name of a task: names stand in tables.
const MAX_NAME: usize = 16;

/// Checks the tasks of one guest, which is known if there is no error in it. Returns them if there is none in them either.
pub fn check(
    draft: &GuestDraft,
    guest: Option<&Guest>,
    board: BoardView,
    findings: &mut Vec<Finding>,
) -> Option<Vec<Task>> {
    let before = findings.len();
    if let Some(excess) = draft.tasks.get(Task::MAX_COUNT) {
        let message = format!("{} tasks of a guest are too many", draft.tasks.len());
        findings.push(Finding::at(excess.span.clone(), message).help(format!("at most {}", Task::MAX_COUNT)));
    }
    check_names(&draft.tasks, findings);
    let tasks: Option<Vec<Task>> =
        draft.tasks.iter().map(|task| check_one(task, guest, board, findings)).collect();
    tasks.filter(|_| findings.len() == before)
}

fn check_names(drafts: &[TaskDraft], findings: &mut Vec<Finding>) {
    let mut seen: HashMap<&str, &Span> = HashMap::new();
    for name in drafts.iter().filter_map(|draft| draft.name.as_ref()) {
        let text = &*name.value;
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if text.is_empty() || text.len() > MAX_NAME || !text.chars().all(allowed) {
            findings.push(
                Finding::at(name.span.clone(), format!("{text:?} can't be a task's name"))
                    .help(format!("1 to {MAX_NAME} of a-z, 0-9 and -")),
            );
        }
        if let Some(first) = seen.insert(text, &name.span) {
            findings.push(
                Finding::at(name.span.clone(), format!("two tasks of this guest have the name {text:?}"))
                    .saying("the second")
                    .and(first.clone(), "the first")
                    .help("give each task of a guest a name of its own"),
            );
        }
    }
}

fn check_one(
    draft: &TaskDraft,
    guest: Option<&Guest>,
    board: BoardView,
    findings: &mut Vec<Finding>,
) -> Option<Task> {
    let period = draft.period.as_ref().map(|time| check_time("period", time, 1, findings));
    let execution = draft.execution.as_ref().map(|time| check_time("execution", time, 1, findings));
    let deadline = draft.deadline.as_ref().map(|time| check_time("deadline", time, 1, findings));
    let jitter = draft.jitter.as_ref().map_or(0, |time| check_time("jitter", time, 0, findings));
    let blocking = draft.blocking.as_ref().map_or(0, |time| check_time("blocking", time, 0, findings));
    let remote_blocking = draft.remote_blocking.as_ref().map_or(blocking, |time| {
        let remote = check_time("remote_blocking", time, 0, findings);
        if remote > blocking {
            let message = format!("remote_blocking: {remote} us is more than the {blocking} us of blocking, of which it is a part");
            findings.push(Finding::at(time.span.clone(), message).help("lengthen blocking, or shorten it"));
        }
        remote
    });
    let priority = draft.priority.as_ref().and_then(|priority| {
        let valid = u8::try_from(priority.value).ok();
        if valid.is_none() {
            let message = format!("there is no task priority {}", priority.value);
            let help = format!("from 0 to {}; the higher goes first within its guest", u8::MAX);
            findings.push(Finding::at(priority.span.clone(), message).help(help));
        }
        valid
    });
    let is_there = draft.hart.as_ref().is_none_or(|hart| harts::check(hart, board, findings));
    let hart = guest.filter(|_| is_there).and_then(|guest| check_hart(draft, guest, findings));
    Some(Task {
        name: draft.name.as_ref()?.value.clone(),
        hart: hart?,
        period_us: period?,
        execution_us: execution?,
        deadline_us: deadline.or(period)?,
        priority: priority?,
        jitter_us: jitter,
        blocking_us: blocking,
        remote_blocking_us: remote_blocking,
        is_handler: draft.handler.as_ref().is_some_and(|handler| handler.value),
        // Who has the text counts.
        line: 0,
    })
}

fn check_time(key: &str, time: &At<Micros>, least: u64, findings: &mut Vec<Finding>) -> u64 {
    let us = time.value.0;
    if !(least..=Task::MAX_US).contains(&us) {
        let message = format!("{key}: {us} us is out of range");
        let help = format!("from {least} us to {} s", Task::MAX_US / 1_000_000);
        findings.push(Finding::at(time.span.clone(), message).help(help));
    }
    us
}

/// The task's hart: the one that the manifest says, or the only one that its guest has.
fn check_hart(draft: &TaskDraft, guest: &Guest, findings: &mut Vec<Finding>) -> Option<u32> {
    let homes: BTreeSet<u32> = guest.vcpus.iter().map(|vcpu| vcpu.home).collect();
    let all = homes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match &draft.hart {
        Some(hart) if homes.contains(&hart.value) => Some(hart.value),
        Some(hart) => {
            let message = format!("no vCPU of {} has its home on hart {}", guest.name, hart.value);
            findings.push(Finding::at(hart.span.clone(), message).help(format!("they are on {all}")));
            None
        }
        None if draft.lost.has("hart") => None,
        None if homes.len() == 1 => homes.first().copied(),
        None => {
            let message = format!("{} has vCPUs on several harts: on which is this task?", guest.name);
            findings.push(
                Finding::at(draft.span.clone(), message)
                    .saying("`hart` is missing")
                    .help(format!("add `hart`, one of {all}")),
            );
            None
        }
    }
}
