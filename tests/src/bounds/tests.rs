use super::*;
use ainori::report::{Clock, Host};
use ainori_report::Board;
use serde_json::json;

const RTOS: Rtos<'_> = Rtos { name: "freertos", hart: 0, periods: 200 };

/// What FreeRTOS prints if all is well.
pub(crate) fn result(periods: u64, missed: u64) -> serde_json::Value {
    json!({ "periods": periods, "missed": missed, "ticks_lost": 0, "delay_ns": { "max": 2000 }, "handler_delay_ns": { "max": 900 },
        "ok": missed == 0 })
}

/// A guest that stopped for this reason after this result.
pub(crate) fn guest(reason: Option<&str>, result: Option<serde_json::Value>) -> GuestReport {
    let stopped = reason.map(|reason| {
        serde_json::from_value(
            json!({ "guest": "freertos", "vcpu": 0, "life": 1, "reason": reason, "next": "end", "time": 1, "fault": null }),
        )
        .unwrap()
    });
    let mut guest = GuestReport {
        name: "freertos".into(),
        kind: ainori_manifest::config::Kind::Elf,
        background: false,
        outcome: GuestOutcome::Running,
        former_lives: Vec::new(),
        started: Some(0),
        stopped,
        results: result.into_iter().map(|result| result.as_object().unwrap().clone()).collect(),
        vcpus: Vec::new(),
    };
    guest.judge();
    guest
}

/// The run of such a guest, on a board of one hart.
pub(crate) fn report(guests: Vec<GuestReport>) -> RunReport {
    let core = json!({ "core": 0, "hart": 0, "interrupts": {}, "switches": 0, "messages": 0, "ipis_sent": 0, "ipis_saved": 0, "idle": 0,
        "longest_irqs_off": 10, "longest_irqs_off_cause": "timer", "irqs_off_max": {}, "irqs_off_total": {}, "longest_delay": 0, "stack": 1000, "trace": null });
    RunReport {
        system: "test".into(),
        outcome: Outcome::of(&guests),
        problems: Vec::new(),
        clock: Clock::Icount,
        qemu: String::new(),
        board: Some(Board {
            model: String::new(),
            harts: 1,
            memory: 1,
            timebase_hz: 10_000_000,
            hypervisor_bytes: 1,
        }),
        guests,
        cores: vec![serde_json::from_value(core).unwrap()],
        end: None,
        console: Default::default(),
        trace: None,
        host: Host::default(),
    }
}

/// Kinds of what doesn't hold of the run of one guest.
fn kinds(preset: &str, guest: GuestReport) -> Vec<Kind> {
    let found = findings(&report(vec![guest]), preset, &[RTOS]);
    found.into_iter().map(|finding| finding.kind).collect()
}

#[test]
fn a_good_run_has_no_findings() {
    for preset in ["ainori", "round-robin", "delayed"] {
        assert_eq!(kinds(preset, guest(Some("shutdown"), Some(result(200, 0)))), []);
    }
}

/// One that takes turns with others is late, and says so itself.
#[test]
fn only_who_was_promised_something_must_be_in_time() {
    let late = || guest(Some("failure"), Some(result(200, 7)));
    assert_eq!(kinds("round-robin", late()), []);
    assert_eq!(kinds("delayed", late()), [Kind::Tick]);
    assert_eq!(kinds("ainori", late()), [Kind::Tick]);
}

/// Nobody looked under `round-robin`.
#[test]
fn a_dead_rtos_is_found_under_any_policy() {
    for preset in ["ainori", "round-robin", "delayed"] {
        for (reason, result) in [
            (Some("fault"), None),
            (Some("fault"), Some(result(200, 0))),
            (Some("fault"), Some(result(200, 7))),
            (Some("failure"), Some(result(200, 0))),
            (Some("all-harts-stopped"), Some(result(200, 0))),
        ] {
            let kinds = kinds(preset, guest(reason, result));
            assert!(kinds.contains(&Kind::Neighbour), "{preset}, {reason:?}: {kinds:?}");
        }
    }
}

#[test]
fn an_rtos_that_still_runs_at_the_end_is_found() {
    let mut report = report(vec![guest(None, Some(result(200, 0)))]);
    assert_eq!(report.outcome, Outcome::GuestFailed);
    assert_eq!(findings(&report, "round-robin", &[RTOS])[0].kind, Kind::Neighbour);
    // That has a finding of its own.
    report.outcome = Outcome::TimeLimit;
    let found = findings(&report, "round-robin", &[RTOS]);
    assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [Kind::Hang]);
}

#[test]
fn an_rtos_that_is_not_in_the_report_is_found() {
    for preset in ["ainori", "round-robin"] {
        assert_eq!(findings(&report(Vec::new()), preset, &[RTOS])[0].kind, Kind::Neighbour);
    }
}

#[test]
fn periods_that_were_not_measured_are_found() {
    for preset in ["ainori", "round-robin", "delayed"] {
        for periods in [0, 199, 201] {
            assert_eq!(kinds(preset, guest(Some("shutdown"), Some(result(periods, 0)))), [Kind::Neighbour]);
        }
    }
}

#[test]
fn guests_that_told_nothing_are_found() {
    let report = report(vec![guest(Some("shutdown"), None)]);
    assert_eq!(report.outcome, Outcome::Unreported);
    assert_eq!(findings(&report, "round-robin", &[])[0].kind, Kind::Neighbour);
}

/// Without them nobody knows how long irqs-off sections were.
#[test]
fn a_report_without_its_board_or_cores_is_found() {
    let good = || report(vec![guest(Some("shutdown"), Some(result(200, 0)))]);
    for report in [RunReport { board: None, ..good() }, RunReport { cores: Vec::new(), ..good() }] {
        let found = findings(&report, "round-robin", &[RTOS]);
        assert_eq!(found.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [Kind::Emulator]);
    }
}

/// An RTOS that is said to be where there is no hart: nobody would look at its core.
#[test]
fn an_rtos_is_on_a_hart_of_the_board() {
    let report = report(vec![guest(Some("shutdown"), Some(result(200, 0)))]);
    assert_eq!(findings(&report, "ainori", &[RTOS]), []);
    let elsewhere = Rtos { hart: 200, ..RTOS };
    assert_eq!(findings(&report, "ainori", &[elsewhere])[0].kind, Kind::Emulator);
}
