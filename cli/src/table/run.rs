//! Tables of what happened in a run.
use super::{
    table,
    units::{named, percent, time_ns},
};
use crate::report::{Clock, GuestOutcome, GuestReport, RunReport};
use ainori_report::{Fault, Latency, StopReason, Stopped};
use serde_json::Value;
use std::{collections::BTreeMap, fmt::Write};

/// Everything about a run that a person wants to see at its end.
pub fn run(report: &RunReport) -> String {
    let mut text = String::new();
    for (mark, lines) in &report.console {
        let _ = writeln!(text, "Last lines of {mark}:");
        for line in lines {
            let _ = writeln!(text, "    {line}");
        }
    }
    let _ = writeln!(text, "{}", guests(report));
    if report.guests.iter().any(|guest| !guest.vcpus.is_empty()) {
        let _ = writeln!(text, "{}", vcpus(report));
    }
    if !report.cores.is_empty() {
        let _ = writeln!(text, "{}", cores(report));
    }
    text += &faults(report);
    let _ = writeln!(text, "{}", clock(report));
    for problem in &report.problems {
        let _ = writeln!(text, "Problem: {problem}");
    }
    let _ = writeln!(text, "{}: {}.", report.system, report.outcome.words());
    text
}

/// Ticks of `time` as a time; as ticks if the timebase is not known.
fn ticks(report: &RunReport, ticks: u64) -> String {
    match &report.board {
        Some(board) if board.timebase_hz != 0 => time_ns(ticks as f64 * 1e9 / board.timebase_hz as f64),
        _ => format!("{ticks} ticks"),
    }
}

fn clock(report: &RunReport) -> String {
    let emulated = "An emulator has no caches and no TLB cost: times are not those of a chip";
    match &report.clock {
        Clock::Host => {
            format!("Times are the host's, on QEMU {}: they say nothing about speed.", report.qemu)
        }
        Clock::Icount => format!("Virtual time, 4 ns per instruction, on QEMU {}. {emulated}.", report.qemu),
        Clock::Lockstep { q, ns, hash, .. } => format!(
            "Lockstep virtual time, {ns} ns per instruction, q = {q}, on QEMU {}, schedule {}. {emulated}.",
            report.qemu,
            hash.as_deref().unwrap_or("unknown")
        ),
    }
}

fn guests(report: &RunReport) -> comfy_table::Table {
    let mut rows = table(&["guest", "outcome", "stopped at", "results"], &["stopped at"]);
    for guest in &report.guests {
        let stopped =
            guest.stopped.as_ref().map_or_else(|| "-".into(), |stopped| ticks(report, stopped.time));
        rows.add_row([guest.name.clone(), outcome(guest), stopped, results(guest)]);
    }
    rows
}

fn outcome(guest: &GuestReport) -> String {
    let words = match guest.outcome {
        GuestOutcome::Done => "done",
        GuestOutcome::Failed
            if guest.stopped.as_ref().is_some_and(|s| s.reason == StopReason::AllHartsStopped) =>
        {
            "failed: stopped all its vCPUs"
        }
        GuestOutcome::Failed => "failed",
        GuestOutcome::Faulted => "faulted",
        GuestOutcome::Running => "running",
    };
    format!("{words}{}", if guest.background { " (background)" } else { "" })
}

/// A guest's results, a line each. Histograms are left to the JSON.
fn results(guest: &GuestReport) -> String {
    let summaries = guest.results.iter().filter(|result| !result.contains_key("hist"));
    let fields = summaries.flatten().filter(|(_, value)| !value.is_null() && **value != Value::Bool(true));
    let lines: Vec<_> = fields.map(|(name, value)| named(name, value)).collect();
    lines.join("\n")
}

fn vcpus(report: &RunReport) -> comfy_table::Table {
    let numbers = ["core", "running", "dispatches", "preemptions", "migrations", "interrupt delay", "exits"];
    let header = [
        "vCPU",
        "core",
        "running",
        "dispatches",
        "preemptions",
        "migrations",
        "interrupt delay",
        "exits",
        "by cause",
    ];
    let mut rows = table(&header, &numbers);
    for stats in report.guests.iter().flat_map(|guest| &guest.vcpus) {
        rows.add_row([
            format!("{}.{}", stats.guest, stats.vcpu),
            stats.core.to_string(),
            ticks(report, stats.running),
            stats.dispatches.to_string(),
            stats.preemptions.to_string(),
            stats.migrations.to_string(),
            latency(report, &stats.latency),
            stats.exits.values().sum::<u64>().to_string(),
            counts(&stats.exits),
        ]);
    }
    rows
}

/// Mean and longest delay from an interrupt to the guest's handler.
fn latency(report: &RunReport, latency: &Latency) -> String {
    match latency.sum.checked_div(latency.count) {
        Some(mean) => format!("{}, max {}", ticks(report, mean), ticks(report, latency.max)),
        None => "-".into(),
    }
}

fn cores(report: &RunReport) -> comfy_table::Table {
    let numbers = ["core", "hart", "switches", "messages", "IPIs sent", "saved", "idle", "longest stretch"];
    let header = [
        "core",
        "hart",
        "interrupts",
        "switches",
        "messages",
        "IPIs sent",
        "saved",
        "idle",
        "longest stretch",
        "its cause",
    ];
    let mut rows = table(&header, &numbers);
    let end = report.end.as_ref().map_or(0, |end| end.time);
    for core in &report.cores {
        rows.add_row([
            core.core.to_string(),
            core.hart.to_string(),
            counts(&core.interrupts),
            core.switches.to_string(),
            core.messages.to_string(),
            core.ipis_sent.to_string(),
            core.ipis_saved.to_string(),
            percent(core.idle, end),
            ticks(report, core.longest_stretch),
            core.longest_stretch_cause.to_string(),
        ]);
    }
    rows
}

/// `wfi 12, sbi-ipi 3`: the most frequent first.
fn counts<Name: AsRef<str>>(counts: &BTreeMap<Name, u64>) -> String {
    let mut counts: Vec<_> = counts.iter().map(|(name, count)| (name.as_ref(), *count)).collect();
    counts.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let texts: Vec<_> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    texts.join(", ")
}

/// What guests did wrong, with their registers.
pub fn faults(report: &RunReport) -> String {
    let stops = report.guests.iter().filter_map(|guest| guest.stopped.as_ref());
    stops.filter_map(|stopped| Some(fault(report, stopped, stopped.fault.as_ref()?))).collect()
}

fn fault(report: &RunReport, stopped: &Stopped, fault: &Fault) -> String {
    let mut text = format!("Fault of {}.{}: {}\n", stopped.guest, stopped.vcpu, fault.what);
    let address = format!("{:#018x}", fault.address);
    let instruction = match fault.instruction {
        0 => "unknown".into(),
        // The two lowest bits of a compressed instruction are not both set.
        bits if bits & 3 != 3 => format!("{:04x}", bits & 0xffff),
        bits => format!("{bits:08x}"),
    };
    let facts = [
        ("time", ticks(report, stopped.time)),
        ("pc", format!("{:#018x}", fault.pc)),
        ("cause", format!("{} ({})", fault.cause, cause(fault.cause))),
        ("address", address),
        ("instruction", instruction),
        ("mode", fault.mode.to_string()),
    ];
    for (name, value) in facts {
        let _ = writeln!(text, "    {name:<12} {value}");
    }
    let registers = fault.x.iter().enumerate().skip(1).map(|(index, value)| (register(index), *value));
    columns(&mut text, registers.collect());
    columns(&mut text, fault.csr.iter().map(|(name, value)| (name.to_string(), *value)).collect());
    text
}

/// Registers, four in a row.
fn columns(text: &mut String, registers: Vec<(String, u64)>) {
    for row in registers.chunks(4) {
        let cells: Vec<_> = row.iter().map(|(name, value)| format!("{name:>8} {value:016x}")).collect();
        let _ = writeln!(text, "    {}", cells.join("  "));
    }
}

/// Name of an integer register in the calling convention.
fn register(index: usize) -> String {
    const NAMES: [&str; 32] = [
        "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5",
        "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
    ];
    NAMES.get(index).map_or_else(|| format!("x{index}"), ToString::to_string)
}

/// The exception of an `scause` (privileged specification, table of `scause` with the H extension).
fn cause(scause: u64) -> &'static str {
    match scause {
        0 => "instruction address misaligned",
        1 => "instruction access fault",
        2 => "illegal instruction",
        3 => "breakpoint",
        4 => "load address misaligned",
        5 => "load access fault",
        6 => "store address misaligned",
        7 => "store access fault",
        8 => "call from U-mode",
        9 => "call from HS-mode",
        10 => "call from VS-mode",
        12 => "instruction page fault",
        13 => "load page fault",
        15 => "store page fault",
        20 => "instruction guest-page fault",
        21 => "load guest-page fault",
        22 => "virtual instruction",
        23 => "store guest-page fault",
        _ => "unknown",
    }
}
