//! What guests did wrong, with their registers.
use super::units::ticks;
use crate::report::RunReport;
use ainori_limits::cause::{exception, exception_name};
use ainori_report::{Fault, NO_TRAP, Stopped};
use std::fmt::Write;

/// The major opcode of instructions for control registers, among others.
const SYSTEM: u32 = 0x73;
/// A kernel's timer, of the extension Sstc.
const STIMECMP: u32 = 0x14d;

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
    // An instruction that is illegal has none.
    let address = (fault.cause != u64::from(exception::ILLEGAL_INSTRUCTION))
        .then(|| format!("{:#018x}", fault.address));
    let instruction = match fault.instruction {
        // The hart says the same of an instruction that it doesn't know and of one that is all zeros.
        0 => "unknown, or all zeros".into(),
        // The two lowest bits of a compressed instruction are not both set.
        bits if bits & 3 != 3 => format!("{:04x}", bits & 0xffff),
        bits => format!("{bits:08x}{}", register_accessed(bits)),
    };
    let is_trap = fault.cause != NO_TRAP;
    let facts = [
        ("time", Some(ticks(report, stopped.time))),
        ("pc", Some(format!("{:#018x}", fault.pc))),
        ("cause", is_trap.then(|| cause(fault.cause))),
        ("address", address.filter(|_| is_trap)),
        ("instruction", is_trap.then_some(instruction)),
        ("mode", Some(fault.mode.to_string())),
        ("handler", unreachable_handler(fault)),
    ];
    for (name, value) in facts {
        if let Some(value) = value {
            let _ = writeln!(text, "    {name:<12} {value}");
        }
    }
    let registers = fault.x.iter().enumerate().skip(1).map(|(index, value)| (register(index), *value));
    columns(&mut text, registers.collect());
    columns(&mut text, fault.csr.iter().map(|(name, value)| (name.to_string(), *value)).collect());
    text
}

/// An exception's number and name.
fn cause(code: u64) -> String {
    format!("{code} ({})", exception_name(code).unwrap_or("unknown"))
}

/// `, of CSR 0x14d: stimecmp, for harts with Sstc` behind an instruction that reads or writes a control register; nothing behind others. What a program is built for that the harts haven't is
/// mostly seen here first, as its file needn't say it.
fn register_accessed(instruction: u32) -> String {
    let (opcode, function, number) = (instruction & 0x7f, instruction >> 12 & 7, instruction >> 20 & 0xfff);
    if opcode != SYSTEM || matches!(function, 0 | 4) {
        return String::new();
    }
    // Bits 9:8 are the least mode that may reach it.
    let whose = match (number, number >> 8 & 3) {
        (STIMECMP, _) => ": stimecmp, for harts with Sstc",
        (_, 3) => ", for machine mode alone",
        (_, 2) => ", for hypervisors on harts with H",
        _ => "",
    };
    format!(", of CSR {number:#05x}{whose}")
}

/// Is it the first instruction of the guest's own trap handler that it can't fetch? Then what went wrong first is what that was called for.
fn unreachable_handler(fault: &Fault) -> Option<String> {
    let csr = |name| fault.csr.get(name).copied();
    let fetches = [exception::FETCH_ACCESS, exception::FETCH_PAGE_FAULT, exception::FETCH_GUEST_PAGE_FAULT];
    let is_fetch = fetches.iter().any(|code| u64::from(*code) == fault.cause);
    // The two lowest bits are the handler's mode. All are 0 before the guest has set one and has trapped; and an interrupt has no instruction to blame.
    let has_trapped = csr("vscause")? != 0 || csr("vsepc")? != 0;
    let is_handler = is_fetch && has_trapped && csr("vstvec")? & !3 == fault.pc;
    let called_for = csr("vscause").filter(|cause| is_handler && cause >> 63 == 0)?;
    Some(format!("can't be fetched; called for {} at {:#018x}", cause(called_for), csr("vsepc")?))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(cause: u64, pc: u64) -> Fault {
        let csr = [("vstvec", 0x1800_0001), ("vscause", 2), ("vsepc", 0x8040_02bc)];
        Fault {
            what: "a fault".into(),
            pc,
            cause,
            address: 0,
            instruction: 0,
            mode: "VS".into(),
            x: vec![0; 32],
            csr: csr.into_iter().map(|(name, value)| (name.into(), value)).collect(),
        }
    }

    /// A kernel that was built for Sstc ran on harts without, and all that was told of it was `14d29073`.
    #[test]
    fn the_register_of_an_illegal_instruction_is_named() {
        for (instruction, told) in [
            (0x14d2_9073, ", of CSR 0x14d: stimecmp, for harts with Sstc"),
            // csrr a0, mhartid; csrwi hstatus, 1; csrr a0, cycle; csrrc a0, stvec, a1.
            (0xf140_2573, ", of CSR 0xf14, for machine mode alone"),
            (0x6000_d073, ", of CSR 0x600, for hypervisors on harts with H"),
            (0xc000_2573, ", of CSR 0xc00"),
            (0x1055_b573, ", of CSR 0x105"),
            // mret; hlv.b a0, (a1); add a0, a0, a1.
            (0x3020_0073, ""),
            (0x6005_c573, ""),
            (0x00b5_0533, ""),
        ] {
            assert_eq!(register_accessed(instruction), told, "{instruction:#x}");
        }
    }

    #[test]
    fn what_an_unreachable_handler_was_called_for_is_told() {
        let told = "can't be fetched; called for 2 (illegal instruction) at 0x00000000804002bc";
        assert_eq!(unreachable_handler(&fault(20, 0x1800_0000)).as_deref(), Some(told));
        assert_eq!(unreachable_handler(&fault(20, 0x1900_0000)), None, "it is not its handler");
        assert_eq!(
            unreachable_handler(&fault(2, 0x1800_0000)),
            None,
            "its handler has an illegal instruction"
        );
        let mut early = fault(20, 0);
        early.csr.values_mut().for_each(|value| *value = 0);
        assert_eq!(unreachable_handler(&early), None, "it has jumped to 0 before it had a handler");
    }
}
