//! The answer for a set, and its run: what doesn't hold between them.
use super::generate::TaskSet;
use crate::Clock;
use ainori::{
    deadlines::{Deadlines, VerdictKind},
    report::{GuestReport, Outcome as RunOutcome, RunReport},
};
use ainori_manifest::Manifest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// What came of a set.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The answer was that all tasks meet their deadlines.
    pub is_met: bool,
    /// Nothing could be said of some task.
    pub is_unsaid: bool,
    /// The run missed a deadline.
    pub has_missed: bool,
    /// The answer was unsafe: a deadline that was said to be met was missed, or a response was longer than its bound.
    pub is_wrong: bool,
    /// The longest response that was seen of each task with a bound, in thousandths of that.
    pub seen_per_mille: Vec<u64>,
    /// What doesn't hold.
    pub findings: Vec<String>,
}

/// What a run showed of a task.
struct Seen {
    missed: u64,
    worst_ns: u64,
}

/// Analyses a set, runs it, and compares.
pub fn judge(set: &TaskSet) -> Outcome {
    let deadlines = match analyse(set) {
        Ok(deadlines) => deadlines,
        Err(why) => return Outcome { findings: vec![why], ..Outcome::default() },
    };
    let run = set.system.run(Clock::Lockstep { q: set.q });
    compare(set, &deadlines, &run.report)
}

/// What `ainori check` says of a set.
///
/// # Errors
/// If it isn't a system.
pub fn analyse(set: &TaskSet) -> Result<Deadlines, String> {
    let text = set.system.to_string();
    let manifest = Manifest::parse("set.toml", &text, Path::new("/"), "set")
        .map_err(|findings| format!("it isn't a system: {:?}", miette::Report::new(*findings)))?;
    Deadlines::of(&manifest, ainori_deadlines::costs::MIPS).map_err(|why| format!("{why:?}"))
}

fn compare(set: &TaskSet, deadlines: &Deadlines, report: &RunReport) -> Outcome {
    let answers: Vec<_> = deadlines.harts.iter().flat_map(|hart| &hart.tasks).collect();
    let mut outcome = Outcome {
        is_met: answers.iter().all(|answer| answer.verdict == VerdictKind::Met),
        is_unsaid: answers.iter().any(|answer| answer.verdict == VerdictKind::Unsaid),
        ..Outcome::default()
    };
    if outcome.is_unsaid {
        outcome.findings.push("nothing was said of some task".into());
    }
    // A guest that has missed a deadline says that it has failed.
    if !matches!(report.outcome, RunOutcome::Good | RunOutcome::GuestFailed) {
        outcome.findings.push(format!("the run didn't end well: {}", report.outcome.words()));
    }
    for (name, count) in &set.guests {
        let guest = report.guests.iter().find(|guest| guest.name == *name);
        let Some(seen) = guest.and_then(|guest| seen(guest, *count)) else {
            outcome.findings.push(format!("{name} has no result"));
            continue;
        };
        for (seen, number) in seen.iter().zip(1..) {
            let task = format!("task{number}");
            let Some(answer) = answers.iter().find(|answer| answer.guest == *name && answer.task == task)
            else {
                outcome.findings.push(format!("there is no answer for {name}/{task}"));
                continue;
            };
            outcome.has_missed |= seen.missed > 0;
            if answer.verdict == VerdictKind::Met && seen.missed > 0 {
                outcome.is_wrong = true;
                outcome.findings.push(format!(
                    "{name}/{task} is said to meet its deadline, and missed {}; its longest response was {} ns",
                    seen.missed, seen.worst_ns
                ));
            }
            if let Some(bound) = answer.response_ns {
                outcome.seen_per_mille.push(seen.worst_ns * 1_000 / bound.max(1));
                if seen.worst_ns > bound {
                    outcome.is_wrong = true;
                    outcome.findings.push(format!(
                        "{name}/{task} took {} ns, longer than its bound of {bound} ns",
                        seen.worst_ns
                    ));
                }
            }
        }
    }
    outcome
}

/// What a guest has told of its tasks.
fn seen(guest: &GuestReport, count: usize) -> Option<Vec<Seen>> {
    let tasks = guest.results.iter().find_map(|result| result.get("tasks"))?.as_array()?;
    let number = |task: &Value, key: &str| task.get(key)?.as_u64();
    let seen = |task: &Value| {
        // Who did no job has shown nothing.
        number(task, "jobs").filter(|jobs| *jobs > 0)?;
        Some(Seen { missed: number(task, "missed")?, worst_ns: number(task, "worst_ns")? })
    };
    let seen: Vec<Seen> = tasks.iter().map(seen).collect::<Option<_>>()?;
    (seen.len() == count).then_some(seen)
}
