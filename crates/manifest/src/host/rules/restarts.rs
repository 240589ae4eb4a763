//! Whether a guest is started again, and how often; and whether a watchdog has it stopped.
use super::super::{
    findings::Finding,
    reader::At,
    schema::{GuestDraft, TranslationDraft},
};
use crate::config::{
    MAX_RESTART_INTERVAL_US, MAX_RESTART_LIMIT, MAX_WATCHDOG_US, MIN_WATCHDOG_US, Restart, Restarts,
};
use std::ops::RangeInclusive;

/// The limit and its interval must be in range, and there must be something that they limit.
pub fn check(draft: &GuestDraft, findings: &mut Vec<Finding>) -> Option<Restarts> {
    let default = Restarts::default();
    let when = draft.restart.as_ref().map_or(default.when, |when| when.value);
    let spans = [
        draft.restart_limit.as_ref().map(|limit| limit.span.clone()),
        draft.restart_interval.as_ref().map(|interval| interval.span.clone()),
    ];
    if when == Restart::Never && !draft.lost.has("restart") {
        for span in spans.into_iter().flatten() {
            let message = "this guest is never started again, so there is nothing to limit";
            findings.push(
                Finding::at(span, message)
                    .help("add restart = \"on-failure\" (or \"always\"), or remove the key"),
            );
        }
    }
    let limit = in_range(
        draft
            .restart_limit
            .as_ref()
            .map(|At { value, span }| At { value: u64::from(*value), span: span.clone() }),
        1..=MAX_RESTART_LIMIT as u64,
        u64::from(default.limit),
        ("restart_limit", "", format!("from 1 to {MAX_RESTART_LIMIT}")),
        findings,
    );
    let interval_us = in_range(
        draft.restart_interval.as_ref().map(|At { value, span }| At { value: value.0, span: span.clone() }),
        1..=MAX_RESTART_INTERVAL_US,
        default.interval_us,
        ("restart_interval", " us", "from 1 us to 86400 s".into()),
        findings,
    );
    Some(Restarts { when, limit: limit? as u32, interval_us: interval_us? })
}

/// For how long the guest may be silent, in microseconds; 0 if it has no watchdog.
pub fn check_watchdog(draft: &GuestDraft, findings: &mut Vec<Finding>) -> Option<u64> {
    let Some(watchdog) = &draft.watchdog else { return Some(0) };
    if draft.translation.as_ref().is_some_and(|translation| translation.value == TranslationDraft::None) {
        let message =
            "a guest without protection can't reach a watchdog: no access of it comes to the hypervisor";
        findings
            .push(Finding::at(watchdog.span.clone(), message).help("remove the key, or protect the guest"));
        return None;
    }
    in_range(
        Some(At { value: watchdog.value.0, span: watchdog.span.clone() }),
        MIN_WATCHDOG_US..=MAX_WATCHDOG_US,
        0,
        ("watchdog", " us", "from 20 ms to 86400 s".into()),
        findings,
    )
}

fn in_range(
    given: Option<At<u64>>,
    range: RangeInclusive<u64>,
    default: u64,
    (name, unit, help): (&str, &str, String),
    findings: &mut Vec<Finding>,
) -> Option<u64> {
    let Some(At { value, span }) = given else { return Some(default) };
    if range.contains(&value) {
        return Some(value);
    }
    findings.push(Finding::at(span, format!("{name}: {value}{unit} is out of range")).help(help));
    None
}
