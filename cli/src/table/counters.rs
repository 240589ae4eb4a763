//! Tables of what the hypervisor counted.
use super::{
    Rows,
    units::{micros, percent, ticks},
};
use crate::report::RunReport;
use ainori_limits::STACK_SIZE;
use ainori_report::VcpuStats;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

/// A line for each vCPU and each hart; nothing if the hypervisor did not come to its end.
pub fn summary(report: &RunReport) -> String {
    let mut text = String::new();
    if vcpus(report).next().is_some() {
        let _ = writeln!(
            text,
            "\nvCPUs. Delays: from an interrupt's due time to the guest's handler, where the hypervisor delivered it.\n{}",
            vcpu_summary(report)
        );
    }
    if !report.cores.is_empty() {
        let _ = writeln!(
            text,
            "\nHarts. An irqs-off section is a time in the hypervisor between two looks for interrupts.\n{}",
            hart_summary(report)
        );
    }
    text
}

/// All other counters.
pub fn rest(report: &RunReport) -> String {
    let mut text = String::new();
    if vcpus(report).next().is_some() {
        let _ = writeln!(text, "\nExits of the vCPUs.{}\n{}", about_fast_path(report), vcpu_exits(report));
    }
    if !report.cores.is_empty() {
        let _ = writeln!(text, "\nTime in the hypervisor by the cause of the exit.\n{}", causes(report));
        let _ = writeln!(text, "\nMore of the harts.\n{}", hart_rest(report));
    }
    text
}

fn vcpus(report: &RunReport) -> impl Iterator<Item = &VcpuStats> {
    report.guests.iter().flat_map(|guest| &guest.vcpus)
}

fn vcpu_summary(report: &RunReport) -> Rows {
    let header = ["vCPU", "hart", "running", "exits", "preempted", "delays", "mean us", "p99 us", "max us"];
    let mut rows = Rows::new(&header, &header[1..]);
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".into());
    for stats in vcpus(report) {
        let latency = &stats.latency;
        let longest = (latency.count != 0).then_some(latency.max);
        rows.add_row([
            name(stats),
            hart(report, stats.core),
            ticks(report, stats.running),
            stats.exits.values().sum::<u64>().to_string(),
            stats.preemptions.to_string(),
            latency.count.to_string(),
            or_none(latency.mean().map(|mean| micros(report, mean))),
            or_none(latency.percentile(99.0).map(|value| micros(report, value as f64))),
            or_none(longest.map(|value| micros(report, value as f64))),
        ]);
    }
    rows
}

fn about_fast_path(report: &RunReport) -> &'static str {
    if vcpus(report).any(|stats| stats.fast_path.is_some()) {
        " What was carried out on the fast path is no exit."
    } else {
        ""
    }
}

fn vcpu_exits(report: &RunReport) -> Rows {
    // Where no guest's kernel runs in user mode, nothing is told of the fast path.
    let has_fast_path = vcpus(report).any(|stats| stats.fast_path.is_some());
    let mut header = vec!["vCPU", "dispatches", "migrations", "exits by cause"];
    if has_fast_path {
        header.insert(3, "fast path");
    }
    let mut rows = Rows::new(&header, &header[1..header.len() - 1]);
    for stats in vcpus(report) {
        let mut row = vec![
            name(stats),
            stats.dispatches.to_string(),
            stats.migrations.to_string(),
            counts(&stats.exits),
        ];
        if has_fast_path {
            row.insert(3, stats.fast_path.unwrap_or(0).to_string());
        }
        rows.add_row(row);
    }
    rows
}

fn hart_summary(report: &RunReport) -> Rows {
    let header = ["hart", "idle", "switches", "IPIs sent", "longest irqs-off us", "its cause"];
    let mut rows = Rows::new(&header, &header[..5]);
    let end = report.end.as_ref().map_or(0, |end| end.time);
    for core in &report.cores {
        rows.add_row([
            core.hart.to_string(),
            percent(core.idle, end),
            core.switches.to_string(),
            core.ipis_sent.to_string(),
            micros(report, core.longest_irqs_off as f64),
            core.longest_irqs_off_cause.to_string(),
        ]);
    }
    rows
}

fn hart_rest(report: &RunReport) -> Rows {
    let header =
        ["hart", "messages", "IPIs saved", "stack", "interrupts", "longest irqs-off section in us by cause"];
    let mut rows = Rows::new(&header, &header[..4]);
    for core in &report.cores {
        let mut longest: Vec<_> = core.irqs_off_max.iter().collect();
        longest.sort_by_key(|(_, ticks)| std::cmp::Reverse(**ticks));
        let longest =
            longest.iter().map(|(cause, ticks)| format!("{cause} {}", micros(report, **ticks as f64)));
        rows.add_row([
            core.hart.to_string(),
            core.messages.to_string(),
            core.ipis_saved.to_string(),
            percent(core.stack, STACK_SIZE as u64),
            counts(&core.interrupts),
            longest.collect::<Vec<_>>().join(", "),
        ]);
    }
    rows
}

/// What an exit of each cause costs, over all harts: the most expensive causes first.
fn causes(report: &RunReport) -> Rows {
    let header = ["cause", "exits", "mean us", "max us", "share of all"];
    let mut rows = Rows::new(&header, &header[1..]);
    let sum = |cause: &str| vcpus(report).filter_map(|stats| stats.exits.get(cause)).sum::<u64>();
    let total =
        |cause: &str| report.cores.iter().filter_map(|core| core.irqs_off_total.get(cause)).sum::<u64>();
    let longest = |cause: &str| report.cores.iter().filter_map(|core| core.irqs_off_max.get(cause)).max();
    let causes: BTreeSet<&str> =
        vcpus(report).flat_map(|stats| stats.exits.keys()).map(|cause| &**cause).collect();
    let mut causes: Vec<_> = causes.into_iter().map(|cause| (cause, sum(cause), total(cause))).collect();
    causes.sort_by_key(|(_, _, ticks)| std::cmp::Reverse(*ticks));
    let all = causes.iter().map(|(_, _, ticks)| ticks).sum();
    for (cause, exits, ticks) in causes {
        rows.add_row([
            cause.to_owned(),
            exits.to_string(),
            micros(report, ticks as f64 / exits as f64),
            micros(report, longest(cause).copied().unwrap_or(0) as f64),
            percent(ticks, all),
        ]);
    }
    rows
}

fn name(stats: &VcpuStats) -> String {
    format!("{}/{}", stats.guest, stats.vcpu)
}

/// The hart of a core.
fn hart(report: &RunReport, core: u32) -> String {
    let known = report.cores.iter().find(|stats| stats.core == core);
    known.map_or_else(|| "-".into(), |stats| stats.hart.to_string())
}

/// `wfi 12, sbi-ipi 3`: the most frequent first.
fn counts<Name: AsRef<str>>(counts: &BTreeMap<Name, u64>) -> String {
    let mut counts: Vec<_> = counts.iter().map(|(name, count)| (name.as_ref(), *count)).collect();
    counts.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let texts: Vec<_> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    texts.join(", ")
}
