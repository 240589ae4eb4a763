//! A table of tasks and their deadlines.
use super::Rows;
use crate::deadlines::{Deadlines, HartReport, PartReport, TaskReport, VerdictKind, micros};
use std::fmt::Write;

/// All tasks, and what is left of each hart. Empty if there are no tasks.
pub fn deadlines(deadlines: &Deadlines) -> String {
    if deadlines.harts.is_empty() {
        return String::new();
    }
    let mut rows = Rows::new(
        &["hart", "task", "priority", "period", "deadline", "longest", "verdict", "what bounds it, in us"],
        &["hart", "priority", "period", "deadline", "longest"],
    );
    for (hart, task) in
        deadlines.harts.iter().flat_map(|hart| hart.tasks.iter().map(move |task| (hart, task)))
    {
        rows.add_row([
            hart.hart.to_string(),
            format!("{}/{}", task.guest, task.task),
            task.priority.to_string(),
            micros(task.period_ns),
            micros(task.deadline_ns),
            task.response_ns.map_or_else(|| "-".into(), micros),
            verdict(task),
            parts(task),
        ]);
    }
    let mut text = format!("Deadlines, in us, of harts with {} MIPS:\n{rows}\n", deadlines.mips);
    for HartReport { hart, taken_percent, own_work_percent, left_percent, windows, .. } in &deadlines.harts {
        let own_work = format!("housework and moving: {own_work_percent:.1} %");
        let _ = if windows.windows.is_empty() {
            writeln!(
                text,
                "Of hart {hart} tasks and hypervisor take {taken_percent:.1} % at most ({own_work}); {left_percent:.1} % is left for others."
            )
        } else {
            writeln!(
                text,
                "Of hart {hart} at least {left_percent:.1} % is left in the windows of guests without tasks ({own_work} at most)."
            )
        };
    }
    text
}

fn verdict(task: &TaskReport) -> String {
    match task.verdict {
        VerdictKind::Met => "met".into(),
        VerdictKind::Missed => format!("missed by {}", micros(task.late_ns.unwrap_or_default())),
        VerdictKind::Unbounded => "missed, no bound".into(),
        VerdictKind::Unsaid => "can't be said".into(),
    }
}

/// So many parts are told of each response: what is behind them hardly matters.
const MOST_PARTS: usize = 6;

/// `own 900, rtos/control 2x 300, switches 32`; or why there is no bound, or only a coarse one.
fn parts(task: &TaskReport) -> String {
    if let Some(why) = &task.why {
        return why.clone();
    }
    let told = |part: &PartReport| match part.jobs {
        Some(jobs) if jobs > 1 => format!("{} {jobs}x {}", part.what, micros(part.ns / jobs)),
        _ => format!("{} {}", part.what, micros(part.ns)),
    };
    let (first, rest) = task.parts.split_at(task.parts.len().min(MOST_PARTS));
    let mut all: Vec<String> = first.iter().map(told).collect();
    match rest {
        [] if first.is_empty() => {
            all.push("a coarse bound: their work goes on for too long to look at all of it".into())
        }
        [] => {}
        [one] => all.push(told(one)),
        _ => {
            let ns = rest.iter().map(|part| part.ns).sum();
            all.push(format!("{} others {}", rest.len(), micros(ns)));
        }
    }
    all.join(", ")
}
