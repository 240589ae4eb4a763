//! What the hypervisor tells of a run, as lines of JSON on the console. The types, and the reader's side, are in the crate
//! `ainori-report`; here they are written without allocating.
use core::fmt::{self, Display, Write};

use ainori_lifecycle::Next;
use ainori_report::histogram::Histogram;
use ainori_report::{MARK, PREFIX, SEPARATOR};
use ainori_sched::VcpuId;
use ainori_trace::Ring;

use crate::cpu::Machine;
use crate::guest::stop::{Happened, Record};
use crate::guest::vcpu::Resident;
use crate::panic::write_directly;
use crate::stats::{CoreCounters, Exit, interrupt};

/// A JSON string, escaped.
struct Quoted<'a>(&'a str);
impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        // BOUND: the model's name in the board's device tree. Only at boot.
        for c in self.0.chars() {
            match c {
                '"' | '\\' | '\0'..='\u{1f}' => write!(f, "\\u{:04x}", c as u32)?,
                _ => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// Named counters as a JSON object, without the zeros.
struct Counters<'a>(&'a [&'static str], &'a [u64]);
impl Display for Counters<'_> {
    /// Only at the end of the run.
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

/// One part of the report on the end of a guest's life, or on the beginning of the next: `part` counts from 0. Each has one number at most, so
/// that none takes long. False if it was the last.
pub fn life(guest: &str, record: &Record, part: usize, put: &mut dyn FnMut(&[u8])) -> bool {
    const X: usize = 14;
    const SYSTEM: usize = X + 32;
    let (name, stopped) = match &record.happened {
        Happened::Restarted => ("restarted", None),
        Happened::Stopped(stopped) => ("stopped", Some(stopped)),
    };
    let fault = stopped.and_then(|stopped| stopped.fault.as_ref());
    let (text, more, number) = match (part, stopped, fault) {
        (0, ..) => {
            put(PREFIX.as_bytes());
            put(b"{\"record\":\"");
            (name, "\"", None)
        }
        (1, ..) => {
            put(b",\"guest\":\"");
            // Its letters need no escapes.
            (guest, "\"", None)
        }
        (2, ..) => (",\"life\":", "", Some(u64::from(record.life))),
        (3, ..) => (",\"time\":", "", Some(record.time)),
        (4, None, _) => ("}\n", "", None),
        (4, Some(stopped), _) => {
            put(b",\"reason\":\"");
            (stopped.reason, "\"", None)
        }
        (5, Some(stopped), _) => match stopped.next {
            Next::End => (",\"next\":\"end\"", "", None),
            Next::Restart => (",\"next\":\"restart\"", "", None),
            Next::GiveUp => (",\"next\":\"give-up\"", "", None),
        },
        (6, Some(stopped), _) => (",\"vcpu\":", "", Some(u64::from(stopped.vcpu))),
        (7, _, None) => (",\"fault\":null}\n", "", None),
        (7, _, Some(_)) => (",\"fault\":{\"what\":\"", "", None),
        (8, _, Some(fault)) => (fault.what.text(), "\"", None),
        (9, _, Some(fault)) => (",\"pc\":", "", Some(fault.pc)),
        (10, _, Some(fault)) => (",\"cause\":", "", Some(fault.cause)),
        (11, _, Some(fault)) => (",\"address\":", "", Some(fault.address)),
        (12, _, Some(fault)) => (",\"instruction\":", "", Some(u64::from(fault.instruction))),
        (13, _, Some(fault)) => {
            put(b",\"mode\":\"");
            (fault.mode, "\",\"x\":[", None)
        }
        (X..SYSTEM, _, Some(fault)) => (if part == X { "" } else { "," }, "", fault.x.get(part - X).copied()),
        (_, _, Some(fault)) => match fault.system.get(part - SYSTEM) {
            Some((name, value)) => {
                put(if part == SYSTEM { b"],\"csr\":{\"" } else { b",\"" });
                (*name, "\":", Some(*value))
            }
            None => ("}}}\n", "", None),
        },
        (_, _, None) => return false,
    };
    put(text.as_bytes());
    put(more.as_bytes());
    if let Some(number) = number {
        put_number(number, put);
    }
    !text.ends_with('\n')
}

/// Puts a number in decimal. `core::fmt` takes four times as long.
fn put_number(mut number: u64, put: &mut dyn FnMut(&[u8])) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    // BOUND: 20 digits, some 8 instructions each.
    for place in digits.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        start -= 1;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    put(digits.get(start..).unwrap_or_default());
}

/// Counters of a vCPU. Only at the end of the run.
pub fn vcpu(machine: &Machine, core: u32, id: VcpuId, resident: &Resident) {
    let counters = &resident.counters;
    record(format_args!(
        r#""record":"vcpu","guest":"{}","vcpu":{},"core":{core},"exits":{},"dispatches":{},"preemptions":{},"migrations":{},"running":{},"latency":{}"#,
        machine.guest_of(id).config.name,
        machine.vcpu(id).index,
        Counters(Exit::NAMES, &counters.exits),
        counters.dispatches,
        counters.preemptions,
        counters.migrations,
        counters.running,
        Last::new(resident),
    ));
}

/// What comes last in the counters of a vCPU.
#[cfg(not(feature = "no-h"))]
type Last<'a> = Latency<'a>;

/// The same, and what was carried out on the fast path.
#[cfg(feature = "no-h")]
struct Last<'a>(Latency<'a>, u64);
#[cfg(feature = "no-h")]
impl<'a> Last<'a> {
    fn new(resident: &'a Resident) -> Self {
        Self(Latency::new(resident), resident.state.fast_path_count())
    }
}
#[cfg(feature = "no-h")]
impl Display for Last<'_> {
    /// Only at the end of the run.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(latency, fast_path) = self;
        write!(f, r#"{latency},"fast_path":{fast_path}"#)
    }
}

struct Latency<'a>(&'a Histogram);
impl<'a> Latency<'a> {
    fn new(resident: &'a Resident) -> Self {
        Self(&resident.counters.latency)
    }
}
impl Display for Latency<'_> {
    /// Only at the end of the run.
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

/// Counters of a core. Only at the end of the run.
pub fn core(core: u32, hart: u64, counters: &CoreCounters, stack: u64, trace: &Ring<'_>) {
    let (cause, longest) =
        counters.irqs_off_max.iter().enumerate().max_by_key(|(_, ticks)| **ticks).unwrap_or((0, &0));
    record(format_args!(
        r#""record":"core","core":{core},"hart":{hart},"interrupts":{},"switches":{},"messages":{},"ipis_sent":{},"ipis_saved":{},"idle":{},"longest_irqs_off":{longest},"longest_irqs_off_cause":"{}","irqs_off_max":{},"irqs_off_total":{},"longest_delay":{},"stack":{stack},"trace":{}"#,
        Counters(&interrupt::NAMES, &counters.interrupts),
        counters.switches,
        counters.messages,
        counters.ipis_sent,
        counters.ipis_saved,
        counters.idle,
        if *longest == 0 { "" } else { Exit::NAMES.get(cause).unwrap_or(&"") },
        Counters(Exit::NAMES, &counters.irqs_off_max),
        Counters(Exit::NAMES, &counters.irqs_off_total),
        counters.longest_delay,
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

/// The last line. Only at the end of the run.
pub fn end(machine: &Machine, time: u64) {
    let lost: u64 = machine.guests.iter().map(|guest| guest.devices.serial.output.lost()).sum::<u64>()
        + machine.log.lost();
    record(format_args!(r#""record":"end","time":{time},"console_bytes_lost":{lost}"#));
}
