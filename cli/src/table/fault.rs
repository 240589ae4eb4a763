//! What guests did wrong, with their registers.
use super::units::ticks;
use crate::report::RunReport;
use ainori_limits::cause::exception_name;
use ainori_report::{Fault, Stopped};
use std::fmt::Write;

/// The faults of all guests; empty if there are none.
pub fn faults(report: &RunReport) -> String {
    let stops = report
        .guests
        .iter()
        .flat_map(|guest| guest.ends().map(|stopped| (stopped, !guest.former_lives.is_empty())));
    stops
        .filter_map(|(stopped, is_one_of_many)| {
            Some(fault(report, stopped, stopped.fault.as_ref()?, is_one_of_many))
        })
        .collect()
}

fn fault(report: &RunReport, stopped: &Stopped, fault: &Fault, is_one_of_many: bool) -> String {
    let life = if is_one_of_many { format!(" in life {}", stopped.life) } else { String::new() };
    let mut text = format!("Fault of {}/{}{life}: {}\n", stopped.guest, stopped.vcpu, fault.what);
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
        ("cause", format!("{} ({})", fault.cause, exception_name(fault.cause).unwrap_or("unknown"))),
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
