//! What the hypervisor tells of a run, as lines of JSON on the console. The types, and the reader's side, are in the crate
//! `ainori-report`; here they are written without allocating.
use core::fmt::{self, Display, Write};

use ainori_report::histogram::Histogram;
use ainori_report::{MARK, PREFIX, SEPARATOR};
use ainori_sched::VcpuId;
use ainori_trace::Ring;

use crate::cpu::Machine;
use crate::panic::write_directly;
use crate::stats::{CoreCounters, Exit, VcpuCounters};

/// A JSON string, escaped.
struct Quoted<'a>(&'a str);
impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\0'..='\u{1f}' => write!(f, "\\u{:04x}", c as u32)?,
                _ => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// Named counters as a JSON object, without the zeros.
struct Counters<'a>(&'a [&'static str], &'a [u64]);
impl Display for Counters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        let mut separator = "";
        for (name, count) in self.0.iter().zip(self.1).filter(|(_, count)| **count != 0) {
            write!(f, "{separator}\"{name}\":{count}")?;
            separator = ",";
        }
        f.write_char('}')
    }
}

fn record(body: fmt::Arguments<'_>) {
    write_directly(format_args!("{MARK}{SEPARATOR}{PREFIX}{{{body}}}\n"));
}

/// The board, before the first guest runs.
pub fn board(machine: &Machine, hypervisor_bytes: u64) {
    let board = &machine.board;
    record(format_args!(
        r#""record":"board","model":{},"harts":{},"memory":{},"timebase_hz":{},"hypervisor_bytes":{hypervisor_bytes}"#,
        Quoted(&board.model),
        machine.harts.len(),
        board.memory_bytes(),
        board.timebase_hz,
    ));
}

/// The registers and circumstances of a fault.
pub struct Fault<'a> {
    /// In words.
    pub what: &'a str,
    /// Where.
    pub pc: u64,
    /// `scause`.
    pub cause: u64,
    /// Guest-physical address, or `stval`.
    pub address: u64,
    /// The instruction, or 0.
    pub instruction: u32,
    /// `VS` or `VU`.
    pub mode: &'a str,
    /// General registers.
    pub x: &'a [u64; 32],
    /// Supervisor registers.
    pub csr: [(&'static str, u64); 6],
}

impl Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            r#"{{"what":{},"pc":{},"cause":{},"address":{},"instruction":{},"mode":"{}","x":["#,
            Quoted(self.what),
            self.pc,
            self.cause,
            self.address,
            self.instruction,
            self.mode
        )?;
        for (index, value) in self.x.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { "," }, if index == 0 { 0 } else { *value })?;
        }
        f.write_str(r#"],"csr":{"#)?;
        for (index, (name, value)) in self.csr.iter().enumerate() {
            write!(f, r#"{}"{name}":{value}"#, if index == 0 { "" } else { "," })?;
        }
        f.write_str("}}")
    }
}

/// A guest has stopped. Written through the log, as others still run.
pub fn stopped(machine: &Machine, vcpu: VcpuId, reason: &str, time: u64, fault: Option<&Fault<'_>>) {
    let guest = Quoted(&machine.guest_of(vcpu).config.name);
    let index = machine.vcpu(vcpu).index;
    let head = format_args!(
        r#"{PREFIX}{{"record":"stopped","guest":{guest},"vcpu":{index},"reason":"{reason}","time":{time}"#
    );
    match fault {
        Some(fault) => machine.log.line(format_args!(r#"{head},"fault":{fault}}}"#)),
        None => machine.log.line(format_args!(r#"{head},"fault":null}}"#)),
    }
}

/// Counters of a vCPU, at the end.
pub fn vcpu(machine: &Machine, core: u32, id: VcpuId, counters: &VcpuCounters) {
    record(format_args!(
        r#""record":"vcpu","guest":{},"vcpu":{},"core":{core},"exits":{},"dispatches":{},"preemptions":{},"migrations":{},"running":{},"latency":{}"#,
        Quoted(&machine.guest_of(id).config.name),
        machine.vcpu(id).index,
        Counters(Exit::NAMES, &counters.exits),
        counters.dispatches,
        counters.preemptions,
        counters.migrations,
        counters.running,
        Latency(&counters.latency),
    ));
}

struct Latency<'a>(&'a Histogram);
impl Display for Latency<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Histogram { count, sum, min, max, .. } = self.0;
        let min = if *count == 0 { 0 } else { *min };
        write!(f, r#"{{"count":{count},"min":{min},"max":{max},"sum":{sum},"buckets":["#)?;
        let mut separator = "";
        for (value, count) in self.0.buckets() {
            write!(f, "{separator}[{value},{count}]")?;
            separator = ",";
        }
        f.write_str("]}")
    }
}

/// Counters of a core, at the end.
pub fn core(core: u32, hart: u64, counters: &CoreCounters, trace: &Ring<'_>) {
    let (cause, longest) =
        counters.stretch_max.iter().enumerate().max_by_key(|(_, ticks)| **ticks).unwrap_or((0, &0));
    record(format_args!(
        r#""record":"core","core":{core},"hart":{hart},"interrupts":{},"switches":{},"messages":{},"ipis_sent":{},"ipis_saved":{},"idle":{},"longest_stretch":{longest},"longest_stretch_cause":{},"stretch_max":{},"stretch_total":{},"trace":{}"#,
        Counters(&["software", "timer", "external"], &counters.interrupts),
        counters.switches,
        counters.messages,
        counters.ipis_sent,
        counters.ipis_saved,
        counters.idle,
        Quoted(if *longest == 0 { "" } else { Exit::NAMES[cause] }),
        Counters(Exit::NAMES, &counters.stretch_max),
        Counters(Exit::NAMES, &counters.stretch_total),
        Trace(trace),
    ));
}

struct Trace<'a>(&'a Ring<'a>);
impl Display for Trace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.memory() {
            None => f.write_str("null"),
            Some((address, bytes)) => {
                write!(f, r#"{{"address":{address},"bytes":{bytes},"written":{}}}"#, self.0.head())
            }
        }
    }
}

/// The last line.
pub fn end(machine: &Machine, time: u64) {
    let lost: u64 =
        machine.guests.iter().map(|guest| guest.output.lost()).sum::<u64>() + machine.log.channel().lost();
    record(format_args!(r#""record":"end","time":{time},"console_bytes_lost":{lost}"#));
}
